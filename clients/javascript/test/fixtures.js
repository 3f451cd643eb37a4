/** Bundles and cases of the vectors that all clients share (`tests/vectors`). */
import { existsSync, readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../../tests/vectors/", import.meta.url);
const DIST = process.env.CLIENT === "dist"; // what is published, in place of the sources
export const client = await import(DIST ? "../dist/cloister-client.js" : "../src/index.js");
export const { FileStore } = await import(DIST ? "../dist/file-store.js" : "../src/file-store.js");

export const vectors = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));
export const names = () =>
  existsSync(FOLDER)
    ? readdirSync(FOLDER)
        .filter((name) => name.endsWith(".json"))
        .map((name) => name.slice(0, -5))
    : [];

const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const utf8 = (text) => new TextEncoder().encode(text);

/** A bundle's two files, whose content a test may change. */
export function files({ bundle, arrays }, change) {
  if (!change) return { json: utf8(bundle), bin: bytes(arrays) };
  const content = JSON.parse(bundle);
  change(content);
  return { json: utf8(`${JSON.stringify(content)}\n`), bin: bytes(arrays) };
}

/** The bundle of a round of a method's vectors. */
export const loaded = (name, round = 1, change = undefined, options = {}) =>
  client.Bundle.load(files(vectors(name).bundles[round - 1], change), options);

export const hex = (data) => data && Buffer.from(data).toString("hex");

/** Secret words that are given, each once. */
export function replayed(words) {
  let at = 0;
  return (n) => BigUint64Array.from(words.slice(at, (at += n)), (word) => BigInt(`0x${word}`));
}

/** Calls see(array) whenever the system is asked for random numbers, until it is undone. */
export function watched(see) {
  const own = crypto.getRandomValues;
  const value = (some) => own.call(crypto, (see(some), some));
  Object.defineProperty(crypto, "getRandomValues", { configurable: true, value });
  return () => delete crypto.getRandomValues;
}

/** What is raised, which must be a refusal of a kind, in words. */
export async function refusal(run, kind) {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof client.Refused) || error.kind !== kind) throw error;
    return error.message;
  }
  throw new Error("nothing was refused");
}
