"""Longitudinal randomized response: GRR once per answer, kept; then GRR on what was kept, each time.

LGRR    of the answer itself; the sheet below is its own
LOLOHA  of a hash of the answer, by a hash function that the device keeps; its sheet stands at the class

Law        the state is the answer with probability t1, else uniform over all d; the report is the state with
           probability t2, else uniform over all d. One report is GRR that keeps the answer with probability t1 t2
Privacy    of a state (1 + (d - 1) t1) / (1 - t1) <= e^forever; of one report the same with t1 t2, <= e^first. t1 and t2
           are rounded down to multiples of 2^-64, t2 after t1, so that neither is exceeded
Error      of one epoch: that of GRR with t = t1 t2
Report     the position of an answer, little-endian, ceil(log2(d) / 8) bytes; the state has the same form
Cost       two random words for the state, two per report; one addition per report and d counters on the server
Source     Arcolezi, Couchot, Al Bouna and Xiao 2022, with exact chaining: the published second stage is right for two
           answers only, and wastes level beyond them
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels import RandomizedResponse
from deniable.domains import DomainLike, ListedDomain, Strings, Texts
from deniable.errors import ChannelError, DomainError, EpsilonError
from deniable.exact import WORD, Dyadic, floor_of, shown
from deniable.labels import Label
from deniable.protocols.frequency.grr import GRR
from deniable.protocols.frequency.local_hashing import best_hash_bits
from deniable.protocols.frequency.open_text import COLLIDES, TextEstimate, as_text, cohort_step
from deniable.protocols.frequency.sketch import SketchProtocol
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.memoized import FEW_FORMS, Memoized, Part, Place
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, narrow_type, to_bytes
from deniable.protocols.tally import Counts, Tally, kept_or_uniform, spread_evenly
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Floats, Weights
from deniable.results.bounds import Numbers
from deniable.words import Fact, word


class LGRR(Memoized, GRR):
    """Longitudinal generalized randomized response.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        first: Epsilon of one report.

    >>> weekly = LGRR(["yes", "no"], first="1/2", forever=1)
    >>> state = weekly.permanent("yes")  # once, and kept
    >>> len(weekly.report_from(state))  # every week
    1
    >>> [round(level, 3) for level in weekly.levels(52, values=1)]
    [0.5, 1.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "LGRR"

    domain: ListedDomain

    @cached_property
    def response(self) -> RandomizedResponse:
        """The first stage, whose outcome is kept."""
        return RandomizedResponse.at(self.domain.size, self.forever)

    @cached_property
    def instant(self) -> RandomizedResponse:
        """The second stage, drawn for each report."""
        size, kept = self.domain.size, self.response.keep.value
        keep = floor_of(lambda e: WORD * (e - 1) / (e + size - 1) / kept, self.first)
        if keep >= WORD:  # t1 was rounded down
            raise EpsilonError(f"`first` is too close to `forever`, {shown(self.forever)}: lower it")
        if keep == 0:
            raise ChannelError(f"at these levels an answer among {size} would never be kept: raise `first`")
        return RandomizedResponse(size, Dyadic(keep))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return self._told("answers")

    def _told(self, noun: str) -> Sequence[Fact]:
        one = noun.removesuffix("s")
        drawn = word(f"story.twice.any.{one}", n=self.domain.size)
        return [
            word(f"story.twice.keep.{one}", chance=percent(float(self.response.keep))),
            drawn,
            word("story.twice.send", chance=percent(float(self.instant.keep))),
            drawn,
        ]

    @cached_property
    def kept(self) -> Fraction:
        """The probability t1 t2 that a report is the answer because both stages kept it."""
        return self.response.keep.value * self.instant.keep.value

    @property
    def p(self) -> Fraction:
        return self.kept + self.q

    @property
    def q(self) -> Fraction:
        return (1 - self.kept) / self.domain.size

    @property
    def permanent_ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.instant.ratio, 1

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return self.response.true, self.response.false, self.p, self.q

    @classmethod
    def examples(cls) -> Iterator[LGRR]:
        yield cls([True, False], first="1/2", forever=1)
        yield cls(3, first=1, forever=3)

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        kept, drawn = bits.bernoulli(self.response.keep), bits.integers(self.domain.size)
        return (value if kept else drawn).to_bytes(self.report_bytes, "little")

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        kept, drawn = bits.bernoulli(self.instant.keep), bits.integers(self.domain.size)
        return state if kept else drawn.to_bytes(self.report_bytes, "little")

    def _states(self, values: Positions, bits: Bits) -> Bytes:
        narrow = values.astype(narrow_type(self.report_bytes))
        return to_bytes(bits.keep_or_uniform(narrow, self.response.keep, self.domain.size), self.report_bytes)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        drawn = bits.keep_or_uniform(from_bytes(states), self.instant.keep, self.domain.size)
        return to_bytes(drawn, self.report_bytes)

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and int.from_bytes(state, "little") < self.domain.size

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts:
        kept, rest = kept_or_uniform(truth, float(self.kept), runs, random)
        return kept + spread_evenly(rest, self.domain.size, random)

    @remembered
    def kernel(self) -> Kernel:
        return super().kernel().but(simulate=self._simulate)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            # For a person who answers once; a report from a kept state takes half of the random bytes.
            cost=Cost(4 * WORD_BYTES, 1),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: self.p / self.q,
            kept=base.kept.but(state_forms=lambda: self.domain.size),
        )


MOST_HASHES = 256

MOST_KNOWN = 256
"""For lists of up to this many answers, it is computed which answers share cells, and estimates are corrected."""

_LEAST_EIGENVALUE = 0.1
"""A list is too long for the pool of hash functions where undoing the collisions would multiply the noise by ten."""


class Collisions(NamedTuple):
    """How a list of answers shares the cells of a pool of hash functions."""

    cells: Positions
    """The cell of each answer (row) under each hash function."""
    inverse: Floats
    """The inverse of the matrix M: the share of the hash functions that put two answers into one cell."""
    rows: Floats
    """The rows of the inverse, and their sum: for each estimated count, and for all of them together."""
    every: Floats
    """For each row, the sum over the cells of its squared weight there, averaged over the hash functions."""
    own: Floats
    """The same of the cell of each answer only."""

    def spread(self, p: float, q: float) -> Floats:
        """The variance that a report of answer x (column) adds to the count of v (row); the last row is of all counts.

        A report supports one cell: that of x with p, each other one with q. With S what it supports and b a row,
        E (b S)^2 is q `every` + (p - q) `own`, and E b S is q sum(b) + (p - q) [v = x].
        """
        answers = len(self.inverse)
        mean = q * self.rows.sum(axis=1)[:, None] + (p - q) * np.vstack([np.eye(answers), np.ones(answers)])
        spread: Floats = q * self.every[:, None] + (p - q) * self.own - mean**2
        return spread / (p - q) ** 2


@lru_cache(maxsize=64)
def collisions(texts: tuple[str, ...], hashing: Strings) -> Collisions | None:
    """None where too many answers share their cells for this to be undone."""
    cells = np.array([[hashing.cell(text, cohort) for cohort in range(hashing.cohorts)] for text in texts])
    together = np.zeros((len(texts), len(texts)))
    for column in cells.T:
        together += column[:, None] == column
    together /= hashing.cohorts
    if float(np.linalg.eigvalsh(together)[0]) < _LEAST_EIGENVALUE:
        return None
    inverse = np.linalg.inv(together).astype(np.float64)
    rows = np.vstack([inverse, inverse.sum(axis=0)])
    own, every = np.zeros((len(rows), len(texts))), np.zeros(len(rows))
    for column in cells.T:
        squares = (rows @ (column[:, None] == np.arange(hashing.cells))) ** 2
        own += squares[:, column]
        every += squares.sum(axis=1)
    return Collisions(cells, inverse, rows, every / hashing.cohorts, own / hashing.cohorts)


@dataclass(frozen=True, init=False, repr=False)
class LOLOHA(Memoized, SketchProtocol):
    """Longitudinal local hashing: one hash function per device, then randomized response twice on the hash.

    The device draws one of at most 256 public hash functions and keeps it for all its reports. A hash function of its
    own would be a cookie: it stands in the clear in every report. `hashing` says the cells and the pool of hash
    functions, the best by default.

    Law        the cohort j, uniform among k, says which hash function puts answers into g = 2^r cells; the cell is then
               reported by LGRR over the g cells: kept once per cell, drawn again for each report
    Privacy    that of LGRR at `first` and `forever`: the cohort does not depend on the answer. Answers in one cell
               share their state, so that a device has at most g of them, and two streams whose cells recur in the same
               pattern tell g `forever` at most
    Collisions M is the share of the k hash functions that put two answers into one cell. For a list of up to 256
               answers it is known, and M^-1 (C - n q) / (p - q) is exactly unbiased for this pool of hash functions,
               with C_v the reports that support v
    Error      of a count, f -> 0: n (e + g - 1)^2 / ((e - 1)^2 (g - 1)), e = e^first, as for local hashing, times about
               1 / (1 - d / (k (g - 1))) for undoing the collisions. For text and longer lists without that factor, but
               with the answers that share cells, sum over x != v of (n_x^2 - n_x) / (k (g - 1)), which more people do
               not average out
    Report     the cohort in 1 byte, then the cell in 1 or 2 bytes; the state has the same form
    Cost       three random words and a SHA-256 for the state, two words per report; k (g + 1) counters
    Source     Arcolezi, Pinzon, Palamidessi and Gambs 2023 (LOLOHA), with exact chaining and a public pool of hashes

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        first: Epsilon of one report.
        hashing: The cells and the pool of hash functions; the best ones if None.

    >>> weekly = LOLOHA(1000, first=1, forever=2)
    >>> weekly.hashing.cells, weekly.hashing.cohorts, weekly.report_bytes
    (4, 256, 2)
    >>> [round(level, 3) for level in weekly.levels(52)[:3]]
    [1.0, 2.0, 8.0]
    """

    name: ClassVar[str] = "LOLOHA"
    traits: ClassVar[Traits] = Traits(waived=lambda protocol: protocol._waived())
    domain: Any

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        forever: exact.Number | None = None,
        *,
        first: exact.Number | None = None,
        hashing: Strings | Mapping[str, Any] | None = None,
    ) -> None:
        object.__setattr__(self, "hashing", hashing)
        super().__init__(domain, epsilon, forever, first=first)

    def _settle(self) -> None:
        super()._settle()
        if self.hashing is None and not isinstance(self.domain, Strings):
            cells = 1 << best_hash_bits(float(self.first))
            object.__setattr__(self, "hashing", Strings(cells, max(1, min(MOST_HASHES, FEW_FORMS // cells))))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cohort_count > MOST_HASHES:
            raise DomainError(
                f"a device keeps its hash function, so {self.cohort_count:,} of them would tell devices apart: give "
                f"cohorts={MOST_HASHES} or fewer to dn.Strings, and few cells"
            )
        _ = self.inner  # refuses levels that leave no second stage

    def parameters(self) -> dict[str, Any]:
        return Memoized.parameters(self) | SketchProtocol.parameters(self)

    def __repr__(self) -> str:
        hashing = "" if self.is_open else f", hashing={self.hashing!r}"
        return f"{super().__repr__()[:-1]}{hashing})"

    @cached_property
    def inner(self) -> LGRR:
        return LGRR(self._cells, self.first, self.forever)

    @property
    def shared_bytes(self) -> int:
        return 1

    @property
    def permanent_ratio(self) -> Fraction:
        return self.inner.permanent_ratio

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.inner.instant_power

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        # The probability for another answer, whose cell the hash function chooses.
        even = Fraction(1, self.hashing.cells)
        return self.inner.response.true, even, self.inner.p, even

    # -- collisions that are known -----------------------------------------------------------------

    @cached_property
    def known(self) -> Collisions | None:
        """How the listed answers share their cells; None where that is not known, or cannot be undone."""
        if self.is_open or self.domain.size > MOST_KNOWN:
            return None
        return collisions(tuple(as_text(label) for label in self.domain.labels), self.hashing)

    @cached_property
    def _known_spread(self) -> Floats:
        assert self.known is not None
        return self.known.spread(float(self.inner.p), float(self.inner.q))

    def _decode(self, tally: Tally, labels: Sequence[Label]) -> TextEstimate:
        known = self.known if not self.is_open and tuple(labels) == tuple(self.domain.labels) else None
        if known is None:
            return super()._decode(tally, labels)
        p, q, n = float(self.inner.p), float(self.inner.q), tally.n
        _, blocks = self._parts(tally.counts)
        supported = sum(block[known.cells[:, cohort]] for cohort, block in enumerate(blocks))
        counts = known.inverse @ (supported - n * q) / (p - q)
        held = np.clip(counts, 0.0, None)
        held *= n / held.sum() if held.sum() > 0 else 0.0
        spread = self._known_spread @ held
        rest = math.sqrt(max(0.0, float(spread[-1]))) / n
        more: dict[str, Any] = {"unlisted_noise": rest, "weights": Weights(*self._known_weights)}
        found = TextEstimate(labels, n, counts, spread[:-1], self.name, **more)
        heard = np.flatnonzero(blocks)
        said = self._known_numbers[:, heard], blocks.reshape(-1)[heard].astype(np.float64)
        return replace(found, bounds=Numbers.grouped(*said, self._known_weights, found.errors()))

    @cached_property
    def _known_numbers(self) -> Floats:
        """What a report adds to the count of each listed answer: one column per cohort and cell."""
        assert self.known is not None
        p, q, cells = float(self.inner.p), float(self.inner.q), self.known.cells
        pools = (cells[:, cohort, None] == np.arange(self.hashing.cells) for cohort in range(self.cohort_count))
        return np.hstack([self.known.inverse @ (pool - q) / (p - q) for pool in pools])

    @cached_property
    def _known_weights(self) -> tuple[Floats, Floats]:
        """The smallest and the largest weight of a report for each listed answer, over all cohorts and cells."""
        return self._known_numbers.min(axis=1), self._known_numbers.max(axis=1)

    def _poisoning(self) -> float:
        if self.is_open or self.known is None:
            return super()._poisoning()
        return float((self._known_weights[1] - self._known_weights[0]).max())

    def _waived(self) -> Mapping[str, str]:
        return COLLIDES if self.known is None else {}

    def variance(
        self, n: int, frequency: ArrayLike = 0.0, population: bool = True, others: ArrayLike | None = None
    ) -> Any:
        """The variance for the answers where it is largest, if collisions are known; else see `SketchProtocol`."""
        if self.known is None:
            return super().variance(n, frequency, population, others)
        f, each = np.asarray(frequency, dtype=np.float64), self._known_spread[:-1]
        own = np.eye(len(each), dtype=np.bool_)
        spread = n * (f * each[own].max() + (1 - f) * each[~own].max())
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if np.ndim(spread) == 0 else spread

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        if self.known is None:
            return super()._figure_variances(answers, people)
        n = len(answers) if people is None else int(np.sum(people))
        each: NDArray[np.float64] = self._known_spread[:-1] @ self.worth().truth(answers, people) / n
        return each

    def _kept_shares(self) -> tuple[float, float]:
        if self.known is None:
            return super()._kept_shares()
        # A report is its state's estimate on average, so the state's own spread is what every report repeats.
        law = self.inner.response
        shares = (self.known.spread(float(law.true), float(law.false)) / self._known_spread)[:-1]
        return float(shares.max()), float(shares.min())

    def floor(self, n: int) -> float:
        return super().floor(n) if self.known is None else math.sqrt(self.law().kept.noise) * self.worth(n).noise

    @property
    def most_states(self) -> int:
        return self.inner.law().kept.state_forms

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], first="1/2", forever=1, hashing=Strings(2, 3))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [cohort_step(self.cohort_count, self.hashing.cells, kept=True), *self.inner._told("cells")]

    def _cell(self, value: Any, shared: bytes) -> int:
        text = value if self.is_open else as_text(self.domain.labels[value])
        return self.hashing.cell(text, shared[0])  # type: ignore[no-any-return]

    def _shared(self, bits: Bits) -> bytes:
        return bits.integers(self.cohort_count).to_bytes(1, "little")

    def _permanent(self, value: Any, shared: bytes, bits: Bits) -> bytes:
        return self.inner._permanent(self._cell(value, shared), b"", bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        return state[:1] + self.inner._instant(state[1:], bits)

    def _states(self, values: Any, bits: Bits) -> Bytes:
        texts = values if isinstance(values, Texts) else Texts(values, self.domain.labels)
        cohorts = bits.integers(self.cohort_count, texts.which.size)
        cells = self._cells_of(texts.entries, texts.which, cohorts)
        return np.hstack([cohorts.astype(np.uint8)[:, None], self.inner._states(cells, bits)])

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        return np.hstack([states[:, :1], self.inner._instants(np.ascontiguousarray(states[:, 1:]), bits)])

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and state[0] < self.cohort_count and self.inner._is_state(state[1:])

    def kept_under(self, encoded: Any, state: bytes) -> bytes:
        return self._cells.answer_key(self._cell(encoded, state))

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        for cohort in range(self.cohort_count):
            cells = {value: self._cell(value, bytes([cohort])) for value in values}
            yield Place(cells, [Part(*self.inner.stages, 1)])

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            leverage=lambda: (
                base.leverage if self.is_open or self.known is None else float(self._known_weights[1].max())
            ),
            moved=self._poisoning,
            variances=self._figure_variances,
            # For a person who answers once; a report from a kept state takes two words.
            cost=lambda: Cost(WORD_BYTES + self.inner.worth().cost.random_bytes, 2),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            forms=lambda: self.law().kept.state_forms,
            kept=base.kept.but(
                state_forms=lambda: self.cohort_count * self.inner.law().kept.state_forms,
                linking=lambda epochs: self.cohort_count * self.inner.law().kept.linking(epochs),
            ),
        )
