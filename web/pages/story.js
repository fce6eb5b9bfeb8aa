/**
 * What chance did to an answer, step by step. A step is { text, coin?, outcome }; `coin` has the probability of its first
 * side and which side came up. The sentences are in the catalogue of words, and the facts are computed here.
 */

import { decode, hashFields, hashOf, hashingOf, levelWord, marks, partOf, whose } from "./decode.js";
import { count, label, percent, quantity } from "./format.js";
import { joined, say, text, word } from "./words.js";

const coinOf = ({ chance, hit }, yes, no) => ({ chance, hit, yes: say(`coin.${yes}`), no: say(`coin.${no}`) });
const outcomeOf = ({ hit }, yes, no) => say("story.said", { side: word(`coin.${hit ? yes : no}`) });
const saysStep = (outcome) => ({ text: say("story.says"), outcome });

/** A step with a coin that says one of two things. */
const coinStep = (id, coin, yes, no, facts = {}) => ({
  text: say(id, { chance: percent(coin.chance, 2), ...facts }),
  coin: coinOf(coin, yes, no),
  outcome: outcomeOf(coin, yes, no),
});

const drawn = (what, used = true) => say(used ? "story.drawn" : "story.drawn.unused", { what });

function response(domain, [keep, pick], says) {
  return [
    coinStep("story.keep", keep, "keep", "replace"),
    { text: say("story.replace", { n: domain.size }), outcome: drawn(label(domain.label(pick.got)), !keep.hit) },
    saysStep(says),
  ];
}

/** Two stages: what is drawn once and kept, then what is drawn for each report. */
function twice({ size, label: name = (i) => say("cell", { n: i }) }, [keep, pick, again, other], says, noun = "answer") {
  const any = say(`story.twice.any.${noun}`, { n: size });
  return [
    coinStep(`story.twice.keep.${noun}`, keep, "keep", "replace"),
    { text: any, outcome: drawn(label(name(pick.got)), !keep.hit) },
    coinStep("story.twice.send", again, "send", "replace"),
    { text: any, outcome: drawn(label(name(other.got)), !again.hit) },
    saysStep(says),
  ];
}

function bits(noun, yours, [others, own], says, first = "") {
  const set = (i) => (others.row[i >> 3] >> (i & 7)) & 1;
  let lit = 0;
  for (let i = 0; i < others.count; i++) if (i !== yours) lit += set(i);
  return [
    {
      text: first + say(`story.bits.others.${noun}`, { n: others.count, chance: percent(others.chance, 2) }),
      outcome: say("story.bits.set", { set: lit, of: others.count - 1 }),
    },
    {
      text: say("story.bits.own", { chance: percent(own.chance, 2) }),
      coin: coinOf(own, "set", "unset"),
      outcome: say(own.hit ? "story.bits.was" : "story.bits.wasnot"),
    },
    saysStep(says),
  ];
}

/** The second stage of bits: each is flipped or not. */
function flipStep({ chance, row, count: of }) {
  const flipped = row.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
  return { text: say("story.flips", { chance: percent(chance, 2) }), outcome: say("story.flipped", { flipped, of }) };
}

/** A bitmap that is kept, and flipped bit by bit for each report. */
function bitsTwice(yours, [others, own, flips], says) {
  const [first, second, last] = bits("answers", yours, [others, own], says, `${say("story.first.answer")} `);
  return [first, second, flipStep(flips), last];
}

/** A block of answers that is kept, then bits about its answers, in two stages. */
function blockTwice({ protocol: { domain, blocks, width }, draws, says }) {
  const [choice, kept, again] = [blocks > 1 ? draws[0] : null, draws.find(({ row }) => row), draws.at(-1)];
  const picked = {
    text: say("story.block.pick", { n: domain.size, blocks, width }),
    outcome: say("story.block.picked", { n: (choice?.got ?? 0) + 1 }),
  };
  return [
    ...(choice ? [picked] : []),
    {
      text: say(blocks > 1 ? "story.block.bits" : "story.block.bits.all", { n: width, chance: percent(kept.chance, 2) }),
      outcome: say("story.kept"),
    },
    flipStep(again),
    saysStep(says),
  ];
}

/** What is said first of a number that lies beyond an end. */
const beyondOf = (domain, value, taken) =>
  taken === Number(value) ? "" : `${say("story.beyond", { taken: quantity(taken, domain.unit) })} `;

/** A number that goes to a mark, whose end is kept. */
function endTwice({ protocol: { steps: marked }, domain, value, draws, says }) {
  const { low, high, unit } = domain;
  const end = (i) => quantity(i ? high : low, unit);
  const between = say(marked === 1 ? "story.marks.two" : "story.marks", { n: marked + 1, low: end(0), high: end(1) });
  const [keep, pick, again, other] = draws.slice(-4);
  const either = (one, hit) => ({ text: say("story.end.any"), outcome: drawn(end(one.got), !hit) });
  return [
    {
      text: `${beyondOf(domain, value, domain.number(domain.read(value)))}${between} ${say("story.end.round")}`,
      outcome: say("story.decided"),
    },
    coinStep("story.end.keep", keep, "keep", "replace"),
    either(pick, keep.hit),
    coinStep("story.twice.send", again, "send", "replace"),
    either(other, again.hit),
    saysStep(says),
  ];
}

function hashing(size, hashBits, position, report, draws, says, noun) {
  const [keep, pick] = draws.slice(-2);
  const groups = 2 ** hashBits;
  const fields = hashFields(size, hashBits, report);
  const facts = { n: size, groups: String(groups), each: Math.max(1, size / groups) };
  return [
    {
      text: say(`story.hash.${noun}`, facts),
      outcome: position === null ? say("story.hash.drawn") : say("story.hash.group", { group: String(hashOf(fields, position)) }),
    },
    {
      text: say("story.hash.keep", { chance: percent(keep.chance, 2) }),
      coin: coinOf(keep, "keep", "replace"),
      outcome: keep.hit ? outcomeOf(keep, "keep", "replace") : say("story.hash.replaced", { group: String(pick.got) }),
    },
    saysStep(says),
  ];
}

function subset(n, members, holds, says) {
  return [
    {
      text: say("story.subset", { members, n, chance: percent(holds.chance, 2) }),
      coin: coinOf(holds, "among", "out"),
      outcome: say(holds.hit ? "story.subset.among" : "story.subset.out"),
    },
    { text: say("story.subset.rest"), outcome: says },
  ];
}

/** A subset whose members are drawn together, by a hash function; where they are too many to list, among all that it was made for. */
function seededSubset({ protocol, domain, spec, value, report, says }) {
  const { supports } = decode(protocol, spec, report);
  const holds = { chance: protocol.inside, hit: protocol.supports(domain.read(value), report) };
  return subset(supports ? domain.size : protocol.slots, supports ? supports.length : protocol.count, holds, says);
}

function hadamard(domain, [keep, pick], says) {
  return [
    { text: say("story.output", { n: domain.size, outputs: pick.of }), outcome: drawn(text(pick.got)) },
    coinStep("story.output.move", keep, "move", "leave"),
    saysStep(says),
  ];
}

function rappor({ bloom_bits: width, hashes }, draws, says, first = "") {
  const [, others, ...own] = draws;
  const set = own.filter(({ hit }) => hit).length;
  return [
    {
      text: first + say("story.filter", { hashes: String(hashes), width, chance: percent(others.chance, 2) }),
      outcome: say("story.filter.set", { set: String(set), hashes: String(hashes) }),
    },
    saysStep(says),
  ];
}

/** The public hash function, which every report about a text begins with. */
function hashed({ domain, value, spec, draws }, kept = false) {
  const { cells, cohorts } = hashingOf(spec);
  const which = draws[0].got;
  const cell = domain.open && !spec.bloom_bits ? domain.cell(domain.read(value), which) : null;
  const step = {
    text: say(kept ? "story.cohort.kept" : "story.cohort", { cohorts, cells }),
    outcome: cell === null ? say("story.number", { n: which }) : say("story.number.cell", { n: which, cell }),
  };
  return { step, cell, cells, rest: draws.slice(1) };
}

function hashedGroups(told) {
  const { step, cell, cells, rest } = hashed(told);
  const inner = told.report.slice(cohortBytes(hashingOf(told.spec).cohorts));
  return [step, ...hashing(cells, told.spec.hash_bits ?? 1, cell, inner, rest, told.says, "cells")];
}

const cohortBytes = (cohorts) => Math.max(1, Math.ceil(Math.log2(cohorts) / 8));

/** How a number becomes a mark. */
function rounding(protocol, domain, value, up) {
  const { positions, place } = protocol;
  const { at } = marks(protocol);
  const read = domain.read(value);
  const { below, rest } = place(read);
  const position = below + up.hit;
  const ends = { n: positions, low: at(0), high: at(positions - 1) };
  const between = say(positions === 2 ? "story.marks.two" : "story.marks", ends);
  const before = `${beyondOf(domain, value, domain.number(read))}${between} `;
  const facts = { below: at(below), above: rest ? at(below + 1) : "", chance: percent(up.chance, 2) };
  const step = rest
    ? {
        text: before + say("story.round", facts),
        coin: coinOf(up, "up", "down"),
        outcome: say("story.rounded", { mark: at(position) }),
      }
    : { text: before + say("story.mark"), outcome: say("story.mark.stays", { mark: at(below) }) };
  return { step, below, position };
}

/** A number: rounded to a mark by chance, then kept near it or not. */
function windowed({ protocol, domain, value, draws: [up, keep, near, far], says }) {
  const { width, forms } = protocol;
  const { step, position } = rounding(protocol, domain, value, up);
  const inside = { text: say("story.window", { n: width, forms }), outcome: drawn(count(position + near.got), keep.hit) };
  return [
    step,
    coinStep(width > 1 ? "story.window.stay" : "story.mark.stay", keep, "stay", "anywhere"),
    ...(width > 1 ? [inside] : []),
    { text: say("story.window.any", { n: forms }), outcome: drawn(count(far.got), !keep.hit) },
    saysStep(says),
  ];
}

const SHOWN = 12;

/** The first of a list, and how many more there are. */
function cutOff(all, said) {
  const first = all.slice(0, SHOWN).map(said).join(", ");
  return all.length > SHOWN ? say("list.more", { first, n: all.length - SHOWN }) : first;
}

const chance = (weight, total) => percent(Number((weight * 10n ** 9n) / total) / 1e9, 2);

/** A number: rounded to a mark by chance, then one draw from the row of the mark. */
function drawnForMean({ protocol, domain, value, draws: [up, pick], says }) {
  const { rows, total } = protocol;
  const { step, below } = rounding(protocol, domain, value, up);
  const row = rows[below];
  const chances = cutOff(row, (weight, i) => say("story.table.number", { n: String(i + 1), chance: chance(weight, total) }));
  return [
    step,
    { text: say("story.table.mark", { n: row.length, chances }), outcome: drawn(say("story.table.drawn", { n: pick.got + 1 })) },
    saysStep(says),
  ];
}

const quoted = (words) => say("quoted", { text: words });

/** A table: one draw from the row of the answer. */
function drawnFromTable({ protocol: { outputs, rows, total, rowOf = (place) => place }, domain, value, draws: [pick], says }) {
  const row = rows[rowOf(domain.read(value))];
  const chances = cutOff(row, (weight, i) => say("story.table.output", { output: label(outputs[i]), chance: chance(weight, total) }));
  return [
    { text: say("story.table", { n: row.length, chances }), outcome: drawn(quoted(label(outputs[pick.got]))) },
    saysStep(`${says}`),
  ];
}

/** A place: it moves by an offset, or is drawn anew; what leaves the grid is moved to its edge. */
function moved({ protocol: { reach, plane, offsets, chances, domain: { shape } }, value, draws: [move, far], says }) {
  const { stays, anywhere, total } = chances;
  const near = move.got < offsets.length;
  const [north, east] = near ? offsets[move.got] : [];
  const towards = (by, one, other) => (by === 0 ? "" : say(`story.place.${by > 0 ? one : other}`, { n: Math.abs(by) }));
  const how = near && [towards(north, "north", "south"), towards(east, "east", "west")].filter(Boolean).join(", ");
  const width = shape[1] + 2 * reach;
  const anew = near ? [] : [Math.floor(far.got / width) - reach + 1, (far.got % width) - reach + 1];
  const [up, right] = near ? [value.north + north, value.east + east] : anew;
  const outside = up < 1 || right < 1 || up > shape[0] || right > shape[1];
  const cell = () => drawn(say("place", { north: String(up), east: String(right) })).replaceAll("-", "−");
  const by = how ? say("story.place.moved", { how }) : say("story.place.stays");
  return [
    {
      text: say("story.place.move", { n: reach, chance: chance(stays, total) }),
      outcome: near ? by : say("story.place.anew"),
    },
    { text: say("story.place.any", { chance: chance(anywhere, total), n: plane }), outcome: near ? say("story.place.no") : cell() },
    { text: say("story.place.edge"), outcome: say(outside ? "story.place.outside" : "story.place.inside") },
    saysStep(says),
  ];
}

/** The chances of parts, figures or levels, the first ones by name. */
function chancesOf(groups, id, named = ({ name }) => name) {
  const all = groups.reduce((sum, { weight }) => sum + weight, 0);
  return (one, i) => say(id, { name: named(one, i), chance: percent(one.weight / all) });
}

const partChances = (groups) => cutOff(groups, chancesOf(groups, "story.chance"));

/** A record: one part is chosen, and its report is made as if it had been asked alone. */
function part({ protocol, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf(protocol, report);
  const choice = { text: say("story.part", { chances: partChances(protocol.groups) }), outcome: say("story.part.chosen", { name }) };
  return [choice, ...told(own, spec.groups[group].protocol, value[name], inner, rest)];
}

/** A record: some parts are chosen, and the number of the combination of their answers takes the place of the answer. */
function combination({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf(protocol, report);
  const chances = partChances(protocol.groups);
  const choice = { text: say("story.parts", { chances }), outcome: say("story.parts.chosen", { name }) };
  const after = (answer) => told(own, spec.groups[group].protocol, answer, inner, rest);
  if (protocol.views[group].length === 1) return [choice, ...after(value[name])];
  const place = protocol.combination(domain.read(value), group);
  const number = { text: say("story.combination", { n: own.domain.size, place }), outcome: say("story.combination.finer") };
  return [choice, number, ...after(place)];
}

/** Strata go along as they are; the rest is the story of the answer. */
function stratum({ protocol: { clear, inner: own, domain }, spec, value, report, draws }) {
  const said = clear.map((name) => ({
    text: say("story.clear", { name, value: String(value[name]) }),
    outcome: say("story.clear.unprotected"),
  }));
  const last = domain.columns.at(-1).name;
  return [...said, ...told(own, spec.inner, value[last], report.slice(report.length - own.reportBytes), draws)];
}

/** A stratum and the answer: both are one combination, and its number takes the place of the answer. */
function privateStratum({ protocol, domain, spec, value, report, draws, says }) {
  const { law, positions, place, shared } = protocol;
  const { name, domain: own } = domain.columns.at(-1);
  const { step, position } = positions ? rounding({ positions, place, domain: own }, own, value[name], draws[0]) : {};
  const read = domain.read(value);
  const number = protocol.combined(read, positions ? position : read.at(-1));
  const which = positions ? word("story.stratum.mark") : word("story.stratum.number", { n: number });
  const together = {
    text: say("story.stratum", { strata: shared.join(", "), name, n: law.domain.size, which }),
    outcome: say("story.stratum.yours", { n: number }),
  };
  const rest = told(law, spec.law, number, report, draws.slice(positions ? 1 : 0));
  return [...(step ? [step] : []), together, ...rest.slice(0, -1), { ...rest.at(-1), outcome: says }];
}

/** A figure of one number or two: it is chosen, and from then on it takes the place of the answer. */
function figure({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf({ groups: protocol.figures }, report);
  const taken = protocol.figure(domain.read(value), group);
  const choice = {
    text: say("story.figure", { chances: partChances(protocol.figures), taken: quantity(taken) }),
    outcome: say("story.chosen", { name: quoted(name) }),
  };
  return [choice, ...told(own, spec.groups[group].protocol, taken, inner, rest)];
}

/** A level of ranges or rectangles: how finely the numbers are cut is chosen, and the report is about the number of the node. */
const cut =
  (kind) =>
  ({ protocol, domain, spec, value, report, draws: [, ...rest] }) => {
    const { group, inner, protocol: own } = partOf(protocol, report);
    const named = (one, i) => levelWord(protocol, one, i);
    const name = named(protocol.levels[group], group);
    const chances = protocol.levels.map(chancesOf(protocol.levels, "story.chance.level", named)).join(", ");
    const place = protocol.project(domain.read(value), group);
    return [
      { text: say(`story.${kind}`, { chances }), outcome: say("story.chosen", { name }) },
      { text: say(`story.${kind}.node`, { name, place }), outcome: say(`story.${kind}.finer`) },
      ...told(own, spec.groups[group].protocol, place, inner, rest),
    ];
  };

/** A prefix of the answer's bits: it is chosen, and a public map puts it into a cell, which takes the place of the answer. */
function prefix({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { group, inner, protocol: own } = partOf(protocol, report);
  const name = levelWord(protocol, protocol.levels[group], group);
  const length = protocol.lengths[group];
  const all = length < domain.bits ? "story.prefix.first" : "story.prefix.all";
  const which = word(all, { length, bits: domain.bits });
  const cell = protocol.project(domain.read(value), group);
  return [
    { text: say("story.prefix", { n: domain.bits, which }), outcome: say("story.chosen", { name }) },
    { text: say("story.prefix.map", { n: own.domain.size }), outcome: say("story.prefix.cell", { n: cell }) },
    ...told(own, spec.groups[group].protocol, cell, inner, rest),
  ];
}

/** A stream of answers: what is picked once, and the bit of this epoch, if it has one. */
function stream({ protocol, draws, says }) {
  const coin = draws.find(({ chance: own }) => own !== undefined);
  const keep = protocol.thresholds.keep;
  const kept = Number((keep.numerator * 10n ** 12n) / 2n ** 64n) / 1e12;
  return [
    { text: say("story.stream", { chance: percent(1 / (1 + 2 * protocol.changes), 2) }), outcome: say("story.picked") },
    {
      text: say("story.stream.bit", { chance: percent(kept, 2) }),
      outcome: coin ? say("story.stream.is", { bit: String(Number(coin.hit)) }) : say("story.stream.none"),
    },
    saysStep(says),
  ];
}

/** What was drawn from a set that is larger than what is reported; the draws that follow come back, too. */
function cutDown(items, most, draws) {
  if (items.length <= most) return { first: [], rest: draws };
  // The first of these draws is none where only one position is left to choose from.
  const step = { text: say("story.set.cut", { n: most }), outcome: say("story.set.were", { kept: most, of: items.length }) };
  return { first: [step], rest: draws.slice(most) };
}

/** A cell of a set under a public hash function. */
function cellOfSet({ protocol: { domain, thresholds }, spec: { cells, cohorts }, items, draws, says }) {
  const { most, items: all } = domain;
  const { first, rest: [which, coin, pick] } = cutDown(items, most, draws);
  const share = Number((thresholds.ownCell.numerator * BigInt(most) * 10n ** 12n) >> 64n) / 1e12;
  return [
    ...first,
    { text: say("story.set.cohort", { cohorts, n: all.size, cells, most }), outcome: say("story.number", { n: which.got }) },
    {
      text: say("story.set.cell", { chance: percent(share, 2) }),
      coin: coinOf(coin, "yours", "another"),
      outcome: outcomeOf(coin, "yours", "another"),
    },
    { text: say("story.set.pick"), outcome: drawn(say("story.set.picked", { n: pick.got + 1, of: pick.of })) },
    saysStep(says),
  ];
}

/** A subset of items and made-up ones. */
function subsetForSet({ protocol: { domain }, spec: { subset_size: members }, items, draws, says }) {
  const { most, items: all } = domain;
  const { first, rest: [coin, shared] } = cutDown(items, most, draws);
  const own = { items: Math.min(items.length, most), made: Math.max(0, most - items.length) };
  return [
    ...first,
    { text: say("story.set.subset", { members, n: all.size, most }), outcome: say("story.set.has", own) },
    coinStep("story.set.something", coin, "something", "nothing"),
    { text: say("story.set.much"), outcome: coin.hit ? say("story.set.yours", { n: shared.got + 1 }) : say("story.set.none") },
    saysStep(says),
  ];
}

/** The steps of a law of sets, for the items that it is about. */
const OF_SETS = { __proto__: null, CollisionSets: cellOfSet, SubsetSets: subsetForSet };
const toldOfSet = (protocol, spec, items, draws, says) => OF_SETS[protocol.name]({ protocol, spec, items, draws, says });

/** Items, pairs or triples: chosen by chance, then the law of that group. */
function itemsOfSet({ protocol, domain, spec, value, report, draws, says }) {
  const { group, protocol: own } = partOf({ groups: protocol.kinds }, report);
  const named = (one) => levelWord(protocol, one);
  const name = named(protocol.kinds[group]);
  const [items, inner] = [domain.read(value), spec.groups[group].protocol];
  const several = protocol.kinds.length > 1;
  const all = protocol.kinds.reduce((sum, { weight }) => sum + weight, 0);
  const rest = all > 1 || draws[0]?.of === all ? draws.slice(1) : draws;
  const projected = protocol.project(items, group);
  const steps = toldOfSet(own, inner, projected, rest, says);
  if (!several) return steps;
  const chances = protocol.kinds.map(chancesOf(protocol.kinds, "story.chance.kind", named)).join(", ");
  const more = group ? ` ${say("story.kinds.has", { n: projected.length, name })}` : "";
  return [{ text: `${say("story.kinds", { chances })}${more}`, outcome: say("story.chosen", { name }) }, ...steps];
}

/** Keys with numbers: each is rounded to an end, then the law of the set of keys at their ends. */
function keysAtEnds({ protocol, domain, spec, value, draws, says }) {
  const { numbers, items } = domain;
  const pairs = domain.read(value);
  const up = (x) => percent((x - numbers.low) / (numbers.high - numbers.low), 2);
  const chances = pairs.map(([key, x]) => say("story.keys.up", { key: label(items.label(key)), chance: up(x) }));
  const coins = draws.slice(0, pairs.length);
  const side = (x, i) => word(`coin.${coins[i].hit || x === numbers.high ? "up" : "down"}`);
  const ends = pairs.map(([key, x], i) => say("story.keys.end", { key: label(items.label(key)), side: side(x, i) })).join(", ");
  const given = {
    low: quantity(numbers.low),
    high: quantity(numbers.high, numbers.unit),
    chances: joined(chances, ", "),
  };
  const rounded = {
    text: say(chances.length ? "story.keys" : "story.keys.none", given),
    outcome: ends ? say("story.keys.rounded", { ends }) : say("story.keys.nothing"),
  };
  return [rounded, ...toldOfSet(protocol.law, spec.law, pairs, draws.slice(pairs.length), says)];
}

const bitwise = ({ domain, value, draws, says }) => bits("answers", domain.read(value), draws, says);
const local = ({ domain, value, spec, report, draws, says }) =>
  hashing(domain.size, spec.hash_bits ?? 1, domain.read(value), report, draws, says, "answers");

/** A vector with noise, split between collectors. */
function summed({ protocol: { cells, read, enough, collectors }, domain, says }) {
  const written = read === "mean" ? say("story.sum.number", { first: label(domain.label(0)) }) : say("story.sum.list", { n: cells });
  return [
    { text: written, outcome: "" },
    { text: say("story.sum.noise", { n: enough }), outcome: "" },
    { text: say("story.sum.split", { n: collectors }), outcome: "" },
    saysStep(says),
  ];
}

/** One story per shape of reports: from { protocol, domain, spec, value, report, draws, says } to the steps. */
export const STORIES = {
  __proto__: null,
  answer: ({ domain, draws, says }) => response(domain, draws, says),
  "answer, twice": ({ domain, draws, says }) => twice(domain, draws, says),
  bits: bitwise,
  "bits, twice": ({ domain, value, draws, says }) => bitsTwice(domain.read(value), draws, says),
  "block of bits, twice": blockTwice,
  "end, twice": endTwice,
  hash: local,
  subset: (told) => (told.protocol.supports ? seededSubset(told) : subset(told.domain.size, told.protocol.count, told.draws[0], told.says)),
  block: ({ domain, draws, says }) => hadamard(domain, draws, says),
  "hashed answer, twice": (told) => {
    const { step, cells, rest } = hashed(told, true);
    return [step, ...twice({ size: cells }, rest, told.says, "cell")];
  },
  "hashed bits": (told) => {
    const { step, cell, rest } = hashed(told);
    return [step, ...bits("cells", cell ?? -1, rest, told.says)];
  },
  "hashed groups": hashedGroups,
  "filter, twice": (told) => {
    const [filter, last] = rappor(told.spec, told.draws.slice(0, -1), told.says, `${say("story.first.text")} `);
    return [hashed(told, true).step, filter, flipStep(told.draws.at(-1)), last];
  },
  filter: (told) => [hashed(told).step, ...rappor(told.spec, told.draws, told.says)],
  window: windowed,
  output: drawnFromTable,
  "mean output": drawnForMean,
  "profile output": drawnFromTable,
  part,
  combination,
  stratum,
  "private stratum": privateStratum,
  figure,
  range: cut("range"),
  prefix,
  rectangle: cut("rectangle"),
  place: moved,
  "cell of a set": ({ protocol, spec, domain, value, draws, says }) => toldOfSet(protocol, spec, domain.read(value), draws, says),
  "subset for a set": ({ protocol, spec, domain, value, draws, says }) => toldOfSet(protocol, spec, domain.read(value), draws, says),
  "items of a set": itemsOfSet,
  "keys at ends": keysAtEnds,
  stream,
  sum: summed,
};

/** The steps of one answer. `spec` is that of its protocol, `draws` what a `Recorder` saw. */
function told(protocol, spec, value, report, draws) {
  const says = `${decode(protocol, spec, report).text}.`;
  return STORIES[protocol.shape]({ protocol, domain: protocol.domain, spec, value, report, draws, says });
}

export const steps = ({ protocol }, spec, value, report, draws) => told(protocol, spec, value, report, draws);

/** Whom a report could have come from. */
export const deniable = ({ protocol }, spec, report) => whose(protocol, decode(protocol, spec, report));
