/** The terms of a survey, and what this browser has spent of its budget. */

import { bdi, h } from "./dom.js";
import { decimal, moment, period } from "./format.js";
import { course, promises } from "./promises.js";
import { duration, rich, say } from "./words.js";

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
    {},
    h("summary", {}, say("terms")),
    h("dl", { class: "facts" }, rows.map(([name, text]) => [h("dt", {}, say(`terms.name.${name}`)), h("dd", {}, text)])),
    h("p", { class: "note" }, say("terms.checked", { n: survey.bytes.length })),
    server && h("p", { class: "note" }, rich("terms.audit", { link: auditLink(server, survey) })),
  );
}

const auditLink = (server, { fingerprint }) =>
  h("a", { href: `${server}audit/${fingerprint}`, target: "_blank", rel: "noopener" }, say("terms.audit.link"));
