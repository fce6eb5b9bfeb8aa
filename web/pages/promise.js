/** What a survey promises, in words and a picture, with the numbers one click away. */

import { tile } from "./cards.js";
import { h, svg } from "./dom.js";
import { count, decimal, duration, moment, period, plural } from "./format.js";
import { band, course, promises, rightOf100, sure, WEAK } from "./promises.js";

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
const FIELD = { __proto__: null, profiles: "profile-based privacy", metric: "geo-indistinguishability (d-privacy)", sum: "differential privacy of sums, computed by collectors that are trusted not to work together," };

const BEFORE = { __proto__: null, profiles: "Chance decides in your browser what leaves. ", sum: "Your browser adds a little noise to the answer and splits it before anything leaves. " };

export function promise(survey, lasting = true) {
  const said = promises(survey, "this browser", lasting);
  const level = band(survey);
  const again = survey.terms.draws > 1 || survey.terms.stages;
  const bound = survey.lifetimeEpsilon;
  const sums = survey.relation === "sum" ? "from the sums of one period" : "from one report";
  const one = survey.questions.length > 1 ? `${sums}: all its answers together` : sums;
  const all = `from all that you ever send for this survey, ${plural(survey.terms.longitudinal.epochs, "report")} at most, together`;
  return h(
    "section",
    { class: `card promise ${level}`, "aria-label": "The promise" },
    h("p", { class: "big" }, h("b", {}, said.band), " ", said.guess),
    crowd(rightOf100(survey), said.people),
    h("p", level === WEAK ? { class: "error" } : {}, said.seen),
    said.clear ? h("p", { class: "card warn" }, said.clear) : null,
    said.profiles ? h("p", {}, said.profiles) : null,
    said.distance ? h("p", {}, words(said.distance)) : null,
    said.parts ? h("p", {}, said.parts) : null,
    h("p", {}, BEFORE[survey.relation] ?? "Your browser changes the answer by chance before anything leaves. ", said.address),
    said.relay ? h("p", {}, said.relay) : null,
    said.collectors ? h("p", {}, said.collectors) : null,
    survey.terms.longitudinal.epochs > 1 ? h("p", {}, said.often) : null,
    said.round ? h("p", {}, said.round) : null,
    said.storage ? h("p", { class: "note" }, said.storage) : null,
    h(
      "details",
      {},
      h("summary", {}, "What these numbers mean, and the worst case"),
      said.questions ? h("p", {}, said.questions) : null,
      h("p", {}, words(said.sure)),
      said.rare ? h("p", {}, said.rare) : null,
      h("p", {}, words(said.factor)),
      h(
        "div",
        { class: "tiles" },
        tile(words(`at most ${sure(survey.epsilon)} sure`), one),
        again ? tile(bound === null ? "no number" : words(`at most ${sure(bound)} sure`), all) : null,
      ),
      h(
        "p",
        {},
        `In the language of the field this is ${FIELD[survey.relation] ?? "local differential privacy"} with epsilon ${decimal(survey.epsilon)}${survey.relation === "metric" ? " per cell side" : ""}${survey.delta === null ? "" : ` and delta ${survey.delta}`}`,
        again && bound !== null ? ` for one report and ${decimal(bound)} for all of them; the factors are e to these powers.` : `${again ? " for one report" : ""}; the factor is e to that power.`,
        " Protection is called moderate from 75 right guesses of 100, weak from 90, and strong below, or where your reports add less than 10. Counted is the answer that is easiest to guess, over all that you may send.",
      ),
      said.changes ? h("p", {}, said.changes) : null,
      said.linked ? h("p", {}, said.linked) : null,
    ),
  );
}

/** What this browser has spent of its budget, which is the same for all surveys of an owner's group. */
export function spent({ spent: gone, cap, deltaSpent, deltaCap, owner, group }, lasting) {
  const whose = `all surveys of “${owner}” in the group “${group}”`;
  const since = lasting ? "" : ", as far as it remembers: if it deletes the data of this site, this begins anew";
  const delta = deltaCap === "0" ? "" : ` and delta ${deltaSpent} of at most ${deltaCap}`;
  return `has spent epsilon ${decimal(gone)} of at most ${decimal(cap)}${delta} for ${whose}${since}`;
}

/** Which round this is, and what it was made from; the digests are for whoever checks it. */
function rounds({ terms: { campaign } }) {
  const which = `${campaign.round} of ${campaign.rounds} (${campaign.kind})`;
  if (campaign.round === 1) return which;
  return [`${which}, made after the survey `, h("code", {}, campaign.before), " from the sums with the digest ", h("code", {}, campaign.tally)];
}

/** `budget` is an element that says what was spent so far; `server` has the audit of the survey. */
export function terms(survey, budget, lasting = true, server = null) {
  const own = survey.terms;
  const said = promises(survey, "this browser", lasting);
  const { longitudinal } = own;
  const often =
    longitudinal.epochs === 1
      ? "once"
      : `once in each period of ${duration(own.epochs.seconds)}, at most ${plural(longitudinal.epochs, "time")}` +
        (own.keeps || own.streams ? `; ${course(longitudinal)}` : "");
  const facts = [
    ["Who asks", own.owner],
    ["Why", own.purpose],
    ["Open", `${moment(own.opens)} to ${moment(own.expires)} (UTC)`],
    ["Period now", `${period(own.epochs, own.epochs.at(Date.now() / 1000))} (UTC)`],
    ["How often", often],
    ["All your answers", said.lifetime],
    ["This browser", budget],
    ["Kept here", said.device],
    ["Kept there", said.kept],
    ["Results shown", `from ${plural(own.showFrom, "answer")} on`],
    ...(own.campaign ? [["Round", rounds(survey)]] : []),
    ["Report", `${plural(24 + survey.reportBytes, "byte")}${own.collectors.length ? " to each collector" : ""}: ${survey.reportBytes} of ${own.collectors.length ? "its part" : "randomized answers"}, and 24 for the format, the period and a random number`],
    ["Fingerprint", h("code", {}, survey.fingerprint)],
  ];
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "The terms of this survey"),
    h("dl", { class: "facts" }, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("p", { class: "note" }, `The fingerprint is in this page’s address. Your browser has checked that these ${count(survey.bytes.length)} bytes of terms and questions are the ones that it stands for.`),
    server && h("p", { class: "note" }, h("a", { href: `${server}audit/${survey.fingerprint}`, target: "_blank", rel: "noopener" }, "Audit of this survey"), ": the exact epsilon of each question, and what somebody could find out. The service makes that page; anybody can make it again from the terms."),
  );
}
