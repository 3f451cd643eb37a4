/** Sets of buckets, and randomisers of a unit vector that send real numbers, in steps of 2^-11. */
import { chances, keys, members, need, number, whole } from "./check.js";
import { COUNTS, VECTORS } from "./coins.js";
import { fraction } from "./exact.js";
import { integral } from "./noise.js";
import { normals } from "./normals.js";
import { halves, rint } from "./rows.js";
import { ALL, below } from "./words.js";

const HALF = 1n << 63n;

const product = (v, u) => halves(v.map((x, i) => x * u[i]));
const sent = (x) => Math.min(Math.max(rint(x * 2048), -32767), 32767) + 32768;
const wordsFor = (size) => Math.ceil(size / 2);

/** A set of flags as bytes, the first in the lowest bit. */
function packed(flags) {
  const bytes = Array(Math.ceil(flags.length / 8)).fill(0);
  flags.forEach((flag, i) => (bytes[i >> 3] |= (flag ? 1 : 0) << (i & 7)));
  return bytes;
}

const unary = {
  check(level) {
    chances(level, "flip");
    need(level.flip <= HALF, "flip");
    whole(level.most, 1, level.size, "most");
    return 256;
  },
  numbers: ({ size }) => Math.ceil(size / 8),
  ratio: ({ flip }) => [ALL - flip, flip],
  answer({ size, flip, most }, id, u, draw) {
    const set = Array.from(draw(size), (word, i) => word < (BigInt(i) === id ? HALF : flip));
    return packed(set.filter(Boolean).length > most ? set.map(() => false) : set);
  },
};

const subset = {
  check(level) {
    chances(level, "keep");
    whole(level.chosen, 1, level.size, "chosen");
    return 256;
  },
  numbers: ({ size }) => Math.ceil((size + 1) / 8),
  ratio({ size, chosen, keep }) {
    const least = ALL / BigInt(size + 1),
      k = BigInt(chosen),
      most = (ALL + k - 1n) / k;
    return [(ALL - keep) * least + keep * most, (ALL - keep) * least];
  },
  answer({ size, chosen, keep }, id, u, draw) {
    const m = size + 1,
      words = draw(m + 3);
    const ranks = Array.from({ length: m }, (_, i) => i);
    ranks.sort((i, j) => (words[i] < words[j] ? -1 : words[i] > words[j] ? 1 : i - j));
    const set = ranks.slice(0, chosen).sort((i, j) => i - j);
    const own = (id < 0n ? size : Number(id)) - set[below(words[m], chosen)];
    const turn = words[m + 1] < keep ? own : below(words[m + 2], m);
    const flags = Array(m).fill(false);
    for (const i of set) flags[(i + turn + m) % m] = true;
    return packed(flags);
  },
};

const duchi = {
  check(level) {
    keys(level, "bucket", "nobody");
    chances(level, "coin");
    members(level, "sines:array");
  },
  dtype: "u2",
  numbers: (_, { dimension }) => dimension,
  ratio: ({ coin }) => (2n * coin > ALL ? [coin, ALL - coin] : [ALL - coin, coin]),
  answer({ coin, sines }, unit, u, draw) {
    const size = unit.length,
      words = draw(1 + wordsFor(size)),
      v = normals(words.subarray(1), size, sines.data);
    const above = product(v, unit) >= 0,
      length = Math.sqrt(product(v, v) / size);
    const factor = (above === words[0] < coin ? 1 : -1) / length;
    return Array.from(v.slice(0, -1), (x) => sent(x * factor));
  },
};

/** A vector of the sphere that is kept in the cap around u, and outside with the chance coin / 2^64. */
const privunit = {
  check(level, { dimension }) {
    keys(level, "bucket", "nobody");
    chances(level, "coin");
    need(number(level.gamma, 0, 2 ** 26, "gamma") ** 2 < dimension + 1, "gamma");
    whole(level.together, 1, 8, "together");
    members(level, "sines:array");
  },
  dtype: "u2",
  numbers: (_, { dimension }) => dimension,
  /** An upper bound, by the chance of the cap and how far that of the drawn vectors can be from it (`privunit.py`). */
  ratio({ gamma, coin }, { dimension }) {
    const size = dimension + 1,
      t = Number(coin) / 2 ** 64,
      off = (wordsFor(size) + 1) / 2 ** 29 + 2 ** -25;
    const start = Math.asin(Math.min(1, gamma / Math.sqrt(size)));
    const density = (a) => Math.max(Math.cos(a), 0) ** (size - 2);
    const reach = (from) => Math.min(Math.PI / 2, from + 12 / Math.sqrt(size));
    const cap = integral(density, start, reach(start)) / 2 / integral(density, 0, reach(0));
    if (!(cap > off)) return [1n, 0n]; // what is drawn may lie in no row's cap, or in one alone
    const kept = (chance) => chance + (1 - chance) * t;
    return fraction(kept(cap + off) / (t * kept(cap - off)) / (1 + 2 ** -26));
  },
  answer({ gamma, coin, together, sines }, unit, u, draw) {
    const size = unit.length,
      each = 1 + wordsFor(size);
    for (;;) {
      const words = draw(together * each);
      for (let i = 0; i < together; i++) {
        const own = words.subarray(i * each, (i + 1) * each),
          v = normals(own.subarray(1), size, sines.data);
        const length = Math.sqrt(product(v, v) / size);
        if (own[0] < coin || product(v, unit) >= gamma * length)
          return Array.from(v.slice(0, -1), (x) => sent(x / length));
      }
    }
  },
};

Object.assign(COUNTS, { unary, subset });
Object.assign(VECTORS, { duchi, privunit });
