/** The life of a report: your answer, the coins, and every byte that would leave, explained. */

import { decode } from "./decode.js";
import { bdi, h, svg, table } from "./dom.js";
import { answerText, decimal, factor, fraction, percent, period } from "./format.js";
import { promises } from "./promises.js";
import { deniable, steps } from "./story.js";
import { say } from "./words.js";

const specsOf = (survey) => JSON.parse(new TextDecoder().decode(survey.bytes)).questions.map(({ protocol }) => protocol);

function coin({ chance, hit, yes, no }) {
  const part = (x, width, kind, words, place) => [
    svg("rect", { x: `${x}%`, width: `${width}%`, height: "100%", class: kind }),
    svg("text", { x: place, y: "68%", "text-anchor": place === "2%" ? "start" : "end" }, words),
  ];
  const left = part(0, 100 * chance, `bar${hit ? "" : " unsure"}`, "", "2%");
  const right = part(100 * chance, 100 - 100 * chance, `bar two${hit ? " unsure" : ""}`, "", "98%");
  const chances = say("life.coin", { yes, first: percent(chance), no, second: percent(1 - chance) });
  const words = say("life.coin.up", { chances, side: hit ? yes : no });
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
    h("h3", {}, number ? `${number}. ` : "", bdi(question.text)),
    h("p", {}, `${say("life.answer")} `, h("b", { dir: "auto" }, answerText(question.protocol.domain, value))),
    h("ol", { class: "steps" }, items),
    h("p", {}, deniable(question, spec, report)),
  );
}

const epochWords = (epochs, epoch) => say("bytes.epoch", { epoch: String(epoch), period: period(epochs, epoch) });

/** The same of shares: a body for each collector, one after the other. */
function annotateShares({ terms: { collectors, epochs } }, body) {
  const epoch = new DataView(body.buffer, body.byteOffset).getUint32(4, true);
  const size = body.length / collectors.length;
  return collectors.flatMap(({ host }, i) => {
    const at = i * size;
    return [
      { from: at, to: at + 4, meaning: say("bytes.format.to", { host }), part: 1 },
      { from: at + 4, to: at + 8, meaning: epochWords(epochs, epoch), part: 2 },
      { from: at + 8, to: at + 24, meaning: say("bytes.id.shared"), part: 3 },
      { from: at + 24, to: at + size, meaning: say("bytes.share", { host }), part: 4 + (i % 2) },
    ];
  });
}

/** What each byte of a submission means: rows of { from, to, meaning, part }. */
export function annotate(survey, body) {
  if (survey.terms.collectors.length) return annotateShares(survey, body);
  const epoch = new DataView(body.buffer, body.byteOffset).getUint32(4, true);
  const rows = [
    { from: 0, to: 4, meaning: say("bytes.format"), part: 1 },
    { from: 4, to: 8, meaning: epochWords(survey.terms.epochs, epoch), part: 2 },
    { from: 8, to: 24, meaning: say("bytes.id"), part: 3 },
  ];
  let at = 24;
  specsOf(survey).forEach((spec, i) => {
    const question = survey.questions[i];
    const bytes = body.slice(at, at + question.protocol.reportBytes);
    const name = survey.questions.length > 1 ? `${i + 1}. ` : "";
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
    h("div", { class: "bytes", role: "img", "aria-label": say("bytes.picture", { n: body.length }) }, cells, body.length > MOST ? " …" : ""),
    table(say("bytes.table"), ["bytes", "value", "meaning"].map((name) => say(`bytes.column.${name}`)), listedRows),
    rows.length > MOST ? h("p", { class: "note" }, say("bytes.rest", { n: rows.length - MOST })) : null,
  );
}

/** How much likelier one case may have led to the bytes than another. */
function likelihoods(survey) {
  const times = factor(fraction(survey.epsilon));
  if (survey.relation === "sum") return say("likely.sum");
  if (["profiles", "metric"].includes(survey.relation)) return say(`likely.${survey.relation}`, { times });
  return survey.delta ? say("likely.delta", { delta: decimal(survey.delta), times }) : say("likely.any", { times });
}

/** All of it, for a rehearsed submission. */
export function life(survey, values, { parts, body }) {
  const specs = specsOf(survey);
  const many = parts.length > 1;
  const stories = parts.map((part, i) => story(part, specs[i], values[part.question.id], many ? i + 1 : 0));
  const { keeps, stages } = survey.terms;
  const rehearsal = stages ? "life.rehearsal.stages" : keeps ? "life.rehearsal.repeats" : "life.rehearsal";
  return h(
    "div",
    {},
    h("p", {}, say(rehearsal)),
    stories,
    h("h3", {}, say("life.bytes", { n: body.length })),
    byteView(survey, body),
    h(
      "p",
      {},
      `${promises(survey).address} ${likelihoods(survey)}`,
    ),
  );
}
