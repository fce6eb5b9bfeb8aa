"""How often the best guess of an answer is right after some reports, by kind of protocol.

Once       exact if a kind has a formula or a small law, else unknown: `known` is None, and callers use a bound
Several    fresh reports of one answer: exact for randomized response and bitmaps; for hashes as if they were
           independent, which simulations confirm to one guess in a hundred, and simulated for numbers and
           tables ("about")
Numbers    `laws_of` gives the law of the report of each number, where it is small enough to list
Bound      `bound` holds for every protocol of an epsilon, whatever its law
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Integers
from deniable.protocols import (
    GRR,
    RAPPOR,
    CollisionSets,
    Evolving,
    HadamardResponse,
    HeavyHitters,
    ItemSets,
    KeyValue,
    MeanTable,
    Memoized,
    Protocol,
    PureProtocol,
    SecureSum,
    SubsetSets,
    Table,
    Window,
)
from deniable.protocols.frequency.local_hashing import LocalHashing
from deniable.protocols.frequency.sketch import SketchProtocol
from deniable.protocols.frequency.unary import UnaryProtocol
from deniable.protocols.law import PROFILES

EXACT, ABOUT, AT_MOST = WAYS = ("exact", "about", "bound")
MOST_COUNTED = 64
"""Number of fresh reports up to which the counts of all answers are computed exactly."""
_MOST_REPORTS = 10_000
"""Number of fresh reports up to which a sum over them is computed."""
_MOST_CELLS = 1 << 22
"""Numbers times outputs up to which a law is listed."""
_SAMPLES = 1 << 12
_MOST_TEXTS = 1000
Floats = NDArray[np.float64]
_ORDERS = [1 + 2 ** (power / 2) for power in range(-16, 17)]


class Right(NamedTuple):
    """A share of right guesses."""

    share: float
    how: str = EXACT
    """Whether the share is exact, approximate, or an upper bound."""


def ends_of(domain: Any) -> tuple[float, float]:
    return (float(domain.low), float(domain.high)) if isinstance(domain, Integers) else domain.ends


def interval_bound(epsilon: float, size: float) -> float:
    """The largest posterior of one part of `size` equal ones."""
    return 1 / (1 + (size - 1) * math.exp(-min(epsilon, 700.0)))


def laws_of(protocol: Protocol, values: Floats) -> Floats | None:
    """The probability of every report, one row per number; None if there are too many, or the law is not known here."""
    choice = protocol.law().choice
    if choice is not None:
        typed = int if isinstance(protocol.domain, Integers) else float
        encoded = [protocol.domain.encode_one(typed(value)) for value in np.round(values, 9).tolist()]
        each = [
            (float(chance), _laws_of_part(member, [choice.project(value, place) for value in encoded]))
            for place, (chance, member) in enumerate(zip(choice.chances, choice.members, strict=True))
        ]
        known = [chance * laws for chance, laws in each if laws is not None]
        return np.hstack(known) if len(known) == len(each) else None
    return _laws_of_part(protocol, values.tolist())


def _laws_of_part(protocol: Protocol, parts: list[Any]) -> Floats | None:
    """The same for numbers, or for positions in a list."""
    if isinstance(protocol, GRR):
        size = protocol.domain.size
        if size * len(parts) > _MOST_CELLS:
            return None
        laws = np.full((len(parts), size), float(protocol.q))
        laws[np.arange(len(parts)), parts] = float(protocol.p)
        return laws
    if isinstance(protocol, SecureSum):
        return _laws_of_sum(protocol, np.array(parts))
    if not isinstance(protocol, Window | MeanTable):
        return None
    low, high = ends_of(protocol.domain)
    places = (np.array(parts) - low) / (high - low) * (protocol.positions - 1)
    if len(parts) * protocol.positions > _MOST_CELLS:
        return None
    near = np.maximum(0.0, 1 - np.abs(places[:, None] - np.arange(protocol.positions)))
    if isinstance(protocol, MeanTable):
        found: Floats = near @ protocol.matrix.rows
        return found
    keep, width = float(protocol.keep.value), protocol.width
    padded = np.hstack([np.zeros((len(parts), width)), np.cumsum(near, axis=1), np.ones((len(parts), width - 1))])
    inside = padded[:, width:] - padded[:, : protocol.outputs]
    drawn: Floats = (1 - keep) / protocol.outputs + keep / width * inside
    return drawn


def _laws_of_sum(protocol: SecureSum, values: Floats) -> Floats | None:
    """A sum of whole numbers with the noise of as many people as suffice: two-sided geometric."""
    decay, (low, high) = float(protocol.decay), ends_of(protocol.domain)
    reach = math.ceil(math.log(1e-9) / math.log(decay))
    if len(values) * (high - low + 1 + 2 * reach) > _MOST_CELLS:
        return None
    outputs = np.arange(low - reach, high + reach + 1)
    laws: Floats = (1 - decay) / (1 + decay) * decay ** np.abs(outputs - values[:, None])
    return laws


def simulated(laws: Floats, width: int, times: int) -> float:
    """The mean posterior of the best interval, given several reports: the same draws as in the browser."""
    count = max(_SAMPLES // 8, min(_SAMPLES, 8 * _SAMPLES // times))
    truth = np.arange(count) * len(laws) // count
    sums, logs = np.cumsum(laws, axis=1), np.log(np.maximum(laws, 1e-300)).T
    scores = np.zeros((count, len(laws)))
    for number in range(times):
        drawn = _uniform(np.arange(count, dtype=np.uint32) + np.uint32(number * count))
        for place in range(len(laws)):
            rows = truth == place
            outputs = np.searchsorted(sums[place], drawn[rows] * sums[place, -1], side="right")
            scores[rows] += logs[np.minimum(outputs, laws.shape[1] - 1)]
    posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
    held = np.cumsum(posterior, axis=1)
    inside = held[:, width - 1 :] - np.hstack([np.zeros((count, 1)), held[:, :-width]])
    return float((inside.max(axis=1) / held[:, -1]).mean())


def _uniform(numbers: NDArray[np.uint32]) -> Floats:
    """A number between 0 and 1 for each of these: the finalizer of MurmurHash3."""
    mixed = numbers.copy()
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return (mixed + 0.5) / 2**32


# -- by the law of a kind ------------------------------------------------------------------------------


@singledispatch
def known(protocol: Protocol, times: int) -> Right | None:
    """How often the best guess from `times` fresh reports of one answer is right; None if no formula is known."""
    share = protocol.worth().guess if times == 1 and protocol.traits.fresh else None
    return None if share is None else Right(share)


@known.register
def _(protocol: Memoized, times: int) -> Right | None:
    """One report of two stages is one of both together; several come from one state."""
    support, size = protocol.law().support, getattr(protocol.domain, "size", 0)
    if times > 1 or support is None:
        return None
    if support.size == 1:
        return Right(float(support.p))
    return repeated_bits(float(support.p), float(support.q), size, 1) if support.independent else None


@known.register
def _(protocol: SketchProtocol, times: int) -> Right | None:
    inner, size = protocol.inner, getattr(protocol.domain, "size", 2)
    if times > 1 or size > _MOST_TEXTS:
        return None
    share = 0.0
    for count, weight in enumerate(_occupied(size, protocol.hashing.cells)):
        if weight and count:
            share += weight * count * _guess_of_cells(inner, count) / size
    return Right(share, ABOUT)


def _guess_of_cells(inner: PureProtocol, count: int) -> float:
    """How often the best guess of one of `count` cells is right."""
    if not isinstance(inner, LocalHashing):
        found = repeated_bits(float(inner.p), float(inner.q), count, 1)
        assert found is not None
        return found.share
    groups, keep = 1 << inner.hash_bits, float(inner.response.keep.value)
    used = groups * (1 - (1 - 1 / groups) ** count)
    return (keep * used + (1 - keep)) / count


@known.register
def _(protocol: RAPPOR, times: int) -> Right | None:
    """Of two texts: the bits of one filter and not of the other are as many coins."""
    if times > 1 or getattr(protocol.domain, "size", 2) > 2:
        return None
    width, hashes, share = protocol.bloom_bits, protocol.hashes, 0.0
    for shared in range(hashes + 1):
        weight = math.comb(hashes, shared) * math.comb(width - hashes, hashes - shared) / math.comb(width, hashes)
        found = repeated_bit(1 - float(protocol.flip.value), 2 * (hashes - shared))
        assert found is not None
        share += weight * found.share
    return Right(share, ABOUT)


@known.register
def _(protocol: HeavyHitters, times: int) -> Right | None:
    choice = protocol.law().choice
    if times > 1 or choice is None:
        return None
    told = 0.0
    for chance, member in zip(choice.chances, choice.members, strict=True):
        assert isinstance(member, LocalHashing)
        apart = (1 - 1 / member.domain.size) * (1 - 2.0**-member.hash_bits)
        told += float(chance) * apart * float(member.response.keep.value)
    return Right(0.5 + told / 2, ABOUT)


@known.register
def _(protocol: SubsetSets, times: int) -> Right | None:
    """Whether an item or a dummy is in the set: reports that hold one of the two, and nothing else of the set."""
    if times > 1:
        return None
    most, count = protocol.domain.at_most, protocol.subset_size
    size, meets = protocol.domain.items.size + most, float(protocol.meets.value)
    misses = _without(size, most, count)
    told = count / size * _without(size - 1, most, count - 1) * (meets / (1 - misses) - (1 - meets) / misses)
    return Right(0.5 + told / 2)


def _without(size: int, held: int, drawn: int) -> float:
    """The probability that `drawn` of `size` elements have none of those held."""
    return math.prod((size - held - i) / (size - i) for i in range(drawn))


@known.register
def _(protocol: CollisionSets, times: int) -> Right | None:
    if times > 1:
        return None
    cells, own, told = protocol.cells, float(protocol.own_cell.value), 0.0

    def above(held: int) -> float:
        return own - (1 - own * held) / (cells - held)

    for held, weight in enumerate(_occupied(protocol.domain.at_most - 1, cells)):
        free = (cells - held) / cells
        told += weight * (free * (cells - held - 1) / cells * above(held + 1) + 2 * free * held / cells * above(held))
    return Right(0.5 + told / 2, ABOUT)


@known.register
def _(protocol: ItemSets, times: int) -> Right | None:
    choice = protocol.law().choice
    return known(choice.members[0], times) if choice is not None and len(choice.members) == 1 else None


@known.register
def _(protocol: KeyValue, times: int) -> Right | None:
    return known(protocol.inner, times)


def _occupied(elements: int, cells: int) -> list[float]:
    """How likely so many elements fill 0, 1, 2, ... of some cells, if each falls into any."""
    found = [1.0]
    for _ in range(elements):
        more = [0.0] * (len(found) + 1)
        for held, weight in enumerate(found):
            more[held] += weight * held / cells
            more[held + 1] += weight * (cells - held) / cells
        found = more
    return found


@known.register
def _(protocol: Evolving, times: int) -> Right | None:
    """Always one answer, or always another: the first change is reported with the chance of one of 1 + 2 changes."""
    followed = 1 if protocol.domain.size == 2 else 2 / protocol.domain.size
    gap = math.tanh(float(protocol.epsilon) / 2)
    return Right(0.5 + followed * gap / (2 * (1 + 2 * protocol.changes)))


@known.register
def _(protocol: SecureSum, times: int) -> Right | None:
    """Of sums of ones, each with two-sided geometric noise, a cell speaks for an answer where it is positive."""
    decay = float(protocol.decay)
    return repeated_bits(1 / (1 + decay), decay / (1 + decay), protocol.domain.size, times)


@known.register
def _(protocol: Table, times: int) -> Right | None:
    if times == 1:
        return None if protocol.worth().guess is None else Right(protocol.worth().guess)
    if protocol.guarantee.relation == PROFILES:
        return None
    return Right(simulated(np.asarray(protocol.channel().rows, dtype=np.float64), 1, times), ABOUT)


@known.register
def _(protocol: GRR, times: int) -> Right | None:
    p, size = float(protocol.p), protocol.domain.size
    if size == 2:
        return repeated_bit(p, times)
    return repeated_response(p, size, times) if times <= MOST_COUNTED else supported(p, 1 / size, size, times)


@known.register
def _(protocol: UnaryProtocol, times: int) -> Right | None:
    return repeated_bits(float(protocol.p), float(protocol.q), protocol.domain.size, times)


@known.register
def _(protocol: LocalHashing, times: int) -> Right | None:
    found = repeated_bits(float(protocol.p), float(protocol.q), protocol.domain.size, times)
    return Right(protocol.worth().guess) if times == 1 else found and found._replace(how=ABOUT)


@known.register
def _(protocol: PureProtocol, times: int) -> Right | None:
    if times == 1:
        return None if protocol.worth().guess is None else Right(protocol.worth().guess)
    p, size = float(protocol.p), protocol.domain.size
    return supported(p, (p + (size - 1) * float(protocol.q)) / size, size, times)


@known.register
def _(protocol: HadamardResponse, times: int) -> Right | None:
    if times == 1:
        return Right(protocol.worth().guess)
    other = 1 / (2 * protocol.blocks)  # how often an answer is supported by any output
    keep = float(protocol.response.keep)
    return supported(keep + (1 - keep) * other, other, protocol.domain.size, times)


def repeated_response(p: float, size: int, times: int) -> Right:
    """Randomized response that keeps the answer with probability p: the most frequent report is the best guess.

    If the answer is reported c times, the other reports are spread over the k - 1 other answers. It wins against them
    if none has more, and once in j + 1 times if j of them have as many.

    >>> [round(repeated_response(0.5, 3, times).share, 4) for times in (1, 2, 3)]
    [0.5, 0.5, 0.5625]
    """
    right, others = 0.0, size - 1
    spread = [1.0]  # weight of each number of reports on one other answer, out of all others
    for number in range(1, times + 1):
        spread.append(spread[-1] / (others * number))
    for count, chance in enumerate(binomial(times, p)):
        rest, ways = times - count, 1.0
        wins = float(count > rest)
        fewer = np.array(spread[:count] + [0.0] * (rest + 1 - count)) if 0 < count <= rest else np.zeros(0)
        for tied in range(min(rest // count, others) + 1 if fewer.size else 0):
            left = float(_power(fewer, others - tied)[rest - tied * count])
            wins += ways * left * math.factorial(rest) / (tied + 1)
            ways *= spread[count] * (others - tied) / (tied + 1)
        right += chance * wins
    return Right(min(right, 1.0))


def _power(series: Floats, exponent: int) -> Floats:
    """A power of a polynomial, truncated at the degree of the argument."""
    found = np.zeros_like(series)
    found[0] = 1.0
    while exponent:
        if exponent & 1:
            found = np.convolve(found, series)[: len(series)]
        series = np.convolve(series, series)[: len(series)]
        exponent >>= 1
    return found


def repeated_bit(p: float, times: int) -> Right | None:
    """Randomized response with two answers: the majority is the best guess.

    >>> round(repeated_bit(0.75, 3).share, 4)
    0.8438
    """
    if times > _MOST_REPORTS:
        return None
    chances = binomial(times, p)
    return Right(sum(max(chances[i], chances[times - i]) for i in range(times + 1)) / 2)


def repeated_bits(p: float, q: float, size: int, times: int) -> Right | None:
    """Bitmaps with probability p of the answer's bit and q of each other: the answer whose bit is set most often.

    With F the distribution function of the count of another bit and f = F(c) - F(c - 1), a count of c wins against all
    others, ties split, with probability (F(c)^k - F(c - 1)^k) / (k f).

    >>> [round(repeated_bits(0.5, 0.25, 2, times).share, 4) for times in (1, 2, 3)]
    [0.625, 0.6875, 0.7305]
    """
    if times > _MOST_REPORTS:
        return None
    right, below = 0.0, 0.0
    for own, other in zip(binomial(times, p), binomial(times, q), strict=True):
        upto = min(below + other, 1.0)
        wins = upto ** (size - 1)
        if size * other > 1e-7:
            wins = (upto**size - below**size) / (size * other)
        right += own * wins
        below = upto
    return Right(min(right, 1.0))


def binomial(times: int, chance: float) -> list[float]:
    """The probabilities of 0 to `times` successes."""
    if chance >= 1:
        return [0.0] * times + [1.0]
    ways, found = 0.0, []
    for count in range(times + 1):
        found.append(math.exp(ways + count * math.log(chance) + (times - count) * math.log1p(-chance)))
        ways += math.log(times - count) - math.log(count + 1) if count < times else 0.0
    return found


# -- at most -------------------------------------------------------------------------------------------


def bound(epsilon: float, size: int, times: int = 1) -> float:
    """The largest share of right guesses among equally likely secrets, for any reports of this epsilon.

    >>> round(bound(math.log(3), 2), 4), round(bound(math.log(3), 2, 3), 4), round(bound(1, 100, 4), 4)
    (0.75, 0.8438, 0.3555)
    """
    most = 1 / (1 + (size - 1) * math.exp(-times * epsilon))
    if size == 2:
        found = repeated_bit(1 / (1 + math.exp(-epsilon)), times)
        return most if found is None else min(most, found.share)
    high = size / (1 + (size - 1) * math.exp(-epsilon))
    low = size * math.exp(-epsilon) / (size - 1 + math.exp(-epsilon))
    share = (1 - low) / (high - low)
    return min(most, supported(share * high, share, size, times).share)


def supported(own: float, share: float, size: int, times: int) -> Right:
    """The same if every report supports the answer with probability `own`, and any answer with `share`.

    All reports that support an answer are equally likely for it, and so are all others. The law Q is that of reports
    under no answer in particular.
    """
    most = 0.0
    for order in _ORDERS:
        ends = own / share, (1 - own) / (1 - share)
        mean = order * math.log(ends[0]) + math.log(share + (1 - share) * (ends[1] / ends[0]) ** order)
        most = min(most, (times * mean - (order - 1) * math.log(size)) / order)
    return Right(math.exp(most), AT_MOST)
