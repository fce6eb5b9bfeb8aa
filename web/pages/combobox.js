/**
 * A field that searches a long list while one types: the pattern "editable combobox with list autocomplete" of the ARIA
 * Authoring Practices. Only the first matches are drawn, so a thousand categories cost no more than fifty.
 */

import { h, newId } from "./dom.js";
import { say } from "./words.js";

const SHOWN = 50;
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** `labels` are the texts to choose from; `value()` is the position of the chosen one, or null. */
export function combobox(labels, { id, describedBy, change = () => undefined }) {
  const keys = labels.map(plain);
  const listId = newId("list");
  let [matches, active, chosen] = [[], -1, null];
  const list = h("ul", { id: listId, role: "listbox", "aria-label": say("search.answers"), hidden: true });
  const status = h("div", { role: "status", class: "hidden" });
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: say("search.type"),
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": listId,
    "aria-describedby": describedBy,
  });

  function search() {
    const wanted = plain(input.value.trim());
    const begins = [];
    const contains = [];
    keys.forEach((key, i) => {
      if (key.startsWith(wanted)) begins.push(i);
      else if (key.includes(wanted)) contains.push(i);
    });
    matches = [...begins, ...contains];
    chosen = matches.find((i) => keys[i] === wanted) ?? null;
    if (chosen !== null && labels.filter((_, i) => keys[i] === wanted).length > 1) {
      chosen = labels.indexOf(input.value.trim()); // two labels that differ in case or accents only
      if (chosen < 0) chosen = null;
    }
  }

  function open(at = -1) {
    active = at;
    list.replaceChildren(
      ...matches.slice(0, SHOWN).map((i, place) =>
        h(
          "li",
          {
            id: `${listId}-${place}`,
            role: "option",
            "aria-selected": String(place === active),
            onmousedown: (event) => event.preventDefault(), // keeps the focus in the field
            onclick: () => choose(place),
          },
          labels[i],
        ),
      ),
    );
    list.hidden = matches.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) {
      input.setAttribute("aria-activedescendant", `${listId}-${active}`);
      list.children[active].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
    const found = { n: String(matches.length), of: String(labels.length), shown: SHOWN };
    status.textContent = say(matches.length ? (matches.length > SHOWN ? "search.many" : "search.some") : "search.none", found);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    chosen = matches[place];
    input.value = labels[chosen];
    close();
    change();
  }

  input.addEventListener("input", () => (search(), open(), change()));
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && (search(), open()));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) search();
      const most = Math.min(SHOWN, matches.length) - 1; // -1 where nothing matches
      const step = event.key === "ArrowDown" ? active + 1 : active - 1;
      open(list.hidden ? Math.min(0, most) : step > most ? 0 : step < 0 ? most : step);
    } else if (event.key === "Enter" && !list.hidden && active >= 0) choose(active);
    else if (event.key === "Enter" && !list.hidden && matches.length === 1) choose(0);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  search();
  return { element: h("div", { class: "combo" }, input, list, status), input, value: () => chosen };
}
