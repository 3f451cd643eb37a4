/** What a client remembers, in a file, in Node: see `stores.js`. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { Refused } from "./words.js";

const PATIENCE = 500; // tries, 20 ms apart

/** In Node: a file that only its owner may read. Processes wait for one another's lock; a dead one's is taken off. */
export class FileStore {
  #path;

  constructor(path) {
    this.#path = String(path);
  }

  async update(fn) {
    const lock = `${this.#path}.lock`;
    await locked(lock);
    try {
      const state = stateOf(this.#path),
        before = JSON.stringify(state),
        result = fn(state);
      if (JSON.stringify(state) !== before) durable(this.#path, JSON.stringify(state));
      return result;
    } finally {
      fs.unlinkSync(lock);
    }
  }
}

function stateOf(path) {
  if (!fs.existsSync(path)) return {};
  try {
    return JSON.parse(fs.readFileSync(path, "utf8"));
  } catch {
    throw new Refused("state", `${path} is damaged, or cannot be read: restore a copy with the last reports`);
  }
}

/** Make a file with this process's number, whole at once. Returns whether there was none. */
function made(path) {
  const own = `${path}.${process.pid}.${randomBytes(8).toString("hex")}`;
  try {
    fs.writeFileSync(own, String(process.pid), { mode: 0o600 });
  } catch ({ code }) {
    throw new Refused(
      "state",
      `nothing can be remembered in ${path.replace(/\.lock.*$/, "")}: is its folder there? (${code})`,
    );
  }
  try {
    fs.linkSync(own, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    fs.unlinkSync(own);
  }
}

function dead(lock) {
  try {
    process.kill(Number(fs.readFileSync(lock, "utf8")), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

async function locked(lock) {
  for (let turn = 0; turn < PATIENCE; turn++) {
    if (made(lock)) return;
    // who takes a dead process's lock off holds a lock for that, so that nobody takes off the next one's
    if (dead(lock) && made(`${lock}.off`)) {
      if (dead(lock)) fs.unlinkSync(lock);
      fs.unlinkSync(`${lock}.off`);
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Refused("state", `another process works with ${lock}: wait for it, or delete that file if there is none`);
}

function durable(path, text) {
  const fresh = `${path}.new`,
    file = fs.openSync(fresh, "w", 0o600);
  fs.writeFileSync(file, text);
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.renameSync(fresh, path);
  const folder = fs.openSync(path.replace(/[^/\\]*$/, "") || ".", "r");
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
