/**
 * The facts of every sentence that a survey promises to a respondent, an operator or a reviewer. The sentences are in the
 * catalogue of words. `src/deniable/surveys/promises.py` computes the same facts, says what they mean, and a test compares
 * the two.
 */

import { factor, fraction } from "./format.js";
import { AT_MOST, EXACT, guesses } from "./guesses.js";
import { duration, either, figure, has, joined, say, text, word } from "./words.js";

export const [STRONG, MODERATE, WEAK] = ["strong", "moderate", "weak"];
const BANDS = [STRONG, MODERATE, WEAK];
const [MODERATE_FROM, WEAK_FROM] = [0.75, 0.9]; // the share of right guesses from which a band begins
const ADDS_LITTLE = 0.1; // what reports add to it at least, for a band below strong, and for a colour

const WATCHERS = word("watchers");
const RELATIONS = ["any", "profiles", "stream", "metric", "sum"];
const SEVERAL = ["any", "metric", "sum"];

const relationOf = ({ relation }) => (RELATIONS.includes(relation) ? relation : "any");

/** What the numbers of a survey are about, as a part of a sentence. */
function about(what, survey) {
  const relation = relationOf(survey);
  return word(`${what}.${relation}${survey.questions.length > 1 && SEVERAL.includes(relation) ? ".several" : ""}`);
}

/** The attributes that are sent as they are. */
const inClear = (asked) => [...new Set(asked.flatMap(({ protocol: { clear = [] } }) => clear))];

/** What is not protected at all, and that no number is about it. */
function saidInClear({ questions: asked }) {
  const names = inClear(asked);
  if (!names.length) return [];
  return [word(`clear.${names.length === 1 ? "one" : "more"}${asked.length === 1 ? "" : ".several"}`, { names: joined(names), watchers: WATCHERS })];
}

/**
 * The sentences that hold for this survey, by name. `where` is what keeps the ledger: "device" or "browser". If it has not
 * promised to keep it, `lasting` is false, which a note says for a survey of several epochs.
 */
export function promises(survey, where = "browser", lasting = true) {
  const found = guesses(survey);
  const here = word(`here.${where}`);
  const said = {
    line: line(survey, found),
    guess: allGuesses(survey, found),
    band: [protection(survey, found)],
    shows: survey.showsChanges ? [word("shows", { watchers: WATCHERS })] : [],
    clear: saidInClear(survey),
    profiles: profiles(survey, here),
    distance: distance(survey),
    parts: parts(survey, here),
    sure: [sureOf(survey)],
    factor: [factors(survey)],
    rare: rare(survey),
    changes: changes(survey),
    linked: linked(survey, here),
    lifetime: [lifetimeOf(survey)],
    storage: lasting || epochsOf(survey) === 1 ? [] : [word("storage", { here, n: epochsOf(survey) })],
  };
  if (survey.terms) {
    Object.assign(said, {
      often: [often(survey, here)],
      round: round(survey, here, lasting),
      device: [device(survey, here)],
      kept: [keptOf(survey)],
      published: survey.terms.results === "public" ? [word("public.promise", { n: survey.terms.minReports })] : [],
      leaving: [leavingOf(survey.terms.retention, survey.terms.deleteDays, survey.terms.collectors.length)],
      address: [address(survey.terms, where)],
      relay: relay(survey.terms),
      collectors: collectors(survey),
    });
  }
  const sentences = Object.entries(said).filter(([, words]) => words.length);
  return Object.fromEntries(sentences.map(([name, words]) => [name, text(joined(words, " "))]));
}

// -- how much a report tells -----------------------------------------------------------------------------------------

/** How well all that a device may send for the survey is protected, by the answer that is easiest to guess. */
export const band = (survey) => bandOf(survey, guesses(survey));

function bandOf(survey, found) {
  const worst = worstOf(found);
  return worst === STRONG && (survey.showsChanges || isRare(survey)) ? MODERATE : worst;
}

const protection = (survey, found) => word(`promise.band.${relationOf(survey)}`, { band: word(`band.${bandOf(survey, found)}`) });

const worstOf = (found) => BANDS[Math.max(...found.map((one) => BANDS.indexOf(bandOfOne(one))))];

function bandOfOne({ always, before }) {
  const share = always.share + 1e-9;
  if (share < MODERATE_FROM || share - before < ADDS_LITTLE) return STRONG;
  return share < WEAK_FROM ? MODERATE : WEAK;
}

/** The colour of a figure, by the guesses from one report: "raised" from 75 right ones of 100, "high" from 90; "" where it has none. */
export function colour({ once, before }) {
  const share = once.share + 1e-9;
  if (share < MODERATE_FROM || share - before < ADDS_LITTLE) return "";
  return share < WEAK_FROM ? "raised" : "high";
}

const NAMED = ["profiles", "metric", "sum"]; // relations with a line of their own

/** What happens to the answers before they are sent, and what that leaves to those who ask. */
function line(survey, found) {
  const owner = survey.terms?.owner ?? word("line.whoever");
  const named = NAMED.includes(survey.relation);
  const begin = named ? word(`line.${survey.relation}`, { owner, hosts: survey.relation === "sum" ? hostsOf(survey) : "" }) : word("line.any");
  const names = inClear(survey.questions);
  const clear = names.length ? [word("line.clear", { names: joined(names), owner })] : [];
  const coloured = found.filter(colour);
  if (!coloured.length) return [begin, ...(named ? [] : [word("line.cannot", { owner })]), ...clear];
  const { once } = coloured.reduce((worst, one) => (one.once.share > worst.once.share ? one : worst));
  const finds = once.share + 1e-9 >= WEAK_FROM && once.how !== AT_MOST;
  return [begin, word(finds ? "line.high" : "line.raised", { owner, right: of100(once) }), ...clear];
}

/** A share of guesses as a number of 100; a bound is rounded up. */
export function of100({ share, how = EXACT }) {
  const step = share > 0.0995 ? 1 : 10;
  const scaled = 100 * step * share;
  const number = how === AT_MOST ? Math.ceil(scaled - 1e-9) : Math.floor(scaled + 0.5 + 1e-9);
  if (number === 0) return word("right.fewer", { n: figure("0.1") });
  if (number === 100 && step === 1 && share < 1 - 1e-12 && how !== AT_MOST) return word("right.more", { n: 99 });
  return word(`right.${how}`, { n: figure(number / step) });
}

export const without = ({ before }) => of100({ share: before });
export const addsMore = ({ once, always }) => once.share !== always.share || once.how !== always.how;

/** How often guesses of one question are right. */
export function guess(survey, one) {
  const facts = { thinks: one.thinks, yours: one.yours, before: without(one), once: of100(one.once) };
  const kind = `guesses.${survey.relation === "sum" ? "sum" : "report"}`;
  return addsMore(one) ? word(`${kind}.more`, { ...facts, always: of100(one.always), n: epochsOf(survey) }) : word(kind, facts);
}

/** The same of all questions, one after the other. */
function allGuesses(survey, found) {
  const told = found.map((one) => guess(survey, one));
  return told.length === 1 ? told : told.map((guessed, i) => word("guesses.of", { text: survey.questions[i].text, guesses: guessed }));
}

/** How sure somebody can become at most who found two cases equally likely: rounded up, never to certainty. */
function sureWord(epsilon) {
  const rest = 1 / (1 + Math.exp(Math.min(fraction(epsilon), 700)));
  for (let digits = 1; digits < 10; digits++) {
    const whole = Math.floor(rest * 10 ** (2 + digits) + 1e-9);
    if (whole) return word("percent", { n: figure((100 - whole / 10 ** digits).toFixed(digits)) });
  }
  return word("percent", { n: 100 });
}

export const sure = (epsilon) => text(sureWord(epsilon));

const level = (epsilon) => factor(fraction(epsilon));
/** Whether all reports together may tell more than one of them, and a number holds for that. */
const addsUp = (survey) => survey.terms !== null && !survey.showsChanges && (survey.terms.draws > 1 || survey.terms.stages);
const epochsOf = (survey) => survey.terms?.longitudinal.epochs ?? 1;

function sureOf(survey) {
  const [wavers, once] = [about("wavers", survey), sureWord(survey.epsilon)];
  if (survey.showsChanges) return word("sure.changes", { wavers, sure: once });
  const every = either("every", epochsOf(survey));
  if (addsUp(survey)) return word("sure.again", { wavers, sure: once, source: sourceOf(survey), all: sureWord(survey.lifetimeEpsilon), every });
  const source = epochsOf(survey) > 1 ? word("source.all") : sourceOf(survey, "source.yours");
  return word("sure.once", { wavers, sure: once, source });
}

/** What numbers about one submission are read from. */
function sourceOf(survey, report = "source.one") {
  if (survey.relation !== "sum") return word(report);
  return word(epochsOf(survey) === 1 ? "source.sums" : "source.period");
}

const RARE = 1000000n; // a delta above one in so many is weak, whatever the epsilon
const oneIn = (delta) => {
  const [top, bottom = 1n] = delta.split("/").map(BigInt);
  return bottom / top;
};

const isRare = ({ budgetDelta }) => budgetDelta !== null && oneIn(budgetDelta) < RARE;

/** What the promise leaves out, where a table has a delta: P(S | one answer) <= e^epsilon P(S | another) + delta. */
function rare(survey) {
  if (survey.delta === null) return [];
  const n = oneIn(survey.delta);
  if (survey.showsChanges || survey.terms === null || survey.terms.draws === 1) return [word("rare.once", { n })];
  return [word("rare.all", { n, all: oneIn(survey.budgetDelta), draws: survey.terms.draws })];
}

/** Of two stages with several kept answers: what the number is about that the ledger counts. */
function changes({ terms, budgetEpsilon }) {
  return terms?.stages && terms.draws > 1 ? [word("changes", { epsilon: epsilonText(budgetEpsilon) })] : [];
}

/** Of two stages whose states work as a cookie: what that means. */
const linked = ({ terms }, here) => (terms?.longitudinal.linkable ? [word("linked", { here, watchers: WATCHERS })] : []);

/** Of answers with a profile: what stays here, and which profiles the numbers are about. */
function profiles(survey, here) {
  if (survey.relation !== "profiles") return [];
  const { questions: asked } = survey;
  const which = asked.length > 1 ? "profiles.over.of" : "profiles.over";
  const said = asked.map(({ id, protocol }) => word(which, { name: id, over: overOf(protocol) }));
  const several = asked.length > 1 || (survey.terms !== null && survey.terms.draws > 1);
  return [word("profiles", { here }), ...said, ...(several ? [word("profiles.together")] : [])];
}

/** Which profiles the numbers are about. */
function overOf({ pairs, morePairs, over }) {
  if (!pairs) return over;
  const named = pairs.map(([one, other]) => word("profiles.pair", { one, other }));
  const more = morePairs ? [word("profiles.pairs.more", { n: morePairs })] : [];
  return word("profiles.pairs", { pairs: joined([...named, ...more], "; ") });
}

const FAR = 5; // cell sides, for an example

/** Of places: what the numbers are for places that are further apart. */
function distance({ relation, epsilon, questions: asked }) {
  if (relation !== "metric") return [];
  const which = asked.length > 1 ? "distance.cell.of" : "distance.cell";
  const sizes = asked.map(({ id, protocol }) => ({ name: id, size: (protocol.inner ?? protocol).domain.cell }));
  const [top, bottom = "1"] = epsilon.split("/");
  const far = sureWord(`${BigInt(FAR) * BigInt(top)}/${bottom}`);
  return [...sizes.filter(({ size }) => size).map((facts) => word(which, facts)), word("distance", { n: FAR, sure: far })];
}

const hostsOf = ({ terms }) => joined(terms.collectors.map(({ host }) => host));

const SHOWN = 12;

/** What is reported of answers that have several parts. */
function parts({ questions: asked }, here) {
  const several = asked.filter(({ protocol }) => protocol.groups?.length > 1 || protocol.views);
  return several.map(({ id, protocol: { groups, views } }) => {
    const first = groups.slice(0, SHOWN).map(({ name }) => name).join(", ");
    const names = groups.length > SHOWN ? word("list.more", { first, n: groups.length - SHOWN }) : first;
    const answer = asked.length === 1 ? word("parts.answer") : word("parts.answer.to", { name: id });
    return word(views ? "parts.some" : "parts.one", { n: groups.length, answer, names, here, watchers: WATCHERS });
  });
}

function factors(survey) {
  const facts = { odds: about("odds", survey), factor: level(survey.epsilon) };
  if (survey.showsChanges) return word("factor.changes", facts);
  if (survey.terms?.stages) return word("factor.stages", { ...facts, all: level(survey.lifetimeEpsilon) });
  if (addsUp(survey)) return word("factor.again", { ...facts, all: level(survey.lifetimeEpsilon) });
  return word(epochsOf(survey) > 1 ? "factor.all" : "factor.once", facts);
}

/** An exact level as people read it: a decimal where that is exact or the fraction is long, and then rounded up. */
function epsilonText(exact) {
  const [top, bottom = 1n] = exact.split("/").map(BigInt);
  const digits = 10 - Math.max(1, String(top / bottom).length) + (top < bottom ? 1 : 0);
  const scale = 10n ** BigInt(Math.max(0, digits));
  const scaled = (top * scale + bottom - 1n) / bottom; // rounded up
  if (scaled * bottom !== top * scale && exact.length <= 9) return exact;
  return decimalWord(String(Number(scaled) / Number(scale)));
}

const decimalWord = (digits) => (/^\d+(\.\d+)?$/.test(digits) ? figure(digits, false) : digits);

/** For reviewers: the level of all that a device may send. */
export const lifetime = (survey) => text(lifetimeOf(survey));

function lifetimeOf(survey) {
  if (survey.lifetimeEpsilon === null) return word("lifetime.none");
  const epsilon = epsilonText(survey.lifetimeEpsilon);
  return survey.delta === null ? word("lifetime", { epsilon }) : word("lifetime.delta", { epsilon, delta: survey.budgetDelta });
}

// -- what is kept, where ---------------------------------------------------------------------------------------------

/** Who sees what if a relay mixes submissions, and who must not work together. */
const relay = ({ relay: named }) => (named ? [word("relay", { host: named.host, n: named.batch })] : []);

/** Who gets what where answers are split, and who must not work together. */
function collectors(survey) {
  const { length } = survey.terms.collectors;
  if (!length) return [];
  const enough = Math.max(...survey.questions.map(({ protocol }) => protocol.enough));
  return [word("collectors", { n: length, hosts: hostsOf(survey), enough })];
}

function address({ epochs, opens, expires, relay: named, collectors: split }, where) {
  const seenBy = split.length ? "collectors" : named ? "relay" : "server";
  const length = duration(Math.min(epochs.seconds, expires - opens));
  return word(`address.${seenBy}`, { length, more: where === "browser" ? word("address.browser") : "" });
}

function often(survey, here) {
  const { rule, epochs: n, values, changes: most } = survey.terms.longitudinal;
  if (n === 1) return word("often.once");
  if (rule === "none") return word(survey.terms.collectors.length ? "often.fresh.sum" : "often.fresh", { n });
  if (rule === "two-stage") return values === 1 ? word("often.stages.one", { n, here }) : word("often.stages", { n, values, here });
  if (rule === "evolving") return word("often.evolving", { n, changes: most });
  return survey.showsChanges ? word("often.memoized", { n, values, here }) : word("often.repeated", { n });
}

/** Which round of how many this is, and what that means for whoever answers. */
function round(survey, here, lasting) {
  const place = survey.terms.campaign;
  if (!place) return [];
  const { round: number, rounds, kind } = place;
  const rule = has(`campaign.${kind}`) ? word(`campaign.${kind}`) : "";
  return [
    word("round", { round: number, rounds }),
    ...(number > 1 ? [word("round.from", { before: number - 1 })] : []),
    ...(number < rounds ? [word("round.next", { next: number + 1, rule })] : []),
    word(lasting ? "round.one" : "round.one.remembers", { here }),
  ];
}

/** How the answers of one device over the periods hang together. */
export function course({ rule, values = 1, changes: n = 0 }) {
  if (rule === "evolving") return say("course.evolving", { n });
  if (rule === "two-stage" && values === 1) return say("course.stages.one");
  if (rule === "none") return say("course.fresh");
  return say(rule === "memoize" ? "course.memoized" : "course.stages", { most: word("course.answers", { n: values }) });
}

function device({ terms }, here) {
  if (terms.collectors.length) return word("device.collectors", { here });
  if (terms.streams) return word("device.evolving", { here });
  if (terms.stages) return word("device.stages", { here });
  if (terms.keeps) return word("device.repeats", { here });
  return word(terms.retention === "reports" ? "device.erases.number" : "device.erases", { here });
}

/** What the service keeps of a report. */
export const kept = (survey) => text(keptOf(survey));

function keptOf({ terms }) {
  if (terms.deleteDays !== null) return word("kept.files", { days: duration(86400 * terms.deleteDays) });
  if (terms.collectors.length) return word("kept.parts");
  return word(terms.retention === "tally" ? "kept.sums" : "kept.reports");
}

function leavingOf(retention, deleteDays, collectors) {
  if (collectors) return word("leaving.parts");
  if (deleteDays !== null) return word("leaving.files");
  return word(retention === "tally" ? "leaving.sums" : "leaving.reports");
}

/** What a service that keeps sums, or reports, can do for somebody who leaves. */
export const stays = (retention, deleteDays = null, collectors = 0) => text(leavingOf(retention, deleteDays, collectors));
