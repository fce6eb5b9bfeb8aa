"""The extremal mechanism: special cases, structure, size of the work, refusals."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from deniable import errors, exact
from deniable.channels import FDivergence, binary, divergence, marginal_divergence, randomized_response
from deniable.design import extremal, regimes, staircase
from deniable.design.partitions import best_partition, partition_value
from deniable.design.tangents import Pair, curve_of
from tests.design.instances import KINDS, STYLES, random_pair
from tests.memory import memory_below

pytestmark = pytest.mark.floats


def relative(a, b):
    return abs(a - b) / abs(b)


def test_equal_ratios_are_merged_as_they_were_typed():
    pair = Pair.read([0.1, 0.3, 0.6, 0], [0.2, 0.6, 0.2, 0])
    assert pair.groups == 2
    assert pair.group.tolist() == [0, 0, 1, 0]
    # In floats 0.1 / 0.2 and 0.3 / 0.6 are equal, but 0.1 * 3 is not 0.3: only exact numbers merge safely.
    assert Pair.read([0.1, 0.2, 0.7], [0.3, 0.6, 0.1]).groups == 2


@pytest.mark.parametrize("kind", KINDS)
def test_dynamic_program_finds_the_best_of_all_partitions(kind):
    rng = np.random.default_rng(7)
    for epsilon in (1e-4, 0.3, 2.0, 6.0):
        pair = Pair.read(*random_pair(rng, 8, "plain"))
        lower, gaps = pair.prefixes
        odds, curve = math.expm1(epsilon), curve_of(kind)
        every = [
            partition_value(np.array([0, *inner, 8]), lower, gaps, odds, curve)
            for j in range(8)
            for inner in combinations(range(1, 8), j)
        ]
        assert relative(best_partition(lower, gaps, odds, curve).value, max(every)) < 1e-12


def test_strips_give_what_the_whole_table_gives(monkeypatch):
    pair = Pair.read(*random_pair(np.random.default_rng(1), 300, "plain"))
    whole = best_partition(*pair.prefixes, math.expm1(3), curve_of("kl"))
    monkeypatch.setattr("deniable.design.partitions._KEPT", 100)
    monkeypatch.setattr("deniable.design.partitions._STRIP", 1000)
    assert best_partition(*pair.prefixes, math.expm1(3), curve_of("kl")).cuts.tolist() == whole.cuts.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_the_channel_holds_its_level_and_has_its_value(kind, style):
    rng = np.random.default_rng(11)
    for epsilon in ("0.001", "0.7", "4"):
        p0, p1 = random_pair(rng, 9, style)
        design = extremal(p0, p1, epsilon, kind)
        channel = design.channel
        assert channel.satisfies(epsilon)
        assert channel.shape[1] == design.outputs <= 9
        assert relative(marginal_divergence(channel, [float(p) for p in p0], [float(p) for p in p1], kind),
                        design.value) < 1e-9  # fmt: skip
        # Every ratio is 1 or one number r <= e^epsilon, or its inverse.
        ratios = {Fraction(int(a), int(b)) for column in channel.numerators.T for a in column for b in column}
        assert len(ratios) <= 3
        assert exact.log(max(ratios)) == pytest.approx(float(Fraction(epsilon)), rel=1e-12)
        assert design.relative_gap < 1e-9


def test_binary_is_optimal_for_total_variation_and_at_small_epsilon():
    rng = np.random.default_rng(3)
    for style in ("plain", "even", "spiky"):
        p0, p1 = random_pair(rng, 6, style)
        for epsilon in (0.01, 1, 5):
            mechanism = binary(p0, p1, epsilon)
            best = extremal(p0, p1, epsilon, "tv").value
            assert relative(marginal_divergence(mechanism, p0, p1, "tv"), best) < 1e-9
        for kind in KINDS:
            small = extremal(p0, p1, 1e-4, kind)
            assert relative(marginal_divergence(binary(p0, p1, 1e-4), p0, p1, kind), small.value) < 1e-9
            assert small.outputs == 2


def test_randomized_response_is_optimal_for_kl_at_large_epsilon():
    p0, p1 = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.25, 0.45]
    value = marginal_divergence(randomized_response(4, 14), p0, p1, "kl")
    assert relative(value, extremal(p0, p1, 14).value) < 1e-9
    # With a repeated ratio it is not, until the two symbols are merged.
    p0, p1 = [0.2, 0.2, 0.4, 0.2], [0.1, 0.1, 0.2, 0.6]
    best = extremal(p0, p1, 10)
    assert marginal_divergence(randomized_response(4, 10), p0, p1, "kl") < best.value * (1 - 1e-6)
    assert best.law.block == (1, 1, 1, 0)


def test_ties_of_the_binary_mechanism():
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    printed = marginal_divergence(binary(p0, p1, 1), p0, p1, "kl")
    assert 1 - printed / extremal(p0, p1, 1).value == pytest.approx(0.026, abs=0.001)
    other = marginal_divergence(binary(p0, p1, 1, ties=1), p0, p1, "kl")
    assert relative(other, extremal(p0, p1, 1).value) < 1e-9


def test_approximation_bound_of_the_binary_mechanism():
    from deniable.design import binary_guarantee

    rng = np.random.default_rng(5)
    for _ in range(60):
        p0, p1 = random_pair(rng, int(rng.integers(2, 12)), "spiky")
        epsilon = round(float(rng.uniform(0.05, 6)), 3)
        best = extremal(p0, p1, epsilon).value
        share = marginal_divergence(binary(p0, p1, epsilon), p0, p1, "kl") / best
        assert binary_guarantee(epsilon) <= share <= 1 + 1e-9


def test_a_divergence_of_ones_own():
    neyman = FDivergence("neyman", lambda u: (1 - u) ** 2 / u, lambda u: 1 - 1 / u**2,
                         lambda t: 2 - 2 * np.sqrt(1 - t), at_zero=np.inf, slope=1)  # fmt: skip
    hinge = FDivergence("hinge", lambda u: np.maximum(u - 1, 0), lambda u: (u > 1) * 1.0,
                        lambda t: np.where(t < 0, 0, np.where(t <= 1, t, np.inf)), at_zero=0, slope=1)  # fmt: skip
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    for mine, built_in, swap in ((neyman, "chi2", True), (hinge, "tv", False)):
        design = extremal(p0, p1, 1, mine)
        other = extremal(p1, p0, 1, built_in) if swap else extremal(p0, p1, 1, built_in)
        assert relative(design.value, other.value) < 1e-10
        assert design.relative_gap < 1e-9
        assert design.certificate.rigor == "numeric"
        assert design.certificate.verify()


def test_nothing_to_learn():
    for p0, p1 in (([0.5, 0.5], [0.5, 0.5]), ([1], [1]), ([0.1] * 10, [0.1] * 10)):
        design = extremal(p0, p1, 1)
        assert (design.value, design.bound, design.relative_gap, design.outputs) == (0, 0, 0, 1)
        assert design.certificate.verify()
        assert design.channel.epsilon == 0


def test_extreme_levels():
    p0, p1 = [0.5, 0.4, 0.1, 0], [0.05, 0.25, 0.7, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            assert extremal(p0, p1, 1e-6, kind).relative_gap < 2e-9
            far = extremal(p0, p1, 40, kind)
            assert relative(far.value, divergence(p0, p1, kind)) < 1e-9
            assert far.relative_gap < 1e-9


def test_labels_and_sampling():
    design = extremal([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], 1, inputs=["a", "b", "c"])
    assert design.channel.inputs == ("a", "b", "c")
    reports = design.law.sample_indices([0, 1, 2] * 10)
    assert set(reports.tolist()) <= {0, 1}
    assert "relative gap" in str(design)


@pytest.mark.parametrize(
    ("p0", "p1", "epsilon", "kind", "error", "words"),
    [
        ([0.5, 0.6], [0.5, 0.5], 1, "kl", errors.ProbabilityError, "sums to 1.1"),
        ([0.5, 0.5], [0.5, 0.5, 0], 1, "kl", errors.ShapeError, "3 entries where 2"),
        ([-0.5, 1.5], [0.5, 0.5], 1, "kl", errors.ProbabilityError, "negative"),
        ([0.5, 0.5], [0.5, 0.5], 0, "kl", errors.EpsilonError, "positive"),
        ([], [], 1, "kl", errors.ShapeError, "non-empty"),
        ([0.5, 0.5], [0.5, 0.5], 1, "foo", errors.LabelError, "not a divergence"),
    ],
)
def test_refusals(p0, p1, epsilon, kind, error, words):
    with pytest.raises(error, match=words):
        extremal(p0, p1, epsilon, kind)


def test_a_thousand_symbols_are_designed_in_a_few_steps():
    rng = np.random.default_rng(2)
    p0, p1 = rng.dirichlet(np.ones(1000)), rng.dirichlet(np.ones(1000))
    design = extremal(p0, p1, 2)
    assert len(design.trace) <= 8
    assert design.outputs < 1000


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [("kl", 2), *(pytest.param(kind, 5, marks=pytest.mark.slow) for kind in ("chi2", "hellinger2"))],
)
def test_a_thousand_symbols_are_certified(kind, epsilon):
    rng = np.random.default_rng(0)
    said: list[str] = []
    laws = rng.dirichlet(np.ones(1000)), rng.dirichlet(np.ones(1000))
    design = extremal(*laws, epsilon, kind, progress=lambda what, _: said.append(what))
    assert design.relative_gap < 1e-9
    programs = [what for what in said if " program, " in what]
    assert len(programs) <= 30
    # As large as the knots of the prices and the columns that matter, not as all symbols.
    assert max(int(what.split()[-2].replace(",", "")) for what in programs) <= 100_000


def test_knots_that_do_not_suffice_become_more(monkeypatch):
    rng = np.random.default_rng(3)
    p0, p1 = random_pair(rng, 60, "plain")
    monkeypatch.setattr("deniable.design.partitions._KNOTS", 2)
    said = []
    assert extremal(p0, p1, 4, progress=lambda what, _: said.append(what)).relative_gap < 1e-9
    widths = {
        int(what.split(" x ")[1].split()[0].replace(",", ""))
        for what in said
        if what.startswith("proof: ") and " x " in what
    }
    assert len(widths) > 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon"), [("kl", 1), ("hellinger2", 5)])
def test_ten_thousand_symbols_in_a_few_steps(kind, epsilon):
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(10_000)), rng.dirichlet(np.ones(10_000))
    with memory_below(100_000_000):  # one strip of the table; the whole of it has 800 MB
        design = extremal(*laws, epsilon, kind)
    assert len(design.trace) <= 10
    law = design.law
    assert design.outputs == law.outputs <= 10_000
    # Every entry is the same "true" or the same "false" probability: exact numbers whose ratios are 1, r and 1 / r.
    assert law.true + (law.outputs - 1) * law.false == 1
    assert exact.exp_at_least(Fraction(epsilon), law.ratio)
    assert law.satisfies(epsilon)
    assert float(epsilon) - law.epsilon < 1e-12
    rows = law.channel().numerators
    assert {Fraction(int(a), int(min(column))) for column in rows[:: len(rows) // 50].T for a in column} <= {
        Fraction(1),
        law.ratio,
    }
    # Some seconds suffice for 1e-9; on a busy machine the search for multipliers stops earlier, after 20.
    assert design.relative_gap < 1e-6
    assert design.certificate.verify()


def test_hypotheses_with_names():
    named = extremal({"a": 0.5, "b": 0.3, "c": 0.2}, {"c": 0.6, "a": 0.2, "b": 0.2}, 1)
    listed = extremal([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], 1, inputs=["a", "b", "c"])
    assert named.inputs == listed.inputs == ("a", "b", "c")
    assert (named.law, named.value) == (listed.law, listed.value)
    assert extremal({"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.8}, 1, inputs=["b", "a"]).inputs == ("b", "a")
    assert staircase({"x": 0.5, "y": 0.5}, {"y": 0.75, "x": 0.25}, 1).inputs == ("x", "y")
    assert regimes({"x": 0.5, "y": 0.5}, {"y": 0.75, "x": 0.25}, epsilons=[1, 2]).pair.size == 2
    for p0, p1, words in (
        ({"a": 0.5, "b": 0.5}, [0.2, 0.8], "the other has none"),
        ({"a": 0.5, "b": 0.5}, {"a": 0.2, "c": 0.8}, "the second hypothesis misses 'b'"),
        ({"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.7, "c": 0.1}, "has 3 symbols, not 2"),
    ):
        with pytest.raises(errors.DeniableError, match=words):
            extremal(p0, p1, 1)
