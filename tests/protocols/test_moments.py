"""Variance of a number and correlation of two: unbiased by enumeration, honest error bars, exact privacy."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from deniable.domains import Integers, Interval
from deniable.errors import DomainError, NumberError, SpecError
from deniable.protocols import GRR, Moments, OneBitMean, Tally, Window, load
from deniable.randomness import Simulation, exhaust
from tests.documents import rows_of

HOURS = Interval(0, 24, unit="hours")
WHOLE, POSITIVE = Interval(-1, 1), Interval(0, 1)
TWO = {"a": Interval(0, 1), "b": Interval(-4, 4)}


def small(domain: Any) -> Moments:
    bit, square = OneBitMean(WHOLE, 1), OneBitMean(POSITIVE, 1)
    one = isinstance(domain, Interval)
    return Moments.of(domain, [bit, square] if one else [bit, bit, square, square, bit])


def outcomes(protocol: Any, number: float, people: int) -> Iterator[tuple[Fraction, np.ndarray[Any, Any]]]:
    """All tallies of so many people with one number, with their probabilities."""
    law = exhaust(lambda bits: protocol.report(number, bits)).law
    chances = [law.get(bytes([y]), Fraction(0)) for y in range(protocol.law().forms)]
    for counts in product(range(people + 1), repeat=protocol.law().forms):
        if sum(counts) == people:
            ways = math.factorial(people) // math.prod(math.factorial(c) for c in counts)
            chance = Fraction(ways)
            for c, p in zip(counts, chances, strict=True):
                chance *= p**c
            yield chance, np.array(counts)


def tally(protocol: Moments, counts: list[Any]) -> Tally:
    people = [int(one.sum()) for one in counts]
    return Tally(protocol.fingerprint, sum(people), np.concatenate([people, *counts]))


def test_the_variance_is_unbiased_by_enumeration() -> None:
    """Of people with one number each group's reports are all listed: the variance of equal numbers is zero on average.

    And of people at both ends, where each group's law is the mixture of both.
    """
    protocol = small(HOURS)
    first, second = (group.protocol for group in protocol.groups)
    number = 7.0
    u = 2 * number / 24 - 1
    total = Fraction(0)
    for chance, one in outcomes(first, u, 3):
        for other_chance, other in outcomes(second, u * u, 2):
            found = protocol.estimate(tally(protocol, [one, other]))
            total += chance * other_chance * Fraction(found["variance"].value)
    assert abs(float(total)) < 1e-9
    # Half of the people at each end: the one-bit law of the mixture is that of the middle, and u^2 is 1 for all.
    total = Fraction(0)
    for chance, one in outcomes(first, 0.0, 3):
        for other_chance, other in outcomes(second, 1.0, 2):
            total += (
                chance * other_chance * Fraction(protocol.estimate(tally(protocol, [one, other]))["variance"].value)
            )
    assert float(total) == pytest.approx(144, abs=1e-6)


def test_the_covariance_is_unbiased_by_enumeration() -> None:
    """Of the product and both means, with two people in each of the three groups."""
    protocol = small(TWO)
    bit: Any = protocol.groups[0].protocol
    u, v = 0.5, -0.25
    total = Fraction(0)
    laws = [list(outcomes(bit, figure, 2)) for figure in (u, v, u * v)]
    for (p, one), (q, other), (r, both) in product(*laws):
        a, b, ab = (
            sum(bit.contribution(y) * int(c) for y, c in enumerate(counts)) / 2 for counts in (one, other, both)
        )
        total += p * q * r * (ab - a * b)
    assert abs(float(total)) < 1e-12
    # A product of means of the same people is not unbiased: the test can fail.
    same = sum(p * (sum(bit.contribution(y) * int(c) for y, c in enumerate(one)) / 2) ** 2 for p, one in laws[0])
    assert abs(float(same) - u * u) > 0.1


def test_reports_keep_epsilon_whatever_the_numbers() -> None:
    protocol = Moments.of(HOURS, [Window(WHOLE, 1, 3, 2), OneBitMean(POSITIVE, 1)], [2, 1])
    laws = [exhaust(lambda bits, x=x: protocol.report(x, bits)).law for x in (-5.0, 0.0, 3.3, 12.0, 23.9, 24.0)]
    largest = max(one[report] / other[report] for one in laws for other in laws for report in one)
    assert largest <= protocol.ratio
    assert largest == max(group.protocol.ratio for group in protocol.groups)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 3])
def test_intervals_cover_variance_and_correlation(epsilon: int) -> None:
    """250 runs at 95 %: fewer than 223 would come once in 10,000 times; of a third shorter intervals, 81 % hold."""
    random = np.random.default_rng(3)
    both = Moments({"a": Interval(0, 10), "b": Interval(-5, 5)}, epsilon)
    covered = np.zeros(both.worth().tests)
    n = 20_000
    for run in range(250):
        a = random.uniform(0, 10, n)
        b = np.clip(0.4 * (a - 5) + random.normal(0, 1.2, n), -5, 5)
        found = both.estimate(both.tally(both.privatize({"a": a, "b": b}, Simulation(run)))).table()
        if run == 0:
            big = random.uniform(0, 10, 10**6)
            truth = both.worth().truth({"a": big, "b": np.clip(0.4 * (big - 5) + random.normal(0, 1.2, 10**6), -5, 5)})
        covered += (found.low <= truth) & (truth <= found.high)
    assert (covered >= 223).all(), covered


def test_few_people_and_what_cannot_be_told() -> None:
    protocol = small(HOURS)
    nothing = protocol.estimate(protocol.empty())
    assert nothing.n == 0
    assert [row["value"] for row in rows_of(nothing.to_dict())] == [None] * 3
    one = protocol.estimate(protocol.tally(protocol.privatize([3.0], Simulation(1))))
    assert math.isnan(one["variance"].value)
    assert any("too few" in note for note in one.notes)
    two = small(TWO)
    alike = two.estimate(two.tally(two.privatize([{"a": 0.5, "b": 0.0}] * 400, Simulation(2))))
    assert alike["correlation"].interval()[0] >= -1e9
    with pytest.raises(DomainError):
        protocol.report(math.nan)


def test_specs_and_refusals() -> None:
    for protocol in (small(HOURS), small(TWO), Moments(HOURS, 2, people=5000)):
        assert load(json.loads(json.dumps(protocol.spec()))) == protocol
    for wrong in (Integers(0, 5), {"a": HOURS}, {"a": HOURS, "b": Integers(0, 3)}):
        with pytest.raises(DomainError):
            Moments(wrong, 1)
    with pytest.raises(NumberError):
        Moments(HOURS, 1, people=0)
    bit, square = OneBitMean(WHOLE, 1), OneBitMean(POSITIVE, 1)
    for groups in ([bit], [bit, bit], [square, bit], [bit, GRR(2, 1)]):
        with pytest.raises(SpecError):
            Moments.of(HOURS, groups)
    with pytest.raises(SpecError, match="weight"):
        Moments.of(HOURS, [bit, square], [1])
