"""Structures: how a report is drawn, as data that can be run; a kind gives one in its `Law`.

Choice     one of several protocols, by a coin that does not depend on the answer or by what is sent in clear, then a
           report of that protocol
Mapped     a function of the answer, then a report of another protocol about its value
Members    the answer becomes a set of elements, padded, subsampled or hashed; the rest of the code sees only the set
Hashed     the code of the kind sees of an answer only what a hash function makes of it
Seeded     a public seed, then the cell of the answer under it, plus noise that does not depend on the answer
Stages     a state that is drawn once per answer and kept, then reports that are drawn from it
Stream     a state that changes from epoch to epoch; the guarantee is about all reports of a device
Sum        noise that suffices only in the sum over many people

`Choice`, `Mapped`, `Members` and `Seeded` have a method `draw`. A kind that has no code of its own for that draws with
the method of its structure: then the structure is what a device runs, and an audit relies on it. It does so for such
kinds only. `Hashed` is checked by an audit: it hides the answer and replaces the hash function. `Stages` and `Stream`
name the code that devices call and that an audit follows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from deniable.domains import ListedDomain
from deniable.errors import DomainError
from deniable.exact import Dyadic
from deniable.protocols.reports import Bytes, from_bytes, width_of
from deniable.randomness import Bits, floyd

if TYPE_CHECKING:
    from deniable.channels import Channel
    from deniable.protocols.protocol import Protocol


def _listed(protocol: Protocol) -> int:
    """The number of answers of a protocol; 0 if they are not numbered."""
    return protocol.domain.size if isinstance(protocol.domain, ListedDomain) else 0


@final
@dataclass(frozen=True)
class Choice:
    """The number of a member in the first bytes, then its own report about a part of the answer, then zeros."""

    weights: tuple[int, ...]
    """How likely each member is, in proportion."""
    members: tuple[Protocol, ...]
    project: Callable[[Any, int], Any]
    """(encoded answer, number of a member) -> the encoded answer that the member reports."""
    clear: int = 0
    """How many of the first parts of an answer are sent in clear; they alone choose the member then."""
    place: Callable[[Any], int] | None = None
    """(the parts that are sent in clear) -> the number of the member."""
    asking: Callable[[Protocol], Protocol] | None = None
    """(protocol) -> the same, with this protocol as every member."""

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(accumulate(self.weights))

    @property
    def chances(self) -> tuple[Fraction, ...]:
        """How likely each member is."""
        return tuple(Fraction(weight, self._sums[-1]) for weight in self.weights)

    @cached_property
    def _each(self) -> tuple[tuple[bytes, Protocol, int], ...]:
        """The first bytes of its reports, the protocol and the number of answers of each member."""
        heads = (number.to_bytes(self.head, "little") for number in range(len(self.members)))
        return tuple((head, member, _listed(member)) for head, member in zip(heads, self.members, strict=True))

    @cached_property
    def head(self) -> int:
        """The number of bytes that hold the number of the member."""
        return width_of(len(self.members))

    @cached_property
    def width(self) -> int:
        """The number of bytes of a report."""
        return self.head + max(member.report_bytes for member in self.members)

    def choose(self, answer: Any, bits: Bits) -> int:
        """The member that reports an answer."""
        if self.place is None:
            return bisect_right(self._sums, bits.integers(self._sums[-1]))
        return self.place(answer[: self.clear])

    def packed(self, member: int, report: bytes) -> bytes:
        """A report, from that of a member."""
        return (self._each[member][0] + report).ljust(self.width, b"\0")

    def split(self, reports: Bytes) -> Iterator[tuple[Protocol, Bytes]]:
        """The members that some reports are of, each with its own part of them."""
        chosen = from_bytes(np.ascontiguousarray(reports[:, : self.head]))
        for number, member in enumerate(self.members):
            own = reports[chosen == number, self.head : self.head + member.report_bytes]
            if len(own):
                yield member, np.ascontiguousarray(own)

    def draw(self, answer: Any, bits: Bits) -> bytes:
        """One report."""
        member = self.choose(answer, bits)
        part, (head, protocol, size) = self.project(answer, member), self._each[member]
        if size and not 0 <= part < size:
            raise DomainError("a group is asked about something that is not one of its answers")
        return (head + protocol.draw(part, bits)).ljust(self.width, b"\0")

    def sent(self, value: Any, bits: Bits) -> bytes:
        """The same for an input of the channel, where inputs are not answers (`Law.sent`)."""
        member = self.choose(value, bits)
        return self.packed(member, self.members[member].law().sent(self.project(value, member), bits))


@final
@dataclass(frozen=True)
class Mapped:
    """A report of another protocol, about a value that is computed from the answer, possibly at random."""

    inner: Protocol
    value: Callable[[Any, Bits], Any]
    """(encoded answer, bits) -> an encoded answer of the inner protocol."""

    @cached_property
    def _size(self) -> int:
        return _listed(self.inner)

    def draw(self, answer: Any, bits: Bits) -> bytes:
        """One report."""
        value = self.value(answer, bits)
        if self._size and not 0 <= value < self._size:
            raise DomainError("the inner protocol is asked about something that is not one of its answers")
        return self.inner.draw(value, bits)


@final
@dataclass(frozen=True)
class Members:
    """A set, padded with dummies to `at_most` elements and possibly hashed; the rest of the code sees only that."""

    items: int
    at_most: int
    """Larger sets are subsampled to this number of items."""
    then: Callable[[int, Bits], bytes]
    """(the set as a number with a bit for each element, bits) -> the report, without the number of a hash function."""
    cells: int = 0
    """The number of cells that elements are hashed into; 0 if they are not hashed."""
    cohorts: int = 0
    """The number of hash functions; a device draws one, and sends its number."""
    hashed: Callable[[Sequence[int], int], Iterable[int]] | None = None
    """(elements, number of the hash function) -> their cells."""

    @property
    def universe(self) -> int:
        """The number of elements that a set is drawn from."""
        return self.cells or self.items + self.at_most

    @property
    def sizes(self) -> range:
        """How many of them a set may have."""
        return range(1, min(self.at_most, self.cells) + 1) if self.cells else range(self.at_most, self.at_most + 1)

    def padded(self, answer: Sequence[int], bits: Bits) -> list[int]:
        """at_most different elements, ascending."""
        most, first = self.at_most, self.items
        if len(answer) > most:
            answer = sorted(answer[place] for place in floyd(bits.integers, len(answer), most))
        if answer and not (answer[0] >= 0 and answer[-1] < first and all(a < b for a, b in pairwise(answer))):
            raise DomainError("the items of a set are different ones of those that are listed, in their order")
        return [*answer, *range(first, first + most - len(answer))]

    def draw(self, answer: Any, bits: Bits) -> bytes:
        """One report."""
        elements = self.padded(answer, bits)
        if self.hashed is None:
            return self.then(sum(1 << element for element in elements), bits)
        cohort = bits.integers(self.cohorts) if bits.public is None else bits.public % self.cohorts
        cells = set(self.hashed(elements, cohort))
        if len(cells) not in self.sizes or min(cells) < 0 or max(cells) >= self.cells:
            raise DomainError("a hash function gives other cells than there are")
        head = cohort.to_bytes(width_of(self.cohorts), "little")
        return head + self.then(sum(1 << cell for cell in cells), bits)


@final
@dataclass(frozen=True)
class Hashed:
    """The code of a kind that sees of an answer only what one method gives, which is a hash function."""

    via: str
    """The method, by its name in the protocol, such as "positions" or "hashing.cell"."""
    size: int
    """It gives numbers from 0 to size - 1."""
    count: int | None = None
    """It gives a list of this many different numbers in ascending order; without it, one number."""


@final
@dataclass(frozen=True)
class Seeded:
    """A public seed, and the cell of the answer under it with noise: one of the first cells, or any of them.

    Cells are added bit by bit if their number is a power of two, else modulo it. The noise is drawn without the answer:
    whatever the cells are, no report is more than `ratio` times as likely for one answer as for another.
    """

    seeds: int
    """Seeds are 1 to this number, each with the same probability."""
    cells: int
    hashed: Callable[[Any, int], int]
    """(encoded answer, seed) -> its cell, from 0 to cells - 1."""
    keep: Dyadic
    """The probability that the noise is one of the first `window` cells; otherwise it is any cell."""
    window: int

    @property
    def is_bitwise(self) -> bool:
        """Whether cells are added bit by bit."""
        return self.cells & (self.cells - 1) == 0

    @property
    def ratio(self) -> Fraction:
        """How many times as likely as any other noise the noise of the window is."""
        return 1 + self.keep.value * self.cells / ((1 - self.keep.value) * self.window)

    @cached_property
    def seed_bits(self) -> int:
        """The number of bits of a seed, which is in the lowest bits of a report; the cell is above it."""
        return self.seeds.bit_length()

    @cached_property
    def width(self) -> int:
        """The number of bytes of a report."""
        return -(-(self.seed_bits + (self.cells - 1).bit_length()) // 8)

    def added(self, cell: int, noise: int) -> int:
        """A cell with noise."""
        return cell ^ noise if self.is_bitwise else (cell + noise) % self.cells

    def draw(self, answer: Any, bits: Bits) -> bytes:
        """One report: draws the coin and the seed, then one number for both kinds of noise."""
        kept, seed = bits.kept_and_drawn(self.keep, self.seeds)
        far, near = divmod(bits.integers(self.cells * self.window), self.window)
        seed += 1
        cell = self.hashed(answer, seed)
        if not 0 <= cell < self.cells:
            raise DomainError("a hash function gives other cells than there are")
        sent = seed | self.added(cell, near if kept else far) << self.seed_bits
        return sent.to_bytes(self.width, "little")


@final
@dataclass(frozen=True)
class Stages:
    """A state that is drawn once per answer and kept, then fresh reports that are drawn from the state alone."""

    forever: Fraction
    """The epsilon of a state: of everything that is ever reported from it."""
    ratio: Fraction
    """The exact largest ratio of a state's probabilities under two answers."""
    state: Callable[[Any, Bits], bytes]
    """(encoded answer, bits) -> a state."""
    report: Callable[[bytes, Bits], bytes]
    """(state, bits) -> a report."""
    device: Any
    """What a device calls: `permanent`, `kept_state`, `report_from`, `stream`; for columns `permanents` and `reports`.

    No kind may change these; they call the two functions above."""
    shared_bytes: int
    """The number of bytes at the head of a state that a device draws once, whatever it answers."""
    key: Callable[[Any, bytes], bytes]
    """(encoded answer, state) -> the key under which a device keeps the state: answers of one key share a state."""
    levels: Callable[..., Any]
    """(epochs, values) -> what a number of reports of one device reveal, in four senses."""
    channels: Callable[[], tuple[Channel, Channel]]
    """From answers to states, and from states to reports; for small protocols."""
    answer: Structure | None = None
    """How the first stage sees the answer."""


@final
@dataclass(frozen=True)
class Stream:
    """A device with a state that each report changes."""

    epochs: int
    changes: int
    """Streams of answers may change this often."""
    begin: Callable[[Bits | None], bytes]
    """(bits) -> the state before the first report."""
    step: Callable[..., tuple[bytes, bytes]]
    """(state, answer, epoch, bits) -> the next state, and the report of the epoch."""
    step_encoded: Callable[..., tuple[bytes, bytes]]
    """The same for an encoded answer."""
    streams: Callable[..., Sequence[Any]]
    """(streams of answers, bits) -> the reports of each epoch; for simulations."""


@final
@dataclass(frozen=True)
class Sum:
    """An answer with a part of the noise, split between collectors who publish only sums over many people."""

    people: int
    """About how many take part."""
    missing: int
    """How many of them may be missing."""
    collectors: int

    @property
    def enough(self) -> int:
        """The number of people whose noise suffices."""
        return self.people - self.missing


Structure = Choice | Mapped | Members | Hashed | Seeded | Stages | Stream | Sum

RUN = (Choice, Mapped, Members, Seeded)
"""The structures that draw reports."""
