"""Secure aggregation: each collector gets shares that say nothing, and only a noisy sum comes out.

Shares     a vector of whole numbers, with noise, is split into one share per collector: all but one are uniform modulo
           2^64, and the last makes the sum right. Any collectors that do not all collude see uniform numbers
Noise      every person adds X - Y to each cell, X and Y negative binomial of shape 1 / (n - m) and parameter a: the sum
           over n - m people is exactly discrete Laplace with P(z) proportional to a^|z|, and more people add more
           noise. So m of n may drop out, or leave their noise away, and the epsilon stays
Privacy    a >= e^(-epsilon / sensitivity), a fraction; an answer out of d, written as a vector with a single 1, has
           sensitivity 2. X is drawn from integer weights, cut at the end: with the total variation t of one draw from
           its law, delta = (1 + e^epsilon) 2 d n t, a proven upper bound. epsilon is about all of one person's vector
Error      variance of a count: k / (n - m) times 2 a / (1 - a)^2, for k people; local privacy has a multiple of n there
Epoch      collectors keep shares by id, exchange lists of ids, sum what all of them have, and erase; if more than m are
           missing there is no result, because the noise would not suffice
Trust      that the collectors do not pool their shares before the epoch is over, and that at most m people drop out or
           cheat. Nobody can check a hidden vector without a proof: shares are checked for their length and no more, so
           one cheating person can move every count by any amount. Local reports bound what a liar can do
Source     Agarwal, Kairouz and Liu 2021; Ghosh et al. 2009; Shi et al. 2011 for sums of noise of many people
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels.geometric_law import decay_ceil
from deniable.domains import ListedDomain, as_listed
from deniable.errors import DeniableError, NumberError, ReportError, ShapeError
from deniable.randomness import Bits, Law, source_of
from deniable.results import Estimate

__all__ = ["Collector", "SecureSum", "TooFewShares", "close_epoch"]

_PARTS = 192
Words = NDArray[np.uint64]


class TooFewShares(DeniableError, RuntimeError):
    """More people are missing than the noise of the others makes up for."""


@dataclass(frozen=True, eq=False)
class SecureSum:
    """What everybody agrees on: who is asked what, with how much noise.

    >>> asked = SecureSum(["yes", "no"], epsilon=1, people=1000, missing=100)
    >>> round(asked.variance(1000), 2), float(asked.delta) < 1e-12
    (8.71, True)
    """

    domain: ListedDomain
    epsilon: Fraction
    people: int
    missing: int
    collectors: int = 2
    sensitivity: int = 2
    """How much one person's vector can change the sums, over all cells."""
    largest_delta: Fraction = Fraction(1, 10**12)

    def __init__(
        self,
        domain: Any,
        epsilon: Any,
        people: int,
        missing: int = 0,
        collectors: int = 2,
        sensitivity: int = 2,
        delta: Any = "1e-12",
    ) -> None:
        object.__setattr__(self, "domain", as_listed(domain))
        object.__setattr__(self, "epsilon", exact.as_epsilon(epsilon))
        object.__setattr__(self, "people", exact.whole(people, "the number of people"))
        object.__setattr__(self, "missing", exact.whole(missing, "the number of people that may be missing"))
        object.__setattr__(self, "collectors", exact.whole(collectors, "the number of collectors"))
        object.__setattr__(self, "sensitivity", exact.whole(sensitivity, "the sensitivity"))
        object.__setattr__(self, "largest_delta", exact.fraction(delta, "delta"))
        if not 0 <= self.missing < self.people:
            raise NumberError("of all people, at least one has to send shares: give fewer that may be missing")
        if self.collectors < 2:
            raise NumberError("one collector alone would see every answer: there are at least two")
        if self.sensitivity < 1 or not 0 < self.largest_delta < 1:
            raise NumberError("the sensitivity is at least 1, and delta lies between 0 and 1")

    @cached_property
    def decay(self) -> Fraction:
        """a: how fast the noise of the sum falls off."""
        return decay_ceil(self.epsilon / self.sensitivity)

    @property
    def shape(self) -> Fraction:
        return Fraction(1, self.people - self.missing)

    @cached_property
    def _table(self) -> tuple[Law, Fraction]:
        draws = 2 * self.domain.size * self.people
        wanted = self.largest_delta / ((1 + exact.exp_ceil(self.epsilon)) * draws)
        return noise_table(self.decay, self.shape, wanted)

    @property
    def delta(self) -> Fraction:
        """By how much the laws that are drawn may miss epsilon; an upper bound."""
        draws = 2 * self.domain.size * self.people
        return (1 + exact.exp_ceil(self.epsilon)) * draws * self._table[1]

    def variance(self, people: int) -> float:
        """Of the noise in a count, from so many people."""
        a = float(self.decay)
        return people * float(self.shape) * 2 * a / (1 - a) ** 2

    def noise(self, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
        """What one person adds to so many cells."""
        source, law = source_of(bits), self._table[0]
        return source.draw(law, count) - source.draw(law, count)

    def shares(self, answer: Any, bits: Bits | None = None) -> list[Words]:
        """What a person sends, one share for each collector: on the device."""
        vector = np.zeros(self.domain.size, dtype=np.int64)
        vector[int(self.domain.index([answer])[0])] = 1
        return self.split(vector, bits)

    def split(self, vector: Any, bits: Bits | None = None) -> list[Words]:
        """The same for a vector of whole numbers, which the caller keeps within the sensitivity."""
        given = np.asarray(vector)
        if given.shape != (self.domain.size,) or not np.issubdtype(given.dtype, np.integer):
            raise ShapeError(f"a vector of {self.domain.size} whole numbers is shared")
        source = source_of(bits)
        secret = (given.astype(np.int64) + self.noise(self.domain.size, source)).astype(np.uint64)
        sent = [source.words(self.domain.size) for _ in range(self.collectors - 1)]
        last = secret.copy()
        for one in sent:
            last -= one
        return [*sent, last]

    def estimate(self, sums: Iterable[Words], people: int) -> Estimate:
        """The counts with their errors, from the sums of all collectors over the same people."""
        total = np.zeros(self.domain.size, dtype=np.uint64)
        for one in sums:
            total += one
        counts = total.view(np.int64).astype(np.float64)
        noise = np.full(self.domain.size, self.variance(people))
        said = (
            f"epsilon {exact.shown(self.epsilon)} and delta {float(self.delta):.1e} about one person, if the "
            f"{self.collectors} collectors do not pool shares and at most {self.missing} people left or cheated",
        )
        return Estimate(self.domain.labels, people, counts, noise, "secure sum", said=said)

    def spec(self) -> dict[str, Any]:
        """What devices and collectors have to agree on, as JSON."""
        return {
            "kind": "secure-sum",
            "version": 1,
            "domain": self.domain.spec(),
            "epsilon": exact.canonical(self.epsilon),
            "people": self.people,
            "missing": self.missing,
            "collectors": self.collectors,
            "sensitivity": self.sensitivity,
            "decay": exact.canonical(self.decay),
        }


def noise_table(decay: Fraction, shape: Fraction, distance: Fraction) -> tuple[Law, Fraction]:
    """The negative binomial law as integer weights, and an upper bound of their total variation from it.

    P(k) is proportional to c_k = a^k shape (shape + 1) ... (shape + k - 1) / k!, a fraction; all c_k together are at
    least 1, and beyond K at most c_(K+1) / (1 - a) for shapes up to 1.
    """
    if not (0 < decay < 1 and 0 < shape <= 1):
        raise NumberError("the noise of one person has a decay between 0 and 1, and a shape up to 1")
    unit = 1 << _PARTS
    weights = [unit]
    below = above = Fraction(1)  # c_k between rounded fractions, so that numbers stay short
    k = 0
    while True:
        factor = decay * (k + shape) / (k + 1)
        below, above = (
            Fraction(math.floor(below * factor * unit), unit),
            Fraction(math.ceil(above * factor * unit), unit),
        )
        k += 1
        rest = above / (1 - decay) + Fraction(2 * k + 2, unit) * k
        if rest <= distance:
            return Law(weights), rest
        if below * unit < 1 or k > 1 << 20:
            raise NumberError("delta is too small for the table of this noise: allow more, or fewer cells or people")
        weights.append(int(below * unit))


@dataclass
class Collector:
    """One of the collectors: it keeps shares by id until the epoch closes, and then only their sum."""

    asked: SecureSum
    place: int
    _kept: dict[str, Words] = field(default_factory=dict, repr=False)

    def take(self, id: str, share: Any) -> None:
        """Keep a share; the same id again is the same person. Only the length can be checked."""
        given = np.asarray(share)
        if given.dtype != np.uint64 or given.shape != (self.asked.domain.size,):
            raise ReportError(f"a share has {self.asked.domain.size} words of 64 bits")
        if id not in self._kept and len(self._kept) == self.asked.people:
            raise ReportError(f"all {self.asked.people} people have sent their shares: the noise is made for so many")
        self._kept.setdefault(id, given.copy())

    def ids(self) -> frozenset[str]:
        """Whose shares it has: what it tells the others when the epoch closes."""
        return frozenset(self._kept)

    def close(self, common: frozenset[str]) -> Words:
        """The sum of the shares of these people; all shares are erased."""
        absent = common - self._kept.keys()
        if absent:
            raise TooFewShares(f"collector {self.place + 1} has no share of {len(absent)} of the people agreed on")
        if self.asked.people - len(common) > self.asked.missing:
            self.erase()
            raise TooFewShares(
                f"{len(common)} of {self.asked.people} people are complete, and at most {self.asked.missing} may be "
                "missing: the noise of the others does not suffice, and there is no result"
            )
        total = np.zeros(self.asked.domain.size, dtype=np.uint64)
        for id in sorted(common):
            total += self._kept[id]
        self.erase()
        return total

    def erase(self) -> None:
        """Overwrite and forget all shares."""
        for share in self._kept.values():
            share[:] = 0
        self._kept.clear()


def close_epoch(collectors: Sequence[Collector]) -> Estimate:
    """Exchange lists of ids, sum the people whom all collectors know, erase the rest; raises TooFewShares."""
    asked = collectors[0].asked
    if len(collectors) != asked.collectors or {one.place for one in collectors} != set(range(asked.collectors)):
        raise ShapeError(f"all {asked.collectors} collectors have to close an epoch together")
    common = frozenset.intersection(*(one.ids() for one in collectors))
    if asked.people - len(common) > asked.missing:
        for one in collectors:
            one.erase()
        raise TooFewShares(
            f"{len(common)} of {asked.people} people are complete, and at most {asked.missing} may be missing: "
            "the noise of the others does not suffice, and there is no result"
        )
    return asked.estimate([one.close(common) for one in collectors], len(common))
