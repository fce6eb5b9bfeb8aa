/** One question on the dashboard: bars, table, files, the poisoning slider, and the series over time. */

import { bars, covers, cumulative, cut, heatMap, histogram, legend, ranges, saysNothing } from "./charts.js";
import { combobox } from "./combobox.js";
import { consistent, quantiles } from "./document.js";
import { command, download, h, newId, table, update } from "./dom.js";
import {
  count, decimal, decimals, digitsFor, label, measured, percent, period, quantity, rounded,
} from "./format.js";
import { Series } from "./series.js";

const SORTED_FROM = 13;
/** A change of a share, which is at most all of it. */
const points = (change, digits) => `${(100 * Math.min(1, change)).toFixed(digits)}\u00a0points`;
const LINES = 3;
const MATRIX = 12; // items
const FOUND = 20; // values that are followed over time
const OVER_TIME = [0.25, 0.5, 0.75]; // quantiles
const ALL_NUMBERS = 200; // of up to so many numbers, the ages of people say, all are shown: a histogram has no gaps

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
const pValue = (p) => (p < 1e-15 ? "below 1e-15" : p < 1e-3 ? p.toExponential(1) : String(Number(p.toPrecision(2))));

const note = (words) => h("p", { class: "note" }, words);
const folded = (title, ...content) => h("details", {}, h("summary", {}, title), ...content);
const toolRow = (button, words) => h("div", { class: "tools" }, button, h("span", { class: "note" }, words));
/** Whom intervals are about, if it is not everybody. */
const among = (about) => (about === "population" ? "" : ", among those who answered");

const RESPONDENTS_ONLY =
  "Intervals are about those who answered, without the error of having asked these people and not others.";
const ONE_LOOK = [
  "A wrong hypothesis is favoured with at most the probability of the level, if one of them is true",
  "and one looks once, after a number of answers that was fixed beforehand.",
  "If you look again and again, go by the p-values for any number of looks.",
].join(" ");
const RECTANGLES = [
  "A dot marks a rectangle whose interval contains zero.",
  "There are as many rectangles as stand out of the noise; “Bins” shows more rows and columns, with wider intervals.",
].join(" ");

export class QuestionPanel {
  #board;
  #question;
  #chart = h("div", {});
  #about = h("p", { class: "note" });
  #forgery = h("p", { class: "note" });
  #warning = h("div", { role: "status" });
  #decision = h("div", { role: "status" });
  #expected = h("details", { hidden: true }); // of what is discovered: the form for texts that somebody expects
  #tablePlace = h("div", {});
  #command = h("div", {});
  #details;
  #fakes;
  #series;
  #seriesPlace = h("div", { class: "series" });
  #seriesTable = h("div", {});
  #epochs = null; // of answers that change: the shares of every period are one estimate
  #epochsPlace = h("div", { class: "series" });
  #chosen = null;
  #raw = null;
  #asked = null; // what the estimates were asked for with: the controls may have moved on since
  candidates = [];
  /** Of a distribution: the range whose share is wanted, such as "25..45". */
  range = null;
  #rangeForm = null;
  #filter = {}; // of a table of more than two columns: the answer of each further one, by its name

  constructor(board, question, number) {
    this.#board = board;
    this.#question = question;
    this.open = Boolean(question.protocol.domain.open);
    this.#fakes = this.#slider();
    this.#details = this.#tools();
    this.over = folded("Over time", this.#seriesPlace, this.#adder(), this.#seriesTable);
    this.over.addEventListener("toggle", () => this.over.open && this.drawSeries());
    this.#series = new Series(this.#seriesPlace);
    this.element = h(
      "section",
      { class: "card", "aria-label": question.text, "data-question": this.key },
      h("h2", {}, number ? `${number}. ${question.text}` : question.text),
      this.#about,
      this.#forgery,
      this.#warning,
      this.#decision,
      this.open ? this.#textForm() : null,
      this.#chart,
      this.#expected,
      this.#fakes.element,
      this.#details,
      this.over,
    );
  }

  get id() {
    return this.#question.id;
  }

  /** Its name among all panels: the question, and the part that it is about. */
  get key() {
    const { id, part } = this.#question;
    return part ? `${id}.${part}` : id;
  }

  get text() {
    return this.#question.text;
  }

  /** The stratum that it is about, "all" for everybody; nothing where there are none. */
  get stratum() {
    return this.#question.stratum;
  }

  /** The columns that it is about together, where there are some. */
  get columns() {
    return this.#question.columns;
  }

  #textForm() {
    const help = "The answers are open text: how common one is can be estimated, but not which there are.";
    return this.#candidateForm("Texts to look for, one per line", help, "Look for these");
  }

  /** Open text is estimated for texts that somebody names; what is discovered is found sooner if somebody expects it. */
  #candidateForm(words, help, button) {
    const id = newId("candidates");
    const field = h("textarea", { id, rows: 3, placeholder: "rye\nsourdough", "aria-describedby": `${id}-help` });
    const submit = (event) => {
      event.preventDefault();
      this.candidates = [...new Set(field.value.split("\n").map((line) => line.trim()).filter(Boolean))];
      this.#board.load();
    };
    return h(
      "form",
      { onsubmit: submit },
      h("label", { for: id }, words),
      field,
      h("p", { class: "note", id: `${id}-help` }, help),
      h("button", { type: "submit", class: "second" }, button),
    );
  }

  #expect() {
    this.#expected.hidden = this.kind !== "found" || !this.#raw.enough || !this.#raw.n;
    if (this.#expected.hidden || this.#expected.firstChild) return;
    const help = "Answers that you expect are found at smaller shares than others. The stated rate of false finds still holds.";
    this.#expected.append(h("summary", {}, "Expected answers"), this.#candidateForm("Texts that you expect, one per line", help, "Search again"));
  }

  #slider() {
    const id = newId("fakes");
    const input = h("input", { id, type: "range", min: 0, max: 100, value: 0, step: 1, oninput: () => this.#draw() });
    const text = h("output", { for: id });
    const element = h("div", { hidden: true, class: "forgery" }, h("h3", {}, h("label", { for: id }, "If some reports were fake")), input, h("p", {}, text));
    return { input, text, element };
  }

  /** Ever finer towards zero: few fakes are the interesting ones. */
  #fakeReports(n) {
    return Math.round(n * (Number(this.#fakes.input.value) / 100) ** 2);
  }

  /** What forgers could do to figures that are not drawn with a mark of their own for it. */
  #tellFakes() {
    const { n, trust: { poisoning } } = this.#raw;
    const fakes = this.#fakeReports(n);
    const [figure, write] = {
      series: ["a share", (x) => points(x, 2)],
      distribution: ["the mean", (x) => quantity(Number(x.toPrecision(3)), this.unit)],
      ranges: ["the share of a range", (x) => points(x, 2)],
      rectangles: ["the share of a rectangle", (x) => points(x, 2)],
    }[this.kind];
    this.#fakes.element.classList.toggle("idle", !fakes);
    this.#fakes.text.textContent = fakes
      ? `If ${count(fakes)} of the ${count(n)} were fake, ${figure} could move by up to ${write((fakes / n) * poisoning)}, on top of the noise.`
      : `Move the slider: one fake report in a hundred moves ${figure} by up to ${write(0.01 * poisoning)}.`;
  }

  /** How many fake reports the slider stands at. */
  get fakes() {
    return this.#raw?.n ? this.#fakeReports(this.#raw.n) : 0;
  }

  /** A new document, as the state `asked` wanted it: shares unbiased, with their consistent form next to them. */
  update(raw, asked) {
    [this.#raw, this.#asked] = [raw, asked];
    this.#draw();
    if (this.over.open) this.drawSeries();
  }

  get #numbers() {
    return "number" in this.#question.protocol.domain;
  }

  /** Numbers and short lists keep their order, unless another one is chosen. */
  get #byShare() {
    const { order } = this.#board.state;
    return order === "share" || (order === "auto" && !this.#numbers && this.#raw.rows.length >= SORTED_FROM);
  }

  #ranked() {
    const { rows: answers } = this.#raw;
    return answers.map((_, i) => i).sort((a, b) => answers[b].value - answers[a].value);
  }

  /** The answers of the chart: the most common, and of few enough numbers all. */
  #shown() {
    const { top } = this.#board.state;
    const whole = this.#numbers && !this.#byShare && this.#raw.rows.length <= ALL_NUMBERS;
    const most = this.#ranked().slice(0, whole ? undefined : (top ?? undefined));
    return this.#byShare ? most : most.sort((a, b) => a - b);
  }

  #draw() {
    const raw = this.#raw;
    const { view } = this.#board.state;
    const { level, at, about, post } = this.#asked;
    const { n, protocol, trust, facts } = raw;
    const { noise_floor: floor, epsilon } = trust;
    const { axes } = raw.main[0] ?? {};
    const answers = n ? raw.rows : []; // before the first answer the rows have no values
    const smallest = facts.smallest ?? floor;
    this.#expect();
    const visible = n && this.shares && smallest !== null && smallest < 1;
    const words = [this.key, protocol, `epsilon ${decimal(epsilon)}`, this.#board.counted(n)];
    if (visible) words.push(`smallest visible share ${percent(smallest, digitsFor(smallest))}`);
    this.#about.textContent = words.join(" · ");
    this.#forgery.textContent = trust.forgery;
    update(this.#warning, trust.warning && h("p", { class: "card warn" }, sentence(trust.warning)));
    update(this.#decision, raw.decision && this.#verdict(raw.decision));
    this.#fakes.element.hidden = !answers.length || trust.poisoning === null;
    this.#details.hidden = !answers.length;
    if (!answers.length) return update(this.#chart, this.#empty());
    this.over.hidden = this.epochs;
    if (this.epochs || this.shape) this.#tellFakes();
    if (this.epochs) return this.#drawEpochs();
    if (this.plane) return this.#drawMap();
    if (this.shape) return this.#drawDistribution();
    if (!this.shares) return this.#drawValues();
    const fakes = this.#fakeReports(n);
    const reach = (fakes / n) * (trust.poisoning ?? 0);
    this.#fakes.element.classList.toggle("idle", !fakes);
    this.#fakes.text.textContent = fakes
      ? `If ${count(fakes)} of the ${count(n)} were fake, shares could move by up to ${points(reach, 2)}, on top of the noise (red).`
      : `Move the slider: one fake report in a hundred moves a share by up to ${points(0.01 * trust.poisoning, 1)}.`;
    const one = ({ value, low, high }, two) => ({ value, low, high, two });
    const rows = this.#shown().map((i) => ({
      label: label(answers[i].label),
      bars: [
        view === "consistent" ? null : one(answers[i], false),
        view === "raw" ? null : one(consistent(answers[i]), true),
      ].filter(Boolean),
    }));
    const title = `Shares of ${rows.length} of ${answers.length} answers to “${this.text}” with ${percent(level, 0)} intervals; the table has the numbers`;
    const grey = (two) => rows.some(({ bars: own }) => own.some((one) => one.two === two && covers(one)));
    const plain = raw.method?.startsWith("unbiased") === false ? raw.method : "unbiased";
    const unsure = [[false, "bar unsure", plain], [true, "bar two unsure", "consistent"]]
      .filter(([two]) => grey(two))
      .map(([, kind, words]) => [kind, `${view === "both" ? `${words}, ` : ""}its interval contains zero`]);
    const marks = [
      view !== "consistent" && ["bar", plain],
      view !== "raw" && ["bar two", `consistent (${post})`],
      ...unsure,
      ["whisker", `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${among(about)}`],
      rows.some(({ bars: own }) => own.some((one) => cut(one))) && ["whisker", "without a mark at its end: goes beyond the scale"],
      floor !== null && floor < 1 && ["floor", "smallest visible share"],
      fakes > 0 && ["fakes", "with the fakes"],
    ].filter(Boolean);
    const nothing = answers.every(saysNothing);
    const most = `The ${rows.length} most common of ${count(answers.length)} answers; the table has all.`;
    update(
      this.#chart,
      nothing && h("p", { class: "card warn" }, "Not enough answers to say anything: the intervals are wider than the whole scale."),
      axes ? this.#crosstab() : [bars(rows, { title, floor: floor < 1 ? floor : null, reach }), legend(marks)],
      about === "population" ? null : note(RESPONDENTS_ONLY),
      !axes && this.#winner(),
      !axes && rows.length < answers.length && note(most),
      this.#sizes(),
      this.#matrix(),
      this.#notes(),
      this.#unlisted(),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** How many gave none of the listed answers. */
  #unlisted() {
    const { unlisted, unlisted_stderr: error } = this.#raw.facts;
    if ((unlisted ?? null) === null) return null;
    const [share, spread] = [unlisted, error].map((x) => percent(x, digitsFor(error)));
    return h("p", {}, `Answers that are none of these: ${share} (standard error ${spread}).`);
  }

  /** Several columns together: a map of two of them, more colour where more people are, at one answer of each further one. */
  #crosstab() {
    const { axes } = this.#raw.main[0];
    const { down, along, view } = this.#board.state;
    const rows = view === "consistent" ? this.#raw.rows.map(consistent) : this.#raw.rows;
    const place = (name) => axes.findIndex((axis) => axis.name === name);
    const others = (...taken) => axes.findIndex((_, i) => !taken.includes(i));
    const last = place(along);
    const first = place(down) === last ? others(last) : place(down) < 0 ? others(last) : place(down);
    const second = last < 0 ? others(first) : last;
    const rest = axes.map((_, i) => i).filter((i) => i !== first && i !== second);
    const at = (i, j) => axes.reduce((sum, { name, labels }, k) => sum * labels.length + (k === first ? i : k === second ? j : (this.#filter[name] ?? 0)), 0);
    const most = Math.max(...rows.map(({ value }) => value ?? 0), 1e-9);
    const cell = (i, j) => {
      const row = rows[at(i, j)];
      const d = digitsFor(row.stderr);
      const shade = Math.round(10 * Math.min(1, Math.max(0, row.value / most)));
      const words = `${row.label}: ${percent(row.value, d)} (${percent(row.low, d)} to ${percent(row.high, d)})`;
      return h("td", { class: `shade-${shade}${covers(row) ? " none" : ""}`, title: words }, percent(row.value, Math.min(1, d)));
    };
    const choose = rest.map((k) => {
      const { name, labels } = axes[k];
      const id = newId("filter");
      const change = ({ target }) => ((this.#filter[name] = Number(target.value)), this.#draw());
      const option = (words, i) => h("option", { value: i, selected: i === (this.#filter[name] ?? 0) }, words);
      const select = h("select", { id, onchange: change }, labels.map(option));
      return h("div", { class: "row" }, h("label", { for: id }, name), select);
    });
    const head = h("tr", {}, h("td", {}, `${axes[first].name} \\ ${axes[second].name}`), axes[second].labels.map((name) => h("th", { scope: "col" }, name)));
    const body = axes[first].labels.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), axes[second].labels.map((_, j) => cell(i, j))));
    const shown = `Shares of ${axes[first].name} and ${axes[second].name} together`;
    const title = `${shown}: more colour where more people are, pale figures where the interval contains zero`;
    return h("div", { class: "matrix" }, choose, h("table", {}, h("caption", {}, title), head, body));
  }

  /** Which answer is the most common, and how sure that is. */
  #winner() {
    const { winner } = this.#raw;
    if (!winner) return null;
    const { margin, error, level, certain } = winner;
    const lead = `${points(margin, 2)} ahead of ${label(winner.runner_up)} (standard error ${points(error, 2)})`;
    const name = h("b", {}, label(winner.label));
    return certain
      ? h("p", { class: "winner" }, `Most common with ${percent(level, 0)} confidence: `, name, `, ${lead}.`)
      : h("p", { class: "winner" }, "No clear leader: ", name, ` is ${lead}, not enough for ${percent(level, 0)} confidence.`);
  }

  /** Of answers that were found: the ones to follow over time. Each period is asked for the same ones. */
  get values() {
    return this.kind === "found" ? this.#raw.rows.slice(0, FOUND).map(({ label: name }) => name) : [];
  }

  /** Of sets: how many items people have. */
  #sizes() {
    const sizes = this.#raw.section("sizes");
    if (!sizes) return null;
    const rows = sizes.rows.map(({ label: name, value, low, high }) => ({ label: label(name), bars: [{ value, low, high, two: false }] }));
    const drawn = bars(rows, { title: `How many items people chose for “${this.text}”`, floor: null, reach: 0 });
    return h("div", { class: "sizes" }, h("h3", {}, "How many of them people have"), drawn);
  }

  /** Of sets: how many people have both of two items; the more, the more colour. The most common items only. */
  #matrix() {
    const { rows } = this.#raw;
    const together = this.#raw.section("together")?.rows ?? [];
    if (!together.length) return null;
    const found = new Map(together.map((row) => [row.label, row]));
    const shown = this.#ranked().slice(0, MATRIX).sort((a, b) => a - b);
    const most = Math.max(...together.map(({ value }) => value ?? 0), 1e-9);
    const names = rows.map(({ label: name }) => label(name));
    const cell = (i, j) => {
      const row = found.get(`${names[Math.min(i, j)]} & ${names[Math.max(i, j)]}`);
      if (i === j || !row || row.value === null) return h("td", { class: "none" }, i === j ? "·" : "–");
      const d = digitsFor(row.stderr);
      const words = `${names[i]} and ${names[j]}: ${percent(row.value, d)} (${percent(row.low, d)} to ${percent(row.high, d)})`;
      const lift = row.lift === null ? "" : `; ${measured(row.lift, row.lift_stderr)} times as common as by chance`;
      const shade = Math.round(10 * Math.min(1, Math.max(0, row.value / most)));
      return h("td", { class: `shade-${shade}`, title: `${words}${lift}` }, percent(row.value, Math.min(1, d)));
    };
    const head = h("tr", {}, h("td", {}), shown.map((j) => h("th", { scope: "col" }, names[j])));
    const body = shown.map((i) => h("tr", {}, h("th", { scope: "row" }, names[i]), shown.map((j) => cell(i, j))));
    const title = "How many people have both of two, reported by a group of their own";
    return h("div", { class: "matrix" }, h("h3", {}, "Together"), h("table", {}, h("caption", {}, title), head, body));
  }

  /** Of a question that was designed for hypotheses: which of them the reports favour, and how sure that is. */
  #verdict({ outcome, verdict, doubt, hypotheses }) {
    const head = ["Hypothesis", "p-value", "p-value, any number of looks", "Posterior", "Verdict"];
    const rows = hypotheses.map(({ label: name, p_value: p, posterior, anytime, rejected }) =>
      [label(name), pValue(p), pValue(anytime), percent(posterior, 1), rejected ? "rejected" : "possible"]);
    return h(
      "div",
      { class: "card verdict", "data-outcome": outcome },
      h("p", {}, h("b", {}, `${sentence(verdict)}.`)),
      doubt && h("p", {}, `${sentence(doubt)}.`),
      note(ONE_LOOK),
      folded("Hypotheses", table(`Hypotheses about “${this.#raw.text}”`, head, rows)),
    );
  }

  /** What is estimated: "shares" of answers, a "mean", a "distribution", ... */
  get kind() {
    return this.#raw?.kind ?? "shares";
  }

  /** Whether it is about the whole distribution of a number, or of two. */
  get shape() {
    return this.#raw?.picture === "histogram" || this.plane;
  }

  /** Whether it is about two numbers at once. */
  get plane() {
    return this.#raw?.picture === "map";
  }

  /** Whether the figures are shares of answers; else they are numbers in a unit of their own, a mean say. */
  get shares() {
    return ["bars", "matrix"].includes(this.#raw?.picture ?? "bars");
  }

  /** Whether the figures are shares in every period, where answers change. */
  get epochs() {
    return this.#raw?.picture === "lines";
  }

  /** Whether every figure is a share. */
  get inShares() {
    return this.shares || this.plane;
  }

  /** The unit of the figures, where they have one. */
  get unit() {
    return this.#raw?.main[0]?.unit ?? this.#raw?.rows[0]?.unit ?? "";
  }

  /** How a figure is written: a share with the digits of its error, or a number with its unit. */
  write(value, stderr, unit = "") {
    return this.inShares ? percent(value, digitsFor(stderr)) : measured(value, stderr, unit);
  }

  /** Numbers in their own units: one scale per unit. */
  #drawValues() {
    const { n, rows, trust: { poisoning } } = this.#raw;
    const { text } = this;
    const { level, about } = this.#asked;
    const { domain } = this.#question.protocol;
    const { low, high, unit: own = "" } = domain.numbers ?? domain;
    const fakes = this.#fakeReports(n);
    const units = [...new Set(rows.map(({ unit }) => unit))];
    const whole = units.length === 1 && Number.isFinite(high); // what forgers move and where the ends are is in one unit
    const reach = whole ? (fakes / n) * (poisoning ?? 0) : 0;
    this.#fakes.element.hidden ||= !whole;
    this.#fakes.element.classList.toggle("idle", !fakes);
    const moved = (change) => quantity(Number(change.toPrecision(3)), own);
    const forged = `${count(fakes)} of the ${count(n)}`;
    this.#fakes.text.textContent = fakes
      ? `If ${forged} were fake, the figure could move by up to ${moved(reach)}, on top of the noise (red).`
      : `Move the slider: one fake report in a hundred moves the figure by up to ${moved(0.01 * poisoning)}.`;
    const title = `Estimates for “${text}” with ${percent(level, 0)} intervals; the table has the numbers`;
    const drawn = (unit) => rows.filter((row) => row.unit === unit).map((row) => ({ ...row, label: label(row.label) }));
    const ends = whole ? [low, high] : this.kind === "regression" ? [0] : []; // a coefficient of 0 is no effect
    const marks = [["whisker", `${percent(level, 0)} interval${among(about)}`]];
    if (fakes && whole) marks.push(["fakes", "with the fakes"]);
    update(
      this.#chart,
      this.#inWords(),
      this.#notes(),
      units.map((unit) => ranges(drawn(unit), { title, unit, ends, reach })),
      legend(marks),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** The finding in words, where it is one mean. */
  #inWords() {
    const { n, rows } = this.#raw;
    if (this.kind !== "mean" || rows.length !== 1 || rows[0].value === null) return null;
    const [{ label: name, value, low, high, unit }] = rows;
    const [middle, from, to] = [value, low, high].map((x) => rounded(x, decimals((high - low) / 2)));
    return h("p", { class: "headline" }, `${name[0].toUpperCase()}${name.slice(1)} ${middle} (${from} to ${to})${unit ? ` ${unit}` : ""}, n = ${count(n)}`);
  }

  /** A number's distribution: the finding in words, the histogram, the cumulative shares with marks at the quantiles. */
  #drawDistribution() {
    const { headline, method } = this.#raw;
    const { level, at, about } = this.#asked;
    const { unit } = this;
    const { rows: bins } = this.#raw.section("bins");
    const { rows: curve, marks = [] } = this.#raw.section("cumulative");
    const whom = among(about);
    const interval = `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${whom}`;
    const band = `${percent(level, 0)} band, all numbers at once${whom}`;
    update(
      this.#chart,
      h("p", { class: "headline" }, headline?.text),
      this.#notes(),
      (this.#rangeForm ??= this.#newRangeForm()),
      this.#rangeShare(),
      histogram(bins, { title: `Histogram of “${this.text}” with ${percent(level, 0)} intervals; the table has the numbers`, unit }),
      legend([["bar", method], ["bar unsure", "its interval contains zero"], ["whisker", interval]]),
      h("p", { class: "note" }, "There are as many bins as stand out of the noise; “Bins” shows more of them, with wider intervals."),
      cumulative(curve, marks, { title: `Cumulative shares of “${this.text}” in their ${percent(level, 0)} band, with marks at the quantiles`, unit }),
      legend([["bar", "share up to a number"], ["bar unsure", band], ["whisker", "quantiles with their intervals"]]),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** Shares in every period, where answers change: a line in its band for each of the first answers. */
  #drawEpochs() {
    const { rows } = this.#raw;
    const totals = new Set((this.#raw.main[0].marks ?? []).map(({ row }) => rows[row]));
    const { level } = this.#asked;
    const { epochs } = this.#board.survey.terms;
    const names = [...new Set(rows.map(({ group }) => group))];
    const shown = names.length === 2 ? names.slice(1) : names.slice(0, LINES);
    const of = (name) => rows.filter((row) => row.group === name && !totals.has(row));
    const times = of(names[0]).map(({ label: epoch }) => epochs.origin + (epochs.first + epoch - 1) * epochs.seconds);
    const lines = shown.map((name) => ({ label: name, points: of(name).map(({ value, low, high }) => (value === null ? null : { value, low, high })) }));
    const total = rows.filter((row) => totals.has(row) && row.value !== null);
    const said = total.map(({ group, value, stderr, low, high }) => {
      const [share, from, to] = [value, low, high].map((x) => percent(x, digitsFor(stderr)));
      return `${group} ${share} (${from} to ${to})`;
    });
    if (this.#chart.firstChild !== this.#epochsPlace) this.#chart.replaceChildren(this.#epochsPlace);
    update(
      this.#chart,
      this.#epochsPlace,
      legend([["bar", "share in a period"], ["bar unsure", `${percent(level, 0)} interval`]]),
      said.length > 0 && h("p", {}, `Over all periods: ${said.join(", ")}.`),
      this.#notes(),
    );
    this.#epochs ??= new Series(this.#epochsPlace);
    this.#epochs.draw(times, lines, epochs.seconds);
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** Two numbers at once: the finding in words, and a map. */
  #drawMap() {
    const { rows, headline, method } = this.#raw;
    const { level, at, about } = this.#asked;
    const { columns, cell } = this.#question.protocol.domain;
    const names = columns.map(({ name, domain: { unit } }) => [name, unit || (cell && `cells of ${cell}`)].filter(Boolean).join(", "));
    const interval = `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${among(about)}`;
    const title = `Map of “${this.text}”: a rectangle has more colour where more people are; the table has the numbers`;
    update(
      this.#chart,
      h("p", { class: "headline" }, headline?.text),
      this.#notes(),
      (this.#rangeForm ??= this.#newRangeForm(this.#question.protocol.domain.columns.map(({ name }) => name))),
      this.#rangeShare(),
      heatMap(rows, { title, names, interval, square: cell !== undefined }),
      legend([["bar", `${method}: more colour where more people are`]]),
      note(RECTANGLES),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** What else is said beside the figures, the strata's differing say; the warning has a place of its own. */
  #notes() {
    const { notes, trust: { warning } } = this.#raw;
    return notes.filter((note) => note !== warning).map((note) => h("p", { class: "note" }, `${sentence(note)}${note.endsWith(".") ? "" : "."}`));
  }

  /** Two numbers, between which the share is wanted; or two of each of the names. */
  #newRangeForm(names = [""]) {
    const words = (own, name) => (name === "to" ? "to" : own ? `${own} from` : "Share from");
    const pairs = names.map((own) =>
      ["from", "to"].map((name) => {
        const id = newId(name);
        const input = h("input", { id, type: "number", step: "any", required: true });
        return { label: h("label", { for: id }, words(own, name)), input };
      }),
    );
    const submit = (event) => {
      event.preventDefault();
      const ends = pairs.map((pair) => pair.map(({ input }) => input.value));
      pairs.forEach(([, { input }], i) => {
        const [low, high] = ends[i].map(Number);
        input.setCustomValidity(low > high ? "This number is not smaller than the first one." : "");
      });
      if (!event.target.reportValidity()) return;
      this.range = ends.map(([low, high]) => `${low}..${high}`).join(",");
      this.#board.load();
    };
    for (const pair of pairs) for (const { input } of pair) input.addEventListener("input", () => pair[1].input.setCustomValidity(""));
    const fields = pairs.flat().flatMap(({ label: own, input }) => [own, input]);
    const button = h("button", { type: "submit", class: "second small" }, "Show");
    return h("form", { class: "row ends", onsubmit: submit }, ...fields, button);
  }

  /** The share of the range that was asked for, in words. */
  #rangeShare() {
    const { asked } = this.#raw;
    const own = asked.filter((range) => range.includes(",") === this.plane); // each panel has the rows of its kind
    const row = this.#raw.section("ranges")?.rows[own.indexOf(this.range)];
    if (!row) return null;
    const [value, low, high] = [row.value, row.low, row.high].map((x) => percent(x, digitsFor(row.stderr)));
    const where = `${this.plane ? "at" : "from"} ${row.label}${this.unit ? ` ${this.unit}` : ""}`;
    return h("p", { class: "range-share" }, h("b", {}, value), ` (${low} to ${high}) are ${where}.`);
  }

  #empty() {
    const { n, enough, message } = this.#raw;
    const { minReports } = this.#board.survey.terms;
    if (enough && this.kind === "found") return this.#notes();
    if (enough) return h("p", {}, this.open ? "Name texts to look for." : message);
    const what = this.shares ? "shares" : "estimates";
    const awaited = `${this.#board.counted(n)} of the ${count(minReports)} that this survey waits for`;
    const wait = `${awaited} before it shows ${what}: fewer would show little but noise.`;
    return h(
      "div",
      { class: "card warn" },
      h("b", {}, "Not enough answers yet"),
      h("p", {}, n || minReports > 1 ? wait : "Nobody has answered in this time."),
      h("progress", { max: minReports, value: Math.min(n, minReports), "aria-label": "Answers so far" }),
    );
  }

  #tools() {
    this.table = h("details", { ontoggle: () => this.#fillTable() }, h("summary", {}, "Table"), this.#tablePlace);
    const csv = h("button", { type: "button", class: "small", onclick: () => this.#board.csv(this) }, "CSV");
    return h("div", { hidden: true }, this.table, toolRow(csv, "The same from the command line:"), this.#command);
  }

  /** A table of a thousand rows is made only if somebody looks at it. */
  #fillTable() {
    if (!this.table.open || !this.#raw?.n || !this.#raw.rows.length) return;
    const raw = this.#raw;
    if (this.epochs) {
      const rows = raw.rows.map(({ group, label: epoch, value, stderr, low, high }) =>
        [group, String(epoch), ...[value, stderr, low, high].map((x) => (x === null ? "–" : percent(x, digitsFor(stderr ?? 1))))]);
      update(this.#tablePlace, table(`Estimates for ${this.text}`, ["Answer", "Period", "Share", "± std. error", "From", "To"], rows, { class: "numbers" }));
      return;
    }
    if (!this.shares) {
      const rows = raw.rows.map(({ label: name, value, stderr, low, high, unit, begin }) => {
        const write = begin === undefined ? (x) => measured(x, stderr) : (x) => percent(x, digitsFor(stderr));
        return [label(name), ...[value, stderr, low, high].map(write), unit];
      });
      update(this.#tablePlace, table(`Estimates for ${this.text}`, ["Figure", "Value", "± std. error", "From", "To", "Unit"], rows, { class: "numbers" }));
      return;
    }
    const order = this.#byShare ? this.#ranked() : raw.rows.map((_, i) => i);
    const rows = order.map((i) => {
      const { label: name, value, stderr, low, high, count: number, p_value: p } = raw.rows[i];
      const d = digitsFor(stderr);
      const last = this.kind === "found" ? (p === null ? "–" : pValue(p)) : percent(consistent(raw.rows[i]).value, d);
      return [label(name), percent(value, d), percent(stderr, d), percent(low, d), percent(high, d), count(number), last];
    });
    const head = ["Answer", "Share", "± std. error", "From", "To", "Count", this.kind === "found" ? "p-value" : "Consistent"];
    update(this.#tablePlace, table(`Estimates for ${this.text}`, head, rows, { class: "numbers" }));
  }

  // -- over time ---------------------------------------------------------------------------------

  #adder() {
    const { domain, read, levels } = this.#question.protocol;
    if (read === "distribution" || levels || !(domain.size > LINES)) return null;
    const id = newId("line");
    const labels = domain.labels ? domain.labels.map(label) : Array.from({ length: Math.min(domain.size, 100000) }, (_, i) => String(domain.label(i)));
    const box = combobox(labels, { id });
    const add = () => {
      const at = box.value();
      if (at === null) return;
      this.#chosen = [at, ...(this.#chosen ?? []).filter((i) => i !== at)].slice(0, 2 * LINES);
      this.drawSeries();
    };
    const button = h("button", { type: "button", class: "second", onclick: add }, "Add");
    return h("div", { class: "row" }, h("label", { for: id }, "Add an answer"), box.element, button);
  }

  /** Which rows are drawn over time at first: the largest, or of a distribution the quartiles. */
  #overTime() {
    if (this.shape && !this.plane) return quantiles(this.#raw.section("figures"), OVER_TIME);
    return this.#ranked().slice(0, LINES);
  }

  async drawSeries() {
    const { survey } = this.#board;
    const readings = await this.#board.perEpoch(this);
    const shown = readings.filter(({ question }) => question.n && question.rows.length);
    const first = shown[0];
    if (!first) return update(this.#seriesTable, h("p", {}, "No period has enough answers yet."));
    if (!this.#raw) return; // drawn once the estimates are there
    this.#chosen ??= this.#overTime();
    const chosen = this.#chosen.filter((i) => i < first.question.rows.length);
    const { origin, seconds } = survey.terms.epochs;
    const times = readings.map(({ epoch }) => origin + epoch * seconds);
    const point = (question, i) => {
      const found = question.n ? question.rows[i] : null;
      return found ? { value: found.value, low: found.low, high: found.high, stderr: found.stderr, unit: found.unit } : null;
    };
    const inside = (x) => Math.min(1, Math.max(0, x)); // as the bars are drawn; the table has the numbers
    const drawn = (found) => (this.inShares && found ? { value: inside(found.value), low: inside(found.low), high: inside(found.high) } : found);
    const lines = chosen.map((i) => ({
      label: label(first.question.rows[i].label),
      points: readings.map(({ question }) => drawn(point(question, i))),
    }));
    const { unit } = first.question.rows[chosen[0]];
    await this.#series.draw(times, lines, seconds, this.inShares ? null : (number) => quantity(Number(number.toPrecision(4)), unit));
    const rows = readings.map(({ epoch, question }) => [
      period(survey.terms.epochs, epoch),
      count(question.n),
      ...chosen.map((i) => {
        const p = point(question, i);
        const write = (x) => (this.inShares ? percent(x) : measured(x, p.stderr, p.unit));
        return p ? `${write(p.value)} (${write(p.low)} to ${write(p.high)})` : "not enough answers";
      }),
    ]);
    const save = () => this.#board.csv(this, { per: "epoch", epochs: this.#board.seriesRange });
    const csv = h("button", { type: "button", class: "small", onclick: save }, "CSV");
    const caption = `${this.shares ? "Shares" : "Estimates"} over time for ${this.#question.text}`;
    const head = ["Period", "Answers", ...lines.map((line) => line.label)];
    update(
      this.#seriesTable,
      folded("Table", table(caption, head, rows, { class: "numbers" })),
      toolRow(csv, "From the command line, one period at a time:"),
      command(this.#board.cli(this, { epochs: String(shown.at(-1).epoch) })),
    );
  }

  // -- files -------------------------------------------------------------------------------------

  name(suffix) {
    return `${this.#board.survey.fingerprint.slice(0, 8)}-${this.key}${suffix}`;
  }

  save(text, suffix = ".csv") {
    download(this.name(suffix), text);
  }
}

