/**
 * Two ranges of periods against each other: both side by side on one scale, and the difference of the unbiased figures, with an
 * interval from both errors, as the service computes them.
 */

import { bars, legend, ranges } from "./charts.js";
import { command, download, h, newId, show, table } from "./dom.js";
import { nameOf, picture, span } from "./finding.js";
import { digitsFor, percent, period, short } from "./format.js";
import { say } from "./words.js";

// A spreadsheet runs text that begins like a formula, unless a ' stands before it.
const quote = (name) => `"${String(name).replace(/^'*[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
const COLUMNS = ["answer", "before", "after", "difference", "error", "from", "to"];
const PICKS = ["a1", "a2", "b1", "b2"];

/** The differences as a file: a row per answer, each with the two periods. */
function csvOf(found, periods) {
  const when = periods.map(quote);
  const name = (row) => (row.text ? quote(row.label) : row.label);
  const line = (row) =>
    [...when, name(row), row.before, row.after, row.difference, row.stderr, row.low, row.high].join(",");
  const head = "before_period,after_period,label,before,after,difference,stderr,low,high";
  return `${[head, ...found.map(line)].join("\n")}\n`;
}

export class Comparison {
  #board;
  #place = h("div", {});
  #picks = {};
  #offered = null;
  #asked;
  /** What is compared, as the address has it: "1..3,4..4"; nothing if nothing is. */
  compared = null;

  constructor(board) {
    this.#board = board;
    this.#asked = /^(\d+)\.\.(\d+),(\d+)\.\.(\d+)$/.exec(board.asked.get("compare"))?.slice(1) ?? null;
    const submit = (event) => {
      event.preventDefault();
      this.run();
    };
    const pick = (name) => {
      const id = newId("range");
      this.#picks[name] = h("select", { id });
      return h("div", {}, h("label", { for: id }, say(`board.compare.${name}`)), this.#picks[name]);
    };
    const button = h("button", { type: "submit" }, say("board.compare.go"));
    this.element = h(
      "details",
      { class: "card", open: Boolean(this.#asked) },
      h("summary", {}, say("board.compare")),
      h("form", { class: "controls", onsubmit: submit }, PICKS.map(pick), button),
      this.#place,
    );
  }

  /** The periods that there are; choices are kept. */
  offer(epochs) {
    const known = epochs.map(({ epoch }) => String(epoch));
    this.element.hidden = known.length < 2;
    if (known.join() === this.#offered) return; // a list that somebody is choosing from stays
    this.#offered = known.join();
    const usual = [known[0], known.at(-2) ?? known[0], known.at(-1), known.at(-1)];
    PICKS.forEach((name, i) => {
      const select = this.#picks[name];
      const before = [select.value, this.#asked?.[i], usual[i]].find((one) => known.includes(one));
      const words = (epoch) => period(this.#board.survey.terms.epochs, Number(epoch));
      const option = (epoch) => h("option", { value: epoch, selected: epoch === before }, words(epoch));
      select.replaceChildren(...known.map(option));
    });
  }

  /** What the address asked for, once the questions are there. */
  restore() {
    if (this.#asked && !this.compared) this.run();
  }

  async run() {
    const [a1, a2, b1, b2] = PICKS.map((name) => this.#picks[name].value);
    const [before, after] = [`${a1}..${a2}`, `${b1}..${b2}`];
    const fail = (words) => show(this.#place, h("p", { class: "error", role: "alert" }, words));
    if (Number(a1) > Number(a2) || Number(b1) > Number(b2)) return fail(say("board.compare.order"));
    this.compared = `${before},${after}`;
    this.#board.remember();
    const asked = Promise.all([this.#board.differences(before, after), this.#board.reading(before), this.#board.reading(after)]);
    const found = await this.#board.working(asked).catch((error) => error);
    if (found instanceof Error) return fail(`${found.message}.`);
    const [differences, ...sides] = found;
    const one = (panel) => this.#one(panel, differences.get(panel.key), sides.map((side) => side.get(panel.key)), [before, after]);
    return show(this.#place, this.#board.panels.filter(({ element }) => !element.hidden).map(one));
  }

  /** Both ranges side by side, on one scale. */
  #sides(docs, names) {
    const { view: values, top, order } = this.#board.state;
    if (!docs.every((doc) => doc?.n && doc.rows.length && ["bars", "points"].includes(doc.picture))) return null;
    const within = docs.flatMap((doc) => span(doc, { top, order }));
    const side = (doc, i) => h("div", {}, h("h4", {}, names[i]), picture(doc, { values, top, order, within }));
    return h("div", { class: "columns sides" }, docs.map(side));
  }

  /** A change of the mean in its unit, and changes of the shares up to some numbers, in their order. */
  #shape([mean, ...shares], title, unit) {
    return [ranges([mean], { title, unit, ends: [0] }), bars(shares.map((row) => ({ label: row.label, bars: [row] })), { title, signed: true })];
  }

  #one(panel, { enough, message, rows: answers, n_before: before, n_after: after, p_value: p }, docs, periods) {
    const { key: id, text } = panel;
    if (message) return h("section", {}, h("h3", {}, text), h("p", {}, say(enough ? "board.compare.texts" : "board.compare.few")));
    const clear = ({ difference, stderr }) => Math.abs(difference) / stderr;
    const name = (row) => nameOf({ marked: new Map(), kind: panel.kind === "distribution" ? "mean" : panel.kind }, row);
    const found = answers.map((one) => ({ ...one, label: name(one), text: typeof one.label !== "number", value: one.difference }));
    const shape = panel.shape && !panel.plane;
    if (!shape) found.sort((x, y) => clear(y) - clear(x));
    const { top, level } = this.#board.state;
    const rows = found.slice(0, top ?? undefined).map((row) => ({ label: row.label, bars: [row] }));
    const write = (row, i) => (x) => (shape && i ? percent(x, digitsFor(row.stderr)) : panel.write(x, row.stderr, panel.unit));
    const numbers = found.map((row, i) => [row.label, ...[row.before, row.after, row.difference, row.stderr, row.low, row.high].map(write(row, i))]);
    const { epochs } = this.#board.survey.terms;
    const names = periods.map((range) => period(epochs, ...range.split("..").map(Number)));
    const title = say("board.compare.title", { text, level: percent(level, 0) });
    const content = table(say("board.compare.table", { text }), COLUMNS.map((one) => say(`board.column.${one}`)), numbers, { class: "numbers" });
    const save = () => download(`${id}-difference.csv`, csvOf(found, names));
    const what = shape ? "distributions" : panel.inShares ? "shares" : "figures";
    const shownP = p < 1e-15 ? "< 1e-15" : `= ${short(p)}`;
    const change = () => {
      if (shape) return this.#shape(found, title, panel.unit);
      return panel.inShares ? bars(rows, { title, signed: true }) : ranges(found, { title, unit: panel.unit, ends: [0] });
    };
    return h(
      "section",
      { "data-compare": id },
      h("h3", { class: "headline" }, say(`board.compare.${what}.${p < 0.05 ? "differ" : "same"}`)),
      h("p", { class: "soft" }, text),
      this.#sides(docs, names),
      h("h4", {}, say("board.compare.change")),
      change(),
      panel.inShares || shape ? legend([["bar", say("board.compare.bar")], ["bar unsure", say("board.compare.none")]]) : null,
      h("p", { class: "note" }, say("board.compare.text", { before, after, p: shownP })),
      h("details", {}, h("summary", {}, say("board.tab.table")), content),
      h(
        "div",
        { class: "tools" },
        h("button", { type: "button", class: "small", onclick: save }, "CSV"),
        h("span", { class: "note" }, say("board.compare.command")),
      ),
      periods.map((range) => command(this.#board.cli(panel, { epochs: range, post: "none" }))),
    );
  }
}
