"""A check that could not fail is no check: each one meets a mechanism that it must catch."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable import channels as ch
from deniable.channels import Channel
from deniable.channels.inference import invert
from deniable.conformance import channels as checks
from deniable.conformance.channels import MECHANISMS, SAMPLERS, Mechanism
from deniable.errors import LabelError
from deniable.randomness import Bits, Simulation

BY_NAME = {mechanism.name: mechanism for mechanism in MECHANISMS}
GOOD = BY_NAME["randomized response, 3 values"]


def caught(check: Any, mechanism: Mechanism, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check(mechanism)


def test_a_row_that_does_not_sum_to_one() -> None:
    def build(epsilon: Fraction) -> Channel:
        channel = ch.warner(epsilon)
        broken = channel.numerators.copy()
        broken[1, 1] += 1
        channel.__dict__["numerators"] = broken
        return channel

    caught(checks.check_rows, Mechanism("broken", build), "sum to one")


def test_a_level_that_is_exceeded_by_a_hair() -> None:
    worse = replace(GOOD, build=lambda e: ch.randomized_response(3, e + Fraction(1, 10**12)))
    caught(checks.check_level, worse, "exceeded")


def test_a_zero_beside_a_non_zero() -> None:
    caught(checks.check_level, Mechanism("identity", lambda e: Channel(np.eye(3))), "exceeded")


def test_a_level_that_is_wasted() -> None:
    timid = replace(GOOD, build=lambda e: ch.randomized_response(3, e - Fraction(1, 10**6)))
    caught(checks.check_level, timid, "falls short")


@pytest.mark.parametrize("factor", ["0.98", "1.02"])
def test_a_sampler_at_another_level(factor: str) -> None:
    off = replace(
        GOOD,
        many=lambda built, xs, bits: ch.randomized_response(3, Fraction(factor)).sample_indices(xs, bits),
    )
    caught(checks.check_law, off, "another law")


def test_a_sampler_without_end_at_another_level() -> None:
    good = SAMPLERS[0]
    off = replace(good, draw=lambda e, n, bits: good.draw(e * Fraction(102, 100), n, bits))
    with pytest.raises(AssertionError, match="another law"):
        checks.check_sampler(off)


def test_a_test_without_power() -> None:
    # A mechanism that ignores epsilon cannot be told from itself at another level.
    deaf = replace(GOOD, many=lambda built, xs, bits: GOOD.build(Fraction(1)).sample_indices(xs, bits))
    caught(checks.check_law, deaf, "cannot tell")


def test_an_input_that_is_never_randomized() -> None:
    def one(built: Channel, x: int, bits: Bits) -> int:
        return 2 if x == 2 else built.sample_index(x, bits)

    caught(checks.check_enumeration, replace(GOOD, one=one), "input 2 is drawn from another law")


def test_a_float_threshold_in_the_sampler() -> None:
    # Right to 53 bits: no statistic would see it, the enumeration does.
    def one(built: Channel, x: int, bits: Bits) -> int:
        law = ch.RandomizedResponse.at(3, 1)
        kept = bits.bernoulli(type(law.keep)(int(float(law.keep) * 2.0**64)))
        return x if kept else bits.integers(3)

    caught(checks.check_enumeration, replace(GOOD, one=one), "another law")


def test_reports_that_repeat() -> None:
    seeded = replace(GOOD, many=lambda built, xs, bits: built.sample_indices(xs, Simulation(1)))
    caught(checks.check_fresh, seeded, "same reports")


def test_answers_outside_the_domain() -> None:
    lenient = replace(GOOD, many=lambda built, xs, bits: xs % 3)
    caught(checks.check_refusals, lenient, "accepted")


def test_a_message_that_gives_the_answer_away() -> None:
    def many(built: Channel, xs: Any, bits: Bits) -> Any:
        raise LabelError(f"{xs[0]} is not an answer")

    caught(checks.check_refusals, replace(GOOD, many=many), "repeats the answer")


def test_a_batch_that_burns_a_word() -> None:
    def many(built: Channel, xs: Any, bits: Bits) -> Any:
        out = built.sample_indices(xs, bits)
        bits.word()
        return out

    caught(checks.check_order, replace(GOOD, many=many), "leaves the stream")


def test_an_estimator_that_clips() -> None:
    def clipping(channel: Channel, counts: Any) -> Any:
        return invert(channel, counts, project="clip")

    with pytest.raises(AssertionError, match="biased"):
        checks.check_unbiased(GOOD, clipping)


def test_a_spec_that_forgets_the_labels() -> None:
    class Forgetful(Channel):
        def spec(self) -> dict[str, Any]:
            return super().spec() | {"inputs": [0, 1]}

    broken = Mechanism("broken", lambda e: Forgetful(ch.warner(e).rows, ["yes", "no"], ["yes", "no"]))
    caught(checks.check_identity, broken, "another one")


def test_a_fingerprint_that_ignores_epsilon() -> None:
    caught(checks.check_identity, replace(GOOD, build=lambda e: ch.warner(1)), "share a fingerprint")


def test_copies_that_differ() -> None:
    class Odd(Channel):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None  # type: ignore[assignment]

    caught(checks.check_value_object, Mechanism("broken", lambda e: Odd(ch.warner(e).rows)), "not equal")
