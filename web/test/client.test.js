// The ledger's promises: debit before sending, the same bytes on every try, caps, withdrawal, silence when opted out.
import assert from "node:assert/strict";
import { test } from "node:test";

import { advance, Client, hex, loadProtocol, reportId } from "../deniable.js";
import { MemoryStore } from "../memory.js";
import { DAY, SERVER, device, spec, twoStages } from "./support.js";

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
    const { id: _, bytes: __, ...rest } = first; // erased once sent
    assert.deepEqual(await other.answer({ smoke: "no" }), { ...rest, fresh: false });
  }
  assert.equal(server.bodies.length, 1);
  time.now += DAY;
  assert.notDeepEqual(await client.answer({ smoke: "yes" }), first);
  assert.equal(server.bodies.length, 2);
});

test("of when an answer was given only its period stays", async () => {
  const moments = [];
  for (const hours of [1, 17.123456]) {
    const { client, store, time } = await device();
    time.now += hours * 3600;
    await client.answer({ smoke: "yes" });
    const { surveys } = await store.snapshot();
    const [{ submissions }] = surveys.values();
    moments.push(submissions.map(({ id: _, bytes: __, ...rest }) => rest));
  }
  assert.deepEqual(moments[0], moments[1]);
  assert.deepEqual(Object.keys(moments[0][0]).sort(), ["delta", "epoch", "epsilon", "idUntil", "reason", "repeats", "state"]);
});

test("moments that an earlier version kept are deleted", async () => {
  const { client, store, again } = await device();
  await client.answer({ smoke: "yes" });
  await store.update((kept) => {
    for (const { submissions } of kept.surveys.values()) for (const one of submissions) one.time = 1793491200123;
    return kept;
  });
  await again().optOut();
  assert.ok(![...store.snapshot().surveys.values()].some(({ submissions }) => submissions.some((one) => "time" in one)));
});

test("answers at the same moment are one submission", async () => {
  const { client, again, server } = await device();
  const receipts = await Promise.all([client, again(), again()].map((tab) => tab.answer({ smoke: "yes" })));
  assert.deepEqual(receipts.map(({ fresh }) => fresh).sort(), [false, false, true]);
  assert.equal(server.bodies.length, 1);
  assert.equal((await client.budget()).spent, "1");
});

test("the number of epochs is a cap", async () => {
  const { client, time, server } = await device();
  for (let day = 0; day < 3; day++, time.now += DAY) await client.answer({ smoke: "yes" });
  await assert.rejects(client.answer({ smoke: "yes" }), refused("budget"));
  assert.equal(server.bodies.length, 3);
});

test("a survey that is answered once is answered once over all of its epochs", async () => {
  const { client, time, server } = await device(spec({ longitudinal: { rule: "none", epochs: 1 } }));
  const first = await client.answer({ smoke: "yes" });
  for (const days of [1, 1, 5, -7]) {
    time.now += days * DAY;
    if (days > 0) await assert.rejects(client.answer({ smoke: "no" }), refused("budget"));
  }
  assert.equal((await client.answer({ smoke: "no" })).epoch, first.epoch);
  assert.equal(server.bodies.length, 1);
  assert.equal((await client.budget()).spent, "1");
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
  const rest = { relation: "any", related: true, deltaCap: "0", deltaSpent: "0" };
  const spent = { owner: "Example Guild", group: "guild", ...rest, cap: "1", spent: "1", left: "0", enough: false };
  assert.deepEqual(await client.budget(), spent);
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
  const rest = { relation: "any", related: true, deltaCap: "0", deltaSpent: "0" };
  const spent = { owner: "Example Guild", group: "guild", ...rest, cap: "1", spent: "1", left: "0", enough: false };
  assert.deepEqual(await client.budget(), spent);
  const words = /as much as all surveys of "Example Guild" in the group "guild" together may learn from it/;
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

test("a ledger restored from a copy gives the same id, with another sample: counted once", async () => {
  const { client, again, store, server, time } = await device(spec());
  await client.answer({ smoke: "yes" });
  const copy = store.snapshot();
  time.now += DAY;
  await client.answer({ smoke: "no" });
  const reports = new Set();
  for (let run = 0; run < 64; run++) {
    const { fresh, bytes } = await again({ store: new MemoryStore(copy) }).answer({ smoke: "no" });
    assert.equal(fresh, true);
    reports.add(bytes.at(-1));
  }
  assert.equal(new Set(server.bodies.slice(1).map((body) => body.slice(0, 48))).size, 1);
  // At epsilon 1 all 64 agree with probability below 0.74^63, about 6e-9.
  assert.equal(reports.size, 2);
});

test("the key of ids moves on with the epochs, and a clock that is set back finds none", async () => {
  const { client, store, server, time, pinned } = await device();
  const key = () => store.snapshot().surveys.get(pinned).key;
  time.now += 5 * DAY;
  await client.answer({ smoke: "yes" });
  const first = key();
  assert.equal(first.epoch, 6);
  time.now += 2 * DAY;
  await client.answer({ smoke: "yes" });
  assert.deepEqual(key(), { epoch: 8, key: advance(first.key, 2) });
  assert.equal(server.bodies[1].slice(16, 48), hex(reportId(advance(first.key, 1), pinned, 7)));
  time.now -= 4 * DAY;
  await client.answer({ smoke: "yes" });
  assert.deepEqual(key(), { epoch: 8, key: advance(first.key, 2) });
  assert.equal(new Set(server.bodies.map((body) => body.slice(16, 48))).size, 3);
});

// Whoever finds the ledger, say a page of the same origin, and tries every answer. While a report waits, its bytes tell
// what they tell anyone; all else is the same whatever was answered, and the report has its law whatever else is there.
// Once it is settled the whole record is the same whatever was answered.

const plain = (_, value) => (value instanceof Map || value instanceof Uint8Array ? [...value] : value);
const CHOICES = ["yes", "no"];

async function found(survey, answers, { reply = 200, then = () => undefined } = {}) {
  const first = await device(survey, { attempts: 1 });
  await first.client.answer({ smoke: "yes" });
  const copy = first.store.snapshot();
  const records = new Set();
  const counts = { yes: [0, 0], no: [0, 0] };
  for (const smoke of answers) {
    const store = new MemoryStore(copy);
    first.time.now += DAY;
    const client = first.again({ store });
    first.server.replies = [reply];
    const { bytes } = await client.answer({ smoke });
    first.time.now -= DAY;
    counts[smoke][bytes.at(-1)]++;
    await then(client);
    const record = store.snapshot();
    for (const { submissions } of record.surveys.values()) {
      for (const { state, bytes } of submissions) if (state === "queued") bytes.fill(0, 24);
    }
    records.add(JSON.stringify(record, plain));
  }
  return { records: records.size, counts };
}

test("a ledger with a waiting report tells what its bytes tell", async () => {
  const { records, counts } = await found(spec(), Array.from({ length: 400 }, (_, i) => CHOICES[i % 2]), { reply: 503 });
  assert.equal(records, 1);
  // 146 of 200 are true on average, and 6.3 is the standard deviation: beyond 7 of them, 3e-12 for both together. A
  // report that is a function of the ledger and the answer has one form: 0 or 200.
  for (const [i, choice] of CHOICES.entries()) assert.ok(Math.abs(counts[choice][i] - 146) < 44, `${counts[choice]}`);
});

test("a ledger whose reports are settled tells nothing", async () => {
  const answers = [...CHOICES, ...CHOICES, ...CHOICES];
  for (const retention of ["tally", "reports"]) {
    const survey = spec({ retention });
    assert.equal((await found(survey, answers)).records, 1);
    assert.equal((await found(survey, answers, { reply: 410 })).records, 1);
    for (const reply of [200, 503]) {
      assert.equal((await found(survey, answers, { reply, then: (client) => client.optOut() })).records, 1);
      assert.equal((await found(survey, answers, { reply, then: (client) => client.withdraw() })).records, 1);
    }
  }
});

test("memoized answers are in the ledger until the device leaves", async () => {
  const answers = [...CHOICES, ...CHOICES];
  assert.equal((await found(memoized(), answers)).records > 1, true);
  assert.equal((await found(memoized(), answers, { then: (client) => client.optOut() })).records, 1);
  assert.equal((await found(memoized(), answers, { then: (client) => client.withdraw() })).records, 1);
});

test("a stranger neither drains nor lowers the budget of another's group", async () => {
  const store = new MemoryStore();
  const once = { longitudinal: { rule: "none", epochs: 1 } };
  const guild = (name) => device(spec({ ...once, name, budget: { group: "guild", epsilon: "2" } }), { store });
  const stranger = (name) =>
    device(spec({ ...once, name, owner: "Stranger", budget: { group: "guild", epsilon: "1" } }), { store });
  await (await guild("a")).client.answer({ smoke: "no" });
  await (await stranger("b")).client.answer({ smoke: "no" });
  await assert.rejects((await stranger("c")).client.answer({ smoke: "no" }), refused("budget", /"Stranger"/));
  const { client } = await guild("d");
  assert.deepEqual([(await client.budget()).cap, (await client.budget()).spent], ["2", "1"]);
  assert.equal((await client.answer({ smoke: "no" })).state, "sent");
});

test("a survey that replaces an answered one waits until somebody has agreed", async () => {
  const store = new MemoryStore();
  const before = await device(spec(), { store });
  await before.client.answer({ smoke: "no" });
  const later = structuredClone(spec({ replaces: before.pinned, retention: "reports" }));
  later.questions[0].protocol.epsilon = "2/3";
  const { client, server, time } = await device(later, { store });
  const changes = await client.changes();
  const weaker = changes.filter(({ privacy }) => privacy === "weaker").map(({ what }) => what);
  assert.deepEqual(weaker, ["retention"]);
  await assert.rejects(client.answer({ smoke: "no" }), (error) => {
    assert.equal(error.kind, "changed");
    assert.deepEqual(error.changes, changes);
    return true;
  });
  assert.equal(server.bodies.length, 0);
  assert.equal((await client.answer({ smoke: "no" }, { acceptChanges: true })).state, "sent");
  time.now += DAY;
  assert.deepEqual(await client.changes(), []);
  assert.equal((await client.answer({ smoke: "no" })).state, "sent");
  const unknown = await device(spec({ replaces: "ab".repeat(32) }));
  assert.equal((await unknown.client.answer({ smoke: "no" })).state, "sent");
});

test("reports are deleted by their ids at a service that keeps reports, while it would do so", async () => {
  const { client, server, time, pinned } = await device(spec({ retention: "reports" }), { attempts: 1 });
  const { id, idUntil } = await client.answer({ smoke: "no" });
  time.now += DAY;
  server.replies = ["lost"];
  await client.answer({ smoke: "no" });
  assert.equal((await client.history())[0].bytes, undefined);
  server.replies = [503, "unheard"];
  assert.deepEqual(await client.deleteSent(), { deleted: 0, notHeld: 0, failed: 2 });
  server.replies = [{ deleted: true }, { deleted: false }];
  const asked = server.requests.length;
  assert.deepEqual(await client.deleteSent(), { deleted: 1, notHeld: 1, failed: 0 });
  const request = server.requests[asked];
  assert.equal(request.address, `${SERVER}/v1/surveys/${pinned}/reports/${Buffer.from(id, "hex").toString("base64url")}`);
  assert.deepEqual([request.method, request.body, request.credentials], ["DELETE", undefined, "omit"]);
  assert.deepEqual(
    (await client.history()).map(({ id, state, reason }) => [id, state, reason]),
    [[undefined, "sent", "deleted"], [undefined, "dropped", "notHeld"]],
  );
  assert.deepEqual(await client.deleteSent(), { deleted: 0, notHeld: 0, failed: 0 });
  assert.equal(await client.deliver(), 0);
  time.now += DAY;
  const late = await client.answer({ smoke: "no" });
  assert.equal(late.idUntil - idUntil, 2 * DAY);
  time.now = late.idUntil;
  assert.equal((await client.history()).at(-1).id, late.id);
  assert.equal((await client.state()).persisted, "unknown");
  assert.equal((await client.history()).at(-1).id, undefined);
  const tally = await device();
  await tally.client.answer({ smoke: "no" });
  assert.deepEqual(await tally.client.deleteSent(), { deleted: 0, notHeld: 0, failed: 0 });
  const gone = await device(spec({ retention: "reports" }), { attempts: 1 });
  await gone.client.answer({ smoke: "no" });
  gone.server.replies = [410]; // the survey was deleted
  assert.deepEqual(await gone.client.deleteSent(), { deleted: 0, notHeld: 1, failed: 0 });
});

test("the debit is on disk before the first byte leaves", async () => {
  const { again, store, server } = await device();
  const seen = [];
  const client = again({
    fetch: async (address, options) => {
      if (options.method === "POST") {
        const ledger = store.snapshot();
        seen.push([ledger.groups.get('["Example Guild","guild"]').spent, [...ledger.surveys.values()][0].submissions[0].bytes.length]);
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

test("withdrawal deletes keys, memos and outbox; what was spent stays spent", async () => {
  const { client, store, server, time } = await device(memoized());
  await client.answer({ smoke: "yes" });
  time.now += DAY;
  server.replies = Array(6).fill("unheard");
  const { id, bytes } = await client.answer({ smoke: "no" });
  const written = () => JSON.stringify(store.snapshot(), plain);
  const traces = [id, '"key"', '"drawn"', '"bytes"', [...bytes].join()];
  assert.equal((await client.state()).remembers, true);
  for (const trace of traces) assert.ok(written().includes(trace));
  await client.withdraw();
  for (const trace of traces) assert.ok(!written().includes(trace));
  assert.deepEqual(await client.state(), { optedOut: true, remembers: false, persisted: "unknown" });
  assert.equal(await client.deliver(), 0);
  assert.equal(server.bodies.length, 1);
  await assert.rejects(client.answer({ smoke: "yes" }), refused("optedOut"));
  assert.deepEqual(
    (await client.history()).map(({ state }) => state),
    ["withdrawn", "withdrawn"],
  );
  // Who comes back draws anew and pays anew; the epoch that was answered stays answered.
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
  }
  assert.equal((await client.budget()).spent, "1");
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

test("of two stages the state is kept and every report is drawn from it afresh", async () => {
  const { client, again, time, server, store } = await device(twoStages({ values: 2 }));
  const kept = () => [...[...store.snapshot().surveys.values()][0].memos.get("smoke")].map(({ drawn }) => hex(drawn));
  const spent = [];
  for (let day = 0; day < 50; day++, time.now += DAY) {
    await (day % 2 ? client : again()).answer({ smoke: day < 3 ? "yes" : "no" });
    spent.push((await client.budget()).spent);
    if (day === 2) assert.equal(kept().length, 1);
  }
  assert.equal(kept().length, 2);
  const reports = server.bodies.map((body) => body.slice(-2));
  assert.deepEqual([...new Set(reports)].sort(), ["00", "01"]); // fifty equal ones by chance: below 1e-5
  assert.deepEqual([spent[0], spent[1], spent.at(-1)], ["1", "2", "2"]); // per state, not per report
  await assert.rejects(client.answer({ smoke: "yes" }), refused("budget"));
  await client.optOut();
  assert.equal([...store.snapshot().surveys.values()][0].memos.size, 0);
});

test("of two stages with one state, later answers change nothing", async () => {
  const { client, time, store } = await device(twoStages());
  const kept = () => JSON.stringify([...[...store.snapshot().surveys.values()][0].memos]);
  await client.answer({ smoke: "yes" });
  const before = kept();
  time.now += DAY;
  await client.answer({ smoke: "no" });
  assert.equal(kept(), before);
  assert.equal((await client.budget()).spent, "1");
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
    receipts.push((await client.answer({ smoke: "yes" })).fresh);
  }
  assert.deepEqual(receipts, [true, true, false, false]);
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

test("a survey that is not on the published list is refused before anything is fetched", async () => {
  const requests = [];
  const fetch = async (...request) => void requests.push(request);
  const options = { server: "https://collect.example", fingerprint: "ab".repeat(32), store: new MemoryStore(), fetch };
  assert.throws(() => new Client({ ...options, published: ["cd".repeat(32)] }), refused("spec"));
  assert.ok(new Client({ ...options, published: ["cd".repeat(32), "ab".repeat(32)] }));
  assert.deepEqual(requests, []);
});
