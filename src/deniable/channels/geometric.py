"""The truncated geometric mechanism: a count that stays in its range.

Law        with a = e^(-epsilon / sensitivity): P(z | y) = a^|z - y| (1 - a) / (1 + a) inside the range, and
           a^|z - y| / (1 + a) at its two ends, which take what would have fallen outside
Privacy    neighbouring counts differ by the factor 1 / a everywhere; a is rounded up to a fraction, so epsilon is
           never exceeded and every row still sums to one exactly
Cost       the powers of a are all that is kept: n integers, not n^2; up to 2,047 counts. The matrix of exact
           integers, `numerators`, is built on demand and only while it is below a quarter of a gigabyte
Use        universally optimal for counting queries, after its Bayes remap (Ghosh, Roughgarden, Sundararajan 2009)
Source     Ghosh et al. 2009
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels._vectors import Floats
from deniable.channels.adjacency import Adjacency, line
from deniable.channels.channel import Channel, Integers
from deniable.channels.geometric_law import decay_ceil, denominator, fits, matrix, matrix_bits, powers
from deniable.channels.witness import Witness
from deniable.errors import ChannelError, ShapeError
from deniable.exact import WORD
from deniable.labels import Label, as_labels, label_key
from deniable.randomness import KnownBoundaries

MOST_COUNTS = 1 << 11
"""The float view of so many counts has four million cells."""


def truncated_geometric(n: int, epsilon: Any, sensitivity: int = 1) -> Channel:
    """The geometric mechanism on {0, ..., n}, for counts that one person changes by at most `sensitivity`.

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
    """The law of `geometric_law`, kept as the powers of the decay."""

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
        # The ratio of two rows is constant outside their inputs, so all that tells them apart is how far these are
        # apart, and the farthest are told apart best.
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
