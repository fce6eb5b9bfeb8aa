/** A form control for each kind of answer: a choice, a search, a number, a slider, text, or a group of those. */

import { combobox } from "./combobox.js";
import { bdi, h, newId, svg } from "./dom.js";
import { label, quantity } from "./format.js";
import { readNumber, writeNumber } from "./numbers.js";
import { decimalSign, rich, say } from "./words.js";

const FEW = 12;
const unanswered = () => say("ask.unanswered");

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
 * A fieldset with { element, value(), fault(), complain(message) }. `value()` is the answer as the SDK takes it, or undefined
 * while there is none; `fault()` says why it cannot be sent, or null. A record also has its `parts`.
 */
export function questionField({ id, text, protocol }, number, changed, shared = new Map(), lang = null) {
  const attributes = { class: "question", "data-question": id };
  const title = [number ? `${number}. ` : "", bdi(text, lang)];
  const { shape, clear = [], shared: strata = [] } = protocol;
  return { id, ...fieldset(protocol.domain, `q-${id}`, text, attributes, changed, title, { shape, clear, strata, shared, lang }) };
}

/** By the shape of the reports: what becomes of the parts of a record, and why none may be left out. */
const PARTS = {
  __proto__: null,
  part: "part",
  combination: "combination",
  figure: "figure",
  stratum: "stratum",
  "private stratum": "together",
  rectangle: "rectangle",
  place: "place",
  "profile output": "profile",
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
  /** What keeps the field from being sent, or null. */
  const fault = () => problem() ?? (value() === undefined ? unanswered() : null);
  return { element, value, problem, fault, complain, focus, parts: field.parts };
}

function categoryField(domain, name, { text, error, changed, lang }) {
  const labels = domain.labels.map(label);
  if (labels.length > FEW) {
    const id = newId("search");
    const help = h("p", { class: "note", id: `${id}-help` }, say("ask.search", { n: labels.length }));
    const box = combobox(labels, { id, describedBy: `${id}-help ${error.id}`, change: changed });
    const content = [h("label", { for: id, class: "hidden" }, text), help, box.element];
    const value = () => (box.value() === null ? undefined : domain.labels[box.value()]);
    return { content, input: box.input, value };
  }
  const inputs = labels.map((_, i) => h("input", { type: "radio", name, value: i, onchange: changed }));
  const content = labels.map((one, i) => h("label", { class: "choice" }, inputs[i], bdi(one, lang)));
  const value = () => {
    const at = inputs.findIndex((input) => input.checked);
    return at < 0 ? undefined : domain.labels[at];
  };
  return { content, input: inputs, value };
}

/**
 * A field for a number, its label and its help. It is a text field: the browser's own for numbers takes the decimals of one
 * language only and drops the rest without a word. `value` is undefined while nothing is written, and NaN for what is no number.
 */
function numeric(name, words, { text, error }, attributes) {
  const id = newId("number");
  const input = h("input", { id, name, type: "text", class: "number", autocomplete: "off", "aria-describedby": `${id}-help ${error.id}`, ...attributes });
  const content = [h("label", { for: id, class: "hidden" }, text), h("p", { class: "note", id: `${id}-help` }, words)];
  return { content, input, value: () => readNumber(input.value, decimalSign()) };
}

/** What is wrong with a number that was written, or null; one with the separator of another language is told how to write it. */
function misread(input) {
  if (!Number.isNaN(readNumber(input.value, decimalSign()))) return null;
  const example = { sign: decimalSign(), number: writeNumber(38.5, decimalSign()) };
  return /\d/.test(input.value) ? say("ask.digits.sign", example) : say("ask.digits");
}

function wholeField({ low, high }, name, around) {
  const kind = { inputmode: low < 0 ? "text" : "numeric", oninput: around.changed };
  const { content, input, value } = numeric(name, say("ask.whole", { low, high }), around, kind);
  const usable = () => value() === undefined || (Number.isInteger(value()) && value() >= low && value() <= high);
  return { content: [content, input], input, value, problem: () => (usable() ? null : say("ask.whole.please", { low, high })) };
}

/** What a number outside of its range is counted as, said while it is typed: nothing is changed without a word. */
function countedAs({ low, high, unit }) {
  const element = h("p", { class: "note counted", role: "status" });
  const show = (number) => {
    const near = Math.min(Math.max(number, low), high);
    element.textContent = Number.isFinite(number) && near !== number ? say("ask.counted", { end: quantity(near, unit) }) : "";
  };
  return { element, show };
}

/** A number, written or moved to. The field holds the answer; the slider follows it and writes into it. */
function sliderField({ low, high, unit }, name, around) {
  const { text, changed } = around;
  const words = say("ask.number", { low: quantity(low), high: quantity(high, unit) });
  const counted = countedAs({ low, high, unit });
  const typed = () => {
    show();
    changed();
  };
  const kind = { inputmode: low < 0 ? "text" : "decimal", oninput: typed };
  const { content, input, value } = numeric(name, words, around, kind);
  const step = 10 ** Math.floor(Math.log10((high - low) / 100)); // 100 to 1000 places
  const moved = () => {
    input.value = writeNumber(slider.value, decimalSign());
    typed();
  };
  const slider = h("input", { type: "range", min: low, max: high, step, "aria-label": say("ask.slider", { text }), oninput: moved });
  slider.value = low; // an empty track: the thumb is hidden until there is an answer
  function show() {
    const number = value();
    const known = Number.isFinite(number);
    slider.classList.toggle("idle", !known);
    if (known) slider.value = number;
    slider.setAttribute("aria-valuetext", known ? quantity(Math.min(Math.max(number, low), high), unit) : say("ask.slider.none"));
    counted.show(number);
  }
  show();
  const row = h("div", { class: "row" }, input, unit ? bdi(unit) : null);
  return { content: [content, row, counted.element, slider], input, value, problem: () => misread(input) };
}

function textField(_domain, name, { text, error, changed }) {
  const id = newId("text");
  const input = h("input", {
    id, name, type: "text", class: "long", dir: "auto", autocomplete: "off", maxlength: 1000,
    "aria-describedby": `${id}-help ${error.id}`, oninput: changed,
  });
  const help = h("p", { class: "note", id: `${id}-help` }, say("ask.text"));
  return { content: [h("label", { for: id, class: "hidden" }, text), help, input], input, value: () => input.value.trim() || undefined };
}

/** A box that says "none": an answer of its own, so that a question that nobody touched is not sent. */
function noneBox(name, clear, changed) {
  const box = h("input", { type: "checkbox", name: `${name}-none`, onchange: () => (box.checked && clear(), changed()) });
  return { box, element: h("label", { class: "choice none" }, box, say("ask.none")) };
}

/** What becomes of a set that is larger than what is reported. */
const limitOf = (most, items) => (most < items.size ? ` ${say("ask.set.most", { n: String(most) })}` : "");

/** A box to tick for each item, or of many a search that adds one after the other; and one for none of them. */
function setField({ items, most }, name, { text, error, changed, lang }) {
  const note = h("p", { class: "note" }, say("ask.set") + limitOf(most, items));
  const labels = Array.from({ length: items.size }, (_, i) => label(items.label(i)));
  if (items.size > FEW_BOXES) return manyItems(items, labels, note, name, { text, error, changed });
  const ticked = () => {
    none.box.checked = false;
    changed();
  };
  const inputs = labels.map((_, i) => h("input", { type: "checkbox", name, value: i, onchange: ticked }));
  const none = noneBox(name, () => inputs.forEach((input) => (input.checked = false)), changed);
  const content = [note, labels.map((one, i) => h("label", { class: "choice" }, inputs[i], bdi(one, lang))), none.element];
  const value = () => {
    const chosen = inputs.flatMap((input, i) => (input.checked ? [items.label(i)] : []));
    return chosen.length || none.box.checked ? chosen : undefined;
  };
  return { content, input: [...inputs, none.box], value };
}

const FEW_BOXES = 40;

/** Items found by a search, each with a button to take it away again. */
function manyItems(items, labels, note, name, { text, error, changed }) {
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
        const button = { type: "button", class: "small second", onclick: remove };
        const words = say("ask.remove.item", { item: labels[at] });
        return h("li", {}, bdi(labels[at]), " ", h("button", { ...button, "aria-label": words }, say("ask.remove")));
      }),
    );
  };
  const none = noneBox(name, () => (chosen.clear(), show()), changed);
  const box = combobox(labels, { id, describedBy: `${id}-help ${error.id}` });
  const add = () => {
    if (box.value() === null) return;
    chosen.add(box.value());
    none.box.checked = false;
    show();
    changed();
  };
  const help = h("p", { class: "note", id: `${id}-help` }, say("ask.items", { n: labels.length }));
  const row = h("div", { class: "row" }, box.element, h("button", { type: "button", class: "second", onclick: add }, say("ask.add")));
  const content = [note, h("label", { for: id, class: "hidden" }, text), help, row, list, none.element];
  const value = () => (chosen.size || none.box.checked ? [...chosen].sort((a, b) => a - b).map((at) => items.label(at)) : undefined);
  return { content, input: box.input, value };
}

/** A box to tick for each key, and a field for its number; and a box for none of them. */
function keyField({ items, most, numbers }, name, { changed, lang }) {
  const { low, high, unit } = numbers;
  const ends = { low: quantity(low), high: quantity(high, unit) };
  const note = h("p", { class: "note" }, say("ask.keys", ends) + limitOf(most, items));
  const rows = Array.from({ length: items.size }, (_, i) => {
    const words = label(items.label(i));
    const counted = countedAs(numbers);
    const edited = () => {
      field.disabled = !box.checked;
      if (box.checked) none.box.checked = false;
      counted.show(box.checked ? number() : undefined);
      changed();
    };
    const box = h("input", { type: "checkbox", name, value: i, onchange: edited });
    const field = h("input", {
      type: "text",
      class: "number",
      autocomplete: "off",
      inputmode: low < 0 ? "text" : "decimal",
      disabled: true,
      "aria-label": say(unit ? "ask.key.unit" : "ask.key", { key: words, unit }),
      oninput: edited,
    });
    const number = () => readNumber(field.value, decimalSign());
    const row = h("div", { class: "row key" }, h("label", { class: "choice" }, box, bdi(words, lang)), field, unit ? bdi(unit) : null, counted.element);
    return { box, field, number, edited, element: row, key: items.label(i) };
  });
  const untick = ({ box, edited }) => {
    box.checked = false;
    edited();
  };
  const none = noneBox(name, () => ticked().forEach(untick), changed);
  const ticked = () => rows.filter(({ box }) => box.checked);
  const isWritten = ({ number }) => Number.isFinite(number());
  const value = () => (ticked().length || none.box.checked ? Object.fromEntries(ticked().map(({ key, number }) => [String(key), number()])) : undefined);
  const problem = () => {
    const wrong = ticked().find((row) => !isWritten(row));
    return wrong ? (misread(wrong.field) ?? say("ask.keys.missing")) : null;
  };
  const focus = () => (ticked().find((row) => !isWritten(row))?.field ?? rows[0].box).focus();
  return { content: [note, rows.map(({ element }) => element), none.element], input: [...rows.map(({ box }) => box), none.box], value, problem, focus };
}

/** One field per column. All are asked for and checked. A stratum stands in all questions, and is asked for once. */
function recordField({ columns }, name, { changed, shape, clear, strata, shared, lang }) {
  const built = (column, i) => {
    const isClear = clear.includes(column.name);
    const named = bdi(column.title, lang);
    const title = isClear ? rich("ask.clear", { title: named }) : named;
    return fieldset(column.domain, `${name}-${i}`, column.title, { class: "part" }, changed, title, { shape: "part", clear: [], strata: [], lang });
  };
  const parts = columns.map((column, i) => {
    if (!strata.includes(column.name)) return built(column, i);
    const known = shared.get(column.name);
    if (known) return { ...known, element: null };
    shared.set(column.name, built(column, i));
    return shared.get(column.name);
  });
  const [note, missing] = ["note", "missing"].map((what) => say(`ask.${PARTS[shape]}.${what}`));
  const value = () => {
    const values = parts.map((part) => part.value());
    return values.includes(undefined) ? undefined : Object.fromEntries(values.map((one, i) => [columns[i].name, one]));
  };
  const problem = () => {
    for (const part of parts) part.complain(part.fault());
    return parts.some((part) => part.fault()) ? missing : null;
  };
  const focus = () => (parts.find((part) => part.fault()) ?? parts[0]).focus();
  return { content: [h("p", { class: "note" }, note), parts.map(({ element }) => element)], input: [], value, problem, focus, parts };
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
  const picker = svg(
    "svg",
    { class: "places", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true", onclick: pick },
    svg("rect", { width, height }),
    chosen,
    svg("path", { d: lines.join("") }),
  );
  const cells = domain.cell ? ` ${say("ask.cells.wide", { size: domain.cell })}` : "";
  const compass = h("p", { class: "note" }, `${say("ask.cells")}${cells}`);
  return { ...field, parts: undefined, content: [field.content[0], h("div", { class: "places" }, picker), compass, parts] };
}
