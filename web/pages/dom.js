/** Elements from names, attributes and children. Text is always text: nothing here parses HTML. */

import { say } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** `h("p", { class: "note" }, "text")`; `onclick` and the like are listeners. */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** What others wrote, such as a question or an answer: its direction is its own, and the sentence around it keeps its order. */
export const bdi = (text, lang = null) => h("bdi", { lang }, text);

export const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A number of its own for ids that labels point to. */
let last = 0;
export const newId = (what) => `${what}-${++last}`;

export function show(place, ...content) {
  place.replaceChildren(...content.flat(Infinity).filter(Boolean));
}

/**
 * The same, but what is there already stays and is changed in place, so that focus, scroll positions and what is folded
 * out are kept. Listeners of elements that stay are the old ones: they must not depend on what is shown.
 */
export function update(place, ...content) {
  const wanted = content.flat(Infinity).filter(Boolean);
  wanted.forEach((node, i) => become(place, place.childNodes[i], typeof node === "string" ? document.createTextNode(node) : node));
  while (place.childNodes.length > wanted.length) place.lastChild.remove();
}

function become(place, old, node) {
  if (!old) return place.append(node);
  if (old === node) return undefined;
  if (old.nodeName !== node.nodeName) return old.replaceWith(node);
  if (node.nodeType === Node.TEXT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return undefined;
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of node.attributes) {
    if (name === "style") old.style.cssText = value; // the pages' policy allows no style attribute to be set
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  return update(old, ...node.childNodes);
}

/** Take the focus to a heading, which screen readers then read out. */
export function focusOn(heading) {
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

const FEW_ROWS = 14;

/** A table with a caption that screen readers announce; `rows` are lists of text or elements. */
export function table(caption, head, rows, attributes = {}) {
  const cell = (content, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, content);
  return h(
    "div",
    { class: rows.length > FEW_ROWS ? "scroll" : "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      attributes,
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, ...head.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map(cell)))),
    ),
  );
}

/** A number in large digits, and what it is. */
export const tile = (value, words) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, words));

/** Save text as a file. */
export function download(name, text, kind = "text/csv") {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A button that copies a text, and says so. */
export function copier(text, words, attributes = {}) {
  const copied = h("span", { role: "status", class: "hidden" });
  const copy = async () => {
    await navigator.clipboard?.writeText(text()).catch(() => undefined);
    copied.textContent = button.textContent = say("copied");
    setTimeout(() => ([button.textContent, copied.textContent] = [words, ""]), 1500);
  };
  const button = h("button", { type: "button", class: "small", onclick: copy, ...attributes }, words);
  return [button, copied];
}

/** A command with a button that copies it. */
export function command(text) {
  const code = h("code", { tabindex: 0 }, text);
  return h("div", { class: "command" }, code, copier(() => code.textContent, say("copy"), { "aria-label": say("copy.command") }));
}
