/** Why a survey asks nothing now: by its own terms, or because its service says that it takes no report. */

import { h, table } from "./dom.js";
import { moment, period } from "./format.js";
import { rich, say } from "./words.js";

const PHASES = ["waiting", "over", "closed", "deleted"];

const phase = (name, { opens, expires }) => [
  say(`closed.${name}`),
  say(`closed.${name}.text`, { opens: moment(opens), expires: moment(expires) }),
];

/** A title and a text if the terms allow no answer at this time, otherwise null. */
export function notOpen(terms, now) {
  if (now < terms.opens) return phase("waiting", terms);
  return now >= terms.expires ? phase("over", terms) : null;
}

/**
 * The same if the service takes no report now; `listed` is its entry for the survey, or null. It is believed: who lies
 * here keeps somebody from answering, as any refusal would, and nothing is spent.
 */
export function shut(terms, listed, now) {
  if (listed?.open !== false) return null;
  if (PHASES.includes(listed.state)) return phase(listed.state, terms);
  const { epochs } = terms;
  const epoch = epochs.at(now);
  const next = moment(epochs.origin + (epoch + 1) * epochs.seconds);
  const after = epoch < epochs.last ? say("closed.period.next", { next }) : say("closed.period.last");
  return [say("closed.period"), `${say("closed.period.text", { period: period(epochs, epoch) })} ${after}`];
}

/** How a survey differs from the one that it replaces and that was answered here; `agree` goes on to the questions. */
export function differences(changes, agree) {
  // That it replaces the other one is why they are compared.
  const seen = changes.filter(({ what }) => what !== "replaces");
  const rows = seen.map(({ what, before, after, privacy }) => [what, say(`changes.${privacy}`), before, after]);
  const weaker = changes.filter(({ privacy }) => privacy === "weaker").length;
  return h(
    "section",
    { class: `card ${weaker ? "warn" : ""}`, "aria-labelledby": "changes-title" },
    h("h2", { id: "changes-title" }, say("changes.title")),
    h("p", {}, `${say(weaker ? "changes.less" : "changes.notless")} ${say("changes.until")}`),
    table(say("changes.table"), ["what", "privacy", "before", "now"].map((name) => say(`changes.column.${name}`)), rows),
    h("button", { type: "button", class: "second", onclick: agree }, say("changes.go")),
  );
}

/** A way to the survey that has taken this one's place, or to the next round, if there is one; `server` ends in a slash. */
export function successor(server, listed) {
  const known = (fingerprint) => /^[0-9a-f]{64}$/.test(fingerprint ?? "");
  const link = (fingerprint, words) => h("a", { href: `${server}s/${fingerprint}` }, words);
  if (known(listed?.replaced_by)) {
    return h("p", { class: "card warn" }, rich("replaced", { link: link(listed.replaced_by, say("replaced.link")) }));
  }
  if (!known(listed?.next_round)) return null;
  return h("p", { class: "card" }, rich("followed", { link: link(listed.next_round, say("followed.link")) }));
}
