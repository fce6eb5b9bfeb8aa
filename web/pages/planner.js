/**
 * The planner, a part of the survey builder: how many answers, which epsilon, how many people; two of them and a wish give
 * the rest.
 */

import { Api } from "./api.js";
import { lines } from "./charts.js";
import { command, h, newId, show, table, update } from "./dom.js";
import { count, decimal, factor, fraction, percent, plural, quantity, short } from "./format.js";
import { say } from "./words.js";

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
  if (more < 1.0005) {
    const [own, fewer] = [option.report_bytes, chosen.report_bytes];
    const cost = own > fewer ? `${plural(own, "byte")} a report instead of ${count(fewer)}` : "more work elsewhere";
    return `the smallest interval; ${cost}`;
  }
  if (more <= 1.02) return "within 2 % of the smallest, no fewer bytes or work";
  return `needs ${more.toFixed(2)} × the people`;
}

const inPercent = (width) => percent(width, 2);
const inUnit = (width, unit) => quantity(Number(width.toPrecision(3)), unit);

/** What an interval is around, and how wide it is, in the question's own terms. */
const FIGURES = {
  shares: { around: "around any share", of: "any share", write: inPercent },
  mean: { around: "around the mean", of: "the mean", write: inUnit },
  distribution: {
    around: "around the median, if all numbers are equally common",
    of: "the median",
    write: inUnit,
  },
  ranges: {
    around: "around the share of a typical range, if all numbers are equally common",
    of: "the share of a typical range",
    write: inPercent,
  },
  rectangles: {
    around: "around the share of a typical rectangle, if all numbers are equally common",
    of: "the share of a typical rectangle",
    write: inPercent,
  },
  pairs: {
    around: "around the share of any combination of two parts",
    of: "the share of any combination",
    write: inPercent,
  },
  triples: {
    around: "around the share of any combination of three parts",
    of: "the share of any combination",
    write: inPercent,
  },
  strata: {
    around: "around the figure of a typical stratum, if all strata are equally large",
    of: "the figure of a typical stratum",
    write: (width, unit, { positions }) => (positions ? inUnit(width, unit) : inPercent(width)),
  },
  places: {
    around: "around the share of a typical rectangle of cells, if all cells are equally common",
    of: "the share of a typical rectangle",
    write: inPercent,
  },
  items: { around: "around the share of any item", of: "the share of any item", write: inPercent },
  keys: { around: "around the share of any key", of: "the share of any key", write: inPercent },
  found: { around: "around the share of what is found", of: "the share of what is found", write: inPercent },
  attributes: {
    around: "of its range around the figure of any part",
    of: "the figure of any part, of its range",
    write: inPercent,
  },
};

/** The figure that intervals are about, if it is not the worst case: what it is around, and of. */
function named(figure) {
  const known = { zero: "an answer that nobody gave", total: "an answer on average, if all are equally common" };
  const share = known[figure] ?? `an answer of ${percent(Number(figure), 2)}`;
  return { around: `around ${share}`, of: share };
}

/** What the columns of the table of all protocols mean. */
function legendOf({ population }, of) {
  const whom = population
    ? "in the population, the error of asking so many people included"
    : "among those who answer, without the error of asking these people and not others";
  const columns = [
    `The interval is for ${of}, ${whom}`,
    "a visible share stands out when all answers are looked at together",
    "report bytes are those of the randomized answer",
    "× the people is how many more reach the smallest interval",
    "best guess is how often the best guess of one person’s answer is right",
    "leverage is how many honest reports one fake report outweighs",
  ];
  return h("p", { class: "note" }, `${columns.join("; ")}.`);
}

/** The intervals of all protocols against epsilon, with a mark at the choice. */
function curves({ curve, epsilon: planned, unit, reads }, chosen) {
  const series = {};
  for (const { epsilon, half_widths: widths } of curve) {
    for (const [name, width] of Object.entries(widths)) (series[name] ??= []).push([epsilon, width]);
  }
  const words = "Half-width of the interval of each protocol against epsilon";
  return lines(series, {
    title: `${words}; the table above has the numbers at the chosen epsilon`,
    xName: "epsilon",
    yName: unit ? `interval ±, ${unit}` : "interval ±",
    write: unit || ["mean", "distribution"].includes(reads) ? short : undefined,
    mark: [fraction(planned), chosen.half_width],
  });
}

function result(plan, query) {
  const { write, ...usual } = FIGURES[plan.reads] ?? FIGURES.shares;
  const { around, of } = plan.figure === "worst" ? usual : named(plan.figure);
  const wide = (width) => write(width, plan.unit, plan.best);
  const within = wide(plan.within);
  const shares = ["shares", "items", "keys", "found"].includes(plan.reads);
  const chosen = plan.table.find(({ name }) => name === plan.choice);
  const level = `${percent(plan.level, 0)} confidence${plan.population ? "" : ", among those who answer"}`;
  const intervals = `intervals of ± ${within} ${around} at ${level}`;
  const odds = `odds change by at most ${factor(fraction(plan.epsilon))}`;
  const answer = {
    within: ["An interval of ", h("b", {}, `± ${within}`), ` or less ${around}, at ${level}.`],
    n: [h("b", {}, plural(plan.n, "person", "people")), ` for ${intervals}.`],
    epsilon: ["Epsilon ", h("b", {}, decimal(plan.epsilon)), ` for ${intervals}: ${odds}.`],
  }[plan.solved];
  const tile = (value, words) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, words));
  const sorted = [...plan.table].sort((a, b) => a.half_width - b.half_width);
  const visible = ({ visible: share }) => (share === null ? (shares ? "none" : "–") : percent(share, 2));
  const rows = sorted.map((one) => [
    one.name,
    wide(one.half_width),
    visible(one),
    count(one.report_bytes),
    reason(one, sorted[0].half_width, chosen),
    one.attack === null ? "–" : percent(one.attack, one.attack < 0.01 ? 2 : 1),
    one.leverage === null ? "–" : short(one.leverage),
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
        tile(`± ${within}`, `interval of ${of}${plan.figure === "worst" ? ", at most" : ""}`),
        shares ? tile(visible(chosen), plan.reads === "found" ? "smallest share that is found, nine times out of ten" : "smallest visible share") : null,
        tile(plural(chosen.report_bytes, "byte"), `of randomized answer, ${chosen.report_bytes + 24} sent in all`),
        tile(`× ${factor(fraction(plan.epsilon))}`, "the most that odds change"),
        tile(count(plan.n), plan.n === 1 ? "person answers" : "people answer"),
      ),
      h("p", {}, h("button", { type: "button", class: "second", onclick: () => use(planned) }, say("new.use"))),
      h("p", { class: "note" }, "The same from the command line:"),
      command(cli(query)),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "All protocols"),
      content,
      legendOf(plan, of),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, `The interval ± against epsilon, for ${plural(plan.n, "person", "people")}`),
      curves(plan, chosen),
    ),
  ];
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function cli({ categories, at_most: most, discover, number, unit, read, record, places, epsilon, people, within, objective, level, about }) {
  return [
    "deniable plan",
    categories ? `--categories ${categories}` : number || record || places || discover ? "" : "--text",
    most ? `--at-most ${most}` : "",
    discover ? `--discover ${discover}` : "",
    number ? `--number=${number}` : "",
    unit ? `--unit ${quoted(unit)}` : "",
    read ? `--read ${read}` : "",
    record ? `--record ${quoted(record)}` : "",
    places ? `--places ${places}` : "",
    epsilon ? `--epsilon ${epsilon}` : "",
    people ? `--people ${people}` : "",
    within ? `--within ${within}` : "",
    objective ? `--objective ${objective}` : "",
    Number(level) === 0.95 ? "" : `--level ${level}`,
    about === "respondents" ? "--respondents" : "",
  ].filter(Boolean).join(" ");
}

// -- the page ------------------------------------------------------------------------------------------------------

const fields = {};
const place = h("div", {});
const said = h("p", { role: "status", class: "hidden" }); // the answer alone: nobody wants to hear the whole table again
let [solved, latest] = ["within", 0];
let [use, planned] = [() => undefined, null];

function field(name, words, help, attributes) {
  const id = newId(name);
  const input = h("input", { id, "aria-describedby": `${id}-help`, autocomplete: "off", size: 10, oninput: soon, ...attributes });
  fields[name] = { input, element: h("div", {}, h("label", { for: id }, words), input, h("span", { class: "note", id: `${id}-help` }, help)) };
  return fields[name].element;
}

const text = (name) => fields[name].input.value.trim().replace(",", ".");
const kind = () => fields.kind.input.value;

const NUMBER = ["low", "high", "unit"];
const number = () => ({ number: `${text("low")}..${text("high")}`, unit: fields.unit.input.value.trim() });
const several = () => ({ categories: text("categories"), at_most: text("most") });
const record = () => ({ record: JSON.stringify(parts(fields.parts.input.value)) });

/** What can be asked for: the fields that say more about it, and how they become a query. */
const KINDS = {
  list: { words: "one of a list", fields: ["categories"], query: () => ({ categories: text("categories") }) },
  several: { words: "several of a list", fields: ["categories", "most"], query: several },
  keys: {
    words: "several of a list, with a number each",
    fields: ["categories", "most", ...NUMBER],
    query: () => ({ ...several(), ...number() }),
  },
  text: { words: "open text, counted for a list of texts", fields: [], query: () => ({}) },
  discover: { words: "open text, to find the common ones", fields: ["bytes"], query: () => ({ discover: text("bytes") }) },
  bits: { words: "an identifier, to find the common ones", fields: ["bits"], query: () => ({ discover: `${text("bits")}bits` }) },
  number: { words: "a number (its mean)", fields: NUMBER, query: number },
  shape: { words: "a number (its distribution)", fields: NUMBER, query: () => ({ ...number(), read: "distribution" }) },
  ranges: { words: "a number (shares of ranges)", fields: NUMBER, query: () => ({ ...number(), read: "ranges" }) },
  record: { words: "a record, one part per report", fields: ["parts"], query: record },
  pairs: {
    words: "a record, two parts per report (tables)",
    fields: ["parts"],
    query: () => ({ ...record(), read: "pairs" }),
  },
  strata: {
    words: "an answer by private strata (the last part is the answer)",
    fields: ["parts"],
    query: () => ({ ...record(), read: "strata" }),
  },
  plane: {
    words: "two numbers (shares of rectangles)",
    fields: ["parts"],
    query: () => ({ ...record(), read: "rectangles" }),
  },
  places: {
    words: "a place on a grid (epsilon of one cell side)",
    fields: ["columns", "rows"],
    query: () => ({ places: `${text("columns")}x${text("rows")}` }),
  },
};

/** The parts of a record from lines such as "smoke: yes, no", "town: 50" and "sleep: 0..24 hours". */
function parts(lines) {
  const found = {};
  for (const line of lines.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, name, rest] = line.match(/^([^:]+):(.*)$/) ?? [];
    if (name === undefined) throw new Error("write one part per line, its name, a colon and its answers");
    const [, low, high, unit] = rest.match(/^\s*(-?[\d.]+?)\.\.(-?[\d.]+)\s*(.*)$/) ?? [];
    const size = rest.match(/^\s*(\d+)\s*$/)?.[1];
    if (low !== undefined) found[name.trim()] = { number: { low: Number(low), high: Number(high), unit: unit.trim() } };
    else if (size) found[name.trim()] = { low: 1, high: Number(size) };
    else found[name.trim()] = rest.split(",").map((label) => label.trim()).filter(Boolean);
  }
  return found;
}

/** Whether the figure is a number in its unit, and not a share, which is written in percent. */
function isQuantity() {
  if (kind() !== "strata") return kind() === "number" || kind() === "shape";
  const answer = Object.values(parts(fields.parts.input.value)).at(-1);
  return "number" in answer || answer.high > 32; // of few whole numbers the shares are read
}

/** What protocols are compared by: the usual figure, another one, or a share in percent. Shares of answers have more than others. */
const OBJECTIVES = { "": "as asked", worst: "any share", zero: "rare answers", share: "a certain share", total: "all answers on average" };
const OF_SHARES = ["share", "total"];

function objective() {
  const { value } = fields.objective.input;
  return value === "share" ? Number((text("share") / 100).toPrecision(9)) : value || null;
}

function query() {
  const asked = { ...KINDS[kind()].query(), level: text("level") / 100, about: fields.about.input.value, objective: objective() };
  const unit = isQuantity() ? 1 : 100;
  for (const name of ["epsilon", "people", "within"]) if (name !== solved) asked[name] = name === "within" ? text(name) / unit : text(name);
  return asked;
}

/** What the field of the interval is called, and what it is around; of other kinds it is any share. */
const INTERVALS = {
  number: ["Interval ±", "around the mean, in its unit"],
  shape: ["Interval ±", "around the median, in its unit"],
  ranges: ["Interval ± (percent)", "around the share of a typical range"],
  record: ["Interval ± (percent)", "of the range of any part"],
  pairs: ["Interval ± (percent)", "around the share of any combination"],
  strata: ["Interval ±", "around the shares of a stratum, in percent, or around its mean, in its unit"],
  plane: ["Interval ± (percent)", "around the share of a typical rectangle"],
  places: ["Interval ± (percent)", "around the share of a typical rectangle"],
  several: ["Interval ± (percent)", "around the share of any item"],
  keys: ["Interval ± (percent)", "around the share of any key"],
  discover: ["Interval ± (percent)", "around the share of what is found"],
  bits: ["Interval ± (percent)", "around the share of what is found"],
};

/** Whether the kind of answers has such an objective. */
function hasObjective(name) {
  if (!OF_SHARES.includes(name)) return true;
  return kind() === "list" || (kind() === "several" && name === "share");
}

/** Which fields there are, for what is asked and looked for. */
function arrange() {
  for (const name of ["epsilon", "people", "within"]) fields[name].element.hidden = name === solved;
  const used = KINDS[kind()].fields;
  for (const one of Object.values(KINDS).flatMap(({ fields: own }) => own)) fields[one].element.hidden = !used.includes(one);
  for (const option of fields.objective.input.options) option.disabled = option.hidden = !hasObjective(option.value);
  if (fields.objective.input.selectedOptions[0].disabled) fields.objective.input.value = "";
  fields.share.element.hidden = fields.objective.input.value !== "share";
  const [label, help] = INTERVALS[kind()] ?? ["Interval ± (percent)", "around any share"];
  fields.within.element.querySelector("label").textContent = label;
  fields.within.element.querySelector(".note").textContent = help;
}

async function run() {
  const own = ++latest;
  arrange();
  try {
    const asked = query();
    const plan = await api.json("v1/plan", { ...asked, within: asked.within ? String(Number(asked.within.toPrecision(12))) : null });
    if (own !== latest) return;
    planned = plan;
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

const kindId = newId("kind");
const aboutId = newId("about");
const partsId = newId("parts");
const objectiveId = newId("objective");
const kinds = Object.entries(KINDS).map(([name, { words }]) => h("option", { value: name }, words));
fields.kind = { input: h("select", { id: kindId, onchange: soon }, kinds) };
const partsInput = h("textarea", { id: partsId, rows: 4, cols: 30, "aria-describedby": `${partsId}-help`, oninput: soon });
partsInput.value = "smoke: yes, no\ntown: 50\nsleep: 0..24 hours";
const partsHelp = "one per line: a list, how many answers, or a range for a mean";
fields.parts = {
  input: partsInput,
  element: h(
    "div",
    { class: "wide" },
    h("label", { for: partsId }, "Parts"),
    partsInput,
    h("span", { class: "note", id: `${partsId}-help` }, partsHelp),
  ),
};
const choice = (id, options) =>
  h("select", { id, onchange: soon }, Object.entries(options).map(([value, words]) => h("option", { value }, words)));
fields.about = { input: choice(aboutId, { population: "everybody", respondents: "those who answer" }) };
fields.objective = { input: choice(objectiveId, OBJECTIVES) };
const described = (id, words, input, help) =>
  h("div", {}, h("label", { for: id }, words), input, h("span", { class: "note" }, help));
const solvable = ([name, words]) => {
  const radio = h("input", { type: "radio", name: "solve", checked: name === solved, onchange: choose(name) });
  return h("label", { class: "choice" }, radio, words);
};
const form = h(
  "div",
  {},
  h(
    "form",
    { class: "card", novalidate: true, onsubmit: (event) => (event.preventDefault(), run()) },
    h(
      "fieldset",
      {},
      h("legend", {}, "What do you want to know?"),
      h("div", { class: "row" }, Object.entries(QUESTIONS).map(solvable)),
    ),
    h(
      "div",
      { class: "controls" },
      h("div", {}, h("label", { for: kindId }, "An answer is"), fields.kind.input),
      field("categories", "Possible answers", "from 2 on", { type: "number", min: 2, value: 10, inputmode: "numeric" }),
      field("most", "At most", "so many of them are reported", { type: "number", min: 1, value: 3, inputmode: "numeric" }),
      field("bytes", "Bytes", "of the longest text that is told whole", { type: "number", min: 4, max: 128, value: 12, inputmode: "numeric" }),
      field("bits", "Bits", "of an identifier", { type: "number", min: 2, max: 1024, value: 64, inputmode: "numeric" }),
      field("low", "From", "the smallest number", { type: "text", value: 0, inputmode: "decimal" }),
      field("high", "To", "the largest number", { type: "text", value: 24, inputmode: "decimal" }),
      field("unit", "Unit", "may be empty", { type: "text", value: "hours" }),
      fields.parts.element,
      field("columns", "Columns", "from west to east", { type: "number", min: 2, max: 2048, value: 16, inputmode: "numeric" }),
      field("rows", "Rows", "from south to north", { type: "number", min: 2, max: 2048, value: 12, inputmode: "numeric" }),
      field("epsilon", "Epsilon", "of one answer; 1 is a common choice", { type: "text", value: 1, inputmode: "decimal" }),
      field("people", "People", "who will answer", { type: "number", min: 1, value: 10000, inputmode: "numeric" }),
      field("within", "Interval ± (percent)", "around any share", { type: "number", min: 0, step: "any", value: 1, inputmode: "decimal" }),
      described(aboutId, "Intervals are about", fields.about.input, "everybody: those asked are a sample"),
      described(
        objectiveId,
        "Best for",
        fields.objective.input,
        "as asked: any share with a given interval, else rare answers",
      ),
      field("share", "Share (percent)", "of the answer that matters", { type: "number", min: 0, max: 100, step: "any", value: 10, inputmode: "decimal" }),
      field("level", "Confidence (percent)", "of the interval", { type: "number", min: 1, max: 99.999, step: "any", value: 95, inputmode: "decimal" }),
    ),
  ),
  said,
  place,
);

/** The planner; `take(plan)` puts its epsilon and its number of people into the survey. */
export function planner(take) {
  use = take;
  run();
  return [
    h("h1", {}, "Planner"),
    h("p", {}, "Privacy costs exactness, and people buy it back. Say two of the three; the third follows."),
    form,
  ];
}
