"""Secure aggregation: each collector gets shares that say nothing, and only a noisy sum comes out.

Law        an answer is a vector of whole numbers: a single 1 among d zeros, or one number for a mean. Every person
           adds X - Y to each cell, X and Y negative binomial of shape 1 / (n - m) and parameter a: the sum over n - m
           people is exactly discrete Laplace with P(z) proportional to a^|z|, and more people add more noise. So m of
           n may drop out, or leave their noise away, and the epsilon stays
Privacy    of the published sum: a >= e^(-epsilon / sensitivity), a fraction; one answer for another changes the sums
           by 2 in all, a number by its range. X is drawn from integer weights, cut at the end: with the total
           variation t of one draw from its law, delta = (1 + e^epsilon) 2 d n t, a proven upper bound. A report by
           itself has next to no noise: it is split, and all collectors together could read it
Error      variance of a count: k / (n - m) times 2 a / (1 - a)^2, for k people; local privacy has a multiple of n there
Report     d words of 64 bits. A device sends it as shares, one for each collector: all but one are uniform modulo 2^64,
           and the last makes the sum right. Any collectors that do not all collude see uniform numbers
Cost       2 d draws and d words per share on the device; d additions per share on the server
Source     Agarwal, Kairouz and Liu 2021; Ghosh et al. 2009; Shi et al. 2011 for sums of noise of many people

Epoch      collectors keep shares by id, exchange lists of ids, sum what all of them have, and erase; if more than m are
           missing there is no result, because the noise would not suffice
Trust      that the collectors do not pool their shares before the epoch is over, and that at most m people drop out or
           cheat. Nobody can check a hidden vector without a proof: shares are checked for their length and no more, so
           one cheating person can move every count by any amount. Local reports bound what a liar can do
Possible   sums outside what n honest people and the noise give, except with probability 2^-60, are refused
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.geometric_law import decay_ceil
from deniable.domains import Domain, DomainLike, Integers, ListedDomain
from deniable.errors import ChannelError, DeniableError, NumberError, ReportError, ShapeError
from deniable.protocols.law import SUM, Guarantee, Law
from deniable.protocols.protocol import Positions, Protocol
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.structures import Sum
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits, not_offered
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, IntegerWeights, source_of
from deniable.results import Estimate, Mean
from deniable.words import Fact, word

__all__ = ["Collector", "ImpossibleSum", "SecureSum", "TooFewShares", "close_epoch", "joined", "split"]

SHARES, MEAN = READS = ("shares", "mean")
MOST_STEPS = 1000
"""The widest range of numbers whose mean is asked for."""
MOST_CELLS = 1 << 16
MOST_WEIGHTS = 1 << 18
"""The longest table of noise: its length is in the spec, so that a reader makes the table."""

_LIARS = (
    "nobody can look into a hidden vector, so that one person who cheats moves every count by any amount. Ask with a "
    "local protocol where people may cheat"
)
_PARTS = 192
_RARE = 60 * math.log(2)
Words = NDArray[np.uint64]


class ImpossibleSum(DeniableError, ValueError):
    """A sum that honest people cannot have given: a share was wrong, or somebody cheated."""


class TooFewShares(DeniableError, RuntimeError):
    """More people are missing than the noise of the others makes up for."""


@dataclass(frozen=True, repr=False)
class SecureSum(Protocol):
    """What everybody agrees on: who is asked what, with how much noise.

    Args:
        domain: The possible answers.
        epsilon: Epsilon of the sum.
        people: Number of people who are asked.
        missing: Maximum number of people who do not answer.
        collectors: Number of collectors.
        read: "shares" of the answers, or the "mean" of whole numbers.
        delta: Up to which probability the epsilon may fail, because the noise is drawn from a table that ends.

    >>> asked = SecureSum(["yes", "no"], epsilon=1, people=1000, missing=100)
    >>> round(asked.variance(1000), 2), float(asked.realized_delta) < 1e-12
    (8.71, True)
    """

    name: ClassVar[str] = "SecureSum"
    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain,),
        advice="secure aggregation adds up listed answers or whole numbers",
        reads=READS,
        local=False,
        candidates=not_offered,  # a planner does not choose whom to trust
        says=lambda protocol, report: protocol._says(report),
    )

    domain: ListedDomain
    people: int = 0
    missing: int = 0
    collectors: int = 2
    read: str = SHARES
    delta: Fraction = Fraction(1, 10**12)

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: DomainLike,
            epsilon: exact.Number,
            people: int,
            missing: int = 0,
            collectors: int = 2,
            read: str = SHARES,
            delta: exact.Number = "1e-12",
        ) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        for name, what in _WHOLE.items():
            object.__setattr__(self, name, exact.whole(getattr(self, name), what))
        delta = exact.short_number(exact.fraction(self.delta, "delta"), "delta")
        object.__setattr__(self, "delta", delta)
        if not 0 <= self.missing <= self.people - 2:
            raise NumberError("of all people, at least two have to send shares: give fewer that may be missing")
        if not 2 <= self.collectors <= 16:
            raise NumberError("one collector alone would see every answer: there are at least two, and at most 16")
        if not 0 < self.delta < 1:
            raise NumberError("delta lies between 0 and 1")
        if self.read not in READS:
            raise NumberError(f"sums are read for {' or '.join(READS)}, not {self.read!r}")
        if self.read == MEAN and not (isinstance(self.domain, Integers) and self.sensitivity <= MOST_STEPS):
            raise NumberError(
                f"a mean is of whole numbers in a range of at most {MOST_STEPS:,}: give Integers(low, high)"
            )
        if self.cells > MOST_CELLS:
            raise NumberError(f"secure aggregation adds up at most {MOST_CELLS:,} answers")
        # The weights fall off at least as fast as a^k, so that this is an upper bound of their number.
        fall = -math.log(self.decay)
        length = (math.log(self._draws / self.delta) - math.log(-math.expm1(-fall))) / fall
        if length > MOST_WEIGHTS:
            raise NumberError(
                f"at this epsilon the table of the noise may have {length:,.0f} weights, and {MOST_WEIGHTS:,} are the "
                "most: raise epsilon, or ask for a smaller range"
            )

    # -- the law -----------------------------------------------------------------------------------

    @property
    def cells(self) -> int:
        """The length of a vector."""
        return 1 if self.read == MEAN else self.domain.size

    @property
    def sensitivity(self) -> int:
        """How much one person's vector can change the sums, over all cells."""
        return self.domain.size - 1 if self.read == MEAN else 2

    @property
    def enough(self) -> int:
        """The fewest people for which there is a result."""
        return self.people - self.missing

    @cached_property
    def decay(self) -> Fraction:
        """a: how fast the noise of the sum falls off."""
        return decay_ceil(self.epsilon / self.sensitivity)

    @property
    def shape(self) -> Fraction:
        return Fraction(1, self.enough)

    @cached_property
    def _table(self) -> tuple[IntegerWeights, Fraction]:
        return noise_table(self.decay, self.shape, self.delta / self._draws)

    @property
    def _draws(self) -> Fraction:
        return (1 + exact.exp_ceil(self.epsilon)) * 2 * self.cells * self.people

    @property
    def realized_delta(self) -> Fraction:
        """Upper bound on the delta of the laws that are drawn; at most `delta`."""
        return self._draws * self._table[1]

    def variance(self, people: int) -> float:
        """The variance of the noise of `people` people in a count."""
        a = float(self.decay)
        return people * float(self.shape) * 2 * a / (1 - a) ** 2

    def most_noise(self, people: int, cells: int = 1) -> int:
        """A bound on the noise of `people` people, added up over `cells` cells, in every sum of a tally.

        The probability of more in any of the sums is below 2^-60.

        By Chernoff: P(X - Y >= z) <= M(t) e^(-t z) with M(t) = ((1 - a)^2 / (1 - a e^t) / (1 - a e^-t))^shape.

        >>> asked = SecureSum(["yes", "no"], epsilon=1, people=1000, missing=100)
        >>> asked.most_noise(1000), round(math.sqrt(asked.variance(1000)), 2)
        (96, 2.95)
        """
        a, shape = float(self.decay), people * cells * float(self.shape)
        t = -math.log(a) * np.linspace(0, 1, 1001)[1:-1]
        moments = shape * (2 * math.log1p(-a) - np.log1p(-a * np.exp(t)) - np.log1p(-a * np.exp(-t)))
        return math.ceil(float(((moments + _RARE + math.log(2 * self.cells + 2)) / t).min()))

    def check_sums(self, n: int, counts: Counts) -> None:
        """Raise ImpossibleSum unless n honest people and their noise can have given these sums."""
        most = n * self.sensitivity if self.read == MEAN else n
        noise = self.most_noise(n)
        low, high = int(counts.min()), int(counts.max())
        wrong = [found for found in (low, high) if not -noise <= found <= most + noise]
        # In floats: the sum of numbers that are far out could run over.
        total, around = float(counts.astype(np.float64).sum()), self.most_noise(n, self.cells)
        if wrong:
            what = (
                f"a sum is {wrong[0]:,}, and {n:,} honest people with their noise give {-noise:,} to {most + noise:,}"
            )
        elif self.read != MEAN and abs(total - n) > around:
            what = (
                f"the counts add up to {total:,.0f}, and those of {n:,} honest people to that, give or take {around:,}"
            )
        else:
            return
        raise ImpossibleSum(f"these sums are impossible: {what}. A share was wrong, or somebody cheated: no result")

    # -- the device --------------------------------------------------------------------------------

    def vector(self, position: int) -> NDArray[np.int64]:
        """What is added up, without noise, for the answer at this position."""
        if self.read == MEAN:
            return np.array([position], dtype=np.int64)
        held: NDArray[np.int64] = (np.arange(self.cells) == position).astype(np.int64)
        return held

    def draw(self, value: int, bits: Bits) -> bytes:
        law, cells = self._table[0], range(self.cells)
        up, down = [bits.draw(law) for _ in cells], [bits.draw(law) for _ in cells]
        return (self.vector(value) + up - down).astype("<i8").tobytes()

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        vectors = self.noise_of(len(values) * self.cells, bits).reshape(-1, self.cells)
        if self.read == MEAN:
            vectors[:, 0] += values
        else:
            vectors[np.arange(len(values)), values] += 1
        return vectors.astype("<i8").view(np.uint8).reshape(len(values), -1)

    def noise_of(self, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
        """The noise that people add to `count` cells."""
        source, law = source_of(bits), self._table[0]
        return source.draw(law, count) - source.draw(law, count)

    def shares(self, answer: Any, bits: Bits | None = None) -> list[Words]:
        """What a person sends, one share for each collector: on the device."""
        return self.split(self.vector(self.domain.encode_one(answer)), bits)

    def split(self, vector: Any, bits: Bits | None = None) -> list[Words]:
        """The same for a vector of whole numbers, which the caller keeps within the sensitivity."""
        given = np.asarray(vector)
        if given.shape != (self.cells,) or not np.issubdtype(given.dtype, np.integer):
            raise ShapeError(f"a vector of {self.cells} whole numbers is shared")
        source = source_of(bits)
        secret = (given.astype(np.int64) + self.noise_of(self.cells, source)).astype("<i8").tobytes()
        return [np.frombuffer(part, dtype="<u8") for part in split(secret, self.collectors, source)]

    def _says(self, report: bytes) -> Fact:
        return ", ".join(map(str, np.frombuffer(report, dtype="<i8").tolist()))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [
            word("story.sum.number", first=str(self.domain.labels[0]))
            if self.read == MEAN
            else word("story.sum.list", n=self.cells),
            word("story.sum.noise", n=self.enough),
            word("story.sum.split", n=str(self.collectors)),
        ]

    # -- the sums ----------------------------------------------------------------------------------

    def count(self, reports: Bytes) -> Counts:
        words = np.ascontiguousarray(reports).view("<u8").reshape(len(reports), self.cells)
        total: Counts = words.sum(axis=0, dtype=np.uint64).view(np.int64)
        return total

    def infer(self, tally: Tally) -> Any:
        if not tally.n:
            return self._nothing()
        self.check_sums(tally.n, tally.counts)
        said = (
            f"epsilon {exact.shown(self.epsilon)} and delta {float(self.delta):.1e} about one person, if the "
            f"{self.collectors} collectors do not pool shares and at most {self.missing} people left or cheated",
        )
        noise = self.variance(tally.n)
        if self.read == MEAN:
            low, high = float(self.domain.labels[0]), float(self.domain.labels[-1])  # type: ignore[arg-type]
            blur, spread = math.sqrt(noise) / tally.n, (high - low) ** 2 / (4 * tally.n)
            value = low + float(tally.counts[0]) / tally.n
            errors, how = (math.sqrt(blur**2 + spread), blur), {"said": said, "unbounded": _LIARS}
            return Mean(value, tally.n, *errors, (low, high), self.name, **how)  # type: ignore[arg-type]
        counts = tally.counts.astype(np.float64)
        return Estimate(
            self.domain.labels, tally.n, counts, np.full(self.cells, noise), self.name, said=said, unbounded=_LIARS
        )

    def _nothing(self) -> Any:
        if self.read == MEAN:
            low, high = float(self.domain.labels[0]), float(self.domain.labels[-1])  # type: ignore[arg-type]
            return Mean.nothing((low, high), self.name, self.worth().unit)
        return Estimate.nothing(self.domain.labels, self.name)

    def _error(self, n: int, population: bool = True) -> float:
        drawn = self.worth().scale ** 2 / (4 * n) if population else 0.0
        return math.sqrt(self.worth(n).noise ** 2 + drawn)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        positions = self.domain.encode(answers)
        held = np.bincount(positions, people, minlength=self.domain.size).astype(np.float64)
        if self.read == MEAN:
            numbers = np.asarray(self.domain.labels, dtype=np.float64)
            return np.array([numbers @ held / held.sum()])
        shares: NDArray[np.float64] = held / held.sum()
        return shares

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        return np.full(self.cells, self.worth(n).noise ** 2)

    # -- identity ----------------------------------------------------------------------------------

    def channel(self, max_cells: int = 1 << 22) -> Channel:
        """None: what is promised is about sums. `ratio` and `realized_delta` are those of the smallest crowd's sum."""
        raise ChannelError(
            f"a report of {self.name} keeps no epsilon by itself, so its matrix says nothing: the promise is about "
            f"sums of {self.enough:,} people or more, between collectors that do not work together"
        )

    @classmethod
    def examples(cls) -> Iterator[SecureSum]:
        yield cls(["yes", "no"], 1, people=100, missing=10)
        yield cls(Integers(3, 13), "1/2", people=50, read=MEAN)
        yield cls(["a", "b", "c"], 4, people=5, missing=3, collectors=3, delta="1e-6")

    def parameters(self) -> dict[str, Any]:
        """`decay` and `weights` follow from the others, so that a browser need not choose them again."""
        return {
            "people": self.people,
            "missing": self.missing,
            "collectors": self.collectors,
            "read": self.read,
            "delta": exact.canonical(self.delta),
            "decay": exact.canonical(self.decay),
            "weights": len(self._table[0]),
        }

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Self:
        return cls(domain, epsilon, **{key: value for key, value in parameters.items() if key not in _DERIVED})

    def __repr__(self) -> str:
        given = (f"{name}={getattr(self, name)!r}" for name in ("people", "missing", "collectors", "read"))
        return f"SecureSum({self.domain!r}, epsilon={exact.literal(self.epsilon)}, {', '.join(given)})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            read=self.read,
            cost=lambda: Cost(WORD_BYTES * self.cells * (1 + self.collectors), self.cells),
            scale=lambda: float(self.sensitivity) if self.read == MEAN else 1.0,
            noise=lambda: math.sqrt(self.variance(n)) / n,
            error=lambda: self._error(n, population),
            truth=self._truth,
            variances=self._figure_variances,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: Sum(self.people, self.missing, self.collectors),
            # The ratio of the sum over the fewest people, beyond delta.
            ratio=lambda: 1 / self.decay**self.sensitivity,
            guarantee=lambda: Guarantee(
                SUM, self.epsilon, self.delta, "any two answers of one person, given the published sums"
            ),
            width=lambda: WORD_BYTES * self.cells,
            counters=lambda: self.cells,
        )


_WHOLE = {
    "people": "the number of people",
    "missing": "the number of people that may be missing",
    "collectors": "the number of collectors",
}
_DERIVED = ("decay", "weights")


def split(secret: bytes, parts: int, bits: Bits | None = None) -> list[bytes]:
    """Split words of 64 bits into `parts` shares that add up to them modulo 2^64; fewer than all shares are uniform.

    >>> from deniable.randomness import Simulation
    >>> shares = split(bytes([7] + 15 * [0]), 3, Simulation(1))
    >>> [len(share) for share in shares], joined(shares)[0]
    ([16, 16, 16], 7)
    """
    last, source = np.frombuffer(secret, dtype="<u8").copy(), source_of(bits)
    masks = [source.words(last.size) for _ in range(parts - 1)]
    for mask in masks:
        last -= mask
    return [one.astype("<u8").tobytes() for one in (*masks, last)]


def joined(shares: Sequence[bytes]) -> bytes:
    """What shares add up to."""
    total = np.zeros(len(shares[0]) // WORD_BYTES, dtype="<u8")
    for share in shares:
        total += np.frombuffer(share, dtype="<u8")
    return total.tobytes()


def noise_table(decay: Fraction, shape: Fraction, distance: Fraction) -> tuple[IntegerWeights, Fraction]:
    """The negative binomial law as integer weights, and an upper bound of their total variation from it.

    P(k) is proportional to c_k = a^k shape (shape + 1) ... (shape + k - 1) / k!, a fraction; all c_k together are at
    least 1, and beyond K at most c_(K+1) / (1 - a) for shapes up to 1. Here in units of 2^-192, rounded down and up, so
    that numbers stay short.
    """
    if not (0 < decay < 1 and 0 < shape <= 1):
        raise NumberError("the noise of one person has a decay between 0 and 1, and a shape up to 1")
    unit = 1 << _PARTS
    weights = [unit]
    below = above = unit
    k = 0
    # above / (1 - decay) + (2 k + 2) k <= distance * unit, times the denominator of 1 - decay: in integers it is fast.
    over, gap = decay.denominator, decay.denominator - decay.numerator
    most = math.floor(distance * unit * gap)
    while True:
        top = decay.numerator * (k * shape.denominator + shape.numerator)
        bottom = decay.denominator * shape.denominator * (k + 1)
        below, above = below * top // bottom, -(-above * top // bottom)
        k += 1
        rest = above * over + (2 * k + 2) * k * gap
        if rest <= most:
            return IntegerWeights(weights), Fraction(rest, unit * gap)
        if below < 1 or k > MOST_WEIGHTS:
            raise NumberError("delta is too small for the table of this noise: allow more, or fewer cells or people")
        weights.append(below)


# -- all collectors in one process --------------------------------------------------------------------


@dataclass
class Collector:
    """One of the collectors: it keeps shares by id until the epoch closes, and then only their sum.

    Args:
        asked: The protocol.
        place: Position of the collector, from 0.
    """

    asked: SecureSum
    place: int
    _kept: dict[str, Words] = field(default_factory=dict, repr=False)

    def take(self, id: str, share: Any) -> None:
        """Keep a share; the same id again is the same person. Only the length can be checked."""
        given = np.asarray(share)
        if given.dtype != np.uint64 or given.shape != (self.asked.cells,):
            raise ReportError(f"a share has {self.asked.cells} words of 64 bits")
        self._kept.setdefault(id, given.copy())

    def ids(self) -> frozenset[str]:
        """The people whose shares the collector has; it sends this to the others when the epoch closes."""
        return frozenset(self._kept)

    def close(self, common: frozenset[str]) -> Words:
        """The sum of the shares of these people; all shares are erased."""
        absent = common - self._kept.keys()
        if absent:
            raise TooFewShares(f"collector {self.place + 1} has no share of {len(absent)} of the people agreed on")
        if len(common) < self.asked.enough:
            self.erase()
            raise too_few(self.asked, len(common))
        total = np.zeros(self.asked.cells, dtype=np.uint64)
        for id in sorted(common):
            total += self._kept[id]
        self.erase()
        return total

    def erase(self) -> None:
        """Overwrite and forget all shares."""
        for share in self._kept.values():
            share[:] = 0
        self._kept.clear()


def too_few(asked: SecureSum | Sum, complete: int) -> TooFewShares:
    return TooFewShares(
        f"{complete:,} of {asked.people:,} people are complete, and at most {asked.missing:,} may be missing: the "
        "noise of the others does not suffice, and there is no result"
    )


def close_epoch(collectors: Sequence[Collector]) -> Any:
    """Exchange lists of ids, sum the people whom all collectors know, erase the rest.

    Args:
        collectors: All collectors of the sum.

    Returns:
        The estimate.

    Raises:
        TooFewShares: Too few people are known to all collectors.
        ShapeError: Some collectors are missing.
    """
    asked = collectors[0].asked
    if len(collectors) != asked.collectors or {one.place for one in collectors} != set(range(asked.collectors)):
        raise ShapeError(f"all {asked.collectors} collectors have to close an epoch together")
    common = frozenset.intersection(*(one.ids() for one in collectors))
    if len(common) < asked.enough:
        for one in collectors:
            one.erase()
        raise too_few(asked, len(common))
    sums = [one.close(common).astype("<u8").tobytes() for one in collectors]
    counts = np.frombuffer(joined(sums), dtype="<i8")
    return asked.estimate(Tally(asked.fingerprint, len(common), counts))
