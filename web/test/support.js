// Parts for tests: a clock, a server that remembers, surveys of the shared vectors.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { canonicalBytes, Client, fingerprint, hex } from "../deniable.js";
import { MemoryStore } from "../memory.js";

export const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));
export const SERVER = "http://localhost:8000";
export const DAY = 86400;
export const START = Date.parse("2026-11-01T00:00:00Z") / 1000;

/** An answer of the file: large integers are written {"integer": "..."}, and records column by column. */
export function answer(written) {
  if (typeof written !== "object") return written;
  if (Array.isArray(written)) return written.map(answer);
  if (Object.keys(written).join() === "integer") return BigInt(written.integer);
  return Object.fromEntries(Object.entries(written).map(([name, value]) => [name, answer(value)]));
}

/** A survey that can be collected: one question with two answers at epsilon 1, a day per epoch, changed as asked. */
export function spec(changes = {}) {
  const smoke = vectors.surveys[0].spec.questions[0];
  return {
    kind: "survey",
    version: 2,
    name: "habits",
    questions: [smoke],
    owner: "Example Guild",
    purpose: "to test",
    epochs: { origin: "2026-11-01T00:00:00Z", seconds: DAY, early: 1, late: 1 },
    longitudinal: { rule: "none", epochs: 3 },
    budget: { group: "guild", epsilon: "4" },
    opens: "2026-11-01T00:00:00Z",
    expires: "2027-11-01T00:00:00Z",
    retention: "tally",
    min_reports: 1,
    ...changes,
  };
}

/** The same in two stages: epsilon 1/2 per report and 1 for ever, asked on fifty days. */
export function twoStages(changes = {}) {
  const base = spec();
  const [smoke] = base.questions;
  const protocol = { ...smoke.protocol, protocol: "LGRR", epsilon: "1/2", forever: "1" };
  const longitudinal = { rule: "two-stage", epochs: 50, values: 1, first: "1/2", forever: "1", ...changes };
  return { ...base, questions: [{ ...smoke, protocol }], longitudinal };
}

/** A server of one survey. `replies` says what to answer to the next reports: a status, "lost" or "unheard". */
export class Server {
  requests = [];
  bodies = [];
  replies = [];

  constructor(bytes) {
    this.bytes = bytes;
  }

  fetch = async (address, options) => {
    this.requests.push({ address, ...options });
    if (options.method === "GET") return new Response(this.bytes);
    const reply = this.replies.shift() ?? 200;
    if (options.method === "DELETE") {
      if (reply === "unheard") throw new TypeError("Failed to fetch");
      if (typeof reply === "object") return Response.json(reply);
      return reply === 200 ? Response.json({ deleted: true }) : new Response("{}", { status: reply });
    }
    if (reply === "unheard") throw new TypeError("Failed to fetch");
    this.bodies.push(Buffer.from(options.body).toString("hex"));
    if (reply === "lost") throw new TypeError("Failed to fetch");
    if (reply.wait) return new Response("{}", { status: 503, headers: { "Retry-After": reply.wait } });
    if (typeof reply === "object") return Response.json(reply);
    const text = reply === 204 ? null : "{}";
    if (reply !== 200) return new Response(text, { status: reply, headers: { "Retry-After": "7" } });
    return Response.json({ accepted: 1, rejected: [] });
  };
}

/** A device with its server, clock and store. */
export async function device(survey = spec(), { store = new MemoryStore(), attempts = 6, ...more } = {}) {
  const bytes = canonicalBytes(survey);
  const pinned = await fingerprint("survey", bytes);
  const server = new Server(bytes);
  const time = { now: START + 3600, slept: [] };
  const options = {
    server: SERVER,
    fingerprint: pinned,
    store,
    attempts,
    fetch: server.fetch,
    now: () => 1000 * time.now,
    sleep: async (seconds) => void time.slept.push(seconds),
    ...more,
  };
  const again = (changes) => new Client({ ...options, ...changes });
  return { client: again(), again, store, server, time, pinned };
}

/** A block of the stream of a vector's seed: SHA-256 of a name, the seed and the number of the block. */
export function hashed(seed, block) {
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64LE(BigInt(seed), 0);
  numbers.writeBigUInt64LE(BigInt(block), 8);
  return createHash("sha256").update("deniable-vector-v1").update(numbers).digest();
}

/** The law of one answer's report: hexadecimal digits -> [numerator, denominator], by running along every branch. */
export function law(protocol, value) {
  const found = new Map();
  const pending = [[]];
  while (pending.length) {
    const script = pending.pop();
    let [place, weight, total] = [0, 1n, 1n];
    const choose = (weights) => {
      const at = script[place] ?? weights.findIndex((one) => one > 0n);
      if (place++ >= script.length) {
        weights.forEach((one, i) => one > 0n && i !== at && pending.push([...script, i]));
        script.push(at);
      }
      weight *= weights[at];
      total *= weights.reduce((a, b) => a + b);
      return at;
    };
    const bits = {
      bernoulli: ({ high, low }) => {
        const chance = (BigInt(high) << 32n) | BigInt(low);
        return choose([2n ** 64n - chance, chance]) === 1;
      },
      integers: (m) => choose(Array(m).fill(1n)),
      draw: (sums) => choose(sums.map((sum, i) => sum - (sums[i - 1] ?? 0n))),
    };
    const report = hex(protocol.draw(protocol.domain.read(value), bits));
    const [a, b] = found.get(report) ?? [0n, 1n];
    found.set(report, [a * total + weight * b, b * total]);
  }
  return found;
}

export const share = ([top, bottom]) => Number((top * 10n ** 18n) / bottom) / 1e18;
