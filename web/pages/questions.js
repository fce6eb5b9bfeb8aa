/** A form control for each kind of answer: radio buttons for few categories, a search for many, a number, or text. */

import { combobox } from "./combobox.js";
import { h, newId } from "./dom.js";
import { count, label } from "./format.js";

const FEW = 12;

/**
 * A fieldset with { element, value(), problem(), complain(message) }. `value()` is the answer as the SDK takes it, or
 * undefined while there is none; `problem()` says what is wrong with what was typed, or null.
 */
export function questionField({ id, text, protocol }, number, changed) {
  const { domain } = protocol;
  const build = domain.kind === "integers" ? numberField : domain.kind === "strings" ? textField : categoryField;
  const error = h("p", { class: "error", id: newId("error") });
  const edited = () => {
    complain(null); // whoever corrects an answer need not read what was wrong with it
    changed();
  };
  const { content, input, value, problem = () => null } = build(domain, `q-${id}`, { text, error, changed: edited });
  const grouped = input instanceof NodeList || Array.isArray(input);
  const element = h(
    "fieldset",
    { class: "card", "data-question": id, "aria-describedby": grouped ? error.id : null },
    h("legend", {}, number ? `${number}. ${text}` : text),
    content,
    error,
  );
  function complain(message) {
    error.textContent = message ?? "";
    element.classList.toggle("invalid", Boolean(message));
    for (const one of grouped ? input : [input]) one.toggleAttribute?.("aria-invalid", false);
    for (const one of grouped ? input : [input]) if (message) one.setAttribute("aria-invalid", "true");
  }
  const focus = () => (grouped ? input[0] : input).focus();
  return { id, element, value, problem, complain, focus };
}

function categoryField(domain, name, { text, error, changed }) {
  const labels = domain.labels.map(label);
  if (labels.length > FEW) {
    const id = newId("search");
    const help = h("p", { class: "note", id: `${id}-help` }, `${count(labels.length)} possible answers: type a part of yours.`);
    const box = combobox(labels, { id, describedBy: `${id}-help ${error.id}`, change: changed });
    const content = [h("label", { for: id, class: "hidden" }, text), help, box.element];
    const value = () => (box.value() === null ? undefined : domain.labels[box.value()]);
    return { content, input: box.input, value };
  }
  const inputs = labels.map((_, i) => h("input", { type: "radio", name, value: i, onchange: changed }));
  const content = labels.map((one, i) => h("label", { class: "choice" }, inputs[i], one));
  const value = () => {
    const at = inputs.findIndex((input) => input.checked);
    return at < 0 ? undefined : domain.labels[at];
  };
  return { content, input: inputs, value };
}

function numberField(domain, name, { text, error, changed }) {
  const id = newId("number");
  const { low, high } = domain;
  const input = h("input", {
    id, name, type: "number", min: low, max: high, step: 1, inputmode: low < 0 ? "text" : "numeric",
    "aria-describedby": `${id}-help ${error.id}`, oninput: changed,
  });
  const help = h("p", { class: "note", id: `${id}-help` }, `A whole number from ${count(low)} to ${count(high)}.`);
  const value = () => (input.value.trim() === "" ? undefined : Number(input.value));
  // What a browser does not take for a number it reports as empty.
  const usable = () => !input.validity.badInput && (value() === undefined || (Number.isInteger(value()) && value() >= low && value() <= high));
  const problem = () => (usable() ? null : `Please write a whole number from ${count(low)} to ${count(high)}.`);
  return { content: [h("label", { for: id, class: "hidden" }, text), help, input], input, value, problem };
}

function textField(_domain, name, { text, error, changed }) {
  const id = newId("text");
  const input = h("input", {
    id, name, type: "text", class: "long", autocomplete: "off", maxlength: 1000,
    "aria-describedby": `${id}-help ${error.id}`, oninput: changed,
  });
  const help = h("p", { class: "note", id: `${id}-help` }, "Any text; short and commonly written words are the ones that can be counted.");
  return { content: [h("label", { for: id, class: "hidden" }, text), help, input], input, value: () => input.value.trim() || undefined };
}
