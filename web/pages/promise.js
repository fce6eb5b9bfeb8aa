/** What a survey promises, in words with the numbers behind them. */

import { h } from "./dom.js";
import { count, decimal, duration, factor, fraction, moment, percent, period, plural, surest } from "./format.js";

export function promise(survey) {
  const epsilon = fraction(survey.epsilon);
  const lifetime = fraction(survey.lifetimeEpsilon);
  const many = survey.questions.length > 1;
  const each = survey.questions.map(({ id, protocol }) => `${id} ${factor(fraction(protocol.epsilon))}`).join(", ");
  return h(
    "section",
    { class: "card promise", "aria-label": "The promise" },
    h(
      "p",
      { class: "big" },
      `Whatever you answer, anyone’s odds about ${many ? "your answers" : "your answer"} change by at most a factor of `,
      h("b", {}, factor(epsilon)),
      lifetime > epsilon ? " each time, and " : ".",
      lifetime > epsilon ? h("b", {}, factor(lifetime)) : null,
      lifetime > epsilon ? " in all, however often you take part." : null,
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
      h("summary", {}, "What this number means"),
      h(
        "p",
        {},
        `Somebody who thinks that an answer of yours is as likely as not can become at most ${percent(surest(epsilon))} sure of it, with all the computers in the world and whatever else is known about you. In the language of the field this is local differential privacy with epsilon ${decimal(survey.epsilon)}, and the factor is e to that power.`,
      ),
      many ? h("p", {}, `Question by question the factors are: ${each}. Together they multiply.`) : null,
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
