"""Intervals that hold from ten reports on: fast checks here, the slow ones with more surveys.

Each test of a coverage fails with normal intervals, which is shown beside it where that is cheap.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.protocols.private_strata import PrivateStrata
from deniable.results.bounds import Numbers, Ratios, cut_ends, mean_ends
from deniable.results.shares import clopper_pearson

Z = NormalDist().inv_cdf(0.975)


def test_of_two_numbers_it_is_clopper_and_pearson() -> None:
    seen = np.array([0.0, 1.0, 17.0, 49.0, 50.0])
    ends = mean_ends([-2, 3], np.stack([50 - seen, seen], axis=1), 0.9)
    assert np.allclose(ends, -2 + 5 * clopper_pearson(seen, 50, 0.9), atol=1e-12)


def test_of_more_numbers_the_ends_are_quantiles_of_uniform_weights() -> None:
    values, counts = np.array([-2.0, -1.0, 0.5, 3.0]), np.array([3.0, 4.0, 2.0, 1.0])
    ((low, high),) = mean_ends(values, counts, 0.95)
    random = np.random.default_rng(1)
    below = np.quantile(random.dirichlet(counts + np.array([1, 0, 0, 0]), 400_000) @ values, 0.025)
    above = np.quantile(random.dirichlet(counts + np.array([0, 0, 0, 1]), 400_000) @ values, 0.975)
    assert low == pytest.approx(below, abs=0.02)
    assert high == pytest.approx(above, abs=0.02)


def test_in_large_surveys_it_is_nearly_the_normal_interval() -> None:
    counts = np.array([2000.0, 5000.0, 3000.0])
    ((low, high),) = mean_ends([0, 1, 2], counts, 0.95)
    mean, spread = 1.1, math.sqrt((2000 * 1.1**2 + 5000 * 0.1**2 + 3000 * 0.9**2) / 10_000)
    assert high - low == pytest.approx(2 * Z * spread / 100, rel=0.02)
    assert low < mean < high
    # A report that counts four times as much halves the interval.
    quarter = Numbers(np.array([0.0, 1.0, 2.0]), counts, 0.01).interval(0.95, 0.005)
    assert float(np.diff(quarter)[0, 0]) == pytest.approx((high - low) / 2, rel=0.02)


def test_figures_without_spread_have_an_end_on_one_side_only() -> None:
    ends = mean_ends([-1, 0, 1], [[10, 0, 0], [0, 0, 10], [0, 10, 0]], 0.95)
    assert ends[0, 0] == -1
    assert ends[1, 1] == 1
    assert (ends[:, 0] < ends[:, 1]).all()


@pytest.mark.parametrize("n", [10, 50])
@pytest.mark.parametrize("epsilon", [1, 8])
def test_one_bit_means_hold_for_skewed_numbers(n: int, epsilon: int) -> None:
    """Exactly, over all counts: normal intervals hold far less often where reports have little noise."""
    protocol = dn.OneBitMean(dn.Interval(0, 1), epsilon)
    truth, keep = 0.05, float(protocol.kept)
    chance = keep * truth + (1 - keep) / 2
    held = normal = 0.0
    for count in range(n + 1):
        mean = protocol.estimate(dn.Tally(protocol.fingerprint, n, [n - count, count]))
        weight = math.comb(n, count) * chance**count * (1 - chance) ** (n - count)
        low, high = mean.interval()
        held += weight * (low <= truth <= high)
        normal += weight * (abs(mean.value - truth) <= Z * mean.stderr)
    assert held > 0.949
    assert epsilon == 1 or normal < 0.93


def share_of_held(protocol: Any, shares: np.ndarray, n: int, runs: int) -> float:
    people = np.random.default_rng(n).multinomial(n, shares, runs)
    found = [
        protocol.estimate(protocol.simulate(None, 1, seed, counts=row).tally(0)).interval()
        for seed, row in enumerate(people)
    ]
    return float(np.mean([(ends[:, 0] <= shares) & (shares <= ends[:, 1]) for ends in found]))


@pytest.mark.parametrize("n", [10, 50])
def test_hadamard_response_holds_in_small_surveys(n: int) -> None:
    """100 surveys of 8 answers, .98 and more as measured; normal intervals have .72 at n = 10 and .94 at n = 50."""
    assert share_of_held(dn.HadamardResponse(8, 6), np.full(8, 1 / 8), n, 100) > 0.95


def test_top_items_hold_in_small_surveys() -> None:
    """The three largest of 12 items at n = 100: with normal numbers about .76."""
    items = [f"i{place}" for place in range(12)]
    protocol, random, bits = dn.ItemSets(dn.Sets(items, 2), 2), np.random.default_rng(3), dn.Simulation(3)
    chances = np.append(np.full(12, 0.06), 0.28)
    held, normal = [], []
    for _ in range(40):
        drawn = random.choice(13, (100, 2), p=chances)
        rows = [[items[one] for one in sorted(set(row) - {12})] for row in drawn.tolist()]
        top = protocol.estimate(protocol.tally(protocol.privatize(rows, bits))).top(3)
        share, ends = 1 - 0.94**2, top.interval()
        held.append((ends[:, 0] <= share) & (share <= ends[:, 1]))
        cut = [cut_ends(x, s, top.cut, 0.05) for x, s in zip(top.frequencies, top.errors(), strict=True)]
        normal.append([max(low, 0) <= share <= min(high, 1) for low, high in cut])
    assert np.mean(held) > 0.93
    assert np.mean(normal) < 0.9


@pytest.mark.parametrize(("runs", "least"), [(40, 0.85), pytest.param(300, 0.92, marks=pytest.mark.slow)])
def test_deviations_hold_for_skewed_numbers(runs: int, least: float) -> None:
    """Both bounds are five standard errors below .97, about what was measured, or near it; normal ones have .87."""
    protocol, random, bits = dn.Moments(dn.Interval(0, 1), 2), np.random.default_rng(4), dn.Simulation(4)
    truth, held, normal = math.sqrt(0.5 * 6 / (6.5**2 * 7.5)), [], []
    for _ in range(runs):
        found = protocol.estimate(protocol.tally(protocol.privatize(random.beta(0.5, 6, 300), bits)))
        part = found.by_name["standard deviation"]
        low, high = part.interval()
        held.append(low <= truth <= high)
        normal.append(abs(part.value - truth) <= Z * part.stderr)
    assert np.mean(held) > least
    assert np.mean(normal) < np.mean(held)


def test_ratios_hold_although_their_group_is_shown_when_it_is_large() -> None:
    """A group whose size is mostly below the cut: given that it is shown, a normal interval holds less often."""
    random = np.random.default_rng(5)
    error, size, share = 0.03, 0.07, 0.8
    cells = random.normal([size * share, size * (1 - share)], error / math.sqrt(2), (60_000, 2))
    shown = cells[cells.sum(axis=1) > 4 * error][:300]
    noise = np.full(2, error**2 / 2), np.full(2, error**2 / 2), error**2
    held, fieller = [], []
    for row in shown:
        for cut, found in ((4 * error, held), (-math.inf, fieller)):
            known = Ratios(row, float(row.sum()), noise, np.zeros_like, 0.0, np.zeros(2), cut)
            ends = known.interval(0.95, np.zeros(2))
            found.append((ends[0, 0] <= share <= ends[0, 1]) & (ends[1, 0] <= 1 - share <= ends[1, 1]))
    assert len(shown) == 300
    assert np.mean(held) > 0.93
    assert np.mean(fieller) < np.mean(held)


def test_cells_of_models_hold_whatever_the_model_assumes() -> None:
    """Three answers of which one is the sum of two others: no table of pairs shows it."""
    random, n = np.random.default_rng(6), 20_000
    a, b = random.integers(2, size=(2, n))
    protocol = dn.Attributes({"a": 2, "b": 2, "c": 2}, 4, ask="pairs")
    model = protocol.estimate(
        protocol.tally(protocol.privatize({"a": a, "b": b, "c": a ^ b}, dn.Simulation(6)))
    ).model()
    for table, truth in (
        (model.table("a", "b", "c"), np.array([1, 0, 0, 1, 0, 1, 1, 0]) / 4),
        (model.table("b", "a"), np.full(4, 0.25)),
        (model.table("c", given=["a", "b"]), np.array([1, 0, 0, 1, 0, 1, 1, 0])),
    ):
        ends = table.interval()
        assert (ends[:, 0] <= truth + 0.02).all()
        assert (truth <= ends[:, 1] + 0.02).all()
        assert (np.abs(table.frequencies - truth) > Z * table.stderr).any() or len(table.axes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 50, 300])
@pytest.mark.parametrize("kind", ["OneBitMean", "Window", "MeanTable"])
def test_means_hold_for_all_shapes(kind: str, n: int) -> None:
    """1,000 surveys each: .92 is four standard errors below .95."""
    from benchmarks.intervals import TRUTHS, kinds

    protocol, of = kinds(4)[kind]
    for truth in TRUTHS:
        assert np.mean([one.mean() for one, _ in of(protocol, truth, n, 1000)]) > 0.92, truth


@pytest.mark.slow
def test_private_strata_that_are_rarely_shown_hold() -> None:
    strata = PrivateStrata(dn.Records({"s": dn.Integers(0, 3), "x": dn.Integers(0, 2)}), 1)
    sizes, random, bits = np.array([0.5, 0.25, 0.15, 0.1]), np.random.default_rng(7), dn.Simulation(7)
    known = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.5, 0.0], [0.9, 0.05, 0.05]])
    held, normal = [], []
    for _ in range(250):
        cells = random.choice(12, 3000, p=(sizes[:, None] * known).ravel())
        found = strata.estimate(strata.tally(strata.privatize({"s": cells // 3, "x": cells % 3}, bits)))
        for place in (2, 3):
            part = found.by_name[str(place)]
            if part.n:
                rows = part.table()
                held.append((rows.low <= known[place]) & (known[place] <= rows.high))
                normal.append(np.abs(rows.value - known[place]) <= Z * rows.stderr)
    assert len(held) > 20
    assert np.mean(held) > 0.92
    assert np.mean(normal) < 0.9
