/** One survey on the dashboard: what is shown of it, and the numbers as they change. */

import { ROOT } from "./api.js";
import { campaignCard, health, phase, specCard, tile } from "./cards.js";
import { Comparison } from "./compare.js";
import { bdi, focusOn, h, newId, show, update } from "./dom.js";
import { read } from "./document.js";
import { count, decimal, period, plural } from "./format.js";
import { QuestionPanel } from "./panel.js";
import { documentIn, inLanguage, sayer } from "./translated.js";

const METHODS = {
  "norm-sub": "norm-sub: nearest",
  power: "power: a long tail",
  "base-cut": "base-cut: very many",
  norm: "norm: unbiased",
  "norm-mul": "norm-mul: ratios",
  clip: "clip: none below 0",
};
const PAUSE = 5000; // milliseconds between two loads that news alone ask for
const LATEST = "latest";

const ALL = "all"; // what all strata together are called
const FEW_STRATA = 4; // more are not all shown at first
const FEW_TABLES = 4;

const FIRSTS = [["", "the first"], [LATEST, "the latest alone"]];
const LASTS = [["", "the latest"]];

/** The questions to show: of an answer with several parts, one per part, each with its own protocol. */
function parts(question, text, said) {
  const { id, protocol } = question;
  if (protocol.readings) {
    const stratum = (part) => (protocol.stratumNames?.includes(part) ? part : protocol.stratumNames && ALL);
    return protocol.readings.map((part) => ({ id, part, text: `${text} – ${said(part)}`, protocol, stratum: stratum(part) }));
  }
  const { strata, inner, groups = strata && [{ name: ALL, protocol: inner }, ...strata] } = protocol;
  if (!groups) return [{ ...question, text }];
  const names = (view) => view?.map((i) => protocol.domain.columns[i].name);
  return groups.map(({ name, protocol: own }, i) => ({
    id,
    part: name,
    text: `${text} – ${said(name)}`,
    protocol: own,
    stratum: strata && name,
    columns: names(protocol.views?.[i]),
  }));
}

/** What a question, or a part of one, is called. */
export const keyOf = ({ id, part }) => (part ? `${id}.${part}` : id);

/** Lives until another survey is opened. */
export class Board {
  state = { first: "", last: "", level: 0.95, at: "once", about: "population", post: "norm-sub", view: "both", top: 25, order: "auto", bins: null };
  #api;
  #place;
  #stop = new AbortController();
  #tiles = h("div", { class: "tiles" });
  #live = h("span", { class: "live" }, "connecting");
  #health = h("div", {});
  #note = h("div", {});
  #campaign = h("div", {});
  #go;
  #error = h("p", { class: "error", role: "alert" });
  #selects = {};
  #loading = null;
  #again = false;
  #newest = null;
  #epochs = []; // as the last status had them
  #changed = new Set(); // periods that news named since the last load
  #version = null; // of the sums that are shown; null if the last load failed
  #loaded = -PAUSE;
  #waiting = null;
  #series = new Map(); // readings by epoch, of panels that are shown over time
  #chosen = [];
  #strata = [];
  #columns = []; // of tables of several columns

  /** `go(event, fingerprint)` opens the dashboard of another survey. */
  constructor(place, api, survey, go) {
    this.#api = api;
    this.#go = go;
    this.#place = place;
    this.survey = survey;
    // Memoized answers repeat their noise: several periods say no more than one, which is the one to look at.
    if (survey.terms.keeps && survey.terms.longitudinal.epochs > 1) this.state.first = LATEST;
    const many = survey.questions.length > 1;
    this.#strata = [...new Set(survey.questions.flatMap(({ protocol: { strata = [], stratumNames } }) => stratumNames ?? strata.map(({ name }) => name)))];
    this.state.stratum = this.#strata.length > FEW_STRATA ? ALL : "";
    const tables = survey.questions.filter(({ protocol: { views } }) => views);
    this.#columns = [...new Set(tables.flatMap(({ protocol: { domain } }) => domain.columns.map(({ name }) => name)))];
    [this.state.down, this.state.along] = [tables.some(({ protocol: { views } }) => views.length > FEW_TABLES) ? this.#columns[0] : "", ""];
    const asked = inLanguage(survey).questions;
    const shown = (question, i) => parts(question, asked[i].text, sayer(survey, question.id));
    this.panels = survey.questions.flatMap((question, i) => shown(question, i).map((part) => new QuestionPanel(this, part, many ? i + 1 : 0)));
    this.compare = new Comparison(this);
  }

  get #base() {
    return `v1/surveys/${this.survey.fingerprint}`;
  }

  async start() {
    const { name, terms } = inLanguage(this.survey);
    document.title = `${name}: dashboard`;
    show(
      this.#place,
      h("h1", {}, bdi(name)),
      h("p", {}, h("b", {}, bdi(terms.owner)), " · ", bdi(terms.purpose), " ", this.#live),
      this.#tiles,
      this.#controls(),
      this.#error,
      this.#note,
      this.#campaign,
      this.panels.map(({ element }) => element),
      this.compare.element,
      h("div", { class: "columns" }, specCard(this.survey), this.#health),
    );
    focusOn(this.#place.querySelector("h1"));
    await this.load();
    const states = (on) => {
      this.#live.classList.toggle("on", on);
      this.#live.textContent = on ? "live" : "not connected: trying again";
      if (on && this.#version === null) this.load(); // else the stream tells what changed
    };
    this.#api.follow(`${this.#base}/stream`, { signal: this.#stop.signal, onevent: (news) => this.#hear(news), onstate: states });
  }

  #hear({ epoch, version }) {
    if (version === this.#version) return;
    this.#changed.add(epoch);
    this.#wait();
  }

  /** Load what news named: at once if the last load is some time ago, else once for all that come until then. */
  #wait() {
    if (this.#loading || !this.#changed.size) return;
    this.#waiting ??= setTimeout(() => this.load(), Math.max(0, this.#loaded + PAUSE - performance.now()));
  }

  stop() {
    clearTimeout(this.#waiting);
    this.#stop.abort();
  }

  // -- controls ----------------------------------------------------------------------------------

  #select(name, words, options) {
    const id = newId(name);
    const change = ({ target }) => {
      const known = options.find(([value]) => String(value ?? "") === target.value);
      this.state[name] = known ? known[0] : target.value;
      if (name === "first" || name === "last") this.#straighten(name);
      this.load();
    };
    const select = h("select", { id, onchange: change });
    for (const [value, text] of options) select.append(h("option", { value: value ?? "", selected: value === this.state[name] }, text));
    this.#selects[name] = select;
    return h("div", {}, h("label", { for: id }, words), select);
  }

  #controls() {
    const tops = [10, 25, 100].map((n) => [n, `${n} most common`]);
    return h(
      "section",
      { class: "card controls", "aria-label": "What is shown" },
      this.#select("first", "From period (epoch)", FIRSTS),
      this.#select("last", "To period", LASTS),
      this.#select("level", "Confidence level", [[0.9, "90 %"], [0.95, "95 %"], [0.99, "99 %"]]),
      this.#select("at", "Intervals hold for", [["once", "all at once"], ["each", "each by itself"]]),
      this.#select("about", "Intervals are about", [["population", "everybody"], ["respondents", "those who answered"]]),
      this.#select("view", "Estimates", [["both", "both kinds"], ["raw", "unbiased"], ["consistent", "consistent"]]),
      this.#select("post", "Made consistent by", Object.entries(METHODS)),
      this.#select("top", "Answers", [...tops, [null, "all"]]),
      this.#select("bins", "Bins", [[null, "as the noise allows"], ...[10, 20, 50, 100].map((n) => [n, `about ${n}`])]),
      this.#select("order", "Order", [["auto", "usual"], ["own", "as asked"], ["share", "most common first"]]),
      ...this.#tableSelects(),
      this.#strata.length ? this.#stratumSelect() : null,
    );
  }

  #tableSelects() {
    if (!this.#columns.length) return [];
    const options = [["", "any"], ...this.#columns.map((name) => [name, name])];
    return [this.#select("down", "Rows of tables", options), this.#select("along", "Columns of tables", options)];
  }

  #stratumSelect() {
    const own = this.#strata.map((name) => [name, name]);
    return this.#select("stratum", "Strata", [["", "all of them"], [ALL, "together only"], ...own]);
  }

  /** Show the panels of the stratum that was chosen, beside those of everybody, and the tables of the columns that were. */
  #choose() {
    const { stratum, down, along } = this.state;
    const wanted = [down, along].filter(Boolean);
    for (const panel of this.panels) {
      const other = panel.stratum && stratum && ![ALL, stratum].includes(panel.stratum);
      panel.element.hidden = Boolean(other || (panel.columns && !wanted.every((name) => panel.columns.includes(name))));
    }
  }

  /** Controls that say nothing about means are there only where there are shares. */
  #offerControls() {
    const shares = this.panels.some((panel) => panel.shares);
    for (const name of ["view", "post", "top", "order"]) this.#selects[name].parentElement.hidden = !shares;
    const shapes = this.panels.some((panel) => panel.shape);
    this.#selects.bins.parentElement.hidden = !shapes;
    this.#selects.at.parentElement.hidden = !shares && !shapes && this.panels.length === this.survey.questions.length;
  }

  #offerEpochs(epochs) {
    for (const [name, fixed] of [["first", FIRSTS], ["last", LASTS]]) {
      const select = this.#selects[name];
      select.disabled = name === "last" && this.state.first === LATEST;
      if (select.options.length === epochs.length + fixed.length) continue;
      const option = ([value, words]) => h("option", { value, selected: String(value) === String(this.state[name]) }, words);
      select.replaceChildren(...[...fixed, ...epochs.map(({ epoch }) => [epoch, `${period(this.survey.terms.epochs, epoch)} (${epoch})`])].map(option));
    }
    this.compare.offer(epochs);
  }

  /** A range that would end before it begins is moved by its other end. */
  #straighten(name) {
    const other = name === "first" ? "last" : "first";
    const { first, last } = this.state;
    if (first === LATEST || first === "" || last === "" || Number(first) <= Number(last)) return;
    this.state[other] = this.#selects[other].value = this.state[name];
  }

  // -- data --------------------------------------------------------------------------------------

  get #range() {
    const { first, last } = this.state;
    if (first === LATEST) return this.#newest === null ? null : String(this.#newest);
    if (first === "" && last === "") return null;
    return String(first) === String(last) ? String(first) : `${first}..${last}`;
  }

  /** Of a survey that is looked at one period at a time, all periods are drawn over time. */
  get seriesRange() {
    return this.state.first === LATEST ? null : this.#range;
  }

  /** The latest period that has enough answers to show, or that has any. */
  #findNewest(epochs) {
    const enough = epochs.filter(({ n }) => n >= this.survey.terms.minReports);
    this.#newest = (enough.at(-1) ?? epochs.at(-1))?.epoch ?? null;
  }

  /** Whether one device may have sent several of the reports that are shown. */
  get #several() {
    return this.survey.terms.longitudinal.epochs > 1 && this.#chosen.length > 1;
  }

  /** What is counted: where one device sends many, reports are not as many people's answers. */
  counted(n) {
    return plural(n, this.#several ? "report" : "answer");
  }

  /** How intervals are asked for: all answers of a question at once, unless each is to hold by itself. */
  get #intervals() {
    const { at, level } = this.state;
    return { level, intervals: at === "once" ? "simultaneous" : "each" };
  }

  /** Ask for all questions; those for which texts are named are asked one by one, each with its own. `once` is asked of the first. */
  async #ask(path, query, once = {}) {
    const own = ({ open, candidates }) => open || candidates.length > 0;
    const closed = [...new Set(this.panels.filter((panel) => !own(panel)).map(({ id }) => id))];
    const asked = this.panels.filter(own).map(({ id, candidates }) => ({ question: [id], candidates }));
    if (closed.length) asked.push({ question: closed });
    return Promise.all(asked.map((one, i) => this.#api.json(`${this.#base}/${path}`, { ...query, ...this.#intervals, ...one, ...(i ? {} : once) })));
  }

  /**
   * The status and the documents by question: in one request, but for questions with texts of their own. Where it is
   * known which periods have `changed`, the status is about these.
   */
  async #read(changed) {
    const { about, bins, post } = this.state;
    const asked = [...new Set(this.panels.map((panel) => panel.range).filter(Boolean))];
    const query = { epochs: this.#range, about, bins, range: asked, post: "none", consistent: post };
    const replies = await this.#ask("estimates", query, { status: true, status_epochs: changed && `${changed[0]}..${changed.at(-1)}` });
    const readings = replies.map(({ series }) => series[0]);
    const named = readings.flatMap(({ questions }) => questions.map((one) => [keyOf(one), { ...read(documentIn(this.survey, one)), asked }]));
    return [replies[0].status, new Map(named), new Set(readings.flatMap(({ notes }) => notes))];
  }

  /** Changes by question from one range of periods to another. */
  async differences(before, after) {
    const replies = await this.#ask("differences", { before, after });
    return new Map(replies.flatMap(({ questions }) => questions.map((one) => [keyOf(one), one])));
  }

  /** Everything that is shown; while it is on its way, one more time is enough for all who ask. */
  load() {
    if (this.#loading) {
      this.#again = true;
      return this.#loading;
    }
    clearTimeout(this.#waiting);
    this.#waiting = null;
    this.#loading = this.#load().finally(() => {
      this.#loading = null;
      this.#loaded = performance.now();
      if (this.#again) {
        this.#again = false;
        this.load();
      } else this.#wait();
    });
    return this.#loading;
  }

  async #load() {
    const changed = this.#changed.size && this.#version !== null ? [...this.#changed].sort((a, b) => a - b) : null;
    this.#changed.clear();
    try {
      const latest = this.state.first === LATEST;
      if (latest && this.#newest === null) this.#findNewest((await this.#api.json(`${this.#base}/status`)).epochs);
      const asked = { ...this.state };
      const before = this.#newest;
      const [status, found, notes] = await this.#read(changed);
      status.epochs = this.#merge(changed, status.epochs);
      if (latest) this.#findNewest(status.epochs);
      if (this.#newest !== before) this.#again = true; // a new period: its readings are asked for next
      this.#epochs = status.epochs;
      this.#version = status.version;
      this.#error.textContent = "";
      this.#show(status);
      await this.#combine();
      this.#warn(notes);
      for (const panel of this.panels) panel.update(found.get(panel.key), asked);
      this.#choose();
      this.#offerControls();
    } catch (error) {
      this.#version = null;
      this.#error.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}. What is shown here is from before.`;
    }
  }

  /** All periods, given those that were asked for. */
  #merge(changed, epochs) {
    if (!changed) return epochs;
    const others = this.#epochs.filter(({ epoch }) => epoch < changed[0] || epoch > changed.at(-1));
    return [...others, ...epochs].sort((a, b) => a.epoch - b.epoch);
  }

  #show(status) {
    const { terms, lifetimeEpsilon } = this.survey;
    this.#offerEpochs(status.epochs);
    const [first, last] = this.state.first === LATEST ? [this.#newest, this.#newest] : [this.state.first, this.state.last];
    const chosen = status.epochs.filter(({ epoch }) => (first === "" || epoch >= first) && (last === "" || epoch <= last));
    this.#chosen = chosen;
    const n = chosen.reduce((sum, one) => sum + one.n, 0);
    update(
      this.#tiles,
      tile(count(n), this.counted(n).split(" ")[1]),
      tile(decimal(this.survey.epsilon), "epsilon of a submission"),
      ...(this.survey.delta === null ? [] : [tile(this.survey.delta, "delta of a submission")]),
      lifetimeEpsilon === null
        ? tile("no bound", "on what all reports of a device tell together")
        : tile(decimal(lifetimeEpsilon), "lifetime epsilon"),
      tile(plural(chosen.length, "period"), chosen.length ? period(terms.epochs, chosen[0].epoch, chosen.at(-1).epoch) : "with answers"),
      tile(...phase(status.state, terms)),
    );
    update(this.#health, health(this.survey, status));
  }

  /** All rounds of the survey's campaign, and what they say together. */
  async #combine() {
    if (!this.survey.terms.campaign) return;
    const { level } = this.state;
    const reading = await this.#api.json(`${this.#base}/campaign`, { level }).catch((error) => {
      if (error.status !== 403) throw error;
      return null; // a token of this round alone does not read the others
    });
    if (!reading) return;
    const said = [`deniable estimate ${this.survey.fingerprint} --combined --from ${ROOT.replace(/\/$/, "")}`, level === 0.95 ? "" : ` --level ${level}`];
    update(this.#campaign, campaignCard(this.survey, reading, said.join(""), this.#go));
  }

  /** What the service says that the intervals allow for. */
  #warn(notes) {
    update(this.#note, [...notes].map((note) => h("p", { class: "card warn" }, `${note[0].toUpperCase()}${note.slice(1)}.`)));
  }

  /** One reading per epoch of the range, for one question. Only epochs that changed are asked for. */
  async perEpoch(panel) {
    const { id, candidates, values } = panel;
    const query = { ...this.#intervals, about: this.state.about, per: "epoch", question: id, candidates, values };
    const name = JSON.stringify(query);
    if (this.#series.get(panel.key)?.name !== name) this.#series.set(panel.key, { name, known: new Map() });
    const { known } = this.#series.get(panel.key);
    const [first = "", last = first] = this.seriesRange?.split("..") ?? ["", ""];
    const state = ({ n, state }) => `${n} ${state}`;
    const wanted = this.#epochs.filter(({ epoch }) => (first === "" || epoch >= Number(first)) && (last === "" || epoch <= Number(last)));
    const changed = wanted.filter((one) => known.get(one.epoch)?.state !== state(one)).map(({ epoch }) => epoch);
    if (changed.length) {
      const { series } = await this.#api.json(`${this.#base}/estimates`, { ...query, epochs: `${changed[0]}..${changed.at(-1)}` });
      const states = new Map(wanted.map((one) => [one.epoch, state(one)]));
      const own = (questions) => read(documentIn(this.survey, questions.find((one) => keyOf(one) === panel.key)));
      const readings = series.map(({ first: epoch, questions }) => ({ epoch, question: own(questions) }));
      if (!readings.every(({ epoch }) => states.has(epoch))) return readings; // answers that evolve are one reading
      for (const { epoch, question } of readings) known.set(epoch, { state: states.get(epoch), question });
    }
    return wanted.filter(({ epoch }) => known.has(epoch)).map(({ epoch }) => ({ epoch, question: known.get(epoch).question }));
  }

  // -- the same elsewhere ------------------------------------------------------------------------

  async csv(panel, more = {}) {
    const { post, view, about, bins } = this.state;
    const query = {
      epochs: this.#range,
      ...this.#intervals,
      about,
      bins,
      post: view === "consistent" ? post : "none",
      question: panel.id,
      candidates: panel.candidates,
      ...more,
    };
    panel.save(await this.#api.text(`${this.#base}/estimates.csv`, query));
  }

  /** The command that prints the same numbers. */
  cli(panel, given = {}) {
    const { view, level, at, about, bins } = this.state;
    const { epochs, post } = { epochs: this.#range, post: view === "consistent" ? this.state.post : "none", ...given };
    return [
      `deniable estimate ${this.survey.fingerprint}`,
      `--from ${ROOT.replace(/\/$/, "")}`,
      `--question ${panel.id}`,
      epochs ? `--epochs ${epochs}` : "",
      level === 0.95 ? "" : `--level ${level}`,
      at === "once" && (panel.shares || panel.shape) ? "--simultaneous" : "",
      bins !== null && panel.shape ? `--bins ${bins}` : "",
      panel.range && panel.shape ? `--range=${panel.range}` : "",
      about === "respondents" ? "--respondents" : "",
      post === "none" || panel.kind === "found" ? "" : `--consistent ${post}`,
      panel.open || panel.candidates.length ? "--candidates words.txt" : "",
      panel.fakes && !given.epochs && panel.kind !== "found" ? `--robust ${panel.fakes}` : "",
    ].filter(Boolean).join(" ");
  }
}
