/**
 * Where a client remembers. `update(fn)` runs fn(state) on the state, a JSON object that it may change, alone: no other
 * tab, process or call in between. What fn gives comes back once the state is durable; if it raises, nothing changed.
 */
import { Refused } from "./words.js";

/** For tests, and for devices that forget. */
export class MemoryStore {
  #state = {};
  #last = Promise.resolve();

  update(fn) {
    const run = this.#last.then(() => {
      const state = structuredClone(this.#state),
        result = fn(state);
      this.#state = state;
      return result;
    });
    this.#last = run.catch(() => {});
    return run;
  }
}

const forgetful = (why) => new Refused("state", `nothing can be remembered here: ${why}`);

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
        const change = db.transaction("state", "readwrite", { durability: "strict" }),
          store = change.objectStore("state");
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
        change.onabort = () => failed(error ?? forgetful(change.error));
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
      open.onerror = () => failed(forgetful(open.error));
    });
  }
}
