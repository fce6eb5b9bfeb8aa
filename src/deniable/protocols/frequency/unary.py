"""Unary encodings: one bit per answer, each randomized by itself.

SUE   symmetric (basic one-time RAPPOR): every bit is flipped with probability q = 1 / (e^(epsilon / 2) + 1)
OUE   optimized: the true bit is a fair coin, every other bit is set with q = 1 / (e^epsilon + 1)
THE   threshold histogram: what remains when Laplace noise of scale 2 / epsilon on every bit is compared with
      theta; p = 1 - e^(-epsilon (1 - theta) / 2) / 2, q = e^(-epsilon theta / 2) / 2

Law        bits are independent: the true one is set with probability p, each other one with q
Privacy    p (1 - q) / (q (1 - p)) <= e^epsilon; q is rounded up and p down
Error      of a count, f -> 0: SUE n s / (s - 1)^2 with s = e^(epsilon / 2); OUE 4 n e / (e - 1)^2 with e = e^epsilon
Report     a bitmap of d bits: answer v is bit v % 8 of byte v // 8, padding zero
Cost       about 2 random bits a bit on the device; a carry-save adder on the server
Source     Erlingsson, Pihur and Korolova 2014 (SUE); Wang et al. 2017 (OUE, THE)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import DomainLike
from deniable.errors import NumberError
from deniable.exact import WORD, Dyadic
from deniable.protocols.frequency.bit_rows import BitCounter, positional_popcount, row_weights, usual_weights
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.tally import Counts, Tally, independent_bits
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results.significance import sum_is_off
from deniable.words import Fact, word

_FEW_BITS = 64
"""From this number of bits on, a report with all bits set is too unlikely to matter."""


class UnaryProtocol(PureProtocol):
    """A bitmap of independent bits; a subclass gives the two probabilities."""

    @property
    @abstractmethod
    def true_bit(self) -> Dyadic:
        """P(the true answer's bit is set)."""

    @property
    @abstractmethod
    def other_bit(self) -> Dyadic:
        """P(another answer's bit is set)."""

    @property
    def p(self) -> Fraction:
        return self.true_bit.value

    @property
    def q(self) -> Fraction:
        return self.other_bit.value

    @property
    def _everyone(self) -> Fraction:  # type: ignore[override]
        return (1 - self.p) * self.q**self.domain.size / (1 - self.q) if self.domain.size < _FEW_BITS else Fraction(0)

    @property
    def _third(self) -> Fraction | None:
        return self.q * (1 - self.q) if self.domain.size > 2 else None

    def _attack(self) -> float:
        """Guess any answer whose bit is set; all bits are clear with probability (1 - p) (1 - q)^(d - 1)."""
        d, p, q = self.domain.size, float(self.p), float(self.q)
        some = -math.expm1(d * math.log1p(-q))
        return p * some / (d * q) + (1 - p) * math.exp((d - 1) * math.log1p(-q)) / d

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], 1)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return self._told("answers")

    def _told(self, noun: str) -> Sequence[Fact]:
        return [
            word(f"story.bits.others.{noun}", n=self.domain.size, chance=percent(float(self.other_bit))),
            word("story.bits.own", chance=percent(float(self.true_bit))),
        ]

    def draw(self, value: int, bits: Bits) -> bytes:
        other_bit, true_bit, size, width = self._single
        row, own = bits.lanes(other_bit, size), 1 << value
        row |= own
        if not bits.bernoulli(true_bit):
            row ^= own
        return row.to_bytes(width, "little")

    @cached_property
    def _single(self) -> tuple[Dyadic, Dyadic, int, int]:
        """What a single report needs, looked up once."""
        return self.other_bit, self.true_bit, self.domain.size, self.report_bytes

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        rows = bits.packed(self.other_bit, self.domain.size, values.size)
        set_bits(rows, values, bits.bernoulli(self.true_bit, values.size))
        return rows

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return padding_is_zero(reports, self.domain.size)

    def _plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        rows = self._rows(reports)
        low, high = usual_weights(self.domain.size - 1, float(self.q), more=1)
        weights = row_weights(rows)
        return self.valid(rows) & (weights >= low) & (weights <= high)

    def _forgeries(self, answers: Any) -> Bytes:
        """The bits of these answers, and no others."""
        flags = np.zeros((1, self.domain.size), dtype=np.uint8)
        flags[0, answers] = 1
        return np.packbits(flags, axis=1, bitorder="little")

    def _likeliest(self) -> float:
        p, q = float(self.p), float(self.q)
        return max(p, 1 - p) * max(q, 1 - q) ** (self.domain.size - 1)

    def count(self, reports: Bytes) -> Counts:
        return positional_popcount(reports)[: self.domain.size]

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        return np.unpackbits(reports, axis=1, count=self.domain.size, bitorder="little").view(np.bool_)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        # Everybody sets one bit with p and d - 1 bits with q: the law of their number does not depend on the answers.
        p, q, n, others = float(self.p), float(self.q), tally.n * worth, self.domain.size - 1

        def log_moment(t: float) -> float:
            up = math.expm1(t)
            return n * (math.log1p(p * up) + others * math.log1p(q * up))

        total = sum_is_off(log_moment, n * (p + others * q), float(tally.counts.sum()) * worth)
        return [*super().law().checks(tally, worth), total]

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts:
        return independent_bits(truth, float(self.p), float(self.q), runs, random)

    @remembered
    def kernel(self) -> Kernel:
        return (
            super().kernel().but(adder=lambda: BitCounter(self.report_bytes, self.domain.size), simulate=self._simulate)
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(packed_bytes(self.domain.size) + WORD_BYTES, bitmap_operations(self.domain.size)),
            guess=self._attack,
            forgeries=self._forgeries,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: self.p * (1 - self.q) / (self.q * (1 - self.p)),
            support=lambda: base.support and base.support._replace(independent=True),
            width=lambda: -(-self.domain.size // 8),
            forms=lambda: 1 << self.domain.size,
            counters=lambda: self.domain.size,
            plausible=self._plausible,
            likeliest=self._likeliest,
            checks=self._misfits,
        )


def bitmap_operations(lanes: int) -> float:
    """Word operations that add a bitmap: the 5 instructions that a carry-save adder spends on 64 bits."""
    return 5.0 * -(-lanes // 64)


def packed_bytes(lanes: int) -> float:
    """Words until the slowest of up to 64 lanes is decided, each digit deciding it with probability 1/2; in bytes."""

    def words(count: int) -> float:
        return sum(1 - (1 - 0.5**digit) ** count for digit in range(64)) if count else 0.0

    return WORD_BYTES * (lanes // 64 * words(64) + words(lanes % 64))


def set_bits(rows: Bytes, places: Positions, values: NDArray[np.bool_]) -> None:
    """Write one bit in each row, in place."""
    flat = rows.reshape(-1)
    where = np.arange(0, flat.size, rows.shape[1]) + (places >> 3)
    shift = (places & 7).astype(np.uint8)
    kept = flat[where] & ~(np.uint8(1) << shift)
    flat[where] = kept | (values.view(np.uint8) << shift)


def padding_is_zero(reports: Bytes, lanes: int) -> NDArray[np.bool_]:
    if lanes % 8 == 0:
        return np.ones(len(reports), dtype=np.bool_)
    valid: NDArray[np.bool_] = reports[:, -1] >> np.uint8(lanes % 8) == 0
    return valid


class SUE(UnaryProtocol):
    """Symmetric unary encoding.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.

    >>> SUE(1024, epsilon=1).other_bit.numerator
    6964396094736529935
    """

    name: ClassVar[str] = "SUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.epsilon / 2)

    @property
    def true_bit(self) -> Dyadic:
        return self.other_bit.complement


class OUE(UnaryProtocol):
    """Optimized unary encoding.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.

    >>> OUE(1024, epsilon=1).other_bit.numerator
    4961093570831980854
    """

    name: ClassVar[str] = "OUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return Dyadic.ceil_of(lambda e: 1 / (e + 1), self.epsilon)

    @property
    def true_bit(self) -> Dyadic:
        return Dyadic(WORD // 2)


@dataclass(frozen=True)
class THE(UnaryProtocol):
    """Threshold histogram encoding; without a threshold, the one with the smallest variance.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        threshold: Noisy bits above this are reported as set, from 1/2 to 1; the best one if None.

    >>> THE(64, epsilon=1).threshold
    Fraction(619, 1000)
    """

    name: ClassVar[str] = "THE"
    traits: ClassVar[Traits] = Traits(waived={"tight": "one threshold cannot use up the epsilon of both bits"})

    threshold: Fraction = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __init__(
            self, domain: DomainLike, epsilon: exact.Number, threshold: exact.Number | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.threshold is None:
            theta = best_threshold(float(exact.as_epsilon(self.epsilon)))
        else:
            theta = exact.short_number(exact.fraction(self.threshold, "the threshold"), "the threshold")
        if not Fraction(1, 2) <= theta <= 1:
            raise NumberError(f"the threshold lies between 1/2 and 1, not at {float(theta):.6g}")
        object.__setattr__(self, "threshold", theta)
        super().__post_init__()

    @cached_property
    def other_bit(self) -> Dyadic:
        return Dyadic.ceil_of(lambda s: 1 / (2 * s), self.epsilon * self.threshold / 2)

    @cached_property
    def true_bit(self) -> Dyadic:
        return Dyadic.floor_of(lambda s: 1 - 1 / (2 * s), self.epsilon * (1 - self.threshold) / 2)

    def parameters(self) -> dict[str, Any]:
        return {"threshold": exact.canonical(self.threshold)}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], 1, threshold="2/3")


def best_threshold(epsilon: float) -> Fraction:
    """The multiple of 1/1000 with the smallest variance; kept in the spec, so its rounding binds nobody."""

    def variance(thousandths: int) -> float:
        theta = thousandths / 1000
        p, q = 1 - math.exp(-epsilon * (1 - theta) / 2) / 2, math.exp(-epsilon * theta / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    return Fraction(min(range(501, 1001), key=variance), 1000)
