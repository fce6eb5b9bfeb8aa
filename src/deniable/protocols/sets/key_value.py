"""Key-value: how many people have each key, and the mean of its numbers among them.

Law        each number is rounded at random to an end of the interval, up with probability (x - low) / (high - low);
           the set of keys with their ends goes through a law of sets over 2 items per key: key k at its low end is
           item 2 k, at its high end 2 k + 1
Privacy    of the whole answer, keys and numbers: that of the law of sets. Rounding comes before an exact law
Choice     collisions or subsets of some size: the smallest variance of share and sum together, for a key of the average
           share, among the laws that are no worse in either, for any share, than subsets of size 1. That law is
           PCKV-GRR with fewer dummies, so that neither figure is worse than with it (up to 2^20 elements)
Error      share of a key: the sum of its two items. Mean: (high - low) / 2 times the share of the high end minus that
           of the low end, over the share of the key, from the middle of the interval; error by the delta method,
           interval by Fieller's theorem: all means for which that difference is within its error. It is the whole
           interval where the share itself may be none
Report     that of the law
Cost       one random word per key of an answer, then the law's
Source     Gu et al. 2020 (PCKV); Ye et al. 2019 (PrivKV)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, KeyNumbers, SetColumn, Sets
from deniable.errors import SpecError
from deniable.protocols.base import Cost, Protocol, load, percent
from deniable.protocols.numeric.grid import quantity, rounded_up, rounded_up_many
from deniable.protocols.reports import Bytes
from deniable.protocols.sets.collision import CollisionSets
from deniable.protocols.sets.law import SetProtocol
from deniable.protocols.sets.subset import MOST_ELEMENTS, MOST_SINGLE, SubsetSets
from deniable.protocols.tally import Tally
from deniable.protocols.wrapped import Through
from deniable.randomness import Bits
from deniable.results import Estimate, KeyMeans, Several, Weights, quantile
from deniable.results.sets import OF_REPORTED, KeyShares


def _key_variances(law: SetProtocol, share: float) -> tuple[float, float]:
    """The noise of one report about a key that so many people have: of its share, and of the sum of its numbers."""
    own, other, gap = law._spreads
    cross = law._covariances
    alone = share * (own + other) + (1 - share) * 2 * other
    between = 2 * (share * cross.one + (1 - share) * cross.none)
    return (alone + between) / gap**2, (alone - between) / gap**2


@lru_cache(maxsize=256)
def best_law_of_keys(domain: Sets, epsilon: Fraction) -> SetProtocol:
    """The law for sets of two items per key."""
    collision, usual = CollisionSets(domain, epsilon), min(1.0, 2 * domain.at_most / domain.items.size)
    if collision.elements > MOST_SINGLE:
        return collision
    single = SubsetSets(domain, epsilon, subset_size=1)
    laws: list[SetProtocol] = [single, collision]
    if collision.elements <= MOST_ELEMENTS:
        sizes = {SubsetSets(domain, epsilon).subset_size, 2, 3} - {1}
        laws += [SubsetSets(domain, epsilon, size) for size in sorted(sizes) if size <= domain.items.size]

    def is_fair(law: SetProtocol) -> bool:
        # Variances are linear in the share: no worse for a key of none and of all people is no worse for any.
        pairs = [(_key_variances(law, share), _key_variances(single, share)) for share in (0.0, usual, 1.0)]
        return all(x <= y for own, least in pairs for x, y in zip(own, least, strict=True))

    return min((law for law in laws if law is single or is_fair(law)), key=lambda law: sum(_key_variances(law, usual)))


@dataclass(frozen=True, init=False, repr=False)
class KeyValue(Through):
    """Shares of keys and means of their numbers.

    >>> stars = KeyValue(["mail", "maps"], Interval(1, 5, unit="stars"), epsilon=2, at_most=2)
    >>> found = stars.estimate(stars.tally(stars.privatize([{"mail": 5, "maps": 2}, {"mail": 4}] * 20_000)))
    >>> low, high = found["mean"].interval(0.999999)[0]
    >>> bool(low < 4.5 < high)
    True
    """

    name: ClassVar[str] = "KeyValue"
    reads: ClassVar[str] = "keys"
    takes: ClassVar[tuple[type[Domain], ...]] = (KeyNumbers,)
    advice: ClassVar[str] = "it needs keys and an interval: dn.KeyValue(keys, interval, epsilon, at_most)"

    domain: KeyNumbers
    epsilon: Fraction
    law: SetProtocol

    def __init__(self, keys: Any, interval: Any = None, epsilon: Any = None, at_most: int | None = None) -> None:
        """From keys, interval, epsilon and at_most; or from a domain `KeyNumbers` and epsilon alone."""
        if isinstance(keys, KeyNumbers):
            domain, level = keys, interval if epsilon is None else epsilon
        elif at_most is None:
            raise SpecError("at_most says how many keys of an answer are reported: it is needed")
        else:
            domain, level = KeyNumbers(keys, interval, at_most), epsilon
        self._set(domain, level, None)

    def _set(self, domain: Domain, epsilon: Any, law: Protocol | None) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        found = best_law_of_keys(self._items, self.epsilon) if law is None else law
        if not isinstance(found, SetProtocol) or found.domain != self._items or found.epsilon != self.epsilon:
            raise SpecError("the law of a key-value question is one of sets over two items per key, at its epsilon")
        self._take(found)

    @property
    def _items(self) -> Sets:
        return Sets(Integers(0, 2 * self.domain.items.size - 1), self.domain.at_most)

    def parameters(self) -> dict[str, Any]:
        return {"law": self.law.spec()}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> KeyValue:
        match parameters:
            case {"law": Mapping() as law, **rest} if not rest:
                made = cls.__new__(cls)
                made._set(domain, epsilon, load(dict(law)))
                return made
        raise SpecError("a key-value question needs the law of its sets, and nothing else")

    @classmethod
    def candidates(cls, domain: Domain, epsilon: exact.Number, n: int | None = None) -> Iterator[Protocol]:
        if isinstance(domain, KeyNumbers):
            yield cls(domain, epsilon)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["mail", "maps"], Interval(1, 5, unit="stars"), 1, at_most=1)
        yield cls(3, Interval(-1, 1), 2, at_most=2)

    @property
    def waived(self) -> Mapping[str, str]:
        return {"unbiased": "the mean of a key is a ratio of two estimates"}

    def scaled(self, factor: Fraction) -> KeyValue:
        made = type(self).__new__(type(self))
        made._set(self.domain, self.epsilon * factor, self.law.scaled(factor))
        return made

    # -- the law -----------------------------------------------------------------------------------

    @property
    def cost(self) -> Cost:
        return Cost(8.0 + self.law.cost.random_bytes, self.law.cost.operations)

    def _one(self, value: Any, bits: Bits) -> bytes:
        ends = self.domain.interval.ends
        return self.law._one([2 * key + rounded_up(number, *ends, bits) for key, number in value], bits)

    def _many(self, values: SetColumn, bits: Bits) -> Bytes:
        assert values.numbers is not None
        up = rounded_up_many(values.numbers, *self.domain.interval.ends, bits)
        return self.law._many(SetColumn(values.starts, 2 * values.items + up), bits)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Every set of keys at the ends of the interval: other numbers are mixtures of them."""
        labels, ends = self.domain.items.labels, self.domain.interval.ends
        for size in range(self.domain.at_most + 1):
            for chosen in combinations(range(self.domain.items.size), size):
                for at in product(ends, repeat=size):
                    named = tuple((labels[key], number) for key, number in zip(chosen, at, strict=True))
                    yield named, tuple(zip(chosen, at, strict=True))

    def _input_count(self) -> int:
        size = self.domain.items.size
        return sum(math.comb(size, number) << number for number in range(self.domain.at_most + 1))

    def forgeries(self, answers: Any) -> Bytes:
        """The keys, at the end that is nearer to their numbers."""
        up = answers.numbers > sum(self.domain.interval.ends) / 2
        return self.law.forged(np.unique(2 * answers.items + up))

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        low, high = self.domain.interval.ends
        unit = self.domain.interval.unit
        chances = [
            f"{self._name(key)} up with probability {percent((number - low) / (high - low))}" for key, number in encoded
        ]
        said = f" With your numbers: {', '.join(chances)}." if chances else ""
        return [
            f"Each of your numbers is rounded by a coin to {quantity(low)} or to {quantity(high, unit)}, so that "
            f"nothing is lost on average.{said} From here on, an item is a key at one of the two ends.",
            *self.law._steps(value, encoded, report),
        ]

    def _name(self, key: int) -> str:
        from deniable.labels import text

        return text(self.domain.items.labels[key])

    def spoken(self, report: bytes) -> str:
        return f"of keys at their ends, {self.law.spoken(report)}"

    def parts(self, n: int) -> dict[str, tuple[Protocol, int]]:
        return {"share": (self, n), "mean": (self._means, n)}

    def part_tallies(self, tally: Tally) -> dict[str, tuple[Protocol, Tally]]:
        return {"share": (self, tally), "mean": (self._means, tally)}

    @property
    def _means(self) -> KeyValue:
        """The same protocol, whose headline figure is a mean."""
        made = _Means.__new__(_Means)
        made._set(self.domain, self.epsilon, self.law)
        return made

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Several:
        """Two parts: "share", of each key, and "mean", of its numbers."""
        found: Several = super().estimate(tally)
        return found

    def _estimate(self, tally: Tally) -> Several:
        n, law = tally.n, self.law
        counts, noise, each = law.read(self._of_law(tally), np.arange(2 * self.domain.items.size))
        (low, high), (low_noise, high_noise) = (one.reshape(-1, 2).T for one in (counts, noise))
        held = np.clip((low + high) / n, 0.0, 1.0)
        gap, cross = law._spreads[2], law._covariances
        between = n * (held * cross.one + (1 - held) * cross.none) / gap**2
        total = np.maximum(low_noise + high_noise + 2 * between, 0.0)
        keys = self.domain.items.labels
        # A report may support both ends of a key, one of them, or none.
        extremes = float(np.min(each.lowest)), float(np.max(each.highest))
        weights = Weights(2 * extremes[0], 2 * extremes[1])
        most = self.domain.at_most if self.domain.at_most < len(keys) else 0
        method = f"{OF_REPORTED}, unbiased" if most else "unbiased"
        shares = KeyShares(keys, n, low + high, total, self.name, method, weights=weights, at_most=most)
        means = KeyMeans(
            keys,
            n,
            (low + high) / n,
            (high - low) / n,
            total / n**2,
            np.maximum(low_noise + high_noise - 2 * between, 0.0) / n**2,
            (high_noise - low_noise) / n**2,
            self.domain.interval.ends,
            self.name,
            unit=self.domain.interval.unit,
            weights=Weights(*extremes),
        )
        return Several({"share": shares, "mean": means}, n, self.name)

    def _nothing(self) -> Several:
        keys = self.domain.items.labels
        means = KeyMeans.nothing(keys, self.domain.interval.ends, self.name, self.domain.interval.unit)
        return Several({"share": KeyShares.nothing(keys, self.name), "mean": means}, 0, self.name)

    def truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """Shares of the keys, then means of their numbers; larger answers count with what a draw keeps on average."""
        column = self.domain.encode(answers)
        assert column.numbers is not None
        held = np.ones(len(column)) if people is None else np.asarray(people, dtype=np.float64)
        kept = np.repeat(held * np.minimum(1.0, self.domain.at_most / np.maximum(column.sizes, 1)), column.sizes)
        size = self.domain.items.size
        counts = np.bincount(column.items, kept, minlength=size)
        sums = np.bincount(column.items, kept * column.numbers, minlength=size)
        with np.errstate(invalid="ignore"):
            return np.concatenate([counts / held.sum(), sums / counts])

    @property
    def tests(self) -> int:
        return 2 * self.domain.items.size

    def noise(self, n: int) -> float:
        """Of the share of a rare key."""
        _, other, gap = self.law._spreads
        return float(np.sqrt(2 * (other + self.law._covariances.none) / gap**2 / n))

    def error(self, n: int, population: bool = True) -> float:
        """Of the share of a key, where it is largest."""
        own, other, gap = self.law._spreads
        cross, f = self.law._covariances, np.linspace(0, 1, 1001)
        spread = f * (own + other + 2 * cross.one) + (1 - f) * 2 * (other + cross.none)
        whole = spread / gap**2 + (f * (1 - f) if population else 0.0)
        return float(np.sqrt(whole.max() / n))

    def mean_error(self, n: int, share: float, population: bool = True) -> float:
        """Of the mean of a key that so many people have, as a part of the interval, for a mean in its middle."""
        drawn = share if population else 0.0  # rounding and sampling: at most half of the interval for one number
        return float(np.sqrt((_key_variances(self.law, share)[1] + drawn) / n)) / (2 * share)

    def visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        return min(1.0, quantile(level, self.tests) * self.noise(n))

    @property
    def leverage(self) -> float:
        return self.law.leverage

    @property
    def poisoning(self) -> float:
        return 2 * self.law.poisoning

    @property
    def figure_scales(self) -> NDArray[np.float64]:
        low, high = self.domain.interval.ends
        size = self.domain.items.size
        return np.concatenate([np.ones(size), np.full(size, high - low)])

    def figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        found = self._expected(answers, people, n)
        return np.concatenate([part.table(population=False).stderr ** 2 for part in found.parts.values()])

    def _expected(self, answers: Any, people: Any, n: int) -> Several:
        """What the estimate would be if noise took nothing and added nothing."""
        shares, means = self.truth(answers, people).reshape(2, -1)
        low, high = self.domain.interval.ends
        up = np.where(shares > 0, (np.nan_to_num(means) - low) / (high - low), 0.0) * shares
        items = np.stack([shares - up, up], axis=1).reshape(-1)
        noise = np.asarray(self.law.variance(n, items, population=False)).reshape(-1, 2).sum(axis=1) / n**2
        drawn = KeyMeans(
            self.domain.items.labels, n, shares, 2 * up - shares, noise, noise, 0 * noise, (low, high), self.name
        )
        return Several({"share": Estimate(drawn.labels, n, shares * n, noise * n**2, self.name), "mean": drawn}, n, "")

    formula_for: ClassVar[str] = "a law without collisions"

    def remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        rare = quantile(level) * self.noise(n)
        reach = [f"+-{100 * quantile(level) * self.mean_error(n, f, population):.2g} %" for f in (0.5, 0.1)]
        return (
            f"Each report is about a set of keys, each at one end of the interval ({self.law.name}). The share of a "
            f"rare key comes within +-{100 * rare:.2g} percentage points. The mean of a key that half of the people "
            f"have comes within {reach[0]} of the interval, that of a key that a tenth have within {reach[1]}. Of "
            f"more than {self.domain.at_most} keys {self.domain.at_most} are drawn."
        )

    def __repr__(self) -> str:
        keys, ends, most = self.domain.items, self.domain.interval, self.domain.at_most
        return f"KeyValue({keys!r}, {ends!r}, epsilon={self.epsilon}, at_most={most})"


class _Means(KeyValue):
    """The part about means: errors are those of a key of the average share, if everybody has `at_most` of the keys."""

    @property
    def unit(self) -> str:
        return self.domain.interval.unit

    @property
    def scale(self) -> float:
        low, high = self.domain.interval.ends
        return high - low

    @property
    def _usual(self) -> float:
        return min(1.0, self.domain.at_most / self.domain.items.size)

    def noise(self, n: int) -> float:
        return self.scale * self.mean_error(n, self._usual, population=False)

    def error(self, n: int, population: bool = True) -> float:
        return self.scale * self.mean_error(n, self._usual)

    def visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        return None

    @property
    def poisoning(self) -> float:
        return self.scale * self.law.poisoning
