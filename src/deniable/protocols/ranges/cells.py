"""The cells of an ordered answer: each whole number, or equal parts of an interval.

Cell       of a whole number: its place. Of a number x in an interval: floor(((x - low) cells) / (high - low)), in
           floats, in this order, and the upper end lies in the last cell
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, Integers, Interval
from deniable.errors import NumberError
from deniable.results import Floats


@dataclass(frozen=True)
class Cells:
    """A domain of numbers, cut into so many cells."""

    domain: Domain
    count: int

    @classmethod
    def usual(cls, domain: Domain, cells: Any, usual: int, most: int) -> Cells:
        """So many cells as are given, or as usual; whole numbers are not grouped."""
        if isinstance(domain, Integers):
            if cells not in (None, domain.size) or isinstance(cells, bool):
                raise NumberError("of whole numbers each is a cell: leave cells out")
            found = domain.size
        else:
            found = usual if cells is None else cells
        if isinstance(found, bool) or not isinstance(found, int) or not 2 <= found <= most:
            power = most.bit_length() - 1
            raise NumberError(
                f"ranges need 2 to 2^{power} cells, not {found!r}: group the numbers, or give fewer cells"
            )
        return cls(domain, found)

    @property
    def is_whole(self) -> bool:
        return isinstance(self.domain, Integers)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        domain: Any = self.domain
        return Fraction(domain.low), Fraction(domain.high)

    @cached_property
    def points(self) -> Floats:
        """Where each cell begins."""
        low, high = map(float, self.ends)
        step = (high - low + 1 if self.is_whole else high - low) / self.count
        return low + step * np.arange(self.count, dtype=np.float64)

    def of(self, value: Any) -> int:
        """The cell of one encoded answer."""
        if not isinstance(self.domain, Interval):
            return int(value)
        low, high = self.domain.ends
        return min(math.floor((float(value - low) * self.count) / (high - low)), self.count - 1)

    def of_many(self, values: NDArray[Any]) -> NDArray[np.int64]:
        if not isinstance(self.domain, Interval):
            return values.astype(np.int64)
        low, high = self.domain.ends
        found = np.floor(((values - low) * self.count) / (high - low)).astype(np.int64)
        return np.minimum(found, self.count - 1)

    def inputs(self) -> Iterator[tuple[Any, Any]]:
        """One answer per cell, and what it is encoded as."""
        low, high = self.ends
        if self.is_whole:
            return ((int(low) + cell, cell) for cell in range(self.count))
        middles = [low + (high - low) * Fraction(2 * cell + 1, 2 * self.count) for cell in range(self.count)]
        return ((middle, float(middle)) for middle in middles)
