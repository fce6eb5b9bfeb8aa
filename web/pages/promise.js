/** What a survey promises, in words and a picture, with the numbers one click away. */

import { tile } from "./cards.js";
import { bdi, h, svg } from "./dom.js";
import { decimal, moment, period } from "./format.js";
import { band, course, promises, rightOf100, sure, WEAK } from "./promises.js";
import { duration, rich, say, word } from "./words.js";

/** Percentages stay on one line. */
const words = (sentence) => sentence.replaceAll(" %", "\u00a0%");

const [ROW, STEP, RADIUS] = [20, 10, 3.6];

/** A hundred guesses, the right ones marked by colour and by shape; the sentence below says the same. */
function crowd(marked, sentence) {
  const guesses = Array.from({ length: 100 }, (_, i) => {
    const [x, y] = [(i % ROW) * STEP + STEP / 2, Math.floor(i / ROW) * STEP + STEP / 2];
    return i < marked
      ? svg("rect", { x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS, class: "marked" })
      : svg("circle", { cx: x, cy: y, r: RADIUS });
  });
  const picture = svg("svg", { viewBox: `0 0 ${ROW * STEP} ${(100 / ROW) * STEP}`, "aria-hidden": "true" }, guesses);
  return h("figure", { class: "crowd" }, picture, h("figcaption", {}, words(sentence)));
}

/** What privacy is called, by what it holds between; the rest is local differential privacy. */
const FIELDS = ["profiles", "metric", "sum"];

/** The name of the protection in the field, with its numbers. */
function inTheField(survey, again) {
  const relation = FIELDS.includes(survey.relation) ? survey.relation : "any";
  const level = survey.relation === "metric" ? "field.epsilon.cell" : "field.epsilon";
  const epsilon = word(survey.delta === null ? level : `${level}.delta`, { epsilon: decimal(survey.epsilon), delta: survey.delta ?? "" });
  const facts = { name: word(`field.${relation}`), epsilon };
  if (again && survey.lifetimeEpsilon !== null) return say("field.again", { ...facts, all: decimal(survey.lifetimeEpsilon) });
  return say(again ? "field.once.report" : "field.once", facts);
}

export function promise(survey, lasting = true) {
  const said = promises(survey, "browser", lasting);
  const level = band(survey);
  const again = survey.terms.draws > 1 || survey.terms.stages;
  const bound = survey.lifetimeEpsilon;
  const source = `tile.${survey.relation === "sum" ? "sums" : "report"}${survey.questions.length > 1 ? ".several" : ""}`;
  const before = ["profiles", "sum"].includes(survey.relation) ? survey.relation : "any";
  const surest = (epsilon) => words(say("tile.sure", { sure: sure(epsilon) }));
  return h(
    "section",
    { class: `card promise ${level}`, "aria-label": say("page.promise") },
    h("p", { class: "big" }, h("b", {}, said.band), " ", said.guess),
    crowd(rightOf100(survey), said.people),
    h("p", level === WEAK ? { class: "error" } : {}, said.seen),
    said.clear ? h("p", { class: "card warn" }, said.clear) : null,
    said.profiles ? h("p", {}, said.profiles) : null,
    said.distance ? h("p", {}, words(said.distance)) : null,
    said.parts ? h("p", {}, said.parts) : null,
    h("p", {}, `${say(`before.${before}`)} ${said.address}`),
    said.relay ? h("p", {}, said.relay) : null,
    said.collectors ? h("p", {}, said.collectors) : null,
    said.published ? h("p", {}, said.published) : null,
    survey.terms.longitudinal.epochs > 1 ? h("p", {}, said.often) : null,
    said.round ? h("p", {}, said.round) : null,
    said.storage ? h("p", { class: "note" }, said.storage) : null,
    h(
      "details",
      {},
      h("summary", {}, say("page.worst")),
      said.questions ? h("p", {}, said.questions) : null,
      h("p", {}, words(said.sure)),
      said.rare ? h("p", {}, said.rare) : null,
      h("p", {}, words(said.factor)),
      h(
        "div",
        { class: "tiles" },
        tile(surest(survey.epsilon), say(source)),
        again ? tile(bound === null ? say("tile.none") : surest(bound), say("tile.all", { n: survey.terms.longitudinal.epochs })) : null,
      ),
      h("p", {}, `${inTheField(survey, again)} ${say("field.bands")}`),
      said.changes ? h("p", {}, said.changes) : null,
      said.linked ? h("p", {}, said.linked) : null,
    ),
  );
}

/** What this browser has spent of its budget, which is the same for all surveys of an owner's group. */
export function spent({ spent: gone, cap, deltaSpent, deltaCap, owner, group }, lasting) {
  const facts = { spent: decimal(gone), cap: decimal(cap), deltaspent: deltaSpent, deltacap: deltaCap, owner, group };
  const said = say(deltaCap === "0" ? "spent" : "spent.delta", facts);
  return lasting ? said : `${said}${say("spent.remembers")}`;
}

/** Which round this is, and what it was made from; the digests are for whoever checks it. */
function rounds({ terms: { campaign } }) {
  const facts = { round: campaign.round, rounds: campaign.rounds, kind: campaign.kind };
  if (campaign.round === 1) return say("terms.round.first", facts);
  return rich("terms.round.later", { ...facts, before: h("code", {}, campaign.before), tally: h("code", {}, campaign.tally) });
}

/** `budget` is an element that says what was spent so far; `server` has the audit of the survey. */
export function terms(survey, budget, lasting = true, server = null) {
  const own = survey.terms;
  const said = promises(survey, "browser", lasting);
  const { longitudinal } = own;
  const facts = { n: longitudinal.epochs, length: duration(own.epochs.seconds) };
  const times = say(longitudinal.epochs === 1 ? "terms.once" : "terms.often", facts);
  const often = longitudinal.epochs > 1 && (own.keeps || own.streams) ? `${times}; ${course(longitudinal)}` : times;
  const shared = own.collectors.length ? ".shared" : "";
  const rows = [
    ["who", bdi(own.owner)],
    ["why", bdi(own.purpose)],
    ["open", say("terms.from", { from: moment(own.opens), to: moment(own.expires) })],
    ["now", say("terms.utc", { period: period(own.epochs, own.epochs.at(Date.now() / 1000)) })],
    ["often", often],
    ["all", said.lifetime],
    ["browser", budget],
    ["here", said.device],
    ["there", said.kept],
    ["results", say("terms.shown", { n: own.minReports })],
    ...(own.campaign ? [["round", rounds(survey)]] : []),
    ["report", say(`terms.bytes${shared}`, { n: 24 + survey.reportBytes, own: String(survey.reportBytes) })],
    ["fingerprint", h("code", {}, survey.fingerprint)],
  ];
  return h(
    "details",
    { class: "card" },
    h("summary", {}, say("terms")),
    h("dl", { class: "facts" }, rows.map(([name, text]) => [h("dt", {}, say(`terms.name.${name}`)), h("dd", {}, text)])),
    h("p", { class: "note" }, say("terms.checked", { n: survey.bytes.length })),
    server && h("p", { class: "note" }, rich("terms.audit", { link: auditLink(server, survey) })),
  );
}

const auditLink = (server, { fingerprint }) =>
  h("a", { href: `${server}audit/${fingerprint}`, target: "_blank", rel: "noopener" }, say("terms.audit.link"));
