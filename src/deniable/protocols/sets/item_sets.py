"""Items of sets: how common each item is, how large sets are, and with `largest` which items occur together.

Law        a group by chance: "items", or, with `largest` = 2 or 3, "pairs" and "triples" of the items of a set. Then a
           report of the group's own law about the set, or about the set of its pairs or triples
Privacy    of the whole set: the largest ratio of a group's law. The group does not depend on the set
Choice     of each group: the collision mechanism or the subset mechanism, whichever has the smaller variance for an
           item of the average share, at_most / (items + at_most); the shorter report of two within 5 percent. Subsets
           win where there are few items, at most 4,096 with the dummies, or where epsilon is large: then one element
           of up to 2^20; collisions take any number
Error      of an item: the law's with the people of its group
Report     the number of the group, one byte; the group's own report; zeros up to the longest one
Cost       one random word more than the group's report where there are several groups
Source     see the two laws; a second group for candidate sets: Wang, Li and Jha 2018 (SVSM)

Together   a set of s items has s (s - 1) / 2 pairs. At most at_most (at_most - 1) / 2 of them are reported: those of a
           larger set are subsampled like items. Candidates are all pairs if there are few items, else the pairs of the
           items that look most common in the group "items": these are other people, so that the errors of pairs hold
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, SetColumn, Sets
from deniable.errors import NumberError, SpecError
from deniable.protocols.choice import SAME
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol
from deniable.protocols.record import remembered
from deniable.protocols.sets.collision import CollisionSets
from deniable.protocols.sets.law import SetProtocol
from deniable.protocols.sets.subset import MOST_ELEMENTS, MOST_SINGLE, SubsetSets, subset_variances
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits, scaled, waived
from deniable.protocols.worth import Worth
from deniable.results import Floats, ItemShares, TogetherShares, Weights, few_people, quantile
from deniable.results.bounds import Numbers
from deniable.results.sets import best_guess, set_label, shrunk
from deniable.words import Fact, Joined, word

FEW_ITEMS = 128
"""Up to this number of items, pairs are asked for by default."""
NAMES = ("items", "pairs", "triples")
LARGEST = len(NAMES)

_MOST_REPORTED = 1 << 12
"""Pairs or triples of one set that are reported at most."""
_CANDIDATES = 2048
"""Sets that are scored, about, where there are too many for all of them."""
_LONGEST = 1 << 9
"""Bytes, above which a subset is no report."""


@lru_cache(maxsize=256)
def best_law(domain: Sets, epsilon: Fraction) -> SetProtocol:
    """The law with the smaller variance of an item of the average share; of two alike, the one with the shorter report.

    >>> best_law(Sets(20, at_most=8), Fraction(1)).name, best_law(Sets(10_000, at_most=8), Fraction(1)).name
    ('SubsetSets', 'CollisionSets')
    """
    collision = CollisionSets(domain, epsilon)
    elements, hashed = collision.elements, collision.usual_variance
    if elements > MOST_SINGLE:
        return collision
    if elements <= MOST_ELEMENTS and subset_variances(elements, domain.at_most, epsilon).min() > SAME * hashed:
        return collision
    subset = SubsetSets(domain, epsilon, 0 if elements <= MOST_ELEMENTS else 1)
    own = subset.usual_variance
    if subset.report_bytes > _LONGEST or own > SAME * hashed:
        return collision
    return collision if hashed <= SAME * own and collision.report_bytes < subset.report_bytes else subset


@dataclass(frozen=True, init=False, repr=False)
class ItemSets(Groups):
    """Shares of items, set sizes and, with `largest` above 1, shares of sets of items.

    Args:
        domain: The sets.
        epsilon: Largest epsilon of a report.
        largest: Number of items of the largest sets whose shares are estimated: 1, 2 or 3; 2 for up to 128 items and
            else 1 if None.
        weights: Relative numbers of respondents who report items, pairs and triples; two of three report items if None.

    >>> apps = ItemSets(Sets(["mail", "maps", "music", "news"], at_most=4), epsilon=1)
    >>> found = apps.estimate(apps.tally(apps.privatize([{"mail", "maps"}, {"mail"}, set()] * 20_000)))
    >>> low, high = found.interval(0.999999)[0]
    >>> bool(low < 2 / 3 < high)
    True
    """

    name: ClassVar[str] = "ItemSets"
    traits: ClassVar[Traits] = Traits(
        takes=(Sets,),
        advice="it needs dn.Sets(items, at_most)",
        reads=("items",),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
    )

    domain: Sets

    def __init__(
        self, domain: Sets, epsilon: exact.Number, largest: int | None = None, weights: Sequence[int] | None = None
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if largest is None:
            largest = 2 if 2 < self.domain.items.size <= FEW_ITEMS and self.domain.at_most > 1 else 1
        if isinstance(largest, bool) or not isinstance(largest, int) or not 1 <= largest <= LARGEST:
            raise NumberError(f"the largest sets whose shares are estimated have 1 to {LARGEST} items, not {largest!r}")
        if largest > self.domain.at_most:
            raise NumberError(f"of sets of at most {self.domain.at_most} items none has {largest}")
        given = [2 * largest - 2 or 1, *[1] * (largest - 1)] if weights is None else list(weights)
        if len(given) != largest:
            raise NumberError(f"there are {largest} groups, and one weight for each")
        laws = [best_law(self._domain_of(size), self.epsilon) for size in range(1, largest + 1)]
        self._set(self.domain, self.epsilon, zip(given, laws, strict=True))

    def _set(self, domain: Domain, epsilon: Any, groups: Any) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "groups", tuple(Group(weight, protocol) for weight, protocol in groups))
        self._settle()
        self._check_groups()
        if len(self.groups) > min(LARGEST, self.domain.at_most):
            raise SpecError("there are groups for items, pairs and triples, and no more than a set has items")
        for size, (_, protocol) in enumerate(self.groups, 1):
            if not isinstance(protocol, SetProtocol) or protocol.domain != self._domain_of(size):
                raise SpecError(f"the group of {NAMES[size - 1]} needs a law of sets over them")
            if protocol.epsilon != self.epsilon:
                raise SpecError("all groups have the epsilon of the whole")

    def _domain_of(self, size: int) -> Sets:
        """The sets that a group reports: of items, or of the numbers of their pairs or triples."""
        if size == 1:
            return self.domain
        count = math.comb(self.domain.items.size, size)
        if count > 1 << 52:
            raise NumberError(f"there are too many {NAMES[size - 1]} of {self.domain.items.size:,} items")
        if count < 2:
            raise NumberError(f"there is only one of all {NAMES[size - 1]}: list more items")
        return Sets(Integers(0, count - 1), min(count, _MOST_REPORTED, math.comb(self.domain.at_most, size)))

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> ItemSets:
        match parameters:
            case {"groups": list(groups), **rest} if not rest:
                made = cls.__new__(cls)
                made._set(domain, epsilon, cls._written(groups))
                return made
        raise SpecError("items of sets need groups, each with a weight and a protocol, and nothing else")

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Sets(["mail", "maps", "music"], at_most=2), 1, largest=1)
        yield cls(Sets(3, at_most=3), 1)

    def _waived(self) -> Mapping[str, str]:
        if len(self.groups) == 1 and not waived(self.groups[0].protocol):
            return {}
        return {"unbiased": "a fixed hash collides, and each group divides by the number of its own reports"}

    def _scaled(self, factor: Fraction) -> ItemSets:
        made = type(self).__new__(type(self))
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        made._set(self.domain, self.epsilon * factor, groups)
        return made

    # -- the law -----------------------------------------------------------------------------------

    @property
    def group_names(self) -> tuple[str, ...]:
        return NAMES[: len(self.groups)]

    def project(self, value: Any, group: int) -> Any:
        if group == 0:
            return value
        return tuple(sorted(_number(chosen) for chosen in combinations(value, group + 1)))

    def project_many(self, values: SetColumn, group: int, rows: NDArray[np.intp]) -> SetColumn:
        own = values.take(rows)
        return own if group == 0 else _combined(own, group + 1)

    def part(self, value: Any, group: int) -> Any:
        if group == 0:
            return value
        return list(self.project(self.domain.encode_one(value), group))

    @property
    def _law(self) -> SetProtocol:
        law = self.groups[0].protocol
        assert isinstance(law, SetProtocol)
        return law

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        steps = protocol.story(value, self.project(encoded, group), inner)
        if len(self.groups) == 1:
            return steps
        choice = word("story.kinds", chances=Joined(self._told_chances("story.chance.kind"), ", "))
        if group == 0:
            return [choice, *steps]
        has = word("story.kinds.has", n=math.comb(len(encoded), group + 1), name=self._told_names()[group])
        return [Joined([choice, has], " "), *steps]

    def _told_names(self) -> Sequence[Fact]:
        return [word(f"level.{name}") for name in self.group_names]

    def _says(self, report: bytes) -> Fact:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        said = protocol.traits.says(protocol, report[self._head : self._head + protocol.report_bytes])
        return said if len(self.groups) == 1 else word("report.kind", name=self._told_names()[group], report=said)

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> ItemShares:
        """Shares of items, with set sizes and sets of items beside them."""
        found: ItemShares = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> ItemShares:
        own, *others = self.tallies(tally)
        if not own.n:
            few = f"{few_people()} about single items: the reports so far ({tally.n:,}) are all about sets"
            return replace(self._nothing(), n=0, said=(few,) if tally.n else ())
        items: ItemShares = self._law.estimate(own)
        sizes = None if items.sizes is None else _of_all(items.sizes, tally.n, self.name)
        found: ItemShares = replace(_of_all(items, tally.n, self.name), sizes=sizes)
        together = self._together(found, others, tally.n) if others else None
        whole: ItemShares = replace(found, together=together)
        return whole

    def _nothing(self) -> ItemShares:
        found = self._law.infer(self._law.empty())
        return replace(
            found, protocol=self.name, together=self._together(found, [], 0) if len(self.groups) > 1 else None
        )

    def _together(self, items: ItemShares, tallies: Sequence[Tally], n: int) -> TogetherShares:
        """Candidate sets, each scored in the group of its size."""
        scored = [self._scored(items, size, own, n) for size, own in enumerate(tallies, 2)]
        if not scored:
            return TogetherShares([], 0, np.zeros(0), np.zeros(0), self.name)
        sets = [one for found in scored for one in found.sets]
        counts, noise, lift, errors, guess = (
            np.concatenate([getattr(found, name) for found in scored])
            for name in ("counts", "noise", "lift", "lift_stderr", "guess")
        )
        labels = [label for found in scored for label in found.labels]
        known = [found.weights or Weights(*np.zeros((3, len(found.labels)))) for found in scored]
        weights = Weights(*(np.concatenate(one) for one in zip(*known, strict=True)))
        numbers = Numbers.joined([found.bounds for found in scored])
        more: dict[str, Any] = {"lift": lift, "lift_stderr": errors, "guess": guess}
        more |= {"weights": weights, "bounds": numbers}
        return TogetherShares(labels, n, counts, noise, self.name, sets=sets, **more)

    def _scored(self, items: ItemShares, size: int, own: Tally, n: int) -> TogetherShares:
        """Candidates of one size, as if all n people had been asked: the same shares, with the errors of the group."""
        chosen, law = self._candidates(items, size), self.groups[size - 1].protocol
        assert isinstance(law, SetProtocol)
        sets = [tuple(self.domain.items.labels[place] for place in row) for row in chosen.tolist()]
        labels, unknown = [set_label(one) for one in sets], np.full(len(sets), math.nan)
        if not own.n:
            nothing: dict[str, Any] = dict.fromkeys(("lift", "lift_stderr", "guess"), unknown)
            return TogetherShares(labels, n, unknown, unknown, self.name, sets=sets, **nothing)
        found, spread, weights = law.read(own, np.array([_number(row) for row in chosen.tolist()], dtype=np.int64))
        share, error = found / own.n, np.sqrt(spread) / own.n
        inside = np.clip(share, 0.0, 1.0)
        drawn = inside * (1 - inside) / own.n
        lift, its = _lift(share, np.sqrt(error**2 + drawn), items, chosen)
        noise = (error**2 + (1 - own.n / n) * drawn) * n**2
        means, squares = shrunk(items.unbiased.frequencies, items.unbiased.errors())
        guess = best_guess(share, noise / n**2, means[chosen].prod(axis=1), squares[chosen].prod(axis=1))
        more: dict[str, Any] = {"lift": lift, "lift_stderr": its, "guess": guess}
        each = Weights(*(np.broadcast_to(one, share.shape) for one in (*weights[:2], float(own.n))))
        numbers = Numbers.between(*each[:2], share, own.n)
        return TogetherShares(labels, n, share * n, noise, self.name, sets=sets, weights=each, bounds=numbers, **more)

    def _candidates(self, items: ItemShares, size: int) -> Positions:
        """Rows of positions of items: all sets of a size, or those of the most common items."""
        count, most = self.domain.items.size, self.domain.items.size
        while math.comb(most, size) > _CANDIDATES:
            most -= max(1, most // 20)
        order = np.arange(count) if most == count or not items.n else np.argsort(-items.counts, kind="stable")[:most]
        return np.array(list(combinations(np.sort(order).tolist(), size)), dtype=np.int64).reshape(-1, size)

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        chance = float(self.chances[0])
        spread = self._law.worth().spreads(answers) / n
        return self._law.worth().variances(answers, people) / chance + (1 - chance) / chance * spread

    def _share_error(self, n: int, share: float, population: bool) -> float:
        heard = self.people(n)[0]
        return math.sqrt(self._law.variance(heard, share, population)) / heard

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        z, law = quantile(level), self._law
        people = dict(zip(self.group_names, self.people(n), strict=True))
        rare, most = z * law.worth(people["items"]).noise, z * law.worth(people["items"], population=population).error
        what = {"CollisionSets": "a cell of a public hash function", "SubsetSets": "a subset of the items"}[law.name]
        said = (
            f"Each report is {what} ({law.name}); the share of a rare item comes within +-{100 * rare:.2g} percentage "
            f"points, that of any item within +-{100 * most:.2g}. Of more than {self.domain.at_most} items "
            f"{self.domain.at_most} are drawn."
        )
        if len(self.groups) > 1:
            others = ", ".join(f"about {people[name]:,} people report {name}" for name in self.group_names[1:])
            said += f" Beside {people['items']:,} people who report items, {others}."
        return said

    def __repr__(self) -> str:
        named = zip(self.group_names, self.groups, strict=True)
        inner = ", ".join(f"{name}: {group.protocol.name} x{group.weight}" for name, group in named)
        return f"ItemSets({self.domain!r}, {inner}, epsilon={self.epsilon})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            parts=lambda: {"": (self, n)},  # pairs are no part of an answer: all groups are read together
            split=lambda tally: {"": (self, tally)},
            share=lambda share: self._share_error(n, share, population),
            truth=lambda answers, people=None: self._law.worth().truth(answers, people),
            variances=self._figure_variances,
            scales=lambda: self._law.worth().scales,
            formula_for="" if not self._waived() else "the whole pool of hash functions",
            tests=lambda: self.domain.items.size,
            # For the share of a rare item.
            noise=lambda: self._law.worth(self.people(n)[0]).noise,
            error=lambda: self._law.worth(self.people(n)[0], population=population).error,
            visible=lambda level=0.95: self._law.worth(self.people(n)[0], population=population).visible(level),
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=lambda: self._law.law().inputs(),
            input_count=lambda: self._law.law().input_count,
        )


def _of_all(estimate: Any, n: int, protocol: str) -> Any:
    """What a group says about all n people: the same shares, with the errors of having heard only the group."""
    shares = np.clip(estimate.frequencies, 0.0, 1.0)
    noise = estimate.noise + (1 - estimate.n / n) * estimate.n * shares * (1 - shares)
    times = n / estimate.n
    known = {"counts": times * estimate.counts, "noise": times**2 * noise, "protocol": protocol, "people": 1.0}
    return replace(estimate, n=n, weights=estimate.weights._replace(reports=estimate.n), **known)


def _number(chosen: Sequence[int]) -> int:
    """The number of an ascending combination among all of its size: the sum of C(position, place).

    >>> [_number(pair) for pair in ((0, 1), (0, 2), (1, 2), (0, 3))]
    [0, 1, 2, 3]
    """
    return sum(math.comb(position, place) for place, position in enumerate(chosen, 1))


def _combined(values: SetColumn, size: int) -> SetColumn:
    """The numbers of all pairs or triples of each set."""
    starts, found = [0], []
    sizes = values.sizes
    out: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(values)
    for count in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == count)
        places = np.array(list(combinations(range(count), size)), dtype=np.int64).reshape(-1, size)
        items = values.items[values.starts[:-1][rows][:, None] + np.arange(count)[None, :]]
        chosen = items[:, places]  # rows, combinations, size
        numbers = np.zeros(chosen.shape[:2], dtype=np.int64)
        for place in range(size):
            numbers += _comb_array(chosen[:, :, place], place + 1)
        numbers.sort(axis=1)
        for row, own in zip(rows.tolist(), numbers, strict=True):
            out[row] = own
    for own in out:
        starts.append(starts[-1] + own.size)
        found.append(own)
    return SetColumn(np.array(starts), np.concatenate(found) if found else np.empty(0, dtype=np.int64))


def _comb_array(n: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """C(n, k) for k up to 3, without overflow for n below 2^20."""
    found = n if k == 1 else n * (n - 1) // 2
    return found if k < 3 else found * (n - 2) // 3


def _lift(share: Floats, error: Floats, items: ItemShares, chosen: Positions) -> tuple[Floats, Floats]:
    """The share of a set over the product of those of its items, and its standard error by the delta method."""
    own = items.unbiased.frequencies[chosen]
    errors = items.unbiased.errors()[chosen]
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = share / own.prod(axis=1)
        relative = (errors / own) ** 2
        spread = (error / own.prod(axis=1)) ** 2 + lift**2 * relative.sum(axis=1)
    clear = (own > 2 * errors).all(axis=1)
    return np.where(clear, lift, math.nan), np.where(clear, np.sqrt(spread), math.nan)
