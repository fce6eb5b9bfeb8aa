/** The planner: how many answers, which epsilon, how many people; two of them and a wish give the rest. */

import { Api } from "./api.js";
import { lines } from "./charts.js";
import { command, h, newId, show, table, update } from "./dom.js";
import { count, decimal, factor, fraction, percent, plural, short } from "./format.js";

const api = new Api();

const QUESTIONS = {
  within: "How exact will it be?",
  people: "How many people do I need?",
  epsilon: "Which epsilon do I need?",
};

/** Why a protocol is where it is in the table. */
function reason(option, best, chosen) {
  const more = (option.half_width / best) ** 2; // variances fall with the number of people
  if (option.name === chosen.name) return "the choice";
  if (more < 1.0005) return `the smallest interval; ${option.report_bytes > chosen.report_bytes ? `${plural(option.report_bytes, "byte")} a report instead of ${count(chosen.report_bytes)}` : "more work elsewhere"}`;
  if (more <= 1.05) return "within 5 % of the smallest, no fewer bytes or work";
  return `needs ${more.toFixed(2)} × the people`;
}

function result(plan, query) {
  const chosen = plan.table.find(({ name }) => name === plan.choice);
  const level = `${percent(plan.level, 0)} confidence${plan.population ? "" : ", among those who answer"}`;
  const answer = {
    within: ["An interval of ", h("b", {}, `± ${percent(plan.within, 2)}`), ` or less around any share, at ${level}.`],
    n: [h("b", {}, plural(plan.n, "person", "people")), ` for intervals of ± ${percent(plan.within, 2)} at ${level}.`],
    epsilon: ["Epsilon ", h("b", {}, decimal(plan.epsilon)), ` for intervals of ± ${percent(plan.within, 2)} at ${level}: odds change by at most ${factor(fraction(plan.epsilon))}.`],
  }[plan.solved];
  const tile = (value, words) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, words));
  const sorted = [...plan.table].sort((a, b) => a.half_width - b.half_width);
  const rows = sorted.map((one) => [
    one.name,
    percent(one.half_width, 2),
    one.visible === null ? "none" : percent(one.visible, 2),
    count(one.report_bytes),
    reason(one, sorted[0].half_width, chosen),
    one.attack === null ? "–" : percent(one.attack, one.attack < 0.01 ? 2 : 1),
    short(one.leverage),
    count(one.device),
    count(one.server),
    count(one.counters),
  ]);
  const head = ["Protocol", "Interval ±", "Visible share", "Report bytes", "Why", "Best guess", "Leverage", "Random bytes", "Server steps", "Counters"];
  const content = table("All protocols, the smallest interval first", head, rows, { class: "numbers plan" });
  content.querySelectorAll("tbody tr").forEach((row, i) => {
    row.classList.toggle("chosen", sorted[i].name === plan.choice);
  });
  content.querySelectorAll("tr").forEach((row) => row.children[4].classList.add("words"));
  const series = {};
  for (const { epsilon, half_widths: widths } of plan.curve) {
    for (const [name, width] of Object.entries(widths)) (series[name] ??= []).push([epsilon, width]);
  }
  return [
    h(
      "section",
      { class: "card promise", "aria-label": "The plan" },
      h("h2", {}, `Use ${plan.choice}`),
      h("p", { class: "big" }, ...answer),
      h("p", {}, plan.reason),
      h(
        "div",
        { class: "tiles" },
        tile(`± ${percent(plan.within, 2)}`, "interval of any share, at most"),
        tile(chosen.visible === null ? "none" : percent(chosen.visible, 2), "smallest visible share"),
        tile(plural(chosen.report_bytes, "byte"), `of randomized answer, ${chosen.report_bytes + 24} sent in all`),
        tile(`× ${factor(fraction(plan.epsilon))}`, "the most that odds change"),
        tile(count(plan.n), plan.n === 1 ? "person answers" : "people answer"),
      ),
      h("p", { class: "note" }, "The same from the command line:"),
      command(cli(query)),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "All protocols"),
      content,
      h("p", { class: "note" }, `${plan.population ? "The interval is for any share in the population, the error of asking so many people included" : "The interval is for any share among those who answer, without the error of asking these people and not others"}; a visible share stands out when all answers are looked at together; report bytes are those of the randomized answer; × the people is how many more reach the smallest interval; best guess is how often the best guess of one person’s answer is right; leverage is how many honest reports one fake report outweighs.`),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, `The interval ± against epsilon, for ${plural(plan.n, "person", "people")}`),
      lines(series, { title: "Half-width of the interval of each protocol against epsilon; the table above has the numbers at the chosen epsilon", xName: "epsilon", yName: "interval ±", mark: [fraction(plan.epsilon), chosen.half_width] }),
    ),
  ];
}

function cli({ categories, epsilon, people, within, level, about }) {
  return [
    "deniable plan",
    categories ? `--categories ${categories}` : "--text",
    epsilon ? `--epsilon ${epsilon}` : "",
    people ? `--people ${people}` : "",
    within ? `--within ${within}` : "",
    Number(level) === 0.95 ? "" : `--level ${level}`,
    about === "respondents" ? "--respondents" : "",
  ].filter(Boolean).join(" ");
}

// -- the page ------------------------------------------------------------------------------------------------------

const fields = {};
const place = h("div", {});
const said = h("p", { role: "status", class: "hidden" }); // the answer alone: nobody wants to hear the whole table again
let [solved, latest] = ["within", 0];

function field(name, words, help, attributes) {
  const id = newId(name);
  const input = h("input", { id, "aria-describedby": `${id}-help`, autocomplete: "off", size: 10, oninput: soon, ...attributes });
  fields[name] = { input, element: h("div", {}, h("label", { for: id }, words), input, h("span", { class: "note", id: `${id}-help` }, help)) };
  return fields[name].element;
}

function query() {
  const text = (name) => fields[name].input.value.trim().replace(",", ".");
  const asked = { categories: fields.text.input.checked ? "" : text("categories"), level: text("level") / 100, about: fields.about.input.value };
  for (const name of ["epsilon", "people", "within"]) if (name !== solved) asked[name] = name === "within" ? text(name) / 100 : text(name);
  return asked;
}

async function run() {
  const own = ++latest;
  for (const name of ["epsilon", "people", "within"]) fields[name].element.hidden = name === solved;
  fields.categories.input.disabled = fields.text.input.checked;
  const asked = query();
  try {
    const plan = await api.json("v1/plan", { ...asked, within: asked.within ? String(Number(asked.within.toPrecision(12))) : null });
    if (own !== latest) return;
    update(place, result(plan, { ...asked, within: asked.within && Number(asked.within.toPrecision(12)) }));
    said.textContent = `${place.querySelector("h2").textContent}. ${place.querySelector(".big").textContent}`;
  } catch (error) {
    if (own === latest) show(place, h("p", { class: "card warn", role: "alert" }, `${error.message[0].toUpperCase()}${error.message.slice(1)}.`));
  }
}

let timer = null;
function soon() {
  clearTimeout(timer);
  timer = setTimeout(run, 250);
}

const choose = (name) => () => {
  solved = name;
  run();
};

const openText = newId("open");
const aboutId = newId("about");
fields.about = { input: h("select", { id: aboutId, onchange: soon }, h("option", { value: "population" }, "everybody"), h("option", { value: "respondents" }, "those who answer")) };
fields.text = { input: h("input", { id: openText, type: "checkbox", onchange: soon }) };
show(
  document.querySelector("main"),
  h("h1", {}, "Planner"),
  h("p", {}, "Privacy costs exactness, and people buy it back. Say two of the three; the third follows."),
  h(
    "form",
    { class: "card", novalidate: true, onsubmit: (event) => (event.preventDefault(), run()) },
    h(
      "fieldset",
      {},
      h("legend", {}, "What do you want to know?"),
      h("div", { class: "row" }, Object.entries(QUESTIONS).map(([name, words]) => h("label", { class: "choice" }, h("input", { type: "radio", name: "solve", checked: name === solved, onchange: choose(name) }), words))),
    ),
    h(
      "div",
      { class: "controls" },
      field("categories", "Possible answers", "from 2 on", { type: "number", min: 2, value: 10, inputmode: "numeric" }),
      h("div", {}, h("label", { for: openText }, "Open text"), fields.text.input, h("span", { class: "note" }, "any text at all")),
      field("epsilon", "Epsilon", "of one answer; 1 is a common choice", { type: "text", value: 1, inputmode: "decimal" }),
      field("people", "People", "who will answer", { type: "number", min: 1, value: 10000, inputmode: "numeric" }),
      field("within", "Interval ± (percent)", "around any share", { type: "number", min: 0, step: "any", value: 1, inputmode: "decimal" }),
      h("div", {}, h("label", { for: aboutId }, "Intervals are about"), fields.about.input, h("span", { class: "note" }, "everybody: those asked are a sample")),
      field("level", "Confidence (percent)", "of the interval", { type: "number", min: 1, max: 99.999, step: "any", value: 95, inputmode: "decimal" }),
    ),
  ),
  said,
  place,
);
run();
