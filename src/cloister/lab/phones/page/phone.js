// A phone: uses the client of clients/javascript as any page or app would.
import { Bundle, Client, IndexedDBStore, MemoryStore } from "/client/index.js";

export class Phone {
  /** Read the collector's plan. forgets: store nothing in this browser. */
  static async open(url, { forgets = false } = {}) {
    const { bundle, sha256, plan } = await (await fetch(new URL("round", url), { redirect: "error" })).json();
    return new Phone(url, await Bundle.load(new URL(bundle, url), { sha256, plan }), forgets);
  }

  constructor(url, bundle, forgets) {
    Object.assign(this, { url, bundle });
    this.store = forgets ? () => new MemoryStore() : () => new IndexedDBStore();
  }

  /** The plan's name. */
  get plan() {
    return this.bundle.content.plan;
  }

  /** The columns and their bounds. */
  get shape() {
    const { columns, domain } = this.bundle.content;
    return { columns, lower: domain.lower, upper: domain.upper };
  }

  /** Number of bytes of an answer. */
  get bytes() {
    return this.bundle.content.answer_bytes;
  }

  /** Lines of the privacy promise. */
  get promise() {
    return this.bundle.promise.split("\n").filter((line) => line.trim());
  }

  /** Randomise a row once, store the report and send it; known: the collector already had it. */
  async report(row, user) {
    const client = new Client({ url: this.url, user, store: this.store() });
    const bytes = await client.answer(this.bundle, row);
    return { bytes, known: (await client.send(bytes)) === "duplicate" };
  }
}
