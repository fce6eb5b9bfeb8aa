/** A survey and its results in the language of whoever reads them, whatever those who answered have used. */

import { askedFor } from "./words.js";

/** The survey in the language of the page, or else in one that the browser prefers, or as it was written. */
export function inLanguage(survey) {
  const wanted = [askedFor(), ...(globalThis.navigator?.languages ?? [])];
  const found = wanted.find((one) => one && survey.languageFor(one) !== undefined);
  return found === undefined ? survey : survey.in(found);
}

/** Names and their translations at the same positions: labels, units, and the columns of a record, or the one that is asked for. */
function pairs(own, other, part = null) {
  const labels = [own, own.items ?? {}].flatMap(({ labels: all = [] }, i) => all.map((label, at) => [label, (i ? other.items : other).labels[at]]));
  const columns = (own.columns ?? []).map((column, i) => [column, other.columns[i]]);
  const some = columns.some(([{ name }]) => name === part) ? columns.filter(([{ name }]) => name === part) : columns;
  return [
    ...labels,
    ...[[own.unit, other.unit], [own.numbers?.unit, other.numbers?.unit]].filter(([unit]) => unit),
    ...some.flatMap(([column, shown]) => [[column.name, shown.name], ...pairs(column.domain, shown.domain)]),
  ];
}

/** A function that says the labels, units and parts of a question in the language of the reader. */
export function sayer(survey, id, part = null) {
  const shown = inLanguage(survey);
  const at = survey.questions.findIndex((question) => question.id === id);
  if (shown === survey || at < 0) return (text) => text;
  const names = new Map(pairs(survey.questions[at].protocol.domain, shown.questions[at].protocol.domain, part));
  const joined = (sign) => (text) => text.split(sign).map((one) => names.get(one) ?? one).join(sign);
  return (text) => (typeof text === "string" ? (names.get(text) ?? joined(", ")(joined(" & ")(text))) : text);
}

/** The document of a result, with the names of its question in the language of the reader. */
export function documentIn(survey, document) {
  const said = sayer(survey, document.id, document.part);
  const named = (row) => ({ ...row, label: said(row.label), ...("unit" in row ? { unit: said(row.unit) } : {}) });
  const sections = document.sections.map((section) => ({
    ...section,
    ...(section.unit ? { unit: said(section.unit) } : {}),
    rows: section.rows.map(named),
    ...(section.axes ? { axes: section.axes.map(({ name, labels }) => ({ name: said(name), labels: labels.map(said) })) } : {}),
  }));
  const { winner, headline } = document;
  const label = headline?.parameters?.label;
  const first = label === undefined ? headline : { ...headline, parameters: { ...headline.parameters, label: said(label) } };
  return { ...document, sections, headline: first, winner: winner && { ...winner, label: said(winner.label), runner_up: said(winner.runner_up) } };
}
