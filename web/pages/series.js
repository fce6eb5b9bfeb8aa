/** Shares over time with bands for their intervals, drawn by uPlot, which is fetched when the first series is shown. */

import { h, show } from "./dom.js";
import { moment, percent } from "./format.js";
import { say } from "./words.js";

const COLORS = ["--bar", "--bar-two", "--good", "--fakes", "--accent", "--soft"];
let loading = null;

function library() {
  loading ??= new Promise((resolve, reject) => {
    const src = new URL("../vendor/uPlot.iife.min.js", import.meta.url).href;
    const script = h("script", { src, onload: () => resolve(globalThis.uPlot), onerror: reject });
    document.head.append(script);
  });
  return loading;
}

/** A colour of the page, as the canvas needs it. */
function color(name, alpha = 1) {
  const probe = h("span", {});
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g);
  probe.remove();
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

/** A band needs two points: one without neighbours gets a whisker, `aside` for those that would hide each other. */
function whiskers(plot, times, points, ink, aside) {
  const { ctx, pxRatio = devicePixelRatio } = plot;
  const cap = 5 * pxRatio;
  ctx.save();
  [ctx.strokeStyle, ctx.fillStyle, ctx.lineWidth] = [ink, ink, 2 * pxRatio];
  points.forEach((point, k) => {
    if (!point || points[k - 1] || points[k + 1]) return;
    const x = plot.valToPos(times[k], "x", true) + 4 * aside * cap;
    const [middle, low, high] = [point.value, point.low, point.high].map((share) => plot.valToPos(share, "y", true));
    ctx.beginPath();
    for (const [x1, y1, x2, y2] of [[x, low, x, high], [x - cap, low, x + cap, low], [x - cap, high, x + cap, high]]) {
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
    }
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, middle, 0.8 * cap, 0, 2 * Math.PI);
    ctx.fill();
  });
  ctx.restore();
}

/**
 * `lines`: { label, points: [{ value, low, high } or null, ...] }, one point for each of `times` (seconds since 1970).
 * Draws into `place` and again when its width or the colour scheme changes.
 */
export class Series {
  #place;
  #drawn = null;
  #content = null;

  constructor(place) {
    this.#place = place;
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(place.clientWidth - width) < 2) return;
      width = place.clientWidth;
      this.#drawn?.setSize({ width, height: this.#drawn.height });
    }).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#content && this.draw(...this.#content));
  }

  /** `seconds` is the length of a period: the axis has marks at whole periods only. Shares are written as percentages. */
  async draw(times, lines, seconds, write = null) {
    this.#content = [times, lines, seconds, write];
    const uPlot = await library();
    const data = [times];
    const series = [{ label: say("board.column.period"), value: (_, time) => (time === null ? "–" : moment(time)) }];
    const bands = [];
    lines.forEach(({ label, points }, i) => {
      const name = COLORS[i % COLORS.length];
      const at = data.length;
      data.push(points.map((p) => p?.value ?? null), points.map((p) => p?.high ?? null), points.map((p) => p?.low ?? null));
      const value = (_, number) => (number === null ? "–" : (write ?? percent)(number));
      const edge = { stroke: color(name, 0.25), width: 1, points: { show: false } };
      series.push(
        { label, stroke: color(name), width: 2, value, points: { show: times.length > 1 && times.length < 60, size: 6 } },
        { ...edge, label: say("board.line.to", { label }), value },
        { ...edge, label: say("board.line.from", { label }), value },
      );
      bands.push({ series: [at + 1, at + 2], fill: color(name, 0.12) });
    });
    const alone = times.length === 1;
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    const shift = (i) => (alone ? i - (lines.length - 1) / 2 : 0); // whiskers of one period stand side by side
    const drawWhiskers = (plot) =>
      lines.forEach(({ points }, i) => whiskers(plot, times, points, color(COLORS[i % COLORS.length]), shift(i)));
    const widest = (marks) => Math.max(0, ...(marks ?? []).map((mark) => mark.length));
    const options = {
      width: this.#place.clientWidth || 600,
      height: 280,
      padding: [10, 44, 0, 0],
      cursor: { drag: { x: false, y: false } },
      legend: { live: true },
      scales: alone ? { x: { range: [times[0] - seconds, times[0] + seconds] } } : {},
      series,
      bands,
      hooks: { draw: [drawWhiskers] },
      axes: [
        {
          ...axis,
          space: 100,
          incrs: [1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 730].map((k) => k * seconds),
          splits: (u, _axis, low, high, step) => times.filter((time) => time >= low && time <= high && (time - times[0]) % step === 0),
          values: (_, marks) => marks.map(moment),
        },
        {
          ...axis,
          size: (_, marks) => Math.max(64, 24 + 7.5 * widest(marks)),
          values: (_, marks) => marks.map((mark) => (write ?? percent)(mark, marks[1] - marks[0] < 0.0099 ? 1 : 0)),
        },
      ],
    };
    this.#drawn?.destroy();
    show(this.#place);
    this.#drawn = new uPlot(options, data, this.#place);
    // The edges of the bands need no line of their own in the legend.
    this.#place.querySelectorAll(".u-legend .u-series").forEach((row, i) => (row.hidden = i > 0 && i % 3 !== 1));
  }
}
