/** The page /s/{fingerprint}: the fingerprint in the address is what the browser holds the server to. */

import { ROOT } from "./api.js";
import { sayFrame } from "./language.js";
import { mountSurvey } from "./survey.js";

const fingerprint = decodeURIComponent(location.pathname.split("/").at(-1));
const address = new URL(location.href);
const asked = address.searchParams.get("lang");

/** The page around the survey speaks its language, too. A language that was chosen stays in the address. */
function spoken(language) {
  sayFrame();
  if (document.documentElement.dataset.spoken) {
    address.searchParams.set("lang", language);
    history.replaceState(null, "", address);
  }
  document.documentElement.dataset.spoken = language;
}

mountSurvey(document.querySelector("main"), { server: ROOT, fingerprint, languages: [asked], spoken });
