/**
 * Two ranges of periods against each other: the difference of the unbiased shares, with an interval from both errors, as
 * the service computes them.
 */

import { bars, legend, ranges } from "./charts.js";
import { command, download, h, newId, show, table } from "./dom.js";
import { count, digitsFor, label, percent, period, plural, short } from "./format.js";

// A spreadsheet runs text that begins like a formula, unless a ' stands before it.
const quote = (name) => `"${String(name).replace(/^'*[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

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

  constructor(board) {
    this.#board = board;
    const submit = (event) => {
      event.preventDefault();
      this.run();
    };
    const pick = (name, words) => {
      const id = newId("range");
      this.#picks[name] = h("select", { id });
      return h("div", {}, h("label", { for: id }, words), this.#picks[name]);
    };
    this.element = h(
      "details",
      { class: "card" },
      h("summary", {}, "Compare two ranges of periods"),
      h(
        "form",
        { class: "controls", onsubmit: submit },
        pick("a1", "Before: from"), pick("a2", "to"), pick("b1", "After: from"), pick("b2", "to"),
        h("button", { type: "submit" }, "Compare"),
      ),
      this.#place,
    );
  }

  /** The periods that there are; choices are kept. */
  offer(epochs) {
    const known = epochs.map(({ epoch }) => String(epoch));
    if (known.join() === this.#offered) return; // a list that somebody is choosing from stays
    this.#offered = known.join();
    const preset = { a1: known[0], a2: known.at(-2) ?? known[0], b1: known.at(-1), b2: known.at(-1) };
    for (const [name, select] of Object.entries(this.#picks)) {
      const before = known.includes(select.value) ? select.value : preset[name];
      const words = (epoch) => period(this.#board.survey.terms.epochs, Number(epoch));
      const option = (epoch) => h("option", { value: epoch, selected: epoch === before }, words(epoch));
      select.replaceChildren(...known.map(option));
    }
    this.element.hidden = known.length < 2;
  }

  async run() {
    const { a1, a2, b1, b2 } = Object.fromEntries(Object.entries(this.#picks).map(([name, { value }]) => [name, value]));
    const [before, after] = [`${a1}..${a2}`, `${b1}..${b2}`];
    const fail = (words) => show(this.#place, h("p", { class: "error", role: "alert" }, words));
    if (Number(a1) > Number(a2) || Number(b1) > Number(b2)) {
      return fail("A range must begin before it ends: choose an earlier start or a later end.");
    }
    const found = await this.#board.differences(before, after).catch((error) => error);
    if (found instanceof Error) return fail(`${found.message}.`);
    return show(this.#place, this.#board.panels.map((panel) => this.#one(panel, found.get(panel.key), before, after)));
  }

  /** A change of the mean in its unit, and changes of the shares up to some numbers, in their order. */
  #shape([mean, ...shares], title, unit) {
    return [ranges([mean], { title, unit, ends: [0] }), bars(shares.map((row) => ({ label: row.label, bars: [row] })), { title, signed: true })];
  }

  #one(panel, { enough, message, rows: answers, n_before: before, n_after: after, p_value: p }, first, second) {
    const { key: id, text } = panel;
    if (message) {
      const missing = enough ? "Name texts to look for first." : "Not enough answers yet in one of the ranges.";
      return h("section", {}, h("h3", {}, text), h("p", {}, missing));
    }
    const clear = ({ difference, stderr }) => Math.abs(difference) / stderr;
    const found = answers.map((one) => ({ ...one, label: label(one.label), text: typeof one.label !== "number", value: one.difference }));
    const shape = panel.shape && !panel.plane;
    const what = shape ? "distributions" : panel.inShares ? "shares" : "figures";
    if (!shape) found.sort((x, y) => clear(y) - clear(x));
    const { top, level } = this.#board.state;
    const rows = found.slice(0, top ?? undefined).map((row) => ({ label: row.label, bars: [row] }));
    const write = (row, i) => (x) => (shape && i ? percent(x, digitsFor(row.stderr)) : panel.write(x, row.stderr, panel.unit));
    const numbers = found.map((row, i) => [row.label, ...[row.before, row.after, row.difference, row.stderr, row.low, row.high].map(write(row, i))]);
    const { epochs } = this.#board.survey.terms;
    const csv = csvOf(found, [first, second].map((range) => period(epochs, ...range.split("..").map(Number))));
    const title = `Differences for “${text}” with ${percent(level, 0)} intervals; the table has the numbers`;
    const head = ["Answer", "Before", "After", "Difference", "± std. error", "From", "To"];
    const content = table(`Differences for ${text}`, head, numbers, { class: "numbers" });
    const save = () => download(`${id}-difference.csv`, csv);
    const meaning = panel.inShares
      ? "a bar is how much the share has changed, in percentage points"
      : "a mark is how much the figure has changed";
    const counted = `${plural(before, "report")} before, ${count(after)} after`;
    const finding = p < 0.05 ? `The ${what} differ` : `No difference of the ${what} can be told`;
    const picture = () => {
      const { inShares, unit } = panel;
      if (shape) return this.#shape(found, title, unit);
      return inShares ? bars(rows, { title, signed: true }) : ranges(found, { title, unit, ends: [0] });
    };
    return h(
      "section",
      { "data-compare": id },
      h("h3", {}, text),
      h("p", { class: "note" }, `${counted}; ${meaning}. Intervals are about everybody, these people being a sample.`),
      h("p", {}, h("b", {}, finding), `: p ${p < 1e-15 ? "below 1e-15" : `= ${short(p)}`}, for any difference at all.`),
      picture(),
      panel.inShares || shape ? legend([["bar", "a change"], ["bar unsure", "no change can be told"]]) : null,
      h("details", {}, h("summary", {}, "Table"), content),
      h(
        "div",
        { class: "tools" },
        h("button", { type: "button", class: "small", onclick: save }, "CSV"),
        h("span", { class: "note" }, "The two sides from the command line:"),
      ),
      command(this.#board.cli(panel, { epochs: first, post: "none" })),
      command(this.#board.cli(panel, { epochs: second, post: "none" })),
    );
  }
}
