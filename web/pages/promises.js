/**
 * Every sentence that a survey promises to a respondent, an operator or a reviewer. `src/deniable/surveys/promises.py` has
 * the same names and sentences, says what they mean, and a test compares the two.
 */

import { duration, factor, fraction } from "./format.js";
import { AT_MOST, EXACT, everyone, guesses, roughest } from "./guesses.js";

export const [STRONG, MODERATE, WEAK] = ["strong", "moderate", "weak"];
const BANDS = [STRONG, MODERATE, WEAK];
const [MODERATE_FROM, WEAK_FROM] = [0.75, 0.9]; // the share of right guesses from which a band begins
const [ADDS_LITTLE, ADDS_SOME] = [0.1, 0.25]; // what reports add to it: less leaves protection strong, and nobody sees an answer

const WATCHERS = "those who ask, whoever runs the server and whoever listens on the way";
const CAREFUL = "Answer only what you would also say openly.";

/** What the numbers of a survey are about, in words for its sentences. */
function about({ relation, questions: asked }) {
  if (relation === "profiles") {
    const unknown = "and knows no more of your value than the profiles say,";
    return {
      protection: "Protection of your profile",
      wavers: `Somebody who finds two joined profiles equally likely, ${unknown}`,
      odds: `Whatever your profile is, the odds that somebody who knows no more of your value than the profiles say gives to one of two joined profiles`,
      secret: "which profile is yours",
      beside: " Your value itself is not hidden, and profiles that are not joined can be told apart.",
    };
  }
  if (relation === "stream") {
    return {
      protection: "Protection",
      wavers: "Somebody who finds two courses of your answers over time equally likely",
      odds: "Whatever you answer, and however your answers change, the odds that anybody gives to them",
      secret: "what you chose or whether you have changed your mind",
      beside: "",
    };
  }
  const several = asked.length > 1;
  if (relation === "sum") {
    return {
      protection: "Protection if the collectors do not work together",
      wavers: `Somebody who sees the published sums, and finds two ${several ? "possible sets of answers" : "possible answers"} equally likely,`,
      odds: `Whatever you answer, the odds that somebody who sees the published sums gives to ${several ? "your answers" : "your answer"}`,
      secret: "what you chose",
      beside: "",
    };
  }
  if (relation === "metric") {
    const near = "one cell side apart";
    return {
      protection: "Protection of your exact place",
      wavers: several ? `Somebody who finds two sets of your places equally likely, each place ${near} from the other at most,` : `Somebody who finds two places ${near} equally likely`,
      odds: several ? `Whatever your places are, the odds that anybody gives to one of two sets of them, each ${near} from the other at most,` : `Whatever your place is, the odds that anybody gives to one of two places ${near}`,
      secret: "in which cell you are",
      beside: " Roughly where you are is not hidden: places that are far apart can be told apart.",
    };
  }
  return {
    protection: "Protection",
    wavers: `Somebody who finds two ${several ? "possible sets of answers" : "possible answers"} equally likely`,
    odds: `Whatever you answer, the odds that anybody gives to ${several ? "your answers" : "your answer"}`,
    secret: `what you chose${inClear(asked).length ? ` beside your ${listed(inClear(asked))}` : ""}`,
    beside: "",
  };
}

/** The attributes that are sent as they are. */
const inClear = (asked) => [...new Set(asked.flatMap(({ protocol: { clear = [] } }) => clear))];
const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** What is not protected at all, and that no number is about it. */
function saidInClear({ questions: asked }) {
  const names = inClear(asked);
  if (!names.length) return "";
  const [are, them] = names.length === 1 ? ["is", "It is"] : ["are", "They are"];
  return `Your ${listed(names)} ${are} not protected. ${them} sent as written beside each report, and ${WATCHERS} can read that. All numbers here are about your ${asked.length === 1 ? "answer" : "answers"} to the rest.`;
}

/**
 * The sentences that hold for this survey, by name. `here` is what keeps the ledger: a device or a browser. If it has not
 * promised to keep it, `lasting` is false, which a note says for a survey of several epochs.
 */
export function promises(survey, here = "this browser", lasting = true) {
  const found = guesses(survey);
  const said = {
    band: `${about(survey).protection}: ${bandOf(survey, found)}.`,
    guess: guess(survey, found),
    people: people(survey, found),
    seen: seen(survey, found),
    clear: saidInClear(survey),
    profiles: profiles(survey, here),
    distance: distance(survey),
    parts: parts(survey, here),
    sure: sureOf(survey),
    factor: factors(survey),
    rare: rare(survey),
    changes: changes(survey),
    linked: linked(survey, here),
    questions: questions(survey, found),
    lifetime: lifetime(survey),
    storage: lasting || epochsOf(survey) === 1 ? "" : storage(survey, here),
  };
  if (survey.terms) {
    Object.assign(said, {
      often: often(survey, here),
      round: round(survey, here, lasting),
      device: device(survey, here),
      kept: kept(survey),
      leaving: stays(survey.terms.retention, survey.terms.deleteDays, survey.terms.collectors.length),
      address: address(survey.terms, here),
      relay: relay(survey.terms),
      collectors: collectors(survey),
    });
  }
  return Object.fromEntries(Object.entries(said).filter(([, sentence]) => sentence));
}

// -- how much a report tells -----------------------------------------------------------------------------------------

/** How well all that a device may send for the survey is protected, by the answer that is easiest to guess. */
export const band = (survey) => bandOf(survey, guesses(survey));

function bandOf(survey, found) {
  const worst = worstOf(found);
  return worst === STRONG && (survey.showsChanges || isRare(survey)) ? MODERATE : worst;
}

const worstOf = (found) => BANDS[Math.max(...found.map((one) => BANDS.indexOf(bandOfOne(one))))];

function bandOfOne({ always, before }) {
  const share = always.share + 1e-9;
  if (share < MODERATE_FROM || share - before < ADDS_LITTLE) return STRONG;
  return share < WEAK_FROM ? MODERATE : WEAK;
}

/** Whether guesses are in truth so often right, and not only at most. */
const isKnown = (one, worst) => [one.once, one.always].some((always) => always.how !== AT_MOST && bandOfOne({ ...one, always }) === worst);

/** The question that is easiest to guess. */
function easiest(found) {
  const shares = found.map(({ always }) => Math.round(1e9 * always.share));
  return shares.indexOf(Math.max(...shares));
}

/** Of 100 guesses of the answer that is easiest to guess, from all reports, how many are right. */
export function rightOf100(survey) {
  const found = guesses(survey);
  const { share, how } = found[easiest(found)].always;
  if (how === AT_MOST) return Math.ceil(100 * share - 1e-9);
  return Math.min(Math.floor(100 * share + 0.5 + 1e-9), share > 1 - 1e-12 ? 100 : 99);
}

/** A share of guesses as a number of 100; a bound is rounded up. */
export function of100({ share, how = EXACT }) {
  const step = share > 0.0995 ? 1 : 10;
  const scaled = 100 * step * share;
  const number = how === AT_MOST ? Math.ceil(scaled - 1e-9) : Math.floor(scaled + 0.5 + 1e-9);
  if (number === 0) return "fewer than 0.1";
  if (number === 100 && step === 1 && share < 1 - 1e-12 && how !== AT_MOST) return "more than 99";
  return `${how}${number / step}`;
}

const without = ({ before }) => of100({ share: before });

/** How often guesses are right, without and with the reports. */
function guess(survey, found) {
  const epochs = epochsOf(survey);
  const more = found.some(({ once, always }) => once.share !== always.share || once.how !== always.how);
  const source = what(survey, more ? "one report" : epochs === 1 ? "your report" : "all your reports");
  const stays = ` if your answer${found.length > 1 ? "s stay" : " stays"} the same`;
  const together = `from ${every(epochs)} together${survey.relation === "sum" ? "" : stays}`;
  const bare = source === "your report" ? "it" : more ? "any" : "them";
  if (found.length === 1) {
    const [one] = found;
    const rest = more ? `, in ${of100(one.always)} ${together}` : survey.showsChanges ? stays : "";
    return `Somebody who ${one.thinks} guesses ${one.yours} right in ${of100(one.once)} of 100 cases from ${source}${rest}, and in ${without(one)} without ${bare}.`;
  }
  const first = found[easiest(found)];
  const all = (key) => of100(product(found.map((one) => one[key])));
  const blind = of100(product(found.map(({ before }) => ({ share: before, how: EXACT }))));
  const said = `Somebody who thinks all answers equally likely guesses the one that is easiest to guess (${survey.questions[easiest(found)].id}) right in ${of100(first.once)} of 100 cases from ${source}${survey.showsChanges ? stays : ""}, and ${everyone(found.length, "answers")} in ${all("once")}; without ${bare} in ${without(first)} and ${blind}.`;
  return more ? `${said} ${capital(together)} it is ${of100(first.always)} and ${all("always")}.` : said;
}

const product = (found) => ({ share: found.reduce((sum, { share }) => sum * share, 1), how: roughest(found) });

/** The picture in words. */
function people(survey, found) {
  const one = found[easiest(found)];
  const [right, many] = [of100(one.always), epochsOf(survey) > 1];
  const sums = many ? "the sums of all periods" : "the published sums";
  const source = survey.relation === "sum" ? sums : many ? "all reports of one person" : "a report like yours";
  return `Of 100 such guesses, made from ${source}, ${right} ${/(^| )1$/.test(right) ? "is" : "are"} right. Without ${them(survey)} ${without(one)} are.`;
}

const them = (survey) => (epochsOf(survey) === 1 && survey.relation !== "sum" ? "it" : "them");

/** How sure somebody can become at most who found two cases equally likely: rounded up, never to certainty. */
export function sure(epsilon) {
  const rest = 1 / (1 + Math.exp(Math.min(fraction(epsilon), 700)));
  for (let digits = 1; digits < 10; digits++) {
    const whole = Math.floor(rest * 10 ** (2 + digits) + 1e-9);
    if (whole) return `${(100 - whole / 10 ** digits).toFixed(digits)} %`;
  }
  return "100 %";
}

const level = (epsilon) => factor(fraction(epsilon));
/** Whether all reports together may tell more than one of them, and a number holds for that. */
const addsUp = (survey) => survey.terms !== null && !survey.showsChanges && (survey.terms.draws > 1 || survey.terms.stages);
const epochsOf = (survey) => survey.terms?.longitudinal.epochs ?? 1;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const thousands = (n) => n.toLocaleString("en");
const every = (n) => (n === 2 ? "both" : `all ${thousands(n)}`);

function sureOf(survey) {
  const wavers = about(survey).wavers.replace("Somebody", "somebody");
  const said = `In the worst case, ${wavers} can become at most ${sure(survey.epsilon)} sure of one of them`;
  if (survey.showsChanges) return `${said} from one report. For all reports together no number holds.`;
  if (addsUp(survey)) return `${said} from ${what(survey)}, and at most ${sure(survey.lifetimeEpsilon)} sure from ${every(epochsOf(survey))} together.`;
  return `${said} from ${epochsOf(survey) > 1 ? "all your reports" : what(survey, "your report")}.`;
}

/** What numbers about one submission are read from. */
function what(survey, report = "one report") {
  if (survey.relation !== "sum") return report;
  return epochsOf(survey) === 1 ? "these sums" : "the sums of one period";
}

const RARE = 1000000n; // a delta above one in so many is weak, whatever the epsilon
const oneIn = (delta) => {
  const [top, bottom = 1n] = delta.split("/").map(BigInt);
  return bottom / top;
};

const isRare = ({ budgetDelta }) => budgetDelta !== null && oneIn(budgetDelta) < RARE;

/** What the promise leaves out, where a table has a delta: P(S | one answer) <= e^epsilon P(S | another) + delta. */
function rare(survey) {
  if (survey.delta === null) return "";
  const said = `The worst case leaves out cases whose probability is at most 1 in ${thousands(oneIn(survey.delta))} per report`;
  if (survey.showsChanges || survey.terms === null || survey.terms.draws === 1) return `${said}.`;
  return `${said}, and 1 in ${thousands(oneIn(survey.budgetDelta))} for all ${thousands(survey.terms.draws)} together.`;
}

/** Of two stages with several kept answers: what the number is about that the ledger counts. */
function changes({ terms, budgetEpsilon }) {
  if (!terms?.stages || terms.draws === 1) return "";
  return `What is counted, epsilon ${epsilonText(budgetEpsilon)}, bounds what all reports tell about your answers to somebody who knows already in which periods they were the same. In which periods they were the same is protected by the number for all reports together only.`;
}

/** Of two stages whose states work as a cookie: what that means. */
function linked({ terms }, here) {
  if (!terms?.longitudinal.linkable) return "";
  return `All your reports are drawn from what ${here} keeps, and resemble each other. ${capital(WATCHERS)} can recognize in time that they come from the same person, as by a cookie. This tells nothing more about your answers than the numbers here.`;
}

/** Of answers with a profile: what stays here, and which profiles the numbers are about. */
function profiles(survey, here) {
  if (survey.relation !== "profiles") return "";
  const { questions: asked } = survey;
  const said = asked.map(({ id, protocol }) => `The numbers ${asked.length > 1 ? `of ${id} ` : ""}are about ${protocol.over}.`);
  const several = asked.length > 1 || (survey.terms !== null && survey.terms.draws > 1);
  const together = several ? " Numbers for several values together hold if each value comes from your profile independently of the others." : "";
  return `Your profile does not leave ${here}: it decides how chance changes your value, and what comes out is sent. ${said.join(" ")}${together}`;
}

const FAR = 5; // cell sides, for an example

/** Of places: what the numbers are for places that are further apart. */
function distance({ relation, epsilon, questions: asked }) {
  if (relation !== "metric") return "";
  const said = asked.map(({ id, protocol }) => [asked.length > 1 ? ` of ${id}` : "", (protocol.inner ?? protocol).domain.cell]);
  const sizes = said.filter(([, size]) => size).map(([which, size]) => `One cell side${which} is ${size}. `);
  const [top, bottom = "1"] = epsilon.split("/");
  const far = sure(`${BigInt(FAR) * BigInt(top)}/${bottom}`);
  return `${sizes.join("")}Epsilon grows with the distance: of places ${FAR} cell sides apart somebody who finds both equally likely can become at most ${far} sure of one of them from one report.`;
}

function seen(survey, found) {
  const { secret: whole, beside } = about(survey);
  const worst = worstOf(found);
  const which = found.map((_, i) => i).filter((i) => bandOfOne(found[i]) === worst);
  const may = which.every((i) => isKnown(found[i], worst)) ? "can" : "may be able to";
  const secret = found.length > which.length ? `${whole} for ${listed(which.map((i) => survey.questions[i].id))}` : whole;
  const sums = survey.relation === "sum";
  const each = sums ? `${hostsOf(survey)} each get numbers that tell nothing by themselves. Together they could read what you chose. ` : "";
  const who = sums ? `${each}Whoever sees the published sums` : capital(WATCHERS);
  const does = sums ? `${each}The published sums do` : epochsOf(survey) === 1 ? "Your report does" : "Your reports do";
  const except = isRare(survey) ? `, except in at most 1 of ${thousands(oneIn(survey.budgetDelta))} cases` : "";
  const shows = survey.showsChanges ? ` ${capital(WATCHERS)} can see when your answer changes and when an earlier one returns.` : "";
  const said = () => {
    if (worst === WEAK) return `${who} ${may} find out ${secret}, or nearly so.${beside} ${CAREFUL}`;
    if (worst === MODERATE) return `${does} not prove ${secret}, but ${sums ? "whoever sees them" : WATCHERS} ${may} make a good guess.${beside}`;
    if (which.some((i) => found[i].always.share - found[i].before >= ADDS_SOME)) return `${does} not prove ${secret}, but guesses are better with ${them(survey)} than without.${beside}`;
    if (sums) return `${does} not tell ${secret}${except}.${beside}`;
    return `Nobody gets to see ${secret}${except}: not those who ask, not whoever runs the server, not whoever listens on the way.${beside}`;
  };
  return said() + shows;
}

const hostsOf = ({ terms }) => listed(terms.collectors.map(({ host }) => host));

const SHOWN = 12;

/** What is reported of answers that have several parts. */
function parts({ questions: asked }, here) {
  const said = asked.filter(({ protocol }) => protocol.groups?.length > 1 || protocol.views).map(({ id, protocol: { groups, views } }) => {
    const more = groups.length > SHOWN ? ` and ${groups.length - SHOWN} more` : "";
    const names = `${groups.slice(0, SHOWN).map(({ name }) => name).join(", ")}${more}`;
    const whose = asked.length === 1 ? "your answer" : `your answer to ${id}`;
    if (views) {
      return (
        `A report is about some parts of ${whose} together (${names}). ${capital(here)} chooses them by chance, whatever you answer. ` +
        `${capital(WATCHERS)} can see which parts they are; nothing about the others is in the report.`
      );
    }
    return (
      `A report is about one of the ${groups.length} parts of ${whose} (${names}). ${capital(here)} chooses it by chance, whatever you answer. ` +
      `${capital(WATCHERS)} can see which part it is; nothing about the other parts is in the report.`
    );
  });
  return said.join(" ");
}

function factors(survey) {
  const said = `${about(survey).odds} change by at most a factor of ${level(survey.epsilon)}`;
  if (survey.showsChanges) return `${said} from one report; for all reports together no factor holds.`;
  if (survey.terms?.stages) return `${said} from one report, and ${level(survey.lifetimeEpsilon)} in all, however often you take part.`;
  if (addsUp(survey)) return `${said} each time, and ${level(survey.lifetimeEpsilon)} in all, however often you take part.`;
  return `${said}${epochsOf(survey) > 1 ? " in all, however often you take part" : ""}.`;
}

/** One question after the other, where there are several. */
function questions(survey, found) {
  if (survey.questions.length === 1) return "";
  const said = survey.questions.map(({ id, protocol }, i) => {
    const { once, always } = found[i];
    const all = once.share !== always.share || once.how !== always.how ? `, in all ${of100(always)}` : "";
    return `${id} ${of100(once)} of 100${all}, without a report ${without(found[i])} (factor ${level(protocol.epsilon)})`;
  });
  return `Right guesses, question by question: ${said.join("; ")}. The factors of all questions multiply.`;
}

/** An exact level as people read it: a decimal where that is exact or the fraction is long, and then rounded up. */
function epsilonText(text) {
  const [top, bottom = 1n] = text.split("/").map(BigInt);
  const digits = 10 - Math.max(1, String(top / bottom).length) + (top < bottom ? 1 : 0);
  const scale = 10n ** BigInt(Math.max(0, digits));
  const scaled = (top * scale + bottom - 1n) / bottom; // rounded up
  if (scaled * bottom !== top * scale && text.length <= 9) return text;
  return String(Number(scaled) / Number(scale));
}

/** For reviewers: the level of all that a device may send. */
export function lifetime(survey) {
  const delta = survey.delta === null ? "" : ` and delta ${survey.budgetDelta}`;
  if (survey.lifetimeEpsilon !== null) return `epsilon ${epsilonText(survey.lifetimeEpsilon)}${delta}`;
  return "no epsilon bounds all reports together, because repeated reports show when an answer changes or returns";
}

// -- what is kept, where ---------------------------------------------------------------------------------------------

function relay({ relay: named }) {
  if (!named) return "";
  const { host, batch } = named;
  return `Your answer is sealed and sent to a relay, ${host}, which cannot read it. The relay passes answers on in random order, at least ${thousands(batch)} of one period at a time, so that those who ask do not learn whose they are. This protects you as long as ${host} and those who ask do not work together, and as long as the other answers are not made up by them. If fewer than ${thousands(batch)} people answer in a period, their answers are discarded.`;
}

/** Who gets what where answers are split, and who must not work together. */
function collectors(survey) {
  const { length } = survey.terms.collectors;
  if (!length) return "";
  const hosts = hostsOf(survey);
  const enough = thousands(Math.max(...survey.questions.map(({ protocol }) => protocol.enough)));
  return `Your answer gets a little noise and is split into ${length} parts, one for each of ${hosts}. When a period is over they add up the parts of the same people, erase them, and put only their sums together. This protects you as long as ${hosts} do not work together, and as long as at least ${enough} of these people, you among them, add their noise. If fewer than ${enough} people answer in a period, nothing comes out.`;
}

function address({ epochs, opens, expires, relay: named, collectors: split }, here) {
  const more = here.includes("browser") ? ", and what a browser tells of itself" : "";
  const length = duration(Math.min(epochs.seconds, expires - opens));
  return `A report holds no name, no address, no cookie and no time but its period, which lasts ${length}. The ${split.length ? "collectors still see" : `${named ? "relay" : "server"} still sees`} the network address that it comes from, and when${more}, as with every web page; ${split.length ? "their programs keep" : "its program keeps"} none of this.`;
}

function often(survey, here) {
  const { rule, epochs, values, changes } = survey.terms.longitudinal;
  if (epochs === 1) return "You can answer once.";
  const times = `You can answer ${thousands(epochs)} times at most, once in each period`;
  if (rule === "none") return `${times}. Each answer is randomized afresh, and what the ${survey.terms.collectors.length ? "sums" : "reports"} tell adds up.`;
  if (rule === "two-stage" && values === 1) return `${times}. Your first answer is randomized once, and ${here} keeps the outcome. Every report is drawn from that outcome, whatever you answer later.`;
  if (rule === "two-stage") return `${times}. Each different answer, up to ${thousands(values)} of them, is randomized once, and ${here} keeps the outcome; later ones use that of your first answer. Every report is drawn from the outcome that belongs to your answer. Whoever links many of your reports, for example by your network address, can find out when your answer changes and which earlier answer returns.`;
  if (rule === "evolving") return `${times}, whether or not your answer has changed. Chance picks the one change that is reported: your first answer or a later change, of which up to ${thousands(changes)} count. One report tells about it, changed by chance, and all others are coins.`;
  if (!survey.showsChanges) return `${times}. All reports repeat the first one, whatever you answer later: they tell nothing more.`;
  return `${times}. The same answer repeats the same report, for up to ${thousands(values)} different answers; after those ${here} repeats the first report. Whoever links your reports, for example by your network address, sees when your answer changes and which earlier answer returns.`;
}

/** Which round of how many this is, and what that means for whoever answers. */
function round(survey, here, lasting) {
  const place = survey.terms.campaign;
  if (!place) return "";
  const { round: number, rounds, words } = place;
  return [
    `This is round ${number} of ${rounds} of one collection.`,
    ...(number > 1 ? [`The survey names the sums of round ${number - 1} that it was made from, so that whoever has them can check it.`] : []),
    ...(number < rounds ? [`The sums of this round decide what round ${number + 1} asks, by a published rule: ${words}.`] : []),
    `${capital(here)} answers one round${lasting ? "" : ", as far as it remembers"}: once it has made a report for one, it makes none for another.`,
  ].join(" ");
}

/** How the answers of one device over the periods hang together. */
export function course({ rule, values = 1, changes = 0 }) {
  if (rule === "evolving") return `one change is reported, of up to ${thousands(changes)} that count`;
  if (rule === "two-stage" && values === 1) return "the first answer is randomized once and kept, and every report is drawn from what is kept";
  const most = values === 1 ? "1 different answer" : `${thousands(values)} different answers`;
  return {
    none: "each answer is randomized afresh",
    memoize: `the same answer repeats the same report, for up to ${most}`,
    "two-stage": `the same answer is randomized once and kept, for up to ${most}, and every report is drawn from what is kept`,
  }[rule];
}

function storage(survey, here) {
  return `${capital(here)} has not promised to keep the data of this site. If it deletes them, it forgets what was sent and begins anew, with up to ${thousands(epochsOf(survey))} more reports. What is said here about all reports together is about those that it remembers.`;
}

function device(survey, here) {
  if (survey.terms.collectors.length) {
    return `${capital(here)} does not keep your answer. It keeps the parts until all collectors have taken theirs, and whoever can read the data of ${here} until then can read your answer from them. Then they are erased; what stays is that you answered, for which period, and what it cost.`;
  }
  if (survey.terms.streams) {
    return `${capital(here)} keeps whether your last answer was the one that it follows, to notice a change. Whoever can read the data of ${here} can read that. Leaving deletes it.`;
  }
  if (survey.terms.stages) {
    return `${capital(here)} keeps your answer and what it was randomized to, because all reports are drawn from that. Whoever can read the data of ${here} can read your answer. Leaving deletes both.`;
  }
  if (survey.terms.keeps) {
    return `${capital(here)} keeps your answer and its randomized report, because it must repeat the report. Whoever can read the data of ${here} can read your answer. Leaving deletes both.`;
  }
  return `${capital(here)} does not keep your answer. It keeps the randomized report until the server has taken it, and then erases it; what stays is that you answered, for which period, and what it cost${survey.terms.retention === "reports" ? "; and, while the server can delete the report, its random number" : ""}.`;
}

/** What the service keeps of a report. */
export function kept({ terms }) {
  if (terms.deleteDays !== null) {
    const days = `${terms.deleteDays} ${terms.deleteDays === 1 ? "day" : "days"}`;
    return `sums only; reports wait in files to be counted, and are deleted at most ${days} after the last report of their period can arrive`;
  }
  if (terms.collectors.length) return "the parts until the period is over and added up, then sums only";
  return terms.retention === "tally"
    ? "sums only; no report is kept once it is counted"
    : "every randomized report, to be analysed again later";
}

/** What a service that keeps sums, or reports, can do for somebody who leaves. */
export function stays(retention, deleteDays = null, collectors = 0) {
  if (collectors) return "What was sent is counted: the collectors do not take single parts out again.";
  if (deleteDays !== null) return "What was sent is counted: the server does not take single reports out of its files or out of the sums.";
  return retention === "tally"
    ? "What was counted stays in the sums: the server keeps no report that could be taken out again."
    : "The server keeps your randomized reports. It can be asked to delete those of periods that it has not closed; the request shows it the network address behind those reports.";
}
