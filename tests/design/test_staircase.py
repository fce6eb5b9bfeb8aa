"""The 2^k program, and that sorting and cutting gives the same."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from deniable import errors
from deniable.channels import marginal_divergence, mutual_information as information, randomized_response
from deniable.design import (
    best_columns,
    extremal,
    family,
    mutual_information,
    pattern_matrix,
    staircase,
)
from tests.design.instances import KINDS, STYLES, random_pair


def test_pattern_matrix_is_the_printed_one():
    e = math.e
    assert pattern_matrix(3, 1) == pytest.approx(
        np.array([[1, 1, 1, 1, e, e, e, e], [1, 1, e, e, 1, 1, e, e], [1, e, 1, e, 1, e, 1, e]])
    )
    with pytest.raises(errors.ShapeError, match="1 to 16"):
        pattern_matrix(17, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_sort_partition_randomize_equals_the_program(kind):
    # 34 instances of each of the 6 divergences: 204 in all.
    rng = np.random.default_rng(sum(map(ord, kind)))
    for number in range(34):
        k = 12 if number == 0 else int(rng.integers(2, 10))
        p0, p1 = random_pair(rng, k, STYLES[number % len(STYLES)])
        epsilon = round(float(rng.choice([0.01, 0.1, 0.5, 1, 2, 3, 5])) * float(rng.uniform(0.8, 1.2)), 6)
        closed, program = extremal(p0, p1, epsilon, kind), staircase(p0, p1, epsilon, kind)
        assert closed.value == pytest.approx(program.value, rel=1e-8, abs=1e-300), (k, epsilon)
        assert program.channel.satisfies(epsilon)
        if number % 5 == 0:
            assert program.relative_gap < 1e-9


def test_the_comparison_would_notice_a_worse_partition():
    p0, p1 = [0.4, 0.3, 0.2, 0.1], [0.1, 0.15, 0.25, 0.5]
    program = staircase(p0, p1, 5)
    assert marginal_divergence(randomized_response(4, "4.99"), p0, p1) < program.value * (1 - 1e-8)


def test_mutual_information():
    prior = [0.4, 0.3, 0.2, 0.1]
    design = mutual_information(prior, 1)
    assert design.relative_gap < 1e-9
    assert design.value == pytest.approx(information(design.channel, prior), rel=1e-9)
    for other in (randomized_response(4, 1), extremal(prior, [0.25] * 4, 1).channel):
        assert information(other, prior) <= design.bound * (1 + 1e-12)
    # Every private channel loses something: the bound is below the entropy.
    assert design.bound < -sum(p * math.log(p) for p in prior)


def test_mutual_information_beyond_sixteen_symbols():
    prior = np.arange(1, 41) / 820
    design = mutual_information(prior.tolist(), 1)
    assert design.value <= design.bound
    assert design.relative_gap < 0.02
    assert design.certificate.verify()
    assert design.channel.satisfies(1)
    # Exact and bound on the same small problem: the ceiling is never below the optimum.
    from deniable.design.staircase import information as column

    small = [0.4, 0.3, 0.2, 0.1]
    assert column(small).ceiling(math.expm1(1)) >= mutual_information(small, 1).value * (1 - 1e-12)


def test_the_smallest_of_a_family():
    rng = np.random.default_rng(2)
    pairs = [random_pair(rng, 6, "plain") for _ in range(3)]
    both = family(pairs, 1.5)
    values = [marginal_divergence(both.channel, p0, p1) for p0, p1 in pairs]
    assert both.value == pytest.approx(min(values), rel=1e-9)
    assert both.relative_gap < 1e-9
    own = [extremal(p0, p1, 1.5) for p0, p1 in pairs]
    assert both.value <= min(design.value for design in own) * (1 + 1e-9)
    for design in own:
        assert min(marginal_divergence(design.channel, p0, p1) for p0, p1 in pairs) <= both.bound * (1 + 1e-12)
    weighted = family(pairs, 1.5, goal="weighted", weights=[0.2, 0.3, 0.5])
    assert weighted.relative_gap < 1e-9
    assert weighted.value <= sum(w * d.value for w, d in zip((0.2, 0.3, 0.5), own, strict=True)) * (1 + 1e-9)
    one = family(pairs[:1], 1.5, "chi2")
    assert one.value == pytest.approx(extremal(*pairs[0], 1.5, "chi2").value, rel=1e-8)


def test_a_family_beyond_sixteen_symbols():
    x = np.linspace(-2, 2, 30)

    def law(centre):
        weights = np.exp(-((x - centre) ** 2) / 2)
        return (weights / weights.sum()).tolist()

    pairs = [(law(0.5), law(-0.5)), (law(0.6), law(-0.4)), (law(0.5), law(-0.7))]
    for extra in ({}, {"goal": "weighted"}):
        design = family(pairs, 1, **extra)
        assert design.value <= design.bound
        assert design.relative_gap < 0.05
        assert design.certificate.verify()
        assert design.channel.satisfies(1)


def test_a_utility_of_ones_own():
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    design = best_columns(lambda columns: np.abs(columns @ (p0 - p1)) / 2, 3, 1)
    assert design.value == pytest.approx(extremal(p0, p1, 1, "tv").value, rel=1e-9)
    assert design.certificate.rigor == "numeric"
    assert design.certificate.verify()
    with pytest.raises(errors.ShapeError, match="returned shape"):
        best_columns(lambda columns: 1.0, 3, 1)
    with pytest.raises(errors.ShapeError, match="at most 16"):
        best_columns(lambda columns: columns.max(axis=1), 17, 1)


def test_refusals():
    p0, p1 = [0.5, 0.5], [0.2, 0.8]
    with pytest.raises(errors.LabelError, match="smallest"):
        family([(p0, p1)], 1, goal="largest")
    with pytest.raises(errors.LabelError, match="weights belong"):
        family([(p0, p1)], 1, weights=[1])
    with pytest.raises(errors.ShapeError, match="at least one pair"):
        family([], 1)
    with pytest.raises(errors.ShapeError, match="same symbols"):
        family([(p0, p1), ([1, 0, 0], [0, 0, 1])], 1)


@pytest.mark.parametrize("goal", ["information", "smallest", "weighted"])
def test_a_few_columns_at_a_time_reach_the_whole_program(goal, monkeypatch):
    chance = np.random.default_rng(8)
    laws = chance.dirichlet(np.ones(7), size=4)

    def design(progress=None):
        if goal == "information":
            return mutual_information(laws[0], 1, progress=progress)
        return family([(laws[0], laws[1]), (laws[2], laws[3])], 1, goal=goal, progress=progress)

    whole = design()
    module = sys.modules["deniable.design.staircase"]  # the package has a function of that name
    monkeypatch.setattr(module, "ALL_AT_ONCE", 10)
    monkeypatch.setattr(module, "AT_A_TIME", 5)
    said: list[str] = []
    parts = design(lambda what, _: said.append(what))
    assert len(parts.trace) > 2 > len(whole.trace)
    assert max(step.columns for step in parts.trace) < whole.trace[0].columns
    assert parts.value == pytest.approx(whole.value, rel=1e-9)
    assert parts.relative_gap < 1e-8
    assert sum("above the prices" in what for what in said) == len(parts.trace) - 1
    assert parts.certificate.verify()
    assert any(what.startswith("proof") for what in said)
