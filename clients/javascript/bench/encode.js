/** How long one row takes: `node bench/encode.js plan/bundle-1.json`. Rows are random, words are the system's. */
import { readFileSync } from "node:fs";
import { Bundle, encode } from "../src/index.js";

const path = process.argv[2],
  rows = 2000;
const started = performance.now();
const bundle = await Bundle.load(async (ending) => readFileSync(path.replace(/\.json$/, ending)));
const loading = performance.now() - started;
const { dimension, users, domain } = bundle.content;
const row = () =>
  Array.from(
    { length: dimension },
    (_, j) => (domain.middle?.[j] ?? 0) + (Math.random() - 0.5) * domain.unit * 2 ** 18,
  );

const times = [];
for (let i = 0; i < rows; i++) {
  const own = row(),
    user = Math.floor(Math.random() * users),
    start = performance.now();
  encode(bundle, own, user);
  times.push(performance.now() - start);
}
const cold = times[0];
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor(share * rows)].toFixed(3);
console.log(`bundle read and checked in ${loading.toFixed(1)} ms; a row of ${dimension} columns, of ${rows}:`);
console.log(`median ${at(0.5)} ms, 99% ${at(0.99)} ms, the first ${cold.toFixed(1)} ms`);
