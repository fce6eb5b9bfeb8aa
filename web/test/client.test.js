// The ledger's promises: debit before sending, the same bytes on every try, caps, withdrawal, silence when opted out.
import assert from "node:assert/strict";
import { test } from "node:test";

import { loadProtocol } from "../deniable.js";
import { MemoryStore } from "../memory.js";
import { DAY, SERVER, device, spec } from "./support.js";

const refused = (kind, message) => ({ name: "DeniableError", kind, ...(message && { message }) });
const memoized = (changes) => spec({ longitudinal: { rule: "memoize", epochs: 50, values: 2, ...changes } });

test("an answer becomes one request of fixed form", async () => {
  const { client, server, pinned } = await device();
  const receipt = await client.answer({ smoke: "yes" });
  const [survey, report] = server.requests;
  assert.equal(survey.address, `${SERVER}/v1/surveys/${pinned}`);
  assert.equal(report.address, `${SERVER}/v1/surveys/${pinned}/reports`);
  assert.equal(report.method, "POST");
  assert.deepEqual(report.headers, { "Content-Type": "application/vnd.deniable.reports" });
  for (const request of server.requests) {
    assert.equal(request.credentials, "omit");
    assert.equal(request.referrerPolicy, "no-referrer");
    assert.equal(request.cache, "no-store");
    assert.equal(request.redirect, "error");
  }
  const body = Buffer.from(report.body);
  assert.equal(body.length, 8 + 16 + 1);
  assert.equal(body.subarray(0, 4).toString(), "DNR1");
  assert.equal(body.readUInt32LE(4), 0);
  assert.equal(body.subarray(8, 24).toString("hex"), receipt.id);
  assert.ok(body[24] < 2);
  assert.deepEqual(receipt.bytes, new Uint8Array(report.body));
  assert.equal(receipt.state, "sent");
  assert.equal(receipt.epsilon, "1");
  assert.equal(server.requests.length, 2);
});

test("the report of a device is random: both answers leave", async () => {
  const last = await Promise.all(
    Array.from({ length: 64 }, async () => (await (await device()).client.answer({ smoke: "yes" })).bytes.at(-1)),
  );
  // At epsilon 1 all 64 agree with probability below 0.74^64, about 4e-9.
  assert.deepEqual([...new Set(last)].sort(), [0, 1]);
});

test("one submission an epoch: the second answer gives the receipt of the first", async () => {
  const { client, again, server, time } = await device();
  const first = await client.answer({ smoke: "yes" });
  assert.equal(first.fresh, true);
  for (const other of [client, again()]) {
    assert.deepEqual(await other.answer({ smoke: "no" }), { ...first, fresh: false });
  }
  assert.equal(server.bodies.length, 1);
  time.now += DAY;
  assert.notDeepEqual(await client.answer({ smoke: "yes" }), first);
  assert.equal(server.bodies.length, 2);
});

test("answers at the same moment are one submission", async () => {
  const { client, again, server } = await device();
  const receipts = await Promise.all([client, again(), again()].map((tab) => tab.answer({ smoke: "yes" })));
  assert.equal(new Set(receipts.map(({ id }) => id)).size, 1);
  assert.equal(server.bodies.length, 1);
  assert.equal((await client.budget()).spent, "1");
});

test("the number of epochs is a cap", async () => {
  const { client, time, server } = await device();
  for (let day = 0; day < 3; day++, time.now += DAY) await client.answer({ smoke: "yes" });
  await assert.rejects(client.answer({ smoke: "yes" }), refused("budget"));
  assert.equal(server.bodies.length, 3);
});

test("a budget is shared by all surveys of its group and counts exactly", async () => {
  const make = (name) => {
    const made = structuredClone(spec({ name, budget: { group: "guild", epsilon: "1" } }));
    made.longitudinal.epochs = 1;
    made.questions[0].protocol.epsilon = "1/3";
    return made;
  };
  const store = new MemoryStore();
  for (const name of ["a", "b", "c"]) {
    const { client } = await device(make(name), { store });
    await client.answer({ smoke: "no" });
  }
  const { client, server } = await device(make("d"), { store });
  assert.deepEqual(await client.budget(), { group: "guild", cap: "1", spent: "1", left: "0", enough: false });
  await assert.rejects(client.answer({ smoke: "no" }), refused("budget"));
  assert.equal(server.bodies.length, 0);
  const elsewhere = await device(spec({ budget: { group: "other", epsilon: "3" } }), { store });
  assert.equal((await elsewhere.client.answer({ smoke: "no" })).state, "sent");
});

test("repeated reports cost nothing until a withdrawal, and the refusal says so before an answer is asked for", async () => {
  const often = memoized({ values: 1 });
  const { client, time } = await device({ ...often, budget: { group: "guild", epsilon: "1" } });
  for (let day = 0; day < 3; day++, time.now += DAY) {
    assert.equal((await client.budget()).enough, true);
    await client.answer({ smoke: "yes" });
  }
  await client.withdraw();
  await client.optIn();
  assert.deepEqual(await client.budget(), { group: "guild", cap: "1", spent: "1", left: "0", enough: false });
  const words = /^this device has given away as much as all surveys of "guild" together may learn from it/;
  await assert.rejects(client.answer({ smoke: "yes" }), refused("budget", words));
});

test("a renewed survey cannot raise the budget of its group", async () => {
  const store = new MemoryStore();
  const once = { longitudinal: { rule: "none", epochs: 1 }, budget: { group: "guild", epsilon: "1" } };
  const small = await device(spec(once), { store });
  await small.client.answer({ smoke: "no" });
  const large = await device(spec({ budget: { group: "guild", epsilon: "1000" } }), { store });
  await assert.rejects(large.client.answer({ smoke: "no" }), refused("budget"));
  assert.equal(large.server.bodies.length, 0);
});

test("a crash between debit and sending: the same bytes leave later, and nothing is spent twice", async () => {
  const { client, again, store, server } = await device(spec(), { attempts: 1 });
  server.replies = ["unheard"];
  const before = await client.answer({ smoke: "yes" });
  assert.equal(before.state, "queued");
  const restarted = again({ store: new MemoryStore(store.snapshot()) });
  assert.equal(await restarted.deliver(), 0);
  assert.equal(server.bodies[0], Buffer.from(before.bytes).toString("hex"));
  assert.deepEqual(
    (await restarted.history()).map(({ state }) => state),
    ["sent"],
  );
  assert.equal((await restarted.budget()).spent, "1");
});

test("a ledger restored from a copy repeats the report under the same id", async () => {
  const { client, again, store, server, time } = await device(spec());
  await client.answer({ smoke: "yes" });
  const copy = store.snapshot();
  time.now += DAY;
  const first = await client.answer({ smoke: "no" });
  const second = await again({ store: new MemoryStore(copy) }).answer({ smoke: "no" });
  assert.deepEqual(second, first);
  assert.equal(server.bodies[1], server.bodies[2]);
});

test("the debit is on disk before the first byte leaves", async () => {
  const { again, store, server } = await device();
  const seen = [];
  const client = again({
    fetch: async (address, options) => {
      if (options.method === "POST") {
        const ledger = store.snapshot();
        seen.push([ledger.groups.get("guild").spent, [...ledger.surveys.values()][0].submissions[0].bytes.length]);
      }
      return server.fetch(address, options);
    },
  });
  await client.answer({ smoke: "yes" });
  assert.deepEqual(seen, [["1", 25]]);
});

test("a store that cannot write: nothing leaves", async () => {
  const store = new MemoryStore();
  store.update = async () => {
    throw new Error("disk full");
  };
  const { client, server } = await device(spec(), { store });
  await assert.rejects(client.answer({ smoke: "yes" }));
  assert.equal(server.bodies.length, 0);
});

test("an unreadable ledger fails closed", async () => {
  for (const broken of [{ version: 2 }, { version: 1, groups: {} }, null, 7]) {
    const { client, server } = await device(spec(), { store: new MemoryStore(broken) });
    await assert.rejects(client.answer({ smoke: "yes" }), refused("storage"));
    assert.equal(server.requests.length, 0);
  }
});

test("5xx, 429 and a broken network: the same bytes again, with growing, jittered pauses", async () => {
  const { client, server, time } = await device();
  server.replies = [503, 429, "lost", "unheard", 500];
  assert.equal((await client.answer({ smoke: "yes" })).state, "sent");
  assert.equal(server.bodies.length, 5);
  assert.equal(new Set(server.bodies).size, 1);
  assert.equal(time.slept.length, 5);
  time.slept.forEach((pause, i) => assert.ok(pause >= 1 && pause <= Math.max(7, Math.min(30, 2 ** (i + 1)))));
  assert.ok(time.slept[0] === 7 && time.slept[1] === 7, "Retry-After is kept");
});

test("pauses stay within 1 to 30 seconds and differ between devices", async () => {
  const firsts = new Set();
  for (let run = 0; run < 8; run++) {
    const { client, server, time } = await device(spec(), { attempts: 12 });
    server.replies = Array(12).fill("unheard");
    assert.equal((await client.answer({ smoke: "yes" })).state, "queued");
    assert.equal(time.slept.length, 11);
    assert.ok(time.slept.every((pause) => pause >= 1 && pause <= 30));
    firsts.add(time.slept[0]);
  }
  assert.ok(firsts.size > 1);
});

test("other 4xx and rejected reports are dropped, counted and never sent again", async () => {
  for (const [reply, reason] of [
    [413, "status 413"],
    [410, "status 410"],
    [400, "status 400"],
    [{ accepted: 0, rejected: [[0, "x", "epochTooOld"]] }, "epochTooOld"],
  ]) {
    const { client, server } = await device();
    server.replies = [reply];
    const receipt = await client.answer({ smoke: "yes" });
    assert.deepEqual([receipt.state, receipt.reason], ["dropped", reason]);
    await client.deliver();
    assert.equal(server.bodies.length, 1);
  }
});

test("a wrong key or address loses nothing", async () => {
  for (const status of [401, 403, 404, 405, 407, 408]) {
    const { client, server } = await device(spec(), { attempts: 1 });
    server.replies = [status];
    assert.equal((await client.answer({ smoke: "yes" })).state, "queued");
    assert.equal(await client.deliver(), 0);
    assert.equal(server.bodies.length, 2);
    assert.equal(new Set(server.bodies).size, 1);
  }
});

test("a reply that is none of the service keeps the report waiting; a long Retry-After is left for later", async () => {
  for (const reply of [302, 204, { hello: "portal" }, { accepted: 0, rejected: [] }]) {
    const { client, server } = await device(spec(), { attempts: 1 });
    server.replies = [reply];
    assert.equal((await client.answer({ smoke: "yes" })).state, "queued");
    assert.equal(await client.deliver(), 0);
    assert.equal(server.bodies[0], server.bodies[1]);
  }
  const { client, server, time } = await device();
  server.replies = [{ wait: "120" }];
  assert.equal((await client.answer({ smoke: "yes" })).state, "queued");
  assert.deepEqual(time.slept, []);
  assert.equal(server.bodies.length, 1);
});

test("withdrawal deletes secret, memos, outbox and history; what was spent stays spent", async () => {
  const { client, store, server, time } = await device(memoized());
  await client.answer({ smoke: "yes" });
  time.now += DAY;
  server.replies = Array(6).fill("unheard");
  const { id, bytes } = await client.answer({ smoke: "no" });
  const plain = (_, value) => (value instanceof Map || value instanceof Uint8Array ? [...value] : value);
  const written = () => JSON.stringify(store.snapshot(), plain);
  const traces = [id, "secret", "digest", [...bytes].join()];
  for (const trace of traces) assert.ok(written().includes(trace));
  await client.withdraw();
  for (const trace of traces) assert.ok(!written().includes(trace));
  assert.equal(await client.deliver(), 0);
  assert.equal(server.bodies.length, 1);
  await assert.rejects(client.answer({ smoke: "yes" }), refused("optedOut"));
  assert.deepEqual(
    (await client.history()).map(({ state }) => state),
    ["withdrawn", "withdrawn"],
  );
  // Who comes back draws from a new secret and pays anew; the epoch that was answered stays answered.
  await client.optIn();
  assert.equal((await client.answer({ smoke: "yes" })).state, "withdrawn");
  assert.equal((await client.budget()).spent, "2");
  time.now += DAY;
  assert.equal((await client.answer({ smoke: "yes" })).state, "sent");
  assert.equal((await client.budget()).spent, "3");
});

test("opted out: no request at all", async () => {
  const { client, again, server, time } = await device(spec(), { attempts: 1 });
  server.replies = ["unheard"];
  await client.answer({ smoke: "yes" });
  const before = server.requests.length;
  await client.optOut();
  time.now += DAY;
  for (const tab of [client, again()]) {
    await assert.rejects(tab.answer({ smoke: "yes" }), refused("optedOut"));
    assert.equal(await tab.deliver(), 0);
    assert.equal((await tab.budget()).spent, "1");
  }
  assert.deepEqual(
    (await client.history()).map(({ state, reason }) => [state, reason]),
    [["dropped", "optedOut"]],
  );
  await client.optIn();
  await client.deliver();
  assert.equal(server.requests.length, before);
  assert.equal((await client.answer({ smoke: "yes" })).state, "sent");
});

test("opted out before anything was answered: not even the survey is fetched", async () => {
  const { client, server } = await device();
  await client.optOut();
  for (const call of ["survey", "budget"]) await assert.rejects(client[call](), refused("optedOut"));
  await assert.rejects(client.answer({ smoke: "yes" }), refused("optedOut"));
  assert.deepEqual(await client.history(), []);
  assert.equal(server.requests.length, 0);
});

test("storage that is cleared while a report is on its way harms nothing", async () => {
  const { again, store, server } = await device();
  const client = again({
    fetch: async (address, options) => {
      if (options.method === "POST") await store.update(() => undefined);
      return server.fetch(address, options);
    },
  });
  await client.answer({ smoke: "yes" });
  assert.deepEqual(await client.history(), []);
  assert.equal(server.bodies.length, 1);
});

test("opting out while a report is on its way stops the retries", async () => {
  const { again, server } = await device();
  server.replies = Array(6).fill("unheard");
  const client = again({ sleep: () => client.optOut() });
  assert.equal((await client.answer({ smoke: "yes" })).state, "dropped");
  assert.equal(server.requests.length, 2);
});

test("memoized answers repeat bit for bit, under a new id each epoch", async () => {
  const { client, time, server } = await device(memoized());
  for (let day = 0; day < 12; day++, time.now += DAY) await client.answer({ smoke: "yes" });
  const reports = server.bodies.map((body) => body.slice(-2));
  assert.equal(new Set(reports).size, 1);
  assert.equal(new Set(server.bodies.map((body) => body.slice(16, 48))).size, 12);
});

test("fresh answers do not repeat", async () => {
  const often = { longitudinal: { rule: "none", epochs: 64 }, budget: { group: "guild", epsilon: "64" } };
  const { client, time, server } = await device(spec(often));
  for (let day = 0; day < 64; day++, time.now += DAY) await client.answer({ smoke: "yes" });
  assert.deepEqual([...new Set(server.bodies.map((body) => body.slice(-2)))].sort(), ["00", "01"]);
});

test("memoized answers are paid for by their number, so that spending does not tell when one changed", async () => {
  const spending = async (answers) => {
    const { client, time } = await device(memoized());
    const spent = [];
    for (const smoke of answers) {
      await client.answer({ smoke });
      spent.push((await client.budget()).spent);
      time.now += DAY;
    }
    return spent;
  };
  assert.deepEqual(await spending(["yes", "yes", "yes", "yes"]), ["1", "2", "2", "2"]);
  assert.deepEqual(await spending(["yes", "no", "yes", "no"]), ["1", "2", "2", "2"]);
});

test("a survey that was answered is not fetched again", async () => {
  const { client, again, server, time } = await device();
  await client.answer({ smoke: "yes" });
  time.now += DAY;
  await again().answer({ smoke: "yes" });
  assert.deepEqual(
    server.requests.map(({ method }) => method),
    ["GET", "POST", "POST"],
  );
});

test("beyond the cap of memoized values the first report is repeated, never silence", async () => {
  const survey = structuredClone(memoized());
  survey.questions[0].protocol.domain = { kind: "integers", low: 0, high: 999 };
  const { client, time, server } = await device(survey);
  for (const smoke of [5, 6, 7, 8, 6, 5]) {
    await client.answer({ smoke });
    time.now += DAY;
  }
  const reports = server.bodies.map((body) => body.slice(-4));
  assert.equal(reports.length, 6);
  assert.deepEqual([reports[2], reports[3], reports[5]], [reports[0], reports[0], reports[0]]);
  assert.equal(reports[4], reports[1]);
  assert.notEqual(reports[0], reports[1]); // equal by chance in one run of 998
});

test("closed before it opens and after it expires; a clock that goes back opens no epoch twice", async () => {
  const { client, server, time } = await device();
  time.now -= 2 * DAY;
  await assert.rejects(client.answer({ smoke: "yes" }), refused("closed"));
  time.now += 400 * DAY;
  await assert.rejects(client.answer({ smoke: "yes" }), refused("closed"));
  assert.equal(server.bodies.length, 0);
  time.now -= 390 * DAY;
  const receipts = [];
  for (const step of [0, DAY, -DAY, DAY]) {
    time.now += step;
    receipts.push((await client.answer({ smoke: "yes" })).id);
  }
  assert.deepEqual([receipts[2], receipts[3]], [receipts[0], receipts[1]]);
  assert.equal(server.bodies.length, 2);
});

test("every question needs an answer, and messages never contain it", async () => {
  const { client, server } = await device();
  const secret = "sentinel-7391";
  for (const values of [
    {},
    { smoke: secret },
    { smoke: null },
    { smoke: NaN },
    { smoke: [secret] },
    { smoke: { [secret]: 1 } },
    { smoke: 7391 },
    { [secret]: "yes" },
    { smoke: "yes", [secret]: "no" },
    [secret],
    secret,
    null,
  ]) {
    await assert.rejects(client.answer(values), (error) => {
      assert.equal(error.kind, "domain");
      assert.doesNotMatch(`${error.message} ${error.stack}`, /7391/);
      return true;
    });
  }
  assert.equal(server.bodies.length, 0);
  assert.deepEqual(await client.history(), []);
});

test("answers outside a domain are refused without being named", () => {
  const head = { kind: "protocol", version: 1, protocol: "GRR", epsilon: "1" };
  const numbers = loadProtocol({ ...head, domain: { kind: "integers", low: 1, high: 10 } });
  const labels = loadProtocol({ ...head, domain: { kind: "categories", values: [1, "one"] } });
  const text = loadProtocol({ ...head, protocol: "HCMS", domain: { kind: "strings", cells: 64, cohorts: 2, key: "" } });
  const cases = [
    [numbers, [0, 11, 1.5, "5", true, null, undefined, NaN, Infinity, 2n ** 70n, [5]]],
    [labels, ["1", true, 2, "One", null, {}, Symbol("one"), "\ud800"]],
    [text, [7391, null, undefined, "\ud800", "7391".repeat(1025), ["rye"]]],
  ];
  for (const [protocol, values] of cases) {
    for (const value of values) {
      const silent = (error) => error.kind === "domain" && !/7391|11|One/.test(error.message);
      assert.throws(() => protocol.privatize(value), silent);
    }
  }
  assert.equal(numbers.privatize(10n).length, 1);
});
