/**
 * Encodes rows from a folder with the system's own words, as every person would: `node bench/reports.js FOLDER`.
 * There: bundle.json, bundle.bin, rows.bin (n, d) float64, users.bin (n,) uint64. Writes sent.bin (n, 18 + A).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Bundle, encode } from "../src/index.js";

const read = (name) => readFileSync(join(process.argv[2], name));
const of = (name, Type) => new Type(new Uint8Array(read(name)).buffer);

const bundle = await Bundle.load({ json: read("bundle.json"), bin: read("bundle.bin") });
const { dimension, answer_bytes } = bundle.content,
  size = 18 + answer_bytes;
const rows = of("rows.bin", Float64Array),
  users = of("users.bin", BigUint64Array);
const sent = new Uint8Array(users.length * size);
users.forEach((user, i) => {
  const report = encode(bundle, rows.subarray(i * dimension, (i + 1) * dimension), user);
  if (report) sent.set(report, i * size);
});
writeFileSync(join(process.argv[2], "sent.bin"), sent);
