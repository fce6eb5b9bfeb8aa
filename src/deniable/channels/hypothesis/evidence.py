"""How often a hypothesis would bring as much evidence against itself as was observed: exactly, or between bounds.

Evidence   against H_h: the largest likelihood ratio P_g / P_h of the reports over all hypotheses g, itself included:
           none, a ratio of 1, where H_h is the likeliest
P-value    the probability under H_h of at least that much evidence; 1 for the likeliest. Ties count: equal ratios are
           found by comparing exponents over a base of coprime integers, never by comparing rounded logarithms
Fit        of the likeliest: the probability under it that another one comes at least as close as one has. It is small
           where the truth lies between the hypotheses
Exact      few types of n reports (a type says how often each output occurred): a fraction
Binomial   two different ratios: sums of integers, rounded down and up, relative to the likeliest count
Types      up to 300,000 types: floats, widened by a bound on all of their rounding errors
Otherwise  per pair of hypotheses the bracket of `_bracket.tail_bracket`. The evidence is the largest of several ratios,
           so the p-value lies between the largest and the sum of the pairs' p-values
Rounding   what floats have found is rounded outwards to a few digits: processors that differ in the last bits give the
           same numbers, unless one of them happens to lie on the edge
Anytime    the mean of the ratios P_g / P_h is a martingale under H_h. It ever exceeds 1/a with probability a at most
           (Ville), so its inverse is a p-value that holds however often one looks; it is larger than the other
Source     Neyman and Pearson 1933; Ville 1939
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.channels.hypothesis._bracket import EPS, read_pair, tail_bracket
from deniable.channels.hypothesis.ratio_test import count_types

Weights = Sequence[int]
Bounds = tuple[Fraction, Fraction]
"""A number that is at least the first and at most the second."""

NONE, ALL = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))

FEW_REPORTS, FEW_TYPES = 200, 2_000
"""Up to here the p-value is a fraction."""
MANY_TYPES = 300_000
_DIGITS = 80
# Sums of at most 10^12 logarithms with 80 digits are known to 60: within this distance two may be equal.
_NEAR = Decimal("1e-40")
_BITS = 256


@dataclass(frozen=True)
class _Step:
    """What one report adds to the logarithm of a likelihood ratio; the logarithm is None for a ratio of zero."""

    log: Decimal | None
    exponents: tuple[int, ...]
    """Of the ratio, over the base of coprime integers."""


@dataclass(frozen=True)
class _Columns:
    """The law of one hypothesis on its possible outputs, and the steps towards each rival; like outputs are merged."""

    weights: list[int]
    steps: list[tuple[_Step, ...]]
    """[rival][output]."""
    total: int

    @property
    def shares(self) -> list[float]:
        return [w / self.total for w in self.weights]


class Evidence:
    """Of counts of reports, about hypotheses whose laws of one report are integer weights, all with one sum.

    >>> Evidence([[3, 1], [1, 3]], [1, 4]).p_value(0)       # 4 or 5 of 5 of an output of probability 1/4
    (Fraction(1, 64), Fraction(1, 64))
    """

    def __init__(self, laws: Sequence[Weights], counts: Sequence[int]) -> None:
        self.laws, self.counts, self.n = laws, counts, sum(counts)
        self._base = _coprime_base({weight for law in laws for weight in law if weight})
        self._powers = {weight: _exponents(weight, self._base) for law in laws for weight in law if weight}
        with localcontext(prec=_DIGITS):
            self._logs = {weight: Decimal(weight).ln() for weight in self._powers}
            self.log_likelihood = [self._log_likelihood(law) for law in laws]
            """Of the counts under each law, up to one constant; None where they are impossible."""

    def _log_likelihood(self, law: Weights) -> Decimal | None:
        seen = [(count, weight) for count, weight in zip(self.counts, law, strict=True) if count]
        if not all(weight for _, weight in seen):
            return None
        return sum((count * self._logs[weight] for count, weight in seen), Decimal(0))

    # -- what is said beside the p-values ----------------------------------------------------------

    def posterior(self) -> list[float]:
        """The probability of each hypothesis, all being equally likely beforehand; 0 for all if none is possible."""
        found = [log for log in self.log_likelihood if log is not None]
        if not found:
            return [0.0] * len(self.laws)
        best = max(found)
        shares = [0.0 if log is None else math.exp(log - best) for log in self.log_likelihood]
        whole = math.fsum(shares)
        return [share / whole for share in shares]

    def anytime(self, place: int) -> float:
        """A p-value that holds however often one looks, up to rounding."""
        own = self.log_likelihood[place]
        if own is None:
            return 0.0
        ratios = [log - own for rival, log in enumerate(self.log_likelihood) if rival != place and log is not None]
        if not ratios:
            return 1.0
        top = max(ratios)
        mean = math.fsum(math.exp(ratio - top) for ratio in ratios) / (len(self.laws) - 1)
        return min(1.0, math.exp(-min(top, Decimal(745))) / mean) if top > -700 else 1.0

    # -- p-values ----------------------------------------------------------------------------------

    def p_value(self, place: int) -> Bounds:
        """The probability under hypothesis `place` of at least as much evidence against it as was observed."""
        return self._probability(place, 1)

    def fit(self, place: int) -> Bounds:
        """The probability under hypothesis `place` that another one is at least as likely, relative to it, as now."""
        return self._probability(place, 0)

    def _probability(self, place: int, least: int) -> Bounds:
        """That the best rival has at least its observed ratio; 1 where that is not above `least`."""
        if self.log_likelihood[place] is None:
            return NONE
        rivals = [other for other in range(len(self.laws)) if other != place]
        known = [(log, other) for other in rivals if (log := self.log_likelihood[other]) is not None]
        if not known:
            return ALL
        with localcontext(prec=_DIGITS):
            strongest = max(known)[1]
            steps = self._steps(place, strongest)
            seen = [(count, step) for count, step in zip(self.counts, steps, strict=True) if count]
            bar = _sum(seen, len(self._base))
            if least and _reaches(_Step(Decimal(0), (0,) * len(self._base)), bar) is not False:
                return ALL
            return self._tail(place, rivals, bar)

    def _steps(self, place: int, rival: int) -> list[_Step]:
        """Towards the rival, per output; outputs that the hypothesis excludes have none that count."""
        nothing = _Step(None, (0,) * len(self._base))
        steps = []
        for own, other in zip(self.laws[place], self.laws[rival], strict=True):
            if not own or not other:
                steps.append(nothing)
                continue
            exponents = tuple(a - b for a, b in zip(self._powers[other], self._powers[own], strict=True))
            # Equal ratios have equal exponents; their logarithms may differ in the last digit.
            steps.append(_Step(self._logs[other] - self._logs[own], exponents))
        return steps

    def _columns(self, place: int, rivals: Sequence[int]) -> _Columns:
        law = self.laws[place]
        steps = [self._steps(place, rival) for rival in rivals]
        merged: dict[Any, tuple[int, tuple[_Step, ...]]] = {}
        for output, weight in enumerate(law):
            if weight:
                own = tuple(one[output] for one in steps)
                key = tuple((step.log is None, step.exponents) for step in own)
                before, kept = merged.get(key, (0, own))
                merged[key] = before + weight, kept
        weights = [weight for weight, _ in merged.values()]
        return _Columns(weights, list(zip(*(own for _, own in merged.values()), strict=True)), sum(law))

    def _tail(self, place: int, rivals: Sequence[int], bar: _Step) -> Bounds:
        columns = self._columns(place, rivals)
        outputs = len(columns.weights)
        types = count_types(self.n, outputs)
        if types <= FEW_TYPES and self.n <= FEW_REPORTS:
            return _exact(columns, self.n, bar)
        if len(rivals) == 1 and outputs <= 2:
            return _binomial(columns, self.n, bar)
        if types <= MANY_TYPES:
            return _by_types(columns, self.n, bar)
        if len(rivals) == 1:
            return self._bracket(place, rivals[0], bar)
        lows, highs = zip(*(self._tail(place, [rival], bar) for rival in rivals), strict=True)
        return max(lows), min(sum(highs), Fraction(1))

    def _bracket(self, place: int, rival: int, bar: _Step) -> Bounds:
        if bar.log is None:
            return ALL
        total = sum(self.laws[place])
        pair = read_pair(*([w / total for w in self.laws[one]] for one in (place, rival)))
        return _outwards(*tail_bracket(pair, self.n, -float(bar.log)), 6)


def _outwards(low: float, high: float, digits: int) -> Bounds:
    """Bounds with so many digits around two floats."""
    down = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(max(low, 0.0))
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(high)
    return Fraction(down), min(Fraction(up), Fraction(1))


def _sum(counted: Sequence[tuple[int, _Step]], size: int) -> _Step:
    """The step of several reports."""
    if any(step.log is None for _, step in counted):
        return _Step(None, (0,) * size)
    log = sum((count * step.log for count, step in counted if step.log is not None), Decimal(0))
    exponents = tuple(sum(count * step.exponents[i] for count, step in counted) for i in range(size))
    return _Step(log, exponents)


def _reaches(step: _Step, bar: _Step) -> bool | None:
    """Whether one ratio is at least another; None where they differ in no digit that is known, and are not equal."""
    if bar.log is None:
        return True
    if step.log is None:
        return False
    if step.exponents == bar.exponents:
        return True
    apart = step.log - bar.log
    return None if abs(apart) < _NEAR else apart > 0


# -- few types: a fraction --------------------------------------------------------------------------------


def _exact(columns: _Columns, n: int, bar: _Step) -> Bounds:
    size = len(bar.exponents)
    sure, open_ = 0, 0
    for counts in _compositions(n, len(columns.weights)):
        verdicts = []
        for steps in columns.steps:
            seen = [(count, step) for count, step in zip(counts, steps, strict=True) if count]
            verdicts.append(_reaches(_sum(seen, size), bar))
        if True not in verdicts and None not in verdicts:
            continue
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        weight = ways * math.prod(w**c for w, c in zip(columns.weights, counts, strict=True))
        if True in verdicts:
            sure += weight
        else:
            open_ += weight
    whole = columns.total**n
    low = Fraction(sure, whole)
    return low, low if not open_ else Fraction(sure + open_, whole)


def _compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as a sum of so many numbers, in order."""
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in _compositions(n - first, parts - 1):
            yield first, *rest


# -- two ratios: integers rounded down and up -------------------------------------------------------------


def _binomial(columns: _Columns, n: int, bar: _Step) -> Bounds:
    (steps,) = columns.steps
    if len(steps) == 1:
        reached = _reaches(_sum([(n, steps[0])], len(bar.exponents)), bar)
        return (Fraction(int(reached is True)), Fraction(int(reached is not False)))
    for_rival = max(range(2), key=lambda i: (steps[i].log is not None, steps[i].log or Decimal(0)))
    least, most = _least_count(steps[for_rival], steps[1 - for_rival], n, bar)
    a, b = columns.weights[for_rival], columns.weights[1 - for_rival]
    high = _upper_tail(n, a, b, least)[1]
    return _upper_tail(n, a, b, most)[0], high


def _least_count(up: _Step, down: _Step, n: int, bar: _Step) -> tuple[int, int]:
    """The least number of reports with step `up` that reaches the bar: from below and from above."""
    if bar.log is None:
        return 0, 0
    size = len(bar.exponents)
    if up.log is None or down.log is None:
        reached = _reaches(_sum([(n, up)], size), bar)
        return n + (reached is False), n + (reached is not True)
    guess = (bar.log - n * down.log) / (up.log - down.log)
    middle = int(guess.to_integral_value())
    first = last = n + 1
    for count in (middle + 1, middle, middle - 1):
        if not 0 <= count <= n:
            continue
        reached = _reaches(_sum([(count, up), (n - count, down)], size), bar)
        if reached is not False:
            first = count
        if reached is True:
            last = count
    if middle - 1 > n:
        return n + 1, n + 1
    if middle + 1 < 0:
        return 0, 0
    return first, last


def _upper_tail(n: int, a: int, b: int, k: int) -> Bounds:
    """P(K >= k) for K counting successes of probability a / (a + b), to about 60 digits.

    Weights of the counts relative to the likeliest, in integers: rounded down they are below the truth, rounded up
    above. They are followed from the likeliest count to either side until they vanish.
    """
    if k <= 0:
        return ALL
    if k > n:
        return NONE
    mode = min(n, (n + 1) * a // (a + b))
    total_low = total_high = tail_low = tail_high = 0
    for side in (1, -1):
        count, low, high = mode, 1 << _BITS, 1 << _BITS
        while True:
            if side > 0 or count != mode:
                total_low, total_high = total_low + low, total_high + high
                if count >= k:
                    tail_low, tail_high = tail_low + low, tail_high + high
            if count == (n if side > 0 else 0):
                break
            top, bottom = ((n - count) * a, (count + 1) * b) if side > 0 else (count * b, (n - count + 1) * a)
            low, high = low * top // bottom, -(-high * top // bottom)
            count += side
            if not low and top < bottom:
                # The rest falls faster than this geometric series.
                rest = -(-high * bottom // (bottom - top))
                total_high += rest
                if side > 0 or count >= k:
                    tail_high += rest
                break
    return Fraction(tail_low, total_high), min(Fraction(tail_high, total_low), Fraction(1))


# -- many types: floats, widened --------------------------------------------------------------------------


def _by_types(columns: _Columns, n: int, bar: _Step) -> Bounds:
    from scipy.special import gammaln

    if bar.log is None:
        return ALL
    counts = _all_counts(n, len(columns.weights))
    log_shares = np.log(columns.shares)
    factorials = gammaln(np.arange(n + 1) + 1.0)
    terms = len(columns.weights) + 2
    mass = np.exp(factorials[n] - factorials[counts].sum(axis=1) + counts @ log_shares)
    slip = 32 * EPS * terms * (float(factorials[n]) + n * float(np.abs(log_shares).max()) + 32)
    sure = np.zeros(len(counts), dtype=np.bool_)
    maybe = np.zeros(len(counts), dtype=np.bool_)
    goal, exponents = float(bar.log), np.array(bar.exponents, dtype=np.int64)
    for steps in columns.steps:
        allowed = ~(counts[:, [step.log is None for step in steps]] > 0).any(axis=1)
        logs = np.array([0.0 if step.log is None else float(step.log) for step in steps])
        apart = counts @ logs - goal
        blur = 16 * EPS * terms * (n * float(np.abs(logs).max()) + abs(goal))
        near = allowed & (np.abs(apart) <= blur)
        sure |= allowed & (apart > blur)
        ties = np.zeros(len(counts), dtype=np.bool_)
        ties[near] = (counts[near] @ np.array([step.exponents for step in steps]) == exponents).all(axis=1)
        sure |= ties
        maybe |= near
    low = float(mass[sure].sum()) * (1 - slip)
    high = float(mass[sure | maybe].sum()) * (1 + slip)
    return _outwards(low, high, 9)


def _all_counts(n: int, parts: int) -> NDArray[np.int64]:
    """All types of n reports, one per row."""
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([n])
    for _ in range(parts - 1):
        parent = np.repeat(np.arange(left.size), left + 1)
        starts = np.cumsum(left + 1) - (left + 1)
        chosen = np.arange(parent.size) - starts[parent]
        rows, left = np.column_stack([rows[parent], chosen]), left[parent] - chosen
    return np.column_stack([rows, left])


# -- exact equality of products of powers -----------------------------------------------------------------


def _coprime_base(numbers: set[int]) -> list[int]:
    """Coprime integers above 1 of which each of these numbers is a product of powers.

    >>> sorted(_coprime_base({12, 18, 5}))
    [2, 3, 5]
    """
    base: list[int] = []
    todo = sorted(numbers)
    while todo:
        number = todo.pop()
        if number == 1:
            continue
        for place, known in enumerate(base):
            common = math.gcd(number, known)
            if common > 1:
                del base[place]
                todo += [common, number // common, known // common]
                break
        else:
            base.append(number)
    return base


def _exponents(number: int, base: Sequence[int]) -> tuple[int, ...]:
    found = []
    for factor in base:
        power = 0
        while number % factor == 0:
            number, power = number // factor, power + 1
        found.append(power)
    return tuple(found)
