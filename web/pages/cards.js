/** The spec card and the ingest health: what a survey promises, and how its collection goes. */

import { ROOT } from "./api.js";
import { h, table } from "./dom.js";
import { count, decimal, duration, factor, fraction, moment, period, plural } from "./format.js";
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
      fact("One submission", level(survey.epsilon)),
      fact("Lifetime", `${survey.lifetimeEpsilon === null ? lifetime(survey) : level(survey.lifetimeEpsilon)}; budget ${decimal(terms.budget.epsilon)}${terms.budget.delta === "0" ? "" : ` and delta ${terms.budget.delta}`} for “${terms.budget.group}”`),
      fact("Protection", band(survey)),
      fact("How often", epochs === 1 ? often : `${often}; ${course(terms.longitudinal)}`),
      fact("Open", `${moment(terms.opens)} to ${moment(terms.expires)} (UTC)`),
      fact("Kept", kept(survey)),
      fact("Results shown", `from ${plural(terms.showFrom, "answer")} on`),
      terms.replaces ? fact("Replaces", h("code", {}, terms.replaces)) : null,
      fact("Fingerprint", h("code", {}, fingerprint)),
    ),
    h("p", {}, h("a", { href: `${ROOT}s/${fingerprint}` }, "The page that asks"), " · ", h("a", { href: `${ROOT}v1/surveys/${fingerprint}` }, "The very bytes")),
  );
}

const REASONS = {
  badPayload: "not a possible report",
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
    epochs.length > 0 && h(
      "details",
      {},
      h("summary", {}, plural(epochs.length, "period")),
      table(
        "Periods",
        ["Period", "State", "Counted", "Hash of the final sums"],
        epochs.map(({ epoch, state, n, sha256 }) => [`${epoch}: ${period(survey.terms.epochs, epoch)}`, state, count(n), sha256 ? h("code", {}, sha256.slice(0, 16), "…") : "–"]),
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
