// Telemetry: a page records as often as it likes, and one submission per epoch leaves, with or without an event.
import assert from "node:assert/strict";
import { test } from "node:test";

import { DAY, device, spec } from "./support.js";

// At epsilon 64 a report is the answer but once in 10^27: what was reported can be read.
function usage(changes) {
  const minutes = {
    kind: "protocol",
    version: 1,
    protocol: "GRR",
    domain: { kind: "integers", low: 0, high: 24 },
    epsilon: "64",
  };
  return spec({
    questions: [{ id: "minutes", text: "Minutes of use today", protocol: minutes }],
    longitudinal: { rule: "none", epochs: 20 },
    budget: { group: "acme", epsilon: "10000" },
    ...changes,
  });
}

const IDLE = { idle: { minutes: 0 } };
const sent = (text) => Buffer.from(text, "hex");
const reported = ({ bodies }) => bodies.map((body) => [sent(body).readUInt32LE(4), sent(body)[24]]);

test("the last value of an epoch is sent once it is over", async () => {
  const { client, server, time } = await device(usage(), IDLE);
  for (const value of [3, 12, 7]) assert.equal(await client.record("minutes", value), true);
  assert.deepEqual(reported(server), []);
  time.now += DAY;
  for (const value of [20, 9]) await client.record("minutes", value);
  assert.equal(await client.settle(), 0);
  assert.deepEqual(reported(server), [[0, 7]]);
  time.now += DAY;
  assert.equal(await client.settle(), 1);
  assert.deepEqual(reported(server), [
    [0, 7],
    [1, 9],
  ]);
});

test("values may be added up, and an epoch without an event sends as much", async () => {
  const { client, again, server, time } = await device(usage(), IDLE);
  await client.settle();
  for (let day = 0; day < 4; day++, time.now += DAY) {
    if (day === 2) for (const tab of [client, again(), client]) await tab.record("minutes", 8, { add: true });
    await again().settle(); // a page that was loaded anew
  }
  await client.settle();
  assert.deepEqual(
    reported(server).map(([, value]) => value),
    [0, 0, 24, 0],
  );
  assert.equal(new Set(server.bodies.map(({ length }) => length)).size, 1);
});

test("answers that change: one debit, one width, and a state that goes on over the epochs", async () => {
  const protocol = {
    kind: "protocol",
    version: 1,
    protocol: "Evolving",
    domain: { kind: "categories", values: ["no", "yes"] },
    epsilon: "1",
    epochs: 365,
    changes: 1,
  };
  const { client, again, server, time } = await device(
    spec({
      questions: [{ id: "on", text: "Is it on?", protocol }],
      longitudinal: { rule: "evolving", epochs: 365, changes: 1 },
      budget: { group: "acme", epsilon: "1", relation: "stream" },
    }),
  );
  for (let day = 0; day < 16; day++, time.now += DAY) {
    const { epsilon } = await (day % 2 ? again() : client).answer({ on: day > 7 ? "yes" : "no" });
    assert.equal(epsilon, day ? "0" : "1");
  }
  const numbers = server.bodies.map((body) => sent(body).readUInt16LE(24));
  const { about } = (await client.survey()).questions[0].protocol;
  const lengths = new Set(numbers.map(about).filter(Boolean).map(({ first, last }) => last - first + 1));
  assert.ok(lengths.size <= 1);
  assert.equal(new Set(server.bodies.map(({ length }) => length)).size, 1);
  assert.equal((await client.budget()).spent, "1");
});

test("the budget, opting out and what is no answer", async () => {
  const { client, server, time } = await device(usage({ longitudinal: { rule: "none", epochs: 1 } }), IDLE);
  await assert.rejects(client.record("minutes", 99), { kind: "domain" });
  await assert.rejects(client.record("hours", 1), { kind: "domain" });
  for (let day = 0; day < 3; day++, time.now += DAY) assert.equal(await client.record("minutes", day), true);
  assert.deepEqual(reported(server), [[0, 0]]);
  await client.optOut();
  assert.equal(await client.record("minutes", 5), false);
  assert.equal(await client.settle(), 0);
  assert.equal((await client.state()).remembers, false);
  const bare = await device(usage());
  await assert.rejects(bare.client.settle(), { kind: "domain", message: /without an event/ });
});
