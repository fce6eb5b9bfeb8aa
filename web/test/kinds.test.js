// Numbers, records and tables: laws by enumeration, draws against a second implementation, refusals without the answer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { KINDS, RandomBits, Survey, canonicalBytes, cellIn, fingerprint, hex, loadProtocol } from "../deniable.js";
import { device, hashed, law, share, spec as survey, vectors } from "./support.js";

const refused = (kind, message) => ({ name: "DeniableError", kind, message });
const head = { kind: "protocol", version: 1 };
const hours = { kind: "interval", low: "-5", high: "201/2", unit: "hours" };
const ages = { kind: "integers", low: 18, high: 99 };
const bread = { kind: "categories", values: ["rye", "spelt", "pita"] };
const WORD = 1n << 64n;

const windowOf = (positions, width, epsilon = "1", domain = hours) => ({
  ...head, protocol: "Window", domain, epsilon, positions, width, read: "mean",
});
const oneBit = (epsilon = "1", domain = hours) => ({ ...head, protocol: "OneBitMean", domain, epsilon });
const grr = (domain, epsilon = "1") => ({ ...head, protocol: "GRR", domain, epsilon });
const tableOf = (rows, epsilon = "2", more = {}) => ({
  ...head, protocol: "Table", domain: { ...bread, values: bread.values.slice(0, rows.length) }, epsilon,
  outputs: rows[0].map((_, i) => `output ${i}`), rows: rows.map((row) => row.map(String)), ...more,
});
const MEAN = [[5, 3, 1, 1], [3, 2, 2, 3], [1, 1, 3, 5]];
const meanOf = (rows = MEAN, epsilon = "2", more = {}) => ({
  ...head, protocol: "MeanTable", domain: hours, epsilon, rows: rows.map((row) => row.map(String)), values: ["-2", "-1", "1", "2"], ...more,
});
const columns = [["time", hours], ["age", ages], ["bread", bread]].map(([name, domain]) => ({ name, domain }));
const attributes = (changes = {}) => ({
  ...head, protocol: "Attributes", domain: { kind: "records", columns }, epsilon: "2",
  groups: [
    { weight: 1, protocol: windowOf(5, 3, "2") },
    { weight: 2, protocol: { ...head, protocol: "OUE", domain: ages, epsilon: "1" } },
    { weight: 4, protocol: grr(bread, "3/2") },
  ],
  ...changes,
});
const rangesOf = (changes = {}, domain = hours, fanouts = [2, 3]) => ({
  ...head, protocol: "Ranges", domain, epsilon: "1", cells: 5, fanouts,
  groups: fanouts.map((_, i) => ({ weight: 1, protocol: grr({ kind: "integers", low: 0, high: fanouts.slice(0, i + 1).reduce((a, b) => a * b) - 1 }) })),
  ...changes,
});
const pair = { kind: "records", columns: [{ name: "x", domain: { kind: "integers", low: 3, high: 6 } }, { name: "time", domain: hours }] };
const combined = (changes = {}) => ({
  ...head, protocol: "Attributes", domain: { kind: "records", columns }, epsilon: "1", cells: [2, 4, 3], views: [[0, 1], [2]],
  groups: [{ weight: 1, protocol: grr({ kind: "integers", low: 0, high: 7 }) }, { weight: 1, protocol: grr(bread) }],
  ...changes,
});
const rectanglesOf = (changes = {}, grids = [[2, 1], [2, 2], [1, 4]]) => ({
  ...head, protocol: "Rectangles", domain: pair, epsilon: "1", cells: [4, 3], grids,
  groups: grids.map(([rows, many]) => ({ weight: 1, protocol: grr({ kind: "integers", low: 0, high: rows * many - 1 }) })),
  ...changes,
});
const town = { kind: "grid", columns: 3, rows: 2, cell: "1/2 km" };
const placesOf = (changes = {}, domain = town) => ({ ...head, protocol: "PlanarLaplace", domain, epsilon: "1/2", reach: 2, ...changes });
const RECORD = { time: 12.5, age: 40, bread: "pita" };

const apps = { kind: "sets", items: { kind: "categories", values: ["mail", "maps", "music"] }, at_most: 2 };
const cellsOf = (changes = {}, domain = apps) => ({ ...head, protocol: "CollisionSets", domain, epsilon: "1", cells: 5, cohorts: 2, key: "", ...changes });
const subsetOf = (changes = {}, domain = apps) => ({ ...head, protocol: "SubsetSets", domain, epsilon: "1", subset_size: 2, ...changes });
const pairsOf = { kind: "sets", items: { kind: "integers", low: 0, high: 2 }, at_most: 1 };
const itemsOf = (changes = {}) => ({
  ...head, protocol: "ItemSets", domain: apps, epsilon: "1",
  groups: [{ weight: 2, protocol: subsetOf() }, { weight: 1, protocol: subsetOf({ subset_size: 1 }, pairsOf) }], ...changes,
});
const rated = { kind: "key-numbers", keys: apps.items, interval: hours, at_most: 2 };
const ends = { kind: "sets", items: { kind: "integers", low: 0, high: 5 }, at_most: 2 };
const keysOf = (changes = {}) => ({ ...head, protocol: "KeyValue", domain: rated, epsilon: "1", law: subsetOf({ subset_size: 1 }, ends), ...changes });
const SETS = [[], ["mail"], ["maps"], ["music"], ["mail", "maps"], ["mail", "music"], ["maps", "music"]];

// -- every branch --------------------------------------------------------------------------------------------------

/** The largest ratio of a report's probabilities under two answers. */
function ratio(laws) {
  let most = 0;
  for (const report of new Set(laws.flatMap((one) => [...one.keys()]))) {
    const chances = laws.map((one) => share(one.get(report) ?? [0n, 1n]));
    most = Math.max(most, Math.max(...chances) / Math.min(...chances));
  }
  return most;
}

for (const [positions, width] of [[2, 1], [3, 2], [5, 3], [2, 5]]) {
  test(`Window of ${positions} positions and width ${width}: epsilon is kept, and the mean is linear in the output`, () => {
    const protocol = loadProtocol(windowOf(positions, width));
    const [low, high] = [-5, 100.5];
    const values = [0, 0.25, 0.3, 0.5, 0.9, 1].map((part) => low + part * (high - low));
    const laws = values.map((value) => law(protocol, value));
    const outputs = positions + width - 1;
    for (const one of laws) {
      assert.equal(one.size, outputs, "every output is possible");
      const [top, bottom] = [...one.values()].reduce(([a, b], [c, d]) => [a * d + c * b, b * d]);
      assert.equal(top, bottom);
    }
    const most = ratio(laws);
    assert.ok(most <= Math.E * (1 + 1e-12) && most > Math.E * (1 - 1e-9), `${most}`);
    // E[output] = t (position + (w - 1) / 2) + (1 - t) (M - 1) / 2, and position is linear in the answer.
    const t = ((Math.E - 1) * width) / (outputs + (Math.E - 1) * width);
    laws.forEach((one, i) => {
      const mean = [...one].reduce((sum, [report, chance]) => sum + parseInt(report, 16) * share(chance), 0);
      const position = ((values[i] - low) * (positions - 1)) / (high - low);
      const expected = t * (position + (width - 1) / 2) + (1 - t) * ((outputs - 1) / 2);
      assert.ok(Math.abs(mean - expected) < 1e-12, `${mean} ${expected}`);
    });
  });
}

test("OneBitMean is Window with two positions", () => {
  for (const domain of [hours, ages]) {
    const [one, two] = [loadProtocol(oneBit("1/3", domain)), loadProtocol(windowOf(2, 1, "1/3", domain))];
    assert.deepEqual([one.reportBytes, one.forms], [1, 2]);
    for (const value of [18, 37, 99]) assert.deepEqual(law(one, value), law(two, value));
  }
});

test("Table: the law is the row, exactly, and an output of weight zero never comes", () => {
  const rows = [[6, 3, 1], [3, 6, 1], [4, 5, 1]];
  const protocol = loadProtocol(tableOf(rows, "1"));
  rows.forEach((row, i) => {
    const found = law(protocol, bread.values[i]);
    row.forEach((weight, y) => assert.equal(share(found.get(`0${y}`)), weight / 10));
  });
  const rare = loadProtocol(tableOf([[1, 0, 1], [1, 0, 1]], "1"));
  assert.deepEqual([...law(rare, "rye").keys()].sort(), ["00", "02"]);
});

test("Attributes: a group as often as its weight says, then its own law, padded to one length", () => {
  const groups = [{ weight: 1, protocol: windowOf(3, 2, "2") }, { weight: 4, protocol: grr(bread, "3/2") }];
  const domain = { kind: "records", columns: [columns[0], columns[2]] };
  const protocol = loadProtocol(attributes({ domain, groups }));
  assert.deepEqual([protocol.reportBytes, protocol.forms], [2, 4 + 3]);
  const inner = groups.map((group) => loadProtocol(group.protocol));
  const record = { time: 80, bread: "spelt" };
  const found = law(protocol, record);
  const parts = [law(inner[0], 80), law(inner[1], "spelt")];
  assert.equal(found.size, 7);
  for (const [report, [top, bottom]] of found) {
    const group = parseInt(report.slice(0, 2), 16);
    const [a, b] = parts[group].get(report.slice(2));
    assert.equal(top * 5n * b, BigInt(groups[group].weight) * a * bottom, report);
  }
  const others = [{ time: -5, bread: "rye" }, { time: 200, bread: "pita" }].map((value) => law(protocol, value));
  const most = ratio([found, ...others]);
  assert.ok(most <= Math.exp(2) * (1 + 1e-12) && most > Math.exp(2) * (1 - 1e-9));
});

test("Ranges: a level as often as its weight says, then the law of the range that the number lies in", () => {
  const protocol = loadProtocol(rangesOf());
  const [low, high] = [-5, 100.5];
  const at = (part) => low + part * (high - low);
  assert.deepEqual([0, 0.19, 0.21, 0.5, 0.99, 1].map((part) => protocol.project(at(part), 1)), [0, 0, 1, 2, 4, 4]);
  assert.deepEqual([0, 0.59, 0.61, 1].map((part) => protocol.project(at(part), 0)), [0, 0, 1, 1]);
  const laws = [0, 0.3, 0.5, 0.7, 1].map((part) => law(protocol, at(part)));
  for (const one of laws) {
    const first = [...one].filter(([report]) => report.startsWith("00")).reduce((sum, [, chance]) => sum + share(chance), 0);
    assert.ok(Math.abs(first - 1 / 2) < 1e-12);
  }
  assert.ok(Math.abs(ratio(laws) / Math.E - 1) < 1e-9);
});

test("Rectangles: a grid as often as its weight says, then the law of the rectangle that both numbers lie in", () => {
  const protocol = loadProtocol(rectanglesOf());
  const at = (x, part) => ({ x, time: -5 + part * 105.5 });
  const places = [[3, 0], [4, 0.3], [5, 0.5], [6, 0.99], [6, 7]].map(([x, part]) => protocol.domain.read(at(x, part)));
  // Of three cells of time, cut into 4 parts with one beyond the end, or into 2 of two cells each.
  assert.deepEqual([0, 1, 2].map((grid) => places.map((place) => protocol.project(place, grid))), [[0, 0, 1, 1, 1], [0, 0, 2, 3, 3], [0, 0, 1, 2, 2]]);
  const laws = [3, 6].flatMap((x) => [0, 0.5, 1].map((part) => law(protocol, at(x, part))));
  for (const one of laws) {
    const first = [...one].filter(([report]) => report.startsWith("00")).reduce((sum, [, chance]) => sum + share(chance), 0);
    assert.ok(Math.abs(first - 1 / 3) < 1e-12);
  }
  assert.ok(Math.abs(ratio(laws) / Math.E - 1) < 1e-9);
});

test("Places: between any two cells the ratio stays below e to the power of epsilon times their distance", () => {
  const protocol = loadProtocol(placesOf());
  const cells = [1, 2].flatMap((north) => [1, 2, 3].map((east) => ({ north, east })));
  const laws = cells.map((cell) => law(protocol, cell));
  for (const one of laws) assert.equal(one.size, 6);
  cells.forEach((a, i) =>
    cells.forEach((b, j) => {
      if (i === j) return;
      const apart = Math.hypot(a.north - b.north, a.east - b.east);
      assert.ok(ratio([laws[i], laws[j]]) <= Math.exp(apart / 2));
    }),
  );
  assert.ok(ratio([laws[0], laws[5]]) > ratio([laws[0], laws[1]]), "more is told of cells that are further apart");
});

test("Attributes with views: the number of a combination of cells, then the law of the view", () => {
  const protocol = loadProtocol(combined());
  assert.equal(protocol.shape, "combination");
  const at = (time, age, bread) => protocol.domain.read({ time, age, bread });
  const places = [[-5, 18], [47, 38], [48, 39], [100.5, 99]].map(([time, age]) => protocol.combination(at(time, age, "rye"), 0));
  assert.deepEqual(places, [0, 0, 5, 7]); // two cells of time, and four of 82 ages: 18 to 38, 39 to 58, ...
  assert.equal(protocol.combination(at(0, 18, "pita"), 1), 2);
  const laws = [[0, 20, "rye"], [90, 20, "rye"], [0, 90, "pita"]].map(([time, age, bread]) => law(protocol, { time, age, bread }));
  assert.ok(Math.abs(ratio(laws) / Math.E - 1) < 1e-9);
  const few = loadProtocol(combined({ views: [[0], [2]], groups: [{ weight: 1, protocol: windowOf(5, 3) }, combined().groups[1]] }));
  assert.equal(few.shape, "part");
  const unary = { ...grr({ kind: "integers", low: 0, high: 7 }), protocol: "OUE" };
  for (const wrong of [
    { views: [[1, 0], [2]] }, { views: [[0, 0], [2]] }, { views: [[0, 1]] }, { views: [[0, 1], [3]] },
    { views: [[0, 1], []] }, { views: [[2], [2]] }, { views: 3 },
    { views: undefined }, { cells: undefined }, { cells: [2, 4] }, { cells: [2, 3, 3] }, { cells: [2, 83, 3] }, { cells: [1, 4, 3] }, { cells: [2, 4, 2] },
    { groups: combined().groups.toReversed() },
    { groups: [{ weight: 1, protocol: unary }, combined().groups[1]] },
  ]) {
    const spec = Object.fromEntries(Object.entries(combined(wrong)).filter(([, value]) => value !== undefined));
    assert.throws(() => loadProtocol(spec), { name: "DeniableError", kind: "spec" }, JSON.stringify(wrong));
  }
});

test("Attributes: inner reports of different lengths end in zeros", () => {
  const protocol = loadProtocol(attributes());
  assert.equal(protocol.reportBytes, 1 + Math.ceil(82 / 8));
  const seen = new Set();
  for (let seed = 0; seed < 200; seed++) {
    const report = protocol.privatize(RECORD, seeded(seed));
    seen.add(report[0]);
    if (report[0] !== 1) assert.ok(report.slice(2).every((byte) => byte === 0));
  }
  assert.deepEqual([...seen].sort(), [0, 1, 2]);
});

// -- a second implementation: the words of a stream, read as the format says -----------------------------------------

function seeded(seed) {
  let block = 0;
  return new RandomBits((bytes) => bytes.set(hashed(seed, block++)), 32);
}

/** The same stream as big integers, with plain versions of each draw. */
class Plain {
  words = 0;
  constructor(words) {
    this.source = words;
  }
  word() {
    return this.source(this.words++);
  }
  bernoulli(chance) {
    return this.word() < chance;
  }
  integers(m) {
    if (m === 1) return 0;
    for (;;) {
      const word = this.word();
      if (word < WORD - (WORD % BigInt(m))) return Number(word % BigInt(m));
    }
  }
  /** As in Python: boundaries out of 2^64 first, digits of the number only where the word is that of a boundary. */
  draw(weights) {
    const total = weights.reduce((a, b) => a + b);
    const ends = weights.map(((sum) => (weight) => (sum += weight))(0n)).slice(0, -1);
    let digits = this.word();
    const tie = ends.some((end) => (end * WORD) / total === digits && (end * WORD) % total !== 0n);
    if (!tie) return ends.filter((end) => (end * WORD) / total <= digits).length;
    for (let scale = WORD; ; scale *= WORD, digits = digits * WORD + this.word()) {
      const inside = ends.some((end) => end * scale > digits * total && end * scale < (digits + 1n) * total);
      if (!inside) return ends.filter((end) => end * scale <= digits * total).length;
    }
  }
}

const plain = (seed) => {
  const block = (i) => hashed(seed, i >> 2).readBigUInt64LE(8 * (i & 3));
  return new Plain(block);
};

/** Bits that give these words, and none after them. */
function listed(words) {
  let at = 0;
  const bits = new RandomBits((bytes) => {
    assert.ok(at < words.length, "more words are drawn than were given");
    new DataView(bytes.buffer).setBigUint64(bytes.byteOffset, words[at++], true);
  }, 8);
  return { bits, left: () => words.length - at };
}

const little = (number, width) => hex(Uint8Array.from({ length: width }, (_, i) => Math.floor(number / 256 ** i) % 256));

function windowReport(x, [low, high], positions, width, keep, bits) {
  const c = Math.min(Math.max(x, low), high);
  const s = Math.min(((c - low) * (positions - 1)) / (high - low), positions - 1);
  const k = Math.floor(s);
  const up = BigInt(Math.floor((s - k) * 2 ** 53)) << 11n;
  const outputs = positions + width - 1;
  const position = k + (bits.bernoulli(up) ? 1 : 0);
  const kept = bits.bernoulli(keep);
  const near = bits.integers(width);
  const far = bits.integers(outputs);
  return little(kept ? position + near : far, outputs > 65536 ? 3 : outputs > 256 ? 2 : 1);
}

function meanReport(x, [low, high], bits) {
  const c = Math.min(Math.max(x, low), high);
  const s = Math.min(((c - low) * 2) / (high - low), 2);
  const k = Math.floor(s);
  const position = k + (bits.bernoulli(BigInt(Math.floor((s - k) * 2 ** 53)) << 11n) ? 1 : 0);
  return little(bits.draw(MEAN[position].map(BigInt)), 1);
}

test("a table for a mean keeps epsilon over all numbers, is drawn word for word, and refuses what is none", () => {
  const protocol = loadProtocol(meanOf());
  const values = [-5, 12.3, 47.75, 60, 100.5, 1e9];
  const laws = values.map((value) => law(protocol, value));
  assert.ok(Math.abs(ratio(laws) - 5) < 1e-9);
  for (let seed = 0; seed < 100; seed++) {
    const value = values[seed % values.length];
    assert.equal(hex(protocol.privatize(value, seeded(seed))), meanReport(value, [-5, 100.5], plain(seed)));
  }
  assert.throws(() => loadProtocol(meanOf(MEAN, "8/5")), refused("spec", /more about an answer/));
  for (const value of ["1/2x", "2/4", "01", "1/1", "--1", 1, "1".repeat(2001)]) {
    assert.throws(() => loadProtocol(meanOf(MEAN, "2", { values: ["-2", "-1", value, "2"] })), refused("spec", /lowest terms/), String(value));
  }
  for (const changes of [
    { values: ["1"] }, { values: "1" }, { rows: [["1", "1", "1", "1"]] }, { rows: "1" },
    { certificate: "x" }, { outputs: [] }, { domain: bread },
  ]) {
    assert.throws(() => loadProtocol(meanOf(MEAN, "2", changes)), refused("spec", /./), JSON.stringify(changes));
  }
});

const figureOf = (low, protocol = "OneBitMean") => {
  const domain = { kind: "interval", low, high: "1", unit: "" };
  return { weight: 1, protocol: { ...head, protocol, domain, epsilon: "1" } };
};
const momentsOf = (groups, domain = hours) => ({ ...head, protocol: "Moments", domain, epsilon: "1", groups });

test("moments are about u and u squared of one number, or five figures of two, and refuse what is none", () => {
  const one = loadProtocol(momentsOf([figureOf("-1"), figureOf("0")]));
  assert.deepEqual(one.figures.map(({ name }) => name), ["x", "x squared"]);
  assert.deepEqual([-5, 47.75, 100.5].map((x) => [one.figure(x, 0), one.figure(x, 1)]), [[-1, 1], [0, 0], [1, 1]]);
  assert.equal(one.groups, undefined, "a report about one figure tells of the others, so that no page calls them parts");
  assert.ok(ratio([-5, 3, 47.75, 100.5].map((value) => law(one, value))) <= Math.E * (1 + 1e-9));
  const pair = { kind: "records", columns: [{ name: "a", domain: hours }, { name: "b", domain: hours }] };
  const five = ["-1", "-1", "0", "0", "-1"].map((low) => figureOf(low));
  const two = loadProtocol(momentsOf(five, pair));
  assert.deepEqual(two.figures.map(({ name }) => name), ["a", "b", "a squared", "b squared", "a times b"]);
  assert.deepEqual([0, 1, 2, 3, 4].map((group) => two.figure([-5, 74.125], group)), [-1, 0.5, 1, 0.25, -0.5]);
  const wrong = [[[figureOf("-1")]], [[figureOf("0"), figureOf("-1")]], [five], [[figureOf("-1"), figureOf("0")], pair], [five, ages], ["x"]];
  for (const [groups, domain] of wrong) {
    assert.throws(() => loadProtocol(momentsOf(groups, domain)), refused("spec", /./), JSON.stringify([groups, domain]).slice(0, 200));
  }
});

test("Window draws what the format says, word for word", () => {
  const sizes = [[2, 1, "1"], [3, 2, "1/2"], [17, 4, "5"], [300, 30, "8"], [70000, 9, "12"]];
  const values = [-5, 100.5, 0, 1 / 3, 47.75, -1e300, 1e300, 99.99999999, Number.MIN_VALUE, -4.999999999999999];
  for (const [positions, width, epsilon] of sizes) {
    const protocol = loadProtocol(windowOf(positions, width, epsilon));
    const keep = protocol.thresholds.keep.numerator;
    for (let seed = 0; seed < 200; seed++) {
      const [bits, other] = [seeded(seed), plain(seed)];
      const value = values[seed % values.length];
      assert.equal(hex(protocol.privatize(value, bits)), windowReport(value, [-5, 100.5], positions, width, keep, other));
      assert.equal(bits.words, other.words);
      assert.equal(bits.words >= (width === 1 ? 3 : 4), true, "one word for rounding, also where nothing is rounded");
    }
  }
  const whole = loadProtocol(windowOf(7, 2, "2", ages));
  for (let seed = 0; seed < 200; seed++) {
    const age = 18 + (seed % 82);
    const expected = windowReport(age, [18, 99], 7, 2, whole.thresholds.keep.numerator, plain(seed));
    assert.equal(hex(whole.privatize(age, seeded(seed))), expected);
  }
});

test("Window's threshold is floor(2^64 t), by an interval of e in rational numbers", () => {
  // 2.718281828459045235360287471352662497757247 < e < ...248
  const scale = 10n ** 42n;
  const below = 2718281828459045235360287471352662497757247n;
  for (const [positions, width] of [[2, 1], [3, 1], [5, 2], [22, 5], [129, 11]]) {
    const [w, outputs] = [BigInt(width), BigInt(positions + width - 1)];
    const floor = (e) => (WORD * (e - scale) * w) / (outputs * scale + (e - scale) * w);
    assert.equal(floor(below), floor(below + 1n));
    assert.equal(loadProtocol(windowOf(positions, width)).thresholds.keep.numerator, floor(below));
  }
});

test("a table of integers of any size is drawn exactly, ties among them", () => {
  const huge = 3n ** 400n;
  const tables = [
    [[3n, 1n], [1n, 3n]],
    [[huge, huge - 2n, 2n], [huge - 2n, huge, 2n]],
    [[1n, 0n, 2n, 0n], [2n, 0n, 1n, 0n]],
    [Array(300).fill(1n), Array(300).fill(1n)],
  ];
  for (const rows of tables) {
    const protocol = loadProtocol(tableOf(rows));
    rows.forEach((weights, position) => {
      const total = weights.reduce((a, b) => a + b);
      const ends = weights.map(((sum) => (weight) => (sum += weight))(0n));
      const some = ends.filter((_, i) => i < 4 || i % 25 === 24);
      const words = some.map((end) => ((end * WORD) / total) % WORD).flatMap((word) => [word, (word + 1n) % WORD, (word + WORD - 1n) % WORD]);
      for (const word of [0n, WORD - 1n, ...words]) {
        for (const next of [0n, 1n, WORD / 3n, WORD / 2n, WORD - 1n]) {
          const given = [word, next, next, WORD - 1n - next, 5n];
          const other = new Plain((i) => given[i] ?? 0n);
          const { bits } = listed([...given, ...Array(40).fill(0n)]);
          const report = hex(protocol.privatize(bread.values[position], bits));
          assert.equal(report, little(other.draw(weights), weights.length > 256 ? 2 : 1), `${word} ${next}`);
          assert.equal(bits.words, other.words);
        }
      }
      for (let seed = 0; seed < 100; seed++) {
        const report = hex(protocol.privatize(bread.values[position], seeded(seed)));
        assert.equal(report, little(plain(seed).draw(weights), weights.length > 256 ? 2 : 1));
      }
    });
  }
});

test("Attributes draws the group first, then as the inner protocol does", () => {
  const protocol = loadProtocol(attributes());
  for (let seed = 0; seed < 200; seed++) {
    const [bits, other, again] = [seeded(seed), plain(seed), seeded(seed)];
    const picked = other.integers(7);
    const group = picked < 1 ? 0 : picked < 3 ? 1 : 2;
    again.integers(7);
    const inner = protocol.groups[group].protocol;
    const report = protocol.privatize(RECORD, bits);
    const expected = inner.privatize([RECORD.time, RECORD.age, RECORD.bread][group], again);
    assert.equal(hex(report.slice(0, 1 + expected.length)), `0${group}${hex(expected)}`);
    assert.equal(bits.words, again.words);
  }
});

// -- answers -------------------------------------------------------------------------------------------------------

test("a number beyond an end is taken as that end, and nothing tells that it was", () => {
  const protocol = loadProtocol(windowOf(5, 3));
  for (const [outside, end] of [[1e9, 100.5], [100.50001, 100.5], [-5.1, -5], [-1e308, -5], [10n ** 400n, 100.5]]) {
    assert.deepEqual(law(protocol, outside), law(protocol, end));
    assert.equal(hex(protocol.encode(outside)), hex(protocol.encode(end)));
    for (let seed = 0; seed < 50; seed++) {
      const [a, b] = [seeded(seed), seeded(seed)];
      assert.equal(hex(protocol.privatize(outside, a)), hex(protocol.privatize(end, b)));
      assert.equal(a.words, b.words);
    }
  }
});

test("answers as bytes, for keys that stay here", () => {
  const number = loadProtocol(windowOf(5, 3));
  assert.equal(hex(number.encode(1)), "02000000000000f03f");
  assert.equal(hex(number.encode(1n)), "02000000000000f03f");
  assert.equal(hex(number.encode(-0)), `02${"00".repeat(8)}`, "zero has one form");
  const record = loadProtocol(attributes());
  assert.equal(
    hex(record.encode({ bread: "pita", age: 40, time: 1 })),
    `03${["02000000000000f03f", "001600000000000000", "000200000000000000"].map((part) => `09000000${part}`).join("")}`,
  );
});

test("the ends of an interval are the nearest floats of their fractions", () => {
  const [low, high] = ["1/3", "9007199254740991/3"];
  const { domain } = loadProtocol(windowOf(2, 1, "1", { kind: "interval", low, high, unit: "" }));
  assert.deepEqual([domain.low, domain.high, domain.unit], [1 / 3, 9007199254740991 / 3, ""]);
});

const SECRET = "unmentionable";

test("what is no answer is refused before a coin is thrown, and the message never has it", () => {
  const none = { bits: { bernoulli: assert.fail, integers: assert.fail, draw: assert.fail, packed: assert.fail } };
  const number = loadProtocol(windowOf(5, 3));
  for (const value of [SECRET, "12", true, Infinity, -Infinity, [12], { hours: 12 }, Symbol(SECRET), new Date(0)]) {
    const expected = refused("domain", "the answer is not a number");
    assert.throws(() => number.privatize(value, none.bits), expected);
    assert.throws(() => number.encode(value), expected);
  }
  for (const value of [null, undefined, NaN]) assert.throws(() => number.encode(value), refused("domain", /missing/));
  const record = loadProtocol(attributes());
  const wrong = [
    [{ ...RECORD, [SECRET]: 1 }, /^the answer has a column that is not asked for$/],
    [{ ...RECORD, bread: SECRET }, /^column "bread": the answer is not one of the 3 categories$/],
    [{ ...RECORD, time: SECRET }, /^column "time": the answer is not a number$/],
    [{ ...RECORD, age: 123456 }, /^column "age": the answer is not one of the whole numbers from 18 to 99$/],
    [{ time: 1, age: 40 }, /^column "bread": the answer is missing/],
    [Object.create(RECORD), /^column "time": the answer is missing/],
    [SECRET, /^the answer is not a record/],
    [[1, 40, "pita"], /^the answer is not a record/],
    [null, /^the answer is missing/],
  ];
  for (const [value, message] of wrong) {
    assert.throws(() => record.privatize(value, none.bits), (error) => {
      assert.equal(error.kind, "domain");
      assert.match(error.message, message);
      assert.ok(!error.message.includes(SECRET) && !error.message.includes("123456"));
      return true;
    });
  }
});

test("a column's own category for missing answers stands in for a key that is not there", () => {
  const domain = { kind: "categories", values: ["yes", "no", "no answer"], missing: "no answer" };
  const protocol = loadProtocol({
    ...head, protocol: "Attributes", epsilon: "1", domain: { kind: "records", columns: [{ name: "smoke", domain }] },
    groups: [{ weight: 1, protocol: grr(domain) }],
  });
  assert.deepEqual(law(protocol, {}), law(protocol, { smoke: "no answer" }));
});

// -- specs ---------------------------------------------------------------------------------------------------------

test("domains, windows, tables and groups that are not usable are refused", () => {
  const with_ = (changes) => ({ ...hours, ...changes });
  const specs = [
    windowOf(5, 3, "1", bread),
    windowOf(5, 3, "1", { kind: "strings", cells: 64, cohorts: 2, key: "" }),
    windowOf(1, 1), windowOf(5, 0), windowOf(2.5, 1), windowOf("5", 1), windowOf(2 ** 28, 2),
    { ...windowOf(5, 3), read: "median" },
    { ...oneBit(), positions: 2 },
    grr(hours),
    ...["5", "5/1", "10/2", "0.5", "-0", "+1", " 1", "1/0", "1/-2", 1, null, "9007199254740992", "1/9007199254740992", "0/5"]
      .filter((low) => low !== "5")
      .map((low) => windowOf(5, 3, "1", with_({ low }))),
    windowOf(5, 3, "1", with_({ low: "101" })),
    windowOf(5, 3, "1", with_({ low: "201/2" })),
    windowOf(5, 3, "1", with_({ unit: 1 })),
    windowOf(5, 3, "1", with_({ step: "1" })),
    windowOf(5, 3, "1", { kind: "interval", low: "0", high: "1" }),
    tableOf([[3, 1]]), tableOf([[3, 1], [1, 2]]), tableOf([[6, 2], [2, 6]]), tableOf([[0, 0], [0, 0]]),
    tableOf([[3, 1], [1, 3]], "2", { rows: [["3", "1"], ["1", "3"], ["1", "3"]] }),
    tableOf([[3, 1], [1, 3]], "2", { rows: [[3, 1], [1, 3]] }),
    tableOf([[3, 1], [1, 3]], "2", { rows: [["3", "1"], ["1", "03"]] }),
    tableOf([[3, 1], [1, 3]], "2", { rows: [["3", "1"], ["-1", "5"]] }),
    tableOf([[3, 1], [1, 3]], "2", { outputs: ["a"] }),
    tableOf([[3, 1], [1, 3]], "2", { outputs: ["a", "a"] }),
    tableOf([[3, 1], [1, 3]], "2", { certificate: "abc" }),
    tableOf([[3, 1], [1, 3]], "2", { delta: "1" }),
    { ...tableOf([[3, 1], [1, 3]]), domain: hours },
    attributes({ epsilon: "3/2" }), attributes({ epsilon: "3" }),
    attributes({ groups: attributes().groups.slice(1) }),
    attributes({ groups: attributes().groups.toReversed() }),
    attributes({ groups: attributes().groups.map((group) => ({ ...group, weight: 0 })) }),
    attributes({ groups: attributes().groups.map((group) => ({ ...group, weight: 2 ** 31 })) }),
    attributes({ groups: attributes().groups.map((group) => ({ ...group, name: "x" })) }),
    attributes({ domain: { kind: "records", columns: [] } }),
    attributes({ domain: { kind: "records", columns: Array.from({ length: 65 }, (_, i) => ({ name: `${i}`, domain: ages })) } }),
    attributes({ domain: { kind: "records", columns: [columns[0], columns[0], columns[2]] } }),
    attributes({ domain: { kind: "records", columns: [{ name: "r", domain: { kind: "records", columns } }, columns[1], columns[2]] } }),
    attributes({ domain: { kind: "records", columns: [{ name: "s", domain: { kind: "strings", cells: 64, cohorts: 2, key: "" } }, columns[1], columns[2]] } }),
    attributes({ domain: { kind: "records", columns: [{ ...columns[0], name: "" }, columns[1], columns[2]] } }),
    attributes({ domain: hours }),
    rangesOf({ cells: 1 }), rangesOf({ cells: 2 }), rangesOf({ cells: 7 }), rangesOf({ cells: "5" }), rangesOf({ cells: 2 ** 20 + 1 }),
    rangesOf({}, ages), rangesOf({}, bread), rangesOf({ epsilon: "2" }), rangesOf({ fanouts: [2, 1] }), rangesOf({ fanouts: [3, 2] }),
    rangesOf({ fanouts: 6 }), rangesOf({ fanouts: [] }), rangesOf({ groups: rangesOf().groups.toReversed() }), rangesOf({ groups: [] }),
    rangesOf({ groups: rangesOf().groups.map(({ weight, protocol }) => ({ weight, protocol: { ...protocol, protocol: "OUE" } })) }),
    rectanglesOf({ cells: [4] }), rectanglesOf({ cells: [5, 3] }), rectanglesOf({ cells: [4, 1] }),
    rectanglesOf({ domain: hours }), rectanglesOf({ epsilon: "2" }),
    rectanglesOf({ domain: { kind: "records", columns } }), rectanglesOf({}, []), rectanglesOf({}, [[2, 1]]), rectanglesOf({}, [[2, 2], [3, 1]]),
    rectanglesOf({}, [[2, 2], [2, 2]]), rectanglesOf({}, [[2, 6]]), rectanglesOf({}, [[2, 2.5]]), rectanglesOf({ groups: rectanglesOf().groups.slice(1) }),
    placesOf({ reach: 0 }), placesOf({ reach: 1.5 }), placesOf({ reach: 65 }), placesOf({ epsilon: "25/2" }),
    placesOf({}, pair), placesOf({}, { ...town, columns: 1 }), placesOf({}, { ...town, columns: 2049 }),
    placesOf({}, { ...town, cell: "wide" }), placesOf({}, { ...town, cell: 500 }), placesOf({}, { kind: "grid", columns: 3, rows: 2 }),
    attributes({ domain: town }), grr({ kind: "records", columns }),
  ];
  for (const spec of specs) {
    assert.throws(() => loadProtocol(spec), refused("spec", /./), JSON.stringify(spec).slice(0, 300));
  }
});

test("a table that tells more than its epsilon says is refused, to the last digit", () => {
  loadProtocol(tableOf([[3, 1], [1, 3]], "11/10")); // ln 3 = 1.0986...
  assert.throws(() => loadProtocol(tableOf([[3, 1], [1, 3]], "1")), refused("spec", /more about an answer/));
  assert.throws(() => loadProtocol(tableOf([[3, 1], [4, 0]], "60")), refused("spec", /more about an answer/));
  // e^1 to 60 digits, once below and once above in the last one; without a common divisor.
  const e = 271828182845904523536028747135266249775724709369995957496696n;
  const one = 10n ** 59n;
  const rows = (top) => [[top, one], [one, top]];
  loadProtocol(tableOf(rows(e - 3n), "1"));
  assert.throws(() => loadProtocol(tableOf(rows(e + 1n), "1")), refused("spec", /more about an answer/));
});

test("a table with a delta is refused where the delta does not hold", () => {
  const rows = [[97, 2, 1], [2, 98, 0]];
  loadProtocol(tableOf(rows, "4", { delta: "1/100" }));
  for (const delta of ["1/101", "1/1000000"]) {
    assert.throws(() => loadProtocol(tableOf(rows, "4", { delta })), refused("spec", /more about an answer/));
  }
  assert.throws(() => loadProtocol(tableOf(rows, "3", { delta: "1/100" })), refused("spec", /more about an answer/));
  assert.equal(loadProtocol(tableOf(rows, "4", { delta: "1/100" })).delta, "1/100");
});

test("the laws of a table are checked, and are those of its spec", () => {
  const law = (name, ...weights) => ({ name, weights: weights.map(String) });
  const withLaws = (laws) => loadProtocol(tableOf([[3, 1], [1, 3]], "11/10", { laws }));
  const { laws } = withLaws([law("rare", 1, 9), law(2, 0, 1)]);
  assert.deepEqual(laws, [{ name: "rare", weights: [1n, 9n] }, { name: 2, weights: [0n, 1n] }]);
  assert.equal(loadProtocol(tableOf([[3, 1], [1, 3]], "11/10")).laws, undefined);
  const [a, b] = [law("a", 1, 2), law("b", 2, 1)];
  const many = Array.from({ length: 65 }, (_, i) => law(i, 1, i));
  for (const wrong of [
    [a], [a, a], [a, law("b", 0, 0)], [a, law("b", 2, 4)], [a, law("b", 1, 2, 3)], [a, law("b", 1, -2)],
    [a, { ...b, prior: 1 }], [a, { name: "b" }], { a, b }, many, null,
  ]) {
    assert.throws(() => withLaws(wrong), refused("spec", /./), JSON.stringify(wrong));
  }
});

test("unknown kinds are refused by name, everywhere", async () => {
  const why = (what, name) => new RegExp(`^the ${what} "${name}" is unknown to this page, which knows .*: it cannot be answered in a browser$`);
  for (const name of ["Stranger", "grr", "toString", "__proto__", "constructor"]) {
    assert.throws(() => loadProtocol({ ...grr(bread), protocol: name }), refused("unknown", why("protocol", name)));
    assert.throws(() => loadProtocol(grr({ kind: name })), refused("unknown", why("kind of answers", name)));
  }
  const question = { id: "q", text: "What?", protocol: { ...grr(bread), protocol: "Stranger", more: 1 } };
  const asked = survey({ questions: [question] });
  const { client, server } = await device(asked);
  await assert.rejects(client.survey(), refused("unknown", why("protocol", "Stranger")));
  await assert.rejects(client.answer({ q: "rye" }), refused("unknown", why("protocol", "Stranger")));
  assert.equal(server.bodies.length, 0);
  // A page that only shows results reads such a survey, and cannot answer it either.
  const bytes = canonicalBytes(asked);
  const shown = await Survey.fromBytes(bytes, await fingerprint("survey", bytes), { toAnswer: false });
  const { protocol } = shown.questions[0];
  assert.deepEqual([protocol.name, protocol.domain.size, shown.epsilon], ["Stranger", 3, "1"]);
  assert.match(protocol.unknown, why("protocol", "Stranger"));
  for (const use of [() => protocol.privatize("rye"), () => protocol.encode("rye"), () => shown.checkAnswers({ q: "rye" })]) {
    assert.throws(use, /unknown to this page/);
  }
  const broken = canonicalBytes(survey({ questions: [{ ...question, protocol: { ...grr(bread), epsilon: "0" } }] }));
  await assert.rejects(Survey.fromBytes(broken, await fingerprint("survey", broken), { toAnswer: false }), refused("spec", /./));
});

test("a survey asks for a number, a record and a table, and sends what its protocols draw", async () => {
  const protocols = { time: windowOf(5, 3, "1/2"), all: attributes({}), table: tableOf([[6, 3, 1], [3, 6, 1]], "1") };
  const questions = Object.entries(protocols).map(([id, protocol]) => ({ id, text: `${id}?`, protocol }));
  const { client, server } = await device(survey({ questions, longitudinal: { rule: "none", epochs: 1 } }));
  const asked = await client.survey();
  assert.deepEqual([asked.reportBytes, asked.epsilon, asked.delta], [1 + 12 + 1, "7/2", null]);
  await assert.rejects(client.answer({ time: 1, all: { ...RECORD, age: 1 }, table: "rye" }), refused("domain", /^question "all": column "age"/));
  const receipt = await client.answer({ time: 1e6, all: RECORD, table: "rye" });
  assert.equal(receipt.state, "sent");
  assert.equal(server.bodies[0], hex(receipt.bytes));
  assert.equal(receipt.bytes.length, 24 + 14);
});

test("the deltas of a survey add up over its questions", async () => {
  const protocol = tableOf([[97, 2, 1], [2, 98, 0]], "4", { delta: "1/100" });
  const questions = ["a", "b"].map((id) => ({ id, text: `${id}?`, protocol }));
  const longitudinal = { rule: "none", epochs: 3 };
  const read = async (budget) => {
    const bytes = canonicalBytes(survey({ questions, longitudinal, budget: { group: "guild", epsilon: "24", ...budget } }));
    return Survey.fromBytes(bytes, await fingerprint("survey", bytes));
  };
  const asked = await read({ delta: "3/50" });
  assert.deepEqual([asked.delta, asked.budgetDelta, asked.relation], ["1/50", "3/50", "any"]);
  for (const budget of [{}, { delta: "1/50" }, { delta: "59/1000" }]) {
    await assert.rejects(read(budget), refused("spec", "the survey asks for more delta than its own budget"));
  }
  await assert.rejects(read({ delta: "3/50", relation: "profiles" }), refused("spec", "the budget is about another relation than the questions"));
  for (const budget of [{ delta: "1" }, { delta: "0" }, { delta: "2/50" }, { relation: "any" }, { relation: "all" }, { relation: "" }]) {
    await assert.rejects(read({ delta: "3/50", ...budget }), refused("spec", /delta|relation/));
  }
});

test("a ledger debits deltas, and refuses what goes beyond the group's smallest", async () => {
  const once = { longitudinal: { rule: "none", epochs: 1 } };
  const leaky = { id: "q", text: "What?", protocol: tableOf([[97, 2, 1], [2, 98, 0]], "4", { delta: "1/100" }) };
  const leaks = (name, delta) => survey({ ...once, name, questions: [leaky], budget: { group: "guild", epsilon: "100", delta } });
  const first = await device(leaks("first", "1/40"));
  const { store } = first;
  const receipt = await first.client.answer({ q: "rye" });
  assert.deepEqual([receipt.epsilon, receipt.delta], ["4", "1/100"]);
  await (await device(leaks("second", "1/10"), { store })).client.answer({ q: "rye" });
  const { client } = await device(leaks("third", "1/10"), { store });
  const { deltaSpent, deltaCap, spent, related, enough } = await client.budget();
  assert.deepEqual([deltaSpent, deltaCap, spent, related, enough], ["1/50", "1/40", "8", true, false]);
  await assert.rejects(client.answer({ q: "no such answer" }), refused("budget", /another answer would go beyond that/));
  const pure = { group: "guild", epsilon: "100" };
  await (await device(survey({ ...once, budget: pure }), { store })).client.answer({ smoke: "yes" });
  assert.equal((await (await device(leaks("fourth", "1/10"), { store })).client.budget()).deltaCap, "0");
});

// -- profiles ------------------------------------------------------------------------------------------------------

const QUARTER = String(WORD / 4n);
const REST = String(WORD - WORD / 4n);
const where = {
  kind: "records",
  columns: [
    { name: "profile", domain: { kind: "categories", values: ["north", "south"] } },
    { name: "value", domain: { kind: "integers", low: 0, high: 1 } },
  ],
};
const flip = [[REST, QUARTER], [QUARTER, REST]];
const profiled = (changes = {}) => ({
  ...head, protocol: "ProfileTable", domain: where, epsilon: "11/10", mechanism: "Warner",
  profiles: [["1", "0"], ["0", "1"]], edges: [[0, 1]], rows: [...flip, ...flip], read: "values", ...changes,
});

test("ProfileTable: the row is that of profile and value, and only the drawn value leaves", () => {
  const protocol = loadProtocol(profiled({ rows: [...flip, ["0", String(WORD)], [QUARTER, REST]] , epsilon: "11/10" }));
  assert.deepEqual([protocol.relation, protocol.over, protocol.forms], ["profiles", "two joined profiles: north and south", 2]);
  const chance = (profile, value) => share(law(protocol, { profile, value }).get("01") ?? [0n, 1n]);
  assert.deepEqual([chance("north", 0), chance("north", 1), chance("south", 0), chance("south", 1)], [0.25, 0.75, 1, 0.75]);
  assert.throws(() => protocol.privatize({ profile: "west", value: 0 }), refused("domain", /^column "profile"/));
  assert.throws(() => protocol.privatize({ value: 0 }), refused("domain", /missing/));
});

test("a profile table whose joined profiles are told apart is refused, to the last digit", () => {
  loadProtocol(profiled()); // ln 3 = 1.0986...
  loadProtocol(profiled({ epsilon: "1", profiles: [["9/10", "1/10"], ["1/10", "9/10"]] }));
  const told = refused("spec", "the table tells more about a profile than its epsilon says");
  assert.throws(() => loadProtocol(profiled({ epsilon: "1" })), told);
  const thirds = { profiles: [["1/3", "2/3"], ["1/2", "1/2"]] }; // ln(6/5) = 0.1823...
  loadProtocol(profiled({ ...thirds, epsilon: "183/1000" }));
  assert.throws(() => loadProtocol(profiled({ ...thirds, epsilon: "91/500" })), told);
  assert.throws(() => loadProtocol(profiled({ epsilon: "60", rows: [[String(WORD), "0"], flip[1], ...flip] })), told);
  for (const changes of [
    { profiles: [["1", "0"]] }, { profiles: [["1", "0"], ["0", "9/10"]] }, { profiles: [["1", "0"], ["0", "2/2"]] }, { profiles: [["2", "-1"], ["0", "1"]] },
    { edges: [] }, { edges: [[1, 0]] }, { edges: [[0, 1], [0, 1]] }, { edges: [[0, 2]] }, { edges: [[0]] },
    { rows: flip }, { rows: [...flip, ...flip.map((row) => row.map((weight) => String(BigInt(weight) / 2n)))] },
    { read: "mean" }, { mechanism: 1 }, { more: 1 }, { domain: { ...where, columns: [...where.columns].reverse() } }, { domain: bread },
  ]) {
    assert.throws(() => loadProtocol(profiled(changes)), refused("spec", /./), JSON.stringify(changes));
  }
});

test("a budget group has one relation", async () => {
  const once = { longitudinal: { rule: "none", epochs: 1 } };
  const guild = { group: "guild", epsilon: "9" };
  const asking = (relation) => {
    const questions = [{ id: "q", text: "Where?", protocol: profiled() }];
    return survey({ ...once, name: "where", questions, budget: { ...guild, ...relation } });
  };
  const loaded = (bytes) => fingerprint("survey", bytes).then((pinned) => Survey.fromBytes(bytes, pinned));
  const bytes = canonicalBytes(asking({}));
  await assert.rejects(loaded(bytes), refused("spec", /another relation/));
  const questions = [{ id: "a", text: "a?", protocol: profiled() }, { id: "b", text: "b?", protocol: grr(bread) }];
  const mixed = canonicalBytes(survey({ ...once, questions, budget: { ...guild, relation: "profiles" } }));
  await assert.rejects(loaded(mixed), refused("spec", /different relations, whose levels cannot be added/));
  const { client: first, store } = await device(survey({ ...once, budget: { group: "guild", epsilon: "9" } }));
  await first.answer({ smoke: "yes" });
  const { client } = await device(asking({ relation: "profiles" }), { store });
  const { relation, related, enough } = await client.budget();
  assert.deepEqual([relation, related, enough], ["any", false, false]);
  await assert.rejects(client.answer({ q: "no such answer" }), refused("budget", /another relation on this device, and the two are never added/));
  const alone = await device(asking({ relation: "profiles" }));
  assert.equal((await alone.client.answer({ q: { profile: "north", value: 0 } })).state, "sent");
  assert.equal((await alone.client.budget()).relation, "profiles");
});

// -- the tests can fail --------------------------------------------------------------------------------------------

const MUTATIONS = [
  ["below + bits.bernoulli({ high", "below + 0 * bits.bernoulli({ high"],
  ["kept ? position + near : far", "kept ? far : position + near"],
  ["Math.floor(rest * 2 ** 53)", "Math.round(rest * 2 ** 52)"],
  ["[w, -w, w, BigInt(outputs) - w]", "[w, -w, w, BigInt(outputs)]"],
  ["(positions - 1)) / (high - low)", "positions) / (high - low)"],
  ["Math.min(Math.max(number, low), high) + 0", "Math.min(Math.max(number, low - 1), high) + 0"],
  ["(digits + 1n) * total) return outcome", "digits * total) return outcome"],
  ["(digits * total) / scale)", "(digits * total) / scale - 1n)"],
  ["sums[rounded(answer, bits)]", "sums[place(answer).below]"],
  ["numbers[middle] <= value", "numbers[middle] < value"],
  ["cell(answer) / (leaves / sizes[level])", "cell(answer) / sizes[level]"],
  ["place(answer, grids[level], 0) * grids[level][1]", "place(answer, grids[level], 0) * grids[level][0]"],
  ["/ (lengths[side] / grid[side])", "/ (lengths[side] * grid[side])"],
  ["parts[chosen].of(answer), bits), headBytes);", "parts[chosen].of(answer), bits));"],
];
const SOURCE = readFileSync(new URL("../deniable.js", import.meta.url), "utf8");

/** Reports of the new kinds, a seed each, and what their words should give; true if one of them is another. */
async function differs(module) {
  const bits = (seed) => {
    let block = 0;
    const fill = (bytes) => {
      assert.ok(block < 100, "a draw that does not end");
      bytes.set(hashed(seed, block++));
    };
    return new module.RandomBits(fill, 32);
  };
  const time = module.loadProtocol(windowOf(17, 4, "3"));
  const drawn = module.loadProtocol(tableOf([[3, 0, 1], [1, 0, 3]]));
  const mean = module.loadProtocol(meanOf());
  const record = module.loadProtocol(attributes());
  const cut = module.loadProtocol(rangesOf());
  const plane = module.loadProtocol(rectanglesOf());
  for (let seed = 0; seed < 300; seed++) {
    const x = [1e6, -1e6, 100.5, 47.75, 12.3][seed % 5];
    const keep = loadProtocol(windowOf(17, 4, "3")).thresholds.keep.numerator;
    if (hex(time.privatize(x, bits(seed))) !== windowReport(x, [-5, 100.5], 17, 4, keep, plain(seed))) return true;
    if (hex(drawn.privatize("rye", bits(seed))) !== little(plain(seed).draw([3n, 0n, 1n]), 1)) return true;
    if (hex(mean.privatize(x, bits(seed))) !== meanReport(x, [-5, 100.5], plain(seed))) return true;
    if (hex(record.privatize(RECORD, bits(seed))) !== hex(loadProtocol(attributes()).privatize(RECORD, seeded(seed)))) return true;
    if (hex(cut.privatize(x, bits(seed))) !== hex(loadProtocol(rangesOf()).privatize(x, seeded(seed)))) return true;
    const both = { x: 3 + (seed % 4), time: x };
    if (hex(plane.privatize(both, bits(seed))) !== hex(loadProtocol(rectanglesOf()).privatize(both, seeded(seed)))) return true;
  }
  // A third ends inside a word: the next word decides.
  const thirds = module.loadProtocol(tableOf([[1, 2], [2, 1]]));
  for (const [word, next] of [[WORD / 3n, 0n], [WORD / 3n, WORD - 1n], [WORD - 1n, 0n]]) {
    const words = [word, next, 0n];
    const fill = (bytes) => {
      assert.ok(words.length, "a draw that does not end");
      new DataView(bytes.buffer).setBigUint64(0, words.shift(), true);
    };
    const stream = new module.RandomBits(fill, 8);
    const other = new Plain((i) => [word, next][i] ?? 0n);
    if (hex(thirds.privatize("rye", stream)) !== little(other.draw([1n, 2n]), 1) || stream.words !== other.words) return true;
  }
  return false;
}

for (const [right, wrong] of MUTATIONS) {
  test(`a small error is found: ${wrong}`, async () => {
    assert.equal(SOURCE.split(right).length, 2, "the line to change stands once");
    const changed = await import(`data:text/javascript,${encodeURIComponent(SOURCE.replace(right, wrong))}`);
    assert.ok(await differs(changed).catch(() => true), "no report differs");
  });
}

test("and nothing in the SDK as it is", async () => {
  assert.equal(await differs(await import("../deniable.js")), false);
});

for (const spec of [cellsOf(), subsetOf(), itemsOf()]) {
  test(`${spec.protocol}: epsilon is kept between all pairs of whole sets, and a larger set is no exception`, () => {
    const protocol = loadProtocol(spec);
    const laws = [...SETS, ["mail", "maps", "music"]].map((set) => law(protocol, set));
    const found = ratio(laws);
    assert.ok(found <= Math.E * (1 + 1e-12) && found > Math.E * (1 - 1e-9), String(found));
  });
}

test("KeyValue: epsilon is kept between all answers, keys and numbers together", () => {
  const protocol = loadProtocol(keysOf());
  const answers = [{}, { mail: -5 }, { mail: 100.5 }, { mail: 7, maps: 8 }, { mail: 7, maps: 8, music: 9 }];
  const found = ratio(answers.map((one) => law(protocol, one)));
  assert.ok(found <= Math.E * (1 + 1e-12) && found > 2, String(found));
});

const sexes = { name: "sex", domain: { kind: "categories", values: ["f", "m"] } };
const privateOf = (changes = {}, own = { kind: "categories", values: ["yes", "no"] }) => ({
  ...head, protocol: "PrivateStrata", domain: { kind: "records", columns: [sexes, { name: "smoke", domain: own }] }, epsilon: "1",
  positions: 0, law: grr({ kind: "integers", low: 0, high: 3 }), ...changes,
});

test("PrivateStrata: epsilon is kept between all pairs of stratum and answer", () => {
  const listed = loadProtocol(privateOf());
  const pairs = ["f", "m"].flatMap((sex) => ["yes", "no"].map((smoke) => ({ sex, smoke })));
  const number = loadProtocol(privateOf({ positions: 2 }, hours));
  const numbers = ["f", "m"].flatMap((sex) => [-5, 7.3, 200].map((smoke) => ({ sex, smoke })));
  for (const [protocol, answers] of [[listed, pairs], [number, numbers]]) {
    const found = ratio(answers.map((one) => law(protocol, one)));
    assert.ok(found <= Math.E * (1 + 1e-12) && found > Math.E * (1 - 1e-9), String(found));
  }
  assert.deepEqual(listed.readings, ["all", "sex", "f", "m"]);
  assert.deepEqual(listed.shared, ["sex"]);
});

test("specs of private strata that do not fit together are refused", () => {
  const named = (name) => ({ kind: "records", columns: [{ name, domain: { kind: "categories", values: ["sex", "m"] } }, privateOf().domain.columns[1]] });
  for (const wrong of [
    privateOf({ positions: 2 }), privateOf({ positions: 1 }, hours), privateOf({}, hours), privateOf({ epsilon: "2" }), privateOf({ law: grr(bread) }),
    privateOf({ domain: { kind: "records", columns: [sexes] } }), privateOf({ domain: { kind: "records", columns: [{ ...sexes, domain: hours }, sexes] } }),
    privateOf({ domain: named("sex") }), privateOf({ positions: 3 }, hours),
  ]) assert.throws(() => loadProtocol(wrong), { name: "DeniableError" }, JSON.stringify(wrong));
});

test("what is no set of items is refused without repeating it", () => {
  const [items, keys] = [loadProtocol(itemsOf()), loadProtocol(keysOf())];
  for (const wrong of ["s3cret", null, undefined, 5, { mail: 1 }, ["s3cret"], [["mail"]], [null]]) {
    assert.throws(() => items.privatize(wrong), (error) => error.kind === "domain" && !error.message.includes("s3cret"));
  }
  for (const wrong of ["s3cret", null, [], ["mail"], { s3cret: 1 }, { mail: "s3cret" }, { mail: null }]) {
    assert.throws(() => keys.privatize(wrong), (error) => error.kind === "domain" && !error.message.includes("s3cret"));
  }
  assert.equal(hex(items.encode(["music", "mail", "mail"])), `04${"00".repeat(8)}02${"00".repeat(7)}`);
});

test("specs of sets that do not fit together are refused", () => {
  const two = { ...apps, at_most: 1 };
  for (const wrong of [
    cellsOf({ cells: 2 }), cellsOf({ cohorts: 0 }), cellsOf({ key: 5 }), cellsOf({}, bread), subsetOf({ subset_size: 0 }), subsetOf({ subset_size: 4 }),
    subsetOf({}, { ...apps, at_most: 4 }), subsetOf({}, { ...apps, items: hours }), itemsOf({ groups: [] }), itemsOf({ epsilon: "2" }),
    itemsOf({ groups: itemsOf().groups.toReversed() }), itemsOf({ domain: two }), itemsOf({ groups: [{ weight: 1, protocol: grr(bread) }] }),
    keysOf({ law: subsetOf() }), keysOf({ epsilon: "2" }), keysOf({ law: grr(bread) }), keysOf({ domain: apps }),
  ]) assert.throws(() => loadProtocol(wrong), { name: "DeniableError" }, JSON.stringify(wrong));
});

test("coordinates become cells of a grid, as in Python", () => {
  const berlin = { south: 52.34, west: 13.09, north: 52.68, east: 13.76 };
  assert.deepEqual(cellIn(berlin, [20, 24], 52.52, 13.405), { north: 11, east: 12 });
  assert.deepEqual(cellIn(berlin, [20, 24], 40, 13.76), { north: 1, east: 24 });
  for (const wrong of [NaN, Infinity, "s3cret", null]) {
    assert.throws(() => cellIn(berlin, [20, 24], wrong, 13.4), (error) => error.kind === "domain" && !error.message.includes("s3cret"));
  }
  assert.throws(() => cellIn({ ...berlin, north: 52 }, [20, 24], 52.5, 13.4), { name: "DeniableError" });
});

test("a column of a record may have a title, which people read instead of its name", () => {
  const columns = [{ name: "x", domain: hours }, { name: "y", domain: hours }];
  const titled = (...titles) => {
    const withTitle = (column, i) => (titles[i] === undefined ? column : { ...column, title: titles[i] });
    return { kind: "records", columns: columns.map(withTitle) };
  };
  const mean = { weight: 1, protocol: { ...head, protocol: "OneBitMean", domain: hours, epsilon: "1" } };
  const ask = (domain) => loadProtocol({ ...head, protocol: "Attributes", domain, epsilon: "1", groups: [mean, mean] });
  assert.deepEqual(ask(titled("How long?", "And then?")).domain.columns.map(({ title }) => title), ["How long?", "And then?"]);
  assert.deepEqual(ask(titled()).domain.columns.map(({ title }) => title), ["x", "y"]);
  for (const wrong of [titled("How long?"), titled("", "b"), titled(1, 2)]) assert.throws(() => ask(wrong), refused("spec", /title/));
});

test("the kinds are those that are documented", () => {
  assert.deepEqual(KINDS.domains, ["categories", "integers", "strings", "interval", "records", "grid", "sets", "key-numbers", "bit strings", "short text"]);
  assert.deepEqual(KINDS.protocols.slice(-18), [
    "Window", "OneBitMean", "Table", "MeanTable", "ProfileTable", "Attributes", "Stratified", "PrivateStrata",
    "Moments", "Queries", "Ranges", "Rectangles", "PlanarLaplace", "HeavyHitters", "CollisionSets", "SubsetSets",
    "ItemSets", "KeyValue",
  ]);
});

test("no protocol is made of one whose promises it would lose", () => {
  const wrap = (inner) => {
    const both = [{ name: "sex", domain: { kind: "categories", values: ["f", "m"] } }, { name: "answer", domain: inner.domain }];
    const strata = { ...head, protocol: "Stratified", domain: { kind: "records", columns: both }, epsilon: inner.epsilon, inner };
    const column = { kind: "records", columns: both.slice(1) };
    return [strata, { ...head, protocol: "Attributes", domain: column, epsilon: inner.epsilon, groups: [{ weight: 1, protocol: inner }] }];
  };
  const seen = { plain: new Set(), other: new Set() };
  for (const { spec } of [...vectors.cases, ...vectors.stages, ...vectors.streams]) {
    const inner = loadProtocol(spec);
    const whole = ["records", "sets", "key numbers", "grid", "short text", "bit strings"].includes(spec.domain.kind);
    const plain = inner.relation === "any" && !inner.permanent && !inner.domain.open;
    for (const outer of wrap(spec)) {
      if (plain && inner.domain.size && !whole) {
        assert.equal(loadProtocol(outer).relation, "any");
        seen.plain.add(spec.protocol);
      } else if (!plain) {
        assert.throws(() => loadProtocol(outer), { name: "DeniableError", kind: "spec" }, spec.protocol);
        seen.other.add(spec.protocol);
      }
    }
  }
  const lasting = ["Evolving", "LGRR", "LSUE", "LOSUE", "LOLOHA", "LRAPPOR", "DBitFlip", "LOneBitMean"];
  for (const name of ["SecureSum", ...lasting, "CMS"]) assert(seen.other.has(name), name);
  for (const name of ["GRR", "OUE", "OLH", "RAPPOR", "Table"]) assert(seen.plain.has(name), name);
  const message = "no protocol is made of LGRR: what it promises of its reports would be lost";
  const kept = { ...grr({ kind: "integers", low: 0, high: 3 }), protocol: "LGRR", forever: "3" };
  const listOf = (name, values) => ({ name, domain: { kind: "categories", values } });
  const strata = { kind: "records", columns: [listOf("sex", ["f", "m"]), listOf("smoke", ["yes", "no"])] };
  const private_ = { ...head, protocol: "PrivateStrata", domain: strata, epsilon: "1", positions: 0, law: kept };
  assert.throws(() => loadProtocol(private_), refused("spec", message));
  loadProtocol({ ...private_, law: grr({ kind: "integers", low: 0, high: 3 }) });
});
