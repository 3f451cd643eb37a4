/** Which bucket a lattice row is in, and which vector is added up there. Kinds: `docs/reference/format.md`. */
import { clip, squares } from "./rows.js";

const NONE = -1n;

/** <row i of A (m, d), x>: integers below 2^53. */
export function along({ data }, i, x) {
  let sum = 0;
  for (let j = 0, at = i * x.length; j < x.length; j++) sum += data[at + j] * x[j];
  return sum;
}

/** A'x (m), A (d, m). */
export const across = ({ data, shape: [, m] }, x) =>
  Array.from({ length: m }, (_, i) => x.reduce((sum, xj, j) => sum + data[j * m + i] * xj, 0));

export function distance({ data }, i, x) {
  let sum = 0;
  for (let j = 0, at = i * x.length; j < x.length; j++) sum += (x[j] - data[at + j]) ** 2;
  return sum;
}

/** The nearest of some of the centres, the lowest of equals: [index or -1, squared distance]. */
export function nearest(centers, x, among = () => true) {
  let best = -1,
    least = Infinity;
  for (let i = 0; i < centers.shape[0]; i++) {
    if (!among(i)) continue;
    const far = distance(centers, i, x);
    if (far < least) [best, least] = [i, far];
  }
  return [best, least];
}

function direction(around, x) {
  let best = 0,
    most = -1,
    minus = 0;
  for (let i = 0; i < around.shape[0]; i++) {
    const product = along(around, i, x),
      size = Math.abs(product);
    if (size > most) [best, most, minus] = [i, size, product < 0 ? 1 : 0];
  }
  return 2 * best + minus;
}

const beyond = (edges, far) => edges.filter((edge) => edge < far).length;

function quadtreeIds({ subspace, order, cuts, top }, x) {
  const { matrix, bits, sides } = subspace ?? {};
  const seen = subspace ? across(matrix, x).map((y, j) => clip(Math.floor(y / 2 ** bits), -sides[j], sides[j])) : x;
  const interval = cuts.map(({ data }, j) => data.filter((cut) => cut <= seen[j]).length);
  const left = cuts.map((_, j) => order.filter((column) => column === j).length);
  const ids = [0n];
  for (const j of order) ids.push(2n * ids[ids.length - 1] + BigInt((interval[j] >> --left[j]) & 1));
  return ids.slice(top);
}

function columnIds({ sides, depth }, x) {
  return sides.flatMap((side, j) => {
    const code = clip(Math.floor(((x[j] + side) * 65536) / (2 * side)), 0, 65535);
    return Array.from({ length: depth }, (_, level) => code >> (12 - 4 * level));
  });
}

/** The usual kinds, to which `rare.js` adds its own: (bucketing, lattice row) -> an id per level. */
export const KINDS = {
  one: () => [0],
  grid: ({ sides, parts }, x) => [
    x.reduce((id, xj, j) => id * parts[j] + Math.floor(((xj + sides[j]) * parts[j]) / (2 * sides[j] + 1)), 0),
  ],
  directions: ({ around }, x) => [direction(around, x)],
  signs: ({ around }, x) => {
    let id = 0;
    return Array.from({ length: around.shape[0] }, (_, i) => (id = 2 * id + (along(around, i, x) < 0 ? 1 : 0)));
  },
  centers: ({ centers, within }, x) => {
    const [at, far] = nearest(centers, x);
    return [within !== null && far > within * within ? -1 : at];
  },
  shells: ({ around, middle, edges }, x) => {
    const away = x.map((xj, j) => xj - middle[j]);
    return [(edges.length + 1) * direction(around, away) + beyond(edges, squares(away))];
  },
  distances: ({ centers, edges }, x) => [beyond(edges, nearest(centers, x)[1])],
  columns: columnIds,
  quadtree: quadtreeIds,
  last: ({ of }, x) => locate(of, x).slice(-1),
  spared: ({ of, near, bad }, x) => {
    const spared = bad.includes(Number(locate(near, x)[0]));
    return locate(of, x).map((id) => (spared ? -1 : id));
  },
};

export const knows = (kind) => Object.hasOwn(KINDS, kind);

/**
 * The buckets of a lattice row: BigInts (levels), -1 for none. A bundle that lies about its buckets must not make a
 * report, or the lack of one, that depends on the row otherwise: what is no bucket, and what fails, is none.
 */
export function locate(cells, x) {
  const { sizes } = cells;
  try {
    const ids = KINDS[cells.kind](cells, x).map(BigInt);
    return sizes.map((size, i) => (ids[i] >= 0n && ids[i] < BigInt(size) ? ids[i] : NONE));
  } catch {
    return sizes.map(() => NONE);
  }
}

function vectorIn(vectors, x, id) {
  const { kind, centers, radii, scale, weighted } = vectors;
  if (kind === "rows") return x;
  const d = x.length,
    own = (array) => (array.shape[0] === 1 ? 0 : Number(id));
  const off = x.map((xj, j) => xj - centers.data[own(centers) * d + j]);
  if (kind === "offsets") return off;
  const radius = radii.data[own(radii)];
  const factor = (scale * (1 - 2 ** -30)) / Math.max(Math.sqrt(squares(off)), radius);
  const values = off.map((xj) => xj * factor);
  if (weighted) values.push(factor * (radius * 0.5));
  return values.map(Math.trunc);
}

/** The vector of a lattice row in a bucket: integers (dimension); zero where there is none. */
export function vectorOf(vectors, x, id) {
  try {
    const found = id < 0n ? [] : vectorIn(vectors, x, id);
    if (found.length === vectors.dimension && found.every(Number.isSafeInteger)) return found;
  } catch {}
  return Array(vectors.dimension).fill(0);
}
