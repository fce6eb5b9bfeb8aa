/** One question on the dashboard: its finding with the picture, and behind tabs table, series, forgeries, files and method. */

import { saysNothing } from "./charts.js";
import { combobox } from "./combobox.js";
import { consistent, quantiles } from "./document.js";
import { command, download, h, newId, table, update } from "./dom.js";
import { byShare, finding, methodOf, nameOf, picture, ranked, remarks, span, tell } from "./finding.js";
import { count, decimal, digitsFor, label, measured, percent, period, quantity } from "./format.js";
import { exported, png } from "./export.js";
import { Series } from "./series.js";
import { figure, say, word } from "./words.js";

const LINES = 3;
const FOUND = 20; // values that are followed over time
const OVER_TIME = [0.25, 0.5, 0.75]; // quantiles
const TABS = ["table", "time", "fakes", "files", "method"];

/** A change of a share, which is at most all of it. */
const points = (change) => say("board.points", { n: figure((100 * Math.min(1, change)).toFixed(2), false) });
const pValue = (p) => {
  if (p < 1e-15) return say("board.p.below", { p: "1e-15" });
  return p < 1e-3 ? p.toExponential(1) : decimal(Number(p.toPrecision(2)));
};
const note = (words) => h("p", { class: "note" }, words);
const small = (words, onclick) => h("button", { type: "button", class: "small", onclick }, words);

export class QuestionPanel {
  #board;
  #question;
  #say = h("h2", { class: "headline" });
  #about = h("p", { class: "soft" });
  #chart = h("div", {});
  #remarks = h("div", { role: "status" });
  #decision = h("div", { role: "status" });
  #expected = h("details", { hidden: true }); // of what is discovered: the form for texts that somebody expects
  #bar = h("div", { class: "tabs", role: "group" });
  #tabs = {};
  #slider = h("input", { id: newId("fakes"), type: "range", min: 0, max: 100, value: 0, step: 1 });
  #forged = h("output", { for: this.#slider.id });
  #series;
  #seriesPlace = h("div", { class: "series" });
  #seriesTable = h("div", {});
  #periods = null; // of answers that change: the shares of every period are one estimate
  #periodsPlace = h("div", { class: "series" });
  #chosen = null;
  #doc = null;
  #filter = {}; // of a table of more than two columns: the answer of each further one, by its name
  #form = null;
  candidates = [];
  /** Of a distribution: the range whose share is wanted, such as "25..45". */
  range = null;
  /** Which tab is open. */
  tab = null;

  constructor(board, question) {
    this.#board = board;
    this.#question = question;
    this.open = Boolean(question.protocol.domain.open);
    this.restore(board.asked);
    this.#makeTabs();
    this.#series = new Series(this.#seriesPlace);
    this.element = h(
      "section",
      { class: "card finding", "aria-label": question.text, "data-question": this.key },
      this.#say,
      this.#about,
      this.#decision,
      this.open ? this.#candidateForm("texts") : null,
      this.#chart,
      this.#remarks,
      this.#expected,
      this.#bar,
      TABS.map((name) => this.#tabs[name].place),
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

  // -- its part of the address -----------------------------------------------------------------------

  /** What makes this view, as pairs of a name and a text. */
  get parts() {
    const { tab, range, candidates } = this;
    const moved = this.#slider.value === "0" ? "" : this.#slider.value;
    const filter = Object.keys(this.#filter).length ? JSON.stringify(this.#filter) : "";
    const lines = this.#chosen?.own ? this.#chosen.join() : "";
    const all = { tab, range, texts: candidates.join("\n"), fakes: moved, filter, lines };
    return Object.entries(all).filter(([, value]) => value).map(([name, value]) => [`${name}.${this.key}`, value]);
  }

  restore(asked) {
    const own = (name) => asked.get(`${name}.${this.key}`);
    if (TABS.includes(own("tab"))) this.tab = own("tab");
    if (/^[-+.,\de]+$/.test(own("range") ?? "")) this.range = own("range");
    this.candidates = own("texts")?.split("\n").filter(Boolean) ?? [];
    this.#slider.value = own("fakes") ?? "0";
    if (own("lines")) this.#pick(own("lines").split(",").map(Number).filter((i) => i >= 0));
    try {
      this.#filter = JSON.parse(own("filter") ?? "{}");
    } catch {
      this.#filter = {}; // an address that somebody has shortened
    }
  }

  #pick(places) {
    this.#chosen = Object.assign(places, { own: true });
  }

  // -- tabs ------------------------------------------------------------------------------------------

  #makeTabs() {
    this.#bar.setAttribute("aria-label", say("board.tabs"));
    for (const name of TABS) {
      const place = h("div", { class: "tab", id: newId("tab"), "data-tab": name, hidden: this.tab !== name });
      const toggle = () => this.show(this.tab === name ? null : name);
      const states = { "aria-expanded": String(this.tab === name), "aria-controls": place.id };
      const button = h("button", { type: "button", onclick: toggle, ...states }, say(`board.tab.${name}`));
      this.#tabs[name] = { button, place };
      this.#bar.append(button);
    }
    this.#tabs.time.place.append(this.#seriesPlace, this.#adder() ?? "", this.#seriesTable);
    const moved = () => {
      this.#draw();
      this.#board.remember();
    };
    this.#slider.addEventListener("input", moved);
    this.#tabs.fakes.place.append(h("p", {}, h("label", { for: this.#slider.id }, say("board.fakes"))), this.#slider, h("p", {}, this.#forged));
    const files = [["CSV", () => this.#board.csv(this)], ["PNG", () => this.#save("png")], ["SVG", () => this.#save("svg")]];
    const save = h("div", { class: "row" }, files.map(([name, click]) => small(name, click)));
    this.command = h("div", {});
    this.#tabs.files.place.append(save, note(say("board.command")), this.command);
  }

  /** Open this tab and close the others; nothing closes them all. */
  show(wanted) {
    this.tab = wanted;
    for (const [name, { button, place }] of Object.entries(this.#tabs)) {
      place.hidden = name !== wanted;
      button.setAttribute("aria-expanded", name === wanted);
    }
    this.#fill();
    this.#board.remember();
  }

  /** What is behind a tab is made only if somebody looks at it. */
  #fill() {
    if (!this.#doc) return;
    if (this.tab === "table") this.#fillTable();
    if (this.tab === "time") this.drawSeries();
    if (this.tab === "method") update(this.#tabs.method.place, this.#method());
  }

  /** The card as it is drawn, as a file. */
  async #save(kind) {
    const parts = [this.#say, this.#about, this.#chart];
    const name = `${this.name}.${kind}`;
    if (kind === "svg") return download(name, exported(this.element, parts), "image/svg+xml");
    return download(name, await png(this.element, parts), "image/png");
  }

  get name() {
    return `${this.#board.survey.fingerprint.slice(0, 8)}-${this.key}`;
  }

  // -- texts that somebody looks for -------------------------------------------------------------

  /** Open text is estimated for texts that somebody names; what is discovered is found sooner if somebody expects it. */
  #candidateForm(name) {
    const id = newId("candidates");
    const field = h("textarea", { id, rows: 3, placeholder: say("board.texts.example"), "aria-describedby": `${id}-help` }, this.candidates.join("\n"));
    const submit = (event) => {
      event.preventDefault();
      this.candidates = [...new Set(field.value.split("\n").map((line) => line.trim()).filter(Boolean))];
      this.#board.ask();
    };
    return h(
      "form",
      { onsubmit: submit },
      h("label", { for: id }, say(`board.${name}`)),
      field,
      h("p", { class: "note", id: `${id}-help` }, say(`board.${name}.help`)),
      h("button", { type: "submit", class: "second" }, say(`board.${name}.go`)),
    );
  }

  #expect() {
    this.#expected.hidden = this.kind !== "found" || !this.#doc.enough || !this.#doc.n;
    if (this.#expected.hidden || this.#expected.firstChild) return;
    this.#expected.append(h("summary", {}, say("board.expected")), this.#candidateForm("expect"));
  }

  // -- forgeries -------------------------------------------------------------------------------------

  /** How many fake reports the slider stands at. Ever finer towards zero: few fakes are the interesting ones. */
  get fakes() {
    return this.#doc?.n ? Math.round(this.#doc.n * (Number(this.#slider.value) / 100) ** 2) : 0;
  }

  /** What forgers could do; how far they could move what is drawn. */
  #tellFakes() {
    const { n, trust: { poisoning, forgery }, rows } = this.#doc;
    const units = new Set(rows.map(({ unit }) => unit));
    const known = poisoning !== null && (this.inShares || this.shape || this.periods || units.size === 1);
    const { button, place } = this.#tabs.fakes;
    button.hidden = !known || !rows.length;
    place.hidden = this.tab !== "fakes" || button.hidden;
    if (button.hidden) return 0;
    const inUnits = !this.inShares && !this.periods && this.kind !== "ranges";
    const write = inUnits ? (x) => quantity(Number(x.toPrecision(3)), this.unit) : points;
    const move = (this.fakes / n) * poisoning;
    const facts = { figure: word(`board.moves.${MOVES[this.kind] ?? (inUnits ? "figure" : "share")}`) };
    const said = this.fakes
      ? say("board.fakes.moved", { ...facts, fakes: this.fakes, of: n, move: write(move) })
      : say("board.fakes.still", { ...facts, move: write(0.01 * poisoning) });
    this.#forged.textContent = `${said} ${tell(this.#doc, forgery)}`;
    return this.inShares && !this.plane && !this.crossed ? move : inUnits && !this.shape ? move : 0;
  }

  // -- drawing ---------------------------------------------------------------------------------------

  /** A new document. */
  update(doc) {
    this.#doc = doc;
    this.#draw();
    this.#fill();
  }

  /** What a chart of this panel spans, for a scale that several have. */
  get span() {
    return this.#doc ? span(this.#doc, this.#board.state) : [];
  }

  #draw() {
    const doc = this.#doc;
    if (!doc) return;
    const { state } = this.#board;
    const { n, trust, facts, decision, enough } = doc;
    const answered = n && doc.rows.length && enough;
    this.#expect();
    this.#say.textContent = finding(doc);
    const floor = facts.smallest ?? trust.noise_floor;
    const visible = answered && this.shares && floor !== null && floor < 1;
    this.#about.textContent = visible ? say("board.visible", { text: this.text, share: percent(floor, digitsFor(floor)) }) : this.text;
    update(this.#decision, decision && this.#verdict(decision));
    this.#bar.hidden = !answered;
    for (const { button, place } of Object.values(this.#tabs)) place.hidden = !answered || button.getAttribute("aria-expanded") !== "true";
    update(this.#remarks, enough ? remarks(doc) : []);
    if (!answered) return update(this.#chart, this.#empty());
    this.#tabs.time.button.hidden = this.periods;
    const reach = this.#tellFakes();
    const { view: values, top, order, down, along } = state;
    const choose = (name, place) => {
      this.#filter[name] = place;
      this.#draw();
      this.#board.remember();
    };
    const within = this.#board.within(this);
    const form = this.shape ? [(this.#form ??= this.#newForm()), this.#rangeShare()] : null;
    const shown = { values, top, order, down, along, filter: this.#filter, choose, reach, within, form, ...this.#axes() };
    if (this.periods) this.#drawPeriods();
    else update(this.#chart, picture(doc, shown));
    performance.mark("deniable-chart");
    update(this.command, command(this.#board.cli(this)));
    return undefined;
  }

  /** The names of the two numbers of a map. */
  #axes() {
    if (!this.plane) return {};
    const { columns, cell } = this.#question.protocol.domain;
    const unit = (own) => own || (cell && say("board.cells", { cell }));
    return { names: columns.map(({ name, domain: { unit: own } }) => [name, unit(own)].filter(Boolean).join(", ")), square: cell !== undefined };
  }

  /** Of a question that was designed for hypotheses: all of them, and how sure that is. */
  #verdict({ outcome, doubt, hypotheses }) {
    const head = ["name", "p", "looks", "posterior", "verdict"].map((name) => say(`board.hypothesis.${name}`));
    const rows = hypotheses.map(({ label: name, p_value: p, posterior, anytime, rejected }) =>
      [label(name), pValue(p), pValue(anytime), percent(posterior, 1), say(rejected ? "board.rejected" : "board.possible")]);
    return h(
      "div",
      { class: "verdict", "data-outcome": outcome },
      doubt && h("p", {}, tell(this.#doc, doubt)),
      note(say("board.look")),
      h("details", {}, h("summary", {}, say("board.hypotheses")), table(say("board.hypotheses.of", { text: this.text }), head, rows)),
    );
  }

  /** What is estimated: "shares" of answers, a "mean", a "distribution", ... */
  get kind() {
    return this.#doc?.kind ?? "shares";
  }

  /** Whether it is about the whole distribution of a number, or of two. */
  get shape() {
    return this.#doc?.picture === "histogram" || this.plane;
  }

  /** Whether it is about two numbers at once. */
  get plane() {
    return this.#doc?.picture === "map";
  }

  /** Whether it is a table of several columns. */
  get crossed() {
    return this.#doc?.picture === "matrix";
  }

  /** Whether the figures are shares of answers; else they are numbers in a unit of their own, a mean say. */
  get shares() {
    return ["bars", "matrix"].includes(this.#doc?.picture ?? "bars");
  }

  /** Whether the figures are shares in every period, where answers change. */
  get periods() {
    return this.#doc?.picture === "lines";
  }

  /** Whether every figure is a share. */
  get inShares() {
    return this.shares || this.plane;
  }

  /** The unit of the figures, where they have one. */
  get unit() {
    return this.#doc?.main[0]?.unit ?? this.#doc?.rows[0]?.unit ?? "";
  }

  /** Of answers that were found: the ones to follow over time. Each period is asked for the same ones. */
  get values() {
    return this.kind === "found" ? this.#doc.rows.slice(0, FOUND).map(({ label: name }) => name) : [];
  }

  /** How a figure is written: a share with the digits of its error, or a number with its unit. */
  write(value, stderr, unit = "") {
    return this.inShares ? percent(value, digitsFor(stderr)) : measured(value, stderr, unit);
  }

  /** Shares in every period, where answers change: a line in its band for each of the first answers. */
  #drawPeriods() {
    const { rows, marked } = this.#doc;
    const { epochs } = this.#board.survey.terms;
    const names = [...new Set(rows.map(({ group }) => group))];
    const shown = names.length === 2 ? names.slice(1) : names.slice(0, LINES);
    const of = (name) => rows.filter((row) => row.group === name && !marked.has(row));
    const times = of(names[0]).map(({ label: epoch }) => epochs.origin + (epochs.first + epoch - 1) * epochs.seconds);
    const lines = shown.map((name) => ({ label: name, points: of(name).map(({ value, low, high }) => (value === null ? null : { value, low, high })) }));
    if (this.#chart.firstChild !== this.#periodsPlace) this.#chart.replaceChildren(this.#periodsPlace);
    this.#periods ??= new Series(this.#periodsPlace);
    this.#periods.draw(times, lines, epochs.seconds);
  }

  /** Two numbers, between which the share is wanted; or two of each of the names. */
  #newForm() {
    const names = this.plane ? this.#question.protocol.domain.columns.map(({ name }) => name) : [""];
    const before = this.range?.split(",").map((pair) => pair.split("..")) ?? [];
    const words = (own, name) => (name === "to" ? say("board.to") : own ? say("board.from.name", { name: own }) : say("board.from"));
    const pairs = names.map((own, i) =>
      ["from", "to"].map((name, j) => {
        const id = newId(name);
        const input = h("input", { id, type: "number", step: "any", required: true, value: before[i]?.[j] });
        return { label: h("label", { for: id }, words(own, name)), input };
      }),
    );
    const submit = (event) => {
      event.preventDefault();
      const ends = pairs.map((pair) => pair.map(({ input }) => input.value));
      pairs.forEach(([, { input }], i) => {
        const [low, high] = ends[i].map(Number);
        input.setCustomValidity(low > high ? say("board.smaller") : "");
      });
      if (!event.target.reportValidity()) return;
      this.range = ends.map(([low, high]) => `${low}..${high}`).join(",");
      this.#board.ask();
    };
    for (const pair of pairs) for (const { input } of pair) input.addEventListener("input", () => pair[1].input.setCustomValidity(""));
    const fields = pairs.flat().flatMap(({ label: own, input }) => [own, input]);
    return h("form", { class: "row ends", onsubmit: submit }, ...fields, h("button", { type: "submit", class: "second small" }, say("board.range.go")));
  }

  /** The share of the range that was asked for, in words. */
  #rangeShare() {
    const own = this.#doc.asked.filter((range) => range.includes(",") === this.plane); // each panel has the rows of its kind
    const row = this.#doc.section("ranges")?.rows[own.indexOf(this.range)];
    if (!row) return null;
    const [value, low, high] = [row.value, row.low, row.high].map((x) => percent(x, digitsFor(row.stderr)));
    const where = `${nameOf({ ...this.#doc, kind: "ranges" }, row)}${this.unit ? ` ${this.unit}` : ""}`;
    return h("p", { class: "range-share" }, say(this.plane ? "board.range.at" : "board.range.from", { value, low, high, where }));
  }

  #empty() {
    const { n, enough } = this.#doc;
    const { minReports } = this.#board.survey.terms;
    if (enough || (!n && minReports <= 1)) return [];
    return h(
      "div",
      { class: "card warn" },
      h("p", {}, say("board.wait.text", { counted: this.#board.counted(n), of: minReports })),
      h("progress", { max: minReports, value: Math.min(n, minReports), "aria-label": say("board.sofar") }),
    );
  }

  /** How this was estimated. */
  #method() {
    const { protocol, method, trust, n } = this.#doc;
    const { post, view } = this.#board.state;
    const how = this.shares && view === "consistent" ? say("board.method.consistent", { post: methodOf(post) }) : methodOf(method);
    const rows = [["key", this.key], ["protocol", protocol], ["epsilon", decimal(trust.epsilon)], ["counted", this.#board.counted(n)], ["how", how]];
    return h("dl", { class: "facts" }, rows.map(([name, words]) => [h("dt", {}, say(`board.about.${name}`)), h("dd", {}, words)]));
  }

  #fillTable() {
    const doc = this.#doc;
    if (!doc.n || !doc.rows.length) return;
    const title = say("board.table", { text: this.text });
    const head = (...names) => names.map((name) => say(`board.column.${name}`));
    const draw = (names, rows) => update(this.#tabs.table.place, table(title, head(...names), rows, { class: "numbers" }));
    if (this.periods) {
      const rows = doc.rows.map(({ group, label: epoch, value, stderr, low, high }) =>
        [group, String(epoch), ...[value, stderr, low, high].map((x) => (x === null ? "–" : percent(x, digitsFor(stderr ?? 1))))]);
      return draw(["answer", "period", "share", "error", "from", "to"], rows);
    }
    if (!this.shares) {
      const rows = doc.rows.map((row) => {
        const { value, stderr, low, high, unit, begin } = row;
        const write = begin === undefined ? (x) => measured(x, stderr) : (x) => percent(x, digitsFor(stderr));
        return [nameOf(doc, row), ...[value, stderr, low, high].map(write), unit];
      });
      return draw(["figure", "value", "error", "from", "to", "unit"], rows);
    }
    const order = byShare(doc, this.#board.state.order) ? ranked(doc) : doc.rows.map((_, i) => i);
    const rows = order.map((i) => {
      const { label: name, value, stderr, low, high, count: number, p_value: p } = doc.rows[i];
      const d = digitsFor(stderr);
      const last = this.kind === "found" ? (p === null ? "–" : pValue(p)) : percent(consistent(doc.rows[i]).value, d);
      return [label(name), percent(value, d), percent(stderr, d), percent(low, d), percent(high, d), count(number), last];
    });
    return draw(["answer", "share", "error", "from", "to", "count", this.kind === "found" ? "p" : "consistent"], rows);
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
      this.#pick([at, ...(this.#chosen ?? []).filter((i) => i !== at)].slice(0, 2 * LINES));
      this.drawSeries();
      this.#board.remember();
    };
    const button = h("button", { type: "button", class: "second", onclick: add }, say("board.add.go"));
    return h("div", { class: "row" }, h("label", { for: id }, say("board.add")), box.element, button);
  }

  /** Which rows are drawn over time at first: the largest, or of a distribution the quartiles. */
  #overTime() {
    if (this.shape && !this.plane) return quantiles(this.#doc.section("figures"), OVER_TIME);
    return ranked(this.#doc).slice(0, LINES);
  }

  async drawSeries() {
    const { survey } = this.#board;
    const readings = await this.#board.working(this.#board.perEpoch(this));
    const shown = readings.filter(({ question }) => question.n && question.rows.length);
    const first = shown[0];
    if (!first) return update(this.#seriesTable, note(say("board.time.none")));
    if (!this.#doc) return undefined; // drawn once the estimates are there
    this.#chosen ??= this.#overTime();
    const chosen = this.#chosen.filter((i) => i < first.question.rows.length);
    const { origin, seconds } = survey.terms.epochs;
    const times = readings.map(({ epoch }) => origin + epoch * seconds);
    const point = (question, i) => (question.n ? (question.rows[i] ?? null) : null);
    const inside = (x) => Math.min(1, Math.max(0, x)); // as the bars are drawn; the table has the numbers
    const drawn = (found) => (this.inShares && found ? { value: inside(found.value), low: inside(found.low), high: inside(found.high) } : found);
    const lines = chosen.map((i) => ({
      label: nameOf(first.question, first.question.rows[i]),
      points: readings.map(({ question }) => drawn(point(question, i))),
    }));
    const { unit } = first.question.rows[chosen[0]];
    await this.#series.draw(times, lines, seconds, this.inShares ? null : (number) => quantity(Number(number.toPrecision(4)), unit));
    const rows = readings.map(({ epoch, question }) => [
      period(survey.terms.epochs, epoch),
      count(question.n),
      ...chosen.map((i) => {
        const p = point(question, i);
        if (!p) return say("board.time.few");
        if (this.inShares && saysNothing(p)) return say("board.any");
        const write = (x) => (this.inShares ? percent(x) : measured(x, p.stderr, p.unit));
        return say("board.with", { value: write(p.value), low: write(p.low), high: write(p.high) });
      }),
    ]);
    const csv = small("CSV", () => this.#board.csv(this, { per: "epoch", epochs: this.#board.seriesRange }));
    const head = [say("board.column.period"), say("board.column.answers"), ...lines.map((line) => line.label)];
    return update(
      this.#seriesTable,
      h("details", {}, h("summary", {}, say("board.tab.table")), table(say("board.time.table", { text: this.text }), head, rows, { class: "numbers" })),
      h("div", { class: "tools" }, csv, h("span", { class: "note" }, say("board.time.command"))),
      command(this.#board.cli(this, { epochs: String(shown.at(-1).epoch) })),
    );
  }
}

/** What forgers move, by kind. */
const MOVES = { distribution: "mean", ranges: "range", rectangles: "rectangle" };
