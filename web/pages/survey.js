/**
 * Answering one survey. Everything that matters happens in the SDK's `Client`: it checks the survey against the pinned
 * fingerprint, keeps the ledger, randomizes and sends. This file asks and explains.
 */

import { BrowserStore, Client, DeniableError } from "../deniable.js";
import { Api } from "./api.js";
import { differences, notOpen, shut, successor } from "./closing.js";
import { bdi, focusOn, h, show, update } from "./dom.js";
import { draftBox, filledIn, forget, refill } from "./drafts.js";
import { moment, period } from "./format.js";
import { history, leaving } from "./history.js";
import { languageChoice } from "./language.js";
import { life } from "./life.js";
import { pager } from "./pages.js";
import { questionField } from "./questions.js";
import { incomplete, reasonOf, refusal, titleOf } from "./refusals.js";
import { rehearse } from "./rehearsal.js";
import { riskCard } from "./risk.js";
import { spent, terms } from "./terms.js";
import { inLanguage } from "./translated.js";
import { direction, duration, language, preferred, rich, say, speak } from "./words.js";

const RETRY_SECONDS = 15;
const FIELD_SECONDS = 15; // that a field takes to be read and answered

/** About how long the questions take, in whole minutes. */
function minutesOf({ questions }) {
  const fields = questions.reduce((sum, { protocol: { domain } }) => sum + (domain.columns?.length ?? 1), 0);
  return duration(60 * Math.max(1, Math.round((fields * FIELD_SECONDS) / 60)));
}

/** Why nothing is asked any more, in the words of whoever is asked. */
function usedUp({ owner, group, related }, submissions) {
  if (!related) return say("limit.unrelated", { owner, group });
  const again = submissions.some(({ state }) => state === "withdrawn");
  return `${say("limit", { owner, group })}${again ? ` ${say("limit.withdrawn")}` : ""}`;
}

const PHONE = "(max-width: 36rem)";

class SurveyView {
  #root;
  #client;
  #server;
  #turn = 0;
  #replaced = h("div", {});
  #survey = null;
  #fields = [];
  #life = h("section", { class: "card", tabindex: -1, hidden: true });
  #message = h("div", { role: "status" });
  #said = h("p", { role: "status", class: "hidden" }); // there from the start, or screen readers would not speak it
  #sent = h("div", {});
  #spent = h("span", {});
  #left = new Map(); // epoch -> bytes that left while this page was open; the ledger erases them
  #leaving;
  #promise = h("div", {});
  #terms = h("div", {});
  #lasting = false;
  #agreed = false;
  #shown = null;
  #outcome = null;
  #form = h("div", {});
  #sending = false;
  #options;
  #pager = null;

  /** `options`: `paged` is true or false where the page decides, `compact` leaves out the head, `tell(name, detail)` hears events. */
  constructor(root, client, server, options) {
    this.#root = root;
    this.#server = server;
    this.#client = client;
    this.#options = options;
    this.#label();
  }

  /** What has words from the start. */
  #label() {
    const done = () => {
      this.#left.clear();
      if (this.#survey) forget(this.#survey.fingerprint);
      return this.#survey ? this.refresh() : this.start();
    };
    this.#leaving = leaving(this.#client, () => this.#survey, done);
    this.#life.setAttribute("aria-label", say("life"));
  }

  /** Say everything again, in the language that is spoken now; what was filled in stays. */
  async again() {
    const filled = filledIn(this.#form);
    this.#label();
    this.#life.hidden = true;
    this.#shown = null;
    show(this.#message);
    show(this.#form);
    await this.start();
    refill(this.#form, filled);
  }

  /** Show a refusal, and tell the page around the survey. */
  #refuse(place, error, again = null) {
    this.#options.tell("refused", { kind: error instanceof DeniableError ? error.kind : "other" });
    show(place, refusal(error, again));
  }

  async start() {
    show(this.#root, h("p", { class: "note", role: "status" }, say("page.loading")));
    try {
      this.#survey = inLanguage(await this.#client.survey());
    } catch (error) {
      if (error.kind === "optedOut") {
        this.#leaving.offer(await this.#client.state());
        return show(this.#root, this.#optedOut(), this.#leaving.element);
      }
      return this.#refuse(this.#root, error, error.kind === "network" ? () => this.start() : null);
    }
    if (!this.#survey.terms) {
      return this.#refuse(this.#root, new DeniableError("closed", say("refusal.files")));
    }
    const { name, terms: own } = this.#survey;
    this.#say((await this.#client.state()).persisted === true);
    this.#fields = [];
    this.#outcome = null;
    if (this.#root.parentElement === document.querySelector("main")) document.title = name;
    show(
      this.#root,
      this.#options.compact ? null : this.#head(),
      this.#promise,
      this.#replaced,
      this.#said,
      this.#form,
      this.#life,
      this.#message,
      h(
        "footer",
        { class: "survey" },
        h("p", { class: "soft" }, say("survey.until", { expires: moment(own.expires) })),
        this.#terms,
        this.#sent,
        this.#leaving.element,
      ),
    );
    await this.refresh();
    this.#options.tell("ready", { fingerprint: this.#survey.fingerprint });
    this.#deliverWaiting();
  }

  /** Who asks, how long it takes, and why. */
  #head() {
    const { name, questions, terms: own, spoken } = this.#survey;
    const by = rich("survey.by", { owner: bdi(own.owner), n: questions.length, time: minutesOf(this.#survey) });
    return [h("p", { class: "soft" }, by), h("h1", {}, bdi(name, spoken)), h("p", { class: "soft" }, bdi(own.purpose, spoken))];
  }

  /** The promise, with a note where the browser may forget what was sent. */
  #say(lasting) {
    this.#lasting = lasting;
    update(this.#promise, riskCard(this.#survey, lasting)); // what is open stays so
    update(this.#terms, terms(this.#survey, this.#spent, lasting, this.#server));
  }

  async #persist() {
    const { longitudinal, campaign } = this.#survey.terms;
    if (this.#lasting || (longitudinal.epochs === 1 && !campaign)) return;
    if ((await this.#client.persist()) === true) this.#say(true);
  }

  #optedOut() {
    const back = async () => {
      await this.#client.optIn();
      await this.start();
      focusOn(this.#root.querySelector("h1"));
    };
    return h(
      "section",
      { class: "card" },
      h("h2", {}, say("out.title")),
      h("p", {}, say("out.text")),
      h("button", { type: "button", class: "second", onclick: back }, say("out.back")),
    );
  }

  /** Show what the ledger says now. Who was at something that is gone is taken to what stands in its place. */
  async refresh() {
    const held = this.#root.getRootNode().activeElement;
    const own = held !== null && this.#root.contains(held);
    await this.#look();
    if (own && !(held.isConnected && held.checkVisibility())) focusOn(this.#form.querySelector("h2"));
  }

  async #look() {
    const turn = ++this.#turn;
    const submissions = await this.#client.history();
    const { optedOut, remembers, persisted } = await this.#client.state();
    const gone = optedOut && !submissions.length; // who is out has no survey either
    const budget = gone ? null : await this.#client.budget();
    const taken = gone ? null : await this.#client.otherRound();
    if (turn !== this.#turn) return; // a later look shows more
    // All of it is known before any is shown, so that the page never contradicts itself.
    const entries = submissions.map((one) => ({ bytes: this.#left.get(one.epoch), ...one }));
    const known = entries.map(({ epoch, state, bytes }) => `${epoch} ${state} ${Boolean(bytes)}`).join();
    if (known !== this.#shown) show(this.#sent, history(this.#survey, entries)); // what is folded out stays so
    this.#shown = known;
    if (budget) this.#spent.textContent = spent(budget, persisted === true);
    this.#leaving.offer({ optedOut, remembers });
    if (optedOut) {
      this.#fields = [];
      this.#life.hidden = true;
      if (this.#outcome !== "out") show(this.#form, this.#optedOut());
      this.#outcome = "out";
      this.#said.textContent = say("out.said"); // what was said before is no longer true
      return;
    }
    const { epochs, longitudinal } = this.#survey.terms;
    const now = Date.now() / 1000;
    const answered = submissions.find(({ epoch }) => epoch === epochs.at(now));
    const early = notOpen(this.#survey.terms, now);
    if (early) return this.#closed(...early);
    if (answered) return this.#answered(answered, submissions.length < longitudinal.epochs && epochs.at(now) < epochs.last);
    if (submissions.length >= longitudinal.epochs) {
      return this.#closed(say("answered.all"), say("answered.all.text"));
    }
    if (taken) {
      const { round, rounds } = this.#survey.terms.campaign;
      return this.#closed(say("answered.round", { round: taken }), say("answered.round.text", { round, rounds }));
    }
    if (!budget.enough) return this.#closed(titleOf("budget"), usedUp(budget, submissions));
    if (this.#fields.length) return;
    const changes = this.#agreed ? [] : await this.#client.changes();
    const listed = await this.#listed();
    if (turn !== this.#turn || this.#shut(listed)) return;
    if (changes.length) return this.#compare(changes);
    this.#ask();
    this.#persist();
  }

  /** What is different from the survey that was answered here before; nothing is asked until it was read. */
  #compare(changes) {
    if (this.#outcome === "changed") return;
    this.#outcome = "changed";
    const agree = async () => {
      this.#agreed = true;
      await this.refresh();
      focusOn(this.#form.querySelector("legend, label, h2"));
    };
    show(this.#form, differences(changes, agree));
  }

  #listed() {
    return new Api(null, this.#server).listed(this.#survey.fingerprint);
  }

  /** Whether the service takes no report now, after saying so. */
  #shut(listed) {
    show(this.#replaced, successor(this.#server, listed));
    const why = shut(this.#survey.terms, listed, Date.now() / 1000);
    if (why) this.#closed(...why);
    return why !== null;
  }

  #closed(title, text, kind = "") {
    this.#fields = [];
    this.#life.hidden = true;
    const outcome = `${title}. ${text}`;
    if (outcome === this.#outcome) return;
    this.#outcome = outcome;
    this.#said.textContent = outcome;
    const { terms: own, fingerprint } = this.#survey;
    const results = own.results === "public" && h("p", {}, h("a", { href: `${this.#server}r/${fingerprint}` }, say("public.link")));
    show(this.#form, h("section", { class: `card ${kind}` }, h("h2", {}, title), h("p", {}, text), results));
  }

  #answered({ epoch, state }, again) {
    const { epochs, keeps, stages, relay, collectors } = this.#survey.terms;
    const next = again ? say("answered.next", { period: period(epochs, epoch + 1) }) : "";
    if (state === "queued") {
      show(this.#message);
      const waits = collectors.length ? "answered.waits.shared" : relay ? "answered.waits.relay" : "answered.waits.server";
      return this.#closed(say("answered.waiting"), say(waits), "warn");
    }
    const outcome = state === "sent" && keeps ? (stages ? "drawn" : "repeated") : state;
    const shown = state === "sent" && this.#left.has(epoch) ? ` ${say(relay ? "answered.sealed" : "answered.left")}` : "";
    const title = state !== "sent" ? outcome : relay ? "relayed" : collectors.length ? "shared" : outcome;
    this.#closed(say(`outcome.${title}`), `${say(`outcome.${outcome}.text`)}${shown} ${next}`, state === "sent" ? "fine" : "warn");
  }

  #ask() {
    this.#outcome = null;
    const many = this.#survey.questions.length > 1;
    const stale = () => (this.#life.hidden = true);
    const shared = new Map(); // strata, which all questions have
    this.#fields = this.#survey.questions.map((question, i) => questionField(question, many ? i + 1 : 0, stale, shared, this.#survey.spoken));
    const submit = (event) => {
      event.preventDefault();
      if (!this.#pager.forward()) this.#send(); // Enter in a field of an earlier page goes to the next
    };
    const look = h("button", { type: "button", class: "quiet", onclick: () => this.#rehearse(true) }, say("page.look"));
    const last = h("div", { class: "row" }, h("button", { type: "submit" }, say("page.send")), look);
    const paged = this.#options.paged ?? matchMedia(PHONE).matches;
    const check = (one) => {
      const fault = one.fault();
      one.complain(fault);
      if (fault) one.focus();
      return fault === null;
    };
    this.#pager = pager(this.#fields, last, check, paged);
    const form = h(
      "form",
      { novalidate: true, autocomplete: "off", onsubmit: submit },
      this.#pager.head,
      this.#fields.map(({ element }) => element),
      this.#pager.element,
      last,
    );
    show(this.#form, form);
    form.append(draftBox(form, this.#survey.fingerprint));
  }

  /** The answers, or null after saying which are missing. */
  #values() {
    const values = {};
    let first = null;
    for (const field of this.#fields) {
      const value = field.value();
      let problem = field.fault();
      if (!problem) {
        try {
          this.#survey.questions.find(({ id }) => id === field.id).protocol.encode(value);
        } catch (error) {
          problem = reasonOf(error);
        }
      }
      field.complain(problem);
      if (problem) first ??= field;
      values[field.id] = value;
    }
    if (first) this.#pager.go(first);
    first?.focus();
    return first ? null : values;
  }

  #rehearse(focus) {
    const values = this.#values();
    if (!values) return;
    const { epochs } = this.#survey.terms;
    const drawn = rehearse(this.#survey, epochs.at(Date.now() / 1000), values);
    show(
      this.#life,
      h("h2", {}, say("life")),
      life(this.#survey, values, drawn),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: () => this.#send() }, say("page.send")),
        h("button", { type: "button", class: "second", onclick: () => this.#rehearse(false) }, say("page.throw")),
      ),
    );
    this.#life.hidden = false;
    if (focus) this.#life.focus();
  }

  async #send() {
    const values = this.#values();
    if (!values || this.#sending) return;
    this.#sending = true;
    show(this.#message, h("p", { class: "note" }, say("page.sending")));
    // The ledger is written before the network is touched; while the server is away this shows that the report waits.
    const look = setInterval(() => this.refresh(), 700);
    try {
      if (this.#shut(await this.#listed())) return show(this.#message, h("p", { class: "card warn" }, say("refusal.nothing")));
      const { fresh, epoch, bytes } = await this.#client.answer(values, { acceptChanges: this.#agreed, language: this.#survey.spoken });
      if (fresh) this.#left.set(epoch, bytes);
      forget(this.#survey.fingerprint);
      this.#options.tell("sent", { fingerprint: this.#survey.fingerprint, epoch, fresh });
      show(this.#message, fresh ? null : h("p", { class: "card warn" }, say("answered.before")));
    } catch (error) {
      this.#refuse(this.#message, error);
    } finally {
      clearInterval(look);
      this.#sending = false;
      this.#fields.forEach(({ complain }) => complain(null));
    }
    await this.refresh();
    this.#form.querySelector("h2")?.scrollIntoView?.({ block: "nearest" });
    this.#deliverWaiting();
  }

  /** Reports that waited when the page was closed, or for which six attempts were not enough. */
  async #deliverWaiting() {
    for (;;) {
      const waiting = (await this.#client.history().catch(() => [])).some(({ state }) => state === "queued");
      if (!waiting || this.#sending || !this.#root.isConnected) return;
      await this.#client.deliver().catch(() => undefined);
      await this.refresh();
      await new Promise((resolve) => setTimeout(resolve, 1000 * RETRY_SECONDS));
    }
  }
}

/**
 * Show the survey of this fingerprint in `root`; `server` is where it is collected. `languages` are preferred to those of the
 * browser, and `spoken` is told which language is spoken from now on and its direction. `paged` shows one question at a time or
 * never does, `compact` leaves out the head, `tell(name, detail)` hears "ready", "sent" and "refused", and a preview exchanges
 * `parts` of the client.
 */
export async function mountSurvey(root, { server, fingerprint, languages = [], spoken = () => undefined, parts = {}, ...options }) {
  await speak(preferred(...languages, ...navigator.languages));
  const told = () => spoken(language(), direction());
  const place = h("div", {});
  let view = null;
  const change = async (wanted) => {
    await speak(wanted);
    told();
    await (view ? view.again() : begin());
  };
  const begin = async () => {
    if (!/^[0-9a-f]{64}$/.test(fingerprint)) return show(place, incomplete(fingerprint));
    let client;
    try {
      client = new Client({ server, fingerprint, store: new BrowserStore(), ...parts });
    } catch (error) {
      return show(place, refusal(error));
    }
    view = new SurveyView(place, client, server.replace(/\/*$/, "/"), { tell: () => undefined, ...options });
    return view.start().catch((error) => show(place, refusal(error)));
  };
  told();
  show(root, languageChoice(change), place);
  // Another tab may have answered meanwhile.
  const seen = () => document.visibilityState === "visible" && root.isConnected && view?.refresh().catch(() => undefined);
  document.addEventListener("visibilitychange", seen);
  return begin();
}
