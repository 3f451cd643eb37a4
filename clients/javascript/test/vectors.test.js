import assert from "node:assert/strict";
import { test } from "node:test";
import { locate } from "../src/buckets.js";
import { snap } from "../src/rows.js";
import { below, hashed, keyOf, word } from "../src/words.js";
import { client, files, hex, names, refusal, replayed, vectors } from "./fixtures.js";

const { Bundle, encode } = client;

for (const name of names().filter((name) => !["primitives", "wrong"].includes(name))) {
  test(`rows become the bytes of the vectors: ${name}`, async () => {
    for (const given of vectors(name).bundles) {
      const bundle = await Bundle.load(files(given));
      for (const { row, user, words, report } of given.cases)
        assert.equal(hex(encode(bundle, row, user, replayed(words))), report);
    }
  });
}

const has = (name) => ({ skip: !names().includes(name) });

test("single steps are those of the vectors", has("primitives"), () => {
  const steps = vectors("primitives"), of = (text) => BigInt(`0x${text}`);
  for (const { key, u, word: right } of steps.word) assert.equal(word(keyOf(key), BigInt(u)), of(right));
  for (const { word: w, m, below: right } of steps.below) assert.equal(below(of(w), m), right);
  for (const { low, high, shift, v, x, k, hash } of steps.hash) {
    const keys = { low: keyOf(low), high: keyOf(high), shift: keyOf(shift), symbols: k };
    assert.equal(hashed(keys, BigInt(v), BigInt(x)), hash);
  }
  for (const { domain, row, lattice } of steps.snap) assert.deepEqual(snap(domain, row).map((x) => x + 0), lattice);
});

for (const { why, ...given } of names().includes("wrong") ? vectors("wrong").cases : []) {
  test(`a wrong bundle is refused, in words: ${why}`, async () => {
    assert.match(await refusal(() => Bundle.load(files(given)), "bundle"), /bundle/);
  });
}

test("a bucket outside its level is not encoded", () => {
  const cells = { kind: "grid", sides: [4], parts: [3], sizes: [2] };
  assert.throws(() => locate(cells, [4]), /nothing was encoded/);
});
