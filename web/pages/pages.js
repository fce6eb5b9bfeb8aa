/** A form one question at a time, with the parts of a record as steps. */

import { focusOn, h } from "./dom.js";
import { say } from "./words.js";

/** The steps of a form: a question, or a part of one. */
const stepsOf = (fields) =>
  fields.flatMap((field) => {
    const parts = (field.parts ?? []).filter(({ element }) => element);
    return parts.length > 1 ? parts.map((part) => ({ field, part })) : [{ field, part: null }];
  });

/**
 * Shows one step of the fields; `last` is shown with the last one. `check(part)` says whether a field or a part may be left, after
 * a complaint. `go(field)` goes to the first step with a fault; without `paged` everything is shown.
 */
export function pager(fields, last, check, paged) {
  const steps = paged ? stepsOf(fields) : [];
  const count = h("p", { class: "soft", role: "status" });
  const back = h("button", { type: "button", class: "second", onclick: () => show(at - 1, true) }, say("survey.back"));
  const next = h("button", { type: "button", onclick: () => forward() }, say("survey.next"));
  const element = h("div", { class: "row" }, back, next);
  let at = 0;
  function show(wanted, focus = false) {
    at = wanted;
    const { field, part } = steps[at];
    for (const one of fields) one.element.hidden = one !== field;
    for (const one of field.parts ?? []) if (one.element) one.element.hidden = part !== null && one !== part;
    [back.hidden, next.hidden, last.hidden] = [at === 0, at === steps.length - 1, at < steps.length - 1];
    count.textContent = say("survey.step", { n: at + 1, of: steps.length });
    if (focus) focusOn((part ?? field).element.querySelector("legend"));
  }
  /** The next step, unless something is missing on this one; false on the last. */
  function forward() {
    if (steps.length < 2 || at === steps.length - 1) return false;
    if (check(steps[at].part ?? steps[at].field)) show(at + 1, true);
    return true;
  }
  /** The first step of a field that is not in order; its focus comes after. */
  function go(field) {
    if (steps.length < 2) return;
    const wrong = steps.findIndex((step) => step.field === field && (step.part === null || step.part.fault() !== null));
    show(Math.max(0, wrong));
  }
  if (steps.length > 1) show(0);
  return steps.length > 1 ? { head: count, element, forward, go } : { head: null, element: null, forward, go };
}
