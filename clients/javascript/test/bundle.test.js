import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { within } from "../src/exact.js";
import { client, files, loaded, names, refusal, vectors } from "./fixtures.js";

const { Bundle } = client;
const skip = names().length ? false : "no vectors";
const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const LEVELS = ({ questions }) => questions.flatMap(({ channel }) => channel.levels);

test("a bundle's name is the hash of its bytes, and another one is refused", { skip }, async () => {
  const given = files(vectors("method-one-round").bundles[0]),
    name = sha256(given.json);
  assert.equal((await Bundle.load(given, { sha256: name })).sha256, name);
  assert.match(await refusal(() => Bundle.load(given, { sha256: name.replace(/./, "x") }), "bundle"), /announced/);
  assert.match(await refusal(() => Bundle.load(given, { plan: "00".repeat(32) }), "bundle"), /another plan/);
});

test("a bundle is read from a URL, a function or bytes", { skip }, async () => {
  const given = files(vectors("method-one-round").bundles[0]),
    asked = [];
  const fetch = async (url, { credentials, referrerPolicy }) => {
    assert.deepEqual([credentials, referrerPolicy], ["omit", "no-referrer"]);
    asked.push(url);
    return new Response(url.endsWith(".json") ? given.json : given.bin);
  };
  const one = await Bundle.load("https://example.org/a/bundle-1.json", { fetch });
  assert.deepEqual(asked, ["https://example.org/a/bundle-1.json", "https://example.org/a/bundle-1.bin"]);
  const other = await Bundle.load(async (ending) => given[ending.slice(1)]);
  assert.equal(one.sha256, other.sha256);
  const gone = async () => new Response("", { status: 404 });
  assert.match(await refusal(() => Bundle.load("https://example.org/b.json", { fetch: gone }), "server"), /404/);
});

test("a newer format is refused in words", { skip }, async () => {
  const said = await refusal(() => loaded("method-one-round", 1, (content) => (content.bundle = 2)), "bundle");
  assert.match(said, /its format is 2, and this client reads 1: update it/);
});

test("bytes that are cut short, changed or no JSON are refused", { skip }, async () => {
  const { json, bin } = files(vectors("method-su-lloyd").bundles[0]);
  for (const wrong of [json.slice(0, -9), new Uint8Array([0xff]), new TextEncoder().encode("null")])
    await refusal(() => Bundle.load({ json: wrong, bin }), "bundle");
  for (const wrong of [bin.slice(1), bin.map((byte, i) => byte ^ (i === 3 ? 1 : 0)), new Uint8Array()])
    assert.match(await refusal(() => Bundle.load({ json, bin: wrong }), "bundle"), /arrays/);
});

test(
  "every chance that is raised makes a bundle that is refused: the coins say more than the promise",
  { skip },
  async () => {
    for (const name of ["local-counts", "local-vectors"]) {
      for (let round = 1; round <= vectors(name).bundles.length; round++) {
        const own = LEVELS(JSON.parse(vectors(name).bundles[round - 1].bundle));
        for (let i = 0; i < own.length; i++) {
          // one part in a thousand: the coins themselves are exact to 2^-60, but privunit's bound to 1e-6
          const more = (text) => String((BigInt(text) * 1001n) / 1000n),
            less = (text) => String((BigInt(text) * 999n) / 1000n);
          const change = (content) => {
            const level = LEVELS(content)[i];
            if (level.keep) level.keep = more(level.keep);
            if (level.flip) level.flip = less(level.flip);
            if (level.coin) level.coin = level.randomiser === "duchi" ? more(level.coin) : less(level.coin);
            if (level.near) {
              const k = BigInt(level.inside),
                out = 2n * BigInt(level.size) - k,
                far = BigInt(level.far) - k * 2n ** 44n;
              level.far = String(far);
              level.near = String((2n ** 64n - far * out) / k);
            }
          };
          assert.match(await refusal(() => loaded(name, round, change), "bundle"), /give away more/, own[i].randomiser);
        }
      }
    }
  },
);

test("64 words of 2^64 more are too much", { skip }, async () => {
  for (const [name, change] of [
    ["keep", (text) => String(BigInt(text) + 64n)],
    ["flip", (text) => String(BigInt(text) - 64n)],
  ]) {
    let tried = 0;
    for (let round = 1; round <= vectors("local-counts").bundles.length; round++) {
      const content = JSON.parse(vectors("local-counts").bundles[round - 1].bundle);
      const i = LEVELS(content).findIndex((level) => level[name]);
      if (i < 0) continue;
      tried++;
      await refusal(
        () => loaded("local-counts", round, (c) => (LEVELS(c)[i][name] = change(LEVELS(c)[i][name]))),
        "bundle",
      );
    }
    assert.ok(tried);
  }
});

test("a smaller promise for the same coins is refused", { skip }, async () => {
  const lower = (content) => content.questions.forEach((q) => (q.alone = q.epsilon *= 0.999));
  assert.match(await refusal(() => loaded("method-tree-coreset-lsh", 1, lower), "bundle"), /give away more/);
  const plan = (content) => (content.epsilon *= 0.99);
  assert.match(await refusal(() => loaded("method-tree-coreset-lsh", 1, plan), "bundle"), /cost more than the plan/);
  const noise = (content) => (content.questions[1].channel.sigma *= 0.99);
  const gaussian = vectors("local-others").bundles.findIndex(({ bundle }) => bundle.includes("gaussian-vectors"));
  assert.match(await refusal(() => loaded("local-others", gaussian + 1, noise), "bundle"), /noise is too small/);
});

test("a codeword's chances add up to one, exactly", { skip }, async () => {
  const change = (content) => {
    const level = LEVELS(content).find(({ near }) => near);
    level.near = String(BigInt(level.near) - 1n); // less likely to be near: less than promised is given away
  };
  assert.match(await refusal(() => loaded("local-vectors", 1, change), "bundle"), /\(near\)/);
});

test("a user answers one question of a drawing: shares that overlap are refused", { skip }, async () => {
  const key = "00".repeat(16);
  const shared =
    (end, other = key) =>
    ({ questions, ...content }) => {
      questions[0].share = { key, from: 0, to: end };
      questions[1].share = { key: other, from: 1000, to: 2 ** 53 };
      const bytes = Math.max(...questions.map((q) => q.body_bytes));
      content.drawings.splice(0, 2, { questions: [0, 1], bytes });
    };
  const change = (end, other) => (content) => {
    shared(end, other)(content);
    content.answer_bytes = content.drawings[0].bytes;
  };
  assert.ok(await loaded("method-tree-coreset-lsh", 1, change(1000)));
  for (const [end, other] of [[1001], [2 ** 53], [1000, "01".repeat(16)], [2 ** 54]])
    assert.match(await refusal(() => loaded("method-tree-coreset-lsh", 1, change(end, other)), "bundle"), /share/);
});

test("what a lie about its form would tell is refused", { skip }, async () => {
  const first = ({ questions }) => questions[0].channel.levels[0];
  const direct = vectors("local-counts").bundles.findIndex(({ bundle }) => bundle.includes('"direct"')) + 1;
  const privunit = vectors("local-vectors").bundles.findIndex(({ bundle }) => bundle.includes('"privunit"')) + 1;
  for (const [name, round, change, said] of [
    ["local-counts", direct, (content) => first(content).symbols--, /symbols/],
    ["local-counts", 1, (content) => (content.questions[0].alone *= 2), /alone/],
    ["local-counts", 1, (content) => (content.questions[0].delta = 0.1), /cost more than the plan/],
    ["local-counts", 1, (content) => (content.questions[1].vectors = null), /vectors/],
    ["local-counts", 1, (content) => first(content).at++, /at/],
    ["local-vectors", privunit, (content) => (sines(content).at -= 8), /sines/],
  ])
    assert.match(await refusal(() => loaded(name, round, change), "bundle"), said);
});

test("messages that only a shuffler makes private are for a shuffler, once", { skip }, async () => {
  const local = (content) => {
    content.trust = "Local";
    for (const drawing of content.drawings) drawing.bytes -= 2;
    content.answer_bytes -= 2 * content.drawings.length;
    for (const question of content.questions) question.alone = question.epsilon = 0.1;
  };
  for (const round of [2, 3, 4])
    assert.match(await refusal(() => loaded("shuffled", round, local), "bundle"), /without a shuffler/);
  assert.match(await refusal(() => loaded("shuffled", 1, (content) => (content.rounds = 2)), "bundle"), /trust/);
});

test("a cap that no vector is in, or hardly one, is refused: who is in it would be seen", { skip }, async () => {
  const privunit = vectors("local-vectors").bundles.findIndex(({ bundle }) => bundle.includes('"privunit"')) + 1;
  for (const gamma of [1.999999, 2, 5.2, 16]) {
    const change = ({ questions }) => {
      for (const level of questions.flatMap(({ channel }) => channel.levels))
        if (level.gamma !== undefined) Object.assign(level, { gamma, coin: "1" });
    };
    assert.match(await refusal(() => loaded("local-vectors", privunit, change), "bundle"), /give away more|gamma/);
  }
});

test("a publisher's words cannot pass for the client's, or hide them", { skip }, async () => {
  for (const hidden of ["\n", "\r", "\u001b[2K", "\u0085", "\u2028", "\u202e", "\u2066"])
    for (const name of ["words", "warnings"]) {
      const change = (content) => content[name].push(`a line${hidden}This device has worked out that nothing is told`);
      assert.match(await refusal(() => loaded("method-one-round", 1, change), "bundle"), /words/);
    }
});

const sines = ({ questions }) => questions.flatMap(({ channel }) => channel.levels).find((level) => level.sines).sines;

test("ratios of chances are compared with e^epsilon exactly", () => {
  assert.ok(within([2n, 1n], Math.LN2 + 2 ** -52));
  assert.ok(!within([2n, 1n], Math.LN2 - 2 ** -52));
  assert.ok(within([1n, 1n], 2 ** -60));
  assert.ok(!within([2n ** 64n, 1n], 44));
});

test("the promise is words for the person: what it is worth, and what it rests on", { skip }, async () => {
  const { promise } = await loaded("method-one-round");
  assert.match(promise, /at most 2980 times as likely with your row as with any other one \(epsilon 8\)/);
  assert.match(promise, /This device has worked out from the coins/);
  assert.match((await loaded("method-su-lloyd")).promise, /in all 6 rounds/);
  assert.match((await loaded("shuffled", 1)).promise, /Before that, 51800 times \(worked out from the coins\)/);
  assert.match((await loaded("shuffled", 2)).promise, /cannot check it. Without an honest shuffler nothing holds/);
});
