/** One survey on the dashboard: its findings as they change, three controls, and the rest folded away. */

import { ROOT } from "./api.js";
import { campaignCard, health, specCard, strength, wellness } from "./cards.js";
import { Comparison } from "./compare.js";
import { bdi, copier, download, focusOn, h, newId, show, update } from "./dom.js";
import { read } from "./document.js";
import { tell } from "./finding.js";
import { count, decimal, period } from "./format.js";
import { QuestionPanel } from "./panel.js";
import { documentIn, inLanguage, sayer } from "./translated.js";
import { say } from "./words.js";

const METHODS = ["norm-sub", "power", "base-cut", "norm", "norm-mul", "clip"];
const PAUSE = 5000; // milliseconds between two loads that news alone ask for
const SOON = 200; // milliseconds that something may take before a sign says that it is on its way
const LATEST = "latest";

const ALL = "all"; // what all strata together are called
const FEW_STRATA = 4; // more are not all shown at first
const FEW_TABLES = 4;

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
  const titled = (name) => (strata && name === ALL ? say("board.everybody") : said(name));
  return groups.map(({ name, protocol: own }, i) => ({
    id,
    part: name,
    text: `${text} – ${titled(name)}`,
    protocol: own,
    stratum: strata && name,
    columns: names(protocol.views?.[i]),
  }));
}

/** What a question, or a part of one, is called. */
export const keyOf = ({ id, part }) => (part ? `${id}.${part}` : id);

/** Lives until another survey is opened. */
export class Board {
  state = { first: "", last: "", level: 0.95, at: "once", about: "population", post: "norm-sub", view: "raw", top: 25, order: "auto", bins: null };
  /** What the address asks for, behind its #: that part is never sent to the service. */
  asked = new URLSearchParams(location.hash.slice(1));
  #usual;
  #api;
  #place;
  #stop = new AbortController();
  #answers = h("span", { class: "chip answers" });
  #live = h("span", { class: "live" }, say("board.live.begin"));
  #busy = h("p", { class: "busy", role: "status", hidden: true }, say("board.busy"));
  #pending = 0;
  #period = h("summary", {}, say("board.loading"));
  #well = h("summary", {}, say("board.loading"));
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
    this.#strata = [...new Set(survey.questions.flatMap(({ protocol: { strata = [], stratumNames } }) => stratumNames ?? strata.map(({ name }) => name)))];
    this.state.stratum = this.#strata.length > FEW_STRATA ? ALL : "";
    const tables = survey.questions.filter(({ protocol: { views } }) => views);
    this.#columns = [...new Set(tables.flatMap(({ protocol: { domain } }) => domain.columns.map(({ name }) => name)))];
    [this.state.down, this.state.along] = [tables.some(({ protocol: { views } }) => views.length > FEW_TABLES) ? this.#columns[0] : "", ""];
    this.#usual = { ...this.state };
    for (const end of ["first", "last"]) if (/^(\d*|latest)$/.test(this.asked.get(end) ?? "no")) this.state[end] = this.asked.get(end);
    const asked = inLanguage(survey).questions;
    const shown = (question, i) => parts(question, asked[i].text, sayer(survey, question.id));
    this.panels = survey.questions.flatMap((question, i) => shown(question, i).map((part) => new QuestionPanel(this, part)));
    this.compare = new Comparison(this);
  }

  get #base() {
    return `v1/surveys/${this.survey.fingerprint}`;
  }

  async start() {
    const { fingerprint, epsilon } = this.survey;
    const { name, terms } = inLanguage(this.survey);
    document.title = say("board.page", { name });
    const audit = h("a", { href: `${ROOT}audit/${fingerprint}` }, say("board.link.audit"));
    show(
      this.#place,
      h("p", { class: "soft owner" }, bdi(terms.owner)),
      h("h1", {}, bdi(name)),
      this.#controls(),
      this.#busy,
      this.#error,
      this.#campaign,
      this.#panels(),
      this.#note,
      this.compare.element,
      h("p", { class: "soft row" }, say("board.protection", { band: strength(this.survey), epsilon: decimal(epsilon) }), " ", audit),
      h("details", { class: "operator" }, this.#well, h("div", { class: "columns" }, specCard(this.survey), this.#health)),
    );
    focusOn(this.#place.querySelector("h1"));
    const menus = [...this.#place.querySelectorAll(".menu")];
    const fold = ({ type, key, target }) => menus.forEach((menu) => (menu.open &&= type === "keydown" ? key !== "Escape" : menu.contains(target)));
    for (const type of ["pointerdown", "keydown"]) addEventListener(type, fold, { signal: this.#stop.signal });
    await this.load();
    this.compare.restore();
    const states = (on) => {
      this.#live.classList.toggle("on", on);
      this.#live.textContent = say(on ? "board.live" : "board.live.off");
      if (on && this.#version === null) this.load(); // else the stream tells what changed
    };
    this.#api.follow(`${this.#base}/stream`, { signal: this.#stop.signal, onevent: (news) => this.#hear(news), onstate: states });
  }

  /** All panels; those of the strata of a question stand side by side. */
  #panels() {
    const found = [];
    for (const panel of this.panels) {
      const place = found.at(-1);
      if (panel.stratum && place?.id === panel.id) place.panels.push(panel);
      else found.push({ id: panel.stratum ? panel.id : null, panels: [panel] });
    }
    return found.map(({ id, panels }) => (id ? h("div", { class: "columns strata" }, panels.map(({ element }) => element)) : panels[0].element));
  }

  /** The ends of the common scale of a panel and those beside it; none where it stands alone. */
  within(panel) {
    if (!panel.stratum) return [];
    return this.panels.filter(({ id, stratum, element }) => stratum && id === panel.id && !element.hidden).flatMap((one) => one.span);
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

  /** Say that something is on its way, if it takes a while. */
  async working(promise) {
    const turn = (by) => {
      this.#pending += by;
      this.#busy.hidden = this.#pending === 0;
    };
    let begun = 0;
    const timer = setTimeout(() => turn((begun = 1)), SOON);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      turn(-begun);
    }
  }

  // -- the address -------------------------------------------------------------------------------

  /** Write what is shown into the address: who opens it sees the same. */
  remember() {
    const own = Object.entries(this.state).filter(([name, value]) => value !== this.#usual[name]).map(([name, value]) => [name, value ?? ""]);
    const compared = this.compare?.compared;
    const all = [...own, ...(this.panels ?? []).flatMap((panel) => panel.parts), ...(compared ? [["compare", compared]] : [])];
    history.replaceState(null, "", Object.assign(new URL(location.href), { hash: new URLSearchParams(all).toString() }));
  }

  /** Something else is asked for: write it down, and load it. */
  ask() {
    this.remember();
    return this.working(this.load());
  }

  // -- controls ----------------------------------------------------------------------------------

  #select(name, options, attributes = {}) {
    const asked = this.asked.get(name);
    const found = asked === null ? null : options.find(([value]) => String(value ?? "") === asked);
    if (found) this.state[name] = found[0];
    const change = ({ target }) => {
      const known = options.find(([value]) => String(value ?? "") === target.value);
      this.state[name] = known ? known[0] : target.value;
      if (name === "first" || name === "last") this.#straighten(name);
      this.ask();
    };
    const select = h("select", { onchange: change, ...attributes });
    for (const [value, text] of options) select.append(h("option", { value: value ?? "", selected: value === this.state[name] }, text));
    this.#selects[name] = select;
    return select;
  }

  #labelled(name, options) {
    const id = newId(name);
    return h("div", {}, h("label", { for: id }, say(`board.choose.${name}`)), this.#select(name, options, { id }));
  }

  /** A choice that shows no label: its value says what it is. */
  #chip(name, options) {
    return this.#select(name, options, { class: "chip", "aria-label": say(`board.choose.${name}`) });
  }

  /** Values with words of the catalogue. */
  #words(name, values) {
    return values.map((value) => [value, say(`board.choose.${name}.${value}`)]);
  }

  get #ends() {
    return { first: [["", say("board.choose.first.all")], [LATEST, say("board.choose.first.latest")]], last: [["", say("board.choose.last.all")]] };
  }

  #controls() {
    const { first, last } = this.#ends;
    const percents = [0.9, 0.95, 0.99].map((level) => [level, say("percent.line", { n: 100 * level })]);
    const tops = [10, 25, 100].map((n) => [n, say("board.choose.top.some", { n })]);
    const some = [10, 20, 50, 100].map((n) => [n, say("board.choose.bins.some", { n })]);
    const posts = METHODS.map((name) => [name, say(`board.method.${name}`)]);
    const strata = [["", say("board.choose.stratum.each")], [ALL, say("board.everybody")], ...this.#strata.map((name) => [name, name])];
    const columns = [["", say("board.choose.any")], ...this.#columns.map((name) => [name, name])];
    const method = h(
      "div",
      { class: "card controls" },
      this.#labelled("at", this.#words("at", ["once", "each"])),
      this.#labelled("about", this.#words("about", ["population", "respondents"])),
      this.#labelled("view", this.#words("view", ["raw", "consistent"])),
      this.#labelled("post", posts),
      this.#labelled("top", [...tops, [null, say("board.choose.top.all")]]),
      this.#labelled("bins", [[null, say("board.choose.bins.noise")], ...some]),
      this.#labelled("order", this.#words("order", ["auto", "own", "share"])),
      this.#columns.length ? ["down", "along"].map((name) => this.#labelled(name, columns)) : null,
    );
    return h(
      "div",
      { class: "chips", role: "group", "aria-label": say("board.choose") },
      this.#answers,
      h("details", { class: "menu" }, this.#period, h("div", { class: "card controls" }, this.#labelled("first", first), this.#labelled("last", last))),
      this.#strata.length ? this.#chip("stratum", strata) : null,
      this.#chip("level", percents),
      h("span", { class: "row end" }, copier(() => location.href, say("board.share"), { class: "chip" })),
      h("details", { class: "menu" }, h("summary", {}, say("board.choose.method")), method),
    );
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
    for (const [name, fixed] of Object.entries(this.#ends)) {
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
    return say(this.#several ? "board.reports" : "board.answers", { n });
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
    const named = readings.flatMap(({ questions }) => questions.map((one) => [keyOf(one), { ...this.#document(one), asked }]));
    const notes = readings.flatMap(({ notes: own, sentences }) => own.map((note) => tell({ sentences }, note)));
    return [replies[0].status, new Map(named), new Set(notes)];
  }

  /** A document with the names of its question in the language of the page. */
  #document(one) {
    return read(documentIn(this.survey, one));
  }

  /** The documents of all questions over a range of periods. */
  async reading(epochs) {
    const replies = await this.#ask("estimates", { epochs, about: this.state.about, post: "none", consistent: this.state.post });
    return new Map(replies.flatMap(({ series: [{ questions }] }) => questions.map((one) => [keyOf(one), this.#document(one)])));
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
      this.#choose();
      for (const panel of this.panels) panel.update(found.get(panel.key));
      for (const panel of this.panels) if (panel.stratum) panel.update(found.get(panel.key)); // now all ends of the scale are known
      this.#offerControls();
    } catch (error) {
      this.#version = null;
      this.#error.textContent = `${tell({}, error.message)} ${say("board.old")}`;
    }
  }

  /** All periods, given those that were asked for. */
  #merge(changed, epochs) {
    if (!changed) return epochs;
    const others = this.#epochs.filter(({ epoch }) => epoch < changed[0] || epoch > changed.at(-1));
    return [...others, ...epochs].sort((a, b) => a.epoch - b.epoch);
  }

  #show(status) {
    const { terms } = this.survey;
    this.#offerEpochs(status.epochs);
    const latest = this.state.first === LATEST;
    const [first, last] = latest ? [this.#newest, this.#newest] : [this.state.first, this.state.last];
    const chosen = status.epochs.filter(({ epoch }) => (first === "" || epoch >= first) && (last === "" || epoch <= last));
    this.#chosen = chosen;
    const n = chosen.reduce((sum, one) => sum + one.n, 0);
    update(this.#answers, h("b", {}, count(n)), ` ${say(this.#several ? "board.reports.word" : "board.answers.word", { n })} `, this.#live);
    this.#period.textContent = chosen.length ? period(terms.epochs, chosen[0].epoch, chosen.at(-1).epoch) : say("board.period.none");
    this.#well.textContent = wellness(status);
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
    const same = `deniable estimate ${this.survey.fingerprint} --combined --from ${ROOT.replace(/\/$/, "")}${level === 0.95 ? "" : ` --level ${level}`}`;
    update(this.#campaign, campaignCard(this.survey, reading, same, this.#go));
  }

  /** What the service says that the intervals allow for. */
  #warn(notes) {
    update(this.#note, [...notes].map((note) => h("p", { class: "card warn" }, note)));
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
    download(`${panel.name}.csv`, await this.working(this.#api.text(`${this.#base}/estimates.csv`, query)));
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
