"""A number rounded at random to one of D evenly spaced positions: the first step of every law of numbers here.

Rounding   s = min((x - low) (D - 1) / (high - low), D - 1) in floats, in this order, for x clipped to the interval; up
           from k = floor(s) with probability floor((s - k) 2^53) / 2^53. It comes before an exact channel and so needs
           no exactness for privacy; it biases a mean by less than 2^-50 of the range
Law        that of a number is a mixture of those of two neighbouring positions, so that the channel of a protocol has
           one row per position
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, Integers, Interval
from deniable.exact import Dyadic
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, percent
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.randomness import Bits
from deniable.randomness.kernels import BLOCK
from deniable.results import Floats
from deniable.words import Fact, Figure, Joined, word

_FRACTION = 1 << 53
_SHIFT = 11  # from 53 bits to 64
_REST, _REST_SHIFT = (1 << 37) - 1, 64 - 37  # what 16 of the 53 bits leave


def rounded_up(number: float, low: float, high: float, bits: Bits) -> bool:
    """Whether a number of an interval is rounded to its high end: two positions."""
    return bits.bernoulli(Dyadic(math.floor(min((number - low) / (high - low), 1.0) * _FRACTION) << _SHIFT))


def rounded_up_many(numbers: Floats, low: float, high: float, bits: Bits) -> NDArray[np.bool_]:
    """The same for an array."""
    up = np.minimum((numbers - low) / (high - low), 1.0)
    words = np.floor(up * _FRACTION).astype(np.uint64) << np.uint64(_SHIFT)
    drawn: NDArray[np.bool_] = (bits.words(numbers.size) < words) | (up >= 1)
    return drawn


class OnGrid:
    """What protocols share whose answer is a number; they have a `domain` of numbers and `positions`."""

    traits: ClassVar[Traits] = Traits(
        takes=(Interval, Integers),
        advice="it needs numbers, dn.Interval(low, high) or dn.Integers(low, high)",
    )

    if TYPE_CHECKING:
        domain: Domain

        @property
        def positions(self) -> int: ...

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return float(self._low), float(self._high)

    @property
    def _low(self) -> Fraction:
        return Fraction(self.domain.low)  # type: ignore[attr-defined]  # of an interval or of integers

    @property
    def _high(self) -> Fraction:
        return Fraction(self.domain.high)  # type: ignore[attr-defined]

    @property
    def _width(self) -> float:
        return self._ends[1] - self._ends[0]

    @property
    def _unit(self) -> str:
        return getattr(self.domain, "unit", "")

    def _number(self, encoded: Any) -> Any:
        """The number of an encoded answer, or the numbers of a column of them."""
        return encoded + self._ends[0] if isinstance(self.domain, Integers) else encoded

    def _rounded(self, encoded: Any, bits: Bits) -> int:
        """The position of one encoded answer: one random word, always."""
        low, high = self._ends
        s = min(((self._number(encoded) - low) * (self.positions - 1)) / (high - low), float(self.positions - 1))
        k = math.floor(s)
        up: int = bits.bernoulli(Dyadic(math.floor((s - k) * _FRACTION) << _SHIFT))
        return int(k) + up

    def _rounded_many(self, encoded: NDArray[Any], bits: Bits) -> Positions:
        out = np.empty(encoded.size, dtype=np.int64)
        for start in range(0, encoded.size, BLOCK):
            part = out[start : start + BLOCK]
            s = self._grid_places(encoded[start : start + BLOCK])
            part[:] = s
            s -= part
            # The first 16 bits decide unless they are those of the fraction itself.
            first, drawn = (s * (1 << 16)).astype(np.uint16), bits.uniform(part.size, np.uint16)
            up = drawn < first
            ties = np.flatnonzero(drawn == first)
            if ties.size:
                rest = np.floor(s[ties] * _FRACTION).astype(np.uint64) & np.uint64(_REST)
                up[ties] = bits.words(ties.size) >> np.uint64(_REST_SHIFT) < rest
            part += up
        return out

    def _grid_places(self, encoded: NDArray[Any]) -> Floats:
        """Where the numbers of encoded answers lie, from 0 at the low end to D - 1."""
        low, high = self._ends
        numbers = self._number(encoded)
        top = float(self.positions - 1)
        places: Floats = np.minimum(((numbers - low) * (self.positions - 1)) / (high - low), top)
        return places

    def _inputs(self) -> Iterator[tuple[Fraction | int, int]]:
        """The positions: the law of any number is a mixture of two of theirs."""
        step = (self._high - self._low) / (self.positions - 1)
        whole = isinstance(self.domain, Integers) and step.denominator == 1
        places = ((self._low + k * step, k) for k in range(self.positions))
        return ((int(number) if whole else number, k) for number, k in places)

    def law(self) -> Law:
        base: Law = super().law()  # type: ignore[misc]  # of the protocol
        return base.but(inputs=self._inputs, input_count=lambda: self.positions)

    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base: Worth = super().worth(n, read, population)  # type: ignore[misc]  # of the protocol
        return base.but(unit=lambda: self._unit, scale=lambda: self._width, truth=self._true_mean)

    def _true_mean(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The mean of the numbers, clipped to the interval."""
        mean = float(np.average(self.domain.encode(answers), weights=people))
        return np.array([mean + (self._ends[0] if isinstance(self.domain, Integers) else 0.0)])

    def _rounding_step(self, value: Any, encoded: Any) -> Fact:
        """How the number becomes a position."""
        low, high = self._ends
        number = self._number(encoded)
        s = min(((number - low) * (self.positions - 1)) / (high - low), float(self.positions - 1))
        below, rest = math.floor(s), s - math.floor(s)
        rounding = word("story.mark")
        if rest:
            at = [quantity(low + i * (high - low) / (self.positions - 1), self._unit) for i in (below, below + 1)]
            up = percent(math.floor(rest * _FRACTION) / _FRACTION)
            rounding = word("story.round", below=at[0], above=at[1], chance=up)
        return Joined([*marked(value, number, self._ends, self.positions - 1, self._unit), rounding], " ")


def marked(value: Any, number: float, ends: tuple[float, float], steps: int, unit: str) -> list[Fact]:
    """That there are marks from end to end, and if the answer lies beyond them, what it is taken as."""
    low, high = ends
    at = {"low": quantity(low, unit), "high": quantity(low + steps * (high - low) / steps, unit)}
    between = word("story.marks.two", **at) if steps == 1 else word("story.marks", n=steps + 1, **at)
    return [between] if number == float(value) else [word("story.beyond", taken=quantity(number, unit)), between]


def quantity(value: float, unit: str = "") -> Joined:
    """A number with its unit, in about six digits.

    >>> from deniable.words import catalogue
    >>> english = catalogue("en")
    >>> english.text(quantity(0.25)), english.text(quantity(1234567.0)), english.text(quantity(1500.5))
    ('0.25', '1,234,570', '1500.5')
    """
    rounded = float(f"{value:.6g}")
    digits = f"{abs(rounded):.12f}".rstrip("0").rstrip(".")
    figure = Figure(digits, grouped=abs(rounded) >= 10_000)
    return Joined([word("number.minus") if rounded < 0 else "", figure, unit and f"\N{NO-BREAK SPACE}{unit}"], "")
