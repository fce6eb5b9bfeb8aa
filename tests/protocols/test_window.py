"""The mean of a number: exactly unbiased, exactly private, with the worst cases that are promised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable import design
from deniable.domains import Categories, Integers, Interval
from deniable.errors import DomainError, NumberError
from deniable.protocols import MeanTable, OneBitMean, Window, load
from deniable.protocols.numeric.window import best_window
from deniable.randomness import Simulation, exhaust
from deniable.results import quantile
from tests.randomness.scripted import Scripted

UNIT = Interval(-1, 1)

# Worst-case variances of one report on [-1, 1], and of the hybrid mechanism (Wang et al. 2019).
WORST = {0.5: 16.671, 1: 4.683, 1.5: 1.936, 2: 1.000, 2.5: 0.598, 3: 0.372, 4: 0.159, 5: 0.0729, 6: 0.0347, 8: 0.00838}


def hybrid(epsilon: float) -> float:
    odds, root = math.exp(epsilon), math.exp(epsilon / 2)
    return (root + 3) / (3 * root * (root - 1)) + (odds + 1) ** 2 / (root * (odds - 1) ** 2)


def law(protocol: Window, number: float) -> dict[int, Fraction]:
    """The exact law of the output, rounding included, from the code that a device runs."""
    found = exhaust(lambda bits: protocol.report(number, bits)).law
    return {int.from_bytes(report, "little"): weight for report, weight in found.items()}


@pytest.mark.parametrize(
    "protocol",
    [
        Window(Interval(0, 1), 1, positions=3, width=2),
        Window(Interval("-1/3", "7/2"), 2, positions=5, width=3),
        Window(Integers(0, 4), 1, positions=5, width=2),
        OneBitMean(UNIT, 1),
    ],
    ids=["0 to 1", "fractions", "integers", "one bit"],
)
def test_the_mean_is_unbiased_by_enumeration(protocol: Window) -> None:
    """At the positions exactly; between them up to the 53 bits of random rounding."""
    channel = protocol.channel()
    assert channel.ratio == protocol.ratio
    assert channel.epsilon <= float(protocol.epsilon)
    for x in channel.inputs:
        weights = {int.from_bytes(bytes.fromhex(str(y)), "little"): channel.probability(x, y) for y in channel.outputs}
        assert sum(weight * protocol.contribution(y) for y, weight in weights.items()) == x
    if isinstance(protocol.domain, Interval):
        low, high = protocol.domain.ends
        for share in (0.0, 0.1, 0.37, 0.5, 0.99, 1.0):
            number = low + share * (high - low)
            mean = sum(weight * protocol.contribution(y) for y, weight in law(protocol, number).items())
            assert abs(mean - Fraction(number)) < Fraction(high - low) / 2**49


def test_the_law_of_whole_reports_keeps_the_ratio() -> None:
    """Over numbers between the positions, and outside of the interval, rounding included."""
    protocol = Window(Interval(0, 10), 1, positions=4, width=2)
    laws = [law(protocol, number) for number in (-3.0, 0.0, 1.7, 5.0, 9.999, 10.0, 1e300)]
    largest = max(one[y] / other[y] for one in laws for other in laws for y in one)
    assert largest == protocol.ratio
    assert laws[0] == laws[1]
    assert laws[-1] == laws[-2]


def test_worst_cases_are_those_of_the_literature_and_below_the_hybrid_mechanism() -> None:
    for epsilon, worst in WORST.items():
        found = Window(UNIT, epsilon).worst_variance(1)
        assert found == pytest.approx(worst, rel=2e-3)
        assert found <= OneBitMean(UNIT, epsilon).worst_variance(1) * (1 + 1e-12)
    for epsilon, ratio in ((3, 0.86), (5, 0.60), (8, 0.34)):
        assert Window(UNIT, epsilon).worst_variance(1) / hybrid(epsilon) == pytest.approx(ratio, abs=0.006)
    assert [best_window(float(e)) for e in (1, 2, 3, 4, 5)] == [(2, 1), (3, 1), (6, 2), (10, 3), (22, 5)]


@pytest.mark.parametrize("epsilon", [1, 3])
def test_no_number_has_a_larger_variance_than_the_worst_case(epsilon: int) -> None:
    protocol = Window(UNIT, epsilon)
    squares = np.array([float(protocol.contribution(y)) ** 2 for y in range(protocol.outputs)])
    variances = []
    for number in np.linspace(-1, 1, 41):
        weights = law(protocol, float(number))
        variances.append(sum(float(weights.get(y, 0)) * squares[y] for y in range(protocol.outputs)) - number**2)
    assert max(variances) <= protocol.worst_variance(1) * (1 + 1e-9)
    assert max(variances) >= 0.97 * protocol.worst_variance(1)


def test_single_and_bulk_reports_have_one_law() -> None:
    """Chi-square at 1e-6; with twice the epsilon it fails by far."""
    from scipy.stats import chi2

    protocol = Window(Interval(0, 1), 1, positions=3, width=2)
    n = 40_000
    weights = law(protocol, 0.3)
    expected = n * np.array([float(weights[y]) for y in range(protocol.outputs)])
    limit = chi2.ppf(1 - 1e-6, protocol.outputs - 1)
    many = protocol.tally(protocol.privatize([0.3] * n, Simulation(3))).counts
    assert ((many - expected) ** 2 / expected).sum() < limit
    other = Window(Interval(0, 1), 2, positions=3, width=2)
    wrong = other.tally(other.privatize([0.3] * n, Simulation(3))).counts
    assert ((wrong - expected) ** 2 / expected).sum() > 3 * limit


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(2, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("people", ["spread", "at one end", "at both ends"])
def test_intervals_cover_the_mean_of_the_population(epsilon: float, people: str) -> None:
    """400 runs at 95 %: fewer than 90.5 % would come once in 10,000; of half of the error about 67 % would be left."""
    protocol = Window(Interval(0, 24, unit="hours"), epsilon)
    random, covered, narrow, runs, n = np.random.default_rng(8), 0, 0, 400, 500
    means = {"spread": 24 * 0.25, "at one end": 24.0, "at both ends": 12.0}
    for run in range(runs):
        values = {
            "spread": lambda: 24 * random.beta(1, 3, n),
            "at one end": lambda: np.full(n, 24.0),
            "at both ends": lambda: 24.0 * random.integers(0, 2, n),
        }[people]()
        mean = protocol.estimate(protocol.tally(protocol.privatize(values, Simulation(run))))
        low, high = mean.interval(0.95)
        covered += low <= means[people] <= high
        narrow += abs(mean.value - means[people]) <= 0.98 * mean.stderr
    assert covered >= 0.905 * runs
    assert narrow < 0.8 * runs
    assert mean.unit == "hours"
    assert mean.noise <= mean.stderr <= protocol.worth(n).error * 1.2


def test_what_the_planner_promises_is_what_comes_out() -> None:
    from deniable.planning import plan

    made = plan(Interval(0, 24, unit="hours"), epsilon=2, within=0.5)
    protocol = made.best
    z = quantile(0.95)
    assert z * protocol.worth(made.n).error <= 0.5 < z * protocol.worth(made.n - 1).error
    assert "24 hours" in str(made)


def test_numbers_are_clipped_and_refusals_do_not_quote() -> None:
    protocol = OneBitMean(Interval(0, 1), 1)
    for wrong in ("7391", True, None, float("nan"), float("inf"), [1, 2]):
        with pytest.raises(DomainError) as refused:
            protocol.report(wrong)
        assert "7391" not in str(refused.value)
    assert protocol.privatize([5, -3.5, 10**400]).width == 1
    with pytest.raises(DomainError, match="needs numbers"):
        Window(Categories(["a", "b"]), 1)
    with pytest.raises(NumberError, match="give both or none"):
        Window(UNIT, 1, positions=3)
    with pytest.raises(NumberError, match="two positions"):
        OneBitMean(UNIT, 1, 3, 1)  # type: ignore[call-arg]


def test_specs_are_read_back() -> None:
    for protocol in (Window(Interval(0, "7/2", "km"), 2), OneBitMean(Integers(0, 100), "1/2")):
        assert load(protocol.spec()) == protocol
        assert load(protocol.spec()).fingerprint == protocol.fingerprint


def test_a_mean_is_a_table_in_every_form() -> None:
    protocol = Window(Interval(0, 24, unit="hours"), 2)
    mean = protocol.estimate(protocol.tally(protocol.privatize([7.0] * 2000, Simulation(1))))
    (row,) = mean.rows()
    assert row["unit"] == "hours"
    assert row["low"] < row["value"] < row["high"]
    assert mean.to_dict()["kind"] == "mean"
    assert "mean, hours" in str(mean)
    assert "<td>mean</td>" in mean._repr_html_()
    change = mean - mean
    assert change.value[0] == 0
    assert change.p_value == 1
    forged = protocol.tally(protocol.privatize([24.0] * 2000, Simulation(1))).counts
    assert not mean.misfit.suspicious
    assert protocol.misfit(type(protocol.empty())(protocol.fingerprint, 2000, [2000, 0, 0])).suspicious
    assert forged.sum() == 2000


def test_the_picture_of_a_mean_is_a_point_on_the_scale_of_the_answers() -> None:
    """A bar from zero says nothing about degrees from -40 to -10."""
    pytest.importorskip("matplotlib").use("agg")
    cold = Window(Interval(-40, -10, unit="degrees"), 4)
    mean = cold.estimate(cold.tally(cold.privatize([-20.0] * 4000, Simulation(1))))
    ax = mean.plot(level=0.9)
    assert not ax.patches
    (point,) = ax.lines
    assert point.get_ydata()[0] == mean.value
    (whisker,) = ax.collections[0].get_segments()
    assert tuple(whisker[:, 1]) == mean.interval(0.9)
    assert ax.get_ylim() == pytest.approx((-40.6, -9.4))
    assert ax.get_ylabel() == "mean, degrees"


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_mechanisms_of_the_literature_are_windows(epsilon: float) -> None:
    """Their published worst cases, which a grid of 1,025 positions meets within a percent."""
    s, odds = math.exp(epsilon / 2), math.exp(epsilon)
    piecewise = 1 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    assert Window.piecewise(UNIT, epsilon).worst_variance(1) == pytest.approx(piecewise, rel=0.01)
    assert OneBitMean(UNIT, epsilon).worst_variance(1) == pytest.approx(((odds + 1) / (odds - 1)) ** 2, rel=1e-9)
    three = Window.three_output(UNIT, epsilon)
    assert (three.positions, three.width, three.outputs) == (3, 1, 3)
    wave = Window.square_wave(Interval(0, 1), epsilon)
    half = {0.5: 0.358155425, 1: 0.256082938, 2: 0.129337067, 4: 0.030427704}[epsilon]
    assert wave.read == "distribution"
    assert wave.width / (2 * wave.positions) == pytest.approx(half, abs=0.5 / 1024)


def test_many_numbers_are_rounded_by_16_bits_and_ties_by_the_rest() -> None:
    """At the boundary of a fraction of 53 bits: the word below it rounds up, the word at it does not."""
    window = Window(Interval(0, 1), 1, positions=2, width=1)
    number = 0.3
    fraction = math.floor(number * 2**53)
    first, rest = fraction >> 37, fraction & (1 << 37) - 1
    drawn = np.array([first - 1, first + 1, first, first], dtype="<u2")
    bits = Scripted(drawn, np.array([(rest - 1) << 27, rest << 27], dtype="<u8"))
    assert window._rounded_many(np.full(4, number), bits).tolist() == [1, 0, 1, 0]
    assert not bits.items
    assert window._rounded_many(np.array([0.0, 1.0]), Scripted(np.zeros(2, "<u2"), np.zeros(2, "<u8"))).tolist() == [
        0,
        1,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3", "4", "5"])
@pytest.mark.parametrize("kind", ["best window", "one bit", "piecewise", "square wave", "three outputs", "designed"])
def test_the_worst_variance_is_that_of_simulated_reports(kind: str, epsilon: str) -> None:
    """400,000 reports of the worst number: their contributions spread as in theory, within 5 standard errors."""
    interval = Interval(-1, 1)
    made = {
        "best window": lambda: Window(interval, epsilon),
        "one bit": lambda: OneBitMean(interval, epsilon),
        "piecewise": lambda: Window.piecewise(interval, epsilon),
        "square wave": lambda: Window(interval, epsilon, 257, Window.square_wave(interval, epsilon, 257).width),
        "three outputs": lambda: Window.three_output(interval, epsilon),
        "designed": lambda: MeanTable(design.mean(epsilon, positions=9), interval),
    }[kind]()
    numbers = np.linspace(-1, 1, 401)
    each = np.array([made.worth().variances([number])[0] for number in numbers])
    assert each.max() <= made.worst_variance(1) * (1 + 1e-12)
    assert each.max() > made.worst_variance(1) * 0.999
    worst = float(numbers[each.argmax()])
    reports = made.privatize(np.full(400_000, worst), Simulation(3))
    counts = made.tally(reports).counts
    given = np.array([float(made.contribution(output)) for output in range(counts.size)])
    spread = (np.repeat(given, counts) - worst) ** 2
    assert abs(spread.mean() - each.max()) < 5 * spread.std() / math.sqrt(spread.size) + 1e-9 * each.max()
