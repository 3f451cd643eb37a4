/** What a client remembers, in a file, in Node: see `stores.js`. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { hostname } from "node:os";
import { Refused } from "./words.js";

const PATIENCE = 500; // tries, 20 ms apart

/** In Node: a file that only its owner may read. Processes wait for one another's lock; a dead one's is taken off. */
export class FileStore {
  #path;
  #known = false; // whether there is a state: then a file that is gone is not an empty one

  constructor(path) {
    this.#path = String(path);
  }

  async update(fn) {
    const lock = `${this.#path}.lock`,
      own = `${process.pid} ${randomBytes(8).toString("hex")} ${PLACE}`;
    await locked(lock, own);
    try {
      const state = stateOf(this.#path, this.#known),
        before = JSON.stringify(state),
        result = fn(state);
      if (JSON.stringify(state) !== before) durable(this.#path, JSON.stringify(state), lock, own);
      this.#known ||= fs.existsSync(this.#path);
      return result;
    } finally {
      if (textOf(lock) === own) fs.rmSync(lock, { force: true }); // another one's stays
    }
  }
}

/** What a file holds; null if there is none. */
function textOf(path) {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

/** Where the number of a process says something: a machine, since its last start, and a container of it. */
const PLACE = [hostname, () => textOf("/proc/sys/kernel/random/boot_id"), () => fs.readlinkSync("/proc/self/ns/pid")]
  .map((part) => {
    try {
      return String(part()).trim();
    } catch {
      return "-"; // not of Linux
    }
  })
  .join(" ");

function stateOf(path, known) {
  let text;
  try {
    text = textOf(path);
    if (text !== null) return JSON.parse(text);
  } catch {
    throw new Refused("state", `${path} is damaged, or cannot be read: restore a copy with the last reports`);
  }
  if (known) throw new Refused("state", `${path} is gone: restore a copy with the last reports`);
  return {};
}

/** Make a file with a text, whole at once. Returns whether there was none. */
function made(path, text) {
  const own = `${path}.${process.pid}.${randomBytes(8).toString("hex")}`;
  try {
    fs.writeFileSync(own, text, { mode: 0o600 });
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
    fs.rmSync(own, { force: true });
  }
}

/** Whether a lock's process is known to have ended: of another machine's or container's nobody knows that here. */
function dead(lock) {
  const [, pid, place] = textOf(lock)?.match(/^([1-9]\d*) \S+ (.*)$/) ?? [];
  if (place !== PLACE) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

async function locked(lock, own) {
  for (let turn = 0; turn < PATIENCE; turn++) {
    if (made(lock, own)) return;
    // who takes a dead process's lock off holds a lock for that, so that nobody takes off the next one's
    if (dead(lock) && made(`${lock}.off`, own)) {
      if (dead(lock)) fs.rmSync(lock, { force: true });
      fs.rmSync(`${lock}.off`, { force: true });
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  const all = [lock, `${lock}.off`].filter((one) => fs.existsSync(one)).join(" and ") || lock;
  throw new Refused(
    "state",
    `another process works with ${all}: wait for it; if there is none, also on no other machine or container that ` +
      `has this folder, delete that`,
  );
}

function durable(path, text, lock, own) {
  const fresh = `${path}.${randomBytes(8).toString("hex")}.new`;
  try {
    const file = fs.openSync(fresh, "w", 0o600);
    fs.writeFileSync(file, text);
    fs.fsyncSync(file);
    fs.closeSync(file);
    if (textOf(lock) !== own)
      throw new Refused("state", `${lock} was taken away meanwhile: nothing was remembered, try again`);
    fs.renameSync(fresh, path);
  } finally {
    fs.rmSync(fresh, { force: true });
  }
  const folder = fs.openSync(path.replace(/[^/\\]*$/, "") || ".", "r");
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
