/** One question for readers: what was found in a sentence, and the one picture that shows it. */

import { bars, heatMap, histogram, ranges } from "./charts.js";
import { consistent, quantiles } from "./document.js";
import { h } from "./dom.js";
import { decimals, label, percent } from "./format.js";
import { figure, say, word } from "./words.js";

const MOST = 25; // answers that are drawn; the table has all

const hundred = (share) => figure(Math.round(100 * Math.min(1, Math.max(0, share))));
const number = (value, error) => figure(value.toFixed(decimals(error)));

function inUnit(what, { value, low, high, unit }) {
  const [about, from, to] = [value, low, high].map((x) => number(x, (high - low) / 2));
  const measured = unit ? word("public.finding.unit", { about, unit }) : about;
  return say(`public.finding.${what}`, { about: measured, from, to });
}

/** The finding in one sentence; null where the picture has to speak. */
export function finding({ kind, rows, n, winner, headline, section }) {
  if (!n || !rows.length) return null;
  if (kind === "mean" && rows.length === 1 && rows[0].value !== null) {
    return inUnit("mean", rows[0]);
  }
  const [median] = section("figures") ? quantiles(section("figures"), [0.5]) : [-1];
  if (median >= 0) return inUnit("median", section("figures").rows[median]);
  if (!winner || kind !== "shares") return headline?.text ?? null;
  const [first, second] = [winner.label, winner.runner_up].map((name) => rows.find((row) => label(row.label) === label(name)));
  if (!first) return null;
  const { value, low, high } = consistent(first);
  if (high - low >= 1) return say("public.finding.nothing");
  const share = { label: label(first.label), about: hundred(value), from: hundred(low), to: hundred(high) };
  if (winner.certain) return say("public.finding.leader", share);
  return second ? say("public.finding.close", { first: label(first.label), second: label(second.label) }) : null;
}

/** The picture of a document: bars, a histogram, a map or points, each figure with its interval. */
export function drawn(question) {
  const { picture, rows, text, section } = question;
  const title = say("public.picture", { text });
  if (!question.n || !rows.length) return null;
  if (picture === "histogram") return histogram(section("bins").rows, { title, unit: section("bins").unit });
  if (picture === "map") return heatMap(rows, { title, names: ["", ""], interval: percent(question.level, 0) });
  if (picture === "bars" && !rows[0].unit) {
    const known = rows.map((row) => ({ label: label(row.label), own: consistent(row) }));
    const most = known.length > MOST ? known.sort((a, b) => b.own.value - a.own.value).slice(0, MOST) : known;
    return bars(most.map(({ label: name, own }) => ({ label: name, bars: [own] })), { title });
  }
  if (picture !== "points") return null; // a table says more
  const units = [...new Set(rows.map(({ unit }) => unit ?? ""))];
  const named = (unit) => rows.filter((row) => (row.unit ?? "") === unit).map((row) => ({ ...row, label: label(row.label) }));
  return h("div", {}, units.map((unit) => ranges(named(unit), { title, unit })));
}
