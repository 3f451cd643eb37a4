/** Steps of an encoder alone, at bounds that bind: what whole reports seldom reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gaussians } from "../src/noise.js";
import { shrink } from "../src/rows.js";
import { webCrypto } from "../src/words.js";

const TOP = (1n << 64n) - 1n,
  HALF = 1n << 63n;

/** Words that are given, and how many were taken. */
function given(...words) {
  const draw = (n) => BigUint64Array.from(words.slice(draw.taken, (draw.taken += n)));
  return Object.assign(draw, { taken: 0 });
}

test("a vector that is as long as it may be stays, in either norm", () => {
  assert.deepEqual(shrink([3, -4], 5, 7), [3, -4]);
  assert.deepEqual(shrink([3, -4], 5), [3, -4]);
});

test("a vector beyond its L2 norm is scaled by a little less than would do, towards zero", () => {
  assert.deepEqual(shrink([6, -8], 5), [2, -3]); // half of it is exactly as long as allowed
  assert.deepEqual(shrink([600, -800], 500), [299, -399]);
});

test("a vector beyond its L1 norm is scaled, also where its L2 norm allows it", () => {
  assert.deepEqual(shrink([4, -4, 4, -4], 8, 8), [1, -1, 1, -1]); // a half of each, and a little less
  assert.deepEqual(shrink([9, 0, -3], 10, 9), [6, 0, -2]); // three quarters
  const far = shrink([1000, -1000, 1000, 999], 1500, 2000); // both bind
  assert.ok(far.reduce((sum, x) => sum + Math.abs(x), 0) <= 2000);
  assert.ok(far.every((x) => Math.abs(x) >= 498 && Math.abs(x) <= 500), String(far));
});

test("minus zero is rejected: there is one zero", () => {
  const draw = given(TOP, HALF, 0n, TOP, 0n, 0n);
  assert.deepEqual(gaussians(1, 1, draw), [0n]);
  assert.equal(draw.taken, 6);
  const minus = given(1n << 62n, HALF, 0n); // -2 ln(1/4) = 2.77
  assert.deepEqual(gaussians(1, 1, minus), [-2n]);
  assert.equal(minus.taken, 3);
});

test("noise of a sigma near 1 has the law of the discrete Gaussian", () => {
  // five values of 3,000 draws at two sigmas, each within 5.5 standard errors: fails in less than one run of 10^6
  for (const sigma of [0.8, 1.25]) {
    const n = 3000,
      weight = (y) => Math.exp((-y * y) / (2 * sigma * sigma));
    let total = 1;
    for (let y = 1; y < 40; y++) total += 2 * weight(y);
    const drawn = gaussians(sigma, n, webCrypto).map(Number);
    for (const y of [-2, -1, 0, 1, 2]) {
      const p = weight(y) / total,
        found = drawn.filter((x) => x === y).length;
      assert.ok(Math.abs(found - n * p) < 5.5 * Math.sqrt(n * p * (1 - p)) + 1, `${sigma}: ${y} ${found} of ${n * p}`);
    }
  }
});
