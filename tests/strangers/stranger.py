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
from deniable.protocols import Law, PureProtocol, Traits, Worth


class Teller(PureProtocol):
    """Tells the truth with probability t, else another answer."""

    name = "Teller"

    @classmethod
    def examples(cls) -> Iterator[Teller]:
        yield cls(["rye", "spelt"], 1)
        yield cls(4, 1)

    @cached_property
    def keep(self) -> Dyadic:
        return Dyadic.floor_of(lambda e: e / (e + self.domain.size - 1), self.epsilon)

    p = property(lambda self: self.keep.value)
    q = property(lambda self: (1 - self.p) / (self.domain.size - 1))

    def law(self) -> Law:
        size = self.domain.size
        return super().law().but(ratio=lambda: self.p / self.q, width=1, forms=size, counters=size)

    def draw(self, value: int, bits: Any) -> bytes:
        kept, other = bits.bernoulli(self.keep), bits.integers(self.domain.size - 1)
        return bytes([value if kept else other + (other >= value)])

    def draw_many(self, values: Any, bits: Any) -> Any:
        kept, other = bits.bernoulli(self.keep, values.size), np.zeros_like(values)
        if self.domain.size > 2:
            other = bits.integers(self.domain.size - 1, values.size)
        return np.where(kept, values, other + (other >= values)).astype(np.uint8)[:, None]

    def count(self, reports: Any) -> Any:
        return np.bincount(reports[:, 0], minlength=self.tally_size)

    def valid(self, reports: Any) -> Any:
        return reports[:, 0] < self.tally_size

    def _support(self, reports: Any) -> Any:
        return reports == np.arange(self.domain.size)


class Thermometer(Protocol):
    """The mean of a number: rounded at random to one of three marks, which a `Teller` tells."""

    name = "Thermometer"
    traits = Traits(takes=(Interval,), reads=("mean",))

    @classmethod
    def examples(cls) -> Iterator[Thermometer]:
        yield cls(Interval(-20, 40, unit="degrees"), 2)

    inner = cached_property(lambda self: Teller(3, self.epsilon))
    marks = cached_property(lambda self: np.linspace(*self.domain.ends, 3))
    count = Teller.count
    valid = Teller.valid

    def draw(self, value: float, bits: Any) -> bytes:
        place = 2 * (value - self.marks[0]) / (self.marks[2] - self.marks[0])
        up = bits.bernoulli(Dyadic(int((place % 1) * 2**53) << 11))
        return self.inner.draw(int(place) + up, bits)

    def draw_many(self, values: Any, bits: Any) -> Any:
        place = 2 * (values - self.marks[0]) / (self.marks[2] - self.marks[0])
        up = bits.words(place.size) < (np.floor((place % 1) * 2**53).astype(np.uint64) << np.uint64(11))
        return self.inner.draw_many(np.floor(place).astype(np.int64) + up, bits)

    def law(self) -> Law:
        base = super().law().but(ratio=self.inner.ratio, width=1, forms=3, counters=3, sent=self.inner.draw)
        return base.but(inputs=lambda: ((float(mark), place) for place, mark in enumerate(self.marks)))

    def _contributions(self) -> Any:
        p, q = float(self.inner.p), float(self.inner.q)
        return (self.marks - q * self.marks.sum()) / (p - q)

    def infer(self, tally: Tally) -> Mean:
        if not tally.n:
            return Mean.nothing(self.domain.ends, self.name, self.domain.unit)
        each, shares = self._contributions(), tally.counts / tally.n
        value = float(shares @ each)
        spread = max(float(shares @ each**2) - value**2, 0.0) / max(tally.n - 1, 1)
        stderr = math.sqrt(spread) or self.worth(tally.n).error
        return Mean(value, tally.n, stderr, stderr, self.domain.ends, self.name, unit=self.domain.unit)

    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        error = float(np.ptp(self._contributions())) / 2 / math.sqrt(n)
        base = super().worth(n, read, population).but(noise=error, error=error, unit=self.domain.unit)
        return base.but(truth=lambda answers, people=None: np.array([np.average(answers, weights=people)]))
