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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import SpecError
from deniable.protocols.blanket import Blanket, mixed, worst
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Guarantee, Law
from deniable.protocols.protocol import Protocol, first_of, load, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports, from_bytes, narrow_type, to_bytes, width_of
from deniable.protocols.structures import Choice
from deniable.protocols.tally import WORTH_A_TABLE, Counts, HalvesCounter, Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.protocols.wrapped import check_wrapped
from deniable.randomness import Bits
from deniable.results.significance import too_few, too_many
from deniable.words import Fact, Joined, Word, word

MOST_WEIGHT = 1 << 32
"""The weights add up to less than this."""

"""Groups that are named in words."""

_ROWS = 1 << 18
"""Rows that are taken apart at once: so many that no group's part is short, which would cost more than the cache."""


_FEW_FORMS = 64
"""Reports that a forger tries all of."""

_FEW_BYTES, _FEW_GROUPS = 8, 8
_WAYS = 1 << 12
"""Ways in which several people fall to groups, that are listed."""


class Group(NamedTuple):
    """One of the questions.

    Args:
        weight: Relative number of respondents.
        protocol: The protocol of the group.
    """

    weight: int
    protocol: Protocol


@dataclass(frozen=True)
class Groups(Protocol):
    """A protocol that is made of others. A family says what part of an answer a group is about, and reads out.

    project       one encoded answer -> the encoded answer of a group's question
    project_many  the same for the rows of a column of encoded answers that fell to the group
    group_names   what the groups are called

    Args:
        domain: The possible answers.
        epsilon: Largest epsilon of a report.
        groups: The groups; a respondent is in one of them.
    """

    traits: ClassVar[Traits] = Traits(says=lambda protocol, report: protocol._says(report))

    groups: tuple[Group, ...] = ()

    def _check_groups(self) -> None:
        """Refuse groups that make no protocol, or whose promises this kind would not keep."""
        if not self.groups:
            raise SpecError(f"{self.name} needs at least one group")
        for weight, protocol in self.groups:
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise SpecError("the weight of a group is a positive whole number")
            if not isinstance(protocol, Protocol):
                raise SpecError(f"a group has a weight and a protocol, not a {type(protocol).__name__}")
        if len({group.protocol.guarantee.relation for group in self.groups}) > 1:
            raise SpecError("the groups are about different relations, whose levels cannot be compared")
        check_wrapped(self)
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

    def _parts(self, n: int) -> dict[str, tuple[Protocol, int]]:
        each = zip(self.group_names, self.groups, self.people(n), strict=True)
        return {name: (group.protocol, people) for name, group, people in each}

    def _blankets(self) -> tuple[Blanket, ...]:
        """That of each group with its chance; answers that differ in every group are the worst."""
        each = [group.protocol.law().blankets for group in self.groups]
        if not all(each):
            return ()
        return (mixed((chance, worst(one)) for chance, one in zip(self.chances, each, strict=True)),)

    def _guarantee(self) -> Guarantee:
        """One group is reported, so that the weakest of their guarantees holds."""
        each = [group.protocol.guarantee for group in self.groups]
        return each[0]._replace(epsilon=max(one.epsilon for one in each), delta=max(one.delta for one in each))

    @cached_property
    def _head(self) -> int:
        return width_of(len(self.groups))

    @cached_property
    def _report_bytes(self) -> int:
        return self._head + max(group.protocol.report_bytes for group in self.groups)

    @cached_property
    def _tally_size(self) -> int:
        return len(self.groups) + sum(group.protocol.tally_size for group in self.groups)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """Where the counters of each group begin, and where those of the last one end."""
        sizes = [group.protocol.tally_size for group in self.groups]
        return tuple(accumulate(sizes, initial=len(self.groups)))

    @cached_property
    def _cost(self) -> Cost:
        each = [
            (float(chance), group.protocol.worth().cost)
            for chance, group in zip(self.chances, self.groups, strict=True)
        ]
        drawn = sum(chance * cost.random_bytes for chance, cost in each)
        first = WORD_BYTES if self._sums[-1] > 1 else 0
        return Cost(first + drawn, 1 + sum(chance * cost.operations for chance, cost in each))

    def _choose_many(self, values: Any, bits: Bits) -> NDArray[Any]:
        """The groups that encoded answers are reported for."""
        ways = self._ways
        if ways is None:
            return np.searchsorted(self._sums, bits.integers(self._sums[-1], len(values)), side="right")
        drawn = bits.integers(ways.size, -(-len(values) // (ways.itemsize // self._head_type.itemsize)))
        return ways.take(drawn).view(self._head_type)[: len(values)]

    @property
    def _head_type(self) -> np.dtype[Any]:
        return narrow_type(self._head)

    @cached_property
    def _ways(self) -> NDArray[Any] | None:
        """The groups of 1, 2, 4 or 8 people in all ways that are equally likely, each as one number: one draw for all.

        None where the sum of the weights is too large for a list.
        """
        if self._sums[-1] > _ROWS:
            return None
        groups = np.arange(len(self.groups), dtype=self._head_type)
        ways = np.repeat(groups, [weight for weight, _ in self.groups])[:, None]
        while len(ways) ** 2 <= _WAYS and 2 * ways[0].nbytes <= WORD_BYTES:
            size = len(ways)
            ways = np.ascontiguousarray(np.hstack([np.repeat(ways, size, axis=0), np.tile(ways, (size, 1))]))
        return ways.view(f"<u{ways[0].nbytes}")[:, 0]

    def _structure(self) -> Choice:
        weights, protocols = zip(*self.groups, strict=True)
        return Choice(weights, protocols, self.project)

    @cached_property
    def _kept_choice(self) -> Choice:
        return self._structure()

    def _ready(self, values: Any) -> Any:
        """Encoded answers in the form that `project_many` takes, as short as they can be: they are fetched often."""
        return values

    def draw_many(self, values: Any, bits: Bits) -> Bytes:
        whole, kind = np.empty(len(values), dtype=self._whole), self._whole.type
        for start in range(0, len(values), _ROWS):
            block, some = whole[start : start + _ROWS], values[start : start + _ROWS]
            chosen, ready = self._choose_many(some, bits), self._ready(some)
            for group, rows in self._by_group(chosen):
                protocol, parts = self.groups[group].protocol, self.project_many(ready, group, rows)
                if self._is_short:
                    numbers = protocol.kernel().draw_numbers(parts, bits).astype(self._whole)
                    numbers <<= kind(8 * self._head)
                    numbers |= kind(group)
                    block[rows] = numbers
                else:
                    reports = np.zeros((rows.size, self.report_bytes), dtype=np.uint8)
                    reports[:, : self._head] = np.frombuffer(group.to_bytes(self._head, "little"), dtype=np.uint8)
                    _copy(protocol.draw_many(parts, bits), reports[:, self._head : self._head + protocol.report_bytes])
                    block[rows] = reports.view(self._whole)[:, 0]
        if self._is_short:
            return to_bytes(whole, self.report_bytes)
        return whole.view(np.uint8).reshape(-1, self.report_bytes)

    @property
    def _is_short(self) -> bool:
        """Whether reports are handled as numbers, which is much faster than rows of bytes."""
        return self.report_bytes <= WORD_BYTES

    @cached_property
    def _whole(self) -> np.dtype[Any]:
        """A report as one number, with zeros after it, or as one item."""
        return narrow_type(self.report_bytes) if self._is_short else np.dtype((np.void, self.report_bytes))

    @cached_property
    def _halves(self) -> HalvesCounter | None:
        """What counts the reports of all groups at once."""
        return HalvesCounter.of([group.protocol.kernel().halves for group in self.groups]) if self._is_word else None

    @property
    def _is_word(self) -> bool:
        """Whether a report is a word of 32 bits, or less, with the group in its first byte."""
        return self._head == 1 and self._whole.itemsize == WORD_BYTES // 2 and self._is_short

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

    def _split(self, reports: Bytes) -> Iterator[tuple[int, NDArray[np.intp], NDArray[Any]]]:
        """What each group's reports say after the group's number, with their rows: numbers, or rows of bytes."""
        for start in range(0, len(reports), _ROWS):
            block = np.ascontiguousarray(reports[start : start + _ROWS])
            chosen = from_bytes(block[:, : self._head])
            whole = from_bytes(block) if self._is_short else block.view(self._whole)[:, 0]
            for group, rows in self._by_group(chosen):
                own = whole.take(rows)
                if self._is_short:
                    own >>= self._whole.type(8 * self._head)
                else:
                    own = own[:, None].view(np.uint8)[:, self._head :]
                yield group, rows + start if start else rows, own

    def _inner(self, group: int, own: NDArray[Any]) -> Bytes:
        """What the group's own protocol wrote, in bytes."""
        width = self.groups[group].protocol.report_bytes
        if self._is_short:
            return to_bytes(own, width)
        inner = np.empty((len(own), width), dtype=np.uint8)
        _copy(own[:, :width], inner)
        return inner

    def _is_good(self, group: int, own: NDArray[Any]) -> NDArray[np.bool_]:
        """Which are valid by the group's own protocol, and padded with zeros."""
        protocol = self.groups[group].protocol
        width, rest = protocol.report_bytes, self.report_bytes - self._head - protocol.report_bytes
        if not self._is_short:
            good = protocol.valid(self._inner(group, own))
            for column in range(width, width + rest):
                good &= own[:, column] == 0
            return good
        if rest and int(own.max(initial=0)) >> 8 * width:
            fits: NDArray[np.bool_] = own >> self._whole.type(8 * width) == 0
            return fits & protocol.kernel().valid_numbers(own & self._whole.type((1 << 8 * width) - 1))
        return protocol.kernel().valid_numbers(own)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        found = np.zeros(len(reports), dtype=np.bool_)
        for group, rows, own in self._split(reports):
            found[rows] = self._is_good(group, own)
        return found

    def _plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        rows_of_bytes = self._rows(reports)
        found = np.zeros(len(rows_of_bytes), dtype=np.bool_)
        for group, rows, own in self._split(rows_of_bytes):
            plausible = self.groups[group].protocol.law().plausible(self._inner(group, own))
            found[rows] = plausible & self._is_good(group, own)
        return found

    def _tied(self, reports: Bytes, publics: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = np.zeros(len(reports), dtype=np.bool_)
        for group, rows, own in self._split(reports):
            public = self.groups[group].protocol.law().public
            found[rows] = True if public is None else public(self._inner(group, own), publics[rows])
        return found

    def _add(self, adder: Any, reports: Bytes) -> None:
        if len(reports) >= WORTH_A_TABLE and self._halves is not None:
            counted = self._halves.counts(from_bytes(reports))
            if counted is not None:  # else one is no report, which is found below
                for group, (people, counts) in enumerate(counted):
                    adder.add_counts(group, people, counts)
                return
        # Taken apart once, for both: that costs as much as everything that is done with the parts.
        parts = [(group, own) for group, _, own in self._split(reports)]
        good = all(self._is_good(group, own).all() for group, own in parts)
        if not good or sum(len(own) for _, own in parts) < len(reports):
            self._check_valid(reports)
        for group, own in parts:
            adder.add_part(group, own)

    def count(self, reports: Bytes) -> Counts:
        adder = _GroupAdder(self)
        adder.add(reports)
        return adder.counts()

    @remembered
    def kernel(self) -> Kernel:
        return super().kernel().but(adder=lambda: _GroupAdder(self), add=self._add, pieces=self._pieces)

    def _pieces(self, reports: Bytes) -> Iterator[tuple[int, Counts]]:
        self._check_valid(reports)
        people = np.zeros(len(self.groups), dtype=np.int64)
        for group, _, own in self._split(reports):
            people[group] += len(own)
            for start, counts in self.groups[group].protocol.kernel().pieces(self._inner(group, own)):
                yield self._starts[group] + start, counts
        yield 0, people

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        return [self._choice(), *protocol.story(self.part(value, group), self.project(encoded, group), inner)]

    def _choice(self) -> Word:
        """That one of the groups is chosen."""
        return word("story.part", chances=first_of(self._told_chances(), len(self.groups)))

    def _told_chances(self, id: str = "story.chance") -> list[Fact]:
        """Each group with its probability."""
        named = zip(self._told_names(), self.chances, strict=True)
        return [word(id, name=name, chance=percent(float(share), 1)) for name, share in named]

    def _told_names(self) -> Sequence[Fact]:
        """The names of the groups in a story."""
        return self.group_names

    def part(self, value: Any, group: int) -> Any:
        """What a group is about, of one answer as it was given."""
        return value

    def _says(self, report: bytes) -> Fact:
        group = int.from_bytes(report[: self._head], "little")
        protocol = self.groups[group].protocol
        inner = report[self._head : self._head + protocol.report_bytes]
        return Joined([self._told_names()[group], ": ", protocol.traits.says(protocol, inner)], "")

    # -- the read-out ------------------------------------------------------------------------------

    def _split_tally(self, tally: Tally) -> dict[str, tuple[Protocol, Tally]]:
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

    def _broken(self, tally: Tally) -> str:
        people = tally.counts[: len(self.groups)]
        whole = int(people.sum()) == tally.n and people.min() >= 0
        return "" if whole else "the reports of the groups of this tally do not add up to its reports: it is broken"

    def _forgeries(self, answers: Any) -> Bytes:
        """A forger chooses the group: what it would send in each of them."""
        if self.law().forms <= _FEW_FORMS:
            return self._some_reports(answers)
        found, ready = [], self._ready(answers)
        for place, (_, protocol) in enumerate(self.groups):
            own = protocol.worth().forgeries(self.project_many(ready, place, np.arange(len(answers))))
            found += [self._kept_choice.packed(place, row.tobytes()) for row in own]
        return np.array([list(row) for row in found], dtype=np.uint8)

    def _any_reports(self, count: int, bits: Bits) -> Bytes:
        groups = bits.integers(len(self.groups), count)
        found = np.zeros((count, self.report_bytes), dtype=np.uint8)
        for place, rows in self._by_group(groups):
            own = self.groups[place].protocol.law().any_reports(rows.size, bits)
            found[rows, : self._head] = np.frombuffer(place.to_bytes(self._head, "little"), dtype=np.uint8)
            found[rows, self._head : self._head + own.shape[1]] = own
        return found

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        size, n = len(self.groups), tally.n * worth
        shares = list(zip((tally.counts[:size] * worth).tolist(), map(float, self.chances), strict=True))
        few = min(too_few(count, n, chance, size) for count, chance in shares)
        own = [few, min(too_many(count, n, chance, size) for count, chance in shares)] if size > 1 else []
        for (_, protocol), inner in zip(self.groups, self.tallies(tally), strict=True):
            own += protocol.law().checks(inner, worth) if inner.n else []
        return own

    def _over_groups(self, n: int, figure: Callable[[Protocol, int], float]) -> Iterator[float]:
        """A figure of each group with its share of n people, divided by the width of what it can be."""
        for (_, protocol), people in zip(self.groups, self.people(n), strict=True):
            yield figure(protocol, people) / protocol.worth().scale

    def _visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        each = zip(self.groups, self.people(n), strict=True)
        found = [group.protocol.worth(people, population=population).visible(level) for group, people in each]
        known = [one for one in found if one is not None]
        return max(known) if len(known) == len(found) else None

    def _poisoning(self) -> float | None:
        """As a part of the width of what a figure can be."""
        each = [(group.protocol.worth().moved, group.protocol.worth().scale) for group in self.groups]
        return self._largest([None if moved is None else moved / scale for moved, scale in each])

    def _largest(self, figures: Sequence[float | None]) -> float | None:
        known = [figure / float(one) for figure, one in zip(figures, self.chances, strict=True) if figure is not None]
        return max(known) if len(known) == len(figures) else None

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            parts=lambda: self._parts(n),
            split=self._split_tally,
            tests=lambda: sum(group.protocol.worth().tests for group in self.groups),
            cost=lambda: self._cost,
            forgeries=self._forgeries,
            # The largest noise of a group's headline figure, as a part of the width of what the figure can be.
            noise=lambda: max(self._over_groups(n, lambda protocol, people: protocol.worth(people).noise)),
            # The same for the standard error.
            error=lambda: max(
                self._over_groups(n, lambda protocol, people: protocol.worth(people, population=population).error)
            ),
            visible=lambda level=0.95: self._visible(n, level, population),
            # A forger chooses the group: an honest report is about it only now and then.
            leverage=lambda: self._largest([group.protocol.worth().leverage for group in self.groups]),
            moved=self._poisoning,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: max(group.protocol.ratio for group in self.groups),
            blankets=self._blankets,
            guarantee=self._guarantee,
            one_part=lambda: len(self.worth(1).parts) > 1,
            width=lambda: self._report_bytes,
            forms=lambda: sum(group.protocol.law().forms for group in self.groups),
            counters=lambda: self._tally_size,
            structure=lambda: self._kept_choice,
            sent=lambda value, bits: self._kept_choice.sent(value, bits),
            plausible=self._plausible,
            public=self._tied if any(group.protocol.law().public for group in self.groups) else None,
            any_reports=self._any_reports,
            broken=self._broken,
            checks=self._misfits,
        )


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
        self._counts = [np.zeros(group.protocol.tally_size, dtype=np.int64) for group in protocol.groups]
        self._adders = [] if protocol._is_short else [group.protocol.kernel().adder() for group in protocol.groups]

    def add(self, reports: Bytes) -> None:
        for group, _, own in self._protocol._split(reports):
            self.add_part(group, own)

    def add_part(self, group: int, own: NDArray[Any]) -> None:
        """What `Groups._split` gives for a group."""
        self._people[group] += len(own)
        if self._adders:
            self._adders[group].add(self._protocol._inner(group, own))
        else:
            self._counts[group] += self._protocol.groups[group].protocol.kernel().count_numbers(own)

    def add_counts(self, group: int, people: int, counts: Counts) -> None:
        """What was counted already."""
        self._people[group] += people
        self._counts[group] += counts

    def counts(self) -> Counts:
        each = [adder.counts() for adder in self._adders] or self._counts
        return np.concatenate([self._people, *each])
