/**
 * How often somebody who thinks all answers equally likely guesses an answer right, without and with the reports.
 * `src/deniable/surveys/right_guesses.py` says what the figures are, and computes them by itself; a test compares the two.
 */

import { fraction } from "./format.js";
import { either, word } from "./words.js";

export const [EXACT, ABOUT, AT_MOST] = ["exact", "about", "bound"];
const WAYS = [EXACT, ABOUT, AT_MOST];

const MOST_COUNTED = 64; // fresh reports up to which the counts of all answers are followed exactly
const MOST_REPORTS = 10000; // fresh reports up to which a sum over them is taken
const STEPS = 50; // numbers per half of the range, over which an integral is taken
const MOST_OUTPUTS = 2 ** 20;
const ORDERS = Array.from({ length: 33 }, (_, i) => 1 + 2 ** ((i - 16) / 2));

/** A share of right guesses, and how it is known. */
const right = (share, how = EXACT) => ({ share: Math.min(share, 1), how });

/** How a figure is known that is made of these. */
export const roughest = (found) => WAYS[Math.max(...found.map(({ how }) => WAYS.indexOf(how)))];

/** One entry per question: { thinks, yours, before, once, always }. */
export function guesses({ questions, terms }) {
  const { rule = "none", epochs = 1 } = terms?.longitudinal ?? {};
  const times = rule === "none" ? epochs : 1;
  return questions.map(({ protocol }) => guessed(protocol, times, rule === "two-stage"));
}

function guessed(given, times = 1, stages = false) {
  const protocol = given.inner ?? given;
  const parts = partsOf(protocol);
  if (parts.length) return parts.map((part) => guessedPart(part, times)).reduce((best, part) => (part.always.share > best.always.share ? part : best));
  const { thinks, yours = word("guessed.yours"), size } = secret(protocol);
  const once = rightOf(protocol, size, 1, null);
  const kept = stages && protocol.forever;
  const always = kept ? right(bound(fraction(protocol.forever), size), AT_MOST) : times === 1 ? once : rightOf(protocol, size, times, once);
  return { thinks, yours, before: 1 / size, once, always };
}

const NUMBERS = ["window", "mean output", "range", "end, twice", "figure"];

/** What is thought beforehand, what is guessed, and among how many. */
function secret({ relation, domain, shape, read }) {
  if (relation === "stream") return { thinks: word("thinks.courses"), size: 2 };
  if (domain?.columns) {
    const sizes = domain.columns.map(({ domain: own }) => own.size ?? 2);
    if (relation === "profiles") return { thinks: either("thinks.profiles", sizes[0]), size: sizes[0] };
    const cells = sizes.reduce((product, size) => product * size, 1);
    if (relation === "metric") return { thinks: either("thinks.cells", cells), size: cells };
    return { thinks: word("thinks.record"), yours: word("guessed.easiest"), size: Math.min(...sizes) };
  }
  const isNumber = NUMBERS.includes(shape) || (relation === "sum" && read === "mean");
  if (domain?.kind === "interval" || (domain?.kind === "integers" && isNumber)) return { thinks: word("thinks.halves"), size: 2 };
  if (domain?.size) return { thinks: either("thinks.answers", domain.size), size: domain.size };
  return { thinks: word("thinks.two"), size: 2 };
}

/** The columns of a record, where chance picks the one that a report is about. */
function partsOf({ shape, groups = [], domain }) {
  if (shape !== "part" || groups.length !== domain.columns.length) return [];
  if (groups.some(({ name }, i) => name !== domain.columns[i].name)) return [];
  const whole = groups.reduce((sum, { weight }) => sum + weight, 0);
  return groups.map(({ name, weight, protocol }) => ({ name, chance: weight / whole, protocol }));
}

/** A part that only some of the reports are about: of the others nothing is learned. */
function guessedPart({ name, chance, protocol }, times) {
  const each = Array.from({ length: Math.min(times, MOST_COUNTED) }, (_, i) => guessed(protocol, i + 1));
  const [found] = each;
  const once = right(chance * found.once.share + (1 - chance) * found.before, found.once.how);
  const known = [right(found.before), ...each.map(({ always }) => always)];
  const yours = word("guessed.part", { name });
  if (times === 1) return { ...found, yours, once, always: once };
  const weights = times > MOST_COUNTED ? null : binomial(times, chance);
  const always = weights
    ? right(weights.reduce((sum, weight, i) => sum + weight * known[i].share, 0), roughest(known))
    : right(guessed(protocol, times).always.share, AT_MOST);
  return { ...found, yours, once, always };
}

function rightOf(protocol, size, times, once) {
  const known = KNOWN[protocol.shape]?.(protocol, times) ?? null;
  if (known !== null && known.how !== AT_MOST) return known;
  let most = known === null ? 1 : known.share;
  if (!["profiles", "metric"].includes(protocol.relation)) {
    most = Math.min(most, bound(fraction(protocol.epsilon), size, times) + times * fraction(protocol.delta ?? "0"));
  }
  const grows = once === null ? Infinity : times * Math.log(size * once.share);
  return right(grows < Math.log(size) ? Math.min(most, Math.exp(grows) / size) : most, AT_MOST);
}

// -- by the law of a kind --------------------------------------------------------------------------------------------

const ONE = 2n ** 64n;
const chance = (top, bottom = ONE) => Number((top * ONE) / bottom) / 2 ** 64;
const chanceOf = ({ numerator }) => chance(numerator);

/** By the shape of reports: how often the best guess from so many fresh reports of one answer is right, where a formula is known. */
const KNOWN = {
  __proto__: null,
  answer({ domain: { size }, thresholds }, times) {
    const keep = chanceOf(thresholds.keep);
    const p = keep + (1 - keep) / size;
    if (size === 2) return repeatedBit(p, times);
    return times <= MOST_COUNTED ? repeatedResponse(p, size, times) : supported(p, 1 / size, size, times);
  },
  bits: ({ domain: { size }, thresholds }, times) => repeatedBits(chanceOf(thresholds.trueBit), chanceOf(thresholds.otherBit), size, times),
  hash({ domain: { size }, thresholds, hashBits }, times) {
    const [keep, groups] = [chanceOf(thresholds.keep), 2 ** hashBits];
    const lie = (1 - keep) / groups;
    const own = keep + lie;
    if (times > 1) {
      const found = repeatedBits(own, 1 / groups, size, times);
      return found && { ...found, how: ABOUT };
    }
    const used = meanImage(size, hashBits);
    return right((own * used + lie * (groups - used)) / size);
  },
  subset({ domain: { size }, thresholds, count, slots = size, window = count, cells = slots, inside }, times) {
    const own = inside ?? chanceOf(thresholds.holds);
    const some = slots === size || (cells === slots && slots - size < window); // every report supports an answer
    if (times === 1) return some ? right((own / count) * (slots / size)) : null;
    return supported(own, (own + ((size - 1) * (count - own)) / (slots - 1)) / size, size, times);
  },
  block({ domain: { size }, thresholds, blocks, blockSize }, times) {
    const keep = chanceOf(thresholds.keep);
    const any = 1 / (2 * blocks);
    if (times > 1) return supported(keep + (1 - keep) * any, any, size, times);
    const lie = (1 - keep) / (blocks * blockSize);
    const [full, longer] = [Math.floor(size / blocks), size % blocks];
    const empty = (answers) => ({ 1: blockSize / 2, 2: blockSize / 4 })[answers] ?? 0; // columns that support no answer of a block
    const without = longer * empty(full + 1) + (blocks - longer) * empty(full);
    return right(((blocks * blockSize - without) * ((2 * keep) / blockSize + lie) + without * lie) / size);
  },
  output({ rows, total }, times) {
    if (times > 1) return null;
    const best = rows[0].reduce((sum, _, y) => sum + rows.reduce((most, row) => (row[y] > most ? row[y] : most), 0n), 0n);
    return right(Number((best * ONE) / (total * BigInt(rows.length))) / 2 ** 64);
  },
  "profile output"({ released, wholes }, times) {
    if (times > 1) return null;
    const laws = released.map((law, i) => law.map((weight) => chance(weight, wholes[i])));
    return right(laws[0].reduce((sum, _, y) => sum + Math.max(...laws.map((law) => law[y])), 0) / laws.length);
  },
  place({ chances: { right: found, total }, domain: { shape: [rows, columns] } }, times) {
    return times > 1 ? null : right(chance(found, total * BigInt(rows * columns)));
  },
  window({ domain, thresholds, positions, width }, times) {
    const outputs = positions + width - 1;
    if (domain.kind !== "interval" || outputs > MOST_OUTPUTS) return null;
    const keep = chanceOf(thresholds.keep);
    if (times > 1) return outputs === 2 ? repeatedEnd(keep, times) : null;
    const low = halfWeights(positions);
    let [inside, whole] = [0, 0];
    for (let y = 0; y < outputs; y++) {
      if (y < positions) inside += low[y] - low[positions - 1 - y];
      if (y >= width) inside -= low[y - width] - low[positions - 1 - y + width];
      whole += Math.abs(inside);
    }
    return right(0.5 + (keep / (4 * width)) * whole);
  },
  "mean output"({ domain, rows, total }, times) {
    if (times > 1 || domain.kind !== "interval") return null;
    const low = halfWeights(rows.length);
    const seen = rows.map((row) => row.map((weight) => chance(weight, total)));
    const mixed = (weights, y) => weights.reduce((sum, weight, i) => sum + weight * seen[i][y], 0);
    const high = [...low].reverse();
    return right(seen[0].reduce((sum, _, y) => sum + Math.max(mixed(low, y), mixed(high, y)), 0) / 2);
  },
};

/** The mean number of different hashes of the answers 0 .. size - 1, by a uniform bit matrix with so many rows. */
function meanImage(size, rows) {
  let [spans, image] = [[1, ...new Array(rows).fill(0)], new Array(rows + 1).fill(0)];
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) {
    const [nextSpans, nextImage] = [new Array(rows + 1).fill(0), new Array(rows + 1).fill(0)];
    for (let m = 0; m <= rows; m++) {
      const inside = 2 ** (m - rows);
      const all = 2 ** m * spans[m];
      nextSpans[m] += inside * spans[m];
      nextImage[m] += inside * (rest % 2 ? all : image[m]);
      if (m === rows) continue;
      nextSpans[m + 1] += (1 - inside) * spans[m];
      nextImage[m + 1] += (1 - inside) * (all * (rest % 2) + image[m]);
    }
    [spans, image] = [nextSpans, nextImage];
  }
  return image.reduce((sum, mean) => sum + mean);
}

/** How often chance rounds a number of the lower half of the range to each position. */
function halfWeights(positions) {
  const half = (positions - 1) / 2;
  /** The integral of a hat between -1 and 1. */
  const below = (end) => (end <= -1 ? 0 : end <= 0 ? (end + 1) ** 2 / 2 : end <= 1 ? 1 - (1 - end) ** 2 / 2 : 1);
  return Array.from({ length: positions }, (_, i) => (below(half - i) - below(-i)) / half);
}

/** Randomized response: the most frequent report is the best guess; ties are split. */
function repeatedResponse(p, size, times) {
  const others = size - 1;
  const spread = [1]; // of so many reports on one other answer, out of all others
  for (let i = 1; i <= times; i++) spread.push(spread[i - 1] / (others * i));
  let found = 0;
  binomial(times, p).forEach((one, count) => {
    const rest = times - count;
    let wins = Number(count > rest);
    for (let tied = 0, ways = 1; 0 < count && count <= rest && tied * count <= rest && tied <= others; tied++) {
      const fewer = Array.from({ length: rest + 1 }, (_, i) => (i < count ? spread[i] : 0));
      const left = power(fewer, others - tied)[rest - tied * count];
      wins += (ways * left * factorial(rest)) / (tied + 1);
      ways *= (spread[count] * (others - tied)) / (tied + 1);
    }
    found += one * wins;
  });
  return right(found);
}

const factorial = (n) => (n < 2 ? 1 : n * factorial(n - 1));

/** A power of a polynomial, up to the degree that it is given with. */
function power(series, exponent) {
  const multiply = (a, b) => {
    const found = new Array(a.length).fill(0);
    for (let i = 0; i < a.length; i++) if (a[i]) for (let j = 0; i + j < a.length; j++) found[i + j] += a[i] * b[j];
    return found;
  };
  let [found, square] = [series.map((_, i) => Number(i === 0)), series];
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2) found = multiply(found, square);
    if (rest > 1) square = multiply(square, square);
  }
  return found;
}

/** Randomized response with two answers: the majority is the best guess. */
function repeatedBit(p, times) {
  if (times > MOST_REPORTS) return null;
  const chances = binomial(times, p);
  return right(chances.reduce((sum, one, i) => sum + Math.max(one, chances[times - i]), 0) / 2);
}

/** One-bit means: in which half a number lies, from bits that are 1 with a probability linear in the number. */
function repeatedEnd(keep, times) {
  if (times > Math.floor(MOST_REPORTS / STEPS)) return null;
  const low = new Array(times + 1).fill(0);
  for (let step = 0; step < STEPS; step++) {
    const number = (step + 0.5) / (2 * STEPS);
    binomial(times, keep * number + (1 - keep) / 2).forEach((one, i) => (low[i] += one / STEPS));
  }
  return right(low.reduce((sum, one, i) => sum + Math.max(one, low[times - i]), 0) / 2);
}

/** Bitmaps: the answer whose bit is set most often is the best guess; ties are split. */
function repeatedBits(p, q, size, times) {
  if (times > MOST_REPORTS) return null;
  const others = binomial(times, q);
  let [found, below] = [0, 0];
  binomial(times, p).forEach((own, i) => {
    const upto = Math.min(below + others[i], 1);
    const tied = size * others[i];
    found += own * (tied > 1e-7 ? (upto ** size - below ** size) / tied : upto ** (size - 1));
    below = upto;
  });
  return right(found);
}

/** The probabilities of 0 to `times` successes. */
function binomial(times, success) {
  if (success >= 1) return [...new Array(times).fill(0), 1];
  let ways = 0;
  return Array.from({ length: times + 1 }, (_, count) => {
    const found = Math.exp(ways + count * Math.log(success) + (times - count) * Math.log1p(-success));
    if (count < times) ways += Math.log(times - count) - Math.log(count + 1);
    return found;
  });
}

// -- at most ---------------------------------------------------------------------------------------------------------

/** The largest share of right guesses among equally likely secrets, for any reports of this epsilon. */
function bound(epsilon, size, times = 1) {
  const most = 1 / (1 + (size - 1) * Math.exp(-times * epsilon));
  if (size === 2) return Math.min(most, repeatedBit(1 / (1 + Math.exp(-epsilon)), times)?.share ?? 1);
  const high = size / (1 + (size - 1) * Math.exp(-epsilon));
  const low = (size * Math.exp(-epsilon)) / (size - 1 + Math.exp(-epsilon));
  const share = (1 - low) / (high - low);
  return Math.min(most, supported(share * high, share, size, times).share);
}

/** The same where every report supports the answer with probability `own`, and any answer with `share`. */
function supported(own, share, size, times) {
  const [high, low] = [own / share, (1 - own) / (1 - share)];
  const logs = ORDERS.map((order) => {
    const mean = order * Math.log(high) + Math.log(share + (1 - share) * (low / high) ** order);
    return (times * mean - (order - 1) * Math.log(size)) / order;
  });
  return right(Math.exp(Math.min(0, ...logs)), AT_MOST);
}
