/** A form control for each kind of answer: a choice, a search, a number, a slider, text, or a group of those. */

import { combobox } from "./combobox.js";
import { h, newId } from "./dom.js";
import { count, label, quantity } from "./format.js";

const FEW = 12;
export const UNANSWERED = "Please answer: leaving a question out would tell something, too.";

/** One control per kind of domain. Each gives { content, input, value, problem?, focus? }. */
export const FIELDS = {
  __proto__: null,
  categories: categoryField,
  integers: wholeField,
  strings: textField,
  interval: sliderField,
  records: recordField,
};

/**
 * A fieldset with { element, value(), problem(), complain(message) }. `value()` is the answer as the SDK takes it, or
 * undefined while there is none; `problem()` says what is wrong with what was typed, or null.
 */
export function questionField({ id, text, protocol }, number, changed) {
  const attributes = { class: "card", "data-question": id };
  const title = number ? `${number}. ${text}` : text;
  return { id, ...fieldset(protocol.domain, `q-${id}`, text, attributes, changed, title, protocol.shape) };
}

/** What becomes of the parts of a record, and why none may be left out, by the shape of the reports. */
const PARTS = {
  __proto__: null,
  part: {
    note: "A report is about only one of these, chosen by chance. Nothing about the others is in it.",
    missing: "Please fill in every part: which one is reported is decided by chance afterwards.",
  },
  figure: {
    note: "A report is about one figure of these numbers, chosen by chance: one of them, its square, or their product.",
    missing: "Please fill in both: which figure is reported is decided by chance afterwards.",
  },
  "profile output": {
    note: "Both decide how likely each report is. A report is a value, drawn by chance; your profile is not in it.",
    missing: "Please fill in both: the report is drawn from profile and value.",
  },
};

function fieldset(domain, name, text, attributes, changed, title = text, shape = "part") {
  const error = h("p", { class: "error", id: newId("error") });
  const edited = () => {
    complain(null); // whoever corrects an answer need not read what was wrong with it
    changed();
  };
  const field = FIELDS[domain.kind](domain, name, { text, error, changed: edited, shape });
  const { content, input, value, problem = () => null } = field;
  const grouped = Array.isArray(input);
  const element = h(
    "fieldset",
    { ...attributes, "aria-describedby": grouped ? error.id : null },
    h("legend", {}, title),
    content,
    error,
  );
  function complain(message) {
    error.textContent = message ?? "";
    element.classList.toggle("invalid", Boolean(message));
    for (const one of grouped ? input : [input]) {
      if (message) one.setAttribute("aria-invalid", "true");
      else one.removeAttribute("aria-invalid");
    }
  }
  const focus = field.focus ?? (() => (grouped ? input[0] : input).focus());
  return { element, value, problem, complain, focus };
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

/** A field for a number, its label and its help; what a browser does not take for a number it reports as empty. */
function numeric(name, words, { text, error }, attributes) {
  const id = newId("number");
  const input = h("input", { id, name, type: "number", "aria-describedby": `${id}-help ${error.id}`, ...attributes });
  const content = [h("label", { for: id, class: "hidden" }, text), h("p", { class: "note", id: `${id}-help` }, words)];
  const value = () => (input.value.trim() === "" ? undefined : Number(input.value));
  return { content, input, value };
}

function wholeField({ low, high }, name, around) {
  const words = `whole number from ${count(low)} to ${count(high)}.`;
  const kind = { min: low, max: high, step: 1, inputmode: low < 0 ? "text" : "numeric", oninput: around.changed };
  const { content, input, value } = numeric(name, `A ${words}`, around, kind);
  const usable = () => !input.validity.badInput && (value() === undefined || (Number.isInteger(value()) && value() >= low && value() <= high));
  return { content: [content, input], input, value, problem: () => (usable() ? null : `Please write a ${words}`) };
}

/** A number, written or moved to. The field holds the answer; the slider follows it and writes into it. */
function sliderField({ low, high, unit }, name, around) {
  const { text, changed } = around;
  const words = `A number from ${quantity(low)} to ${quantity(high, unit)}. One outside is taken as the nearest end.`;
  const typed = () => {
    show();
    changed();
  };
  const kind = { step: "any", inputmode: low < 0 ? "text" : "decimal", oninput: typed };
  const { content, input, value } = numeric(name, words, around, kind);
  const step = 10 ** Math.floor(Math.log10((high - low) / 100)); // 100 to 1000 places
  const moved = () => {
    input.value = slider.value;
    typed();
  };
  const slider = h("input", { type: "range", min: low, max: high, step, "aria-label": `${text} (slider)`, oninput: moved });
  slider.value = (low + high) / 2;
  function show() {
    const number = value();
    slider.classList.toggle("idle", number === undefined);
    if (number !== undefined) slider.value = number;
    const here = number === undefined ? "no answer yet" : quantity(Math.min(Math.max(number, low), high), unit);
    slider.setAttribute("aria-valuetext", here);
  }
  show();
  const problem = () => (input.validity.badInput ? "Please write a number." : null);
  const row = h("div", { class: "row" }, input, unit ? h("span", {}, unit) : null);
  return { content: [content, row, slider], input, value, problem };
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

/** One field per column. All are asked for and checked. */
function recordField({ columns }, name, { changed, shape }) {
  const parts = columns.map((column, i) => fieldset(column.domain, `${name}-${i}`, column.name, { class: "part" }, changed));
  const { note, missing } = PARTS[shape];
  const value = () => {
    const values = parts.map((part) => part.value());
    return values.includes(undefined) ? undefined : Object.fromEntries(values.map((one, i) => [columns[i].name, one]));
  };
  const wrong = (part) => part.problem() ?? (part.value() === undefined ? UNANSWERED : null);
  const problem = () => {
    for (const part of parts) part.complain(wrong(part));
    return parts.some(wrong) ? missing : null;
  };
  const focus = () => (parts.find(wrong) ?? parts[0]).focus();
  return { content: [h("p", { class: "note" }, note), parts.map(({ element }) => element)], input: [], value, problem, focus };
}
