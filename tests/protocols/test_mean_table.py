"""A designed mean as a protocol: exact laws from the bytes, unbiased read-outs, honest error bars, refusals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable import design
from deniable.channels import Channel
from deniable.domains import Categories, Integers, Interval
from deniable.errors import ChannelError, DomainError, SpecError
from deniable.exact import as_epsilon, exp_at_least
from deniable.protocols import MeanTable, Table, load
from deniable.randomness import Simulation, exhaust

HOURS = Interval(0, 24, unit="hours")
THREE = Channel.from_integers([[5, 3, 1, 1], [3, 2, 2, 3], [1, 1, 3, 5]], 10, range(3), range(4))
VALUES = [-2, -1, 1, 2]


def law(protocol: MeanTable, number: float) -> dict[int, Fraction]:
    """The exact law of the output, rounding included, from the code that a device runs."""
    found = exhaust(lambda bits: protocol.report(number, bits)).law
    return {int.from_bytes(report, "little"): weight for report, weight in found.items()}


@pytest.mark.parametrize("epsilon", ["0.01", "1/2", 2, 5, 8])
def test_whole_reports_keep_epsilon_and_are_unbiased(epsilon: Any) -> None:
    """Every branch of the device's code, for numbers on positions, between them, beyond the ends."""
    protocol = Table(design.mean(epsilon, positions=3), domain=Interval(-10, 30))
    assert isinstance(protocol, MeanTable)
    numbers = (-1e300, -10.0, -7.25, 10.0, 29.999, 30.0, 31.0)
    laws = [law(protocol, number) for number in numbers]
    largest = max(one[y] / other[y] for one in laws for other in laws for y in range(len(protocol.outputs)))
    assert largest == protocol.ratio
    assert exp_at_least(as_epsilon(epsilon), largest)
    for number, found in zip(numbers, laws, strict=True):
        mean = sum(weight * protocol.contribution(y) for y, weight in found.items())
        assert abs(mean - Fraction(min(max(number, -10.0), 30.0))) < Fraction(40, 2**49)
        squares = sum(weight * protocol.contribution(y) ** 2 for y, weight in found.items())
        assert float(squares - mean**2) <= protocol.worst_variance(1) * (1 + 1e-9)
    assert laws[0] == laws[1]
    assert laws[-1] == laws[-2]


def test_the_worst_case_is_that_of_the_design_and_of_simulations() -> None:
    """4,000 people at the worst number, 400 runs: the standard deviation of a variance is 7 %, five of them 35 %."""
    found = design.mean(3, positions=9)
    protocol = MeanTable(found, HOURS)
    assert protocol.worst_variance(1) == pytest.approx(found.value * 144, rel=1e-9)
    places = np.linspace(0, 24, 1001)
    variances = [protocol.worth().variances([place])[0] for place in places]
    assert max(variances) == pytest.approx(protocol.worst_variance(1), rel=1e-4)
    worst = float(places[int(np.argmax(variances))])
    study = protocol.simulate([worst] * 4000, runs=400, seed=5)
    ratio = study.figures()[:, 0].var() / protocol.worst_variance(4000)
    assert 0.65 < ratio < 1.35
    assert abs(study.figures()[:, 0].mean() - worst) < 5 * protocol.worth(4000).noise / 20


@pytest.mark.parametrize(
    "people", ["spread", *(pytest.param(one, marks=pytest.mark.slow) for one in ("at one end", "at both ends"))]
)
def test_intervals_cover_the_mean_of_the_population(people: str) -> None:
    """300 runs at 95 %: fewer than 90 % would come once in 10,000."""
    protocol = MeanTable(design.mean(2, positions=5), HOURS)
    random, covered, alone, n = np.random.default_rng(8), 0, 0, 400
    for run in range(300):
        values = {
            "spread": lambda: 24 * random.beta(1, 3, n),
            "at one end": lambda: np.full(n, 24.0),
            "at both ends": lambda: 24.0 * random.integers(0, 2, n),
        }[people]()
        mean = protocol.estimate(protocol.tally(protocol.privatize(values, Simulation(run))))
        low, high = mean.interval()
        covered += low <= {"spread": 6.0, "at one end": 24.0, "at both ends": 12.0}[people] <= high
        low, high = mean.interval(population=False)
        alone += low <= values.mean() <= high
        assert mean.noise <= mean.stderr
    assert covered >= 270
    assert alone >= 270


def test_no_reports_one_report_and_what_is_no_number() -> None:
    protocol = MeanTable(THREE, HOURS, values=VALUES)
    nothing = protocol.estimate(protocol.empty())
    assert nothing.n == 0
    assert nothing.interval() == (0.0, 24.0)
    one = protocol.estimate(protocol.tally(protocol.privatize([3.0], Simulation(1))))
    assert one.n == 1
    assert math.isfinite(one.stderr)
    assert one.stderr >= protocol.worth(1).noise
    for wrong in (math.nan, math.inf, None, "secret", True):
        with pytest.raises(DomainError) as refused:
            protocol.report(wrong)
        assert "secret" not in str(refused.value)
    assert protocol.estimate(protocol.tally(protocol.privatize([99.0] * 500))).value > 12


def test_error_bounds_every_population() -> None:
    """The largest sum of noise and the people's own spread, found by trying two-point populations."""
    protocol = MeanTable(design.mean(2, positions=5), Interval(-1, 1))
    places = np.linspace(-1, 1, 81)
    squares = np.array([protocol.worth().variances([x])[0] + x**2 for x in places])
    largest = 0.0
    for share in np.linspace(0, 1, 21):
        second = share * squares[:, None] + (1 - share) * squares
        mean = share * places[:, None] + (1 - share) * places
        largest = max(largest, float((second - mean**2).max()))
    assert largest <= protocol.worth(1).error ** 2 * (1 + 1e-9)
    assert largest >= protocol.worth(1).error ** 2 * 0.999


def test_specs_and_refusals() -> None:
    protocol = MeanTable(THREE, HOURS, values=VALUES, certificate="0f" * 32)
    spec = json.loads(json.dumps(protocol.spec()))
    assert load(spec) == protocol
    assert MeanTable(THREE, Integers(0, 100), values=VALUES).domain == Integers(0, 100)
    with pytest.raises(ChannelError, match="biased"):
        MeanTable(THREE, HOURS, values=[-2, -1, 1, "2.0001"])
    with pytest.raises(ChannelError, match="biased"):
        load(spec | {"values": ["-2", "-1", "1", "3"]})
    with pytest.raises(ChannelError, match="state a larger one"):
        MeanTable(THREE, HOURS, 1, values=VALUES)
    with pytest.raises(ChannelError, match="values of its outputs"):
        MeanTable(THREE, HOURS)
    with pytest.raises(DomainError, match="needs numbers"):
        MeanTable(THREE, Categories(["a", "b", "c"]), values=VALUES)
    for changed in (
        {"rows": [["1", "2"], ["1"]]},
        {"rows": "1"},
        {"values": [1, 2]},
        {"values": ["1", "2"]},
        {"certificate": "x"},
        {"more": 1},
        {"rows": [["-5", "3", "1", "11"], ["3", "2", "2", "3"], ["1", "1", "3", "5"]]},
        {"rows": [["5", "3", "1", "1"], ["3", "2", "2", "4"], ["1", "1", "3", "5"]]},
    ):
        with pytest.raises((SpecError, ChannelError)):
            load(spec | changed)
