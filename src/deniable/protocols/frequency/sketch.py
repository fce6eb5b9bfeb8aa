"""Sketches: the frequency of any text, from a few bytes per report and a tally of fixed size.

The device draws a cohort j, hashes its text to one of m cells as that cohort does, and reports the cell with a pure
protocol over the m cells at the full epsilon.

CMS         count mean sketch: the cell as a bitmap, each bit flipped with 1 / (e^(epsilon / 2) + 1)
HCMS        Hadamard count mean sketch: one random row of a Hadamard matrix, and the bit in the cell's column,
            flipped with 1 / (e^epsilon + 1); the same law as binary local hashing of the cell
OLHSketch   optimized local hashing of the cell: the smallest error of the three, a few bytes more than HCMS

Law        P(cohort) = 1 / k; given the cohort, that of SUE, BLH or OLH over 0 .. m - 1
Privacy    the cohort is independent of the answer: the ratio is the inner protocol's
Estimate   F = sum over cohorts of the inner estimate at the string's cell; counts = m / (m - 1) (F - n / m), unbiased
           over noise, cohorts and the choice of the key. For one given key the collisions are what they are: a bias
           that more people do not average out, and that the error bar includes
Error      of a count, with s = q + (p - q) / m and n_x the people with string x:
           (m / (m - 1))^2 [n_v p (1 - p) + (n - n_v) s (1 - s)] / (p - q)^2
           + sum over x != v of (n_x^2 - n_x) / (k (m - 1));
           for CMS n (m / (m - 1))^2 p q / (p - q)^2 + sum over x != v of [n_x^2 / k + n_x (1 - 1 / k)] / (m - 1).
           The sum of all n_x^2, of strings listed or not, is estimated without bias from the sketch itself: from how
           often two reports of one cohort agree on a cell
Interval   Clopper-Pearson of the reports that support a string, with fewer reports for the collisions. Those with the
           most common candidates are known: they are taken off, and the interval reaches from there to the estimate
Report     the cohort in 1 or 2 bytes, then the inner report
Cost       as the inner protocol, and a SHA-256; k (m + 1) counters
Source     Apple, Learning with Privacy at Scale, 2017; Bassily and Smith 2015; Wang et al. 2017
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.domains import Categories, DomainLike, Integers, Strings, load_domain
from deniable.errors import DomainError
from deniable.exact import Number
from deniable.labels import Label
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.frequency.local_hashing import BLH, OLH
from deniable.protocols.frequency.open_text import (
    MOST_COUNTERS,
    TextEstimate,
    TextProtocol,
    as_text,
    cohort_step,
)
from deniable.protocols.frequency.unary import SUE
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.structures import Hashed
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Weights
from deniable.results.bounds import Numbers, Without
from deniable.words import Fact

_BLOCK_CELLS = 1 << 24
_COMMON = 32
"""Candidates whose collisions are looked at one by one."""


@dataclass(frozen=True)
class SketchProtocol(TextProtocol):
    """A pure protocol over the cells of a hash; a subclass says which."""

    hashing: Any = field(default=None, kw_only=True)
    """`Strings`: the hash functions. Given for a closed domain only; open text brings its own."""

    if TYPE_CHECKING:

        def __init__(
            self, domain: DomainLike, epsilon: Number, *, hashing: Strings | Mapping[str, Any] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        hashing = load_domain(self.hashing) if isinstance(self.hashing, dict) else self.hashing
        if hashing is None:
            hashing = self.domain if isinstance(self.domain, Strings) else Strings()
        if not isinstance(hashing, Strings):
            raise DomainError(f"the hashing of a sketch is dn.Strings(...), not a {type(hashing).__name__}")
        if isinstance(self.domain, Strings) and hashing != self.domain:
            raise DomainError("open text brings its own hashing: give cells, cohorts and key to dn.Strings")
        object.__setattr__(self, "hashing", hashing)
        if self.tally_size > MOST_COUNTERS:
            raise DomainError(
                f"{hashing.cells} cells in {hashing.cohorts} cohorts make {self.tally_size} counters, more than 2^28: "
                "take fewer cells or cohorts"
            )

    @property
    @abstractmethod
    def inner(self) -> PureProtocol:
        """The protocol that reports the cell."""

    def parameters(self) -> dict[str, Any]:
        return {} if self.is_open else {"hashing": self.hashing.spec()}

    def _cost(self) -> Cost:
        inner = self.inner.worth().cost
        return Cost(WORD_BYTES + inner.random_bytes, 1 + inner.operations)

    def _leverage(self) -> float:
        """What one forged report in a cell adds to the count of a string there: the mean cell is taken off."""
        cells = self.hashing.cells
        return float((cells * self.inner.worth().leverage - 1) / (cells - 1))

    def _poisoning(self) -> float:
        """The same between a report that supports the cell and one that does not."""
        cells = self.hashing.cells
        return float(cells / (cells - 1) * self.inner.worth().moved)

    @property
    def _cells(self) -> Integers:
        return Integers(0, self.hashing.cells - 1)

    @property
    def cohort_count(self) -> int:
        cohorts: int = self.hashing.cohorts
        return cohorts

    @property
    def _block(self) -> int:
        return self.inner.tally_size

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [cohort_step(self.cohort_count, self.hashing.cells), *self.inner._told("cells")]

    def _closed(self, labels: Sequence[Label]) -> Self:
        return replace(self, domain=Categories(labels), hashing=self.hashing)

    # -- the device --------------------------------------------------------------------------------

    def _one_text(self, text: str, cohort: int, bits: Bits) -> bytes:
        return self.inner.draw(self.hashing.cell(text, cohort), bits)

    def _many_texts(self, labels: Sequence[Label], which: Positions, cohorts: Positions, bits: Bits) -> Bytes:
        return self.inner.draw_many(self._cells_of(labels, which, cohorts), bits)

    def _cells_of(self, labels: Sequence[Label], which: Positions, cohorts: Positions) -> Positions:
        """The cells of labels[which[i]] in cohorts[i]."""
        # A popular text meets each cohort many times; each pair is hashed once.
        pairs, places = np.unique(which * self.cohort_count + cohorts, return_inverse=True)
        cells = [
            self.hashing.cell(as_text(labels[pair // self.cohort_count]), pair % self.cohort_count)
            for pair in pairs.tolist()
        ]
        return np.array(cells, dtype=np.int64)[places]

    # -- the collector -----------------------------------------------------------------------------

    def _plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        rows = self._rows(reports)
        good = self.valid(rows)
        good[good] = self.inner.law().plausible(np.ascontiguousarray(self._split(rows[good])[1]))
        return good

    def _valid_rest(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.inner.valid(reports)

    def _forged_rest(self, texts: Sequence[str], cohort: int) -> Bytes:
        return self.inner.worth().forgeries(np.array([self.hashing.cell(text, cohort) for text in texts]))

    def _any_rest(self, count: int, bits: Bits) -> Bytes:
        return self.inner.law().any_reports(count, bits)

    def _count_rest(self, reports: Bytes) -> Counts:
        return self.inner.count(reports)

    def _table(self, labels: Sequence[Label]) -> Positions:
        """The cell of each label in each cohort."""
        texts = [as_text(label) for label in labels]
        rows = [[self.hashing.cell(text, cohort) for cohort in range(self.cohort_count)] for text in texts]
        return np.array(rows, dtype=np.int64)

    def _supports(self, reports: Bytes, cohorts: Positions, labels: Sequence[Label]) -> NDArray[np.bool_]:
        table = self._table(labels)
        supported = np.empty((len(reports), len(labels)), dtype=np.bool_)
        rows = max(1, _BLOCK_CELLS // self.hashing.cells)
        for start in range(0, len(reports), rows):
            part = slice(start, start + rows)
            every = self.inner._support(reports[part])
            supported[part] = np.take_along_axis(every, table[:, cohorts[part]].T, axis=1)
        return supported

    # -- the analyst -------------------------------------------------------------------------------

    @property
    def _extremes(self) -> tuple[float, float]:
        return float(self.inner.q), float(self.inner.p)

    def _binomials(self, block: Counts) -> Counts:
        return self.inner._support_counts(block)

    def _decode(self, tally: Tally, labels: Sequence[Label]) -> TextEstimate:
        cells = self._table(labels)
        sizes, blocks = self._parts(tally.counts)
        p, q, m, n = float(self.inner.p), float(self.inner.q), self.hashing.cells, tally.n
        supported = np.zeros(len(labels), dtype=np.int64)
        agreement = 0.0  # the squares of all estimated cells
        sharing = 0.0  # pairs of candidates in one cell, times the reports of its cohort
        for cohort in np.flatnonzero(sizes):
            counts = self.inner._support_counts(blocks[cohort])
            supported += counts[cells[:, cohort]]
            agreement += float(np.square((counts - sizes[cohort] * q) / (p - q)).sum())
            crowd = np.unique(cells[:, cohort], return_counts=True)[1]
            sharing += float(sizes[cohort] * (crowd * (crowd - 1.0)).sum())
        found = (supported - n * q) / (p - q)
        estimated = m / (m - 1) * (found - n / m)
        own = np.clip(estimated, 0, n)
        others = np.maximum(self._sum_of_squares(agreement, sizes, n) - own**2, n - own)
        variance = self._spread(n, own, others)
        # Candidates that share a cell share its noise, so their errors add up rather than cancel.
        left_over = float(variance.sum()) + self._spread(1, 0, 1) * sharing
        weights = Weights(self.worth().leverage - self.worth().moved, self.worth().leverage)
        rest = math.sqrt(left_over) / n
        result = TextEstimate(labels, n, estimated, variance, self.name, unlisted_noise=rest, weights=weights)
        return replace(result, bounds=self._bounds(result, cells, sizes, others))

    def _bounds(self, found: TextEstimate, cells: Positions, sizes: Counts, others: Any) -> Without:
        """A report supports a string or not, so its count is binomial; collisions make it worth less.

        Collisions with common candidates are known. The variance spreads them over all keys; for this key a string has
        them or has not: they are taken off.
        """
        n, m, own = found.n, self.hashing.cells, np.clip(found.counts, 0, found.n)
        added, known = np.zeros(len(own)), np.zeros(len(own))
        for place in np.argsort(-own, kind="stable")[:_COMMON]:
            together = (cells == cells[place]) @ sizes / n
            together[place] = 1 / m  # with itself nothing collides
            added += own[place] * (together - 1 / m) * m / (m - 1)
            known += own[place] ** 2
            known[place] -= own[place] ** 2
        lowest, highest, _ = found.weights or Weights(0.0, 0.0)
        numbers = Numbers.between(lowest, highest, (found.counts - added) / n, n)
        # What the figure has as error, over what is left without these collisions.
        left = self._spread(n, own, np.maximum(others - known, n - own)) + own * (1 - own / n)
        return Without(replace(numbers, errors=numbers.errors * found.errors() * n / np.sqrt(left)), found.frequencies)

    def _sum_of_squares(self, agreement: float, sizes: Counts, n: int) -> float:
        """Estimates the sum of n_x^2, from the squares of all estimated cells.

        A report paired with itself adds the constant `alone` on average. Two reports of one cohort add 1 if they are
        of one cell: always for one string, with probability 1 / m for two.
        """
        p, q, m = float(self.inner.p), float(self.inner.q), self.hashing.cells
        alone = (p * (1 - q) ** 2 + (1 - p) * q**2 + (m - 1) * q * (1 - q)) / (p - q) ** 2
        pairs = float((sizes.astype(np.float64) * (sizes - 1.0)).sum())
        if pairs == 0:
            return float(n) ** 2
        together = (agreement - n * alone) / pairs
        squares = n + m / (m - 1) * (together - 1 / m) * n * (n - 1.0)
        return float(np.clip(squares, n, float(n) ** 2))

    def variance(
        self, n: int, frequency: ArrayLike = 0.0, population: bool = True, others: ArrayLike | None = None
    ) -> Any:
        """The variance of an estimated count over noise, cohorts and keys.

        `others` is the sum of the squared frequencies of the other strings; without it, the worst case (1 - f)^2, in
        which all others hold one string.
        """
        f = np.asarray(frequency, dtype=np.float64)
        squares = (1 - f) ** 2 if others is None else np.asarray(others, dtype=np.float64)
        spread = self._spread(n, n * f, float(n) ** 2 * squares)
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if np.ndim(spread) == 0 else spread

    def _spread(self, n: int, own: Any, squares: Any) -> Any:
        p, q, m, k = float(self.inner.p), float(self.inner.q), self.hashing.cells, self.cohort_count
        other = q + (p - q) / m
        noise = (own * p * (1 - p) + (n - own) * other * (1 - other)) / (p - q) ** 2
        return (m / (m - 1)) ** 2 * noise + (squares - (n - own)) / (k * (m - 1))

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=self._cost,
            leverage=self._leverage,
            moved=self._poisoning,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: Hashed("hashing.cell", self.hashing.cells),
            width=lambda: self._cohort_bytes + self.inner.report_bytes,
            ratio=lambda: self.inner.ratio,
            # Those of the inner protocol: texts that share a cell in some cohort are not worse than others.
            blankets=lambda: self.inner.law().blankets,
            plausible=self._plausible,
        )


class CMS(SketchProtocol):
    """Count mean sketch. A report has a bit a cell, so choose few cells, say 1024.

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Largest epsilon of a report.
        hashing: The hash functions for a list of answers; open text brings its own.

    >>> protocol = CMS(Strings(cells=1024), epsilon=4)
    >>> protocol.report_bytes, protocol.tally_size
    (129, 65600)
    """

    name: ClassVar[str] = "CMS"

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], 1, hashing=Strings(4, 2))

    @cached_property
    def inner(self) -> SUE:
        return SUE(self._cells, self.epsilon)

    @property
    def _has_lanes(self) -> bool:
        return True


class HCMS(SketchProtocol):
    """Hadamard count mean sketch.

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Largest epsilon of a report.
        hashing: The hash functions for a list of answers; open text brings its own.

    >>> HCMS(Strings(), epsilon=4).report_bytes
    4
    """

    name: ClassVar[str] = "HCMS"

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], 1, hashing=Strings(4, 2))

    @cached_property
    def inner(self) -> BLH:
        return BLH(self._cells, self.epsilon)


@dataclass(frozen=True)
class OLHSketch(SketchProtocol):
    """Optimized local hashing of open text.

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Largest epsilon of a report.
        hash_bits: Number of bits of the second hash, from cells to groups; the best number if 0.
        hashing: The hash functions for a list of answers; open text brings its own.

    >>> protocol = OLHSketch(Strings(), epsilon=1)
    >>> reports = protocol.privatize(["sourdough", "rye", "sourdough"])
    >>> protocol.estimate(protocol.tally(reports), candidates=["rye", "sourdough"]).labels
    ('rye', 'sourdough')
    """

    name: ClassVar[str] = "OLHSketch"

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], 1, 2, hashing=Strings(2, 3, "k"))
        yield cls(3, 1, 1, hashing=Strings(4, 1))

    hash_bits: int = 0

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: DomainLike,
            epsilon: Number,
            hash_bits: int = 0,
            *,
            hashing: Strings | Mapping[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        # The inner protocol finds the best number of bits, and refuses an impossible one.
        object.__setattr__(self, "hash_bits", OLH(Integers(0, 1), self.epsilon, self.hash_bits).hash_bits)
        super().__post_init__()

    @cached_property
    def inner(self) -> OLH:
        return OLH(self._cells, self.epsilon, hash_bits=self.hash_bits)

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"hash_bits": self.hash_bits}
