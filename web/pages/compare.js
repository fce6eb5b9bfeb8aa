/**
 * Two ranges of periods against each other: the difference of the unbiased shares, with an interval from both errors.
 * The errors are taken as independent. Reports that a device repeats make them positively related, and then these
 * intervals are too wide, never too narrow.
 */

import { bars, legend } from "./charts.js";
import { command, download, h, newId, show, table } from "./dom.js";
import { count, digitsFor, label, percent, period, plural } from "./format.js";

/** Inverse of the standard normal distribution function (Acklam's approximation, error below 1.2e-9). */
export function quantile(p) {
  const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
  const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
  const poly = (coefficients, x) => coefficients.reduce((sum, k) => sum * x + k, 0);
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p));
    return poly(c, q) / (poly(d, q) * q + 1);
  }
  if (p > 1 - 0.02425) return -quantile(1 - p);
  const q = p - 0.5;
  return (poly(a, q * q) * q) / (poly(b, q * q) * q * q + 1);
}

/** b - a, answer by answer. */
export function differences(a, b, level) {
  const z = quantile((1 + level) / 2);
  return a.answers.map((from, i) => {
    const to = b.answers[i];
    const [value, stderr] = [to.frequency - from.frequency, Math.hypot(from.stderr, to.stderr)];
    return { label: label(from.label), from: from.frequency, to: to.frequency, value, stderr, low: value - z * stderr, high: value + z * stderr };
  });
}

export class Comparison {
  #board;
  #place = h("div", {});
  #picks = {};

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
    const preset = { a1: known[0], a2: known.at(-2) ?? known[0], b1: known.at(-1), b2: known.at(-1) };
    for (const [name, select] of Object.entries(this.#picks)) {
      const before = known.includes(select.value) ? select.value : preset[name];
      select.replaceChildren(...known.map((epoch) => h("option", { value: epoch, selected: epoch === before }, period(this.#board.survey.terms.epochs, Number(epoch)))));
    }
    this.element.hidden = known.length < 2;
  }

  async run() {
    const { a1, a2, b1, b2 } = Object.fromEntries(Object.entries(this.#picks).map(([name, { value }]) => [name, value]));
    const [before, after] = [`${a1}..${a2}`, `${b1}..${b2}`];
    if (Number(a1) > Number(a2) || Number(b1) > Number(b2)) return show(this.#place, h("p", { class: "error", role: "alert" }, "A range begins before it ends."));
    const [a, b] = [await this.#board.read({ epochs: before }), await this.#board.read({ epochs: after })];
    show(this.#place, this.#board.panels.map((panel) => this.#one(panel, a.get(panel.id), b.get(panel.id), before, after)));
  }

  #one(panel, a, b, before, after) {
    if (!a.answers.length || !b.answers.length) {
      return h("section", {}, h("h3", {}, a.text), h("p", {}, a.enough && b.enough ? "Name texts to look for first." : "Not enough answers yet in one of the ranges."));
    }
    const found = differences(a, b, this.#board.levelOf(panel)).sort((x, y) => Math.abs(y.value) / y.stderr - Math.abs(x.value) / x.stderr);
    const { top, level } = this.#board.state;
    const rows = found.slice(0, top ?? undefined).map((row) => ({ label: row.label, bars: [row] }));
    const numbers = found.map((row) => {
      const d = digitsFor(row.stderr);
      return [row.label, percent(row.from, d), percent(row.to, d), percent(row.value, d), percent(row.stderr, d), percent(row.low, d), percent(row.high, d)];
    });
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const csv = ["label,before,after,difference,stderr,low,high", ...found.map((r) => [quote(r.label), r.from, r.to, r.value, r.stderr, r.low, r.high].join(","))].join("\n");
    const title = `Differences for “${a.text}” with ${percent(level, 0)} intervals; the table has the numbers`;
    return h(
      "section",
      { "data-compare": a.id },
      h("h3", {}, a.text),
      h("p", { class: "note" }, `${plural(a.n, "answer")} before, ${count(b.n)} after; a bar is how much the share has changed, in percentage points.`),
      bars(rows, { title, signed: true }),
      legend([["bar", "a change"], ["bar unsure", "no change can be told"]]),
      h("details", {}, h("summary", {}, "Table"), table(`Differences for ${a.text}`, ["Answer", "Before", "After", "Difference", "± std. error", "From", "To"], numbers, { class: "numbers" })),
      h("div", { class: "tools" }, h("button", { type: "button", class: "small", onclick: () => download(`${a.id}-difference.csv`, `${csv}\n`) }, "CSV"), h("span", { class: "note" }, "The two sides from the command line:")),
      command(this.#board.cli(panel, { epochs: before, post: "none" })),
      command(this.#board.cli(panel, { epochs: after, post: "none" })),
    );
  }
}
