/** Numbers, times and labels in words. */

import { date, duration as durationWord, figure, locale, say, text } from "./words.js";

/** A number with the language's minus; from right to left it needs a mark before it, which `Intl` writes, too. */
const minus = (digits) => digits.replace(/\u200e?-/, say("number.minus"));

/** A share as a percentage with so many digits as its error makes sense of. */
export function percent(share, digits = 1) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const digit = (100 * share).toFixed(digits).replace(/^-([0.]*)$/, "$1"); // a zero has no sign
  return minus(say("percent.line", { n: figure(digit, false) }));
}

/** Enough decimals for two digits of an error: the rule of every form of a result, in Python as well. */
export function decimals(error) {
  if (!(error > 0) || !Number.isFinite(error)) return 4;
  return Math.min(12, Math.max(0, 1 - Number(error.toExponential().split("e")[1])));
}

/** A number with so many decimals, halves away from zero. */
export function rounded(value, digits) {
  return minus(text(figure(value.toFixed(digits))));
}

/** The same rule for a share that is written as a percentage. */
export const digitsFor = (error) => Math.max(0, decimals(error) - 2);

export const count = (n) => text(n);

/** "a", "a/b" as a number. */
export function fraction(exact) {
  const [top, bottom = "1"] = String(exact).split("/");
  return Number(top) / Number(bottom);
}

/** An exact number as people write it, if that is short. */
export function decimal(exact) {
  const value = fraction(exact);
  return Number.isFinite(value) ? text(figure(Number(value.toPrecision(6)), false)) : String(exact);
}

/** e^epsilon, rounded up: a promise is never better than the truth. */
export function factor(epsilon) {
  const value = Math.exp(epsilon);
  if (value >= 1e6) {
    const tens = epsilon / Math.LN10; // e^epsilon itself may be too large for a float
    const power = Math.floor(tens);
    const raised = String(power).replace(/./g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return say("number.power", { n: figure((Math.ceil(10 ** (tens - power + 1) - 1e-9) / 10).toFixed(1)), power: raised });
  }
  const step = value < 10 ? 100 : value < 1000 ? 10 : 1;
  return text(figure(Number((Math.ceil(value * step - 1e-9) / step).toFixed(2))));
}

/** How sure anybody can become at most who found two cases equally likely before: r / (1 + r), rounded up as well. */
export const surest = (epsilon) => percent(Math.ceil(1000 / (1 + Math.exp(-epsilon)) - 1e-9) / 1000);

/** A number of about three digits. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return text(value);
  return text(figure(size < 1e-4 ? value.toExponential(1) : Number(value.toPrecision(3)), false));
}

const DAY = 86400;
const time = (seconds) => new Date(1000 * seconds).toISOString().slice(11, 16);
const dayAndTime = (seconds) => say("date.time", { date: date(seconds), time: time(seconds) });

/** Seconds since 1970 as a date in UTC, with the time of day unless it is midnight. */
export const moment = (seconds) => (seconds % DAY ? dayAndTime(seconds) : date(seconds));

/** When the epochs from `first` to `last` are: a day, the first and the last day, or from when to when. */
export function period({ origin, seconds }, first, last = first) {
  const [start, end] = [origin + first * seconds, origin + (last + 1) * seconds];
  if (start % DAY || end % DAY) {
    const until = date(start) === date(end) ? time(end) : dayAndTime(end);
    return say("range", { from: dayAndTime(start), to: until });
  }
  return end - start === DAY ? date(start) : say("range", { from: date(start), to: date(end - DAY) });
}

/** A length of time in the largest unit that it is a whole number of. */
export const duration = (seconds) => text(durationWord(seconds));

/** A category as people read it; large integers are written {"integer": "..."} in a spec. */
export function label(value) {
  if (value === true) return say("label.true");
  if (value === false) return say("label.false");
  if (value && typeof value === "object" && "integer" in value) return value.integer;
  return String(value);
}

/** A number with its unit, in about six digits. */
export function quantity(value, unit = "") {
  const digits = Number(value.toPrecision(6)).toLocaleString(locale(), { maximumFractionDigits: 12, useGrouping: "min2" });
  return `${minus(digits)}${unit && `\u00a0${unit}`}`;
}

/** A number in so many digits as its error makes sense of. */
export function measured(value, error, unit = "") {
  if (!Number.isFinite(value)) return "–";
  return `${rounded(value, decimals(error))}${unit && `\u00a0${unit}`}`;
}

/** An answer as its respondent gave it. */
export function answerText(domain, value) {
  if (domain.columns) return domain.columns.map(({ name, domain: own }) => `${name}: ${answerText(own, value[name])}`).join("; ");
  if (domain.numbers) return Object.entries(value).map(([key, x]) => `${key}: ${quantity(x, domain.numbers.unit)}`).join("; ") || say("answer.nothing");
  if (domain.items) return value.map(label).join(", ") || say("answer.none");
  return domain.unit ? `${label(value)} ${domain.unit}` : label(value);
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
