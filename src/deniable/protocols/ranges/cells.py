"""Answers that are cut into cells, coarser and finer: what ranges, rectangles and tables of columns have in common.

Cell       for a listed answer its place, and for grouped whole numbers floor(place cells / size). For a number x in an
           interval floor(((x - low) cells) / (high - low)), in floats, in this order; the upper end lies in the last
           cell
Cuts       every person reports one of several cuts, each with its own number of nodes; chance chooses it
Node       reported by the cut's own protocol: of randomized response, subset selection and local hashing, the one with
           about the smallest variance and then the shortest reports
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, ListedDomain
from deniable.errors import ChannelError, NumberError, SpecError
from deniable.labels import text
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.frequency.subset_selection import EXCHANGEABLE
from deniable.protocols.groups import Group, Groups
from deniable.protocols.ranges.tree import Level, SupportLaw
from deniable.protocols.record import remembered
from deniable.protocols.reports import narrow_type, width_of
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits, offered, scaled
from deniable.protocols.worth import Worth
from deniable.results import Floats
from deniable.results.base import Span
from deniable.words import Fact, Joined, word

_LONGEST_SUBSET = 1 << 10
"""Nodes, beyond which reports that list a subset would be long."""
FORGED_AMONG = 100_000
"""Reports of each cut, among which a forged one is weighed; what it does, times their number, hardly depends on it."""
_CLOSE = 1.1
"""Variances this close count as equal: then the shortest report wins."""


@dataclass(frozen=True)
class Cells:
    """A domain of numbers, cut into a number of cells."""

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

    @property
    def _size(self) -> int:
        size: int = self.domain.size  # type: ignore[attr-defined]
        return size

    @property
    def _firsts(self) -> list[int]:
        """The first place of each cell."""
        return [-(-cell * self._size // self.count) for cell in range(self.count)]

    @cached_property
    def labels(self) -> list[str]:
        """What the cells are called: answers, or ranges of numbers."""
        if isinstance(self.domain, ListedDomain):
            ends = [*self._firsts, self._size]
            spans = [(self.domain.labels[begin], self.domain.labels[end - 1]) for begin, end in pairwise(ends)]
            return [text(first) if first == last else f"{text(first)} to {text(last)}" for first, last in spans]
        low, high = map(float, self.ends)
        edges = [low + (high - low) * cell / self.count for cell in range(self.count + 1)]
        return [f"{begin:.6g} to {end:.6g}" for begin, end in pairwise(edges)]

    @cached_property
    def answers(self) -> tuple[Any, ...]:
        """What the cells stand for: an answer, or a span of numbers."""
        if isinstance(self.domain, ListedDomain):
            labels = self.domain.labels
            ends = [(begin, end - 1) for begin, end in pairwise([*self._firsts, self._size])]
            return tuple(labels[a] if a == b else Span(labels[a], labels[b], True) for a, b in ends)
        low, high = map(float, self.ends)
        edges = [low + (high - low) * cell / self.count for cell in range(self.count + 1)]
        return tuple(Span(begin, end) for begin, end in pairwise(edges))

    @cached_property
    def points(self) -> Floats:
        """Where each cell begins."""
        low, high = map(float, self.ends)
        step = (high - low + 1 if self.is_whole else high - low) / self.count
        return low + step * np.arange(self.count, dtype=np.float64)

    def of(self, value: Any) -> int:
        """The cell of one encoded answer."""
        if not isinstance(self.domain, Interval):
            return int(value) * self.count // self._size
        low, high = self.domain.ends
        return min(math.floor((float(value - low) * self.count) / (high - low)), self.count - 1)

    def of_many(self, values: NDArray[Any]) -> NDArray[np.int64]:
        if not isinstance(self.domain, Interval):
            places = values.astype(np.int64, copy=False)
            return places if self.count == self._size else places * self.count // self._size
        low, high = self.domain.ends
        found = np.floor(((values - low) * self.count) / (high - low)).astype(np.int64)
        return np.minimum(found, self.count - 1)

    def narrow(self, values: NDArray[Any]) -> NDArray[Any]:
        """The cells of encoded answers, in the smallest type that holds them."""
        return self.of_many(values).astype(narrow_type(width_of(self.count)))

    def inputs(self) -> Iterator[tuple[Any, Any]]:
        """One answer per cell, and what it is encoded as."""
        if isinstance(self.domain, ListedDomain):
            return ((self.domain.labels[place], place) for place in self._firsts)
        low, high = self.ends
        middles = [low + (high - low) * Fraction(2 * cell + 1, 2 * self.count) for cell in range(self.count)]
        return ((middle, float(middle)) for middle in middles)


def part_of_many(cells: NDArray[Any], span: int) -> NDArray[Any]:
    """The part that each cell lies in, if parts have `span` cells."""
    kind = cells.dtype.type
    if span > np.iinfo(kind).max:
        return np.zeros_like(cells)
    is_power = span & span - 1 == 0
    found: NDArray[Any] = cells >> kind(span.bit_length() - 1) if is_power else cells // kind(span)
    return found


@dataclass(frozen=True)
class Cuts(Groups):
    """Several cuts of the same numbers; each person reports one cut, and all are read together.

    cut     what a group is called
    sizes   how many nodes each of them has
    told    ids of the sentences about the cut that was chosen, and about the node in it
    _typical  the standard error of the share that stands for all others
    _forged  what one report does to a share at most, times n: how far it raises it, and between the two extremes
    """

    traits: ClassVar[Traits] = Traits(
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
    )

    cut: ClassVar[str]
    told: ClassVar[tuple[str, str]]

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]: ...

    @abstractmethod
    def _typical(self, n: int, population: bool) -> float: ...

    @property
    @abstractmethod
    def _forged(self) -> tuple[float, float]: ...

    def _set(self, groups: Any, **values: Any) -> None:
        """Set all fields and check that they fit together; groups are pairs of a weight and a protocol."""
        values["groups"] = tuple(Group(weight, protocol) for weight, protocol in groups)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._settle()
        self._check_groups()
        if len(self.groups) != len(self.sizes):
            raise SpecError(f"there is one group per {self.cut}")
        for name, size, (_, protocol) in zip(self.group_names, self.sizes, self.groups, strict=True):
            if not isinstance(protocol, EXCHANGEABLE) or protocol.domain != Integers(0, size - 1):
                kinds = ", ".join(kind.name for kind in EXCHANGEABLE)
                raise SpecError(f"the {self.cut} of {name} needs one of {kinds} over their numbers")
            if protocol.epsilon != self.epsilon:
                raise SpecError(f"each {self.cut} has the epsilon of the whole")

    def _waived(self) -> Mapping[str, str]:
        return {"unbiased": f"each {self.cut} divides by the number of its own reports, which chance decides"}

    def _scaled(self, factor: Fraction) -> Self:
        made = type(self).__new__(type(self))
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        made._set(**own | {"epsilon": self.epsilon * factor, "groups": groups})
        return made

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        node, (chosen, held) = self.project(encoded, group), self.told
        chances = Joined(self._told_chances("story.chance.level"), ", ")
        return [
            word(chosen, chances=chances),
            word(held, name=self._told_names()[group], place=node),
            *protocol.story(node, node, inner),
        ]

    def _seen(self, tally: Tally) -> tuple[Level, ...]:
        """What each cut of a tally says."""
        levels = []
        for size, (_, protocol), own in zip(self.sizes, self.groups, self.tallies(tally), strict=True):
            shares = protocol.estimate(own).frequencies if own.n else np.zeros(size)
            levels.append(Level(own.n, shares, law_of(protocol)))
        return tuple(levels)

    def _evenly(self, n: int) -> tuple[Level, ...]:
        """What n people would show whose cells are all equally common, without noise."""
        each = zip(self.sizes, self.groups, self.people(n), strict=True)
        return tuple(Level(people, np.full(size, 1 / size), law_of(protocol)) for size, (_, protocol), people in each)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            guess=lambda: None,
            # For the share that one report can raise most, if all cells are equally common. A forger chooses the
            # cut, too.
            leverage=lambda: self._forged[0],
            # How far the two extremes of one report are apart, for one share.
            moved=lambda: self._forged[1],
            parts=lambda: {"": (self, n)},  # a cut is no part of an answer
            split=lambda tally: {"": (self, tally)},
            # For the share that stands for all others.
            noise=lambda: self._typical(n, False),
            error=lambda: self._typical(n, population),
            visible=lambda level=0.95: None,
        )


def law_of(protocol: Any) -> SupportLaw:
    """The joint law of the supports of one report. If their number is fixed, they are drawn without replacement; linear
    hash functions make them independent."""
    p, q, kept = protocol.p, protocol.q, protocol._support_size
    own, other, gap = float(p * (1 - p)), float(q * (1 - q)), float(p - q)
    size = protocol.domain.size
    if kept is None:
        return SupportLaw(own, other, 0.0, 0.0, gap, float(q), hash_bits=getattr(protocol, "hash_bits", None))
    mixed = p * Fraction(kept - 1, size - 1) - p * q
    pair = Fraction(0)
    if size > 2:
        ways = (size - 1) * (size - 2)
        pair = p * Fraction((kept - 1) * (kept - 2), ways) + (1 - p) * Fraction(kept * (kept - 1), ways) - q * q
    return SupportLaw(own, other, float(pair), float(mixed), gap, float(q), kept)


@lru_cache(maxsize=1024)
def best_protocol(size: int, epsilon: Fraction, slack: float = _CLOSE) -> PureProtocol:
    """The protocol of a level: of those with about the smallest variance the one with the shortest reports."""
    domain = Integers(0, size - 1)
    built: list[PureProtocol] = []
    for kind in EXCHANGEABLE:
        with suppress(ChannelError):
            settings: Any = offered(kind, Ask(domain, epsilon))
            built.append(min(settings, key=lambda one: one.variance(1, 1 / size)))
    if size > _LONGEST_SUBSET:
        built = [one for one in built if one._support_size in (None, 1)]
    if not built:
        raise ChannelError(f"at epsilon {exact.shown(epsilon)} no protocol exists for {size:,} ranges: raise epsilon")
    variances = [one.variance(1, 1 / size) for one in built]
    close = [one for one, variance in zip(built, variances, strict=True) if variance <= slack * min(variances)]
    return min(close, key=lambda one: (one.report_bytes, one.variance(1, 1 / size)))
