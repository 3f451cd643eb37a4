/**
 * Encodes the rows of a folder (folder.js) with the system's own words, as every person would:
 * `node bench/reports.js FOLDER`. Writes sent.bin (n, 18 + A).
 */
import { writeFileSync } from "node:fs";
import { place, report, size, users } from "./folder.js";

const sent = new Uint8Array(users.length * size);
users.forEach((_, i) => {
  const found = report(i);
  if (found) sent.set(found, i * size);
});
writeFileSync(place("sent.bin"), sent);
