/** Refusals on the survey page: what is wrong, and that nothing was sent. */

import { DeniableError } from "../deniable.js";
import { h } from "./dom.js";
import { language, say } from "./words.js";

/** Kinds of errors that have a title and an explanation of their own. */
const KINDS = ["spec", "unknown", "context", "network", "storage", "budget", "round", "closed", "domain"];
const SDK_LANGUAGE = "en";

export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

export const titleOf = (kind) => say(`refusal.title.${KINDS.includes(kind) ? kind : "other"}`);

/** What is wrong: the sentence of the SDK, and in another language than its own an explanation before it. */
export function reasonOf(error) {
  if (!(error instanceof DeniableError)) return say("refusal.about.other");
  const reason = sentence(error.message);
  if (language() === SDK_LANGUAGE) return reason;
  const known = KINDS.includes(error.kind);
  return `${known ? `${say(`refusal.about.${error.kind}`)} ` : ""}${say("refusal.details", { message: reason })}`;
}

export function refusal(error, again = null) {
  const kind = error instanceof DeniableError ? error.kind : "other";
  return h(
    "section",
    { class: "card warn", role: "alert" },
    h("h2", {}, titleOf(kind)),
    h("p", {}, reasonOf(error)),
    h("p", {}, say("refusal.nothing")),
    again ? h("button", { type: "button", class: "second", onclick: again }, say("refusal.again")) : null,
  );
}

/** For a fingerprint that is none: mostly a link that was cut off on its way. */
export function incomplete(text) {
  return h(
    "section",
    { class: "card warn", role: "alert" },
    h("h2", {}, say("refusal.link")),
    h("p", {}, say("refusal.link.text", { n: text.length })),
    h("p", {}, say("refusal.nothing")),
  );
}
