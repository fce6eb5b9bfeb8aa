// Numbers and times as the pages write them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { consistent, quantiles, read } from "../pages/document.js";
import { decimals, duration, factor, moment, percent, period, plural, rounded, surest } from "../pages/format.js";
import { DAY, START } from "./support.js";

const every = (seconds) => ({ origin: START, seconds });

test("a period is a day, the first and the last day, or from when to when", () => {
  assert.equal(period(every(DAY), 2), "2026-11-03");
  assert.equal(period(every(DAY), 2, 4), "2026-11-03 to 2026-11-05");
  assert.equal(period(every(7 * DAY), 1), "2026-11-08 to 2026-11-14");
  assert.equal(period(every(3600), 0), "2026-11-01 00:00 to 01:00");
  assert.equal(period(every(3600), 22, 24), "2026-11-01 22:00 to 2026-11-02 01:00");
});

test("periods in a row are one stretch of time, with one “to”", () => {
  for (const seconds of [60, 3600, DAY, 7 * DAY]) {
    for (const last of [3, 4, 40]) assert.equal(period(every(seconds), 3, last).split(" to ").length, seconds === DAY && last === 3 ? 1 : 2);
  }
});

test("a length of time has the largest unit that fits", () => {
  const lengths = { 1: "1 second", 90: "90 seconds", 5400: "90 minutes", 3600: "1 hour", 129600: "36 hours", 604800: "7 days" };
  for (const [seconds, words] of Object.entries(lengths)) assert.equal(duration(Number(seconds)), words);
});

test("a moment has a time of day unless it is midnight", () => {
  assert.equal(moment(START), "2026-11-01");
  assert.equal(moment(START + 34200), "2026-11-01 09:30");
});

test("how sure anybody can become is r / (1 + r) of the factor r, rounded up", () => {
  assert.equal(surest(0), "50.0\u00a0%");
  assert.equal(surest(0.8), "69.0\u00a0%"); // 0.68997
  assert.equal(surest(4), "98.3\u00a0%"); // 0.98201
});

test("a factor is rounded up, and written in full while that is short", () => {
  assert.equal(factor(1), "2.72");
  assert.equal(factor(8), "2,981");
  assert.equal(factor(16), "8.9 × 10⁶");
  assert.equal(plural(1, "survey"), "1 survey");
});

test("figures are rounded as in Python: two digits of the error, halves away from zero", () => {
  const cases = JSON.parse(readFileSync(new URL("./rounding.json", import.meta.url), "utf-8"));
  for (const { value, error, decimals: digits, written } of cases) {
    assert.equal(decimals(error), digits, `decimals of ${error}`);
    assert.equal(rounded(value, digits).replace("−", "-"), written);
  }
});

test("a document has the rows of its table, its picture and its sections by id", () => {
  const figures = { id: "figures", picture: "points", columns: [], rows: [{ value: 1 }, { value: 2 }] };
  figures.marks = [{ row: 1, quantile: 0.5 }, { row: 0, figure: "mean" }];
  const bins = { id: "bins", picture: "histogram", columns: [], rows: [{ value: 0.25, consistent: 0.5 }] };
  const curve = { id: "cumulative", picture: "curve", columns: [], rows: [{ value: 1 }], further: true };
  const found = read({ kind: "distribution", sections: [figures, bins, curve] });
  assert.equal(found.picture, "histogram");
  assert.deepEqual(found.rows.map(({ value }) => value), [1, 2, 0.25]);
  assert.equal(found.section("cumulative"), curve);
  assert.equal(found.section("ranges"), null);
  assert.deepEqual(quantiles(figures, [0.5, 0.25]), [1, -1]);
  assert.equal(consistent(bins.rows[0]).value, 0.5);
  assert.equal(read({ kind: "rectangles", sections: [] }).picture, "map");
});

test("a share that rounds to zero has no sign", () => {
  assert.deepEqual([percent(-0.0001, 1), percent(-0.0006, 1), percent(0, 0)], ["0.0\u00a0%", "−0.1\u00a0%", "0\u00a0%"]);
});
