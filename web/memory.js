/** A ledger in memory, for tests: what `BrowserStore` does, gone with the page. */
export class MemoryStore {
  #kept;
  #last = Promise.resolve();

  /** `new MemoryStore(other.snapshot())` is a device after a crash, or one that was restored from a copy. */
  constructor(snapshot = undefined) {
    this.#kept = structuredClone(snapshot);
  }

  snapshot() {
    return structuredClone(this.#kept);
  }

  async read() {
    return this.snapshot();
  }

  async update(change) {
    this.#kept = structuredClone(change(this.snapshot()));
  }

  exclusive(task) {
    const run = this.#last.then(task);
    this.#last = run.catch(() => undefined);
    return run;
  }
}
