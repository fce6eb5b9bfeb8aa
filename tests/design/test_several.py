"""Several hypotheses: the best guess from one report, and the smallest error exponent of many."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from deniable import errors
from deniable.channels import Channel, hypothesis, marginal_divergence, randomized_response
from deniable.design import Certificate, bayes, best_columns, extremal, hellinger_factor, several
from deniable.design.several import GOALS

pytestmark = pytest.mark.floats

LAWS = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]


def failing(certificate):
    return [check.name for check in certificate.verify().checks if not check.holds]


# -- one report --------------------------------------------------------------------------------------------


def test_the_guess_is_the_staircase_optimum_of_the_largest_joint_mass():
    # The utility of a column is the largest w_h <P_h, c>: the 2^k program knows nothing of guesses.
    rng = np.random.default_rng(1)
    for _ in range(12):
        m, k = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        laws, prior = rng.dirichlet(np.full(k, 0.7), m), rng.dirichlet(np.ones(m))
        epsilon = float(rng.choice([0.3, 1, 3]))
        design = several(laws, epsilon, prior)
        joint = prior[:, None] * laws
        program = best_columns(lambda columns, joint=joint: (columns @ joint.T).max(axis=1), k, epsilon)
        assert design.value == pytest.approx(program.value, rel=1e-9)
        assert design.relative_gap < 1e-9
        assert design.outputs <= m
        assert design.channel.satisfies(epsilon)


def test_it_is_the_bayes_optimal_mechanism_of_a_gain_matrix():
    prior = np.array([0.2, 0.5, 0.3])
    mass = prior @ np.array(LAWS)
    gain = prior[:, None] * np.array(LAWS) / mass
    assert several(LAWS, 2, prior).value == pytest.approx(bayes(mass, gain=gain, epsilon=2).value, rel=1e-10)


def test_its_error_is_that_of_the_best_test():
    design = several(LAWS, 1)
    reports = [design.channel.push(law) for law in LAWS]
    assert 1 - design.value == pytest.approx(hypothesis.bayes_error(reports).value, rel=1e-12)
    other = [randomized_response(3, 1).push(law) for law in LAWS]
    assert hypothesis.bayes_error(other).value >= 1 - design.value - 1e-12


def test_certain_and_hopeless_cases():
    sure = several([[1, 0], [0, 1]], 3)
    assert sure.value == pytest.approx(math.exp(3) / (math.exp(3) + 1), rel=1e-12)
    assert several([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], 3).value == pytest.approx(1 / 3, rel=1e-12)
    # A prior that no single report can overturn: the answer is always the same.
    assert several([[0.6, 0.4], [0.4, 0.6]], "0.1", [0.9, 0.1]).outputs == 1
    assert several(LAWS, 40).relative_gap < 1e-9


def test_names_come_along():
    laws = {"well": {"never": 0.7, "often": 0.3}, "badly": {"often": 0.8, "never": 0.2}}
    design = several(laws, 1, {"badly": 0.5, "well": 0.5})
    assert design.channel.inputs == ("never", "often")
    assert set(design.channel.outputs) == {"well", "badly"}
    assert design.channel.rows[0, design.channel.outputs.index("well")] > 0.5
    for goal in GOALS:
        design = several(laws, 1, goal=goal)
        loaded = Certificate.load(json.loads(json.dumps(design.certificate.spec())))
        assert loaded.hypotheses == design.hypotheses
        assert (loaded.hypotheses.names, loaded.hypotheses.inputs) == (("well", "badly"), ("never", "often"))
        assert loaded.verify()


def test_false_guesses_fail():
    good = several(LAWS, 1, [0.4, 0.3, 0.3]).certificate
    assert failing(good) == failing(Certificate.load(good.spec())) == []
    assert failing(replace(good, value=good.value * 1.0001)) == ["value"]
    assert failing(replace(good, bound=good.bound * (1 - 1e-9))) == ["bound"]
    assert failing(replace(good, epsilon=Fraction(9, 10))) == ["ratios"]
    assert failing(replace(good, prior=(1, 1, 1))) == ["value", "bound"]
    strangers = Channel(good.channel.rows.tolist(), outputs=["x", "y", "z"][: good.channel.shape[1]])
    assert "rows" in failing(replace(good, channel=strangers))


# -- many reports ------------------------------------------------------------------------------------------


def test_two_laws_have_the_stein_exponent_of_the_worse_order():
    p0, p1 = LAWS[0], LAWS[2]
    design = several([p0, p1], 1, goal="stein")
    orders = [marginal_divergence(design.channel, *pair) for pair in ((p0, p1), (p1, p0))]
    assert design.value == pytest.approx(min(orders), rel=1e-9)
    assert several([p1, p0], 1, goal="stein").value == pytest.approx(design.value, rel=1e-9)
    assert design.value <= min(extremal(p0, p1, 1).bound, extremal(p1, p0, 1).bound)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_the_smallest_exponent_is_larger_than_with_other_mechanisms(epsilon):
    stein, chernoff = (several(LAWS, epsilon, goal=goal) for goal in ("stein", "chernoff"))
    for design in (stein, chernoff):
        assert failing(Certificate.load(design.certificate.spec())) == []
        assert design.channel.satisfies(epsilon)
    assert stein.relative_gap < 1e-9
    others = [randomized_response(3, epsilon), *(extremal(*pair, epsilon).channel for pair in permutations(LAWS, 2))]
    for channel in others:
        reports = [channel.push(law) for law in LAWS]
        assert min(marginal_divergence(channel, *pair) for pair in permutations(LAWS, 2)) <= stein.value * (1 + 1e-9)
        assert hypothesis.least_chernoff_information(reports).value <= chernoff.bound * (1 + 1e-9)
    reports = [chernoff.channel.push(law) for law in LAWS]
    assert hypothesis.least_chernoff_information(reports).value == pytest.approx(chernoff.value, rel=1e-9)
    assert chernoff.relative_gap < hellinger_factor(epsilon) - 1 + 0.01 * epsilon


def test_no_order_passes_the_hellinger_factor_and_some_order_reaches_it():
    # Pairs of ratios within e^epsilon; the two-point pair with the ratio e^epsilon and a tiny mass attains the factor.
    for epsilon in (0.05, 1.0, 4.0):
        factor = hellinger_factor(epsilon)
        u = np.exp(np.linspace(-epsilon, epsilon, 401))
        u = u[np.abs(u - 1) > 1e-2 * epsilon]
        half = (np.sqrt(u) - 1) ** 2 / 2
        orders = np.linspace(0.01, 0.99, 197)[:, None]
        share = (orders * u + 1 - orders - u**orders) / half
        assert share.max() <= factor
        assert share.max() >= factor * (1 - 1e-4)


def test_false_exponents_fail():
    good = several(LAWS, 1, goal="chernoff").certificate
    assert failing(good) == []
    assert failing(replace(good, value=good.value * 1.0001)) == ["exponent"]
    assert failing(replace(good, bound=good.value)) == ["largest exponent"]
    fewer = several(LAWS[:2], 1, goal="chernoff").certificate
    # A certificate about two of the three laws says nothing about the third.
    assert failing(replace(fewer, laws=good.laws)) == ["pairs"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"laws": LAWS, "goal": "best"}, "one of guess, stein, chernoff"),
        ({"laws": LAWS, "goal": "stein", "prior": [1, 0, 0]}, "do not depend"),
        ({"laws": LAWS[:1]}, "at least two laws"),
        ({"laws": [*LAWS, [0.5, 0.5]]}, "has 2 entries where 3"),
        ({"laws": {"a": LAWS[0], "b": [0.5, 0.5, 0.5]}}, "hypothesis 'b' sums to 1.5"),
        ({"laws": LAWS, "prior": [0.5, 0.5]}, "has 2 entries where 3"),
        ({"laws": {"a": LAWS[0], "b": LAWS[1]}, "prior": {"c": 1}}, "names 'c'"),
        ({"laws": [{"x": 1}, [1]]}, "has names and the other has none"),
        ({"laws": {"a": {"x": 0.5, "y": 0.5}, "b": {"x": 1}}}, "'b' hypothesis misses 'y'"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(errors.DeniableError, match=words):
        several(epsilon=1, **arguments)
