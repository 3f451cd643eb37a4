/** Uniform secret 64-bit words, so many of them. The default is the system's (`crypto.getRandomValues`). */
export type Words = (count: number) => BigUint64Array;

/** A row: finite numbers in the plan's units, as a list or by the names of the plan's columns. */
export type Row = ArrayLike<number> | Readonly<Record<string, number>>;

/** Where a bundle's two files come from: the URL of its JSON, their bytes, or what gets them. */
export type Source =
  | string
  | URL
  | { json: Uint8Array; bin: Uint8Array }
  | ((ending: ".json" | ".bin") => Promise<Uint8Array> | Uint8Array);

/** A refusal in words. Nothing was sent, and nothing about a row is said. */
export declare class Refused extends Error {
  constructor(kind: Refused["kind"], text: string);
  readonly kind: "input" | "bundle" | "budget" | "round" | "state" | "server";
}

/** Everything public that a device needs to answer one round, checked. */
export declare class Bundle {
  private constructor();

  /**
   * Read and check a bundle: format, hashes, every field's range, and that the coins keep the promised epsilon.
   * @param options.sha256 its name: another one is refused
   * @param options.plan the plan's hash: another one is refused
   */
  static load(source: Source, options?: { sha256?: string; plan?: string; fetch?: typeof fetch }): Promise<Bundle>;

  /** SHA-256 of its JSON, in hex. */
  readonly sha256: string;

  /** What the person who answers is promised, in words: show it to her. */
  get promise(): string;

  /** Its JSON, with arrays and keys in their places. */
  readonly content: {
    readonly plan: string;
    readonly head: string;
    readonly round: number;
    readonly rounds: number;
    readonly trust: "Local" | "Shuffled";
    readonly method: string;
    readonly k: number;
    readonly users: number;
    readonly dimension: number;
    readonly columns: readonly string[] | null;
    readonly epsilon: number;
    readonly delta: number;
    readonly words: readonly string[];
    readonly warnings: readonly string[];
    readonly [field: string]: unknown;
  };
}

/**
 * The report of a user's row: 18 bytes and her answer. Every call draws anew, and so spends anew: a `Client` remembers.
 * @returns null if the round asks this user nothing
 */
export declare function encode(
  bundle: Bundle,
  row: Row,
  user: number | bigint | string,
  words?: Words,
): Uint8Array | null;

/** Where a client remembers. `update` runs fn alone; what fn gives comes back once the changed state is durable. */
export interface Store {
  update<T>(fn: (state: Record<string, any>) => T): Promise<T>;
}

/** For tests, and for devices that forget: without a memory a row that is answered twice is paid for twice. */
export declare class MemoryStore implements Store {
  update<T>(fn: (state: Record<string, any>) => T): Promise<T>;
}

/** In a browser; tabs wait for one another. */
export declare class IndexedDBStore implements Store {
  constructor(name?: string);
  update<T>(fn: (state: Record<string, any>) => T): Promise<T>;
}

export interface ClientOptions {
  /** Of the collector; `answer` and `spent` do without it. */
  url?: string | URL;
  /** The person's number in the plan. One store is one person. */
  user: number | bigint | string;
  store: Store;
  /** Most epsilon that she may ever spend, over all plans; the store keeps it, and it can only be lowered. */
  lifetime?: number;
  /** The same for delta; 0.001 with a new lifetime. */
  lifetimeDelta?: number;
  /** The hash of the only plan that is answered. */
  plan?: string;
  /** 64 bytes that a collector with tickets wants; others are refused at once. */
  ticket?: Uint8Array;
  fetch?: typeof fetch;
  /** Waits so many seconds between two tries. */
  pause?: (seconds: number) => Promise<unknown>;
}

export type Answer =
  | { status: "accepted" | "duplicate" | "sent"; round: number; report: Uint8Array }
  | { status: "closed" | "nothing"; round: number };

/** A person's side of plans: charges before it draws, remembers before it sends, gives the same bytes again. */
export declare class Client {
  constructor(options: ClientOptions);

  /** The report of a round, drawn once. Null if nothing is asked of her. */
  answer(bundle: Bundle, row: Row): Promise<Uint8Array | null>;

  /** Send a report of this user until the collector has it; another number's is refused. */
  send(report: Uint8Array): Promise<"accepted" | "duplicate">;

  /** Answer the collector's open round, if that was not done. */
  answerOpenRound(row: Row): Promise<Answer>;

  /** The bundle of a round that the collector announced. */
  bundle(announced: {
    bundle: string | null;
    sha256?: string | null;
    plan: string;
    round: number;
    head: string;
  }): Promise<Bundle>;

  /** What was spent over all plans, and what is left of the lifetime: [epsilon, delta], null without one. */
  spent(): Promise<{ epsilon: number; delta: number; left: [number, number] | null }>;
}
