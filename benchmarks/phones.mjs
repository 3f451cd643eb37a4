// Simulated phones in Node, for phones.py: each is a client of its own, and sends one report by itself.
//     node phones.mjs URL PEOPLE.json           {"numbers": [...], "rows": [[...], ...]}
import { readFileSync } from "node:fs";

import { Client, MemoryStore } from "../clients/javascript/src/index.js";

const AT_ONCE = 8;
const [url, file] = process.argv.slice(2);
const { numbers, rows } = JSON.parse(readFileSync(file, "utf8"));
const count = {}, times = [];
const first = new Client({ url, user: numbers[0], store: new MemoryStore() });
const bundle = await first.bundle(await (await fetch(new URL("round", url))).json());
let next = 0;

async function phones() {
  while (next < numbers.length) {
    const i = next++;
    const client = new Client({ url, user: numbers[i], store: new MemoryStore() });
    const report = await client.answer(bundle, rows[i]);
    const start = performance.now();
    const said = await client.send(report);
    times.push(performance.now() - start);
    count[said] = (count[said] ?? 0) + 1;
  }
}

const start = performance.now();
await Promise.all(Array.from({ length: AT_ONCE }, phones));
times.sort((a, b) => a - b);
const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
console.log(JSON.stringify({ ...count, seconds: (performance.now() - start) / 1000, median: at(0.5), p99: at(0.99) }));
