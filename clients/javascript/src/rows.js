/** Rows as lattice points, and vectors within a norm: IEEE doubles, +, -, *, / and square roots in a fixed order. */

const MAGIC = 2 ** 52 + 2 ** 51;

/** The nearest integer, half to even, of |x| < 2^51. */
export const rint = (x) => x + MAGIC - MAGIC;
export const clip = (x, low, high) => Math.min(Math.max(x, low), high);

/** The sum of squares of integers: the double next to it. */
export function squares(v) {
  const sum = v.reduce((s, x) => s + x * x, 0);
  return sum < 2 ** 53 ? sum : Number(v.reduce((s, x) => s + BigInt(x) ** 2n, 0n));
}

/** Kinds of domains that `rare-domains.js` adds: {check: (domain, d, of the inner one, depth), snap: (domain, row)}. */
export const DOMAINS = {};

/** A row (d) of finite numbers as a lattice point (d) of the domain. */
export function snap(domain, row) {
  const { kind, middle, unit } = domain;
  if (DOMAINS[kind]) return DOMAINS[kind].snap(domain, row);
  if (kind === "box") {
    const { lower, upper, sides } = domain;
    return row.map((x, j) => clip(rint((clip(x, lower[j], upper[j]) - middle[j]) * (1 / unit)), -sides[j], sides[j]));
  }
  const inside = row.map((x, j) => clip((x - middle[j]) / unit, -(2 ** 80), 2 ** 80));
  const most = inside.reduce((m, x) => Math.max(m, Math.abs(x)), 1);
  const factor = Math.min(1, domain.max_norm / most);
  return shrink(
    inside.map((x) => rint(x * factor)),
    domain.max_norm,
  );
}

/** An integer vector, scaled onto its L2 and L1 bounds if it is beyond them, and truncated towards zero. */
export function shrink(v, l2, l1 = Infinity) {
  const scaled = (factor) => v.map((x) => Math.trunc(x * (factor * (1 - 2 ** -30))));
  const whole = squares(v);
  if (whole > l2 * l2) v = scaled(l2 / Math.sqrt(whole));
  const sum = v.reduce((s, x) => s + Math.abs(x), 0);
  return sum > l1 ? scaled(l1 / sum) : v;
}

/** A vector (d) of norm at most l2 as a unit vector (d + 1), times a sign. */
export function lift(v, sign, l2) {
  const own = squares(v),
    whole = Math.max(own, l2 * l2);
  const scale = sign / Math.sqrt(whole);
  return [...v.map((x) => x * scale), scale * Math.sqrt(whole - own)];
}

/** The sum of numbers in halves, as `column_sums` adds them up. */
export function halves(values) {
  while (values.length > 1) {
    const half = values.length >> 1,
      next = new Float64Array(half);
    for (let i = 0; i < half; i++) next[i] = values[i] + values[half + i];
    if (values.length % 2) next[0] += values[values.length - 1];
    values = next;
  }
  return values[0];
}
