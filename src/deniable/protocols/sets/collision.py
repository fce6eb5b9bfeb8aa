"""Collision mechanism: a public hash function puts items into cells; the report is one cell, often one of the set's.

Law        cohort c uniform; S = the different cells of the padded set under c's hash function; a cell of S with
           b = T / 2^64 each, T = floor(2^64 e / (m e + t - m)), e = e^epsilon, m = at_most, t cells; each other cell
           with (1 - |S| b) / (t - |S|)
Cohort     in a submission it follows from the submission's id: c = the first 8 bytes, little-endian, of
           SHA-256("deniable-cohort-v1" NUL survey question id) mod cohorts, and others are refused. Ids are random
Privacy    of whole sets, whatever the hash function is: b (t - m) / (1 - m b) <= e. Cohorts are independent of sets
Support    p = b, q = 1 / t over the hash functions, for every set
Error      q (1 - q) / (n (p - q)^2) for a rare item, the smallest for t near m (e + 2) - 1 (of few items t is smaller,
           because none is rare); and of the collisions of
           fixed hash functions about (t / (t - m))^2 / (t cohorts) times the sum of the squared shares of other items.
           What the dummies and the most common items add in every cell is known, and taken off
Report     the cohort, then the cell, both little-endian
Cost       four random words on the device; cohorts x t counters; cohorts x items cells are looked up in an estimate
Hash       the splitmix64 finalizer of the cohort's seed xor the finalized number of the item, its upper half times t
           over 2^32. Not linear: with a linear hash the cell of an item that is a sum of others in the set would
           follow from theirs, and q would not be 1 / t
Source     Wang et al. 2021 (collision); Wang et al. 2020 (wheel); Steele, Lea and Flood 2014 (splitmix64)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Sets
from deniable.errors import NumberError, SpecError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.blanket import Blanket, supporting
from deniable.protocols.frequency.open_text import MOST_COUNTERS
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.sets.law import Joint, SetProtocol
from deniable.protocols.structures import Members
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits, not_offered
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, listed_bits
from deniable.results import Floats, Weights
from deniable.words import Fact, word

MOST_COHORTS = 1 << 12
_COUNTERS = 1 << 22
"""The approximate number of counters in a tally, if the number of cohorts is not given."""
_MOST_CELLS = 1 << 16
_LARGEST = 1 << 52
_HEAVY = 32
"""Items whose share in every cell is taken off, beside the dummies."""
_FEW_COHORTS = 64
_ROUNDS = 3
_BLOCK = 1 << 17

_MIX = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_STEP = 0x9E3779B97F4A7C15


def finalize(z: Any) -> Any:
    """The finalizer of splitmix64, of an array of words."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX[1])
    return z ^ (z >> np.uint64(31))


def best_cells(most: int, epsilon: Fraction, share: float = 0.0) -> int:
    """The number of cells with the smallest variance for an element of that share; about m (e + 2) - 1 for a rare one.

    >>> best_cells(8, Fraction(1)), best_cells(1, Fraction(4)), best_cells(8, Fraction(4), 0.04)
    (39, 56, 268)
    """
    e = math.exp(min(float(epsilon), 40.0))
    cells = np.arange(most + 1, min(_MOST_CELLS, round(most * (e + 2)) + 2 * most) + 1, dtype=np.float64)
    p, q = e / (most * e + cells - most), 1 / cells
    spread = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
    return int(cells[np.argmin(spread)])


@dataclass(frozen=True)
class CollisionSets(SetProtocol):
    """Shares of items of sets from one cell each; without `cells` and `cohorts` the best ones.

    Args:
        domain: The sets.
        epsilon: Largest epsilon of a report.
        cells: Number of cells; the best number if 0.
        cohorts: Number of hash functions; the best number if 0.
        key: Selects the hash functions.

    Raises:
        NumberError: The number of cells or cohorts is out of range.

    >>> protocol = CollisionSets(Sets(10_000, at_most=8), epsilon=1)
    >>> protocol.cells, protocol.cohorts, protocol.report_bytes
    (39, 4096, 3)
    """

    name: ClassVar[str] = "CollisionSets"
    traits: ClassVar[Traits] = Traits(
        candidates=not_offered,
        waived={
            "unbiased": "a fixed hash collides: the estimate is unbiased over redrawn keys",
            "forging": "what common items add to the cells of others is taken off: with few hash functions a forged "
            "report moves that as well",
        },
        says=lambda protocol, report: protocol._says(report),
    )

    domain: Sets

    cells: int = 0
    cohorts: int = 0
    key: str = ""

    if TYPE_CHECKING:

        def __init__(self, domain: Sets, epsilon: Number, cells: int = 0, cohorts: int = 0, key: str = "") -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        most = self.domain.at_most
        cells = self.cells or max(most + 1, best_cells(most, as_epsilon(self.epsilon), self.usual_share))
        if isinstance(cells, bool) or not isinstance(cells, int) or not most < cells <= MOST_COUNTERS:
            raise NumberError(f"there are more cells than the {most} items of a set, not {self.cells!r}")
        cohorts = self.cohorts or max(1, min(MOST_COHORTS, _COUNTERS // cells))
        if isinstance(cohorts, bool) or not isinstance(cohorts, int) or not 1 <= cohorts <= 1 << 16:
            raise NumberError(f"there are 1 to 65,536 cohorts, not {self.cohorts!r}")
        if cells * cohorts > MOST_COUNTERS:
            raise NumberError(f"{cells:,} cells in {cohorts:,} cohorts make more than 2^28 counters: take fewer")
        if not isinstance(self.key, str) or "\0" in self.key:
            raise SpecError("the key of the hash functions is text without NUL")
        if self.elements > _LARGEST:
            raise NumberError("there are at most 2^52 items")
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "cohorts", cohorts)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"cells": self.cells, "cohorts": self.cohorts, "key": self.key}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Sets(["mail", "maps", "music"], at_most=2), 1, cells=5, cohorts=3)
        yield cls(Sets(4, at_most=2), 2, cells=6, cohorts=2, key="k")

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def own_cell(self) -> Dyadic:
        """P(the report is one given cell of the set's own)."""
        most, rest = self.domain.at_most, self.cells - self.domain.at_most
        return Dyadic.floor_of(lambda e: e / (most * e + rest), self.epsilon)

    @property
    def p(self) -> Fraction:
        return self.own_cell.value

    @property
    def q(self) -> Fraction:
        return Fraction(1, self.cells)

    def _ratio(self) -> Fraction:
        """The ratio between a set with a cell of its own and a set with at_most others."""
        most = self.domain.at_most
        return self.p * (self.cells - most) / (1 - most * self.p)

    def _blankets(self) -> tuple[Blanket, ...]:
        """All cells without an element of the set are equally likely, at least as with at_most cells of its own."""
        most = self.domain.at_most
        return (supporting(self.cells * (1 - most * self.p) / (self.cells - most), self.ratio),)

    @property
    def joint(self) -> Joint:
        p, q = float(self.p), float(self.q)
        return Joint(p * q, p * q, q * q)

    @cached_property
    def _seeds(self) -> NDArray[np.uint64]:
        """One word per cohort."""
        texts = (f"deniable-sets-v1\0{self.key}\0{cohort}".encode() for cohort in range(self.cohorts))
        return np.frombuffer(b"".join(hashlib.sha256(one).digest()[:8] for one in texts), dtype="<u8")

    def _cells(self, elements: Positions, cohorts: Positions) -> Positions:
        """The cells of elements, one row per cohort."""
        return self._places(_numbers(elements), self._seeds[cohorts][:, None])

    def _places(self, numbers: Any, seeds: Any) -> Positions:
        upper: NDArray[np.uint64] = finalize(numbers ^ seeds) >> np.uint64(32)
        places: Positions = ((upper * np.uint64(self.cells)) >> np.uint64(32)).astype(np.int64)
        return places

    def _structure(self) -> Members:
        return replace(super()._structure(), cells=self.cells, cohorts=self.cohorts, hashed=self._cells_of)

    def _cells_of(self, elements: Sequence[int], cohort: int) -> list[int]:
        found: list[int] = self._cells(np.array([elements], dtype=np.int64), np.array([cohort]))[0].tolist()
        return found

    def _one_own(self, own: int, bits: Bits) -> bytes:
        if not bits.bernoulli(Dyadic(own.bit_count() * self.own_cell.numerator)):
            own = (1 << self.cells) - 1 ^ own
        return listed_bits(bits.subset(own, 1), width_of(self.cells))

    def _many_padded(self, elements: Positions, bits: Bits) -> Bytes:
        n, most = elements.shape
        cohorts = bits.integers(self.cohorts, n)
        cells = np.sort(self._cells(elements, cohorts), axis=1)
        first = np.ones(cells.shape, dtype=np.bool_)
        first[:, 1:] = cells[:, 1:] != cells[:, :-1]
        held = first.sum(axis=1)
        found = np.empty(n, dtype=np.int64)
        for count in range(1, most + 1):
            rows = np.flatnonzero(held == count)
            if not rows.size:
                continue
            inside = bits.bernoulli(Dyadic(count * self.own_cell.numerator), rows.size)
            own = cells[rows][first[rows]].reshape(-1, count)
            drawn = bits.integers(self.cells - count, rows.size)
            for place in range(count):
                drawn += drawn >= own[:, place]
            chosen = own[np.arange(rows.size), bits.integers(count, rows.size)]
            found[rows] = np.where(inside, chosen, drawn)
        return np.hstack([to_bytes(cohorts, width_of(self.cohorts)), to_bytes(found, width_of(self.cells))])

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        most = self.domain.at_most
        sizes = {"cohorts": self.cohorts, "n": self.domain.items.size, "cells": self.cells}
        return [
            *cut_steps(len(encoded), most),
            word("story.set.cohort", **sizes, most=str(most)),
            word("story.set.cell", chance=percent(float(most * self.p))),
            word("story.set.pick"),
        ]

    def _says(self, report: bytes) -> Fact:
        width = width_of(self.cohorts)
        cohort, cell = int.from_bytes(report[:width], "little"), int.from_bytes(report[width:], "little")
        return word("report.cell", n=cohort, cell=cell)

    def forged(self, elements: Positions) -> Bytes:
        """The cell with the most of them, over all hash functions: a forger who draws ids finds one with that cell."""
        cells = self._cells(elements[None, :], np.arange(self.cohorts))
        flat = (np.arange(self.cohorts)[:, None] * self.cells + cells).reshape(-1)
        cohort, cell = divmod(int(np.argmax(np.bincount(flat, minlength=1))), self.cells)
        head, rest = width_of(self.cohorts), width_of(self.cells)
        return np.frombuffer(cohort.to_bytes(head, "little") + cell.to_bytes(rest, "little"), dtype=np.uint8)[None, :]

    # -- the collector -----------------------------------------------------------------------------

    def _split(self, reports: Bytes) -> tuple[Positions, Positions]:
        width = width_of(self.cohorts)
        cohorts, cells = from_bytes(reports[:, :width]), from_bytes(np.ascontiguousarray(reports[:, width:]))
        return cohorts.astype(np.int64), cells.astype(np.int64)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        cohorts, cells = self._split(reports)
        valid: NDArray[np.bool_] = (cohorts < self.cohorts) & (cells < self.cells)
        return valid

    def _tied(self, reports: Bytes, publics: NDArray[np.uint64]) -> NDArray[np.bool_]:
        right: NDArray[np.bool_] = self._split(reports)[0] == (publics % np.uint64(self.cohorts)).astype(np.int64)
        return right

    def count(self, reports: Bytes) -> Counts:
        cohorts, cells = self._split(reports)
        return np.bincount(cohorts * self.cells + cells, minlength=self.tally_size)

    def _pieces(self, reports: Bytes) -> Iterator[tuple[int, Counts]]:
        self._check_valid(reports)
        cohorts, cells = self._split(reports)
        present, own = np.unique(cohorts, return_inverse=True)
        counts = np.bincount(own * self.cells + cells, minlength=present.size * self.cells)
        for cohort, row in zip(present.tolist(), counts.reshape(-1, self.cells), strict=True):
            yield cohort * self.cells, row

    # -- the analyst -------------------------------------------------------------------------------

    def read(self, tally: Tally, elements: Positions) -> tuple[Floats, Floats, Weights]:
        """Estimated counts and their noise, by least squares of the counters of an element's cells over the cohorts.

        A report of a set without v is in v's cell more often than 1 / t where an item of the set shares it. Of dummies
        and common items that is known: it is taken off, and cells that hold many reports of theirs weigh less. Of all
        other items it is in the error.
        """
        n, gap = tally.n, self._spreads[2]
        table = tally.counts.reshape(self.cohorts, self.cells).astype(np.float64)
        people = table.sum(axis=1)
        heavy, known, chances = self._common(table, people, elements)
        weights = np.divide(1.0, chances, out=np.zeros_like(chances), where=people[:, None] > 0)
        rest = weights * (table - people[:, None] * chances)
        sums, worth = self._looked_up([rest, weights * people[:, None]], elements)
        at = np.searchsorted(heavy, elements).clip(max=heavy.size - 1)
        is_heavy = heavy[at] == elements
        # What a common item itself adds to its cell is in `chances` too.
        shares = sums / (worth * gap) + np.where(is_heavy, known[at], 0.0)
        inside, (own, _, _) = np.clip(shares, 0.0, 1.0), self._spreads
        noise = (inside * own / n + (1 - inside) * (worth - n) / worth**2) / gap**2 * n**2
        noise = np.where(is_heavy, self.variance(n, inside, population=False), noise)
        others = shares[~is_heavy]
        squares = max(0.0, float(np.square(others).sum()) - float(noise[~is_heavy].sum()) / n**2)
        # Two people of one cohort collide together; that one person does is in the noise.
        together = max(0.0, float(np.square(people).sum()) - n) / self.cells
        # A forged report does most in the cell of an element that holds the fewest others.
        rare = float(chances[people > 0].min())
        each = Weights(-n / (worth * gap), n * (1 / rare - 1) / (worth * gap))
        return shares * n, noise + together * (self._gain / gap) ** 2 * squares, each

    @property
    def _gain(self) -> float:
        """What one person with an element adds to its cell, and takes from all cells together."""
        return self._spreads[2] * self.cells / (self.cells - 1)

    def _common(self, table: Floats, people: Floats, elements: Positions) -> tuple[Positions, Floats, Floats]:
        """Dummies and common items, their shares, and how likely each cell is with them alone."""
        q, gap, size = float(self.q), self._spreads[2], self.domain.items.size
        some = slice(0, max(min(self.cohorts, _FEW_COHORTS), self.cohorts // 8))
        (seen,) = self._looked_up([table[some]], elements)
        common = elements[np.argsort(-seen, kind="stable")[:_HEAVY]]
        heavy = np.unique(np.concatenate([np.arange(size, self.elements), common]))
        cells = self._places(_numbers(heavy)[None, :], self._seeds[:, None])
        every, n = np.arange(self.cohorts), people.sum()
        (found,) = self._looked_up([table], heavy)
        known = np.clip((found / n - q) / gap, 0.0, 1.0)
        for _ in range(_ROUNDS):
            chances = np.full(table.shape, q * (1 - self._gain * known.sum()))
            for place in range(heavy.size):
                chances[every, cells[:, place]] += self._gain * known[place]
            np.maximum(chances, q / 10, out=chances)  # more of them than a set holds, by chance
            (left,) = self._looked_up([table - people[:, None] * chances], heavy)
            known = np.clip(known + left / (n * gap), 0.0, 1.0)
        return heavy, known, chances

    def _looked_up(self, tables: Sequence[Floats], elements: Positions) -> list[Floats]:
        """The sum over the cohorts of what stands in the cell of each element, in each table."""
        numbers, out = _numbers(elements), [np.zeros(elements.size) for _ in tables]
        step = max(1, _BLOCK // max(1, elements.size))
        for start in range(0, len(tables[0]), step):
            seeds = self._seeds[start : start + min(step, len(tables[0]) - start)]
            cells = self._places(numbers[None, :], seeds[:, None])
            cells += (np.arange(seeds.size) * self.cells)[:, None]
            for total, table in zip(out, tables, strict=True):
                total += table[start : start + seeds.size].reshape(-1).take(cells).sum(axis=0)
        return out

    @remembered
    def kernel(self) -> Kernel:
        return super().kernel().but(pieces=self._pieces)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=Cost(3.0 * WORD_BYTES, 1.0),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=self._ratio,
            blankets=self._blankets,
            width=lambda: width_of(self.cohorts) + width_of(self.cells),
            forms=lambda: self.cohorts * self.cells,
            counters=lambda: self.cohorts * self.cells,
            likeliest=lambda: float(self.own_cell) / self.cohorts,
            public=self._tied if self.cohorts > 1 else None,
        )


def _numbers(elements: Positions) -> NDArray[np.uint64]:
    """The finalized number of each element, from which its cells in all cohorts follow."""
    found: NDArray[np.uint64] = finalize((np.asarray(elements).astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP))
    return found


def cut_steps(items: int, most: int) -> list[Fact]:
    """That some items of a set are drawn, if it has more than are reported."""
    return [word("story.set.cut", n=str(most))] if items > most else []
