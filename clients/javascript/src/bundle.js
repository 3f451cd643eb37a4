/** A round's bundle: everything public that a device needs, read, checked, and said in words. */
import { checkBuckets, checkDepth, checkVectors } from "./buckets.js";
import { CHANNELS, MOST_EPSILON } from "./channels.js";
import { key, keys, members, need, number, numbers, whole } from "./check.js";
import { DOMAINS } from "./rows.js";
import { hex, HIDDEN, QUIET, Refused, ROUNDING, system, unhex } from "./words.js";

const FORMAT = 1;
const RARE = new RegExp(
  '"(shells|distances|grouped|quadtree|last|spared|nets|hashes|intervals|regions|created|assigned|unary|subset|' +
    'privunit|duchi|gaussian-vectors|blanket|shares|graded|reframed|columns|without|facets)"(?!:)', // a name has a colon
);
const TYPES = { i4: Int32Array, i8: BigInt64Array, f8: Float64Array };
const SINES = "427a6507e910807d46cc244d4bcf41eedb31740e465979fdf4d83c83b428e7a7"; // another table would tell of a row
const isText = (x) => typeof x === "string";
const CROWD = "That is what the plan says of the shuffled messages: this device cannot check it.";
const PLAIN = new Set(["columns", "words", "warnings"]);

export class Bundle {
  /** Use `Bundle.load`. content: the JSON, checked, with arrays and keys in their places. */
  constructor(content, sha256) {
    Object.assign(this, { content, sha256 });
    Object.freeze(this);
  }

  /**
   * Read and check a bundle.
   * @param source a URL of `bundle-r.json`, the bytes {json, bin}, or async (ending: ".json" | ".bin") => bytes
   * @param options sha256: the bundle's name, plan: the plan's hash (hex); other ones are refused
   */
  static async load(source, { sha256, plan, fetch = globalThis.fetch } = {}) {
    const from = getter(source, fetch),
      json = await from(".json"),
      name = await digest(json);
    if (sha256 && name !== sha256.toLowerCase()) refuse("it is not the one that was announced");
    const content = parsed(json);
    if (RARE.test(JSON.stringify(content))) await import("./rare.js");
    if (content.bundle !== FORMAT)
      refuse(`its format is ${content.bundle}, and this client reads ${FORMAT}: update it`);
    if (plan && content.plan !== plan) refuse("it belongs to another plan");
    const bin = await from(".bin");
    need(json.length <= 2 ** 26 && bin.length <= 2 ** 30, "too long");
    need(bin.length === content.arrays?.bytes && (await digest(bin)) === content.arrays.sha256, "arrays");
    return new Bundle(await sound(content, bin), name);
  }

  /** What the person who answers is promised, in words. */
  get promise() {
    const { words, warnings, epsilon, delta, trust, rounds } = this.content;
    const odds = (e) => `${Number(Math.exp(e).toPrecision(3))} times`;
    const rest = delta ? `, but for a chance of ${delta}` : "";
    const alone = together(this.content, ({ alone }) => alone ?? Infinity);
    const coins =
      trust === "Local"
        ? "This device has worked out from the coins that it throws that it keeps this."
        : Number.isFinite(alone)
          ? `${CROWD} Before that, ${odds(alone)} (worked out from the coins).`
          : `${CROWD} Without an honest shuffler nothing holds.`;
    const said =
      `What you send in ${rounds > 1 ? `all ${rounds} rounds` : "this round"} is at most ${odds(epsilon)} as ` +
      `likely with your row as with any other one (epsilon ${epsilon})${rest}. ${coins}`;
    return [said, ...words, ...warnings.map((warning) => `Warning: ${warning}`)].join("\n");
  }
}

function refuse(why) {
  throw new Refused("bundle", `this bundle is refused: ${why}. Nothing was sent`);
}

/** Ending -> bytes. */
function getter(source, fetch) {
  if (typeof source === "function") return async (ending) => bytesOf(await source(ending));
  if (!source) throw new Refused("input", "a bundle needs a source: a url or its files");
  if (source.json) return async (ending) => bytesOf(source[ending.slice(1)]);
  return async (ending) => {
    const answer = await fetch(String(source).replace(/\.json$/, ending), QUIET).catch(() => null),
      why = answer ? `status ${answer.status}` : "its address cannot be reached, or sends on, which is not followed";
    if (!answer?.ok) throw new Refused("server", `the bundle could not be read: ${why}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
}

const bytesOf = (given) =>
  ArrayBuffer.isView(given) ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength) : new Uint8Array(given);

/** SHA-256 in hex. */
async function digest(bytes) {
  if (!system.subtle) refuse("this page is not secure, so that the bundle cannot be checked: open it by https");
  return hex(new Uint8Array(await system.subtle.digest("SHA-256", bytes)));
}

/** What is JSON, with no member twice, and with finite numbers. */
function parsed(json) {
  let names = 0,
    finite = true,
    content,
    text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(json);
    content = JSON.parse(text, function (_, value) {
      if (!Array.isArray(this)) names++;
      finite &&= typeof value !== "number" || Number.isFinite(value);
      return value;
    });
  } catch {}
  if (!content || typeof content !== "object") refuse("it is not JSON: it was cut short or changed");
  // a colon for every name, but for the whole, which has none
  need(finite && text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length === names, "a member twice, or no number");
  return content;
}

/** The content with arrays in the place of their descriptions: {data, shape}. */
function filled(part, bin) {
  if (part === null || typeof part !== "object") return part;
  if ("at" in part && "type" in part) return arrayOf(part, bin);
  for (const [name, inner] of Object.entries(part)) if (!PLAIN.has(name)) part[name] = filled(inner, bin);
  if (Array.isArray(part.keys)) part.keys = part.keys.map(key);
  return part;
}

function arrayOf({ at, type, shape }, bin) {
  need(isText(type) && Object.hasOwn(TYPES, type) && Array.isArray(shape), "an array's type");
  const Type = TYPES[type];
  const size = shape.reduce((n, m) => n * whole(m, 0, 2 ** 31, "an array's shape"), 1);
  const bytes = size * Type.BYTES_PER_ELEMENT;
  whole(at, 0, bin.length - bytes, "an array's place");
  const data = new Type(bin.slice(at, at + bytes).buffer); // typed arrays are little-endian wherever browsers run
  const narrow = type !== "i8" || data.some((x) => x > 2n ** 53n || x < -(2n ** 53n));
  return { data: narrow ? data : Float64Array.from(data, Number), shape };
}

/** The content, checked. What is so wrong that a check stumbles over it is wrong. */
async function sound(content, bin) {
  try {
    checked(filled(content, bin));
    for (const { sines } of content.questions.flatMap(({ channel }) => channel.levels))
      need(!sines || (await digest(sines.data)) === SINES, "sines");
    return content;
  } catch (error) {
    if (error instanceof Refused) throw error;
    return need(false, error.message);
  }
}

function checked(content) {
  const { plan, head, round, rounds, trust, dimension, columns, bucketings, questions, drawings } = content;
  need([plan, head].every((x) => isText(x) && /^[0-9a-f]{64}$/.test(x)) && (round !== 1 || head === plan), "head");
  whole(rounds, 1, 255, "rounds");
  whole(round, 1, rounds, "round");
  need(trust === "Local" || (trust === "Shuffled" && rounds === 1), "trust");
  whole(content.users, 1, Number.MAX_SAFE_INTEGER, "users");
  whole(dimension, 1, 2 ** 20, "dimension");
  cost(content);
  members(
    content,
    "method:text k:int asked:number lifetime:number|null columns:list|null words:list warnings:list domain:object " +
      "bucketings:list drawings:list questions:list answer_bytes:int",
  );
  need(content.lifetime === null || content.lifetime > 0, "lifetime");
  number(content.asked, Number.MIN_VALUE, 1, "asked");
  need(columns === null || columns.length === dimension, "columns");
  need(questions.length > 0 && questions.length < 65535, "questions");
  need(
    [...content.words, ...content.warnings, ...(columns ?? []), content.method].every(
      (line) => isText(line) && !HIDDEN.test(line),
    ),
    "words",
  );
  checkDomain(content.domain, dimension);
  bucketings.forEach((cells) => checkBuckets(cells));
  questions.forEach((question) => checkQuestion(content, question));
  checkDrawings(content);
  checkCosts(content);
  content.stamp = unhex(head.slice(0, 16));
}

function cost({ epsilon, delta }) {
  number(epsilon, Number.MIN_VALUE, MOST_EPSILON, "epsilon");
  need(number(delta, 0, 1, "delta") < 1, "delta");
}

function checkDomain(domain, d, depth = 1) {
  const { kind, middle, unit, lower, upper, sides, max_norm } = domain;
  checkDepth(depth);
  members(domain, "kind:text");
  if (DOMAINS[kind]) return DOMAINS[kind].check(domain, d, (inner, own = d) => checkDomain(inner, own, depth + 1), depth);
  need(kind === "box" || kind === "ball", `a domain of the kind '${kind}', which this client does not know`);
  numbers(middle, d, "middle");
  number(unit, 2 ** -1000, 2 ** 1000, "unit");
  const [bits] = new BigUint64Array(new Float64Array([unit]).buffer);
  need(BigInt.asUintN(52, bits) === 0n, "unit"); // a power of two has no fraction
  if (kind === "ball") return whole(max_norm, 1, 2 ** 20, "max_norm");
  need(
    numbers(lower, d, "lower").every((x, j) => x < numbers(upper, d, "upper")[j]),
    "lower",
  );
  numbers(sides, d, "sides").forEach((x) => whole(x, 0, 2 ** 20, "sides"));
}

function checkQuestion(content, question) {
  const { vectors, share, channel, messages, body_bytes, epsilon, alone } = question;
  members(channel, "kind:text levels:list"); // a list of one text passes for the text, but not everywhere
  const cells = content.bucketings[question.bucketing],
    kind = CHANNELS[channel.kind];
  need(cells && kind, `a question of the kind '${channel.kind}', which this client does not know`);
  cost(question);
  members(question, "bucketing:int vectors:object|null share:object|null alone:number|null");
  whole(messages, 1, 2 ** 16, "messages");
  need(channel.levels.length === cells.sizes.length, "levels");
  const { domain, dimension } = content; // of rows; a lattice row may have fewer numbers
  if (vectors) checkVectors(vectors, dimension - (domain.kind === "without" ? domain.beside : 0));
  if (share) {
    keys(share, "key");
    need([share.from, share.to].every(Number.isInteger) && share.from >= 0 && share.from < share.to, "share");
    number(share.to, 0, 2 ** 53, "share");
  }
  const bytes = kind.check(channel, question, cells.sizes);
  question.single = channel.kind !== "blanket" && channel.kind !== "shares";
  // the others have no coins
  need(question.single || (content.trust === "Shuffled" && !share), "messages without a shuffler, or not of everybody");
  need(alone === (content.trust === "Local" ? epsilon : question.single ? alone : null), "alone");
  need(content.trust === "Local" || channel.kind !== "gaussian-vectors", "trust");
  const head = question.single && content.trust === "Shuffled" ? 8 : 0;
  need(body_bytes === messages * (head + bytes), "body_bytes");
}

/** A user answers at most one question of a drawing: their shares do not meet. */
function checkDrawings({ drawings, questions, trust, answer_bytes }) {
  const listed = drawings.flatMap((drawing) => drawing.questions).sort((a, b) => a - b);
  need(listed.length === questions.length && listed.every((q, i) => q === i), "drawings");
  let bytes = 0;
  for (const drawing of drawings) {
    const own = drawing.questions.map((q) => questions[q]),
      shares = own.map(({ share }) => share);
    need(
      own.length === 1 ||
        shares.every((share) => share && share.key.a === shares[0].key.a && share.key.b === shares[0].key.b),
      "shares",
    );
    const ends = shares.length > 1 ? [...shares].sort((a, b) => a.from - b.from) : [];
    need(
      ends.every((share, i) => !i || ends[i - 1].to <= share.from),
      "shares",
    );
    need(drawing.bytes === Math.max(...own.map((q) => q.body_bytes)) + (trust === "Local" ? 0 : 2), "bytes");
    bytes += drawing.bytes;
  }
  need(bytes === answer_bytes && bytes <= 2 ** 26 - 72, "answer_bytes");
}

/** What a user answers, added up, at most: one question of each drawing. */
const together = ({ drawings, questions }, of) =>
  drawings.reduce((sum, drawing) => sum + Math.max(...drawing.questions.map((q) => of(questions[q]))), 0);

/** What a user answers costs at most what the plan does; under Shuffled trust that is what the crowd is for. */
function checkCosts(content) {
  for (const name of ["epsilon", "delta"]) {
    const most = together(content, (question) => question[name]);
    need(
      content.trust === "Shuffled" || most <= content[name] * (1 + ROUNDING),
      "its questions cost more than the plan",
    );
  }
}
