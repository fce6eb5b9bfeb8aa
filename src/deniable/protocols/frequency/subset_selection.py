"""Subset selection: report w of the d answers, the true one more often among them than not.

Law        the truth is in the subset with probability p = T / 2^64, T = floor(2^64 w e / (w e + d - w)), e = e^epsilon;
           given that, the subset is uniform among those of size w that contain the truth, or that do not
Privacy    P(S | v in S) / P(S | v not in S) = p (d - w) / ((1 - p) w) <= e
Support    q = (w - p) / (d - 1): a subset has w members, p of them the truth on average
Error      n q (1 - q) / (p - q)^2 + n f (1 - p - q) / (p - q), the smallest of all for w near d / (e + 1)
Report     the shorter of a bitmap of d bits (padding zero) and w positions in ascending order, little-endian
Cost       about w words on the device for one report; a carry-save adder or a histogram on the server
Source     Ye and Barg 2018; Wang et al. 2016
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels.closed_forms import best_subset_size
from deniable.domains import DomainLike
from deniable.errors import NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.base import WORD_BYTES, Cost, Positions, Protocol, percent
from deniable.protocols.frequency.bit_rows import (
    BitCounter,
    positional_popcount,
    random_subset,
    random_subsets,
    row_weights,
)
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.frequency.unary import bitmap_operations, padding_is_zero
from deniable.protocols.reports import Bytes, from_bytes, histogram, to_bytes, width_of
from deniable.protocols.tally import Adder, Counts
from deniable.randomness import Bits

_FEW_ANSWERS = 16
"""Up to here there is a table of all subsets."""
_MANY = 1 << 12
"""Reports, from which on it is worth building."""


@dataclass(frozen=True)
class SubsetSelection(PureProtocol):
    """Subset selection; without a size, the one with the smallest error.

    >>> protocol = SubsetSelection(1024, epsilon=1)
    >>> protocol.subset_size, protocol.report_bytes
    (275, 128)
    """

    name: ClassVar[str] = "SubsetSelection"

    subset_size: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number, subset_size: int = 0) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        size = self.domain.size
        subset = self.subset_size or best_subset_size(size, float(as_epsilon(self.epsilon)))
        if isinstance(subset, bool) or not isinstance(subset, int) or not 1 <= subset < size:
            raise NumberError(f"a subset has between 1 and {size - 1} of the {size} answers")
        object.__setattr__(self, "subset_size", subset)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"subset_size": self.subset_size}

    @cached_property
    def holds(self) -> Dyadic:
        """P(the subset contains the truth)."""
        w, rest = self.subset_size, self.domain.size - self.subset_size
        return Dyadic.floor_of(lambda e: w * e / (w * e + rest), self.epsilon)

    @property
    def p(self) -> Fraction:
        return self.holds.value

    @property
    def q(self) -> Fraction:
        return (self.subset_size - self.p) / (self.domain.size - 1)

    @property
    def ratio(self) -> Fraction:
        rest = self.domain.size - self.subset_size
        return self.p * rest / ((1 - self.p) * self.subset_size)

    @property
    def bystander(self) -> Fraction | None:
        d, w = self.domain.size, self.subset_size
        if d < 3:
            return None
        return (self.p * (w - 1) * (d - w) + (1 - self.p) * w * (d - 1 - w)) / ((d - 1) * (d - 2))

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        holds = percent(float(self.holds))
        return [
            f"The report is a set of {self.subset_size:,} of the {self.domain.size:,} answers. A coin puts yours among "
            f"them with probability {holds}.",
            "All other members are drawn from the other answers, each with the same probability.",
        ]

    @property
    def support_size(self) -> int:
        return self.subset_size

    @property
    def cost(self) -> Cost:
        members = float(self.subset_size)
        return Cost(WORD_BYTES * (1 + members - float(self.p)), min(members, bitmap_operations(self.domain.size)))

    @property
    def attack(self) -> float:
        """Guess any member of the subset."""
        return float(self.p / self.subset_size)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(5, 1, subset_size=2)
        yield cls(9, 1, subset_size=1)
        yield cls(17, 1, subset_size=2)

    @property
    def _listed(self) -> bool:
        """Whether a list of positions is shorter than a bitmap."""
        return self.subset_size * width_of(self.domain.size) < self._bitmap_bytes

    @property
    def _bitmap_bytes(self) -> int:
        return -(-self.domain.size // 8)

    @property
    def report_bytes(self) -> int:
        return self.subset_size * width_of(self.domain.size) if self._listed else self._bitmap_bytes

    @property
    def report_forms(self) -> int:
        return math.comb(self.domain.size, self.subset_size)

    @property
    def tally_size(self) -> int:
        return self.domain.size

    def _one(self, value: int, bits: Bits) -> bytes:
        held = bits.bernoulli(self.holds)
        others = random_subset(bits, self.domain.size - 1, self.subset_size - held)
        # Positions among the other answers skip the true one.
        members = sorted([other + (other >= value) for other in others] + [value] * held)
        if self._listed:
            width = width_of(self.domain.size)
            return b"".join(member.to_bytes(width, "little") for member in members)
        return sum(1 << member for member in members).to_bytes(self._bitmap_bytes, "little")

    def _many(self, values: Positions, bits: Bits) -> Bytes:
        held = bits.bernoulli(self.holds, values.size)
        if self._few is not None and values.size >= _MANY:
            return self._from_few(values, held, bits)
        maps = random_subsets(bits, self.domain.size, self.subset_size, values, held)
        if not self._listed:
            return maps
        members = np.nonzero(np.unpackbits(maps, axis=1, bitorder="little"))[1]
        return to_bytes(members, width_of(self.domain.size)).reshape(values.size, -1)

    @cached_property
    def _maps(self) -> NDArray[np.uint16] | None:
        """All bitmaps, where they are few."""
        size, subset = self.domain.size, self.subset_size
        if self._listed or size > _FEW_ANSWERS:
            return None
        maps = np.arange(1 << size, dtype=np.uint32)
        few: NDArray[np.uint16] = maps[np.bitwise_count(maps) == subset].astype(np.uint16)
        return few

    @cached_property
    def _lanes(self) -> NDArray[np.int64]:
        """Whether each answer is a member, one row per answer and one column per bitmap."""
        assert self._maps is not None
        answers = np.arange(self.domain.size, dtype=np.uint16)[:, None]
        return (self._maps >> answers & np.uint16(1)).astype(np.int64)

    @cached_property
    def _few(self) -> tuple[NDArray[np.uint16], NDArray[np.uint16]] | None:
        """The bitmaps with and without each answer, a row of them per answer."""
        if self._maps is None:
            return None
        every, size = np.broadcast_to(self._maps, self._lanes.shape), self.domain.size
        return every[self._lanes == 1].reshape(size, -1), every[self._lanes == 0].reshape(size, -1)

    def _from_few(self, values: Positions, held: NDArray[np.bool_], bits: Bits) -> Bytes:
        assert self._few is not None
        drawn = np.empty(values.size, dtype=np.uint16)
        for rows, which in zip(self._few, (np.flatnonzero(held), np.flatnonzero(~held)), strict=True):
            index = values[which] * rows.shape[1] + bits.integers(rows.shape[1], which.size)
            drawn[which] = rows.reshape(-1).take(index)
        return to_bytes(drawn, self.report_bytes)

    def _members(self, reports: Bytes) -> NDArray[Any]:
        return from_bytes(reports.reshape(-1, width_of(self.domain.size))).reshape(len(reports), -1)

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        if self._listed:
            members = self._members(reports).astype(np.int64)
            fits = members[:, -1:] < self.domain.size
            return np.asarray(np.hstack([np.diff(members, axis=1) > 0, fits]).all(axis=1))
        weight = row_weights(reports)
        valid: NDArray[np.bool_] = padding_is_zero(reports, self.domain.size) & (weight == self.subset_size)
        return valid

    def _count(self, reports: Bytes) -> Counts:
        if self._listed:
            return np.bincount(self._members(reports).reshape(-1), minlength=self.domain.size)
        if self._maps is not None and len(reports) >= _MANY:
            counts: Counts = self._lanes @ histogram(from_bytes(reports), 1 << self.domain.size)[self._maps]
            return counts
        return positional_popcount(reports)[: self.domain.size]

    def _adder(self) -> Adder:
        return (
            super()._adder()
            if self._listed or self._few is not None
            else BitCounter(self.report_bytes, self.domain.size)
        )

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        if not self._listed:
            return np.unpackbits(reports, axis=1, count=self.domain.size, bitorder="little").view(np.bool_)
        supported = np.zeros((len(reports), self.domain.size), dtype=np.bool_)
        np.put_along_axis(supported, self._members(reports).astype(np.int64), True, axis=1)
        return supported
