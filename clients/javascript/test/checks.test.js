/** "What a client checks" of docs/reference/format_checks.md: lies are refused, and what the text allows is not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { client, files, loaded, names, refusal, vectors } from "./fixtures.js";

const { Bundle, encode } = client;
const skip = names().length ? false : "no vectors";

/** The first round of some vectors that has something, and its name. */
function having(name, text) {
  const at = vectors(name).bundles.findIndex(({ bundle }) => bundle.includes(text));
  assert.ok(at >= 0, text);
  return [name, at + 1];
}

const question = (content, kind) => content.questions.find(({ channel }) => channel.kind === kind);
const coins = (content, name) =>
  content.questions.flatMap(({ channel }) => channel.levels).find(({ randomiser }) => randomiser === name);
const set = (of, name, value) => (content) => (of(content)[name] = value);
const gone = (of, name) => (content) => delete of(content)[name];
const all = (content) => content;
const first = ({ questions }) => questions[0];
const domain = ({ domain }) => domain;
const cells = ({ bucketings }) => bucketings[0];

async function refused([name, round = 1], lies) {
  for (const [lie, said = /wrong or was changed/] of lies) {
    const message = await refusal(() => loaded(name, round, lie), "bundle").catch((error) =>
      assert.fail(`${name} ${round}: ${lie}: ${error.message}`),
    );
    assert.match(message, said, String(lie));
  }
}

test("members that the text names must be there, of their types", { skip }, async () => {
  const { bundle } = vectors("method-one-round").bundles[0],
    content = JSON.parse(bundle);
  for (const name of Object.keys(content)) await refused(["method-one-round"], [[gone(all, name), /./]]);
  for (const name of Object.keys(content.questions[0])) await refused(["method-one-round"], [[gone(first, name)]]);
  for (const kind of ["grid", "quadtree", "columns", "spared"]) {
    const where = having(kind === "quadtree" || kind === "grid" ? "local-others" : "kinds", `"kind":"${kind}"`);
    const find = ({ bucketings }) => bucketings.find((one) => one.kind === kind);
    const own = find(JSON.parse(vectors(where[0]).bundles[where[1] - 1].bundle));
    for (const name of Object.keys(own)) await refused(where, [[gone(find, name), /wrong or was changed/]]);
  }
  await refused(
    ["method-one-round"],
    [
      [set(all, "k", "5")],
      [set(all, "columns", ["a"])],
      [set(all, "columns", ["a", "b\n"]), /words/],
      [set(all, "method", "one\u202e"), /words/],
      [set(all, "asked", 0), /asked/],
      [set(all, "asked", 1.5), /asked/],
      [set(all, "questions", [])],
      [set(all, "columns", [1, 2])],
      [set(all, "words", "words")],
      [set(all, "lifetime", 0)],
      [set(all, "users", 0.5)],
      [set(all, "asked", null)],
      [set(first, "bucketing", "0")],
      [set(first, "vectors", [])],
    ],
  );
});

test("a kind is a text, not a list of one that reads the same", { skip }, async () => {
  const types = (of) => [(content) => (of(content).kind = [of(content).kind]), /kind/];
  await refused(["method-one-round"], [types(domain), types(cells)]);
  await refused(having("local-vectors", '"codebook"'), [
    types((content) => question(content, "vectors").vectors),
    types((content) => question(content, "vectors").channel),
    [
      (content) => {
        const level = coins(content, "codebook");
        level.randomiser = [level.randomiser];
      },
      /randomiser/,
    ],
  ]);
  await refused(
    ["method-one-round"],
    [
      [(content) => Object.assign(content, { plan: [content.plan], round: 2, rounds: 2 }), /head/],
      [(content) => Object.assign(content, { head: [content.head], round: 2, rounds: 2 }), /head/],
      [set(all, "trust", ["Local"]), /trust/],
    ],
  );
  const around = (content) => content.bucketings.find(({ kind }) => kind === "directions").around;
  await refused(having("local-vectors", '"kind":"directions"'), [[set(around, "type", ["i4"]), /type/]]);
});

test("messages without a coin are no answer to a server, under any name of their kind", { skip }, async () => {
  // a list of one text names the kind where names are looked up, and is another one where they are compared
  const [name, round] = having("shuffled", '"kind":"blanket"');
  const lie = (kind) => (content) => {
    const { epsilon } = content,
      own = question(content, "blanket"),
      { body_bytes } = own;
    Object.assign(own, { epsilon, alone: epsilon, delta: 0 });
    own.channel.kind = kind;
    content.trust = "Local";
    content.questions = [own];
    content.drawings = [{ questions: [0], bytes: body_bytes }];
    content.answer_bytes = body_bytes;
  };
  await refused([name, round], [
    [lie("blanket"), /messages without a shuffler/],
    [lie(["blanket"]), /kind/],
  ]);
});

test("whole numbers as text are written in one way only", { skip }, async () => {
  const size = ({ bucketings }) => bucketings[0].sizes[0],
    keep = (content) => first(content).channel.levels[0];
  const as = (write) => [
    [(content) => (content.bucketings[0].sizes[0] = write(size(content))), /size/],
    [(content) => (keep(content).keep = write(keep(content).keep)), /keep/],
  ];
  const where = having("local-counts", '"levels":[{"at":0');
  assert.ok(await loaded(...where, (content) => (content.bucketings[0].sizes[0] = String(size(content)))));
  for (const write of [
    (x) => `0${x}`,
    (x) => ` ${x}`,
    (x) => `+${x}`,
    (x) => `${x}.0`,
    (x) => [String(x)],
    (x) => `0x${BigInt(x).toString(16)}`,
    (x) => String(x).replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit))), // Arabic ones
  ])
    await refused(where, as(write));
  await refused(where, [[(content) => (keep(content).size = String(keep(content).size)), /size/]]);
  const grid = (content) => content.bucketings.find(({ kind }) => kind === "grid");
  await refused(having("local-others", '"kind":"grid"'), [
    [(content) => (grid(content).parts[0] = `0${grid(content).parts[0]}`), /parts/],
    [(content) => (grid(content).sides[0] = 0.5), /sides/],
  ]);
  const hash = (content) => content.bucketings.find(({ hash }) => hash).hash;
  await refused(having("method-weighted-centers", '"kind":"hashes"'), [
    [(content) => (hash(content).width = `0${hash(content).width}`), /width/],
    [(content) => (hash(content).width = Number(hash(content).width)), /width/],
  ]);
  const gaussian = (content) => question(content, "gaussian-vectors").channel.levels[0];
  await refused(having("local-others", '"gaussian-vectors"'), [
    [(content) => (gaussian(content).most = Number(gaussian(content).most)), /most/],
    [(content) => (gaussian(content).most = `0${gaussian(content).most}`), /most/],
    [(content) => (gaussian(content).most = "0"), /most/],
  ]);
});

test("there are at most 65,534 questions: the number beyond says that none is asked", { skip }, async () => {
  const many = (count) => (content) =>
    Object.assign(content, { questions: Array(count).fill(content.questions[0]), words: ["\n"] }); // wrong, later on
  const said = (count) => refusal(() => loaded("method-one-round", 1, many(count)), "bundle");
  assert.match(await said(65535), /\(questions\)/);
  assert.match(await said(65534), /\(words\)/);
});

test("an epsilon of which no double holds the power is checked all the same", { skip }, async () => {
  const where = having("local-others", '"gaussian-vectors"'),
    own = (content) => question(content, "gaussian-vectors");
  const at = (epsilon, mu) => (content) => {
    const { channel } = own(content),
      together = channel.level_key ? 1 : channel.levels.length;
    content.epsilon = 1024;
    Object.assign(own(content), { epsilon, alone: epsilon, delta: 1e-6 });
    Object.assign(channel, { shift: 0, sigma: 2 ** 30 });
    // the shift is a power of two, sigma the rest
    channel.shift = Math.ceil(Math.log2((mu * channel.sigma) / (2 * Math.sqrt(together) * channel.l2)));
    channel.sigma = (2 * Math.sqrt(together) * channel.l2 * 2 ** channel.shift) / mu;
  };
  assert.ok(await loaded(...where, at(800, 20)));
  await refused(where, [
    [at(710, 37.68), /noise is too small/], // e^710 times what is left of the normal law is infinite
    [at(800, 100), /noise is too small/],
  ]);
});

test("costs are above 0, and at most 1024; deltas are below 1", { skip }, async () => {
  for (const of of [all, first])
    await refused(
      ["shuffled", 1],
      [
        [set(of, "epsilon", 0), /epsilon/],
        [set(of, "epsilon", 1024.1), /epsilon/],
        [set(of, "delta", 1), /delta/],
        [set(of, "delta", -1e-9), /delta/],
      ],
    );
  await refused(
    ["shuffled", 1],
    [
      [set(first, "alone", null), /alone/],
      [set(first, "alone", 1025), /alone/],
    ],
  );
});

test("no member stands twice, no number is infinite, and kinds nest at most 16 deep", { skip }, async () => {
  const { json, bin } = files(vectors("method-one-round").bundles[0]),
    text = new TextDecoder().decode(json);
  const changed = (from, to) => Bundle.load({ json: new TextEncoder().encode(text.replace(from, to)), bin });
  assert.ok(await changed('"k":', '"a:\\"b\\\\":[{"c": "d:"}], "k" :')); // unknown members, whatever they hold
  for (const [from, to] of [
    ['"k":', '"k":1,"k":'],
    ['"k":', '"\\u006b":1,"k":'],
    ['"alone":', '"alone" : 9,"alone":'],
    ['"k":', '"more":1e999,"k":'],
  ]) {
    assert.notEqual(text.replace(from, to), text);
    assert.match(await refusal(() => changed(from, to), "bundle"), /twice/);
  }
  const deep = (kinds, wrap) => (content) => {
    for (let i = 1; i < kinds; i++) wrap(content);
  };
  const graded = (content) => (content.domain = { kind: "graded", columns: [], others: content.domain });
  const last = ({ bucketings }) =>
    bucketings.splice(0, 1, { kind: "last", sizes: bucketings[0].sizes, of: bucketings[0] });
  for (const wrap of [graded, last]) {
    assert.ok(await loaded("method-one-round", 1, deep(16, wrap)));
    await refused(["method-one-round"], [[deep(17, wrap), /kinds/]]);
  }
  await refused(
    ["method-one-round"],
    [
      [(content) => (last(content), (content.bucketings[0].of.kind = "other")), /which this client does not know/],
      [(content) => (graded(content), (content.domain.others.kind = "other")), /which this client does not know/],
    ],
  );
});

test("a domain's numbers are in their ranges", { skip }, async () => {
  const box = having("local-others", '"kind":"box"');
  const at = (name, value) => (content) => (content.domain[name][0] = value);
  await refused(box, [
    [set(domain, "unit", 3), /unit/],
    [set(domain, "unit", 2 ** 52 + 1), /unit/],
    [set(domain, "unit", 2 ** -1001), /unit/],
    [set(domain, "unit", 2 ** 1001), /unit/],
    [at("sides", -1), /sides/],
    [at("sides", 0.5), /sides/],
    [at("sides", 2 ** 20 + 1), /sides/],
    [(content) => (content.domain.lower[0] = content.domain.upper[0]), /lower/],
    [(content) => content.domain.middle.pop(), /middle/],
  ]);
  const frame = (scale) => (content) =>
    (content.domain = { kind: "reframed", offset: [0, 0], scale, then: content.domain });
  await refused(box, [
    [frame([1, 0]), /scale/],
    [frame([1]), /scale/],
  ]);
  assert.ok(encode(await loaded(...box, frame([1, -2])), [0, 1e308], 5));
  const described = ["method-described"];
  await refused(described, [
    ...[0, -1, 5, 2.5, "3", 2].map((beside) => [set(domain, "beside", beside)]), // its first domain has two columns
    [gone(domain, "first")],
    [({ domain: { first } }) => first.middle.pop(), /middle/],
    [
      (content) => (content.domain = { kind: "reframed", offset: Array(5).fill(0), scale: Array(5).fill(1), then: content.domain }),
      /without/,
    ],
  ]);
  await refused(
    ["method-one-round"],
    [
      [set(domain, "max_norm", 0), /max_norm/],
      [set(domain, "max_norm", 2 ** 20 + 1), /max_norm/],
    ],
  );
});

test("facets are of columns that there are, one of each level, in groups around centres", { skip }, async () => {
  const described = ["method-described", 2],
    own = JSON.parse(vectors("method-described").bundles[1].bundle).bucketings[0];
  for (const name of Object.keys(own)) await refused(described, [[gone(cells, name)]]);
  const facet = (value) => (content) => (cells(content).facets[0] = value);
  await refused(described, [
    ...["facets", "of_group"].map((name) => [(content) => cells(content)[name].pop(), /levels/]),
    ...[0, 6, 1.5].map((first) => [set(cells, "first", first), /first/]),
    ...[0, 2 ** 16 + 1].map((bins) => [set(cells, "bins", bins), /bins/]),
    ...[0, 2 ** 20 + 1, "5"].map((side) => [(content) => (cells(content).sides[4] = side), /sides/]),
    ...[[5, 0], [4, 2], [-1, 0], [0, -1], [0.5, 0], [0], 3].map((value) => [facet(value)]),
    [(content) => (cells(content).of_group[0] = 0), /of_group/],
    [(content) => (cells(content).near.within = 5), /groups/],
    [(content) => (cells(content).near.kind = "one"), /groups/],
    [(content) => (cells(content).near.kind = "other"), /groups/],
  ]);
  for (const value of [[4, 0], [4, 1], [0, 5]]) assert.ok(await loaded(...described, facet(value)));
});

test("levels are the bucketing's, and stand where their numbers do", { skip }, async () => {
  const several = having("local-counts", '"levels":[{"at":0'),
    level = (content) => first(content).channel.levels[0],
    channel = (content) => first(content).channel;
  await refused(several, [
    [({ bucketings }) => (bucketings[0].sizes = []), /sizes/],
    [({ bucketings }) => bucketings[0].sizes.push(2), /levels/],
    [({ bucketings }) => (bucketings[0].sizes[0] = 0), /number of buckets/],
    [({ bucketings }) => (bucketings[0].sizes[0] = 2.5), /size/],
    [({ bucketings }) => (bucketings[0].sizes[0] = String(2n ** 62n)), /number of buckets/],
    [({ bucketings }) => bucketings[0].sizes[0]++, /size/],
    [set(level, "at", 1), /at/],
    [set(level, "width", 2)],
    [set(channel, "width", 9), /width/],
    [set(channel, "dtype", "u8"), /dtype/],
    [set(channel, "level_key", "ab"), /key/],
    [set(channel, "share", null), /share/],
    [set(channel, "share", "nobody"), /share/],
    [set(first, "messages", 2), /messages/],
  ]);
  const [, round] = having("local-vectors", '"duchi"');
  await refused(
    ["local-vectors", round],
    [
      [
        (content) => {
          for (const own of content.questions.filter(({ channel }) =>
            channel.levels.some((one) => one.randomiser === "duchi"),
          ))
            own.channel.dtype = "u4";
        },
        /dtype/,
      ],
    ],
  );
});

test("all levels that one person answers share her epsilon", { skip }, async () => {
  // the levels' key is taken away: each of them is answered, at the price of all
  const at = vectors("method-hst-means").bundles.findIndex(({ bundle }) => /"level_key":"\w{32}"/.test(bundle)) + 1;
  assert.ok(at, "a round whose levels are divided among people");
  const every = (content) => {
    const { channel } = content.questions.find(({ channel }) => channel.level_key);
    Object.assign(channel, { level_key: null, share: "budget" });
    channel.levels.forEach((level, i) => (level.at = i * level.width));
    channel.width = channel.levels.reduce((sum, { width }) => sum + width, 0);
  };
  await refused(["method-hst-means", at], [[every, /give away more/]]);
});

test("vectors are the channel's, of known kinds, in integers whose squares do not wrap", { skip }, async () => {
  const own = (content) => question(content, "vectors").vectors;
  await refused(having("local-vectors", '"codebook"'), [
    [(content) => own(content).l2--, /bound/],
    [(content) => own(content).dimension++, /dimension/],
    [set(own, "l2", 2 ** 27), /l2/],
    [set(own, "l1", 0), /l1/],
    [set(own, "kind", "other"), /which this client does not know/],
    [gone((content) => question(content, "vectors").channel, "l2"), /bound/],
  ]);
  const clipped = having("method-private-lloyd-median", '"kind":"clipped"'),
    bent = (content) => content.questions.find(({ vectors }) => vectors?.kind === "clipped").vectors;
  await refused(clipped, [
    [set(bent, "scale", 0), /radii/],
    [set(bent, "scale", 2 ** 54), /radii/],
    [set((content) => bent(content).centers, "type", "i8")],
    [set((content) => bent(content).radii, "type", "f8")],
    [gone(bent, "weighted"), /weighted/],
  ]);
  const radius = (content) => {
    // the same bytes, from where they are zeros, or negative
    bent(content).radii = { ...bent(content).centers, shape: [2 * bent(content).centers.shape[0]] };
  };
  await refused(clipped, [[radius, /radii/]]);
});

test("trees, nets and hashes of a row have bits, steps and widths", { skip }, async () => {
  const kind = (text) => (content) => content.bucketings.find((one) => one.kind === text);
  const [tree, net, hashes] = ["quadtree", "nets", "hashes"].map(kind);
  await refused(having("local-others", '"kind":"quadtree"'), [
    [(content) => tree(content).order.push(...Array(61).fill(0)), /order/],
  ]);
  await refused(having("kinds", '"kind":"nets"'), [[(content) => (net(content).nets[0].step = 0), /net/]]);
  await refused(having("method-weighted-centers", '"kind":"hashes"'), [
    [(content) => (hashes(content).hash.width = "0"), /hash/],
    [(content) => (hashes(content).hash.bits = 63), /hash/],
    [(content) => (hashes(content).hash.keys[0] = "AB".repeat(16)), /key/],
  ]);
});

test("a codebook's and a response's numbers are in their ranges, on both sides", { skip }, async () => {
  const where = having("local-vectors", '"codebook"'),
    book = (content) => coins(content, "codebook");
  await refused(where, [
    [set(book, "bits", 20), /bits/],
    [set(book, "bits", -1), /bits/],
    [set(book, "inside", 0), /inside/],
    [(content) => (book(content).inside = book(content).size + 1), /inside/],
    [(content) => book(content).signs.pop(), /size/],
    [(content) => (book(content).signs[0] = book(content).signs[0].toUpperCase().slice(1)), /key/],
    [set(book, "bucket", ["00".repeat(16)]), /key/],
  ]);
  await refused(having("local-vectors", '"duchi"'), [
    [
      (content) => {
        const level = coins(content, "duchi");
        level.coin = String(2n ** 64n - BigInt(level.coin) - 2n ** 50n);
      },
      /give away more/,
    ],
    [gone((content) => coins(content, "duchi"), "sines"), /sines/],
  ]);
  await refused(having("local-vectors", '"privunit"'), [
    [set((content) => coins(content, "privunit"), "gamma", -0.1), /gamma/],
    [set((content) => coins(content, "privunit"), "gamma", 2), /gamma/],
    [set((content) => coins(content, "privunit"), "together", 9), /together/],
  ]);
});

test("Gaussian vectors are of the vectors' bounds, with enough noise", { skip }, async () => {
  const where = having("local-others", '"gaussian-vectors"'),
    own = (content) => question(content, "gaussian-vectors");
  await refused(where, [
    [(content) => own(content).channel.l1++, /vectors/],
    [set(own, "vectors", null)],
    [set((content) => own(content).channel, "sigma", 2 ** 22 - 1), /sigma/],
    [set((content) => own(content).channel, "sigma", 2 ** 56 + 16), /sigma/],
    [(content) => own(content).channel.shift++, /noise is too small/],
    [set((content) => own(content).channel, "shift", 63), /shift/],
    [(content) => own(content).channel.levels[0].size++, /size/],
    [set((content) => own(content).channel.levels[0], "most", "1e9"), /./],
    [(content) => (own(content).alone /= 2), /alone/],
    [set(own, "alone", null), /alone/],
    [set((content) => own(content).channel, "share", "budget"), /share/],
    [set((content) => own(content).channel.levels[0], "longest", 0), /longest/],
    [set((content) => own(content).channel, "farthest", 2 ** 31), /farthest/],
  ]);
});

test("Gaussian reports are no messages for a shuffler, whose crowd they have no part in", { skip }, async () => {
  const lie = (kind) => (content) => {
    const own = question(content, kind);
    content.trust = "Shuffled";
    own.body_bytes += 8 * own.messages;
    content.questions = [own];
    content.drawings = [{ questions: [0], bytes: own.body_bytes + 2 }];
    content.answer_bytes = own.body_bytes + 2;
    delete own.share;
    own.share = null;
  };
  await refused(having("local-others", '"gaussian-vectors"'), [[lie("gaussian-vectors"), /trust/]]);
});

test("messages for a shuffler are of everybody, as many as are said, in their ranges", { skip }, async () => {
  const tags = having("shuffled", '"kind":"blanket"'),
    blanket = (content) => question(content, "blanket");
  const share = { key: "00".repeat(16), from: 0, to: 2 ** 53 };
  await refused(tags, [
    [set(blanket, "share", share), /everybody/],
    [set(blanket, "vectors", { kind: "rows", dimension: 2, l2: 1, l1: 1 }), /vectors/],
    [set((content) => blanket(content).channel, "values", 1), /values/],
    [set((content) => blanket(content).channel, "values", 2 ** 16 + 1), /values/],
    [(content) => blanket(content).channel.blankets++, /messages/],
    [set(blanket, "alone", 1), /alone/],
    [(content) => blanket(content).channel.levels[0].size++, /size/],
    [(content) => blanket(content).messages++],
    [(content) => blanket(content).body_bytes++, /body_bytes/],
  ]);
  const mixed = having("shuffled", '"kind":"shares"'),
    own = (content) => question(content, "shares"),
    channel = (content) => own(content).channel;
  await refused(mixed, [
    [set(own, "share", share), /everybody/],
    [set(channel, "bits", 1), /bits/],
    [set(channel, "bits", 63), /bits/],
    [set(channel, "bits", 32), /dtype/],
    [set(channel, "sigma", 2 ** 56 + 16), /sigma/],
    [set(channel, "shift", 0.5), /shift/],
    [set(channel, "shift", 63), /shift/],
    [(content) => channel(content).slots++, /slots/],
    [(content) => channel(content).shares++, /messages/],
    [(content) => channel(content).levels[0].places++],
    [(content) => channel(content).levels[0].at++, /at/],
    [(content) => channel(content).width++],
  ]);
});
