/**
 * Bars with interval whiskers, in our own SVG. Positions are percentages, so a chart fits any width without a script
 * that watches it, and labels are text that wraps. A bar is grey where its interval contains zero: it shows nothing yet.
 * Shares are drawn and written from 0 to 100 %, whatever the noise has made of an unbiased estimate; the table has it in full.
 * Charts that are to be compared get a common scale (`within`).
 */

import { h, svg } from "./dom.js";
import { digitsFor, measured, percent, quantity, short } from "./format.js";
import { say } from "./words.js";

/** Round numbers that cover low .. high, about `wanted` of them. */
export function ticks(low, high, wanted = 5) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step / 1e6 ? 0 : at);
  return found;
}

/** Whether an interval contains zero. */
export const covers = ({ low, high }) => !(low > 0 || high < 0);

/** Whether an interval says nothing at all about a share. */
export const saysNothing = ({ low, high }) => high - low >= 1;

/** Whether an end of an interval lies outside of what a share, or a difference of shares, can be. */
export const cut = ({ low, high }, signed = false) => low < (signed ? -1 : 0) || high > 1;

function scale(rows, floor, reach, signed, within) {
  const ends = [...within, ...rows.flatMap((row) => row.bars).flatMap(({ value, low, high }) => [value, low - reach, high + reach])];
  const possible = (x) => Math.min(1, Math.max(signed ? -1 : 0, x));
  const known = [...ends, floor ?? 0, 0].filter(Number.isFinite).map(possible);
  let [least, most] = [Math.min(...known), Math.max(...known)];
  if (most - least < 1e-9) [least, most] = [0, 1];
  const room = 0.03 * (most - least);
  const [from, to] = [least < 0 ? Math.max(-1, least - room) : 0, most > 0 ? Math.min(1, most + room) : 0];
  return { from, to, possible, at: (x) => `${((100 * (Math.min(to, Math.max(from, x)) - from)) / (to - from)).toFixed(3)}%` };
}

function line(x1, x2, y1, y2, kind) {
  return svg("line", { x1, x2, y1: `${y1}%`, y2: `${y2}%`, class: kind });
}

/** One bar from zero, its whisker, and how much further forgers could take it. */
function bar({ value, low, high }, { at, from, to, possible }, top, height, reach) {
  if (!Number.isFinite(value)) return [];
  const [left, right] = value < 0 ? [value, 0] : [0, value];
  const width = `${((100 * Math.max(0, Math.min(to, right) - Math.max(from, left))) / (to - from)).toFixed(3)}%`;
  const kind = `bar${covers({ low, high }) ? " unsure" : ""}`;
  const middle = top + height / 2;
  const drawn = [svg("rect", { x: at(left), y: `${top}%`, width, height: `${height}%`, rx: 2, class: kind })];
  if (reach > 0) drawn.push(line(at(low - reach), at(high + reach), middle, middle, "fakes"));
  if (Number.isFinite(low) && Number.isFinite(high)) {
    drawn.push(line(at(low), at(high), middle, middle, "whisker"));
    // An end that was cut off has no mark.
    for (const end of [low, high].filter((x) => x === possible(x))) drawn.push(line(at(end), at(end), middle - height / 4, middle + height / 4, "whisker"));
  }
  return drawn;
}

/**
 * `rows`: { label, bars: [{ value, low, high }] }; `floor` is the smallest share that can be told from none, `reach`
 * how far forgers could move a share, `signed` writes a plus before what is positive, `within` are ends that the scale has at least.
 */
export function bars(rows, { title, floor = null, reach = 0, signed = false, within = [] }) {
  const place = scale(rows, floor, reach, signed, within);
  const marks = ticks(place.from, place.to);
  const grid = () => marks.map((x) => line(at(x), at(x), 0, 100, x === 0 ? "zero" : "grid"));
  const { at } = place;
  const lines = rows.map(({ label, bars: own }) => {
    const drawn = own.map((one) => bar(one, place, 22, 56, reach));
    const limit = floor === null ? [] : [line(at(floor), at(floor), 0, 100, "floor")];
    return h(
      "div",
      { class: "line" },
      h("div", { class: "name" }, label),
      h("div", { class: "value" }, written(own[0], signed)),
      svg("svg", { "aria-hidden": "true" }, grid(), limit, drawn),
    );
  });
  const digits = Math.max(0, -Math.floor(Math.log10(100 * ((marks[1] ?? 1) - (marks[0] ?? 0)) + 1e-12)));
  const axis = svg(
    "svg",
    { class: "axis", "aria-hidden": "true" },
    marks.map((x) => svg("text", { x: at(x), y: 12, "text-anchor": "middle" }, percent(x, digits))),
  );
  return h("div", { class: "chart", role: "img", "aria-label": title }, lines, h("div", { class: "line" }, axis));
}

function written({ value, low, high }, signed) {
  if (!Number.isFinite(value)) return "–";
  if (!signed && saysNothing({ low, high })) {
    return h("small", {}, say(low <= 0 && high >= 1 ? "board.any" : "board.wider"));
  }
  const digits = digitsFor((high - low) / 2);
  const inside = (x) => (signed ? x : Math.min(1, Math.max(0, x)));
  const sign = (x) => `${signed && x > 0 ? "+" : ""}${percent(inside(x), digits)}`;
  return [sign(value), h("small", {}, ` ${say("range", { from: sign(low).replace(/\s?%$/, ""), to: sign(high) })}`)];
}

const spanned = (low, high, stderr) => ({ from: measured(low, stderr), to: measured(high, stderr) });

/**
 * Numbers that are no shares, on one scale in their own unit: `rows` are { label, value, stderr, low, high }. `ends` is
 * what a number can be, where that is known; `reach` how far forgers could move it.
 */
export function ranges(rows, { title, unit = "", ends = [], reach = 0 }) {
  const known = [...rows.flatMap(({ value, low, high }) => [value, low - reach, high + reach]), ...ends].filter(Number.isFinite);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const span = most - least || 1;
  const at = (x) => `${((100 * (x - least)) / span).toFixed(3)}%`;
  const marks = ticks(least, most);
  const lines = rows.map(({ label, value, stderr, low, high }) =>
    h(
      "div",
      { class: "line" },
      h("div", { class: "name" }, label),
      h("div", { class: "value" }, measured(value, stderr, unit), " ", h("small", {}, say("range", spanned(low, high, stderr)))),
      svg(
        "svg",
        { "aria-hidden": "true" },
        marks.map((x) => line(at(x), at(x), 0, 100, x === 0 ? "zero" : "grid")),
        reach > 0 && line(at(low - reach), at(high + reach), 50, 50, "fakes"),
        Number.isFinite(low + high) && [line(at(low), at(high), 50, 50, "whisker"), [low, high].map((end) => line(at(end), at(end), 36, 64, "whisker"))],
        Number.isFinite(value) && svg("circle", { cx: at(value), cy: "50%", r: 5, class: "bar" }),
      ),
    ),
  );
  const axis = svg("svg", { class: "axis", "aria-hidden": "true" }, marks.map((x) => svg("text", { x: at(x), y: 12, "text-anchor": "middle" }, quantity(x))));
  return h("div", { class: "chart units", role: "img", "aria-label": title }, lines, h("div", { class: "line" }, axis));
}

/** Axes of a picture of a number: its scale below, shares at the side; `draw(x, y)` gives what is inside. */
function pictured([low, high], top, { title, unit, yName }, draw) {
  const x = (value) => (100 * (value - low)) / (high - low);
  const y = (share) => 100 - (100 * share) / top;
  return svg(
    "svg",
    { class: "lines numbered", role: "img", "aria-label": title },
    ticks(low, high).map((v) => [
      line(`${x(v)}%`, `${x(v)}%`, 0, 100, "grid"),
      svg("text", { x: `${x(v)}%`, y: "100%", dy: 18, "text-anchor": "middle" }, quantity(v)),
    ]),
    ticks(0, top).map((v) => [
      line("0%", "100%", y(v), y(v), "grid"),
      svg("text", { x: 0, y: `${y(v)}%`, dx: -8, dy: 4, "text-anchor": "end" }, percent(v, top < 0.05 ? 1 : 0)),
    ]),
    unit && svg("text", { x: "50%", y: "100%", dy: 38, "text-anchor": "middle" }, unit),
    svg("text", { x: 0, y: 0, dx: -8, dy: -12 }, yName),
    draw(x, y),
  );
}

/** The shares of bins in the order of their numbers: `bins` are { begin, end, value, low, high }. */
export function histogram(bins, { title, unit, within = [] }) {
  const top = Math.min(1, 1.05 * Math.max(...bins.map(({ high }) => high), ...within));
  const ends = [bins[0].begin, bins.at(-1).end];
  return pictured(ends, top, { title, unit, yName: say("board.axis.share") }, (x, y) =>
    bins.map((bin) => {
      const [left, right] = [x(bin.begin), x(bin.end)];
      const [middle, cap] = [(left + right) / 2, Math.min(1, (right - left) / 6)];
      const at = (share) => y(Math.min(top, Math.max(0, share)));
      return [
        svg("rect", {
          x: `${left + 0.02 * (right - left)}%`,
          width: `${0.96 * (right - left)}%`,
          y: `${at(bin.value)}%`,
          height: `${100 - at(bin.value)}%`,
          class: `bar${covers(bin) ? " unsure" : ""}`,
        }),
        line(`${middle}%`, `${middle}%`, at(bin.low), at(bin.high), "whisker"),
        [bin.low, bin.high].map((end) => line(`${middle - cap}%`, `${middle + cap}%`, at(end), at(end), "whisker")),
      ];
    }),
  );
}

/**
 * Cumulative shares in their band: `points` are { end, value, low, high } for the numbers up to `end`, `marks` the
 * quantiles { quantile, value, low, high }. Between two points the share is at least that of the first, at most that of the second.
 */
export function cumulative(points, marks, { title, unit }) {
  const ends = [points[0].end, points.at(-1).end];
  return pictured(ends, 1, { title, unit, yName: say("board.axis.upto") }, (x, y) => {
    const corner = (command, at, share) => `${command}${x(at).toFixed(3)} ${y(share).toFixed(3)}`;
    const steps = points.slice(1).map((point, i) => [points[i], point]);
    const lower = steps.flatMap(([from, to], i) => [corner(i ? "L" : "M", from.end, from.low), corner("L", to.end, from.low)]);
    const back = steps.toReversed().flatMap(([from, to]) => [corner("L", to.end, to.high), corner("L", from.end, to.high)]);
    return [
      svg(
        "svg",
        { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
        svg("path", { class: "band", d: `${[...lower, ...back].join("")}Z` }),
        svg("path", { class: "curve", d: points.map(({ end, value }, i) => corner(i ? "L" : "M", end, value)).join("") }),
      ),
      marks.map(({ quantile: share, value, low, high }) => [
        line(`${x(low)}%`, `${x(high)}%`, y(share), y(share), "whisker"),
        svg("circle", { cx: `${x(value)}%`, cy: `${y(share)}%`, r: 4, class: "mark" }),
      ]),
    ];
  });
}

/**
 * Two numbers at once: `rows` are rectangles { begin, end } of the first, upwards, and { second_begin, second_end } of the second,
 * each with its share. Darker is more people per area, so that a narrow rectangle does not look empty; a dot where the interval contains zero.
 * `square` draws both numbers to one scale. Below it are a key, and the words of the rectangle that was touched.
 */
export function heatMap(rows, { title, names, interval, square = false }) {
  const area = (row) => (row.end - row.begin) * (row.second_end - row.second_begin);
  const density = (row) => Math.max(0, row.value) / area(row);
  const most = Math.max(...rows.map(density)) || 1;
  const span = (from, to) => [Math.min(...rows.map((row) => row[from])), Math.max(...rows.map((row) => row[to]))];
  const [[bottom, top], [left, right]] = [span("begin", "end"), span("second_begin", "second_end")];
  const x = (value) => (100 * (value - left)) / (right - left);
  const y = (value) => 100 - (100 * (value - bottom)) / (top - bottom);
  const words = (row) => {
    const [value, low, high] = [row.value, row.low, row.high].map((share) => percent(share, digitsFor(row.stderr)));
    return say("board.map.cell", { name: row.name, value, low, high, interval });
  };
  const map = svg(
    "svg",
    { class: "lines numbered map", role: "img", "aria-label": title },
    rows.map((row) => {
      const [at, width] = [x(row.second_begin), x(row.second_end) - x(row.second_begin)];
      const [over, height] = [y(row.end), y(row.begin) - y(row.end)];
      const strength = (density(row) / most).toFixed(3);
      const place = { x: `${at}%`, y: `${over}%`, width: `${width}%`, height: `${height}%` };
      const dot = covers(row) && svg("circle", { cx: `${at + width / 2}%`, cy: `${over + height / 2}%`, r: 2.5, class: "dot" });
      return svg(
        "g",
        {},
        svg("title", {}, words(row)),
        svg("rect", { ...place, class: "ground" }),
        svg("rect", { ...place, class: "bar", "fill-opacity": strength }),
        dot,
      );
    }),
    ticks(left, right).map((v) => svg("text", { x: `${x(v)}%`, y: "100%", dy: 18, "text-anchor": "middle" }, quantity(v))),
    ticks(bottom, top).map((v) => svg("text", { x: 0, y: `${y(v)}%`, dx: -8, dy: 4, "text-anchor": "end" }, quantity(v))),
    svg("text", { x: "50%", y: "100%", dy: 38, "text-anchor": "middle" }, names[1]),
    svg("text", { x: 0, y: 0, dx: -8, dy: -12 }, names[0]),
  );
  if (square) {
    const ratio = (right - left) / (top - bottom);
    Object.assign(map.style, { aspectRatio: `${ratio}`, height: "auto", width: `min(calc(100% - 4.2rem), ${(30 * ratio).toFixed(1)}rem)` });
  }
  const usual = rows.reduce((sum, row) => sum + area(row), 0) / rows.length;
  return touchable(map, key(most * usual, rows.some((row) => Math.abs(area(row) / usual - 1) > 1e-6)));
}

const STEPS = 5;

/** What the strengths of a colour stand for: shares up to `most`, of rectangles of the usual size if they differ. */
function key(most, usual = false) {
  const box = (i) => svg("rect", { x: `${(100 * i) / STEPS}%`, width: `${100 / STEPS}%`, height: "100%", class: "bar", "fill-opacity": i / (STEPS - 1) });
  const strengths = svg("svg", { "aria-hidden": "true" }, Array.from({ length: STEPS }, (_, i) => box(i)));
  return h("p", { class: "note strengths" }, percent(0, 0), strengths, percent(most, digitsFor(most / 2)), usual ? ` ${say("board.map.usual")}` : "");
}

/** A picture whose parts have titles: the title of the part that is touched or pointed at stands below it. */
export function touchable(picture, ...below) {
  const tell = ({ target, currentTarget }) => {
    const words = target.closest("[title]")?.title ?? target.closest("g")?.querySelector("title")?.textContent;
    if (words) currentTarget.querySelector("output").textContent = words;
  };
  return h("div", { class: "touchable", onclick: tell, onpointerover: tell }, picture, below, h("output", { class: "note" }, say("board.map.touch")));
}

const swatch = (kind) => svg("svg", { "aria-hidden": "true" }, svg("rect", { width: "100%", height: "100%", class: kind }));
const stroke = (kind) => svg("svg", { "aria-hidden": "true" }, svg("line", { x1: 0, x2: "100%", y1: "50%", y2: "50%", class: kind }));

/** What the marks mean; `entries` are pairs of a mark's class and words. */
export function legend(entries) {
  return h(
    "ul",
    { class: "legend" },
    entries.map(([kind, words]) => h("li", {}, kind.startsWith("bar") ? swatch(kind) : stroke(kind), words)),
  );
}

const COLORS = ["--bar", "--bar-two", "--good", "--fakes", "--soft", "--accent", "--bar-unsure", "--warn-line"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

/**
 * Lines over logarithmic axes: `series` maps names to lists of [x, y]; `mark` is the point that was asked for. As with
 * bars, positions are percentages and text keeps its size; only the lines themselves are stretched.
 */
export function lines(series, { title, xName, yName, mark, write = (value) => `${short(100 * value)}\u00a0%` }) {
  const names = Object.keys(series);
  const points = Object.values(series).flat();
  const span = (i) => [Math.min(...points.map((p) => p[i])), Math.max(...points.map((p) => p[i]))].map(Math.log10);
  const [[x0, x1], [y0, y1]] = [span(0), span(1)];
  const x = (value) => (100 * (Math.log10(value) - x0)) / (x1 - x0);
  const y = (value) => 100 - (100 * (Math.log10(value) - y0)) / (y1 - y0);
  const decade = ([low, high], values) =>
    values.filter((value) => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
  const round = (steps) => Array.from({ length: 15 }, (_, i) => i - 6).flatMap((k) => steps.map((s) => s * 10 ** k));
  const xs = decade([x0, x1], round([1, 2, 5]));
  const ys = decade([y0, y1], round(y1 - y0 > 2 ? [1] : [1, 2, 5]));
  const path = (own) => own.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(2)} ${y(b).toFixed(2)}`).join("");
  const drawn = svg(
    "svg",
    { class: "lines", role: "img", "aria-label": title },
    xs.map((v) => [
      line(`${x(v)}%`, `${x(v)}%`, 0, 100, "grid"),
      svg("text", { x: `${x(v)}%`, y: "100%", dy: 18, "text-anchor": "middle" }, short(v)),
    ]),
    ys.map((v) => [
      line("0%", "100%", y(v), y(v), "grid"),
      svg("text", { x: 0, y: `${y(v)}%`, dx: -8, dy: 4, "text-anchor": "end" }, write(v)),
    ]),
    svg("text", { x: "50%", y: "100%", dy: 38, "text-anchor": "middle" }, xName),
    svg("text", { x: 0, y: 0, dx: -8, dy: -12 }, yName),
    svg(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
      names.map((name, i) => colored(svg("path", { d: path(series[name]), "stroke-dasharray": DASHES[i % 4] }), i)),
    ),
    mark && svg("circle", { cx: `${x(mark[0])}%`, cy: `${y(mark[1])}%`, r: 5, fill: "currentColor" }),
  );
  const sample = (i) => {
    const level = { x1: 0, x2: "100%", y1: "50%", y2: "50%" };
    return colored(svg("line", { ...level, "stroke-width": 3, "stroke-dasharray": DASHES[i % 4] }), i);
  };
  const keys = names.map((name, i) => h("li", {}, svg("svg", { "aria-hidden": "true" }, sample(i)), name));
  return h("div", {}, drawn, h("ul", { class: "legend" }, keys, mark && h("li", {}, "● the plan")));
}

/** Through the object model: the pages' policy allows no style attributes. */
function colored(element, i) {
  element.style.stroke = `var(${COLORS[i % COLORS.length]})`;
  return element;
}
