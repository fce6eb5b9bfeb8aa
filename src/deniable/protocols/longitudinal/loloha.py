"""Longitudinal local hashing: one hash function per device, then randomized response twice on the hash.

The device draws one of at most 256 public hash functions and keeps it for all its reports. A hash function of its own
would be a cookie: it stands in the clear in every report.

Law        the cohort j, uniform among k, says which hash function puts answers into g = 2^r cells; the cell is then
           reported by LGRR over the g cells: kept once per cell, drawn again for each report
Privacy    that of LGRR at `first` and `forever`: the cohort does not depend on the answer. Answers in one cell share
           their state, so that a device has at most g of them, and two streams whose cells recur in the same pattern
           tell g `forever` at most
Error      of a count, f -> 0: n (e + g - 1)^2 / ((e - 1)^2 (g - 1)), e = e^first, as for local hashing; and the answers
           that share cells, sum over x != v of (n_x^2 - n_x) / (k (g - 1)), which more people do not average out
Report     the cohort in 1 byte, then the cell in 1 or 2 bytes; the state has the same form
Cost       three random words and a SHA-256 for the state, two words per report; k (g + 1) counters
Source     Arcolezi, Pinzon, Palamidessi and Gambs 2023 (LOLOHA), with exact chaining and a public pool of hashes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.domains import DomainLike, Strings, Texts
from deniable.errors import DomainError
from deniable.protocols.base import WORD_BYTES, Cost, Protocol
from deniable.protocols.frequency.local_hashing import best_hash_bits
from deniable.protocols.frequency.open_text import as_text, cohort_step
from deniable.protocols.frequency.sketch import SketchProtocol
from deniable.protocols.longitudinal.lgrr import LGRR
from deniable.protocols.memoized import FEW_FORMS, Memoized, Part, Place
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits

MOST_HASHES = 256


@dataclass(frozen=True, init=False, repr=False)
class LOLOHA(Memoized, SketchProtocol):
    """Longitudinal local hashing; `hashing` says the cells and the pool of hash functions, the best by default.

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
