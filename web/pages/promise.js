/** What a survey promises, in words with the numbers behind them. */

import { tile } from "./cards.js";
import { h } from "./dom.js";
import { count, decimal, duration, factor, fraction, moment, percent, period, plural, surest } from "./format.js";

export function promise(survey) {
  const epsilon = fraction(survey.epsilon);
  const lifetime = fraction(survey.lifetimeEpsilon);
  const many = survey.questions.length > 1;
  const again = lifetime > epsilon;
  const each = survey.questions.map(({ id, protocol }) => `${id} ${factor(fraction(protocol.epsilon))}`).join(", ");
  return h(
    "section",
    { class: "card promise", "aria-label": "The promise" },
    h(
      "p",
      { class: "big" },
      `Whatever you answer, anyone’s odds about ${many ? "your answers" : "your answer"} change by at most a factor of `,
      h("b", {}, factor(epsilon)),
      again ? [" each time, and ", h("b", {}, factor(lifetime)), " in all, however often you take part."] : ".",
    ),
    h(
      "p",
      {},
      "Your browser changes the answer by chance before anything leaves. Nobody gets to see what you chose: not those who ask, not whoever runs the server, not whoever listens on the way.",
    ),
    epsilon > 5
      ? h("p", { class: "error" }, "This factor is large: such a report protects little. Answer only what you would also say openly.")
      : null,
    h(
      "details",
      {},
      h("summary", {}, again ? "What these numbers mean" : "What this number means"),
      h("p", {}, "Somebody wavers between two possibilities of what you say and finds them equally likely. With all the computers in the world and whatever else is known about you, this is how sure of one of them they can become at most:"),
      h(
        "div",
        { class: "tiles" },
        tile(`${surest(epsilon)} sure`, `from one submission: ${many ? "all its answers together" : "your answer"}`),
        again ? tile(`${surest(lifetime)} sure`, `from all that you ever send for this survey, ${plural(survey.terms.longitudinal.epochs, "submission")} at most, together`) : null,
      ),
      h(
        "p",
        {},
        again
          ? `In the language of the field this is local differential privacy with epsilon ${decimal(survey.epsilon)} for a submission and ${decimal(survey.lifetimeEpsilon)} for all of them; the factors are e to these powers.`
          : `In the language of the field this is local differential privacy with epsilon ${decimal(survey.epsilon)}, and the factor is e to that power.`,
      ),
      many ? h("p", {}, `Question by question the factors of one submission are: ${each}. Together they multiply.`) : null,
    ),
  );
}

const KEPT = {
  tally: "sums only; no report is kept once it is counted",
  reports: "the randomized reports, to be analysed again later",
};

/** What this browser has given away of its budget, which is the same for all surveys of a group. */
export function spent({ spent: gone, cap, group }) {
  return `has given away epsilon ${decimal(gone)} of at most ${decimal(cap)} for all surveys of “${group}”`;
}

/** `budget` is an element that says what was spent so far. */
export function terms(survey, budget) {
  const own = survey.terms;
  const { longitudinal } = own;
  const lifetime = fraction(survey.lifetimeEpsilon);
  const often =
    longitudinal.epochs === 1
      ? "once"
      : `once in each period of ${duration(own.epochs.seconds)}, at most ${plural(longitudinal.epochs, "time")}` +
        (longitudinal.rule === "memoize" ? `; the same answer repeats the same report, for up to ${plural(longitudinal.values, "different answer")}` : "");
  const facts = [
    ["Who asks", own.owner],
    ["Why", own.purpose],
    ["Open", `${moment(own.opens)} to ${moment(own.expires)} (UTC)`],
    ["Period now", `${period(own.epochs, own.epochs.at(Date.now() / 1000))} (UTC)`],
    ["How often", often],
    ["All your answers", `a factor of at most ${factor(lifetime)} (epsilon ${decimal(survey.lifetimeEpsilon)})`],
    ["This browser", budget],
    ["Kept", KEPT[own.retention]],
    ["Results shown", `from ${plural(own.showFrom, "answer")} on`],
    ["Report", `${plural(24 + survey.reportBytes, "byte")}: ${survey.reportBytes} of randomized answers, and 24 for the format, the period and a random number`],
    ["Fingerprint", h("code", {}, survey.fingerprint)],
  ];
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "The terms of this survey"),
    h("dl", { class: "facts" }, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("p", { class: "note" }, `The fingerprint is in this page’s address. Your browser has checked that these ${count(survey.bytes.length)} bytes of terms and questions are the ones that it stands for.`),
  );
}
