"""Key-value: how many people have each key, and the mean of its numbers among them.

Law        each number is rounded at random to an end of the interval, up with probability (x - low) / (high - low);
           the set of keys with their ends goes through a law of sets over 2 items per key: key k at its low end is
           item 2 k, at its high end 2 k + 1
Privacy    of the whole answer, keys and numbers: that of the law of sets. Rounding comes before an exact law
Choice     collisions or subsets of some size: the smallest variance of share and sum together, for a key of the average
           share, among the laws that are not worse in either, for any share, than subsets of size 1. That law is
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, Integers, Interval, KeyNumbers, SetColumn, Sets
from deniable.errors import SpecError
from deniable.protocols.law import Law
from deniable.protocols.numeric.grid import quantity, rounded_up, rounded_up_many
from deniable.protocols.protocol import Protocol, load, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.sets.collision import CollisionSets
from deniable.protocols.sets.law import SetProtocol
from deniable.protocols.sets.subset import MOST_ELEMENTS, MOST_SINGLE, SubsetSets
from deniable.protocols.structures import Mapped
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits, scaled
from deniable.protocols.worth import Cost, Worth
from deniable.protocols.wrapped import Through
from deniable.randomness import Bits
from deniable.results import Estimate, KeyMeans, Several, Weights, quantile
from deniable.results.bounds import Numbers
from deniable.results.sets import OF_REPORTED, KeyShares
from deniable.words import Fact, Joined, word


def _key_variances(law: SetProtocol, share: float) -> tuple[float, float]:
    """The noise of one report about a key with this share: of the share, and of the sum of its numbers."""
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

    Args:
        keys: The keys: a list, their number, or a listed domain; or a domain `KeyNumbers`, then `interval` and
            `at_most` are left out.
        interval: The interval of the numbers.
        epsilon: Largest epsilon of a report.
        at_most: Number of keys of an answer that are reported.

    Raises:
        SpecError: `at_most` is missing.

    >>> stars = KeyValue(["mail", "maps"], Interval(1, 5, unit="stars"), epsilon=2, at_most=2)
    >>> found = stars.estimate(stars.tally(stars.privatize([{"mail": 5, "maps": 2}, {"mail": 4}] * 20_000)))
    >>> low, high = found["mean"].interval(0.999999)[0]
    >>> bool(low < 4.5 < high)
    True
    """

    name: ClassVar[str] = "KeyValue"
    traits: ClassVar[Traits] = Traits(
        takes=(KeyNumbers,),
        advice="it needs keys and an interval: dn.KeyValue(keys, interval, epsilon, at_most)",
        reads=("keys",),
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "the mean of a key is a ratio of two estimates"},
        says=lambda protocol, report: protocol._says(report),
    )

    domain: KeyNumbers
    epsilon: Fraction
    inner: SetProtocol

    def __init__(self, keys: Any, interval: Any = None, epsilon: Any = None, at_most: int | None = None) -> None:
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
        return {"law": self.inner.spec()}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> KeyValue:
        match parameters:
            case {"law": Mapping() as law, **rest} if not rest:
                made = cls.__new__(cls)
                made._set(domain, epsilon, load(dict(law)))
                return made
        raise SpecError("a key-value question needs the law of its sets, and nothing else")

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, KeyNumbers):
            yield cls(ask.domain, ask.epsilon)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["mail", "maps"], Interval(1, 5, unit="stars"), 1, at_most=1)
        yield cls(3, Interval(-1, 1), 2, at_most=2)

    def _scaled(self, factor: Fraction) -> KeyValue:
        made = type(self).__new__(type(self))
        made._set(self.domain, self.epsilon * factor, scaled(self.inner, factor))
        return made

    # -- the law -----------------------------------------------------------------------------------

    def _rounded(self, value: Any, bits: Bits) -> list[int]:
        """The keys at the ends of the interval, as items of the inner protocol."""
        ends = self.domain.interval.ends
        return [2 * key + rounded_up(number, *ends, bits) for key, number in value]

    def draw_many(self, values: SetColumn, bits: Bits) -> Bytes:
        assert values.numbers is not None
        up = rounded_up_many(values.numbers, *self.domain.interval.ends, bits)
        return self.inner.draw_many(SetColumn(values.starts, 2 * values.items + up), bits)

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

    def _forgeries(self, answers: Any) -> Bytes:
        """The keys, at the end that is nearer to their numbers."""
        up = answers.numbers > sum(self.domain.interval.ends) / 2
        return self.inner.forged(np.unique(2 * answers.items + up))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        low, high = self.domain.interval.ends
        ends = {"low": quantity(low), "high": quantity(high, self.domain.interval.unit)}
        chances = [
            word("story.keys.up", key=self._name(key), chance=percent((number - low) / (high - low)))
            for key, number in encoded
        ]
        rounded = (
            word("story.keys", **ends, chances=Joined(chances, ", ")) if chances else word("story.keys.none", **ends)
        )
        return [rounded, *self.inner.story(value, encoded, report)]

    def _name(self, key: int) -> str:
        from deniable.labels import text

        return text(self.domain.items.labels[key])

    def _says(self, report: bytes) -> Fact:
        return word("report.keys", report=self.inner.traits.says(self.inner, report))

    @property
    def _means(self) -> KeyValue:
        """The same protocol, whose headline figure is a mean."""
        made = _Means.__new__(_Means)
        made._set(self.domain, self.epsilon, self.inner)
        return made

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Several:
        """Two parts: "share", of each key, and "mean", of its numbers."""
        found: Several = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> Several:
        if not tally.n:
            return self._nothing()
        n, law = tally.n, self.inner
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
        # The errors of supports alone: where hash functions collide, a report is worth less.
        pairs, (own, other, _) = law.pair_law, law._spreads
        alone = held * (own + other + 2 * cross.one) + (1 - held) * 2 * (other + cross.none)
        errors = np.sqrt((alone / gap**2 + held * (1 - held)) / n)
        said = pairs.counted(n, pairs.supports(low / n, n), pairs.supports(high / n, n), 0.0, held)
        numbers = Numbers((np.array([0.0, 1.0, 1.0, 2.0]) - 2 * pairs.q) / gap, said, errors)
        worth = np.minimum(n * alone / gap**2 / total, 1.0)
        shares = KeyShares(keys, n, low + high, total, self.name, method, weights=weights, at_most=most, bounds=numbers)
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
            law=pairs,
            worth=worth,
        )
        return Several({"share": shares, "mean": means}, n, self.name)

    def _nothing(self) -> Several:
        keys = self.domain.items.labels
        means = KeyMeans.nothing(keys, self.domain.interval.ends, self.name, self.domain.interval.unit)
        return Several({"share": KeyShares.nothing(keys, self.name), "mean": means}, 0, self.name)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
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

    def _noise(self, n: int) -> float:
        """The noise of the share of a rare key."""
        _, other, gap = self.inner._spreads
        return float(np.sqrt(2 * (other + self.inner._covariances.none) / gap**2 / n))

    def _error(self, n: int, population: bool = True) -> float:
        """The error of the share of a key, where it is largest."""
        own, other, gap = self.inner._spreads
        cross, f = self.inner._covariances, np.linspace(0, 1, 1001)
        spread = f * (own + other + 2 * cross.one) + (1 - f) * 2 * (other + cross.none)
        whole = spread / gap**2 + (f * (1 - f) if population else 0.0)
        return float(np.sqrt(whole.max() / n))

    def mean_error(self, n: int, share: float, population: bool = True) -> float:
        """The error of the mean of a key with this share, as a part of the interval, for a mean in its middle."""
        drawn = share if population else 0.0  # rounding and sampling: at most half of the interval for one number
        return float(np.sqrt((_key_variances(self.inner, share)[1] + drawn) / n)) / (2 * share)

    def _figure_scales(self) -> NDArray[np.float64]:
        low, high = self.domain.interval.ends
        size = self.domain.items.size
        return np.concatenate([np.ones(size), np.full(size, high - low)])

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        found = self._expected(answers, people, n)
        return np.concatenate([part.table(population=False).stderr ** 2 for part in found.parts.values()])

    def _expected(self, answers: Any, people: Any, n: int) -> Several:
        """What the estimate would be if noise took nothing and added nothing."""
        shares, means = self.worth().truth(answers, people).reshape(2, -1)
        low, high = self.domain.interval.ends
        up = np.where(shares > 0, (np.nan_to_num(means) - low) / (high - low), 0.0) * shares
        items = np.stack([shares - up, up], axis=1).reshape(-1)
        noise = np.asarray(self.inner.variance(n, items, population=False)).reshape(-1, 2).sum(axis=1) / n**2
        drawn = KeyMeans(
            self.domain.items.labels, n, shares, 2 * up - shares, noise, noise, 0 * noise, (low, high), self.name
        )
        return Several({"share": Estimate(drawn.labels, n, shares * n, noise * n**2, self.name), "mean": drawn}, n, "")

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        rare = quantile(level) * self.worth(n).noise
        reach = [f"+-{100 * quantile(level) * self.mean_error(n, f, population):.2g} %" for f in (0.5, 0.1)]
        return (
            f"Each report is about a set of keys, each at one end of the interval ({self.inner.name}). The share of a "
            f"rare key comes within +-{100 * rare:.2g} percentage points. The mean of a key that half of the people "
            f"have comes within {reach[0]} of the interval, that of a key that a tenth have within {reach[1]}. Of "
            f"more than {self.domain.at_most} keys {self.domain.at_most} are drawn."
        )

    def __repr__(self) -> str:
        keys, ends, most = self.domain.items, self.domain.interval, self.domain.at_most
        return f"KeyValue({keys!r}, {ends!r}, epsilon={self.epsilon}, at_most={most})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(8.0 + self.inner.worth().cost.random_bytes, self.inner.worth().cost.operations),
            forgeries=self._forgeries,
            parts=lambda: {"share": (self, n), "mean": (self._means, n)},
            split=lambda tally: {"share": (self, tally), "mean": (self._means, tally)},
            truth=self._truth,
            tests=lambda: 2 * self.domain.items.size,
            noise=lambda: self._noise(n),
            error=lambda: self._error(n, population),
            visible=lambda level=0.95: min(1.0, quantile(level, self.worth().tests) * self.worth(n).noise),
            leverage=lambda: self.inner.worth().leverage,
            moved=lambda: 2 * self.inner.worth().moved,
            scales=self._figure_scales,
            variances=self._figure_variances,
            formula_for="a law without collisions",
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: Mapped(self.inner, self._rounded),
            inputs=self._inputs,
            input_count=self._input_count,
        )


class _Means(KeyValue):
    """The part about means: errors are those of a key of the average share, if everybody has `at_most` of the keys."""

    def _scale(self) -> float:
        low, high = self.domain.interval.ends
        return high - low

    @property
    def _usual(self) -> float:
        return min(1.0, self.domain.at_most / self.domain.items.size)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            unit=lambda: self.domain.interval.unit,
            scale=self._scale,
            noise=lambda: self.worth().scale * self.mean_error(n, self._usual, population=False),
            error=lambda: self.worth().scale * self.mean_error(n, self._usual),
            visible=lambda level=0.95: None,
            moved=lambda: self.worth().scale * self.inner.worth().moved,
        )
