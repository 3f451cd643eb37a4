/** Answers of several messages under Shuffled trust, and a Gaussian vector for every bucket. */
import { answered, BYTES, CHANNELS, laidOut, sized } from "./channels.js";
import { isDecimal, keys, need, number, whole } from "./check.js";
import { deltaOf, gaussians } from "./noise.js";
import { clip } from "./rows.js";
import { below, hashed } from "./words.js";

/** LDP-AVG: Gaussian noise for every bucket, and her vector in her own. */
const gaussianVectors = {
  check(channel, question, sizes) {
    const { levels, l2, l1, sigma, shift, dimension, width } = channel,
      { vectors, epsilon } = question;
    need(channel.dtype === "u4" && vectors && l1 === vectors.l1, "vectors");
    laidOut(channel, question);
    sized(levels, sizes);
    for (const level of levels) {
      need(level.width === level.size * dimension, "width");
      number(level.longest, Number.MIN_VALUE, Number.MAX_VALUE, "longest");
      need(isDecimal(level.most, 40) && level.most !== "0", "most");
      level.most = BigInt(level.most);
    }
    whole(shift, -64, 62, "shift");
    whole(channel.farthest, 1, 2 ** 31 - 1, "farthest");
    number(sigma, 2 ** 22, 2 ** 56, "sigma");
    const together = channel.level_key ? 1 : levels.length;
    const mu = (2 * Math.sqrt(together) * l2 * 2 ** shift) / sigma;
    need(deltaOf(Math.min(epsilon, 700), mu) <= question.delta * (1 + 1e-6), "its noise is too small for its epsilon");
    return 4 * width;
  },
  encode(channel, ids, vector, u, draw, put, start) {
    const { sigma, shift, farthest, levels } = channel;
    for (const i of answered(channel, u)) {
      const { at, width, longest, most } = levels[i];
      const sums = gaussians(sigma, width, draw).map(Number);
      if (ids[i] >= 0n)
        vector.forEach((x, j) => (sums[Number(ids[i]) * vector.length + j] += Math.trunc(x * 2 ** shift)));
      let sent = sums.map((x) => clip(x, -farthest, farthest));
      const whole = sent.reduce((sum, x) => sum + BigInt(x) ** 2n, 0n);
      const factor = (longest * (1 - 2 ** -40)) / Math.sqrt(Number(whole));
      if (whole > most) sent = sent.map((x) => Math.trunc(x * factor));
      sent.forEach((x, j) => put(start + 4 * (at + j), x, 4));
    }
  },
};

/** Hash values under private tags, among uniform ones. */
const blanket = {
  check(channel, question, sizes) {
    const { levels, blankets, values } = channel;
    need(!question.vectors, "vectors");
    sized(levels, sizes);
    for (const level of levels) keys(level, "low", "high", "shift");
    for (const level of levels) level.symbols = values;
    whole(values, 2, 65536, "values");
    whole(blankets, 1, 65536, "blankets");
    need(question.messages === levels.length * (1 + blankets), "messages");
    return 12;
  },
  encode({ levels, blankets, values }, ids, vector, u, draw, put) {
    const words = draw(2 * levels.length * (1 + blankets));
    for (let i = 0; 2 * i < words.length; i++) {
      const level = Math.floor(i / (1 + blankets)),
        tag = words[2 * i],
        id = ids[level];
      const own = i % (1 + blankets) === 0 && id >= 0n;
      put(12 * i, level, 2);
      put(12 * i + 2, tag, 8);
      put(12 * i + 10, own ? hashed(levels[level], tag, id) : below(words[2 * i + 1], values), 2);
    }
  },
};

/** Split-and-mix: every number with a share of the noise, cut into shares. */
const shares = {
  check(channel, question, sizes) {
    const { levels, slots, shares: each, bits, width, dtype } = channel;
    need(width === (question.vectors?.dimension ?? 1), "width");
    sized(levels, sizes);
    let next = 0;
    for (const level of levels) {
      need(level.at === next, "at");
      next += whole(level.places, 1, 65536, "places") * width;
      for (const [hash, symbols] of [
        [level.place, level.places],
        [level.sign, 2],
      ]) {
        if (level.places === level.size) need(hash === null, "places");
        else keys(hash, "low", "high", "shift");
        if (hash) hash.symbols = symbols;
      }
    }
    need(slots === next, "slots");
    need(dtype === (whole(bits, 2, 62, "bits") > 32 ? "u8" : "u4"), "dtype");
    whole(channel.shift, -64, 62, "shift");
    number(channel.sigma, Number.MIN_VALUE, 2 ** 56, "sigma");
    need(question.messages === slots * whole(each, 2, 65536, "shares"), "messages");
    return 4 + BYTES[dtype];
  },
  encode({ levels, slots, shares: each, bits, width, dtype, shift, sigma }, ids, vector, u, draw, put) {
    const sums = gaussians(sigma, slots, draw);
    levels.forEach(({ at, place, sign }, i) => {
      if (ids[i] < 0n) return;
      const where = place ? hashed(place, 0n, ids[i]) : Number(ids[i]);
      const minus = sign && hashed(sign, 0n, ids[i]);
      const values = vector ?? [1];
      values.forEach((x, j) => (sums[at + where * width + j] += BigInt(minus ? -x : x) << BigInt(shift)));
    });
    const words = draw(slots * (each - 1)),
      step = 4 + BYTES[dtype];
    sums.forEach((sum, slot) => {
      for (let i = 0; i < each; i++) {
        const share = i < each - 1 ? words[slot * (each - 1) + i] : sum;
        sum -= share;
        put((slot * each + i) * step, slot, 4);
        put((slot * each + i) * step + 4, BigInt.asUintN(bits, share), BYTES[dtype]);
      }
    });
  },
};

Object.assign(CHANNELS, { "gaussian-vectors": gaussianVectors, blanket, shares });
