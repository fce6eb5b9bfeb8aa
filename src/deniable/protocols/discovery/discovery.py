"""Discovery: the common ones among answers that nobody can list, such as texts or long identifiers.

Law        a group is chosen by chance. Group j reads the first l_j bits of the answer, maps them to a cell by a public
           linear map, and reports the cell by local hashing at the full epsilon. The last group, which confirms, does
           so with the whole answer
Privacy    the ratio of local hashing: group and map do not depend on the answer, and one cell is reported
Error      of a share: that of local hashing with the people of the last group, and the collisions of its cells.
           `visible(n)`: the smallest share that is found nine times out of ten
Report     the number of the group, one byte; the local-hashing report of the cell; zeros up to the longest one
Cost       one random word more than a report of local hashing; 2^cell_bits counters per group
Source     prefixes as in Bassily and Smith 2015 and Wang, Li and Jha 2017; decoded softly (`search.py`)

Map        bit i of the prefix adds (XOR) a column of cell_bits bits. The last cell_bits bits of the prefix have the
           unit vectors, the last bit the lowest. An earlier bit i has the number i % 8 of
           the 8 numbers of 32 bits (little-endian) in SHA-256("deniable-discovery-v1" NUL key NUL group NUL i // 8);
           its lowest bits count. So the map has full rank, and others collide with probability 2^-cell_bits
Read-out   the other groups alone decide what is common. The last group alone gives its share: the answer was not chosen
           for what that group says, so its interval needs no correction
Settings   `settings(...)` chooses cell_bits and the prefixes: as few groups as possible, because they share the people,
           with few enough new bits per group to distinguish wrong prefixes
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import BitDomain, BitRows, BitStrings, Domain, Integers
from deniable.errors import NumberError, SpecError
from deniable.protocols.choice import digits
from deniable.protocols.discovery.found import Found
from deniable.protocols.discovery.search import ACCEPT, Beam, Level, accept, any_of, clear, listed, search
from deniable.protocols.frequency.local_hashing import OLH
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Law
from deniable.protocols.protocol import Protocol
from deniable.protocols.record import remembered
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits, scaled
from deniable.protocols.worth import Worth
from deniable.results import Support, Weights
from deniable.words import Fact, word

FOUND = "found"
METHOD = "search and count"

PEOPLE = 100_000
LEAST_CELL_BITS, MOST_CELL_BITS = 2, 24
LEAST_MEMORY, MOST_MEMORY, MEMORY_PER_PERSON = 4_000_000, 34_000_000, 340
"""Bytes of a tally."""
_SMALLEST_TALLY = 1 << 15

_WEIGHT, _LAST_WEIGHT, _CONFIRM_WEIGHT = 10, 13, 4
"""The last search group gets more people: nothing after it speaks for its bits. Counting needs fewer than finding."""
_TAIL = 2
"""New bits of the last search group."""
_ROOM, _COMMON, _PEOPLE_PER_COMMON = 4, 5, 400
"""Bits of a cell beyond the new bits of a group and the bits that number the common prefixes; 2^5 are expected.

With fewer people, fewer can be found."""
_CLEAR = 4.4
"""A share of at least this many standard errors of a search group is found nine times out of ten."""
_UNLUCKY = 1.3
"""Nine times out of ten, an estimated share is at most this many standard errors below the true one."""
_LIKELY = 0.7
"""The share to search for, as a part of the smallest share that will be found: some estimates are smaller."""
_LEARN = 200
"""Candidates from which it is learned how answers are spelled, at least."""
_UNLIKE = 0.05
"""The probability that a text is unlike words."""
_SHARE_UNLIKE, _CELL_BITS_UNLIKE = 2.0, 14
"""The share at which any text is found, as a multiple of that of words, if cells have at least 14 bits.

A group has two new bytes, which have 2^13 forms in a text of any printable characters."""
_MOST_INPUTS = 1 << 12


class Settings(NamedTuple):
    """How answers are taken apart."""

    cell_bits: int
    prefixes: tuple[int, ...]


def settings(domain: BitDomain, people: int, memory: int | None = None) -> Settings:
    """The fewest groups whose tally has at most `memory` bytes.

    >>> settings(BitStrings(64), 1_000_000).prefixes
    (19, 28, 36, 45, 53, 62, 64)
    """
    room = _room(people) if memory is None else memory
    bits, common = domain.size_in_bits, min(_COMMON, max(1, people // _PEOPLE_PER_COMMON).bit_length())
    options = []
    for cell_bits in range(LEAST_CELL_BITS, MOST_CELL_BITS + 1):
        prefixes = domain.ends or _prefixes(bits, cell_bits, cell_bits - _ROOM - common)
        size = sum(1 << min(cell_bits, length) for length in (*prefixes, bits))
        if 8 * (size + len(prefixes) + 1) <= room:
            options.append((len(prefixes), -cell_bits, Settings(cell_bits, prefixes)))
    if not options:
        raise NumberError(f"a tally of {bits} bits does not fit into {room:,} bytes: allow more memory")
    return min(options)[2]


def _room(people: int) -> int:
    return min(MOST_MEMORY, max(LEAST_MEMORY, MEMORY_PER_PERSON * people))


def _prefixes(bits: int, cell_bits: int, new: int) -> tuple[int, ...]:
    """Where the groups end: the first one fills a cell, the others have equally many new bits, the last one few."""
    first = min(bits, cell_bits)
    if first == bits:
        return (bits,)
    middle = max(first, bits - _TAIL)
    steps = -(-(middle - first) // max(1, new))
    return (*(first + round((middle - first) * place / max(1, steps)) for place in range(steps + 1)), bits)


@dataclass(frozen=True, init=False, repr=False)
class HeavyHitters(Groups):
    """The common ones among answers that nobody can list.

    Args:
        domain: `ShortText` or `BitStrings`.
        epsilon: Largest epsilon of a report.
        people: Expected number of respondents.
        memory: Maximum size of a tally, in bytes.
        cell_bits: Number of bits of a cell; chosen by `people` and `memory` if None.
        prefixes: Lengths of the prefixes that are searched, in bits; given together with `cell_bits`.
        hash_bits: Number of bits of the hash in OLH; the best number if 0.
        weights: Relative size of each group; the group that counts is the last.

    Raises:
        NumberError: The settings do not fit together.

    >>> from deniable import Simulation
    >>> from deniable.domains import ShortText
    >>> words = HeavyHitters(ShortText(8), epsilon=4, people=20_000)
    >>> answers = ["tea"] * 6_000 + ["coffee"] * 9_000 + [f"{n:05x}" for n in range(5_000)]
    >>> words.estimate(words.tally(words.privatize(answers, Simulation(1)))).values
    ['coffee', 'tea']
    """

    name: ClassVar[str] = "HeavyHitters"
    traits: ClassVar[Traits] = Traits(
        takes=(BitDomain,),
        advice="it needs dn.ShortText(bytes) or dn.BitStrings(bits)",
        reads=(FOUND,),
        slow=True,
        answers=FOUND,
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "what is found depends on the reports; cells collide"},
    )

    domain: BitDomain
    cell_bits: int = 0
    prefixes: tuple[int, ...] = ()

    def __init__(
        self,
        domain: BitDomain,
        epsilon: exact.Number,
        people: int = PEOPLE,
        memory: int | None = None,
        cell_bits: int | None = None,
        prefixes: Sequence[int] | None = None,
        hash_bits: int = 0,
        weights: Sequence[int] | None = None,
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if (cell_bits is None) != (prefixes is None):
            raise NumberError("give cell_bits and prefixes together, or neither")
        if cell_bits is None or prefixes is None:
            cell_bits, prefixes = settings(self.domain, people, memory)
        _check_settings(self.domain, cell_bits, prefixes)
        if weights is None:
            weights = [_WEIGHT] * (len(prefixes) - 1) + [_LAST_WEIGHT, _CONFIRM_WEIGHT]
        lengths = (*prefixes, self.domain.size_in_bits)
        if len(weights) != len(lengths):
            raise NumberError(f"there are {len(lengths)} groups, and one weight for each")
        sizes = [min(cell_bits, length) for length in lengths]
        first = weights[0] / sum(weights) * people
        inner = hash_bits or _best_hash_bits(self.domain, self.epsilon, sizes[0], round(first), len(prefixes))
        groups = [
            (weight, OLH(Integers(0, (1 << size) - 1), self.epsilon, min(inner, size)))
            for weight, size in zip(weights, sizes, strict=True)
        ]
        self._set(self.domain, self.epsilon, cell_bits, prefixes, groups)

    def _set(self, domain: Domain, epsilon: Any, cell_bits: int, prefixes: Sequence[int], groups: Any) -> None:
        values = {"domain": domain, "epsilon": epsilon, "cell_bits": cell_bits, "prefixes": tuple(prefixes)}
        values["groups"] = tuple(Group(weight, protocol) for weight, protocol in groups)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._settle()
        _check_settings(self.domain, cell_bits, prefixes)
        self._check_groups()
        if len(self.groups) != len(self.prefixes) + 1:
            raise SpecError("there is one group per prefix, and one that confirms")
        for length, (_, protocol) in zip(self._lengths, self.groups, strict=True):
            cells = Integers(0, (1 << min(cell_bits, length)) - 1)
            if not isinstance(protocol, OLH) or protocol.domain != cells or protocol.epsilon != self.epsilon:
                raise SpecError("each group is an OLH over its cells with the epsilon of the whole")

    def parameters(self) -> dict[str, Any]:
        return {"cell_bits": self.cell_bits, "prefixes": list(self.prefixes)} | super().parameters()

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> HeavyHitters:
        match parameters:
            case {"groups": list(groups), "prefixes": list(prefixes), "cell_bits": int(cell_bits), **rest} if not rest:
                made = cls.__new__(cls)
                made._set(domain, epsilon, cell_bits, prefixes, cls._written(groups))
                return made
        raise SpecError("discovery needs cell_bits, prefixes and groups, each with a weight and a protocol")

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, BitDomain):
            memory = _room(ask.n or PEOPLE)
            while memory >= _SMALLEST_TALLY:  # the first one that fits is taken
                with suppress(NumberError):
                    yield cls(ask.domain, ask.epsilon, people=ask.n or PEOPLE, memory=memory)
                memory = memory * 7 // 8

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(BitStrings(3), 1, cell_bits=2, prefixes=[2, 3], hash_bits=1, weights=[10, 13, 6])
        yield cls(BitStrings(4, "key"), 2, cell_bits=3, prefixes=[2, 4], hash_bits=1, weights=[10, 13, 6])

    def _scaled(self, factor: Fraction) -> HeavyHitters:
        made = type(self).__new__(type(self))
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        made._set(self.domain, self.epsilon * factor, self.cell_bits, self.prefixes, groups)
        return made

    # -- the law -----------------------------------------------------------------------------------

    @property
    def _lengths(self) -> tuple[int, ...]:
        return (*self.prefixes, self.domain.size_in_bits)

    @property
    def group_names(self) -> tuple[str, ...]:
        return (*(f"the first {length:,} bits" for length in self.prefixes), "all bits, to count")

    @cached_property
    def _maps(self) -> tuple[NDArray[np.uint32], ...]:
        """For each group, what each value of each byte adds to the cell."""
        return tuple(
            cell_map(self.domain.key, group, length, min(self.cell_bits, length), self.domain.size_in_bytes)
            for group, length in enumerate(self._lengths)
        )

    @cached_property
    def _lists(self) -> list[list[list[int]]]:
        """The same for one answer at a time."""
        return [table.tolist() for table in self._maps]

    def project(self, value: Any, group: int) -> Any:
        cell = 0
        for table, byte in zip(self._lists[group], value, strict=True):
            cell ^= table[byte]
        return cell

    def cells(self, rows: NDArray[np.uint8], group: int) -> NDArray[np.int64]:
        """The cells of rows of bytes in a group."""
        found = np.zeros(len(rows), dtype=np.uint32)
        for place, table in enumerate(self._maps[group]):
            if 8 * place < self._lengths[group]:
                found ^= table.take(rows[:, place])
        return found.astype(np.int64)

    def project_many(self, values: BitRows, group: int, rows: NDArray[np.intp]) -> Any:
        which = values.which.take(rows)
        if len(values.entries) < rows.size:
            return self.cells(values.entries, group).take(which)
        return self.cells(values.entries.take(which, axis=0), group)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        if not isinstance(self.domain, BitStrings) or self.domain.bits > _MOST_INPUTS.bit_length() - 1:
            return self._no_inputs()
        size, bits = self.domain.size_in_bytes, self.domain.bits
        rows = [(value << 8 * size - bits).to_bytes(size, "big") for value in range(1 << bits)]
        return ((self.domain.label(row), row) for row in rows)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The shares of the most common answers, the largest first; how many of them are found depends on chance."""
        column = self.domain.encode(answers)
        _, which = np.unique(column.entries, axis=0, return_inverse=True)
        held = np.bincount(which.reshape(-1)[column.which], people)
        shares: NDArray[np.float64] = np.sort(held / held.sum())[::-1]
        return shares

    def _told_names(self) -> Sequence[Fact]:
        return [*(word("level.prefix", n=length) for length in self.prefixes), word("level.bits")]

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        group = int.from_bytes(report[: self._head], "little")
        protocol, cell = self.groups[group].protocol, self.project(encoded, group)
        length, bits = self._lengths[group], self.domain.size_in_bits
        which = word("story.prefix.first" if length < bits else "story.prefix.all", length=length, bits=bits)
        return [
            word("story.prefix", n=bits, which=which),
            word("story.prefix.map", n=1 << min(self.cell_bits, length)),
            *protocol.story(cell, cell, report[self._head : self._head + protocol.report_bytes]),
        ]

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally, candidates: Any = None, values: Sequence[str] | None = None) -> Found:
        """What is common, with shares. `candidates` are answers that are likely: they are found at smaller shares.

        So are texts that are spelled like them, where there are 200 candidates or more: a list of words of a language
        helps to find other words of it. With `values`, the result has the shares of these answers, as a result names
        them, whether they are common or not.
        """
        self._check_tally(tally)
        return replace(self.infer(tally, candidates, values), check=partial(self.misfit, tally))

    def infer(self, tally: Tally, candidates: Any = None, values: Sequence[str] | None = None) -> Found:
        if values is not None:
            return self._given(tally, list(dict.fromkeys(values)))
        known = None if candidates is None else self.domain.encode(list(candidates)).entries
        return self._found(tally, known) if tally.n else Found.nothing([], self.name)

    def _given(self, tally: Tally, named: list[str]) -> Found:
        """The shares of answers that are not searched for."""
        if not tally.n:
            return Found.nothing(named, self.name)
        rows = np.array([np.frombuffer(self.domain.row(one), dtype=np.uint8) for one in named], dtype=np.uint8)
        return replace(self._counted(tally, named, rows, ranked=False), given=True, method="count")

    def _levels(self, tally: Tally) -> list[Level]:
        """The search groups that have any people."""
        levels = []
        each = zip(self.prefixes, self.groups, self.tallies(tally), strict=False)
        for group, (length, (_, protocol), own) in enumerate(each):
            assert isinstance(protocol, OLH)
            shares, error, unit = np.zeros(protocol.domain.size), 1.0, 0.0
            if own.n:
                shares = _shares(protocol, own)
                error = math.sqrt(protocol.variance(own.n, 0.0, population=False)) / own.n
                unit = 1 / (own.n * float(protocol.p - protocol.q))
            levels.append(Level(length, shares, error, unit, partial(self.cells, group=group)))
        return levels

    def _found(self, tally: Tally, known: NDArray[np.uint8] | None) -> Found:
        theta = _LIKELY * min(1.0, self._smallest(tally.n))
        levels = self._levels(tally)
        beams = [search(levels, self.domain.size_in_bytes, theta, self.domain.log_prior)]
        if known is not None and len(known):
            beams.append(listed(levels, known))
            if len(known) >= _LEARN and (like := self.domain.log_prior_like(known)) is not None:
                beams.append(search(levels, self.domain.size_in_bytes, theta, like))
        beam = any_of(beams)
        rows = self._accepted(levels, beam, theta)
        named = [(label, row) for row in rows if (label := self.domain.label(row.tobytes())) is not None]
        return self._counted(tally, [label for label, _ in named], np.array([row for _, row in named], dtype=np.uint8))

    def _accepted(self, levels: list[Level], likely: Beam, theta: float) -> NDArray[np.uint8]:
        """The common strings among likely ones and those of any spelling; what was found no longer hides the rest."""
        width, prior = self.domain.size_in_bytes, self.domain.log_prior_unlike
        found = np.empty((0, width), dtype=np.uint8)
        while True:
            beam = likely
            if prior is not None:
                beam = any_of([likely, clear(levels, width, theta, prior)], [1 - _UNLIKE, _UNLIKE])
            chosen, levels = accept(levels, beam, theta)
            if not chosen.size:
                return np.unique(found, axis=0)
            found = np.concatenate([found, beam.rows[chosen]])

    def _counted(self, tally: Tally, labels: list[str], rows: NDArray[np.uint8], ranked: bool = True) -> Found:
        """The shares of answers, from the last group alone.

        `ranked` ones were searched for: the largest comes first, and those that nobody in the last group gave, as far
        as can be seen, are left out. Others keep their order.
        """
        own = self.tallies(tally)[-1]
        protocol = self.groups[-1].protocol
        assert isinstance(protocol, OLH)
        if not own.n or not labels:
            none = np.zeros(len(labels))
            return Found(
                labels,
                tally.n,
                none,
                none,
                self.name,
                METHOD,
                smallest=self._smallest(tally.n),
                unlike=self._smallest_unlike(tally.n),
            )
        cells = self.cells(rows.reshape(len(labels), -1), len(self.prefixes))
        supported = protocol._support_counts(own.counts)[cells]
        p, q, size = float(protocol.p), float(protocol.q), protocol.domain.size
        shares = (supported / own.n - q) / (p - q)
        # A part 1 / size of the other people falls into this cell: it is subtracted, and its variance is in the error.
        shares = (shares - 1 / size) / (1 - 1 / size)
        inside = np.clip(shares, 0.0, 1.0)
        rest = max(0.0, 1 - float(inside.sum())) * min(1.0, self._smallest(tally.n))
        collisions = (np.square(inside).sum() - np.square(inside) + rest) / size
        noise = np.asarray(protocol.variance(own.n, inside, population=False)) / own.n**2 + collisions
        # Those who answered in other groups are missing here like those who were not asked at all.
        missing = (1 / own.n - 1 / tally.n) * inside * (1 - inside)
        order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares > 0)] if ranked else np.arange(len(labels))
        noise = (noise + missing) * tally.n**2
        lowest, highest = (float(self.chances[-1]) * end for end in self._forged)
        weights = Weights(lowest, highest, own.n)
        return Found(
            [labels[place] for place in order],
            tally.n,
            shares[order] * tally.n,
            noise[order],
            self.name,
            METHOD,
            Support(supported[order], own.n, p, q),
            unlisted_noise=math.sqrt(float(noise[order].sum())) / tally.n,
            collisions=collisions[order],
            cell_count=size,
            smallest=self._smallest(tally.n),
            unlike=self._smallest_unlike(tally.n),
            weights=weights,
        )

    @property
    def _forged(self) -> tuple[float, float]:
        """The smallest and the largest weight of a report of the last group, against one of any group."""
        law = self.groups[-1].protocol
        assert isinstance(law, OLH)
        one = Fraction(1, law.domain.size)
        low, high = ((end / (law.p - law.q) - one) / (1 - one) for end in (-law.q, 1 - law.q))
        return float(low / self.chances[-1]), float(high / self.chances[-1])

    # -- what it is worth --------------------------------------------------------------------------

    def _people_of(self, n: int, group: int) -> int:
        return self.people(n)[group]

    def _smallest(self, n: int) -> float:
        """The share at which words, and any bit strings, are found nine times out of ten; above 1 if none is."""
        if not n:
            return 1.0
        protocol = self.groups[0].protocol
        assert isinstance(protocol, OLH)
        return _smallest_share(protocol, self._people_of(n, 0), self.domain.information, len(self.prefixes))

    def _smallest_unlike(self, n: int) -> float:
        """The same for any answer, however it is spelled; infinite if cells cannot tell such texts apart."""
        if self.domain.log_prior_unlike is None:
            return self._smallest(n)
        return _SHARE_UNLIKE * self._smallest(n) if self.cell_bits >= _CELL_BITS_UNLIKE else math.inf

    def _noise(self, n: int) -> float:
        """The noise of the share of an answer that nobody gave, once it is found."""
        protocol: Any = self.groups[-1].protocol
        people = self._people_of(n, -1)
        return math.sqrt(protocol.variance(people, 0.0, population=False) / people**2 + 1 / protocol.domain.size)

    def _error(self, n: int, population: bool = True) -> float:
        """The error of the share for which it is largest."""
        protocol: Any = self.groups[-1].protocol
        people = self._people_of(n, -1)
        worst = max(protocol.variance(people, share) for share in (0.0, 0.5, 1.0)) / people**2
        return math.sqrt(worst + 1 / protocol.domain.size)

    def _visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        """The smallest share that is found nine times out of ten."""
        share = self._smallest(n)
        return share if share <= 1 else None

    def _found_from(self, n: int, share: float) -> str:
        unlike, people = self._smallest_unlike(n), f"of {n:,} people"
        if unlike == share:
            return f"Answers that at least {100 * share:.2g} % {people} give"
        words = f"Words that at least {100 * share:.2g} % {people} give"
        return words if unlike > 1 else f"{words}, and texts of any other kind from {100 * unlike:.2g} % on,"

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        share = self.worth(n, population=population).visible(level)
        if share is None:
            return (
                f"With {n:,} people nothing would be found, not even an answer that everybody gives: raise epsilon, "
                "ask more people or shorten the answers."
            )
        return (
            f"{self._found_from(n, share)} are found nine times out of ten; rarer ones stay hidden. Each "
            f"person reports one of {len(self.groups)} parts; a tally takes "
            f"{8 * self.tally_size / 1e6:.2g} MB."
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            truth=self._truth,
            guess=lambda: None,
            parts=lambda: {"": (self, n)},  # a prefix is no part of an answer that is read by itself
            split=lambda tally: {"": (self, tally)},
            tests=1,
            # For the share of a value, which the last group counts; to find the value takes reports in the other
            # groups.
            leverage=lambda: self._forged[1],
            moved=lambda: self._forged[1] - self._forged[0],
            noise=lambda: self._noise(n),
            error=lambda: self._error(n, population),
            visible=lambda level=0.95: self._visible(n, level, population),
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=self._inputs,
        )


def _smallest_share(protocol: OLH, people: int, information: float, groups: int) -> float:
    """The share that `groups` groups of `people` people each find nine times out of ten."""
    # Together the groups have to outweigh the number of all strings, with some bad luck.
    luck = _UNLUCKY / math.sqrt(groups)
    clear = max(_CLEAR, luck + math.sqrt(luck**2 + 2 * (information + ACCEPT) / groups)) - _UNLUCKY
    spread, unit = protocol.variance(people, 0.0, population=False) / people**2, protocol.worth().moved / people
    share = 0.0
    for _ in range(30):  # errors have a part that grows with the share
        error = math.sqrt(protocol.variance(people, min(share, 1.0))) / people
        share = clear * math.sqrt(spread + share * unit / 3) + _UNLUCKY * error
    return share


def _best_hash_bits(domain: BitDomain, epsilon: Any, cell_bits: int, people: int, groups: int) -> int:
    """With few people only large shares are found, and for them fewer bits of hash do better than for a rare answer."""
    usual = OLH(Integers(0, (1 << cell_bits) - 1), epsilon)
    found = {
        bits: _smallest_share(
            OLH(usual.domain, epsilon, bits) if bits < usual.hash_bits else usual,
            max(1, people),
            domain.information,
            groups,
        )
        for bits in range(1, usual.hash_bits + 1)
    }
    return min(found, key=lambda bits: (digits(found[bits]), bits))


def _shares(protocol: OLH, tally: Tally) -> NDArray[np.float64]:
    found: NDArray[np.float64] = protocol._support_counts(tally.counts) / tally.n
    return (found - float(protocol.q)) / float(protocol.p - protocol.q)


def _check_settings(domain: BitDomain, cell_bits: Any, prefixes: Any) -> None:
    if isinstance(cell_bits, bool) or not isinstance(cell_bits, int) or not 1 <= cell_bits <= MOST_CELL_BITS:
        raise NumberError(f"a cell has 1 to {MOST_CELL_BITS} bits, not {cell_bits!r}")
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in prefixes)
    if not prefixes or not whole or list(prefixes) != sorted(prefixes) or prefixes[0] < 1:
        raise NumberError("the prefixes are numbers of bits, at least 1, in rising order")
    if prefixes[-1] != domain.size_in_bits:
        raise NumberError(f"the last prefix has all {domain.size_in_bits} bits")
    if max(b - a for a, b in zip((0, *prefixes), prefixes, strict=False)) > MOST_CELL_BITS:
        raise NumberError(f"a group has at most {MOST_CELL_BITS} new bits")


def cell_map(key: str, group: int, length: int, cell_bits: int, width: int) -> NDArray[np.uint32]:
    """What each value of each byte adds (XOR) to the cell of a prefix of `length` bits: a table of width x 256."""
    columns = np.zeros(8 * width, dtype=np.uint32)
    for place in range(-(-(length - cell_bits) // 8)):
        digest = hashlib.sha256(f"deniable-discovery-v1\0{key}\0{group}\0{place}".encode()).digest()
        columns[8 * place : 8 * place + 8] = np.frombuffer(digest, dtype="<u4") & ((1 << cell_bits) - 1)
    columns[length - cell_bits :] = 0
    columns[length - cell_bits : length] = 1 << np.arange(cell_bits - 1, -1, -1)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    tables: NDArray[np.uint32] = np.bitwise_xor.reduce(bits[None, :, :] * columns.reshape(width, 1, 8), axis=2)
    return tables
