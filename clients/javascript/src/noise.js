/** Discrete Gaussian noise, exactly, and integrals of the Gaussian. */
import { expBounds, fraction, length } from "./exact.js";
import { Refused } from "./words.js";

const GUARD = 24n;

/** A uniform real number, as many bits of it as are asked for. more: () -> its next word. */
class Uniform {
  constructor(word, more) {
    Object.assign(this, { number: word, bits: 64n, more });
  }

  belowExp(x) {
    for (;;) {
      const [low, high] = expBounds(x, this.bits + GUARD);
      if ((this.number + 1n) << GUARD <= low) return true;
      if (this.number << GUARD >= high) return false;
      this.number = (this.number << 64n) | this.more();
      this.bits += 64n;
    }
  }

  /** floor(-ln u / (n/d)): floats only say where to begin to look. */
  geometric([n, d]) {
    const times = (k) => [k * n, d];
    const guess = (44.3614195558365 - Math.log(Number(this.number) + 0.5)) / (Number(n) / Number(d));
    let k = BigInt(Math.max(0, Math.floor(guess)));
    while (this.belowExp(times(k + 1n))) k++;
    while (k && !this.belowExp(times(k))) k--;
    return k;
  }
}

/** The law of x ~ e^(-x^2 / 2 s^2), with what its candidates need. */
class Gaussian {
  constructor(sigma) {
    [this.s, this.under] = fraction(sigma);
    this.t = BigInt(Math.floor(sigma) + 1);
    const spare = length(this.t) - 9n;
    this.shift = spare > 0n ? spare : 0n;
  }

  /** One candidate of three words; null if it is rejected. */
  candidate(a, b, c, more) {
    const { s, under, t, shift } = this;
    const low = b & ((1n << shift) - 1n);
    const y = (new Uniform(a, more).geometric([1n << shift, t]) << shift) + low;
    if (b >> 63n && !y) return null;
    const off = y * t * under * under - s * s;
    const whole = 2n * s * s * under * under * t;
    if (!new Uniform(c, more).belowExp([low * whole + off * off, whole * t])) return null;
    if (y >> 63n) throw new Refused("input", "this noise does not fit in 64 bits");
    return b >> 63n ? -y : y;
  }
}

/** Discrete Gaussian integers (size): candidates of three words, one after the other (`exact_noise.py`). */
export function gaussians(sigma, size, draw) {
  const law = new Gaussian(sigma),
    found = [];
  while (found.length < size) {
    const value = law.candidate(...draw(3), () => draw(1)[0]);
    if (value !== null) found.push(value);
  }
  return found;
}

/** Integral of f over [a, b] by Simpson's rule. */
export function integral(f, a, b) {
  const n = 4096,
    h = (b - a) / n;
  let sum = f(a) + f(b);
  for (let i = 1; i < n; i++) sum += (i % 2 ? 4 : 2) * f(a + i * h);
  return (sum * h) / 3;
}

/** The delta of Gaussian noise of sensitivity / sigma = mu at an epsilon. */
export function deltaOf(epsilon, mu) {
  const start = (epsilon - (mu * mu) / 2) / mu,
    from = Math.max(start, -12);
  const density = (z) => Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  return integral((z) => density(z) * -Math.expm1(mu * (start - z)), from, Math.max(from, 0) + 12);
}
