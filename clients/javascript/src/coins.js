/** The coins of one answer: what they send, and how much likelier for one row than for another, exactly. */
import { chances, key, keys, need, whole } from "./check.js";
import { rint } from "./rows.js";
import { ALL, below, hashed, odd, word } from "./words.js";

/** k-ary response: the ratio is 1 + t / ((1 - t) u), u the least chance of a uniform symbol. */
const responseRatio = ({ keep, symbols }) => {
  const least = ALL / BigInt(symbols);
  return [(ALL - keep) * least + keep * ALL, (ALL - keep) * least];
};

/** One symbol by randomised response; symbolOf(level, u, id) says which one is true, -1 for none. */
const response = (most, names, symbolOf) => ({
  check(level) {
    chances(level, "keep");
    if (names.length) keys(level, ...names);
    else need(level.symbols === level.size + 1, "symbols"); // a symbol beyond them would tell its bucket
    if (names[0] === "row") whole(level.bits, 0, 62, "bits");
    whole(level.symbols, 2, most, "symbols");
    return level.symbols;
  },
  numbers: () => 1,
  ratio: responseRatio,
  answer(level, id, u, draw) {
    const [coin, other] = draw(2),
      symbol = symbolOf(level, u, id);
    return [symbol >= 0 && coin < level.keep ? symbol : below(other, level.symbols)];
  },
});

/** Buckets to numbers; `rare-coins.js` adds its own. */
export const COUNTS = {
  direct: response(2 ** 32 - 1, [], ({ size }, u, id) => (id < 0n ? size : Number(id))),
  hashed: response(2 ** 32 - 1, ["low", "high", "shift"], (level, u, id) => (id < 0n ? -1 : hashed(level, u, id))),
  signed: response(2, ["row"], ({ row, bits }, u, id) => {
    return id < 0n ? -1 : Number(odd((word(row, u) >> 40n) & ((1n << BigInt(bits)) - 1n) & id));
  }),
};

/** One of the 2 D codewords +-R'e_j, likelier if it is one of the k nearest to u. */
const codebook = {
  check(level, { dimension }) {
    const { size, inside, bits, signs } = level;
    const log = Math.log2(whole(size, 128, 4096, "size"));
    need(Number.isInteger(log) && size > dimension && signs.length === (3 * size) / 64, "size");
    need(whole(bits, 0, 62, "bits") + 1.5 * log <= (size > 256 ? 62 : 30), "bits"); // what integers hold
    keys(level, "bucket", "nobody");
    level.signs = signs.map(key);
    chances(level, "near", "far");
    const k = BigInt(whole(inside, 1, size, "inside"));
    need(level.near * k + level.far * (2n * BigInt(size) - k) === ALL, "near");
    return 2 * size;
  },
  numbers: () => 1,
  ratio: ({ near, far }) => (near > far ? [near, far] : [far, near]),
  answer(level, unit, u, draw) {
    const { size } = level,
      turned = turn(level, unit, u),
      [place, opposite] = placed(level, draw(1)[0]);
    // the lowest bits of |w_j| give way to j, so that one sort orders both
    const big = turned instanceof BigInt64Array,
      last = big ? BigInt(size - 1) : size - 1;
    const keys = turned.map((w, j) => ((w < 0 ? -w : w) & ~last) | (last - (big ? BigInt(j) : j)));
    const axis = Number(last - (keys.sort()[size - 1 - place] & last));
    return [axis + (turned[axis] < 0 !== opposite ? size : 0)];
  },
};

/** D^1.5 2^bits R u, in integers: three times random signs and a Hadamard transform. */
function turn({ size, bits, signs }, unit, u) {
  const big = size > 256,
    w = big ? new BigInt64Array(size) : new Int32Array(size);
  unit.forEach((x, j) => (w[j] = big ? BigInt(rint(x * 2 ** bits)) : rint(x * 2 ** bits)));
  for (let i = 0, half = size / 64; i < signs.length; i++) {
    const flips = word(signs[i], u),
      low = Number(flips & 0xffffffffn),
      high = Number(flips >> 32n);
    const start = 64 * (i % half);
    for (let j = 0; j < 64; j++) if (((j < 32 ? low : high) >>> (j & 31)) & 1) w[start + j] = -w[start + j];
    if (i % half === half - 1) transform(w);
  }
  return w;
}

function transform(w) {
  for (let half = 1; half < w.length; half *= 2)
    for (let start = 0; start < w.length; start += 2 * half)
      for (let j = start; j < start + half; j++) {
        const a = w[j],
          b = w[j + half];
        w[j] = a + b;
        w[j + half] = a - b;
      }
}

/** A word to a place in the order of |w_j|, largest first, and whether the sign is the other one. */
function placed({ inside, near, far }, word) {
  const k = BigInt(inside),
    edge = near * k;
  if (word < edge) return [Number(word / near), false];
  const outer = (word - edge) / far,
    beyond = outer - k;
  return beyond < 0n ? [Number(outer), true] : [inside + Number(beyond >> 1n), (beyond & 1n) === 1n];
}

/** Unit vectors (d + 1) to numbers; `rare-coins.js` adds its own. */
export const VECTORS = { codebook };
