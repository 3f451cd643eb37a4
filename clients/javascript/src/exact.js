/** Numbers of arbitrary size: e^-x in integers, and ratios of chances. */
export const length = (x) => BigInt(x.toString(2).length);

/** A double as an exact fraction [numerator, denominator]. */
export function fraction(x) {
  let under = 1n;
  for (; !Number.isInteger(x); x *= 2) under *= 2n;
  return [BigInt(x), under];
}

/** [low, high] with low <= 2^precision e^-(n/d) <= high, high - low <= 2; with its proof in `exact_coins.py`. */
export function expBounds([n, d], precision) {
  if (n === 0n) return [1n << precision, 1n << precision];
  if (n >= precision * d) return [0n, 1n];
  const spare = length(n) - length(d) + 2n;
  const halvings = spare > 0n ? spare : 0n;
  const q = precision + 2n * halvings + 2n * length(precision) + 16n;
  const f = (n << q) / (d << halvings);
  let term = 1n << q,
    terms = 0n,
    total = 0n;
  while (term) {
    total += terms & 1n ? -term : term;
    term = ((term * f) >> q) / ++terms;
  }
  let low = total - 2n * terms - 4n,
    high = total + 2n * terms + 4n;
  for (let i = 0n; i < halvings; i++) {
    low = (low * low) >> q;
    high = -((-high * high) >> q);
  }
  return [low >> (q - precision), -(-high >> (q - precision))];
}

/** Whether a ratio [n, d] of chances is certain to be at most e^(epsilon / parts). */
export function within([n, d], epsilon, parts = 1) {
  const [e, under] = fraction(epsilon);
  return d << 256n >= expBounds([e, under * BigInt(parts)], 256n)[1] * n;
}
