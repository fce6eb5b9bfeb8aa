"""Two protocols of a package that deniable has never heard of: shares of answers, and the mean of a number.

Law        the true position with probability t, else any other one: k-ary response without the true one in the else
Privacy    t (d - 1) / (1 - t) <= e^epsilon; t is rounded down
Error      of a share, pure: p = t, q = (1 - t) / (d - 1); of a mean, the spread of the reports' contributions
Report     the position, 1 byte
Source     this file is all that the package has
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from deniable import Interval, Mean, Protocol, Tally
from deniable.exact import Dyadic
from deniable.protocols import PureProtocol


class Teller(PureProtocol):
    """Tells the truth with probability t, else another answer."""

    name = "Teller"
    report_bytes = 1

    @classmethod
    def examples(cls) -> Iterator[Teller]:
        yield cls(["rye", "spelt"], 1)
        yield cls(4, 1)

    @cached_property
    def keep(self) -> Dyadic:
        return Dyadic.floor_of(lambda e: e / (e + self.domain.size - 1), self.epsilon)

    p = property(lambda self: self.keep.value)
    q = property(lambda self: (1 - self.p) / (self.domain.size - 1))
    ratio = property(lambda self: self.p / self.q)
    tally_size = property(lambda self: self.domain.size)
    report_forms = property(lambda self: self.domain.size)

    def _one(self, value: int, bits: Any) -> bytes:
        kept, other = bits.bernoulli(self.keep), bits.integers(self.domain.size - 1)
        return bytes([value if kept else other + (other >= value)])

    def _many(self, values: Any, bits: Any) -> Any:
        kept, other = bits.bernoulli(self.keep, values.size), np.zeros_like(values)
        if self.domain.size > 2:
            other = bits.integers(self.domain.size - 1, values.size)
        return np.where(kept, values, other + (other >= values)).astype(np.uint8)[:, None]

    def _count(self, reports: Any) -> Any:
        return np.bincount(reports[:, 0], minlength=self.tally_size)

    def _valid(self, reports: Any) -> Any:
        return reports[:, 0] < self.tally_size

    def _support(self, reports: Any) -> Any:
        return reports == np.arange(self.domain.size)


class Thermometer(Protocol):
    """The mean of a number: rounded at random to one of three marks, which a `Teller` tells."""

    name, reads, takes = "Thermometer", "mean", (Interval,)
    report_bytes, report_forms, tally_size = 1, 3, 3

    @classmethod
    def examples(cls) -> Iterator[Thermometer]:
        yield cls(Interval(-20, 40, unit="degrees"), 2)

    inner = cached_property(lambda self: Teller(3, self.epsilon))
    marks = cached_property(lambda self: np.linspace(*self.domain.ends, 3))
    ratio = property(lambda self: self.inner.ratio)
    unit = property(lambda self: self.domain.unit)
    _count = Teller._count
    _valid = Teller._valid

    def _one(self, value: float, bits: Any) -> bytes:
        place = 2 * (value - self.marks[0]) / (self.marks[2] - self.marks[0])
        up = bits.bernoulli(Dyadic(int((place % 1) * 2**53) << 11))
        return self._law_of(int(place) + up, bits)

    def _law_of(self, mark: int, bits: Any) -> bytes:
        return self.inner._one(mark, bits)

    def _many(self, values: Any, bits: Any) -> Any:
        place = 2 * (values - self.marks[0]) / (self.marks[2] - self.marks[0])
        up = bits.words(place.size) < (np.floor((place % 1) * 2**53).astype(np.uint64) << np.uint64(11))
        return self.inner._many(np.floor(place).astype(np.int64) + up, bits)

    def _inputs(self) -> Iterator[tuple[float, int]]:
        return ((float(mark), place) for place, mark in enumerate(self.marks))

    def truth(self, answers: Any, people: Any = None) -> Any:
        return np.array([np.average(self.domain.encode(answers), weights=people)])

    def _contributions(self) -> Any:
        p, q = float(self.inner.p), float(self.inner.q)
        return (self.marks - q * self.marks.sum()) / (p - q)

    def _estimate(self, tally: Tally) -> Mean:
        each, shares = self._contributions(), tally.counts / tally.n
        value = float(shares @ each)
        spread = max(float(shares @ each**2) - value**2, 0.0) / max(tally.n - 1, 1)
        stderr = math.sqrt(spread) or self.error(tally.n)
        return Mean(value, tally.n, stderr, stderr, self.domain.ends, self.name, unit=self.unit)

    def noise(self, n: int) -> float:
        return self.error(n)

    def error(self, n: int, population: bool = True) -> float:
        return float(np.ptp(self._contributions())) / 2 / math.sqrt(n)
