/** The spec card, the rounds of a campaign, and how the collection goes, for those who run it. */

import { ROOT } from "./api.js";
import { command, h, table, tile } from "./dom.js";
import { card } from "./finding.js";
import { count, decimal, factor, fraction, moment, period } from "./format.js";
import { band, course, kept, lifetime } from "./promises.js";
import { duration, has, joined, say } from "./words.js";

const fact = (name, ...content) => [h("dt", {}, say(`board.spec.${name}`)), h("dd", {}, ...content)];
const level = (epsilon) => say("board.level", { epsilon: decimal(epsilon), factor: factor(fraction(epsilon)) });
const link = (path, words) => h("a", { href: `${ROOT}${path}` }, words);

/** How well answers are protected, in a word; of a protocol that this page does not know, that is not known either. */
export function strength(survey) {
  const found = band(survey);
  return found ? say(`band.${found}`) : say("board.unknown");
}

export function specCard(survey) {
  const { terms, fingerprint } = survey;
  const { epochs } = terms.longitudinal;
  const facts = { n: epochs, length: duration(terms.epochs.seconds) };
  const often = epochs === 1 ? say("terms.once") : `${say("terms.often", facts)}; ${course(terms.longitudinal)}`;
  const { round, rounds, kind } = terms.campaign ?? {};
  const delta = survey.delta === null ? "" : ` ${say("board.delta", { delta: survey.delta })}`;
  const { over } = survey.relation === "any" ? {} : survey.questions[0].protocol;
  const protection = over ? say("board.between", { band: strength(survey), over }) : strength(survey);
  const paths = [["s/", "asks"], ["v1/surveys/", "bytes"], ["audit/", "audit"]].map(([path, name]) => link(`${path}${fingerprint}`, say(`board.link.${name}`)));
  return h(
    "section",
    { class: "card", "aria-label": say("board.spec") },
    h("h2", {}, say("board.spec")),
    h(
      "dl",
      { class: "facts" },
      fact("owner", terms.owner),
      fact("purpose", terms.purpose),
      fact("once", `${level(survey.epsilon)}${delta}`),
      fact("lifetime", `${survey.lifetimeEpsilon === null ? lifetime(survey) : level(survey.lifetimeEpsilon)}; ${budget(terms.budget)}`),
      fact("protection", protection),
      fact("often", often),
      fact("open", say("terms.from", { from: moment(terms.opens), to: moment(terms.expires) })),
      fact("kept", kept(survey)),
      fact("results", say("terms.shown", { n: terms.minReports })),
      terms.campaign ? fact("round", say("board.spec.round.text", { round, rounds, kind })) : null,
      terms.replaces ? fact("replaces", h("code", {}, terms.replaces)) : null,
      fact("fingerprint", h("code", {}, fingerprint)),
    ),
    h("p", { class: "row" }, paths, link(`audit/${fingerprint}#risk`, say("board.link.risk"))),
  );
}

const budget = ({ epsilon, delta, group }) =>
  say("board.budget", { epsilon: decimal(epsilon), delta: delta === "0" ? "" : ` ${say("board.delta", { delta })}`, group });

/**
 * The rounds of a campaign with links, and one result from all of them, as the service's `/campaign` gives them. `go` opens
 * the dashboard of another round, `same` is the command that prints the same.
 */
export function campaignCard(survey, { kind, rounds, published, questions }, same, go) {
  const name = ({ round }) => say("board.round", { round });
  const way = (one) => h("a", { href: `${ROOT}dashboard/${one.fingerprint}`, onclick: (event) => go(event, one.fingerprint) }, name(one));
  const rows = published.map((one) => [
    one.fingerprint === survey.fingerprint ? h("b", {}, say("board.round.here", { round: one.round })) : way(one),
    phase(one.state, { opens: Date.parse(one.opens) / 1000, expires: Date.parse(one.expires) / 1000 }),
    count(one.n),
    h("code", {}, one.fingerprint.slice(0, 12), "…"),
    one.made_from ? h("code", { title: one.made_from }, one.made_from.slice(0, 12), "…") : "–",
  ]);
  const head = ["round", "state", "answers", "fingerprint", "made"].map((one) => say(`board.column.${one}`));
  return h(
    "section",
    { class: "card", "aria-label": say("board.rounds") },
    h("h2", {}, say("board.rounds.of", { n: published.length, of: rounds })),
    table(say("board.rounds.table", { kind }), head, rows, { class: "periods" }),
    questions.map((one) => card(one)),
    h("p", { class: "note" }, say("board.command")),
    command(same),
  );
}

const reasonOf = (reason) => (has(`board.refused.${reason}`) ? say(`board.refused.${reason}`) : reason);
const refused = ({ rejected }) => Object.values(rejected).reduce((a, b) => a + b, 0);

/** How the collection goes, in a few words. */
export function wellness(status) {
  if (refused(status)) return say("board.health.look", { n: refused(status) });
  return say(status.clock ? "board.health.clock" : "board.health.well");
}

export function health(survey, status) {
  const reasons = Object.entries(status.rejected).map(([reason, n]) => [reasonOf(reason), count(n)]);
  const epochs = [...status.epochs].reverse();
  const numbers = [["counted", status.accepted], ["again", status.duplicates], ["refused", refused(status)], ["waiting", status.lag.requests]];
  const rows = epochs.map(({ epoch, state, n, sha256 }) => [
    `${epoch}: ${period(survey.terms.epochs, epoch)}`,
    say(`board.epoch.${state}`),
    count(n),
    sha256 ? h("code", {}, sha256.slice(0, 16), "…") : "–",
  ]);
  return h(
    "section",
    { class: "card", "aria-label": say("board.health") },
    h("h2", {}, say("board.health")),
    h("div", { class: "tiles" }, numbers.map(([name, n]) => tile(count(n), say(`board.health.${name}`)))),
    reasons.length
      ? table(say("board.refused"), [say("board.column.reason"), say("board.column.submissions")], reasons, { class: "numbers" })
      : h("p", { class: "note" }, say("board.refused.none")),
    h("p", { class: "note" }, taken(survey.terms, status)),
    status.clock && h("p", { class: "note" }, say("board.clock", { text: status.clock })),
    epochs.length > 0 && h(
      "details",
      {},
      h("summary", {}, say("board.periods", { n: epochs.length })),
      table(say("board.column.period"), ["period", "state", "counted", "hash"].map((one) => say(`board.column.${one}`)), rows, { class: "periods" }),
    ),
  );
}

/** Which reports would be counted if they came now. */
function taken({ epochs }, { taken_epochs: open }) {
  if (open.length === 0) return say("board.taken.none");
  // A period that was closed early leaves a gap between the others.
  const starts = open.filter((epoch) => !open.includes(epoch - 1));
  const ends = open.filter((epoch) => !open.includes(epoch + 1));
  return say("board.taken", { n: open.length, periods: joined(starts.map((first, i) => period(epochs, first, ends[i]))) });
}

/** What a survey does at this moment, and when that ends or began. */
export const phase = (state, { opens, expires }) => say(`board.phase.${state}`, { opens: moment(opens), expires: moment(expires) });
