/**
 * A survey inside any page:
 *
 *   <script type="module" src="https://collect.example.org/web/current/pages/embed.js"></script>
 *   <deniable-survey fingerprint="..."></deniable-survey>
 *
 * Attributes, which may change later: `fingerprint`; `server`, if it is another service than the one that this file came from;
 * `lang`, before the language of the page around it; `compact` leaves out title and purpose; `paged` shows one question at a time,
 * and `paged="false"` never does. Events: `ready` (the survey is shown), `sent` and `refused`; none holds an answer. The ledger is
 * kept by the embedding site's origin.
 */

import { ROOT } from "./api.js";
import { h } from "./dom.js";

class DeniableSurvey extends HTMLElement {
  static observedAttributes = ["fingerprint", "server", "lang", "compact", "paged"];
  #waiting = false;

  connectedCallback() {
    this.#change();
  }

  attributeChangedCallback(_name, before, after) {
    if (before !== after) this.#change();
  }

  /** Several attributes that change at once show the survey once. */
  #change() {
    if (this.#waiting || !this.isConnected) return;
    this.#waiting = true;
    queueMicrotask(() => {
      this.#waiting = false;
      if (this.isConnected) this.#show();
    });
  }

  async #show() {
    const compact = this.hasAttribute("compact");
    const place = h("div", { class: `deniable${compact ? " compact" : ""}` });
    const style = h("link", { rel: "stylesheet", href: new URL("style.css", import.meta.url).href });
    (this.shadowRoot ?? this.attachShadow({ mode: "open" })).replaceChildren(style, place);
    // A page that does not say that it can be dark is light on a dark system, and so is the survey inside it.
    const around = getComputedStyle(this.parentElement ?? document.documentElement).colorScheme;
    this.classList.toggle("light", !around.includes("dark"));
    const { mountSurvey } = await import("./survey.js");
    if (!place.isConnected) return; // an attribute has changed meanwhile
    await mountSurvey(place, {
      server: this.getAttribute("server") ?? ROOT,
      fingerprint: this.getAttribute("fingerprint") ?? "",
      languages: [this.closest("[lang]")?.lang], // the page's language comes before the browser's
      spoken: (language, direction) => Object.assign(place, { lang: language, dir: direction }),
      compact,
      paged: this.hasAttribute("paged") ? this.getAttribute("paged") !== "false" : undefined,
      tell: (name, detail) => place.isConnected && this.dispatchEvent(new CustomEvent(name, { detail })),
    });
  }
}

if (!customElements.get("deniable-survey")) customElements.define("deniable-survey", DeniableSurvey);
