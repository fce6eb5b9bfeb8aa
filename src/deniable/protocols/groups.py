"""Groups: the device asks itself one of several questions, chosen by coins that do not depend on the answer.

Law        group g with probability w_g / (w_1 + ... + w_G), then a report of that group's own protocol, about a part of
           the answer that the family chooses: a column, a prefix, a coarser cell, an item
Privacy    the largest ratio of a group's protocol: the choice does not depend on the answer, and one group is reported
Error      that of each group's protocol with its share of the people
Report     the number of the group, ceil(log2(G) / 8) bytes; the group's own report; zeros up to the longest one
Cost       one random word more than the group's own report; one counter per group and the group's own counters
Source     sampling instead of splitting the budget: Nguyen et al. 2016, Wang et al. 2019

Tally      one counter n_g per group, then the tallies of the groups one after the other: one vector that adds
Misfit     besides the tests of each group, how many reports each group got, whose law is known
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import MismatchError, SpecError
from deniable.protocols.base import WORD_BYTES, Cost, Guarantee, Protocol, load, percent
from deniable.protocols.blanket import Blanket, mixed, worst
from deniable.protocols.reports import Bytes, Reports, from_bytes, narrow_type, width_of
from deniable.protocols.tally import Adder, Counts, Tally
from deniable.randomness import Bits
from deniable.results.significance import too_few, too_many

MOST_WEIGHT = 1 << 32
"""The weights add up to less than this."""

_SHOWN = 12
"""Groups that are named in words."""

_ROWS = 1 << 18
"""Rows that are taken apart at once: so many that no group's part is short, which would cost more than the cache."""


_FEW_BYTES, _FEW_GROUPS = 8, 8


class Group(NamedTuple):
    """One of the questions."""

    weight: int
    protocol: Protocol


@dataclass(frozen=True)
class Groups(Protocol):
    """A protocol that is made of others. A family says what part of an answer a group is about, and reads out.

    project       one encoded answer -> the encoded answer of a group's question
    project_many  the same for the rows of a column of encoded answers that fell to the group
    group_names   what the groups are called
    """

    groups: tuple[Group, ...] = ()

    def _check_groups(self) -> None:
        """Refuse groups that make no protocol; `epsilon` is set to the largest one."""
        if not self.groups:
            raise SpecError(f"{self.name} needs at least one group")
        for weight, protocol in self.groups:
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise SpecError("the weight of a group is a positive whole number")
            if not isinstance(protocol, Protocol):
                raise SpecError(f"a group has a weight and a protocol, not a {type(protocol).__name__}")
        if len({group.protocol.guarantee.relation for group in self.groups}) > 1:
            raise SpecError("the groups are about different relations, whose levels cannot be compared")
        if self._sums[-1] >= MOST_WEIGHT:
            raise SpecError("the weights of the groups add up to less than 2^32: divide them by a common factor")

    def parameters(self) -> dict[str, Any]:
        return {"groups": [{"weight": weight, "protocol": protocol.spec()} for weight, protocol in self.groups]}

    @staticmethod
    def _written(groups: list[Any]) -> list[tuple[int, Protocol]]:
        """The groups of a spec, as `parameters` writes them."""
        if not all(isinstance(group, Mapping) and set(group) == {"weight", "protocol"} for group in groups):
            raise SpecError("a group has a weight and a protocol, and nothing else")
        return [(group["weight"], load(group["protocol"])) for group in groups]

    @abstractmethod
    def project(self, value: Any, group: int) -> Any:
        """What a group is about, of one encoded answer."""

    @abstractmethod
    def project_many(self, values: Any, group: int, rows: NDArray[np.intp]) -> Any:
        """What a group is about, of the encoded answers in these rows."""

    @property
    @abstractmethod
    def group_names(self) -> tuple[str, ...]: ...

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(accumulate(weight for weight, _ in self.groups))

    @cached_property
    def chances(self) -> tuple[Fraction, ...]:
        """How likely each group is."""
        return tuple(Fraction(weight, self._sums[-1]) for weight, _ in self.groups)

    def people(self, n: int) -> list[int]:
        """About how many of n people each group gets: rounded down, and at least one."""
        return [max(1, int(n * chance)) for chance in self.chances]

    def parts(self, n: int) -> dict[str, tuple[Protocol, int]]:
        each = zip(self.group_names, self.groups, self.people(n), strict=True)
        return {name: (group.protocol, people) for name, group, people in each}

    @property
    def ratio(self) -> Fraction:
        return max(group.protocol.ratio for group in self.groups)

    def blankets(self) -> tuple[Blanket, ...]:
        """That of each group with its chance; answers that differ in every group are the worst."""
        each = [group.protocol.blankets() for group in self.groups]
        if not all(each):
            return ()
        return (mixed((chance, worst(one)) for chance, one in zip(self.chances, each, strict=True)),)

    @property
    def guarantee(self) -> Guarantee:
        """One group is reported, so that the weakest of their guarantees holds."""
        each = [group.protocol.guarantee for group in self.groups]
        return each[0]._replace(epsilon=max(one.epsilon for one in each), delta=max(one.delta for one in each))

    @cached_property
    def _head(self) -> int:
        return width_of(len(self.groups))

    @cached_property
    def report_bytes(self) -> int:
        return self._head + max(group.protocol.report_bytes for group in self.groups)

    @property
    def report_forms(self) -> int:
        return sum(group.protocol.report_forms for group in self.groups)

    @cached_property
    def tally_size(self) -> int:
        return len(self.groups) + sum(group.protocol.tally_size for group in self.groups)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """Where the counters of each group begin, and where those of the last one end."""
        sizes = [group.protocol.tally_size for group in self.groups]
        return tuple(accumulate(sizes, initial=len(self.groups)))

    @property
    def tests(self) -> int:
        return sum(group.protocol.tests for group in self.groups)

    @cached_property
    def cost(self) -> Cost:
        each = [(float(chance), group.protocol.cost) for chance, group in zip(self.chances, self.groups, strict=True)]
        drawn = sum(chance * cost.random_bytes for chance, cost in each)
        first = WORD_BYTES if self._sums[-1] > 1 else 0
        return Cost(first + drawn, 1 + sum(chance * cost.operations for chance, cost in each))

    def _choose(self, value: Any, bits: Bits) -> int:
        """The group that one answer is reported for."""
        return bisect_right(self._sums, bits.integers(self._sums[-1]))

    def _choose_many(self, values: Any, bits: Bits) -> NDArray[Any]:
        """The same for encoded answers in bulk."""
        drawn = bits.integers(self._sums[-1], len(values))
        return np.searchsorted(self._sums, drawn, side="right") if self._table is None else self._table.take(drawn)

    def _one(self, value: Any, bits: Bits) -> bytes:
        group = self._choose(value, bits)
        return self._packed(group, self.groups[group].protocol._one(self.project(value, group), bits))

    def _law_of(self, value: Any, bits: Bits) -> bytes:
        group = self._choose(value, bits)
        return self._packed(group, self.groups[group].protocol._law_of(self.project(value, group), bits))

    def _packed(self, group: int, report: bytes) -> bytes:
        return (group.to_bytes(self._head, "little") + report).ljust(self.report_bytes, b"\0")

    @cached_property
    def _table(self) -> NDArray[Any] | None:
        """The group of every number below the sum of the weights, where that is a short list."""
        if self._sums[-1] > _ROWS:
            return None
        groups = np.arange(len(self.groups), dtype=narrow_type(self._head))
        return np.repeat(groups, [weight for weight, _ in self.groups])

    def _many(self, values: Any, bits: Bits) -> Bytes:
        out = np.empty((len(values), self.report_bytes), dtype=np.uint8)
        for start in range(0, len(values), _ROWS):
            found = self._choose_many(values[start : start + _ROWS], bits)
            block = out[start : start + _ROWS]
            is_whole = self._whole.itemsize == self.report_bytes
            whole = block.view(self._whole)[:, 0] if is_whole else np.empty(len(found), dtype=self._whole)
            for group, rows in self._by_group(found):
                protocol = self.groups[group].protocol
                inner = protocol._many(self.project_many(values, group, rows + start if start else rows), bits)
                reports = np.zeros((rows.size, self._whole.itemsize), dtype=np.uint8)
                for place, byte in enumerate(group.to_bytes(self._head, "little")):
                    reports[:, place] = byte
                _copy(inner, reports[:, self._head : self._head + protocol.report_bytes])
                whole[rows] = reports.view(self._whole)[:, 0]
            if not is_whole:
                _copy(whole[:, None].view(np.uint8)[:, : self.report_bytes], block)
        return out

    @cached_property
    def _whole(self) -> np.dtype[Any]:
        """A report as one number, with zeros after it: numbers are put and fetched much faster than rows of bytes."""
        return (
            narrow_type(self.report_bytes)
            if self.report_bytes <= WORD_BYTES
            else np.dtype((np.void, self.report_bytes))
        )

    def _by_group(self, chosen: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """The rows of each group that has any, in their order; what is no group comes in none."""
        size = len(self.groups)
        if size <= _FEW_GROUPS:
            found = ((group, np.flatnonzero(chosen == group)) for group in range(size))
        else:
            order = np.argsort(chosen, kind="stable")
            ends = [0, *np.cumsum(np.bincount(chosen, minlength=size))[:size].tolist()]
            found = ((group, order[begin:end]) for group, (begin, end) in enumerate(pairwise(ends)))
        for group, rows in found:
            if rows.size:
                yield group, rows

    def _split(self, reports: Bytes) -> Iterator[tuple[int, NDArray[np.intp], Bytes]]:
        """The reports of each group, with their rows, some rows at a time."""
        width = self._whole.itemsize
        for start in range(0, len(reports), _ROWS):
            block = np.ascontiguousarray(reports[start : start + _ROWS])
            if width > self.report_bytes:
                padded = np.zeros((len(block), width), dtype=np.uint8)
                _copy(block, padded[:, : self.report_bytes])
                block = padded
            whole = block.view(self._whole)[:, 0]
            for group, rows in self._by_group(from_bytes(block[:, : self._head])):
                yield group, rows + start if start else rows, whole.take(rows)[:, None].view(np.uint8)

    def _inner(self, group: int, reports: Bytes) -> Bytes:
        """What the group's own protocol wrote."""
        width = self.groups[group].protocol.report_bytes
        inner = np.empty((len(reports), width), dtype=np.uint8)
        _copy(reports[:, self._head : self._head + width], inner)
        return inner

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self._each(reports, lambda protocol, inner: protocol._valid(inner))

    def plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        return self._each(self._rows(reports), lambda protocol, inner: protocol.plausible(inner))

    @property
    def is_tied(self) -> bool:
        return any(group.protocol.is_tied for group in self.groups)

    def tied(self, reports: Bytes, publics: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = np.zeros(len(reports), dtype=np.bool_)
        for group, rows, own in self._split(reports):
            found[rows] = self.groups[group].protocol.tied(self._inner(group, own), publics[rows])
        return found

    def _each(self, reports: Bytes, good: Callable[[Protocol, Bytes], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Which reports are about a group that exists, good by its protocol, and padded with zeros."""
        found = np.zeros(len(reports), dtype=np.bool_)
        for group, rows, own in self._split(reports):
            found[rows] = good(self.groups[group].protocol, self._inner(group, own)) & self._is_padded(group, own)
        return found

    def _is_padded(self, group: int, reports: Bytes) -> NDArray[np.bool_] | np.bool_:
        """Whether zeros follow what the group's own protocol wrote."""
        begin = self._head + self.groups[group].protocol.report_bytes
        rest = [reports[:, column] == 0 for column in range(begin, self.report_bytes)]
        return np.logical_and.reduce(rest) if rest else np.True_

    def _count_checked(self, reports: Bytes) -> Counts:
        # Taken apart once, for both: that costs as much as everything that is done with the parts.
        adder, known = _GroupAdder(self), 0
        for group, rows, own in self._split(reports):
            inner = self._inner(group, own)
            if not (self.groups[group].protocol._valid(inner).all() and np.all(self._is_padded(group, own))):
                break
            adder.add_inner(group, inner)
            known += rows.size
        if known < len(reports):
            self._check_valid(reports)
        return adder.counts()

    def _count(self, reports: Bytes) -> Counts:
        adder = self._adder()
        adder.add(reports)
        return adder.counts()

    def _adder(self) -> Adder:
        return _GroupAdder(self)

    def pieces(self, reports: Reports | Bytes) -> Iterator[tuple[int, Counts]]:
        array = self._valid_rows(reports)
        numbers = from_bytes(array[:, : self._head])
        yield 0, np.bincount(numbers, minlength=len(self.groups))
        for group, rows in self._by_group(numbers):
            for start, counts in self.groups[group].protocol.pieces(self._inner(group, array.take(rows, axis=0))):
                yield self._starts[group] + start, counts

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        named = zip(self.group_names, self.chances, strict=True)
        chances = [f"“{name}” with probability {percent(float(share), 1)}" for name, share in named]
        more = f" and {len(chances) - _SHOWN:,} more" if len(chances) > _SHOWN else ""
        choice = (
            "Only one part of your answer is reported. Chance chooses it, whatever you answered: "
            f"{', '.join(chances[:_SHOWN])}{more}."
        )
        return [choice, *protocol._steps(self.part(value, group), self.project(encoded, group), inner)]

    def part(self, value: Any, group: int) -> Any:
        """What a group is about, of one answer as it was given."""
        return value

    def spoken(self, report: bytes) -> str:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        return f"{self.group_names[group]}: {protocol.spoken(inner)}"

    # -- the read-out ------------------------------------------------------------------------------

    def part_tallies(self, tally: Tally) -> dict[str, tuple[Protocol, Tally]]:
        return {
            name: (protocol, own)
            for name, (_, protocol), own in zip(self.group_names, self.groups, self.tallies(tally), strict=True)
        }

    def tallies(self, tally: Tally) -> list[Tally]:
        """The tally of each group, with as many reports as fell to it."""
        self._check_tally(tally)
        found = []
        for place, (_, protocol) in enumerate(self.groups):
            counts = tally.counts[self._starts[place] : self._starts[place + 1]]
            found.append(Tally(protocol.fingerprint, int(tally.counts[place]), counts))
        return found

    def _check_tally(self, tally: Tally) -> None:
        super()._check_tally(tally)
        if int(tally.counts[: len(self.groups)].sum()) != tally.n or tally.counts[: len(self.groups)].min() < 0:
            raise MismatchError("the reports of the groups of this tally do not add up to its reports: it is broken")

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        size, n = len(self.groups), tally.n * worth
        shares = list(zip((tally.counts[:size] * worth).tolist(), map(float, self.chances), strict=True))
        few = min(too_few(count, n, chance, size) for count, chance in shares)
        own = [few, min(too_many(count, n, chance, size) for count, chance in shares)] if size > 1 else []
        for (_, protocol), inner in zip(self.groups, self.tallies(tally), strict=True):
            own += protocol._misfits(inner, worth) if inner.n else []
        return own

    def _over_groups(self, n: int, figure: Callable[[Protocol, int], float]) -> Iterator[float]:
        """A figure of each group with its share of n people, divided by the width of what it can be."""
        for (_, protocol), people in zip(self.groups, self.people(n), strict=True):
            yield figure(protocol, people) / protocol.scale

    def noise(self, n: int) -> float:
        """The largest noise of a group's headline figure, as a part of the width of what the figure can be."""
        return max(self._over_groups(n, lambda protocol, people: protocol.noise(people)))

    def error(self, n: int, population: bool = True) -> float:
        """The same for the standard error."""
        return max(self._over_groups(n, lambda protocol, people: protocol.error(people, population)))

    def visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        each = zip(self.groups, self.people(n), strict=True)
        found = [group.protocol.visible(people, level, population) for group, people in each]
        known = [one for one in found if one is not None]
        return max(known) if len(known) == len(found) else None

    @property
    def leverage(self) -> float | None:
        """A forger chooses the group: an honest report is about it only now and then."""
        return self._largest([group.protocol.leverage for group in self.groups])

    @property
    def poisoning(self) -> float | None:
        """As a part of the width of what a figure can be."""
        each = [(group.protocol.poisoning, group.protocol.scale) for group in self.groups]
        return self._largest([None if moved is None else moved / scale for moved, scale in each])

    def _largest(self, figures: Sequence[float | None]) -> float | None:
        known = [figure / float(one) for figure, one in zip(figures, self.chances, strict=True) if figure is not None]
        return max(known) if len(known) == len(figures) else None


def _copy(source: Bytes, target: Bytes) -> None:
    """Column by column where there are few: numpy goes along the rows, and short ones cost it most."""
    if source.shape[1] > _FEW_BYTES:
        target[:] = source
        return
    for column in range(source.shape[1]):
        target[:, column] = source[:, column]


class _GroupAdder:
    """Takes reports apart once and hands each group's to its own adder."""

    def __init__(self, protocol: Groups) -> None:
        self._protocol = protocol
        self._people = np.zeros(len(protocol.groups), dtype=np.int64)
        self._adders = [group.protocol._adder() for group in protocol.groups]

    def add(self, reports: Bytes) -> None:
        for group, _, own in self._protocol._split(reports):
            self.add_inner(group, self._protocol._inner(group, own))

    def add_inner(self, group: int, reports: Bytes) -> None:
        """What the protocol of a group wrote."""
        self._people[group] += len(reports)
        self._adders[group].add(reports)

    def counts(self) -> Counts:
        return np.concatenate([self._people, *(adder.counts() for adder in self._adders)])
