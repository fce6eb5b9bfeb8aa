/** The page /s/{fingerprint}: the fingerprint in the address is what the browser holds the server to. */

import { ROOT } from "./api.js";
import { mountSurvey } from "./survey.js";

const fingerprint = decodeURIComponent(location.pathname.split("/").at(-1));
mountSurvey(document.querySelector("main"), { server: ROOT, fingerprint });
