import assert from "node:assert/strict";
import { test } from "node:test";
import { locate, vectorOf } from "../src/buckets.js";
import "../src/rare.js"; // its kinds, to be located by the modules below, whichever client is tried
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
  const steps = vectors("primitives"),
    of = (text) => BigInt(`0x${text}`);
  for (const { key, u, word: right } of steps.word) assert.equal(word(keyOf(key), BigInt(u)), of(right));
  for (const { word: w, m, below: right } of steps.below) assert.equal(below(of(w), m), right);
  for (const { low, high, shift, v, x, k, hash } of steps.hash) {
    const keys = { low: keyOf(low), high: keyOf(high), shift: keyOf(shift), symbols: k };
    assert.equal(hashed(keys, BigInt(v), BigInt(x)), hash);
  }
  for (const { domain, row, lattice } of steps.snap)
    assert.deepEqual(
      snap(domain, row).map((x) => x + 0),
      lattice,
    );
});

for (const { why, ...given } of names().includes("wrong") ? vectors("wrong").cases : []) {
  test(`a wrong bundle is refused, in words: ${why}`, async () => {
    assert.match(await refusal(() => Bundle.load(files(given)), "bundle"), /bundle/);
  });
}

test("a bundle that lies about its buckets tells nothing: what is no bucket, and what fails, is none", () => {
  const cells = { kind: "grid", sides: [4], parts: [3], sizes: [2] };
  assert.deepEqual(
    [-4, 0, 4].map((x) => locate(cells, [x])[0]),
    [0n, 1n, -1n],
  );
  assert.deepEqual(locate({ kind: "grid", sizes: [2, 5] }, [0]), [-1n, -1n]);
  assert.deepEqual(locate({ kind: "grid", sides: [NaN], parts: [3], sizes: [2] }, [0]), [-1n]);
  const near = { kind: "centers", centers: { data: [0], shape: [1, 1] }, within: null, sizes: [1] };
  const facets = { kind: "facets", near, first: 1, facets: [[9, 0]], of_group: [3], sides: [1], bins: 3, sizes: [3] };
  assert.deepEqual(
    [-9, -1, 0, 1, 9].map((x) => locate({ ...facets, facets: [[0, 0]] }, [x])[0]),
    [0n, 0n, 1n, 2n, 2n],
  );
  assert.deepEqual(locate(facets, [0]), [-1n]);
  assert.deepEqual(locate({ ...facets, facets: [[0, 3]] }, [0]), [-1n]);
  assert.deepEqual(locate({ ...facets, facets: [[0, 0]], near: { ...near, kind: "lost" } }, [0]), [-1n]);
  const centers = { data: [1, NaN, 2 ** 60], shape: [3, 1] };
  const vectors = (more) => ({ kind: "offsets", dimension: 1, centers, ...more });
  assert.deepEqual(
    [0n, 1n, 2n, 3n, -1n].map((id) => vectorOf(vectors(), [5], [id])[0][0]),
    [4, 0, 0, 0, 0],
  );
  assert.deepEqual(vectorOf(vectors({ dimension: 2 }), [5], [0n, 1n]), [
    [0, 0],
    [-1n, -1n],
  ]);
  assert.deepEqual(vectorOf({ kind: "clipped", dimension: 1 }, [5], [0n]), [[0], [-1n]]);
});
