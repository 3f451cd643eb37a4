/** Randomisers of a unit vector that send real numbers, in steps of 2^-11. */
import { chances, keys, need, number, whole } from "./check.js";
import { VECTORS } from "./coins.js";
import { fraction } from "./exact.js";
import { integral } from "./noise.js";
import { normals } from "./normals.js";
import { halves, rint } from "./rows.js";
import { ALL } from "./words.js";

const product = (v, u) => halves(v.map((x, i) => x * u[i]));
const sent = (x) => Math.min(Math.max(rint(x * 2048), -32767), 32767) + 32768;
const sineOf = (i) => Math.sin((Math.PI * i) / 2048);
const wordsFor = (size) => Math.ceil(size / 2);

const duchi = {
  check(level) {
    keys(level, "bucket", "nobody");
    chances(level, "coin");
    need(2n * level.coin > ALL && level.sines.shape[0] === 1025, "coin");
    return 65536;
  },
  numbers: (_, { dimension }) => dimension,
  ratio: ({ coin }) => [coin, ALL - coin],
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
  check(level) {
    keys(level, "bucket", "nobody");
    chances(level, "coin");
    number(level.gamma, 0, 16, "gamma");
    whole(level.together, 1, 8, "together");
    // another table would make the cap's chance depend on the row
    const right = ({ data, shape }) => shape[0] === 1025 && data.every((s, i) => Math.abs(s - sineOf(i)) < 2 ** -45);
    need(right(level.sines), "sines");
    return 65536;
  },
  numbers: (_, { dimension }) => dimension,
  /** An upper bound, by the chance of the cap and how far that of the drawn vectors can be from it (`privunit.py`). */
  ratio({ gamma, coin }, { dimension }) {
    const size = dimension + 1,
      t = Number(coin) / 2 ** 64,
      off = (wordsFor(size) + 1) / 2 ** 29 + 2 ** -26;
    const start = Math.asin(Math.min(1, gamma / Math.sqrt(size)));
    const density = (a) => Math.max(Math.cos(a), 0) ** (size - 2);
    const reach = (from) => Math.min(Math.PI / 2, from + 12 / Math.sqrt(size));
    const cap = integral(density, start, reach(start)) / 2 / integral(density, 0, reach(0));
    if (!(cap > off)) return [1n, 0n]; // what is drawn may lie in no row's cap, or in one alone
    const kept = (chance) => chance + (1 - chance) * t;
    return fraction(kept(cap + off) / (t * kept(cap - off)));
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

Object.assign(VECTORS, { duchi, privunit });
