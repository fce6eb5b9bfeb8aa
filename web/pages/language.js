/** The language of a whole page: its attributes, the words of its frame, and a choice. */

import { h } from "./dom.js";
import { direction, language, LANGUAGES, say } from "./words.js";

/** Say the frame of the page, its header say, in the language that is spoken now. */
export function sayFrame() {
  [document.documentElement.lang, document.documentElement.dir] = [language(), direction()];
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = say(element.dataset.word);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", say(element.dataset.label));
}

/** A choice of language, in the names that speakers give them. */
export function languageChoice(change) {
  const options = Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === language() }, name));
  const name = h("span", { class: "hidden" }, say("page.language"));
  const choice = h("select", { onchange: () => change(choice.value).then(() => (name.textContent = say("page.language"))) }, options);
  return h("label", { class: "languages" }, name, choice);
}
