/**
 * Answers that were not sent yet, kept over a reload if the respondent wants it: in the storage of this tab, which ends with the
 * tab, and for a day at most.
 */

import { h } from "./dom.js";
import { say } from "./words.js";

const DAY = 86400000;

/** The controls of a form that hold answers; a slider follows its field. */
export const inputsOf = (form) => [...form.querySelectorAll("input:not([type=range]):not([data-draft])")];

export const filledIn = (form) => inputsOf(form).map(({ value, checked }) => ({ value, checked }));

function fill(input, { value, checked }) {
  if (input.type === "radio" || input.type === "checkbox") {
    if (!checked) return;
    input.checked = true;
    input.dispatchEvent(new Event("change"));
  } else if (value) {
    input.value = value;
    input.dispatchEvent(new Event("input"));
  }
}

/** Fill a form as it was, if it has the same fields. */
export function refill(form, filled) {
  const inputs = inputsOf(form);
  if (inputs.length === filled.length) inputs.forEach((input, i) => fill(input, filled[i]));
  return inputs.length === filled.length;
}

const keyOf = (fingerprint) => `deniable-draft-${fingerprint}`;

/** The storage of the tab, or null where a browser denies it. */
function storage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

export const forget = (fingerprint) => storage()?.removeItem(keyOf(fingerprint));

function kept(fingerprint, now) {
  try {
    const { until, filled } = JSON.parse(storage()?.getItem(keyOf(fingerprint)) ?? "{}");
    if (until > now && until <= now + DAY) return filled;
  } catch {
    // what cannot be read is not a draft
  }
  forget(fingerprint);
  return null;
}

/** A box that keeps what is filled in; it is ticked if something was kept, which is then in the form again. */
export function draftBox(form, fingerprint, now = Date.now()) {
  const found = kept(fingerprint, now);
  const save = () => box.checked && storage()?.setItem(keyOf(fingerprint), JSON.stringify({ until: now + DAY, filled: filledIn(form) }));
  const box = h("input", { type: "checkbox", "data-draft": true, onchange: () => box.checked || forget(fingerprint) });
  box.checked = found !== null && refill(form, found);
  const said = h("p", { class: "note", role: "status" }, box.checked ? say("survey.kept") : "");
  for (const event of ["input", "change", "click"]) form.addEventListener(event, save);
  return h("div", { class: "draft" }, h("label", { class: "note" }, box, ` ${say("survey.keep")}`), said);
}
