import type { Store } from "./deniable.js";

/** A ledger in memory, for tests. */
export class MemoryStore implements Store {
    constructor(snapshot?: unknown);
    snapshot(): unknown;
    read(): Promise<unknown>;
    update(change: (kept: unknown) => unknown): Promise<void>;
    exclusive<T>(task: () => Promise<T>): Promise<T>;
}
