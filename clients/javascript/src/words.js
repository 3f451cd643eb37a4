/** Words of 64 bits, as BigInts: public ones of a key and a number, secret ones of the system. */

/** A refusal in words; `kind`: "input", "bundle", "budget", "round", "state" or "server". */
export class Refused extends Error {
  constructor(kind, text) {
    super(text);
    this.name = "Refused";
    this.kind = kind;
  }
}

// Node 18 has no global crypto
export const system = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

const MOST = 8192; // words that getRandomValues gives at once (65,536 bytes)
export const ALL = 1n << 64n;
// of requests: they say nothing of who asks, and go to no other address than the one that was given
export const QUIET = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
// what could pass for lines of this client, or hide them
export const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;
export const ROUNDING = 1e-9; // of sums of epsilons
export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g), (byte) => parseInt(byte, 16));
const cut = (x) => BigInt.asUintN(64, x);

/** Secret uniform words: n -> BigUint64Array (n). Nothing is kept for later. */
export function webCrypto(n) {
  const words = new BigUint64Array(n);
  for (let i = 0; i < n; i += MOST) system.getRandomValues(words.subarray(i, i + MOST));
  return words;
}

/** A key's two words, from 32 hex digits. */
export function keyOf(hex) {
  const bytes = hex.match(/../g).reverse().join("");
  return { a: BigInt("0x" + bytes.slice(16)), b: BigInt("0x" + bytes.slice(0, 16)) };
}

/** The public word of a number u under a key (SplitMix64). */
export function word({ a, b }, u) {
  let z = cut(u * 0x9e3779b97f4a7c15n + a);
  z = cut((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = cut((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n) ^ b;
}

/** floor(w m / 2^64): a number below m. */
export const below = (w, m) => Number((w * BigInt(m)) >> 64n);

/** A user's hash (of `symbols` values) of a bucket. */
export function hashed({ low, high, shift, symbols }, u, id) {
  const top = cut(word(low, u) * (id & 0xffffffffn) + word(high, u) * (id >> 32n) + word(shift, u)) >> 32n;
  return Number((top * BigInt(symbols)) >> 32n);
}

/** Whether an odd number of bits of x is set. */
export function odd(x) {
  for (let s = 32n; s; s >>= 1n) x ^= x >> s;
  return (x & 1n) === 1n;
}
