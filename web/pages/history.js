/** What this browser has sent for a survey, and the ways out: withdrawal and opting out. */

import { h } from "./dom.js";
import { byteView } from "./life.js";
import { decimal, period } from "./format.js";
import { promises } from "./promises.js";

const STATES = {
  queued: ["waiting to be sent", "that wait here and will leave as they are"],
  sent: ["sent and counted", "that left"],
  dropped: ["not counted", "of that report"],
  withdrawn: ["withdrawn, and its bytes deleted here", ""],
};

const REASONS = {
  optedOut: "you opted out before it was sent",
  epochClosed: "its period was closed already",
  epochTooOld: "its period was over",
  epochTooEarly: "its period had not begun on the server’s clock",
  notStarted: "the survey had not begun",
  badPayload: "the server could not read it",
  "status 410": "the survey takes no more answers",
};

function entry(survey, { epoch, epsilon, state, reason, bytes }) {
  const [words, which] = STATES[state];
  const why = state === "dropped" ? ` (${REASONS[reason] ?? reason})` : "";
  return h(
    "li",
    { "data-state": state },
    h("b", {}, period(survey.terms.epochs, epoch)),
    `: ${words}${why}; epsilon ${decimal(epsilon)}`,
    bytes ? h("details", {}, h("summary", {}, `The ${bytes.length} bytes ${which}`), byteView(survey, bytes)) : null,
  );
}

export function history(survey, submissions) {
  return h(
    "section",
    { class: "card", "aria-label": "What this browser has sent" },
    h("h2", {}, "What this browser has sent"),
    submissions.length
      ? h("ul", {}, submissions.map((submission) => entry(survey, submission)))
      : h("p", {}, "Nothing so far for this survey."),
    submissions.length ? h("p", { class: "note" }, promises(survey).device) : null,
  );
}

/**
 * Buttons for leaving; `done` is called after something changed. `offer` shows those that would do something: none to
 * somebody who is out and of whom nothing is remembered.
 */
export function leaving(client, done) {
  const confirm = h("dialog", { "aria-labelledby": "withdraw-title" });
  const answer = async (action) => {
    confirm.close();
    await action();
    done();
  };
  const keep = h("button", { type: "button", class: "second", onclick: () => confirm.close() });
  confirm.append(
    h("h2", { id: "withdraw-title" }, "Withdraw from everything here?"),
    h(
      "p",
      {},
      "This deletes the secret, the remembered reports and all bytes of all surveys of this site from this browser, and no more is sent. What was counted already stays in the sums: the server kept no report by which yours could be found and taken out again.",
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "danger", onclick: () => answer(() => client.withdraw()) }, "Withdraw"),
      keep,
    ),
  );
  const out = h("button", { type: "button", class: "second", onclick: () => answer(() => client.optOut()) }, "Opt out");
  const withdraw = h("button", { type: "button", class: "danger", onclick: () => confirm.showModal() }, "Withdraw…");
  const text = h("p", {});
  const element = h("section", { class: "card", "aria-label": "Leaving" }, h("h2", {}, "Leaving"), text, h("div", { class: "row" }, out, withdraw), confirm);
  const offer = ({ optedOut, remembers }) => {
    [element.hidden, out.hidden, withdraw.hidden] = [optedOut && !remembers, optedOut, !remembers];
    keep.textContent = optedOut ? "Cancel" : "Keep taking part"; // who has left takes no part that could be kept
    text.textContent = [
      !optedOut && "Opting out stops everything that waits and all that would come, for every survey of this site.",
      remembers && `Withdrawing ${optedOut ? "" : "also "}deletes what this browser remembers of its reports.`,
    ].filter(Boolean).join(" ");
  };
  return { element, offer };
}
