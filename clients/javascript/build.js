/** Makes what is published, of src: dist/*.js, minified. `npm run build` (needs terser: npm install). */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
const source = (name) => readFileSync(here(`src/${name}`), "utf8");
const IMPORT = /^import (?:\{ (.*) \} from )?"\.\/(.*)";$/gm;

/** Published file: the module that it begins with. What the first has, the others import from it. */
const CHUNKS = { "cloister-client.js": "index.js", "rare.js": "rare.js", "file-store.js": "file-store.js" };

/** The modules that a module needs, each after those that it imports itself, and last itself. */
function needed(name, known = new Set()) {
  if (known.has(name)) return [];
  known.add(name);
  const others = [...source(name).matchAll(/^(?:import|export) .*"\.\/(.*)";$/gm)].map(([, other]) => other);
  return [...others.flatMap((other) => needed(other, known)), name];
}

const bare = (name) =>
  source(name)
    .replace(IMPORT, "")
    .replace(/^export (?!\{)/gm, "")
    .replace(/^export \{.*$/gm, "");
const exported = (name) =>
  [...source(name).matchAll(/^export (?:class|const|function) (\w+)/gm)].map(([, found]) => found);

/** Published files by name, before they are minified. */
export function chunks() {
  const main = needed("index.js"),
    found = {},
    asked = new Set();
  for (const [file, entry] of Object.entries(CHUNKS).reverse()) {
    const own = needed(entry).filter((name) => entry === "index.js" || !main.includes(name));
    const outside = own.flatMap((name) =>
      [...source(name).matchAll(IMPORT)]
        .filter(([, names, from]) => names && !own.includes(from))
        .flatMap(([, names]) => names.split(", ")),
    );
    outside.forEach((name) => asked.add(name));
    const text = own.map(bare).join("\n");
    if (entry === "index.js") {
      const names = [...source(entry).matchAll(/^export \{ (.*) \} from/gm)].flatMap(([, list]) => list.split(", "));
      found[file] = `${text}\nexport { ${[...new Set([...names, ...asked])].join(", ")} };\n`;
    } else {
      const names = exported(entry),
        imports = [...new Set(outside)].join(", ");
      found[file] = `import { ${imports} } from "./cloister-client.js";\n${text}\nexport { ${names.join(", ")} };\n`;
    }
  }
  return found;
}

/** The first line of what is built: which sources it is of. */
export const banner = (text) =>
  `/*! cloister-client (Apache-2.0) of ${createHash("sha256").update(text).digest("hex").slice(0, 16)} */`;

if (import.meta.url === `file://${process.argv[1]}`) {
  const { minify } = await import("terser");
  mkdirSync(here("dist"), { recursive: true });
  for (const [file, text] of Object.entries(chunks())) {
    const options = {
      module: true,
      ecma: 2022,
      compress: { passes: 3, hoist_funs: true, unsafe_arrows: true },
      format: { preamble: banner(text) },
    };
    const { code } = await minify(text, options);
    writeFileSync(here(`dist/${file}`), `${code}\n`);
    console.log(`dist/${file}: ${Buffer.byteLength(code) + 1} bytes`);
  }
}
