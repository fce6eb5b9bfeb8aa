/**
 * A survey inside any page:
 *
 *   <script type="module" src="https://collect.example.org/web/current/pages/embed.js"></script>
 *   <deniable-survey fingerprint="..."></deniable-survey>
 *
 * `server` is another service than the one that this file came from. The ledger is kept by the embedding site's origin.
 */

import { ROOT } from "./api.js";
import { h } from "./dom.js";

class DeniableSurvey extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    const place = h("div", { class: "deniable" }, h("p", { class: "note", role: "status" }, "Loading the survey…"));
    const style = h("link", { rel: "stylesheet", href: new URL("style.css", import.meta.url).href });
    this.attachShadow({ mode: "open" }).append(style, place);
    const [server, fingerprint] = [this.getAttribute("server") ?? ROOT, this.getAttribute("fingerprint") ?? ""];
    // A page that does not say that it can be dark is light on a dark system, and so is the survey inside it.
    const around = getComputedStyle(this.parentElement ?? document.documentElement).colorScheme;
    this.classList.toggle("light", !around.includes("dark"));
    const spoken = (language, direction) => Object.assign(place, { lang: language, dir: direction });
    const languages = [this.closest("[lang]")?.lang]; // the page's language comes before the browser's
    import("./survey.js").then(({ mountSurvey }) => mountSurvey(place, { server, fingerprint, languages, spoken }));
  }
}

if (!customElements.get("deniable-survey")) customElements.define("deniable-survey", DeniableSurvey);
