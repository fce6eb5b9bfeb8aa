/** Why a survey asks nothing now: by its own terms, or because its service says that it takes no report. */

import { h, table } from "./dom.js";
import { moment, period } from "./format.js";

const PHASES = {
  waiting: ({ opens }) => ["The survey has not opened yet", `It opens on ${moment(opens)} (UTC).`],
  over: ({ expires }) => ["The survey is over", `It closed on ${moment(expires)} (UTC).`],
  closed: () => ["The survey is closed", "Its owner has closed it, and no more answers are taken."],
  deleted: () => ["The survey was deleted", "Its owner has deleted it, and no more answers are taken."],
};

/** A title and a text if the terms allow no answer at this time, otherwise null. */
export function notOpen(terms, now) {
  if (now < terms.opens) return PHASES.waiting(terms);
  return now >= terms.expires ? PHASES.over(terms) : null;
}

/**
 * The same if the service takes no report now; `listed` is its entry for the survey, or null. It is believed: who lies
 * here keeps somebody from answering, as any refusal would, and nothing is spent.
 */
export function shut(terms, listed, now) {
  if (listed?.open !== false) return null;
  if (PHASES[listed.state]) return PHASES[listed.state](terms);
  const { epochs } = terms;
  const epoch = epochs.at(now);
  const next = epoch < epochs.last ? `The next period begins on ${moment(epochs.origin + (epoch + 1) * epochs.seconds)} (UTC).` : "It was the last one.";
  return ["This period is closed", `Answers for ${period(epochs, epoch)} (UTC) are not taken any more, so nothing is asked. ${next}`];
}

const PRIVACY = { weaker: "weaker privacy", stronger: "stronger privacy", neutral: "no weaker" };

/** How a survey differs from the one that it replaces and that was answered here; `agree` goes on to the questions. */
export function differences(changes, agree) {
  // That it replaces the other one is why they are compared.
  const seen = changes.filter(({ what }) => what !== "replaces");
  const rows = seen.map(({ what, before, after, privacy }) => [what, PRIVACY[privacy], before, after]);
  const weaker = changes.filter(({ privacy }) => privacy === "weaker").length;
  return h(
    "section",
    { class: `card ${weaker ? "warn" : ""}`, "aria-labelledby": "changes-title" },
    h("h2", { id: "changes-title" }, "This survey has changed since you answered it"),
    h("p", {}, weaker ? "It protects you less than before: see the rows marked “weaker privacy”." : "It protects you no less than before.", " Nothing is asked until you have seen what is different."),
    table("What is different", ["What", "Privacy", "Before", "Now"], rows),
    h("button", { type: "button", class: "second", onclick: agree }, "Go on to the questions"),
  );
}

/** A way to the survey that has taken this one's place, or to the next round, if there is one; `server` ends in a slash. */
export function successor(server, listed) {
  const known = (fingerprint) => /^[0-9a-f]{64}$/.test(fingerprint ?? "");
  const link = (fingerprint, words) => h("a", { href: `${server}s/${fingerprint}` }, words);
  if (known(listed?.replaced_by)) {
    return h("p", { class: "card warn" }, "A newer survey replaces this one: ", link(listed.replaced_by, "go to the newer one"), ".");
  }
  if (!known(listed?.next_round)) return null;
  return h("p", { class: "card" }, "This round is followed by another, for those who have not taken part yet: ", link(listed.next_round, "go to the next round"), ".");
}
