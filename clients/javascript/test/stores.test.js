import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import fs, { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
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

/** The text of the lock that a process here holds while it works, with another process's number in it. */
async function lockOf(path, pid = process.pid) {
  const own = await new FileStore(path).update(() => readFileSync(`${path}.lock`, "utf8"));
  assert.ok(own.startsWith(`${process.pid} `));
  return own.replace(/^\d+/, pid);
}

test("a lock names its process, the machine since its start, and the container", async (t) => {
  const path = join(folder(t), "state"),
    [, token, ...place] = (await lockOf(path)).split(" ");
  assert.match(token, /^[0-9a-f]{16}$/);
  assert.notEqual((await lockOf(path)).split(" ")[1], token);
  assert.equal(place.length, 3);
  if (process.platform === "linux") {
    assert.equal(place[1], readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
    assert.match(place[2], /^pid:\[\d+\]$/);
  }
});

test("the lock of a process elsewhere is no dead one's, whatever its number", async (t) => {
  const path = join(folder(t), "state"),
    { pid } = spawnSync(process.execPath, ["-e", ""]); // which has ended here
  const own = await lockOf(path, pid),
    [, token, host, boot, container] = own.split(" ");
  for (const lock of [
    `${pid} ${token} ${host}2 ${boot} ${container}`, // another machine
    `${pid} ${token} ${host} ${boot}2 ${container}`, // the same one, or one of that name, started again
    `${pid} ${token} ${host} ${boot} ${container}2`, // another container, which has numbers of its own
    String(pid), // nobody knows whose
    "",
  ]) {
    writeFileSync(`${path}.lock`, lock);
    const waiting = new FileStore(path).update((state) => (state.a = lock));
    await new Promise((done) => setTimeout(done, 100));
    assert.equal(readFileSync(`${path}.lock`, "utf8"), lock);
    assert.ok(!existsSync(path) || JSON.parse(readFileSync(path, "utf8")).a !== lock);
    rmSync(`${path}.lock`);
    assert.equal(await waiting, lock);
  }
});

test("who has lost the lock remembers nothing, and leaves another one's lock", async (t) => {
  const path = join(folder(t), "state"),
    store = new FileStore(path);
  await store.update((state) => (state.a = 1));
  for (const after of [() => rmSync(`${path}.lock`), () => writeFileSync(`${path}.lock`, "another one's")])
    assert.match(
      await refusal(() => store.update((state) => after((state.a = 2))), "state"),
      /was taken away meanwhile: nothing was remembered/,
    );
  assert.equal(readFileSync(`${path}.lock`, "utf8"), "another one's");
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { a: 1 });
  rmSync(`${path}.lock`);
  assert.equal(await store.update((state) => state.a), 1);
  // nothing was changed, so that there is nothing to lose
  assert.equal(await store.update(({ a }) => (rmSync(`${path}.lock`), a)), 1);
  assert.deepEqual(readdirSync(join(path, "..")), ["state"]);
});

test("a state that is gone is not an empty one", async (t) => {
  const path = join(folder(t), "state"),
    store = new FileStore(path);
  assert.equal(await store.update((state) => state.a), undefined); // there was none yet
  await store.update((state) => (state.a = 1));
  rmSync(path);
  assert.match(await refusal(() => store.update(() => 1), "state"), /state is gone: restore a copy/);
});

test("what is remembered is on the disk: the file, and then its name in the folder", async (t) => {
  const made = folder(t),
    path = join(made, "state"),
    done = [],
    own = { fsyncSync: fs.fsyncSync, renameSync: fs.renameSync };
  fs.fsyncSync = (file) => (done.push(fs.fstatSync(file).ino), own.fsyncSync(file));
  fs.renameSync = (from, to) => (done.push("renamed"), own.renameSync(from, to));
  syncBuiltinESMExports();
  try {
    await new FileStore(path).update((state) => (state.a = 1));
  } finally {
    Object.assign(fs, own);
    syncBuiltinESMExports();
  }
  assert.deepEqual(done, [statSync(path).ino, "renamed", statSync(made).ino]);
});

test("the lock of a process that died is taken off, that of a living one is not", async (t) => {
  const path = join(folder(t), "state"),
    { pid } = spawnSync(process.execPath, ["-e", ""]);
  writeFileSync(`${path}.lock`, await lockOf(path, pid));
  assert.equal(await new FileStore(path).update((state) => (state.a = 1)), 1);
  assert.ok(!existsSync(`${path}.lock`));
  writeFileSync(`${path}.lock`, await lockOf(path));
  const waiting = new FileStore(path).update((state) => (state.a = 2));
  await new Promise((done) => setTimeout(done, 200));
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { a: 1 });
  rmSync(`${path}.lock`);
  assert.equal(await waiting, 2);
});

test("a dead process's lock is looked at again before it is taken off: the next one's stays", async (t) => {
  const path = join(folder(t), "state"),
    lock = `${path}.lock`,
    { pid } = spawnSync(process.execPath, ["-e", ""]),
    living = await lockOf(path),
    link = fs.linkSync;
  writeFileSync(lock, await lockOf(path, pid));
  let turns = 0;
  fs.linkSync = (from, to) => {
    if (to === `${lock}.off` && !turns++) writeFileSync(lock, living); // between the two looks
    return link(from, to);
  };
  syncBuiltinESMExports();
  try {
    const waiting = new FileStore(path).update((state) => (state.a = 1));
    while (!turns) await new Promise((done) => setTimeout(done, 5));
    assert.equal(readFileSync(lock, "utf8"), living);
    rmSync(lock);
    assert.equal(await waiting, 1);
  } finally {
    fs.linkSync = link;
    syncBuiltinESMExports();
  }
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
