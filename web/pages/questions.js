/** A form control for each kind of answer: a choice, a search, a number, a slider, text, or a group of those. */

import { combobox } from "./combobox.js";
import { h, newId, svg } from "./dom.js";
import { count, label, quantity } from "./format.js";

const FEW = 12;
export const UNANSWERED = "Please answer: leaving a question out would tell something, too.";

/** One control per kind of domain. Each gives { content, input, value, problem?, focus? }. */
export const FIELDS = {
  __proto__: null,
  categories: categoryField,
  integers: wholeField,
  strings: textField,
  "short text": textField,
  "bit strings": textField,
  interval: sliderField,
  records: recordField,
  grid: placeField,
  sets: setField,
  "key-numbers": keyField,
};

/**
 * A fieldset with { element, value(), problem(), complain(message) }. `value()` is the answer as the SDK takes it, or
 * undefined while there is none; `problem()` says what is wrong with what was typed, or null.
 */
export function questionField({ id, text, protocol }, number, changed, shared = new Map()) {
  const attributes = { class: "card", "data-question": id };
  const title = number ? `${number}. ${text}` : text;
  const { shape, clear = [], shared: strata = [] } = protocol;
  return { id, ...fieldset(protocol.domain, `q-${id}`, text, attributes, changed, title, { shape, clear, strata, shared }) };
}

/** What becomes of the parts of a record, and why none may be left out, by the shape of the reports. */
const PARTS = {
  __proto__: null,
  part: {
    note: "A report is about only one of these, chosen by chance. Nothing about the others is in it.",
    missing: "Please fill in every part: which one is reported is decided by chance afterwards.",
  },
  combination: {
    note: "A report is about some of these together, chosen by chance. Nothing about the others is in it.",
    missing: "Please fill in every part: which ones are reported is decided by chance afterwards.",
  },
  figure: {
    note: "A report is about one figure that is calculated from these answers, a product of two of them say. Chance chooses which figure.",
    missing: "Please fill in every part: which figure is reported is decided by chance afterwards.",
  },
  stratum: {
    note: "Only the last of these is changed by chance. The others are sent as they are.",
    missing: "Please fill in every part.",
  },
  "private stratum": {
    note: "A report is about all of these together, and chance changes it as a whole. None of them is sent as it is.",
    missing: "Please fill in every part: they are reported together.",
  },
  rectangle: {
    note: "A report is about one rectangle that these two numbers lie in. Chance decides how large its sides are.",
    missing: "Please fill in both: how much of either is reported is decided by chance afterwards.",
  },
  place: {
    note: "Click your cell, or write its numbers. Chance moves it by some cells before anything is sent.",
    missing: "Please choose a cell, or write both of its numbers.",
  },
  "profile output": {
    note: "Both decide how likely each report is. A report is a value, drawn by chance; your profile is not in it.",
    missing: "Please fill in both: the report is drawn from profile and value.",
  },
};

function fieldset(domain, name, text, attributes, changed, title = text, kind = { shape: "part", clear: [], strata: [] }) {
  const error = h("p", { class: "error", id: newId("error") });
  const edited = () => {
    complain(null); // whoever corrects an answer need not read what was wrong with it
    changed();
  };
  const field = FIELDS[domain.kind](domain, name, { text, error, changed: edited, ...kind });
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

/** A box to tick for each item, or of many a search that adds one after the other. No item at all is an answer, too. */
function setField({ items, most }, name, { text, error, changed }) {
  const limit = most < items.size ? ` If you choose more than ${most}, ${most} of them are drawn by chance for the report.` : "";
  const note = h("p", { class: "note" }, `Choose as many as you like; none is an answer, too.${limit}`);
  const labels = Array.from({ length: items.size }, (_, i) => label(items.label(i)));
  if (items.size > FEW_BOXES) return manyItems(items, labels, note, { text, error, changed });
  const inputs = labels.map((_, i) => h("input", { type: "checkbox", name, value: i, onchange: changed }));
  const content = [note, labels.map((one, i) => h("label", { class: "choice" }, inputs[i], one))];
  return { content, input: inputs, value: () => inputs.flatMap((input, i) => (input.checked ? [items.label(i)] : [])) };
}

const FEW_BOXES = 40;

/** Items found by a search, each with a button to take it away again. */
function manyItems(items, labels, note, { text, error, changed }) {
  const id = newId("search");
  const chosen = new Set();
  const list = h("ul", { class: "chosen" });
  const show = () => {
    list.replaceChildren(
      ...[...chosen].map((at) => {
        const remove = () => {
          chosen.delete(at);
          show();
          changed();
        };
        return h("li", {}, labels[at], " ", h("button", { type: "button", class: "small second", "aria-label": `Remove ${labels[at]}`, onclick: remove }, "Remove"));
      }),
    );
  };
  const box = combobox(labels, { id, describedBy: `${id}-help ${error.id}` });
  const add = () => {
    if (box.value() === null) return;
    chosen.add(box.value());
    show();
    changed();
  };
  const help = h("p", { class: "note", id: `${id}-help` }, `${count(labels.length)} items: type a part of one, then add it.`);
  const row = h("div", { class: "row" }, box.element, h("button", { type: "button", class: "second", onclick: add }, "Add"));
  const content = [note, h("label", { for: id, class: "hidden" }, text), help, row, list];
  return { content, input: box.input, value: () => [...chosen].sort((a, b) => a - b).map((at) => items.label(at)) };
}

/** A box to tick for each key, and a field for its number. */
function keyField({ items, most, numbers }, name, { changed }) {
  const { low, high, unit } = numbers;
  const limit = most < items.size ? ` If you choose more than ${most}, ${most} of them are drawn by chance for the report.` : "";
  const note = h("p", { class: "note" }, `Choose those that you have, and write a number from ${quantity(low)} to ${quantity(high, unit)} beside each. None is an answer, too.${limit}`);
  const rows = Array.from({ length: items.size }, (_, i) => {
    const words = label(items.label(i));
    const edited = () => {
      field.disabled = !box.checked;
      changed();
    };
    const box = h("input", { type: "checkbox", name, value: i, onchange: edited });
    const field = h("input", { type: "number", step: "any", min: low, max: high, disabled: true, "aria-label": `${words}: a number${unit && ` in ${unit}`}`, oninput: changed });
    return { box, field, element: h("div", { class: "row key" }, h("label", { class: "choice" }, box, words), field, unit ? h("span", {}, unit) : null), key: items.label(i) };
  });
  const ticked = () => rows.filter(({ box }) => box.checked);
  const written = ({ field }) => field.value.trim() !== "" && !field.validity.badInput;
  const value = () => Object.fromEntries(ticked().map(({ key, field }) => [String(key), Number(field.value)]));
  const problem = () => (ticked().every(written) ? null : "Please write a number beside each that you chose.");
  const focus = () => (ticked().find((row) => !written(row))?.field ?? rows[0].box).focus();
  return { content: [note, rows.map(({ element }) => element)], input: rows.map(({ box }) => box), value, problem, focus };
}

/** One field per column. All are asked for and checked. A stratum stands in all questions, and is asked for once. */
function recordField({ columns }, name, { changed, shape, clear, strata, shared }) {
  const built = (column, i) => {
    const isClear = clear.includes(column.name);
    const title = isClear ? `${column.title} (sent in clear)` : column.title;
    return fieldset(column.domain, `${name}-${i}`, column.title, { class: "part" }, changed, title);
  };
  const parts = columns.map((column, i) => {
    if (!strata.includes(column.name)) return built(column, i);
    const known = shared.get(column.name);
    if (known) return { ...known, element: null };
    shared.set(column.name, built(column, i));
    return shared.get(column.name);
  });
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

const MAP_WIDTH = 480;

/**
 * A grid to click on; the two numbers below it hold the answer, also for those who do not point. North is up. Nothing is
 * loaded: a map would tell its owner where somebody looks.
 */
function placeField(domain, name, around) {
  const [rows, columns] = domain.shape;
  const size = Math.min(28, MAP_WIDTH / columns);
  const [width, height] = [size * columns, size * rows];
  const chosen = svg("rect", { class: "chosen", width: size, height: size, visibility: "hidden" });
  const lines = [
    ...Array.from({ length: columns + 1 }, (_, i) => `M${i * size} 0V${height}`),
    ...Array.from({ length: rows + 1 }, (_, i) => `M0 ${i * size}H${width}`),
  ];
  const show = () => {
    const at = [...inputs].map((input) => Number(input.value));
    const usable = at.every(Number.isInteger) && at[0] >= 1 && at[0] <= rows && at[1] >= 1 && at[1] <= columns;
    chosen.setAttribute("visibility", usable ? "visible" : "hidden");
    if (!usable) return;
    chosen.setAttribute("x", (at[1] - 1) * size);
    chosen.setAttribute("y", (rows - at[0]) * size);
  };
  const field = recordField(domain, name, { ...around, changed: () => (show(), around.changed()) });
  const parts = h("div", { class: "row" }, field.content.slice(1));
  const inputs = parts.querySelectorAll("input");
  const pick = ({ clientX, clientY }) => {
    const box = picker.getBoundingClientRect();
    const column = Math.min(columns, 1 + Math.floor(((clientX - box.left) / box.width) * columns));
    const row = Math.min(rows, rows - Math.floor(((clientY - box.top) / box.height) * rows));
    [Math.max(1, row), Math.max(1, column)].forEach((number, i) => {
      inputs[i].value = number;
      inputs[i].dispatchEvent(new Event("input", { bubbles: true }));
    });
  };
  const picker = svg("svg", { class: "places", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true", onclick: pick }, svg("rect", { width, height }), chosen, svg("path", { d: lines.join("") }));
  const cells = domain.cell ? ` Each cell is ${domain.cell} wide.` : "";
  const compass = h("p", { class: "note" }, `North is up; cells are counted from the south-west corner.${cells}`);
  return { ...field, content: [field.content[0], h("div", { class: "places" }, picker), compass, parts] };
}
