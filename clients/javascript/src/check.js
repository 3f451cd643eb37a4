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

/** A whole number as text, as it is written: no blank, no sign, no zero in front. */
export const isDecimal = (x, digits = 19) => typeof x === "string" && /^(0|[1-9]\d*)$/.test(x) && x.length <= digits;

const IS = {
  array: (x) => x?.data,
  bool: (x) => typeof x === "boolean",
  decimal: isDecimal,
  int: Number.isSafeInteger,
  ints: (x) => Array.isArray(x) && x.every((one) => Number.isSafeInteger(one) || isDecimal(one)),
  list: Array.isArray,
  null: (x) => x === null,
  number: Number.isFinite,
  object: (x) => x && typeof x === "object" && !Array.isArray(x) && !x.data,
  text: (x) => typeof x === "string",
};

/** Checks that a holder has members of the types that a text says: "name:type other:type|null". */
export function members(holder, text) {
  for (const [name, types] of text.split(" ").map((one) => one.split(":")))
    need(
      types.split("|").some((type) => IS[type](holder[name])),
      name,
    );
}

/** A number of buckets: a whole number, as text from 2^53 on. */
export function sizeOf(x) {
  need(IS.int(x) || isDecimal(x), "size");
  const size = BigInt(x);
  need(size > 0n && size < 1n << 62n, "a number of buckets");
  return size;
}

export const numbers = (list, count, what) => {
  need(Array.isArray(list) && list.length === count && list.every(Number.isFinite), what);
  return list;
};

/** Turns decimal texts into chances: words of 2^64, at least one and not all. */
export function chances(holder, ...names) {
  for (const name of names) {
    need(isDecimal(holder[name], 20), name);
    holder[name] = BigInt(holder[name]);
    need(holder[name] > 0n && holder[name] < ALL, name);
  }
}

export function key(hex) {
  need(IS.text(hex) && /^[0-9a-f]{32}$/.test(hex), "a key");
  return keyOf(hex);
}

/** Turns hex texts into keys. */
export function keys(holder, ...names) {
  for (const name of names) holder[name] = key(holder[name]);
}
