/**
 * How often somebody who thinks all answers equally likely guesses an answer right, without and with the reports.
 * `src/deniable/surveys/right_guesses.py` says what the figures are, and computes them by itself; a test compares the two.
 */

import { fraction } from "./format.js";
import { either, figure, word } from "./words.js";

export const [EXACT, ABOUT, AT_MOST] = ["exact", "about", "bound"];
const WAYS = [EXACT, ABOUT, AT_MOST];

const MOST_COUNTED = 64; // fresh reports up to which the counts of all answers are followed exactly
const MOST_REPORTS = 10000; // fresh reports up to which a sum over them is taken
const [POINTS, MOST_POINTS] = [100, 1000]; // numbers of an interval that stand for all, and whole numbers that stand for themselves
const TENTH = 10; // a guess of a number is right within this part of the range
const MOST_CELLS = 2 ** 22; // numbers times outputs up to which a law is listed
const SAMPLES = 2 ** 12;
const ORDERS = Array.from({ length: 33 }, (_, i) => 1 + 2 ** ((i - 16) / 2));

/** A share of right guesses, and how it is known. */
const right = (share, how = EXACT) => ({ share: Math.min(share, 1), how });

/** How a figure is known that is made of these. */
export const roughest = (found) => WAYS[Math.max(...found.map(({ how }) => WAYS.indexOf(how)))];

/** One entry per question: { thinks, yours, before, once, always }. */
export function guesses({ questions, terms }) {
  const { rule = "none", epochs = 1 } = terms?.longitudinal ?? {};
  const times = rule === "none" ? epochs : 1;
  return questions.map(({ protocol }) => remembered(protocol, times, rule === "two-stage"));
}

const KEPT = new WeakMap(); // a protocol of a survey is asked under one rule

function remembered(protocol, ...rule) {
  if (!KEPT.has(protocol)) KEPT.set(protocol, guessed(protocol, ...rule));
  return KEPT.get(protocol);
}

function guessed(given, times = 1, stages = false) {
  const protocol = given.inner ?? given;
  const parts = partsOf(protocol);
  if (parts.length) return parts.map((part) => guessedPart(part, times)).reduce((best, part) => (part.always.share > best.always.share ? part : best));
  if (isNumber(protocol)) return guessedNumber(protocol, times, stages);
  const { thinks, yours = word("guessed.yours"), size } = secret(protocol);
  const once = rightOf(protocol, size, 1, null);
  const kept = stages && protocol.forever;
  const always = kept ? right(bound(fraction(protocol.forever), size), AT_MOST) : times === 1 ? once : rightOf(protocol, size, times, once);
  return { thinks, yours, before: 1 / size, once, always };
}

const NUMBERS = ["window", "mean output", "range", "end, twice", "figure"];

const isNumber = ({ relation, domain: { kind }, shape, read }) =>
  kind === "interval" || (kind === "integers" && (NUMBERS.includes(shape) || (relation === "sum" && read === "mean")));

/** What is thought beforehand, what is guessed, and among how many. */
function secret({ relation, domain }) {
  if (relation === "stream") return { thinks: word("thinks.courses"), size: 2 };
  if (domain?.columns) {
    const sizes = domain.columns.map(({ domain: own }) => own.size ?? 2);
    if (relation === "profiles") return { thinks: either("thinks.profiles", sizes[0]), size: sizes[0] };
    const cells = sizes.reduce((product, size) => product * size, 1);
    if (relation === "metric") return { thinks: either("thinks.cells", cells), size: cells };
    return { thinks: word("thinks.record"), yours: word("guessed.easiest"), size: Math.min(...sizes) };
  }
  if (domain?.items) return { thinks: word("thinks.member"), yours: word("guessed.member"), size: 2 };
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

// -- numbers ---------------------------------------------------------------------------------------------------------

/** A number within a tenth of its range: the best interval of that width. */
function guessedNumber(protocol, times, stages) {
  const { low, high, unit = "", size = Infinity } = protocol.domain;
  const whole = size <= MOST_POINTS;
  const count = whole ? size : POINTS;
  const points = Array.from({ length: count }, (_, i) => (whole ? low + i : low + ((i + 0.5) / count) * (high - low)));
  const near = whole ? Math.floor((count - 1) / TENTH) : (high - low) / TENTH;
  const width = whole ? 2 * near + 1 : (2 * count) / TENTH;
  const within = { n: figure(Number(near.toPrecision(6))), unit: unit && `\u00a0${unit}` };
  const yours = near ? word("guessed.near", within) : word("guessed.yours");
  const thinks = word("thinks.numbers");
  const rows = lawsOf(protocol, points);
  const kept = stages && protocol.forever;
  const [epsilon, before] = [fraction(protocol.epsilon), width / count];
  const most = (level) => right(1 / (1 + (1 / before - 1) * Math.exp(-Math.min(level, 700))), AT_MOST);
  const all = most(kept ? fraction(protocol.forever) : times * epsilon);
  if (!rows) return { thinks, yours, before, once: most(epsilon), always: all };
  let found = 0;
  for (let y = 0; y < rows[0].length; y++) found += best(rows.map((row) => row[y]), width);
  const once = right(found / count);
  return { thinks, yours, before, once, always: kept ? all : times === 1 ? once : right(simulated(rows, width, times), ABOUT) };
}

/** The largest sum of so many numbers in a row. */
function best(numbers, width) {
  let [sum, most] = [0, 0];
  numbers.forEach((one, i) => {
    sum += one - (i >= width ? numbers[i - width] : 0);
    if (i >= width - 1 && sum > most) most = sum;
  });
  return most;
}

/** The probability of every report, one row per number; null if there are too many, or the law is not known here. */
function lawsOf(protocol, points) {
  const { domain, project, levels, figures: groups = levels } = protocol;
  if (!groups) return lawsOfPart(protocol, points);
  const whole = groups.reduce((sum, { weight }) => sum + weight, 0);
  const reads = points.map((point) => domain.read(domain.kind === "integers" ? Math.round(point) : point));
  const each = groups.map(({ weight, protocol: member }, group) => {
    const laws = lawsOfPart(member, reads.map((read) => project(read, group)));
    return laws?.map((row) => row.map((one) => (one * weight) / whole));
  });
  return each.every(Boolean) ? points.map((_, i) => each.flatMap((laws) => laws[i])) : null;
}

function lawsOfPart(protocol, parts) {
  const { shape, domain, thresholds, positions, width, rows, total } = protocol;
  if (shape === "answer") {
    if (domain.size * parts.length > MOST_CELLS) return null;
    const keep = chanceOf(thresholds.keep);
    const lie = (1 - keep) / domain.size;
    return parts.map((part) => Array.from({ length: domain.size }, (_, y) => lie + (y === part ? keep : 0)));
  }
  if (shape === "sum") return lawsOfSum(protocol, parts);
  if (shape === "end, twice") {
    const keep = chanceOf(thresholds.permanent) * chanceOf(thresholds.instant);
    const { low, high } = domain;
    return parts.map((part) => [high - part, part - low].map((share) => (1 - keep) / 2 + (keep * share) / (high - low)));
  }
  if (!["window", "mean output"].includes(shape) || parts.length * positions > MOST_CELLS) return null;
  const places = parts.map((part) => ((part - domain.low) / (domain.high - domain.low)) * (positions - 1));
  const hat = (place, i) => Math.max(0, 1 - Math.abs(place - i));
  if (shape === "mean output") {
    const seen = rows.map((row) => row.map((weight) => chance(weight, total)));
    return places.map((place) => seen[0].map((_, y) => seen.reduce((sum, row, i) => sum + hat(place, i) * row[y], 0)));
  }
  const [keep, outputs] = [chanceOf(thresholds.keep), positions + width - 1];
  return places.map((place) => {
    const below = Math.min(Math.floor(place), positions - 1);
    const covers = (i, y) => (i <= y && y < i + width ? hat(place, i) : 0); // the window of one of the two marks around it
    return Array.from({ length: outputs }, (_, y) => (1 - keep) / outputs + (keep / width) * (covers(below, y) + covers(below + 1, y)));
  });
}

/** A sum of whole numbers with the noise of as many people as suffice: two-sided geometric. */
function lawsOfSum({ domain: { low, size }, decay }, parts) {
  const reach = Math.ceil(Math.log(1e-9) / Math.log(decay));
  if (parts.length * (size + 2 * reach) > MOST_CELLS) return null;
  const noise = (distance) => ((1 - decay) / (1 + decay)) * decay ** Math.abs(distance);
  return parts.map((part) => Array.from({ length: size + 2 * reach }, (_, y) => noise(y - reach - (part - low))));
}

/** The mean posterior of the best interval, given several reports: the same draws as in Python. */
function simulated(rows, width, times) {
  const count = Math.max(SAMPLES / 8, Math.min(SAMPLES, Math.floor((8 * SAMPLES) / times)));
  const sums = rows.map((row) => row.map(((sum) => (one) => (sum += one))(0)));
  const logs = rows[0].map((_, y) => rows.map((row) => Math.log(Math.max(row[y], 1e-300))));
  let found = 0;
  for (let i = 0; i < count; i++) {
    const own = sums[Math.floor((i * rows.length) / count)];
    const scores = new Float64Array(rows.length);
    for (let t = 0; t < times; t++) {
      const drawn = uniform(t * count + i) * own.at(-1);
      let [low, high] = [0, own.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (own[middle] > drawn) high = middle;
        else low = middle + 1;
      }
      const likely = logs[low];
      for (let x = 0; x < scores.length; x++) scores[x] += likely[x];
    }
    const most = scores.reduce((a, b) => Math.max(a, b));
    const posterior = Array.from(scores, (score) => Math.exp(score - most));
    found += best(posterior, width) / posterior.reduce((sum, one) => sum + one);
  }
  return found / count;
}

/** A number between 0 and 1: the finalizer of MurmurHash3. */
function uniform(number) {
  let mixed = number >>> 0;
  for (const [shift, times] of [[16, 0x85ebca6b], [13, 0xc2b2ae35], [16, 1]]) mixed = Math.imul(mixed ^ (mixed >>> shift), times);
  return ((mixed >>> 0) + 0.5) / 2 ** 32;
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
    if (times > 1) return right(simulated(rows.map((row) => row.map((weight) => chance(weight, total))), 1, times), ABOUT);
    const most = rows[0].reduce((sum, _, y) => sum + rows.reduce((largest, row) => (row[y] > largest ? row[y] : largest), 0n), 0n);
    return right(Number((most * ONE) / (total * BigInt(rows.length))) / 2 ** 64);
  },
  "profile output"({ released, wholes }, times) {
    if (times > 1) return null;
    const laws = released.map((law, i) => law.map((weight) => chance(weight, wholes[i])));
    return right(laws[0].reduce((sum, _, y) => sum + Math.max(...laws.map((law) => law[y])), 0) / laws.length);
  },
  place({ chances: { right: found, total }, domain: { shape: [rows, columns] } }, times) {
    return times > 1 ? null : right(chance(found, total * BigInt(rows * columns)));
  },
  "hashed bits"({ domain: { size = 2 }, cells, thresholds }, times) {
    const [own, other] = [chanceOf(thresholds.trueBit), chanceOf(thresholds.otherBit)];
    return times > 1 ? null : sketched(size, cells, (count) => repeatedBits(own, other, count, 1).share);
  },
  "hashed groups"({ domain: { size = 2 }, cells, hashBits = 1, thresholds }, times) {
    const [keep, groups] = [chanceOf(thresholds.keep), 2 ** hashBits];
    const lie = (1 - keep) / groups;
    const used = (count) => groups * (1 - (1 - 1 / groups) ** count);
    return times > 1 ? null : sketched(size, cells, (count) => (keep * used(count)) / count + (lie * groups) / count);
  },
  /** Of two texts: the bits of one filter and not of the other are as many coins. */
  filter({ domain: { size = 2 }, width, hashes, thresholds }, times) {
    if (times > 1 || size > 2) return null;
    const common = (shared) => (ways(hashes, shared) * ways(width - hashes, hashes - shared)) / ways(width, hashes);
    const each = Array.from({ length: hashes + 1 }, (_, shared) => [common(shared), 2 * (hashes - shared)]);
    return right(each.reduce((sum, [weight, coins]) => sum + weight * repeatedBit(1 - chanceOf(thresholds.flip), coins).share, 0), ABOUT);
  },
  prefix({ levels }, times) {
    if (times > 1) return null;
    const whole = levels.reduce((sum, { weight }) => sum + weight, 0);
    const apart = ({ domain: { size }, hashBits, thresholds }) => (1 - 1 / size) * (1 - 2 ** -hashBits) * chanceOf(thresholds.keep);
    return right(0.5 + levels.reduce((sum, { weight, protocol }) => sum + (weight / whole) * apart(protocol), 0) / 2, ABOUT);
  },
  /** Whether an item or a dummy is in the set: reports that hold one of the two, and nothing else of the set. */
  "subset for a set"({ domain: { most }, size, count, thresholds }, times) {
    if (times > 1) return null;
    const without = (all, held, drawn) => Array.from({ length: drawn }, (_, i) => (all - held - i) / (all - i)).reduce((a, b) => a * b, 1);
    const [meets, misses] = [chanceOf(thresholds.meets), without(size, most, count)];
    return right(0.5 + ((count / size) * without(size - 1, most, count - 1) * (meets / (1 - misses) - (1 - meets) / misses)) / 2);
  },
  "cell of a set"({ domain: { most }, cells, thresholds }, times) {
    if (times > 1) return null;
    const own = chanceOf(thresholds.ownCell);
    const above = (held) => own - (1 - own * held) / (cells - held);
    const told = (held) => {
      const free = (cells - held) / cells;
      return free * ((cells - held - 1) / cells) * above(held + 1) + 2 * free * (held / cells) * above(held);
    };
    return right(0.5 + occupied(most - 1, cells).reduce((sum, weight, held) => sum + weight * told(held), 0) / 2, ABOUT);
  },
  "items of a set"({ kinds }, times) {
    return kinds.length > 1 ? null : KNOWN[kinds[0].protocol.shape](kinds[0].protocol, times);
  },
  "keys at ends": ({ law }, times) => KNOWN[law.shape](law, times),
  /** One report of two stages is one of both together; several come from one state. */
  "answer, twice"({ domain: { size }, thresholds }, times) {
    const keep = chanceOf(thresholds.permanent) * chanceOf(thresholds.instant);
    return times === 1 ? right(keep + (1 - keep) / size) : null;
  },
  "bits, twice"({ domain: { size }, thresholds }, times) {
    const flip = chanceOf(thresholds.flip);
    const [own, other] = [thresholds.trueBit, thresholds.otherBit].map((one) => chanceOf(one) * (1 - flip) + (1 - chanceOf(one)) * flip);
    return times === 1 ? repeatedBits(own, other, size, 1) : null;
  },
  /** Always one answer, or always another: the first change is reported with the chance of one of 1 + 2 changes. */
  stream({ domain: { size }, changes, thresholds }) {
    const followed = size === 2 ? 1 : 2 / size;
    return right(0.5 + (followed * (2 * chanceOf(thresholds.keep) - 1)) / (2 * (1 + 2 * changes)));
  },
  /** Of sums of ones, each with two-sided geometric noise, a cell speaks for an answer where it is positive. */
  sum: ({ domain: { size }, decay }, times) => repeatedBits(1 / (1 + decay), decay / (1 + decay), size, times),
};

const MOST_TEXTS = 1000;

/** Texts that share a cell are guessed as one: the mean over the number of cells that they fill by any hash function. */
function sketched(size, cells, guess) {
  if (size > MOST_TEXTS) return null;
  return right(occupied(size, cells).reduce((sum, weight, count) => sum + (weight && count ? (weight * count * guess(count)) / size : 0), 0), ABOUT);
}

/** How likely so many elements fill 0, 1, 2, ... of some cells, if each falls into any. */
function occupied(elements, cells) {
  let found = [1];
  for (let i = 0; i < elements; i++) {
    const next = new Array(found.length + 1).fill(0);
    found.forEach((weight, held) => {
      next[held] += (weight * held) / cells;
      next[held + 1] += (weight * (cells - held)) / cells;
    });
    found = next;
  }
  return found;
}

/** The number of ways to choose k of n. */
const ways = (n, k) => Array.from({ length: k }, (_, i) => (n - i) / (i + 1)).reduce((a, b) => a * b, 1);

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
