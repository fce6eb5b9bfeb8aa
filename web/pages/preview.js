/**
 * The page /new/preview, in a frame of the builder: a survey that is not published yet, as its respondents will see it. It is
 * the survey page itself, with a ledger in memory and a network that takes every report and sends none.
 */

import { ROOT } from "./api.js";
import { h } from "./dom.js";
import { mountSurvey } from "./survey.js";

const main = document.querySelector("main");

const taken = { accepted: 1, rejected: [] };

/** A ledger that is gone with the page. */
class Forgetful {
  #kept;
  #last = Promise.resolve();

  async read() {
    return structuredClone(this.#kept);
  }

  async update(change) {
    this.#kept = structuredClone(change(await this.read()));
  }

  exclusive(task) {
    this.#last = this.#last.then(task, task);
    return this.#last;
  }
}

function show({ fingerprint, survey, language }) {
  const fetch = async (_, { method }) => (method === "POST" ? Response.json(taken) : new Response(survey));
  const place = h("div", {});
  main.replaceChildren(place);
  const spoken = (lang, dir) => Object.assign(document.documentElement, { lang, dir });
  mountSurvey(place, { server: ROOT, fingerprint, languages: [language], spoken, parts: { store: new Forgetful(), fetch } });
}

addEventListener("message", ({ origin, source, data }) => {
  if (origin === location.origin && source === parent) show(data);
});
parent.postMessage("ready", location.origin);
