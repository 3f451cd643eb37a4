import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { client, files, hex, loaded, names, refusal, vectors, watched } from "./fixtures.js";

const { Client, MemoryStore } = client;
const skip = names().length ? false : "no vectors";
const ONE = "method-one-round",
  SIX = "method-su-lloyd",
  ROW = [0.1, 0.2];
const withDelta = (content) => (content.delta = 1e-6);
const of = (options) => new Client({ user: 5, store: new MemoryStore(), ...options });
const content = (store) => store.update((state) => structuredClone(state));

/** A store that fails in its nth call, before or after it has remembered. */
class Failing extends MemoryStore {
  constructor(when, after) {
    super();
    Object.assign(this, { calls: 0, when, after });
  }

  async update(fn) {
    const now = ++this.calls === this.when;
    if (now && !this.after) throw new Error("the power is off");
    const result = await super.update(fn);
    if (now) throw new Error("the power is off");
    return result;
  }
}

test("the same bytes are given again, and the plan is charged once", { skip }, async () => {
  const client = of(),
    bundle = await loaded("method-tree-coreset-lsh", 1, withDelta);
  const first = hex(await client.answer(bundle, ROW));
  for (let i = 0; i < 20; i++) assert.equal(hex(await client.answer(bundle, [-0.9, 0.9])), first);
  assert.deepEqual(await client.spent(), { epsilon: 8, delta: 1e-6, left: null });
});

test("calls at once draw one report", { skip }, async () => {
  const store = new MemoryStore(),
    bundle = await loaded("method-tree-coreset-lsh");
  const many = await Promise.all(Array.from({ length: 30 }, () => of({ store }).answer(bundle, ROW)));
  assert.equal(new Set(many.map(hex)).size, 1);
});

test(
  "the charge is remembered before anything is drawn: a crash in between costs, and gives no report",
  { skip },
  async () => {
    for (const [when, after, charged, drawn] of [
      [1, false, false, false],
      [1, true, true, false],
      [2, false, true, false],
      [2, true, true, true],
    ]) {
      const store = new Failing(when, after),
        client = of({ store }),
        bundle = await loaded(ONE);
      let asked = 0;
      const undo = watched(() => asked++);
      await assert.rejects(() => client.answer(bundle, ROW), /power/).finally(undo);
      assert.equal(asked > 0, drawn);
      const { plans } = await content(store),
        own = plans?.[bundle.content.plan];
      assert.equal(own !== undefined, charged);
      assert.equal(own?.rounds[1].report !== undefined, drawn);
      const report = hex(await client.answer(bundle, ROW));
      if (drawn) assert.equal(report, own.rounds[1].report);
      assert.equal((await client.spent()).epsilon, 8);
    }
  },
);

test("a bad row or number is refused before anything is charged", { skip }, async () => {
  const store = new MemoryStore(),
    bundle = await loaded(ONE);
  await refusal(() => of({ store }).answer(bundle, [NaN, 0]), "input");
  await refusal(() => of({ store, user: 1e9 }).answer(bundle, ROW), "input");
  assert.deepEqual((await content(store)).plans ?? {}, {});
});

test("a round that shows another head than before is refused", { skip }, async () => {
  const client = of();
  await client.answer(await loaded(SIX, 1), ROW);
  await client.answer(await loaded(SIX, 2), ROW);
  const other = await loaded(SIX, 2, (content) => (content.head = "ab".repeat(32)));
  assert.match(await refusal(() => client.answer(other, ROW), "round"), /published anew/);
});

test("rounds of a plan are paid once, and cannot cost more than the plan", { skip }, async () => {
  const client = of(),
    reports = new Set(),
    longer = (content) => (content.rounds = 7);
  for (let round = 1; round <= 6; round++) reports.add(hex(await client.answer(await loaded(SIX, round, longer), ROW)));
  assert.equal(reports.size, 6);
  assert.equal((await client.spent()).epsilon, 8);
  const seventh = await loaded(SIX, 6, (content) =>
    Object.assign(content, { round: 7, rounds: 7, head: "cd".repeat(32) }),
  );
  assert.match(await refusal(() => client.answer(seventh, ROW), "budget"), /rounds cost more/);
});

test("a round whose charge came to nothing is paid as dear as what is sent for it then", { skip }, async () => {
  const client = of({ store: new Failing(2, false) });
  await assert.rejects(async () => client.answer(await loaded(SIX, 1), ROW), /power/);
  const dear = await loaded(SIX, 1, ({ questions, drawings }) => {
    for (const question of questions) question.alone = question.epsilon = 8 / drawings.length;
  });
  await client.answer(dear, ROW);
  const next = await loaded(SIX, 2);
  assert.match(await refusal(() => client.answer(next, ROW), "budget"), /rounds cost more/);
});

test("what was charged is what the bundle says, also where nothing came of it", { skip }, async () => {
  for (const [change, said] of [
    [{ epsilon: 9 }, /cost was changed/],
    [{ delta: 1e-5 }, /cost was changed/],
    [{ rounds: 7 }, /cost was changed/],
    [{ round: 2, head: "ab".repeat(32), epsilon: 16 }, /cost was changed/],
  ]) {
    const client = of({ store: new Failing(2, false) });
    await assert.rejects(async () => client.answer(await loaded(SIX), ROW), /power/); // charged, and nothing drawn
    const other = await loaded(SIX, 1, (content) => Object.assign(content, change));
    assert.match(await refusal(() => client.answer(other, ROW), "round"), said);
    assert.deepEqual([(await client.spent()).epsilon, (await client.spent()).delta], [8, 0]);
  }
  const client = of({ store: new Failing(4, false) });
  await client.answer(await loaded(SIX), ROW);
  await assert.rejects(async () => client.answer(await loaded(SIX, 2), ROW), /power/);
  const anew = await loaded(SIX, 2, (content) => (content.head = "ab".repeat(32)));
  assert.match(await refusal(() => client.answer(anew, ROW), "round"), /published anew/);
});

test("a person pays for the questions that she is asked, and for no other ones", { skip }, async () => {
  // two rounds, in each of which half of all are asked a question for all of the plan's epsilon
  const half = (from) => (content) => {
    content.rounds = 2;
    if (from) Object.assign(content, { round: 2, head: "ab".repeat(32) });
    for (const question of content.questions) question.share = { key: "00".repeat(16), from, to: from + 2 ** 52 };
  };
  const client = (user) => of({ user });
  const rounds = [await loaded(ONE, 1, half(0)), await loaded(ONE, 1, half(2 ** 52))];
  for (let user = 0; user < 20; user++) {
    const own = client(user),
      sent = [await own.answer(rounds[0], ROW), await own.answer(rounds[1], ROW)];
    assert.equal(sent.filter((report) => report).length, 1);
  }
  const twice = await loaded(ONE, 1, (content) => {
    half(1)(content);
    for (const { share } of content.questions) Object.assign(share, { from: 0, to: 2 ** 53 });
  });
  const asked = client(0);
  await asked.answer(await loaded(ONE, 1, (content) => (content.rounds = 2)), ROW);
  assert.match(await refusal(() => asked.answer(twice, ROW), "budget"), /rounds cost more/);
});

test("a plan whose cost or form was changed, or another number of the same person, is refused", { skip }, async () => {
  const client = of();
  await client.answer(await loaded(SIX), ROW);
  for (const [name, other] of [
    ["epsilon", 9],
    ["delta", 1e-9],
    ["rounds", 7],
    ["users", 10_000_000],
  ]) {
    const changed = await loaded(SIX, 2, (content) => (content[name] = other));
    assert.match(await refusal(() => client.answer(changed, ROW), "round"), /cost was changed, or what it/);
  }
  const { plan, epsilon, delta, users } = (await loaded(ONE)).content;
  const as = (content) => Object.assign(content, { plan, head: plan, epsilon, delta, users });
  const one = of();
  await one.answer(await loaded(ONE), ROW);
  for (const [name, row] of [
    ["shuffled", ROW], // another trust, and nothing else
    ["local-counts", [0, 0, 0]], // another dimension
  ]) {
    const changed = await loaded(name, 1, as);
    assert.match(await refusal(() => one.answer(changed, row), "round"), /cost was changed, or what it/);
  }
  const store = new MemoryStore(),
    bundle = await loaded(ONE);
  await of({ store }).answer(bundle, ROW);
  assert.match(await refusal(() => of({ store, user: 6 }).answer(bundle, ROW), "round"), /another number/);
});

test("a billionth above a lifetime or a plan passes, a part in ten million does not", { skip }, async () => {
  const near = 1 - 1e-10,
    above = 1 - 1e-7;
  assert.ok(await of({ lifetime: 8 * near }).answer(await loaded(ONE), ROW));
  await refusal(async () => of({ lifetime: 8 * above }).answer(await loaded(ONE), ROW), "budget");
  const cheaper = (part) => (content) => (content.epsilon *= part);
  assert.ok(await loaded(ONE, 1, cheaper(near)));
  assert.match(await refusal(() => loaded(ONE, 1, cheaper(above)), "bundle"), /cost more than the plan/);
  const rounds = async (part) => {
    const own = of();
    for (let round = 1; round <= 6; round++) await own.answer(await loaded(SIX, round, cheaper(part)), ROW);
  };
  await rounds(near);
  assert.match(await refusal(() => rounds(above), "budget"), /rounds cost more/);
});

test("a lifetime whose delta nobody said has one of a thousandth", { skip }, async () => {
  assert.deepEqual((await of({ lifetime: 9 }).spent()).left, [9, 1e-3]);
  const plan = (delta) => loaded(ONE, 1, (content) => (content.delta = delta));
  assert.ok(await of({ lifetime: 9 }).answer(await plan(1e-3), ROW));
  assert.match(
    await refusal(async () => of({ lifetime: 9 }).answer(await plan(1.1e-3), ROW), "budget"),
    /costs delta 0.0011, and 0.001 of 0.001/,
  );
});

test("deltas of plans add up in a lifetime, and what is left of it is never below 0", { skip }, async () => {
  const plan = (name) => loaded(name, 1, (content) => (content.delta = 6e-4)),
    store = new MemoryStore(),
    client = of({ store, lifetime: 100 });
  await client.answer(await plan(ONE), ROW);
  const spent = await client.spent();
  assert.deepEqual([spent.delta, ...spent.left.map((left) => left.toPrecision(6))], [6e-4, "92.0000", "0.000400000"]);
  assert.match(
    await refusal(async () => client.answer(await plan(SIX), ROW), "budget"),
    /costs delta 0.0006, and 0.0004/,
  );
  assert.deepEqual((await of({ store, lifetime: 5, lifetimeDelta: 1e-4 }).spent()).left, [0, 0]);
  const wide = of({ lifetime: 100, lifetimeDelta: 0.0013 });
  for (const name of [ONE, SIX]) await wide.answer(await plan(name), ROW);
  assert.equal((await wide.spent()).delta, 0.0012);
});

test("deltas of a plan's rounds cannot be more than the plan's", { skip }, async () => {
  const round = (number, part) =>
    loaded(SIX, number, (content) => {
      content.delta = 1e-6;
      for (const question of content.questions) question.delta = (part * 1e-6) / content.drawings.length;
    });
  for (const [part, fine] of [
    [0.4, true],
    [0.6, false],
  ]) {
    const client = of();
    await client.answer(await round(1, part), ROW);
    const second = await round(2, part);
    if (fine) assert.ok(await client.answer(second, ROW));
    else assert.match(await refusal(() => client.answer(second, ROW), "budget"), /rounds cost more/);
  }
});

test("a publisher's lifetime may make her own smaller, and never larger", { skip }, async () => {
  const wish = (lifetime) => loaded(ONE, 1, (content) => (content.lifetime = lifetime));
  assert.match(await refusal(async () => of().answer(await wish(7.9), ROW), "budget"), /epsilon 8, and 7.9 of 7.9/);
  assert.match(await refusal(async () => of({ lifetime: 5 }).answer(await wish(100), ROW), "budget"), /and 5 of 5/);
  assert.ok(await of({ lifetime: 8 }).answer(await wish(8), ROW));
  const client = of();
  await client.answer(await loaded(SIX), ROW);
  assert.match(await refusal(async () => client.answer(await wish(10), ROW), "budget"), /and 2 of 10/);
});

test("a bundle too dear for the lifetime is refused before anything is drawn", { skip }, async () => {
  const store = new MemoryStore(),
    client = of({ store, lifetime: 10 });
  await client.answer(await loaded(ONE), ROW);
  assert.match(
    await refusal(async () => client.answer(await loaded(SIX), ROW), "budget"),
    /costs epsilon 8, and 2 of 10/,
  );
  const { plans } = await content(store);
  assert.equal(Object.keys(plans).length, 1);
  assert.deepEqual((await client.spent()).left[0], 2);
  const free = of({ lifetime: 100, lifetimeDelta: 1e-7 });
  assert.match(await refusal(async () => free.answer(await loaded(ONE, 1, withDelta), ROW), "budget"), /costs delta/);
});

test("a lifetime is kept by the store, whoever forgets it, and only ever lowered", { skip }, async () => {
  const store = new MemoryStore(),
    dear = await loaded(ONE);
  await of({ store, lifetime: 9 }).spent();
  assert.match(await refusal(() => of({ store, lifetime: 9.5 }).spent(), "budget"), /lowered, never raised/);
  await refusal(() => of({ store, lifetime: 5 }).answer(dear, ROW), "budget"); // lowered, although it was refused
  await refusal(() => of({ store }).answer(dear, ROW), "budget");
  await refusal(() => of({ lifetimeDelta: 1e-6 }).spent(), "input");
  for (const lifetime of [0, -1, NaN, Infinity]) assert.throws(() => of({ lifetime }), /above 0/);
});

test("a state that is damaged or newer is refused", { skip }, async () => {
  const store = new MemoryStore();
  await store.update((state) => Object.assign(state, { version: 2, plans: {} }));
  assert.match(
    await refusal(async () => of({ store }).answer(await loaded(ONE), ROW), "state"),
    /damaged or of a newer/,
  );
});

/** A collector: what it was sent, and how it answers. */
function collector(name, answers = [], round = 1) {
  const sent = [],
    waited = [],
    open = { n: round };
  const fetch = async (url, request) => {
    const path = new URL(url).pathname.replace("/at", "");
    const { bundles } = vectors(name),
      given = files(bundles[open.n - 1]),
      { plan, head } = JSON.parse(bundles[open.n - 1].bundle);
    if (path === "/round")
      return Response.json({
        plan,
        head,
        round: open.n,
        open: !open.closed,
        bundle: `/bundle-${open.n}.json`,
        sha256: open.sha256,
      });
    if (path.startsWith("/bundle")) return new Response(path.endsWith(".json") ? given.json : given.bin);
    assert.equal(path, "/reports");
    sent.push({ ...request, body: hex(request.body) });
    const answer = answers.shift() ?? 201;
    if (answer === "lost") throw new TypeError("network");
    return typeof answer === "number" ? Response.json({}, { status: answer }) : answer;
  };
  return {
    sent,
    waited,
    open,
    options: { url: "http://collector.example/at", fetch, pause: async (s) => waited.push(s) },
  };
}

test("an open round is fetched, answered, sent and remembered; it is answered once", { skip }, async () => {
  const { sent, open, options } = collector(SIX),
    client = of(options);
  const first = await client.answerOpenRound(ROW);
  assert.equal(first.status, "accepted");
  assert.equal(sent[0].body, hex(first.report));
  assert.deepEqual(
    [sent[0].method, sent[0].credentials, sent[0].headers["content-type"]],
    ["POST", "omit", "application/octet-stream"],
  );
  assert.equal((await client.answerOpenRound(ROW)).status, "sent");
  open.n = 2;
  assert.equal((await client.answerOpenRound(ROW)).status, "accepted");
  open.closed = true;
  assert.equal((await client.answerOpenRound(ROW)).status, "closed");
  assert.equal(sent.length, 2);
});

test("a bundle that is not the announced one is refused", { skip }, async () => {
  const { sent, open, options } = collector(SIX);
  open.sha256 = "ab".repeat(32);
  assert.match(await refusal(() => of(options).answerOpenRound(ROW), "bundle"), /announced/);
  delete open.sha256;
  assert.match(
    await refusal(() => of({ ...options, plan: "00".repeat(32) }).answerOpenRound(ROW), "bundle"),
    /another plan/,
  );
  assert.equal(sent.length, 0);
});

test("sending is tried again, as the collector asks, with the same bytes; a duplicate is done", { skip }, async () => {
  const later = new Response("", { status: 503, headers: { "retry-after": "7" } });
  const slow = new Response("", { status: 429, headers: { "retry-after": "86400" } });
  const { sent, waited, options } = collector(ONE, ["lost", 500, later, slow, 409]);
  const answer = await of(options).answerOpenRound(ROW);
  assert.equal(answer.status, "duplicate");
  const least = [0.5, 1, 7 + 2, 600 + 4]; // as asked, and as long again as without being asked
  assert.ok(waited.length === 4 && waited.every((s, i) => least[i] <= s && s < least[i] + 2 ** i), String(waited));
  assert.equal(new Set(sent.map(({ body }) => body)).size, 1);
});

test("a collector that stays away ends in words, and the report is kept and sent the next time", { skip }, async () => {
  const { sent, options } = collector(ONE, Array(6).fill("lost")),
    client = of(options);
  assert.match(await refusal(() => client.answerOpenRound(ROW), "server"), /the report is kept/);
  assert.equal((await client.answerOpenRound(ROW)).status, "accepted");
  assert.equal(new Set(sent.map(({ body }) => body)).size, 1);
  assert.match(await refusal(() => of(collector(ONE, [400]).options).answerOpenRound(ROW), "server"), /status 400/);
});

test("two who failed together do not come back together", { skip }, async () => {
  const times = [];
  for (let i = 0; i < 20; i++) {
    const { waited, options } = collector(ONE, [503]);
    await of(options).answerOpenRound(ROW);
    times.push(waited[0]);
  }
  assert.ok(new Set(times).size > 15 && Math.max(...times) - Math.min(...times) > 0.1, String(times));
});

test("what is worth another try is tried again, and what is not is refused at once", { skip }, async () => {
  for (const status of [408, 429, 500, 503]) {
    const { sent, options } = collector(ONE, [status]);
    assert.equal((await of(options).answerOpenRound(ROW)).status, "accepted", String(status));
    assert.equal(sent.length, 2);
  }
  for (const status of [200, 202, 400, 401, 404, 410, 413, 415]) {
    const { sent, options } = collector(ONE, [status]);
    assert.match(await refusal(() => of(options).answerOpenRound(ROW), "server"), new RegExp(`status ${status}`));
    assert.equal(sent.length, 1);
  }
});

/** A server on this machine; its requests' paths and bodies, and its address. */
async function server(t, answer) {
  const heard = [];
  const own = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    heard.push([request.url, Buffer.concat(pieces).length]);
    answer(request, response);
  });
  own.listen(0, "127.0.0.1");
  await once(own, "listening");
  t.after(() => {
    own.closeAllConnections();
    own.close();
  });
  return { heard, url: `http://127.0.0.1:${own.address().port}/` };
}

test("no redirect is followed: neither a report and its ticket nor a question goes elsewhere", { skip }, async (t) => {
  const { bundle, arrays } = vectors(ONE).bundles[0],
    given = files({ bundle, arrays }),
    { plan, head } = JSON.parse(bundle);
  const other = await server(t, (_, response) => response.writeHead(201).end("{}"));
  for (const [away, kind] of [
    ["/round", /cannot be reached, or sends on/],
    ["/bundle-1.json", /could not be read: its address cannot be reached, or sends on/],
    ["/reports", /cannot be reached, or sends on to another address, which is not followed: the report is kept/],
  ])
    for (const status of [301, 302, 307, 308]) {
      const { heard, url } = await server(t, ({ url: path }, response) => {
        if (path === away) return response.writeHead(status, { location: `${other.url}${path.slice(1)}` }).end();
        if (path === "/round")
          return response.end(JSON.stringify({ plan, head, round: 1, open: true, bundle: "/bundle-1.json" }));
        response.end(path.endsWith(".json") ? given.json : given.bin);
      });
      const one = of({ url, ticket: new Uint8Array(64), pause: async () => {} });
      assert.match(await refusal(() => one.answerOpenRound(ROW), "server"), kind);
      assert.ok(heard.some(([path]) => path === away));
    }
  assert.deepEqual(other.heard, []);
});

test("a bundle that is said to be at another address is not asked for there", { skip }, async () => {
  for (const bundle of ["https://else.example/b.json", "\\\\else.example/b.json", "http:b.json", "../b.json"]) {
    const asked = [];
    const fetch = async (url) => {
      asked.push(String(url));
      return Response.json({ plan: "ab", head: "ab", round: 1, open: true, bundle, sha256: null });
    };
    const url = "https://here.example/plans/one";
    assert.match(await refusal(() => of({ url, fetch }).answerOpenRound(ROW), "server"), /another address/);
    assert.deepEqual(asked, [`${url}/round`]);
  }
});

test("a report of 200,000 bytes is sent, with its ticket", async () => {
  const ticket = new Uint8Array(64).fill(9),
    { sent, options } = collector(ONE);
  const report = new Uint8Array(200_000).fill(7);
  report[0] = 0xc1;
  new DataView(report.buffer).setBigUint64(10, 5n, true);
  assert.equal(await of({ ...options, ticket }).send(report), "accepted");
  assert.equal(sent[0].body, `c3${hex(report).slice(2)}${hex(ticket)}`);
  assert.equal(report[0], 0xc1);
});

test("a ticket goes with the report", { skip }, async () => {
  const ticket = new Uint8Array(64).fill(9),
    { sent, options } = collector(ONE);
  const { report } = await of({ ...options, ticket }).answerOpenRound(ROW);
  assert.equal(sent[0].body, `c3${hex(report).slice(2)}${hex(ticket)}`);
});

test("a ticket that is wrong or missing is told in words", { skip }, async () => {
  const said = (ticket) =>
    refusal(() => of({ ...collector(ONE, [401]).options, ticket }).answerOpenRound(ROW), "server");
  assert.match(await said(), /only with a ticket for this number and plan: none was given$/);
  assert.match(await said(new Uint8Array(64)), /the one that was given is of another number, plan or issuer$/);
});

test("a store that another number has used refuses, in every way that leads to the collector", { skip }, async () => {
  const store = new MemoryStore(),
    { sent, options } = collector(SIX);
  const eleven = of({ ...options, store, user: 11 }),
    twelve = of({ ...options, store, user: 12 });
  const { report } = await eleven.answerOpenRound(ROW),
    before = await content(store);
  const own = client.encode(await loaded(SIX), ROW, 12); // without the store
  for (const run of [
    () => twelve.answerOpenRound(ROW),
    async () => twelve.answer(await loaded(SIX), ROW),
    async () => twelve.answer(await loaded(SIX, 2), ROW),
    () => twelve.send(report),
    () => twelve.send(own),
  ])
    assert.equal(await refusal(run, "round"), "another number has answered this plan here already");
  const nothing = ({ questions }) =>
    questions.forEach((question) => (question.share = { key: "00".repeat(16), from: 0, to: 1 }));
  assert.equal(await of().answer(await loaded(SIX, 1, nothing), ROW), null);
  assert.match(
    await refusal(async () => twelve.answer(await loaded(SIX, 1, nothing), ROW), "round"),
    /another number has/,
  );
  assert.match(await refusal(() => of({ ...options, user: 12 }).send(report), "round"), /another number's/);
  assert.equal(sent.length, 1);
  assert.deepEqual(await content(store), before);
  for (const same of ["11", "011", 11n])
    assert.equal((await of({ ...options, store, user: same }).answerOpenRound(ROW)).status, "sent");
});

test("a ticket that is not 64 bytes is refused before anything is charged", () => {
  for (const ticket of [new Uint8Array(63), new Uint8Array(0), new Uint16Array(64), "ab".repeat(32), "", null])
    assert.throws(() => of({ ticket }), { name: "Refused", kind: "input", message: /64 bytes/ });
});

test("a refused report says why, as the collector does, on one line", { skip }, async () => {
  const said = async (content, status) => {
    const answer = new Response(content, { status });
    return refusal(() => of(collector(ONE, [answer]).options).answerOpenRound(ROW), "server");
  };
  const why = { accepted: 0, refused: { form: 1 }, why: "refused: it is no report\nof this plan\u202e" };
  assert.match(await said(JSON.stringify(why), 400), /status 400: refused: it is no report of this plan $/);
  assert.match(await said('{"accepted":0,"refused":{"ticket":1}}', 401), /status 401: ticket\. It takes/);
  for (const odd of ["<html>", "null", "{}", '{"why":{"toString":1}}', '{"refused":null}'])
    assert.match(await said(odd, 400), /status 400$/);
  assert.ok((await said(JSON.stringify({ why: "x".repeat(1e5) }), 400)).length < 300);
});

test("a collector without the round's bundle, or none at all, is said", { skip }, async () => {
  const { sent, options } = collector(ONE),
    fetch = async () => Response.json({ plan: "ab", head: "ab", round: 1, open: true, bundle: null, sha256: null });
  const store = new MemoryStore(),
    without = of({ ...options, store, fetch });
  assert.match(await refusal(() => without.answerOpenRound(ROW), "server"), /has no bundle of this round/);
  assert.deepEqual((await content(store)).plans, {});
  assert.equal(sent.length, 0);
  for (const url of [undefined, "nowhere"])
    for (const run of [
      () => of({ url }).answerOpenRound(ROW),
      async () => of({ url }).send(await of().answer(await loaded(ONE), ROW)),
    ])
      assert.match(await refusal(run, "input"), /needs the url of its collector/);
  await refusal(async () => new Client(), "input");
  await refusal(async () => new Client({ store }), "input");
  assert.match(await refusal(() => client.Bundle.load(), "input"), /needs a source/);
});

test("no clock is read", { skip }, async () => {
  const { now } = Date;
  Date.now = () => assert.fail("a clock was read");
  try {
    assert.equal((await of(collector(ONE, [503]).options).answerOpenRound(ROW)).status, "accepted");
  } finally {
    Date.now = now;
  }
});
