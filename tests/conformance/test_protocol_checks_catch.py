"""Known ways to get a protocol wrong, most of them found in published packages: each is caught by a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.protocols import GRR, OUE, Estimate, SubsetSelection, Tally
from deniable.randomness import Bits
from tests.conformance import protocol_checks as checks
from tests.conformance.protocol_registry import ProtocolCase


def caught(check: Any, case: ProtocolCase, reason: str | None = None) -> None:
    with pytest.raises(AssertionError, match=reason):
        check(case)


@dataclass(frozen=True)
class TrueValueFirst(SubsetSelection):
    """Puts the true answer at the head of the list instead of sorting."""

    def _one(self, value: int, bits: Bits) -> bytes:
        members = list(super()._one(value, bits))
        return bytes([value] + [m for m in members if m != value]) if value in members else bytes(members)


def test_an_order_that_gives_the_answer_away() -> None:
    case = ProtocolCase("true value first", lambda e: TrueValueFirst(20, e, subset_size=2))
    caught(checks.check_level, case, "stated ratio")


@dataclass(frozen=True)
class LastBitPlain(OUE):
    """Never randomizes its last bit."""

    def _one(self, value: int, bits: Bits) -> bytes:
        row = super()._one(value, bits)[0] & 0b011
        return bytes([row | (0b100 if value == 2 else 0)])


def test_a_bit_that_is_never_randomized() -> None:
    case = ProtocolCase("last bit plain", lambda e: LastBitPlain(3, e))
    caught(checks.check_level, case, "stated ratio")
    caught(checks.check_positions, case, "gives answer")


@dataclass(frozen=True)
class TrueBitKept(OUE):
    """Forgets to reset the true bit: its chance is q + (1 - q) / 2."""

    def _one(self, value: int, bits: Bits) -> bytes:
        row = bits.packed(self.other_bit, self.domain.size)
        if bits.bernoulli(self.true_bit):
            row[0] |= np.uint8(1 << value)
        return row.tobytes()


def test_a_true_bit_that_is_not_reset() -> None:
    case = ProtocolCase("true bit kept", lambda e: TrueBitKept(3, e))
    caught(checks.check_level, case, "stated ratio")
    caught(checks.check_law, case, "another law")


def test_a_level_above_the_one_asked_for() -> None:
    @dataclass(frozen=True)
    class Greedy(GRR):
        @property
        def response(self) -> Any:  # type: ignore[override]
            return replace(super().response, keep=type(super().response.keep)(super().response.keep.numerator + 10))

    caught(checks.check_level, ProtocolCase("greedy", lambda e: Greedy(3, e)), "exceeded")


@dataclass(frozen=True)
class OtherBatches(GRR):
    """Batches at another level than single reports."""

    def _many(self, values: Any, bits: Bits) -> Any:
        return GRR(self.domain, self.epsilon * Fraction(102, 100))._many(values, bits)


def test_batches_that_differ_from_single_reports() -> None:
    caught(checks.check_law, ProtocolCase("other batches", lambda e: OtherBatches(3, e)), "another law")


@dataclass(frozen=True)
class NominalQ(OUE):
    """An estimator that uses the textbook's probability instead of the realized one, here off by a lot."""

    def _estimate(self, tally: Tally) -> Estimate:
        good = super()._estimate(tally)
        return replace(good, counts=good.counts + 0.001 * tally.n)


def test_a_biased_estimator() -> None:
    caught(checks.check_unbiased, ProtocolCase("biased", lambda e: NominalQ(3, e)), "biased")


@dataclass(frozen=True)
class Clipping(GRR):
    """Clips behind the user's back."""

    def _estimate(self, tally: Tally) -> Estimate:
        good = super()._estimate(tally)
        return replace(good, counts=np.maximum(good.counts, 0))


def test_an_estimator_that_clips() -> None:
    caught(checks.check_unbiased, ProtocolCase("clipping", lambda e: Clipping(3, e)))


@dataclass(frozen=True)
class Bragging(GRR):
    """Claims a smaller variance."""

    def variance(self, n: int, frequency: Any = 0.0, population: bool = True) -> Any:
        return 0.9 * super().variance(n, frequency, population)


def test_a_variance_that_is_too_small() -> None:
    caught(checks.check_unbiased, ProtocolCase("bragging", lambda e: Bragging(3, e)), "variance")


@dataclass(frozen=True)
class Lenient(GRR):
    """Counts reports that no device sends."""

    def _valid(self, reports: Any) -> Any:
        return np.ones(len(reports), dtype=bool)


def test_malformed_reports_that_pass() -> None:
    caught(checks.check_refusals, ProtocolCase("lenient", lambda e: Lenient(3, e)), "wrong about a report")


@dataclass(frozen=True)
class Forgetful(SubsetSelection):
    """Leaves the subset size out of its spec."""

    def parameters(self) -> dict[str, Any]:
        return {}


def test_a_spec_that_leaves_something_out() -> None:
    with pytest.raises(ValueError, match="canonical"):
        checks.check_identity(ProtocolCase("forgetful", lambda e: Forgetful(20, e, subset_size=2)))


@dataclass(frozen=True)
class Averaging(GRR):
    """A tally that does not add up."""

    def _count(self, reports: Any) -> Any:
        return super()._count(reports) // 2


def test_a_tally_that_does_not_add_up() -> None:
    caught(checks.check_monoid, ProtocolCase("averaging", lambda e: Averaging(3, e)))
