/** What this browser has sent for a survey, and the ways out: withdrawal and opting out. */

import { h, show } from "./dom.js";
import { byteView } from "./life.js";
import { decimal, period } from "./format.js";
import { promises, stays as stay } from "./promises.js";
import { has, say } from "./words.js";

function entry(survey, { epoch, epsilon, state, reason, bytes }) {
  const kind = state === "sent" && survey.terms.keeps ? "repeated" : state;
  const why = reason && state !== "withdrawn" ? say("sent.because", { reason: reasonOf(reason) }) : "";
  return h(
    "li",
    { "data-state": state },
    h("b", {}, period(survey.terms.epochs, epoch)),
    say("sent.entry", { state: say(`sent.${kind}`), why, epsilon: decimal(epsilon) }),
    bytes ? h("details", {}, h("summary", {}, say(`sent.${kind}.bytes`, { n: bytes.length })), byteView(survey, bytes)) : null,
  );
}

/** Why a report was not counted; a reason without words of its own is shown as the server wrote it. */
function reasonOf(reason) {
  const id = `sent.reason.${reason.replaceAll(" ", "")}`;
  return has(id) ? say(id) : reason;
}

export function history(survey, submissions) {
  return h(
    "details",
    { open: submissions.some(({ bytes }) => bytes) },
    h("summary", {}, say("sent.title")),
    submissions.length
      ? h("ul", {}, submissions.map((submission) => entry(survey, submission)))
      : h("p", {}, say("sent.none")),
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
    show(asking, wanted, ` ${say("leave.delete", { n: deletable })}`);
    problem.textContent = said.textContent = "";
    confirm.showModal();
  };

  /** What the server said about the reports that it was asked to delete, or null if it could not be asked. */
  const deleted = async () => {
    const { deleted: gone, notHeld, failed } = await client.deleteSent();
    if (failed) return null;
    return [gone && say("leave.deleted", { n: gone }), notHeld && say("leave.notheld", { n: notHeld })].filter(Boolean).join(" ");
  };

  const withdraw = async () => {
    const answer = deletable && wanted.checked ? await deleted() : "";
    if (answer === null) {
      problem.textContent = say("leave.failed");
      return;
    }
    confirm.close();
    await client.withdraw();
    await done();
    said.textContent = answer;
    if (answer) [element.hidden, element.open] = [false, true]; // the answer is read before the rest is gone
  };

  confirm.append(
    h("h2", { id: "withdraw-title" }, say("leave.title")),
    h("p", {}, say("leave.text")),
    stays,
    asking,
    problem,
    h("div", { class: "row" }, h("button", { type: "button", class: "danger", onclick: withdraw }, say("leave.withdraw")), keep),
  );
  const optOut = async () => {
    await client.optOut();
    await done();
  };
  const out = h("button", { type: "button", class: "second", onclick: optOut }, say("leave.out"));
  const begin = h("button", { type: "button", class: "danger", onclick: open }, say("leave.begin"));
  const text = h("p", {});
  const buttons = h("div", { class: "row" }, out, begin);
  const section = h("section", { "aria-label": say("leave") }, text, said, buttons, confirm);
  const element = h("details", {}, h("summary", {}, say("leave")), section);
  const offer = ({ optedOut, remembers }) => {
    [element.hidden, out.hidden, begin.hidden] = [optedOut && !remembers, optedOut, !remembers];
    keep.textContent = say(optedOut ? "leave.cancel" : "leave.stay"); // who has left takes no part that could be kept
    text.textContent = [
      !optedOut && say("leave.out.text"),
      remembers && say(optedOut ? "leave.withdraw.text" : "leave.withdraw.also"),
    ].filter(Boolean).join(" ");
  };
  return { element, offer };
}
