/**
 * Encodes the rows of a folder (folder.js), and compares with Python's reports: `node bench/compare.js FOLDER`.
 * There too: keys.bin (n, 16): the secret words of a row are those of its key for 0, 1, 2, ...; reports.bin (n, 18 + A),
 * zeros for a user who is not asked.
 */
import { keyOf, word } from "../src/words.js";
import { read, report, size, users } from "./folder.js";

const keys = read("keys.bin"),
  reports = read("reports.bin");

const different = [],
  start = performance.now();
users.forEach((_, i) => {
  const key = keyOf(keys.subarray(16 * i, 16 * (i + 1)).toString("hex"));
  let drawn = 0n;
  const words = (n) => BigUint64Array.from({ length: n }, () => word(key, drawn++));
  const found = report(i, words) ?? new Uint8Array(size);
  if (Buffer.compare(found, reports.subarray(i * size, (i + 1) * size))) different.push(i);
});
const ms = (performance.now() - start) / users.length;
console.log(JSON.stringify({ rows: users.length, different: different.length, first: different.slice(0, 5), ms }));
