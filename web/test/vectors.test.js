// The browser draws what Python draws: the same thresholds, the same words in the same order, the same bytes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import {
  KINDS,
  RandomBits,
  Survey,
  advance,
  canonicalBytes,
  fingerprint,
  hex,
  hmac,
  loadProtocol,
  publicNumber,
  reportId,
  sha256,
  surveyChanges,
} from "../deniable.js";
import { answer, hashed, vectors } from "./support.js";

/** The stream of a vector's seed. */
function seeded(seed) {
  let block = 0;
  return new RandomBits((bytes) => bytes.set(hashed(seed, block++)), 32);
}

/** Random bytes given in full; asking for more is an error. */
function listed(random) {
  let rest = Buffer.from(random, "hex");
  const bits = new RandomBits((bytes) => {
    assert.ok(rest.length >= bytes.length, "more random bytes are consumed than Python consumed");
    bytes.set(rest.subarray(0, bytes.length));
    rest = rest.subarray(bytes.length);
  }, 8);
  return { bits, left: () => rest.length };
}

const numerators = (protocol) =>
  Object.fromEntries(Object.entries(protocol.thresholds).map(([name, { numerator }]) => [name, String(numerator)]));

/** The first vector of a case that differs; -1 if none does. */
function difference(entry, protocol) {
  const width = 2 * entry.bytes;
  const answers = entry.answers.map(answer);
  return entry.words.findIndex((words, i) => {
    const bits = seeded(entry.first + i);
    const report = hex(protocol.privatize(answers[i % answers.length], bits));
    return report !== entry.reports.slice(i * width, (i + 1) * width) || bits.words !== words;
  });
}

const names = [...new Set(vectors.cases.map((entry) => entry.spec.protocol))];

for (const name of names) {
  const cases = vectors.cases.filter((entry) => entry.spec.protocol === name);
  test(`${name}: at least 1,000 reports are the same, byte for byte`, () => {
    let count = 0;
    for (const entry of cases) {
      const protocol = loadProtocol(entry.spec);
      assert.equal(protocol.reportBytes, entry.bytes);
      assert.deepEqual(numerators(protocol), entry.thresholds);
      assert.equal(entry.reports.length, 2 * entry.bytes * entry.words.length);
      assert.equal(difference(entry, protocol), -1, JSON.stringify(entry.spec));
      count += entry.words.length;
    }
    assert.ok(count >= 1000);
  });

  test(`${name}: a threshold that is off would be noticed`, () => {
    // The same protocol at three quarters of its level, compared with the vectors of the full one.
    const changed = cases.filter((entry) => {
      const [top, bottom] = entry.spec.epsilon.split("/").map(BigInt);
      const level = reduced(3n * top, 4n * (bottom ?? 1n));
      try {
        return difference(entry, loadProtocol({ ...entry.spec, epsilon: level })) >= 0;
      } catch {
        return true; // a table or a group is refused: its integers say more than that
      }
    });
    assert.ok(changed.length > cases.length / 2, `${changed.length} of ${cases.length} cases noticed`);
  });
}

function reduced(top, bottom) {
  let [a, b] = [top, bottom];
  while (b) [a, b] = [b, a % b];
  return bottom === a ? `${top / a}` : `${top / a}/${bottom / a}`;
}

test("every protocol of the package has vectors", () => {
  assert.deepEqual(names.filter((name) => !KINDS.protocols.includes(name)), []);
  assert.deepEqual(KINDS.protocols.filter((name) => !names.includes(name)), []);
});

test("vectors in full, rare branches among them: rejection, ties, late decisions", () => {
  for (const entry of vectors.explicit) {
    const { bits, left } = listed(entry.random);
    assert.equal(hex(loadProtocol(entry.spec).privatize(answer(entry.answer), bits)), entry.report);
    assert.equal(left(), 0, "fewer random bytes are consumed than Python consumed");
  }
});

test("answers that change: the state after each epoch and the reports of the whole stream", () => {
  assert.ok(vectors.streams.length >= 20);
  for (const { spec, answers, random, states, reports } of vectors.streams) {
    const protocol = loadProtocol(spec);
    const { bits, left } = listed(random);
    let state = protocol.begin(bits);
    assert.equal(hex(state), states[0]);
    answers.forEach((written, i) => {
      const next = protocol.step(state, protocol.domain.read(answer(written)), i + 1, bits);
      state = next.state;
      assert.deepEqual([hex(state), hex(next.report)], [states[i + 1], reports[i]]);
    });
    assert.equal(left(), 0);
  }
});

test("two stages: the kept state and the reports that are drawn from it", () => {
  assert.ok(vectors.stages.length >= 10);
  for (const { spec, instantEpsilon, answer: given, random, state, reports, second, later, key, linking } of vectors.stages) {
    const { bits, left } = listed(random);
    const protocol = loadProtocol(spec);
    const kept = protocol.permanent(protocol.domain.read(answer(given)), bits);
    assert.equal(hex(kept), state);
    for (const report of reports) assert.equal(hex(protocol.report(kept, bits)), report);
    assert.equal(hex(kept), state, "a state stays as it is");
    [1, 7, 52].forEach((epochs, i) => assert.ok(Math.abs(protocol.linking(epochs) / linking[i] - 1) < 1e-9));
    const read = protocol.domain.read(answer(second));
    const next = protocol.permanent(read, bits, kept);
    assert.equal(hex(next), later, "a later state of the same device");
    assert.equal(hex(protocol.keptUnder?.(read, next) ?? protocol.domain.encode(read)), key);
    assert.equal(left(), 0);
    assert.equal(protocol.instantEpsilon, instantEpsilon);
  }
});

test("one flipped random bit changes some report", () => {
  const changed = vectors.explicit.filter((entry) => {
    const bytes = Buffer.from(entry.random, "hex");
    bytes[bytes.length - 1] ^= 0x80;
    const { bits } = listed(bytes.toString("hex"));
    try {
      return hex(loadProtocol(entry.spec).privatize(answer(entry.answer), bits)) !== entry.report;
    } catch {
      return true;
    }
  });
  assert.ok(changed.length > 0);
});

test("thresholds over the whole range of epsilon", () => {
  for (const entry of vectors.thresholds) {
    assert.deepEqual(numerators(loadProtocol(entry.spec)), entry.thresholds, JSON.stringify(entry.spec).slice(0, 200));
  }
});

test("canonical bytes and fingerprints", async () => {
  for (const entry of vectors.canonical) assert.equal(hex(canonicalBytes(entry.value)), entry.bytes);
  for (const entry of vectors.surveys) {
    assert.equal(new TextDecoder().decode(canonicalBytes(entry.spec)), entry.canonical);
    assert.equal(await fingerprint("survey", canonicalBytes(entry.spec)), entry.fingerprint);
  }
  for (const entry of vectors.cases) {
    assert.equal(await fingerprint("protocol", canonicalBytes(entry.spec)), entry.fingerprint);
  }
});

test("what a spec cannot hold is refused", () => {
  for (const value of [1.5, NaN, Infinity, 2 ** 53, 1n, undefined, () => 0, "e\u0301", "\ud800", { "e\u0301": 1 }]) {
    assert.throws(() => canonicalBytes([value]), { name: "DeniableError", kind: "spec" });
  }
});

test("the synchronous SHA-256 is that of the platform", async () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 131 + length) % 256);
    assert.equal(hex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"));
    assert.equal(hex(sha256(bytes)), hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
  }
});

test("HMAC is that of the platform", async () => {
  for (const length of [1, 32, 64]) {
    const key = Uint8Array.from({ length }, (_, i) => i * 7);
    const usable = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const message = new TextEncoder().encode("a message of some length");
    assert.equal(hex(hmac(key, message)), hex(new Uint8Array(await crypto.subtle.sign("HMAC", usable, message))));
  }
});

test("ids, and the keys that they come from", () => {
  const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
  assert.ok(vectors.ids.length >= 5);
  for (const { fingerprint: pinned, key, start, epoch, later, id } of vectors.ids) {
    assert.equal(hex(advance(bytes(key), epoch - start)), later);
    assert.equal(hex(reportId(bytes(later), pinned, epoch)), id);
  }
});

test("the hash function of a set follows from fingerprint, question and id, as in Python", () => {
  const seen = new Set();
  for (const { spec, fingerprint: pinned, question, answer: items, first, ids, publics, reports } of vectors.tied) {
    const protocol = loadProtocol(spec);
    ids.forEach((id, i) => {
      const number = publicNumber(pinned, question, Uint8Array.from(Buffer.from(id, "hex")));
      assert.equal(String(number), publics[i]);
      assert.equal(hex(protocol.privatize(items, Object.assign(seeded(first + i), { public: number }))), reports[i]);
      seen.add(number);
    });
  }
  assert.equal(seen.size, 48, "another fingerprint, question or id is another number");
});

test("what is different in a survey that replaces another", async () => {
  const read = async (text) => {
    const bytes = new TextEncoder().encode(text);
    return Survey.fromBytes(bytes, await fingerprint("survey", bytes));
  };
  const seen = new Set();
  for (const { before, after, changes } of vectors.changes) {
    const found = surveyChanges(await read(before), await read(after));
    assert.deepEqual(found.map(({ what, privacy }) => [what, privacy]), changes);
    for (const change of found) {
      assert.notEqual(change.before, change.after);
      seen.add(change.privacy);
    }
  }
  assert.equal(seen.size, 3);
});

test("a missing answer is the one that stands for it, and is refused where none does", () => {
  const head = { kind: "protocol", version: 1, epsilon: "1" };
  const closed = { kind: "categories", values: ["yes", "no", "no answer"], missing: "no answer" };
  const open = { kind: "strings", cells: 64, cohorts: 8, key: "", missing: "no answer" };
  for (const [protocol, domain] of [["GRR", closed], ["HCMS", open]]) {
    const { missing, ...without } = domain;
    const law = loadProtocol({ ...head, protocol, domain });
    for (const none of [null, undefined, NaN]) {
      for (let seed = 0; seed < 20; seed++) {
        assert.equal(hex(law.privatize(none, seeded(seed))), hex(law.privatize(missing, seeded(seed))));
      }
      assert.throws(() => loadProtocol({ ...head, protocol, domain: without }).privatize(none, seeded(1)), /is missing/);
    }
    assert.throws(() => loadProtocol({ ...head, protocol, domain: { ...domain, missing: 7 } }), /missing answers/);
  }
});
