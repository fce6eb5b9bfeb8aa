"""Additive noise on numbers: infinitely many outputs, so no matrix, but an exact epsilon.

Law        discrete Laplace (two-sided geometric): P(z) = (1 - a) / (1 + a) a^|z|, a = e^(-epsilon / sensitivity),
           sampled exactly; on a grid the same law, in steps
Privacy    inputs that differ by d integers: exactly epsilon d / sensitivity
Error      unbiased; variance 2 a / (1 - a)^2 steps squared, below 2 (sensitivity / epsilon)^2
Clamp      `clamp(low, high)` gives a `Channel`; there the decay is a fraction just above e^(-epsilon / sensitivity).
           Nothing is lost for inputs in that range: outputs beyond its ends carry no more information than the ends
Source     Ghosh et al. 2009; Canonne, Kamath and Steinke 2020; on floating-point Laplace: Mironov 2012

The truncated geometric mechanism: the same noise on a count that stays in its range.

Law        P(z | y) = a^|z - y| (1 - a) / (1 + a) inside the range, and a^|z - y| / (1 + a) at its two ends, which take
           what would have fallen outside
Privacy    neighbouring counts differ by the factor 1 / a everywhere; a is rounded up to a fraction, so epsilon is
           never exceeded and every row still sums to one exactly
Cost       the powers of a are all that is kept: n integers, not n^2; up to 2,047 counts. The matrix of exact
           integers, `numerators`, is built on demand and only while it is below a quarter of a gigabyte
Use        universally optimal for counting queries, after its Bayes remap (Ghosh, Roughgarden, Sundararajan 2009)

Mechanisms of a trusted curator: the baselines for local privacy.

Counting   one person changes a count by at most 1, so the geometric mechanism releases it with constant error
Noisy max  noise on every count, the largest wins; only its name is published
Source     Dwork and Roth 2014, chapter 3
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels.adjacency import Adjacency, Witness, line
from deniable.channels.channel import Channel, Integers
from deniable.channels.geometric_law import decay_ceil, denominator, fits, matrix, matrix_bits, powers
from deniable.channels.laws import Floats
from deniable.errors import ChannelError, LabelError, NumberError, ShapeError
from deniable.exact import WORD
from deniable.labels import Label, as_labels, label_key
from deniable.randomness import Bits, KnownBoundaries, source_of

# Noise of this scale leaves 62 bits with probability e^-128.
_LARGEST_SCALE = 1 << 55
_LARGEST_VALUE = 1 << 62


class Noise(Protocol):
    """A mechanism that adds noise to numbers."""

    @property
    def epsilon(self) -> Fraction: ...

    @property
    def variance(self) -> float: ...

    def epsilon_at(self, distance: Any) -> Fraction:
        """The exact epsilon between two inputs at that distance."""

    def sample(self, values: Any, bits: Bits | None = None) -> Any: ...

    def clamp(self, low: Any, high: Any) -> Channel:
        """The noise on inputs from low to high, with outputs clamped to that range, as a channel."""


def is_noise(value: Any) -> TypeGuard[Noise]:
    """Whether this is additive noise and not a channel."""
    return not isinstance(value, Channel) and hasattr(value, "epsilon_at") and hasattr(value, "clamp")


def as_channel(value: Any, inputs: Iterable[Any] | None = None) -> Channel:
    """A channel unchanged; for noise, an error with the call that converts it, for these inputs if given."""
    if isinstance(value, Channel):
        return value
    if not is_noise(value):
        raise ChannelError(f"this needs a channel, not a {type(value).__name__}")
    low, high = "low", "high"
    try:
        ends = sorted(exact.fraction(entry) for entry in inputs or ())
    except ValueError:
        ends = []
    if len(set(ends)) > 1:
        low, high = str(ends[0]), str(ends[-1])
    raise ChannelError(
        f"{type(value).__name__} has outputs without end and no matrix: give noise.clamp({low}, {high}), a channel, "
        "where the inputs lie in that range"
    )


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Integer noise for integer values: the two-sided geometric mechanism.

    Args:
        epsilon: The guarantee for values `sensitivity` apart.
        sensitivity: Largest change of the value by one person.

    Raises:
        NumberError: The sensitivity is below 1, or the noise does not fit in 64-bit integers.

    >>> noise = DiscreteLaplace(epsilon=1, sensitivity=2)
    >>> noise.epsilon_at(2), round(noise.variance, 3)
    (Fraction(1, 1), 7.835)
    """

    epsilon: Fraction
    sensitivity: int = 1
    scale: Fraction = field(init=False, repr=False)

    def __init__(self, epsilon: Any, sensitivity: int = 1) -> None:
        reach = exact.whole(sensitivity, "the sensitivity of an integer query")
        if reach < 1:
            raise NumberError(f"the sensitivity of an integer query is at least 1, not {exact.shown(Fraction(reach))}")
        scale = reach / exact.as_epsilon(epsilon)
        if scale > _LARGEST_SCALE:
            raise NumberError("noise of this size does not fit in 64-bit integers: use coarser steps")
        object.__setattr__(self, "epsilon", exact.as_epsilon(epsilon))
        object.__setattr__(self, "sensitivity", reach)
        object.__setattr__(self, "scale", scale)

    def epsilon_at(self, distance: Any) -> Fraction:
        return abs(exact.fraction(distance, "the distance")) / self.scale

    @property
    def variance(self) -> float:
        # 2 a / (1 - a)^2 in a form that keeps its digits when a is near 1.
        return 1 / (2 * math.sinh(float(1 / self.scale) / 2) ** 2)

    def probability(self, z: ArrayLike) -> Floats:
        """P(noise = z), as floats."""
        rate = float(1 / self.scale)
        weights: Floats = np.exp(-rate * np.abs(np.asarray(z, dtype=np.float64)))
        return math.tanh(rate / 2) * weights

    def sample(self, values: Any, bits: Bits | None = None) -> Any:
        """Add fresh noise to one integer or to an array of them."""
        source = source_of(bits)
        array = np.asarray(values)
        if not np.issubdtype(array.dtype, np.integer):
            raise ShapeError("integer noise goes on integers: round the values, or use GridLaplace")
        if array.size and not (int(array.min()) > -_LARGEST_VALUE and int(array.max()) < _LARGEST_VALUE):
            raise NumberError("a value is 2^62 or more from zero: with noise it would not fit in a 64-bit integer")
        if array.ndim == 0:
            return int(array) + source.discrete_laplace(self.scale)
        # As int64, because numpy adds unsigned and signed 64-bit integers as floats.
        noise = source.discrete_laplace(self.scale, array.size).reshape(array.shape)
        return array.astype(np.int64) + noise

    def clamp(self, low: int, high: int) -> Channel:
        """The same noise on inputs low .. high, with outputs clamped to that range, as a channel."""
        first, last = exact.whole(low, "the lower end"), exact.whole(high, "the upper end")
        if last <= first:
            raise ShapeError(f"there is nothing between {first} and {last}")
        return clamped_geometric(decay_ceil(1 / self.scale), first, last, self.sensitivity)


def two_sided_geometric(epsilon: Any, sensitivity: int = 1) -> DiscreteLaplace:
    """The geometric mechanism by its other name.

    Args:
        epsilon: The guarantee for values `sensitivity` apart.
        sensitivity: Largest change of the value by one person.

    Returns:
        The noise.
    """
    return DiscreteLaplace(epsilon, sensitivity)


@dataclass(frozen=True, slots=True)
class GridLaplace:
    """Laplace noise for real values, without the leak through the low bits of floats.

    The value is rounded to the nearest multiple of `grid`, and discrete Laplace noise is added in steps
    of the grid. Values `sensitivity` apart are at most ceil(sensitivity / grid) steps apart after rounding,
    and the noise is scaled to that: the guarantee is exactly epsilon, for any real input.

    Args:
        epsilon: The guarantee for values `sensitivity` apart.
        sensitivity: Largest change of the value by one person.
        grid: Step to which values are rounded; a thousandth of the sensitivity if None.

    Raises:
        NumberError: The sensitivity or the grid is not positive.

    >>> percentage = GridLaplace(epsilon=1, sensitivity="0.1", grid="0.001")
    >>> percentage.steps, percentage.epsilon_at("0.1")
    (100, Fraction(1, 1))
    """

    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    noise: DiscreteLaplace = field(init=False, repr=False)

    def __init__(self, epsilon: Any, sensitivity: Any, grid: Any = None) -> None:
        reach = exact.fraction(sensitivity, "the sensitivity")
        # A thousandth of the sensitivity: the rounding is negligible against the noise.
        step = reach / 1000 if grid is None else exact.fraction(grid, "the grid")
        if reach <= 0 or step <= 0:
            raise NumberError("the sensitivity and the grid must be positive")
        object.__setattr__(self, "epsilon", exact.as_epsilon(epsilon))
        object.__setattr__(self, "sensitivity", reach)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "noise", DiscreteLaplace(self.epsilon, math.ceil(reach / step)))

    @property
    def steps(self) -> int:
        """The sensitivity in steps of the grid."""
        return self.noise.sensitivity

    def epsilon_at(self, distance: Any) -> Fraction:
        """The exact epsilon between inputs at that distance (a part of a step counts as a whole one)."""
        return self.noise.epsilon_at(math.ceil(abs(exact.fraction(distance, "the distance")) / self.grid))

    @property
    def variance(self) -> float:
        """Variance of the noise; rounding to the grid adds at most grid^2 / 4."""
        return self.noise.variance * float(self.grid) ** 2

    def density(self, z: ArrayLike) -> Floats:
        """The density of the Laplace law that the grid approximates: epsilon / (2 D) e^(-epsilon |z| / D)."""
        rate = float(self.epsilon / self.sensitivity)
        return rate / 2 * np.exp(-rate * np.abs(np.asarray(z, dtype=np.float64)))

    def sample(self, values: Any, bits: Bits | None = None) -> Any:
        """Noisy values, each a multiple of the grid."""
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise NumberError("the values are not numbers that fit in a float") from None
        if not np.isfinite(array).all():
            raise NumberError("a value is NaN or infinite")
        noisy = self.noise.sample(self._to_steps(array), bits)
        different, where = np.unique(noisy, return_inverse=True)
        out = np.array([float(int(k) * self.grid) for k in different])[where]
        return float(out.item()) if array.ndim == 0 else out.reshape(array.shape)

    def clamp(self, low: Any, high: Any) -> Channel:
        """The same noise on the multiples of the grid from low to high, with outputs clamped to that range.

        >>> GridLaplace(epsilon=1, sensitivity="0.5", grid="0.25").clamp(0, 1).outputs
        (0.0, 0.25, 0.5, 0.75, 1.0)
        """
        first = math.ceil(exact.fraction(low, "the lower end") / self.grid)
        last = math.floor(exact.fraction(high, "the upper end") / self.grid)
        if last <= first:
            raise ShapeError(f"there are fewer than two multiples of the grid between {low} and {high}")
        decay = decay_ceil(1 / self.noise.scale)
        # Checked before the labels are listed.
        labels = [float(k * self.grid) for k in range(first, min(last, first + MOST_COUNTS) + 1)]
        return clamped_geometric(decay, first, last, self.steps, labels)

    def _to_steps(self, array: Floats) -> NDArray[np.int64]:
        # A float is read as the decimal that prints it, like the sensitivity: 0.45 and 0.35 are 0.1 apart, although
        # their binary values are not. Only whole steps reach the noise.
        half = Fraction(1, 2)
        different, where = np.unique(array, return_inverse=True)
        steps = [math.floor(exact.fraction(float(x)) / self.grid + half) for x in different]
        if any(abs(k) >= _LARGEST_VALUE for k in steps):
            raise NumberError("a value is more than 2^62 grid steps from zero: use a coarser grid")
        return np.array(steps, dtype=np.int64)[where].reshape(array.shape)


# -- mechanisms of a trusted curator ------------------------------------------------------------------


_LARGEST = 1 << 62
_MOST_CELLS = 1 << 24
_BLOCK_CELLS = 1 << 20


def noisy_count(count: Any, epsilon: Any, bits: Bits | None = None) -> Any:
    """A counting query answered by a trusted curator: the count plus two-sided geometric noise.

    Args:
        count: The true count, or an array of counts.
        epsilon: The guarantee if one person changes the count by at most 1.
        bits: Source of randomness; secure if None.

    Returns:
        The noisy count, of the same shape.
    """
    return DiscreteLaplace(epsilon).sample(count, bits)


def report_noisy_max(
    counts: ArrayLike,
    epsilon: Any,
    neighbours: str = "substitute",
    bits: Bits | None = None,
    size: int | None = None,
) -> Any:
    """The position of the largest count after noise; `size` gives that many independent runs.

    Neighbouring databases differ in one person: `substitute` changes the answer (one count falls, another
    rises: noise of scale 2 / epsilon), `add-remove` takes the person away (all counts move the same way:
    scale 1 / epsilon). Ties go to the first.

    Args:
        counts: The true counts.
        epsilon: The guarantee.
        neighbours: "substitute" or "add-remove".
        bits: Source of randomness; secure if None.
        size: Number of independent runs; one run if None.

    Returns:
        The winning position, or an array of them if `size` is given.
    """
    array = _counts(counts)
    scale = _stretch(neighbours) / exact.as_epsilon(epsilon)
    runs = 1 if size is None else size
    noise = source_of(bits).discrete_laplace(scale, array.size * runs).reshape(runs, array.size)
    winners = np.argmax(array + noise, axis=1)
    return int(winners[0]) if size is None else winners


def _counts(counts: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(counts)
    if array.ndim != 1 or array.size < 1 or not np.issubdtype(array.dtype, np.integer):
        raise ShapeError("noisy max needs a flat list of integer counts")
    if int(array.max()) >= _LARGEST or int(array.min()) <= -_LARGEST:
        raise NumberError("a count is 2^62 or more from zero: with noise it would not fit in a 64-bit integer")
    return array.astype(np.int64)


def _at_most(gaps: NDArray[np.int64], rate: float) -> Floats:
    """P(noise <= gap), accurate in the lower tail."""
    tail: Floats = np.exp(-rate * np.where(gaps < 0, -gaps, gaps + 1)) / (1 + np.exp(-rate))
    return np.where(gaps < 0, tail, 1 - tail)


def _stretch(neighbours: str) -> int:
    if neighbours not in ("substitute", "add-remove"):
        raise LabelError("neighbours are 'substitute' or 'add-remove'")
    return 2 if neighbours == "substitute" else 1


def noisy_max_law(counts: Sequence[int], epsilon: Any, neighbours: str = "substitute") -> np.ndarray[Any, Any]:
    """P(each position wins), as floats: a sum over the winner's noisy count.

    Args:
        counts: The true counts.
        epsilon: The guarantee.
        neighbours: "substitute" or "add-remove", as in `report_noisy_max`.

    Returns:
        A probability per position.

    Raises:
        ChannelError: The sum is too long to compute.
    """
    array = _counts(counts)
    rate = float(exact.as_epsilon(epsilon)) / _stretch(neighbours)
    reach = int(np.ptp(array)) + int(np.ceil(45 / rate))
    if reach * array.size > _MOST_CELLS:
        raise ChannelError("the sum over noisy counts is too long: raise epsilon, or simulate report_noisy_max")
    law = np.zeros(array.size)
    values = np.arange(array.min() - reach, array.max() + reach + 1)
    for start in range(0, values.size, max(1, _BLOCK_CELLS // array.size)):
        law += _wins(array, values[start : start + max(1, _BLOCK_CELLS // array.size)], rate)
    return law


def _wins(counts: NDArray[np.int64], values: NDArray[np.int64], rate: float) -> Floats:
    """P(each position wins with one of these noisy counts): strictly above those before it, not below those after."""
    gaps = values - counts[:, None]
    point = np.tanh(rate / 2) * np.exp(-rate * np.abs(gaps))
    none = np.ones((1, values.size))
    before = np.cumprod(np.concatenate([none, _at_most(gaps[:-1] - 1, rate)]), axis=0)
    after = np.cumprod(np.concatenate([none, _at_most(gaps[:0:-1], rate)]), axis=0)[::-1]
    won: Floats = (point * before * after).sum(axis=1)
    return won


MOST_COUNTS = 1 << 11
"""The float view of this many counts has four million cells."""


def truncated_geometric(n: int, epsilon: Any, sensitivity: int = 1) -> Channel:
    """The geometric mechanism on {0, ..., n}, for counts that one person changes by at most `sensitivity`.

    Args:
        n: The largest count.
        epsilon: The guarantee.
        sensitivity: Largest change of the count by one person.

    Returns:
        A channel over 0 .. n.

    Raises:
        ShapeError: `n` or the sensitivity is below 1.

    >>> channel = truncated_geometric(100, epsilon=1)
    >>> channel.epsilon_under("line") <= 1, bool((channel.numerators > 0).all())
    (True, True)
    """
    largest, reach = exact.whole(n, "n"), exact.whole(sensitivity, "the sensitivity")
    if largest < 1 or reach < 1:
        raise ShapeError("a truncated geometric mechanism needs n >= 1 and a sensitivity of at least 1")
    return clamped_geometric(decay_ceil(exact.as_epsilon(epsilon) / reach), 0, largest, reach)


def clamped_geometric(
    alpha: Fraction, low: int, high: int, reach: int, labels: Sequence[Label] | None = None
) -> Channel:
    """Two-sided geometric noise with decay alpha, clamped to low .. high, on inputs low .. high."""
    counts = high - low + 1
    if counts > MOST_COUNTS:
        raise ChannelError(
            f"the mechanism on {counts} counts has {counts**2} probabilities, and {MOST_COUNTS} counts are the most: "
            "use DiscreteLaplace, which needs no matrix, or group the counts"
        )
    return _Geometric(alpha, as_labels(labels or range(low, high + 1), counts, "input"), line(reach))


class _Geometric(Channel):
    """The law of `geometric_law` as a channel, stored as the powers of the decay."""

    alpha: Fraction

    def __init__(self, alpha: Fraction, labels: tuple[Label, ...], adjacency: Adjacency) -> None:
        fields = {"alpha": alpha, "inputs": labels, "outputs": labels, "adjacency": adjacency}
        self.__dict__.update(fields, denominator=denominator(alpha, len(labels) - 1))

    @property
    def _n(self) -> int:
        return len(self.inputs) - 1

    @cached_property
    def _up(self) -> list[int]:
        return powers(self.alpha.numerator, self._n)

    @cached_property
    def _down(self) -> list[int]:
        return powers(self.alpha.denominator, self._n)

    def _entry(self, y: int, z: int) -> int:
        d, n = abs(z - y), self._n
        if z in (0, n):
            return self._up[d] * self._down[n - d]
        return (self.alpha.denominator - self.alpha.numerator) * self._up[d] * self._down[n - 1 - d]

    @cached_property
    def numerators(self) -> Integers:  # type: ignore[override]
        """The exact matrix."""
        if not fits(self.alpha, self._n):
            gigabytes = matrix_bits(self.alpha, self._n) / 8e9
            raise ChannelError(
                f"the exact matrix on {self._n + 1} counts would take {gigabytes:.1f} gigabytes: use probability, "
                "rows, epsilon, delta and sample, which do without it, or group the counts"
            )
        return matrix(self.alpha, self._n)

    @cached_property
    def rows(self) -> Floats:
        a, b = self.alpha.numerator, self.alpha.denominator
        places = np.arange(self._n + 1)
        # Python divides integers of any size with one correct rounding.
        halves = [(up, down * (a + b)) for up, down in zip(self._up, self._down, strict=True)]
        end = np.array([up * b / down for up, down in halves])
        view: Floats = np.array([up * (b - a) / down for up, down in halves])[np.abs(places[:, None] - places)]
        view[:, 0], view[:, -1] = end, end[::-1]
        view.flags.writeable = False
        return view

    def probability(self, given: Any, output: Any) -> Fraction:
        return Fraction(self._entry(self.input_index(given), self.output_index(output)), self.denominator)

    # Between inputs d steps apart the ratio is (b / a)^d at outputs below both or above both, and less between them.

    @cached_property
    def _ratios(self) -> list[Fraction]:
        step = 1 / self.alpha
        return [step**d for d in range(self._n + 1)]

    @cached_property
    def _worst_pair(self) -> Witness:
        return self._told_apart(0, self._n, Fraction(1))

    def _told_apart(self, i: int, j: int, distance: Fraction) -> Witness:
        near, far = min(i, j), max(i, j)
        return Witness((self.inputs[near], self.inputs[far]), self.outputs[0], self._ratios[far - near], distance)

    def _worst_pairs(self, relation: Adjacency) -> Iterable[Witness]:
        farthest: dict[Fraction, tuple[int, int]] = {}
        for i, j, distance in relation.pairs(self.inputs):
            known = farthest.get(distance)
            if known is None or abs(i - j) > abs(known[0] - known[1]):
                farthest[distance] = i, j
        return [self._told_apart(i, j, distance) for distance, (i, j) in farthest.items()]

    def _largest_of_columns(self) -> Sequence[int]:
        return [self._entry(y, y) for y in range(self._n + 1)]

    def _largest_excess(self, odds: Fraction) -> int:
        # The ratio of two rows is constant outside their inputs, so it depends only on the distance of the inputs,
        # and the farthest pair is distinguished best.
        n = self._n
        top, bottom = odds.numerator, odds.denominator
        return sum(max(self._entry(0, z) * bottom - self._entry(n, z) * top, 0) for z in range(n + 1))

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
        """2^64 P(output at least d below the input), for d = 1 .. n, its complement, both rounded down, and whether
        they were rounded.
        """
        a, b = self.alpha.numerator, self.alpha.denominator
        cut = [divmod(WORD * self._up[d], self._down[d - 1] * (a + b)) for d in range(1, self._n + 1)]
        below = np.array([word for word, _ in cut], dtype=np.uint64)
        above = np.array([WORD - word - (rest > 0) for word, rest in cut], dtype=np.uint64)
        return below, above, np.array([rest > 0 for _, rest in cut])

    def _law(self, given: int) -> KnownBoundaries:
        below, above, cut = self._words
        words = np.concatenate([below[:given][::-1], above[: self._n - given]])
        unsettled = np.concatenate([cut[:given][::-1], cut[: self._n - given]])
        return KnownBoundaries(words, unsettled, lambda: [self._entry(given, z) for z in range(self._n + 1)])

    def _key(self) -> tuple[Any, ...]:
        if fits(self.alpha, self._n):
            return super()._key()
        return "geometric", self.alpha, tuple(label_key(label) for label in self.inputs), self.adjacency.key()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Geometric, (self.alpha, self.inputs, self.adjacency)
