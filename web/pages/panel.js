/** One question on the dashboard: bars, table, files, the poisoning slider, and the series over time. */

import { bars, covers, cumulative, cut, heatMap, histogram, legend, ranges, saysNothing } from "./charts.js";
import { combobox } from "./combobox.js";
import { command, download, h, newId, table, update } from "./dom.js";
import { count, decimal, digitsFor, label, measured, percent, period, quantity } from "./format.js";
import { Series } from "./series.js";

const SORTED_FROM = 13;
/** A change of a share, which is at most all of it. */
const points = (change, digits) => `${(100 * Math.min(1, change)).toFixed(digits)}\u00a0points`;
const LINES = 3;
const MATRIX = 12; // items
const FOUND = 20; // values that are followed over time
const QUANTILES = { __proto__: null, "5 % quantile": 0.05, "25 % quantile": 0.25, median: 0.5, "75 % quantile": 0.75, "95 % quantile": 0.95 };
const OVER_TIME = ["25 % quantile", "median", "75 % quantile"];
const ALL_NUMBERS = 200; // of up to so many numbers, the ages of people say, all are shown: a histogram has no gaps

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
const pValue = (p) => (p < 1e-15 ? "below 1e-15" : p < 1e-3 ? p.toExponential(1) : String(Number(p.toPrecision(2))));

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
  #consistent = null;
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
    this.over = h("details", { ontoggle: () => this.over.open && this.drawSeries() }, h("summary", {}, "Over time"), this.#seriesPlace, this.#adder(), this.#seriesTable);
    this.#series = new Series(this.#seriesPlace);
    this.element = h(
      "section",
      { class: "card", "aria-label": question.text, "data-question": this.key },
      h("h2", {}, number ? `${number}. ${question.text}` : question.text),
      this.#about,
      this.#forgery,
      this.#warning,
      this.#decision,
      this.open ? this.#candidateForm("Texts to look for, one per line", "The answers are open text: how common one is can be estimated, but not which there are.", "Look for these") : null,
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
    const { n, poisoning } = this.#raw;
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

  /** New estimates: `raw` unbiased, `consistent` after the chosen method, as the state `asked` wanted them. */
  update(raw, consistent, asked) {
    [this.#raw, this.#consistent, this.#asked] = [raw, consistent, asked];
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
    const { n, noise_floor: floor, protocol, epsilon } = raw;
    const answers = n ? raw.rows : []; // before the first answer the rows have no values
    const smallest = this.kind === "found" ? raw.smallest : floor;
    this.#expect();
    this.#about.textContent = `${this.key} · ${protocol} · epsilon ${decimal(epsilon)} · ${this.#board.counted(n)}${n && this.shares && smallest !== null && smallest < 1 ? ` · smallest visible share ${percent(smallest, digitsFor(smallest))}` : ""}`;
    this.#forgery.textContent = raw.forgery;
    update(this.#warning, raw.warning && h("p", { class: "card warn" }, sentence(raw.warning)));
    update(this.#decision, raw.decision && this.#verdict(raw.decision));
    this.#fakes.element.hidden = !answers.length || raw.poisoning === null;
    this.#details.hidden = !answers.length;
    if (!answers.length) return update(this.#chart, this.#empty());
    this.over.hidden = this.kind === "series";
    if (this.kind === "series" || this.shape) this.#tellFakes();
    if (this.kind === "series") return this.#drawEpochs();
    if (this.plane) return this.#drawMap();
    if (this.shape) return this.#drawDistribution();
    if (!this.shares) return this.#drawValues();
    const fakes = this.#fakeReports(n);
    const reach = (fakes / n) * (raw.poisoning ?? 0);
    this.#fakes.element.classList.toggle("idle", !fakes);
    this.#fakes.text.textContent = fakes
      ? `If ${count(fakes)} of the ${count(n)} were fake, shares could move by up to ${points(reach, 2)}, on top of the noise (red).`
      : `Move the slider: one fake report in a hundred moves a share by up to ${points(0.01 * raw.poisoning, 1)}.`;
    const one = ({ value, low, high }, two) => ({ value, low, high, two });
    const rows = this.#shown().map((i) => ({
      label: label(answers[i].label),
      bars: [
        view === "consistent" ? null : one(answers[i], false),
        view === "raw" ? null : one(this.#consistent.rows[i], true),
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
      ["whisker", `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${about === "population" ? "" : ", among those who answered"}`],
      rows.some(({ bars: own }) => own.some((one) => cut(one))) && ["whisker", "without a mark at its end: goes beyond the scale"],
      floor !== null && floor < 1 && ["floor", "smallest visible share"],
      fakes > 0 && ["fakes", "with the fakes"],
    ].filter(Boolean);
    const nothing = answers.every(saysNothing);
    update(
      this.#chart,
      nothing && h("p", { class: "card warn" }, "Not enough answers to say anything: the intervals are wider than the whole scale."),
      raw.axes ? this.#crosstab() : [bars(rows, { title, floor: floor < 1 ? floor : null, reach }), legend(marks)],
      about === "population" ? null : h("p", { class: "note" }, "Intervals are about those who answered, without the error of having asked these people and not others."),
      !raw.axes && this.#winner(),
      !raw.axes && rows.length < answers.length && h("p", { class: "note" }, `The ${rows.length} most common of ${count(answers.length)} answers; the table has all.`),
      this.#sizes(),
      this.#matrix(),
      this.#notes(),
      raw.unlisted !== null && raw.unlisted !== undefined && h("p", {}, `Answers that are none of these: ${percent(raw.unlisted)} (standard error ${percent(raw.unlisted_stderr)}).`),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** Several columns together: a map of two of them, more colour where more people are, at one answer of each further one. */
  #crosstab() {
    const { axes } = this.#raw;
    const { down, along, view } = this.#board.state;
    const rows = view === "consistent" ? this.#consistent.rows : this.#raw.rows;
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
      return h("div", { class: "row" }, h("label", { for: id }, name), h("select", { id, onchange: change }, labels.map((words, i) => h("option", { value: i, selected: i === (this.#filter[name] ?? 0) }, words))));
    });
    const head = h("tr", {}, h("td", {}, `${axes[first].name} \\ ${axes[second].name}`), axes[second].labels.map((name) => h("th", { scope: "col" }, name)));
    const body = axes[first].labels.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), axes[second].labels.map((_, j) => cell(i, j))));
    const title = `Shares of ${axes[first].name} and ${axes[second].name} together: more colour where more people are, pale figures where the interval contains zero`;
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
    const sizes = this.#raw.further?.sizes;
    if (!sizes) return null;
    const rows = sizes.map(({ label: name, value, low, high }) => ({ label: label(name), bars: [{ value, low, high, two: false }] }));
    return h("div", { class: "sizes" }, h("h3", {}, "How many of them people have"), bars(rows, { title: `How many items people chose for “${this.text}”`, floor: null, reach: 0 }));
  }

  /** Of sets: how many people have both of two items; the more, the more colour. The most common items only. */
  #matrix() {
    const { rows, further } = this.#raw;
    if (!further?.together?.length) return null;
    const found = new Map(further.together.map((row) => [row.label, row]));
    const shown = this.#ranked().slice(0, MATRIX).sort((a, b) => a - b);
    const most = Math.max(...further.together.map(({ value }) => value ?? 0), 1e-9);
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
    const rows = hypotheses.map(({ label: name, p_value: p, posterior, anytime, rejected }) =>
      [label(name), pValue(p), pValue(anytime), percent(posterior, 1), rejected ? "rejected" : "possible"]);
    return h(
      "div",
      { class: "card verdict", "data-outcome": outcome },
      h("p", {}, h("b", {}, `${sentence(verdict)}.`)),
      doubt && h("p", {}, `${sentence(doubt)}.`),
      h("p", { class: "note" }, "A wrong hypothesis is favoured with at most the probability of the level, if one of them is true and one looks once, after a number of answers that was fixed beforehand. If you look again and again, go by the p-values for any number of looks."),
      h("details", {}, h("summary", {}, "Hypotheses"), table(`Hypotheses about “${this.#raw.text}”`, ["Hypothesis", "p-value", "p-value, any number of looks", "Posterior", "Verdict"], rows)),
    );
  }

  /** What is estimated: "shares" of answers, a "mean", a "distribution", ... */
  get kind() {
    return this.#raw?.kind ?? "shares";
  }

  /** Whether it is about the whole distribution of a number, or of two. */
  get shape() {
    return this.kind === "distribution" || this.kind === "ranges" || this.plane;
  }

  /** Whether it is about two numbers at once. */
  get plane() {
    return this.kind === "rectangles";
  }

  /** Whether the figures are shares of answers; else they are numbers in a unit of their own, a mean say. */
  get shares() {
    return ["shares", "items", "table", "found"].includes(this.kind);
  }

  /** Whether every figure is a share. */
  get inShares() {
    return this.shares || this.plane;
  }

  /** The unit of the figures, where they have one. */
  get unit() {
    return this.#raw?.rows[0]?.unit ?? "";
  }

  /** How a figure is written: a share with the digits of its error, or a number with its unit. */
  write(value, stderr, unit = "") {
    return this.inShares ? percent(value, digitsFor(stderr)) : measured(value, stderr, unit);
  }

  /** Numbers in their own units: one scale per unit. */
  #drawValues() {
    const { n, rows, poisoning } = this.#raw;
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
    this.#fakes.text.textContent = fakes
      ? `If ${count(fakes)} of the ${count(n)} were fake, the figure could move by up to ${quantity(Number(reach.toPrecision(3)), own)}, on top of the noise (red).`
      : `Move the slider: one fake report in a hundred moves the figure by up to ${quantity(Number((0.01 * poisoning).toPrecision(3)), own)}.`;
    const title = `Estimates for “${text}” with ${percent(level, 0)} intervals; the table has the numbers`;
    const drawn = (unit) => rows.filter((row) => row.unit === unit).map((row) => ({ ...row, label: label(row.label) }));
    const ends = whole ? [low, high] : this.kind === "regression" ? [0] : []; // a coefficient of 0 is no effect
    update(
      this.#chart,
      this.#inWords(),
      this.#notes(),
      units.map((unit) => ranges(drawn(unit), { title, unit, ends, reach })),
      legend([["whisker", `${percent(level, 0)} interval${about === "population" ? "" : ", among those who answered"}`], ...(fakes && whole ? [["fakes", "with the fakes"]] : [])]),
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
    const digits = Math.min(20, Math.max(0, 1 - Math.floor(Math.log10((high - low) / 2))));
    const [middle, from, to] = [value, low, high].map((x) => x.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−"));
    return h("p", { class: "headline" }, `${name[0].toUpperCase()}${name.slice(1)} ${middle} (${from} to ${to})${unit ? ` ${unit}` : ""}, n = ${count(n)}`);
  }

  /** A number's distribution: the finding in words, the histogram, the cumulative shares with marks at the quantiles. */
  #drawDistribution() {
    const { rows, headline, cumulative: points, method } = this.#raw;
    const { level, at, about } = this.#asked;
    const { unit } = this;
    const bins = rows.filter(({ begin }) => begin !== null);
    const figures = rows.filter(({ begin }) => begin === null);
    const marks = figures.filter(({ label: name }) => name in QUANTILES).map((row) => ({ ...row, share: QUANTILES[row.label] }));
    const whom = about === "population" ? "" : ", among those who answered";
    const interval = `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${whom}`;
    update(
      this.#chart,
      h("p", { class: "headline" }, headline),
      this.#notes(),
      (this.#rangeForm ??= this.#newRangeForm()),
      this.#rangeShare(),
      histogram(bins, { title: `Histogram of “${this.text}” with ${percent(level, 0)} intervals; the table has the numbers`, unit }),
      legend([["bar", method], ["bar unsure", "its interval contains zero"], ["whisker", interval]]),
      h("p", { class: "note" }, "There are as many bins as stand out of the noise; “Bins” shows more of them, with wider intervals."),
      cumulative(points, marks, { title: `Cumulative shares of “${this.text}” in their ${percent(level, 0)} band, with marks at the quantiles`, unit }),
      legend([["bar", "share up to a number"], ["bar unsure", `${percent(level, 0)} band, all numbers at once${whom}`], ["whisker", "quantiles with their intervals"]]),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** Shares in every period, where answers change: a line in its band for each of the first answers. */
  #drawEpochs() {
    const { rows } = this.#raw;
    const { level } = this.#asked;
    const { epochs } = this.#board.survey.terms;
    const names = [...new Set(rows.map(({ group }) => group))];
    const shown = names.length === 2 ? names.slice(1) : names.slice(0, LINES);
    const of = (name) => rows.filter(({ group, label: epoch }) => group === name && Number.isInteger(epoch));
    const times = of(names[0]).map(({ label: epoch }) => epochs.origin + (epochs.first + epoch - 1) * epochs.seconds);
    const lines = shown.map((name) => ({ label: name, points: of(name).map(({ value, low, high }) => (value === null ? null : { value, low, high })) }));
    const total = rows.filter(({ label: epoch, value }) => !Number.isInteger(epoch) && value !== null);
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
    const whom = about === "population" ? "" : ", among those who answered";
    const interval = `${percent(level, 0)} interval${at === "once" ? ", all at once" : ""}${whom}`;
    update(
      this.#chart,
      h("p", { class: "headline" }, headline),
      this.#notes(),
      (this.#rangeForm ??= this.#newRangeForm(this.#question.protocol.domain.columns.map(({ name }) => name))),
      this.#rangeShare(),
      heatMap(rows, { title: `Map of “${this.text}”: a rectangle has more colour where more people are; the table has the numbers`, names, interval, square: cell !== undefined }),
      legend([["bar", `${method}: more colour where more people are`]]),
      h("p", { class: "note" }, "A dot marks a rectangle whose interval contains zero. There are as many rectangles as stand out of the noise; “Bins” shows more rows and columns, with wider intervals."),
    );
    performance.mark("deniable-chart");
    this.#fillTable();
    update(this.#command, command(this.#board.cli(this)));
  }

  /** What else is said beside the figures, the strata's differing say; the warning has a place of its own. */
  #notes() {
    const { said = [], warning } = this.#raw;
    return said.filter((note) => note !== warning).map((note) => h("p", { class: "note" }, `${sentence(note)}${note.endsWith(".") ? "" : "."}`));
  }

  /** Two numbers, between which the share is wanted; or two of each of the names. */
  #newRangeForm(names = [""]) {
    const pairs = names.map((own) =>
      ["from", "to"].map((name) => {
        const id = newId(name);
        return { label: h("label", { for: id }, name === "to" ? "to" : own ? `${own} from` : "Share from"), input: h("input", { id, type: "number", step: "any", required: true }) };
      }),
    );
    const submit = (event) => {
      event.preventDefault();
      const ends = pairs.map((pair) => pair.map(({ input }) => input.value));
      pairs.forEach(([, { input }], i) => input.setCustomValidity(Number(ends[i][0]) > Number(ends[i][1]) ? "This number is not smaller than the first one." : ""));
      if (!event.target.reportValidity()) return;
      this.range = ends.map(([low, high]) => `${low}..${high}`).join(",");
      this.#board.load();
    };
    for (const pair of pairs) for (const { input } of pair) input.addEventListener("input", () => pair[1].input.setCustomValidity(""));
    const fields = pairs.flat();
    return h("form", { class: "row ends", onsubmit: submit }, ...fields.flatMap(({ label: words, input }) => [words, input]), h("button", { type: "submit", class: "second small" }, "Show"));
  }

  /** The share of the range that was asked for, in words. */
  #rangeShare() {
    const { ranges: found, asked } = this.#raw;
    const own = asked.filter((range) => range.includes(",") === this.plane); // each panel has the rows of its kind
    const row = found?.[own.indexOf(this.range)];
    if (!row) return null;
    const [value, low, high] = [row.value, row.low, row.high].map((x) => percent(x, digitsFor(row.stderr)));
    return h("p", { class: "range-share" }, h("b", {}, value), ` (${low} to ${high}) are ${this.plane ? "at" : "from"} ${row.label}${this.unit ? ` ${this.unit}` : ""}.`);
  }

  #empty() {
    const { n, enough, message } = this.#raw;
    const { showFrom } = this.#board.survey.terms;
    if (enough && this.kind === "found") return this.#notes();
    if (enough) return h("p", {}, this.open ? "Name texts to look for." : message);
    return h(
      "div",
      { class: "card warn" },
      h("b", {}, "Not enough answers yet"),
      h("p", {}, n || showFrom > 1 ? `${this.#board.counted(n)} of the ${count(showFrom)} that this survey waits for before it shows ${this.shares ? "shares" : "estimates"}: fewer would show little but noise.` : "Nobody has answered in this time."),
      h("progress", { max: showFrom, value: Math.min(n, showFrom), "aria-label": "Answers so far" }),
    );
  }

  #tools() {
    this.table = h("details", { ontoggle: () => this.#fillTable() }, h("summary", {}, "Table"), this.#tablePlace);
    const csv = h("button", { type: "button", class: "small", onclick: () => this.#board.csv(this) }, "CSV");
    return h("div", { hidden: true }, this.table, h("div", { class: "tools" }, csv, h("span", { class: "note" }, "The same from the command line:")), this.#command);
  }

  /** A table of a thousand rows is made only if somebody looks at it. */
  #fillTable() {
    if (!this.table.open || !this.#raw?.n || !this.#raw.rows.length) return;
    const [raw, consistent] = [this.#raw, this.#consistent];
    if (this.kind === "series") {
      const rows = raw.rows.map(({ group, label: epoch, value, stderr, low, high }) =>
        [group, String(epoch), ...[value, stderr, low, high].map((x) => (x === null ? "–" : percent(x, digitsFor(stderr ?? 1))))]);
      update(this.#tablePlace, table(`Estimates for ${this.text}`, ["Answer", "Period", "Share", "± std. error", "From", "To"], rows, { class: "numbers" }));
      return;
    }
    if (!this.shares) {
      const rows = raw.rows.map(({ label: name, value, stderr, low, high, unit, begin }) => {
        const write = (begin ?? null) === null ? (x) => measured(x, stderr) : (x) => percent(x, digitsFor(stderr));
        return [label(name), ...[value, stderr, low, high].map(write), unit];
      });
      update(this.#tablePlace, table(`Estimates for ${this.text}`, ["Figure", "Value", "± std. error", "From", "To", "Unit"], rows, { class: "numbers" }));
      return;
    }
    const order = this.#byShare ? this.#ranked() : raw.rows.map((_, i) => i);
    const rows = order.map((i) => {
      const { label: name, value, stderr, low, high, count: number, p_value: p } = raw.rows[i];
      const d = digitsFor(stderr);
      const last = this.kind === "found" ? (p === null ? "–" : pValue(p)) : percent(consistent.rows[i].value, d);
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
    return h("div", { class: "row" }, h("label", { for: id }, "Add an answer"), box.element, h("button", { type: "button", class: "second", onclick: add }, "Add"));
  }

  /** Which rows are drawn over time at first: the largest, or of a distribution the quartiles. */
  #overTime() {
    const { rows } = this.#raw;
    if (this.shape && !this.plane) return OVER_TIME.map((name) => rows.findIndex(({ label: own }) => own === name));
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
    const csv = h("button", { type: "button", class: "small", onclick: () => this.#board.csv(this, { per: "epoch", epochs: this.#board.seriesRange }) }, "CSV");
    update(
      this.#seriesTable,
      h("details", {}, h("summary", {}, "Table"), table(`${this.shares ? "Shares" : "Estimates"} over time for ${this.#question.text}`, ["Period", "Answers", ...lines.map((line) => line.label)], rows, { class: "numbers" })),
      h("div", { class: "tools" }, csv, h("span", { class: "note" }, "From the command line, one period at a time:")),
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

