/** A person's side of plans: what was answered, what is left of a lifetime, and sending. No clock is read. */
import { Bundle } from "./bundle.js";
import { asked, prepared, userOf } from "./encode.js";
import { hex, HIDDEN, QUIET, Refused, ROUNDING, unhex, webCrypto } from "./words.js";

const VERSION = 1;
const TRIES = 6;
const LONGEST = 600; // seconds, at most, that a collector may ask for
const LATER = [408, 429]; // and all from 500 on: the same bytes may be taken another time
const GONE = "cannot be reached, or sends on to another address, which is not followed";

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

export class Client {
  #base;
  #lifetime;
  #options;

  /**
   * @param options url (of the collector), user (number), store (what remembers), lifetime and lifetimeDelta (most
   *   epsilon and delta ever, over all plans: kept by the store, lowered at will, never raised), plan (hash: another
   *   one is refused), ticket (64 bytes), fetch, pause (seconds -> promise)
   */
  constructor({ url, user, store, lifetime, lifetimeDelta, ticket, fetch, pause = wait, ...options } = {}) {
    if (!store) throw new Refused("input", "a client needs a store");
    if (lifetime !== undefined && !(lifetime > 0 && lifetime < Infinity))
      throw new Refused("input", "a lifetime is an epsilon above 0");
    if (lifetimeDelta !== undefined && !(lifetimeDelta >= 0 && lifetimeDelta < 1))
      throw new Refused("input", "a lifetime's delta is a probability below 1");
    if (ticket !== undefined && !(ticket instanceof Uint8Array && ticket.length === 64))
      throw new Refused("input", "a ticket is 64 bytes, a Uint8Array");
    try {
      this.#base = url && new URL(String(url).replace(/\/?$/, "/"), globalThis.location?.href);
    } catch {} // said where it is needed
    this.#lifetime = [lifetime, lifetimeDelta];
    fetch ??= (...request) => globalThis.fetch(...request);
    this.#options = { user: userOf(user, Number.MAX_SAFE_INTEGER), store, ticket, pause, fetch, ...options };
  }

  /** The report of this round: charged once, drawn once, and remembered before it is handed back. Null: not asked. */
  async answer(bundle, row) {
    const { content } = bundle,
      { user, store } = this.#options,
      number = userOf(user, content.users);
    const draw = prepared(bundle, row, user);
    await this.#promise();
    const questions = asked(content, number);
    // durably, before anything is drawn
    await store.update((state) => charge(opened(state), content, number, questions));
    if (!questions.length) return null;
    const report = await store.update((state) => {
      const own = state.plans[content.plan].rounds[content.round];
      own.report ??= hex(draw(webCrypto));
      return own.report;
    });
    return unhex(report); // remembered, before it leaves
  }

  /** Send a report until it is acknowledged: "accepted", or "duplicate" if it was there before. */
  async send(report) {
    const { user, store, ticket, fetch, pause } = this.#options,
      url = this.#at("reports");
    await store.update((state) => {
      const stamp = hex(report.subarray(1, 9)); // of the round's head
      for (const [plan, { rounds }] of Object.entries(opened(state).plans))
        if (Object.values(rounds).some(({ head }) => head.startsWith(stamp))) paidOf(state, plan, user);
    });
    if (new DataView(report.buffer, report.byteOffset).getBigUint64(10, true) !== user)
      throw new Refused("round", "this report is another number's");
    const body = ticket ? ticketed(report, ticket) : report;
    const headers = { "content-type": "application/octet-stream" };
    const request = { ...QUIET, method: "POST", body, headers };
    for (let turn = 1; ; turn++) {
      const answer = await fetch(url, request).catch(() => null);
      if (answer?.status === 201) return "accepted"; // a page that a network shows to everybody is a 200
      if (answer?.status === 409) return "duplicate";
      if (answer && answer.status < 500 && !LATER.includes(answer.status))
        throw new Refused("server", `the report was refused: status ${answer.status}${await reasons(answer, ticket)}`);
      if (turn === TRIES) throw new Refused("server", `the collector ${GONE}: the report is kept, try later`);
      const asked = Number(answer?.headers.get("retry-after") ?? 0),
        chance = Number(webCrypto(1)[0]) / 2 ** 64; // so that those who failed together do not come back together
      await pause((asked >= 0 ? Math.min(asked, LONGEST) : 0) + 2 ** (turn - 1) * (0.5 + chance));
    }
  }

  /** Answer the collector's open round, if it was not answered: {status, round, report}. */
  async answerOpenRound(row) {
    const { plan, user, store } = this.#options,
      open = await this.#json("round");
    if (plan && open.plan !== plan) throw new Refused("bundle", "the collector has another plan: nothing was sent");
    const { round } = open;
    if (!open.open) return { status: "closed", round };
    const before = await store.update((state) => paidOf(opened(state), open.plan, user)?.rounds[round]);
    if (before?.sent && before.head === open.head) return { status: "sent", round, report: unhex(before.report) };
    const bundle = await this.bundle(open);
    const report = await this.answer(bundle, row);
    if (!report) return { status: "nothing", round };
    const status = await this.send(report);
    await store.update((state) => void (state.plans[open.plan].rounds[round].sent = true));
    return { status, round, report };
  }

  /** The bundle of an announced round, checked against its announcement. */
  async bundle({ bundle: path, sha256, plan, round, head }) {
    if (!path) throw new Refused("server", "the collector has no bundle of this round");
    const { fetch } = this.#options,
      url = this.#at(String(path).replace(/^\/+/, ""));
    const bundle = await Bundle.load(url, { sha256, plan, fetch }),
      { content } = bundle;
    if (content.round !== round || content.head !== head)
      throw new Refused("bundle", "the collector's bundle is of another round: nothing was sent");
    return bundle;
  }

  /** What was spent, over all plans, and what is left of the lifetime (null: no limit). */
  async spent() {
    await this.#promise();
    return this.#options.store.update((state) => {
      const [epsilon, delta] = sums(opened(state)),
        { lifetime } = state;
      return { epsilon, delta, left: lifetime && lifetime.map((most, i) => Math.max(0, most - [epsilon, delta][i])) };
    });
  }

  #at(path) {
    if (!this.#base) throw new Refused("input", "a client needs the url of its collector");
    const url = new URL(path, this.#base); // a path that the collector names may be an address
    if (!url.href.startsWith(new URL(".", this.#base).href)) throw new Refused("server", `the collector ${GONE}`);
    return url;
  }

  async #json(path) {
    const answer = await this.#options.fetch(this.#at(path), QUIET).catch(() => null);
    if (!answer?.ok) throw new Refused("server", `the collector ${GONE}, or has no round: try later`);
    return answer.json();
  }

  /** Store the lifetime by itself: it holds even if the charge that follows is refused. */
  async #promise() {
    const [epsilon, delta] = this.#lifetime;
    if (epsilon === undefined && delta === undefined) return;
    await this.#options.store.update((state) => {
      const before = opened(state).lifetime;
      if (!before && epsilon === undefined) throw new Refused("input", "a lifetime's delta needs a lifetime");
      const old = before ?? [Infinity, delta ?? 1e-3],
        given = [epsilon ?? old[0], delta ?? old[1]];
      if (given.some((now, i) => now > old[i]))
        throw new Refused("budget", `the lifetime is ${old[0]} (delta ${old[1]}): it can be lowered, never raised`);
      state.lifetime = given;
    });
  }
}

/** A state of this version; an empty one becomes new. */
function opened(state) {
  if (!Object.keys(state).length) Object.assign(state, { version: VERSION, lifetime: null, plans: {} });
  if (state.version !== VERSION || typeof state.plans !== "object")
    throw new Refused("state", "what this client remembers is damaged or of a newer version: nothing was sent");
  return state;
}

/** What a plan has in the state, if anything, which must be this user's. */
function paidOf(state, plan, user) {
  const paid = state.plans[plan];
  if (paid && paid.user !== String(user))
    throw new Refused("round", "another number has answered this plan here already");
  return paid;
}

/** A report with the ticket of its number. */
function ticketed(report, ticket) {
  const body = new Uint8Array(report.length + ticket.length);
  body.set(report);
  body.set(ticket, report.length);
  body[0] = 0xc3;
  return body;
}

/** Why a collector refuses a report: in its words, on one line, and of a ticket in ours. */
async function reasons(answer, ticket) {
  let said = "";
  try {
    const { why, refused } = await answer.json();
    said = `: ${String(why ?? Object.keys(refused))
      .split(HIDDEN)
      .join(" ")
      .slice(0, 200)}`;
  } catch {}
  if (answer.status !== 401) return said;
  const wrong = ticket ? "the one that was given is of another number, plan or issuer" : "none was given";
  return `${said}. It takes a report only with a ticket for this number and plan: ${wrong}`;
}

/** Epsilon and delta of all plans but one. */
function sums(state, but) {
  const others = Object.entries(state.plans)
    .filter(([plan]) => plan !== but)
    .map(([, paid]) => paid);
  return [others.reduce((sum, p) => sum + p.epsilon, 0), others.reduce((sum, p) => sum + p.delta, 0)];
}

/** Charge a plan's whole cost once, and note that this round's questions, if any, are about to be answered. */
function charge(state, content, user, questions) {
  const { plan, round, head, epsilon, delta, trust, lifetime } = content,
    whole = [epsilon, delta];
  const before = paidOf(state, plan, user);
  if (!questions.length) return;
  if (!before) {
    const spent = sums(state, plan),
      own = state.lifetime ?? [Infinity, Infinity];
    whole.forEach((cost, i) => {
      const most = i ? own[1] : Math.min(own[0], lifetime ?? Infinity), // the publisher's is a wish
        left = most - spent[i];
      if (cost > left + most * ROUNDING)
        throw new Refused(
          "budget",
          `this plan costs ${i ? "delta" : "epsilon"} ${cost}, and ${left} of ${most} is left`,
        );
    });
  }
  const same = ["epsilon", "delta", "rounds", "trust", "users", "dimension"].map((name) => content[name]).join();
  const paid = (state.plans[plan] ??= { user: String(user), epsilon, delta, same, rounds: {} });
  if (paid.same !== same) throw new Refused("round", "this plan's cost was changed, or what it is about");
  const sum = (name) => questions.reduce((all, question) => all + question[name], 0);
  const costs = trust === "Local" ? [sum("epsilon"), sum("delta")] : whole; // the crowd's: such a plan has one round
  const own = (paid.rounds[round] ??= { head, costs });
  // what was charged may have come to nothing, and this may be a dearer bundle of the round
  if (!own.report) own.costs = costs.map((cost, i) => Math.max(cost, own.costs[i]));
  if (own.head !== head) throw new Refused("round", "this round was published anew, with other answers before it");
  const most = (i) => Object.values(paid.rounds).reduce((sum, { costs }) => sum + costs[i], 0);
  if (whole.some((limit, i) => most(i) > limit * (1 + ROUNDING)))
    throw new Refused("budget", "the plan's rounds cost more than the plan");
}
