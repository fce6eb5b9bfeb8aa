"""Decide which hypothesis the reports favour, with a bound on the probability of a wrong verdict.

Rejected   a hypothesis with a p-value of at most `level`. The p-value is the probability, if the hypothesis were true,
           that the best other one has at least the likelihood ratio to it that was observed (see `Evidence`); the
           likeliest hypothesis has p-value 1
Verdict    the likeliest hypothesis, if all others are rejected; else "undecided". "none" if the reports are impossible
           under every hypothesis
Promise    if one of the hypotheses is true, it is rejected with probability at most `level`, however many there are.
           So a wrong hypothesis is favoured with probability at most `level`
Fit        a verdict compares the hypotheses with each other; the truth may be none of them. If the likeliest one
           would hardly ever lead by so small a margin (p-value of the fit below 0.001), a note warns about it
One look   this holds for a number of reports fixed beforehand. To look repeatedly and stop at a decision, compare
           `anytime` with the level instead
Floats     p-values are fractions or proven brackets with few digits; the upper end is compared with the level.
           Two processors can differ only if many reports lie, to 10 digits, on the edge between two such numbers
More       an undecided study states how many people would decide nine times in ten: between the two remaining
           hypotheses that are the hardest to distinguish

P-values: the probability of as much evidence against a true hypothesis as was observed, exactly or between bounds.

Evidence   against H_h: the largest likelihood ratio P_g / P_h of the reports over all hypotheses g, including h: a
           ratio of 1 (no evidence) if H_h is the likeliest
P-value    the probability under H_h of at least that much evidence; 1 for the likeliest. Ties count: equal ratios are
           found by comparing exponents over a base of coprime integers, never by comparing rounded logarithms
Fit        for the likeliest: the probability under it that another one comes at least as close as observed. It is
           small if the truth lies between the hypotheses
Exact      few types of n reports (a type counts how often each output occurred): a fraction
Binomial   two different ratios: sums of integers, rounded down and up, relative to the likeliest count
Types      up to 300,000 types: floats, widened by a bound on all of their rounding errors
Otherwise  per pair of hypotheses the bracket of `_bracket.tail_bracket`. The evidence is the largest of several ratios,
           so the p-value lies between the largest and the sum of the pairs' p-values
Rounding   results from floats are rounded outwards to a few digits: processors that differ in the last bits give the
           same numbers, unless a result happens to lie on the edge
Anytime    the mean of the ratios P_g / P_h is a martingale under H_h. It ever exceeds 1/a with probability at most a
           (Ville), so its inverse is a p-value that holds for any number of looks; it is larger than the other
Source     Neyman and Pearson 1933; Ville 1939
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.hypothesis._bracket import EPS, read_pair, tail_bracket
from deniable.channels.hypothesis.exponents import chernoff_information
from deniable.channels.hypothesis.ratio_test import MOST_REPORTS, count_types
from deniable.channels.hypothesis.sample_size import sample_size
from deniable.channels.laws import Laws, read_laws
from deniable.errors import MismatchError, NumberError, ShapeError
from deniable.labels import Label, label_spec, shown
from deniable.results import Floats, Result, Rows
from deniable.results.rows import Drawing, View
from deniable.words import Fact, Figure, Joined, catalogue, said, word

LEVEL = Fraction(1, 20)
MISSED = 0.1
"""Probability that the number of people given for an undecided study is not enough."""

POOR_FIT = Fraction(1, 1000)
ONE_LOOK = (
    "the p-values are for one look, after a number of reports that was fixed beforehand; only those for any number of "
    "looks hold for somebody who looks again and again"
)


def decide(
    channel: Channel,
    laws: Laws | Mapping[Any, Any] | Sequence[Any],
    counts: Sequence[Any],
    level: exact.Number = LEVEL,
) -> Decision:
    """Decide which of several laws of the answers the counts of the channel's outputs favour.

    Args:
        channel: The channel that the answers went through.
        laws: {name: law} or a list of laws; a law is a list of probabilities or {input: probability}.
        counts: One integer per output.
        level: A hypothesis is rejected if its p-value is at most this.

    Returns:
        The verdict, with a p-value per law.

    Raises:
        ShapeError: Laws or counts do not fit the channel.
        NumberError: The level is not between 0 and 1.

    >>> from deniable.channels import randomized_response
    >>> coin = randomized_response(2, "1.1")
    >>> laws = {"rare": [0.9, 0.1], "common": [0.5, 0.5]}
    >>> print(decide(coin, laws, [66, 34]).verdict)
    the reports favour rare: common has a p-value of at most 0.0009 (level 0.05)
    >>> print(decide(coin, laws, [17, 13]).verdict)
    undecided: rare and common are both possible at level 0.05; about 21 more people would decide between them
    """
    found = laws if isinstance(laws, Laws) else read_laws(laws)
    if found.size != len(channel.inputs):
        raise ShapeError(f"the laws have {found.size} answers, the channel {len(channel.inputs)}")
    limit = exact.fraction(level, "the level")
    if not 0 < limit < 1:
        raise NumberError(f"the level lies strictly between 0 and 1, not at {exact.shown(limit)}")
    seen = _counts(counts, len(channel.outputs))
    reports = report_laws(channel, found)
    evidence, places = Evidence(reports, seen), range(found.count)
    bounds = tuple(evidence.p_value(place) for place in places)
    shares = np.array(evidence.posterior())
    anytime = np.array([evidence.anytime(place) for place in places])
    fit = evidence.fit(int(np.argmax(shares)))
    exactly = all(low == high for low, high in bounds)
    method = f"likelihood ratio, {'exact' if exactly else 'proven bounds'}, level {exact.shown(limit)}"
    return Decision(found.names, sum(seen), limit, bounds, shares, anytime, fit, reports, method)


def report_laws(channel: Channel, laws: Laws) -> tuple[tuple[int, ...], ...]:
    """The law of one report under each hypothesis, as integers with the same sum."""
    columns = [[int(entry) for entry in column] for column in channel.numerators.T]
    whole = math.lcm(*(sum(law) for law in laws.weights))
    pushed = [
        [sum(w * entry for w, entry in zip(law, column, strict=True)) * (whole // sum(law)) for column in columns]
        for law in laws.weights
    ]
    common = math.gcd(*(entry for law in pushed for entry in law))
    return tuple(tuple(entry // common for entry in law) for law in pushed)


def _counts(given: Sequence[Any], outputs: int) -> list[int]:
    try:
        counts = [exact.whole(count, "a count of reports") for count in given]
    except TypeError:
        raise ShapeError("the counts of reports are a list with one whole number per output") from None
    if len(counts) != outputs:
        raise ShapeError(f"there are {len(counts)} counts for the {outputs} outputs of the channel")
    if min(counts) < 0 or sum(counts) > MOST_REPORTS:
        raise NumberError("counts of reports are not negative, and at most 10^12 in all")
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Result):
    """A verdict about hypotheses: for each a p-value, its posterior (equal priors) and whether it is rejected.

    Args:
        names: The hypotheses.
        n: Number of reports.
        level: A hypothesis is rejected if its p-value is at most this.
        bounds: Each p-value lies between these two fractions, which are equal if it is known exactly.
        posterior: The probability of each hypothesis, if one of them is true and all are equally likely beforehand.
        anytime: P-values that hold for any number of looks.
        fit: Probability that the likeliest hypothesis, if true, leads the next one by so small a margin.
        reports: The law of one report under each hypothesis, as integers with the same sum.
        method: How the p-values were computed.
        protocol: Name of the protocol behind the reports.
    """

    kind: ClassVar[str] = "decision"
    heading: ClassVar[str] = "p-value"

    names: tuple[Label, ...]
    n: int
    level: Fraction
    bounds: tuple[Bounds, ...]
    posterior: Floats
    anytime: Floats
    fit: Bounds
    reports: tuple[tuple[int, ...], ...]
    method: str
    protocol: str = "channel"

    @property
    def p_values(self) -> list[float]:
        """The upper ends of the p-values, rounded up."""
        return [_ceil(high) for _, high in self.bounds]

    @property
    def _left(self) -> list[int]:
        return [place for place, (_, high) in enumerate(self.bounds) if high > self.level]

    @property
    def remaining(self) -> tuple[Label, ...]:
        """The hypotheses that are not rejected."""
        return tuple(self.names[place] for place in self._left)

    @property
    def favoured(self) -> Label | None:
        """The remaining hypothesis, if there is exactly one."""
        return self.remaining[0] if len(self.remaining) == 1 else None

    @property
    def outcome(self) -> str:
        """ "favours", "undecided" or "none"."""
        return {0: "none", 1: "favours"}.get(len(self.remaining), "undecided")

    @cached_property
    def people(self) -> int | None:
        """About how many people decide between the remaining hypotheses nine times in ten; None if no number does."""
        left = [self.reports[place] for place in self._left]
        if len(left) < 2:
            return self.n
        total = sum(left[0])
        pairs = [tuple(tuple(w / total for w in law) for law in pair) for pair in combinations(left, 2)]
        closest = min(pairs, key=lambda pair: chernoff_information(*pair).value)
        level = float(self.level) / (len(self.names) - 1)
        needs = [_people(one, other, level) for one, other in (closest, closest[::-1])]
        return None if None in needs else max(need for need in needs if need is not None)

    @property
    def more(self) -> int | None:
        """Approximate number of additional people for a decision; None if no number is enough."""
        return None if self.people is None else max(0, self.people - self.n)

    @cached_property
    def verdict(self) -> str:
        """The decision in one sentence."""
        level = Figure(exact.shown(self.level), False)
        if self.favoured is not None:
            others = [place for place in range(len(self.names)) if place not in self._left]
            p = _at_most(max(self.bounds[place][1] for place in others))
            best = _called(self.favoured)
            if len(others) > 1:
                return said("result.favours.all", best=best, p=p, level=level)
            return said("result.favours", best=best, other=_called(self.names[others[0]]), p=p, level=level)
        if not self.remaining:
            return said("result.impossible")
        names = Joined([_called(name) for name in self.remaining])
        number = "both" if len(self.remaining) == 2 else "all"
        possible, them = word(f"result.possible.{number}", names=names, level=level), word(f"result.them.{number}")
        if self.more is None:
            return said("result.undecided.never", possible=possible)
        if self.more == 0:
            return said("result.undecided.enough", possible=possible, them=them)
        return said("result.undecided", possible=possible, n=self.more, them=them)

    @property
    def notes(self) -> list[str]:
        """The verdict, and caveats about it."""
        doubt = [] if self.doubt is None else [self.doubt]
        return [self.verdict, *doubt, *([ONE_LOOK] if self.n else [])]

    @property
    def doubt(self) -> str | None:
        """Why none of the hypotheses may be true, if there is a reason."""
        if self.fit[1] >= POOR_FIT or not self.remaining:
            return None
        best = _called(self.names[int(np.argmax(self.posterior))])
        return said("result.doubt", best=best, p=_at_most(self.fit[1]))

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        """The p-values with their bounds; a decision has no confidence intervals, and its arguments have no effect."""
        low, value = (np.array([_floor(bound[0]) for bound in self.bounds]), np.array(self.p_values))
        rejected = np.array([float(high <= self.level) for _, high in self.bounds])
        more = {"posterior": self.posterior, "anytime": self.anytime, "rejected": rejected}
        return Rows(self.names, value, np.zeros(len(self.names)), low, value, "", float(self.level), more=more)

    def drawings(self, view: View, rows: Rows, further: bool = True) -> list[Drawing]:
        return [Drawing("hypotheses", "points", rows, self.heading)]

    def choice(self) -> dict[str, Any]:
        favoured = None if self.favoured is None else label_spec(self.favoured)
        numbers = zip(self.names, self.p_values, self.posterior.tolist(), self.anytime.tolist(), strict=True)
        return {
            "outcome": self.outcome,
            "favoured": favoured,
            "remaining": [label_spec(name) for name in self.remaining],
            "level": float(self.level),
            "verdict": self.verdict,
            "fit": _ceil(self.fit[1]),
            "doubt": self.doubt,
            "more": self.more if self.outcome == "undecided" else None,
            "hypotheses": [(*row, bound[1] <= self.level) for row, bound in zip(numbers, self.bounds, strict=True)],
        }

    def repeated(self, noise: float, people: float) -> Decision:
        if noise > 1 or people > 1:
            raise MismatchError("a decision needs reports of different people: decide each epoch by itself")
        return self

    def __repr__(self) -> str:
        return f"<Decision from {self.n} reports: {self.verdict}>"


@lru_cache(maxsize=256)
def _people(one: tuple[float, ...], other: tuple[float, ...], level: float) -> int | None:
    """Number of reports that rejects `one` nine times in ten when `other` is true."""
    try:
        return sample_size(one, other, level, MISSED).n
    except NumberError:
        return None


def _ceil(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _floor(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def _called(name: Label) -> str:
    """A hypothesis in a sentence: a name of several words is quoted."""
    words = shown(name)
    return words if words.isalnum() else f'"{words}"'


def p_text(largest: Fraction) -> str:
    """An upper end for people, rounded up to two digits."""
    return catalogue().text(_at_most(largest))


def _at_most(largest: Fraction) -> Fact:
    if largest < Fraction(1, 10**15):
        return word("result.p.less", p="1e-15")
    unit = Fraction(10) ** (math.floor(math.log10(largest)) - 1)
    return word("result.p.most", p=Figure(f"{float(math.ceil(largest / unit) * unit):.2g}", False))


# -- the evidence against a hypothesis ----------------------------------------------------------------


Weights = Sequence[int]
Bounds = tuple[Fraction, Fraction]
"""Lower and upper bound of a number."""

NONE, ALL = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))

FEW_REPORTS, FEW_TYPES = 200, 2_000
"""Up to these limits the p-value is a fraction."""
MANY_TYPES = 300_000
_DIGITS = 80
# Sums of at most 10^12 logarithms with 80 digits are accurate to 60: closer than this, two may be equal.
_NEAR = Decimal("1e-40")
_BITS = 256


@dataclass(frozen=True)
class _Step:
    """What one report adds to the logarithm of a likelihood ratio; the logarithm is None for a ratio of zero."""

    log: Decimal | None
    exponents: tuple[int, ...]
    """The exponents of the ratio, over the base of coprime integers."""


@dataclass(frozen=True)
class _Columns:
    """The law of one hypothesis on its possible outputs, and the steps towards each rival; equal outputs are merged."""

    weights: list[int]
    steps: list[tuple[_Step, ...]]
    """[rival][output]."""
    total: int

    @property
    def shares(self) -> list[float]:
        return [w / self.total for w in self.weights]


class Evidence:
    """Evidence in counts of reports about hypotheses, whose laws of one report are integer weights with the same sum.

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
            """Log-likelihood of the counts under each law, up to one constant; None if they are impossible."""

    def _log_likelihood(self, law: Weights) -> Decimal | None:
        seen = [(count, weight) for count, weight in zip(self.counts, law, strict=True) if count]
        if not all(weight for _, weight in seen):
            return None
        return sum((count * self._logs[weight] for count, weight in seen), Decimal(0))

    # -- figures next to the p-values --------------------------------------------------------------

    def posterior(self) -> list[float]:
        """The probability of each hypothesis, if all are equally likely beforehand; 0 for all if none is possible."""
        found = [log for log in self.log_likelihood if log is not None]
        if not found:
            return [0.0] * len(self.laws)
        best = max(found)
        shares = [0.0 if log is None else math.exp(log - best) for log in self.log_likelihood]
        whole = math.fsum(shares)
        return [share / whole for share in shares]

    def anytime(self, place: int) -> float:
        """A p-value that holds for any number of looks, up to rounding."""
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
        """The probability under hypothesis `place` of at least the observed evidence against it."""
        return self._probability(place, 1)

    def fit(self, place: int) -> Bounds:
        """The probability under hypothesis `place` that another one has at least the observed ratio to it."""
        return self._probability(place, 0)

    def _probability(self, place: int, least: int) -> Bounds:
        """Probability that the best rival has at least its observed ratio; 1 if that is not above `least`."""
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
        """The step towards the rival for each output; outputs that the hypothesis excludes do not count."""
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
    """Bounds with `digits` digits around two floats."""
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
    """Whether one ratio is at least another; None if they agree in all known digits, but are not equal."""
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
    """All ways to write n as an ordered sum of `parts` numbers."""
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
    """Lower and upper bound on the least number of reports with step `up` that reaches the bar."""
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

    Weights of the counts relative to the likeliest, in integers: rounded down for the lower bound, rounded up for the
    upper. They are followed from the likeliest count to either side until they vanish.
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
    """Coprime integers above 1 whose powers multiply to each of these numbers.

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
