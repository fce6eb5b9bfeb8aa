/**
 * The sentences that people read, one file per language, filled with facts. The files are those of `src/deniable/words`,
 * whose `__init__.py` says what they hold and fills them for Python; a test compares the two.
 */

const [DEFAULT, OTHER] = ["en", "other"];
const PLACE = /\{([A-Za-z][a-z]*)(?::([a-z]+))?\}/g;
const DAY = 86400;

/** Another entry, as a parameter of a sentence. */
export const word = (id, facts = {}) => ({ id, facts });
/** A decimal number as it was rounded: its digits, with a point. */
export const figure = (digits, grouped = true) => ({ digits: String(digits), grouped });
/** Several facts after each other; with "and" before the last one if nothing is between them. */
export const joined = (parts, between = null) => ({ parts, between });
/** The entry for two of something, which are "both", or for all of them. */
export const either = (id, n) => (n === 2 ? word(`${id}.both`) : word(`${id}.all`, { n }));

async function read(language) {
  const place = new URL(`../words/${language}.json`, import.meta.url);
  if (place.protocol === "file:") return fromFolder(place);
  const reply = await fetch(place); // as the pages preload it
  if (!reply.ok) throw new Error(`there are no words of the language ${language}`);
  return reply.json();
}

/** Outside of a browser: the file, with the names of all languages that have one, as the service adds them. */
async function fromFolder(place) {
  const { readdir, readFile } = await import("node:fs/promises");
  const entries = async (file) => JSON.parse(await readFile(new URL(file, place), "utf8"));
  const files = (await readdir(new URL(".", place))).filter((name) => name.endsWith(".json")).sort();
  const names = await Promise.all(files.map(async (file) => [file.replace(".json", ""), (await entries(file))["language.name"]]));
  return { ...(await entries(place)), languages: Object.fromEntries(names) };
}

/** The catalogue of a language: its entries, and the signs of numbers that the browser knows for it, with the digits 0 to 9. */
export function catalogue(language, entries) {
  const signs = new Intl.NumberFormat(`${language}-u-nu-latn`, { useGrouping: true }).formatToParts(1234567.5);
  const sign = (kind) => signs.find(({ type }) => type === kind)?.value ?? "";
  return { language, entries, group: sign("group"), decimal: sign("decimal") };
}

let current = catalogue(DEFAULT, await read(DEFAULT));

/** Every language that has a file, by the name that its speakers give it; the service writes the list into each file. */
export const LANGUAGES = current.entries.languages;

export const language = () => current.language;
/** The language for `Intl`, with the digits 0 to 9: fingerprints, bytes and epsilons are written with them, too. */
export const locale = () => `${current.language}-u-nu-latn`;
export const direction = () => current.entries["language.direction"];

let asked = null;
/** The language that a page was asked to speak; null where it speaks the default one because nobody asked. */
export const askedFor = () => asked;

/** Speak this language from now on. */
export async function speak(wanted) {
  asked = wanted;
  if (wanted !== current.language) current = catalogue(wanted, await read(wanted));
}

/** The first language of a list that there are words for: what was asked for, then what the browser prefers. */
export function preferred(...wanted) {
  return wanted.filter(Boolean).map((one) => one.toLowerCase().split("-")[0]).find((one) => Object.hasOwn(LANGUAGES, one)) ?? DEFAULT;
}

/** The sentence of this id, filled with facts. */
export const say = (id, facts = {}) => said(word(id, facts), undefined);

/** Whether the catalogue has an entry. */
export const has = (id) => Object.hasOwn(current.entries, id);

function said({ id, facts }, form) {
  const entry = current.entries[id];
  if (entry === undefined) throw new Error(`the words have no “${id}”`);
  return chosen(entry, facts.n, form).replace(PLACE, (_, name, wanted) => {
    const key = name[0].toLowerCase() + name.slice(1);
    if (facts[key] === undefined) throw new Error(`“${id}” needs “${key}”`);
    const filled = text(facts[key], wanted);
    return key === name ? filled : filled[0].toUpperCase() + filled.slice(1);
  });
}

function chosen(entry, n, form) {
  if (typeof entry === "string") return entry;
  const kind = plural(typeof n === "object" ? n.digits : String(n));
  const keys = [kind, OTHER].flatMap((one) => [...(form ? [`${one}:${form}`] : []), one]);
  return entry[keys.find((key) => Object.hasOwn(entry, key))];
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** A text, isolated if it would reorder a sentence from right to left: a name from left to right. */
function isolated(name) {
  if (direction() !== "rtl" || name.includes("\u2068")) return name;
  const letter = name.match(/\p{L}/u)?.[0];
  return letter === undefined || RIGHT_TO_LEFT.test(letter) ? name : `\u2068${name}\u2069`;
}

const rules = new Map();

/** The plural category of a number as it is written: in English "1" is one of something, and "1.0" is not. */
export function plural(digits) {
  if (!/^-?[0-9]+(\.[0-9]+)?$/.test(digits)) return OTHER;
  const decimals = Math.min(digits.split(".")[1]?.length ?? 0, 20);
  const key = `${current.language} ${decimals}`;
  const shown = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  if (!rules.has(key)) rules.set(key, new Intl.PluralRules(current.language, shown));
  return rules.get(key).select(Number(digits));
}

/** A fact in the words and signs of the language. */
export function text(fact, form) {
  if (typeof fact === "string") return isolated(fact);
  if (typeof fact === "number" || typeof fact === "bigint") return written(figure(typeof fact === "number" ? Math.round(fact) : fact));
  if (fact.id) return said(fact, form);
  return fact.parts ? list(fact.parts.map((part) => text(part)), fact.between) : written(fact);
}

function written({ digits, grouped }) {
  const [whole, rest] = digits.split(".");
  const shown = grouped ? whole.replace(/\B(?=(\d{3})+$)/g, current.group) : whole;
  return rest === undefined ? shown : `${shown}${current.decimal}${rest}`;
}

function list(texts, between) {
  if (between !== null || texts.length < 2) return texts.join(between ?? "");
  return say("list.and", { first: texts.slice(0, -1).join(current.entries["list.comma"]), last: texts.at(-1) });
}

/** The same where some facts are elements: texts and elements, one after the other. */
export function rich(id, facts) {
  const nodes = [];
  const mark = (fact) => (typeof fact === "object" && "nodeType" in fact ? `\ue000${nodes.push(fact) - 1}\ue000` : fact);
  const filled = say(id, Object.fromEntries(Object.entries(facts).map(([name, fact]) => [name, mark(fact)])));
  return filled.split("\ue000").map((part, i) => (i % 2 ? nodes[part] : part));
}

/** The sign before decimals, as people type it. */
export const decimalSign = () => current.decimal;

/** A date in UTC as the language writes it. */
export function date(seconds) {
  const [year, month, day] = new Date(1000 * seconds).toISOString().slice(0, 10).split("-");
  return say("date", { year, month, day });
}

/** A length of time in the largest unit that it is a whole number of. */
export function duration(seconds) {
  const [size, unit] = [[DAY, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([one]) => seconds % one === 0);
  return word(`duration.${unit}`, { n: seconds / size });
}
