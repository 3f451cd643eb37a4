/** Which bucket a lattice row is in, and which vector is added up there. Kinds: `docs/reference/format.md`. */
import { members, need, sizeOf, whole } from "./check.js";
import { squares } from "./rows.js";

const NONE = -1n;

/** <row i of A (m, d), x>: integers below 2^53. */
export function along({ data }, i, x) {
  let sum = 0;
  for (let j = 0, at = i * x.length; j < x.length; j++) sum += data[at + j] * x[j];
  return sum;
}

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

export function direction(around, x) {
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

/** The usual kinds, to which `rare-buckets.js` adds its own: (bucketing, lattice row) -> an id per level. */
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
};

/** Their members beside `sizes`; `of` and `near` are other bucketings. */
export const FORMS = {
  one: "",
  grid: "sides:ints parts:ints",
  directions: "around:array",
  signs: "around:array",
  centers: "centers:array within:int|null",
};
/** What else a kind must be. */
export const RULES = {};
const DEEPEST = 16; // kinds within kinds

export function checkBuckets(cells, depth = 1) {
  members(cells, "kind:text");
  const { kind, sizes } = cells,
    form = Object.hasOwn(FORMS, kind) ? FORMS[kind] : null;
  need(form !== null, `buckets of the kind '${kind}', which this client does not know`);
  members(cells, `sizes:list ${form}`.trim());
  need(sizes.length, "sizes");
  sizes.forEach(sizeOf);
  checkDepth(depth);
  RULES[kind]?.(cells);
  const inner = ["of", "near"].filter((name) => form.includes(`${name}:`)).map((name) => cells[name]);
  if (kind === "assigned") inner.push(...cells.own.map(({ created }) => created));
  for (const one of inner) checkBuckets(one, depth + 1);
}

export const checkDepth = (depth) => whole(depth, 1, DEEPEST, "kinds within kinds");

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

const VECTOR_FORMS = {
  rows: "",
  offsets: " centers:array",
  clipped: " centers:array radii:array scale:number weighted:bool",
};

export function checkVectors(vectors, d) {
  const { kind, radii, scale, l2, l1, weighted } = vectors;
  members(vectors, "kind:text");
  need(Object.hasOwn(VECTOR_FORMS, kind), `vectors of the kind '${kind}', which this client does not know`);
  members(vectors, `dimension:int${VECTOR_FORMS[kind]}`);
  need(vectors.dimension === d + (kind === "clipped" && weighted ? 1 : 0), "vectors of another dimension");
  whole(l2, 1, 2 ** 26.5, "l2");
  whole(l1, 1, Number.MAX_SAFE_INTEGER, "l1");
  const narrow = (name) => !vectors[name] || vectors[name].data instanceof Int32Array; // of i8, squares may wrap
  need(kind === "rows" || ["centers", "radii"].every(narrow), "centers");
  if (kind === "clipped") need(radii.data.every((radius) => radius > 0) && scale > 0 && scale <= 2 ** 53, "radii");
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

/** The vector of a lattice row, integers (dimension), zero in no bucket; and her buckets, none where it fails. */
export function vectorOf(vectors, x, ids) {
  const zero = Array(vectors.dimension).fill(0);
  if (ids[0] < 0n) return [zero, ids];
  try {
    const found = vectorIn(vectors, x, ids[0]);
    if (found.length === zero.length && found.every(Number.isSafeInteger)) return [found, ids];
  } catch {}
  return [zero, ids.map(() => NONE)];
}
