"""Window response: report the position of a number, blurred over a window, else any output.

Law        the number is rounded at random to one of D positions; with probability t the report is uniform among the w
           outputs from the position on, else uniform among all M = D + w - 1
Privacy    ratio 1 + t M / (w (1 - t)) <= e^epsilon; t is rounded down
Error      of a mean, worst case over the interval: worst_variance(n); of a distribution, that of the median if all
           numbers are equally common: half its interval divided by z
Report     the output's index, ceil(log2(M) / 8) bytes
Cost       four random words per report (rounding, keep, within the window, among all); M counters
Source     piecewise mechanism (Wang et al. 2019) and square wave (Li et al. 2020), which are both this law; with w = 1
           and two positions it is the one-bit mean (Duchi et al. 2013; Ding, Kulkarni and Yekhanin 2017), with three
           the three-output mechanism

Rounding   as `grid` says
Read-out   the mean is linear in the output's index, and unbiased. Its standard error comes from the spread of the
           reports themselves, but is never below what the law adds at least
           A distribution is read out by EM or EMS, with intervals from unbiased figures: `density`
Choice     of a mean, (D, w) with the smallest worst case are searched once and then fixed in the spec; of a
           distribution D = 1,024, or all whole numbers if they are fewer, and w = 2 b D with the b of the square wave
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, DomainLike, Integers, Interval
from deniable.errors import ChannelError, NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.blanket import Blanket, supporting
from deniable.protocols.law import Law
from deniable.protocols.numeric.density import Unbiased, WindowLaw, fit, square_wave_half_width
from deniable.protocols.numeric.grid import OnGrid, quantity
from deniable.protocols.protocol import Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.randomness.kernels import BLOCK
from deniable.results import Distribution, Floats, Mean, Weights, quantile
from deniable.results.bounds import Numbers
from deniable.results.distribution import BINS, median_error, round_edges, true_figures
from deniable.results.significance import too_few, too_many
from deniable.words import Fact, catalogue, word

MEAN, DISTRIBUTION = "mean", "distribution"

MOST_USUAL = 1024
"""Positions of a distribution, unless somebody asks for more."""

_MOST_POSITIONS = 1 << 20

_RANGES = 12
"""The number of ranges from which the error of a typical range is computed."""


@dataclass(frozen=True)
class Window(OnGrid, Protocol):
    """The mean of a number, or its distribution; without positions and width, those that are best for it.

    Args:
        domain: The interval of the number, or integers.
        epsilon: Largest epsilon of a report.
        positions: Number of positions that answers are rounded to; the best number if 0.
        width: Number of outputs in the window; the best number if 0.
        read: "mean" or "distribution".

    Raises:
        NumberError: The reading, the positions or the width are not valid.

    >>> hours = Window(Interval(0, 100, unit="hours"), epsilon=2)
    >>> hours.positions, hours.width
    (3, 1)
    >>> mean = hours.estimate(hours.tally(hours.privatize([8.0, 7.5, 30.0] * 1000)))
    >>> abs(mean.value - 15.17) < 5 * mean.stderr
    True
    >>> ages = Window(Integers(18, 99), epsilon=1, read="distribution")
    >>> ages.positions, ages.width
    (82, 42)
    >>> found = ages.estimate(ages.tally(ages.privatize([30, 41, 70] * 1000)))
    >>> low, high = found.median.interval(0.999999)
    >>> low <= 41 <= high
    True
    """

    name: ClassVar[str] = "Window"
    traits: ClassVar[Traits] = Traits(
        reads=(MEAN, DISTRIBUTION),
        serves=("ranges",),
        candidates=lambda kind, ask: kind._offered(ask),
        waived=lambda protocol: protocol._waived(),
        says=lambda protocol, report: protocol._says(report),
    )
    positions: int = 0
    width: int = 0
    read: str = MEAN

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: DomainLike,
            epsilon: Number,
            positions: int | None = None,
            width: int | None = None,
            read: str = MEAN,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.read not in (MEAN, DISTRIBUTION):
            raise NumberError(f"a window is read as {MEAN!r} or {DISTRIBUTION!r}, not as {self.read!r}")
        positions, width = self.positions or 0, self.width or 0
        if self.read == DISTRIBUTION:
            positions, width = _for_distribution(self.domain, float(self.epsilon), positions, width)
        elif not positions and not width:
            positions, width = best_window(float(as_epsilon(self.epsilon)))
        for name, number, least in (("positions", positions, 2), ("width", width, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= _MOST_POSITIONS:
                raise NumberError(f"the number of {name} is a whole number from {least} to 2^20: give both or none")
            object.__setattr__(self, name, number)
        if self.kept == 0:
            raise ChannelError(f"at epsilon {float(self.epsilon):.3g} rounding leaves nothing to learn: raise epsilon")

    def parameters(self) -> dict[str, Any]:
        return {"positions": self.positions, "width": self.width, "read": self.read}

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, Interval):  # whole numbers are asked for their shares, unless somebody names a window
            yield cls(ask.domain, ask.epsilon)
        if isinstance(ask.domain, Interval | Integers):
            yield cls(ask.domain, ask.epsilon, read=DISTRIBUTION)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Interval(0, 1), 1, positions=3, width=2)
        yield cls(Interval(-10, 30, unit="degrees"), 2, positions=4, width=1)
        yield cls(Integers(0, 4), 1, positions=5, width=2)
        yield cls(Integers(1, 6), 1, read=DISTRIBUTION)
        yield cls(Interval(0, 1), 2, positions=5, read=DISTRIBUTION)

    @lru_cache(maxsize=64)  # noqa: B019
    def _range_error(self, n: int, population: bool) -> float:
        """The error of the share of a range with uniform ends, if all numbers are equally common: half-width over z."""
        even, (low, high), random = self._even(n), self._ends, np.random.default_rng(1)
        ends = np.sort(random.uniform(low, high, size=(_RANGES, 2)), axis=1)
        widths = [np.ptp(even.range(a, b).interval(0.95, population)) for a, b in ends]
        return float(np.mean(widths)) / (2 * quantile(0.95))

    def _waived(self) -> Mapping[str, str]:
        if self.read == MEAN:
            return {}
        return {"unbiased": "maximum likelihood is not linear; that its unbiased figures are is tested by itself"}

    @classmethod
    def three_output(cls, domain: DomainLike, epsilon: Number) -> Window:
        """The three-output mechanism: low end, middle and high end."""
        return cls(domain, epsilon, 3, 1)

    @classmethod
    def piecewise(cls, domain: DomainLike, epsilon: Number, positions: int = 1025) -> Window:
        """The piecewise mechanism (Wang et al. 2019): a window of e^(-epsilon / 2) of the interval, for a mean.

        Args:
            domain: The interval of the number.
            epsilon: Largest epsilon of a report.
            positions: Number of positions that answers are rounded to.

        Returns:
            The window.

        >>> law = Window.piecewise(Interval(-1, 1), epsilon=2)
        >>> law.width, round(law.worst_variance(1), 3)
        (377, 1.227)
        """
        share = math.exp(-float(as_epsilon(epsilon)) / 2)
        return cls(domain, epsilon, positions, max(1, round((positions - 1) * share)))

    @classmethod
    def square_wave(cls, domain: DomainLike, epsilon: Number, positions: int = 0) -> Window:
        """The square wave (Li et al. 2020), for a distribution: what a window is that is read for one.

        Args:
            domain: The interval of the number.
            epsilon: Largest epsilon of a report.
            positions: Number of positions that answers are rounded to; the usual number if 0.

        Returns:
            The window.

        >>> Window.square_wave(Interval(0, 1), epsilon=1).width / 1024  # twice the published half-width, 0.2561
        0.5117...
        """
        return cls(domain, epsilon, positions, read=DISTRIBUTION)

    # -- the law -----------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.positions + self.width - 1

    @cached_property
    def keep(self) -> Dyadic:
        w, outputs = self.width, self.outputs
        return Dyadic.floor_of(lambda e: (e - 1) * w / (outputs + (e - 1) * w), self.epsilon)

    @property
    def kept(self) -> Fraction:
        """The probability t that a report comes from the window of the number's position."""
        return self.keep.value

    def _ratio(self) -> Fraction:
        t = self.kept
        return 1 + t * self.outputs / (self.width * (1 - t))

    def _blankets(self) -> tuple[Blanket, ...]:
        """The two ends are the worst pair: their windows have the fewest outputs in common."""
        rest = 1 - self.kept
        common = max(0, self.width - self.positions + 1)
        return (supporting(rest, self.ratio, rest * common / self.outputs),)

    def draw(self, value: Any, bits: Bits) -> bytes:
        return self._law_of(self._rounded(value, bits), bits)

    def _law_of(self, value: int, bits: Bits) -> bytes:
        kept, near, far = bits.bernoulli(self.keep), bits.integers(self.width), bits.integers(self.outputs)
        return (value + near if kept else far).to_bytes(self.report_bytes, "little")

    def draw_many(self, values: NDArray[Any], bits: Bits) -> Bytes:
        reports = np.empty((len(values), self.report_bytes), dtype=np.uint8)
        for start in range(0, len(values), BLOCK):
            inside = self._rounded_many(values[start : start + BLOCK], bits)
            if self.width > 1:
                inside += bits.integers(self.width, inside.size)
            drawn = bits.keep_or_uniform(inside, self.keep, self.outputs)
            reports[start : start + BLOCK] = to_bytes(drawn, self.report_bytes)
        return reports

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return from_bytes(reports) < self.outputs

    def count(self, reports: Bytes) -> Counts:
        return np.bincount(from_bytes(reports), minlength=self.outputs)

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The variance of the mean of exactly these numbers."""
        if self.read == DISTRIBUTION:
            raise ChannelError("the figures of a distribution have no formula for their variances: simulate them")
        place, half = self._grid_places(self.domain.encode(answers)), (self.positions - 1) / 2
        below = np.floor(place)
        up, t = place - below, float(self.kept)
        squares = (1 - up) * (below - half) ** 2 + up * (below + 1 - half) ** 2
        fixed = (t * (self.width**2 - 1) + (1 - t) * (self.outputs**2 - 1)) / 12
        each = t * squares + fixed - (t * (place - half)) ** 2
        n = len(place) if people is None else int(np.sum(people))
        return np.array([float(np.average(each, weights=people)) * float(self._scale) ** 2 / n])

    # -- the read-out ------------------------------------------------------------------------------

    @property
    def _scale(self) -> Fraction:
        """What a step of the output's index adds to the estimate."""
        return (self._high - self._low) / (self.positions - 1) / self.kept

    def contribution(self, output: int) -> Fraction:
        """What a report with this output adds to the mean of n, times n: unbiased for the respondent's number."""
        middle = (self._low + self._high) / 2
        return middle + self._scale * (output - Fraction(self.outputs - 1, 2))

    def infer(self, tally: Tally, smooth: bool | None = None) -> Mean | Distribution:
        if not tally.n:
            return self._nothing()
        return self._distribution(tally, smooth) if self.read == DISTRIBUTION else self._mean(tally)

    def _mean(self, tally: Tally) -> Mean:
        n, counts = tally.n, [int(count) for count in tally.counts]
        total = sum(y * count for y, count in enumerate(counts))
        squares = sum(y * y * count for y, count in enumerate(counts))
        value = float((self._low + self._high) / 2 + self._scale * (Fraction(total, n) - Fraction(self.outputs - 1, 2)))
        spread = Fraction(squares, n) - Fraction(total, n) ** 2
        scale = float(self._scale) ** 2
        variance = float(spread) * n / (n - 1) if n > 1 else math.inf
        least, most = self._noise_range
        everything = max(variance, least) * scale / n if n > 1 else most * scale
        # The spread of the positions themselves, less what random rounding may have added, is sampling error.
        t = float(self.kept)
        fixed = (t * (self.width**2 - 1) + (1 - t) * (self.outputs**2 - 1)) / 12
        centre = float(Fraction(total, n)) - (self.outputs - 1) / 2
        apart = max(0.0, ((float(spread) + centre**2 - fixed) / t - (centre / t) ** 2) - 0.25)
        noise = min(everything, max(everything - apart * (t**2) * scale / n, least * scale / n))
        errors, weights = (math.sqrt(everything), math.sqrt(noise)), Weights(*self._mean_weights)
        said = float((self._low + self._high) / 2) + math.sqrt(scale) * (
            np.arange(self.outputs) - (self.outputs - 1) / 2
        )
        numbers = Numbers(np.asarray(said, dtype=np.float64), tally.counts.astype(np.float64), errors[0])
        return Mean(value, n, *errors, self._ends, self.name, unit=self._unit, weights=weights, bounds=numbers)

    def estimate(self, tally: Tally, smooth: bool | None = None) -> Any:
        """A `Mean` with its error in the question's unit, or a `Distribution`.

        Of a distribution, `smooth` forces EMS (True) or EM (False); without it a rule chooses, which sees the tally.
        """
        if smooth is None:
            return super().estimate(tally)
        self._check_tally(tally)
        return replace(self.infer(tally, smooth), check=partial(self.misfit, tally))

    # -- the distribution --------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether every position is one answer, so that nothing is rounded."""
        return isinstance(self.domain, Integers) and self.domain.size == self.positions

    @cached_property
    def linear(self) -> WindowLaw:
        return WindowLaw(self.positions, self.width, float(self.kept))

    @cached_property
    def _points(self) -> Floats:
        return np.linspace(*self._ends, self.positions)

    def _distribution(self, tally: Tally, smooth: bool | None) -> Distribution:
        shape = fit(self.linear, tally.counts, smooth)
        evidence = Unbiased(self.linear, shape.shares, tally.n, tally.counts)
        found = (self._points, shape.shares, tally.n, evidence, self._edges(tally.n), self.name, shape.method)
        return Distribution(*found, self._unit, self.is_whole, shape.smoothness)

    def _nothing(self) -> Mean | Distribution:
        if self.read == MEAN:
            return Mean.nothing(self._ends, self.name, self.worth().unit)
        unknown, edges = np.full(self.positions, np.nan), round_edges(self._points, BINS[-1], self.is_whole)
        return Distribution(self._points, unknown, 0, None, edges, self.name, "EM", self._unit, self.is_whole)

    @lru_cache(maxsize=8)  # noqa: B019  # a protocol is a small frozen value
    def _even(self, n: int) -> Distribution:
        """What n people would show whose numbers are all equally common, without noise."""
        shares = np.full(self.positions, 1 / self.positions)
        evidence = Unbiased(self.linear, shares, n, n * self.linear.mix(shares))
        edges = round_edges(self._points, BINS[-1], self.is_whole)
        return Distribution(self._points, shares, n, evidence, edges, self.name, "EM", self._unit, self.is_whole)

    @lru_cache(maxsize=64)  # noqa: B019
    def _edges(self, n: int) -> Floats:
        """The edges of the most bins whose even share n people can distinguish from zero."""
        even = self._even(n)
        for bins in BINS:
            edges = round_edges(self._points, bins, self.is_whole)
            middle = (edges.size - 1) // 2
            if edges.size < 3 or even.half_width_of_bin(edges[middle], edges[middle + 1]) <= 1 / (edges.size - 1):
                break
        return edges

    def _true_figures(self, answers: Any, people: Any) -> NDArray[np.float64]:
        numbers = self._number(self.domain.encode(answers))
        held = np.ones(len(numbers)) if people is None else np.asarray(people, dtype=float)
        return true_figures(numbers, held, self._edges(int(held.sum())))

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How exact the median is, and how fine the histogram."""
        if self.read == MEAN:
            return ""
        error = float(f"{quantile(level) * self.worth(n, population=population).error:.3g}")
        reach = catalogue().text(quantity(error, self._unit))
        return (
            f"The interval of the median is +-{reach}, if all numbers are equally common. It holds for any shape: "
            "where numbers are spread smoothly, the median itself is usually more than twice as near. A histogram of "
            f'{self._edges(n).size - 1} bins stands out of the noise. Read "ranges" where many people may give the '
            "same few numbers, or where every range needs its exact error."
        )

    @lru_cache(maxsize=64)  # noqa: B019
    def _median_error(self, n: int, population: bool) -> float:
        return median_error(self._even(n), population)

    @cached_property
    def _noise_range(self) -> tuple[float, float]:
        """The smallest and the largest variance of one output's index, given the number, over all numbers."""
        t, half = float(self.kept), (self.positions - 1) / 2
        positions = np.arange(self.positions) - half
        fixed = (t * (self.width**2 - 1) + (1 - t) * (self.outputs**2 - 1)) / 12
        alone = t * positions**2 + fixed - (t * positions) ** 2
        return float(alone.min()), t**2 * _worst(self.positions, self.width, t)

    def worst_variance(self, n: int) -> float:
        """The largest variance that the protocol adds to the mean of n people, in the square of the unit."""
        return self._noise_range[1] * float(self._scale) ** 2 / n

    def _noise(self, n: int) -> float:
        if self.read == DISTRIBUTION:
            return self._median_error(n, False)
        return math.sqrt(self.worst_variance(n))

    def _error(self, n: int, population: bool = True) -> float:
        """The worst case is half of the people at each end: their own spread and the noise add up."""
        if self.read == DISTRIBUTION:
            return self._median_error(n, population)
        if not population:
            return self.worth(n).noise
        t, half = float(self.kept), (self.positions - 1) / 2
        fixed = (t * (self.width**2 - 1) + (1 - t) * (self.outputs**2 - 1)) / 12
        return math.sqrt((t * half**2 + fixed) / n) * float(self._scale)

    @cached_property
    def _mean_weights(self) -> tuple[float, float]:
        """The smallest and the largest weight of a report in the mean, in the unit.

        Of a distribution the outputs are weighted for the smallest variance: here, if all numbers are equally common.
        """
        middle, reach = float(self._low + self._high) / 2, float(self._scale) * (self.outputs - 1) / 2
        if self.read == DISTRIBUTION:
            evidence = self._even(1).evidence
            assert isinstance(evidence, Unbiased)
            weights = evidence.weights(self._points[None, :])
            return float(weights.min()), float(weights.max())
        return middle - reach, middle + reach

    def _leverage(self) -> float:
        """How many honest people at one end a forged report at that end outweighs, for the mean."""
        (low, high), (lowest, highest) = self._ends, self._mean_weights
        middle = (low + high) / 2
        return max(highest - middle, middle - lowest) / (high - middle)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        stay = "story.window.stay" if self.width > 1 else "story.mark.stay"
        return [
            self._rounding_step(value, encoded),
            word(stay, chance=percent(float(self.kept))),
            *([word("story.window", n=self.width, forms=self.outputs)] if self.width > 1 else []),
            word("story.window.any", n=self.outputs),
        ]

    def _says(self, report: bytes) -> Fact:
        return word("says.output", n=str(int.from_bytes(report, "little") + 1), of=str(self.outputs))

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        t, counts, n = float(self.kept), tally.counts * worth, tally.n * worth
        least = (1 - t) / self.outputs
        few = too_few(float(counts.min()), n, least, self.outputs)
        return [few, too_many(float(counts.max()), n, least + t / self.width, self.outputs)]

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        if self.read == DISTRIBUTION and read in self.traits.serves:
            # A distribution also has the shares of ranges, whose intervals hold whatever the shape is.
            own = partial(self._range_error, n)
            return self.worth(n, population=population).but(
                answers=True, noise=lambda: own(False), error=lambda: own(population), unit="", scale=1.0
            )
        return base.but(
            read=self.read,
            formula_for="",
            cost=lambda: Cost(WORD_BYTES * (4.0 if self.width > 1 else 3.0), 1),
            variances=self._figure_variances,
            # The mean of the numbers, clipped to the interval; or the figures of their distribution.
            truth=lambda answers, people=None: (
                self._true_figures(answers, people) if self.read == DISTRIBUTION else base.truth(answers, people)
            ),
            resolves=lambda: self.read == DISTRIBUTION and self.is_whole and self._edges(n).size > self.positions,
            remark=lambda level=0.95: self._remark(n, level, population),
            noise=lambda: self._noise(n),
            error=lambda: self._error(n, population),
            leverage=self._leverage,
            # m forged reports among n move the mean by at most m / n times this, in the unit.
            moved=lambda: self._mean_weights[1] - self._mean_weights[0],
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=self._ratio,
            blankets=self._blankets,
            width=lambda: width_of(self.outputs),
            forms=lambda: self.outputs,
            counters=lambda: self.outputs,
            sent=self._law_of,
            checks=self._misfits,
        )


Piecewise, SquareWave = Window.piecewise, Window.square_wave
"""The published mechanisms by their names; both are windows."""


@dataclass(frozen=True)
class OneBitMean(Window):
    """The mean from one bit per person: rounding to the ends of the interval, then randomized response.

    Args:
        domain: The interval of the number.
        epsilon: Largest epsilon of a report.

    Raises:
        NumberError: Other positions, width or reading are given.

    >>> OneBitMean(Interval(0, 24, unit="hours"), epsilon=1).law().forms
    2
    """

    name: ClassVar[str] = "OneBitMean"

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        if (self.positions, self.width, self.read) not in ((0, 0, MEAN), (2, 1, MEAN)):
            raise NumberError("a one-bit mean has two positions and no window: use Window for others")
        object.__setattr__(self, "positions", 2)
        object.__setattr__(self, "width", 1)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, Interval):
            yield cls(ask.domain, ask.epsilon)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Interval(-1, 1), 1)


def _for_distribution(domain: Domain, epsilon: float, positions: int, width: int) -> tuple[int, int]:
    """Positions and width, as far as they are not given."""
    if not positions:
        positions = min(MOST_USUAL, domain.size) if isinstance(domain, Integers) else MOST_USUAL
    if not width and isinstance(positions, int):
        width = max(1, round(2 * square_wave_half_width(epsilon) * positions))
    return positions, width


def _worst(positions: int, width: int, t: float) -> float:
    """The largest variance of an unbiased position, over all numbers, in squared steps between positions.

    f(z) = E estimate^2 is quadratic at the positions z = k - (D - 1) / 2 and linear between them, so in each cell the
    variance f(z) - z^2 is largest at a point that is known.
    """
    outputs = positions + width - 1
    half = (positions - 1) / 2
    fixed = (t * (width**2 - 1) + (1 - t) * (outputs**2 - 1)) / (12 * t**2)
    left = np.arange(positions - 1) - half
    left = left[left >= -0.5]
    slope = (2 * left + 1) / t
    z = np.clip(slope / 2, left, left + 1)
    inside: Floats = left**2 / t + slope * (z - left) - z**2 + fixed
    return float(inside.max())


@lru_cache(maxsize=64)
def best_window(epsilon: float) -> tuple[int, int]:
    """The positions and the width with the smallest worst-case variance of a mean; the fewest outputs among equals.

    >>> best_window(1.0), best_window(3.0), best_window(5.0)
    ((2, 1), (6, 2), (22, 5))
    """
    odds = math.expm1(min(epsilon, 40.0))

    def variance(positions: int, width: int) -> float:
        outputs = positions + width - 1
        t = odds * width / (outputs + odds * width)
        return _worst(positions, width, t) / (positions - 1) ** 2

    best, found = math.inf, (2, 1)
    coarse = sorted({*range(2, 12), *(round(12 * 1.2**i) for i in range(32))})
    for width in range(1, 129):
        rough = min(coarse, key=lambda positions: variance(positions, width))
        near = range(max(2, math.floor(rough / 1.2)), math.ceil(rough * 1.2) + 1)
        step = max(1, len(near) // 64)
        for positions in near[::step]:
            reached = variance(positions, width)
            if reached < best * (1 - 1e-9):
                best, found = reached, (positions, width)
        if width > 2 * found[1] + 8:  # the best width for more and more positions only grows
            break
    return found
