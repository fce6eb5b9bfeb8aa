// Why a survey asks nothing now.
import assert from "node:assert/strict";
import { test } from "node:test";

import { notOpen, shut } from "../pages/closing.js";
import { DAY, START } from "./support.js";

const epochs = { origin: START, seconds: DAY, last: 9, at: (now) => Math.floor((now - START) / DAY) };
const terms = { opens: START, expires: START + 10 * DAY, epochs };
const noon = START + 3 * DAY + DAY / 2;

test("the terms alone say whether a survey has opened and is not over", () => {
  assert.equal(notOpen(terms, START), null);
  assert.equal(notOpen(terms, START - 1)[0], "The survey has not opened yet");
  assert.equal(notOpen(terms, START + 10 * DAY)[0], "The survey is over");
});

test("only a service that says no is heard", () => {
  for (const listed of [null, {}, { open: true }, { state: "collecting" }]) assert.equal(shut(terms, listed, noon), null);
});

test("a closed period says when the next begins, and the last one that it was the last", () => {
  const [title, text] = shut(terms, { open: false, state: "collecting" }, noon);
  assert.equal(title, "This period is closed");
  assert.match(text, /^Answers for 2026-11-04 \(UTC\).*The next period begins on 2026-11-05 \(UTC\)\.$/);
  assert.match(shut(terms, { open: false, state: "collecting" }, noon + 6 * DAY)[1], /It was the last one\.$/);
});

test("a survey that its owner closed has no next period", () => {
  const [title, text] = shut(terms, { open: false, state: "closed" }, noon);
  assert.equal(title, "The survey is closed");
  assert.doesNotMatch(text, /next/);
});
