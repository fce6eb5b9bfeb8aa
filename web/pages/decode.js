/** What the bytes of a report say, for each protocol; needs nothing but the public spec and the bytes. */

import { label, quantity } from "./format.js";
import { say, text, word } from "./words.js";

const bitLength = (n) => (n === 0 ? 0 : Math.floor(Math.log2(n)) + 1);
const widthFor = (size) => Math.max(1, Math.ceil(bitLength(size - 1) / 8));
const number = (bytes) => bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
const bit = (bytes, i) => (bytes[i >> 3] >> (i & 7)) & 1;
const quoted = (words) => say("quoted", { text: words });
const named = (domain, i) => (domain.label ? quoted(label(domain.label(i))) : say("cell", { n: i }));

function parity(x) {
  let odd = 0;
  for (; x; x &= x - 1) odd ^= 1;
  return odd;
}

const MANY = 12;

/** The first ones of a list, and how many more there are. */
function cutOff(shown, length) {
  const first = shown.join(", ");
  return length > shown.length ? say("list.more", { first, n: length - shown.length }) : first;
}

/** A list of answers in words, cut off where it gets long. */
export function listed(domain, positions) {
  if (!positions.length) return say("report.none");
  return cutOff(positions.slice(0, MANY).map((i) => named(domain, i)), positions.length);
}

function bitmap(domain, size, bytes, at) {
  return Array.from(bytes, (byte, i) => {
    const positions = Array.from({ length: 8 }, (_, j) => 8 * i + j).filter((place) => place < size);
    const set = positions.filter((place) => (byte >> (place & 7)) & 1);
    const [first, last] = [positions[0], positions.at(-1)];
    const ends = { from: named(domain, first), to: named(domain, last) };
    const range = first === last ? ends.from : say("range", ends);
    const meaning = set.length ? say("bytes.bits", { range, answers: listed(domain, set) }) : say("bytes.bits.none", { range });
    return { from: at + i, to: at + i + 1, meaning };
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
  const facts = { rows: fields.map(({ row }) => row).join(", "), group: String(group), groups: String(2 ** hashBits) };
  const meaning = say(hashBits === 1 ? "bytes.hash" : "bytes.hash.rows", facts);
  const text = all ? say("report.group", { ...facts, answers: listed(domain, all) }) : say("report.group.of", facts);
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text, supports: all };
}

function subset(domain, size, members, bytes, at) {
  const width = widthFor(size);
  if (members * width >= Math.ceil(size / 8)) {
    const set = setBits(size, bytes);
    return { rows: bitmap(domain, size, bytes, at), text: say("report.set", { answers: listed(domain, set) }), supports: set };
  }
  const found = Array.from({ length: members }, (_, i) => number(bytes.slice(i * width, (i + 1) * width)));
  const meaning = (v) => say("bytes.member", { answer: named(domain, v) });
  const rows = found.map((v, i) => ({ from: at + i * width, to: at + (i + 1) * width, meaning: meaning(v) }));
  return { rows, text: say("report.set", { answers: listed(domain, found) }), supports: found };
}

/** A subset that is written as a hash function and a cell: the law says which answers they support. */
function seededSubset({ domain, cells, parts, supports }, bytes, at) {
  const { seed, cell } = parts(bytes);
  const all = domain.size <= ENUMERATED ? Array.from({ length: domain.size }, (_, v) => v).filter((v) => supports(v, bytes)) : null;
  const facts = { rows: String(seed), group: String(cell), groups: String(cells) };
  const text = all ? say("report.set", { answers: listed(domain, all) }) : say("report.group.of", facts);
  return { rows: [{ from: at, to: at + bytes.length, meaning: say("bytes.hash", facts) }], text, supports: all };
}

function hadamard(domain, size, blocks, bytes, at) {
  const blockSize = 2 ** bitLength(Math.ceil(size / blocks));
  const output = number(bytes);
  const [block, column] = [Math.floor(output / blockSize), output % blockSize];
  const supports = [];
  for (let v = block, row = 1; v < size && v < ENUMERATED; v += blocks, row++) if (!parity(row & column)) supports.push(v);
  const meaning = say("bytes.output.of", { n: output, of: blocks * blockSize });
  const text = say("report.output", { n: output, which: listed(domain, supports) });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text, supports };
}

function unary(domain, size, bytes, at) {
  const set = setBits(size, bytes);
  return { rows: bitmap(domain, size, bytes, at), text: say("report.bits", { answers: listed(domain, set) }), supports: set };
}

/** The number of cells, cohorts or filter bits that a text is hashed to. */
export function hashingOf(spec) {
  if (spec.bloom_bits) return { cells: spec.bloom_bits, cohorts: spec.cohorts };
  return spec.hashing ?? spec.domain;
}

function single({ domain }, _spec, bytes, at) {
  const value = number(bytes);
  const meaning = say("bytes.answer", { n: value, answer: named(domain, value) });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: named(domain, value), supports: [value] };
}

function oneCell(_protocol, _spec, bytes, at) {
  const text = say("cell", { n: number(bytes) });
  return { rows: [{ from: at, to: at + bytes.length, meaning: text }], text, supports: null };
}

/** A block of answers, then a bit for each of them. */
function blockOfBits({ domain, blocks, width, head }, _spec, bytes, at) {
  const [block, rest] = [number(bytes.slice(0, head)), bytes.slice(head)];
  const first = block * width;
  const own = { label: (i) => (first + i < domain.size ? domain.label(first + i) : say("report.nothing")) };
  const set = setBits(width, rest).filter((i) => first + i < domain.size);
  const which = { n: block + 1, blocks, answers: listed(own, set) };
  const rows = [{ from: at, to: at + head, meaning: say("bytes.block", which) }, ...bitmap(own, width, rest, at + head)];
  return { rows, text: say(blocks > 1 ? "report.bits.block" : "report.bits", which), supports: set.map((i) => first + i) };
}

/** A number in two stages: one of the two ends. */
function oneEnd({ domain: { low, high, unit } }, _spec, bytes, at) {
  const end = quantity(bytes[0] ? high : low, unit);
  const which = say("report.numbers", { numbers: word("report.numbers.near", { mark: end }) });
  const speaks = say("speaks.numbers", { which, low: quantity(low, unit), high: quantity(high, unit) });
  const rows = [{ from: at, to: at + 1, meaning: say(bytes[0] ? "bytes.end.high" : "bytes.end.low", { end }) }];
  return { rows, text: say("report.end", { end }), supports: null, speaks };
}

/** Texts: the cohort first, then a report about cells. */
const cohort = (inner, id = "report.cohort") => (_protocol, spec, bytes, at) => {
  const { cells, cohorts } = hashingOf(spec);
  const width = widthFor(cohorts);
  const [which, rest] = [number(bytes.slice(0, width)), bytes.slice(width)];
  const head = { from: at, to: at + width, meaning: say("bytes.cohort", { n: which, of: cohorts }) };
  const found = inner({ domain: { size: cells } }, spec, rest, at + width);
  const text = say(id, { n: which, report: found.text });
  return { rows: [head, ...found.rows], text, supports: null, speaks: say("speaks.texts") };
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
  return outputOf(protocol, output, all ? [] : [[first, last]], mark, bytes, at);
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
  return outputOf(protocol, output, runs, mark, bytes, at);
}

/** An output that speaks for the numbers of these runs of marks; of none if it speaks for all numbers alike. */
function outputOf({ forms, positions }, output, runs, mark, bytes, at) {
  const near = ([first, last]) =>
    first === last ? word("report.numbers.near", { mark: mark(first) }) : word("report.numbers.range", { from: mark(first), to: mark(last) });
  const numbers = { numbers: text({ parts: runs.map(near), between: say("report.numbers.or") }) };
  const which = runs.length ? say("report.numbers", numbers) : say("report.numbers.all");
  const ends = { which, low: mark(0), high: mark(positions - 1) };
  return {
    rows: [{ from: at, to: at + bytes.length, meaning: say("bytes.output", { n: output, last: forms - 1 }) }],
    text: say("report.output", { n: output, which }),
    supports: null,
    speaks: say(runs.length ? "speaks.numbers" : "speaks.numbers.all", ends),
  };
}

function drawn({ domain, outputs, rows }, _spec, bytes, at) {
  const output = number(bytes);
  const value = quoted(label(outputs[output]));
  const column = rows.map((row) => row[output]);
  const most = column.reduce((a, b) => (b > a ? b : a));
  const best = column.flatMap((weight, i) => (weight === most ? [i] : []));
  const supports = best.length < column.length ? best : [];
  const possible = column.flatMap((weight, i) => (weight ? [i] : []));
  const speaks = possible.length < column.length ? say("speaks.only", { answers: listed(domain, possible) }) : null;
  const meaning = say("bytes.report", { n: output, value });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: value, supports, speaks };
}

/** A cell of a grid of places. */
function place({ domain: { shape } }, _spec, bytes, at) {
  const cell = number(bytes);
  const [north, east] = [Math.floor(cell / shape[1]) + 1, (cell % shape[1]) + 1];
  const where = say("place", { north, east });
  const speaks = say("speaks.places", { n: shape[0] * shape[1] });
  const meaning = say("bytes.place", { n: cell, place: where });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: where, supports: null, speaks };
}

/** A value drawn for a profile: the report is a value, and speaks for the profiles that could have led to it. */
function drawnForProfile({ domain, outputs, possible }, _spec, bytes, at) {
  const output = number(bytes);
  const value = quoted(label(outputs[output]));
  const names = domain.columns[0].domain;
  const able = possible.flatMap((law, i) => (law[output] ? [i] : []));
  const speaks =
    able.length < possible.length
      ? say("speaks.profiles.only", { profiles: able.map((i) => quoted(label(names.label(i)))).join(", ") })
      : say("speaks.profiles", { n: possible.length });
  const meaning = say("bytes.value", { value });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: value, supports: null, speaks };
}

/** The part of a record, or the level of ranges, that a report is about, and where its own report stands. */
export function partOf({ groups: parts, levels: groups = parts }, bytes) {
  const width = widthFor(groups.length);
  const group = number(bytes.slice(0, width));
  return { ...groups[group], group, width, inner: bytes.slice(width, width + groups[group].protocol.reportBytes) };
}

/** How finely a level cuts the answers, or what of a set it is about; a part is called as it is. */
export function levelWord({ shape, lengths, domain }, { name, protocol }, group) {
  if (shape === "range") return word("level.ranges", { n: protocol.domain.size });
  if (shape === "rectangle") return word("level.rectangles", { sides: name.split(" ").slice(0, 3).join(" ") });
  if (shape === "prefix") return group < lengths.length - 1 ? word("level.prefix", { n: lengths[group] }) : word("level.bits");
  return shape === "items of a set" ? word(`level.${name}`) : name;
}

/** A report of one group: which, what that group's protocol wrote, and zeros. */
function grouped(which, own, spec, bytes, at) {
  const { group, width, inner, protocol, ...level } = partOf(own, bytes);
  const name = levelWord(own, { ...level, protocol }, group);
  const found = decode(protocol, spec.groups[group].protocol, inner, at + width);
  const head = { from: at, to: at + width, meaning: say(which, { group: String(group), name }) };
  const end = width + inner.length;
  const padding = end < bytes.length ? [{ from: at + end, to: at + bytes.length, meaning: say("bytes.zeros") }] : [];
  return { name, protocol, found, rows: [head, ...found.rows, ...padding] };
}

function partNamed(which) {
  return (...told) => {
    const { name, protocol, found, rows } = grouped(which, ...told);
    const speaks = `${say("speaks.part", { name })} ${whose(protocol, found)}`;
    return { rows, text: say("report.part", { name, report: found.text }), supports: null, speaks };
  };
}

/** Some parts of a record together: a number of combinations, or one part alone. */
function combination({ views, groups }, ...told) {
  const { group } = partOf({ groups }, told[1]);
  const { name, protocol, found, rows } = grouped("bytes.parts", { groups }, ...told);
  const kind = views[group].length === 1 ? "part" : "combination";
  const speaks = `${say(`speaks.${kind}`, { name })} ${whose(protocol, found)}`;
  return { rows, text: say(`report.${kind}`, { name, report: found.text }), supports: null, speaks };
}

const cut =
  (which) =>
  (...told) => {
    const { name, protocol, found, rows } = grouped(which, ...told);
    const speaks = `${say("speaks.node", { name })} ${whose(protocol, found)}`;
    return { rows, text: say("report.node", { name, report: found.text }), supports: null, speaks };
  };

/** The stratum as it is, then the report of the answer. */
function stratum({ strata, inner: protocol }, spec, bytes, at) {
  const width = bytes.length - protocol.reportBytes;
  const place = number(bytes.slice(0, width));
  const found = decode(protocol, spec.inner, bytes.slice(width), at + width);
  const { name } = strata[place];
  const rows = [{ from: at, to: at + width, meaning: say("bytes.clear", { place: String(place), name }) }, ...found.rows];
  const speaks = `${say("speaks.clear", { name })} ${whose(protocol, found)}`;
  return { rows, text: say("report.clear", { name, report: found.text }), supports: null, speaks };
}

/** Stratum and answer together, one of their combinations. */
function privateStratum({ law, domain: { columns }, positions, stratumNames }, spec, bytes, at) {
  const { name, domain } = columns.at(-1);
  const answers = positions || domain.size;
  const cell = (i) => (positions ? quantity(domain.low + (i * (domain.high - domain.low)) / (positions - 1), domain.unit) : label(domain.label(i)));
  const together = (i) => `${stratumNames[Math.floor(i / answers)]} & ${cell(i % answers)}`;
  const found = decode({ ...law, domain: { ...law.domain, label: together } }, spec.law, bytes, at);
  const size = stratumNames.length * answers;
  const speaks = say("speaks.stratum", { name, n: size });
  return { ...found, supports: null, speaks };
}

/** A figure of one number or of two. */
function figure({ figures: groups }, spec, bytes, at) {
  const { name, group, protocol, inner } = partOf({ groups }, bytes);
  const found = decode(protocol, spec.groups[group].protocol, inner, at);
  return { ...partNamed("bytes.figure")({ groups }, spec, bytes, at), speaks: `${say("speaks.figure", { name })} ${whose(protocol, found)}` };
}

/** A stream of answers: the direction of a change, or a coin; or a filler between two bits. */
function stream({ domain, about }, _spec, bytes, at) {
  const found = about(number(bytes));
  const [from, to] = [at, at + bytes.length];
  const speaks = say("speaks.courses");
  if (!found) return { rows: [{ from, to, meaning: say("bytes.later") }], text: say("report.later"), supports: null, speaks };
  const { answer, first, last, towards } = found;
  const change = say(towards ? "report.change.towards" : "report.change.away", { answer: named(domain, answer), first, last });
  return { rows: [{ from, to, meaning: change }], text: change, supports: null, speaks };
}

/** A cell of a set: the hash function, and the items that it puts into the cell. */
function cellOfSet({ domain: { items }, cell }, { cells, cohorts }, bytes, at) {
  const width = widthFor(cohorts);
  const [which, found] = [number(bytes.slice(0, width)), number(bytes.slice(width))];
  const rows = [
    { from: at, to: at + width, meaning: say("bytes.cohort", { n: which, of: cohorts }) },
    { from: at + width, to: at + bytes.length, meaning: say("bytes.cell", { n: found, of: cells }) },
  ];
  const inside = items.size <= FEW_ITEMS ? Array.from({ length: items.size }, (_, i) => i).filter((i) => cell(i, which) === found) : null;
  const facts = { n: which, cell: found, items: inside ? listed(items, inside) : "" };
  return { rows, text: say(inside ? "report.cell.holds" : "report.cell", facts), supports: null, speaks: say("speaks.sets.cell") };
}

/** A subset of items and made-up ones. */
function subsetForSet({ domain: { items }, size }, { subset_size: members }, bytes, at) {
  const named = { label: (i) => (i < items.size ? items.label(i) : say("report.made", { n: String(i - items.size + 1) })) };
  const found = subset(named, size, members, bytes, at);
  return { ...found, supports: null, speaks: say("speaks.sets") };
}

/** Items, pairs or triples of a set. */
function itemsOfSet({ kinds }, spec, bytes, at) {
  const { name, protocol, found, rows } = grouped("bytes.kind", { shape: "items of a set", groups: kinds }, spec, bytes, at);
  if (kinds.length === 1) return { ...found, rows };
  const speaks = `${say("speaks.kind", { name })} ${whose(protocol, found)}`;
  return { rows, text: say("report.kind", { name, report: found.text }), supports: null, speaks };
}

/** Keys, each at an end of the interval, as items of a set. */
function keysAtEnds({ domain: { items, numbers }, law }, spec, bytes, at) {
  const end = (i) => quantity(i % 2 ? numbers.high : numbers.low, numbers.unit);
  const ends = { ...law.domain.items, label: (i) => say("report.key", { key: label(items.label(Math.floor(i / 2))), end: end(i) }) };
  const found = decode({ ...law, domain: { ...law.domain, items: ends } }, spec.law, bytes, at);
  return { ...found, text: say("report.keys", { report: found.text }) };
}

const FEW_ITEMS = 2000;

const local = ({ domain }, spec, bytes, at) => hashing(domain, domain.size, spec.hash_bits ?? 1, bytes, at);
const bitwise = ({ domain }, _spec, bytes, at) => unary(domain, domain.size, bytes, at);

/** Numbers of 64 bits: what all parts together add up to. */
function numbers(_protocol, _spec, bytes, at) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const found = Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigInt64(8 * i, true));
  const shown = cutOff(found.slice(0, MANY), found.length);
  const meaning = say("bytes.numbers", { numbers: shown });
  return { rows: [{ from: at, to: at + bytes.length, meaning }], text: shown, supports: null, speaks: say("speaks.shares") };
}

/** One reader per shape of reports: (the loaded protocol, its spec, the bytes, their place in the body). */
export const DECODERS = {
  __proto__: null,
  answer: single,
  "answer, twice": single,
  bits: bitwise,
  "bits, twice": bitwise,
  "block of bits, twice": blockOfBits,
  "end, twice": oneEnd,
  hash: local,
  subset: (protocol, _spec, bytes, at) =>
    protocol.supports ? seededSubset(protocol, bytes, at) : subset(protocol.domain, protocol.domain.size, protocol.count, bytes, at),
  block: ({ domain }, spec, bytes, at) => hadamard(domain, domain.size, spec.blocks, bytes, at),
  "hashed answer, twice": cohort(oneCell),
  "hashed bits": cohort(bitwise),
  "hashed groups": cohort(local),
  filter: cohort(bitwise, "report.cohort.filter"),
  "filter, twice": cohort(bitwise, "report.cohort.filter"),
  window: windowed,
  output: drawn,
  "mean output": drawnForMean,
  "profile output": drawnForProfile,
  part: partNamed("bytes.part"),
  combination,
  stratum,
  "private stratum": privateStratum,
  figure,
  range: cut("bytes.ranges"),
  prefix: cut("bytes.prefix"),
  rectangle: cut("bytes.rectangles"),
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
  if (!supports) return say("speaks.each", { n: domain.size });
  if (!supports.length) return say("speaks.none", { n: domain.size });
  return say("speaks.answers", { answers: listed(domain, supports), n: domain.size });
}
