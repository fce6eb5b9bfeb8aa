/** The life of a report: your answer, the coins, and every byte that would leave, explained. */

import { decode } from "./decode.js";
import { h, svg, table } from "./dom.js";
import { answerText, decimal, factor, fraction, percent, period } from "./format.js";
import { promises } from "./promises.js";
import { deniable, steps } from "./story.js";

const specsOf = (survey) => JSON.parse(new TextDecoder().decode(survey.bytes)).questions.map(({ protocol }) => protocol);

function coin({ chance, hit, yes, no }) {
  const part = (x, width, kind, words, place) => [
    svg("rect", { x: `${x}%`, width: `${width}%`, height: "100%", class: kind }),
    svg("text", { x: place, y: "68%", "text-anchor": place === "2%" ? "start" : "end" }, words),
  ];
  const left = part(0, 100 * chance, `bar${hit ? "" : " unsure"}`, "", "2%");
  const right = part(100 * chance, 100 - 100 * chance, `bar two${hit ? " unsure" : ""}`, "", "98%");
  const chances = `${yes} ${percent(chance)}, ${no} ${percent(1 - chance)}`;
  const words = `${chances}; it came up ${hit ? yes : no}`;
  return h(
    "div",
    {},
    h("div", { class: "coin", role: "img", "aria-label": words }, svg("svg", {}, left[0], right[0])),
    h("div", { class: "note" }, chances),
  );
}

function story({ question, report, draws }, spec, value, number) {
  const items = steps(question, spec, value, report, draws).map((step) =>
    h("li", {}, step.text, step.coin ? coin(step.coin) : null, h("div", { class: "outcome" }, step.outcome)),
  );
  return h(
    "section",
    {},
    h("h3", {}, number ? `${number}. ${question.text}` : question.text),
    h("p", {}, "Your answer, which stays in this browser: ", h("b", {}, answerText(question.protocol.domain, value))),
    h("ol", { class: "steps" }, items),
    h("p", {}, deniable(question, spec, report)),
  );
}

/** The same of shares: a body for each collector, one after the other. */
function annotateShares({ terms: { collectors, epochs } }, body) {
  const epoch = new DataView(body.buffer, body.byteOffset).getUint32(4, true);
  const size = body.length / collectors.length;
  return collectors.flatMap(({ host }, i) => {
    const at = i * size;
    return [
      { from: at, to: at + 4, meaning: `to ${host}: “DNR1”, the format`, part: 1 },
      { from: at + 4, to: at + 8, meaning: `period ${epoch} of the survey (${period(epochs, epoch)}): no time of day`, part: 2 },
      { from: at + 8, to: at + 24, meaning: "a random number for this submission, the same for all collectors, so that they add up the same people; it says nothing about you", part: 3 },
      { from: at + 24, to: at + size, meaning: `the part of ${host}: random numbers by themselves`, part: 4 + (i % 2) },
    ];
  });
}

/** What each byte of a submission means: rows of { from, to, meaning, part }. */
export function annotate(survey, body) {
  if (survey.terms.collectors.length) return annotateShares(survey, body);
  const epoch = new DataView(body.buffer, body.byteOffset).getUint32(4, true);
  const rows = [
    { from: 0, to: 4, meaning: "“DNR1”: the format", part: 1 },
    { from: 4, to: 8, meaning: `period ${epoch} of the survey (${period(survey.terms.epochs, epoch)}): no time of day`, part: 2 },
    { from: 8, to: 24, meaning: "a random number for this submission, so that it is not counted twice; it says nothing about you", part: 3 },
  ];
  let at = 24;
  specsOf(survey).forEach((spec, i) => {
    const question = survey.questions[i];
    const bytes = body.slice(at, at + question.protocol.reportBytes);
    const name = survey.questions.length > 1 ? `${question.id}: ` : "";
    for (const row of decode(question.protocol, spec, bytes, at).rows) {
      rows.push({ ...row, meaning: name + row.meaning, part: 4 + (i % 2) });
    }
    at += bytes.length;
  });
  return rows;
}

const twoDigits = (byte) => byte.toString(16).padStart(2, "0");
const MOST = 600;

/** The bytes, coloured by their parts, and a table that says what each is for. */
export function byteView(survey, body) {
  const rows = annotate(survey, body);
  const cells = [];
  for (const { from, to, meaning, part } of rows) {
    for (let i = from; i < to && i < MOST; i++) cells.push(h("span", { class: `part-${part}`, title: meaning }, twoDigits(body[i])));
  }
  const hexOf = ({ from, to }) => Array.from(body.slice(from, to), twoDigits).join(" ");
  const place = ({ from, to }) => (to - from === 1 ? `${from}` : `${from}–${to - 1}`);
  const listedRows = rows.slice(0, MOST).map((row) => [
    h("span", {}, h("span", { class: `key part-${row.part}` }), place(row)),
    h("code", {}, hexOf(row)),
    row.meaning,
  ]);
  return h(
    "div",
    {},
    h("div", { class: "bytes", role: "img", "aria-label": `${body.length} bytes; the table below explains them` }, cells, body.length > MOST ? " …" : ""),
    table("Every byte and what it means", ["Bytes", "Value", "Meaning"], listedRows),
    rows.length > MOST ? h("p", { class: "note" }, `The other ${rows.length - MOST} rows follow the same pattern.`) : null,
  );
}

/** How much likelier one case may have led to the bytes than another. */
function likelihoods(survey) {
  const times = factor(fraction(survey.epsilon));
  if (survey.relation === "profiles") return `Of two joined profiles none is more than ${times} times as likely to have led to them as the other.`;
  if (survey.relation === "metric") return `Any place could have led to these bytes; of two places one cell side apart none is more than ${times} times as likely to have led to them as the other.`;
  if (survey.relation === "sum") return "Each part alone is random numbers, whatever the answer. All parts together add up to your answer and its noise.";
  const rare = survey.delta && `Leaving out cases whose probability is at most ${decimal(survey.delta)}, no`;
  return `${rare || "Any answer could have led to these bytes; no"} answer is more than ${times} times as likely to have led to them as another.`;
}

/** All of it, for a rehearsed submission. */
export function life(survey, values, { parts, body }) {
  const specs = specsOf(survey);
  const many = parts.length > 1;
  const stories = parts.map((part, i) => story(part, specs[i], values[part.question.id], many ? i + 1 : 0));
  const { keeps, stages } = survey.terms;
  const repeat = "; after that this browser repeats its report instead of throwing coins for the same answer again";
  const again = "; the coins of the first stage are thrown once per answer, and this browser keeps what they gave";
  return h(
    "div",
    {},
    h(
      "p",
      {},
      "This is a rehearsal: the coins below were thrown for you to look at, and nothing has left. When you send, they are thrown afresh, by the same rule",
      stages ? again : keeps ? repeat : "",
      ".",
    ),
    stories,
    h("h3", {}, `The ${body.length} bytes that would leave`),
    byteView(survey, body),
    h(
      "p",
      {},
      `${promises(survey).address} ${likelihoods(survey)}`,
    ),
  );
}
