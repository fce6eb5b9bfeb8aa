/** What the bytes of a report say, for each protocol; needs nothing but the public spec and the bytes. */

import { count, label, quantity } from "./format.js";

const bitLength = (n) => (n === 0 ? 0 : Math.floor(Math.log2(n)) + 1);
const widthFor = (size) => Math.max(1, Math.ceil(bitLength(size - 1) / 8));
const number = (bytes) => bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
const bit = (bytes, i) => (bytes[i >> 3] >> (i & 7)) & 1;
const named = (domain, i) => (domain.label ? `“${label(domain.label(i))}”` : `cell ${count(i)}`);

function parity(x) {
  let odd = 0;
  for (; x; x &= x - 1) odd ^= 1;
  return odd;
}

const MANY = 12;

/** A list of answers in words, cut off where it gets long. */
export function listed(domain, positions) {
  const shown = positions.slice(0, MANY).map((i) => named(domain, i));
  const rest = positions.length - shown.length;
  if (!shown.length) return "no answer";
  return shown.join(", ") + (rest > 0 ? ` and ${count(rest)} more` : "");
}

function bitmap(domain, size, bytes, at) {
  return Array.from(bytes, (byte, i) => {
    const positions = Array.from({ length: 8 }, (_, j) => 8 * i + j).filter((place) => place < size);
    const set = positions.filter((place) => (byte >> (place & 7)) & 1);
    const [first, last] = [positions[0], positions.at(-1)];
    const range = first === last ? named(domain, first) : `${named(domain, first)} to ${named(domain, last)}`;
    const meaning = set.length ? `set for ${listed(domain, set)}` : "none set";
    return { from: at + i, to: at + i + 1, meaning: `one bit each for ${range}: ${meaning}` };
  });
}

const setBits = (size, bytes) => Array.from({ length: size }, (_, i) => i).filter((i) => bit(bytes, i));

/** Local hashing: fields of L + 1 bits, the row of the hash function below and its result above. */
export function hashFields(size, hashBits, bytes) {
  const length = bitLength(size - 1);
  return Array.from({ length: hashBits }, (_, j) => {
    let row = 0;
    for (let i = 0; i < length; i++) row += bit(bytes, j * (length + 1) + i) * 2 ** i;
    return { row, hash: bit(bytes, j * (length + 1) + length) };
  });
}

export const hashOf = (fields, value) => fields.reduce((sum, { row }, j) => sum + parity(row & value) * 2 ** j, 0);
export const reported = (fields) => fields.reduce((sum, { hash }, j) => sum + hash * 2 ** j, 0);

const ENUMERATED = 20000;

function hashing(domain, size, hashBits, bytes, at) {
  const fields = hashFields(size, hashBits, bytes);
  const group = reported(fields);
  const all = size <= ENUMERATED ? Array.from({ length: size }, (_, v) => v).filter((v) => hashOf(fields, v) === group) : null;
  const rows = fields.map(({ row }) => row).join(", ");
  const meaning = `the hash function of this report (${hashBits === 1 ? "row" : "rows"} ${rows}) and group ${group} of ${2 ** hashBits}`;
  const text = all ? `group ${group}: ${listed(domain, all)}` : `group ${group} of ${2 ** hashBits}`;
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text, supports: all };
}

function subset(domain, size, members, bytes, at) {
  const width = widthFor(size);
  if (members * width >= Math.ceil(size / 8)) {
    const set = setBits(size, bytes);
    return { rows: bitmap(domain, size, bytes, at), text: `the set ${listed(domain, set)}`, supports: set };
  }
  const found = Array.from({ length: members }, (_, i) => number(bytes.slice(i * width, (i + 1) * width)));
  const rows = found.map((v, i) => ({ from: at + i * width, to: at + (i + 1) * width, meaning: `a member of the set: ${named(domain, v)}` }));
  return { rows, text: `the set ${listed(domain, found)}`, supports: found };
}

function hadamard(domain, size, blocks, bytes, at) {
  const blockSize = 2 ** bitLength(Math.ceil(size / blocks));
  const output = number(bytes);
  const [block, column] = [Math.floor(output / blockSize), output % blockSize];
  const supports = [];
  for (let v = block, row = 1; v < size && v < ENUMERATED; v += blocks, row++) if (!parity(row & column)) supports.push(v);
  const meaning = `output ${count(output)} of ${count(blocks * blockSize)}`;
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: `output ${count(output)}, which speaks for ${listed(domain, supports)}`, supports };
}

function unary(domain, size, bytes, at) {
  const set = setBits(size, bytes);
  return { rows: bitmap(domain, size, bytes, at), text: `bits set for ${listed(domain, set)}`, supports: set };
}

/** The number of cells, cohorts or filter bits that a text is hashed to. */
export function hashingOf(spec) {
  if (spec.bloom_bits) return { cells: spec.bloom_bits, cohorts: spec.cohorts };
  return spec.hashing ?? spec.domain;
}

function single({ domain }, _spec, bytes, at) {
  const value = number(bytes);
  const meaning = `answer number ${count(value)}: ${named(domain, value)}`;
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: named(domain, value), supports: [value] };
}

function oneCell(_protocol, _spec, bytes, at) {
  const text = `cell ${count(number(bytes))}`;
  return { rows: [{ from: at, to: at + bytes.length, meaning: text }], text, supports: null };
}

/** A block of answers, then a bit for each of them. */
function blockOfBits({ domain, blocks, width, head }, _spec, bytes, at) {
  const [block, rest] = [number(bytes.slice(0, head)), bytes.slice(head)];
  const first = block * width;
  const own = { label: (i) => (first + i < domain.size ? domain.label(first + i) : "nothing") };
  const set = setBits(width, rest).filter((i) => first + i < domain.size);
  const rows = [{ from: at, to: at + head, meaning: `block ${count(block + 1)} of ${count(blocks)}: which answers the bits are about` }, ...bitmap(own, width, rest, at + head)];
  const about = blocks > 1 ? `about block ${count(block + 1)} of ${count(blocks)}, ` : "";
  return { rows, text: `${about}bits set for ${listed(own, set)}`, supports: set.map((i) => first + i) };
}

/** A number in two stages: one of the two ends. */
function oneEnd({ domain: { low, high, unit } }, _spec, bytes, at) {
  const end = quantity(bytes[0] ? high : low, unit);
  const speaks = `It speaks for numbers near ${end}, yet every number from ${quantity(low, unit)} to ${quantity(high, unit)} could have led to it.`;
  return { rows: [{ from: at, to: at + 1, meaning: `the ${bytes[0] ? "high" : "low"} end, ${end}` }], text: `the end ${end}`, supports: null, speaks };
}

/** Texts: the cohort first, then a report about cells. */
const cohort = (inner, noun = "") => (_protocol, spec, bytes, at) => {
  const { cells, cohorts } = hashingOf(spec);
  const width = widthFor(cohorts);
  const [which, rest] = [number(bytes.slice(0, width)), bytes.slice(width)];
  const head = { from: at, to: at + width, meaning: `cohort ${count(which)} of ${count(cohorts)}: which public hash function is meant` };
  const found = inner({ domain: { size: cells } }, spec, rest, at + width);
  const speaks = "Any text at all could have led to this report.";
  return { rows: [head, ...found.rows], text: `cohort ${count(which)}, ${noun}${found.text}`, supports: null, speaks };
};

/** The marks to which numbers are rounded, and those whose window holds an output: the numbers that it speaks for. */
export function marks({ domain: { low, high, unit }, positions, width }) {
  const at = (i) => quantity(low + (i * (high - low)) / (positions - 1), unit);
  const behind = (output) => [Math.max(0, output - width + 1), Math.min(positions - 1, output)];
  return { at, behind };
}

function windowed(protocol, _spec, bytes, at) {
  const output = number(bytes);
  const { at: mark, behind } = marks(protocol);
  const [first, last] = behind(output);
  const all = first === 0 && last === protocol.positions - 1;
  const near = first === last ? `numbers near ${mark(first)}` : `numbers from ${mark(first)} to ${mark(last)}`;
  const which = all ? "no number more than another" : near;
  const meaning = `output ${count(output)}, of 0 to ${count(protocol.forms - 1)}`;
  const speaks = `It speaks for ${which}, ${all ? "and" : "yet"} every number from ${mark(0)} to ${mark(protocol.positions - 1)} could have led to it.`;
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: `output ${count(output)}, which speaks for ${which}`, supports: null, speaks };
}

/** A report of a table for a mean: the numbers under which it is likely, and that all others could have led to it, too. */
function drawnForMean(protocol, _spec, bytes, at) {
  const output = number(bytes);
  const { at: mark } = marks(protocol);
  const column = protocol.rows.map((row) => row[output]);
  const [most, least] = [column.reduce((a, b) => (b > a ? b : a)), column.reduce((a, b) => (b < a ? b : a))];
  const likely = column.map((weight) => 2n * weight > most + least);
  const runs = [];
  likely.forEach((is, i) => is && (likely[i - 1] ? (runs.at(-1)[1] = i) : runs.push([i, i])));
  const words = runs.map(([first, last]) => (first === last ? `near ${mark(first)}` : `from ${mark(first)} to ${mark(last)}`));
  const which = words.length ? `numbers ${words.join(" or ")}` : "no number more than another";
  const meaning = `output ${count(output)}, of 0 to ${count(protocol.forms - 1)}`;
  const speaks = `It speaks for ${which}, ${words.length ? "yet" : "and"} every number from ${mark(0)} to ${mark(protocol.positions - 1)} could have led to it.`;
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: `output ${count(output)}, which speaks for ${which}`, supports: null, speaks };
}

function drawn({ domain, outputs, rows }, _spec, bytes, at) {
  const output = number(bytes);
  const text = `“${label(outputs[output])}”`;
  const column = rows.map((row) => row[output]);
  const most = column.reduce((a, b) => (b > a ? b : a));
  const best = column.flatMap((weight, i) => (weight === most ? [i] : []));
  const supports = best.length < column.length ? best : [];
  const possible = column.flatMap((weight, i) => (weight ? [i] : []));
  const speaks = possible.length < column.length ? `Only ${listed(domain, possible)} could have led to it.` : null;
  return { rows: [{ from: at, to: at + bytes.length, meaning: `report number ${count(output)}: ${text}` }], text, supports, speaks };
}

/** A cell of a grid of places. */
function place({ domain: { shape } }, _spec, bytes, at) {
  const cell = number(bytes);
  const [north, east] = [Math.floor(cell / shape[1]) + 1, (cell % shape[1]) + 1];
  const text = `north ${count(north)}, east ${count(east)}`;
  const speaks = `Places near this cell led to it more often, yet every one of the ${count(shape[0] * shape[1])} cells could have led to it.`;
  return { rows: [{ from: at, to: at + bytes.length, meaning: `cell number ${count(cell)}: ${text}` }], text, supports: null, speaks };
}

/** A value drawn for a profile: the report is a value, and speaks for the profiles that could have led to it. */
function drawnForProfile({ domain, outputs, possible }, _spec, bytes, at) {
  const output = number(bytes);
  const text = `“${label(outputs[output])}”`;
  const names = domain.columns[0].domain;
  const able = possible.flatMap((law, i) => (law[output] ? [i] : []));
  const speaks =
    able.length < possible.length
      ? `Only the profiles ${able.map((i) => `“${label(names.label(i))}”`).join(", ")} could have led to it.`
      : `Each of the ${count(possible.length)} profiles could have led to it. The profile is not in it.`;
  return { rows: [{ from: at, to: at + bytes.length, meaning: `the reported value: ${text}` }], text, supports: null, speaks };
}

/** The part of a record, or the level of ranges, that a report is about, and where its own report stands. */
export function partOf({ groups: parts, levels: groups = parts }, bytes) {
  const width = widthFor(groups.length);
  const group = number(bytes.slice(0, width));
  return { ...groups[group], group, width, inner: bytes.slice(width, width + groups[group].protocol.reportBytes) };
}

/** A report of one group: which, what that group's protocol wrote, and zeros. */
function grouped(which, own, spec, bytes, at) {
  const { name, group, width, inner, protocol } = partOf(own, bytes);
  const found = decode(protocol, spec.groups[group].protocol, inner, at + width);
  const head = { from: at, to: at + width, meaning: `${which}, number ${group}: “${name}”` };
  const end = width + inner.length;
  const padding = end < bytes.length ? [{ from: at + end, to: at + bytes.length, meaning: "zeros, so that all reports have one length" }] : [];
  return { name, protocol, found, rows: [head, ...found.rows, ...padding] };
}

function part(...told) {
  const { name, protocol, found, rows } = grouped("which part is reported", ...told);
  return { rows, text: `about “${name}”: ${found.text}`, supports: null, speaks: `It is about “${name}” alone. ${whose(protocol, found)}` };
}

/** Some parts of a record together: a number of combinations, or one part alone. */
function combination({ views, groups }, ...told) {
  const { group } = partOf({ groups }, told[1]);
  const { name, protocol, found, rows } = grouped("which parts are reported", { groups }, ...told);
  const of = views[group].length === 1 ? "" : ", as the number of a combination, counted from 0";
  return { rows, text: `about “${name}”${of}: ${found.text}`, supports: null, speaks: `It is about “${name}” alone${of}. ${whose(protocol, found)}` };
}

const cut =
  (which) =>
  (...told) => {
    const { name, protocol, found, rows } = grouped(which, ...told);
    const speaks = `It is about the number of one of ${name}, counted from 0. ${whose(protocol, found)}`;
    return { rows, text: `of ${name}, counted from 0: ${found.text}`, supports: null, speaks };
  };

/** The stratum as it is, then the report of the answer. */
function stratum({ strata, inner: protocol }, spec, bytes, at) {
  const width = bytes.length - protocol.reportBytes;
  const place = number(bytes.slice(0, width));
  const found = decode(protocol, spec.inner, bytes.slice(width), at + width);
  const { name } = strata[place];
  const rows = [{ from: at, to: at + width, meaning: `in clear, number ${place}: “${name}”` }, ...found.rows];
  return { rows, text: `from “${name}”: ${found.text}`, supports: null, speaks: `It says “${name}” in clear. ${whose(protocol, found)}` };
}

/** Stratum and answer together, one of their combinations. */
function privateStratum({ law, domain: { columns }, positions, stratumNames }, spec, bytes, at) {
  const { name, domain } = columns.at(-1);
  const answers = positions || domain.size;
  const cell = (i) => (positions ? quantity(domain.low + (i * (domain.high - domain.low)) / (positions - 1), domain.unit) : label(domain.label(i)));
  const together = (i) => `${stratumNames[Math.floor(i / answers)]} & ${cell(i % answers)}`;
  const found = decode({ ...law, domain: { ...law.domain, label: together } }, spec.law, bytes, at);
  const size = stratumNames.length * answers;
  const speaks = `It is about a stratum and ${name} together. Every one of the ${count(size)} combinations could have led to it.`;
  return { ...found, supports: null, speaks };
}

/** A figure of one number or of two. */
function figure({ figures: groups }, spec, bytes, at) {
  const { name, protocol, inner } = partOf({ groups }, bytes);
  const found = part({ groups }, spec, bytes, at);
  const [head, ...rest] = found.rows;
  const speaks = `It is about “${name}”, with every number on a scale from −1 to 1. ${whose(protocol, decode(protocol, spec.groups[number(bytes.slice(0, widthFor(groups.length)))].protocol, inner, at))}`;
  return { ...found, rows: [{ ...head, meaning: head.meaning.replace("which part", "which figure") }, ...rest], speaks };
}

/** A stream of answers: the direction of a change, or a coin; or a filler between two bits. */
function stream({ domain, about }, _spec, bytes, at) {
  const found = about(number(bytes));
  const [from, to] = [at, at + bytes.length];
  const speaks = "Every course of answers could have led to it.";
  if (!found) return { rows: [{ from, to, meaning: "nothing in this period: a bit follows later" }], text: "nothing in this period", supports: null, speaks };
  const { answer, first, last, towards } = found;
  const text = `a change ${towards ? "towards" : "away from"} ${named(domain, answer)}, or a coin, in the periods ${count(first)} to ${count(last)}`;
  return { rows: [{ from, to, meaning: text }], text, supports: null, speaks };
}

/** A cell of a set: the hash function, and the items that it puts into the cell. */
function cellOfSet({ domain: { items }, cell }, { cells, cohorts }, bytes, at) {
  const width = widthFor(cohorts);
  const [which, found] = [number(bytes.slice(0, width)), number(bytes.slice(width))];
  const rows = [
    { from: at, to: at + width, meaning: `cohort ${count(which)} of ${count(cohorts)}: which public hash function is meant` },
    { from: at + width, to: at + bytes.length, meaning: `cell ${count(found)} of ${count(cells)}` },
  ];
  const inside = items.size <= FEW_ITEMS ? Array.from({ length: items.size }, (_, i) => i).filter((i) => cell(i, which) === found) : null;
  const holds = inside ? `, which holds ${listed(items, inside)} and any number of made-up items` : "";
  const speaks = `Sets with an item in this cell led to it more often, yet every set of items could have led to it.`;
  return { rows, text: `hash function ${count(which)}, cell ${count(found)}${holds}`, supports: null, speaks };
}

/** A subset of items and made-up ones. */
function subsetForSet({ domain: { items }, size }, { subset_size: members }, bytes, at) {
  const named = { label: (i) => (i < items.size ? items.label(i) : `made-up item ${i - items.size + 1}`) };
  const found = subset(named, size, members, bytes, at);
  return { ...found, supports: null, speaks: "Sets with one of these led to it more often, yet every set of items could have led to it." };
}

/** Items, pairs or triples of a set. */
function itemsOfSet({ kinds }, spec, bytes, at) {
  const { name, protocol, found, rows } = grouped("what of the set is reported", { groups: kinds }, spec, bytes, at);
  if (kinds.length === 1) return { ...found, rows };
  return { rows, text: `of ${name}, ${found.text}`, supports: null, speaks: `It is about ${name}. ${whose(protocol, found)}` };
}

/** Keys, each at an end of the interval, as items of a set. */
function keysAtEnds({ domain: { items, numbers }, law }, spec, bytes, at) {
  const end = (i) => quantity(i % 2 ? numbers.high : numbers.low, numbers.unit);
  const ends = { ...law.domain.items, label: (i) => `${label(items.label(Math.floor(i / 2)))} at ${end(i)}` };
  const found = decode({ ...law, domain: { ...law.domain, items: ends } }, spec.law, bytes, at);
  return { ...found, text: `of keys at their ends, ${found.text}` };
}

const FEW_ITEMS = 2000;

const local = ({ domain }, spec, bytes, at) => hashing(domain, domain.size, spec.hash_bits ?? 1, bytes, at);
const bitwise = ({ domain }, _spec, bytes, at) => unary(domain, domain.size, bytes, at);

/** One reader per shape of reports: (the loaded protocol, its spec, the bytes, their place in the body). */
/** Numbers of 64 bits: what all parts together add up to. */
function numbers(_protocol, _spec, bytes, at) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const found = Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigInt64(8 * i, true));
  const shown = found.slice(0, MANY).join(", ") + (found.length > MANY ? ` and ${count(found.length - MANY)} more` : "");
  const speaks = "Each part alone could have come from any answer; whoever has the parts of all collectors can read it.";
  return { rows: [{ from: at, to: at + bytes.length, meaning: `the numbers ${shown}` }], text: shown, supports: null, speaks };
}

export const DECODERS = {
  __proto__: null,
  answer: single,
  "answer, twice": single,
  bits: bitwise,
  "bits, twice": bitwise,
  "block of bits, twice": blockOfBits,
  "end, twice": oneEnd,
  hash: local,
  subset: ({ domain }, spec, bytes, at) => subset(domain, domain.size, spec.subset_size, bytes, at),
  block: ({ domain }, spec, bytes, at) => hadamard(domain, domain.size, spec.blocks, bytes, at),
  "hashed answer, twice": cohort(oneCell),
  "hashed bits": cohort(bitwise),
  "hashed groups": cohort(local),
  filter: cohort(bitwise, "a filter with "),
  "filter, twice": cohort(bitwise, "a filter with "),
  window: windowed,
  output: drawn,
  "mean output": drawnForMean,
  "profile output": drawnForProfile,
  part,
  combination,
  stratum,
  "private stratum": privateStratum,
  figure,
  range: cut("into how many ranges the numbers are cut"),
  prefix: cut("which bits of the answer it is about"),
  rectangle: cut("into how many rectangles the two numbers are cut"),
  place,
  "cell of a set": cellOfSet,
  "subset for a set": subsetForSet,
  "items of a set": itemsOfSet,
  "keys at ends": keysAtEnds,
  stream,
  sum: numbers,
};

/**
 * `{ rows, text, supports, speaks }`: what each byte means (`from` and `to` are offsets in the whole body), what the report
 * says in words, the positions that it speaks for, null where they cannot be listed, and who could have sent it, where that
 * does not follow from them.
 */
export function decode(protocol, spec, bytes, at = 0) {
  return DECODERS[protocol.shape](protocol, spec, bytes, at);
}

/** Whom a report could have come from: how many answers it speaks for. */
export function whose({ domain }, { supports, speaks }) {
  if (speaks) return speaks;
  if (!supports) return `Each of the ${count(domain.size)} answers could have led to it.`;
  if (!supports.length) return `It speaks for no answer; each of the ${count(domain.size)} could have led to it.`;
  return `It speaks for ${listed(domain, supports)}, yet each of the ${count(domain.size)} answers could have led to it.`;
}
