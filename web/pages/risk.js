/**
 * The risk of a survey as everybody sees it: one line, one click deeper what can be guessed, and one level deeper the bounds.
 * `riskCard(survey)` needs a loaded `Survey` of the SDK, nothing else: the page of respondents and that of authors show it.
 */

import { h, svg } from "./dom.js";
import { decimal } from "./format.js";
import { guesses } from "./guesses.js";
import { addsMore, colour, guess, of100, promises, without } from "./promises.js";
import { say, text, word } from "./words.js";

/** Percentages stay on one line. */
const words = (sentence) => sentence.replaceAll(" %", "\u00a0%");

const [ROW, STEP, RADIUS] = [20, 10, 3.6];

/** A hundred guesses, the right ones marked by colour and by shape. */
function dots(marked) {
  const guessed = Array.from({ length: 100 }, (_, i) => {
    const [x, y] = [(i % ROW) * STEP + STEP / 2, Math.floor(i / ROW) * STEP + STEP / 2];
    return i < marked
      ? svg("rect", { x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS, class: "marked" })
      : svg("circle", { cx: x, cy: y, r: RADIUS });
  });
  return svg("svg", { class: "dots", viewBox: `0 0 ${ROW * STEP} ${(100 / ROW) * STEP}`, "aria-hidden": "true" }, guessed);
}

/** The same number as a picture and in words. */
function figure(title, right, marks = "") {
  const number = say("risk.right", { right });
  const marked = Math.round(Number(right.facts.n.digits ?? right.facts.n));
  return h("div", { class: `guessed ${marks}` }, h("dt", {}, title), h("dd", {}, dots(marked), h("b", {}, number)));
}

/** What can be guessed of one question: without the report, with it, and after all reports. */
function guessesOf(survey, { text: title }, found, said) {
  const sum = survey.relation === "sum" ? ".sum" : "";
  const epochs = survey.terms?.longitudinal.epochs ?? 1;
  return h(
    "section",
    { class: "guesses" },
    survey.questions.length > 1 ? h("h3", {}, title) : null,
    h(
      "dl",
      {},
      figure(say(`risk.without${sum}`), without(found)),
      figure(say(`risk.with${sum}`), of100(found.once), colour(found)),
      addsMore(found) ? figure(say(`risk.after${sum}`, { n: epochs }), of100(found.always)) : null,
    ),
    h("p", { class: "note" }, said),
  );
}

/** What privacy is called, by what it holds between; the rest is local differential privacy. */
const FIELDS = ["profiles", "metric", "sum"];

/** The name of the protection in the field, with its numbers. */
function inTheField(survey) {
  const again = survey.terms !== null && (survey.terms.draws > 1 || survey.terms.stages);
  const relation = FIELDS.includes(survey.relation) ? survey.relation : "any";
  const level = survey.relation === "metric" ? "field.epsilon.cell" : "field.epsilon";
  const epsilon = word(survey.delta === null ? level : `${level}.delta`, { epsilon: decimal(survey.epsilon), delta: survey.delta ?? "" });
  const facts = { name: word(`field.${relation}`), epsilon };
  if (again && survey.lifetimeEpsilon !== null) return say("field.again", { ...facts, all: decimal(survey.lifetimeEpsilon) });
  return say(again ? "field.once.report" : "field.once", facts);
}

const LOCK = "M6.5 9V6a3.5 3.5 0 0 1 7 0v3";
const lock = () =>
  svg(
    "svg",
    { class: "lock", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("rect", { x: 3.5, y: 9, width: 13, height: 8.5, rx: 2 }),
    svg("path", { d: LOCK }),
  );

/** Below the guesses: what they leave out, where it applies. */
const NOTES = ["shows", "clear", "profiles", "distance", "parts", "relay", "collectors", "published", "often", "round", "address", "storage"];
const DEEPER = ["band", "sure", "rare", "factor", "changes", "linked"];

/** If the browser has not promised to keep the data of the page, `lasting` is false. The pictures are drawn when they are opened. */
export function riskCard(survey, lasting = true) {
  const said = promises(survey, "browser", lasting);
  const found = guesses(survey);
  const worst = ["high", "raised", ""].find((level) => found.some((one) => colour(one) === level));
  const paragraphs = (names) => names.filter((name) => said[name]).map((name) => h("p", {}, words(said[name])));
  const [first, ...rest] = said.line.split(/(?<=\.) /);
  const inside = h(
    "div",
    { class: "inside" },
    survey.questions.map((question, i) => guessesOf(survey, question, found[i], text(guess(survey, found[i])))),
    paragraphs(NOTES),
    h(
      "details",
      {},
      h("summary", {}, say("page.worst")),
      paragraphs(DEEPER),
      h("p", {}, `${inTheField(survey)} ${say("field.bands")}`),
    ),
  );
  return h(
    "section",
    { class: `card promise ${worst}`, "aria-label": say("page.promise") },
    lock(),
    h("div", {}, h("p", {}, h("b", {}, first), " ", rest.join(" ")), h("details", {}, h("summary", {}, say("risk.title")), inside)),
  );
}
