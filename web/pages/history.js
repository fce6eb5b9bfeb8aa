/** What this browser has sent for a survey, and the ways out: withdrawal and opting out. */

import { h, show } from "./dom.js";
import { byteView } from "./life.js";
import { decimal, period, plural } from "./format.js";
import { promises, stays as stay } from "./promises.js";

const STATES = {
  queued: ["waiting to be sent", "that wait here and will leave as they are"],
  sent: ["sent and counted, and erased here", "that left"],
  repeated: ["sent and counted", "that left"],
  dropped: ["not counted", "of that report"],
  withdrawn: ["withdrawn, and its bytes deleted here", ""],
};

const REASONS = {
  deleted: "and deleted by the server at your request",
  notHeld: "the server did not hold it any more when it was asked to delete it",
  optedOut: "you opted out before it was sent",
  epochClosed: "its period was closed already",
  epochTooOld: "its period was over",
  epochTooEarly: "its period had not begun on the server’s clock",
  notStarted: "the survey had not begun",
  badPayload: "the server could not read it",
  "status 410": "the survey takes no more answers",
};

function entry(survey, { epoch, epsilon, state, reason, bytes }) {
  const [words, which] = STATES[state === "sent" && survey.terms.keeps ? "repeated" : state];
  const why = reason && state !== "withdrawn" ? ` (${REASONS[reason] ?? reason})` : "";
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
 * Buttons for leaving; `done` is called after something changed, and `known()` is the survey, or null while it is not known.
 * `offer` shows those that would do something: none to somebody who is out and of whom nothing is remembered.
 */
export function leaving(client, known, done) {
  const confirm = h("dialog", { "aria-labelledby": "withdraw-title" });
  const stays = h("p", {});
  const wanted = h("input", { type: "checkbox", id: "delete-sent" });
  const asking = h("label", { class: "choice", for: "delete-sent" });
  const problem = h("p", { class: "error", role: "alert" });
  const said = h("div", { role: "status" });
  const keep = h("button", { type: "button", class: "second", onclick: () => confirm.close() });
  let deletable = 0;

  const open = async () => {
    const survey = known();
    deletable = (await client.history()).filter(({ id, idUntil }) => id && idUntil).length;
    // Who has opted out has no survey any more; ids are kept of surveys whose reports are.
    stays.textContent = survey ? promises(survey).leaving : stay(deletable ? "reports" : "tally");
    asking.hidden = !deletable;
    wanted.checked = false;
    show(asking, wanted, ` Ask the server to delete ${plural(deletable, "report")} of this survey first, which shows it the network address behind ${deletable === 1 ? "it" : "them"}.`);
    problem.textContent = said.textContent = "";
    confirm.showModal();
  };

  /** What the server said about the reports that it was asked to delete, or null if it could not be asked. */
  const deleted = async () => {
    const { deleted: gone, notHeld, failed } = await client.deleteSent();
    if (failed) return null;
    return [gone && `The server has deleted ${plural(gone, "report")}.`, notHeld && `It did not hold ${plural(notHeld, "report")}, or not any more.`].filter(Boolean).join(" ");
  };

  const withdraw = async () => {
    const answer = deletable && wanted.checked ? await deleted() : "";
    if (answer === null) {
      problem.textContent = "The server could not be asked, so nothing was withdrawn: try again later, or withdraw without asking it.";
      return;
    }
    confirm.close();
    await client.withdraw();
    await done();
    said.textContent = answer;
    if (answer) element.hidden = false; // the answer is read before the rest is gone
  };

  confirm.append(
    h("h2", { id: "withdraw-title" }, "Withdraw from everything here?"),
    h(
      "p",
      {},
      "This deletes what this browser keeps for all surveys of this site: remembered answers, reports that wait, and the random numbers of reports. No more is sent. Which periods were answered, and what that cost, stays.",
    ),
    stays,
    asking,
    problem,
    h("div", { class: "row" }, h("button", { type: "button", class: "danger", onclick: withdraw }, "Withdraw"), keep),
  );
  const optOut = async () => {
    await client.optOut();
    await done();
  };
  const out = h("button", { type: "button", class: "second", onclick: optOut }, "Opt out");
  const begin = h("button", { type: "button", class: "danger", onclick: open }, "Withdraw…");
  const text = h("p", {});
  const element = h("section", { class: "card", "aria-label": "Leaving" }, h("h2", {}, "Leaving"), text, said, h("div", { class: "row" }, out, begin), confirm);
  const offer = ({ optedOut, remembers }) => {
    [element.hidden, out.hidden, begin.hidden] = [optedOut && !remembers, optedOut, !remembers];
    keep.textContent = optedOut ? "Cancel" : "Keep taking part"; // who has left takes no part that could be kept
    text.textContent = [
      !optedOut && "Opting out stops everything that waits and all that would come, for every survey of this site, and deletes remembered answers.",
      remembers && `Withdrawing ${optedOut ? "" : "also "}deletes what this browser remembers of its reports.`,
    ].filter(Boolean).join(" ");
  };
  return { element, offer };
}
