/**
 * Encodes rows from a folder, and compares with Python's reports: `node bench/compare.js FOLDER`.
 * There: bundle.json, bundle.bin, rows.bin (n, d) float64, users.bin (n,) uint64, keys.bin (n, 16): the secret words of
 * a row are those of its key for 0, 1, 2, ...; reports.bin (n, 18 + A), zeros for a user who is not asked.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { keyOf, word } from "../src/words.js";

const { Bundle, encode } = await import(
  process.env.CLIENT === "dist" ? "../dist/cloister-client.js" : "../src/index.js"
);
const read = (name) => readFileSync(join(process.argv[2], name));
const of = (name, Type) => new Type(new Uint8Array(read(name)).buffer);

const bundle = await Bundle.load({ json: read("bundle.json"), bin: read("bundle.bin") });
const { dimension, answer_bytes } = bundle.content,
  size = 18 + answer_bytes;
const rows = of("rows.bin", Float64Array),
  users = of("users.bin", BigUint64Array);
const keys = read("keys.bin"),
  reports = read("reports.bin");

const different = [],
  start = performance.now();
users.forEach((user, i) => {
  const key = keyOf(keys.subarray(16 * i, 16 * (i + 1)).toString("hex"));
  let drawn = 0n;
  const words = (n) => BigUint64Array.from({ length: n }, () => word(key, drawn++));
  const found = encode(bundle, rows.subarray(i * dimension, (i + 1) * dimension), user, words) ?? new Uint8Array(size);
  if (Buffer.compare(found, reports.subarray(i * size, (i + 1) * size))) different.push(i);
});
const ms = (performance.now() - start) / users.length;
console.log(JSON.stringify({ rows: users.length, different: different.length, first: different.slice(0, 5), ms }));
