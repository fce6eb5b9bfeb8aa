"""Unary encodings in two stages: a bitmap once per answer, kept; then every bit of it flipped by chance, each time.

LSUE    symmetric: the kept bits are those of SUE at epsilon `forever`, a report has the law of SUE at `first`
LOSUE   optimized: the kept bits are those of OUE at epsilon `forever`, a report has the law of OUE at `first`

Law        in the state the true bit is set with p1, every other bit with q1; a report flips each bit of the state with
           r. So its bits are independent, set with p = p1 + (1 - 2 p1) r and q = q1 + (1 - 2 q1) r. LSUE: p1 = 1 - q1
           and p = 1 - q; LOSUE: p1 = p = 1/2
Privacy    of a state p1 (1 - q1) / (q1 (1 - p1)) <= e^forever, of one report the same with p and q, <= e^first. q1 is
           rounded up to a multiple of 2^-64, then r, so that neither is exceeded. Two states may differ in all d bits:
           the second stage alone has ((1 - r) / r)^d
Error      of one epoch: that of SUE or OUE at epsilon `first`
Report     a bitmap of d bits: answer v is bit v % 8 of byte v // 8, padding zero; the state has the same form
Cost       about 2 random bits per bit for the state, and again for each report; a carry-save adder on the server
Source     Erlingsson, Pihur and Korolova 2014; Arcolezi, Couchot, Al Bouna and Xiao 2022
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable.domains import ListedDomain
from deniable.errors import EpsilonError
from deniable.exact import WORD, Dyadic, ceil_of, shown
from deniable.protocols.base import WORD_BYTES, Cost, Positions, Protocol, percent
from deniable.protocols.frequency.unary import (
    OUE,
    SUE,
    UnaryProtocol,
    bitmap_operations,
    packed_bytes,
    padding_is_zero,
)
from deniable.protocols.memoized import Memoized, Place, bit_linking, bit_parts
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits


def second_flip(other: Dyadic, target: Fraction, first: Fraction, forever: Fraction) -> Dyadic:
    """The r with which bits that are set with q1 come out set with 1 / (e^target + 1), rounded up.

    `first` and `forever` are the levels in the refusal.
    """
    stored = other.value
    flip = ceil_of(lambda e: WORD * (1 / (e + 1) - stored) / (1 - 2 * stored), target)
    if flip < 1:  # q1 was rounded up
        raise EpsilonError(f"`first`, {shown(first)}, is too close to `forever`, {shown(forever)}: lower it")
    return Dyadic(flip)


class LongitudinalUnary(Memoized, UnaryProtocol):
    """A bitmap whose bits are kept, and flipped for each report; `true_bit` and `other_bit` are those of the state."""

    domain: ListedDomain

    @property
    @abstractmethod
    def _target(self) -> Fraction:
        """The x with q = 1 / (e^x + 1) in a report."""

    @cached_property
    def flip(self) -> Dyadic:
        """P(a report has another bit than the state)."""
        return second_flip(self.other_bit, self._target, self.first, self.forever)

    def _sent(self, kept: Dyadic) -> Fraction:
        """P(a bit is set in a report) of one that is set in the state with this probability."""
        return kept.value + (1 - 2 * kept.value) * self.flip.value

    @property
    def p(self) -> Fraction:
        return self._sent(self.true_bit)

    @property
    def q(self) -> Fraction:
        return self._sent(self.other_bit)

    @property
    def permanent_ratio(self) -> Fraction:
        own, other = self.true_bit.value, self.other_bit.value
        return own * (1 - other) / (other * (1 - own))

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.flip.complement.value / self.flip.value, self.domain.size

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return self.true_bit.value, self.other_bit.value, self.p, self.q

    @property
    def state_forms(self) -> int:
        return 1 << self.domain.size

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes half of the random bytes."""
        return Cost(2 * packed_bytes(self.domain.size) + WORD_BYTES, bitmap_operations(self.domain.size))

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls([True, False], first="1/2", forever=1)

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        others, own = self._told("answers")
        flip = percent(float(self.flip))
        return [
            f"First stage, once per answer. {others}",
            own,
            f"Second stage, for every report: every bit of what came out is flipped with probability {flip}, one coin "
            "each.",
        ]

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        return UnaryProtocol._one(self, value, bits)

    def _states(self, values: Positions, bits: Bits) -> Bytes:
        return UnaryProtocol._many(self, values, bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        flipped = int.from_bytes(state, "little") ^ bits.lanes(self.flip, self.domain.size)
        return flipped.to_bytes(self.report_bytes, "little")

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        rows = bits.packed(self.flip, self.domain.size, len(states))
        rows ^= states
        return rows

    def _is_state(self, state: bytes) -> bool:
        whole = len(state) == self.report_bytes
        return whole and bool(padding_is_zero(np.frombuffer(state, dtype=np.uint8)[None], self.domain.size)[0])

    def linking(self, epochs: int) -> float:
        return bit_linking([(self.true_bit, 1), (self.other_bit, self.domain.size - 1)], self.flip, epochs)

    def likeness(self, one: bytes, other: bytes, answer: Any) -> Fraction:
        ratio, own = Fraction(1), self.domain.encode_one(answer)
        flips = [self.flip.value, self.flip.complement.value]
        for lane in range(self.domain.size):
            kept = (self.true_bit if lane == own else self.other_bit).value
            bits = [int(report[lane >> 3] >> (lane & 7) & 1) for report in (one, other)]
            set_, clear = [flips[bit] for bit in bits], [flips[1 - bit] for bit in bits]
            together = kept * set_[0] * set_[1] + (1 - kept) * clear[0] * clear[1]
            alone = [kept * a + (1 - kept) * b for a, b in zip(set_, clear, strict=True)]
            ratio *= together / (alone[0] * alone[1])
        return ratio

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        marks = [frozenset([value]) for value in values]
        parts = bit_parts(marks, self.domain.size, self.true_bit, self.other_bit, self.flip)
        yield Place({value: row for row, value in enumerate(values)}, parts)


class LSUE(LongitudinalUnary):
    """Longitudinal symmetric unary encoding, the two stages of RAPPOR without its filter.

    >>> weekly = LSUE(["never", "once", "often"], first="1/2", forever=1)
    >>> [round(level, 3) for level in weekly.levels(52, values=1)]
    [0.5, 1.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "LSUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return SUE(self.domain, self.forever).other_bit

    @property
    def true_bit(self) -> Dyadic:
        return self.other_bit.complement

    @property
    def _target(self) -> Fraction:
        return self.first / 2


class LOSUE(LongitudinalUnary):
    """Longitudinal optimized unary encoding: one report is OUE at epsilon `first`.

    >>> weekly = LOSUE(["never", "once", "often"], first="1/2", forever=1)
    >>> float(weekly.p), abs(float(weekly.q) - float(OUE(3, "1/2").q)) < 1e-15
    (0.5, True)
    """

    name: ClassVar[str] = "LOSUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return OUE(self.domain, self.forever).other_bit

    @property
    def true_bit(self) -> Dyadic:
        return Dyadic(WORD // 2)

    @property
    def _target(self) -> Fraction:
        return self.first
