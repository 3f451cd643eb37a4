/** Makes cloister-client.js: all of src in one minified module. `node build.js` (needs terser: npm install). */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
export const OUT = "cloister-client.js";

/** All modules, each after those that it imports, without their imports and exports; and the entry's exports. */
export function joined() {
  const seen = new Set(), parts = [];
  const add = (name) => {
    if (seen.has(name)) return;
    seen.add(name);
    const text = readFileSync(here(`src/${name}`), "utf8");
    for (const [, other] of text.matchAll(/^(?:import|export) .* from "\.\/(.*)";$/gm)) add(other);
    if (name !== "index.js") parts.push(text.replace(/^import .*$/gm, "").replace(/^export /gm, ""));
  };
  add("index.js");
  const names = [...readFileSync(here("src/index.js"), "utf8").matchAll(/^export \{ (.*) \} from/gm)].map(([, list]) => list);
  return `${parts.join("\n")}\nexport { ${names.join(", ")} };\n`;
}

/** The first line of what is built: which sources it is of. */
export const banner = (text) => `/*! cloister-client, Apache-2.0, of ${createHash("sha256").update(text).digest("hex").slice(0, 16)} */`;

if (import.meta.url === `file://${process.argv[1]}`) {
  const { minify } = await import("terser");
  const text = joined();
  const options = { module: true, ecma: 2022, compress: { passes: 2 }, format: { preamble: banner(text) } };
  const { code } = await minify(text, options);
  writeFileSync(here(OUT), `${code}\n`);
  console.log(`${OUT}: ${Buffer.byteLength(code) + 1} bytes`);
}
