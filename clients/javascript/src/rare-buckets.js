/** Buckets of some methods: those in trees and shells, and those of hash values. */
import { along, direction, distance, FORMS, KINDS, locate, nearest, RULES } from "./buckets.js";
import { members, need, whole } from "./check.js";
import { clip, squares } from "./rows.js";
import { word } from "./words.js";

/** A'x (m), A (d, m). */
const across = ({ data, shape: [, m] }, x) =>
  Array.from({ length: m }, (_, i) => x.reduce((sum, xj, j) => sum + data[j * m + i] * xj, 0));

const U64 = (x) => BigInt.asUintN(64, BigInt(x));

/** floor(a / b) of BigInts, b > 0. */
function floor(a, b) {
  const rest = a % b;
  return (a - (rest < 0n ? rest + b : rest)) / b;
}

/** The value of a p-stable hash. */
function valueOf({ slopes, shifts, width, bits, keys }, x) {
  let mixed = 0n;
  keys.forEach((key, i) => {
    const step = floor(BigInt(along(slopes, i, x)) + BigInt(shifts.data[i]), BigInt(width));
    mixed = word(key, mixed ^ U64(step));
  });
  return mixed >> BigInt(64 - bits);
}

const intervalsOf = ({ basis, start, length, number }, x) =>
  x.map((_, i) => {
    const step = floor(BigInt(along(basis, i, x)) - BigInt(start.data[i]), BigInt(length));
    return clip(Number(step), 0, number - 1);
  });

const position = ({ data }, value) => data.findIndex((one) => BigInt(one) === value);

/** The created centre of a row, or -1, and its squared distance. */
function created({ hash, values, centers, within }, x) {
  const at = position(values, valueOf(hash, x));
  const far = at < 0 ? 0 : distance(centers, at, x);
  return [far > within * within ? -1 : at, far];
}

function assigned({ own, centers, ranks, kept }, x) {
  const above = (rank) => nearest(centers, x, (i) => ranks.data[i] > rank);
  let at = -1;
  for (const rank of [...new Set(own.map((one) => one.rank))].sort((a, b) => b - a)) {
    let least = Infinity;
    for (const one of own) {
      const [found, far] = one.rank === rank && (at < 0) | (least < Infinity) ? created(one.created, x) : [-1, 0];
      if (found >= 0 && far < least) [at, least] = [found + one.start, far];
    }
    if (at < 0) continue;
    const [other, far] = above(rank);
    if (far < least) at = other;
    break;
  }
  if (at < 0) [at] = above(-1);
  if (!kept?.data.length || kept.data.includes(at)) return at;
  return nearest(centers, x, (i) => kept.data.includes(i))[0];
}

/** (m + 1) times the squared length of a point (m + 1), projected to the sum 0. */
function energy(points) {
  const big = points.map(BigInt),
    sum = big.reduce((s, x) => s + x, 0n);
  return BigInt(points.length) * big.reduce((s, x) => s + x * x, 0n) - sum * sum;
}

/** Integers (m + 1), those outside the ball put back on it. */
function inBall(points, radius) {
  const size = points.length,
    whole = energy(points),
    sum = points.reduce((s, x) => s + x, 0);
  if (whole <= BigInt(size) * BigInt(radius) ** 2n) return points;
  const factor = radius / Math.sqrt(Number(whole) * size);
  return points.map((x) => Math.floor((size * x - sum) * factor));
}

/** The name (m) of the point of a shifted lattice A*_m that is nearest to integers (m + 1). */
function nameOf({ step, shift }, points) {
  const size = points.length,
    columns = points.map((x, j) => x - shift[j]);
  const whole = columns.map((x) => Math.floor(x / step)),
    rest = columns.map((x, j) => x - whole[j] * step);
  const order = rest.map((_, j) => j).sort((i, j) => rest[j] - rest[i] || i - j);
  const total = rest.reduce((s, x) => s + x, 0);
  let best = 0,
    least = 0;
  for (let k = 1, sum = 0; k < size; k++) {
    sum += rest[order[k - 1]];
    const far = step * k * (size - k) - 2 * size * sum + 2 * k * total;
    if (far < least) [best, least] = [k, far];
  }
  for (const j of order.slice(0, best)) whole[j]++;
  return whole.slice(0, -1).map((x) => x - whole[size - 1]);
}

function nodeId({ base, keys }, name) {
  if (keys) return name.reduce((w, x, j) => word(keys[j], w ^ U64(x)), 0n) >> 2n;
  return name.reduceRight((id, x) => id * BigInt(base) + BigInt(x + Math.floor(base / 2)), 0n);
}

function netIds({ matrix, bits, radius, nets }, x) {
  let points = across(matrix, x).map((y) => Math.floor(y / 2 ** bits));
  const out = points.some((y) => Math.abs(y) > radius) || energy(points) > BigInt(points.length) * BigInt(radius) ** 2n;
  if (out) points = points.map(() => 0);
  const ids = [];
  for (const net of [...nets].reverse()) {
    const name = nameOf(net, inBall(points, radius));
    ids.unshift(nodeId(net, name));
    points = net.shift.map((s, j) => s + (j < name.length ? name[j] * net.step : 0));
  }
  return ids;
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

function hashRule({ hash, intervals }) {
  members(hash, "slopes:array shifts:array width:decimal keys:list");
  whole(hash.bits, 0, 62, "bits of a hash");
  need(hash.width !== "0", "hash");
  if (intervals) members(intervals, "basis:array start:array length:decimal number:int");
}

function columnIds({ sides, depth }, x) {
  return sides.flatMap((side, j) => {
    if (!side) return [];
    const code = clip(Math.floor(((x[j] + side) * 65536) / (2 * side)), 0, 65535);
    return Array.from({ length: depth }, (_, level) => code >> (12 - 4 * level));
  });
}

/** Which of the listed values a row has, or behind them another one; or which part of a number's range it is in. */
function codeOf({ sides, bins }, x, [place, values]) {
  const side = sides[place];
  if (!values) return clip(Math.floor(((x[place] + side) * bins) / (2 * side)), 0, bins - 1);
  const at = x.slice(place, place + values).findIndex((xj) => xj > 0);
  return at < 0 ? values : at;
}

function facetRule({ sizes, near, first, facets, of_group, sides, bins }) {
  need(facets.length === sizes.length && of_group.length === sizes.length, "levels");
  need(near.kind === "centers" && near.within === null, "groups");
  whole(first, 1, sides.length, "first");
  whole(bins, 1, 2 ** 16, "bins");
  sides.forEach((side) => whole(side, 1, 2 ** 20, "sides"));
  of_group.forEach((room) => whole(room, 1, 2 ** 32, "of_group"));
  for (const [place, values] of facets)
    whole(place, 0, sides.length - Math.max(1, whole(values, 0, 2 ** 20, "facets")), "facets");
}

Object.assign(RULES, {
  facets: facetRule,
  quadtree({ order, cuts }) {
    const bits = cuts.map(({ shape: [n] }) => Math.log2(n + 1));
    need(
      order.every((j) => order.filter((other) => other === j).length <= bits[j]),
      "order",
    );
  },
  nets: ({ nets }) =>
    nets.forEach(({ step, keys }) => need(step >= 1 && (keys === null || Array.isArray(keys)), "net")),
  hashes: hashRule,
  intervals: hashRule,
  regions: hashRule,
  created: hashRule,
});

Object.assign(FORMS, {
  columns: "sides:ints depth:int",
  shells: "around:array middle:ints edges:ints",
  distances: "centers:array edges:ints",
  grouped: "centers:array edges:ints",
  quadtree: "subspace:object|null order:ints cuts:list top:int",
  last: "of:object",
  spared: "of:object near:object bad:ints",
  facets: "near:object first:int facets:list of_group:ints sides:ints bins:int",
  nets: "matrix:array bits:int radius:int nets:list",
  hashes: "hash:object bits:ints",
  intervals: "hash:object intervals:object",
  regions: "hash:object intervals:object values:array chosen:array",
  created: "hash:object values:array centers:array within:int",
  assigned: "own:list centers:array ranks:array kept:array|null",
});

Object.assign(KINDS, {
  columns: columnIds,
  shells: ({ around, middle, edges }, x) => {
    const away = x.map((xj, j) => xj - middle[j]);
    return [(edges.length + 1) * direction(around, away) + beyond(edges, squares(away))];
  },
  distances: ({ centers, edges }, x) => [beyond(edges, nearest(centers, x)[1])],
  grouped: ({ centers, edges }, x) => {
    const [j, square] = nearest(centers, x);
    return [(edges.length + 1) * j + beyond(edges, square)];
  },
  quadtree: quadtreeIds,
  last: ({ of }, x) => locate(of, x).slice(-1),
  spared: ({ of, near, bad }, x) => {
    const spared = bad.includes(Number(locate(near, x)[0]));
    return locate(of, x).map((id) => (spared ? -1 : id));
  },
  facets: (cells, x) => {
    const group = Number(locate(cells.near, x.slice(0, cells.first))[0]);
    return cells.facets.map((facet, level) => group * cells.of_group[level] + codeOf(cells, x, facet));
  },
  nets: netIds,
  hashes: ({ hash, bits }, x) => {
    const value = valueOf(hash, x);
    return bits.map((b) => value >> BigInt(bits[bits.length - 1] - b));
  },
  intervals: ({ hash, intervals }, x) => {
    const first = valueOf(hash, x) * BigInt(intervals.number);
    return intervalsOf(intervals, x).map((step) => first + BigInt(step));
  },
  regions: ({ hash, intervals, values, chosen }, x) => {
    const at = position(values, valueOf(hash, x)),
      d = x.length;
    const near = (step, j) => Math.abs(step - chosen.data[at * d + j]) <= 1;
    return [at >= 0 && intervalsOf(intervals, x).every(near) ? at : -1];
  },
  created: (cells, x) => [created(cells, x)[0]],
  assigned: (cells, x) => [assigned(cells, x)],
});
