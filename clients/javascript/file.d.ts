import type { Store } from "cloister-client";

/** In Node: a file that only its owner may read. Processes wait for one another. */
export declare class FileStore implements Store {
  constructor(path: string);
  update<T>(fn: (state: Record<string, any>) => T): Promise<T>;
}
