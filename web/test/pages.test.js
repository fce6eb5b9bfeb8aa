// What the survey page says about a report is true: compared with the law of every report, and with what was drawn.
import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS, Survey, canonicalBytes, fingerprint, loadProtocol } from "../deniable.js";
import { DECODERS, decode, marks, whose } from "../pages/decode.js";
import { answerText, measured, quantity } from "../pages/format.js";
import { promises } from "../pages/promises.js";
import { readNumber, writeNumber } from "../pages/numbers.js";
import { FIELDS } from "../pages/questions.js";
import { Recorder } from "../pages/rehearsal.js";
import { STORIES, deniable, steps } from "../pages/story.js";
import { answer, hashed, law, share, spec as survey, vectors } from "./support.js";

const head = { kind: "protocol", version: 1, epsilon: "1" };
const hours = { kind: "interval", low: "-5", high: "95", unit: "hours" };
const ages = { kind: "integers", low: 18, high: 99 };
const bread = { kind: "categories", values: ["rye", "spelt", "pita"] };
const windowOf = (positions, width, domain = hours) => ({ ...head, protocol: "Window", domain, positions, width, read: "mean" });
const TABLE = { ...head, protocol: "Table", domain: bread, outputs: ["a", "b", "none"], rows: [["6", "3", "1"], ["3", "6", "1"], ["5", "4", "1"]] };
const RECORD = {
  ...head,
  protocol: "Attributes",
  domain: { kind: "records", columns: [{ name: "time", domain: hours }, { name: "age", domain: ages }, { name: "bread", domain: bread }] },
  groups: [
    { weight: 1, protocol: windowOf(5, 3) },
    { weight: 2, protocol: { ...head, protocol: "OUE", domain: ages } },
    { weight: 1, protocol: TABLE },
  ],
};

/** A report with what was drawn for it, from the stream of a seed. */
function rehearsed(spec, value, seed) {
  const protocol = loadProtocol(spec);
  let block = 0;
  const bits = new Recorder((bytes) => bytes.set(hashed(seed, block++)), 32);
  const report = protocol.privatize(value, bits);
  return { protocol, report, draws: bits.draws, told: steps({ protocol }, spec, value, report, bits.draws) };
}

test("every kind has a control, every shape of reports a reader and a story, and there are no others", () => {
  assert.deepEqual(Object.keys(FIELDS).sort(), KINDS.domains.toSorted());
  assert.deepEqual(Object.keys(DECODERS).sort(), KINDS.shapes.toSorted());
  assert.deepEqual(Object.keys(STORIES).sort(), KINDS.shapes.toSorted());
});

for (const [positions, width] of [[2, 1], [5, 1], [5, 3], [3, 4]]) {
  test(`a window report of ${positions} marks and width ${width} speaks for the numbers that make it likeliest`, () => {
    const spec = windowOf(positions, width);
    const protocol = loadProtocol(spec);
    const grid = Array.from({ length: 41 }, (_, i) => -5 + 2.5 * i); // each mark is one of these
    const laws = grid.map((x) => law(protocol, x));
    const { at, behind } = marks(protocol);
    assert.deepEqual([at(0), at(positions - 1)], ["−5\u00a0hours", "95\u00a0hours"]);
    for (let output = 0; output < positions + width - 1; output++) {
      const report = `0${output}`;
      const chances = laws.map((one) => share(one.get(report)));
      assert.ok(Math.min(...chances) > 0, "every number could have led to it");
      const most = Math.max(...chances);
      const best = grid.filter((_, i) => chances[i] > most * (1 - 1e-12));
      const [first, last] = behind(output).map((i) => -5 + (i * 100) / (positions - 1));
      assert.deepEqual([best[0], best.at(-1)], [first, last]);
      assert.equal(best.length, (last - first) / 2.5 + 1);
      const said = whose(protocol, decode(protocol, spec, Uint8Array.of(output)));
      const all = first === -5 && last === 95;
      const range = first === last ? `near ${quantity(first, "hours")}` : `from ${quantity(first, "hours")} to ${quantity(last, "hours")}`;
      const which = all ? "no number more than another, and" : `numbers ${range}, yet`;
      assert.equal(said, `It speaks for ${which} every number from −5\u00a0hours to 95\u00a0hours could have led to it.`);
    }
  });
}

test("the steps of a window report are what was drawn", () => {
  let [rounded, stayed, exact] = [0, 0, 0];
  for (let seed = 0; seed < 200; seed++) {
    const value = [30, -4, 20, 94.5, 1e6][seed % 5]; // 20 lies on a mark, and so does the end
    const { protocol, report, told } = rehearsed(windowOf(5, 3), value, seed);
    assert.equal(told.length, 5);
    const [rounding, keep, near, far, says] = told;
    assert.equal(rounding.text.startsWith("Your answer lies beyond an end, so it is taken as 95\u00a0hours. "), value === 1e6);
    const mark = /(?:Rounded to|It stays at) (−?[\d.]+)\u00a0hours\.$/.exec(rounding.outcome)[1].replace("−", "-");
    const position = (Number(mark) + 5) / 25;
    const taken = Math.min(value, 95);
    if (rounding.coin) {
      rounded++;
      assert.ok(Math.abs(Number(mark) - taken) < 25);
      assert.ok(Math.abs(rounding.coin.chance - (((taken + 5) / 25) % 1)) < 1e-12);
      assert.equal(rounding.coin.hit, Number(mark) > taken);
    } else {
      exact++;
      assert.equal(Number(mark), taken);
    }
    const drawn = (step) => Number(/^Drawn: (\d+)/.exec(step.outcome)[1]);
    assert.ok(drawn(near) >= position && drawn(near) < position + 3);
    const stay = keep.outcome === "It said stay.";
    stayed += stay;
    assert.deepEqual([near.outcome.includes("not used"), far.outcome.includes("not used")], [!stay, stay]);
    assert.equal(report[0], drawn(stay ? near : far));
    assert.ok(says.outcome.startsWith(`output ${report[0]}, which speaks for `));
    assert.equal(keep.coin.chance.toFixed(12), (Number(protocol.thresholds.keep.numerator) / 2 ** 64).toFixed(12));
  }
  assert.ok(rounded > 50 && exact > 50 && stayed > 50 && stayed < 150);
});

test("a window of one output has one step less, and one bit has two marks", () => {
  const { told } = rehearsed({ ...head, protocol: "OneBitMean", domain: hours }, 12, 3);
  assert.equal(told.length, 4);
  assert.match(told[0].text, /^Both ends are marked, −5\u00a0hours and 95\u00a0hours\. /);
  assert.match(rehearsed(windowOf(4, 2, ages), 40, 1).told[0].text, /^There are 4 marks from 18 to 99, evenly spaced\. Your answer lies between 18 and 45\./);
});

test("the steps of a table report give the probabilities of the row", () => {
  for (let seed = 0; seed < 30; seed++) {
    const { protocol, report, told } = rehearsed(TABLE, "spelt", seed);
    assert.match(told[0].text, /3 possible reports.*“a” 30\.00\u00a0%, “b” 60\.00\u00a0%, “none” 10\.00\u00a0%/);
    assert.equal(told[0].outcome, `Drawn: “${TABLE.outputs[report[0]]}”.`);
    const said = deniable({ protocol }, TABLE, report);
    const expected = [
      "It speaks for “rye”, yet each of the 3 answers",
      "It speaks for “spelt”, yet each of the 3 answers",
      "It speaks for no answer; each of the 3",
    ];
    assert.equal(said, `${expected[report[0]]} could have led to it.`);
  }
});

test("a table with a delta says which answers could not have led to a report", () => {
  const domain = { kind: "categories", values: ["yes", "no"] };
  const spec = { ...head, epsilon: "4", protocol: "Table", domain, outputs: ["y", "n", "!"], rows: [["97", "2", "1"], ["2", "98", "0"]], delta: "1/100" };
  const protocol = loadProtocol(spec);
  assert.equal(deniable({ protocol }, spec, Uint8Array.of(2)), "Only “yes” could have led to it.");
  assert.equal(deniable({ protocol }, spec, Uint8Array.of(0)), "It speaks for “yes”, yet each of the 2 answers could have led to it.");
});

test("a record's story is about the chosen part alone, and every byte has a meaning", () => {
  const value = { time: 30, age: 40, bread: "rye" };
  const seen = new Set();
  for (let seed = 0; seed < 60; seed++) {
    const { protocol, report, told } = rehearsed(RECORD, value, seed);
    const name = ["time", "age", "bread"][report[0]];
    seen.add(name);
    const chances = [["time", "25.0"], ["age", "50.0"], ["bread", "25.0"]];
    const listed = chances.map(([part, chance]) => `“${part}” with probability ${chance}\u00a0%`).join(", ");
    assert.ok(told[0].text.endsWith(`${listed}.`), told[0].text);
    assert.equal(told[0].outcome, `Chosen: “${name}”. Nothing about the other parts is in the report.`);
    const group = RECORD.groups[report[0]].protocol;
    const inner = loadProtocol(group);
    const bytes = report.slice(1, 1 + inner.reportBytes);
    assert.equal(deniable({ protocol }, RECORD, report), `It is about “${name}” alone. ${deniable({ protocol: inner }, group, bytes)}`);
    assert.equal(told.at(-1).outcome, `${decode(inner, group, bytes).text}.`);
    const { rows } = decode(protocol, RECORD, report, 24);
    assert.deepEqual(rows.map(({ from }) => from), [24, ...rows.slice(0, -1).map(({ to }) => to)], "no gap");
    assert.equal(rows.at(-1).to, 24 + report.length);
    const padding = rows.find(({ meaning }) => meaning.startsWith("zeros"));
    assert.equal(padding?.from ?? 24 + report.length, 25 + inner.reportBytes);
  }
  assert.equal(seen.size, 3);
});

test("answers in words", () => {
  const { domain } = loadProtocol(RECORD);
  assert.equal(answerText(domain, { bread: "rye", time: 1.5, age: 40 }), "time: 1.5 hours; age: 40; bread: rye");
  assert.equal(quantity(1990), "1990");
  assert.equal(quantity(-1234567.25, "m"), "−1,234,570\u00a0m");
  assert.equal(quantity(1 / 3), "0.333333");
  assert.equal(measured(37.2345, 1.234, "hours"), "37.2\u00a0hours");
  assert.equal(measured(37.2345, 0.012), "37.234");
  assert.equal(measured(-1234.5, 56), "−1,235");
  assert.equal(measured(null, 0), "–");
});

test("a survey with a delta says so, and is weak unless that is rarer than one in a million", async () => {
  const domain = { kind: "categories", values: ["yes", "no"] };
  const promised = async (rows, delta) => {
    const protocol = { ...head, protocol: "Table", domain, outputs: ["y", "n", "!"], rows, ...(delta ? { delta } : {}) };
    const budget = { group: "guild", epsilon: "3", ...(delta ? { delta } : {}) };
    const bytes = canonicalBytes(survey({ questions: [{ id: "q", text: "What?", protocol }], longitudinal: { rule: "none", epochs: 1 }, budget }));
    return promises(await Survey.fromBytes(bytes, await fingerprint("survey", bytes)));
  };
  const half = "5000000";
  const seldom = await promised([["4999999", half, "1"], [half, half, "0"]], "1/10000000");
  const rare = "The worst case leaves out cases whose probability is at most 1 in 10,000,000 per report.";
  assert.deepEqual([seldom.band, seldom.rare], ["Protection: strong.", rare]);
  const often = await promised([["49", "50", "1"], ["50", "50", "0"]], "3/200");
  assert.deepEqual([often.band, often.rare], ["Protection: moderate.", "The worst case leaves out cases whose probability is at most 1 in 66 per report."]);
  assert.equal((await promised([["2", "1", "1"], ["1", "2", "1"]])).rare, undefined);
});

test("a typed number is read in the language of the page, or not at all", () => {
  const read = (separator) => (text) => readNumber(text, separator);
  assert.deepEqual(["38.5", " 40 ", "-3", "−0.5", ".5", "7."].map(read(".")), [38.5, 40, -3, -0.5, 0.5, 7]);
  assert.deepEqual(["38,5", "1,000", "1e3", "12 000", "--", "३", "Infinity", "0x10", "1.2.3", "."].map(read(".")), new Array(10).fill(NaN));
  assert.deepEqual(["38,5", "-3", ",5"].map(read(",")), [38.5, -3, 0.5]);
  assert.deepEqual(["38.5", "1.000,5"].map(read(",")), [NaN, NaN]);
  assert.equal(readNumber("  "), undefined);
  // Arabic and Persian keyboards have digits of their own, and Arabic a decimal sign that no other number has.
  assert.deepEqual(["٣٨", "٣٨٫٥", "۳۸٫۵", "-٧", "٣٨,٥", "٣٨٬٥"].map(read(".")), [38, 38.5, 38.5, -7, NaN, NaN]);
  assert.equal(readNumber(writeNumber(38.5, ","), ","), 38.5);
});

test("both languages tell the same steps", () => {
  assert.ok(vectors.stories.length > 100);
  const named = new Set(vectors.stories.map(({ spec }) => spec.protocol));
  assert.deepEqual(KINDS.protocols.filter((name) => !named.has(name)), []);
  for (const { spec, answer: written, seed, texts } of vectors.stories) {
    const { told } = rehearsed(spec, answer(written), seed);
    const found = told.map(({ text }) => text).filter((text) => text !== "What the report says:");
    assert.deepEqual(found, texts, JSON.stringify(spec).slice(0, 120));
  }
});
