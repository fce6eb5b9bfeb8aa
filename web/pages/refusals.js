/** Refusals on the survey page: what is wrong, and that nothing was sent. */

import { DeniableError } from "../deniable.js";
import { h } from "./dom.js";
import { plural } from "./format.js";

export const TITLES = {
  spec: "This is not the survey that it claims to be",
  unknown: "This survey cannot be answered in a browser",
  context: "This page is not secure",
  network: "The survey cannot be loaded",
  storage: "This browser cannot keep a ledger",
  budget: "This browser has given enough away",
  round: "You took part in another round",
  closed: "The survey is not open",
  domain: "An answer is missing or not usable",
};

export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

export function refusal(error, again = null) {
  const known = error instanceof DeniableError;
  return h(
    "section",
    { class: "card warn", role: "alert" },
    h("h2", {}, (known && TITLES[error.kind]) || "Something went wrong in this page"),
    h("p", {}, known ? sentence(error.message) : "This is a fault of the page itself."),
    h("p", {}, "Nothing was sent."),
    again ? h("button", { type: "button", class: "second", onclick: again }, "Try again") : null,
  );
}

/** For a fingerprint that is none: mostly a link that was cut off on its way. */
export function incomplete(text) {
  return h(
    "section",
    { class: "card warn", role: "alert" },
    h("h2", {}, "The link is incomplete"),
    h("p", {}, `A link to a survey ends in 64 hexadecimal digits, its fingerprint; this one has ${plural(text.length, "character")} there that are not all of it. Ask whoever sent it for the whole link.`),
    h("p", {}, "Nothing was sent."),
  );
}
