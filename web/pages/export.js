/**
 * What a card shows, as a file. Its texts and shapes are read where the browser has put them, with their colours, and written as
 * an SVG of plain elements or painted on a canvas: no picture is loaded, which the pages' policy would forbid.
 */

import { svg } from "./dom.js";

const LENGTHS = {
  rect: ["x", "y", "width", "height", "rx"],
  line: ["x1", "x2", "y1", "y2"],
  circle: ["cx", "cy", "r"],
  path: [],
  text: ["x", "y", "dx", "dy"],
};
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "vector-effect"];
const FONTS = ["font-size", "font-weight", "font-family", "text-anchor"];
const [EDGE, SHARP] = [16, 2]; // pixels around a picture, and pixels per pixel

const styleOf = (style, names) => Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name)]).filter(([, value]) => value));
const shown = (element) => element.checkVisibility() && !element.closest("form, output, title, .hidden");

/** A shape of a chart, with lengths in pixels. */
function shape(element, [left, top]) {
  const { a, b, c, d, e, f } = element.getScreenCTM();
  const number = (name) => element[name].baseVal.value ?? element[name].baseVal[0]?.value ?? 0;
  const lengths = Object.fromEntries(LENGTHS[element.localName].map((name) => [name, Number(number(name).toFixed(2))]));
  const style = getComputedStyle(element);
  const name = element.localName;
  const own = { ...lengths, ...styleOf(style, name === "text" ? ["fill", ...FONTS] : STYLES) };
  if (name === "path") own.d = element.getAttribute("d");
  const transform = [a, b, c, d, e - left, f - top].map((x) => Number(x.toFixed(4)));
  return { name, transform, own, text: name === "text" ? element.textContent : "" };
}

/** The lines of a text, as they were broken. */
function textLines(node, [left, top]) {
  const style = getComputedStyle(node.parentElement);
  const range = document.createRange();
  const found = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const { left: x, bottom } = range.getBoundingClientRect();
    const line = found.at(-1);
    if (line && Math.abs(line.bottom - bottom) < 2) line.words.push(word);
    else found.push({ x, bottom, words: [word] });
  }
  const size = parseFloat(style.fontSize);
  const own = { ...styleOf(style, FONTS), fill: style.color };
  return found.map(({ x, bottom, words }) => {
    const place = { x: Number((x - left).toFixed(2)), y: Number((bottom - top - 0.3 * size).toFixed(2)) };
    return { name: "text", transform: [1, 0, 0, 1, 0, 0], own: { ...own, ...place }, text: words.join(" ") };
  });
}

/** Everything that is drawn in these parts of a card: elements by name, with their places. */
function drawn(card, parts) {
  const box = card.getBoundingClientRect();
  const origin = [box.left, parts[0].getBoundingClientRect().top - EDGE];
  const found = [];
  for (const part of parts) {
    const walk = document.createTreeWalker(part, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
      if (!shown(element)) continue;
      if (node.nodeType === Node.TEXT_NODE) found.push(...(element.namespaceURI === part.namespaceURI ? textLines(node, origin) : []));
      else if (node instanceof SVGElement && node.localName in LENGTHS) found.push(shape(node, origin));
    }
  }
  const bottom = Math.max(...parts.map((part) => part.getBoundingClientRect().bottom));
  return { found, width: Math.ceil(box.width), height: Math.ceil(bottom - origin[1] + EDGE), back: getComputedStyle(card).backgroundColor };
}

/** An SVG file of these parts of a card. */
export function exported(card, parts) {
  const { found, width, height, back } = drawn(card, parts);
  const elements = found.map(({ name, transform, own, text }) => svg(name, { ...own, transform: `matrix(${transform.join(" ")})` }, text));
  const whole = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, svg("rect", { width, height, fill: back }), elements);
  return new XMLSerializer().serializeToString(whole);
}

/** The same as a PNG file. */
export function png(card, parts) {
  const { found, width, height, back } = drawn(card, parts);
  const canvas = Object.assign(document.createElement("canvas"), { width: SHARP * width, height: SHARP * height });
  const paper = canvas.getContext("2d");
  paper.scale(SHARP, SHARP);
  paper.fillStyle = back;
  paper.fillRect(0, 0, width, height);
  for (const one of found) paint(paper, one);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function outline({ name, own }) {
  const path = new Path2D(name === "path" ? own.d : undefined);
  if (name === "rect") path.roundRect(own.x, own.y, Math.max(0, own.width), Math.max(0, own.height), own.rx);
  if (name === "circle") path.arc(own.cx, own.cy, own.r, 0, 2 * Math.PI);
  if (name === "line") {
    path.moveTo(own.x1, own.y1);
    path.lineTo(own.x2, own.y2);
  }
  return path;
}

function paint(paper, one) {
  const { name, transform, own, text } = one;
  paper.save();
  const whole = new DOMMatrix(transform);
  if (name === "text") {
    paper.transform(...transform);
    Object.assign(paper, { fillStyle: own.fill, font: `${own["font-weight"]} ${own["font-size"]} ${own["font-family"]}` });
    paper.textAlign = { middle: "center", end: "right" }[own["text-anchor"]] ?? "left";
    paper.fillText(text, own.x + (own.dx ?? 0), own.y + (own.dy ?? 0));
    return paper.restore();
  }
  const path = new Path2D();
  path.addPath(outline(one), whole); // lines keep their width however their picture is stretched
  if (own.fill !== "none" && name !== "line") {
    Object.assign(paper, { fillStyle: own.fill, globalAlpha: Number(own["fill-opacity"] ?? 1) });
    paper.fill(path);
  }
  if (own.stroke && own.stroke !== "none") {
    Object.assign(paper, { strokeStyle: own.stroke, lineWidth: parseFloat(own["stroke-width"]), globalAlpha: 1 });
    paper.setLineDash((own["stroke-dasharray"]?.match(/[\d.]+/g) ?? []).map(Number));
    paper.stroke(path);
  }
  return paper.restore();
}
