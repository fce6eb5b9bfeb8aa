"""How often somebody who thinks all answers equally likely guesses an answer right, without and with the reports.

Secret     the answer, if answers are listed; for a number, in which half of its range it lies; for a record, the part
           that is easiest to guess; for profiles and places, which of all of them; for text, sets and courses of
           answers over time, one of two that are equally likely
Once       from one report. Exact if a kind has a formula or a small law, else a bound
Always     from all that a device may send, if the answer stays the same. Reports that repeat, or are one stream, reveal
           no more than one. From a kept state no report reveals more than the state. Fresh reports: exact for
           randomized response, bitmaps and one-bit means; for hashes as if they were independent, which simulations
           confirm to one guess in a hundred ("about"); else a bound ("at most")
Bound      for T reports of epsilon each, among k equally likely secrets, the smallest of: 1 / (1 + (k - 1) e^(-T eps));
           for k = 2 the T-fold binary randomized response (Kairouz, Oh and Viswanath 2015); for every order a > 1
           k^(1/a - 1) M^(T/a), where M is the largest mean of (P/Q)^a for a report's law P and the mean law Q of all
           secrets (Sibson's capacity); and (k s)^T / k, for a success s from one report (leakage multiplies). A delta
           is added per report
Browser    `web/pages/guesses.js` computes the same facts by itself, and a test compares the two
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache, singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Integers, Interval, ListedDomain, Records
from deniable.protocols import GRR, HadamardResponse, MeanTable, Memoized, Protocol, PureProtocol, Window
from deniable.protocols.frequency.local_hashing import LocalHashing
from deniable.protocols.frequency.unary import UnaryProtocol
from deniable.protocols.law import ANY, METRIC, PROFILES, STREAM, SUM
from deniable.surveys.survey import Survey
from deniable.words import Word, word

EXACT, ABOUT, AT_MOST = WAYS = ("exact", "about", "bound")
MOST_COUNTED = 64
"""Number of fresh reports up to which the counts of all answers are computed exactly."""
_MOST_REPORTS = 10_000
"""Number of fresh reports up to which a sum over them is computed."""
_STEPS = 50
"""Number of points per half of the range for an integral."""
_MOST_OUTPUTS = 1 << 20
Floats = NDArray[np.float64]
_ORDERS = [1 + 2 ** (power / 2) for power in range(-16, 17)]


class Right(NamedTuple):
    """A share of right guesses."""

    share: float
    how: str = EXACT
    """Whether the share is exact, approximate, or an upper bound."""


class Guessed(NamedTuple):
    """What somebody thinks beforehand, and how often the best guess is right."""

    thinks: Word
    yours: Word
    before: float
    once: Right
    always: Right


def guesses(survey: Survey) -> list[Guessed]:
    """One entry per question.

    >>> from deniable.protocols import OUE
    >>> from deniable.surveys import Question, Survey
    >>> (found,) = guesses(Survey("shop", [Question("product", "Which one?", OUE(1000, epsilon=4))]))
    >>> found.thinks, found.before, round(found.once.share, 4)
    (Word(id='thinks.answers.all', facts={'n': 1000}), 0.001, 0.0278)
    """
    rule = None if survey.terms is None else survey.terms.longitudinal
    times = 1 if rule is None or rule.keeps else rule.epochs
    return [guessed(question.protocol, times, rule is not None and rule.is_two_stage) for question in survey]


@lru_cache(maxsize=256)
def guessed(protocol: Protocol, times: int = 1, stages: bool = False) -> Guessed:
    """One question that is answered by `times` fresh reports, or with `stages` from one kept state."""
    asked: Protocol = getattr(protocol, "inner", protocol) if protocol.law().clear else protocol
    parts = _parts(asked)
    if parts:
        return max((_part(*part, times) for part in parts), key=lambda part: part.always.share)
    thinks, yours, size = _secret(asked)
    once = _right(asked, size, 1, None)
    kept = asked.law().stages if stages else None
    if kept is not None:
        always = Right(bound(float(kept.forever), size), AT_MOST)
    else:
        always = once if times == 1 else _right(asked, size, times, once)
    return Guessed(thinks, yours, 1 / size, once, always)


def _secret(protocol: Protocol) -> tuple[Word, Word, int]:
    """What is thought beforehand, what is guessed, and among how many."""
    relation, domain, yours = protocol.guarantee.relation, protocol.domain, word("guessed.yours")
    if relation == STREAM:
        return word("thinks.courses"), yours, 2
    if isinstance(domain, Records):
        sizes = [column.size if isinstance(column, ListedDomain) else 2 for _, column in domain.columns]
        if relation == PROFILES:
            return either("thinks.profiles", sizes[0]), yours, sizes[0]
        if relation == METRIC:
            return either("thinks.cells", math.prod(sizes)), yours, math.prod(sizes)
        return word("thinks.record"), word("guessed.easiest"), min(sizes)
    if isinstance(domain, Interval) or (isinstance(domain, Integers) and protocol.worth().read != "shares"):
        return word("thinks.halves"), yours, 2
    if isinstance(domain, ListedDomain):
        return either("thinks.answers", domain.size), yours, domain.size
    return word("thinks.two"), yours, 2


def either(id: str, n: int) -> Word:
    """The entry for two of something, which are "both", or for all of them."""
    return word(f"{id}.both") if n == 2 else word(f"{id}.all", n=n)


def _parts(protocol: Protocol) -> list[tuple[str, float, Protocol]]:
    """The columns of a record, if chance picks the column that a report is about: name, chance and protocol."""
    choice = protocol.law().choice
    if choice is None or not isinstance(protocol.domain, Records) or protocol.law().several_parts:
        return []
    asked = [(name, part.domain) for name, (part, _) in protocol.worth(1).parts.items()]
    if asked != list(protocol.domain.columns):
        return []
    each = zip(asked, choice.chances, choice.members, strict=True)
    return [(name, float(chance), member) for (name, _), chance, member in each]


def _part(name: str, chance: float, protocol: Protocol, times: int) -> Guessed:
    """A part that only some of the reports are about: the other reports reveal nothing about it."""
    each = [guessed(protocol, number) for number in range(1, min(times, MOST_COUNTED) + 1)]
    found = each[0]
    once = found.once._replace(share=chance * found.once.share + (1 - chance) * found.before)
    if times == 1:
        always = once
    elif times > MOST_COUNTED:
        always = Right(guessed(protocol, times).always.share, AT_MOST)
    else:
        known = [Right(found.before), *(one.always for one in each)]
        weights = _binomial(times, chance)
        share = sum(weight * right.share for weight, right in zip(weights, known, strict=True))
        always = Right(share, roughest(known))
    return Guessed(found.thinks, word("guessed.part", name=name), found.before, once, always)


def roughest(found: Iterable[Right]) -> str:
    """How precise a figure is that is computed from these."""
    return WAYS[max(WAYS.index(one.how) for one in found)]


def _right(protocol: Protocol, size: int, times: int, once: Right | None) -> Right:
    known = _known(protocol, times)
    if known is not None and known.how != AT_MOST:
        return known
    promised, most = protocol.guarantee, 1.0 if known is None else known.share
    if promised.relation in (ANY, SUM, STREAM):
        most = min(most, bound(float(protocol.epsilon), size, times) + times * float(promised.delta))
    if once is not None and times * math.log(size * once.share) < math.log(size):
        most = min(most, math.exp(times * math.log(size * once.share)) / size)
    return Right(most, AT_MOST)


# -- by the law of a kind ------------------------------------------------------------------------------


@singledispatch
def _known(protocol: Protocol, times: int) -> Right | None:
    """How often the best guess from `times` fresh reports of one answer is right; None if no formula is known."""
    share = protocol.worth().guess if times == 1 and protocol.traits.fresh else None
    return None if share is None else Right(share)


@_known.register
def _(protocol: Memoized, times: int) -> Right | None:
    return None


@_known.register
def _(protocol: GRR, times: int) -> Right | None:
    p, size = float(protocol.p), protocol.domain.size
    if size == 2:
        return repeated_bit(p, times)
    return repeated_response(p, size, times) if times <= MOST_COUNTED else supported(p, 1 / size, size, times)


@_known.register
def _(protocol: UnaryProtocol, times: int) -> Right | None:
    return repeated_bits(float(protocol.p), float(protocol.q), protocol.domain.size, times)


@_known.register
def _(protocol: LocalHashing, times: int) -> Right | None:
    found = repeated_bits(float(protocol.p), float(protocol.q), protocol.domain.size, times)
    return Right(protocol.worth().guess) if times == 1 else found and found._replace(how=ABOUT)


@_known.register
def _(protocol: PureProtocol, times: int) -> Right | None:
    if times == 1:
        return None if protocol.worth().guess is None else Right(protocol.worth().guess)
    p, size = float(protocol.p), protocol.domain.size
    return supported(p, (p + (size - 1) * float(protocol.q)) / size, size, times)


@_known.register
def _(protocol: HadamardResponse, times: int) -> Right | None:
    if times == 1:
        return Right(protocol.worth().guess)
    other = 1 / (2 * protocol.blocks)  # how often an answer is supported by any output
    keep = float(protocol.response.keep)
    return supported(keep + (1 - keep) * other, other, protocol.domain.size, times)


@_known.register
def _(protocol: Window, times: int) -> Right | None:
    if not isinstance(protocol.domain, Interval) or protocol.outputs > _MOST_OUTPUTS:
        return None
    if times > 1:
        return repeated_end(float(protocol.keep.value), times) if protocol.outputs == 2 else None
    low, high = half_weights(protocol.positions)
    sums = np.concatenate([[0.0], np.cumsum(low - high), np.full(protocol.width - 1, np.sum(low - high))])
    inside = sums[1:] - np.concatenate([np.zeros(protocol.width), sums[1 : protocol.positions]])
    return Right(0.5 + float(protocol.keep.value) / (4 * protocol.width) * float(np.abs(inside).sum()))


@_known.register
def _(protocol: MeanTable, times: int) -> Right | None:
    if times > 1 or not isinstance(protocol.domain, Interval):
        return None
    low, high = half_weights(protocol.positions)
    return Right(float(np.maximum(low @ protocol.matrix.rows, high @ protocol.matrix.rows).sum()) / 2)


def half_weights(positions: int) -> tuple[Floats, Floats]:
    """How often random rounding sends a number to each position, for a number in the lower half and in the upper half.

    >>> half_weights(2)[0].tolist(), half_weights(3)[1].tolist()
    ([0.75, 0.25], [0.0, 0.5, 0.5])
    """
    half = (positions - 1) / 2
    places = np.arange(positions, dtype=np.float64)

    def below(ends: Floats) -> Floats:
        """The integral of a hat between -1 and 1 up to these ends."""
        up, down = np.clip(ends + 1, 0, 1), np.clip(1 - ends, 0, 1)
        return np.where(ends <= 0, up**2 / 2, 1 - down**2 / 2)

    low = (below(half - places) - below(-places)) / half
    return low, low[::-1]


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
    for count, chance in enumerate(_binomial(times, p)):
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
    chances = _binomial(times, p)
    return Right(sum(max(chances[i], chances[times - i]) for i in range(times + 1)) / 2)


def repeated_end(keep: float, times: int) -> Right | None:
    """One-bit means: in which half a number lies, from bits that are 1 with a probability linear in the number."""
    if times > _MOST_REPORTS // _STEPS:
        return None
    low = np.zeros(times + 1)
    for step in range(_STEPS):
        number = (step + 0.5) / (2 * _STEPS)
        low += np.array(_binomial(times, keep * number + (1 - keep) / 2)) / _STEPS
    return Right(float(np.maximum(low, low[::-1]).sum()) / 2)


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
    for own, other in zip(_binomial(times, p), _binomial(times, q), strict=True):
        upto = min(below + other, 1.0)
        wins = upto ** (size - 1)
        if size * other > 1e-7:
            wins = (upto**size - below**size) / (size * other)
        right += own * wins
        below = upto
    return Right(min(right, 1.0))


def _binomial(times: int, chance: float) -> list[float]:
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
