/**
 * deniable: answer a survey with a randomized report, whose law is published, in place of what you would say.
 *
 * One file, no dependencies, nothing generated: what you read is what runs. An answer is randomized here, in the
 * respondent's own browser, and only the randomized bytes leave. In the order of the file:
 *
 *   exact arithmetic     epsilon -> integer thresholds out of 2^64; no floating point touches a probability
 *   random words         crypto.getRandomValues or another stream, and the exact samplers on top
 *   SHA-256              for hashes inside a report, where crypto.subtle (asynchronous) would not do
 *   domains              what an answer can be
 *   protocols            how each kind of report is drawn and written
 *   specs                canonical JSON, fingerprints, strict reading
 *   texts                which characters the texts of a survey may hold
 *   surveys              the published questions and terms, checked against a pinned fingerprint
 *   changes              what is different in a survey that replaces another
 *   sealing              submissions that a relay carries and only the collector can open
 *   ledger               what this browser has answered and spent, in IndexedDB
 *   client               answer, record, retry, history, budget, delete, withdraw, opt out
 *
 * The Python package `deniable` draws the same bytes from the same random words; `test/vectors.json` holds both to it.
 */

/** Everything that is refused here. Messages name questions and rules, never the respondent's answer. */
export class DeniableError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "DeniableError";
    // "spec", "unknown", "domain", "context", "budget", "closed", "storage", "network", "optedOut", "round" or "changed"
    this.kind = kind;
  }
}

function refuse(kind, message) {
  throw new DeniableError(kind, message);
}

/** For what a spec must be. */
function check(holds, message) {
  if (!holds) refuse("spec", message);
}

// -- exact arithmetic ------------------------------------------------------------------------------------------------

const WORD = 1n << 64n;
const MOST_DIGITS = 100; // more than any float has; keeps a hostile number cheap

/** A positive fraction as a spec writes it, "a" or "a/b" in lowest terms: [top, bottom]. */
function readFraction(text, what, digits = MOST_DIGITS) {
  const match = typeof text === "string" && /^([1-9]\d*)(?:\/([1-9]\d*))?$/.exec(text);
  if (!match) refuse("spec", `${what} is a positive number written like "1" or "1/2"`);
  check(match[1].length <= digits && (match[2] ?? "").length <= digits, tooLong(what));
  const top = BigInt(match[1]);
  const bottom = BigInt(match[2] ?? 1);
  if (match[2] === "1" || gcd(top, bottom) !== 1n) refuse("spec", `${what} is not in lowest terms`);
  return [top, bottom];
}

/** A fraction that may be zero or negative, written the same way, of integers below 2^53: the nearest float. */
function readNumber(text, what) {
  const match = typeof text === "string" && /^(-?)(0|[1-9]\d{0,15})(?:\/([1-9]\d{0,15}))?$/.exec(text);
  const [top, bottom] = match ? [Number(match[2]), Number(match[3] ?? 1)] : [];
  const usable = match && Number.isSafeInteger(top) && Number.isSafeInteger(bottom) && text !== "-0" && match[3] !== "1";
  check(usable, `${what} is a number written like "-5" or "201/2", of integers below 2^53`);
  check(gcd(BigInt(top), BigInt(bottom)) === 1n, `${what} is not in lowest terms`);
  return (match[1] ? -top : top) / bottom;
}

/** An epsilon. */
function readLevel(text, what) {
  const level = readFraction(text, what);
  check(!isAbove([1n, 1000000n], level) && !isAbove(level, [64n, 1n]), `${what} lies between 1e-6 and 64`);
  return level;
}

const tooLong = (what) => `${what} has more than ${MOST_DIGITS} digits above or below the line: round it`;

/** The exact sum, refused before it grows long: many numbers without a common denominator cost as much as one. */
function shortSum(fractions, what) {
  return fractions.reduce((sum, next) => readFraction(writeFraction(add(sum, next)), what));
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

function writeFraction([top, bottom]) {
  const common = gcd(top, bottom) || 1n;
  return bottom === common ? `${top / common}` : `${top / common}/${bottom / common}`;
}

const add = ([a, b], [c, d]) => [a * d + c * b, b * d];
const times = ([a, b], [c, d]) => [a * c, b * d];
const isAbove = ([a, b], [c, d]) => a * d > c * b;

/** Integers low < e^(top/bottom) * one < high, for 0 <= top/bottom <= 64, where `one` is a power of two. */
function expBounds([top, bottom], bits) {
  const terms = 16 + Number((4n * top) / bottom) + bits;
  const one = 1n << BigInt(bits + terms.toString(2).length + 4);
  let [low, high, lowTerm, highTerm] = [one, one, one, one];
  // The series of e^x, every term rounded down in `low` and up in `high`.
  for (let step = 1n; top && (highTerm > 1n || (step - 1n) * bottom < 2n * top); step++) {
    const divisor = bottom * step;
    lowTerm = (lowTerm * top) / divisor;
    highTerm = (highTerm * top + divisor - 1n) / divisor;
    low += lowTerm;
    high += highTerm;
  }
  // From here on every term is at most half of the one before: all of them together are at most the last one.
  return { low, high: top ? high + highTerm : high, one };
}

/**
 * floor(2^64 (a e + b) / (c e + d)) with e = e^x, exactly: the bounds of e are refined until both ends agree. The
 * function is monotone in e, and e^x is irrational for a rational x > 0, so this ends, whatever the first precision.
 */
function floorOf([a, b, c, d], x) {
  for (let bits = 128; bits <= 1 << 16; bits *= 2) {
    const { low, high, one } = expBounds(x, bits);
    const at = (e) => (WORD * (a * e + b * one)) / (c * e + d * one);
    if (at(low) === at(high)) return at(low);
  }
  return refuse("spec", "a threshold cannot be settled");
}

/**
 * Whether `holds(factor, one)` for the factor e^x = factor / one, exactly. A larger factor must hold wherever a smaller
 * one does, and the smallest one that holds is a fraction, which e^x never is for x > 0: so this ends like `floorOf`.
 */
function settled(x, holds) {
  for (let bits = 128; bits <= 1 << 16; bits *= 2) {
    const { low, high, one } = expBounds(x, bits);
    if (holds(low, one)) return true;
    if (!holds(high, one)) return false;
  }
  return false;
}

/** Whether top / bottom <= e^x, exactly. */
const isWithin = (top, bottom, x) => settled(x, (factor, one) => top * one <= bottom * factor);

/** The smallest whole number of thousandths that is at least the logarithm of top / bottom >= 1, exactly. */
function logCeil(top, bottom) {
  let place = Math.max(0, Math.floor(1000 * Math.log(Number(top) / Number(bottom))));
  const within = (thousandths) => isWithin(top, bottom, [BigInt(thousandths), 1000n]);
  while (!within(place)) place++;
  while (place > 0 && within(place - 1)) place--;
  return [BigInt(place), 1000n];
}

/** The ceiling: an irrational number lies strictly above its floor. */
const ceilOf = (coefficients, x) => floorOf(coefficients, x) + 1n;

/** A probability numerator / 2^64, split in two halves so that a random word is compared without BigInt. */
function threshold(numerator) {
  return Object.freeze({ numerator, high: Number(numerator >> 32n), low: Number(numerator & 0xffffffffn) });
}

/** P(keep) of randomized response among k answers: floor(2^64 (e - 1) / (e + k - 1)). */
function keepThreshold(k, epsilon) {
  const keep = floorOf([1n, -1n, 1n, BigInt(k) - 1n], epsilon);
  if (keep === 0n) refuse("spec", "at this epsilon an answer would never be kept");
  return threshold(keep);
}

/** P(flip) of a bit at level x: ceil(2^64 / (e^x + 1)). */
const flipThreshold = (x) => threshold(ceilOf([0n, 1n, 1n, 1n], x));

const bitLength = (n) => 32 - Math.clz32(n);
const bytesFor = (size) => Math.max(1, Math.ceil(bitLength(size - 1) / 8));

// -- random words ----------------------------------------------------------------------------------------------------

/**
 * 64-bit words, little-endian, from a stream of bytes, and exact draws from them. The order in which a draw consumes
 * words is part of the wire format of the shared vectors.
 */
export class RandomBits {
  #fill;
  #bytes;
  #view;
  #place;

  /** `fill(bytes)` overwrites an array with the next bytes of the stream; the default is the browser's CSPRNG. */
  constructor(fill = (bytes) => globalThis.crypto.getRandomValues(bytes), bufferBytes = 1024) {
    this.#fill = fill;
    this.#bytes = new Uint8Array(bufferBytes);
    this.#view = new DataView(this.#bytes.buffer);
    this.#place = bufferBytes;
    this.words = 0; // how many were drawn
    this.low = this.high = 0; // the last one
  }

  next() {
    if (this.#place === this.#bytes.length) {
      this.#fill(this.#bytes);
      this.#place = 0;
    }
    this.low = this.#view.getUint32(this.#place, true);
    this.high = this.#view.getUint32(this.#place + 4, true);
    this.#view.setFloat64(this.#place, 0); // what was consumed is not kept
    this.#place += 8;
    this.words++;
  }

  /** True with probability T / 2^64: one word w, true iff w < T. */
  bernoulli({ high, low }) {
    this.next();
    return this.high < high || (this.high === high && this.low < low);
  }

  /** Uniform below m <= 2^32. Words at or above the largest multiple of m are drawn again; m = 1 draws nothing. */
  integers(m) {
    if (m === 1) return 0;
    const surplus = (wordModulo(0xffffffff, 0xffffffff, m) + 1) % m; // 2^64 mod m
    do this.next();
    while (this.high === 0xffffffff && this.low >= 2 ** 32 - surplus);
    return wordModulo(this.high, this.low, m);
  }

  /**
   * One of the outcomes 0, 1, ... of integer weights, given as their running sums, of any size: the outcome in whose
   * part of [0, total) a uniform number falls. Its first word decides, further ones only if a boundary lies inside it.
   */
  draw(sums) {
    const total = sums.at(-1);
    for (let digits = 0n, scale = 1n; ; ) {
      this.next();
      digits = (digits << 64n) | (BigInt(this.high) << 32n) | BigInt(this.low);
      scale <<= 64n;
      const outcome = firstAbove(sums, (digits * total) / scale);
      if (sums[outcome] * scale >= (digits + 1n) * total) return outcome;
    }
  }

  /**
   * Independent bits, each set with probability T / 2^64, T < 2^64; bit i is bit i % 8 of byte i / 8, padding zero.
   * Sixty-four bits at a time are compared with T digit by digit from the top, one word per digit, until all are decided:
   * a bit is set once its digit is 0 where T has a 1, and clear once its digit is 1 where T has a 0.
   */
  packed({ high, low }, count) {
    const out = new Uint8Array(Math.ceil(count / 8));
    for (let start = 0; start < count; start += 64) {
      let openLow = ones(count - start);
      let openHigh = ones(count - start - 32);
      let setLow = 0;
      let setHigh = 0;
      let [h, l] = [high | 0, low | 0];
      for (; (openLow | openHigh) !== 0 && (h | l) !== 0; h = (h << 1) | (l >>> 31), l <<= 1) {
        this.next();
        if (h < 0) {
          setLow |= openLow & ~this.low;
          setHigh |= openHigh & ~this.high;
          openLow &= this.low;
          openHigh &= this.high;
        } else {
          openLow &= ~this.low;
          openHigh &= ~this.high;
        }
      }
      for (let i = 0, at = start / 8; i < 8 && at < out.length; i++, at++) {
        out[at] = i < 4 ? setLow >>> (8 * i) : setHigh >>> (8 * i - 32);
      }
    }
    return out;
  }
}

/** The first place at which ascending numbers are above a value. */
function firstAbove(numbers, value) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The lowest n bits of a 32-bit number, n clipped to 0 .. 32. */
const ones = (n) => (n >= 32 ? -1 : n <= 0 ? 0 : (1 << n) - 1);

/** (2^32 high + low) mod m for m <= 2^32: 16 bits at a time stay below 2^53. */
function wordModulo(high, low, m) {
  const upper = ((high % m) * 0x10000 + (low >>> 16)) % m;
  return (upper * 0x10000 + (low & 0xffff)) % m;
}

const SYSTEM = new RandomBits();

// -- SHA-256 ---------------------------------------------------------------------------------------------------------

const ROUNDS = new Uint32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
]);

const rotate = (x, n) => (x >>> n) | (x << (32 - n));

const SCHEDULE = new Int32Array(64);

/** SHA-256 of bytes (FIPS 180-4), compared with crypto.subtle by the tests. */
export function sha256(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, 8n * BigInt(bytes.length));
  const state = Int32Array.of(
    0x6a09e667,
    0xbb67ae85,
    0x3c6ef372,
    0xa54ff53a,
    0x510e527f,
    0x9b05688c,
    0x1f83d9ab,
    0x5be0cd19,
  );
  for (let at = 0; at < padded.length; at += 64) compress(state, view, at);
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((value, i) => out.setInt32(4 * i, value));
  return new Uint8Array(out.buffer);
}

function compress(state, view, at) {
  const w = SCHEDULE;
  for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
    const s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
}

/** HMAC-SHA-256 (RFC 2104) for keys of up to 64 bytes. */
export function hmac(key, message) {
  const block = (filler) => Uint8Array.from({ length: 64 }, (_, i) => (key[i] ?? 0) ^ filler);
  return sha256(concat(block(0x5c), sha256(concat(block(0x36), message))));
}

export function concat(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    out.set(part, place);
    place += part.length;
  }
  return out;
}

const ENCODER = new TextEncoder();
const utf8 = (text) => ENCODER.encode(text);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What a text hashes to in one cohort, kept apart for each use and key. */
const textDigest = (use, key, cohort, text) => sha256(utf8(`deniable-${use}-v1\0${key}\0${cohort}\0${text}`));

// -- domains ---------------------------------------------------------------------------------------------------------
//
// Each kind of domain turns its spec into an object. Laws and pages ask the object what it offers, never for its kind:
//   noun      what its answers are, in words
//   read      an answer as the caller has it -> as laws take it; refuses what is no answer, without quoting it
//   encode    that -> bytes, for keys and digests that stay on the device
//   column    true if it can be a part of a record
// and, where they make sense,
//   size, label(i)            a finite list: `read` gives the position, `label` the answer there
//   text(read)                what is hashed
//   open, cell(text, cohort)  texts that nobody has listed, and where one of them is counted
//   low, high, unit, number(read)  a number between two ends
//   columns                   the parts of a record: { name, title, domain }
//   items, most               a set of listed items, or of keys with numbers: the items, and how many are reported

const MOST_ANSWERS = 2 ** 28; // as many counters as a tally has at most
const MOST_COLUMNS = 64;
const MOST_STRATA = 1024;
const ALL_STRATA = "all"; // what all of them together are called
const MOST_LAWS = 64; // hypotheses of one table
const LONGEST_WEIGHT = 100000; // digits
const LONGEST_VALUE = 2000;
const MOST_CHECKED = 2 ** 22; // products, about a second's work
const LONGEST_TEXT = 4096;
const LONE_SURROGATE = /\p{Surrogate}/u;

const isWhole = (value, low, high) => Number.isSafeInteger(value) && low <= value && value <= high;
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);
const isText = (value) => typeof value === "string" && !LONE_SURROGATE.test(value);

const missing = () => refuse("domain", "the answer is missing: an empty answer must be a category of its own");
const outside = (what) => refuse("domain", `the answer is not one of ${what}`);

/** A key under which true, 1 and "1" stay apart; undefined for what cannot be a label. */
function labelKey(value) {
  if (isText(value)) return `text ${value.normalize("NFC")}`;
  if (typeof value === "boolean") return `truth ${value}`;
  if (typeof value === "bigint" || Number.isInteger(value)) return `number ${BigInt(value)}`;
  return undefined;
}

/** A label as a spec writes it: text, truth value, integer, or {"integer": "..."} from 2^53 on. */
function readLabel(spec) {
  if (typeof spec === "string" || typeof spec === "boolean" || Number.isSafeInteger(spec)) return spec;
  if (spec && typeof spec === "object" && Object.keys(spec).join() === "integer") {
    check(typeof spec.integer === "string" && /^-?[1-9]\d*$/.test(spec.integer), "a large integer is decimal digits");
    check(spec.integer.replace("-", "").length <= MOST_DIGITS, `a category has more than ${MOST_DIGITS} digits`);
    const large = BigInt(spec.integer);
    if (large && (large >= 1n << 53n || large <= -(1n << 53n))) return large;
  }
  return refuse("spec", "a category is text, a whole number or a truth value");
}

/** What is hashed for a label: text is itself, anything else its JSON form in the spec. */
function labelText(label) {
  if (typeof label === "bigint") return `{"integer": "${label}"}`;
  return typeof label === "string" ? label : String(label);
}

function categories(spec) {
  exactKeys(spec, ["kind", "values"], "the domain", ["other", "missing"]);
  if (!Array.isArray(spec.values)) refuse("spec", "the categories are a list");
  const labels = spec.values.map(readLabel);
  const table = new Map(labels.map((label, i) => [labelKey(label), i]));
  if (table.size < labels.length) refuse("spec", "a category stands twice");
  if (labels.length < 2) refuse("spec", "a question needs at least 2 possible answers");
  const place = (key) => (key in spec ? table.get(labelKey(readLabel(spec[key]))) : undefined);
  const [other, none] = [place("other"), place("missing")];
  if ("other" in spec && other === undefined) refuse("spec", "the category for all other answers is not listed");
  if ("missing" in spec && none === undefined) refuse("spec", "the category for missing answers is not listed");
  const read = (value) => {
    if (isMissing(value)) return none ?? missing();
    return table.get(labelKey(value)) ?? other ?? outside(`the ${labels.length} categories`);
  };
  const label = (i) => labels[i];
  const text = (i) => labelText(labels[i]);
  return { noun: "a list of answers", column: true, size: labels.length, labels, label, read, encode: byPosition, text };
}

function integers(spec) {
  exactKeys(spec, ["kind", "low", "high"], "the domain");
  const { low, high } = spec;
  check(Number.isSafeInteger(low) && Number.isSafeInteger(high) && low < high, "a range needs low < high");
  const read = (value) => {
    if (isMissing(value)) missing();
    const number = typeof value === "bigint" ? Number(value) : value;
    return isWhole(number, low, high) ? number - low : outside(`the whole numbers from ${low} to ${high}`);
  };
  const label = (i) => low + i;
  const text = (i) => String(low + i);
  const range = { size: high - low + 1, low, high, unit: "" };
  return { noun: "whole numbers", column: true, ...range, label, read, encode: byPosition, text, number: label };
}

function strings(spec) {
  exactKeys(spec, ["kind", "cells", "cohorts", "key"], "the domain", ["missing"]);
  const { cells, cohorts, key } = spec;
  if (!isWhole(cells, 2, 2 ** 28) || cells & (cells - 1)) refuse("spec", "the number of cells is a power of two");
  if (!isWhole(cohorts, 1, 2 ** 16)) refuse("spec", "the number of cohorts lies between 1 and 65536");
  checkHashKey(key);
  const read = (value) => {
    if (isMissing(value)) return "missing" in spec ? read(spec.missing) : missing();
    if (!isText(value)) refuse("domain", "the answer is not text that can be written in UTF-8");
    const normal = value.normalize("NFC");
    if (utf8(normal).length > LONGEST_TEXT) refuse("domain", `the answer has more than ${LONGEST_TEXT} bytes`);
    return normal;
  };
  if ("missing" in spec && !isText(spec.missing)) refuse("spec", "what stands for missing answers is text");
  // The first 8 bytes of the digest modulo a power of two up to 2^28: the first 4 bytes are enough.
  const cell = (value, cohort) => littleEndian(textDigest("strings", key, cohort, value), 0) & (cells - 1);
  const encode = (text) => concat([1], utf8(text));
  return { noun: "any text", open: true, cells, cohorts, key, read, encode, text: (text) => text, cell };
}

const MOST_BITS = 1024;
const HASH_BYTES = 2; // of a text that is too long

/** So many bits, as text of hexadecimal digits; an answer is read as bytes, the first bit the highest. */
function bitStrings(spec) {
  exactKeys(spec, ["kind", "bits", "key"], "the domain");
  const { bits, key } = spec;
  check(isWhole(bits, 1, MOST_BITS), `bit strings have 1 to ${MOST_BITS} bits`);
  checkHashKey(key);
  const [digits, size] = [Math.ceil(bits / 4), Math.ceil(bits / 8)];
  const read = (value) => {
    if (isMissing(value)) missing();
    const right = typeof value === "string" && value.length === digits && /^[0-9a-fA-F]*$/.test(value);
    if (!right) refuse("domain", `the answer is not text of ${digits} hexadecimal digits`);
    const bytes = Uint8Array.from({ length: size }, (_, i) => parseInt(value.slice(2 * i, 2 * i + 2).padEnd(2, "0"), 16));
    if (bits % 8 && bytes[size - 1] & (0xff >> bits % 8)) refuse("domain", `the answer has more than ${bits} bits`);
    return bytes;
  };
  return { noun: "strings of bits", bits, key, read, encode: (bytes) => concat([3], bytes) };
}

/** Any text as so many bytes: its UTF-8, filled up with zeros; of a longer one the beginning, FF and a hash. */
function shortText(spec) {
  exactKeys(spec, ["kind", "bytes", "key"], "the domain");
  const { bytes: size, key } = spec;
  check(isWhole(size, 4, MOST_BITS / 8), `short text has 4 to ${MOST_BITS / 8} bytes`);
  checkHashKey(key);
  const read = (value) => {
    if (isMissing(value)) missing();
    if (!isText(value)) refuse("domain", "the answer is not text that can be written in UTF-8");
    const written = utf8(value.normalize("NFC"));
    if (written.includes(0)) refuse("domain", "the answer has the character NUL");
    if (written.length > LONGEST_TEXT) refuse("domain", `the answer has more than ${LONGEST_TEXT} bytes`);
    const bytes = new Uint8Array(size);
    if (written.length <= size) {
      bytes.set(written);
      return bytes;
    }
    let head = size - 1 - HASH_BYTES;
    bytes[head] = 0xff;
    bytes.set(sha256(concat(utf8("deniable-text-v1\0"), written)).slice(0, HASH_BYTES), head + 1);
    while (head > 0 && (written[head] & 0xc0) === 0x80) head -= 1; // whole characters only
    bytes.set(written.slice(0, head));
    return bytes;
  };
  return { noun: "any text", bits: 8 * size, key, read, encode: (bytes) => concat([3], bytes) };
}

/** Any number; one beyond an end is taken as that end, and nothing tells that it was. */
function interval(spec) {
  exactKeys(spec, ["kind", "low", "high", "unit"], "the domain");
  const [low, high] = [readNumber(spec.low, "the lower end"), readNumber(spec.high, "the upper end")];
  check(low < high, "an interval needs low < high");
  check(isText(spec.unit), "the unit of an interval is text");
  const read = (value) => {
    if (isMissing(value)) missing();
    const number = typeof value === "bigint" ? Number(value) : value;
    const usable = typeof number === "number" && (Number.isFinite(number) || typeof value === "bigint");
    if (!usable) refuse("domain", "the answer is not a number");
    return Math.min(Math.max(number, low), high) + 0; // zero has one form
  };
  const encode = (number) => concat([2], new Uint8Array(littleFloat(number)));
  return { noun: "a number", column: true, low, high, unit: spec.unit, read, encode, number: (number) => number };
}

function littleFloat(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number, true);
  return view.buffer;
}

/** One value per column; all of them are read, so that a refusal does not depend on which one is reported. */
function records(spec) {
  exactKeys(spec, ["kind", "columns"], "the domain");
  const listed = Array.isArray(spec.columns) && isWhole(spec.columns.length, 1, MOST_COLUMNS);
  check(listed, `a record has between 1 and ${MOST_COLUMNS} columns`);
  const columns = spec.columns.map((column) => {
    exactKeys(column, ["name", "domain"], "a column", ["title"]);
    check(isText(column.name) && column.name, "the name of a column is text");
    check(!("title" in column) || (isText(column.title) && column.title), "the title of a column is text");
    const domain = loadDomain(column.domain);
    check(domain.column, `a column of a record cannot hold ${domain.noun}`);
    return Object.freeze({ name: column.name, title: column.title ?? column.name, domain });
  });
  check(new Set(spec.columns.map((column) => "title" in column)).size === 1, "all columns have a title, or none");
  const names = new Set(columns.map(({ name }) => name));
  check(names.size === columns.length, "two columns have the same name");
  const read = (value) => {
    if (isMissing(value)) missing();
    if (!isObject(value)) refuse("domain", "the answer is not a record with one value per column");
    if (!Object.keys(value).every((name) => names.has(name))) refuse("domain", "the answer has a column that is not asked for");
    return columns.map(({ name, domain }) => {
      try {
        return domain.read(Object.hasOwn(value, name) ? value[name] : undefined);
      } catch (error) {
        return refuse("domain", `column "${name}": ${error.message}`);
      }
    });
  };
  const encode = (values) => {
    const parts = columns.map(({ domain }, i) => domain.encode(values[i]));
    return concat([3], ...parts.flatMap((part) => [toBytes(part.length, 4), part]));
  };
  return { noun: "a record", columns: Object.freeze(columns), read, encode };
}

const MOST_PLACES = 4096;
const CELL = /^[0-9][0-9.,/]{0,20} [\p{L}\p{M}][\p{L}\p{M}\p{N}]{0,20}$/u;

/** Places, as cells of a grid: how many to the north, and to the east. */
function gridOfPlaces(spec) {
  exactKeys(spec, ["kind", "columns", "rows", "cell"], "the domain");
  const { columns, rows, cell } = spec;
  const fits = isWhole(columns, 2, MOST_PLACES) && isWhole(rows, 2, MOST_PLACES) && columns * rows <= MOST_PLACES;
  check(fits, `a grid has at least 2 columns and 2 rows, and at most ${MOST_PLACES} cells`);
  check(cell === "" || (isText(cell) && CELL.test(cell)), "the size of a cell is a number and a unit");
  const side = (name, high) => ({ name, domain: { kind: "integers", low: 1, high } });
  const sides = records({ kind: "records", columns: [side("north", rows), side("east", columns)] });
  return { ...sides, noun: "a place", shape: Object.freeze([rows, columns]), cell };
}

/**
 * The cell of a place in a bounding box, as a question about places takes it: { north, east }, counted from 1. `shape` is [rows, columns],
 * the shape of the question's domain. Outside of the box it is the nearest cell at the edge, so that nothing is refused.
 */
export function cellIn({ south, west, north, east }, [rows, columns], latitude, longitude) {
  const isBox = [south, west, north, east].every(Number.isFinite) && south < north && west < east;
  check(isBox, "a box has four finite numbers, south below north and west below east");
  if (!Number.isFinite(latitude) || !Number.isFinite(longitude)) refuse("domain", "latitude and longitude are finite numbers");
  const at = (number, low, high, count) => 1 + Math.min(Math.max(Math.floor(((number - low) * count) / (high - low)), 0), count - 1);
  return { north: at(latitude, south, north, rows), east: at(longitude, west, east, columns) };
}

/** Positions of different items, ascending. A set of more than `most` is an answer, too: the protocol draws from it. */
function sets(spec) {
  exactKeys(spec, ["kind", "items", "at_most"], "the domain");
  const { items, most } = readItems(spec.items, spec.at_most);
  const read = (value) => {
    if (isMissing(value)) missing();
    if (!Array.isArray(value) && !(value instanceof Set)) refuse("domain", "the answer is not a list of items");
    return [...new Set(Array.from(value, (one) => itemOf(items, one)))].sort((a, b) => a - b);
  };
  const encode = (positions) => concat([4], ...positions.map((one) => toBytes64(one)));
  return { noun: "a set of items", items, most, read, encode };
}

/** Numbers by key: pairs of a key's position and its number, by ascending position. */
function keyNumbers(spec) {
  exactKeys(spec, ["kind", "keys", "interval", "at_most"], "the domain");
  const { items, most } = readItems(spec.keys, spec.at_most);
  const numbers = loadDomain(spec.interval);
  check(numbers.kind === "interval", "the numbers of keys lie on an interval");
  const read = (value) => {
    if (isMissing(value)) missing();
    if (!isObject(value)) refuse("domain", "the answer is not an object with a number per key");
    const pairs = value instanceof Map ? [...value] : Object.entries(value);
    const found = new Map(pairs.map(([key, number]) => [itemOf(items, keyLabel(items, key)), numbers.read(number)]));
    if (found.size < pairs.length) refuse("domain", "the answer has two numbers for one key");
    return [...found].sort(([a], [b]) => a - b);
  };
  const encode = (pairs) => concat([5], ...pairs.flatMap(([key, number]) => [toBytes64(key), new Uint8Array(littleFloat(number))]));
  return { noun: "numbers by key", items, most, numbers, read, encode };
}

/** The items of a set; there may be more of them than answers to a question, because no counter is kept for each. */
function readItems(spec, most) {
  check(typeof spec?.kind === "string", "the domain does not say its kind");
  const items = named(DOMAINS, spec.kind, "kind of answers")(spec);
  check(items.label && !("other" in spec) && !("missing" in spec), "the items of a set are a list or a range of numbers");
  check(isWhole(most, 1, items.size), "a set has at least one item, and no more than there are");
  return { items: Object.freeze({ kind: spec.kind, ...items }), most };
}

function itemOf(items, value) {
  try {
    return items.read(value);
  } catch {
    return refuse("domain", `the answer holds something that is not one of the ${items.size} items`);
  }
}

/** The names in an object are text; where an item is a number or a truth value, they stand for it. */
function keyLabel(items, key) {
  if (typeof key !== "string") return key;
  if (!items.labels) return /^-?\d+$/.test(key) ? Number(key) : key;
  return items.labels.find((label) => labelText(label) === key) ?? key;
}

const toBytes64 = (number) => concat(toBytes(number % 2 ** 32, 4), toBytes(Math.floor(number / 2 ** 32), 4));

const byPosition = (position) => concat([0], toBytes(position, 4), [0, 0, 0, 0]);

const checkHashKey = (key) => check(isText(key) && !key.includes("\0"), "the key of a hash is text without NUL");
const littleEndian = (bytes, at) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);

const DOMAINS = {
  __proto__: null,
  categories,
  integers,
  strings,
  interval,
  records,
  grid: gridOfPlaces,
  sets,
  "key-numbers": keyNumbers,
  "bit strings": bitStrings,
  "short text": shortText,
};

function loadDomain(spec) {
  check(typeof spec?.kind === "string", "the domain does not say its kind");
  const domain = named(DOMAINS, spec.kind, "kind of answers")(spec);
  if (domain.size > MOST_ANSWERS) refuse("spec", "the domain has more than 2^28 answers");
  return Object.freeze({ kind: spec.kind, ...domain });
}

/** An entry of a table of kinds. What is unknown here is refused by its name and never taken for something else. */
function named(table, name, what) {
  if (name in table) return table[name];
  const known = `which knows ${Object.keys(table).join(", ")}`;
  return refuse("unknown", `the ${what} "${name.slice(0, 40)}" is unknown to this page, ${known}: it cannot be answered in a browser`);
}

// -- protocols -------------------------------------------------------------------------------------------------------
//
// Each law turns (domain, epsilon, parameters) into
//   reportBytes   the width of a report
//   forms         how many different reports there are, at most
//   thresholds    the integers that the law consists of
//   draw          (the answer as the domain has read it, random words) -> report; the order of its draws is the wire's

function toBytes(number, width, out = new Uint8Array(width), at = 0) {
  for (let i = 0; i < width; i++) out[at + i] = number >>> (8 * i);
  return out;
}

function setBit(out, place, value) {
  const mask = 1 << (place & 7);
  if (value) out[place >> 3] |= mask;
  else out[place >> 3] &= ~mask;
}

function parity(x) {
  x ^= x >>> 16;
  x ^= x >>> 8;
  x ^= x >>> 4;
  return (0x6996 >>> (x & 15)) & 1;
}

/** Generalized randomized response: keep the answer, else any answer; both are always drawn. */
function grr({ size }, epsilon) {
  const keep = keepThreshold(size, epsilon);
  const reportBytes = bytesFor(size);
  const draw = (value, bits) => {
    const kept = bits.bernoulli(keep);
    const drawn = bits.integers(size);
    return toBytes(kept ? value : drawn, reportBytes);
  };
  return { reportBytes, forms: size, thresholds: { keep }, draw, isAnswer: true };
}

/**
 * Two stages for answers that repeat: `permanent` draws a state once per answer, which is kept and never sent; `report`
 * draws a report from it, each time. Whoever answers once draws both, one after the other. `permanent` may be given
 * another state of the device, from which it takes what does not depend on the answer, such as a hash function; `keptUnder`
 * says under which key the state of an answer is kept, where that is not the answer itself.
 */
function twoStages(permanent, report, law) {
  const draw = (value, bits) => report(permanent(value, bits), bits);
  return { keptUnder: null, ...law, draw, permanent, report };
}

/** Longitudinal GRR: randomized response at `forever`, kept; then again, so that one report has the level epsilon. */
function lgrr({ size }, epsilon, { forever: written }) {
  const permanent = keepThreshold(size, readForever(written, epsilon));
  const kept = permanent.numerator;
  const instant = threshold(floorOf([WORD, -WORD, kept, kept * (BigInt(size) - 1n)], epsilon));
  check(instant.numerator > 0n && instant.numerator < WORD, "the two epsilons of this question leave no second stage");
  const reportBytes = bytesFor(size);
  const stage = (keep, value, bits) => {
    const same = bits.bernoulli(keep);
    const drawn = toBytes(bits.integers(size), reportBytes);
    return same ? value : drawn;
  };
  const rest = WORD - instant.numerator;
  return twoStages(
    (value, bits) => stage(permanent, toBytes(value, reportBytes), bits),
    (state, bits) => stage(instant, state, bits),
    {
      reportBytes,
      forms: size,
      thresholds: { permanent, instant },
      forever: written,
      linking: (epochs) => Math.min(size, Math.exp(epochs * Math.log(Number(instant.numerator * BigInt(size) + rest) / Number(rest)))),
      instantEpsilon: writeFraction(logCeil(instant.numerator * BigInt(size) + rest, rest)),
      isAnswer: true,
    },
  );
}

// What a device keeps of a stream of answers: the followed answer, the level, which change it reports, how many there were,
// whether it holds the followed answer (0 unset, 1 no, 2 yes), and the change to be reported (0 none, 1 towards, 2 away).
const STREAM_FIELDS = [2, 1, 2, 2, 1, 1];
const FAIR = threshold(WORD / 2n);

/**
 * Answers that change: a device reports one of its changes, at the end of the part of 2^level epochs in which it came, and
 * sends coins at the end of all other parts and a filler in between. `step` gives the next state and the report.
 */
function evolving({ size }, epsilon, { epochs, changes }) {
  check(size >= 2 && size <= 256, "answers that change are 2 to 256 different ones");
  check(isWhole(epochs, 1, 1024) && isWhole(changes, 0, 1000), "the epochs or changes are not usable");
  const keep = threshold(floorOf([1n, 0n, 1n, 1n], epsilon));
  check(keep.numerator > WORD / 2n, "at this epsilon a bit would be a fair coin");
  const followed = size === 2 ? 1 : size;
  const levels = bitLength(epochs);
  const offsets = [0];
  for (let level = 0; level < levels; level++) offsets.push(offsets[level] + (epochs >> level));
  const parts = offsets[levels];
  const forms = 2 * followed * parts + 1;
  const reportBytes = bytesFor(forms);
  const laws = [FAIR, keep, threshold(WORD - keep.numerator)];
  const pack = (fields) => concat(...fields.map((value, i) => toBytes(value, STREAM_FIELDS[i])));
  const unpack = (state) => {
    let at = 0;
    return STREAM_FIELDS.map((width) => [...state.slice(at, (at += width))].reduceRight((sum, byte) => 256 * sum + byte, 0));
  };
  const begun = (bits) => {
    const [which, level, chosen] = [bits.integers(followed), bits.integers(levels), bits.integers(1 + 2 * changes)];
    return [which, level, 1 + Math.floor((chosen + 1) / 2), 0, 0, 0];
  };
  const stepped = ([which, level, slot, seen, holds, pending], value, epoch, bits) => {
    const now = value === (size === 2 ? 1 : which) ? 2 : 1;
    if (now !== holds && seen <= changes) {
      [seen, holds] = [seen + 1, now];
      if (seen === slot) pending = now === 2 ? 1 : 2;
    }
    const ends = epoch % 2 ** level === 0;
    const part = offsets[level] + (epoch >> level) - 1;
    const number = ends ? 2 * (which * parts + part) + Number(bits.bernoulli(laws[pending])) : forms - 1;
    return { state: [which, level, slot, seen, holds, ends ? 0 : pending], report: toBytes(number, reportBytes) };
  };
  /** One report by itself: of somebody whose answer never changes, in an epoch that chance picks. */
  const draw = (value, bits) => {
    const epoch = 1 + bits.integers(epochs);
    const [which, level, slot] = begun(bits);
    const holds = value === (size === 2 ? 1 : which) ? 2 : 1;
    const state = epoch > 2 ** level ? [which, level, slot, 1, holds, 0] : [which, level, slot, 0, 0, 0];
    return stepped(state, value, epoch, bits).report;
  };
  const step = (state, value, epoch, bits) => {
    const next = stepped(unpack(state), value, epoch, bits);
    return { state: pack(next.state), report: next.report };
  };
  const over = `any two streams of answers over ${epochs} epochs with at most ${changes} changes`;
  /** Which answer, part of the tree and bit a report is about; null for a filler. */
  const about = (number) => {
    if (number === forms - 1) return null;
    const [which, part] = [Math.floor(number / 2 / parts), Math.floor(number / 2) % parts];
    const level = offsets.findIndex((start) => start > part) - 1;
    const last = (part - offsets[level] + 1) << level;
    return { answer: size === 2 ? 1 : which, first: last - 2 ** level + 1, last, towards: number % 2 === 1 };
  };
  const law = { reportBytes, forms, thresholds: { keep }, draw, about, relation: "stream", over, linking: () => followed * levels };
  return { ...law, begin: (bits) => pack(begun(bits)), step, epochs, changes };
}

/** Both levels of two stages: the kept state's, read, is above that of one report. */
function readForever(written, epsilon) {
  const forever = readLevel(written, "forever");
  check(isAbove(forever, epsilon), "the first report of two stages has a smaller epsilon than the kept state");
  return forever;
}

const NOISE_PARTS = 192n; // the weights of noise are in units of 2^-192

/**
 * Secure aggregation: a 1 among zeros, or one number, and a little noise in each cell. The noise of one person hides nothing:
 * a device splits the report into shares, one for each collector (`shareSubmission`), and only the sums of many people come
 * out. `decay` and the number of `weights` stand in the spec, and are checked against epsilon and delta.
 */
function secureSum({ size, kind }, epsilon, { people, missing, collectors, read, delta: written, decay, weights: count }) {
  check(isWhole(people, 2, 10 ** 12) && isWhole(missing, 0, people - 2), "the number of people is not usable");
  check(isWhole(collectors, 2, 16), "an answer is split between 2 to 16 collectors");
  check(read === "shares" || (read === "mean" && kind === "integers" && size <= 1001), "sums are read for shares, or for a mean of whole numbers");
  const [cells, sensitivity, enough] = read === "mean" ? [1, BigInt(size - 1), people - missing] : [size, 2n, people - missing];
  check(cells <= 65536, "there are too many answers to add up");
  const [delta, [top, bottom]] = [readFraction(written, "delta"), readFraction(decay, "the decay of the noise")];
  check(isAbove([1n, 1n], delta) && top < bottom, "delta and the decay of the noise are below 1");
  check(isWithin(bottom ** sensitivity, top ** sensitivity, epsilon), "the noise does not suffice for this epsilon");
  check(isWhole(count, 1, 2 ** 20), "the weights of the noise are not usable");
  const one = 1n << NOISE_PARTS;
  const sums = [one];
  let [below, above] = [one, one];
  for (let k = 0; ; k++) {
    const [up, down] = [top * (BigInt(k) * BigInt(enough) + 1n), bottom * BigInt(enough) * BigInt(k + 1)];
    [below, above] = [(below * up) / down, (above * up + down - 1n) / down];
    if (k + 1 === count) break;
    check(below > 0n, "the weights of the noise are not usable");
    sums.push(sums.at(-1) + below);
  }
  // What is cut off, and what rounding adds, for all draws of all people: at most delta.
  const rest = [above * bottom + BigInt(2 * count + 2) * BigInt(count) * (bottom - top), (bottom - top) * one];
  const draws = 2n * BigInt(cells) * BigInt(people);
  const within = (e, unit) => rest[0] * draws * (unit + e) * delta[1] <= delta[0] * rest[1] * unit;
  const { low, one: unit } = expBounds(epsilon, 128);
  check(within(low, unit), "the table of the noise ends too early for this delta");
  const draw = (value, bits) => {
    const [up, down] = [0, 1].map(() => Array.from({ length: cells }, () => bits.draw(sums)));
    const report = new Uint8Array(8 * cells);
    const view = new DataView(report.buffer);
    for (let i = 0; i < cells; i++) {
      const held = read === "mean" ? value : Number(i === value);
      view.setBigInt64(8 * i, BigInt(held + up[i] - down[i]), true);
    }
    return report;
  };
  const over = "any two answers of one person, given the published sums";
  const law = { reportBytes: 8 * cells, forms: 2 ** (64 * cells), thresholds: {}, draw, relation: "sum", over, delta: written };
  return { ...law, cells, enough, collectors, read, decay: Number(top) / Number(bottom) };
}

/** One submission as shares that add up to its answers modulo 2^64: a body for each collector, one after the other. */
export function shareSubmission(bytes, collectors, random = SYSTEM) {
  const head = bytes.slice(0, 24);
  const last = bytes.slice(24);
  const rest = new DataView(last.buffer);
  const bodies = [];
  for (let collector = 1; collector < collectors; collector++) {
    const share = new Uint8Array(last.length);
    const view = new DataView(share.buffer);
    for (let at = 0; at < last.length; at += 8) {
      random.next();
      view.setUint32(at, random.low, true);
      view.setUint32(at + 4, random.high, true);
      rest.setBigUint64(at, BigInt.asUintN(64, rest.getBigUint64(at, true) - view.getBigUint64(at, true)), true);
    }
    bodies.push(concat(head, share));
  }
  return concat(...bodies, concat(head, last));
}

/** The body of each collector. */
export function sharesOf(bytes, collectors) {
  const size = bytes.length / collectors;
  return Array.from({ length: collectors }, (_, i) => bytes.slice(i * size, (i + 1) * size));
}

const MOST_EXPLAINED = 100000; // epochs after which every bit of a state is taken as known
const chanceOf = ({ numerator }) => Number(numerator) / 2 ** 64;

/**
 * How many times better reports of one device fit each other than those of two devices, on average: a product over the bits
 * of a state of 1 + c^2, with c the share of the variance of a bit that so many reports explain.
 */
function bitLinking(lanes, flip, epochs) {
  const sum = lanes.reduce((all, [kept, count]) => all + count * Math.log1p(explained(chanceOf(kept), chanceOf(flip), epochs) ** 2), 0);
  return sum < 700 ? Math.exp(sum) : Infinity;
}

function explained(kept, flip, epochs) {
  if (epochs > MOST_EXPLAINED) return 1;
  const [set, clear] = [Math.log1p(-flip), Math.log(flip)];
  let sum = 0;
  for (let seen = 0, ways = 0; seen <= epochs; seen++) {
    const on = ways + seen * set + (epochs - seen) * clear + Math.log(kept);
    const off = ways + seen * clear + (epochs - seen) * set + Math.log1p(-kept);
    const likely = Math.exp(on) + Math.exp(off);
    const posterior = 1 / (1 + Math.exp(Math.min(700, Math.max(-700, off - on))));
    sum += likely * (posterior - kept) ** 2;
    ways += Math.log((epochs - seen) / (seen + 1)); // the logarithm of the next binomial coefficient
  }
  return Math.min(1, sum / (kept * (1 - kept)));
}

/** P(flip) of the second stage, by which bits that are set with q1 come out set with 1 / (e^x + 1): rounded up. */
function secondFlip({ numerator: stored }, x) {
  const [gap, rest] = [WORD - 2n * stored, WORD - stored];
  const more = flipThreshold(x).numerator > stored; // else what is to be drawn is below zero
  const flip = more ? ceilOf([-stored, rest, gap, gap], x) : 0n;
  check(more && flip < WORD / 2n, "the two epsilons of this question leave no second stage");
  return threshold(flip);
}

/** A bitmap, kept; then each of its bits flipped by chance. */
function unaryTwice(size, trueBit, otherBit, flip, forever) {
  const { draw: permanent, reportBytes } = unary(size, trueBit, otherBit);
  const report = (state, bits) => flippedBits(state, flip, size, bits);
  const instant = times(logCeil(WORD - flip.numerator, flip.numerator), [BigInt(size), 1n]);
  return twoStages(permanent, report, {
    reportBytes,
    forms: 2 ** size,
    thresholds: { trueBit, otherBit, flip },
    forever,
    linking: (epochs) => bitLinking([[trueBit, 1], [otherBit, size - 1]], flip, epochs),
    instantEpsilon: writeFraction(instant),
  });
}

function lsue({ size }, epsilon, { forever }) {
  const stored = flipThreshold(half(readForever(forever, epsilon)));
  return unaryTwice(size, complement(stored), stored, secondFlip(stored, half(epsilon)), forever);
}

function losue({ size }, epsilon, { forever }) {
  const stored = flipThreshold(readForever(forever, epsilon));
  return unaryTwice(size, threshold(WORD / 2n), stored, secondFlip(stored, epsilon), forever);
}

/**
 * d-bit flip: the device keeps one of several blocks of answers, and its states are flipped bits about the answers of this
 * block; all answers outside it share a state.
 */
function dBitFlip({ size }, epsilon, { forever, bits: width }) {
  check(isWhole(width, 1, size), "the number of bits is not usable");
  const blocks = Math.ceil(size / width);
  const each = width > 1 ? half : (level) => level;
  const flip = flipThreshold(each(readForever(forever, epsilon)));
  const second = secondFlip(flip, each(epsilon));
  const head = bytesFor(blocks);
  const lane = (value, state) => {
    const place = value - state.slice(0, head).reduceRight((sum, byte) => 256 * sum + byte, 0) * width;
    return place >= 0 && place < width ? place : width;
  };
  const permanent = (value, bits, like) => {
    const block = like ? like.slice(0, head) : toBytes(bits.integers(blocks), head);
    const row = bits.packed(flip, width);
    const own = lane(value, block);
    if (own < width) setBit(row, own, bits.bernoulli(complement(flip)));
    return concat(block, row);
  };
  const report = (state, bits) => concat(state.slice(0, head), flippedBits(state.slice(head), second, width, bits));
  return twoStages(permanent, report, {
    reportBytes: head + Math.ceil(width / 8),
    forms: blocks * 2 ** width,
    thresholds: { flip, second },
    forever,
    linking: (epochs) => blocks * bitLinking([[flip, width]], second, epochs),
    instantEpsilon: writeFraction(times(logCeil(WORD - second.numerator, second.numerator), [BigInt(width), 1n])),
    keptUnder: (value, state) => byPosition(lane(value, state)),
    blocks,
    width,
    head,
  });
}

/**
 * One-bit mean in two stages: a number goes to one of two marks around it by a number alpha that the device draws once; the
 * bit of each mark is kept, and flipped by chance for each report.
 */
function longOneBitMean({ low, high, number }, epsilon, { forever: written, steps, points }) {
  check(isWhole(steps, 1, 2 ** 20) && isWhole(points, 1, 2 ** 32), "the steps or points are not usable");
  const { permanent: kept, report: sent, forever, thresholds, linking, instantEpsilon } = lgrr({ size: 2 }, epsilon, { forever: written });
  const mark = (answer, state) => {
    const place = Math.min(((number(answer) - low) * steps) / (high - low), steps);
    const below = Math.floor(place);
    return below + (Math.floor((place - below) * points) + littleEndian(state, 0) >= points);
  };
  const permanent = (answer, bits, like) => {
    const alpha = like ? like.slice(0, 4) : toBytes(bits.integers(points), 4);
    const end = Number(bits.integers(steps) < mark(answer, alpha));
    return concat(alpha, kept(end, bits));
  };
  const report = (state, bits) => sent(state.slice(4), bits);
  const law = { reportBytes: 1, forms: 2, thresholds, forever, linking, instantEpsilon, steps };
  return twoStages(permanent, report, { ...law, keptUnder: (answer, state) => byPosition(mark(answer, state)) });
}

/** A bitmap of independent bits: every bit at the rate of the others, then the true one at its own. */
function unary(size, trueBit, otherBit) {
  if (trueBit.numerator <= otherBit.numerator) refuse("spec", "at this epsilon rounding leaves nothing to learn");
  const draw = (value, bits) => {
    const row = bits.packed(otherBit, size);
    setBit(row, value, bits.bernoulli(trueBit));
    return row;
  };
  return { reportBytes: Math.ceil(size / 8), forms: 2 ** size, thresholds: { trueBit, otherBit }, draw };
}

const half = ([top, bottom]) => [top, 2n * bottom];
const complement = ({ numerator }) => threshold(WORD - numerator);

function sue({ size }, epsilon) {
  const flip = flipThreshold(half(epsilon));
  return unary(size, complement(flip), flip);
}

const oue = ({ size }, epsilon) => unary(size, threshold(WORD / 2n), flipThreshold(epsilon));

/** Threshold histogram encoding: p = 1 - e^(-epsilon (1 - theta) / 2) / 2, q = e^(-epsilon theta / 2) / 2. */
function the({ size }, epsilon, parameters) {
  const theta = readFraction(parameters.threshold, "the threshold");
  if (2n * theta[0] < theta[1] || theta[0] > theta[1]) refuse("spec", "the threshold lies between 1/2 and 1");
  const otherBit = ceilOf([0n, 1n, 2n, 0n], half(times(epsilon, theta)));
  const trueBit = floorOf([2n, -1n, 2n, 0n], half(times(epsilon, [theta[1] - theta[0], theta[1]])));
  return unary(size, threshold(trueBit), threshold(otherBit));
}

/**
 * Local hashing: r random rows over GF(2) hash the L-bit answer to r bits, which are kept, or drawn anew.
 * Fields of L + 1 bits, little-endian: the row below, its hash bit above.
 */
function localHashing({ size }, epsilon, { hash_bits: hashBits = 1 }) {
  if (!isWhole(hashBits, 1, 10)) refuse("spec", "a hash has between 1 and 10 bits");
  const length = bitLength(size - 1);
  const keep = keepThreshold(2 ** hashBits, epsilon);
  const allBits = hashBits * (length + 1);
  const rows = new Array(hashBits);
  const draw = (value, bits) => {
    for (let j = 0; j < hashBits; j++) rows[j] = bits.integers(2 ** length);
    const kept = bits.bernoulli(keep);
    const drawn = bits.integers(2 ** hashBits);
    const out = new Uint8Array(Math.ceil(allBits / 8));
    for (let j = 0; j < hashBits; j++) {
      const hash = kept ? parity(rows[j] & value) : (drawn >>> j) & 1;
      const field = rows[j] | (hash << length);
      for (let i = 0; i <= length; i++) if ((field >>> i) & 1) setBit(out, j * (length + 1) + i, true);
    }
    return out;
  };
  return { reportBytes: Math.ceil(allBits / 8), forms: 2 ** allBits, thresholds: { keep }, draw, hashBits };
}

/** Subset selection: w answers, with the true one among them or not, else uniform (Floyd's algorithm). */
function subsetSelection({ size }, epsilon, { subset_size: count }) {
  if (!isWhole(count, 1, size - 1)) refuse("spec", "a subset has at least one answer, and not all");
  const w = BigInt(count);
  const holds = threshold(floorOf([w, 0n, w, BigInt(size) - w], epsilon));
  if (holds.numerator * BigInt(size) <= w * WORD) refuse("spec", "at this epsilon rounding leaves nothing to learn");
  const width = bytesFor(size);
  const bitmapBytes = Math.ceil(size / 8);
  const listed = count * width < bitmapBytes;
  const reportBytes = listed ? count * width : bitmapBytes;
  let forms = 1;
  for (let i = 0; i < count && forms < 2 ** 40; i++) forms = (forms * (size - i)) / (i + 1);
  const draw = (value, bits) => {
    const held = bits.bernoulli(holds);
    const members = new Set();
    for (let last = size - 1 - (count - held); last < size - 1; last++) {
      const drawn = bits.integers(last + 1);
      members.add(members.has(drawn) ? last : drawn);
    }
    // Positions among the other answers skip the true one.
    const chosen = Array.from(members, (other) => other + (other >= value));
    if (held) chosen.push(value);
    const out = new Uint8Array(reportBytes);
    if (!listed) chosen.forEach((member) => setBit(out, member, true));
    else chosen.sort((a, b) => a - b).forEach((member, i) => toBytes(member, width, out, i * width));
    return out;
  };
  return { reportBytes, forms, thresholds: { holds }, draw, count };
}

// Bit j is the coefficient of x^j in the smallest irreducible polynomial of degree L over GF(2), without x^L; L from 1.
const FIELDS = [1, 3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27, 9, 27, 39, 3];

function isPrime(n) {
  for (let i = 2; i * i <= n; i++) if (n % i === 0) return false;
  return n > 1;
}

/**
 * Block designs: a seed, and the cell of the answer under it plus noise: one of the first cells, or any cell. With 2^r cells the hash is made
 * of r parities with the seed, which a shift register moves on; with a prime number of cells it is the product with the seed.
 */
function blockDesign({ size }, epsilon, { cells, window }) {
  const length = bitLength(size - 1);
  const isField = isWhole(cells, 2, 2 ** Math.min(11, length)) && (cells & (cells - 1)) === 0;
  const fits = isField || (isWhole(cells, Math.max(3, size), 2 ** 26 - 1) && isPrime(cells));
  if (!fits) refuse("spec", "the cells are a power of two, or a prime that is not below the number of answers");
  const slots = isField ? 2 ** length : cells;
  const count = (window * slots) / cells;
  const allowed = isWhole(window, 1, cells - 1) && count < size && cells * window <= 2 ** 32;
  if (!allowed) refuse("spec", "a window has at least one cell, and a report does not support all answers");
  const w = BigInt(window);
  const keep = threshold(floorOf([w, -w, w, BigInt(cells) - w], epsilon));
  if (keep.numerator === 0n) refuse("spec", "at this epsilon an answer would never be kept");
  const seedBits = bitLength(slots - 1);
  const reportBytes = Math.ceil((seedBits + bitLength(cells - 1)) / 8);
  const hash = (value, seed) => {
    if (!isField) return (seed * value) % cells;
    let cell = 0;
    for (let j = 0; 2 ** j < cells; j++) {
      cell |= parity(seed & value) << j;
      seed = ((seed << 1) & (slots - 1)) ^ ((seed >>> (length - 1)) * FIELDS[length - 1]);
    }
    return cell;
  };
  const draw = (value, bits) => {
    const kept = bits.bernoulli(keep);
    const seed = 1 + bits.integers(slots - 1);
    const both = bits.integers(cells * window);
    const noise = kept ? both % window : Math.floor(both / window);
    const cell = isField ? hash(value, seed) ^ noise : (hash(value, seed) + noise) % cells;
    let rest = seed + cell * 2 ** seedBits;
    return Uint8Array.from({ length: reportBytes }, () => {
      const byte = rest % 256;
      rest = (rest - byte) / 256;
      return byte;
    });
  };
  /** The seed and the cell in the bytes of a report. */
  const parts = (bytes) => {
    const number = bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
    return { seed: number % 2 ** seedBits, cell: Math.floor(number / 2 ** seedBits) };
  };
  const supports = (value, bytes) => {
    const { seed, cell } = parts(bytes);
    return (isField ? cell ^ hash(value, seed) : (cell + cells - hash(value, seed)) % cells) < window;
  };
  const kept = Number(keep.numerator) / 2 ** 64;
  const inside = kept + ((1 - kept) * window) / cells;
  return { reportBytes, forms: (slots - 1) * cells, thresholds: { keep }, draw, cells, window, slots, count, inside, parts, supports };
}

/** Hadamard response: an output in which the answer's row of a Hadamard matrix is positive, else any output. */
function hadamardResponse({ size }, epsilon, { blocks }) {
  if (!isWhole(blocks, 1, size) || blocks & (blocks - 1)) refuse("spec", "the number of blocks is a power of two");
  const blockSize = 2 ** bitLength(Math.ceil(size / blocks));
  const outputs = blocks * blockSize;
  const keep = keepThreshold(2 * blocks, epsilon);
  const reportBytes = bytesFor(outputs);
  const draw = (value, bits) => {
    const kept = bits.bernoulli(keep);
    const output = bits.integers(outputs);
    const row = Math.floor(value / blocks) + 1;
    let column = output % blockSize;
    if (parity(row & column)) column ^= row & -row; // flips the sign, and pairs each wrong column with a right one
    return toBytes(kept ? (value % blocks) * blockSize + column : output, reportBytes);
  };
  return { reportBytes, forms: outputs, thresholds: { keep }, draw, blocks, blockSize };
}

/** Protocols for text: a uniform cohort goes first, and says which public hash functions the rest uses. */
function cohorts(domain, count, counters, rest) {
  if (count * (1 + counters) > MOST_ANSWERS) refuse("spec", "these are more than 2^28 counters");
  const width = bytesFor(count);
  const draw = (answer, bits) => {
    const cohort = bits.integers(count);
    return concat(toBytes(cohort, width), rest.draw(domain.text(answer), cohort, bits));
  };
  const reportBytes = width + rest.reportBytes;
  return { reportBytes, forms: 2 ** (8 * reportBytes), thresholds: rest.thresholds, draw };
}

/** A sketch: the text's cell in its cohort, reported by a protocol over the cells. */
const sketch = (inner) => (domain, epsilon, parameters) => {
  const hashing = domain.open ? domain : loadDomain(parameters.hashing);
  if (!hashing.open) refuse("spec", "the hashing of a sketch is a domain of strings");
  const law = inner({ size: hashing.cells }, epsilon, parameters);
  const draw = (text, cohort, bits) => law.draw(hashing.cell(text, cohort), bits);
  return { ...cohorts(domain, hashing.cohorts, hashing.cells, { ...law, draw }), cells: hashing.cells, hashBits: law.hashBits };
};

/** Longitudinal local hashing: a hash function that the device keeps, then randomized response twice on the cell. */
function loloha(domain, epsilon, parameters) {
  const hashing = domain.open ? domain : loadDomain(parameters.hashing);
  check(hashing.open && hashing.cohorts <= 256, "the hashing of this question is a domain of strings with at most 256 cohorts");
  check(hashing.cohorts * (1 + hashing.cells) <= MOST_ANSWERS, "these are more than 2^28 counters");
  const { forever, thresholds, instantEpsilon, ...inner } = lgrr({ size: hashing.cells }, epsilon, parameters);
  const cell = (answer, cohort) => hashing.cell(domain.text(answer), cohort);
  const permanent = (answer, bits, like) => {
    const cohort = like ? like[0] : bits.integers(hashing.cohorts);
    return concat([cohort], inner.permanent(cell(answer, cohort), bits));
  };
  const report = (state, bits) => concat(state.slice(0, 1), inner.report(state.slice(1), bits));
  const forms = hashing.cohorts * hashing.cells;
  const linking = (epochs) => hashing.cohorts * inner.linking(epochs);
  const law = { reportBytes: 1 + inner.reportBytes, forms, linking, thresholds, forever, instantEpsilon };
  return twoStages(permanent, report, { ...law, keptUnder: (answer, state) => byPosition(cell(answer, state[0])) });
}

/** One-time RAPPOR: the text's h positions in a filter of B bits, every bit flipped with the same probability. */
function rappor(domain, epsilon, parameters) {
  const { bloom_bits: width, hashes, cohorts: count } = parameters;
  const { draw, perBit } = bloomFilter(domain, parameters);
  const flip = flipThreshold(times(epsilon, perBit));
  const rest = { reportBytes: Math.ceil(width / 8), thresholds: { flip }, draw: draw(flip) };
  return { ...cohorts(domain, count, width, rest), width, hashes };
}

/** A text's filter in a cohort, every bit flipped with a probability; `perBit` is the share of an epsilon that a bit has. */
function bloomFilter(domain, { bloom_bits: width, hashes, cohorts: count, key = domain.key }) {
  if (!isWhole(width, 1, 2 ** 16) || !isWhole(hashes, 1, 8) || !isWhole(count, 1, 2 ** 16) || 2 * hashes > width) {
    refuse("spec", "the sizes of the filter are not usable");
  }
  checkHashKey(key);
  const draw = (flip) => (text, cohort, bits) => {
    const row = bits.packed(flip, width);
    for (const place of bloomPositions(textDigest("bloom", key, cohort, text), hashes, width)) {
      setBit(row, place, bits.bernoulli(complement(flip)));
    }
    return row;
  };
  return { draw, perBit: [1n, BigInt(2 * hashes)] };
}

/** RAPPOR in full: the flipped filter of a cohort is kept, and each of its bits is flipped again for each report. */
function lrappor(domain, epsilon, parameters) {
  const { bloom_bits: width, hashes, cohorts: count, forever } = parameters;
  const { draw: drawn, perBit } = bloomFilter(domain, parameters);
  const flip = flipThreshold(times(readForever(forever, epsilon), perBit));
  const second = secondFlip(flip, times(epsilon, perBit));
  const { reportBytes, forms } = cohorts(domain, count, width, { reportBytes: Math.ceil(width / 8), thresholds: {}, draw: drawn(flip) });
  const head = bytesFor(count);
  const permanent = (answer, bits, like) => {
    const cohort = like ? like.slice(0, head).reduceRight((sum, byte) => sum * 256 + byte, 0) : bits.integers(count);
    return concat(toBytes(cohort, head), drawn(flip)(domain.text(answer), cohort, bits));
  };
  const report = (state, bits) => concat(state.slice(0, head), flippedBits(state.slice(head), second, width, bits));
  const linking = (epochs) => count * bitLinking([[complement(flip), hashes], [flip, width - hashes]], second, epochs);
  const instantEpsilon = writeFraction(times(logCeil(WORD - second.numerator, second.numerator), [BigInt(width), 1n]));
  return twoStages(permanent, report, { reportBytes, forms, linking, thresholds: { flip, second }, forever, instantEpsilon });
}

/** A bitmap with each bit flipped by chance. */
function flippedBits(state, flip, width, bits) {
  const flipped = bits.packed(flip, width);
  state.forEach((byte, i) => (flipped[i] ^= byte));
  return flipped;
}

/** Different positions, ascending: number i is a place among those that are still free. */
function bloomPositions(digest, hashes, width) {
  const chosen = [];
  for (let i = 0; i < hashes; i++) {
    let place = littleEndian(digest, 4 * i) % (width - i);
    for (const taken of chosen) if (place >= taken) place++;
    chosen.push(place);
    chosen.sort((a, b) => a - b);
  }
  return chosen;
}

/** A number, rounded at random to one of evenly spaced positions: one float64 formula, the same in Python. */
function grid({ low, high, number }, positions) {
  /** The position below a number, and how far it is on the way to the next. */
  const place = (answer) => {
    const scaled = Math.min(((number(answer) - low) * (positions - 1)) / (high - low), positions - 1);
    return { below: Math.floor(scaled), rest: scaled - Math.floor(scaled) };
  };
  const rounded = (answer, bits) => {
    const { below, rest } = place(answer);
    const up = Math.floor(rest * 2 ** 53); // over 2^53, so that its halves over 2^64 are exact
    return below + bits.bernoulli({ high: Math.floor(up / 2 ** 21), low: (up % 2 ** 21) * 2 ** 11 });
  };
  return { place, rounded };
}

/**
 * Window: a number is rounded at random to one of D positions; then one of the w outputs from there on, else any of all
 * M = D + w - 1. The law of the outputs is exact.
 */
function windowResponse(domain, epsilon, { positions, width, read }) {
  check(isWhole(positions, 2, MOST_ANSWERS) && isWhole(width, 1, MOST_ANSWERS), "the sizes of a window are not usable");
  check(read === "mean" || read === "distribution", 'a window is read as a "mean" or a "distribution"');
  const outputs = positions + width - 1;
  check(outputs <= MOST_ANSWERS, "these are more than 2^28 counters");
  const w = BigInt(width);
  const keep = threshold(floorOf([w, -w, w, BigInt(outputs) - w], epsilon));
  if (keep.numerator === 0n) refuse("spec", "at this epsilon an answer would never be kept");
  const reportBytes = bytesFor(outputs);
  const { place, rounded } = grid(domain, positions);
  const draw = (answer, bits) => {
    const position = rounded(answer, bits);
    const kept = bits.bernoulli(keep);
    const near = bits.integers(width);
    const far = bits.integers(outputs);
    return toBytes(kept ? position + near : far, reportBytes);
  };
  return { reportBytes, forms: outputs, thresholds: { keep }, draw, positions, width, read, place };
}

/** Rounding to one of the two ends, then randomized response. */
const oneBitMean = (domain, epsilon) => windowResponse(domain, epsilon, { positions: 2, width: 1, read: "mean" });

/** Integer weights as text, as sums that a draw looks up: rows of one width and one total, without a common divisor. */
function readRows(written, width) {
  const rows = written.map((row) => {
    check(Array.isArray(row) && row.length === width, "a row of a table has one weight per output");
    return row.map(readWeight);
  });
  const sums = rows.map((row) => row.map(((sum) => (weight) => (sum += weight))(0n)));
  const total = sums[0].at(-1);
  check(total > 0n && sums.every((row) => row.at(-1) === total), "the rows of a table do not have the same total");
  check(rows.flat().reduce(gcd) === 1n, "the weights of a table have a common divisor");
  return { rows, sums, total };
}

const checkProof = (text) => check(text === undefined || isFingerprint(text), "the certificate of a table is 64 hexadecimal digits");

/** A table of integer weights, one row per answer: one draw from the row. That it has the promised level is checked. */
function table({ size }, epsilon, { outputs: labels, rows: written, certificate, delta, laws: hypotheses }) {
  check(Array.isArray(labels) && isWhole(labels.length, 1, MOST_ANSWERS), "the outputs of a table are a list");
  const outputs = labels.map(readLabel);
  check(new Set(outputs.map(labelKey)).size === outputs.length, "an output stands twice");
  check(Array.isArray(written) && written.length === size, "a table needs one row per answer");
  const { rows, sums, total } = readRows(written, outputs.length);
  checkProof(certificate);
  const laws = hypotheses === undefined ? undefined : readLaws(hypotheses, size);
  const exceeded = delta === undefined ? !isPure(rows, epsilon) : !isAlmost(rows, total, epsilon, readFraction(delta, "delta"));
  check(!exceeded, "the table tells more about an answer than its epsilon says");
  const reportBytes = bytesFor(outputs.length);
  const draw = (position, bits) => toBytes(bits.draw(sums[position]), reportBytes);
  return { reportBytes, forms: outputs.length, thresholds: {}, draw, outputs: Object.freeze(outputs), rows, total, delta, laws };
}

/** Whether a text is a fraction in lowest terms, such as "0", "-3" or "1/2". */
function isValue(text) {
  if (typeof text !== "string" || text.length > LONGEST_VALUE || !/^(0|-?[1-9]\d*(\/[1-9]\d*)?)$/.test(text)) return false;
  const [top, bottom] = text.split("/");
  return bottom === undefined || (bottom !== "1" && gcd(BigInt(top.replace("-", "")), BigInt(bottom)) === 1n);
}

/**
 * A table for a mean: a number is rounded at random to a position, then one draw from the position's row. What the reports
 * are read as is a matter of the analyst's; that the table has the promised level is checked.
 */
function meanTable(domain, epsilon, { rows: written, values, certificate }) {
  check(Array.isArray(values) && isWhole(values.length, 2, MOST_ANSWERS), "the values of a table for a mean are a list");
  check(values.every(isValue), "a value of a table for a mean is a fraction in lowest terms");
  check(Array.isArray(written) && isWhole(written.length, 2, MOST_ANSWERS), "a table for a mean needs one row per position");
  const { rows, sums, total } = readRows(written, values.length);
  checkProof(certificate);
  check(isPure(rows, epsilon), "the table tells more about an answer than its epsilon says");
  const reportBytes = bytesFor(values.length);
  const positions = rows.length;
  const { place, rounded } = grid(domain, positions);
  const draw = (answer, bits) => toBytes(bits.draw(sums[rounded(answer, bits)]), reportBytes);
  return { reportBytes, forms: values.length, thresholds: {}, draw, rows, total, positions, place };
}

/**
 * A profile mechanism: of a record of profile and value, the value is drawn from the row of both, and the profile never
 * leaves. Its level holds between two profiles that an edge joins, over the values that their laws say; that is checked.
 */
function profileTable({ columns }, epsilon, { mechanism, profiles: written, edges, rows: weights, read }) {
  const named = columns.length === 2 && columns[0].name === "profile" && columns[1].name === "value";
  check(named && columns.every(({ domain }) => domain.size), "a profile table asks for a listed profile and a listed value");
  check(isText(mechanism), "the name of a mechanism is text");
  check(read === "values" || read === "profiles", 'a profile table is read for "values" or "profiles"');
  const [{ domain: names }, { domain: values }] = columns;
  const laws = readProfiles(written, names.size, values.size);
  const joined = readEdges(edges, names.size);
  check(Array.isArray(weights) && weights.length === names.size * values.size, "a profile table needs one row per profile and value");
  const rows = weights.map((row) => {
    check(Array.isArray(row) && row.length === values.size, "a row of a table has one weight per output");
    return row.map(readWeight);
  });
  const sums = rows.map((row) => row.map(((sum) => (weight) => (sum += weight))(0n)));
  check(sums.every((row) => row.at(-1) === WORD), "a row of a profile table adds up to 2^64");
  const weightOf = ({ tops }, i, y) => tops.reduce((sum, top, x) => sum + top * rows[i * values.size + x][y], 0n);
  const released = laws.map((law, i) => Array.from({ length: values.size }, (_, y) => weightOf(law, i, y)));
  const within = joined.every(([i, j]) => isHidden(released, laws, i, j, epsilon) && isHidden(released, laws, j, i, epsilon));
  check(within, "the table tells more about a profile than its epsilon says");
  const reportBytes = bytesFor(values.size);
  const rowOf = ([profile, value]) => profile * values.size + value;
  const draw = (answer, bits) => toBytes(bits.draw(sums[rowOf(answer)]), reportBytes);
  const outputs = Object.freeze(Array.from({ length: values.size }, (_, i) => values.label(i)));
  const possible = released.map((law) => law.map((weight) => weight > 0n));
  const wholes = laws.map(({ bottom }) => bottom * WORD);
  const table = { reportBytes, forms: values.size, thresholds: {}, draw, outputs, rows, total: WORD, rowOf, possible, released, wholes };
  return { ...table, relation: "profiles", ...joinedPairs(joined, names) };
}

/** The laws of the profiles, each as numerators over one denominator. */
function readProfiles(written, count, size) {
  check(Array.isArray(written) && written.length === count, "there is one law per profile");
  return written.map((law) => {
    check(Array.isArray(law) && law.length === size, "the law of a profile has one probability per value");
    const chances = law.map((text) => (text === "0" ? [0n, 1n] : readFraction(text, "a probability of a profile")));
    const bottom = chances.reduce((all, [, below]) => (all / gcd(all, below)) * below, 1n);
    const tops = chances.map(([top, below]) => (top * bottom) / below);
    check(tops.reduce((sum, top) => sum + top) === bottom, "the probabilities of a profile do not add up to 1");
    return { tops, bottom };
  });
}

/** Which profiles must look alike: pairs of different places, each once. */
function readEdges(edges, count) {
  check(Array.isArray(edges) && edges.length > 0, "a profile table without joined profiles protects nobody");
  const seen = new Set();
  for (const edge of edges) {
    const [i, j] = Array.isArray(edge) && edge.length === 2 ? edge : [];
    check(isWhole(i, 0, count - 1) && isWhole(j, i + 1, count - 1), "an edge is a pair of places of profiles, the smaller first");
    seen.add(i * count + j);
  }
  check(seen.size === edges.length, "two edges are the same");
  return edges;
}

/** Whether no output is more than e^epsilon times as likely from profile i as from profile j. */
function isHidden(released, laws, i, j, epsilon) {
  let [top, bottom] = [1n, 1n];
  for (let y = 0; y < released[i].length; y++) {
    const [more, less] = [released[i][y] * laws[j].bottom, released[j][y] * laws[i].bottom];
    if (more * bottom > top * less) [top, bottom] = [more, less];
  }
  return bottom > 0n && isWithin(top, bottom, epsilon);
}

const PAIRS_NAMED = 6;

/** The joined profiles: the first few pairs by name, how many more there are, and both in words. */
function joinedPairs(edges, names) {
  const pairs = edges.slice(0, PAIRS_NAMED).map((pair) => pair.map((i) => labelText(names.label(i))));
  const more = edges.length - pairs.length;
  const rest = more ? `; and ${more.toLocaleString("en")} more ${more === 1 ? "pair" : "pairs"}` : "";
  return { pairs, morePairs: more, over: `two joined profiles: ${pairs.map((pair) => pair.join(" and ")).join("; ")}${rest}` };
}

/** The hypotheses that a table's reports decide between: names, and integer weights of the answers. */
function readLaws(written, size) {
  check(Array.isArray(written) && isWhole(written.length, 2, MOST_LAWS), `the laws of a table are a list of 2 to ${MOST_LAWS}`);
  const laws = written.map((law) => {
    exactKeys(law, ["name", "weights"], "a law of a table");
    const { name, weights } = law;
    check(Array.isArray(weights) && weights.length === size, "a law of a table has one weight per answer");
    const read = weights.map(readWeight);
    check(read.reduce(gcd) === 1n, "the weights of a law are all zero or have a common divisor");
    return Object.freeze({ name: readLabel(name), weights: read });
  });
  check(new Set(laws.map(({ name }) => labelKey(name))).size === laws.length, "a hypothesis stands twice");
  return Object.freeze(laws);
}

function readWeight(text) {
  check(typeof text === "string" && /^(0|[1-9]\d*)$/.test(text), "a weight of a table is decimal digits");
  check(text.length <= LONGEST_WEIGHT, `a weight of a table has more than ${LONGEST_WEIGHT} digits`);
  return BigInt(text);
}

/** Whether no output is more than e^epsilon times as likely under one row as under another. */
function isPure(rows, epsilon) {
  let [top, bottom] = [1n, 1n];
  for (let y = 0; y < rows[0].length; y++) {
    let [most, least] = [rows[0][y], rows[0][y]];
    for (const row of rows) {
      if (row[y] > most) most = row[y];
      if (row[y] < least) least = row[y];
    }
    if (most * bottom > top * least) [top, bottom] = [most, least];
  }
  return bottom > 0n && isWithin(top, bottom, epsilon);
}

/** Whether P(y | one) - e^epsilon P(y | other), summed over the outputs where it is positive, is at most delta. */
function isAlmost(rows, total, epsilon, [top, bottom]) {
  check(top < bottom, "delta is below 1");
  check(rows.length ** 2 * rows[0].length <= MOST_CHECKED, "a table with a delta has too many answers to be checked here");
  const holds = (factor, one) => {
    const excess = (row, other) =>
      row.reduce((sum, weight, y) => {
        const more = weight * one - factor * other[y];
        return more > 0n ? sum + more : sum;
      }, 0n);
    return rows.every((row) => rows.every((other) => excess(row, other) * bottom <= top * total * one));
  };
  return settled(epsilon, holds);
}

/**
 * The protocol that another one is made of. Epsilon, relation and delta are passed on; a protocol that promises something
 * else, keeps a state or sends a part in clear is refused, for that would be lost.
 */
function loadInner(spec) {
  const protocol = loadProtocol(spec);
  const plain = protocol.relation === RELATIONS[0] && !("linking" in protocol) && !("clear" in protocol) && !protocol.domain.open;
  check(plain, `no protocol is made of ${protocol.name}: what it promises of its reports would be lost`);
  return protocol;
}

/**
 * One of several questions, chosen by coins that do not depend on the answer, then that question's own protocol. `parts` says
 * of each question its name, the spec of its answers and what they are, of a whole answer.
 */
function grouped(written, level, parts) {
  const groups = written.map((group, i) => {
    exactKeys(group, ["weight", "protocol"], "a group");
    check(isWhole(group.weight, 1, 2 ** 32 - 1), "the weight of a group is a positive whole number");
    const protocol = loadInner(group.protocol);
    const same = canonicalText(group.protocol.domain, 0) === canonicalText(parts[i].domain, 0);
    check(same, "the answers of a group are not those of its column");
    return Object.freeze({ name: parts[i].name, weight: group.weight, protocol });
  });
  const sums = groups.map(((sum) => ({ weight }) => (sum += weight))(0));
  check(sums.at(-1) < 2 ** 32, "the weights of the groups add up to less than 2^32");
  const largest = (levels) => levels.map((text) => readFraction(text)).reduce((a, b) => (isAbove(b, a) ? b : a));
  const epsilons = groups.map(({ protocol }) => protocol.epsilon);
  check(writeFraction(largest(epsilons)) === level, "epsilon is not the largest one of the groups");
  const headBytes = bytesFor(groups.length);
  const reportBytes = headBytes + Math.max(...groups.map(({ protocol }) => protocol.reportBytes));
  const draw = (answer, bits) => {
    const chosen = firstAbove(sums, bits.integers(sums.at(-1)));
    const out = toBytes(chosen, headBytes, new Uint8Array(reportBytes));
    out.set(groups[chosen].protocol.draw(parts[chosen].of(answer), bits), headBytes);
    return out;
  };
  const forms = groups.reduce((sum, { protocol }) => sum + protocol.forms, 0);
  check(groups.every(({ protocol }) => protocol.relation === groups[0].protocol.relation), "the groups are about different relations");
  const { relation } = groups[0].protocol;
  const deltas = groups.map(({ protocol }) => protocol.delta).filter(Boolean);
  const delta = deltas.length ? writeFraction(largest(deltas)) : undefined;
  const project = (answer, group) => parts[group].of(answer);
  return { reportBytes, forms, thresholds: {}, draw, groups: Object.freeze(groups), delta, relation, project };
}

/** One column of a record; or with `views` some columns together, as the number of the combination of their cells. */
function attributes({ columns }, _epsilon, { domain, groups: written, epsilon: level, views, cells }) {
  check(domain.kind === "records", "attributes are those of records");
  const alone = (i) => ({ name: columns[i].name, domain: domain.columns[i].domain, of: (values) => values[i] });
  if (views === undefined && cells === undefined) {
    check(Array.isArray(written) && written.length === columns.length, "there is one group per column");
    return grouped(written, level, columns.map((_, i) => alone(i)));
  }
  const rises = (view) => view.every((one, i) => isWhole(one, i ? view[i - 1] + 1 : 0, columns.length - 1));
  const isView = (view) => Array.isArray(view) && view.length > 0 && rises(view);
  const areViews = Array.isArray(views) && views.length <= 4096 && views.every(isView);
  check(areViews, "a view has different columns of the record, in their order");
  check(new Set(views.map(String)).size === views.length, "two views are about the same columns");
  check(Array.isArray(cells) && cells.length === columns.length, "there is one number of cells per column");
  check(Array.isArray(written) && written.length === views.length, "there is one group per view");
  check(views.length !== columns.length || views.some(([first, ...more], i) => first !== i || more.length), "columns that are asked alone have no cells");
  const each = columns.map(({ domain: own }, i) => combinedCell(own, cells[i]));
  const together = (view) => {
    const size = view.reduce((product, i) => product * cells[i], 1);
    check(size <= 2 ** 16, "columns together have at most 2^16 combinations");
    const of = (values) => view.reduce((place, i) => place * cells[i] + each[i](values[i]), 0);
    return { name: view.map((i) => columns[i].name).join(" & "), domain: { kind: "integers", low: 0, high: size - 1 }, of };
  };
  const parts = views.map((view) => (view.length === 1 ? alone(view[0]) : together(view)));
  check(new Set(parts.map(({ name }) => name)).size === parts.length, "two groups are called the same");
  const law = grouped(written, level, parts);
  const usual = (view, i) => view.length === 1 || OF_A_LEVEL.includes(law.groups[i].protocol.name);
  check(views.every(usual), "columns together are asked by GRR, SubsetSelection or OLH");
  if (views.every(({ length }) => length === 1)) return law;
  return { ...law, shape: "combination", views: Object.freeze(views.map(Object.freeze)), combination: (values, group) => parts[group].of(values) };
}

/** The cell of an answer among others: of a list its position, of grouped whole numbers and of an interval the part that it lies in. */
function combinedCell(domain, cells) {
  const { kind, size } = domain;
  check(isWhole(cells, 2, Math.min(size ?? 2 ** 16, 2 ** 16)), "a column has 2 to 2^16 cells");
  check(size === undefined ? kind === "interval" : size === cells || kind === "integers", "the cells of a column are not usable");
  return size === undefined || size === cells ? cellOf(domain, cells, 2 ** 16) : (answer) => Math.floor((answer * cells) / size);
}

/** All columns but the last: their combinations, which are the strata, by name, and the number of that of a read answer. */
function strataOf(columns, taken) {
  const strata = columns.slice(0, -1);
  check(strata.length > 0 && strata.every(({ domain: { size } }) => size >= 2), "a stratum is a list of at least two values");
  const count = strata.reduce((product, { domain: { size } }) => product * size, 1);
  check(count <= MOST_STRATA, `strata have at most ${MOST_STRATA} combinations`);
  const placeOf = (answer) => strata.reduce((place, { domain: { size } }, i) => place * size + answer[i], 0);
  const nameOf = (place) => {
    const said = [];
    for (const { domain: own } of strata.toReversed()) {
      said.unshift(String(own.label(place % own.size)));
      place = Math.floor(place / own.size);
    }
    return said.join(", ");
  };
  const names = Array.from({ length: count }, (_, place) => nameOf(place));
  const others = [ALL_STRATA, ...taken];
  check(new Set([...others, ...names]).size === count + others.length, "two strata are called the same");
  return { strata: Object.freeze(strata.map(({ name }) => name)), count, placeOf, names };
}

/** A public attribute or several, sent as they are, then the report of the answer, which is the last column. */
function stratified({ columns }, _epsilon, { domain, inner: written, epsilon: level }) {
  const { strata: clear, count, placeOf, names } = strataOf(columns, []);
  const inner = loadInner(written);
  const same = canonicalText(written.domain, 0) === canonicalText(domain.columns.at(-1).domain, 0);
  check(same && inner.epsilon === level, "the protocol of the answer is not usable in strata");
  const headBytes = bytesFor(count);
  const reportBytes = headBytes + inner.reportBytes;
  const draw = (answer, bits) => {
    const out = toBytes(placeOf(answer), headBytes, new Uint8Array(reportBytes));
    out.set(inner.draw(answer.at(-1), bits), headBytes);
    return out;
  };
  const groups = Object.freeze(names.map((name) => Object.freeze({ name, weight: 1, protocol: inner })));
  const { relation, delta } = inner;
  const over = `${inner.over} with the same ${clear.join(" and ")}, sent in clear`;
  return { reportBytes, forms: count * inner.forms, thresholds: inner.thresholds, draw, strata: groups, inner, clear, shared: clear, delta, relation, over };
}

const MOST_COMBINATIONS = 2048; // of strata and answers

/** Strata as private as the answer, the last column: both are one of their combinations. Of a number it is the position that chance rounds it to. */
function privateStrata({ columns }, _epsilon, { positions, law: written, epsilon }) {
  const names = columns.slice(0, -1).map(({ name }) => name);
  const { strata: shared, count, placeOf, names: each } = strataOf(columns, [names.join(" & ")]);
  const { domain } = columns.at(-1);
  const isNumber = ["integers", "interval"].includes(domain.kind);
  check(positions === 0 ? domain.size >= 2 : isNumber && isWhole(positions, 2, MOST_COMBINATIONS), "the positions of the answer are not usable");
  const answers = positions || domain.size;
  check(count * answers <= MOST_COMBINATIONS, `strata and answers have at most ${MOST_COMBINATIONS} combinations`);
  const law = loadInner(written);
  const wanted = { kind: "integers", low: 0, high: count * answers - 1 };
  const fits = OF_A_LEVEL.includes(law.name) && canonicalText(written.domain, 0) === canonicalText(wanted, 0);
  check(fits && law.epsilon === epsilon, "strata and answers together are asked by GRR, SubsetSelection or OLH at their epsilon");
  const { place, rounded } = positions ? grid(domain, positions) : {};
  const combined = (answer, cell) => placeOf(answer) * answers + cell;
  const draw = (answer, bits) => law.draw(combined(answer, positions ? rounded(answer.at(-1), bits) : answer.at(-1)), bits);
  const { reportBytes, forms, thresholds } = law;
  const readings = Object.freeze([ALL_STRATA, names.join(" & "), ...each]);
  return { reportBytes, forms, thresholds, draw, law, positions, place, combined, shared, readings, stratumNames: Object.freeze(each) };
}

/** The powers of each number in a figure: of one number, and of two. */
const POWERS = [null, [[1], [2]], [[1, 0], [0, 1], [2, 0], [0, 2], [1, 1]]];
const UNIT_INTERVAL = (low) => ({ kind: "interval", low, high: "1", unit: "" });

/** One figure of a number, or of two: the numbers on a scale from -1 to 1, their squares, their product. */
function moments(domain, _epsilon, { groups: written, epsilon: level }) {
  const columns = domain.columns ?? [{ name: "x", domain }];
  const isNumber = ({ domain: { kind } }) => kind === "interval";
  check(columns.length <= 2 && columns.every(isNumber), "moments are those of one number, or of a record of two");
  const powers = POWERS[columns.length];
  check(Array.isArray(written) && written.length === powers.length, "there is one group per figure");
  const parts = powers.map((powersOf) => {
    const said = columns.flatMap(({ name }, i) => (powersOf[i] ? [name + (powersOf[i] === 2 ? " squared" : "")] : []));
    const of = (answer) => {
      let figure = 1;
      columns.forEach(({ domain: { low, high } }, i) => {
        const x = domain.columns ? answer[i] : answer;
        for (let times = 0; times < powersOf[i]; times++) figure *= (x - low - (high - x)) / (high - low);
      });
      return figure;
    };
    return { name: said.join(" times "), domain: UNIT_INTERVAL(powersOf.some((power) => power % 2) ? "-1" : "0"), of };
  });
  const { groups: figures, ...law } = grouped(written, level, parts);
  check(figures.every(({ protocol }) => "place" in protocol), "a figure is asked by a protocol for a mean");
  return { ...law, figures, figure: (answer, group) => parts[group].of(answer) };
}

const FORM_LINKS = ["linear", "logistic", "slope"];
const UNIT_WEIGHT = 2 ** 16; // what a coefficient of 1 is written as
const LARGEST_WEIGHT = 32 * UNIT_WEIGHT;

/** 1 / (1 + exp(-t)) by sums, products and quotients alone, in Python's order. */
function logistic(t) {
  const r = Math.min(Math.max(t, -30), 30) / 1024;
  let power = 1 + r * (1 + (r / 2) * (1 + (r / 3) * (1 + (r / 4) * (1 + (r / 5) * (1 + r / 6)))));
  for (let i = 0; i < 10; i++) power = power * power;
  return power / (1 + power);
}

/** One bounded query about a record: a product of features, perhaps times a form through a link, or what it leaves of a feature. */
function queries({ columns }, _epsilon, { features: listed, forms, queries: asked, regress, groups: written, epsilon: level }) {
  const isPlace = (value, size) => isWhole(value, 0, size - 1);
  check(Array.isArray(listed) && listed.length <= 64, "there are at most 64 features");
  const features = listed.map((spec) => {
    exactKeys(spec, ["column"], "a feature", ["is"]);
    check(isPlace(spec.column, columns.length), "a feature is about a column of the record");
    const { domain } = columns[spec.column];
    const isNumber = domain.kind === "interval" || domain.kind === "integers";
    check(isNumber ? !("is" in spec) : isPlace(spec.is, domain.size ?? 0), "a feature is a column of numbers, or one answer of a list");
    if (!isNumber) return { signed: false, of: (values) => (values[spec.column] === spec.is ? 1 : 0) };
    const { low, high, number } = domain;
    const of = (values) => {
      const x = number(values[spec.column]);
      return (x - low - (high - x)) / (high - low);
    };
    return { signed: true, of };
  });
  check(new Set(listed.map(({ column, is }) => `${column} ${is}`)).size === listed.length, "two features are the same");
  const isForm = (form) => Array.isArray(form) && form.length === features.length + 1 && form.every((one) => isWhole(one, -LARGEST_WEIGHT, LARGEST_WEIGHT));
  check(Array.isArray(forms) && forms.every(isForm), "a form has a whole number per feature and one before them");
  const areAsked = Array.isArray(asked) && isWhole(asked.length, 1, 4096);
  const haveGroups = areAsked && Array.isArray(written) && written.length === asked.length;
  check(haveGroups, "there are 1 to 4096 queries, each with a group");
  const parts = asked.map((spec) => {
    const withForm = isObject(spec) && "form" in spec;
    exactKeys(spec, withForm ? ["name", "times", "form", "link", "of", "bound", "squared"] : ["name", "times"], "a query");
    const { name, times, form, link, of: from, squared } = spec;
    check(isText(name) && name, "a query has a name");
    check(Array.isArray(times) && times.length <= 8 && times.every((one) => isPlace(one, features.length)), "a query multiplies at most 8 of the features");
    const product = (values) => times.reduce((found, i) => found * features[i].of(values), 1);
    const odd = times.some((i) => features[i].signed && times.filter((j) => j === i).length % 2);
    if (!withForm) return { name, domain: UNIT_INTERVAL(odd ? "-1" : "0"), of: product };
    const left = from === null || (isPlace(from, features.length) && link !== "slope");
    const linked = isPlace(form, forms.length) && FORM_LINKS.includes(link) && left;
    const isQuery = linked && typeof squared === "boolean";
    check(isQuery, "a query has a form, a link, a feature or none, and is squared or not");
    const bound = readNumber(spec.bound, "a bound");
    check(bound > 0, "a bound is positive");
    const of = (values) => {
      const [constant, ...weights] = forms[form].map((one) => one / UNIT_WEIGHT);
      let part = weights.reduce((t, weight, i) => t + weight * features[i].of(values), constant);
      if (link !== "linear") part = logistic(part);
      if (link === "slope") part = 4 * part * (1 - part);
      if (from !== null) part = features[from].of(values) - part;
      part = Math.min(Math.max(part / bound, -1), 1);
      return product(values) * (squared ? part * part : part);
    };
    const signed = odd || (!squared && (from !== null || link === "linear"));
    return { name, domain: UNIT_INTERVAL(signed ? "-1" : "0"), of };
  });
  check(new Set(asked.map(({ name }) => name)).size === asked.length, "two queries are called the same");
  if (regress !== undefined) {
    exactKeys(regress, ["target", "link"], "a regression");
    const { target, link } = regress;
    const isModel = isPlace(target, features.length) && ["linear", "logistic"].includes(link) && forms.length > 0;
    check(isModel, "a regression has a target, a linear or logistic link, and a form");
  }
  const { groups: figures, ...law } = grouped(written, level, parts);
  check(figures.every(({ protocol }) => "place" in protocol), "a query is answered by a protocol for a mean");
  return { ...law, figures, figure: (answer, group) => parts[group].of(answer), regress, at: forms };
}


const OF_A_LEVEL = ["GRR", "SubsetSelection", "OLH"];

/** Levels, of which a report is about one: `size` and `name` of each, and the node of a level that an answer lies under. */
function leveled(written, epsilon, sizes, names, project) {
  check(Array.isArray(written) && written.length === sizes.length, "there is one group per level");
  const parts = sizes.map((size, i) => ({ name: names[i], domain: { kind: "integers", low: 0, high: size - 1 }, of: (answer) => project(answer, i) }));
  const { groups: levels, ...law } = grouped(written, epsilon, parts);
  const usual = levels.every(({ protocol }) => OF_A_LEVEL.includes(protocol.name) && protocol.epsilon === epsilon);
  check(usual, "a level is asked by GRR, SubsetSelection or OLH with the epsilon of the whole");
  return { ...law, levels, project };
}

/** The cell of a number: of a whole number its position, of an interval the part that it lies in. */
function cellOf({ low, high, size, number }, cells, most) {
  check(isWhole(cells, 2, most) && (size === undefined || size === cells), "the cells of ranges are not usable");
  return (answer) => (size === undefined ? Math.min(Math.floor(((number(answer) - low) * cells) / (high - low)), cells - 1) : answer);
}

/** Ranges: the node of a tree that a number lies under, of one level. Cells are whole numbers, or parts of an interval. */
function ranges(domain, _epsilon, { cells, fanouts, groups: written, epsilon }) {
  const cell = cellOf(domain, cells, 2 ** 20);
  check(Array.isArray(fanouts) && fanouts.length > 0 && fanouts.every((one) => isWhole(one, 2, 2 ** 20)), "a fan-out is a whole number of at least 2");
  const sizes = fanouts.map(((product) => (one) => (product *= one))(1));
  const leaves = sizes.at(-1);
  check(leaves >= cells && leaves <= 2 ** 21 && !(sizes.at(-2) >= cells), "the levels of the tree do not fit its cells");
  const project = (answer, level) => Math.floor(cell(answer) / (leaves / sizes[level]));
  return leveled(written, epsilon, sizes, sizes.map((many) => `${many.toLocaleString("en")} ranges`), project);
}

/** Discovery: the cell of a prefix of the bits of an answer, by a public linear map. */
function discovery({ bits, key }, _epsilon, { cell_bits: cellBits, prefixes, groups: written, epsilon }) {
  check(isWhole(cellBits, 1, 24), "a cell has 1 to 24 bits");
  const rising = Array.isArray(prefixes) && prefixes.every((one, i) => isWhole(one, 1, bits) && (i === 0 || prefixes[i - 1] <= one));
  check(rising && prefixes.at(-1) === bits, "the prefixes are numbers of bits, in rising order, up to all of them");
  const lengths = [...prefixes, bits];
  check(lengths.every((one, i) => one - (lengths[i - 1] ?? 0) <= 24), "a group has at most 24 new bits");
  const columns = lengths.map((length, group) => {
    const width = Math.min(cellBits, length);
    let digest;
    return Array.from({ length }, (_, i) => {
      if (i >= length - width) return 2 ** (length - 1 - i);
      if (i % 8 === 0) digest = sha256(utf8(`deniable-discovery-v1\0${key}\0${group}\0${i / 8}`));
      return littleEndian(digest, 4 * (i % 8)) & (2 ** width - 1);
    });
  });
  const project = (answer, group) =>
    columns[group].reduce((cell, column, i) => ((answer[i >> 3] >> (7 - (i % 8))) & 1 ? cell ^ column : cell), 0);
  const sizes = lengths.map((length) => 2 ** Math.min(cellBits, length));
  const names = [...prefixes.map((length) => `the first ${length.toLocaleString("en")} bits`), "all bits, to count"];
  const law = leveled(written, epsilon, sizes, names, project);
  check(law.levels.every(({ protocol }) => protocol.name === "OLH"), "each group is an OLH over its cells");
  return { ...law, lengths };
}

/** Rectangles: the node of a grid in which two numbers lie. */
function rectangles({ columns }, _epsilon, { cells, grids, groups: written, epsilon }) {
  const isNumber = ({ domain: { kind } }) => kind === "integers" || kind === "interval";
  check(columns.length === 2 && columns.every(isNumber), "rectangles are those of two numbers");
  check(Array.isArray(cells) && cells.length === 2, "rectangles have cells of both numbers");
  const each = columns.map(({ domain }, side) => cellOf(domain, cells[side], 2 ** 16));
  const isGrid = (grid) => Array.isArray(grid) && grid.length === 2 && grid.every((one) => isWhole(one, 1, 2 ** 16)) && isWhole(grid[0] * grid[1], 2, 2 ** 16);
  check(Array.isArray(grids) && grids.every(isGrid), "a grid has rows and columns, and 2 to 2^16 rectangles");
  check(new Set(grids.map(String)).size === grids.length && grids.some((grid) => Math.min(...grid) > 1), "grids differ, and one at least cuts both numbers");
  const lengths = cells.map((count, side) => {
    const sizes = grids.map((grid) => grid[side]).sort((a, b) => a - b);
    const nested = sizes.every((size, i) => i === 0 || size % sizes[i - 1] === 0);
    check(nested && sizes.at(-1) < 2 * count, "the cuts of a number lie inside each other and fit its cells");
    return Math.ceil(count / sizes.at(-1)) * sizes.at(-1);
  });
  const place = (answer, grid, side) => Math.floor(each[side](answer[side]) / (lengths[side] / grid[side]));
  const project = (answer, level) => place(answer, grids[level], 0) * grids[level][1] + place(answer, grids[level], 1);
  return leveled(written, epsilon, grids.map(([rows, many]) => rows * many), grids.map(([rows, many]) => `${rows} x ${many} rectangles`), project);
}

const MOST_REACH = 64;
const PARTS_OF_A_SIDE = 1n << 16n; // to which lengths are rounded up

/** The smallest whole number whose square is at least n, below 2^53. */
function rootAbove(n) {
  let root = Math.floor(Math.sqrt(n));
  while (root * root < n) root++;
  while (root > 0 && (root - 1) * (root - 1) >= n) root--;
  return root;
}

/**
 * Places: an offset on the plane, the longer the less likely, or any cell of the plane; what leaves the grid is moved to its
 * edge. Integer weights follow from epsilon and the reach, so that nobody has to be believed.
 */
function places({ shape, cell }, [top, bottom], { domain: { kind }, reach }) {
  check(kind === "grid", "places are those of a grid");
  check(isWhole(reach, 1, MOST_REACH) && top * BigInt(reach) <= 24n * bottom, "the reach of places is not usable");
  const [rows, columns] = shape;
  const weight = (length) => (length === 0 ? WORD : floorOf([0n, 1n, 1n, 0n], [top * BigInt(length), bottom * (PARTS_OF_A_SIDE + 2n)]));
  const floor = weight(reach * 2 ** 16);
  const known = new Map();
  const offsets = [];
  const sums = [];
  let total = 0n;
  for (let north = -reach; north <= reach; north++) {
    for (let east = -reach; east <= reach; east++) {
      const square = north * north + east * east;
      if (square >= reach * reach) continue;
      if (!known.has(square)) known.set(square, weight(rootAbove(square * 2 ** 32)) - floor);
      if (known.get(square) <= 0n) continue;
      offsets.push([north, east]);
      sums.push((total += known.get(square)));
    }
  }
  const width = columns + 2 * reach;
  const plane = (rows + 2 * reach) * width;
  const anywhere = floor * BigInt(plane);
  sums.push((total += anywhere));
  const reportBytes = bytesFor(rows * columns);
  const draw = ([north, east], bits) => {
    const drawn = bits.draw(sums);
    const far = bits.integers(plane);
    const near = (offset) => [north + offset[0], east + offset[1]];
    const anyPlace = [Math.floor(far / width) - reach, (far % width) - reach];
    const [up, right] = drawn < offsets.length ? near(offsets[drawn]) : anyPlace;
    const inside = (at, size) => Math.min(Math.max(at, 0), size - 1);
    return toBytes(inside(up, rows) * columns + inside(right, columns), reportBytes);
  };
  const over = `two places one cell side${cell ? ` (${cell})` : ""} apart, and so much more for places that are further apart`;
  // A report is its own best guess. An offset leads to the same cell again at the edges that it points to.
  const again = (size, offset) => BigInt(offset === 0 ? size : 1);
  const weights = offsets.map(([north, east]) => known.get(north * north + east * east) * again(rows, north) * again(columns, east));
  const right = weights.reduce((sum, weight) => sum + weight, anywhere);
  const chances = { stays: known.get(0), anywhere, total, right };
  return { reportBytes, forms: rows * columns, thresholds: {}, draw, relation: "metric", over, reach, plane, offsets, chances };
}

/** `count` different positions below `size`, uniformly (Floyd's algorithm). */
function randomSubset(bits, size, count) {
  const chosen = new Set();
  for (let last = size - count; last < size; last++) {
    const drawn = bits.integers(last + 1);
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return [...chosen];
}

/** A number below `size - held.length`, as a position that skips those held, which ascend. */
const skipping = (held, position) => held.reduce((at, one) => at + (at >= one), position);

/** At most `most` items of a set by chance, filled up with different dummies that follow the items. */
function padded({ items: { size }, most }, positions, bits) {
  const kept = positions.length > most ? randomSubset(bits, positions.length, most).map((i) => positions[i]).sort((a, b) => a - b) : positions;
  return [...kept, ...Array.from({ length: most - kept.length }, (_, i) => size + i)];
}

/** The finalizer of splitmix64. */
function finalize(z) {
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

/** Collision mechanism: the cells of a set under a public hash function; one of them, more often than another cell. */
function collisionSets(domain, epsilon, { cells, cohorts: count, key }) {
  const { most, items } = domain;
  check(isWhole(cells, most + 1, MOST_ANSWERS) && isWhole(count, 1, 2 ** 16), "the sizes of the hash functions are not usable");
  check(cells * count <= MOST_ANSWERS, "these are more than 2^28 counters");
  check(items.size + most <= 2 ** 52, "there are at most 2^52 items");
  checkHashKey(key);
  const ownCell = threshold(floorOf([1n, 0n, BigInt(most), BigInt(cells - most)], epsilon));
  check(ownCell.numerator * BigInt(cells) > WORD, "at this epsilon rounding leaves nothing to learn");
  const seed = (cohort) => new DataView(sha256(utf8(`deniable-sets-v1\0${key}\0${cohort}`)).buffer).getBigUint64(0, true);
  const cell = (element, cohort) => {
    const number = finalize(BigInt.asUintN(64, BigInt(element + 1) * 0x9e3779b97f4a7c15n));
    return Number(((finalize(number ^ seed(cohort)) >> 32n) * BigInt(cells)) >> 32n);
  };
  const [first, second] = [bytesFor(count), bytesFor(cells)];
  const draw = (positions, bits) => {
    const elements = padded(domain, positions, bits);
    const cohort = bits.public === undefined ? bits.integers(count) : Number(bits.public % BigInt(count));
    const held = [...new Set(elements.map((one) => cell(one, cohort)))].sort((a, b) => a - b);
    const inside = bits.bernoulli(threshold(ownCell.numerator * BigInt(held.length)));
    const found = inside ? held[bits.integers(held.length)] : skipping(held, bits.integers(cells - held.length));
    return concat(toBytes(cohort, first), toBytes(found, second));
  };
  return { reportBytes: first + second, forms: count * cells, thresholds: { ownCell }, draw, cell, cells };
}

function choose(n, k) {
  if (k < 0 || k > n) return 0n;
  let ways = 1n;
  for (let i = 1n; i <= BigInt(Math.min(k, n - k)); i++) ways = (ways * (BigInt(n) - i + 1n)) / i;
  return ways;
}

const MOST_ELEMENTS = 4096;
const MOST_SINGLE = 2 ** 20; // of which one element is reported

/** Subset mechanism for sets: k of the items and dummies, more often with something of the set than without. */
function subsetSets(domain, epsilon, { subset_size: k }) {
  const { most } = domain;
  const size = domain.items.size + most;
  check(size <= (k === 1 ? MOST_SINGLE : MOST_ELEMENTS) && isWhole(k, 1, size - most), "the size of a subset is not usable");
  const apart = choose(size - most, k);
  const met = choose(size, k) - apart;
  const meets = threshold(floorOf([met, 0n, met, apart], epsilon));
  check(meets.numerator * (met + apart) > met * WORD, "at this epsilon rounding leaves nothing to learn");
  const weights = Array.from({ length: Math.min(most, k) }, (_, j) => choose(most, j + 1) * choose(size - most, k - j - 1));
  const sums = weights.map(((sum) => (weight) => (sum += weight))(0n));
  const width = bytesFor(size);
  const listed = k * width < Math.ceil(size / 8);
  const reportBytes = listed ? k * width : Math.ceil(size / 8);
  const draw = (positions, bits) => {
    const elements = padded(domain, positions, bits);
    const shared = bits.bernoulli(meets) ? 1 + bits.draw(sums) : 0;
    const own = randomSubset(bits, most, shared).map((i) => elements[i]);
    const others = randomSubset(bits, size - most, k - shared).map((one) => skipping(elements, one));
    const members = [...own, ...others].sort((a, b) => a - b);
    const out = new Uint8Array(reportBytes);
    members.forEach((member, i) => (listed ? toBytes(member, width, out, i * width) : setBit(out, member, true)));
    return out;
  };
  return { reportBytes, forms: Number(met + apart), thresholds: { meets }, draw, size, count: k };
}

const LAWS_OF_SETS = ["CollisionSets", "SubsetSets"];
const OF_A_SET = ["items", "pairs", "triples"];

/** Items of sets: in groups, the items themselves, or their pairs or triples as if those were items. */
function itemSets(domain, _epsilon, { domain: spec, groups: written, epsilon }) {
  const { items, most } = domain;
  check(Array.isArray(written) && isWhole(written.length, 1, Math.min(OF_A_SET.length, most)), "there is a group for items, and perhaps for pairs and triples");
  const parts = written.map((_, group) => {
    if (group === 0) return { name: OF_A_SET[0], domain: spec, of: (positions) => positions };
    const all = Number(choose(items.size, group + 1));
    check(isWhole(all, 2, 2 ** 52), "there are too many sets of items");
    const reported = Math.min(all, MOST_ELEMENTS, Number(choose(most, group + 1)));
    const of = (positions) => combinations(positions, group + 1).map(numberOf).sort((a, b) => a - b);
    return { name: OF_A_SET[group], domain: { kind: "sets", items: { kind: "integers", low: 0, high: all - 1 }, at_most: reported }, of };
  });
  const { groups: kinds, ...law } = grouped(written, epsilon, parts);
  const usual = kinds.every(({ protocol }) => LAWS_OF_SETS.includes(protocol.name) && protocol.epsilon === epsilon);
  check(usual, "a group of sets is asked by CollisionSets or SubsetSets with the epsilon of the whole");
  return { ...law, kinds, project: (positions, group) => parts[group].of(positions) };
}

/** All ways to take so many of some ascending positions, each ascending. */
function combinations(positions, count, from = 0) {
  if (count === 0) return [[]];
  const found = [];
  for (let i = from; i + count <= positions.length; i++) {
    for (const rest of combinations(positions, count - 1, i + 1)) found.push([positions[i], ...rest]);
  }
  return found;
}

/** The number of ascending positions among all sets of their size. */
const numberOf = (chosen) => Number(chosen.reduce((sum, position, place) => sum + choose(position, place + 1), 0n));

/** Numbers by key: each is rounded to an end of the interval, and the set of keys at their ends is reported. */
function keyValue(domain, _epsilon, { law: written, epsilon }) {
  const { items, most, numbers } = domain;
  const own = loadInner(written);
  const wanted = { kind: "sets", items: { kind: "integers", low: 0, high: 2 * items.size - 1 }, at_most: most };
  const fits = LAWS_OF_SETS.includes(own.name) && canonicalText(written.domain, 0) === canonicalText(wanted, 0);
  check(fits && own.epsilon === epsilon, "the law of a key-value question is one of sets over two items per key, at its epsilon");
  const { rounded } = grid(numbers, 2);
  const draw = (pairs, bits) => own.draw(pairs.map(([key, number]) => 2 * key + rounded(number, bits)), bits);
  const { reportBytes, forms, thresholds } = own;
  return { reportBytes, forms, thresholds, draw, law: own, readings: ["share", "mean"] };
}

/**
 * Every protocol that a spec may name: its law, the shape of its reports, its parameters, and what it needs of a domain. Those with a `closed`
 * parameter hash text: an open domain says how, while over a list of answers that parameter does. A law may have reports of another shape.
 */
const PROTOCOLS = {
  __proto__: null,
  GRR: { law: grr, shape: "answer" },
  LGRR: { law: lgrr, shape: "answer, twice", parameters: ["forever"] },
  LOLOHA: { law: loloha, shape: "hashed answer, twice", needs: "text", parameters: ["forever"], closed: "hashing" },
  LSUE: { law: lsue, shape: "bits, twice", parameters: ["forever"] },
  LOSUE: { law: losue, shape: "bits, twice", parameters: ["forever"] },
  DBitFlip: { law: dBitFlip, shape: "block of bits, twice", parameters: ["forever", "bits"] },
  LOneBitMean: { law: longOneBitMean, shape: "end, twice", needs: "number", parameters: ["forever", "steps", "points"] },
  SecureSum: { law: secureSum, shape: "sum", parameters: ["people", "missing", "collectors", "read", "delta", "decay", "weights"] },
  Evolving: { law: evolving, shape: "stream", parameters: ["epochs", "changes"] },
  SUE: { law: sue, shape: "bits" },
  OUE: { law: oue, shape: "bits" },
  THE: { law: the, shape: "bits", parameters: ["threshold"] },
  BLH: { law: localHashing, shape: "hash" },
  OLH: { law: localHashing, shape: "hash", parameters: ["hash_bits"] },
  SubsetSelection: { law: subsetSelection, shape: "subset", parameters: ["subset_size"] },
  BlockDesign: { law: blockDesign, shape: "subset", parameters: ["cells", "window"] },
  HadamardResponse: { law: hadamardResponse, shape: "block", parameters: ["blocks"] },
  CMS: { law: sketch(sue), shape: "hashed bits", needs: "text", closed: "hashing" },
  HCMS: { law: sketch(localHashing), shape: "hashed groups", needs: "text", closed: "hashing" },
  OLHSketch: { law: sketch(localHashing), shape: "hashed groups", needs: "text", parameters: ["hash_bits"], closed: "hashing" },
  RAPPOR: { law: rappor, shape: "filter", needs: "text", parameters: ["bloom_bits", "hashes", "cohorts"], closed: "key" },
  LRAPPOR: { law: lrappor, shape: "filter, twice", needs: "text", parameters: ["bloom_bits", "hashes", "cohorts", "forever"], closed: "key" },
  Window: { law: windowResponse, shape: "window", needs: "number", parameters: ["positions", "width", "read"] },
  OneBitMean: { law: oneBitMean, shape: "window", needs: "number" },
  Table: { law: table, shape: "output", parameters: ["outputs", "rows"], optional: ["certificate", "delta", "laws"] },
  MeanTable: { law: meanTable, shape: "mean output", needs: "number", parameters: ["rows", "values"], optional: ["certificate"] },
  ProfileTable: { law: profileTable, shape: "profile output", needs: "columns", parameters: ["mechanism", "profiles", "edges", "rows", "read"] },
  Attributes: { law: attributes, shape: "part", other: "combination", needs: "columns", parameters: ["groups"], optional: ["views", "cells"] },
  Stratified: { law: stratified, shape: "stratum", needs: "columns", parameters: ["inner"] },
  PrivateStrata: { law: privateStrata, shape: "private stratum", needs: "columns", parameters: ["positions", "law"] },
  Moments: { law: moments, shape: "figure", needs: "read", parameters: ["groups"] },
  Queries: { law: queries, shape: "figure", needs: "columns", parameters: ["features", "forms", "queries", "groups"], optional: ["regress"] },
  Ranges: { law: ranges, shape: "range", needs: "number", parameters: ["cells", "fanouts", "groups"] },
  Rectangles: { law: rectangles, shape: "rectangle", needs: "columns", parameters: ["cells", "grids", "groups"] },
  PlanarLaplace: { law: places, shape: "place", needs: "columns", parameters: ["reach"] },
  HeavyHitters: { law: discovery, shape: "prefix", needs: "bits", parameters: ["cell_bits", "prefixes", "groups"] },
  CollisionSets: { law: collisionSets, shape: "cell of a set", needs: "items", parameters: ["cells", "cohorts", "key"] },
  SubsetSets: { law: subsetSets, shape: "subset for a set", needs: "items", parameters: ["subset_size"] },
  ItemSets: { law: itemSets, shape: "items of a set", needs: "items", parameters: ["groups"] },
  KeyValue: { law: keyValue, shape: "keys at ends", needs: "numbers", parameters: ["law"] },
};

const NEEDS = {
  label: "a list of answers",
  text: "text or a list of answers",
  number: "a number",
  columns: "a record",
  read: "an answer",
  items: "a set of items",
  numbers: "numbers by key",
  bits: "strings of bits",
};

/**
 * Every campaign that a survey may be a round of: how many rounds it has, its parameters, and what a round asks. How the
 * next round follows from the sums is no matter of a device: it answers one round, and what follows is published.
 */
const CAMPAIGNS = {
  __proto__: null,
  narrowing: {
    rounds: () => 2,
    parameters: { cells: [4, 256], margin: [1, 64] },
    asks: ({ name, domain, positions, width }, { cells }, round) =>
      name === "Window" && domain.kind === "interval" && (round > 1 || (positions === cells + 1 && width === 1)),
  },
  regression: {
    rounds: ({ batches }) => batches,
    parameters: { batches: [2, 64] },
    asks: ({ name, regress, at }, _parameters, round) => name === "Queries" && regress !== undefined && (round > 1 || at[0].every((one) => one === 0)),
  },
  screening: {
    rounds: () => 2,
    parameters: { pairs: [1, 1024] },
    asks: ({ name, views = [] }, { pairs }, round) =>
      name === "Attributes" &&
      views.length > 0 &&
      views.every(({ length }) => length === 2) &&
      (round === 1 || views.length <= pairs),
  },
};

/** The names that a spec may use here. */
export const KINDS = Object.freeze({
  domains: Object.keys(DOMAINS),
  protocols: Object.keys(PROTOCOLS),
  shapes: [...new Set(Object.values(PROTOCOLS).flatMap(({ shape, other }) => (other ? [shape, other] : [shape])))],
  campaigns: Object.keys(CAMPAIGNS),
});

const HEAD = ["kind", "version", "protocol", "domain", "epsilon"];

/** The protocol of a spec, as Python's `protocol.spec()` writes it. */
export function loadProtocol(spec) {
  check(isObject(spec) && spec.kind === "protocol", 'this is not the spec of a protocol: it needs "kind": "protocol"');
  check(spec.version === 1, "protocol specs of this version are unknown here: only 1 is");
  check(typeof spec.protocol === "string", "the protocol is not a name");
  const known = named(PROTOCOLS, spec.protocol, "protocol");
  canonicalBytes(spec); // refuses what a spec cannot hold
  const { law: build, shape, needs = "label", parameters = [], optional = [], closed = null } = known;
  const domain = loadDomain(spec.domain);
  check(needs in domain, `${spec.protocol} needs ${NEEDS[needs]}, not ${domain.noun}`);
  exactKeys(spec, [...HEAD, ...parameters, ...(closed && !domain.open ? [closed] : [])], "the spec", optional);
  const epsilon = readLevel(spec.epsilon, "epsilon");
  if (closed && domain.labels) {
    const texts = new Set(domain.labels.map(labelText));
    check(texts.size === domain.size, "two categories are the same text and would be counted as one");
  }
  const { thresholds, ...law } = build(domain, epsilon, spec);
  return Object.freeze({
    name: spec.protocol,
    shape,
    epsilon: spec.epsilon,
    relation: RELATIONS[0],
    over: "any two answers",
    domain,
    ...law,
    thresholds: Object.freeze(thresholds),
    /** Randomize one answer. */
    privatize: (value, random = SYSTEM) => law.draw(domain.read(value), random),
    /**
     * The answer itself as bytes, for keys and digests that stay here: 00 and the position, 01 and the text, 02 and the
     * float, 03 and each column's length and bytes, 04 and positions, or 05 and positions with floats.
     */
    encode: (value) => domain.encode(domain.read(value)),
  });
}

// -- specs -----------------------------------------------------------------------------------------------------------

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Refuse keys that are missing or unknown: a field that is skipped could be a promise that is not kept. */
function exactKeys(entry, needed, where, optional = []) {
  if (!isObject(entry)) refuse("spec", `${where} is not an object`);
  for (const key of Object.keys(entry)) {
    check(needed.includes(key) || optional.includes(key), `${where} has the unknown key "${key.slice(0, 40)}"`);
  }
  for (const key of needed) check(Object.hasOwn(entry, key), `${where} misses ${key}`);
}

/** The one byte string that stands for a spec: keys sorted, no white space, no floats, text in Unicode form NFC. */
export function canonicalBytes(spec) {
  return utf8(canonicalText(spec, 0));
}

function canonicalText(value, depth) {
  if (depth > 64) refuse("spec", "a spec is nested at most 64 deep");
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") {
    check(isText(value) && value.normalize("NFC") === value, "a spec holds text in Unicode form NFC only");
    return JSON.stringify(value);
  }
  if (Number.isSafeInteger(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item, depth + 1)).join(",")}]`;
  if (isObject(value)) {
    const members = Object.keys(value).sort(byCodePoint);
    return `{${members.map((key) => `${canonicalText(key, 0)}:${canonicalText(value[key], depth + 1)}`).join(",")}}`;
  }
  return refuse("spec", `a spec cannot hold a ${typeof value}, nor a number that is not whole and below 2^53`);
}

/** Code points, not UTF-16 units, which sort characters beyond U+FFFF differently; UTF-8 sorts like code points. */
function byCodePoint(a, b) {
  const [x, y] = [Array.from(a), Array.from(b)];
  const at = x.findIndex((character, i) => character !== y[i]);
  return at < 0 ? x.length - y.length : (x[at].codePointAt(0) ?? 0) - (y[at]?.codePointAt(0) ?? -1);
}

/** SHA-256("deniable-<kind>-v1" NUL bytes) in hexadecimal digits, by the browser's own implementation. */
export async function fingerprint(kind, bytes) {
  checkContext();
  const digest = await globalThis.crypto.subtle.digest("SHA-256", concat(utf8(`deniable-${kind}-v1\0`), bytes));
  return hex(new Uint8Array(digest));
}

/** Outside secure contexts scripts can be altered on the way, and a randomizer that was altered protects nobody. */
function checkContext() {
  if (globalThis.isSecureContext === false || !globalThis.crypto?.subtle) {
    refuse("context", "this page was not loaded securely: answers are randomized only on https pages or on localhost");
  }
}

// -- texts -----------------------------------------------------------------------------------------------------------
//
// A survey is known by its fingerprint. A character that nobody sees would give one person a survey of their own that
// looks like everybody's. Refused: control, format and private characters, separators, default-ignorable code points,
// code points without a character in Unicode 14.0, and all blanks but single ones between words. Joiners stay possible
// where spelling needs them and they change the shape of letters. The table is Python's, character for character.

/** Ranges in base 36: the distance from the end of the range before and, after a point, how many more follow. */
const REFUSED =
  "0.v 2o.x d iq 15.1 7.3 8 2 l b2 13.1 1f.1 4 1k.7 s.3 7.g n 5d 1d.1 1o.1 2u.d 1o.1 1e.1 g t.1 2 c.4 w.8 23 4i 9.1 " +
  "3.1 n 8 2.2 5.1 a.1 3.1 5.7 2.3 3 6.1 q.1 4 7.3 3.1 n 8 3 3 3.1 2 6.3 3.1 4.2 2.6 5 2.6 i.9 4 a 4 n 8 3 6.1 b 4 " +
  "4.1 2.e 5.1 d.6 8 4 9.1 3.1 n 8 3 6.1 a.1 3.1 4.6 4.3 3 6.1 j.9 3 7.2 4 5.2 3 2 3.2 3.2 4.2 d.3 6.2 4 5.1 2.5 " +
  "2.d m.4 e 4 o h.1 a 4 5.6 3 4.1 2.1 5.1 b.6 n 4 o b 6.1 a 4 5.6 3.5 3 5.1 b 3.c e 4 1g 4 7.3 h.1 r 4 j.2 p a 2.1 " +
  "8.2 2.3 7 2 9.5 b.1 4.b 1n.3 u.10 3 2 6 p 2 o.1 6 2 7.1 b.1 5.v 21 11.3 14 11 g e.10 5j 2.4 2.1 40.1 6h 5.1 8 2 " +
  "5.1 16 5.1 y 5.1 8 2 5.1 g 1m 5.1 1w.1 x.2 r.5 2f.1 7.1 ht t.2 2i.6 n.8 p.8 l.b e 4 3.b 1h.1 15.1 b.5 b.5 c.4 " +
  "b.5 2i.6 18.4 1z.9 w d.3 d.3 2.2 17.1 6.a 19.3 r.5 c.2 1r.1 1u u.1 c.5 b.5 f.1 w.1c 26.2 1c 39.7 1p.2 g.2 1p.6 " +
  "18.1 c.7 18.4 ev.1 7.1 13.1 7.1 9 2 2 2 w.1 1i g f.1 7 k.1 4 a.g p.7 1c.g 3.1 s e.2 y.e y.e 3x.3 ig.o c.k pt " +
  "ok.1 x 9q.4 1a 2.4 2.1 1l.6 3.d p.8 8 8 8 8 8 8 8 8 3j.x r 2i.b 5z.p d.4 1s 2f.1 2w.4 18 1g 17 2d.b 1c mlq.2 " +
  "1k.8 9p.j 55.7 5o.4 3 2 6.n 1o.2 b.5 1l.7 1z.7 d.5 39.a v.2 27 c.3 y 1k.8 f.1 b.1 2w.n t.9 7.1 7.1 7.8 8 8 1p.3 " +
  "3j.1 b.5 8md.b o.3 1e.6ir a7.1 2z.11 8.b 6.4 r 6 2 3 3 3i.f ce.1 1j.6 2.v h.f b.5 1g k 5.3 6 3s.3 4g v.2 7.1 7.1 " +
  "7.1 4.2 8 8.g d r k 3 g.1 f.x 3g.4 4.3 1a.2 2h e.2 2.1a 1b.3l u.2 1e.e t.3 11.8 v.4 18.4 v 12.3 f.15 4f.1 b.5 " +
  "11.3 11.3 15.7 1h.a d g 8 3 c g 8 3.1u 8o.8 n.9 9.n 7 17 a.1w 7.1 2 19 3.2 2.1 o 21.7 a.1b k 3.4 y.2 s.4 2.1r " +
  "1l.3 l.1 1f 3.4 9 4 u.1 4.3 b.6 a.6 1t.v 14.3 d.8 1j.2 u.1 s.4 r.6 5.b 8.27 22.1i 1g.c 1g.6 1b.7 b.85 w 17 4.1 " +
  "3.25 15.7 17.l r.11 t.j o.8 27.3 11.8 1r 6.c q.6 b.5 1i j.7 14.8 2p l.a j 19.1s 8 2 5 g c.5 1o.4 b.5 5 9.1 3.1 n " +
  "8 3 6 b.1 3.1 4.1 2.5 2.4 8.1 8.2 6.3u 2l 6.t 21.7 b.4l 1j.1 13.x 1y.a b.5 e.i 1n.5 b.1h s.1 g.3 o.54 1p.2r 2c.b " +
  "9.1 2.1 9 3 v 3.1 d.8 b.1x 9.1 1b.1 c.q 21.7 2c.c 22.7a a 1a f.9 u.2 x.1 n f.20 8 3 19.2 2 3 a.7 b.5 7 3 12 3 " +
  "7.6 b.8l q.52 2.e 1f.c po.2t 34 6.a 5h.217 2s.c ts.34g g8.6ns fu.6 w b.3 2a b.5 v.1 7.9 1z.9 b 8 m.4 k.j3 2k.2s " +
  "24.3 1m.6 i.1r 5.b 3.d 4qh.7 yf.15 a.6w6 5 8 3 84.18 4.g 5.7 b1.1s3 30.4 e.2 a.6 b.1 5.3mn 1b.1 o.8 39.1n 6v.9 " +
  "14.1 1d q.7 35.k 1z.49 l.b 2g.8 q.3q 2e 20 3.1 2.1 3.1 5 d 2 8 1u 5.1 9 8 t 5 6 2.2 8 9h.1 85.1 jj.e 6 g.un w.68 " +
  "8 i.1 8 3 6.5w 1a.2 f.1 b.3 3.8v w.g 1n.4 2.yn 8 5 3 g 5i.1 h.14 25.3 b.3 3.ls 1x.23 1q.5d 5 s 3 2.1 2 b 5 2 2.5 " +
  "2.3 2 2 2 4 3 2.1 2 2 2 2 2 3 2.1 5 8 5 5 2 b i.4 4 6 i.1f 3.7h 19.3 2t.b g.1 g g 12.9 4v.1j u.c 19.3 a.6 3.d " +
  "7.49 rd.4 h.2 e.2 39.b 2i.6 d.3 2.e d.3 1l.7 b.5 15.7 v.1 3.25 9h.b f.1 6.2 6.2 8.8 u.2 c.4 7.9 b.5 9.7 8.8 44 " +
  "1k.10 b.sl wyp.v 37e.6 67.1 4g3.d 5rm.2e6 f3.15t 3t8.jk50";

let refusedEnds;

/** Where the kind changes: at an even place refused code points begin, at an odd one they have ended. */
function readRefused() {
  const ends = [];
  let last = 0;
  for (const entry of REFUSED.split(" ")) {
    const [start, more = "0"] = entry.split(".");
    const first = last + parseInt(start, 36);
    last = first + parseInt(more, 36);
    ends.push(first, last + 1);
  }
  return ends;
}

function isRefused(code) {
  refusedEnds ??= readRefused();
  return firstAbove(refusedEnds, code) % 2 === 1;
}

// The characters before and after a joiner. Arabic letters that join the next one, then those that can be joined.
const DUAL =
  "\u0620\u0626\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687" +
  "\u069a-\u06bf\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u06ff";
const RIGHT =
  "\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0673\u0675-\u0677\u0688-\u0699\u06c0\u06c3-\u06cb" +
  "\u06cd\u06cf\u06d2\u06d3\u06d5\u06ee\u06ef";
// Devanagari, Bengali, Gujarati; Sinhala joins only; Oriya, Telugu, Kannada and Malayalam are only kept apart.
const HALF = "\u094d[\u0915-\u0939]|\u09cd[\u0995-\u09b9]|\u0acd[\u0a95-\u0ab9]";
const APART = "\u0b4d[\u0b15-\u0b39]|\u0c4d[\u0c15-\u0c39]|\u0ccd[\u0c95-\u0cb9]|\u0d4d[\u0d15-\u0d39]";
const SPELLED = {
  "\u200c": new RegExp(`^(?:[${DUAL}][${DUAL}${RIGHT}]|${HALF}|${APART})$`),
  "\u200d": new RegExp(`^(?:${HALF}|\u0dca[\u0d9a-\u0dc6])$`),
};
const OTHER_BLANK = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

/** What is wrong with a text and how to mend it, to follow the name of the text; null if nothing is. */
export function textProblem(text) {
  // Nearly all texts are plain, and a survey may list a million answers.
  if (!/[^ -~]/.test(text) && !text.includes("  ") && !/^ | $/.test(text)) return null;
  const characters = Array.from(text);
  for (const [i, character] of characters.entries()) {
    const code = character.codePointAt(0);
    const around = (characters[i - 1] ?? "") + (characters[i + 1] ?? "");
    if (!isRefused(code) || SPELLED[character]?.test(around)) continue;
    const found = `U+${code.toString(16).toUpperCase().padStart(4, "0")} at place ${i + 1}`;
    if (OTHER_BLANK.test(character)) return `has the blank ${found}: write an ordinary blank`;
    return `has the invisible or unknown character ${found}: remove it`;
  }
  if (characters[0] === " " || characters.at(-1) === " ") return "begins or ends with a blank: remove it";
  const double = characters.findIndex((character, i) => character === " " && characters[i + 1] === " ");
  return double < 0 ? null : `has two blanks in a row at place ${double + 1}: one is enough`;
}

/** Refuse hidden characters in every text that a spec holds. */
function checkTexts(spec, what) {
  if (typeof spec === "string") {
    const problem = textProblem(spec);
    check(!problem, `${what} ${problem}`);
  } else if (typeof spec === "object" && spec !== null) {
    for (const value of Object.values(spec)) checkTexts(value, what);
  }
}

// -- surveys ---------------------------------------------------------------------------------------------------------

const LARGEST_SURVEY = 2 ** 24;
const MOST_QUESTIONS = 1000;
const FEW_FORMS = 1024; // a repeated report that is one of more forms would tell its device from all others
const LAST_EPOCH = 2 ** 32 - 1;
const RELATIONS = ["any", "metric", "profiles", "edge", "stream", "sum"]; // between which inputs a level holds
const TERMS = ["owner", "purpose", "epochs", "longitudinal", "budget", "opens", "expires", "retention", "min_reports"];
const MORE_TERMS = ["replaces", "campaign", "delete_days", "relay", "collectors", "results"];

function checkText(value, what) {
  check(typeof value === "string" && value.trim(), `${what} is empty or not text`);
  checkTexts(value, what);
}

/** Seconds since 1970 of "2026-11-01T00:00:00Z". */
function readTime(text) {
  const moment = typeof text === "string" ? Date.parse(text) : NaN;
  const written = Number.isNaN(moment) ? "" : new Date(moment).toISOString().replace(".000Z", "Z");
  check(written === text && text.length === 20, 'a time is written "2026-11-01T00:00:00Z", in UTC');
  return moment / 1000;
}

const LINKS = ["first", "before", "tally"];

/** The round of a campaign that a survey is; null where it is none. A campaign that is unknown here is refused by name. */
function readCampaign(spec, { epochs }, toAnswer) {
  if (spec === undefined) return null;
  const later = isObject(spec) && spec.round > 1;
  exactKeys(spec, ["kind", "parameters", "round", "rounds", ...(later ? LINKS : [])], '"campaign"');
  const { kind, parameters, round, rounds } = spec;
  check(typeof kind === "string" && isObject(parameters), "the campaign is not a name with parameters");
  check(isWhole(rounds, 2, 64) && isWhole(round, 1, rounds), "the round of the campaign is not usable");
  check(!later || LINKS.every((link) => isFingerprint(spec[link])), "a round names the surveys and the sums before it");
  check(!later || (round === 2) === (spec.first === spec.before), "only round 2 comes after the first survey");
  check(epochs === 1, "a device answers one round of a campaign, and that once");
  if (toAnswer || kind in CAMPAIGNS) {
    const known = named(CAMPAIGNS, kind, "campaign");
    exactKeys(parameters, Object.keys(known.parameters), `the campaign ${kind}`);
    const usable = Object.entries(known.parameters).every(([name, ends]) => isWhole(parameters[name], ...ends));
    check(usable && known.rounds(parameters) === rounds, `the parameters of the campaign ${kind} are not usable`);
  }
  const links = later ? Object.fromEntries(LINKS.map((link) => [link, spec[link]])) : {};
  return Object.freeze({ kind, parameters: Object.freeze({ ...parameters }), round, rounds, ...links });
}

const RELAY_ADDRESS = /^(https:\/\/[a-z0-9.-]+|http:\/\/(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?(\/[A-Za-z0-9._~-]+)*$/;

function readTerms(spec, toAnswer) {
  const { epochs, longitudinal, budget } = spec;
  checkText(spec.owner, "the owner of the survey");
  checkText(spec.purpose, "the purpose of the survey");
  exactKeys(epochs, ["origin", "seconds", "early", "late"], '"epochs"');
  check(isWhole(epochs.seconds, 1, 100 * 366 * 86400), "the length of an epoch is not usable");
  check(isWhole(epochs.early, 0, 1000) && isWhole(epochs.late, 0, 1000), "early and late epochs are not usable");
  const rules = { __proto__: null, none: [], memoize: ["values"], "two-stage": ["values", "first", "forever"], evolving: ["changes"] };
  const more = isObject(longitudinal) && typeof longitudinal.rule === "string" ? rules[longitudinal.rule] : [];
  check(more, "the longitudinal rule is unknown here");
  const streams = longitudinal.rule === "evolving";
  const [keeps, stages] = [more.length > 0 && !streams, longitudinal.rule === "two-stage"];
  exactKeys(longitudinal, ["rule", "epochs", ...more], '"longitudinal"', stages ? ["linkable"] : []);
  check(!("linkable" in longitudinal) || longitudinal.linkable === true, '"linkable" stands in a survey only where it is true');
  check(isWhole(longitudinal.epochs, stages ? 2 : 1, LAST_EPOCH), "the number of epochs that a device answers is not usable");
  check(!more.includes("values") || isWhole(longitudinal.values, 1, 1000), "the number of values that a device memoizes is not usable");
  if (stages) {
    const [one, all] = ["first", "forever"].map((key) => readFraction(longitudinal[key], `"${key}"`));
    check(isAbove(all, one), 'of two stages "first" is below "forever"');
  }
  exactKeys(budget, ["group", "epsilon"], '"budget"', ["delta", "relation"]);
  check(typeof budget.group === "string" && /^[a-z0-9._-]{1,64}$/.test(budget.group), "the budget group is not usable");
  const lifetime = readFraction(budget.epsilon, "the lifetime epsilon");
  check(!isAbove(lifetime, [1000000n, 1n]), "the lifetime epsilon is at most a million");
  const delta = "delta" in budget ? readFraction(budget.delta, "the lifetime delta") : [0n, 1n];
  check(isAbove([1n, 1n], delta), "the lifetime delta is below 1");
  const relations = RELATIONS.slice(1); // the first one is not written
  check(!("relation" in budget) || relations.includes(budget.relation), "the relation of the budget is unknown here");
  const [origin, opens, expires] = [epochs.origin, spec.opens, spec.expires].map(readTime);
  const at = (moment) => Math.floor((moment - origin) / epochs.seconds);
  check(opens < expires && at(opens) >= 0 && at(expires - 1) <= LAST_EPOCH, "the times of the survey are not usable");
  check(["tally", "reports"].includes(spec.retention), "the retention is unknown here");
  check(!("delete_days" in spec) || (spec.retention === "tally" && isWhole(spec.delete_days, 1, 366)), "the days until reports are deleted are not usable");
  if ("relay" in spec) {
    exactKeys(spec.relay, ["address", "key", "batch"], '"relay"');
    const { address, key, batch } = spec.relay;
    check(typeof address === "string" && RELAY_ADDRESS.test(address), "the address of the relay is not usable");
    check(typeof key === "string" && /^B[A-Za-z0-9_-]{85}[AEIMQUYcgkosw048]$/.test(key), "the key of the collector is not usable");
    check(isWhole(batch, 2, 10 ** 7), "the smallest batch of the relay is not usable");
    check(epochs.late >= 1 && spec.retention === "tally", "a survey with a relay takes a late epoch and keeps sums only");
  }
  if ("collectors" in spec) {
    const { collectors } = spec;
    check(Array.isArray(collectors) && isWhole(collectors.length, 2, 16), "a survey names no collectors, or 2 to 16 of them");
    const usable = collectors.every((address) => typeof address === "string" && RELAY_ADDRESS.test(address));
    check(usable && new Set(collectors).size === collectors.length, "the addresses of the collectors are not usable");
    const alone = longitudinal.rule === "none" && spec.retention === "tally" && !["relay", "campaign", "delete_days"].some((key) => key in spec);
    check(alone, "a survey with several collectors adds up fresh answers and keeps sums only");
  }
  check(!("results" in spec) || spec.results === "public", '"results" stands in a survey only where it is "public"');
  check(isWhole(spec.min_reports, 1, 10 ** 12), "the smallest number of answers to show is not usable");
  check(!("replaces" in spec) || isFingerprint(spec.replaces), "the survey that this one replaces is no fingerprint");
  return Object.freeze({
    owner: spec.owner,
    purpose: spec.purpose,
    epochs: Object.freeze({ ...epochs, origin, at, first: at(opens), last: at(expires - 1) }),
    longitudinal: Object.freeze({ ...longitudinal }),
    keeps,
    stages,
    streams,
    draws: streams ? 1 : keeps ? Math.min(longitudinal.values, longitudinal.epochs) : longitudinal.epochs,
    budget: Object.freeze({ delta: "0", relation: RELATIONS[0], ...budget }),
    opens,
    expires,
    retention: spec.retention,
    deleteDays: spec.delete_days ?? null,
    minReports: spec.min_reports,
    results: spec.results ?? "private",
    replaces: spec.replaces ?? null,
    campaign: readCampaign(spec.campaign, longitudinal, toAnswer),
    relay: spec.relay ? Object.freeze({ ...spec.relay, host: spec.relay.address.split("/")[2] }) : null,
    /** Who gets a share of each submission, with its host; none where one collector gets reports. */
    collectors: Object.freeze((spec.collectors ?? []).map((address) => Object.freeze({ address, host: address.split("/")[2] }))),
  });
}

const isFingerprint = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

/** A protocol that is unknown here, for pages that show results only: it refuses every answer. */
function unknownProtocol({ protocol: name, epsilon, domain }, error) {
  readFraction(epsilon, "epsilon");
  const no = () => {
    throw error;
  };
  let known = { kind: String(domain?.kind) };
  try {
    known = loadDomain(domain);
  } catch {
    // Its answers are unknown here as well.
  }
  const parts = { relation: null, reportBytes: 0, forms: 1, thresholds: {}, draw: no, privatize: no, encode: no };
  return Object.freeze({ name, epsilon, domain: known, ...parts, unknown: error.message });
}

function readQuestion(spec, toAnswer) {
  exactKeys(spec, ["id", "text", "protocol"], "a question");
  check(typeof spec.id === "string" && /^[a-z0-9_-]{1,64}$/.test(spec.id), "the id of a question is not usable");
  checkText(spec.text, `the text of question "${spec.id}"`);
  checkTexts(spec.protocol, `an answer or key of question "${spec.id}"`);
  let protocol;
  try {
    protocol = loadProtocol(spec.protocol);
  } catch (error) {
    if (toAnswer || error.kind !== "unknown") throw error;
    protocol = unknownProtocol(spec.protocol, error);
  }
  return Object.freeze({ id: spec.id, text: spec.text, protocol });
}

/** What all reports of a device tell at most, where they are drawn from kept states: the sum over the questions. */
function stagesTell({ questions, epsilon, terms: { longitudinal, draws } }) {
  const unknown = questions.find(({ protocol }) => protocol.unknown);
  if (unknown) return null;
  check(questions.every(({ protocol }) => protocol.permanent), "a question of this survey has no two stages");
  const total = (key) => shortSum(questions.map(({ protocol }) => readFraction(protocol[key])), `the sum of ${key}`);
  const stated = longitudinal.first === epsilon && longitudinal.forever === writeFraction(total("forever"));
  check(stated, '"first" and "forever" are not the sums over the questions');
  if (draws === 1) return longitudinal.forever;
  // One report, then the level of the second stage for each later one: a mixture of its rows, whatever came before.
  return writeFraction(add(readFraction(epsilon), times(total("instantEpsilon"), [BigInt(longitudinal.epochs - 1), 1n])));
}

// -- languages -------------------------------------------------------------------------------------------------------
//
// A translation mirrors the texts of a survey. An answer in another language is the answer at the same position, so that laws and
// reports do not know of languages: only what people read differs.

const LANGUAGE = /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$/;
const textLabels = ({ labels, items }) => (labels ?? items?.labels ?? []).filter((label) => typeof label === "string");

/** What people read in the answers of a domain, in the form of a translation. */
function textsOf(domain) {
  const { columns = [], shape, unit, numbers } = domain;
  if (shape) return {}; // places have no texts
  const labels = textLabels(domain);
  const titled = columns.some(({ name, title }) => title !== name);
  const part = ({ name, title, domain: own }) => [name, { name, ...(titled ? { text: title } : {}), ...textsOf(own) }];
  return {
    ...(labels.length ? { answers: labels } : {}),
    ...(unit || numbers?.unit ? { unit: unit || numbers.unit } : {}),
    ...(columns.length ? { parts: Object.fromEntries(columns.map(part)) } : {}),
  };
}

/** Refuse a translation that does not have exactly the texts of the survey. */
function checkTranslation(own, given, where) {
  if (typeof own === "string") return checkText(given, where);
  const parts = typeof own.text === "string" ? given?.parts : {}; // of a question, and no question that is called so
  const names = Array.isArray(own) ? given : Object.values(parts ?? {}).map((part) => part?.name);
  if (Array.isArray(own)) {
    check(Array.isArray(given) && given.length === own.length, `${where} is not a list of ${own.length} texts, one per answer`);
    given.forEach((text, i) => checkText(text, `${where}[${i}]`));
  } else {
    exactKeys(given, Object.keys(own), where);
    for (const key of Object.keys(own)) checkTranslation(own[key], given[key], `${where}.${key}`);
  }
  return check(new Set(names).size === names.length, `${where} has one text twice`);
}

/** The languages of a survey, its own first; none where it does not say which one that is. */
function readLanguages({ language, translations = {} }, own) {
  check(isObject(translations), "the translations are not an object");
  const codes = Object.keys(translations);
  check(language !== undefined || codes.length === 0, "a survey with translations says the language of its own texts");
  const languages = [...(language === undefined ? [] : [language]), ...codes];
  check(languages.every((code) => typeof code === "string" && LANGUAGE.test(code)), 'a language is a code such as "de"');
  check(!codes.includes(language), "the survey is translated into its own language");
  for (const code of codes) checkTranslation(own, translations[code], `translations.${code}`);
  return languages;
}

/** An answer in other texts of a domain, as its own answer at the same position. */
function originalAnswer(domain, texts, answer) {
  if (texts.parts) {
    if (!isObject(answer)) return answer;
    const known = new Map(domain.columns.map((column) => [texts.parts[column.name].name, column]));
    const own = ([name, one]) => {
      const column = known.get(name);
      return column ? [column.name, originalAnswer(column.domain, texts.parts[column.name], one)] : [name, one];
    };
    return Object.fromEntries(Object.entries(answer).map(own));
  }
  const labels = textLabels(domain);
  const places = new Map((texts.answers ?? []).map((text, i) => [text, labels[i]]));
  const back = (one) => (typeof one === "string" ? (places.get(one.normalize("NFC")) ?? one) : one);
  if (Array.isArray(answer) || answer instanceof Set) return Array.from(answer, back);
  if (answer instanceof Map) return new Map([...answer].map(([key, number]) => [back(key), number]));
  return isObject(answer) ? Object.fromEntries(Object.entries(answer).map(([key, number]) => [back(key), number])) : back(answer);
}

/** A domain with other texts, at the same positions. It takes answers in these texts. */
function translatedDomain(domain, texts) {
  const relabelled = (list) => {
    if (!list?.labels) return list;
    const left = [...(texts.answers ?? [])];
    const labels = list.labels.map((label) => (typeof label === "string" ? left.shift() : label));
    return Object.freeze({ ...list, labels, label: (i) => labels[i] });
  };
  const column = ({ name, domain: own }) => {
    const part = texts.parts[name];
    return Object.freeze({ name: part.name, title: part.text ?? part.name, domain: translatedDomain(own, part) });
  };
  const { items, numbers, columns } = domain;
  return Object.freeze({
    ...relabelled(domain),
    ...(items ? { items: relabelled(items) } : {}),
    ...(texts.unit ? (numbers ? { numbers: Object.freeze({ ...numbers, unit: texts.unit }) } : { unit: texts.unit }) : {}),
    ...(texts.parts ? { columns: Object.freeze(columns.map(column)) } : {}),
    read: (answer) => domain.read(originalAnswer(domain, texts, answer)),
  });
}

/** The combinations of strata, as a report names them. */
function stratumNames(columns) {
  const labels = ({ domain: { size, label } }) => Array.from({ length: size }, (_, i) => String(label(i)));
  const combined = (all, own) => all.flatMap((one) => own.map((label) => [...one, label]));
  return columns.slice(0, -1).map(labels).reduce(combined, [[]]).map((one) => one.join(", "));
}

/** A protocol with other texts: the same law, and sentences in the other language. */
function translatedProtocol(protocol, texts) {
  const domain = translatedDomain(protocol.domain, texts);
  const own = (answer) => originalAnswer(protocol.domain, texts, answer);
  const { parts = {} } = texts;
  const named = (name) => parts[name]?.name ?? name.split(" & ").map((one) => parts[one]?.name ?? one).join(" & ");
  const labels = new Map(textLabels(protocol.domain).map((label, i) => [label, texts.answers?.[i] ?? label]));
  const group = (one) => ({ ...one, name: named(one.name), protocol: parts[one.name] ? translatedProtocol(one.protocol, parts[one.name]) : one.protocol });
  const maps = {
    groups: (groups) => groups.map(group),
    kinds: (kinds) => kinds.map((kind) => ({ ...kind, protocol: translatedProtocol(kind.protocol, texts) })),
    inner: (inner) => translatedProtocol(inner, parts[protocol.domain.columns.at(-1).name]),
    strata: (strata) => stratumNames(domain.columns).map((name, i) => ({ ...strata[i], name })),
    stratumNames: () => stratumNames(domain.columns),
    clear: (names) => names.map(named),
    shared: (names) => names.map(named),
    outputs: (outputs) => outputs.map((label) => labels.get(label) ?? label),
  };
  const changed = Object.entries(maps).filter(([key]) => protocol[key]).map(([key, map]) => [key, Object.freeze(map(protocol[key]))]);
  return Object.freeze({
    ...protocol,
    ...Object.fromEntries(changed),
    domain,
    privatize: (answer, random = SYSTEM) => protocol.privatize(own(answer), random),
    encode: (answer) => protocol.encode(own(answer)),
  });
}

/** Every text of a translation with its position. */
function positions(texts, where = "") {
  if (typeof texts === "string") return [[where, texts]];
  if (Array.isArray(texts)) return texts.map((text, i) => [`${where}[${i}]`, text]);
  return Object.entries(texts).flatMap(([key, one]) => positions(one, where ? `${where}.${key}` : key));
}

/** The published questions and terms, exactly as pinned. */
export class Survey {
  /** For `fromBytes` and `fetch`; `terms` is null for version 1, which can be answered in files only. */
  constructor(spec, bytes, pinned, toAnswer = true) {
    check(isObject(spec) && spec.kind === "survey", 'this is not a survey: it needs "kind": "survey"');
    check(spec.version === 1 || spec.version === 2, "surveys of this version are unknown here: only 1 and 2 are");
    const collected = spec.version === 2;
    const known = ["kind", "version", "name", "questions", ...(collected ? TERMS : [])];
    exactKeys(spec, known, "the survey", ["language", "translations", ...(collected ? MORE_TERMS : [])]);
    checkText(spec.name, "the name of the survey");
    check(Array.isArray(spec.questions) && spec.questions.length > 0, "a survey needs at least one question");
    check(spec.questions.length <= MOST_QUESTIONS, `a survey has at most ${MOST_QUESTIONS} questions`);
    this.name = spec.name;
    this.fingerprint = pinned;
    this.bytes = bytes;
    this.questions = Object.freeze(spec.questions.map((question) => readQuestion(question, toAnswer)));
    check(new Set(this.questions.map(({ id }) => id)).size === this.questions.length, "two questions have the same id");
    this.terms = collected ? readTerms(spec, toAnswer) : null;
    this.languages = Object.freeze(readLanguages(spec, this.#texts(spec)));
    this.translations = spec.translations ?? {};
    this.spoken = spec.language ?? null;
    const each = this.questions.map(({ protocol }) => readFraction(protocol.epsilon));
    const level = shortSum(each, "the sum of the questions' epsilons");
    /** What one submission gives away at most: the exact sum over the questions. */
    this.epsilon = writeFraction(level);
    const { stages = false, keeps = false, draws = 1 } = this.terms ?? {};
    /** What a ledger debits each time that answers are randomized: of two stages once per state, for all its reports. */
    this.debit = stages ? this.terms.longitudinal.forever : this.epsilon;
    const debits = times(readFraction(this.debit), [BigInt(draws), 1n]);
    /** What it debits at most. */
    this.budgetEpsilon = writeFraction(debits);
    /** Whether repeated reports show when an answer changed and which earlier one returned. */
    this.showsChanges = keeps && !stages && draws > 1;
    /** The same over as many answers as a device may give; null where no number holds, because changes show. */
    this.lifetimeEpsilon = this.showsChanges ? null : stages ? stagesTell(this) : this.budgetEpsilon;
    const deltas = this.questions.flatMap(({ protocol }) => (protocol.delta ? [readFraction(protocol.delta)] : []));
    /** With how much probability a submission may tell more than its epsilon says; null where none does. */
    this.delta = deltas.length ? writeFraction(shortSum(deltas, "the sum of the questions' deltas")) : null;
    /** The same over as many answers as a device may give. */
    this.budgetDelta = this.delta === null ? null : writeFraction(times(readFraction(this.delta), [BigInt(draws), 1n]));
    // A relation that is unknown here belongs to a protocol that is: its survey cannot be answered.
    const relations = new Set(this.questions.map(({ protocol }) => protocol.relation).filter(Boolean));
    check(relations.size < 2, "the questions are about different relations, whose levels cannot be added");
    /** Between which inputs the levels hold. */
    this.relation = [...relations][0] ?? null;
    this.reportBytes = this.questions.reduce((sum, { protocol }) => sum + protocol.reportBytes, 0);
    const shared = this.terms?.collectors.length ?? 0;
    const split = ({ protocol }) => protocol.unknown || (protocol.relation === "sum" ? protocol.collectors : 0) === shared;
    check(this.questions.every(split), "the questions are split between other collectors than the survey names");
    if (collected) {
      const budget = readFraction(this.terms.budget.epsilon);
      check(!isAbove(debits, budget), "the survey asks for more than its own budget");
      const covered = !isAbove(readSum(this.budgetDelta ?? "0"), readSum(this.terms.budget.delta));
      check(covered, "the survey asks for more delta than its own budget");
      const same = this.relation === null || this.relation === this.terms.budget.relation;
      check(same, "the budget is about another relation than the questions");
      const { longitudinal, epochs, streams } = this.terms;
      const { linkable = false } = longitudinal;
      const fits = ({ protocol }) =>
        protocol.unknown ||
        (streams
          ? protocol.epochs === longitudinal.epochs && protocol.changes === longitudinal.changes
          : protocol.relation !== "stream");
      check(this.questions.every(fits), "the questions are about other epochs or changes than the survey");
      check(!streams || epochs.last - epochs.first < longitudinal.epochs, "the survey has more epochs than its questions");
      const kept = ({ protocol }) => (stages || streams ? (protocol.linking?.(longitudinal.epochs) ?? 1) : protocol.forms);
      const links = this.questions.reduce((product, question) => product * kept(question), 1);
      check(!(keeps || streams) || linkable || links <= FEW_FORMS, "memoized answers of this survey would tell devices apart");
      const place = this.terms.campaign;
      const rule = place && CAMPAIGNS[place.kind];
      const asks = ({ protocol }) => protocol.unknown || rule.asks(protocol, place.parameters, place.round);
      check(!rule || this.questions.every(asks), `the questions are not those of a round of ${place?.kind}`);
    }
    Object.freeze(this);
  }

  /**
   * A survey of its canonical bytes, which must have the pinned fingerprint. A page that only shows results sets
   * `toAnswer` to false: then kinds that are unknown here are kept, with the reason in `protocol.unknown`.
   */
  static async fromBytes(bytes, pinned, { toAnswer = true } = {}) {
    check(isFingerprint(pinned), "the pinned fingerprint is 64 hexadecimal digits");
    if ((await fingerprint("survey", bytes)) !== pinned) {
      refuse("spec", "the survey is not the one that was pinned: it was altered, and nothing is sent");
    }
    let spec;
    try {
      spec = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch {
      refuse("spec", "the survey is not JSON");
    }
    // Repeated keys, 1.0 for 1 and the like, on which two readers could disagree, end here.
    const canonical = canonicalBytes(spec);
    const same = canonical.length === bytes.length && canonical.every((byte, i) => byte === bytes[i]);
    check(same, "the survey is not in canonical form");
    return new Survey(spec, bytes, pinned, toAnswer);
  }

  /** Its own texts, in the form of a translation. Where a kind is unknown here, so are its texts: they are taken as they come. */
  #texts({ translations }) {
    const [some] = Object.values(translations ?? {});
    const unknown = ({ id, protocol }) => protocol.unknown && isObject(some?.questions?.[id]) && some.questions[id];
    const texts = (question) => unknown(question) || { text: question.text, ...textsOf(question.protocol.domain) };
    const questions = Object.fromEntries(this.questions.map((question) => [question.id, texts(question)]));
    return { name: this.name, ...(this.terms ? { purpose: this.terms.purpose } : {}), questions };
  }

  /** The survey's language for a reader: the same code, or else the same language of another place; undefined where it has none. */
  languageFor(wanted) {
    const first = (code) => code.split("-")[0];
    return this.languages.find((one) => one === wanted) ?? this.languages.find((one) => first(one) === first(wanted));
  }

  /**
   * The same survey in another of its languages: what people read is translated, answers are given in it, and everything else is
   * the same. `spoken` is the language; where the survey does not have the wanted one, it is returned as it is.
   */
  in(wanted) {
    const language = this.languageFor(wanted);
    if (language === undefined || language === this.spoken || !Object.hasOwn(this.translations, language)) return this;
    const { name, purpose, questions } = this.translations[language];
    const translated = (question) => {
      const { text, ...texts } = questions[question.id];
      const protocol = question.protocol.unknown ? question.protocol : translatedProtocol(question.protocol, texts);
      return Object.freeze({ ...question, text, protocol });
    };
    const terms = this.terms && Object.freeze({ ...this.terms, purpose });
    const changed = { name, terms, questions: Object.freeze(this.questions.map(translated)), spoken: language };
    return Object.freeze(Object.assign(Object.create(Survey.prototype), this, changed));
  }

  /** Answers in one of its languages, as the survey's own at the same positions. */
  original(values, language) {
    if (!Object.hasOwn(this.translations, language)) return values;
    const texts = this.translations[language].questions;
    const own = ({ id, protocol }) => [id, originalAnswer(protocol.domain, texts[id], values[id])];
    return { ...values, ...Object.fromEntries(this.questions.filter(({ id }) => Object.hasOwn(values, id)).map(own)) };
  }

  /** The pinned survey from a server, which is only a cache of the bytes. */
  static async fetch(serverUrl, pinned, fetch = globalThis.fetch, options = {}) {
    checkContext();
    check(isFingerprint(pinned), "the pinned fingerprint is 64 hexadecimal digits");
    const address = `${serverAddress(serverUrl)}/v1/surveys/${pinned}`;
    let bytes;
    try {
      const reply = await fetch(address, { ...QUIET, method: "GET" });
      if (reply.status === 410) refuse("network", "the server has deleted this survey, and collects it no more");
      if (!reply.ok) refuse("network", `the server does not have this survey (status ${reply.status})`);
      bytes = new Uint8Array(await reply.arrayBuffer());
    } catch (error) {
      if (error instanceof DeniableError) throw error;
      refuse("network", "the survey could not be fetched: the server cannot be reached");
    }
    check(bytes.length <= LARGEST_SURVEY, "the survey is too large");
    return Survey.fromBytes(bytes, pinned, options);
  }

  /** Refuse unless every question has an answer, and nothing else has: silence would tell. */
  checkAnswers(values) {
    const ids = this.questions.map(({ id }) => id);
    const complete = isObject(values) && ids.every((id) => Object.hasOwn(values, id));
    if (!complete || Object.keys(values).length !== ids.length) {
      refuse("domain", `answers are needed to exactly these questions: ${ids.join(", ")}`);
    }
    for (const { id, protocol } of this.questions) {
      try {
        protocol.encode(values[id]);
      } catch (error) {
        const why = error instanceof DeniableError ? error.message : "the answer is not usable";
        refuse("domain", `question "${id}": ${why}`);
      }
    }
  }
}

/** No cookies, no referrer, no cache, no following to another address. */
const QUIET = Object.freeze({
  mode: "cors",
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
  redirect: "error",
});

/** An address without its last slash; plain http only to this very machine. */
function serverAddress(text) {
  let url;
  try {
    url = new URL(text, globalThis.location?.href);
  } catch {
    refuse("context", "the server's address is not usable");
  }
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && local)) {
    refuse("context", "the server's address is not secure: reports are sent over https only");
  }
  if (url.username || url.password || url.search || url.hash) refuse("context", "the server's address is not usable");
  return url.href.replace(/\/+$/, "");
}

// -- changes ---------------------------------------------------------------------------------------------------------

const plainText = (value) => (typeof value === "string" ? value : canonicalText(value, 0));

/** How much a longitudinal rule shows beside its epsilon, and the rule in words. */
function ruleShows({ rule, values, changes }) {
  if (rule === "none") return [1, "none"];
  if (rule === "evolving") return [0, `one of up to ${changes} changes is reported`];
  if (rule === "two-stage") return values === 1 ? [0, "two stages, the first answer kept"] : [1, `two stages, ${values} answers kept`];
  if (values === 1) return [0, "memoize the first answer"];
  return [2, `memoize ${values} answers, which shows changes and returns`];
}

/** How little the debited epsilon holds between, from 0, and between what it does, in words. */
function rulePromises({ rule, epochs, values = 1, changes }) {
  if (rule === "evolving") return [0, `any two streams of answers with at most ${changes} changes`];
  if (epochs === 1) return [0, "any two answers"];
  if (rule === "none") return [0, "any two streams of answers, because the levels of all reports are added"];
  const [stages, kept] = [rule === "two-stage", Math.min(values, epochs)];
  if (kept === 1) return [0, `any two streams of answers, because ${stages ? "all reports come from one state" : "one report is repeated"}`];
  if (stages) return [1, `two streams of answers whose states recur in the same pattern, up to ${kept} states`];
  return [2, "two answers that never change; other streams of answers are told apart without bound"];
}

/** Round and campaign in words; a device answers one round of a campaign, whichever survey it stands in. */
function roundInWords(place) {
  if (!place) return "none";
  const parameters = Object.keys(place.parameters).sort().map((name) => `, ${name} ${place.parameters[name]}`);
  return `round ${place.round} of ${place.rounds}, ${place.kind}${parameters.join("")}`;
}

/**
 * What is different in `after`, a survey that replaces `before`: each difference with what it does to privacy, "weaker",
 * "stronger" or "neutral". The list is that of the Python package.
 */
export function surveyChanges(before, after) {
  const [old, now] = [before, after].map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)));
  const changes = [];
  const note = (what, from, to, privacy = "neutral") => {
    const [was, is] = [plainText(from), plainText(to)];
    if (was !== is) changes.push({ what, before: was, after: is, privacy });
  };
  const grows = (what, from, to) => note(what, from, to, isAbove(readSum(to), readSum(from)) ? "weaker" : "stronger");
  const asked = (spec) => new Map(spec.questions.map((question) => [question.id, question]));
  const [earlier, later] = [asked(old), asked(now)];
  const inWords = ({ text, protocol }) => `${text} (epsilon ${protocol.epsilon})`;
  note("name", old.name, now.name);
  for (const [id, question] of earlier) {
    if (!later.has(id)) note(`question ${id}`, inWords(question), "not asked", "stronger");
  }
  for (const [id, question] of later) {
    const known = earlier.get(id);
    if (!known) {
      note(`question ${id}`, "not asked", inWords(question), "weaker");
      continue;
    }
    const [mine, other] = [known.protocol, question.protocol];
    note(`question ${id}: text`, known.text, question.text);
    note(`question ${id}: answers`, mine.domain, other.domain);
    grows(`question ${id}: epsilon`, mine.epsilon, other.epsilon);
    const [told, tells] = [before, after].map(({ questions }) => questions.find((one) => one.id === id).protocol.clear ?? []);
    const more = tells.some((name) => !told.includes(name));
    note(`question ${id}: sent in clear`, told.join(", ") || "nothing", tells.join(", ") || "nothing", more ? "weaker" : "stronger");
    note(`question ${id}: protocol`, mine.protocol, other.protocol);
    const named = ["protocol", "domain", "epsilon"];
    const rest = [...new Set([...Object.keys(mine), ...Object.keys(other)])].filter((key) => !named.includes(key));
    for (const key of rest.sort()) note(`question ${id}: ${key}`, mine[key] ?? "none", other[key] ?? "none");
  }
  const [order, newOrder] = [[...earlier.keys()], [...later.keys()]];
  if (order.length === newOrder.length && order.every((id) => later.has(id))) {
    note("order of the questions", order.join(", "), newOrder.join(", "));
  }
  note("language", old.language ?? "none", now.language ?? "none");
  const [texts, newTexts] = [old.translations ?? {}, now.translations ?? {}];
  for (const code of [...new Set([...Object.keys(texts), ...Object.keys(newTexts)])].sort()) {
    const [had, has] = [texts, newTexts].map((all) => Object.hasOwn(all, code));
    if (!had || !has) {
      note(`translation ${code}`, had ? "translated" : "none", has ? "translated" : "none");
      continue;
    }
    const [was, is] = [before, after].map((survey) => new Map(positions(survey.translations[code])));
    const every = [...new Set([...was.keys(), ...is.keys()])].sort();
    for (const where of every) note(`translation ${code}: ${where}`, was.get(where) ?? "none", is.get(where) ?? "none");
  }
  note("relation of the levels", before.relation, after.relation, "weaker");
  grows("epsilon of a submission", before.epsilon, after.epsilon);
  grows("delta of a submission", before.delta ?? "0", after.delta ?? "0");
  const [life, newLife] = [before.lifetimeEpsilon, after.lifetimeEpsilon];
  if (life !== null && newLife !== null) grows("epsilon of a lifetime", life, newLife);
  else note("epsilon of a lifetime", life ?? "no number", newLife ?? "no number", newLife === null ? "weaker" : "stronger");
  // A budget belongs to an owner's group: what was spent in another does not count in the new one.
  note("owner", old.owner, now.owner, "weaker");
  note("purpose", old.purpose, now.purpose);
  note("budget group", old.budget.group, now.budget.group, "weaker");
  grows("lifetime budget", old.budget.epsilon, now.budget.epsilon);
  grows("delta of the budget", old.budget.delta ?? "0", now.budget.delta ?? "0");
  const [[shown, rule], [newShown, newRule]] = [old.longitudinal, now.longitudinal].map(ruleShows);
  if (old.longitudinal.rule !== now.longitudinal.rule) {
    note("longitudinal rule", rule, newRule, newShown === shown ? "neutral" : newShown > shown ? "weaker" : "stronger");
  } else {
    const [values, newValues] = [old.longitudinal.values ?? 1, now.longitudinal.values ?? 1];
    note("values that a device memoizes", values, newValues, newValues > values ? "weaker" : "stronger");
    note("changes of an answer that count", old.longitudinal.changes ?? 0, now.longitudinal.changes ?? 0, "neutral");
  }
  const [[less, promise], [more, newPromise]] = [old.longitudinal, now.longitudinal].map(rulePromises);
  note("between what the debited epsilon holds", promise, newPromise, more === less ? "neutral" : more > less ? "weaker" : "stronger");
  const [stored, newStored] = [old.longitudinal.forever, now.longitudinal.forever];
  if (stored && newStored) grows("epsilon of a kept answer", stored, newStored);
  const [linked, newLinked] = [old, now].map(({ longitudinal }) => (longitudinal.linkable ? "a device's reports can be recognized" : "they cannot"));
  note("linking of reports", linked, newLinked, now.longitudinal.linkable ? "weaker" : "stronger");
  note("epochs that a device answers", old.longitudinal.epochs, now.longitudinal.epochs);
  note("retention", old.retention, now.retention, now.retention === "reports" ? "weaker" : "stronger");
  const [days, newDays] = [old.delete_days ?? 0, now.delete_days ?? 0];
  if (![old.retention, now.retention].includes("reports")) note("days until reports are deleted", days, newDays, newDays > days ? "weaker" : "stronger");
  note("shown from n", old.min_reports, now.min_reports, now.min_reports < old.min_reports ? "weaker" : "stronger");
  note("results", old.results ?? "private", now.results ?? "private", now.results ? "weaker" : "stronger");
  note("opens", old.opens, now.opens);
  note("expires", old.expires, now.expires);
  note("length of an epoch", `${old.epochs.seconds} seconds`, `${now.epochs.seconds} seconds`);
  for (const key of ["origin", "early", "late"]) note(`epochs: ${key}`, old.epochs[key], now.epochs[key]);
  note("replaces", old.replaces ?? "none", now.replaces ?? "none");
  note("campaign", roundInWords(old.campaign), roundInWords(now.campaign));
  if (old.relay && now.relay) {
    note("relay", old.relay.address, now.relay.address);
    note("smallest batch of the relay", old.relay.batch, now.relay.batch, now.relay.batch < old.relay.batch ? "weaker" : "stronger");
    note("key of the collector", old.relay.key, now.relay.key);
  } else {
    const words = (relay) => (relay ? `${relay.address.split("/")[2]}, batches of ${relay.batch.toLocaleString("en")}` : "none");
    note("relay", words(old.relay), words(now.relay), now.relay ? "stronger" : "weaker");
  }
  const hosts = ({ collectors = [] }) => collectors.map((address) => address.split("/")[2]).join(", ") || "one";
  const fewer = (now.collectors ?? []).length < (old.collectors ?? []).length;
  note("collectors", hosts(old), hosts(now), fewer ? "weaker" : "neutral");
  return changes;
}

// -- sealing ---------------------------------------------------------------------------------------------------------
//
// HPKE in base mode (RFC 9180): DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. Where the terms name a relay, the id
// and the answers are sealed for the collector's key; the relay sees the survey and the epoch alone.

const fromBase64url = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const [KEM, HPKE] = [concat(utf8("KEM"), [0, 16]), concat(utf8("HPKE"), [0, 16, 0, 1, 0, 1])];
const extract = (suite, salt, label, material) => hmac(salt, concat(utf8("HPKE-v1"), suite, utf8(label), material));
const expand = (suite, key, label, info, length) =>
  hmac(key, concat([0, length], utf8("HPKE-v1"), suite, utf8(label), info, [1])).slice(0, length);

/** One submission, as it would be sent, sealed for the collector: fresh each time, so what was sealed is kept to be sent again. */
export async function sealSubmission(survey, bytes) {
  const { subtle } = globalThis.crypto;
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const own = fromBase64url(survey.terms.relay.key);
  const collector = await subtle.importKey("raw", own, curve, false, []);
  const pair = await subtle.generateKey(curve, false, ["deriveBits"]);
  const secret = new Uint8Array(await subtle.deriveBits({ name: "ECDH", public: collector }, pair.privateKey, 256));
  const sent = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
  const shared = expand(KEM, extract(KEM, [], "eae_prk", secret), "shared_secret", concat(sent, own), 32);
  const info = utf8(`deniable-sealed-v1\0${survey.fingerprint}`);
  const context = concat([0], extract(HPKE, [], "psk_id_hash", []), extract(HPKE, [], "info_hash", info));
  const root = extract(HPKE, shared, "secret", []);
  const key = await subtle.importKey("raw", expand(HPKE, root, "key", context, 16), "AES-GCM", false, ["encrypt"]);
  const parameters = { name: "AES-GCM", iv: expand(HPKE, root, "base_nonce", context, 12), additionalData: bytes.slice(4, 8) };
  const sealed = new Uint8Array(await subtle.encrypt(parameters, key, bytes.slice(8)));
  return concat(utf8("DNS1"), bytes.slice(4, 8), sent, sealed);
}

// -- ledger ----------------------------------------------------------------------------------------------------------
//
// One document for all surveys of this origin, read and written in one transaction:
//   optedOut   whether the respondent takes part in nothing here
//   groups     [owner, budget group] -> { relation, spent, cap, deltaSpent, deltaCap }, the last four exact fractions; the
//              smallest caps that any survey promised bind, and a survey of another relation is refused
//   surveys    fingerprint -> { bytes of the survey, key of its ids, memos, what was recorded, submissions, round of a
//              campaign }
// A submission is written with its debit, in full, before anything is sent; a crash re-sends those very bytes. Once the
// service has answered for it they are erased, and nothing here tells what was answered: a report is drawn from
// crypto.getRandomValues, and no key gives it again. Memos, of a survey that repeats reports or draws them from kept
// states, hold the answer itself; so does what was recorded in an epoch, until its submission is made.

const LEDGER_VERSION = 1;

/** Fails closed: without knowing what was spent, nothing may be answered. */
function readLedger(stored) {
  if (stored === undefined) return { version: LEDGER_VERSION, optedOut: false, groups: new Map(), surveys: new Map() };
  const { version, groups, surveys } = stored ?? {};
  if (version === LEDGER_VERSION && groups instanceof Map && surveys instanceof Map) {
    // Earlier versions kept the moment of each answer: only its period stays.
    for (const { submissions } of surveys.values()) for (const one of submissions) delete one.time;
    return stored;
  }
  return refuse("storage", "this browser's ledger cannot be read, so nothing is answered: what was spent is unknown");
}

/** The ledger in IndexedDB, shared by all tabs of this origin. */
export class BrowserStore {
  #name;
  #database = null;

  constructor(name = "deniable") {
    this.#name = name;
  }

  /** What is kept, or undefined. */
  async read() {
    return this.#transact("readonly", (kept) => kept);
  }

  /** Keep `change(kept)`, a synchronous function, durably and all at once; if it throws, nothing has happened. */
  async update(change) {
    await this.#transact("readwrite", change);
  }

  /** One tab at a time. */
  async exclusive(task) {
    if (!globalThis.navigator?.locks) refuse("storage", "this browser has no Web Locks: two tabs could answer at once");
    let started = false;
    const begun = () => {
      started = true;
      return task();
    };
    return globalThis.navigator.locks.request(this.#name, begun).catch((error) => {
      throw started ? error : new DeniableError("storage", NO_LEDGER); // blocked like all storage
    });
  }

  /** Whether the browser promises not to clear this site's data on its own: true, false or "unknown". */
  async persisted() {
    return asked(() => globalThis.navigator.storage.persisted());
  }

  /** Ask the browser for that promise; some ask the respondent. */
  async persist() {
    return (await this.persisted()) === true || asked(() => globalThis.navigator.storage.persist());
  }

  async #transact(mode, change) {
    this.#database ??= this.#open();
    try {
      return await perform(await this.#database, mode, change);
    } catch (error) {
      this.#database = null;
      throw error instanceof DeniableError ? error : new DeniableError("storage", NO_LEDGER);
    }
  }

  #open() {
    return new Promise((resolve, reject) => {
      const request = globalThis.indexedDB.open(this.#name, LEDGER_VERSION);
      request.onupgradeneeded = () => request.result.createObjectStore("ledger");
      request.onsuccess = () => {
        // Someone deletes the data of this page, or a newer version of it opens them: do not stand in the way.
        request.result.onversionchange = () => request.result.close();
        resolve(request.result);
      };
      request.onerror = request.onblocked = () => reject(request.error);
    });
  }
}

const NO_LEDGER =
  "this browser does not let this page keep a record of what was answered, so nothing is sent. Leave the private window, " +
  "or allow cookies and site data for this site in the browser's settings, then load the page again";
const PATIENCE = 5000; // milliseconds for a question of the browser's that nobody answers

async function asked(question) {
  const unanswered = new Promise((resolve) => setTimeout(resolve, PATIENCE, "unknown"));
  return Promise.race([Promise.resolve().then(question), unanswered]).catch(() => "unknown");
}

function perform(database, mode, change) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("ledger", mode, { durability: "strict" });
    const store = transaction.objectStore("ledger");
    const request = store.get("ledger");
    let [result, failure] = [undefined, null];
    request.onsuccess = () => {
      try {
        result = change(request.result);
        if (mode === "readwrite") store.put(result, "ledger");
      } catch (error) {
        failure = error;
        transaction.abort();
      }
    };
    transaction.oncomplete = () => resolve(result);
    transaction.onabort = () => reject(failure ?? transaction.error);
  });
}

// -- client ----------------------------------------------------------------------------------------------------------

// The id of a submission is keyed, so that a ledger that was restored from a copy gives the same one and is counted
// once. Each survey has a key of its own, which moves on with the epochs: what is left here gives no id of the past.

const FARTHEST = 2 ** 16; // epochs over which a key is followed; beyond, a new one is made
const fromHex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const randomBytes = (count) => globalThis.crypto.getRandomValues(new Uint8Array(count));

/** The key of so many epochs later. */
export function advance(key, epochs) {
  for (let i = 0; i < epochs; i++) key = sha256(key);
  return key;
}

/** The id of an epoch's submission, from the key of that epoch. */
export function reportId(key, pinned, epoch) {
  return hmac(key, concat(utf8("deniable-report-id-v1\0"), fromHex(pinned), toBytes(epoch, 4))).slice(0, 16);
}

/** The id of an epoch's submission; its key is replaced by that of the next epoch. */
function nextId(own, pinned, epoch, first) {
  const { epoch: start, key } = own.key ?? { epoch: first, key: randomBytes(32) };
  if (epoch < start) return randomBytes(16); // the clock was set back, and that epoch's key is erased
  const current = epoch - start <= FARTHEST ? advance(key, epoch - start) : randomBytes(32);
  own.key = { epoch: epoch + 1, key: advance(current, 1) };
  return reportId(current, pinned, epoch);
}

/** What the public coins of a report follow from, the hash function of a set say: nobody chooses them freely. */
export function publicNumber(survey, question, id) {
  return new DataView(sha256(concat(utf8(`deniable-cohort-v1\0${survey}${question}`), id)).buffer).getBigUint64(0, true);
}

/** Random words for a report whose public coins follow from a public number. */
function tied(number) {
  return Object.assign(new RandomBits(), { public: number });
}

/** An id as it stands in an address. */
function idText(id) {
  const text = btoa(String.fromCharCode(...fromHex(id)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const DEFAULTS = Object.freeze({
  fetch: (...request) => globalThis.fetch(...request),
  now: Date.now,
  sleep: (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds)),
  attempts: 6,
  idle: Object.freeze({}),
});

/** Answers one survey on this device. */
export class Client {
  #server;
  #pinned;
  #store;
  #options;
  #survey = null;

  /**
   * `server` and the pinned `fingerprint` are the embedding page's. `published` lists the fingerprints that the survey's
   * owner has published elsewhere: any other is refused, as a survey that was made for one person would tell who answers.
   * `idle` has the answers that `settle` reports for an epoch in which nothing was recorded: { minutes: 0 }.
   * The other parts are exchanged by tests.
   */
  constructor({ server, fingerprint: pinned, published = null, store = new BrowserStore(), ...options }) {
    checkContext();
    check(isFingerprint(pinned), "the pinned fingerprint is 64 hexadecimal digits");
    const listed = published === null || [...published].includes(pinned);
    check(listed, "this survey is not on the published list, so it may have been made for you alone: nothing is sent");
    this.#server = serverAddress(server);
    this.#pinned = pinned;
    this.#store = store;
    this.#options = { ...DEFAULTS, ...options };
  }

  async #read() {
    return readLedger(await this.#store.read());
  }

  /** Change the ledger in one durable step; if `change` throws, nothing has happened. */
  async #update(change) {
    let result;
    await this.#store.update((kept) => {
      const ledger = readLedger(kept);
      result = change(ledger);
      return ledger;
    });
    return result;
  }

  /** The survey, fetched once and checked; a device keeps the bytes of a survey that it has answered. */
  async survey() {
    if (this.#survey) return this.#survey;
    const ledger = await this.#read();
    const kept = ledger.surveys.get(this.#pinned)?.bytes;
    if (!kept) checkOptedIn(ledger);
    this.#survey = kept
      ? await Survey.fromBytes(kept, this.#pinned)
      : await Survey.fetch(this.#server, this.#pinned, this.#options.fetch);
    return this.#survey;
  }

  /**
   * How this survey differs from the one that it replaces (`surveyChanges`). Empty where this device has answered no
   * such survey, and once it has answered this one: then somebody has agreed.
   */
  async changes() {
    const survey = await this.survey();
    const { surveys } = await this.#read();
    const before = surveys.get(survey.terms?.replaces)?.bytes;
    if (!before || surveys.get(this.#pinned)?.submissions.length) return [];
    const known = await Survey.fromBytes(before, survey.terms.replaces).catch(() => null);
    if (known?.terms) return surveyChanges(known, survey);
    // A newer version may refuse what an older one has taken.
    return [{ what: "survey", before: "one that cannot be read any more", after: survey.name, privacy: "weaker" }];
  }

  /**
   * Randomize the answers to all questions, write them down, then send them. The receipt holds the bytes and says what
   * became of them; while the server cannot be reached they wait, and `deliver` tries again. There is one submission an
   * epoch: answering again gives the receipt of the first, which is then not `fresh`, and whose bytes are erased once
   * they were sent. A survey that replaces one that was answered here is refused with the kind "changed" and the list
   * of `changes`, until `acceptChanges` is set.
   */
  async answer(values, { acceptChanges = false, language = null } = {}) {
    const survey = await this.survey();
    const own = isObject(values) && language ? survey.original(values, language) : values;
    if (!survey.terms) refuse("closed", "a survey of version 1 is for files: it has no terms of a collection");
    const changes = acceptChanges ? [] : await this.changes();
    if (changes.length) {
      const what = "this survey replaces one that was answered here and differs from it: agree to the changes first";
      throw Object.assign(new DeniableError("changed", what), { changes });
    }
    await this.#store.persist?.();
    const submit = (ledger) => this.#submitNow(ledger, survey, own);
    const { fresh, repeats: _, ...made } = await this.#store.exclusive(() => this.#update(submit));
    await this.deliver();
    return { ...made, ...(await this.history()).find(({ epoch }) => epoch === made.epoch), fresh };
  }

  /**
   * Take note of a value of this epoch, as often as the page likes; nothing is sent for it. The last value of an epoch
   * counts, or with `add` the sum of them. The epoch has one submission, made once it is over (`settle`, which the next
   * epoch's first record calls), whether or not anything was recorded in it: so what leaves, how often and when says
   * nothing about events. Says whether note was taken: not outside the survey's time, nor after opting out.
   */
  async record(question, value, { add = false } = {}) {
    if ((await this.#read()).optedOut) return false;
    const survey = await this.survey();
    if (!survey.terms) refuse("closed", "a survey of version 1 is for files: it has no terms of a collection");
    const asked = survey.questions.find(({ id }) => id === question);
    if (!asked) refuse("domain", `the survey has these questions: ${survey.questions.map(({ id }) => id).join(", ")}`);
    const { opens, expires, epochs } = survey.terms;
    const time = this.#options.now();
    if (time < 1000 * opens || time >= 1000 * expires) return false;
    const epoch = epochs.at(time / 1000);
    const waiting = await this.#store.exclusive(() =>
      this.#update((ledger) => {
        if (ledger.optedOut) return null;
        const { from, values } = this.#recorded(ledger, epoch);
        const before = values.get(epoch) ?? {};
        const total = add && Object.hasOwn(before, question) ? before[question] + value : value;
        asked.protocol.encode(total);
        values.set(epoch, { ...before, [question]: total });
        return from < epoch;
      }),
    );
    if (waiting) await this.settle();
    return waiting !== null;
  }

  /**
   * Make one submission for each epoch that is over, from what was recorded in it or else from the client's `idle`
   * answers, and send them. Call it when the page is loaded, whether or not there is anything to record: a device that is
   * silent in epochs without events tells about them. Epochs that the service takes no more are left out, and so are
   * those before this device's first call. Nothing is made beyond the budget or after opting out. Says how many were made.
   */
  async settle() {
    if ((await this.#read()).optedOut) return 0;
    const survey = await this.survey();
    if (!survey.terms) refuse("closed", "a survey of version 1 is for files: it has no terms of a collection");
    const { idle } = this.#options;
    const missing = survey.questions.filter(({ id }) => !Object.hasOwn(idle, id)).map(({ id }) => id);
    if (missing.length) refuse("domain", `say what an epoch without an event is for ${missing.join(", ")}: idle: {id: answer}`);
    if ((await this.changes()).length) return 0;
    await this.#store.persist?.();
    const { first, last, late, at } = survey.terms.epochs;
    const current = at(this.#options.now() / 1000);
    let made = 0;
    const submit = (ledger) => {
      if (ledger.optedOut) return;
      const recorded = this.#recorded(ledger, Math.max(current, first));
      const { from, values } = recorded;
      for (let epoch = Math.max(from, current - late); epoch < Math.min(current, last + 1); epoch++) {
        try {
          const { fresh } = this.#submit(ledger, survey, { ...idle, ...values.get(epoch) }, epoch);
          made += Number(fresh);
        } catch (error) {
          if (!["budget", "round"].includes(error.kind)) throw error;
        }
      }
      for (const epoch of [...values.keys()]) if (epoch < current) values.delete(epoch);
      recorded.from = Math.max(from, current);
    };
    await this.#store.exclusive(() => this.#update(submit));
    if (made) await this.deliver();
    return made;
  }

  /** What was recorded for this survey, and from which epoch on a submission is still to be made from it. */
  #recorded(ledger, epoch) {
    const own = ledger.surveys.get(this.#pinned) ?? { memos: new Map(), submissions: [] };
    ledger.surveys.set(this.#pinned, own);
    own.recorded ??= { from: epoch, values: new Map() };
    return own.recorded;
  }

  #submitNow(ledger, survey, values) {
    checkOptedIn(ledger);
    const { opens, expires, epochs } = survey.terms;
    const time = this.#options.now();
    if (time < 1000 * opens || time >= 1000 * expires) refuse("closed", "the survey is not open at this time");
    return this.#submit(ledger, survey, values, epochs.at(time / 1000));
  }

  /** Debit and submission, or a refusal; caps come first, so that a refusal says nothing about the answers. */
  #submit(ledger, survey, values, epoch) {
    const { epochs, longitudinal, budget, owner, retention } = survey.terms;
    const own = ledger.surveys.get(this.#pinned) ?? { memos: new Map(), submissions: [] };
    const earlier = own.submissions.find((submission) => submission.epoch === epoch);
    if (earlier) return { ...earlier, fresh: false };
    const taken = otherRound(ledger, survey);
    if (taken) {
      const which = `you took part in round ${taken}, and this is round ${survey.terms.campaign.round} of the same collection`;
      refuse("round", `${which}: one device answers one round`);
    }
    if (own.submissions.length >= longitudinal.epochs) {
      refuse("budget", "this device has answered as often as the survey allows");
    }
    const { cost, group, related, enough } = nextDebit(ledger, survey, own.submissions);
    if (!related) {
      const whose = `the group "${budget.group}" of "${owner}" counts levels of another relation on this device`;
      refuse("budget", `${whose}, and the two are never added: its owner has to publish this survey with a group of its own`);
    }
    if (!enough) {
      const whose = `all surveys of "${owner}" in the group "${budget.group}"`;
      const most = `this device has given away as much as ${whose} together may learn from it`;
      refuse("budget", `${most}, and another answer would go beyond that`);
    }
    survey.checkAnswers(values);
    own.bytes = survey.bytes;
    const { keeps, stages } = survey.terms;
    const shared = survey.terms.collectors.length;
    // Shares of two draws under one id, as from a ledger that was put back, would spoil the sums: so it is random.
    const submission = shared ? globalThis.crypto.getRandomValues(new Uint8Array(16)) : nextId(own, this.#pinned, epoch, epochs.first);
    const reports = survey.questions.map((question) => {
      const { protocol, id } = question;
      if (protocol.step) {
        const state = own.memos.get(id)?.[0].drawn ?? protocol.begin(SYSTEM);
        const next = protocol.step(state, protocol.domain.read(values[id]), epoch - epochs.first + 1, SYSTEM);
        own.memos.set(id, [{ value: "", drawn: next.state }]);
        return next.report;
      }
      if (!keeps) return protocol.privatize(values[id], tied(publicNumber(this.#pinned, id, submission)));
      const kept = this.#memoized(own.memos, question, longitudinal.values, values[id], stages);
      return stages ? protocol.report(kept, SYSTEM) : kept;
    });
    const whole = concat(utf8("DNR1"), toBytes(epoch, 4), submission, ...reports);
    const bytes = shared ? shareSubmission(whole, shared) : whole;
    // Until then a service that keeps reports may be asked to delete this one, by its id.
    const idUntil = retention === "reports" ? epochs.origin + (epoch + epochs.late + 1) * epochs.seconds : 0;
    const state = { state: "queued", reason: "", repeats: true };
    const made = { id: hex(submission), epoch, ...cost, ...state, idUntil, bytes };
    own.submissions.push(made);
    if (survey.terms.campaign) own.campaign = { first: campaignOf(survey), round: survey.terms.campaign.round };
    ledger.surveys.set(this.#pinned, own);
    ledger.groups.set(groupKey(survey.terms), group);
    return { ...made, fresh: true };
  }

  /**
   * What was drawn for a known answer, a report or a state; a new one is drawn while there is room; after that the first
   * is used again.
   */
  #memoized(memos, { id, protocol }, most, answer, stages) {
    const known = memos.get(id) ?? [];
    const first = known[0]?.drawn;
    const read = protocol.domain.read(answer);
    const key = (state) => hex(stages && protocol.keptUnder ? protocol.keptUnder(read, state) : protocol.encode(answer));
    const memo = first && (known.find((one) => one.value === key(first)) ?? (known.length < most ? undefined : known[0]));
    if (memo) return memo.drawn;
    const drawn = stages ? protocol.permanent(read, SYSTEM, first) : protocol.draw(read, SYSTEM);
    memos.set(id, [...known, { value: key(drawn), drawn }]);
    return drawn;
  }

  /** The other round of the survey's campaign that this device has answered, if it has: then it answers no more. */
  async otherRound() {
    return otherRound(await this.#read(), await this.survey());
  }

  /** Send what waits, the same bytes every time; says how many submissions still wait. */
  async deliver() {
    for (let attempt = 1; ; attempt++) {
      const { waiting, after } = await this.#store.exclusive(() => this.#sendAll());
      if (!waiting || attempt >= this.#options.attempts || after > 30) return waiting;
      // From 1 second up to 2, 4, 8, 16, 30, by chance: devices that failed together do not return together.
      const jitter = SYSTEM.integers(1024) / 1024;
      await this.#options.sleep(Math.max(1 + jitter * (Math.min(30, 2 ** attempt) - 1), after));
    }
  }

  async #sendAll() {
    let [waiting, after] = [0, 0];
    await this.#forgetIds();
    for (const { id, bytes, sealed } of (await this.history()).filter(({ state }) => state === "queued")) {
      if ((await this.#read()).optedOut) return { waiting: 0, after: 0 };
      const outcome = await this.#send(await this.#asSent(id, bytes, sealed));
      if (outcome.state === "queued") {
        waiting++;
        after = Math.max(after, outcome.after);
      } else {
        await this.#update((ledger) => settle(ledger.surveys.get(this.#pinned)?.submissions ?? [], id, outcome));
      }
    }
    return { waiting, after };
  }

  /** The bytes that leave. Where a relay is named they are sealed once, and kept: a relay takes the same bytes once. */
  async #asSent(id, bytes, sealed) {
    const survey = await this.survey();
    if (!survey.terms?.relay || sealed) return sealed ?? bytes;
    const made = await sealSubmission(survey, bytes);
    await this.#update((ledger) => {
      const queued = ledger.surveys.get(this.#pinned)?.submissions.find((entry) => entry.id === id && entry.state === "queued");
      if (queued) queued.sealed = made;
    });
    return made;
  }

  /** To the collector; or sealed to the relay, or in shares to the collectors, that the survey names. */
  async #send(body) {
    const { relay, collectors = [] } = (await this.survey()).terms ?? {};
    if (!collectors.length) return relay ? this.#post(relay.address, "sealed", body) : this.#post(this.#server, "reports", body);
    const bodies = sharesOf(body, collectors.length);
    const outcomes = [];
    for (const [i, { address }] of collectors.entries()) outcomes.push(await this.#post(address, "reports", bodies[i]));
    // They count only together: what waits is tried again, all of it.
    return outcomes.find(({ state }) => state === "dropped") ?? outcomes.find(({ state }) => state === "queued") ?? outcomes[0];
  }

  async #post(server, kind, body) {
    let reply;
    try {
      reply = await this.#options.fetch(`${server}/v1/surveys/${this.#pinned}/reports`, {
        ...QUIET,
        method: "POST",
        headers: { "Content-Type": `application/vnd.deniable.${kind}` },
        body,
        signal: AbortSignal.timeout(30000),
      });
    } catch {
      return { state: "queued", after: 0 };
    }
    // Refusals of a key, an address or a moment, not of the report: put right, the same bytes are taken later.
    const aboutTheWay = [401, 403, 404, 405, 407, 408, 429].includes(reply.status);
    if (reply.status >= 400 && reply.status < 500 && !aboutTheWay) {
      return { state: "dropped", reason: `status ${reply.status}` };
    }
    const { accepted, rejected } = (reply.status === 200 && (await reply.json().catch(() => null))) || {};
    if (Array.isArray(rejected) && rejected.length) {
      const why = String(rejected[0]?.[2]);
      return { state: "dropped", reason: /^[A-Za-z]{1,64}$/.test(why) ? why : "unreadable" };
    }
    // A duplicate counts as accepted. A reply that accounts for nothing, like a captive portal's, is not the service's.
    if (accepted >= 1) return { state: "sent", reason: "" };
    return { state: "queued", after: Number(reply.headers.get("Retry-After")) || 0 };
  }

  /** Every submission of this survey: epoch, epsilon, state, and the bytes of those that wait. */
  async history() {
    const own = (await this.#read()).surveys.get(this.#pinned);
    return (own?.submissions ?? []).map(({ repeats: _, ...submission }) => ({ survey: this.#pinned, ...submission }));
  }

  /**
   * Whether the respondent has opted out here; whether anything is remembered by which a report could be repeated, sent
   * or found; and whether the browser promises to keep the record: true, false or "unknown".
   */
  async state() {
    await this.#forgetIds();
    const { optedOut, surveys } = await this.#read();
    const remembers = [...surveys.values()].some(
      ({ key, memos, recorded, submissions }) =>
        key || memos.size || recorded?.values.size || submissions.some(({ id }) => id),
    );
    return { optedOut, remembers, persisted: (await this.#store.persisted?.()) ?? "unknown" };
  }

  /** Ask the browser to keep the record of what was answered: true, false or "unknown". `answer` asks as well. */
  async persist() {
    return (await this.#store.persist?.()) ?? "unknown";
  }

  /**
   * What the surveys of this one's budget group have spent on this device, as exact fractions, and whether the rest is
   * enough for another answer to this survey; null without terms.
   */
  async budget() {
    const survey = await this.survey();
    if (!survey.terms) return null;
    const ledger = await this.#read();
    const { related, enough } = nextDebit(ledger, survey, ledger.surveys.get(this.#pinned)?.submissions ?? []);
    const { relation, spent, cap, deltaSpent, deltaCap } = groupBudget(ledger, survey.terms);
    const [top, bottom] = add(readFraction(cap), times(readSum(spent), [-1n, 1n]));
    const left = top < 0n ? "0" : writeFraction([top, bottom]);
    const whose = { owner: survey.terms.owner, group: survey.terms.budget.group, relation };
    return { ...whose, related, cap, spent, left, deltaCap, deltaSpent, enough: related && enough };
  }

  /**
   * Ask a service that keeps reports to delete those of this device, by their ids, and erase the ids here. The service
   * does so while their epoch is open; what waits here may have arrived, so it is asked for too and not sent any more.
   * Asking shows the service which address these reports came from. Says how many were deleted, were not held any more,
   * or could not be asked for: those ids are kept.
   */
  async deleteSent() {
    return this.#store.exclusive(async () => {
      await this.#forgetIds();
      const result = { deleted: 0, notHeld: 0, failed: 0 };
      for (const { id, idUntil } of await this.history()) {
        if (!id || !idUntil) continue;
        const outcome = await this.#delete(id);
        result[outcome]++;
        if (outcome !== "failed") await this.#update((ledger) => settleDeleted(ledger.surveys.get(this.#pinned), id, outcome));
      }
      return result;
    });
  }

  async #delete(id) {
    try {
      const address = `${this.#server}/v1/surveys/${this.#pinned}/reports/${idText(id)}`;
      const signal = AbortSignal.timeout(30000);
      const reply = await this.#options.fetch(address, { ...QUIET, method: "DELETE", signal });
      if (reply.status === 409 || reply.status === 410) return "notHeld"; // a survey that keeps no reports, or was deleted
      const { deleted } = reply.status === 200 ? await reply.json() : {};
      return { true: "deleted", false: "notHeld" }[deleted] ?? "failed";
    } catch {
      return "failed";
    }
  }

  /** Erase the ids of sent reports that a service would not delete any more. */
  async #forgetIds() {
    const over = ({ id, idUntil, state }) => id && state !== "queued" && idUntil <= this.#options.now() / 1000;
    const { surveys } = await this.#read();
    if (![...surveys.values()].some(({ submissions }) => submissions.some(over))) return;
    await this.#update((ledger) => {
      for (const { submissions } of ledger.surveys.values()) for (const one of submissions.filter(over)) delete one.id;
    });
  }

  /**
   * Delete keys, memoized answers, waiting bytes and ids of all surveys on this origin, and opt out. What was spent stays
   * spent and answered epochs stay answered, or coming back would begin a second lifetime. To have reports deleted at a
   * service that keeps them, call `deleteSent` first.
   */
  async withdraw() {
    await this.#update((ledger) => {
      leave(ledger);
      const withdrawn = { state: "withdrawn", reason: "", repeats: false, idUntil: 0 };
      for (const own of ledger.surveys.values()) {
        const kept = ({ epoch, epsilon, delta }) => ({ epoch, epsilon, delta, ...withdrawn });
        own.submissions = own.submissions.map(kept);
      }
    });
  }

  /**
   * Take part in nothing on this origin: no request is made, not even for the survey. What waits is dropped, and what
   * only answering needs is deleted: keys, memoized answers and the surveys' bytes.
   */
  async optOut() {
    await this.#update(leave);
  }

  async optIn() {
    await this.#update((ledger) => void (ledger.optedOut = false));
  }
}

/** A sum of fractions, which may be longer than each. */
const readSum = (text) => (text === "0" ? [0n, 1n] : readFraction(text, "what was spent", Infinity));

/** What all rounds of a campaign have in common: the fingerprint of the first survey. */
const campaignOf = ({ terms, fingerprint: own }) => terms.campaign.first ?? own;

/** The round, other than this survey's, of its campaign that was answered here, whatever became of it; null if none was. */
function otherRound(ledger, survey) {
  if (!survey.terms?.campaign) return null;
  const first = campaignOf(survey);
  for (const [pinned, { campaign, submissions }] of ledger.surveys) {
    if (pinned !== survey.fingerprint && campaign?.first === first && submissions.length) return campaign.round;
  }
  return null;
}

/** A budget is of an owner and a group: nobody else's survey draws on it. */
const groupKey = ({ owner, budget }) => JSON.stringify([owner, budget.group]);

/** What an owner's group has spent, and its caps: the smallest that any of its surveys promised. */
function groupBudget(ledger, terms) {
  const { epsilon, delta, relation } = terms.budget;
  const nothing = { relation, spent: "0", cap: epsilon, deltaSpent: "0", deltaCap: delta };
  const known = ledger.groups.get(groupKey(terms)) ?? nothing;
  const least = (a, b) => (isAbove(readSum(a), readSum(b)) ? b : a);
  return { ...known, cap: least(known.cap, epsilon), deltaCap: least(known.deltaCap, delta) };
}

/** What the next submission costs, the group with it, and whether the group's relation and caps allow that. */
function nextDebit(ledger, { debit, delta, relation, terms }, submissions) {
  // The k-th submission holds at most k different values: the first `draws` are paid for, whatever the answers are.
  // After memos were deleted values are drawn anew and paid for anew: only what can be repeated counts as drawn.
  const pays = submissions.filter(({ repeats }) => repeats).length < terms.draws;
  const cost = { epsilon: pays ? debit : "0", delta: (pays && delta) || "0" };
  const known = groupBudget(ledger, terms);
  const sum = (spent, more) => writeFraction(add(readSum(spent), readSum(more)));
  const group = { ...known, spent: sum(known.spent, cost.epsilon), deltaSpent: sum(known.deltaSpent, cost.delta) };
  // What costs nothing is allowed, also where more was spent under an earlier, larger cap.
  const fits = (more, spent, cap) => more === "0" || !isAbove(readSum(spent), readSum(cap));
  const enough = fits(cost.epsilon, group.spent, group.cap) && fits(cost.delta, group.deltaSpent, group.deltaCap);
  return { cost, group, related: known.relation === relation, enough };
}

/** Opt out, and forget all that only answering needs. */
function leave(ledger) {
  ledger.optedOut = true;
  for (const own of ledger.surveys.values()) {
    for (const { id } of own.submissions) settle(own.submissions, id, { state: "dropped", reason: "optedOut" });
    for (const submission of own.submissions) submission.repeats = false;
    own.memos = new Map();
    delete own.recorded;
    delete own.key;
    delete own.bytes;
  }
}

function checkOptedIn({ optedOut }) {
  if (optedOut) refuse("optedOut", "you have opted out: nothing is fetched and nothing is sent");
}

/** What became of a submission: its bytes are erased, and its id unless a report may be deleted by it. */
function settle(submissions, id, { state, reason }) {
  const queued = submissions.find((entry) => entry.id === id && entry.state === "queued");
  if (!queued) return; // dropped or withdrawn meanwhile, it stays so
  Object.assign(queued, { state, reason });
  delete queued.bytes;
  delete queued.sealed;
  if (!queued.idUntil) delete queued.id;
}

/** A service has answered for the deletion of a report: nothing is left here to find it by. */
function settleDeleted(own, id, outcome) {
  const entry = own?.submissions.find((submission) => submission.id === id);
  if (!entry) return;
  if (entry.state === "queued") entry.state = outcome === "deleted" ? "sent" : "dropped"; // it had arrived, or never did
  if (entry.state === "sent" || !entry.reason) entry.reason = outcome;
  delete entry.bytes;
  delete entry.sealed;
  delete entry.id;
}
