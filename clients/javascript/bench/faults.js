/**
 * Deliberate faults in what privacy rests on, each of which some test must see: `node bench/faults.js`. Ends with 1 if
 * one is not seen. The sources are not touched: a copy is.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FAULTS = [
  ["coins.js", "need(level.symbols === level.size + 1", "need(true", "symbols beyond those that noise has"],
  [
    "bundle.js",
    'need(alone === (content.trust === "Local" ?',
    'need(true || ("" ?',
    "coins of another epsilon than is paid",
  ],
  ["bundle.js", 'question.single || (content.trust === "Shuffled" && !share)', "true", "messages without any coin"],
  ["bundle.js", '=== "Shuffled" && rounds === 1', '=== "Shuffled"', "many rounds for one price"],
  ["bundle.js", "sum + Math.max(", "Math.max(sum, ", "the dearest question in the place of all"],
  ["bundle.js", " && !HIDDEN.test(line)", "", "words that pass for the client's"],
  ["rare-coins.js", "if (!(cap > off)) return [1n, 0n];", "", "a cap around one row alone"],
  ["bundle.js", "=== SINES", "!== undefined", "a table of one's own"],
  ["channels.js", "need(level.at === next && ", "need(", "answers that overlap"],
  ["words.js", "system.getRandomValues(words.subarray(i, i + MOST))", "i", "words that are no secret"],
  ["words.js", ', redirect: "error"', "", "a report and its ticket that are sent on to another host"],
  ["words.js", "ROUNDING = 1e-9", "ROUNDING = 1e-2", "a hundredth more than a lifetime or a plan"],
  [
    "bundle.js",
    '=== "Local" || channel.kind !== "gaussian-vectors"',
    '!== ""',
    "Gaussian reports as a crowd's messages",
  ],
  ["client.js", "sum + p.delta, 0)]", "p.delta, 0)]", "plans whose deltas are not added up"],
  ["client.js", "if (whole.some((limit", "if (whole.slice(0, 1).some((limit", "rounds whose deltas are not added up"],
  [
    "client.js",
    "Math.max(0, most - [epsilon, delta][i])",
    "Math.max(0, most - epsilon)",
    "what is left of delta, less epsilon",
  ],
  [
    "file-store.js",
    "if (dead(lock)) fs.rmSync(lock",
    "if (true) fs.rmSync(lock",
    "a lock that was a dead process's a moment ago",
  ],
  ["client.js", "delta ?? 1e-3]", "delta ?? 1]", "a lifetime of any delta"],
  ["client.js", "(0.5 + chance)", "1", "tries at the same moment as all others"],
  ["client.js", "answer?.status === 201", "answer?.ok", "a report that a stranger's page took"],
  ["client.js", "LATER = [408, 429]", "LATER = [429]", "a report given up that came too slowly"],
  [
    "client.js",
    "ticket ? ticketed(report, ticket) : report",
    "ticket ? Uint8Array.of(0xc3, ...report.subarray(1), ...ticket) : report",
    "a long report that cannot be sent",
  ],
  ["bundle.js", '"kind:text levels:list"', '"levels:list"', "messages without a coin, by a list for their kind"],
  ["bundle.js", "isText(x) && /^[0-9a-f]{64}$/", "/^[0-9a-f]{64}$/", "a plan that is named by a list"],
  ["check.js", "/^(0|[1-9]\\d*)$/", "/^\\d*$/", "a number that is written in two ways"],
  ["bundle.js", "questions.length < 65535", "questions.length < 65536", "a question that is numbered as none"],
  ["rows.js", "return sum > l1 ? scaled(l1 / sum) : v;", "return v;", "vectors beyond their L1 norm"],
  ["rows.js", "(factor * (1 - 2 ** -30))", "factor", "vectors that rounding makes too long"],
  ["noise.js", "if (b >> 63n && !y) return null;", "", "a zero that is drawn twice as often"],
  ["words.js", "i += MOST", "i += 2 * MOST", "half of many words are zero"],
  ["coins.js", "symbol >= 0 && coin < level.keep ?", "symbol >= 0 ?", "the true symbol, always"],
  [
    "coins.js",
    "return [(ALL - keep) * least + keep * ALL, (ALL - keep) * least];\n};\n\n/** One",
    "return [ALL, ALL - keep];\n};\n\n/** One",
    "a ratio without the number of symbols",
  ],
  ["rare-coins.js", "BigInt(i) === id ? HALF : flip", "BigInt(i) === id ? ALL : flip", "the own bit, always"],
  ["rare-coins.js", "const turn = words[m + 1] < keep ? own :", "const turn = true ? own :", "the own bucket, always"],
  [
    "rare-coins.js",
    "ratio: ({ flip }) => [ALL - flip, flip]",
    "ratio: ({ flip }) => [HALF, flip]",
    "a ratio of one bit of two",
  ],
  ["coins.js", "need(level.near * k +", "need(true || level.near * k +", "chances that do not add up to one"],
  ["coins.js", "(near > far ? [near, far] : [far, near])", "[near, far]", "a codebook's far that is dear"],
  [
    "rare-coins.js",
    "(2n * coin > ALL ? [coin, ALL - coin] : [ALL - coin, coin])",
    "[coin, ALL - coin]",
    "a dear wrong side",
  ],
  ["rare-coins.js", "2 ** 29 + 2 ** -25", "2 ** 29 + 2 ** -26", "a cap that is less certain than is said"],
  ["bundle.js", "need(finite && text", "need(true || text", "a member that stands twice"],
  ["bundle.js", "BigInt.asUintN(52, bits) === 0n", "true", "a unit by which a quotient is not exact"],
  ["check.js", "size < 1n << 62n", "true", "buckets beyond 64 bits"],
  ["buckets.js", "every(narrow)", "every(Boolean)", "vectors whose squares wrap"],
  [
    "buckets.js",
    "return [zero, ids.map(() => NONE)];",
    "return [zero, ids];",
    "a row that failed, and shows where it is",
  ],
  ["channels.js", "channel.l2 === vectors.l2", "true", "vectors of another bound"],
  ["rare-channels.js", "need(!question.vectors", "need(true", "blankets of vectors"],
  ["client.js", "Math.min(own[0], lifetime ?? Infinity)", "own[0]", "a publisher's smaller lifetime"],
  ["client.js", "if (paid.same !== same)", "if (false)", "a plan that becomes dearer, or asks more rounds"],
  ["rare-coins.js", "if (own[0] < coin || product", "if (product", "nothing outside the cap"],
  [
    "rare-coins.js",
    "(kept(cap + off) / (t * kept(cap - off)) / (1 + 2 ** -26))",
    "(1 / t / 1.2)",
    "a bound that is none",
  ],
  ["channels.js", "level_key === null ? levels.length : 1", "1", "levels whose epsilons are not added up"],
  ["exact.js", ">= expBounds([e, under * BigInt(parts)], 256n)[1] * n", "> 0n * n", "coins that are not checked"],
  ["rare-channels.js", "question.delta * (1 + 1e-6)", "1", "noise that is not checked"],
  ["bundle.js", "most <= content[name] * (1 + ROUNDING)", "true", "questions that cost more than the plan"],
  ["bundle.js", "ends[i - 1].to <= share.from", "true", "shares that overlap"],
  ["bundle.js", "if (sha256 && name !== sha256.toLowerCase())", "if (false)", "another bundle than the announced one"],
  ["bundle.js", "(await digest(bin)) === content.arrays.sha256", "true", "arrays that were changed"],
  ["buckets.js", "ids[i] < BigInt(size)", "true", "a bucket that is not there"],
  ["encode.js", "for (const secret of drawn) secret.fill(0n);", "", "words that are kept"],
  ["encode.js", "Number.isFinite(x)", "true", "rows that are not finite"],
  [
    "client.js",
    "await store.update((state) => charge(opened(state), content, number, questions));",
    "await store.update((state) => (charge(opened(state), content, number, questions), draw(webCrypto), 0));",
    "drawn in the charge",
  ],
  ["client.js", "if (!own.report) own.costs =", "if (false) own.costs =", "a dear bundle at the price of a cheap one"],
  ["client.js", "own.report ??= hex", "own.report = hex", "drawn anew each time"],
  ["client.js", "if (own.head !== head)", "if (false)", "two versions of one round"],
  ["client.js", "if (paid && paid.user !== String(user))", "if (false)", "a person with two numbers"],
  ["client.js", "most(i) > limit * (1 + ROUNDING)", "false", "rounds that cost more than the plan"],
  ["client.js", "if (cost > left + most * ROUNDING)", "if (false)", "a lifetime that bounds nothing"],
  ["client.js", "if (!before)", "if (false)", "a lifetime that is not looked at"],
  ["client.js", "if (given.some((now, i) => now > old[i]))", "if (false)", "a lifetime that is raised"],
  [
    "client.js",
    "    await this.#promise();\n    const questions",
    "    const questions",
    "a lifetime that a refused plan does not lower",
  ],
  [
    "stores.js",
    "const state = structuredClone(this.#state)",
    "const state = this.#state",
    "changes that raised, and stay",
  ],
  ["file-store.js", "if (made(lock, own)) return;", "return;", "processes at once"],
  ["file-store.js", "if (place !== PLACE) return false;", "", "a process of another container, called dead"],
  ["file-store.js", 'textOf("/proc/sys/kernel/random/boot_id")', '"-"', "a lock that does not know its machine's start"],
  ["file-store.js", "if (textOf(lock) !== own)", "if (false)", "a change by who has lost the lock"],
  ["file-store.js", "if (textOf(lock) === own) fs", "fs", "another one's lock taken off"],
  ["file-store.js", "if (known) throw", "if (false) throw", "a state that is gone, and everything is asked anew"],
  ["file-store.js", "  fs.fsyncSync(folder);\n", "", "a charge that a power cut undoes"],
  ["file-store.js", "    fs.fsyncSync(file);\n", "", "a report that a power cut empties"],
  [
    "file-store.js",
    "return false;\n  } catch (error) {\n    return error.code",
    "return true;\n  } catch (error) {\n    return error.code",
    "a living process's lock",
  ],
  ["file-store.js", 'fs.openSync(fresh, "w", 0o600)', 'fs.openSync(fresh, "w", 0o644)', "a file that others read"],
];

const source = fileURLToPath(new URL("..", import.meta.url));
for (const [file, old, , what] of FAULTS)
  if (readFileSync(join(source, "src", file), "utf8").split(old).length !== 2)
    throw new Error(`${what}: its line does not stand once in ${file}`);

const only = process.argv.slice(2); // words of the faults to look for; "-" only checks that all of them still apply
const root = mkdtempSync(join(tmpdir(), "cloister-faults-")),
  copy = join(root, "clients", "javascript");
const passes = () => spawnSync(process.execPath, ["--test"], { cwd: copy, timeout: 120_000 }).status === 0;

function seen([file, old, fault, what]) {
  const path = join(copy, "src", file),
    text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(old, () => fault),
  );
  const found = !passes();
  writeFileSync(path, text);
  console.log(`${found ? "seen    " : "NOT SEEN"} ${what}`);
  return found;
}

const tried = FAULTS.filter(([, , , what]) => !only.length || only.some((words) => what.includes(words)));
if (tried.length) {
  const skipped = /node_modules|package\.test\.js/;
  cpSync(source, copy, { recursive: true, filter: (path) => !skipped.test(path) });
  cpSync(join(source, "../../tests/vectors"), join(root, "tests", "vectors"), { recursive: true });
  if (!passes()) throw new Error("the tests fail without a fault");
}
const unseen = tried.filter((fault) => !seen(fault));
rmSync(root, { recursive: true });
process.exitCode = unseen.length ? 1 : 0;
