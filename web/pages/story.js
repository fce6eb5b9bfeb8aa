/**
 * What chance did to an answer, step by step, in the words of its protocol. A step is { text, coin?, outcome }; `coin` has
 * the probability of its first side and which side came up.
 */

import { decode, hashFields, hashOf, hashingOf, marks, partOf, whose } from "./decode.js";
import { count, label, percent, quantity } from "./format.js";

const keepCoin = ({ chance, hit }, yes, no) => ({ chance, hit, yes, no });

function response(domain, [keep, pick], says) {
  return [
    {
      text: `A coin decides whether your answer is kept. It says “keep” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "keep", "replace"),
      outcome: keep.hit ? "It said keep." : "It said replace.",
    },
    {
      text: `One of the ${count(domain.size)} answers is drawn, each with the same probability, yours among them. It counts only after “replace”.`,
      outcome: `Drawn: ${label(domain.label(pick.got))}${keep.hit ? " (not used)." : "."}`,
    },
    { text: "What the report says:", outcome: says },
  ];
}

/** Two stages: what is drawn once and kept, then what is drawn for each report. */
function twice({ size, label: name = (i) => `cell ${count(i)}` }, [keep, pick, again, other], says, noun = "answer") {
  const drawn = (one, hit) => `Drawn: ${label(name(one.got))}${hit ? " (not used)." : "."}`;
  const any = `One of the ${count(size)} ${noun}s is drawn, each with the same probability. It counts only after “replace”.`;
  return [
    {
      text: `First stage, once per ${noun}: a coin decides whether your ${noun} is kept. It says “keep” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "keep", "replace"),
      outcome: keep.hit ? "It said keep." : "It said replace.",
    },
    { text: any, outcome: drawn(pick, keep.hit) },
    {
      text: `Second stage, for every report: another coin decides whether the outcome of the first stage is sent. It says “send” with probability ${percent(again.chance, 2)}.`,
      coin: keepCoin(again, "send", "replace"),
      outcome: again.hit ? "It said send." : "It said replace.",
    },
    { text: any, outcome: drawn(other, again.hit) },
    { text: "What the report says:", outcome: says },
  ];
}

function bits(domain, noun, yours, [others, own], says) {
  const set = (i) => (others.row[i >> 3] >> (i & 7)) & 1;
  let lit = 0;
  for (let i = 0; i < others.count; i++) if (i !== yours) lit += set(i);
  return [
    {
      text: `There is one bit for each of the ${count(others.count)} ${noun}. Each bit of one that you did not give is set with probability ${percent(others.chance, 2)}, one coin each.`,
      outcome: `${count(lit)} of ${count(others.count - 1)} were set.`,
    },
    {
      text: `The bit of yours is set with probability ${percent(own.chance, 2)}.`,
      coin: keepCoin(own, "set", "not set"),
      outcome: own.hit ? "It was set." : "It was not set.",
    },
    { text: "What the report says:", outcome: says },
  ];
}

const secondFlips = ({ chance }) =>
  `Second stage, for every report: every bit of what came out is flipped with probability ${percent(chance, 2)}, one coin each.`;
const flippedOf = ({ row, count: bits }) =>
  `${count(row.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0))} of ${count(bits)} were flipped.`;

/** A bitmap that is kept, and flipped bit by bit for each report. */
function bitsTwice(domain, yours, [others, own, flips], says) {
  const [first, second, last] = bits(domain, "answers", yours, [others, own], says);
  return [
    { ...first, text: `First stage, once per answer. ${first.text}` },
    second,
    { text: secondFlips(flips), outcome: flippedOf(flips) },
    last,
  ];
}

/** A block of answers that is kept, then bits about its answers, in two stages. */
function blockTwice({ protocol: { domain, blocks, width }, draws, says }) {
  const [choice, kept, again] = [blocks > 1 ? draws[0] : null, draws.find(({ row }) => row), draws.at(-1)];
  const picked = {
    text: `The ${count(domain.size)} answers are cut into ${count(blocks)} blocks of ${count(width)}. One block is drawn once and kept for all your reports, each with the same probability. Your reports are about the answers of this block alone.`,
    outcome: `Block ${count((choice?.got ?? 0) + 1)}.`,
  };
  const [once, which] = blocks > 1 ? ["once per answer of the block, and once for all others", `the ${count(width)} answers of the block`] : ["once per answer", `the ${count(width)} answers`];
  return [
    ...(choice ? [picked] : []),
    {
      text: `First stage, ${once}: there is one bit for each of ${which}, set for yours and clear for the others. Then every bit is flipped with probability ${percent(kept.chance, 2)}, one coin each.`,
      outcome: "Drawn, and kept.",
    },
    { text: secondFlips(again), outcome: flippedOf(again) },
    { text: "What the report says:", outcome: says },
  ];
}

/** A number that goes to a mark, whose end is kept. */
function endTwice({ protocol: { steps }, domain, value, draws, says }) {
  const { low, high, unit } = domain;
  const taken = domain.number(domain.read(value));
  const end = (i) => quantity(i ? high : low, unit);
  const beyond = taken === Number(value) ? "" : `Your answer lies beyond an end, so it is taken as ${quantity(taken, unit)}. `;
  const marked = steps === 1 ? `Both ends are marked, ${end(0)} and ${end(1)}.` : `There are ${count(steps + 1)} marks from ${end(0)} to ${end(1)}, evenly spaced.`;
  const [keep, pick, again, other] = draws.slice(-4);
  const drawn = (one, hit) => ({ text: "One of the two ends is drawn, each with the same probability. It counts only after “replace”.", outcome: `Drawn: ${end(one.got)}${hit ? " (not used)." : "."}` });
  return [
    {
      text: `${beyond}${marked} Chance decides once, for all your reports, from where on a number between two marks goes to the upper one; over all devices nothing is lost on average.`,
      outcome: "Decided, and kept.",
    },
    {
      text: `First stage, once per mark: a mark goes to the high end more often the higher it is. A coin decides whether that end is kept. It says “keep” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "keep", "replace"),
      outcome: keep.hit ? "It said keep." : "It said replace.",
    },
    drawn(pick, keep.hit),
    {
      text: `Second stage, for every report: another coin decides whether the outcome of the first stage is sent. It says “send” with probability ${percent(again.chance, 2)}.`,
      coin: keepCoin(again, "send", "replace"),
      outcome: again.hit ? "It said send." : "It said replace.",
    },
    drawn(other, again.hit),
    { text: "What the report says:", outcome: says },
  ];
}

function hashing(domain, size, hashBits, position, report, draws, says, noun) {
  const [keep, pick] = draws.slice(-2);
  const groups = 2 ** hashBits;
  const fields = hashFields(size, hashBits, report);
  const own = position === null ? null : hashOf(fields, position);
  const where = own === null ? "" : ` Yours falls in group ${own}.`;
  return [
    {
      text: `A hash function is drawn for this report alone. It puts the ${count(size)} ${noun} into ${groups} groups of about ${count(Math.max(1, size / groups))} each.`,
      outcome: where.trim() || "Drawn.",
    },
    {
      text: `A coin decides whether your group is kept. It says “keep” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "keep", "replace"),
      outcome: keep.hit ? "It said keep." : `It said replace: any group is drawn, and it is ${pick.got}.`,
    },
    { text: "What the report says:", outcome: says },
  ];
}

function subset(domain, members, [holds], says) {
  return [
    {
      text: `The report is a set of ${count(members)} of the ${count(domain.size)} answers. A coin puts yours among them with probability ${percent(holds.chance, 2)}.`,
      coin: keepCoin(holds, "among them", "left out"),
      outcome: holds.hit ? "It is among them." : "It is left out.",
    },
    { text: "All other members are drawn from the other answers, each with the same probability.", outcome: says },
  ];
}

function hadamard(domain, [keep, pick], says) {
  return [
    {
      text: `Every possible report speaks for some of the ${count(domain.size)} answers. One is drawn from all of them, ${count(pick.of)} in number.`,
      outcome: `Drawn: ${count(pick.got)}.`,
    },
    {
      text: `A coin decides whether it is moved to one that speaks for yours; it says “move” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "move", "leave"),
      outcome: keep.hit ? "It said move." : "It said leave.",
    },
    { text: "What the report says:", outcome: says },
  ];
}

function rappor({ bloom_bits: width, hashes }, draws, says) {
  const [, others, ...own] = draws;
  return [
    {
      text: `That hash function sets ${hashes} of ${count(width)} bits for your text. Then every bit is flipped with probability ${percent(others.chance, 2)}, one coin each.`,
      outcome: `${own.filter(({ hit }) => hit).length} of your ${hashes} bits stayed set.`,
    },
    { text: "What the report says:", outcome: says },
  ];
}

/** The public hash function, which every report about a text begins with. */
function hashed({ domain, value, spec, draws }, kept = false) {
  const { cells, cohorts } = hashingOf(spec);
  const which = draws[0].got;
  const cell = domain.open && !spec.bloom_bits ? domain.cell(domain.read(value), which) : null;
  const step = {
    text: `One of ${count(cohorts)} public hash functions is drawn${kept ? " once and kept for all your reports" : ""}, each with the same probability. It puts every text there is into one of ${count(cells)} cells, so many texts share yours.`,
    outcome: `Number ${count(which)}${cell === null ? "" : `: your text is in cell ${count(cell)}`}.`,
  };
  return { step, cell, cells, rest: draws.slice(1) };
}

function hashedGroups(told) {
  const { step, cell, cells, rest } = hashed(told);
  const inner = told.report.slice(cohortBytes(hashingOf(told.spec).cohorts));
  return [step, ...hashing({ size: cells }, cells, told.spec.hash_bits ?? 1, cell, inner, rest, told.says, "cells")];
}

const cohortBytes = (cohorts) => Math.max(1, Math.ceil(Math.log2(cohorts) / 8));

/** How a number becomes a mark. */
function rounding(protocol, domain, value, up) {
  const { positions, place } = protocol;
  const { at } = marks(protocol);
  const read = domain.read(value);
  const { below, rest } = place(read);
  const position = below + up.hit;
  const beyond = domain.number(read) === Number(value) ? "" : `Your answer lies beyond an end, so it is taken as ${quantity(domain.number(read), domain.unit)}. `;
  const between = positions === 2 ? `Both ends are marked, ${at(0)} and ${at(1)}.` : `There are ${count(positions)} marks from ${at(0)} to ${at(positions - 1)}, evenly spaced.`;
  const step = rest
    ? {
        text: `${beyond}${between} Your answer lies between ${at(below)} and ${at(below + 1)}. A coin rounds it to one of them: up with probability ${percent(up.chance, 2)}, so that nothing is lost on average.`,
        coin: keepCoin(up, "up", "down"),
        outcome: `Rounded to ${at(position)}.`,
      }
    : { text: `${beyond}${between} Your answer lies on a mark, so there is nothing to round.`, outcome: `It stays at ${at(below)}.` };
  return { step, below, position };
}

/** A number: rounded to a mark by chance, then kept near it or not. */
function windowed({ protocol, domain, value, draws: [up, keep, near, far], says }) {
  const { width, forms } = protocol;
  const { step, position } = rounding(protocol, domain, value, up);
  const window = {
    text: `The window of this mark is ${count(width)} of the ${count(forms)} possible reports. One of them is drawn, each with the same probability.`,
    outcome: `Drawn: ${count(position + near.got)}${keep.hit ? "." : " (not used)."}`,
  };
  return [
    step,
    {
      text: `A coin decides whether the report stays ${width > 1 ? "in the window of" : "at"} this mark. It says “stay” with probability ${percent(keep.chance, 2)}.`,
      coin: keepCoin(keep, "stay", "anywhere"),
      outcome: keep.hit ? "It said stay." : "It said anywhere.",
    },
    ...(width > 1 ? [window] : []),
    {
      text: `One of all ${count(forms)} possible reports is drawn, each with the same probability. It counts only after “anywhere”.`,
      outcome: `Drawn: ${count(far.got)}${keep.hit ? " (not used)." : "."}`,
    },
    { text: "What the report says:", outcome: says },
  ];
}

const SHOWN = 12;

const chance = (weight, total) => percent(Number((weight * 10n ** 9n) / total) / 1e9, 2);

/** A number: rounded to a mark by chance, then one draw from the row of the mark. */
function drawnForMean({ protocol, domain, value, draws: [up, pick], says }) {
  const { rows, total } = protocol;
  const { step, below } = rounding(protocol, domain, value, up);
  const row = rows[below];
  const chances = row.slice(0, SHOWN).map((weight, i) => `number ${i + 1} ${chance(weight, total)}`);
  const more = row.length > SHOWN ? ` and ${count(row.length - SHOWN)} more` : "";
  return [
    step,
    {
      text: `There are ${count(row.length)} possible reports. A published table says how likely each is for every mark; for the mark at or below your answer: ${chances.join(", ")}${more}. One is drawn from the row of the mark.`,
      outcome: `Drawn: number ${count(pick.got + 1)}.`,
    },
    { text: "What the report says:", outcome: says },
  ];
}

/** A table: one draw from the row of the answer. */
function drawn({ protocol: { outputs, rows, total, rowOf = (place) => place }, domain, value, draws: [pick], says }) {
  const row = rows[rowOf(domain.read(value))];
  const chances = row.slice(0, SHOWN).map((weight, i) => `“${label(outputs[i])}” ${chance(weight, total)}`);
  const more = row.length > SHOWN ? ` and ${count(row.length - SHOWN)} more` : "";
  return [
    {
      text: `There are ${count(row.length)} possible reports. A published table says how likely each is for your answer: ${chances.join(", ")}${more}. One is drawn.`,
      outcome: `Drawn: “${label(outputs[pick.got])}”.`,
    },
    { text: "What the report says:", outcome: `${says}` },
  ];
}

/** A place: it moves by an offset, or is drawn anew; what leaves the grid is moved to its edge. */
function moved({ protocol: { reach, plane, offsets, chances, domain: { shape } }, value, draws: [move, far], says }) {
  const { stays, anywhere, total } = chances;
  const near = move.got < offsets.length;
  const [north, east] = near ? offsets[move.got] : [];
  const direction = (by, one, other) => (by === 0 ? "" : `${count(Math.abs(by))} to the ${by > 0 ? one : other}`);
  const words = near && [direction(north, "north", "south"), direction(east, "east", "west")].filter(Boolean).join(", ");
  const width = shape[1] + 2 * reach;
  const [up, right] = near ? [value.north + north, value.east + east] : [Math.floor(far.got / width) - reach + 1, (far.got % width) - reach + 1];
  const outside = up < 1 || right < 1 || up > shape[0] || right > shape[1];
  return [
    {
      text: `Chance moves your place by up to ${count(reach)} cells, in any direction. The further, the less likely: it stays in its cell with probability ${chance(stays, total)}.`,
      outcome: near ? (words ? `Moved: ${words}.` : "It stays in its cell.") : "Drawn anew instead.",
    },
    {
      text: `With probability ${chance(anywhere, total)} one of all ${count(plane)} cells on the grid and around it is drawn instead, each with the same probability.`,
      outcome: near ? "Not this time." : `Drawn: north ${up}, east ${right}.`.replaceAll("-", "−"),
    },
    { text: "What lies outside of the grid is moved to the nearest cell at its edge.", outcome: outside ? "It lay outside." : "It lies inside." },
    { text: "What the report says:", outcome: says },
  ];
}

/** The chances of the parts of a record, the first ones by name. */
function partChances({ groups }) {
  const all = groups.reduce((sum, { weight }) => sum + weight, 0);
  const chances = groups.slice(0, SHOWN).map((one) => `“${one.name}” with probability ${percent(one.weight / all)}`);
  return `${chances.join(", ")}${groups.length > SHOWN ? ` and ${count(groups.length - SHOWN)} more` : ""}`;
}

/** A record: one part is chosen, and its report is made as if it had been asked alone. */
function part({ protocol, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf(protocol, report);
  const choice = {
    text: `Only one part of your answer is reported. Chance chooses it, whatever you answered: ${partChances(protocol)}.`,
    outcome: `Chosen: “${name}”. Nothing about the other parts is in the report.`,
  };
  return [choice, ...told(own, spec.groups[group].protocol, value[name], inner, rest)];
}

/** A record: some parts are chosen, and the number of the combination of their answers takes the place of the answer. */
function combination({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf(protocol, report);
  const choice = {
    text: `Only some parts of your answer are reported. Chance chooses which, whatever you answered: ${partChances(protocol)}.`,
    outcome: `Chosen: “${name}”. Nothing about other parts is in the report.`,
  };
  const after = (answer) => told(own, spec.groups[group].protocol, answer, inner, rest);
  if (protocol.views[group].length === 1) return [choice, ...after(value[name])];
  const place = protocol.combination(domain.read(value), group);
  const number = {
    text: `Together they are one of ${count(own.domain.size)} combinations, counted from 0: yours is number ${count(place)}. Below, “your answer” is this number.`,
    outcome: "How these parts hang together is reported, and nothing finer.",
  };
  return [choice, number, ...after(place)];
}

/** Strata go along as they are; the rest is the story of the answer. */
function stratum({ protocol: { clear, inner: own, domain }, spec, value, report, draws }) {
  const said = clear.map((name) => ({ text: `Your ${name} (“${value[name]}”) goes along as it is.`, outcome: "It is not protected." }));
  const last = domain.columns.at(-1).name;
  return [...said, ...told(own, spec.inner, value[last], report.slice(report.length - own.reportBytes), draws)];
}

/** A stratum and the answer: both are one combination, and its number takes the place of the answer. */
function privateStratum({ protocol, domain, spec, value, report, draws, says }) {
  const { law, positions, place, shared } = protocol;
  const { name, domain: own } = domain.columns.at(-1);
  const { step, position } = positions ? rounding({ positions, place, domain: own }, own, value[name], draws[0]) : {};
  const read = domain.read(value);
  const combination = protocol.combined(read, positions ? position : read.at(-1));
  const size = count(law.domain.size);
  const which = positions ? "yours is that of the mark" : `yours is number ${count(combination)}`;
  const together = {
    text: `Your ${shared.join(", ")} and ${name} together are one of ${size} combinations, counted from 0: ${which}. Below, “your answer” is this number.`,
    outcome: `Your number: ${count(combination)}.`,
  };
  const rest = told(law, spec.law, combination, report, draws.slice(positions ? 1 : 0));
  return [...(step ? [step] : []), together, ...rest.slice(0, -1), { ...rest.at(-1), outcome: says }];
}

/** A figure of one number or two: it is chosen, and from then on it takes the place of the answer. */
function figure({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf({ groups: protocol.figures }, report);
  const all = protocol.figures.reduce((sum, { weight }) => sum + weight, 0);
  const chances = protocol.figures.slice(0, SHOWN).map((one) => `“${one.name}” with probability ${percent(one.weight / all)}`);
  const more = protocol.figures.length > SHOWN ? ` and ${count(protocol.figures.length - SHOWN)} more` : "";
  const taken = protocol.figure(domain.read(value), group);
  const choice = {
    text: `Only one figure of your answer is reported. Chance chooses it, whatever you answered: ${chances.join(", ")}${more}. Every number is taken on a scale from −1, its low end, to 1, its high end. Below, “your answer” is the chosen figure, ${quantity(taken)}.`,
    outcome: `Chosen: “${name}”.`,
  };
  return [choice, ...told(own, spec.groups[group].protocol, taken, inner, rest)];
}

/** A level of ranges or rectangles: how finely the numbers are cut is chosen, and the report is about the number of the node. */
const cut =
  ({ about, cut, lies, rest: nothing }) =>
  ({ protocol, domain, spec, value, report, draws: [, ...rest] }) => {
    const { name, group, inner, protocol: own } = partOf(protocol, report);
    const all = protocol.levels.reduce((sum, { weight }) => sum + weight, 0);
    const chances = protocol.levels.map((one) => `${one.name} with probability ${percent(one.weight / all)}`);
    const node = protocol.project(domain.read(value), group);
    const choice = { text: `The report is about ${about}. Chance chooses into how many ${cut}, whatever you answered: ${chances.join(", ")}.`, outcome: `Chosen: ${name}.` };
    const place = { text: `Of ${name}, counted from 0, ${lies} ${count(node)}. The rest is about this ${lies.split(" ").at(-1)}.`, outcome: nothing };
    return [choice, place, ...told(own, spec.groups[group].protocol, node, inner, rest)];
  };
const range = cut({ about: "a range that your number lies in", cut: "ranges the numbers are cut", lies: "your number lies in range", rest: "Nothing finer about your number is in the report." });
const rectangle = cut({ about: "a rectangle that your two numbers lie in", cut: "rectangles they are cut", lies: "your numbers lie in rectangle", rest: "Nothing finer about your numbers is in the report." });

/** A prefix of the answer's bits: it is chosen, and a public map puts it into a cell, which takes the place of the answer. */
function prefix({ protocol, domain, spec, value, report, draws: [, ...rest] }) {
  const { name, group, inner, protocol: own } = partOf(protocol, report);
  const length = protocol.lengths[group];
  const bits = count(domain.bits);
  const part = length < domain.bits ? `the first ${count(length)} of its ${bits} bits` : `all its ${bits} bits`;
  const cell = protocol.project(domain.read(value), group);
  const choice = {
    text: `Your answer is written as ${bits} bits. Only one part of them is reported. Chance chooses it, whatever you answered: this report is about ${part}.`,
    outcome: `Chosen: ${name}.`,
  };
  const map = {
    text: `A public map puts them into one of ${count(own.domain.size)} cells, which very many answers share. Below, “your answer” is your cell.`,
    outcome: `Your cell: ${count(cell)}.`,
  };
  return [choice, map, ...told(own, spec.groups[group].protocol, cell, inner, rest)];
}

/** A stream of answers: what is picked once, and the bit of this epoch, if it has one. */
function stream({ protocol, draws, says }) {
  const coin = draws.find(({ chance: own }) => own !== undefined);
  const keep = protocol.thresholds.keep;
  const kept = Number((keep.numerator * 10n ** 12n) / 2n ** 64n) / 1e12;
  return [
    {
      text: `Chance picks once, whatever you answer: an answer to follow, a length of time, and which of your changes is reported, your first answer with probability ${percent(1 / (1 + 2 * protocol.changes), 2)}.`,
      outcome: "Picked.",
    },
    {
      text: `At the end of each such length of time a bit is sent. It is a fair coin, unless the picked change came in that time: then it says the direction of the change with probability ${percent(kept, 2)}.`,
      outcome: coin ? `The bit is ${Number(coin.hit)}.` : "Nothing ends in this period.",
    },
    { text: "What the report says:", outcome: says },
  ];
}

/** What was drawn from a set that is larger than what is reported; the draws that follow come back, too. */
function cutDown(items, most, draws) {
  if (items.length <= most) return { cut: [], rest: draws };
  // The first of these draws is none where only one position is left to choose from.
  const step = { text: `Your set has more than ${count(most)} items. ${count(most)} of them are drawn, each with the same probability.`, outcome: `${count(most)} of ${count(items.length)} were kept.` };
  return { cut: [step], rest: draws.slice(most) };
}

/** A cell of a set under a public hash function. */
function cellOfSet({ protocol: { domain, thresholds }, spec: { cells, cohorts }, items, draws, says }) {
  const { most, items: all } = domain;
  const { cut, rest: [which, coin, pick] } = cutDown(items, most, draws);
  const share = Number((thresholds.ownCell.numerator * BigInt(most) * 10n ** 12n) >> 64n) / 1e12;
  return [
    ...cut,
    {
      text: `One of ${count(cohorts)} public hash functions is drawn, each with the same probability. It puts the ${count(all.size)} items into ${count(cells)} cells, so that many items share a cell. Your set is filled up to ${count(most)} with made-up items, so that nobody sees how many you have.`,
      outcome: `Number ${count(which.got)}.`,
    },
    {
      text: `A coin decides whether the report is a cell of yours. With as many different cells as your set can have, it says “yours” with probability ${percent(share, 2)}; with fewer, less often.`,
      coin: keepCoin(coin, "yours", "another"),
      outcome: coin.hit ? "It said yours." : "It said another.",
    },
    { text: "One of your cells, or one of the others, is drawn, each with the same probability.", outcome: `Drawn: ${count(pick.got + 1)} of ${count(pick.of)}.` },
    { text: "What the report says:", outcome: says },
  ];
}

/** A subset of items and made-up ones. */
function subsetForSet({ protocol: { domain }, spec: { subset_size: members }, items, draws, says }) {
  const { most, items: all } = domain;
  const { cut, rest: [coin, shared] } = cutDown(items, most, draws);
  return [
    ...cut,
    {
      text: `Your set is filled up to ${count(most)} with made-up items, so that nobody sees how many you have. The report is a set of ${count(members)} of the ${count(all.size)} items and ${count(most)} made-up ones.`,
      outcome: `Yours has ${count(Math.min(items.length, most))} items and ${count(Math.max(0, most - items.length))} made-up ones.`,
    },
    {
      text: `A coin decides whether it has anything of yours. It says “something” with probability ${percent(coin.chance, 2)}.`,
      coin: keepCoin(coin, "something", "nothing"),
      outcome: coin.hit ? "It said something." : "It said nothing.",
    },
    {
      text: "How much of yours is in it, and which other items, is drawn: all sets that fit are equally likely.",
      outcome: coin.hit ? `${count(shared.got + 1)} of yours, made-up ones among them.` : "None of yours.",
    },
    { text: "What the report says:", outcome: says },
  ];
}

/** The steps of a law of sets, for the items that it is about. */
const OF_SETS = { __proto__: null, CollisionSets: cellOfSet, SubsetSets: subsetForSet };
const toldOfSet = (protocol, spec, items, draws, says) => OF_SETS[protocol.name]({ protocol, spec, items, draws, says });

/** Items, pairs or triples: chosen by chance, then the law of that group. */
function itemsOfSet({ protocol, domain, spec, value, report, draws, says }) {
  const { name, group, protocol: own } = partOf({ groups: protocol.kinds }, report);
  const [items, inner] = [domain.read(value), spec.groups[group].protocol];
  const several = protocol.kinds.length > 1;
  const all = protocol.kinds.reduce((sum, { weight }) => sum + weight, 0);
  const rest = all > 1 || draws[0]?.of === all ? draws.slice(1) : draws;
  const projected = protocol.project(items, group);
  const steps = toldOfSet(own, inner, projected, rest, says);
  if (!several) return steps;
  const chances = protocol.kinds.map((one) => `its ${one.name} with probability ${percent(one.weight / all)}`).join(", ");
  const more = group ? ` Your set has ${count(projected.length)} ${name}. From here on they take the place of items.` : "";
  return [{ text: `The report is about one of these of your set. Chance chooses it, whatever you answered: ${chances}.${more}`, outcome: `Chosen: ${name}.` }, ...steps];
}

/** Keys with numbers: each is rounded to an end, then the law of the set of keys at their ends. */
function keysAtEnds({ protocol, domain, spec, value, draws, says }) {
  const { numbers, items } = domain;
  const pairs = domain.read(value);
  const chances = pairs.map(([key, x]) => `${label(items.label(key))} up with probability ${percent((x - numbers.low) / (numbers.high - numbers.low), 2)}`);
  const said = chances.length ? ` With your numbers: ${chances.join(", ")}.` : "";
  const coins = draws.slice(0, pairs.length);
  const outcome = pairs.map(([key, x], i) => `${label(items.label(key))} ${coins[i].hit || x === numbers.high ? "up" : "down"}`).join(", ");
  const rounding = {
    text: `Each of your numbers is rounded by a coin to ${quantity(numbers.low)} or to ${quantity(numbers.high, numbers.unit)}, so that nothing is lost on average.${said} From here on, an item is a key at one of the two ends.`,
    outcome: outcome ? `Rounded: ${outcome}.` : "There is no number to round.",
  };
  return [rounding, ...toldOfSet(protocol.law, spec.law, pairs, draws.slice(pairs.length), says)];
}

const bitwise = ({ domain, value, draws, says }) => bits(domain, "answers", domain.read(value), draws, says);
const local = ({ domain, value, spec, report, draws, says }) =>
  hashing(domain, domain.size, spec.hash_bits ?? 1, domain.read(value), report, draws, says, "answers");

/** A vector with noise, split between collectors. */
function summed({ protocol: { cells, read, enough, collectors }, domain, says }) {
  const written =
    read === "mean"
      ? `Your number is counted from ${label(domain.label(0))} on.`
      : `Your answer is written as a list of ${count(cells)} numbers: 1 at your answer, and 0 elsewhere.`;
  return [
    { text: written, outcome: "" },
    { text: `A little noise is added to each number. Of one person it is mostly 0; that of at least ${count(enough)} people together hides each of them.`, outcome: "" },
    { text: `What comes out is split into ${count(collectors)} parts, one for each collector. Each part alone is random numbers; only all of them together add up to this:`, outcome: "" },
    { text: "What the report says:", outcome: says },
  ];
}

/** One story per shape of reports: from { protocol, domain, spec, value, report, draws, says } to the steps. */
export const STORIES = {
  __proto__: null,
  answer: ({ domain, draws, says }) => response(domain, draws, says),
  "answer, twice": ({ domain, draws, says }) => twice(domain, draws, says),
  bits: bitwise,
  "bits, twice": ({ domain, value, draws, says }) => bitsTwice(domain, domain.read(value), draws, says),
  "block of bits, twice": blockTwice,
  "end, twice": endTwice,
  hash: local,
  subset: ({ domain, spec, draws, says }) => subset(domain, spec.subset_size, draws, says),
  block: ({ domain, draws, says }) => hadamard(domain, draws, says),
  "hashed answer, twice": (told) => {
    const { step, cells, rest } = hashed(told, true);
    return [step, ...twice({ size: cells }, rest, told.says, "cell")];
  },
  "hashed bits": (told) => {
    const { step, cell, cells, rest } = hashed(told);
    return [step, ...bits({ size: cells }, "cells", cell ?? -1, rest, told.says)];
  },
  "hashed groups": hashedGroups,
  "filter, twice": (told) => {
    const flips = told.draws.at(-1);
    const [filter, last] = rappor(told.spec, told.draws.slice(0, -1), told.says);
    const again = { text: secondFlips(flips), outcome: flippedOf(flips) };
    return [hashed(told, true).step, { ...filter, text: `First stage, once per text. ${filter.text}` }, again, last];
  },
  filter: (told) => [hashed(told).step, ...rappor(told.spec, told.draws, told.says)],
  window: windowed,
  output: drawn,
  "mean output": drawnForMean,
  "profile output": drawn,
  part,
  combination,
  stratum,
  "private stratum": privateStratum,
  figure,
  range,
  prefix,
  rectangle,
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
