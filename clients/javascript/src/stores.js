/**
 * Where a client remembers. `update(fn)` runs fn(state) on the state, a JSON object that it may change, alone: no other
 * tab, process or call in between. What fn gives comes back once the state is durable; if it raises, nothing changed.
 */
import { hex, Refused, system } from "./words.js";

/** For tests, and for devices that forget. */
export class MemoryStore {
  #state = {};
  #last = Promise.resolve();

  update(fn) {
    const run = this.#last.then(() => {
      const state = structuredClone(this.#state), result = fn(state);
      this.#state = state;
      return result;
    });
    this.#last = run.catch(() => {});
    return run;
  }
}

/** In a browser. Tabs wait for one another. */
export class IndexedDBStore {
  #name;

  constructor(name = "cloister") {
    this.#name = name;
  }

  async update(fn) {
    const db = await this.#open();
    try {
      return await new Promise((done, failed) => {
        const change = db.transaction("state", "readwrite", { durability: "strict" }), store = change.objectStore("state");
        const read = store.get(1);
        let result, error;
        read.onsuccess = () => {
          try {
            const state = read.result ?? {};
            result = fn(state);
            store.put(state, 1);
          } catch (thrown) {
            error = thrown;
            change.abort();
          }
        };
        change.oncomplete = () => done(result);
        change.onabort = () => failed(error ?? new Refused("state", `nothing can be remembered here: ${change.error}`));
      });
    } finally {
      db.close();
    }
  }

  #open() {
    return new Promise((done, failed) => {
      const open = indexedDB.open(this.#name, 1);
      open.onupgradeneeded = () => open.result.createObjectStore("state");
      open.onsuccess = () => done(open.result);
      open.onerror = () => failed(new Refused("state", `nothing can be remembered here: ${open.error}`));
    });
  }
}

const PATIENCE = 500; // tries, 20 ms apart

/** In Node: a file that only its owner may read. Processes wait for one another's lock; a dead one's is taken off. */
export class FileStore {
  #path;

  constructor(path) {
    this.#path = String(path);
  }

  async update(fn) {
    const fs = await import("node:fs"), lock = `${this.#path}.lock`;
    await locked(fs, lock);
    try {
      const state = stateOf(fs, this.#path), before = JSON.stringify(state), result = fn(state);
      if (JSON.stringify(state) !== before) durable(fs, this.#path, JSON.stringify(state));
      return result;
    } finally {
      fs.unlinkSync(lock);
    }
  }
}

function stateOf(fs, path) {
  if (!fs.existsSync(path)) return {};
  try {
    return JSON.parse(fs.readFileSync(path, "utf8"));
  } catch {
    throw new Refused("state", `${path} is damaged, or cannot be read: restore a copy with the last reports`);
  }
}

/** Make a file with this process's number, whole at once. Returns whether there was none. */
function made(fs, path) {
  const own = `${path}.${process.pid}.${hex(system.getRandomValues(new Uint8Array(8)))}`;
  fs.writeFileSync(own, String(process.pid), { mode: 0o600 });
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

function dead(fs, lock) {
  try {
    process.kill(Number(fs.readFileSync(lock, "utf8")), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

async function locked(fs, lock) {
  for (let turn = 0; turn < PATIENCE; turn++) {
    if (made(fs, lock)) return;
    // who takes a dead process's lock off holds a lock for that, so that nobody takes off the next one's
    if (dead(fs, lock) && made(fs, `${lock}.off`)) {
      if (dead(fs, lock)) fs.unlinkSync(lock);
      fs.unlinkSync(`${lock}.off`);
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Refused("state", `another process works with ${lock}: wait for it, or delete that file if there is none`);
}

function durable(fs, path, text) {
  const fresh = `${path}.new`, file = fs.openSync(fresh, "w", 0o600);
  fs.writeFileSync(file, text);
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.renameSync(fresh, path);
  const folder = fs.openSync(path.replace(/[^/\\]*$/, "") || ".", "r");
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
