"""Variance of a number, or correlation of two: each person reports one figure of their numbers, chosen by coins.

Law        figure g with probability w_g / W, whatever the numbers are; then a report of a mean's protocol, about
           u = ((x - low) - (high - x)) / (high - low), a number on [-1, 1], or about u^2 on [0, 1]; of two numbers,
           about one of u, v, u^2, v^2 and u v
Privacy    the largest epsilon of a figure's protocol: one figure is reported, and the choice does not depend on the
           numbers
Interval   of the mean as `results.bounds` says; of variance and deviation from those of mean and square; of the
           correlation by Fieller's theorem
Error      of the variance, by its gradient: Var(mean of u^2) + 4 (mean of u)^2 Var(mean of u); of the correlation
           in the same way, over the five figures
Report     the figure's number, its report, zeros up to the longest one
Cost       one random word more than the figure's report
Source     Ding, Kulkarni and Yekhanin 2017 (means); sampling instead of splitting: Wang et al. 2019

Read-out   mean of u^2 - (mean of u)^2 + what the noise adds to the square: unbiased for the variance, in units of a
           quarter of the squared width, for people who were drawn independently. The covariance is
           mean of u v - (mean of u) (mean of v), unbiased because different people reported the three. Standard
           deviation and correlation follow from these, and are unbiased for many people only
Floats     u is one float64 formula, the same in the browser. It comes before an exact law, and so needs no exactness
           for privacy; it biases a mean by less than 2^-48
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Interval, Records
from deniable.domains.records import RecordColumns
from deniable.errors import DomainError, SpecError
from deniable.protocols.choice import build, choose
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Law
from deniable.protocols.numeric.grid import quantity
from deniable.protocols.protocol import Protocol
from deniable.protocols.record import remembered
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits, not_offered, scaled
from deniable.protocols.worth import Worth
from deniable.results import Floats, Mean, MomentFigures, quantile
from deniable.results.bounds import Bounds, Numbers
from deniable.words import Fact, Joined, word

_PEOPLE = 10_000

POWERS: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,), (2,)),
    2: ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1)),
}
"""The figures of one number and of two: the power of each number."""

WEIGHTS = {1: (1, 1), 2: (1, 1, 1, 1, 2)}

_WHOLE, _POSITIVE = Interval(-1, 1), Interval(0, 1)


class _Figure(NamedTuple):
    """What one group says: its mean, the unbiased variance of that mean, and from how many people."""

    value: float
    variance: float
    n: int
    numbers: Numbers | None = None
    """What its reports say one by one."""

    def ends(self, level: float, grown: float = 1.0) -> tuple[float, float]:
        """An interval of the mean, with errors that are `grown` times as large."""
        if self.numbers is None:
            reach = quantile(level) * grown * math.sqrt(self.variance)
            return self.value - reach, self.value + reach
        ((low, high),) = self.numbers.interval(level, grown * np.asarray(self.numbers.errors))
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class _MeanEnds:
    """The interval of a mean, in the unit of the number."""

    figure: _Figure
    middle: float
    half: float

    def interval(self, level: float, errors: Any) -> Floats:
        spread = self.half * math.sqrt(self.figure.variance)
        ends = self.figure.ends(level, float(errors) / spread if spread > 0 else 1.0)
        return self.middle + self.half * np.array([ends])


@dataclass(frozen=True, eq=False)
class _VarianceEnds:
    """The interval of a variance, or of the deviation: from those of mean and square (Zou and Donner 2008).

    The lower end is as far from the estimate as the lower end of the square and the upper one of the squared mean are
    from theirs, in quadrature; a deviation has the roots of a variance's ends, which need no delta method.
    """

    first: _Figure
    second: _Figure
    scale: float
    error: float
    is_root: bool = False

    def interval(self, level: float, errors: Any) -> Floats:
        grown = float(errors) / self.error if self.error > 0 else 1.0
        low, high = self.first.ends(level, grown)
        least, most = self.second.ends(level, grown)
        m, squares = self.first.value, sorted((low * low, high * high))
        smallest = 0.0 if low <= 0 <= high else squares[0]
        variance = self.second.value - m * m + self.first.variance
        down = math.hypot(self.second.value - least, squares[1] - m * m)
        up = math.hypot(most - self.second.value, max(0.0, m * m - smallest))
        ends = np.array([[variance - down, variance + up]])
        if not self.is_root:
            return self.scale**2 * ends
        return np.asarray(self.scale * np.sqrt(np.clip(ends, 0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class _CorrelationEnds:
    """The interval of a correlation c / s, of covariance and product of deviations, by Fieller's theorem."""

    figures: Sequence[_Figure]
    covariance: float
    product: float
    slopes: Floats
    """How both move with each figure, one row each."""
    error: float

    def interval(self, level: float, errors: Any) -> Floats:
        z, grown = quantile(level), float(errors) / self.error if self.error > 0 else 1.0
        spreads = [
            max(high - one.value, one.value - low) / z for one in self.figures for low, high in [one.ends(level, grown)]
        ]
        cover = (self.slopes * np.square(spreads)) @ self.slopes.T * z * z
        a, b = self.product**2 - cover[1, 1], self.covariance * self.product - cover[0, 1]
        if a <= 0:
            return np.array([[-1.0, 1.0]])
        root = math.sqrt(max(0.0, b * b - a * (self.covariance**2 - cover[0, 0])))
        return np.array([[(b - root) / a, (b + root) / a]])


@dataclass(frozen=True, init=False, repr=False)
class Moments(Groups):
    """Mean, variance and standard deviation of a number, or those of two numbers and their correlation.

    Args:
        domain: An interval, or `Records` with two of them.
        epsilon: Largest epsilon of a report.
        people: Expected number of respondents, for the choice of the protocols.

    >>> hours = Moments(Interval(0, 24, unit="hours"), epsilon=2)
    >>> hours.group_names, hours.report_bytes
    (('x', 'x squared'), 2)
    >>> found = hours.estimate(hours.tally(hours.privatize([6.0, 7.0, 8.0, 7.5] * 1000)))
    >>> list(found.by_name), found["variance"].unit
    (['mean', 'variance', 'standard deviation'], 'hours^2')
    """

    name: ClassVar[str] = "Moments"
    traits: ClassVar[Traits] = Traits(
        takes=(Interval, Records),
        advice="it needs dn.Interval(low, high), or dn.Records with two of them",
        reads=("moments",),
        candidates=not_offered,  # people ask for a variance by name
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "a variance is no mean of reports: tests/protocols/test_moments.py enumerates it"},
    )

    def __init__(self, domain: Any, epsilon: exact.Number, people: int | None = None) -> None:
        self._settle_record(domain, epsilon, people)
        count = len(_numbers(self.domain))
        each = max(1, (_PEOPLE if people is None else int(people)) // sum(WEIGHTS[count]))
        chosen: dict[Interval, Protocol] = {}
        for inner in (_WHOLE, _POSITIVE):
            offered = build(inner, self.epsilon, n=each)
            chosen[inner] = offered[choose(offered, each)]
        groups = [(w, chosen[_range(p)]) for w, p in zip(WEIGHTS[count], POWERS[count], strict=True)]
        self._set(self.domain, groups, self.epsilon)

    @classmethod
    def of(cls, domain: Any, protocols: Any, weights: Any = None) -> Moments:
        """From protocols that are chosen already, one per figure: on [-1, 1], and on [0, 1] for squares."""
        given = [1] * len(protocols) if weights is None else list(weights)
        if len(given) != len(protocols):
            raise SpecError("there is one weight per protocol")
        made = cls.__new__(cls)
        made._set(domain, list(zip(given, protocols, strict=True)), None)
        return made

    def _set(self, domain: Domain, groups: Any, epsilon: Any) -> None:
        object.__setattr__(self, "domain", Records(domain) if isinstance(domain, Mapping) else domain)
        object.__setattr__(self, "groups", tuple(Group(weight, protocol) for weight, protocol in groups))
        self._check_groups()
        largest = max(group.protocol.epsilon for group in self.groups)
        object.__setattr__(self, "epsilon", largest if epsilon is None else epsilon)
        self._settle()
        if self.epsilon != largest:
            raise SpecError("epsilon is not the largest one of the groups")
        if len(self.groups) != len(self.powers):
            raise SpecError(f"there is one group per figure, {len(self.powers)} in all")
        for powers, (_, protocol) in zip(self.powers, self.groups, strict=True):
            if protocol.domain != _range(powers) or not hasattr(protocol, "contribution"):
                raise SpecError(f"a figure of {self.name} is asked by a protocol for a mean on {_range(powers)!r}")

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Moments:
        match parameters:
            case {"groups": list(groups), **rest} if not rest:
                made = cls.__new__(cls)
                made._set(domain, cls._written(groups), epsilon)
                return made
        raise SpecError("moments need groups, each with a weight and a protocol, and nothing else")

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        from deniable.protocols.numeric.window import OneBitMean, Window

        whole, positive = Window(_WHOLE, 1, positions=3, width=2), OneBitMean(_POSITIVE, 1)
        yield cls.of(Interval(0, 10, unit="hours"), [whole, positive], [2, 1])
        two = {"a": Interval(0, 1), "b": Interval(-4, 4)}
        bit = OneBitMean(_WHOLE, 1)
        yield cls.of(two, [bit, bit, positive, positive, bit], [1, 1, 1, 1, 2])

    def _scaled(self, factor: Fraction) -> Moments:
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        return self.of(self.domain, [protocol for _, protocol in groups], [weight for weight, _ in groups])

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> tuple[Interval, ...]:
        return _numbers(self.domain)

    @property
    def powers(self) -> tuple[tuple[int, ...], ...]:
        return POWERS[len(self.numbers)]

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names if isinstance(self.domain, Records) else ("x",)

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(_words(powers, self.names) for powers in self.powers)

    def project(self, value: Any, group: int) -> float:
        values = value if isinstance(self.domain, Records) else (value,)
        found = 1.0
        for number, domain, power in zip(values, self.numbers, self.powers[group], strict=True):
            for _ in range(power):
                found *= _unit(number, *domain.ends)
        return found

    def project_many(self, values: Any, group: int, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        columns = values.columns if isinstance(values, RecordColumns) else (values,)
        found = np.ones(len(rows))
        for column, domain, power in zip(columns, self.numbers, self.powers[group], strict=True):
            for _ in range(power):
                found *= _unit(column.take(rows), *domain.ends)
        return found

    def part(self, value: Any, group: int) -> Any:
        return self.project(self.domain.encode_one(value), group)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        _, *rest = super().story(value, encoded, report)
        group = int.from_bytes(report[: self._head], "little")
        taken = quantity(self.project(encoded, group))
        return [word("story.figure", chances=Joined(self._told_chances(), ", "), taken=taken), *rest]

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Ends and middles, whose figures are ends or middles of theirs: a few of all laws."""
        each = [[domain.low, (domain.low + domain.high) / 2, domain.high] for domain in self.numbers]
        for row in product(*each):
            label = row if isinstance(self.domain, Records) else row[0]
            floats = tuple(float(number) for number in row)
            yield label, floats if isinstance(self.domain, Records) else floats[0]

    # -- the read-out ------------------------------------------------------------------------------

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of an estimate, in the order of its table; of two numbers, the correlation last."""
        encoded = self.domain.encode(answers)
        columns = encoded.columns if isinstance(encoded, RecordColumns) else (encoded,)
        found: list[float] = []
        for column in columns:
            mean = np.average(column, weights=people)
            variance = np.average((column - mean) ** 2, weights=people)
            found += [float(mean), float(variance), math.sqrt(variance)]
        if len(columns) > 1:
            one, other = columns
            means = np.average(one, weights=people), np.average(other, weights=people)
            both = np.average((one - means[0]) * (other - means[1]), weights=people)
            spread = found[2] * found[5]
            found.append(float(both / spread) if spread else math.nan)
        return np.array(found)

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """In the worst case of each figure's noise, by the gradient at these people's moments."""
        n = len(answers) if people is None else int(np.sum(people))
        expected = [
            _Figure(0.0, protocol.worth(m).noise ** 2, m)
            for (_, protocol), m in zip(self.groups, self.people(n), strict=True)
        ]
        encoded = self.domain.encode(answers)
        rows = np.arange(len(encoded))
        given = [
            float(np.average(self.project_many(encoded, g, rows), weights=people)) for g in range(len(self.groups))
        ]
        figures = [one._replace(value=value) for one, value in zip(expected, given, strict=True)]
        return np.array([part.stderr**2 for part in self._read(figures, n).values()])

    def _figure_scales(self) -> NDArray[np.float64]:
        each = [
            scale for domain in self.numbers for scale in (_width(domain), _width(domain) ** 2 / 4, _width(domain) / 2)
        ]
        return np.array(each + ([1.0] if len(self.numbers) > 1 else []))

    def estimate(self, tally: Tally) -> MomentFigures:
        """Mean, variance and standard deviation; of two numbers, those of each and the correlation."""
        found: MomentFigures = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> MomentFigures:
        figures = [_figure(protocol, own) for (_, protocol), own in zip(self.groups, self.tallies(tally), strict=True)]
        return MomentFigures(
            self._read(figures, tally.n), tally.n, self.name, honest=lambda fakes: self._honest(figures, tally.n, fakes)
        )

    def _honest(self, figures: list[_Figure], n: int, fakes: int) -> list[dict[str, Mean]]:
        """What the honest reports may say: the forged ones are in one group, and at an end of what a report can say.

        A variance is largest where the mean is in the middle, so that is one more extreme.
        """
        found = []
        for place, (group, figure) in enumerate(zip(self.groups, figures, strict=True)):
            protocol: Any = group.protocol
            left = figure.n - fakes
            said = [float(protocol.contribution(output)) for output in range(protocol.tally_size)]
            ends = [
                (figure.n * figure.value - fakes * end) / left if left > 1 else math.nan
                for end in (min(said), max(said))
            ]
            middle = [0.0] if min(ends) < 0 < max(ends) else []
            for value in (*ends, *middle):
                spread = figure.variance * figure.n / left if left > 1 else math.nan
                moved = [*figures[:place], _Figure(value, spread, left), *figures[place + 1 :]]
                found.append(self._read(moved, n))
        return found

    def _read(self, figures: list[_Figure], n: int) -> dict[str, Mean]:
        count, parts = len(self.numbers), {}
        spreads: list[tuple[float, float]] = []
        for place, (name, domain) in enumerate(zip(self.names, self.numbers, strict=True)):
            of = "" if count == 1 else f" of {name}"
            first, second = figures[place], figures[count + place]
            half, middle, unit = _width(domain) / 2, sum(domain.ends) / 2, domain.unit
            m, v = first.value, first.variance
            variance = second.value - m * m + v
            error = math.sqrt(second.variance + 4 * m * m * v + 2 * v * v)
            spreads.append((variance, error))
            ends: Bounds = _MeanEnds(first, middle, half)
            parts[f"mean{of}"] = self._part(
                f"mean{of}", middle + half * m, half * math.sqrt(v), domain.ends, unit, n, ends
            )
            square = unit and f"{unit}^2"
            ends = _VarianceEnds(first, second, half, half**2 * error)
            parts[f"variance{of}"] = self._part(
                f"variance{of}", half**2 * variance, half**2 * error, (0.0, half**2), square, n, ends
            )
            deviation = math.sqrt(variance) if variance > 0 else 0.0 * variance
            reach = error / (2 * deviation) if deviation > 0 else math.sqrt(error)
            label = f"standard deviation{of}"
            stderr = half * min(reach, math.sqrt(error))
            ends = _VarianceEnds(first, second, half, stderr, is_root=True)
            found = self._part(label, half * min(1.0, deviation), stderr, (0.0, half), unit, n, ends)
            parts[label] = replace(found, is_within=True)
        if count == 2:
            parts["correlation"] = self._correlation(figures, spreads, n)
        return parts

    def _part(
        self,
        figure: str,
        value: float,
        stderr: float,
        ends: tuple[float, float],
        unit: str,
        n: int,
        bounds: Bounds | None = None,
    ) -> Mean:
        if not (math.isfinite(value) and math.isfinite(stderr)):
            return Mean(math.nan, 0, math.nan, math.nan, ends, self.name, unit=unit, figure=figure)
        return Mean(value, n, stderr, stderr, ends, self.name, unit=unit, figure=figure, bounds=bounds)

    def _correlation(self, figures: list[_Figure], spreads: list[tuple[float, float]], n: int) -> Mean:
        (one, _), (other, _) = spreads
        a, b, _, _, both = figures
        nothing = self._part("correlation", math.nan, math.nan, (-1.0, 1.0), "", n)
        if not (one > 0 and other > 0):
            return nothing
        root = math.sqrt(one * other)
        covariance = both.value - a.value * b.value
        r = covariance / root
        # The gradient over u, v, u^2, v^2 and u v.
        by_one, by_other = -r / (2 * one), -r / (2 * other)
        gradient = (-b.value / root - 2 * a.value * by_one, -a.value / root - 2 * b.value * by_other)
        slopes = (*gradient, by_one, by_other, 1 / root)
        error = math.sqrt(sum(slope**2 * figure.variance for slope, figure in zip(slopes, figures, strict=True)))
        # The same for covariance and product of deviations by themselves.
        one_by, other_by = root / (2 * one), root / (2 * other)
        product_by = (-2 * a.value * one_by, -2 * b.value * other_by, one_by, other_by, 0.0)
        by = np.array([(-b.value, -a.value, 0.0, 0.0, 1.0), product_by])
        bounds = _CorrelationEnds(figures, covariance, root, by, error)
        return self._part("correlation", r, error, (-1.0, 1.0), "", n, bounds)

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{name}: {one.protocol.name}" for name, one in zip(self.group_names, self.groups, strict=True)
        )
        return f"Moments({inner}, epsilon={self.epsilon})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            # One part: the figures are about the same number, so that a report about one tells of the others,
            # too.
            parts=lambda: {"": (self, n)},
            truth=self._truth,
            tests=lambda: 3 if len(self.numbers) == 1 else 7,
            variances=self._figure_variances,
            scales=self._figure_scales,
            spreads=lambda answers: np.zeros(self.worth().tests),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=self._inputs,
            sent=lambda value, bits: self.draw(value, bits),
        )


def _figure(protocol: Any, tally: Tally) -> _Figure:
    """The mean of the contributions and its unbiased variance; unknown from fewer than two people."""
    if tally.n < 2:
        return _Figure(math.nan, math.nan, tally.n)
    pairs = [(protocol.contribution(y), int(count)) for y, count in enumerate(tally.counts) if count]
    n = tally.n
    mean = sum((value * count for value, count in pairs), Fraction(0)) / n
    spread = sum((count * (value - mean) ** 2 for value, count in pairs), Fraction(0)) / (n - 1)
    said = np.array([float(protocol.contribution(output)) for output in range(protocol.tally_size)])
    numbers = Numbers(said, tally.counts.astype(np.float64), math.sqrt(float(spread / n)))
    return _Figure(float(mean), float(spread / n), n, numbers)


def _numbers(domain: Domain) -> tuple[Interval, ...]:
    """The one number or the two."""
    if isinstance(domain, Interval):
        return (domain,)
    columns = tuple(column for _, column in domain.columns) if isinstance(domain, Records) else ()
    if len(columns) != 2 or not all(isinstance(column, Interval) for column in columns):
        raise DomainError("moments are those of one number, dn.Interval, or of a record of two of them")
    return tuple(column for column in columns if isinstance(column, Interval))


def _range(powers: tuple[int, ...]) -> Interval:
    return _WHOLE if any(power % 2 for power in powers) else _POSITIVE


def _unit(number: Any, low: float, high: float) -> Any:
    return ((number - low) - (high - number)) / (high - low)


def _width(domain: Interval) -> float:
    low, high = domain.ends
    return high - low


def _words(powers: tuple[int, ...], names: tuple[str, ...]) -> str:
    said = [name + (" squared" if power == 2 else "") for name, power in zip(names, powers, strict=True) if power]
    return " times ".join(said)
