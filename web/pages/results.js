/** The page /r/{fingerprint}: what a survey found, for everybody, if its terms make the results public. */

import { Api, ROOT } from "./api.js";
import { read } from "./document.js";
import { command, h, show, table } from "./dom.js";
import { finding, nameOf, picture, remarks, tell } from "./finding.js";
import { decimal, moment, percent, period, short } from "./format.js";
import { direction, language, preferred, rich, say, speak } from "./words.js";

const fingerprint = decodeURIComponent(location.pathname.split("/").at(-1));
const main = document.querySelector("main");
const here = `${ROOT}v1/surveys/${fingerprint}/results`;
const seconds = (text) => Date.parse(text) / 1000;
const link = (href, words, attributes = {}) => h("a", { href, target: "_top", rel: "noopener", ...attributes }, words);

const NUMBERS = ["value", "low", "high"];

/** Every figure of a question; the files have all columns. */
function figures(question) {
  const shares = (row) => !row.unit && ["bars", "histogram", "matrix", "map"].includes(question.picture);
  const write = (row) => (x) => (shares(row) ? percent(x) : short(x));
  const rows = question.rows.map((row) => [
    [row.group, nameOf(question, row)].filter(Boolean).join(": "),
    ...NUMBERS.map((name) => row[name]).map(write(row)),
    row.unit ?? "",
  ]);
  const head = ["answer", ...NUMBERS, "unit"].map((name) => say(`public.column.${name}`));
  return h("details", {}, h("summary", {}, say("public.table")), table(say("public.table.of", { text: question.text }), head, rows, { class: "numbers" }));
}

function section(document) {
  const question = read(document);
  const text = question.part ? `${question.text} – ${question.part}` : question.text;
  if (question.message) return h("section", { class: "card", "data-question": question.id }, h("h2", {}, text), h("p", {}, say("public.texts")));
  return h(
    "section",
    { class: "card finding", "data-question": question.id, "aria-label": text },
    h("h2", { class: "headline" }, finding(question)),
    h("p", { class: "soft" }, text),
    picture(question),
    remarks(question),
    figures(question),
  );
}

/** What the figures are and how they were made, with the files. */
function about({ sheet, questions }) {
  const rows = [
    ["owner", sheet.owner],
    ["purpose", sheet.purpose],
    ["open", say("terms.from", { from: moment(seconds(sheet.opens)), to: moment(seconds(sheet.expires)) })],
    ["shown", say("terms.shown", { n: sheet.min_reports })],
    ["epsilon", decimal(sheet.epsilon)],
    ...(sheet.lifetime_epsilon ? [["lifetime", decimal(sheet.lifetime_epsilon)]] : []),
    ["protocols", sheet.questions.map(({ id, protocol, epsilon }) => say("public.protocol", { id, protocol, epsilon: decimal(epsilon) })).join("; ")],
    ["fingerprint", h("code", {}, fingerprint)],
  ];
  const file = (suffix, words) => link(`${here}${suffix}`, words, suffix ? { download: "" } : {});
  const frame = `<iframe src="${ROOT}r/${fingerprint}" title="${sheet.name.replace(/["<>&]/g, "")}" width="100%" height="600"></iframe>`;
  return h(
    "details",
    { class: "card" },
    h("summary", {}, say("public.sheet")),
    h("p", {}, say("public.how")),
    h("dl", { class: "facts" }, rows.map(([name, words]) => [h("dt", {}, say(`public.fact.${name}`)), h("dd", {}, words)])),
    questions.length > 0 && h("p", {}, rich("public.files", { json: file("", "JSON"), csv: file(".csv", "CSV"), arrow: file(".arrow", "Arrow") })),
    h("p", {}, say("public.embed")),
    command(frame),
  );
}

/** The same in the language of the reader, where the survey has it. */
async function translated(found) {
  const { sheet, questions } = found;
  if (sheet.languages.length < 2) return found;
  const [{ Survey }, { documentIn, inLanguage }] = await Promise.all([import("../deniable.js"), import("./translated.js")]);
  const survey = await Survey.fetch(ROOT, fingerprint, undefined, { toAnswer: false });
  const { name, terms, questions: asked } = inLanguage(survey);
  const text = ({ id }) => asked.find((question) => question.id === id).text;
  const documents = questions.map((one) => ({ ...documentIn(survey, one), text: text(one) }));
  return { ...found, sheet: { ...sheet, name, purpose: terms.purpose }, questions: documents };
}

function page(found) {
  const { sheet, state, enough, n, starts, ends, questions, withheld, notes } = found;
  document.title = say("public.title", { name: sheet.name });
  const when = starts && period({ origin: seconds(starts), seconds: seconds(ends) - seconds(starts) }, 0);
  const waiting = h("section", { class: "card" }, h("h2", {}, say("public.few")), h("p", {}, say("public.few.text", { n: sheet.min_reports })));
  show(
    main,
    h("p", { class: "note above" }, sheet.owner),
    h("h1", {}, sheet.name),
    h("p", { class: "note" }, enough ? say("public.answers", { n, when }) : sheet.purpose),
    enough ? questions.map(section) : waiting,
    withheld.length > 0 && h("p", { class: "note" }, say("public.withheld", { names: withheld.join(", ") })),
    notes.map((note) => h("p", { class: "note" }, tell(found, note))),
    about(found),
    h(
      "p",
      { class: "row" },
      state === "collecting" && link(`${ROOT}s/${fingerprint}`, say("public.answer"), { class: "button" }),
      link(`${ROOT}audit/${fingerprint}`, say("public.audit")),
    ),
  );
}

const REASONS = { notPublic: "private", unknownSurvey: "unknown", notFound: "unknown", surveyDeleted: "deleted" };

/** Why nothing is shown, in the words of this page; other reasons are the service's. */
function refused(error) {
  const reason = REASONS[error.kind?.split(":").at(-1)];
  const known = reason && [say(`public.refused.${reason}`), say(`public.refused.${reason}.text`)];
  const [title, text] = known ?? [say("public.cannot"), `${error.message}.`];
  show(main, h("section", { class: "card warn", role: "alert" }, h("h1", {}, title), h("p", {}, text)));
}

await speak(preferred(new URL(location.href).searchParams.get("lang"), ...navigator.languages));
Object.assign(document.documentElement, { lang: language(), dir: direction() });
await new Api().json(`v1/surveys/${fingerprint}/results`).then(translated).then(page).catch(refused);
