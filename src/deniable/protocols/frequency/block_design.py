"""Block designs: subset selection with reports of a few bytes, by hashing with one public seed.

The device draws a seed a, hashes its answer v to one of G cells, and adds noise z that does not depend on the answer:
one of the first w cells with probability t, else any cell. The report, seed and cell, supports the answers from which
noise below w leads to the cell. Over all reports these supports are the blocks of a 2-design: every answer is in
equally many of them, and so is every pair of answers. Therefore the law is that of subset selection.

Field         G = 2^r: bit j of the hash is the parity of v and x^j a, where x^j a is the seed after j steps of a shift
              register: multiplication by x in the field of D = 2^L elements. Cells are added bit by bit; 1 <= a < D
Progressions  G is a prime from d on, and D = G: the hash is a v modulo G, and cells are added modulo G. The support of
              a report is an arithmetic progression; 1 <= a < D

Law        p = t + (1 - t) w / G, q = (m - p) / (D - 1): subset selection of m = w D / G out of D answers, and only the
           first d exist. t = floor(2^64 (e - 1) w / ((e - 1) w + G)) / 2^64
Privacy    whatever the seed, noise below w is 1 + t G / ((1 - t) w) <= e = e^epsilon times as likely as other noise
Error      n q (1 - q) / (p - q)^2 + n f (1 - p - q) / (p - q). The usual cells and window lose at most 1 % against the
           best subset selection, from 65 answers on and for epsilon from 0.1 to 6
Report     the seed in the lowest bits, the cell above it: L + r bits, for progressions twice the bits of G
Cost       three random words and r parities on the device. On the server G - 1 additions per report and one
           Walsh-Hadamard transform, for progressions w additions
Tally      field: T, where T[A_u] is the sum over reports and u in 0 .. G - 1 of c_u (-1)^(u . y) for the cell y. A_u is
           the sum of x^j a over the bits j of u, and c_u the sum of (-1)^(u . z) over z < w. The number of reports that
           support v is the transform of T at v, divided by G. Progressions: the number of reports that support each v
Source     Ye and Barg 2018 (subset selection); Park, Nam and Lee 2023 (block designs); Feldman, Nelson, Nguyen and
           Talwar 2022 (designs with a fast tally)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.domains import DomainLike, ListedDomain
from deniable.errors import ChannelError, NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.frequency.hadamard_response import walsh_hadamard
from deniable.protocols.frequency.histogram import MOST_SPOKEN, PureProtocol
from deniable.protocols.frequency.subset_selection import spreads
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, histogram, to_bytes
from deniable.protocols.structures import Seeded
from deniable.protocols.tally import Counts
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import MUCH_WORK, WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.randomness.kernels import coins_above
from deniable.words import Fact, word

FEW_ANSWERS = 64
"""Up to here subset selection has reports of at most 8 bytes; the planner compares designs for more answers only."""
_MOST_HASH_BITS = 11
_MOST_PRIME = 1 << 26
"""Products of two numbers below it are exact in a browser."""
_MOST_NOISE = 1 << 32
"""Cells times window: a browser draws numbers below it."""
_MOST_WINDOW = 130
"""Cells of a progression's window that the server still counts one by one."""
_CLOSE = 1.003
"""Variances this close count as equal."""
_SAVING = 1.05
"""For the planner, fewer bytes are worth this much variance, and less work as well where there is much."""
_SHARES = (0.0, 0.05, 0.2, 0.5, 1.0)
"""Shares of an answer for which one of the planner's candidates is the best."""
_BLOCK = 1 << 15
_SMALL = 13
"""Bits of an index, up to which counters stay in the cache."""
_COIN = 8
"""Random bits for a coin at least: it is tossed again where they do not decide."""
_MOST_FORMS = 1 << 16
"""Forms of a report, up to which each is counted once."""
_TRIED = 1 << 24

# Bit j is the coefficient of x^j in the smallest irreducible polynomial of degree L over GF(2), without x^L; L from 1.
_LOW = (1, 3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27, 9, 27, 39, 3)


class Setting(NamedTuple):
    """The number of cells and the width of the window, with what they cost."""

    cells: int
    window: int
    variance: float
    report_bytes: int
    additions: int


def is_prime(number: int) -> bool:
    """Whether a number is prime, by trial division.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    if number < 4:
        return number > 1
    divisors = np.arange(3, math.isqrt(number) + 1, 2)
    return number % 2 == 1 and bool((number % divisors).all())


@lru_cache(maxsize=256)
def next_prime(number: int) -> int:
    """The smallest odd prime that is not below a number.

    >>> next_prime(2), next_prime(114)
    (3, 127)
    """
    number |= 1
    while not is_prime(number) or number < 3:
        number += 2
    return number


@lru_cache(maxsize=1024)
def settings(answers: int, epsilon: float, share: float = 0.0) -> tuple[Setting, ...]:
    """The designs for a number of answers, each with its variance for an answer of a share.

    Of each number of cells the two windows next to the ideal size; an even window is an odd one of half the cells.
    """
    length = (answers - 1).bit_length()
    ideal = 1 / (math.exp(epsilon * (1 - share / 2)) + 1)
    found = []
    shapes = [(1 << bits, 1 << length, length + bits) for bits in range(1, min(_MOST_HASH_BITS, length) + 1)]
    prime = next_prime(answers)
    if prime < _MOST_PRIME:
        shapes.append((prime, prime, 2 * prime.bit_length()))
    for cells, slots, bits in shapes:
        near = math.floor(cells * ideal)
        for window in {max(1, near - 1), max(1, near), near + 1, near + 2}:
            is_field = cells < slots or slots & (slots - 1) == 0
            if window >= cells or (is_field and window % 2 == 0) or (not is_field and window > _MOST_WINDOW):
                continue
            none, everyone = spreads(slots, epsilon, np.array([window * (slots // cells)], dtype=np.float64))
            variance = float(none[0] + share * (everyone[0] - none[0]))
            found.append(Setting(cells, window, variance, -(-bits // 8), cells - 1 if is_field else window))
    return tuple(found)


def best_setting(
    answers: int, epsilon: float, n: int | None = None, share: float = 0.0, slack: float = _CLOSE
) -> Setting:
    """Within `slack` of the smallest variance the fewest bytes; of these, near the smallest variance the least work.

    >>> [best_setting(1024, epsilon)[:2] for epsilon in (0.5, 1, 3)], best_setting(114, 2.5)[:2]
    ([(8, 3), (4, 1), (64, 3)], (127, 9))
    """
    every = settings(answers, epsilon, share)

    def cheapest(slack: float, near: float) -> Setting:
        close = [one for one in every if one.variance <= slack * min(one.variance for one in every)]
        short = [one for one in close if one.report_bytes == min(one.report_bytes for one in close)]
        alike = [one for one in short if one.variance <= near * min(one.variance for one in short)]
        return min(alike, key=lambda one: (one.additions, one.variance))

    usual = cheapest(slack, _CLOSE)
    return cheapest(_SAVING, _SAVING) if (n or 0) * usual.additions > MUCH_WORK else usual


@dataclass(frozen=True)
class BlockDesign(PureProtocol):
    """A block design; without cells and window, those with about the smallest error of an answer that nobody gave.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        cells: Number of cells: a power of two (field hashing), or a prime that is not below the number of answers.
        window: Number of cells that a report supports.

    Raises:
        NumberError: The cells or the window are out of range.

    >>> protocol = BlockDesign(1024, epsilon=1)
    >>> protocol.cells, protocol.window, protocol.report_bytes
    (4, 1, 2)
    """

    name: ClassVar[str] = "BlockDesign"
    traits: ClassVar[Traits] = Traits(candidates=lambda kind, ask: kind._offered(ask))

    cells: int = 0
    window: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number, cells: int = 0, window: int = 0) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        cells, window, size = self.cells, self.window, self.domain.size
        if not cells and not window:
            cells, window = best_setting(size, float(as_epsilon(self.epsilon)))[:2]
        if any(isinstance(one, bool) or not isinstance(one, int) for one in (cells, window)):
            raise NumberError("cells and window are whole numbers")
        most = min(_MOST_HASH_BITS, self.index_bits)
        if not (
            cells in [1 << bits for bits in range(1, most + 1)] or (size <= cells < _MOST_PRIME and is_prime(cells))
        ):
            raise NumberError(f"the cells are a power of two up to {1 << most:,}, or a prime from {size:,} to 2^26")
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "window", window)
        if not (1 <= window < cells and self.members < size and cells * window <= _MOST_NOISE):
            raise NumberError(
                f"a window has at least one of the {cells:,} cells, and a report does not support all answers"
            )
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"cells": self.cells, "window": self.window}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(4, 1, cells=4, window=1)
        yield cls(7, 1, cells=4, window=3)
        yield cls(4, 2, cells=5, window=2)

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        """The best design for rare answers first, then those that are better for common ones."""
        if isinstance(ask.domain, ListedDomain) and ask.domain.size > FEW_ANSWERS:
            usual = cls(ask.domain, ask.epsilon)
            size, epsilon = usual.domain.size, float(usual.epsilon)
            found = [best_setting(size, epsilon, ask.n, share, _SAVING)[:2] for share in _SHARES]
            yield from (replace(usual, cells=cells, window=window) for cells, window in dict.fromkeys(found))

    # -- the design --------------------------------------------------------------------------------

    @property
    def index_bits(self) -> int:
        """L: how many bits number the answers."""
        return (self.domain.size - 1).bit_length()

    @cached_property
    def hash_bits(self) -> int:
        """r: how many bits a hash has; 0 for progressions."""
        return self.cells.bit_length() - 1 if self.cells & (self.cells - 1) == 0 else 0

    @cached_property
    def slots(self) -> int:
        """D: how many answers the design is for; those from d on do not exist."""
        return 1 << self.index_bits if self.hash_bits else self.cells

    @property
    def members(self) -> int:
        """m: how many of the slots a report supports."""
        return self.window * self.slots // self.cells

    @cached_property
    def keep(self) -> Dyadic:
        """P(the noise is one of the first w cells for sure)."""
        w, cells = self.window, self.cells
        found = Dyadic.floor_of(lambda e: (e - 1) * w / ((e - 1) * w + cells), self.epsilon)
        if found.numerator == 0:
            raise ChannelError(f"at this epsilon a hash among {cells} cells would never be kept: raise epsilon")
        return found

    @property
    def p(self) -> Fraction:
        return self.keep.value + (1 - self.keep.value) * Fraction(self.window, self.cells)

    @property
    def q(self) -> Fraction:
        return (self.members - self.p) / (self.slots - 1)

    @cached_property
    def _structure(self) -> Seeded:
        hashed = self._field_hash if self.hash_bits else self._product
        return Seeded(self.slots - 1, self.cells, hashed, self.keep, self.window)

    def _field_hash(self, value: int, seed: int) -> int:
        top, low, mask, cell = self.index_bits - 1, self._low, (1 << self.index_bits) - 1, 0
        for bit in range(self.hash_bits):
            cell |= ((seed & value).bit_count() & 1) << bit
            seed = (seed << 1 & mask) ^ (seed >> top) * low
        return cell

    def _product(self, value: int, seed: int) -> int:
        return seed * value % self.cells

    @cached_property
    def _low(self) -> int:
        return _LOW[self.index_bits - 1]

    @property
    def _support_size(self) -> int | None:
        return self.members if self.slots == self.domain.size else None

    def _guess(self) -> float | None:
        """Any answer of the support; not known where some supports have no answer at all."""
        size, missing = self.domain.size, self.slots - self.domain.size
        if not missing or (not self.hash_bits and missing < self.window):
            return float(self.p / self.members * self.slots / size)
        return None

    # -- columns of reports ------------------------------------------------------------------------

    def _many_numbers(self, values: Positions, bits: Bits) -> NDArray[Any]:
        out = np.empty(values.size, dtype="<u4" if self.report_bytes <= 4 else "<u8")
        for start in range(0, values.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            self._fill(out[part], values[part], bits)
        return out

    def _fill(self, out: NDArray[Any], values: Positions, bits: Bits) -> None:
        kind, shift = out.dtype.type, self._seed_bits
        if self.hash_bits:
            # The keystream is the seed and any cell, and the bits above them are the coin, if they are enough for it.
            used = shift + self.hash_bits
            bits.fill(out.view(np.uint8))
            spare = 8 * out.itemsize - used >= _COIN
            kept = coins_above(bits, out, used, self.keep.numerator) if spare else bits.bernoulli(self.keep, out.size)
            out &= kind((1 << used) - 1)
            while (again := np.flatnonzero(out & kind(self.slots - 1) == 0)).size:
                out[again] = bits.uniform(again.size, kind) & kind((1 << used) - 1)
            seeds = out & kind(self.slots - 1)
        else:
            kept, seeds = bits.bernoulli(self.keep, out.size), bits.integers(self.slots - 1, out.size) + 1
        cells = self._hashes(seeds, values).astype(kind)
        near = bits.integers(self.window, out.size).astype(kind) if self.window > 1 else kind(0)
        if self.hash_bits:
            np.copyto(out, seeds | (cells ^ near) << kind(shift), where=kept)
        else:
            noise = np.where(kept, near, bits.integers(self.cells, out.size)).astype(kind)
            out[:] = seeds.astype(kind) | (cells + noise) % kind(self.cells) << kind(shift)

    @property
    def _seed_bits(self) -> int:
        return (self.slots - 1).bit_length()

    def _hashes(self, seeds: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """The cells of answers under seeds; the arrays have shapes that fit each other."""
        if not self.hash_bits:
            return np.asarray(seeds * values % self.cells)
        narrow, kind = values.astype(np.uint32), np.uint8 if self.hash_bits <= 8 else np.uint16
        found: Any = kind(0)
        for bit, row in enumerate(self._shifted(seeds.astype(np.uint32))):
            found = found | (np.bitwise_count(row & narrow) & np.uint8(1)).astype(kind) << kind(bit)
        return np.asarray(found)

    def _shifted(self, seeds: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """x^j a for j = 0 .. r - 1, in the field."""
        kind, top = seeds.dtype.type, self.index_bits
        whole = kind(1 << top | self._low)
        for bit in range(self.hash_bits):
            if bit:
                seeds = (seeds << kind(1)) ^ (seeds >> kind(top - 1)) * whole
            yield seeds

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        return to_bytes(BlockDesign._many_numbers(self, values, bits), self.report_bytes)

    def _parts(self, numbers: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Seeds and cells."""
        wide = numbers.astype(np.int64)
        return wide & (1 << self._seed_bits) - 1, wide >> self._seed_bits

    def _valid_numbers(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        kind, bits = numbers.dtype.type, self._seed_bits
        seeds = numbers & kind((1 << bits) - 1)
        valid: NDArray[np.bool_] = seeds != 0
        if self.cells << bits < 1 << 8 * self.report_bytes:
            valid &= numbers < kind(self.cells << bits)
        return valid if self.hash_bits else valid & (seeds < kind(self.slots))

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self._valid_numbers(from_bytes(reports))

    def count(self, reports: Bytes) -> Counts:
        return self._count_numbers(from_bytes(reports))

    def _count_numbers(self, numbers: NDArray[Any]) -> Counts:
        n, often = numbers.size, None
        forms = 1 << self._seed_bits + (self.cells - 1).bit_length()
        if forms <= min(n, _MOST_FORMS):  # each form of a report once, with how often it came
            every = histogram(numbers, forms)
            numbers = np.flatnonzero(every)
            often = every[numbers].astype(np.float64)
        total = np.zeros(self.tally_size, dtype=np.int64)
        for start in range(0, numbers.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            self._add(total, *self._parts(numbers[part]), None if often is None else often[part])
        if self.hash_bits:
            total[0] += self.window * n
        return total

    def _add(self, total: Counts, seeds: Counts, cells: Counts, often: NDArray[np.float64] | None) -> None:
        if not self.hash_bits:
            steps = self._inverses[seeds]
            member = cells * steps % self.cells
            for _ in range(self.window):
                total += np.bincount(member, often, self.cells).astype(np.int64)
                member = member - steps
                member += self.cells * (member < 0)
            return
        length, small = self.index_bits, self.index_bits <= _SMALL or often is not None
        fields = [row | (cells >> bit & 1) << length for bit, row in enumerate(self._shifted(seeds))]
        combination = np.zeros_like(seeds)
        for u in range(1, self.cells):  # through a Gray code: each is one XOR away from the last
            combination ^= fields[(u & -u).bit_length() - 1]
            weight = self._signs[u ^ u >> 1]
            if small:
                both = np.bincount(combination, often, 2 << length)
                total += weight * (both[: 1 << length] - both[1 << length :]).astype(np.int64)
            else:
                np.add.at(total, combination & (1 << length) - 1, weight * (1 - 2 * (combination >> length)))

    @cached_property
    def _signs(self) -> list[int]:
        """c_u: the sum of (-1)^(u . z) over the window."""
        u, z = np.arange(self.cells)[:, None], np.arange(self.window)
        found: list[int] = (1 - 2 * (np.bitwise_count(u & z) & np.uint8(1)).astype(np.int64)).sum(axis=1).tolist()
        return found

    @cached_property
    def _inverses(self) -> NDArray[np.int64]:
        """The inverse of each number modulo a prime, by Fermat: the power of cells - 2."""
        base, found = np.arange(self.cells), np.ones(self.cells, dtype=np.int64)
        for bit in bin(self.cells - 2)[2:]:
            found = found * found % self.cells
            if bit == "1":
                found = found * base % self.cells
        return found

    def _support_counts(self, counts: Counts) -> Counts:
        if not self.hash_bits:
            return counts[: self.domain.size]
        found = walsh_hadamard(counts)[: self.domain.size]
        found >>= self.hash_bits
        return found

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        seeds, cells = self._parts(from_bytes(reports))
        hashes = self._hashes(seeds[:, None], np.arange(self.domain.size))
        return self._noise(cells[:, None], hashes) < self.window

    def _noise(self, cells: NDArray[Any], hashes: NDArray[Any]) -> NDArray[Any]:
        """The noise that leads from a hash to a cell."""
        found: NDArray[Any] = cells ^ hashes if self.hash_bits else (cells - hashes) % self.cells
        return found

    def _forgeries(self, answers: Any) -> Bytes:
        """The report that supports most of these answers, among the seeds that can be tried."""
        wanted = np.unique(np.asarray(answers, dtype=np.int64))
        seeds = np.arange(1, min(self.slots, max(2, _TRIED // (wanted.size**2 * self.window))))
        hashes = self._hashes(seeds, wanted[:, None])
        best, sent = -1, 0
        for own in hashes:
            for noise in range(self.window):
                cells = own ^ noise if self.hash_bits else (own + noise) % self.cells
                held = (self._noise(cells, hashes) < self.window).sum(axis=0)
                place = int(held.argmax())
                if held[place] > best:
                    best, sent = int(held[place]), int(seeds[place]) | int(cells[place]) << self._seed_bits
        return np.frombuffer(sent.to_bytes(self.report_bytes, "little"), dtype=np.uint8).reshape(1, -1)

    # -- the records -------------------------------------------------------------------------------

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        members, size = self.members, self.slots
        if self.domain.size <= MOST_SPOKEN:
            row = np.frombuffer(report, dtype=np.uint8).reshape(1, -1)
            members, size = int(self._support(row).sum()), self.domain.size
        return [
            word("story.subset", members=members, n=size, chance=percent(float(self.p))),
            word("story.subset.rest"),
        ]

    @remembered
    def kernel(self) -> Kernel:
        numbers = {"draw_numbers": self._many_numbers, "count_numbers": self._count_numbers}
        return super().kernel().but(**numbers, valid_numbers=self._valid_numbers)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(3.0 * WORD_BYTES, float(self.cells - 1 if self.hash_bits else self.window)),
            guess=self._guess,
            forgeries=self._forgeries,
        )

    @remembered
    def law(self) -> Law:
        return (
            super()
            .law()
            .but(
                ratio=lambda: self._structure.ratio,
                width=lambda: self._structure.width,
                forms=lambda: self._structure.seeds * self.cells,
                counters=lambda: self.slots,
                likeliest=lambda: float(self.p) / (self._structure.seeds * self.window),
                structure=lambda: self._structure,
            )
        )
