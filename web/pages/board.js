/** One survey on the dashboard: what is shown of it, and the numbers as they change. */

import { ROOT } from "./api.js";
import { health, phase, specCard, tile } from "./cards.js";
import { Comparison } from "./compare.js";
import { h, newId, show } from "./dom.js";
import { count, decimal, period, plural } from "./format.js";
import { QuestionPanel } from "./panel.js";

const METHODS = {
  "norm-sub": "norm-sub: the nearest distribution",
  power: "power: few common answers, a long tail",
  "base-cut": "base-cut: the common ones among very many",
  norm: "norm: sum one, still unbiased",
  "norm-mul": "norm-mul: keep the ratios",
  clip: "clip: no negative numbers",
};
const PAUSE = 1000;

/** Lives until another survey is opened. */
export class Board {
  state = { first: "", last: "", level: 0.95, at: "once", post: "norm-sub", view: "both", top: 25 };
  #api;
  #place;
  #stop = new AbortController();
  #tiles = h("div", { class: "tiles" });
  #live = h("span", { class: "live" }, "connecting");
  #health = h("div", {});
  #note = h("div", {});
  #error = h("p", { class: "error", role: "alert" });
  #selects = {};
  #loading = null;
  #again = false;

  constructor(place, api, survey) {
    this.#api = api;
    this.#place = place;
    this.survey = survey;
    const many = survey.questions.length > 1;
    this.panels = survey.questions.map((question, i) => new QuestionPanel(this, question, many ? i + 1 : 0));
    this.compare = new Comparison(this);
  }

  get #base() {
    return `v1/surveys/${this.survey.fingerprint}`;
  }

  async start() {
    const { name, terms } = this.survey;
    document.title = `${name}: dashboard`;
    show(
      this.#place,
      h("h1", {}, name),
      h("p", {}, h("b", {}, terms.owner), ` · ${terms.purpose} `, this.#live),
      this.#tiles,
      this.#controls(),
      this.#error,
      this.#note,
      this.panels.map(({ element }) => element),
      this.compare.element,
      h("div", { class: "columns" }, specCard(this.survey), this.#health),
    );
    await this.load();
    const states = (on) => {
      this.#live.classList.toggle("on", on);
      this.#live.textContent = on ? "live" : "not connected: trying again";
      if (on) this.load();
    };
    this.#api.follow(`${this.#base}/stream`, { signal: this.#stop.signal, onevent: () => this.load(), onstate: states });
  }

  stop() {
    this.#stop.abort();
  }

  // -- controls ----------------------------------------------------------------------------------

  #select(name, words, options) {
    const id = newId(name);
    const change = ({ target }) => {
      const known = options.find(([value]) => String(value ?? "") === target.value);
      this.state[name] = known ? known[0] : target.value;
      this.load();
    };
    const select = h("select", { id, onchange: change });
    for (const [value, text] of options) select.append(h("option", { value: value ?? "", selected: value === this.state[name] }, text));
    this.#selects[name] = select;
    return h("div", {}, h("label", { for: id }, words), select);
  }

  #controls() {
    const tops = [10, 25, 100].map((n) => [n, `the ${n} most common`]);
    return h(
      "section",
      { class: "card controls", "aria-label": "What is shown" },
      this.#select("first", "From period (epoch)", [["", "the first"]]),
      this.#select("last", "To period", [["", "the latest"]]),
      this.#select("level", "Confidence", [[0.9, "90 %"], [0.95, "95 %"], [0.99, "99 %"]]),
      this.#select("at", "Intervals hold for", [["once", "all answers at once"], ["each", "each answer by itself"]]),
      this.#select("view", "Estimates", [["both", "unbiased and consistent"], ["raw", "unbiased"], ["consistent", "consistent"]]),
      this.#select("post", "Made consistent by", Object.entries(METHODS)),
      this.#select("top", "Answers", [...tops, [null, "all"]]),
    );
  }

  #offerEpochs(epochs) {
    for (const [name, words] of [["first", "the first"], ["last", "the latest"]]) {
      const select = this.#selects[name];
      if (select.options.length === epochs.length + 1) continue;
      const listed = epochs.map(({ epoch }) => h("option", { value: epoch, selected: String(epoch) === String(this.state[name]) }, `${period(this.survey.terms.epochs, epoch)} (${epoch})`));
      select.replaceChildren(h("option", { value: "" }, words), ...listed);
    }
    this.compare.offer(epochs);
  }

  // -- data --------------------------------------------------------------------------------------

  get #range() {
    const { first, last } = this.state;
    return first === "" && last === "" ? null : `${first}..${last}`;
  }

  /**
   * The confidence of one interval such that all of a question hold together (Bonferroni), as `--simultaneous` has it:
   * among a thousand answers some would stand out by chance, and those are the ones that a sorted list shows first.
   */
  levelOf({ tests }) {
    const { at, level } = this.state;
    return at === "each" ? level : Number((1 - (1 - level) / tests).toPrecision(15));
  }

  /** Readings by question, with the state's options unless others are given. */
  async read(given = {}) {
    const query = { epochs: this.#range, post: "none", ...given };
    const parts = new Map();
    for (const panel of this.panels) {
      const level = this.levelOf(panel);
      if (panel.open) parts.set(panel.id, { level, question: [panel.id], candidates: panel.candidates });
      else parts.set(level, { level, question: [...(parts.get(level)?.question ?? []), panel.id] });
    }
    const replies = await Promise.all([...parts.values()].map((part) => this.#api.json(`${this.#base}/estimates`, { ...query, ...part })));
    const readings = replies.map(({ series }) => series[0]);
    const found = new Map(readings.flatMap(({ questions, notes }) => questions.map((one) => [one.id, { ...one, notes }])));
    return new Map(this.panels.map(({ id }) => [id, found.get(id)]));
  }

  /** Everything anew; while it is on its way, one more time is enough for all who ask. */
  load() {
    if (this.#loading) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#load().finally(async () => {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      this.#loading = null;
      if (this.#again) {
        this.#again = false;
        this.load();
      }
    });
    return this.#loading;
  }

  async #load() {
    const { post } = this.state;
    try {
      const [status, raw, consistent] = await Promise.all([this.#api.json(`${this.#base}/status`), this.read(), this.read({ post })]);
      this.#error.textContent = "";
      this.#show(status);
      this.#warn(new Set([...raw.values()].flatMap(({ notes }) => notes)));
      for (const panel of this.panels) {
        const [own, other] = [raw.get(panel.id), consistent.get(panel.id)];
        panel.update(own, other.answers.length === own.answers.length ? other : own);
      }
    } catch (error) {
      this.#error.textContent = `${error.message}.`;
    }
  }

  #show(status) {
    const { terms } = this.survey;
    this.#offerEpochs(status.epochs);
    const { first, last } = this.state;
    const chosen = status.epochs.filter(({ epoch }) => (first === "" || epoch >= first) && (last === "" || epoch <= last));
    const n = chosen.reduce((sum, one) => sum + one.n, 0);
    show(
      this.#tiles,
      tile(count(n), n === 1 ? "answer" : "answers"),
      tile(decimal(this.survey.epsilon), "epsilon of a submission"),
      this.survey.lifetimeEpsilon === null ? tile("no bound", "on what all reports of a device tell together") : tile(decimal(this.survey.lifetimeEpsilon), "lifetime epsilon"),
      tile(plural(chosen.length, "period"), chosen.length ? period(terms.epochs, chosen[0].epoch, chosen.at(-1).epoch) : "with answers"),
      tile(...phase(status.state, terms)),
    );
    show(this.#health, health(this.survey, status));
  }

  /** What the service says that the intervals leave out. */
  #warn(notes) {
    show(this.#note, [...notes].map((note) => h("p", { class: "card warn" }, `${note[0].toUpperCase()}${note.slice(1)}.`)));
  }

  /** One reading an epoch of the range, for one question. */
  async perEpoch(panel) {
    const { id, candidates } = panel;
    const query = { epochs: this.#range, level: this.levelOf(panel), per: "epoch", question: id, candidates };
    const { series } = await this.#api.json(`${this.#base}/estimates`, query);
    return series.map(({ first, questions }) => ({ epoch: first, question: questions[0] }));
  }

  // -- the same elsewhere ------------------------------------------------------------------------

  async csv(panel, more = {}) {
    const { post, view } = this.state;
    const query = { epochs: this.#range, level: this.levelOf(panel), post: view === "consistent" ? post : "none", question: panel.id, candidates: panel.candidates, ...more };
    panel.save(await this.#api.text(`${this.#base}/estimates.csv`, query));
  }

  /** The command that prints the same numbers. */
  cli(panel, given = {}) {
    const { view, level, at } = this.state;
    const { epochs, post } = { epochs: this.#range, post: view === "consistent" ? this.state.post : "none", ...given };
    return [
      `deniable estimate ${this.survey.fingerprint}`,
      `--from ${ROOT.replace(/\/$/, "")}`,
      `--question ${panel.id}`,
      epochs ? `--epochs ${epochs}` : "",
      level === 0.95 ? "" : `--level ${level}`,
      at === "once" ? "--simultaneous" : "",
      post === "none" ? "" : `--consistent ${post}`,
      panel.open ? "--candidates words.txt" : "",
    ].filter(Boolean).join(" ");
  }
}
