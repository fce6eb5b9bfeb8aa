"""Simulated tallies have the law of privatized and tallied reports."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deniable.conformance.checks import ALPHA, accepts
from deniable.domains import Integers, Interval
from deniable.errors import DomainError, NumberError, ShapeError
from deniable.protocols import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    THE,
    Attributes,
    HadamardResponse,
    OneBitMean,
    SubsetSelection,
    Window,
)
from deniable.protocols.tally import _by_reports, _in_order, even_columns
from deniable.randomness import Simulation
from tests.memory import memory_below

EXACT = [
    (GRR, {}),
    (SUE, {}),
    (OUE, {}),
    (THE, {}),
    (HadamardResponse, {"blocks": 1}),
    (HadamardResponse, {"blocks": 2}),
    (HadamardResponse, {"blocks": 4}),
]


def law_of_tally(protocol, truth):
    """The exact joint law of the tally of a few people, from the enumerated channel."""
    channel = protocol.channel()
    forms = [np.frombuffer(bytes.fromhex(form), dtype=np.uint8).reshape(1, -1) for form in channel.outputs]
    tallies = [tuple(protocol.count(form).tolist()) for form in forms]
    law = {(0,) * protocol.tally_size: Fraction(1)}
    for answer in np.repeat(np.arange(truth.size), truth):
        row = [Fraction(int(weight), channel.denominator) for weight in channel.numerators[answer]]
        following: dict[tuple[int, ...], Fraction] = {}
        for total, chance in law.items():
            for tally, weight in zip(tallies, row, strict=True):
                key = tuple(a + b for a, b in zip(total, tally, strict=True))
                following[key] = following.get(key, Fraction(0)) + chance * weight
        law = following
    return law


@pytest.mark.parametrize(("kind", "options"), EXACT)
def test_the_joint_law_is_that_of_enumerated_reports(kind, options):
    # Chi-square over whole tallies, so dependence between counters counts too; false alarms 1e-6.
    size = 3 if kind is not HadamardResponse or options["blocks"] < 4 else 4
    truth = np.array([2, 0, 1, 0])[:size]
    protocol = kind(size, 1, **options)
    law = law_of_tally(protocol, truth)
    # At most three people, and so counts below four: a tally is a number of digits to the base four.
    digits = 4 ** np.arange(protocol.tally_size)
    chances = np.zeros(4**protocol.tally_size)
    chances[np.array(list(law)) @ digits] = [float(chance) for chance in law.values()]
    study = protocol.simulate(counts=truth, runs=40_000, seed=1)
    assert study.exact
    assert accepts(np.bincount(study.tallies @ digits, minlength=chances.size), chances)
    # The same test refuses the same protocol at a slightly different level.
    for level in ("0.8", "1.2"):
        wrong = kind(size, level, **options).simulate(counts=truth, runs=40_000, seed=1)
        assert not accepts(np.bincount(wrong.tallies @ digits, minlength=chances.size), chances)


def moments_agree(a, b):
    """Means and covariances of two sets of runs, each entry at a share of the false-positive rate."""
    centred_a, centred_b = a - a.mean(axis=0), b - b.mean(axis=0)
    pairs_a = (centred_a[:, :, None] * centred_a[:, None, :]).reshape(len(a), -1)
    pairs_b = (centred_b[:, :, None] * centred_b[:, None, :]).reshape(len(b), -1)
    x, y = np.hstack([a, pairs_a]), np.hstack([b, pairs_b])
    error = np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y))
    z = np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.maximum(error, 1e-9)
    return bool((z <= stats.norm.isf(ALPHA / 2 / z.size)).all())


@pytest.mark.parametrize(("kind", "options"), EXACT)
def test_moments_agree_with_reports_for_more_people(kind, options):
    truth = np.array([60, 5, 0, 30, 20, 0, 11])
    protocol = kind(7, 1.5, **options)
    drawn = protocol.simulate(counts=truth, runs=4000, seed=2).tallies
    bits = Simulation(3)
    counted = np.stack([_by_reports(protocol, _in_order(truth, 1 << 20), bits) for _ in range(1500)])
    assert moments_agree(drawn, counted)
    # Counters drawn from their own laws, but independently of each other, or other people: both are seen.
    if kind is GRR:
        shuffled = np.random.default_rng(0).permuted(drawn, axis=0)
        assert not moments_agree(shuffled, counted)
    assert not moments_agree(protocol.simulate(counts=truth[::-1], runs=4000, seed=2).tallies, counted)


def test_even_columns_are_uniform_among_the_even_ones():
    for row in range(1, 8):
        people = np.zeros(8, dtype=np.int64)
        people[row] = 80_000
        picked = even_columns(people, np.random.default_rng(row))
        even = np.array([(row & column).bit_count() % 2 == 0 for column in range(8)])
        assert accepts(picked, even / even.sum())
        assert picked.sum() == 80_000


@pytest.mark.parametrize("kind", [OLH, BLH, SubsetSelection])
def test_the_others_draw_reports_and_say_so(kind):
    truth = np.array([200, 100, 0, 3])
    study = kind(4, 1).simulate(counts=truth, runs=3, seed=4)
    assert not study.exact
    assert "every report" in study.method
    assert len({tuple(row) for row in study.tallies.tolist()}) == 3
    np.testing.assert_array_equal(study.tallies, kind(4, 1).simulate(counts=truth, runs=3, seed=4).tallies)


def test_blocks_of_people_make_one_tally(monkeypatch):
    protocol = SubsetSelection(5, 1)
    monkeypatch.setattr("deniable.protocols.tally._BLOCK_BYTES", 60)
    tally = protocol.simulate(counts=np.array([3, 0, 4, 1, 0]), seed=1).tallies[0]
    assert tally.sum() == 8 * protocol.subset_size
    one = protocol.simulate(counts=np.array([0, 0, 1, 0, 0])).tallies[0]
    assert one.sum() == protocol.subset_size


def test_a_billion_people_are_drawn_without_their_reports():
    truth = np.full(1024, 1_000_000)
    truth[7] = 5_000_000
    for kind in (GRR, OUE, HadamardResponse):
        protocol = kind(1024, 2)
        with memory_below(10_000_000):
            study = protocol.simulate(counts=truth, runs=1)
        error = study.figures()[0] * study.n - truth
        z = error / np.sqrt(protocol.variance(study.n, truth / study.n, population=False))
        assert np.mean(z**2) == pytest.approx(1, abs=0.25)  # 1024 terms: standard error 0.044


def test_estimates_and_single_tallies():
    protocol = GRR(["a", "b", "c"], 1)
    study = protocol.simulate(counts=[50, 30, 20], runs=5, seed=9)
    assert len(study) == 5
    assert study.n == 100
    np.testing.assert_allclose(study.truth, [0.5, 0.3, 0.2])
    assert study.figures().shape == (5, 3)
    np.testing.assert_array_equal(study.figures()[2], protocol.estimate(study.tally(2)).frequencies)
    np.testing.assert_allclose(study.figures().sum(axis=1), 1)
    assert repr(study) == "<5 runs of GRR with 100 people, drawn from the law of the tally>"


@pytest.mark.parametrize("protocol", [Window(Interval(0, 24), 1), OneBitMean(Interval(0, 24), 2)])
def test_a_crowd_of_numbers(protocol):
    people = np.clip(np.random.default_rng(1).normal(7, 3, 500), 0, 30)
    study = protocol.simulate(people, runs=2000, seed=3)
    assert study.n == 500
    np.testing.assert_allclose(study.truth, np.clip(people, 0, 24).mean())
    found = study.figures()[:, 0]
    # 2,000 runs: five standard errors of their mean, and 16 % of their variance: false alarms below 1e-6.
    assert abs(found.mean() - study.truth[0]) < 5 * found.std() / 2000**0.5
    assert found.var() <= 1.16 * protocol.worth(500).noise ** 2
    assert found.var() >= 0.5 * protocol.worth(500).noise ** 2
    few = [protocol.simulate(people, runs=20, seed=3).tallies for _ in range(2)]
    np.testing.assert_array_equal(*few)


def test_a_mean_of_listed_numbers_and_records():
    years = Window(Integers(1, 4), 2, positions=4, width=1)
    study = years.simulate(counts=[10, 20, 30, 40], runs=2)
    np.testing.assert_allclose(study.truth, [3.0])
    assert study.n == 100
    both = Attributes.of({"a": GRR(["x", "y"], 1), "b": OneBitMean(Interval(0, 1), 1)})
    study = both.simulate([{"a": "x", "b": 0.25}] * 30 + [{"a": "y", "b": 0.75}] * 10, runs=3)
    np.testing.assert_allclose(study.truth, [0.75, 0.25, 0.375])
    assert study.figures().shape == (3, 3)


def test_a_crowd_that_is_none():
    with pytest.raises(NumberError, match="at least one person"):
        Window(Interval(0, 1), 1).simulate([])
    with pytest.raises(DomainError, match="not a number"):
        Window(Interval(0, 1), 1).simulate([0.5, "a"])


def test_values_and_counts_mean_the_same_for_every_kind():
    """A value per person, or the values with how many hold each; a list of numbers is never read as counts."""
    people = ["b", "a", "b", "c", "b"]
    listed = OUE(["a", "b", "c"], 1)
    each, counted, all_of_them = (
        listed.simulate(people, runs=3, seed=1),
        listed.simulate(["b", "c", "a"], runs=3, seed=1, counts=[3, 1, 1]),
        listed.simulate(runs=3, seed=1, counts=[1, 3, 1]),
    )
    assert each.n == counted.n == all_of_them.n == 5
    np.testing.assert_array_equal(each.tallies, counted.tallies)
    np.testing.assert_array_equal(each.tallies, all_of_them.tallies)
    np.testing.assert_allclose(each.truth, [0.2, 0.6, 0.2])
    assert GRR(4, 1).simulate([0, 1, 2, 3]).n == 4
    numbers = Window(Interval(0, 4), 1)
    study = numbers.simulate([1.0, 3.0], counts=[3, 1], seed=1)
    np.testing.assert_array_equal(study.tallies, numbers.simulate([1.0, 1.0, 1.0, 3.0], seed=1).tallies)
    with pytest.raises(NumberError, match="give the values"):
        numbers.simulate(counts=[1, 2])


def test_refusals():
    protocol = OUE(3, 1)
    with pytest.raises(ShapeError, match="each of the 3 answers"):
        protocol.simulate(counts=[1, 2])
    for wrong in ([0.5, 1, 2], ["a", "b", "c"]):
        with pytest.raises(NumberError, match="whole numbers"):
            protocol.simulate(counts=wrong)
    for wrong in ([-1, 2, 3], [0, 0, 0], [1 << 61, 1 << 61, 1 << 61]):
        with pytest.raises(NumberError, match="add up"):
            protocol.simulate(counts=wrong)
    for runs in (0, 1.5, True):
        with pytest.raises(NumberError, match="runs"):
            protocol.simulate(counts=[1, 2, 3], runs=runs)
