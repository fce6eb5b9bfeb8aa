/**
 * Questions of a draft, each from a template. What is written is the grammar of drafts that the command line takes; whether it
 * is right, the service says.
 */

import { h, newId } from "./dom.js";
import { say } from "./words.js";

/** A number as it was typed; what is none stays text, and the service refuses it. */
export function typed(text) {
  const number = Number(text.trim().replace(",", "."));
  return text.trim() && Number.isFinite(number) ? number : text.trim();
}

/** A key of an object, gone while its field is empty. */
export function put(object, key, value) {
  if (value === "" || value === null) delete object[key];
  else object[key] = value;
}

/** A labelled field; `write(value)` gets what is typed. */
export function field(words, value, write, { help = null, kind = "input", wide = false, ...attributes } = {}) {
  const id = newId("field");
  const told = help && h("span", { class: "note", id: `${id}-help` }, help);
  const input = h(kind, { id, autocomplete: "off", "aria-describedby": help && `${id}-help`, ...attributes });
  if (attributes.type === "checkbox") {
    input.checked = value;
    input.addEventListener("change", () => write(input.checked));
    return h("label", { class: "choice" }, input, h("span", {}, words, help && h("br", {}), told));
  }
  input.value = value ?? "";
  input.addEventListener("input", () => write(input.value));
  return h("div", { class: wide ? "wide" : null }, h("label", { for: id }, words), input, told);
}

export function choice(words, value, options, write) {
  const id = newId("field");
  const select = h("select", { id }, options.map(([own, text]) => h("option", { value: own, selected: own === value }, text)));
  select.addEventListener("change", () => write(select.value));
  return h("div", {}, h("label", { for: id }, words), select);
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const list = (labels, write, help = say("new.lines")) =>
  field(say("new.answers"), labels.join("\n"), (text) => write(lines(text)), { kind: "textarea", rows: 4, help, wide: true });

/** A field for one key of an object. */
function part(words, object, key, changed, { read = (text) => text.trim(), ...attributes } = {}) {
  const write = (text) => {
    put(object, key, read(text));
    changed();
  };
  return field(words, object[key], write, { size: 10, ...attributes });
}

const number = (words, object, key, changed, attributes = {}) => part(words, object, key, changed, { read: typed, inputmode: "decimal", ...attributes });

const isList = (answers) => Array.isArray(answers) && answers.every((label) => typeof label === "string");

/** Whether answers are an object with the first of these keys, and no others. */
const has = (...keys) => (answers) => {
  if (answers === null || typeof answers !== "object" || !(keys[0] in answers)) return false;
  return Object.keys(answers).every((key) => keys.includes(key));
};

/** Parts of a record from lines such as "smoke: yes, no" and "sleep: 0..24 hours". */
function partsOf(text) {
  const found = {};
  for (const line of lines(text)) {
    const [, name, rest] = line.match(/^([^:]+):(.*)$/) ?? [null, line, ""];
    const [, low, high, unit] = rest.match(/^\s*(-?[\d.]+?)\.\.(-?[\d.]+)\s*(.*)$/) ?? [];
    const labels = rest.split(",").map((label) => label.trim()).filter(Boolean);
    found[name.trim()] = low === undefined ? labels : { number: { low: typed(low), high: typed(high), ...(unit.trim() && { unit: unit.trim() }) } };
  }
  return found;
}

/** The texts of the parts in another language, by position: "rauchen: ja, nein" and "Schlaf: Stunden". */
function partTexts(record, text) {
  const given = lines(text).map((line) => line.match(/^([^:]+):?(.*)$/).slice(1).map((one) => one.trim()));
  const texts = ([name, rest], part) => {
    if (isList(part)) return { name, answers: rest.split(",").map((label) => label.trim()) };
    return rest ? { name, unit: rest } : { name };
  };
  return Object.fromEntries(Object.entries(record).slice(0, given.length).map(([own, part], i) => [own, texts(given[i], part)]));
}

const partsText = (parts = {}) => Object.values(parts).map(({ name, answers, unit }) => `${name}: ${answers?.join(", ") ?? unit ?? ""}`).join("\n");

const isPart = (part) => isList(part) || (has("number")(part) && has("low", "high", "unit")(part.number));
const partText = ([name, part]) =>
  `${name}: ${isList(part) ? part.join(", ") : `${part.number.low}..${part.number.high} ${part.number.unit ?? ""}`.trim()}`;

/** What can be asked: whether answers are of this kind, new ones, and the fields that change them. `set` takes others. */
export const TEMPLATES = {
  yesno: {
    is: (answers) => isList(answers) && [2, 3].includes(answers.length) && answers[0] === say("new.yes") && answers[1] === say("new.no"),
    make: () => [say("new.yes"), say("new.no")],
    fields: (answers, set) => [
      field(say("new.decline"), answers.length === 3, (on) => set([...answers.slice(0, 2), ...(on ? [say("new.declined")] : [])]), { type: "checkbox" }),
    ],
  },
  choices: { is: isList, make: () => [], fields: (answers, set) => [list(answers, set)] },
  several: {
    is: (answers) => has("multiple", "at_most")(answers) && isList(answers.multiple),
    make: () => ({ multiple: [], at_most: 2 }),
    fields: (answers, set) => [
      list(answers.multiple, (labels) => set({ ...answers, multiple: labels })),
      number(say("new.most"), answers, "at_most", () => set(answers), { help: say("new.most.help") }),
    ],
  },
  number: {
    is: (answers) => has("number", "read")(answers) && has("low", "high", "unit")(answers.number),
    make: () => ({ number: { low: 0, high: 24, unit: say("new.hours") }, read: "mean" }),
    fields: (answers, set) => {
      const changed = () => set(answers);
      const reads = ["mean", "distribution"].map((name) => [name, say(`new.read.${name}`)]);
      return [
        number(say("new.low"), answers.number, "low", changed),
        number(say("new.high"), answers.number, "high", changed),
        part(say("new.unit"), answers.number, "unit", changed),
        choice(say("new.read"), answers.read ?? "mean", reads, (name) => set(Object.assign(answers, { read: name }))),
      ];
    },
  },
  rating: {
    is: has("low", "high", "read"),
    make: () => ({ low: 1, high: 5 }),
    fields: (answers, set) => [number(say("new.low"), answers, "low", () => set(answers)), number(say("new.high"), answers, "high", () => set(answers))],
  },
  text: {
    is: (answers) => answers === "text" || (has("discover")(answers) && has("bytes")(answers.discover)),
    make: () => ({ discover: { bytes: 12 } }),
    fields: (answers, set) => {
      const found = answers !== "text";
      const ways = [["found", say("new.text.found")], ["listed", say("new.text.listed")]];
      return [
        choice(say("new.text"), found ? "found" : "listed", ways, (way) => set(way === "found" ? { discover: { bytes: 12 } } : "text", true)),
        found && number(say("new.bytes"), answers.discover, "bytes", () => set(answers), { help: say("new.bytes.help") }),
      ];
    },
  },
  place: {
    is: (answers) => has("places", "read")(answers) && has("columns", "rows", "cell")(answers.places),
    make: () => ({ places: { columns: 8, rows: 6, cell: "1 km" }, read: "rectangles" }),
    fields: (answers, set) => [
      number(say("new.columns"), answers.places, "columns", () => set(answers)),
      number(say("new.rows"), answers.places, "rows", () => set(answers)),
      part(say("new.cell"), answers.places, "cell", () => set(answers), { help: say("new.cell.help") }),
    ],
  },
  record: {
    is: (answers) => has("record")(answers) && Object.values(answers.record).every(isPart),
    make: () => ({ record: {} }),
    fields: (answers, set) => [
      field(say("new.parts"), Object.entries(answers.record).map(partText).join("\n"), (text) => set({ record: partsOf(text) }), {
        kind: "textarea",
        rows: 4,
        help: say("new.parts.help"),
        wide: true,
      }),
    ],
  },
  other: {
    is: () => true,
    make: () => null,
    fields: (answers, set) => {
      const write = (text) => {
        try {
          set(JSON.parse(text));
        } catch {
          set(text);
        }
      };
      return [field(say("new.json"), JSON.stringify(answers), write, { kind: "textarea", rows: 4, help: say("new.json.help"), wide: true })];
    },
  },
};

export const templateOf = (answers) => Object.keys(TEMPLATES).find((name) => TEMPLATES[name].is(answers));

/** Whether the answers of a template have texts of their own, and which. */
const TEXTS = { yesno: "answers", choices: "answers", several: "answers", number: "unit", record: "parts" };

/**
 * The field for the texts of a question's answers in another language: `texts` is what a translation has for the question, and
 * `attributes` say the language.
 */
export function translation(template, entry, texts, changed, name, attributes) {
  const kind = TEXTS[template];
  const own = (key, value) => {
    put(texts, key, value);
    changed();
  };
  const area = { kind: "textarea", rows: 3, wide: true, help: say("new.lines.in"), ...attributes };
  if (kind === "answers") return field(say("new.answers.in", { name }), texts.answers?.join("\n"), (text) => own("answers", lines(text)), area);
  if (kind === "unit") return field(say("new.unit.in", { name }), texts.unit, (text) => own("unit", text.trim()), { size: 10, ...attributes });
  if (kind !== "parts") return null;
  return field(say("new.parts.in", { name }), partsText(texts.parts), (text) => own("parts", partTexts(entry.answers.record, text)), area);
}

/** An id of a question from its text, that no other question has. */
export function idFrom(text, taken) {
  const plainLetters = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const own = plainLetters.split(/[^a-z0-9]+/).filter((word) => word.length > 3).slice(0, 2).join("-").slice(0, 40) || "question";
  for (let i = 1; ; i++) if (!taken.includes(i > 1 ? `${own}-${i}` : own)) return i > 1 ? `${own}-${i}` : own;
}
