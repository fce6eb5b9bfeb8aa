/** Numbers, times and labels in words. */

/** A share as a percentage with so many digits as its error makes sense of. */
export function percent(share, digits = 1) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  return `${(100 * share).toFixed(digits)}\u00a0%`.replace("-", "−");
}

/** Digits after the point such that a percentage tells errors of this size apart. */
export function digitsFor(error) {
  if (!(error > 0)) return 1;
  return Math.min(4, Math.max(1, Math.ceil(-Math.log10(100 * error)) + 1));
}

export const count = (n) => Math.round(n).toLocaleString("en");

/** "a", "a/b" as a number. */
export function fraction(text) {
  const [top, bottom = "1"] = String(text).split("/");
  return Number(top) / Number(bottom);
}

/** An exact number as people write it, if that is short. */
export function decimal(text) {
  const value = fraction(text);
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : String(text);
}

/** e^epsilon, rounded up: a promise is never better than the truth. */
export function factor(epsilon) {
  const value = Math.exp(epsilon);
  if (value >= 1e6) {
    const tens = epsilon / Math.LN10; // e^epsilon itself may be too large for a float
    const power = Math.floor(tens);
    const raised = String(power).replace(/./g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return `${(Math.ceil(10 ** (tens - power + 1) - 1e-9) / 10).toFixed(1)} × 10${raised}`;
  }
  const step = value < 10 ? 100 : value < 1000 ? 10 : 1;
  return (Math.ceil(value * step - 1e-9) / step).toLocaleString("en", { maximumFractionDigits: 2 });
}

/** How sure anybody can become at most who found two cases equally likely before: r / (1 + r), rounded up as well. */
export const surest = (epsilon) => percent(Math.ceil(1000 / (1 + Math.exp(-epsilon)) - 1e-9) / 1000);

/** A number of about three digits. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 1e-4) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

const DAY = 86400;
const day = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);
const time = (seconds) => new Date(1000 * seconds).toISOString().slice(11, 16);

/** Seconds since 1970 as a date in UTC, with the time of day unless it is midnight. */
export const moment = (seconds) => (seconds % DAY ? `${day(seconds)} ${time(seconds)}` : day(seconds));

/** When the epochs from `first` to `last` are: a day, the first and the last day, or from when to when. */
export function period({ origin, seconds }, first, last = first) {
  const [start, end] = [origin + first * seconds, origin + (last + 1) * seconds];
  if (start % DAY || end % DAY) {
    const until = day(start) === day(end) ? time(end) : `${day(end)} ${time(end)}`;
    return `${day(start)} ${time(start)} to ${until}`;
  }
  return end - start === DAY ? day(start) : `${day(start)} to ${day(end - DAY)}`;
}

/** A length of time in the largest unit that it is a whole number of. */
export function duration(seconds) {
  const [unit, name] = [[DAY, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([size]) => seconds % size === 0);
  return plural(seconds / unit, name);
}

/** A category as people read it; large integers are written {"integer": "..."} in a spec. */
export function label(value) {
  if (value === true) return "yes (true)";
  if (value === false) return "no (false)";
  if (value && typeof value === "object" && "integer" in value) return value.integer;
  return String(value);
}

/** A number with its unit, in about six digits. */
export function quantity(value, unit = "") {
  const digits = Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 12, useGrouping: "min2" });
  return `${digits.replace("-", "−")}${unit && `\u00a0${unit}`}`;
}

/** A number in so many digits as its error makes sense of. */
export function measured(value, error, unit = "") {
  if (!Number.isFinite(value)) return "–";
  const digits = error > 0 ? Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(error)))) : 6;
  return quantity(Number(value.toFixed(digits)), unit);
}

/** An answer as its respondent gave it. */
export function answerText(domain, value) {
  if (domain.columns) return domain.columns.map(({ name, domain: own }) => `${name}: ${answerText(own, value[name])}`).join("; ");
  if (domain.numbers) return Object.entries(value).map(([key, x]) => `${key}: ${quantity(x, domain.numbers.unit)}`).join("; ") || "nothing";
  if (domain.items) return value.map(label).join(", ") || "none of them";
  return domain.unit ? `${label(value)} ${domain.unit}` : label(value);
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
