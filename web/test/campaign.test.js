// Rounds of a campaign: read strictly, answered once by a device, and refused by name where the kind is unknown.
import assert from "node:assert/strict";
import { test } from "node:test";

import { canonicalBytes, fingerprint, KINDS, Survey } from "../deniable.js";
import { MemoryStore } from "../memory.js";
import { device, vectors } from "./support.js";

const [FIRST, SECOND] = vectors.surveys.filter(({ spec }) => spec.campaign).map(({ spec }) => spec);
const refused = (kind, message) => ({ name: "DeniableError", kind, ...(message && { message }) });
const ANSWER = { hours: 38.5 };

async function read(spec, options) {
  const bytes = canonicalBytes(spec);
  return Survey.fromBytes(bytes, await fingerprint("survey", bytes), options);
}

const placed = (spec, changes) => {
  const campaign = { ...spec.campaign, ...changes };
  for (const [key, value] of Object.entries(campaign)) if (value === undefined) delete campaign[key];
  return { ...spec, campaign };
};

/** Two rounds that are open at the same time, on one device. */
async function both() {
  const store = new MemoryStore();
  const first = await device(FIRST, { store });
  const { opens, expires, epochs } = FIRST;
  const second = await device(placed({ ...SECOND, opens, expires, epochs }, { first: first.pinned, before: first.pinned }), { store });
  return [first, second];
}

test("both rounds of the vectors are read", async () => {
  assert.deepEqual(KINDS.campaigns, ["narrowing", "regression", "screening"]);
  const [first, second] = [await read(FIRST), await read(SECOND)];
  assert.deepEqual([first.terms.campaign.round, first.terms.campaign.rounds], [1, 2]);
  assert.equal(second.terms.campaign.before, first.fingerprint);
  assert.equal(second.terms.campaign.first, first.fingerprint);
});

test("a campaign of an unknown kind is refused by name, and shown where nothing is answered", async () => {
  const unknown = placed(FIRST, { kind: "guessing", parameters: { depth: 3 } });
  await assert.rejects(read(unknown), refused("unknown", /the campaign "guessing" is unknown to this page, which knows narrowing, regression, screening/));
  const shown = await read(unknown, { toAnswer: false });
  assert.equal(shown.terms.campaign.kind, "guessing");
});

test("a place in a campaign that is none is refused", async () => {
  const wrong = [
    placed(FIRST, { round: 0 }),
    placed(FIRST, { round: 1.0, rounds: 3 }),
    placed(FIRST, { round: 3 }),
    placed(FIRST, { before: "0".repeat(64) }),
    placed(FIRST, { parameters: { cells: 8 } }),
    placed(FIRST, { parameters: { cells: 3, margin: 1 } }),
    placed(FIRST, { parameters: { cells: 16, margin: 1 } }), // the question has 8 cells
    placed(FIRST, { parameters: { cells: 8, margin: 1, depth: 1 } }),
    placed(FIRST, { kind: 7 }),
    placed(SECOND, { tally: "short" }),
    placed(SECOND, { tally: undefined }),
    placed(SECOND, { first: "0".repeat(64) }),
    placed(SECOND, { round: 1 }),
    { ...FIRST, campaign: null },
    { ...FIRST, longitudinal: { rule: "none", epochs: 2 }, budget: { ...FIRST.budget, epsilon: "2" } },
    { ...FIRST, questions: vectors.surveys[0].spec.questions },
  ];
  for (const spec of wrong) await assert.rejects(read(spec), refused("spec"), JSON.stringify(spec.campaign));
});

test("a device answers one round: the second is refused before its answers are looked at", async () => {
  const [first, second] = await both();
  assert.equal(await second.client.otherRound(), null);
  assert.equal((await first.client.answer(ANSWER)).state, "sent");
  assert.equal(await second.client.otherRound(), 1);
  assert.equal(await first.client.otherRound(), null);
  const said = /you took part in round 1, and this is round 2 of the same collection: one device answers one round/;
  for (const answers of [ANSWER, { hours: "not a number" }, {}, null]) {
    await assert.rejects(second.client.answer(answers), refused("round", said));
  }
  assert.equal(second.server.bodies.length, 0);
  assert.equal((await first.client.budget()).spent, "1");
  assert.equal((await first.client.answer(ANSWER)).fresh, false);
});

test("the second round keeps a device from the first", async () => {
  const [first, second] = await both();
  await second.client.answer(ANSWER);
  await assert.rejects(first.client.answer(ANSWER), refused("round", /you took part in round 2, and this is round 1/));
});

test("leaving and coming back is no second round", async () => {
  for (const leave of ["optOut", "withdraw"]) {
    const [first, second] = await both();
    await first.client.answer(ANSWER);
    await first.client[leave]();
    await first.client.optIn();
    await assert.rejects(second.client.answer(ANSWER), refused("round"));
    assert.equal((await second.client.budget()).spent, "1");
  }
});

test("a report that the service refused still was an answer", async () => {
  const [first, second] = await both();
  first.server.replies = [410];
  assert.equal((await first.client.answer(ANSWER)).state, "dropped");
  await assert.rejects(second.client.answer(ANSWER), refused("round"));
});
