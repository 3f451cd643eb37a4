import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { webCrypto } from "../src/words.js";
import { client, hex, loaded, names, refusal, replayed, vectors, watched } from "./fixtures.js";

const { encode } = client;
const skip = names().length ? false : "no vectors";
const NAME = "method-one-round",
  CASE = skip || vectors(NAME).bundles[0].cases[0];

test(
  "rows that are no finite numbers, or of another length, are refused without a word about them",
  { skip },
  async () => {
    const bundle = await loaded(NAME);
    for (const row of [
      [NaN, 0],
      [0, Infinity],
      [-Infinity, 0],
      [0.25],
      [0.25, 0, 0],
      [],
      ["0.25", 0],
      [null, 0],
      null,
      undefined,
    ]) {
      const said = await refusal(() => encode(bundle, row, 1), "input");
      assert.match(said, /a row has 2 finite numbers/);
      assert.doesNotMatch(said, /0\.25|NaN|Infinity/);
    }
  },
);

test("a row is given as a list, a typed array, or by the names of the columns", { skip }, async () => {
  const named = await loaded(NAME, 1, (content) => (content.columns = ["age", "weight"]));
  const {
      row: [age, weight],
      user,
      words,
    } = CASE,
    right = hex(encode(named, [age, weight], user, replayed(words)));
  assert.equal(right, CASE.report);
  assert.equal(hex(encode(named, Float64Array.of(age, weight), user, replayed(words))), right);
  assert.equal(hex(encode(named, { weight, age, name: "x" }, user, replayed(words))), right);
  assert.match(await refusal(() => encode(named, { age, toString: weight }, user), "input"), /age, weight/);
});

test("a user's number is a whole number of the plan", { skip }, async () => {
  const bundle = await loaded(NAME);
  for (const user of [-1, 0.5, bundle.content.users, 2 ** 60, "1e3", "", -1n, null, undefined, NaN])
    assert.match(await refusal(() => encode(bundle, [0, 0], user), "input"), /whole number from 0 to 99999/);
  for (const user of [7, 7n, "7"]) assert.equal(hex(encode(bundle, [0, 0], user).slice(10, 18)), "0700000000000000");
});

test("a user whom nothing is asked has no report, and no word is drawn", { skip }, async () => {
  const nobody = (content) => content.questions.forEach((q) => (q.share = { key: "00".repeat(16), from: 0, to: 1 }));
  assert.equal(
    encode(await loaded(NAME, 1, nobody), [0, 0], 5, () => assert.fail()),
    null,
  );
});

test("secret words are wiped once they are used", { skip }, async () => {
  const drawn = [],
    words = replayed(CASE.words);
  encode(await loaded(NAME), CASE.row, CASE.user, (n) => drawn[drawn.push(words(n)) - 1]);
  assert.ok(drawn.length && drawn.every((some) => some.length && some.every((word) => word === 0n)));
});

test("words are the system's, in pieces of at most 65,536 bytes", () => {
  const sizes = [],
    undo = watched((some) => sizes.push(some.byteLength));
  try {
    const words = webCrypto(20_000);
    assert.deepEqual(sizes, [65536, 65536, 160000 - 131072]);
    assert.equal(new Set(words).size, 20_000);
  } finally {
    undo();
  }
});

test("two reports of a row are drawn anew", { skip }, async () => {
  const bundle = await loaded("local-vectors"),
    drawn = new Set();
  for (let i = 0; i < 40; i++) drawn.add(hex(encode(bundle, [0.1, 0.2, 0.3], 3)));
  assert.ok(drawn.size > 20);
});

test("Node without a global crypto, as Node 18 is, has the same words", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cloister-")),
    program = join(folder, "words.mjs");
  t.after(() => rmSync(folder, { recursive: true }));
  const words = new URL("../src/words.js", import.meta.url).href;
  writeFileSync(
    program,
    `delete globalThis.crypto;
     const { webCrypto } = await import("${words}");
     console.log(typeof crypto, webCrypto(3).length);`,
  );
  const said = execFileSync(process.execPath, [program], { encoding: "utf8" });
  assert.equal(said, "undefined 3\n");
});
