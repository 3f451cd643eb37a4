/**
 * What Python has put into the folder that a script is given: bundle.json, bundle.bin, rows.bin (n, d) float64,
 * users.bin (n,) uint64. With CLIENT=dist the bundle is read, and rows are encoded, by the published file.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const { Bundle, encode } = await import(
  process.env.CLIENT === "dist" ? "../dist/cloister-client.js" : "../src/index.js"
);
export const place = (name) => join(process.argv[2], name);
export const read = (name) => readFileSync(place(name));
const of = (name, Type) => new Type(new Uint8Array(read(name)).buffer);

const bundle = await Bundle.load({ json: read("bundle.json"), bin: read("bundle.bin") });
const { dimension, answer_bytes } = bundle.content;
const rows = of("rows.bin", Float64Array);

/** Bytes of a report. */
export const size = 18 + answer_bytes;
export const users = of("users.bin", BigUint64Array);

/** The report of user i (size,), by these secret words or the system's; null for one who is not asked. */
export const report = (i, words) => encode(bundle, rows.subarray(i * dimension, (i + 1) * dimension), users[i], words);
