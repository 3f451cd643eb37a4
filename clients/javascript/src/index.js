/** cloister's client: bundles of published plans, reports of rows, and a memory. Licence: Apache-2.0. */
export { Bundle } from "./bundle.js";
export { Client } from "./client.js";
export { encode } from "./encode.js";
export { IndexedDBStore, MemoryStore } from "./stores.js";
export { Refused } from "./words.js";
