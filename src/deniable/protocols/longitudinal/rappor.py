"""RAPPOR in full: a Bloom filter that is flipped once and kept, then flipped again for each report.

`dn.RAPPOR(domain, first=..., forever=...)` builds it; without the two levels it is the one-time RAPPOR.

Law        the cohort is drawn once per device. In the state each of the B bits of the text's filter is flipped with
           f1 = ceil(2^64 / (s + 1)) / 2^64, s = e^(forever / (2 h)); a report flips each bit of the state with r, so
           that in all a bit is flipped with F = f1 + (1 - 2 f1) r
Privacy    of a state ((1 - f1) / f1)^(2 h) <= e^forever, of one report the same with F, <= e^first; r is rounded up
Error      that of one-time RAPPOR at epsilon `first`, whose decoder it is
Report     the cohort in 1 or 2 bytes, then the bitmap, as one-time RAPPOR; the state has the same form
Draws      once per device the cohort; per text packed(f1) over the B bits, then one bernoulli(1 - f1) for each of its
           positions; per report packed(r) over the B bits
Paper      its f is 2 f1, and its q and p are the probabilities 1 - r and r that a set and a clear bit of the state are
           reported as set: here they add up to one. Its h is `hashes`, its k bits `bloom_bits`, its m `cohorts`
Linking    a state of 128 bits works as a cookie from the first epochs on: a survey has to say "linkable"
Source     Erlingsson, Pihur and Korolova 2014
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.domains import Domain, DomainLike, Strings
from deniable.exact import Dyadic
from deniable.protocols.base import Cost, Protocol, percent
from deniable.protocols.frequency.open_text import TextProtocol, as_text, cohort_step
from deniable.protocols.frequency.rappor import RAPPOR
from deniable.protocols.frequency.unary import packed_bytes
from deniable.protocols.longitudinal.unary import second_flip
from deniable.protocols.memoized import Memoized, Place, bit_linking, bit_parts
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits


@dataclass(frozen=True, init=False, repr=False)
class LRAPPOR(Memoized, RAPPOR):
    """RAPPOR in two stages.

    >>> daily = RAPPOR(Strings(), first=2, forever=4)
    >>> [round(level, 2) for level in daily.levels(365, values=1)]
    [2.0, 4.0, 4.0, 4.0]
    """

    name: ClassVar[str] = "LRAPPOR"

    domain: Any
    forever: Fraction = None  # type: ignore[assignment]  # always set: it stands behind fields with defaults

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        bloom_bits: int = 128,
        hashes: int = 2,
        cohorts: int = 8,
        *,
        first: exact.Number | None = None,
        forever: exact.Number | None = None,
        key: str | None = None,
    ) -> None:
        sizes = {"bloom_bits": bloom_bits, "hashes": hashes, "cohorts": cohorts, "key": key}
        for name, value in sizes.items():
            object.__setattr__(self, name, value)
        super().__init__(domain, epsilon, forever, first=first)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.second  # refuses levels that leave no second stage

    def parameters(self) -> dict[str, Any]:
        return RAPPOR.parameters(self) | Memoized.parameters(self)

    def __repr__(self) -> str:
        levels = f"first={exact.literal(self.first)}, forever={exact.literal(self.forever)}"
        sizes = f"bloom_bits={self.bloom_bits}, hashes={self.hashes}, cohorts={self.cohorts}"
        return f"RAPPOR({self.domain!r}, {levels}, {sizes})"

    @classmethod
    def two_stage_candidates(
        cls, domain: Domain, first: exact.Number, forever: exact.Number, n: int | None = None
    ) -> Iterator[Protocol]:
        if isinstance(domain, Strings):  # a list of answers is better served without hashing
            yield cls(domain, first=first, forever=forever)

    @cached_property
    def flip(self) -> Dyadic:
        """P(a bit of the state is another than that of the filter)."""
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.forever / (2 * self.hashes))

    @cached_property
    def second(self) -> Dyadic:
        """P(a bit of a report is another than that of the state)."""
        return second_flip(self.flip, self.first / (2 * self.hashes), self.first, self.forever)

    @property
    def sent_flip(self) -> Fraction:
        return self.flip.value + (1 - 2 * self.flip.value) * self.second.value

    @property
    def permanent_ratio(self) -> Fraction:
        return (self.flip.complement.value / self.flip.value) ** (2 * self.hashes)

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.second.complement.value / self.second.value, self.bloom_bits

    @property
    def most_states(self) -> int | None:
        return None if self.is_open else int(self.domain.size)

    @property
    def shared_bytes(self) -> int:
        return self._cohort_bytes

    @property
    def state_forms(self) -> int:
        return self.cohorts << self.bloom_bits

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes about half of the random bytes."""
        once = RAPPOR.cost.fget(self)  # type: ignore[attr-defined]
        return Cost(once.random_bytes + packed_bytes(self.bloom_bits), once.operations)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["rye", "sourdough"], bloom_bits=2, hashes=1, cohorts=2, first="1/2", forever=1)

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        _, filter_step = RAPPOR._steps(self, value, encoded, report)
        second = percent(float(self.second))
        return [
            cohort_step(self.cohorts, self.bloom_bits, kept=True),
            f"First stage, once per text. {filter_step}",
            f"Second stage, for every report: every bit of what came out is flipped with probability {second}, one "
            "coin each.",
        ]

    def _shared(self, bits: Bits) -> bytes:
        return bits.integers(self.cohorts).to_bytes(self._cohort_bytes, "little")

    def _permanent(self, value: Any, shared: bytes, bits: Bits) -> bytes:
        text = value if self.is_open else as_text(self.domain.labels[value])
        return self._one_text(text, int.from_bytes(shared, "little"), bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        head = self._cohort_bytes
        flipped = int.from_bytes(state[head:], "little") ^ bits.lanes(self.second, self.bloom_bits)
        return state[:head] + flipped.to_bytes(len(state) - head, "little")

    def _states(self, values: Any, bits: Bits) -> Bytes:
        return TextProtocol._many(self, values, bits)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        head = self._cohort_bytes
        rows = bits.packed(self.second, self.bloom_bits, len(states))
        rows ^= states[:, head:]
        return np.hstack([states[:, :head], rows])

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and bool(self._valid(np.frombuffer(state, dtype=np.uint8)[None])[0])

    def linking(self, epochs: int) -> float:
        lanes = [(self.flip.complement, self.hashes), (self.flip, self.bloom_bits - self.hashes)]
        return self.cohorts * bit_linking(lanes, self.second, epochs)

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        keys = {value: row for row, value in enumerate(values)}
        for cohort in range(self.cohorts):
            marks = [frozenset(self.positions(as_text(self.domain.labels[value]), cohort)) for value in values]
            yield Place(keys, bit_parts(marks, self.bloom_bits, self.flip.complement, self.flip, self.second))
