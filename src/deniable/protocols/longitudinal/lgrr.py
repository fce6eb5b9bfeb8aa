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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.channels import RandomizedResponse
from deniable.domains import DomainLike, ListedDomain, Strings, Texts
from deniable.errors import ChannelError, DomainError, EpsilonError
from deniable.exact import WORD, Dyadic, floor_of, shown
from deniable.protocols.base import WORD_BYTES, Cost, Positions, Protocol, percent
from deniable.protocols.frequency.grr import GRR
from deniable.protocols.frequency.local_hashing import best_hash_bits
from deniable.protocols.frequency.open_text import as_text, cohort_step
from deniable.protocols.frequency.sketch import SketchProtocol
from deniable.protocols.memoized import FEW_FORMS, Memoized, Part, Place
from deniable.protocols.reports import Bytes, from_bytes, narrow_type, to_bytes
from deniable.protocols.tally import Counts, kept_or_uniform, spread_evenly
from deniable.randomness import Bits


class LGRR(Memoized, GRR):
    """Longitudinal generalized randomized response.

    >>> weekly = LGRR(["yes", "no"], first="1/2", forever=1)
    >>> state = weekly.permanent("yes")  # once, and kept
    >>> len(weekly.report(state))  # every week
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

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        return self._told("answers")

    def _told(self, noun: str) -> list[str]:
        first, second = percent(float(self.response.keep)), percent(float(self.instant.keep))
        one = noun.removesuffix("s")
        drawn = (
            f"One of the {self.domain.size:,} {noun} is drawn, each with the same probability. It counts only after "
            "“replace”."
        )
        return [
            f"First stage, once per {one}: a coin decides whether your {one} is kept. It says “keep” with probability "
            f"{first}.",
            drawn,
            "Second stage, for every report: another coin decides whether the outcome of the first stage is sent. It "
            f"says “send” with probability {second}.",
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
    def ratio(self) -> Fraction:
        return self.p / self.q

    @property
    def permanent_ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.instant.ratio, 1

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return self.response.true, self.response.false, self.p, self.q

    @property
    def state_forms(self) -> int:
        return self.domain.size

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes half of the random bytes."""
        return Cost(4 * WORD_BYTES, 1)

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


MOST_HASHES = 256


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
    Error      of a count, f -> 0: n (e + g - 1)^2 / ((e - 1)^2 (g - 1)), e = e^first, as for local hashing; and the
               answers that share cells, sum over x != v of (n_x^2 - n_x) / (k (g - 1)), which more people do not
               average out
    Report     the cohort in 1 byte, then the cell in 1 or 2 bytes; the state has the same form
    Cost       three random words and a SHA-256 for the state, two words per report; k (g + 1) counters
    Source     Arcolezi, Pinzon, Palamidessi and Gambs 2023 (LOLOHA), with exact chaining and a public pool of hashes

    >>> weekly = LOLOHA(1000, first=1, forever=2)
    >>> weekly.hashing.cells, weekly.hashing.cohorts, weekly.report_bytes
    (4, 256, 2)
    >>> [round(level, 3) for level in weekly.levels(52)[:3]]
    [1.0, 2.0, 8.0]
    """

    name: ClassVar[str] = "LOLOHA"
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
        # Of another answer, whose cell the hash function chooses.
        even = Fraction(1, self.hashing.cells)
        return self.inner.response.true, even, self.inner.p, even

    @property
    def state_forms(self) -> int:
        return self.cohort_count * self.inner.state_forms

    @property
    def report_forms(self) -> int:
        return self.state_forms

    @property
    def most_states(self) -> int:
        return self.inner.state_forms

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes two words."""
        return Cost(WORD_BYTES + self.inner.cost.random_bytes, 2)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], first="1/2", forever=1, hashing=Strings(2, 3))

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
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

    def linking(self, epochs: int) -> float:
        return self.cohort_count * self.inner.linking(epochs)

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        for cohort in range(self.cohort_count):
            cells = {value: self._cell(value, bytes([cohort])) for value in values}
            yield Place(cells, [Part(*self.inner.stages, 1)])
