/** What the bytes of a report say, for each protocol; needs nothing but the public spec and the bytes. */

import { count, label } from "./format.js";

const bitLength = (n) => (n === 0 ? 0 : Math.floor(Math.log2(n)) + 1);
const widthFor = (size) => Math.max(1, Math.ceil(bitLength(size - 1) / 8));
const number = (bytes) => bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
const bit = (bytes, i) => (bytes[i >> 3] >> (i & 7)) & 1;
const named = (domain, i) => (domain.kind === "strings" ? `cell ${count(i)}` : `“${label(domain.label(i))}”`);

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
  if (spec.protocol === "RAPPOR") return { cells: spec.bloom_bits, cohorts: spec.cohorts };
  return spec.domain.kind === "strings" ? spec.domain : spec.hashing;
}

/**
 * `{ rows, text, supports }`: what each byte means (`from` and `to` are offsets in the whole body), what the report says in
 * words, and the positions that it speaks for, null where they cannot be listed.
 */
export function decode(domain, spec, bytes, at = 0) {
  const size = domain.size;
  switch (spec.protocol) {
    case "GRR": {
      const value = number(bytes);
      const meaning = `answer number ${count(value)}: ${named(domain, value)}`;
      return { rows: [{ from: at, to: at + bytes.length, meaning }], text: named(domain, value), supports: [value] };
    }
    case "SUE":
    case "OUE":
    case "THE":
      return unary(domain, size, bytes, at);
    case "BLH":
    case "OLH":
      return hashing(domain, size, spec.hash_bits ?? 1, bytes, at);
    case "SubsetSelection":
      return subset(domain, size, spec.subset_size, bytes, at);
    case "HadamardResponse":
      return hadamard(domain, size, spec.blocks, bytes, at);
    default:
      return text(spec, bytes, at);
  }
}

/** Texts: the cohort first, then a report about cells. */
function text(spec, bytes, at) {
  const { cells, cohorts } = hashingOf(spec);
  const width = widthFor(cohorts);
  const [cohort, rest] = [number(bytes.slice(0, width)), bytes.slice(width)];
  const head = { from: at, to: at + width, meaning: `cohort ${count(cohort)} of ${count(cohorts)}: which public hash function is meant` };
  const cell = { kind: "strings" };
  const inner = { CMS: "SUE", HCMS: "BLH", OLHSketch: "OLH", RAPPOR: "SUE" }[spec.protocol];
  const found = decode({ ...cell, size: cells }, { protocol: inner, hash_bits: spec.hash_bits }, rest, at + width);
  const noun = spec.protocol === "RAPPOR" ? "a filter with " : "";
  return { rows: [head, ...found.rows], text: `cohort ${count(cohort)}, ${noun}${found.text}`, supports: null, cohort };
}
