/** The spec card and the ingest health: what a survey promises, and how its collection goes. */

import { ROOT } from "./api.js";
import { bars, ranges } from "./charts.js";
import { read } from "./document.js";
import { command, h, table } from "./dom.js";
import { count, decimal, duration, factor, fraction, label, moment, percent, period, plural } from "./format.js";
import { band, course, kept, lifetime } from "./promises.js";

const fact = (name, ...content) => [h("dt", {}, name), h("dd", {}, ...content)];
const level = (epsilon) => `epsilon ${decimal(epsilon)} (odds change by at most ${factor(fraction(epsilon))})`;

export function specCard(survey) {
  const { terms, fingerprint } = survey;
  const { epochs } = terms.longitudinal;
  const often = epochs === 1 ? "once" : `at most ${plural(epochs, "time")}, once in each period of ${duration(terms.epochs.seconds)}`;
  return h(
    "section",
    { class: "card", "aria-label": "What the survey promises" },
    h("h2", {}, "What the survey promises"),
    h(
      "dl",
      { class: "facts" },
      fact("Owner", terms.owner),
      fact("Purpose", terms.purpose),
      fact("One submission", `${level(survey.epsilon)}${survey.delta === null ? "" : ` and delta ${survey.delta}`}`),
      fact("Lifetime", `${overLifetime(survey)}; ${budget(terms.budget)}`),
      fact("Protection", survey.relation === "any" ? band(survey) : `${band(survey)}, between ${survey.questions[0].protocol.over}`),
      fact("How often", epochs === 1 ? often : `${often}; ${course(terms.longitudinal)}`),
      fact("Open", `${moment(terms.opens)} to ${moment(terms.expires)} (UTC)`),
      fact("Kept", kept(survey)),
      fact("Results shown", `from ${plural(terms.minReports, "answer")} on`),
      terms.campaign ? fact("Round", `${terms.campaign.round} of ${terms.campaign.rounds} (${terms.campaign.kind}): a device answers one`) : null,
      terms.replaces ? fact("Replaces", h("code", {}, terms.replaces)) : null,
      fact("Fingerprint", h("code", {}, fingerprint)),
    ),
    links(fingerprint),
  );
}

const overLifetime = (survey) => (survey.lifetimeEpsilon === null ? lifetime(survey) : level(survey.lifetimeEpsilon));

const budget = ({ epsilon, delta, group }) =>
  `budget ${decimal(epsilon)}${delta === "0" ? "" : ` and delta ${delta}`} for “${group}”`;

function links(fingerprint) {
  const link = (path, words) => h("a", { href: `${ROOT}${path}` }, words);
  return h(
    "p",
    {},
    link(`s/${fingerprint}`, "The page that asks"),
    " · ",
    link(`v1/surveys/${fingerprint}`, "The very bytes"),
    " · ",
    link(`audit/${fingerprint}`, "Audit"),
    " · ",
    link(`audit/${fingerprint}#risk`, "What it risks"),
  );
}

/**
 * The rounds of a campaign with links, and one result from all of them, as the service's `/campaign` gives them. `go` opens
 * the dashboard of another round, `said` is the command that prints the same.
 */
export function campaignCard(survey, { kind, rounds, published, questions }, said, go) {
  const link = ({ round, fingerprint }) => h("a", { href: `${ROOT}dashboard/${fingerprint}`, onclick: (event) => go(event, fingerprint) }, `Round ${round}`);
  const rows = published.map((one) => [
    one.fingerprint === survey.fingerprint ? h("b", {}, `Round ${one.round}, shown below`) : link(one),
    phase(one.state, { opens: Date.parse(one.opens) / 1000, expires: Date.parse(one.expires) / 1000 }).join(", "),
    count(one.n),
    h("code", {}, one.fingerprint.slice(0, 12), "…"),
    one.made_from ? h("code", { title: one.made_from }, one.made_from.slice(0, 12), "…") : "–",
  ]);
  return h(
    "section",
    { class: "card", "aria-label": "All rounds together" },
    h("h2", {}, `All rounds together: ${published.length} of ${rounds}`),
    table(`Rounds of this ${kind}`, ["Round", "State", "Answers", "Fingerprint", "Made from the tally"], rows, { class: "periods" }),
    questions.map((one) => [
      h("h3", {}, one.text),
      one.enough ? figures(one) : h("p", { class: "card warn" }, "Not enough answers yet."),
      one.notes.map((note) => h("p", { class: "note" }, `${note[0].toUpperCase()}${note.slice(1)}.`)),
    ]),
    h("p", { class: "note" }, "The same from the command line:"),
    command(said),
  );
}

/** One scale per unit; shares are drawn as bars. */
function figures(document) {
  const { text, level } = document;
  const { rows, picture } = read(document);
  const named = rows.map((row) => ({ ...row, label: label(row.label) }));
  const title = `All rounds together: “${text}” with ${percent(level, 0)} intervals`;
  if (picture === "bars") return bars(named.map(({ label: name, ...one }) => ({ label: name, bars: [one] })), { title });
  const units = [...new Set(rows.map(({ unit }) => unit))];
  return units.map((unit) => ranges(named.filter((row) => row.unit === unit), { title, unit }));
}

const REASONS = {
  badPayload: "not a possible report",
  conflict: "an id again, with another report",
  epochClosed: "period closed",
  epochTooEarly: "period not begun",
  epochTooOld: "period long over",
  notStarted: "survey not begun",
};

export function health(survey, status) {
  const reasons = Object.entries(status.rejected).map(([reason, n]) => [REASONS[reason] ?? reason, count(n)]);
  const epochs = [...status.epochs].reverse();
  return h(
    "section",
    { class: "card", "aria-label": "Ingest health" },
    h("h2", {}, "Ingest health"),
    h(
      "div",
      { class: "tiles" },
      tile(count(status.accepted), "counted"),
      tile(count(status.duplicates), "came again, not counted"),
      tile(count(Object.values(status.rejected).reduce((a, b) => a + b, 0)), "refused"),
      tile(count(status.lag.requests), "waiting now"),
    ),
    reasons.length ? table("Refused by reason", ["Reason", "Submissions"], reasons, { class: "numbers" }) : h("p", { class: "note" }, "Nothing was refused."),
    h("p", { class: "note" }, taken(survey.terms, status)),
    status.clock && h("p", { class: "note" }, `Clock: ${status.clock}.`),
    epochs.length > 0 && h(
      "details",
      {},
      h("summary", {}, plural(epochs.length, "period")),
      table(
        "Periods",
        ["Period", "State", "Counted", "Hash of the final sums"],
        epochs.map(({ epoch, state, n, sha256 }) => [
          `${epoch}: ${period(survey.terms.epochs, epoch)}`,
          state,
          count(n),
          sha256 ? h("code", {}, sha256.slice(0, 16), "…") : "–",
        ]),
        { class: "periods" },
      ),
    ),
  );
}

/** Which reports would be counted if they came now. */
function taken({ epochs }, { taken_epochs: open }) {
  if (open.length === 0) return "No period takes reports now.";
  // A period that was closed early leaves a gap between the others.
  const starts = open.filter((epoch) => !open.includes(epoch - 1));
  const ends = open.filter((epoch) => !open.includes(epoch + 1));
  const ranges = starts.map((first, i) => period(epochs, first, ends[i]));
  return `Now taken: reports of ${open.length > 1 ? "the periods" : "the period"} ${ranges.join(" and ")} (UTC).`;
}

/** What a survey does at this moment, and when that ends or began. */
export function phase(state, { opens, expires }) {
  const when = { waiting: `opens ${moment(opens)}`, collecting: `until ${moment(expires)}`, over: `since ${moment(expires)}` };
  return [{ waiting: "not open yet", collecting: "open" }[state] ?? state, when[state] ?? "by its owner"];
}

export const tile = (value, words) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, words));
