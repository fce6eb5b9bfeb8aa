// The vectors can fail: small errors in the SDK are made on purpose, and each is found.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { answer, hashed, vectors } from "./support.js";

// Each of these small errors in the SDK would change what leaves; the vectors notice every one.
const MUTATIONS = [
  ["this.high < high ||", "this.high <= high ||"],
  ["this.low >= 2 ** 32 - surplus", "this.low > 2 ** 32 - surplus"],
  ["setLow |= openLow & ~this.low;", "setLow |= openLow & this.low;"],
  ["getUint32(this.#place, true)", "getUint32(this.#place, false)"],
  ["(openLow | openHigh) !== 0 && (h | l) !== 0", "(h | l) !== 0"],
  ["return toBytes(kept ? value : drawn, reportBytes);", "return toBytes(kept ? drawn : value, reportBytes);"],
  ["const ceilOf = (coefficients, x) => floorOf(coefficients, x) + 1n;", "const ceilOf = floorOf;"],
  ["[1n, -1n, 1n, BigInt(k) - 1n]", "[1n, -1n, 1n, BigInt(k)]"],
  ["other + (other >= value)", "other + (other > value)"],
  ["column ^= row & -row", "column ^= row"],
  ["place >= taken", "place > taken"],
  ["parity(rows[j] & value)", "parity(rows[j] | value)"],
  ["return same ? value : drawn;", "return same ? drawn : value;"],
  ["floorOf([WORD, -WORD, kept, kept * (BigInt(size) - 1n)], epsilon)", "floorOf([WORD, -WORD, kept, kept * BigInt(size)], epsilon)"],
  ['value.normalize("NFC")}`', "value}`"],
  ['`{"integer": "${label}"}`', "`${label}`"],
];

const SOURCE = readFileSync(new URL("../deniable.js", import.meta.url), "utf8");

for (const [right, wrong] of MUTATIONS) {
  test(`the vectors notice: ${wrong}`, async () => {
    assert.equal(SOURCE.split(right).length, 2, "the line to change stands once");
    const changed = await import(`data:text/javascript,${encodeURIComponent(SOURCE.replace(right, wrong))}`);
    assert.ok(differs(changed), "no vector differs");
  });
}

// All vectors of it are compared in vectors.test.js.
test("and find nothing in the SDK as it is", async () => {
  assert.equal(differs(await import("../deniable.js"), 60), false);
});

/** Whether a module disagrees with a vector that is given in full, or with one of the first of a case. */
function differs(module, most = undefined) {
  const loaded = ({ spec }) => {
    try {
      return module.loadProtocol(spec);
    } catch {
      return null;
    }
  };
  const report = (protocol, value, random) => {
    let at = 0;
    const bits = new module.RandomBits((bytes) => {
      bytes.set(random(at, bytes.length));
      at += bytes.length;
    }, 8);
    try {
      return module.hex(protocol.privatize(value, bits));
    } catch {
      return null;
    }
  };
  const full = vectors.explicit.some((entry) => {
    const bytes = Buffer.from(entry.random, "hex");
    const random = (at, n) => (at + n <= bytes.length ? bytes.subarray(at, at + n) : new Uint8Array(n));
    return report(loaded(entry), answer(entry.answer), random) !== entry.report;
  });
  if (full) return true;
  const protocols = new Map();
  const wrong = (entry, i) => {
    if (!protocols.has(entry)) protocols.set(entry, loaded(entry));
    const seed = entry.first + i;
    const random = (at) => block(seed, at >> 5).subarray(at & 31, (at & 31) + 8);
    const drawn = report(protocols.get(entry), answer(entry.answers[i % entry.answers.length]), random);
    return drawn !== entry.reports.slice(2 * i * entry.bytes, 2 * (i + 1) * entry.bytes);
  };
  // A few vectors of every case first: most errors are found among them.
  const some = (from, to) => vectors.cases.some((entry) => entry.words.slice(from, to).some((_, i) => wrong(entry, from + i)));
  return some(0, 20) || some(20, most);
}

const blocks = new Map();

function block(seed, number) {
  const name = `${seed}/${number}`;
  if (!blocks.has(name)) blocks.set(name, hashed(seed, number));
  return blocks.get(name);
}
