/** One row to one report: the bytes that Python sends for the same secret words. */
import { locate, vectorOf } from "./buckets.js";
import { CHANNELS, writer } from "./channels.js";
import { shrink, snap } from "./rows.js";
import { Refused, webCrypto, word } from "./words.js";

const NOTHING = 0xffff;

/** A row, given as a list or by the names of the columns, as finite numbers (d). */
function rowOf({ columns, dimension }, row) {
  const named = columns && row !== null && typeof row === "object" && !Array.isArray(row) && !ArrayBuffer.isView(row);
  const values = named
    ? columns.map((name) => (Object.hasOwn(row, name) ? row[name] : undefined))
    : Array.from(row ?? []);
  if (values.length !== dimension || !values.every((x) => typeof x === "number" && Number.isFinite(x)))
    throw new Refused("input", `a row has ${dimension} finite numbers${columns ? `: ${columns.join(", ")}` : ""}`);
  return values;
}

/** A user's number, below the plan's number of users. */
export function userOf(user, users) {
  const given = typeof user === "bigint" || Number.isSafeInteger(user) || /^\d{1,20}$/.test(user);
  const number = given ? BigInt(user) : -1n;
  if (number < 0n || number >= BigInt(users))
    throw new Refused("input", `a user's number is a whole number from 0 to ${users - 1}`);
  return number;
}

const holds = (share, u) => {
  const at = share && word(share.key, u) >> 11n;
  return !share || (at >= share.from && at < share.to);
};

/**
 * The report of a user's row. Every call spends budget anew: a `Client` remembers.
 * @param {Bundle} bundle
 * @param {number[] | object} row (d), or by the names of the columns
 * @param {number | bigint | string} user
 * @param {(n: number) => BigUint64Array} words secret; others are for tests
 * @returns {Uint8Array | null} null if this round asks this user nothing
 */
export function encode(bundle, row, user, words = webCrypto) {
  return prepared(bundle, row, user)(words);
}

/** The row and the user checked, and what draws the report: nothing is drawn yet. */
export function prepared({ content }, row, user) {
  const number = userOf(user, content.users),
    x = snap(content.domain, rowOf(content, row));
  return (words) => {
    const drawn = [];
    const draw = (n) => drawn[drawn.push(words(n)) - 1];
    try {
      return reportOf(content, x, number, draw);
    } finally {
      for (const secret of drawn) secret.fill(0n);
    }
  };
}

/** The questions that a round asks a user: under Local trust that is public, under Shuffled trust it may be any. */
export const asked = ({ trust, questions }, user) =>
  questions.filter(({ share }) => trust === "Shuffled" || holds(share, user));

function reportOf(content, x, user, draw) {
  const shuffled = content.trust === "Shuffled";
  const parts = content.drawings.map(({ questions, bytes }) => {
    const u = shuffled ? draw(1)[0] : user;
    return { asked: questions.find((q) => holds(content.questions[q].share, u)), u, bytes };
  });
  if (!asked(content, user).length) return null;
  const slots = new Map(),
    located = new Map();
  for (const part of parts.filter(({ asked }) => asked !== undefined).sort((a, b) => a.asked - b.asked)) {
    const question = content.questions[part.asked],
      at = question.bucketing;
    if (!located.has(at)) located.set(at, locate(content.bucketings[at], x));
    slots.set(part, bodyOf(question, located.get(at), x, part.u, draw, shuffled));
  }
  const report = writer(18 + content.answer_bytes);
  report.put(0, 0xc1, 1);
  report.bytes.set(content.stamp, 1);
  report.put(9, content.round, 1);
  report.put(10, user, 8);
  let start = 18;
  for (const part of parts) {
    if (shuffled) report.put(start, part.asked ?? NOTHING, 2);
    if (slots.has(part)) report.bytes.set(slots.get(part), start + (shuffled ? 2 : 0));
    start += part.bytes;
  }
  return report.bytes;
}

/** The bytes of one question's answer; under Shuffled trust a single message begins with its private number. */
function bodyOf({ vectors, channel, body_bytes, single }, ids, x, u, draw, shuffled) {
  const { put, bytes } = writer(body_bytes),
    named = shuffled && single;
  const [found, own] = vectors ? vectorOf(vectors, x, ids) : [null, ids];
  const vector = found && shrink(found, vectors.l2, vectors.l1);
  if (named) put(0, u, 8);
  CHANNELS[channel.kind].encode(channel, own, vector, u, draw, put, named ? 8 : 0);
  return bytes;
}
