/**
 * Every sentence that a survey promises to a respondent, an operator or a reviewer. `src/deniable/surveys/promises.py` has
 * the same names and sentences, says what they mean, and a test compares the two.
 */

import { duration, factor, fraction } from "./format.js";

export const [STRONG, MODERATE, WEAK] = ["strong", "moderate", "weak"];
const [STRONG_UP_TO, MODERATE_UP_TO] = [1n, 3n]; // the largest epsilon of a band

const WATCHERS = "those who ask, whoever runs the server and whoever listens on the way";
const CAREFUL = "Answer only what you would also say openly.";

/** What the numbers of a survey are about, in words for its sentences. */
function about({ relation, questions: asked }) {
  if (relation === "profiles") {
    const unknown = "and knows no more of your value than the profiles say,";
    return {
      protection: "Protection of your profile",
      wavers: `Somebody who finds two joined profiles equally likely, ${unknown}`,
      guesses: "two equally likely profiles that are joined, by somebody who knows no more of your value than the profiles say",
      odds: `Whatever your profile is, the odds that somebody who knows no more of your value than the profiles say gives to one of two joined profiles`,
      secret: "which of two joined profiles is yours",
      beside: " Your value itself is not hidden, and profiles that are not joined can be told apart.",
    };
  }
  if (relation === "stream") {
    return {
      protection: "Protection",
      wavers: "Somebody who finds two courses of your answers over time equally likely",
      guesses: "two equally likely courses of answers over time",
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
      guesses: "two equally likely answers",
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
      guesses: several ? `two equally likely sets of places, each ${near} from the other at most` : `two equally likely places that are ${near}`,
      odds: several ? `Whatever your places are, the odds that anybody gives to one of two sets of them, each ${near} from the other at most,` : `Whatever your place is, the odds that anybody gives to one of two places ${near}`,
      secret: "in which of two neighbouring cells you are",
      beside: " Roughly where you are is not hidden: places that are far apart can be told apart.",
    };
  }
  return {
    protection: "Protection",
    wavers: `Somebody who finds two ${several ? "possible sets of answers" : "possible answers"} equally likely`,
    guesses: "two equally likely answers",
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
 * promised to keep it, `lasting` is false, and a survey of several epochs states nothing about all reports together.
 */
export function promises(survey, here = "this browser", lasting = true) {
  const bounded = lasting || epochsOf(survey) === 1;
  const said = {
    band: `${about(survey).protection}: ${band(survey, lasting)}.`,
    sure: sureOf(survey, bounded),
    seen: seen(survey, lasting),
    clear: saidInClear(survey),
    profiles: profiles(survey, here),
    distance: distance(survey),
    parts: parts(survey, here),
    people: people(survey, lasting),
    factor: factors(survey, bounded),
    rare: rare(survey, bounded),
    changes: bounded ? changes(survey) : "",
    linked: linked(survey, here),
    questions: questions(survey),
    lifetime: bounded || survey.showsChanges ? lifetime(survey) : `no number, as ${here} may forget`,
    storage: bounded ? "" : storage(survey, here),
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

const isAtMost = (text, most) => {
  const [top, bottom = 1n] = text.split("/").map(BigInt);
  return top <= most * bottom;
};

/** How well all that a device may send for the survey is protected; strong only if its ledger lasts. */
export function band(survey, lasting = true) {
  const { lifetimeEpsilon: level, budgetDelta: delta } = survey;
  if (level === null || !isAtMost(level, MODERATE_UP_TO)) return WEAK;
  if (delta !== null && oneIn(delta) < RARE) return WEAK;
  return isAtMost(level, STRONG_UP_TO) && (lasting || epochsOf(survey) === 1) ? STRONG : MODERATE;
}

/** How sure somebody can become at most who found two cases equally likely: rounded up to a tenth of a percent. */
export function sure(epsilon) {
  if (fraction(epsilon) > NEARLY_CERTAIN) return "more than 99.9 %";
  return `${(Math.ceil(1000 / (1 + Math.exp(-fraction(epsilon))) - 1e-9) / 10).toFixed(1)} %`;
}

const NEARLY_CERTAIN = Math.log(999);
const upTo = (epsilon) => (fraction(epsilon) > NEARLY_CERTAIN ? sure(epsilon) : `at most ${sure(epsilon)}`);

const level = (epsilon) => factor(fraction(epsilon));
/** Whether all reports together may tell more than one of them, and a number holds for that. */
const addsUp = (survey) => survey.terms !== null && !survey.showsChanges && (survey.terms.draws > 1 || survey.terms.stages);
const epochsOf = (survey) => survey.terms?.longitudinal.epochs ?? 1;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const thousands = (n) => n.toLocaleString("en");

function sureOf(survey, bounded) {
  const said = `${about(survey).wavers} can become ${upTo(survey.epsilon)} sure of one of them`;
  if (survey.showsChanges) return `${said} from one report. For all reports together no number holds.`;
  if (!bounded) return `${said} from ${what(survey)}.`;
  if (addsUp(survey)) return `${said} from ${what(survey)}, and ${upTo(survey.lifetimeEpsilon)} sure from all ${thousands(epochsOf(survey))} together.`;
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

/** What the promise leaves out, where a table has a delta: P(S | one answer) <= e^epsilon P(S | another) + delta. */
function rare(survey, bounded) {
  if (survey.delta === null) return "";
  const said = `All numbers here leave out cases whose probability is at most 1 in ${thousands(oneIn(survey.delta))} per report`;
  if (!bounded || survey.showsChanges || survey.terms === null || survey.terms.draws === 1) return `${said}.`;
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
  const far = upTo(`${BigInt(FAR) * BigInt(top)}/${bottom}`);
  return `${sizes.join("")}Epsilon grows with the distance: of places ${FAR} cell sides apart somebody who finds both equally likely can become ${far} sure of one of them from one report.`;
}

function seen(survey, lasting) {
  if (survey.showsChanges) return `${capital(WATCHERS)} can see when your answer changes and when an earlier one returns. ${CAREFUL}`;
  const { secret, beside } = about(survey);
  if (survey.relation === "sum") return seenByCollectors(survey, lasting);
  return {
    [STRONG]: `Nobody gets to see ${secret}: not those who ask, not whoever runs the server, not whoever listens on the way.${beside}`,
    [MODERATE]: `${epochsOf(survey) === 1 ? "Your report does" : "Your reports do"} not prove ${secret}, but ${WATCHERS} can make a good guess.${beside}`,
    [WEAK]: `${capital(WATCHERS)} can find out ${secret}, or nearly so.${beside} ${CAREFUL}`,
  }[band(survey, lasting)];
}

/** Who sees what of shares: nobody by itself, and all collectors together everything. */
function seenByCollectors(survey, lasting) {
  const sums = {
    [STRONG]: "The published sums do not tell what you chose.",
    [MODERATE]: "The published sums do not prove what you chose, but whoever sees them can make a good guess.",
    [WEAK]: `Whoever sees the published sums can find out what you chose, or nearly so. ${CAREFUL}`,
  }[band(survey, lasting)];
  return `${hostsOf(survey)} each get numbers that tell nothing by themselves. Together they could read what you chose. ${sums}`;
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

/** The picture in words: people who send another answer, where a report is an answer; else guesses that are right. */
export function people(survey, lasting = true) {
  const [question] = survey.questions;
  if (survey.questions.length === 1 && sendsAnother(question) !== null) return `${another(survey, question)}${addsUp(survey) ? " each time" : ""}.`;
  const many = epochsOf(survey) > 1;
  if (survey.relation === "sum") {
    const sums = many && lasting ? "the sums of all periods" : what(survey).replace("these", "the published");
    return `Of 100 guesses between ${about(survey).guesses}, made from ${sums}, at most about ${rightOf100(survey, lasting)} are right.`;
  }
  const all = many ? (lasting ? "all reports of one person" : "one report") : "a report like yours";
  return `Of 100 guesses between ${about(survey).guesses}, made from ${survey.showsChanges ? "one report" : all}, at most about ${rightOf100(survey, lasting)} are right.`;
}

/** Of 100 guesses between two equally likely cases, how many are right on average at most. */
export function rightOf100(survey, lasting = true) {
  const bound = (lasting ? survey.lifetimeEpsilon : null) ?? survey.epsilon;
  return Math.floor(100 / (1 + Math.exp(-fraction(bound))) + 0.5);
}

/** Of 100 people with the same answer, how many send another one on average; null where a report is no answer. */
export function sendsAnother({ protocol: given }) {
  const protocol = given.inner ?? given;
  if (!protocol.isAnswer) return null;
  const others = protocol.domain.size - 1;
  return (100 * others) / (Math.exp(fraction(protocol.epsilon)) + others);
}

/** What is kept of a first answer may be used for a later one: then this is about answers that stay the same. */
function another(survey, question) {
  const who = epochsOf(survey) > 1 && survey.terms.keeps ? "who give the same answer every time" : "who answer like you";
  const n = Math.floor(sendsAnother(question) + 0.5);
  return `Of 100 people ${who}, ${n ? `about ${n} ${n === 1 ? "sends" : "send"}` : "fewer than 1 sends"} another answer`;
}

function factors(survey, bounded) {
  const said = `${about(survey).odds} change by at most a factor of ${level(survey.epsilon)}`;
  if (survey.showsChanges) return `${said} from one report; for all reports together no factor holds.`;
  if (!bounded) return `${said} from ${what(survey)}.`;
  if (survey.terms?.stages) return `${said} from one report, and ${level(survey.lifetimeEpsilon)} in all, however often you take part.`;
  if (addsUp(survey)) return `${said} each time, and ${level(survey.lifetimeEpsilon)} in all, however often you take part.`;
  return `${said}${epochsOf(survey) > 1 ? " in all, however often you take part" : ""}.`;
}

/** One question after the other, where there are several. */
function questions(survey) {
  if (survey.questions.length === 1) return "";
  const said = survey.questions.map((question) => {
    const more = sendsAnother(question) === null ? "" : ` (${another(survey, question).toLowerCase()})`;
    return `${question.id} ${level(question.protocol.epsilon)}${more}`;
  });
  return `Question by question the factors${survey.relation === "sum" ? "" : " of one report"} are: ${said.join(", ")}. Together they multiply.`;
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
  return `${capital(here)} has not promised to keep the data of this site. If it deletes them, it forgets what was sent and begins anew, with up to ${thousands(epochsOf(survey))} more reports. So no number is promised for all reports together.`;
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
