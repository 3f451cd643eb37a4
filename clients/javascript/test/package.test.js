import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { banner, chunks } from "../build.js";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const given = JSON.parse(readFileSync(here("package.json"), "utf8"));
const MOST = 26_000; // bytes that an import loads

test("what an import loads is small, and what is published was built of these sources", () => {
  for (const [file, text] of Object.entries(chunks()))
    assert.equal(readFileSync(here(`dist/${file}`), "utf8").split("\n")[0], banner(text), `${file}: npm run build`);
  assert.ok(statSync(here("dist/cloister-client.js")).size < MOST);
});

test("what builds is held by hash, and nothing that is fetched runs by itself", async () => {
  const { packages } = JSON.parse(readFileSync(here("package-lock.json"), "utf8"));
  const { "": own, ...others } = packages;
  assert.deepEqual(own.devDependencies, given.devDependencies);
  for (const version of Object.values(given.devDependencies)) assert.match(version, /^\d+\.\d+\.\d+$/);
  for (const [name, { integrity, dev }] of Object.entries(others)) assert.ok(dev && /^sha512-/.test(integrity), name);
  assert.match(readFileSync(here(".npmrc"), "utf8"), /^ignore-scripts=true$/m);
});

test("the sources have no dependencies, and only Node's file has Node's modules at its load", () => {
  assert.equal(given.dependencies, undefined);
  for (const file of ["cloister-client.js", "rare.js"]) {
    const code = readFileSync(here(`dist/${file}`), "utf8");
    assert.doesNotMatch(code, /^import.*(node:|require)/m);
    assert.doesNotMatch(code, /\b(eval|Function)\(|Math\.random|Date\b/);
  }
});

const npm = process.platform === "win32" ? "npm.cmd" : "npm";
/** Some installations of Node come without npm, or with one that does not start. */
const skip = spawnSync(npm, ["--version"]).status === 0 ? false : "npm does not run here";

test("npm pack gives the package, and nothing else", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "cloister-"));
  try {
    const options = {
      cwd: here("."),
      encoding: "utf8",
      env: { ...process.env, npm_config_offline: "true", npm_config_cache: folder },
    };
    const [{ name, files }] = JSON.parse(
      execFileSync(npm, ["pack", "--dry-run", "--json", "--ignore-scripts"], options),
    );
    assert.equal(name, "cloister-client");
    const right = [
      "README.md",
      "LICENSE",
      "package.json",
      "index.d.ts",
      "file.d.ts",
      "dist/cloister-client.js",
      "dist/rare.js",
      "dist/file-store.js",
    ];
    assert.deepEqual(files.map(({ path }) => path).sort(), right.sort());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the package's names are its files, and types say all that is exported", async () => {
  for (const { types, default: file } of Object.values(given.exports)) {
    const said = readFileSync(here(types), "utf8");
    for (const name of Object.keys(
      await import(here(file.replace("dist/cloister-client", "src/index").replace("dist", "src"))),
    ))
      assert.match(said, new RegExp(`export (declare )?(class|function) ${name}\\b`), `${name} in ${types}`);
  }
});
