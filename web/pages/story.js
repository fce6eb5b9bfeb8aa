/**
 * What chance did to an answer, step by step, in the words of its protocol. A step is { text, coin?, outcome }; `coin` has
 * the probability of its first side and which side came up.
 */

import { decode, hashFields, hashOf, hashingOf, listed } from "./decode.js";
import { count, label, percent } from "./format.js";

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

/** The steps for one question. `spec` is that of its protocol, `draws` what a `Recorder` saw. */
export function steps({ protocol }, spec, value, report, draws) {
  const { domain } = protocol;
  const says = `${decode(domain, spec, report).text}.`;
  const open = domain.kind === "strings";
  const position = open ? null : domain.position(value);
  switch (spec.protocol) {
    case "GRR":
      return response(domain, draws, says);
    case "SUE":
    case "OUE":
    case "THE":
      return bits(domain, "answers", position, draws, says);
    case "BLH":
    case "OLH":
      return hashing(domain, domain.size, spec.hash_bits ?? 1, position, report, draws, says, "answers");
    case "SubsetSelection":
      return subset(domain, spec.subset_size, draws, says);
    case "HadamardResponse":
      return hadamard(domain, draws, says);
    default:
      return sketch(domain, spec, value, report, draws, says);
  }
}

function sketch(domain, spec, value, report, draws, says) {
  const { cells, cohorts } = hashingOf(spec);
  const cohort = draws[0].got;
  const cell = domain.cell && spec.protocol !== "RAPPOR" ? domain.cell(domain.text(value), cohort) : null;
  const first = {
    text: `One of ${count(cohorts)} public hash functions is drawn, each with the same probability. It puts every text there is into one of ${count(cells)} cells, so many texts share yours.`,
    outcome: `Number ${count(cohort)}${cell === null ? "" : `: your text is in cell ${count(cell)}`}.`,
  };
  if (spec.protocol === "RAPPOR") return [first, ...rappor(spec, draws, says)];
  const inner = report.slice(report.length - (spec.protocol === "CMS" ? Math.ceil(cells / 8) : report.length - cohortBytes(cohorts)));
  if (spec.protocol === "CMS") return [first, ...bits({ size: cells }, "cells", cell ?? -1, draws.slice(1), says)];
  return [first, ...hashing({ size: cells }, cells, spec.hash_bits ?? 1, cell, inner, draws.slice(1), says, "cells")];
}

const cohortBytes = (cohorts) => Math.max(1, Math.ceil(Math.log2(cohorts) / 8));

/** Whom a report could have come from: how many answers it speaks for. */
export function deniable({ protocol }, spec, report) {
  const { supports } = decode(protocol.domain, spec, report);
  if (supports === null || protocol.domain.kind === "strings") return "Any text at all could have led to this report.";
  const all = protocol.domain.size;
  if (!supports.length) return `It speaks for no answer; each of the ${count(all)} could have led to it.`;
  return `It speaks for ${listed(protocol.domain, supports)}, yet each of the ${count(all)} answers could have led to it.`;
}
