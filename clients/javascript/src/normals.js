/** Normal variates from secret words: basic operations and roots, each rounded once, as `normals.py` has them. */

const LN4 = 1.3862943611198906;

/** -2 ln(x / 2^32), 1/2 <= x < 2^32. */
function twiceLog(x) {
  let power = 32;
  for (; x >= 2 * Math.SQRT1_2; x /= 2) power--;
  for (; x < Math.SQRT1_2; x *= 2) power++;
  const s = (x - 1) / (x + 1),
    z = s * s;
  let series = z * (4 / 15);
  for (let k = 6; k > 0; k--) series = (series + 4 / (2 * k + 1)) * z;
  return power * LN4 - (series + 4) * s;
}

/** Words (m) to so many normal variates, two from a word. sines: of a quarter's 2^10 + 1 angles. */
export function normals(words, size, sines) {
  const sine = (i) => (i & 2048 ? -1 : 1) * sines[(i & 2047) > 1024 ? 2048 - (i & 2047) : i & 2047];
  const found = new Float64Array(2 * words.length);
  words.forEach((word, i) => {
    const low = Number(word & 0xffffffffn),
      radius = Math.sqrt(twiceLog(Number(word >> 32n) + 0.5));
    const rest = (low >>> 12) * (Math.PI * 2 ** -31),
      square = rest * rest;
    const near = 1 - square * (0.5 - square / 24),
      off = rest * (1 - square / 6);
    const c = sine((low & 4095) + 1024),
      s = sine(low & 4095);
    found[i] = radius * (c * near - s * off);
    found[words.length + i] = radius * (s * near + c * off);
  });
  return found.subarray(0, size);
}
