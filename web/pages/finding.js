/**
 * One result as people read it: the finding in one sentence, then one picture with its intervals. A document is all that is
 * needed, no token and no dashboard: `card` shows a whole document, the other functions are its parts.
 */

import { bars, covers, cumulative, cut, heatMap, histogram, legend, ranges, saysNothing, touchable } from "./charts.js";
import { consistent, read } from "./document.js";
import { h, newId } from "./dom.js";
import { digitsFor, label, measured, percent } from "./format.js";
import { figure, has, joined, say } from "./words.js";

const SORTED_FROM = 13; // answers
const ALL_NUMBERS = 200; // of up to so many numbers, the ages of people say, all are shown: a histogram has no gaps
const FEW = 25; // answers that are shown at first
const MATRIX = 12; // items
const FEW_ANSWERS = 4; // up to so many, a finding is about the “yes” among them
const YES = /^(yes|ja|oui|s[ií]|sim|tak|да|نعم)$/i;

const note = (words) => h("p", { class: "note" }, words);
const inside = (share) => Math.min(1, Math.max(0, share));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A sentence of a document in the language of the page, where the catalogue has it. */
export function tell({ sentences = [] }, text) {
  const known = sentences.find((one) => one.text === text);
  const words = known ? say(known.id, known.parameters) : text;
  return `${words[0].toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;
}

/** What a row is about, in the language of the page; an answer as it was asked. */
export function nameOf({ marked, kind }, row) {
  const { quantile, figure: name = kind === "mean" && row.label === "mean" ? "mean" : "" } = marked.get(row) ?? {};
  if (quantile) return quantile === 0.5 ? say("board.median") : say("board.quantile", { n: figure(Number((100 * quantile).toPrecision(6)), false) });
  if (has(`board.figure.${name}`)) return say(`board.figure.${name}`);
  const own = label(row.label);
  return Number.isFinite(row.begin ?? NaN) || kind === "ranges" ? own.replace(/(\S+) to (\S+)/g, (_, from, to) => say("range", { from, to })) : own;
}

// -- the finding -----------------------------------------------------------------------------------

/** A share as so many of 100, or of more if it is small. The interval is never narrower than it is. */
function outOf({ value, low, high }) {
  let of = 100;
  while (of < 1e6 && value > 0 && value * of < 1 && (high - low) * of < 2) of *= 10;
  const tight = (x) => Number((of * inside(x)).toFixed(6)); // 0.29 * 100 is a little more than 29
  return { n: Math.round(of * inside(value)), of, from: Math.floor(tight(low)), to: Math.ceil(tight(high)) };
}

/** How many gave one answer. */
function gave(row, answer) {
  const facts = { ...outOf(row), answer };
  return facts.n > 0 ? say("board.find.answer", facts) : say("board.find.most", facts);
}

function ofShares(doc) {
  const { rows, winner } = doc;
  const yes = rows.length <= FEW_ANSWERS ? rows.find(({ label: own }) => own === true || YES.test(own)) : null;
  if (yes ? saysNothing(yes) : rows.every(saysNothing)) return say("board.find.unsure");
  if (yes) return gave(yes, label(yes.label));
  const named = (wanted) => rows.find(({ label: own }) => same(own, wanted));
  const [first, second] = winner ? [named(winner.label), named(winner.runner_up)] : [];
  if (first && winner.certain) return say("board.find.first", { ...outOf(first), answer: nameOf(doc, first) });
  const share = ({ value, stderr }) => percent(inside(value), digitsFor(stderr));
  if (first && second) {
    return say("board.find.none", { first: nameOf(doc, first), share: share(first), second: nameOf(doc, second), other: share(second) });
  }
  const most = rows.reduce((a, b) => (b.value > a.value ? b : a));
  return say("board.find.largest", { ...outOf(most), answer: nameOf(doc, most) });
}

/** A figure in its unit with its interval. */
function figureOf({ value, low, high, stderr, unit }) {
  const [middle, from, to] = [value, low, high].map((x) => measured(x, stderr ?? (high - low) / 4));
  return { value: unit ? `${middle}\u00a0${unit}` : middle, low: from, high: to };
}

function ofPeriods(doc) {
  const totals = doc.rows.filter((row) => doc.marked.get(row)?.figure === "total" && row.value !== null);
  const said = totals.map(({ group, value, stderr, low, high }) => {
    const [share, from, to] = [value, low, high].map((x) => percent(inside(x), digitsFor(stderr)));
    return say("board.find.share", { answer: group, share, low: from, high: to });
  });
  return said.length ? say("board.find.periods", { shares: joined(said, ", ") }) : say("board.find.unsure");
}

/** The finding of a document in one sentence. */
export function finding(doc) {
  const { decision, headline, n, enough, picture, rows, kind } = doc;
  if (decision) return tell(doc, decision.verdict);
  if (!enough) return say("board.wait");
  if (!n) return say("board.nobody");
  if (!rows.length) return say(kind === "found" ? "board.find.nothing" : "board.find.texts");
  if (picture === "lines") return ofPeriods(doc);
  if (headline?.id === "median") {
    const { value, low, high, digits, unit } = headline.parameters;
    const [middle, from, to] = [value, low, high].map((x) => figure(x.toFixed(digits)));
    return say("board.find.median", { value: unit ? joined([middle, `\u00a0${unit}`], "") : middle, low: from, high: to });
  }
  if (headline?.id === "most often") {
    const row = rows.find(({ label: own }) => own === headline.parameters.label);
    return say("board.find.place", { ...outOf(headline.parameters), place: row ? nameOf(doc, row) : headline.parameters.label });
  }
  if (headline) return tell(doc, headline.text);
  if (picture === "bars") return ofShares(doc);
  const known = rows.filter(({ value }) => value !== null);
  if (!known.length) return say("board.find.unsure");
  if (picture === "matrix") {
    const most = known.reduce((a, b) => (b.value > a.value ? b : a));
    return say("board.find.largest", { ...outOf(most), answer: nameOf(doc, most) });
  }
  return say(kind === "mean" ? "board.find.mean" : "board.find.figure", { name: nameOf(doc, known[0]), ...figureOf(known[0]) });
}

// -- the pictures ----------------------------------------------------------------------------------

/** The places of the rows, the largest value first. */
export const ranked = ({ rows }) => rows.map((_, i) => i).sort((a, b) => rows[b].value - rows[a].value);

const numbers = ({ rows }) => rows.every(({ label: own }) => typeof own === "number");

/** Whether answers stand in the order of their shares: numbers and short lists keep their own, unless another is chosen. */
export const byShare = (doc, order = "auto") => order === "share" || (order === "auto" && !numbers(doc) && doc.rows.length >= SORTED_FROM);

/** The places of the answers in a chart: the most common, and of few enough numbers all. */
function shown(doc, { top = FEW, order }) {
  const sorted = byShare(doc, order);
  const whole = numbers(doc) && !sorted && doc.rows.length <= ALL_NUMBERS;
  const most = ranked(doc).slice(0, whole ? undefined : (top ?? undefined));
  return sorted ? most : most.sort((a, b) => a - b);
}

/** What the whiskers are. */
export function intervalName({ level, simultaneous, population }) {
  return say(`board.interval.${simultaneous ? "once" : "each"}.${population ? "population" : "respondents"}`, { level: percent(level, 0) });
}

/** The ends of all that a chart of these rows shows: of charts with one scale, the ends of the widest. */
export function span(doc, view = {}) {
  if (!doc.n || !doc.rows.length || !["bars", "points", "histogram"].includes(doc.picture)) return [];
  const rows = doc.picture === "bars" ? shown(doc, view).map((i) => doc.rows[i]) : doc.picture === "histogram" ? doc.section("bins").rows : doc.rows;
  return rows.flatMap(({ value, low, high }) => [value, low, high]).filter(Number.isFinite);
}

function ofAnswers(doc, view) {
  const { rows, trust, level } = doc;
  const { values = "raw", reach = 0, within } = view;
  const floor = trust.noise_floor < 1 ? trust.noise_floor : null;
  const own = shown(doc, view).map((i) => ({ label: nameOf(doc, rows[i]), bars: [values === "raw" ? rows[i] : consistent(rows[i])] }));
  const each = own.map(({ bars: [one] }) => one);
  const marks = [
    each.some(covers) && ["bar unsure", say("board.mark.zero")],
    ["whisker", intervalName(doc)],
    each.some((one) => cut(one)) && ["whisker", say("board.mark.cut")],
    floor !== null && ["floor", say("board.mark.floor")],
    reach > 0 && ["fakes", say("board.mark.fakes")],
  ];
  const title = say("board.title.shares", { n: own.length, of: rows.length, text: doc.text, level: percent(level, 0) });
  return [
    rows.every(saysNothing) && h("p", { class: "card warn" }, say("board.few")),
    bars(own, { title, floor, reach, within }),
    legend(marks.filter(Boolean)),
    own.length < rows.length && note(say("board.top", { n: own.length, of: rows.length })),
    sizes(doc),
    matrix(doc),
    unlisted(doc),
  ];
}

/** How many gave none of the listed answers. */
function unlisted({ facts: { unlisted: share = null, unlisted_stderr: error } }) {
  if (share === null) return null;
  const [value, spread] = [share, error].map((x) => percent(x, digitsFor(error)));
  return note(say("board.unlisted", { value, spread }));
}

/** Of sets: how many items people have. */
function sizes(doc) {
  const found = doc.section("sizes");
  if (!found) return null;
  const rows = found.rows.map((row) => ({ label: label(row.label), bars: [row] }));
  return h("div", { class: "sizes" }, h("h3", {}, say("board.sizes")), bars(rows, { title: say("board.title.sizes", { text: doc.text }) }));
}

const shade = (value, most) => `shade-${Math.round(10 * Math.min(1, Math.max(0, value / most)))}`;

/** A share in words, with its interval. */
function spoken(name, { value, low, high, stderr }) {
  const [share, from, to] = [value, low, high].map((x) => percent(x, digitsFor(stderr)));
  return say("board.cell", { name, share, low: from, high: to });
}

/** A table whose cells have more colour where more people are. */
function heatTable(caption, corner, across, down, cell) {
  const head = h("tr", {}, h("td", {}, corner), across.map((name) => h("th", { scope: "col" }, name)));
  const body = down.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), across.map((_, j) => cell(i, j))));
  return touchable(h("table", {}, h("caption", {}, caption), head, body));
}

/** Of sets: how many people have both of two items. The most common items only. */
function matrix(doc) {
  const together = doc.section("together")?.rows ?? [];
  if (!together.length) return null;
  const found = new Map(together.map((row) => [row.label, row]));
  const places = ranked(doc).slice(0, MATRIX).sort((a, b) => a - b);
  const most = Math.max(...together.map(({ value }) => value ?? 0), 1e-9);
  const names = doc.rows.map(({ label: own }) => label(own));
  const cell = (a, b) => {
    const [i, j] = [places[a], places[b]];
    const row = found.get(`${names[Math.min(i, j)]} & ${names[Math.max(i, j)]}`);
    if (i === j || !row || row.value === null) return h("td", { class: "none" }, i === j ? "·" : "–");
    const lift = row.lift === null ? "" : ` ${say("board.lift", { times: measured(row.lift, row.lift_stderr) })}`;
    const both = spoken(say("list.and", { first: names[i], last: names[j] }), row);
    return h("td", { class: shade(row.value, most), title: `${both}.${lift}` }, percent(row.value, Math.min(1, digitsFor(row.stderr))));
  };
  const own = places.map((i) => names[i]);
  return h("div", { class: "matrix" }, h("h3", {}, say("board.together")), heatTable(say("board.together.text"), "", own, own, cell));
}

/** Several columns together: two of them as a table, at one answer of each further one; `choose(name, place)` chooses it. */
function crosstab(doc, { values = "raw", down, along, filter = {}, choose }) {
  const { axes } = doc.main[0];
  const rows = values === "raw" ? doc.rows : doc.rows.map(consistent);
  const place = (name) => axes.findIndex((axis) => axis.name === name);
  const others = (...taken) => axes.findIndex((_, i) => !taken.includes(i));
  const last = place(along);
  const first = place(down) === last || place(down) < 0 ? others(last) : place(down);
  const second = last < 0 ? others(first) : last;
  const rest = axes.filter((_, i) => i !== first && i !== second);
  const at = (i, j) => axes.reduce((sum, { name, labels }, k) => sum * labels.length + (k === first ? i : k === second ? j : (filter[name] ?? 0)), 0);
  const most = Math.max(...rows.map(({ value }) => value ?? 0), 1e-9);
  const cell = (i, j) => {
    const row = rows[at(i, j)];
    const kind = `${shade(row.value, most)}${covers(row) ? " none" : ""}`;
    return h("td", { class: kind, title: spoken(row.label, row) }, percent(row.value, Math.min(1, digitsFor(row.stderr))));
  };
  const choices = rest.map(({ name, labels }) => {
    const id = newId("filter");
    const option = (words, i) => h("option", { value: i, selected: i === (filter[name] ?? 0) }, words);
    const change = ({ target }) => choose?.(target.dataset.name, Number(target.value));
    const select = h("select", { id, "data-name": name, onchange: change }, labels.map(option));
    return h("div", { class: "row" }, h("label", { for: id }, name), select);
  });
  const [one, other] = [axes[first], axes[second]];
  const caption = say("board.crosstab", { one: one.name, other: other.name });
  return h("div", { class: "matrix" }, choices, heatTable(caption, `${one.name} \\ ${other.name}`, other.labels, one.labels, cell));
}

/** Numbers in their own units: one scale per unit. */
function ofFigures(doc, { reach = 0, within = [] }) {
  const { rows, kind, level } = doc;
  const units = [...new Set(rows.map(({ unit }) => unit))];
  const [{ limits = [] }] = doc.main;
  const ends = units.length > 1 ? [] : [...within, ...limits, ...(kind === "regression" ? [0] : [])]; // a coefficient of 0 is no effect
  const title = say("board.title.figures", { text: doc.text, level: percent(level, 0) });
  const named = (unit) => rows.filter((row) => row.unit === unit).map((row) => ({ ...row, label: nameOf(doc, row) }));
  const marks = [["whisker", intervalName(doc)], ...(reach > 0 ? [["fakes", say("board.mark.fakes")]] : [])];
  return [units.map((unit) => ranges(named(unit), { title, unit, ends, reach })), legend(marks)];
}

/** A number's distribution: the cumulative shares with marks at the quantiles, then the histogram. */
function ofNumbers(doc, { form, within = [] }) {
  const { text, level, population } = doc;
  const unit = doc.main[0].unit ?? "";
  const { rows: bins } = doc.section("bins");
  const { rows: curve, marks = [] } = doc.section("cumulative");
  const facts = { text, level: percent(level, 0) };
  const band = say(population ? "board.band" : "board.band.respondents", facts);
  return [
    cumulative(curve, marks, { title: say("board.title.curve", facts), unit }),
    legend([["bar", say("board.mark.upto")], ["bar unsure", band], ["whisker", say("board.mark.quantiles")]]),
    histogram(bins, { title: say("board.title.histogram", facts), unit, within }),
    legend([["bar unsure", say("board.mark.zero")], ["whisker", intervalName(doc)]]),
    note(say("board.bins")),
    form,
  ];
}

/** Two numbers at once, as a map. */
function ofPlane(doc, { form, names = ["", ""], square = false }) {
  const rows = doc.rows.map((row) => ({ ...row, name: nameOf(doc, row) }));
  return [
    heatMap(rows, { title: say("board.title.map", { text: doc.text }), names, interval: intervalName(doc), square }),
    note(say("board.rectangles")),
    form,
  ];
}

/** The name of a method, in the language of the page where the catalogue has it. */
export const methodOf = (method) => (has(`board.method.${method}`) ? say(`board.method.${method}`) : method);

/**
 * The picture of a document, without its finding. `view`: `values` "raw" or "consistent"; how many answers (`top`) in which
 * `order`; `reach` of forgers; ends that a common scale has at least (`within`); of tables the columns `down` and `along`, and the
 * `filter` of the others; of maps the `names` of the axes; a `form` below what has ranges.
 */
export function picture(doc, view = {}) {
  if (!doc.n || !doc.rows.length) return [];
  if (doc.picture === "histogram") return ofNumbers(doc, view);
  if (doc.picture === "map") return ofPlane(doc, view);
  if (doc.picture === "matrix") return [crosstab(doc, view), unlisted(doc)];
  return doc.picture === "bars" ? ofAnswers(doc, view) : ofFigures(doc, view);
}

/** What else is said beside the figures; the warning has a place of its own. */
export function remarks(doc) {
  const { notes, trust: { warning }, population } = doc;
  return [
    warning && h("p", { class: "card warn" }, tell(doc, warning)),
    notes.filter((one) => one !== warning).map((one) => note(tell(doc, one))),
    !population && note(say("board.respondents")),
    winnerOf(doc),
  ];
}

/** How clear the lead of the most common answer is. */
function winnerOf({ winner, picture: kind, decision, rows }) {
  if (!winner || kind !== "bars" || decision || rows.length < 3) return null; // of two answers, the finding says it all
  const points = (x) => say("board.points", { n: figure((100 * x).toFixed(2), false) });
  const [first, second] = [winner.label, winner.runner_up].map(label);
  const facts = { first, second, lead: points(winner.margin), error: points(winner.error), level: percent(winner.level, 0) };
  return h("p", { class: "note winner" }, say(winner.certain ? "board.winner" : "board.winner.none", facts));
}

/** A whole document: the finding, the question, the picture and the remarks. */
export function card(document, view = {}) {
  const doc = read(document);
  const counted = note(say("board.answers", { n: doc.n }));
  return h(
    "section",
    { class: "card finding", "aria-label": doc.text, "data-result": doc.part ? `${doc.id}.${doc.part}` : doc.id },
    h("h2", { class: "headline" }, finding(doc)),
    h("p", { class: "soft" }, doc.part ? `${doc.text} – ${doc.part}` : doc.text),
    doc.enough ? [picture(doc, view), remarks(doc), counted] : null,
  );
}

