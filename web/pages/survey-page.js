/** The page /s/{fingerprint}: the fingerprint in the address is what the browser holds the server to. */

import { ROOT } from "./api.js";
import { mountSurvey } from "./survey.js";
import { say } from "./words.js";

const fingerprint = decodeURIComponent(location.pathname.split("/").at(-1));
const address = new URL(location.href);
const asked = address.searchParams.get("lang");

/** The page around the survey speaks its language, too. A language that was chosen stays in the address. */
function spoken(language, direction) {
  document.documentElement.lang = language;
  document.documentElement.dir = direction;
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = say(element.dataset.word);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", say(element.dataset.label));
  if (document.documentElement.dataset.spoken) {
    address.searchParams.set("lang", language);
    history.replaceState(null, "", address);
  }
  document.documentElement.dataset.spoken = language;
}

mountSurvey(document.querySelector("main"), { server: ROOT, fingerprint, languages: [asked], spoken });
