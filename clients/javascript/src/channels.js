/** How an answer is made private: each kind's coins, their exact chances, and its bytes. */
import { keys, members, need, whole } from "./check.js";
import { within } from "./exact.js";
import { lift } from "./rows.js";
import { below, odd, word } from "./words.js";
import { COUNTS, VECTORS } from "./coins.js";

export const MOST_EPSILON = 1024;
export const BYTES = { u1: 1, u2: 2, u4: 4, u8: 8 };

/** Writes unsigned numbers of one size, little-endian. */
export function writer(length) {
  const view = new DataView(new ArrayBuffer(length));
  const put = (at, value, bytes) => {
    if (bytes === 8) view.setBigUint64(at, value, true);
    else view[`setUint${8 * bytes}`](at, Number(value), true);
  };
  return { put, bytes: new Uint8Array(view.buffer) };
}

/** The levels that a user answers: with a level_key one of them, else all. */
export function answered({ level_key: key, levels }, u) {
  return key ? [below(word(key, u), levels.length)] : levels.map((_, i) => i);
}

/** Checks a channel whose answers stand side by side in a report, or all at its start where one of them is sent. */
export function laidOut(channel, question) {
  const { levels, level_key, width, dtype } = channel,
    { vectors } = question;
  members(channel, "share:text level_key:text|null");
  const shared = level_key === null ? ["budget", levels.length > 1 ? "budget" : "users"] : ["users"];
  need(shared.includes(channel.share), "share");
  if (level_key !== null) keys(channel, "level_key");
  need(["u1", "u2", "u4"].includes(dtype), "dtype");
  need(question.messages === 1, "messages");
  if (vectors) need(channel.l2 === vectors.l2 && channel.dimension === vectors.dimension, "vectors of another bound");
  let next = 0,
    most = 0;
  for (const level of levels) {
    need(level.at === next && whole(level.width, 1, 2 ** 26, "width"), "at");
    most = Math.max(most, next + level.width);
    if (!level_key) next += level.width;
  }
  need(most === width, "width");
}

/** Checks that levels are the bucketing's: as many, and as large. */
export function sized(levels, sizes) {
  levels.forEach((level, i) => {
    members(level, "size:number"); // what is hashed may have more than 2^53, of which JSON keeps the first bits
    need(level.size === Number(sizes[i]), "size");
  });
}

/** Counts and vectors by one answer per level. random: a level's coins by name. */
function randomised(random, answer) {
  return {
    check(channel, question, sizes) {
      const { levels, dtype, width, level_key } = channel,
        { alone } = question;
      need(random === COUNTS ? !question.vectors : question.vectors, "vectors");
      laidOut(channel, question);
      if (random === COUNTS) sized(levels, sizes);
      need(alone > 0 && alone <= MOST_EPSILON, "alone");
      for (const level of levels) {
        members(level, "randomiser:text");
        const coins = random[level.randomiser];
        need(coins, `a randomiser '${level.randomiser}', which this client does not know`);
        const most = coins.check(level, channel);
        need(coins.numbers(level, channel) === level.width, "width");
        need(coins.dtype ? coins.dtype === dtype : most <= 256 ** BYTES[dtype], "dtype");
        const parts = level_key === null ? levels.length : 1; // all of the levels are answered, or one
        const kept = within(coins.ratio(level, channel), alone, parts);
        need(kept, `question's coins give away more than its epsilon of ${alone}`);
      }
      return BYTES[dtype] * width;
    },
    encode(channel, ids, vector, u, draw, put, start) {
      const { dtype, levels } = channel,
        size = BYTES[dtype];
      for (const i of answered(channel, u)) {
        const sent = answer(random[levels[i].randomiser], channel, levels[i], ids[i], vector, u, draw);
        sent.forEach((x, j) => put(start + size * (levels[i].at + j), x, size));
      }
    },
  };
}

const counts = randomised(COUNTS, (coins, channel, level, id, _, u, draw) => coins.answer(level, id, u, draw));

const vectors = randomised(VECTORS, (coins, channel, level, id, vector, u, draw) => {
  const minus = id < 0n ? word(level.nobody, u) >> 63n : odd(word(level.bucket, u) & id);
  const inside = id < 0n ? vector.map(() => 0) : vector;
  return coins.answer(level, lift(inside, minus ? -1 : 1, channel.l2), u, draw);
});

/** By kind; `rare-channels.js` adds its own. */
export const CHANNELS = { counts, vectors };
