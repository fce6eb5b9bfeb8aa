/**
 * The pages /new and /plan: build a survey from templates, see what it promises and how exact it will be, and publish it. The
 * draft is the file that `deniable survey new` takes, and the service makes surveys of it by the same code.
 */

import { Survey } from "../deniable.js";
import { Api, ROOT } from "./api.js";
import { command, download, focusOn, h, newId, show, table } from "./dom.js";
import { choice, field, idFrom, put, TEMPLATES, templateOf, translation, typed } from "./drafting.js";
import { percent, quantity } from "./format.js";
import { planner } from "./planner.js";
import { riskCard } from "./risk.js";
import { qrCode } from "./qr.js";
import { direction, joined, language, LANGUAGES, preferred, say, speak, text, word } from "./words.js";

await speak(preferred(new URL(location.href).searchParams.get("lang"), ...navigator.languages));
Object.assign(document.documentElement, { lang: language(), dir: direction() });

const KEPT = "deniable-draft"; // of this tab: a reload keeps what was written
const SOON = 400; // milliseconds after the last key
const JSON_TYPE = { "Content-Type": "application/json" };

const api = new Api();
const main = document.querySelector("main");
const fresh = () => ({ name: "", owner: "", purpose: "", days: 30, people: 1000, epsilon: "1", questions: [] });

let draft = kept() ?? fresh();
let [made, survey, latest, timer] = [null, null, 0, null];
let published = []; // surveys that this one may replace
const templates = new WeakMap(); // question -> the template that it was made from
const named = new WeakSet(draft.questions); // questions whose id stays, whatever their text becomes
const precision = new Map(); // question -> where its expected precision is shown

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(draft));
  } catch {
    // A page without storage forgets the draft when it is reloaded.
  }
}

const sentence = (message) => `${message[0].toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;

// -- what is written -------------------------------------------------------------------------------------------------

const write = (key, value) => {
  put(draft, key, value);
  soon();
};

// -- languages: the texts of a draft in others, as the draft has them ------------------------------------------------

const others = () => Object.entries(draft.translations ?? {});

/** What the translation into a language has for a question. */
const textsOf = (block, entry) => ((block.questions ??= {})[entry.id] ??= {});

/** A question has another id, or none any more: its translations follow. */
function rename(before, after) {
  for (const [, { questions = {} }] of others()) {
    if (after !== null && before in questions) questions[after] = questions[before];
    if (after !== before) delete questions[before];
  }
}

/** The same field in each of the other languages, next to its own; `at(block)` is the object that has the text. */
function inOthers(words, key, at, attributes = {}) {
  return others().map(([code, block]) => {
    const change = (own) => {
      put(at(block), key, own.trim());
      soon();
    };
    return field(say("new.in", { what: words, name: LANGUAGES[code] ?? code }), at(block)[key], change, { lang: code, dir: "auto", ...attributes });
  });
}

const sideBySide = (...fields) => h("div", { class: "stack sides" }, fields);

function languages() {
  const add = (code) => {
    draft.language ??= language();
    (draft.translations ??= {})[code] = {};
    render();
  };
  const remove = (code) => () => {
    delete draft.translations[code];
    if (!others().length) for (const key of ["language", "translations"]) delete draft[key];
    render();
  };
  const left = Object.entries(LANGUAGES).filter(([code]) => code !== (draft.language ?? language()) && !draft.translations?.[code]);
  const gone = (code) => h("button", { type: "button", class: "small", onclick: remove(code) }, say("new.language.remove", { name: LANGUAGES[code] ?? code }));
  return h(
    "div",
    { class: "controls" },
    choice(say("new.language.add"), "", [["", say("new.language.none")], ...left], add),
    others().map(([code]) => gone(code)),
  );
}

const replacing = h("div", { class: "controls" });

/** A choice among the surveys that are published here; the list may come later than the page. */
function offerReplaced() {
  const known = published.map(({ fingerprint, name }) => [fingerprint, `${name} (${fingerprint.slice(0, 8)})`]);
  if (draft.replaces && !known.some(([own]) => own === draft.replaces)) known.push([draft.replaces, draft.replaces.slice(0, 12)]);
  const options = [["", say("new.replaces.none")], ...known];
  show(replacing, choice(say("new.replaces"), draft.replaces ?? "", options, (own) => write("replaces", own)));
}

function settings() {
  const input = (key, read, attributes) => field(say(`new.field.${key}`), draft[key], (own) => write(key, read(own)), attributes);
  const plain = (key, attributes = {}) => input(key, (own) => own.trim(), attributes);
  const number = (key) => input(key, typed, { inputmode: "decimal", size: 8, help: say(`new.field.${key}.help`) });
  offerReplaced();
  return h(
    "section",
    { class: "card" },
    h("h2", {}, say("new.about")),
    sideBySide(plain("name"), inOthers(say("new.field.name"), "name", (block) => block)),
    h("div", { class: "stack" }, plain("owner", { help: say("new.field.owner.help") })),
    sideBySide(plain("purpose", { help: say("new.field.purpose.help") }), inOthers(say("new.field.purpose"), "purpose", (block) => block)),
    h("div", { class: "controls" }, number("people"), number("epsilon"), number("days"), number("min_reports")),
    field(say("new.results"), draft.results === "public", (on) => write("results", on ? "public" : null), { type: "checkbox", help: say("new.results.help") }),
    languages(),
    replacing,
  );
}

function question(entry, i) {
  const taken = () => draft.questions.filter((one) => one !== entry).map(({ id }) => id);
  const template = templates.get(entry) ?? templateOf(entry.answers);
  templates.set(entry, template);
  const editing = h("div", { class: "controls" });
  const edit = () => show(editing, TEMPLATES[template].fields(entry.answers, set));
  const set = (answers, again = false) => {
    entry.answers = answers;
    if (again || template === "yesno") edit();
    soon();
  };
  const title = (own) => {
    entry.text = own;
    if (!named.has(entry)) call((identity.querySelector("input").value = idFrom(own, taken())));
    soon();
  };
  const call = (id) => {
    rename(entry.id, id);
    entry.id = id;
  };
  const given = (own) => {
    named.add(entry);
    call(own.trim());
    soon();
  };
  const level = (own) => {
    put(entry, "epsilon", own.trim());
    soon();
  };
  const identity = field(say("new.id"), entry.id, given, { help: say("new.id.help") });
  const move = (step) => () => {
    draft.questions.splice(i + step, 0, ...draft.questions.splice(i, 1));
    render();
  };
  const remove = () => {
    draft.questions.splice(i, 1);
    rename(entry.id, null);
    render();
    focusOn(main.querySelector("h1"));
  };
  const button = (words, act, attributes = {}) => h("button", { type: "button", class: "small", onclick: act, ...attributes }, words);
  precision.set(entry, h("p", { class: "expected", role: "status" }));
  edit();
  return h(
    "section",
    { class: "card", "aria-label": say("new.question", { n: i + 1 }) },
    h("h2", {}, `${i + 1}. ${say(`new.template.${template}`)}`),
    sideBySide(field(say("new.text.of"), entry.text, title), inOthers(say("new.text.of"), "text", (block) => textsOf(block, entry))),
    editing,
    others().map(([code, block]) => {
      const [name, spoken] = [LANGUAGES[code] ?? code, { lang: code, dir: "auto" }];
      return h("div", { class: "controls" }, translation(template, entry, textsOf(block, entry), soon, name, spoken));
    }),
    precision.get(entry),
    h(
      "details",
      {},
      h("summary", {}, say("new.more")),
      h("div", { class: "controls" }, identity, field(say("new.epsilon.own"), entry.epsilon, level, { size: 8 })),
      h(
        "p",
        { class: "row" },
        i > 0 && button(say("new.up"), move(-1)),
        i < draft.questions.length - 1 && button(say("new.down"), move(1)),
        button(say("new.remove"), remove),
      ),
    ),
  );
}

/** A button per template. */
function adding() {
  const add = (name) => () => {
    const entry = { id: idFrom("", draft.questions.map(({ id }) => id)), text: "", answers: TEMPLATES[name].make() };
    templates.set(entry, name);
    draft.questions.push(entry);
    render();
    main.querySelector(".questions > section:last-of-type input").focus();
  };
  const names = Object.keys(TEMPLATES).filter((name) => name !== "other");
  return h(
    "section",
    { class: "card", "aria-label": say("new.add") },
    h("h2", {}, say("new.add")),
    h("p", { class: "row" }, names.map((name) => h("button", { type: "button", class: "second", onclick: add(name) }, say(`new.template.${name}`)))),
  );
}

function files() {
  const open = h("input", { type: "file", accept: ".json,application/json", class: "hidden", "aria-label": say("new.import") });
  open.addEventListener("change", async () => {
    const [file] = open.files;
    if (!file) return;
    try {
      const content = JSON.parse(await file.text());
      if (!Array.isArray(content?.questions) || content.kind) throw new Error();
      draft = content;
      draft.questions.forEach((entry) => named.add(entry));
      render();
    } catch {
      tell(say("new.import.wrong"));
    }
  });
  const save = () => download(`${idFrom(draft.name, [])}.json`, `${JSON.stringify(draft, null, 2)}\n`, "application/json");
  const empty = () => {
    draft = fresh();
    render();
  };
  const button = (words, act) => h("button", { type: "button", class: "small", onclick: act }, words);
  return h("p", { class: "row" }, button(say("new.import"), () => open.click()), button(say("new.export"), save), button(say("new.empty"), empty), open);
}

// -- what the service makes of it ------------------------------------------------------------------------------------

const told = h("p", { class: "card", role: "status" });
const risk = h("div", {});
const changes = h("div", {});
const frame = h("iframe", { class: "phone", title: say("new.preview") });
const preview = h("details", { class: "card" }, h("summary", {}, say("new.preview")), h("p", { class: "note" }, say("new.preview.note")), frame);
const publishing = h("div", {});

function tell(message, wrong = true) {
  told.hidden = !message;
  told.classList.toggle("warn", wrong);
  told.textContent = message;
}

/** What a draft needs before the service is asked. */
function missing() {
  const needed = ["name", "owner", "purpose"].filter((key) => !draft[key]);
  if (!draft.questions.length) needed.push("question");
  else if (draft.questions.some((entry) => !entry.text?.trim())) needed.push("text");
  return needed.map((key) => word(`new.missing.${key}`));
}

function figure({ id, people, half_width: reach, scale, unit, visible, protocol }) {
  const [, part] = id.split(".");
  const facts = { n: people, protocol, reach: scale === "unit" ? quantity(Number(reach?.toPrecision(3)), unit) : percent(reach, reach < 0.01 ? 2 : 1) };
  const said = reach === null ? say("new.expected.none") : say("new.expected", facts);
  return `${part ? `${part}: ` : ""}${said}${visible === null ? "" : ` ${say("new.expected.visible", { share: percent(visible, 1) })}`}`;
}

function expect() {
  for (const [entry, place] of precision) {
    const own = made?.expected.filter(({ id }) => id.split(".")[0] === entry.id) ?? [];
    show(place, own.map((one) => h("span", {}, figure(one))));
  }
}

function compare() {
  const order = ["weaker", "neutral", "stronger"];
  const seen = made.changes.filter(({ what }) => what !== "replaces").sort((a, b) => order.indexOf(a.privacy) - order.indexOf(b.privacy));
  const rows = seen.map(({ what, before, after, privacy }) => [what, say(`changes.${privacy}`), before, after]);
  if (!rows.length) return null;
  const head = ["what", "privacy", "before", "now"].map((name) => say(`changes.column.${name}`));
  const less = seen.some(({ privacy }) => privacy === "weaker");
  const told = h("p", {}, say(less ? "new.changes.weaker" : "new.changes.fine"));
  return h("section", { class: `card ${less ? "warn" : ""}` }, h("h2", {}, say("new.changes")), told, table(say("changes.table"), head, rows));
}

function rehearse() {
  const { fingerprint, survey: bytes } = made;
  frame.contentWindow?.postMessage({ fingerprint, survey: bytes, language: language() }, location.origin);
}

async function run() {
  const own = ++latest;
  keep();
  const needed = missing();
  try {
    if (needed.length) throw new Error(say("new.missing", { what: text(joined(needed)) }));
    const found = await api.json("v1/drafts", {}, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(draft) });
    const read = await Survey.fromBytes(new TextEncoder().encode(found.survey), found.fingerprint);
    if (own !== latest) return;
    [made, survey] = [found, read];
    tell(say("new.made", { n: survey.terms.minReports }), false);
    show(risk, riskCard(survey));
    show(changes, compare());
    if (preview.open) rehearse();
  } catch (error) {
    if (own !== latest) return;
    [made, survey] = [null, null];
    tell(sentence(error.message), needed.length === 0);
    show(risk);
    show(changes);
  }
  preview.hidden = made === null;
  show(publishing, made && publish());
  expect();
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(run, SOON);
}

// -- publishing ------------------------------------------------------------------------------------------------------

function publish() {
  const id = newId("token");
  const message = h("p", { role: "alert", class: "error" });
  const token = h("input", { id, type: "password", autocomplete: "off", spellcheck: "false", placeholder: "dn_…", "aria-describedby": `${id}-help` });
  const weaker = made.changes.some(({ privacy }) => privacy === "weaker");
  let agreed = false;
  const send = async (event) => {
    event.preventDefault();
    const [own, what] = [made, survey];
    message.textContent = "";
    try {
      await new Api(token.value.trim()).json("v1/surveys", { weaker_privacy: agreed || null }, { method: "POST", headers: JSON_TYPE, body: own.survey });
      done(own, what);
    } catch (error) {
      message.textContent = sentence(error.message);
      token.focus();
    }
  };
  return h(
    "form",
    { class: "card", onsubmit: send, novalidate: true },
    h("h2", {}, say("new.publish")),
    h("p", { class: "note" }, say("new.publish.note")),
    h("label", { for: id }, say("new.token")),
    token,
    h("p", { class: "note", id: `${id}-help` }, say("new.token.help"), " ", h("code", {}, "deniable store token create --role admin")),
    weaker && field(say("new.weaker"), false, (on) => (agreed = on), { type: "checkbox" }),
    message,
    h("button", { type: "submit" }, say("new.publish.now")),
  );
}

/** The survey is published: where it is, for people and for pages. */
function done({ fingerprint }, { name, terms }) {
  const address = `${ROOT}s/${fingerprint}`;
  const link = (href, words) => h("a", { href }, words);
  const script = `<script type="module" src="${ROOT}web/current/pages/embed.js"></script>`;
  const element = `<deniable-survey fingerprint="${fingerprint}"></deniable-survey>`;
  show(
    main,
    h("h1", {}, say("new.done", { name })),
    h(
      "div",
      { class: "builder" },
      h(
        "section",
        { class: "card fine" },
        h("h2", {}, say("new.link")),
        h("p", {}, link(address, address)),
        h("p", { class: "note" }, say("new.link.note")),
        h("h2", {}, say("new.embed")),
        command(`${script}\n${element}`),
        h(
          "p",
          { class: "row" },
          terms.results === "public" && link(`${ROOT}r/${fingerprint}`, say("new.results.link")),
          link(`${ROOT}dashboard/${fingerprint}`, say("page.dashboard")),
          link(`${ROOT}audit/${fingerprint}`, say("public.audit")),
          link(`${ROOT}new`, say("new.back")),
        ),
      ),
      h("figure", { class: "card" }, qrCode(address, say("new.qr", { name })), h("figcaption", { class: "note" }, say("new.qr", { name }))),
    ),
  );
  focusOn(main.querySelector("h1"));
}

// -- the page --------------------------------------------------------------------------------------------------------

function render() {
  precision.clear();
  show(
    main,
    h("h1", {}, say("new.title")),
    h("p", {}, say("new.intro")),
    h(
      "div",
      { class: "builder" },
      h("div", {}, files(), settings(), h("div", { class: "questions" }, draft.questions.map(question)), adding()),
      h("aside", { "aria-label": say("new.check") }, told, risk, preview, changes, publishing),
    ),
  );
  run();
}

/** Epsilon and number of people of a plan go into the survey. */
function take(plan) {
  Object.assign(draft, { epsilon: plan.epsilon, people: plan.n });
  history.pushState(null, "", `${ROOT}new`);
  route();
}

function route() {
  const planning = location.pathname.endsWith("/plan");
  document.title = say(planning ? "page.planner" : "new.title");
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (planning) show(main, planner(take));
  else render();
}

for (const element of document.querySelectorAll("[data-word]")) element.textContent = say(element.dataset.word);
for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", say(element.dataset.label));
addEventListener("message", ({ origin, source }) => {
  if (origin === location.origin && source === frame.contentWindow && made) rehearse();
}); // the preview is ready
preview.addEventListener("toggle", () => preview.open && (frame.src ? rehearse() : (frame.src = `${ROOT}new/preview`)));
document.querySelector("nav").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!/\/(new|plan)$/.test(link?.pathname ?? "")) return;
  event.preventDefault(); // what was written stays
  history.pushState(null, "", link.href);
  route();
});
addEventListener("popstate", route);
route();
published = await api.surveys().catch(() => []);
offerReplaced();
