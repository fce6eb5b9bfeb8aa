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
from deniable.results.bounds import Numbers, PairLaw, Ratios, cut_ends, held_ends, laplace_reach, mean_ends
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


def test_what_may_be_none_begins_at_none() -> None:
    """Not a hair above: then a picture would say that it is clear of zero."""
    said = Numbers.between(-0.6, 1.6, np.array([0.05, 0.9]), 20)
    ends = said.above(0.04, 0.95, said.errors)
    assert ends[0, 0] == 0
    assert ends[1, 1] == 1


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


@pytest.mark.parametrize(("n", "p", "q"), [(9, 0.9, 0.05), (9, 0.73, 0.27), (45, 0.98, 0.02)])
def test_sums_of_two_binomial_numbers_hold(n: int, p: float, q: float) -> None:
    """Exactly, for every number of people who have it; normal intervals with estimated errors do not."""
    seen = np.arange(n + 1)
    ends = held_ends(seen, n, p, q, 0.95)
    value = np.clip((seen - n * q) / (p - q), 0, n)
    reach = Z * np.sqrt(value * p * (1 - p) + (n - value) * q * (1 - q)) / (p - q)
    held, normal = [], []
    for people in range(n + 1):
        law = np.convolve(binomial_law(people, p), binomial_law(n - people, q))
        held.append(law[(ends[:, 0] <= people) & (people <= ends[:, 1])].sum())
        normal.append(law[np.abs((seen - n * q) / (p - q) - people) <= reach].sum())
    assert min(held) > 0.949
    assert min(normal) < 0.94
    assert ends[0, 0] == 0, "not a hair above none"
    assert ends[-1, 1] == n


def binomial_law(n: int, p: float) -> np.ndarray:
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def test_sums_of_laplace_noise_reach_as_far_as_samples_do() -> None:
    assert laplace_reach([2.0], 0.95) == pytest.approx(-2 * math.log(0.05), rel=1e-5)
    assert laplace_reach([], 0.95, 4.0) == pytest.approx(2 * Z, rel=1e-3)
    assert laplace_reach([], 0.95) == 0
    random, scales = np.random.default_rng(8), np.array([1.0, 1.0, 3.0])
    drawn = random.laplace(scale=scales, size=(200_000, 3)).sum(axis=1) + random.normal(0, 2, 200_000)
    assert np.mean(np.abs(drawn) <= laplace_reach(scales, 0.95, 4.0)) == pytest.approx(0.95, abs=0.003)


def test_near_numbers_are_taken_together() -> None:
    values, counts = np.array([[-1.0, 0.0, 0.001, 2.0]]), np.array([5.0, 2.0, 3.0, 7.0])
    grouped = Numbers.grouped(values, counts, (np.array([-1.0]), np.array([2.0])), np.array([0.1]))
    assert np.allclose(grouped.interval(0.95, 0.1), mean_ends(values, counts, 0.95), atol=1e-4)


def test_reports_that_support_two_things_are_counted() -> None:
    law = PairLaw(0.8, 0.2, 0.7, 0.15, 0.05)
    (said,) = law.counted(100, np.array([60.0]), np.array([30.0]), 0.25, 0.5)
    assert said.sum() == 100
    assert said[1] + said[3] == 60
    assert said[2] + said[3] == 30
    assert said[3] == pytest.approx(100 * (0.25 * 0.7 + 0.5 * 0.15 + 0.25 * 0.05))
    assert law.supports(np.array([0.5, -9.0, 9.0]), 10).tolist() == [5.0, 0.0, 10.0]


TEXTS = [f"text {place}" for place in range(8)]


@pytest.mark.parametrize(
    ("make", "n", "normal_below"),
    [
        (lambda key: dn.CMS(TEXTS, 4, hashing=dn.Strings(256, 16, key=key)), 10, 0.93),
        (lambda key: dn.LOLOHA(8, first=4, forever=8), 10, 0.85),
        (lambda key: dn.LOLOHA(8, first=4, forever=8), 50, 0.92),
    ],
    ids=["CMS", "LOLOHA-10", "LOLOHA-50"],
)
def test_texts_and_memoized_answers_hold_in_small_surveys(make: Any, n: int, normal_below: float) -> None:
    """80 surveys of 8 answers: .97 and more as measured, .81 to .90 with normal intervals."""
    known, held, normal = np.full(8, 1 / 8), [], []
    for seed, people in enumerate(np.random.default_rng(n).multinomial(n, known, 80)):
        protocol = make(f"key {seed}")
        found = protocol.estimate(protocol.simulate(None, 1, seed, counts=people).tally(0))
        ends = found.interval()
        held.append((ends[:, 0] <= known) & (known <= ends[:, 1]))
        normal.append(np.abs(found.frequencies - known) <= Z * found.stderr)
    assert np.mean(held) > 0.95
    assert np.mean(normal) < normal_below


def test_texts_that_share_cells_with_a_common_one_hold() -> None:
    """Everybody gives one text. Of others that share its cell in some cohort, the interval says that nobody may have
    given them."""
    held, normal = [], []
    for seed in range(20):
        protocol = dn.CMS(TEXTS, 4, hashing=dn.Strings(64, 8, key=f"key {seed}"))
        cells = protocol._table(TEXTS)
        shared = np.flatnonzero((cells == cells[0]).any(axis=1))[1:]
        found = protocol.estimate(protocol.simulate(None, 1, seed, counts=[3000] + [0] * 7).tally(0))
        held += (found.interval()[shared, 0] <= 0).tolist()
        normal += (found.frequencies[shared] <= Z * found.stderr[shared]).tolist()
    assert len(held) > 10
    assert np.mean(held) > 0.9
    assert np.mean(normal) < 0.2


def test_sizes_of_sets_and_shares_of_keys_hold_in_small_surveys() -> None:
    """.97 and more as measured; .86 to .90 with normal intervals."""
    from benchmarks.intervals import set_kinds

    for name in ("sizes of sets", "shares of keys"):
        protocol, of = set_kinds(4)[name]
        assert np.mean([one.mean() for one, _ in of(protocol, "uniform", 10, 60)]) > 0.95
        normal = [one.mean() for one, _ in normally(of, protocol, 10, 60)]
        assert np.mean(normal) < 0.92


def normally(of: Any, protocol: Any, n: int, runs: int) -> Any:
    """The same surveys with normal intervals."""
    from unittest.mock import patch

    def interval(self: Any, level: float, errors: Any) -> np.ndarray:
        value = (self.values * self.counts).sum(axis=-1) / self.counts.sum(axis=-1)
        return np.stack([value - Z * errors, value + Z * errors], axis=1)

    with patch.object(Numbers, "interval", interval):
        yield from of(protocol, "uniform", n, runs)


def test_means_of_keys_hold_where_few_people_have_one() -> None:
    """A key that 7 of 10 people have, whose numbers are near an end: .97 as measured, .9 by Fieller's theorem."""
    from dataclasses import replace

    protocol, random = dn.KeyValue(["a", "b"], dn.Interval(0, 1), 4, at_most=2), np.random.default_rng(9)
    bits, held, fieller = dn.Simulation(9), [], []
    for _ in range(150):
        has = random.random((60, 2)) < [0.7, 0.3]
        rows = [{key: 0.05 for key, one in zip("ab", own, strict=True) if one} for own in has]
        means = protocol.estimate(protocol.tally(protocol.privatize(rows, bits))).by_name["mean"]
        for found, into in ((means, held), (replace(means, law=None), fieller)):
            ends = found.interval()
            into.append((ends[:, 0] <= 0.05) & (ends[:, 1] >= 0.05))
    assert np.mean(held) > 0.95
    assert np.mean(fieller) < np.mean(held)


def test_figures_of_small_graphs_hold() -> None:
    """Ten nodes, 60 times: a degree from lists holds in .99 of all cases, .84 with normal errors."""
    ring, held, normal = dn.graphs.Graph([(i, (i + 1) % 10) for i in range(10)], nodes=10), [], []
    for seed in range(60):
        rows = dn.graphs.degrees(ring, 4, "lists", dn.Simulation(seed)).table()
        held.append((rows.low <= 2) & (rows.high >= 2))
        normal.append(np.abs(rows.value - 2) <= Z * rows.stderr)
    assert np.mean(held) > 0.96
    assert np.mean(normal) < 0.9


def test_figures_whose_interval_is_the_whole_range_have_none() -> None:
    """A graph of ten nodes at epsilon 1/10, a series of ten people and sizes of sets: the reason is said."""
    nodes = dn.graphs.edges(dn.graphs.Graph([(0, 1)], nodes=10), "1/10", bits=dn.Simulation(2))
    weekly = dn.Evolving(["no", "yes"], "1/10", epochs=2)
    sent = weekly.streams([["no", "yes"]] * 10, dn.Simulation(1))
    series = weekly.estimate(weekly.tally(sent[0]) + weekly.tally(sent[1]))
    sets = dn.ItemSets(dn.Sets(["a", "b", "c"], 2), "1/10")
    sizes = sets.estimate(sets.tally(sets.privatize([["a"]] * 10, dn.Simulation(1)))).sizes
    for found in (nodes, series, sizes):
        assert "it would be the whole range" in " ".join(found.notes)
        assert "none" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 50])
@pytest.mark.parametrize("kind", ["OneBitMean", "Window", "MeanTable"])
def test_means_hold_for_all_shapes(kind: str, n: int) -> None:
    """400 surveys each: .905 is four standard errors below .95."""
    from benchmarks.intervals import TRUTHS, kinds

    protocol, of = kinds(4)[kind]
    for truth in TRUTHS:
        assert np.mean([one.mean() for one, _ in of(protocol, truth, n, 400)]) > 0.905, truth


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


def test_reports_that_all_add_the_same_number_are_counted() -> None:
    """Of a text that no report can support or oppose, both numbers are the same: nothing is divided by zero."""
    found = Numbers.between(np.array([-1.0, 0.0]), np.array([2.0, 0.0]), np.array([0.5, 0.0]), 10)
    assert found.counts.tolist() == [[5.0, 5.0], [10.0, 0.0]]
