/** What a bundle's fields must be. Everything here raises `Refused`, or hands back what it was given. */
import { ALL, keyOf, Refused } from "./words.js";

export function need(ok, what) {
  if (!ok) throw new Refused("bundle", `this bundle is wrong or was changed (${what}): get it again. Nothing was sent`);
}

export function whole(x, low, high, what) {
  need(Number.isSafeInteger(x) && x >= low && x <= high, what);
  return x;
}

export function number(x, low, high, what) {
  need(typeof x === "number" && x >= low && x <= high, what);
  return x;
}

export const numbers = (list, count, what) => {
  need(Array.isArray(list) && list.length === count && list.every(Number.isFinite), what);
  return list;
};

/** Turns decimal texts into chances: words of 2^64, at least one and not all. */
export function chances(holder, ...names) {
  for (const name of names) {
    need(/^\d{1,20}$/.test(holder[name]), name);
    holder[name] = BigInt(holder[name]);
    need(holder[name] > 0n && holder[name] < ALL, name);
  }
}

/** Turns hex texts into keys. */
export function keys(holder, ...names) {
  const one = (hex) => {
    need(/^[0-9a-f]{32}$/.test(hex), "a key");
    return keyOf(hex);
  };
  for (const name of names) holder[name] = Array.isArray(holder[name]) ? holder[name].map(one) : one(holder[name]);
}
