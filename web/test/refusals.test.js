// What is not exactly the pinned survey, understood in full, over a secure connection, is refused; nothing is sent.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Survey, canonicalBytes, fingerprint, loadProtocol } from "../deniable.js";
import { SERVER, Server, device, spec, twoStages, vectors } from "./support.js";

const refused = (kind) => ({ name: "DeniableError", kind });
const utf8 = (text) => new TextEncoder().encode(text);

async function load(survey) {
  const bytes = canonicalBytes(survey);
  return Survey.fromBytes(bytes, await fingerprint("survey", bytes));
}

test("an altered survey is refused and nothing is sent", async () => {
  const { client, server } = await device();
  const weaker = structuredClone(spec());
  weaker.questions[0].protocol.epsilon = "3/2";
  for (const bytes of [canonicalBytes(weaker), server.bytes.slice(0, -1), new Uint8Array(), utf8("{}")]) {
    server.bytes = bytes;
    await assert.rejects(client.answer({ smoke: "yes" }), refused("spec"));
  }
  assert.ok(server.requests.every(({ method }) => method === "GET"));
});

test("a wrong fingerprint is refused", async () => {
  const { again, server } = await device();
  await assert.rejects(again({ fingerprint: "0".repeat(64) }).answer({ smoke: "yes" }), refused("spec"));
  for (const wrong of ["", "0".repeat(63), "A".repeat(64), undefined]) {
    assert.throws(() => again({ fingerprint: wrong }), refused("spec"));
    await assert.rejects(Survey.fetch(SERVER, wrong, server.fetch), refused("spec"));
  }
  assert.equal(server.bodies.length, 0);
});

test("another kind of fingerprint does not pass for a survey's", async () => {
  const bytes = canonicalBytes(spec());
  await assert.rejects(Survey.fromBytes(bytes, await fingerprint("protocol", bytes)), refused("spec"));
});

test("bytes that two readers could read differently are refused", async () => {
  const text = new TextDecoder().decode(canonicalBytes(spec()));
  for (const other of [
    text.replace('{"budget"', '{"name":"x","budget"'), // a key twice
    text.replace('"version":2', '"version":2.0'),
    text.replace('"version":2', '"version": 2'),
    text.replace("Do you smoke?", "Do you smo\\u006be?"),
    `\ufeff${text}`,
    `${text}\n`,
  ]) {
    assert.notEqual(other, text);
    const bytes = utf8(other);
    await assert.rejects(Survey.fromBytes(bytes, await fingerprint("survey", bytes)), refused("spec"));
  }
});

test("surveys of the shared vectors load", async () => {
  for (const { spec: published, bytes } of vectors.surveys) assert.equal((await load(published)).reportBytes, bytes);
  const monthly = await load(vectors.surveys[3].spec);
  assert.deepEqual([monthly.epsilon, monthly.lifetimeEpsilon, monthly.terms.draws], ["9/4", null, 2]);
  const staged = await load(vectors.surveys.at(-2).spec);
  assert.deepEqual([staged.epsilon, staged.debit, staged.budgetEpsilon, staged.terms.draws], ["3/4", "3", "6", 2]);
  const evolving = await load(vectors.surveys.at(-1).spec);
  assert.deepEqual([evolving.epsilon, evolving.lifetimeEpsilon, evolving.relation, evolving.terms.draws], ["1", "1", "stream", 1]);
  const other = structuredClone(vectors.surveys.at(-1).spec);
  other.longitudinal.changes = 3;
  await assert.rejects(load(other), refused("spec", /other epochs or changes/));
});

test("unknown versions, keys, rules and values of a survey are refused", async () => {
  assert.equal((await load(spec())).name, "habits");
  const base = spec();
  const question = base.questions[0];
  const many = { ...question, protocol: { ...question.protocol, domain: { kind: "integers", low: 0, high: 1024 } } };
  const staged = twoStages();
  assert.equal((await load(staged)).lifetimeEpsilon, "1");
  const bits = { ...staged.questions[0].protocol, protocol: "LOSUE", domain: { kind: "integers", low: 0, high: 19 } };
  const wide = { ...staged, questions: [{ ...staged.questions[0], protocol: bits }] };
  assert.ok((await load({ ...wide, longitudinal: { ...staged.longitudinal, linkable: true } })).terms.longitudinal.linkable);
  for (const changes of [
    { version: 3 },
    { version: "2" },
    { version: 1 },
    { kind: "poll" },
    { extra: 1 },
    { name: " " },
    { owner: "" },
    { questions: [] },
    { questions: [question, question] },
    { questions: [{ ...question, extra: true }] },
    { questions: [{ ...question, id: "Smoke" }] },
    { questions: [{ id: question.id, text: question.text }] },
    { epochs: { ...base.epochs, seconds: 0 } },
    { epochs: { ...base.epochs, grace: 1 } },
    { epochs: { ...base.epochs, origin: "2026-11-01" } },
    { epochs: { ...base.epochs, origin: "2026-11-31T00:00:00Z" } },
    { epochs: { ...base.epochs, origin: "2026-11-02T00:00:00Z" } },
    { longitudinal: { rule: "none", epochs: 3, values: 1 } },
    { longitudinal: { rule: "memoize", epochs: 3 } },
    { longitudinal: { rule: "memoize+fresh", epochs: 3 } },
    { longitudinal: { rule: "two-stage", epochs: 3, values: 1, first: "1", forever: "2" } }, // GRR has one stage
    { ...staged, longitudinal: { ...staged.longitudinal, forever: "3" } },
    { ...staged, longitudinal: { ...staged.longitudinal, first: "2/2" } },
    { ...staged, longitudinal: { ...staged.longitudinal, epochs: 1 } },
    { ...staged, longitudinal: { ...staged.longitudinal, values: 0 } },
    { ...staged, longitudinal: { ...staged.longitudinal, linkable: false } },
    { longitudinal: { rule: "none", epochs: 3, linkable: true } },
    { ...wide, longitudinal: { ...staged.longitudinal } },
    { ...staged, longitudinal: { rule: "two-stage", epochs: 3, values: 1, first: "1" } },
    { ...staged, budget: { group: "guild", epsilon: "1/2" } },
    { ...twoStages({ values: 2 }), budget: { group: "guild", epsilon: "1" } },
    { ...staged, questions: [{ ...staged.questions[0], protocol: { ...staged.questions[0].protocol, domain: many.protocol.domain } }] },
    { longitudinal: { rule: "none", epochs: 0 } },
    { longitudinal: { rule: "none", epochs: 5 } }, // five times epsilon 1 is more than the budget of 4
    { longitudinal: { rule: "memoize", epochs: 3, values: 1 }, questions: [many] },
    { budget: { group: "guild", epsilon: "4/2" } },
    { budget: { group: "guild", epsilon: 4 } },
    { budget: { group: "Guild", epsilon: "4" } },
    { budget: { group: "guild", epsilon: "1000001" } },
    { expires: base.opens },
    { opens: "2026-10-01T00:00:00Z" },
    { retention: "forever" },
    { retention: "reports", delete_days: 7 },
    { retention: "tally", delete_days: 0 },
    { min_reports: 0 },
    { results: "private" },
    { replaces: "abc" },
  ]) {
    await assert.rejects(load({ ...base, ...changes }), refused("spec"), JSON.stringify(changes));
  }
  for (const key of Object.keys(base)) {
    const { [key]: _, ...rest } = base;
    await assert.rejects(load(rest), refused("spec"), `without ${key}`);
  }
});

test("hidden characters and stray blanks are refused in every text of a survey", async () => {
  const base = spec();
  const question = base.questions[0];
  const domain = (values) => ({ ...question.protocol, domain: { kind: "categories", values } });
  const word = { kind: "strings", cells: 64, cohorts: 2, key: "a\u200bb" };
  for (const hidden of ["a\u200bb", "a\u202eb", "a\ufe0fb", "a\u00a0b", "a  b", "a ", "\u{e0061}a", "a\nb"]) {
    for (const changes of [
      { name: hidden },
      { owner: hidden },
      { purpose: hidden },
      { questions: [{ ...question, text: hidden }] },
      { questions: [{ ...question, protocol: domain(["yes", hidden]) }] },
      { questions: [{ ...question, protocol: { ...question.protocol, protocol: "CMS", domain: word } }] },
    ]) {
      await assert.rejects(load({ ...base, ...changes }), { ...refused("spec"), message: /U\+|blank/ });
    }
  }
  const spelled = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u{1f600}";
  assert.equal((await load({ ...base, name: spelled })).name, spelled);
});

test("long numbers and many questions are refused before they cost anything", async () => {
  const base = spec();
  const question = base.questions[0];
  const ask = (epsilon, i) => ({ ...question, id: `q${i}`, protocol: { ...question.protocol, epsilon } });
  const asked = (epsilons) => ({
    questions: epsilons.map(ask),
    longitudinal: { rule: "none", epochs: 1 },
    budget: { group: "guild", epsilon: "1000" },
  });
  const near = (digits, i) => `${10n ** digits + BigInt(2 * i + 1)}/${10n ** digits}`;
  const digits = { ...refused("spec"), message: /more than 100 digits above or below the line: round it/ };
  assert.equal((await load({ ...base, ...asked([near(99n, 0), near(99n, 4)]) })).questions.length, 2);
  await assert.rejects(load({ ...base, ...asked([near(100n, 0)]) }), digits);
  await assert.rejects(load({ ...base, ...asked(Array.from({ length: 60 }, (_, i) => near(900n, i))) }), digits);
  // Short numbers whose sum is long: the denominators have nothing in common.
  const apart = [41n, 47n, 53n, 59n, 65n, 71n, 77n, 83n, 89n].map((i) => `${2n ** i}/${2n ** i - 1n}`);
  await assert.rejects(load({ ...base, ...asked(apart) }), {
    ...digits,
    message: /the sum of the questions' epsilons has more than 100 digits/,
  });
  await assert.rejects(load({ ...base, budget: { group: "guild", epsilon: near(100n, 0) } }), digits);
  const many = { ...base, ...asked(Array(1001).fill("1/1000")) };
  await assert.rejects(load(many), { ...refused("spec"), message: "a survey has at most 1000 questions" });
  const large = { kind: "categories", values: ["a", { integer: "9".repeat(101) }] };
  assert.throws(() => loadProtocol({ ...question.protocol, domain: large }), { message: /more than 100 digits/ });
});

test("a survey of version 1 cannot be collected", async () => {
  const { client, server } = await device(vectors.surveys[0].spec);
  await assert.rejects(client.answer({ smoke: "yes" }), refused("closed"));
  assert.equal(server.bodies.length, 0);
});

test("parameters and domains that are not usable are refused", () => {
  const head = { kind: "protocol", version: 1, protocol: "GRR", epsilon: "1" };
  const domain = { kind: "integers", low: 0, high: 9 };
  const text = { kind: "strings", cells: 64, cohorts: 2, key: "" };
  assert.equal(loadProtocol({ ...head, domain }).name, "GRR");
  for (const changes of [
    { kind: "survey" },
    { version: 2 },
    { protocol: ["GRR"] },
    { protocol: undefined },
    { extra: 1 },
    { epsilon: 1 },
    { epsilon: "0.5" },
    { epsilon: "2/2" },
    { epsilon: "0" },
    { epsilon: "-1" },
    { epsilon: "65" },
    { epsilon: "1/1000001" },
    { epsilon: "1/0" },
    { epsilon: "9".repeat(5000) },
    { domain: null },
    { domain: { kind: "integers", low: 5, high: 5 } },
    { domain: { kind: "integers", low: 0, high: 2 ** 28 } },
    { domain: { kind: "integers", low: 0.5, high: 2 } },
    { domain: { ...domain, step: 2 } },
    { domain: { kind: 1 } },
    { domain: { kind: "categories", values: ["a"] } },
    { domain: { kind: "categories", values: ["a", "a"] } },
    { domain: { kind: "categories", values: ["a", null] } },
    { domain: { kind: "categories", values: ["a", { integer: "5" }] } },
    { domain: { kind: "categories", values: ["a", { fraction: "1/2" }] } },
    { domain: { kind: "categories", values: ["a", "b"], other: "c" } },
    { domain: { kind: "categories", values: ["a", "e\u0301"] } },
    { domain: text },
    { protocol: "OLH" },
    { protocol: "OLH", hash_bits: 11 },
    { protocol: "BLH", hash_bits: 1 },
    { protocol: "THE", threshold: "1/3" },
    { protocol: "THE", threshold: "4/3" },
    { protocol: vectors.cases.find(({ spec: one }) => "subset_size" in one).spec.protocol, subset_size: 10 },
    { protocol: "BlockDesign", cells: 4 },
    { protocol: "BlockDesign", cells: 6, window: 1 },
    { protocol: "BlockDesign", cells: 32, window: 1 },
    { protocol: "BlockDesign", cells: 7, window: 1 },
    { protocol: "BlockDesign", cells: 4, window: 0 },
    { protocol: "BlockDesign", cells: 4, window: 3 },
    { protocol: "BlockDesign", cells: 4, window: 1.5 },
    { protocol: "HadamardResponse", blocks: 3 },
    { protocol: "CMS" },
    { protocol: "CMS", domain: text, hashing: text },
    { protocol: "CMS", domain: { ...text, cells: 63 } },
    { protocol: "CMS", domain: { ...text, cells: 2 ** 28 } },
    { protocol: "CMS", domain: { ...text, key: "a\0" } },
    { protocol: "CMS", domain: { kind: "categories", values: [1, "1"] }, hashing: text },
    { protocol: "RAPPOR", domain: text, bloom_bits: 8, hashes: 5, cohorts: 1 },
    { protocol: "RAPPOR", domain: text, bloom_bits: 8, hashes: 2, cohorts: 1, key: "" },
  ]) {
    const shown = JSON.stringify(changes).slice(0, 100);
    assert.throws(() => loadProtocol({ ...head, domain, ...changes }), refused("spec"), shown);
  }
});

test("an insecure page and an insecure server are refused before any request", async () => {
  const { again, server, pinned } = await device();
  const insecure = ["http://example.org", "ftp://localhost", "nowhere"];
  for (const address of [...insecure, "https://user@example.org", "https://example.org/?q=1"]) {
    assert.throws(() => again({ server: address }), refused("context"), address);
    await assert.rejects(Survey.fetch(address, pinned, server.fetch), refused("context"));
  }
  again({ server: "https://example.org/collect/" });
  globalThis.isSecureContext = false;
  try {
    assert.throws(() => again(), { ...refused("context"), message: /not loaded securely/ });
    await assert.rejects(Survey.fetch(SERVER, pinned, server.fetch), refused("context"));
    await assert.rejects(fingerprint("survey", new Uint8Array()), refused("context"));
  } finally {
    delete globalThis.isSecureContext;
  }
  assert.equal(server.requests.length, 0);
});

test("a server that is down, or does not know the survey, is named as the cause", async () => {
  const { pinned } = await device();
  const down = async () => {
    throw new TypeError("Failed to fetch");
  };
  await assert.rejects(Survey.fetch(SERVER, pinned, down), { ...refused("network"), message: /cannot be reached/ });
  const unknown = async () => new Response("{}", { status: 404 });
  await assert.rejects(Survey.fetch(SERVER, pinned, unknown), { ...refused("network"), message: /404/ });
});

test("in a browser without IndexedDB or Web Locks nothing is sent", async () => {
  const bytes = canonicalBytes(spec());
  const server = new Server(bytes);
  const client = new Client({ server: SERVER, fingerprint: await fingerprint("survey", bytes), fetch: server.fetch });
  await assert.rejects(client.answer({ smoke: "yes" }), refused("storage"));
  assert.equal(server.requests.length, 0);
});
