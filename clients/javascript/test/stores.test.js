import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { client, FileStore, loaded, names, refusal } from "./fixtures.js";

const { MemoryStore } = client;
const folder = (t) => {
  const made = mkdtempSync(join(tmpdir(), "cloister-"));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
};

for (const [what, made] of [
  ["a file", (t) => new FileStore(join(folder(t), "state"))],
  ["memory", () => new MemoryStore()],
]) {
  test(`${what} remembers what did not raise, and gives back what fn gives`, async (t) => {
    const store = made(t);
    assert.equal(await store.update((state) => (state.a = 1)), 1);
    const failed = store.update((state) => {
      state.a = 2;
      throw new Error("no");
    });
    await assert.rejects(failed, /no/);
    assert.deepEqual(await store.update((state) => ({ ...state })), { a: 1 });
    const many = Array.from({ length: 20 }, () => store.update((state) => ++state.a));
    assert.deepEqual(
      (await Promise.all(many)).sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, i) => i + 2),
    );
  });
}

test("a file is readable by its owner only, written whole, and leaves nothing beside it", async (t) => {
  const made = folder(t),
    path = join(made, "state");
  await new FileStore(path).update((state) => (state.a = 1));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(made), ["state"]);
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { a: 1 });
});

test("a file in a folder that is not there is refused in words", async (t) => {
  const path = join(folder(t), "missing", "state");
  assert.ok(
    (await refusal(() => new FileStore(path).update(() => 1), "state")).includes(
      `nothing can be remembered in ${path}: is its folder there? (ENOENT)`,
    ),
  );
});

test("a damaged file is refused, and left as it is", async (t) => {
  const path = join(folder(t), "state");
  writeFileSync(path, '{"a":');
  assert.match(await refusal(() => new FileStore(path).update(() => 1), "state"), /restore a copy/);
  assert.equal(readFileSync(path, "utf8"), '{"a":');
});

test("the lock of a process that died is taken off, that of a living one is not", async (t) => {
  const path = join(folder(t), "state"),
    { pid } = spawnSync(process.execPath, ["-e", ""]);
  writeFileSync(`${path}.lock`, String(pid));
  assert.equal(await new FileStore(path).update((state) => (state.a = 1)), 1);
  assert.ok(!existsSync(`${path}.lock`));
  writeFileSync(`${path}.lock`, String(process.pid));
  const waiting = new FileStore(path).update((state) => (state.a = 2));
  await new Promise((done) => setTimeout(done, 200));
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { a: 1 });
  rmSync(`${path}.lock`);
  assert.equal(await waiting, 2);
});

test(
  "processes at once draw one report, and lose no change",
  { skip: names().length ? false : "no vectors" },
  async (t) => {
    const path = join(folder(t), "state");
    const program = `
    import { client, FileStore, hex, loaded } from "./test/fixtures.js";
    const store = new FileStore(${JSON.stringify(path)});
    const counted = (state) => void (state.count = (state.count ?? 0) + 1);
    for (let i = 0; i < 10; i++) await store.update(counted);
    const bundle = await loaded("method-tree-coreset-lsh");
    const report = await new client.Client({ user: 5, store }).answer(bundle, [0.1, 0.2]);
    console.log(hex(report));`;
    await new FileStore(path).update((state) => void Object.assign(state, { version: 1, lifetime: null, plans: {} }));
    const run = () =>
      promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
        cwd: new URL("..", import.meta.url),
      });
    const found = await Promise.all(Array.from({ length: 4 }, run));
    assert.equal(new Set(found.map(({ stdout }) => stdout)).size, 1);
    assert.equal(JSON.parse(readFileSync(path, "utf8")).count, 40);
  },
);
