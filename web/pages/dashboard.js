/** The analyst's page: sign in, choose a survey, look at findings that change as answers come in. */

import { Survey } from "../deniable.js";
import { ROOT } from "./api.js";
import { Board } from "./board.js";
import { phase } from "./cards.js";
import { focusOn, h, show } from "./dom.js";
import { tell } from "./finding.js";
import { decimal } from "./format.js";
import { languageChoice, sayFrame } from "./language.js";
import { signIn } from "./signin.js";
import { preferred, say, speak } from "./words.js";

const CHECKED_TOKEN = "v1/surveys/"; // any survey's status tells whether a token is good

const main = document.querySelector("main");
let [api, board] = [null, null];

const pinned = () => /\/dashboard\/([^/]+)$/.exec(location.pathname)?.[1] ?? null;
const chosen = () => new URL(location.href).searchParams.get("lang");

/** An address of the dashboard, in the language that was chosen. */
const address = (path) => `${ROOT}${path}${chosen() ? `?lang=${chosen()}` : ""}`;

async function open(fingerprint) {
  board?.stop();
  board = null;
  show(main, h("p", { class: "note", role: "status" }, say("board.loading")));
  try {
    const survey = await Survey.fetch(ROOT, fingerprint, undefined, { toAnswer: false });
    board = new Board(main, api, survey, go);
    await board.start();
    return;
  } catch (error) {
    show(main, h("section", { class: "card warn", role: "alert" }, h("h1", {}, say("board.cannot")), h("p", {}, tell({}, error.message))));
  }
  title();
}

/** What was clicked is gone: go on from the new title. */
const title = () => focusOn(main.querySelector("h1"));

function go(event, fingerprint) {
  event.preventDefault(); // a new page would forget the token
  history.pushState(null, "", address(`dashboard/${fingerprint}`));
  open(fingerprint);
}

function choose(surveys) {
  document.title = say("page.dashboard");
  const seconds = (text) => Date.parse(text) / 1000;
  const link = (fingerprint, words) =>
    h("a", { href: `${ROOT}dashboard/${fingerprint}`, onclick: (event) => go(event, fingerprint) }, words);
  const facts = ({ owner, state, opens, expires, epsilon, replaced_by: next, round, rounds }) => [
    owner,
    phase(state, { opens: seconds(opens), expires: seconds(expires) }),
    say("field.epsilon", { epsilon: decimal(epsilon) }),
    ...(round ? [say("board.round.of", { round, rounds })] : []),
    ...(next ? [say("board.replaced", { next: next.slice(0, 12) })] : []),
  ];
  const entry = (survey) =>
    h(
      "section",
      { class: "card" },
      h("h2", {}, link(survey.fingerprint, survey.name)),
      h("p", {}, facts(survey).join(" · ")),
      h("code", { class: "note" }, survey.fingerprint),
    );
  // All rounds of a campaign are one entry, whose title leads to the last round.
  const known = new Map(surveys.map((one) => [one.fingerprint, one]));
  const later = new Set(surveys.map(({ next_round: after }) => after).filter((after) => known.has(after)));
  const chain = (one) => (known.has(one.next_round) ? [one, ...chain(known.get(one.next_round))] : [one]);
  const chains = surveys.filter(({ fingerprint }) => !later.has(fingerprint)).map(chain);
  const links = (rounds) =>
    rounds.map(({ fingerprint, round, state }) => h("li", {}, link(fingerprint, say("board.round", { round })), `, ${say(`board.state.${state}`)}`));
  const whole = (rounds) => {
    const card = entry(rounds.at(-1));
    if (rounds.length > 1) card.append(h("ul", { "aria-label": say("board.rounds.list") }, links(rounds)));
    return card;
  };
  const order = ["collecting", "waiting", "over", "closed"];
  const place = (rounds) => order.indexOf(rounds.at(-1).state);
  const sorted = chains.sort((a, b) => place(a) - place(b) || a[0].name.localeCompare(b[0].name));
  show(main, h("h1", {}, say("page.dashboard")), sorted.length ? sorted.map(whole) : h("p", {}, say("board.none")));
  title();
}

/** Tokens are looked at first: who is told that there is no such survey has a good one. */
function unknown(error) {
  if (error.status !== 404) throw error;
  return null;
}

function nowhere() {
  return h(
    "section",
    { class: "card warn", role: "alert" },
    h("h1", {}, say("board.nowhere")),
    h("p", {}, say("board.nowhere.text")),
    h("p", { class: "row" }, h("a", { href: ROOT }, say("board.nowhere.all")), h("a", { href: `${ROOT}dashboard`, onclick: leave }, say("page.dashboard"))),
  );
}

function leave(event) {
  event.preventDefault();
  history.pushState(null, "", address("dashboard"));
  route();
}

async function enter(signed) {
  const surveys = await signed.surveys();
  const probe = pinned() ?? surveys[0]?.fingerprint;
  const known = probe ? await signed.json(`${CHECKED_TOKEN}${probe}/status`, { epochs: "0" }).catch(unknown) : surveys;
  api = signed;
  if (known) return route(surveys);
  show(main, nowhere());
  return title();
}

async function route(known = null) {
  const fingerprint = pinned();
  if (fingerprint) await open(fingerprint);
  else choose(known ?? (await api.surveys()));
}

/** Everything in the language that is spoken now; the address keeps what was shown. */
async function begin() {
  sayFrame();
  if (api) return route();
  document.title = say("page.dashboard");
  show(main, h("h1", {}, say("page.dashboard")), h("p", {}, say("board.intro")), signIn(enter));
  return main.querySelector("input").focus();
}

async function change(language) {
  await speak(language);
  const here = new URL(location.href);
  here.searchParams.set("lang", language);
  history.replaceState(null, "", here);
  await begin();
}

addEventListener("popstate", () => api && location.hash !== "#main" && route()); // that is the way past the header
await speak(preferred(chosen(), ...navigator.languages));
document.querySelector("header.top > div").append(languageChoice(change));
begin();
