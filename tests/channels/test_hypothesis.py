"""Tests between hypotheses: brute force over all sequences, proven brackets, exponents, people needed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from deniable.channels import binary, randomized_response
from deniable.channels.divergences import divergence, marginals
from deniable.channels.hypothesis import (
    TestError,
    _bracket,
    bayes_error,
    chernoff_information,
    effective_sample_size,
    le_cam_bound,
    least_chernoff_information,
    likelihood_ratio_test,
    people_needed,
    plot_effective_sample_size,
    sample_size,
    stein_exponent,
)
from deniable.channels.hypothesis._bracket import bayes_bracket, level_bracket, read_pair
from deniable.channels.hypothesis.ratio_test import count_types, types
from deniable.errors import NumberError, ProbabilityError, ShapeError

COIN, NIOC = [0.75, 0.25], [0.25, 0.75]
LAW0, LAW1 = [0.5, 0.3, 0.15, 0.05], [0.2, 0.25, 0.35, 0.2]


def sequences(law, n):
    """The probability of each of the m^n sequences."""
    result = np.ones(1)
    for _ in range(n):
        result = np.outer(result, law).ravel()
    return result


def brute_bayes(laws, prior, n):
    joint = np.array([weight * sequences(law, n) for law, weight in zip(laws, prior, strict=True)])
    return float(1 - joint.max(axis=0).sum())


def brute_level(m0, m1, n, level):
    """The least type-II error over all randomized tests, as a linear program over the sequences."""
    first, second = sequences(m0, n), sequences(m1, n)
    best = linprog(-second, A_ub=first[None, :], b_ub=[level], bounds=(0, 1))
    return float(1 + best.fun)


def random_pair(rng, size, closeness, zeros=False):
    m0 = rng.dirichlet(np.ones(size))
    m1 = closeness * m0 + (1 - closeness) * rng.dirichlet(np.ones(size))
    if zeros:
        m0[0], m1[-1] = 0, 0
    return m0 / m0.sum(), m1 / m1.sum()


def bracket(pair, n, prior=0.5, type_one=None):
    return bayes_bracket(pair, n, prior)[:2] if type_one is None else level_bracket(pair, n, type_one)


CASES = [
    pytest.param(size, n, zeros, id=f"{size}^{n}{'-zeros' * zeros}")
    for size, n in [(2, 1), (2, 7), (3, 1), (3, 5), (4, 4), (6, 3)]
    for zeros in (False, True)
    if size > 2 or not zeros
]


@pytest.mark.parametrize(("size", "n", "zeros"), CASES)
@pytest.mark.parametrize("prior", [0.5, 0.1])
def test_bayes_error_equals_brute_force(size, n, zeros, prior):
    m0, m1 = random_pair(np.random.default_rng(size * n), size, 0.4, zeros)
    result = likelihood_ratio_test(m0, m1, n, prior=prior)
    assert result.exact
    assert result.lower == result.upper == result.bayes
    assert result.bayes == pytest.approx(brute_bayes([m0, m1], [prior, 1 - prior], n), abs=1e-13)
    assert result.bayes == pytest.approx(prior * result.type_one + (1 - prior) * result.type_two, rel=1e-13)


@pytest.mark.parametrize(("size", "n", "zeros"), CASES)
@pytest.mark.parametrize("level", [0.02, 0.3, 0.8])
def test_level_test_equals_the_linear_program(size, n, zeros, level):
    m0, m1 = random_pair(np.random.default_rng(size * n + 1), size, 0.4, zeros)
    result = likelihood_ratio_test(m0, m1, n, type_one=level)
    assert result.type_one <= level
    assert result.type_two == pytest.approx(brute_level(m0, m1, n, level), abs=1e-9)


@pytest.mark.parametrize(("size", "n", "zeros"), CASES)
def test_the_bracket_contains_the_exact_error(size, n, zeros):
    m0, m1 = random_pair(np.random.default_rng(size * n + 2), size, 0.6, zeros)
    # Both kinds of question in every case, each with either number in half of the cases.
    for ask in [{"prior": 0.5}, {"type_one": 0.5}] if (size + n + zeros) % 2 else [{"prior": 0.02}, {"type_one": 0.1}]:
        exact = likelihood_ratio_test(m0, m1, n, **ask)
        lower, upper = bracket(read_pair(m0, m1), n, **ask)
        assert lower <= exact.lower * (1 + 1e-12)
        assert exact.upper <= upper * (1 + 1e-12)
        assert upper - lower <= 0.01 * exact.upper


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 4000),
    strength=st.floats(0.2, 8),
    prior=st.sampled_from([0.5, 0.3, 1e-3]),
)
def test_the_bracket_contains_the_binomial_error_at_any_n(seed, n, strength, prior):
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.05, 0.95)
    other = np.clip(base + strength * rng.choice([-1, 1]) / math.sqrt(n) / 2, 0.01, 0.99)
    m0, m1 = [base, 1 - base], [other, 1 - other]
    pair = read_pair(m0, m1)
    if pair.llr.size < 2:
        return
    exact = likelihood_ratio_test(m0, m1, n, prior=prior).bayes
    lower, upper, _ = bayes_bracket(pair, n, prior)
    assert lower <= exact * (1 + 1e-10) <= upper * (1 + 2e-10)
    assert upper - lower <= 1e-3 * exact
    exact = likelihood_ratio_test(m0, m1, n, type_one=0.05).type_two
    lower, upper = level_bracket(pair, n, 0.05)
    assert lower <= exact * (1 + 1e-9) <= upper * (1 + 2e-9)


def test_brackets_are_narrow_where_enumeration_is_hopeless():
    p0, p1 = random_pair(np.random.default_rng(5), 10, 0.7)
    m0, m1 = marginals(randomized_response(10, 1), p0, p1)
    for n in (500, 5_000, 50_000):
        result = likelihood_ratio_test(m0, m1, n)
        assert (result.exact, result.method) == (False, "bracket")
        assert result.upper - result.lower <= 1e-4 * result.lower
        assert result.lower <= result.bayes <= result.upper
        assert result.bayes == pytest.approx((result.type_one + result.type_two) / 2)
        assert le_cam_bound(m0, m1, n) / 2 <= result.upper
        assert result.lower <= math.exp(-n * chernoff_information(m0, m1).value) / 2 * (1 + 1e-12)
        power = likelihood_ratio_test(m0, m1, n, type_one=0.05)
        assert power.upper - power.lower <= 1e-2 * power.lower


def test_a_test_between_enumeration_and_bracket_agrees_on_a_large_case():
    m0, m1 = random_pair(np.random.default_rng(8), 3, 0.85)
    n = 1200
    assert count_types(n, 3) < 10**6
    for ask in ({"prior": 0.4}, {"type_one": 0.01}):
        exact, bracket = likelihood_ratio_test(m0, m1, n, **ask), likelihood_ratio_test(m0, m1, n, max_types=0, **ask)
        assert exact.method == "types"
        assert bracket.lower <= exact.lower * (1 + 1e-10)
        assert exact.upper <= bracket.upper * (1 + 1e-10)
        assert bracket.upper - bracket.lower <= 1e-3 * exact.lower
        assert bracket.type_one == pytest.approx(exact.type_one, rel=0.05)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.3, 0.7), (0.02, 0.05), (3, 0.5), (6, 6)])
def test_kernels_lie_above_and_below(a, b):
    """The two band-limited functions, from their transforms by quadrature, against the exponential they bound."""
    nodes, weights = np.polynomial.legendre.leggauss(300)
    u, du = (nodes + 1) / 2, weights / 2
    x = np.concatenate([np.linspace(-9, 9, 361), np.linspace(-30, 30, 61)])
    g = np.where(x >= 0, np.exp(-a * np.maximum(x, 0)), np.exp(b * np.minimum(x, 0)))
    wave = np.exp(2j * np.pi * np.outer(u, x))
    above = 2 * np.real((du * _bracket.majorant(a, b, u)) @ wave)
    below = 2 * np.real((du * _bracket.minorant(a, b, u)) @ wave)
    assert (above - g).min() > -1e-8
    assert (g - below).min() > -1e-8
    # Power: they touch g, so a hundredth off would be seen.
    assert (0.99 * above - g).min() < -1e-4
    assert (g - 1.01 * below).min() < -1e-4


def test_a_bracket_from_a_wrong_kernel_is_caught(monkeypatch):
    """The containment tests can fail: a tenth of a percent off in either kernel shows."""
    m0, m1 = random_pair(np.random.default_rng(3), 3, 0.5)
    pair, exact = read_pair(m0, m1), likelihood_ratio_test(m0, m1, 6).bayes
    lower, upper = bracket(pair, 6)
    assert lower <= exact <= upper
    majorant, minorant = _bracket.majorant, _bracket.minorant
    with monkeypatch.context() as patch:
        patch.setattr(_bracket, "majorant", lambda a, b, u: 0.999 * majorant(a, b, u))
        assert bracket(pair, 6)[1] < exact
    with monkeypatch.context() as patch:
        patch.setattr(_bracket, "minorant", lambda a, b, u: 1.001 * minorant(a, b, u))
        patch.setattr(_bracket, "majorant", lambda a, b, u: 1.001 * majorant(a, b, u))
        assert bracket(pair, 6)[0] > exact


def test_types_carry_all_the_probability():
    logs = np.log(np.array([LAW0, LAW1]))
    blocks = np.concatenate(list(types(9, logs)), axis=1)
    assert blocks.shape[1] == count_types(9, 4) == math.comb(12, 3)
    np.testing.assert_allclose(np.exp(blocks).sum(axis=1), 1, rtol=1e-13)
    seen: list[float] = []
    list(types(9, logs, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_many_outputs_and_few_reports_are_enumerated_too():
    rng = np.random.default_rng(1)
    m0, m1 = rng.dirichlet(np.ones(400)), rng.dirichlet(np.ones(400))
    result = likelihood_ratio_test(m0, m1, 2)
    assert result.method == "types"
    first, second = np.outer(m0, m0), np.outer(m1, m1)
    assert result.bayes == pytest.approx(np.minimum(first, second).sum() / 2, rel=1e-12)


def test_outputs_of_equal_ratio_are_merged():
    split0, split1 = [0.3, 0.45, 0.1, 0.15], [0.1, 0.15, 0.3, 0.45]
    result = likelihood_ratio_test(split0, split1, 101)
    assert result.method == "binomial"
    assert result.bayes == pytest.approx(likelihood_ratio_test(COIN, NIOC, 101).bayes, rel=1e-12)
    # The same numbers in another order have four ratios, and no short cut.
    assert likelihood_ratio_test(split0, [0.1, 0.3, 0.15, 0.45], 5).method == "types"


def test_symmetric_coins_have_equal_errors_and_a_closed_form():
    for n in (1, 3, 11, 101):
        result = likelihood_ratio_test(COIN, NIOC, n)
        tail = sum(math.comb(n, k) * 0.75**k * 0.25 ** (n - k) for k in range((n + 1) // 2))
        assert result.type_one == pytest.approx(result.type_two)
        assert result.bayes == pytest.approx(tail, rel=1e-12)


def test_binomial_tails_at_a_billion_reports():
    # Two symmetric coins 2d apart: Q(2 d sqrt n) to first order in d, by the central limit theorem.
    n, d = 10**9 + 1, 5e-5
    result = likelihood_ratio_test([0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d], n)
    assert result.exact
    assert result.bayes == pytest.approx(math.erfc(2 * d * math.sqrt(n) / math.sqrt(2)) / 2, rel=1e-6)


def test_trivial_hypotheses():
    same = likelihood_ratio_test(LAW0, LAW0, 5, prior=0.3)
    assert same.bayes == pytest.approx(0.3)
    assert likelihood_ratio_test(LAW0, LAW0, 5, type_one=0.2).type_two == pytest.approx(0.8)
    apart = likelihood_ratio_test([1, 0], [0, 1], 1)
    assert (apart.bayes, apart.upper, apart.method) == (0, 0, "disjoint")
    # A level above the chance that the question stays open is not used up.
    open_question = likelihood_ratio_test([0.5, 0.5, 0], [0, 0.5, 0.5], 3, type_one=0.9)
    assert open_question.type_one == pytest.approx(0.125)
    assert open_question.type_two == 0


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 4))
def test_errors_fall_with_n_and_respect_every_bound(seed, size):
    rng = np.random.default_rng(seed)
    m0, m1 = random_pair(rng, size, rng.uniform(0, 0.9))
    information = chernoff_information(m0, m1).value
    previous = 1.0
    for n in (1, 2, 3, 5, 8, 13):
        bayes = likelihood_ratio_test(m0, m1, n)
        power = likelihood_ratio_test(m0, m1, n, type_one=0.1)
        assert bayes.bayes <= math.exp(-n * information) / 2 * (1 + 1e-12)
        assert le_cam_bound(m0, m1, n) <= 2 * bayes.bayes * (1 + 1e-12)
        assert le_cam_bound(m0, m1, n) <= (0.1 + power.type_two) * (1 + 1e-12)
        assert 2 * bayes.bayes <= 0.1 + power.type_two + 1e-12
        assert power.type_two <= previous + 1e-12
        previous = power.type_two


def test_le_cam_is_exact_for_one_report_and_disjoint_laws():
    assert le_cam_bound(LAW0, LAW1, 1) == pytest.approx(1 - divergence(LAW0, LAW1, "tv"))
    assert le_cam_bound([1, 0], [0, 1], 3) == 0
    assert le_cam_bound(LAW0, LAW0, 100) == 1
    # Without the square root, as some notes have it, the "bound" is none.
    wrong = (1 - divergence(COIN, NIOC, "hellinger2")) ** 1
    assert wrong > 2 * likelihood_ratio_test(COIN, NIOC, 1).bayes


def test_chernoff_information_closed_forms():
    found = chernoff_information(COIN, NIOC)
    assert found.value == pytest.approx(math.log(2 / math.sqrt(3)))
    assert found.exponent == pytest.approx(0.5)
    assert chernoff_information([1, 0], [0, 1]).value == math.inf
    assert chernoff_information(LAW0, LAW0).value == 0
    # Only the second law can produce output 0, and the rest agree: the first law is never excluded.
    assert chernoff_information([0, 1], [0.5, 0.5]).value == pytest.approx(math.log(2))
    # Swapping the hypotheses mirrors the exponent.
    forward, backward = chernoff_information(LAW0, LAW1), chernoff_information(LAW1, LAW0)
    assert forward.value == pytest.approx(backward.value, rel=1e-14)
    assert forward.exponent == pytest.approx(1 - backward.exponent, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_chernoff_information_is_the_minimum(seed):
    m0, m1 = random_pair(np.random.default_rng(seed), 4, 0.3)
    found = chernoff_information(m0, m1)
    grid = np.linspace(0, 1, 401)
    curve = -np.log((m0 ** grid[:, None] * m1 ** (1 - grid[:, None])).sum(axis=1))
    assert found.value >= curve.max() - 1e-12
    assert found.value <= curve.max() + 1e-4 * divergence(m0, m1, "chi2") + 1e-9
    assert found.value <= min(stein_exponent(m0, m1), stein_exponent(m1, m0)) + 1e-12


def test_chernoff_information_of_close_laws_is_an_eighth_of_chi2():
    step = 2.0**-30
    m0, m1 = [0.1875 + step, 0.3125 - step, 0.5], [0.1875, 0.3125, 0.5]
    found = chernoff_information(m0, m1)
    assert found.value == pytest.approx(divergence(m0, m1, "chi2") / 8, rel=1e-7)
    assert found.exponent == pytest.approx(0.5, abs=1e-6)


def test_chernoff_and_stein_limits():
    m0, m1 = [0.55, 0.45], [0.45, 0.55]
    stein, chernoff = stein_exponent(m0, m1), chernoff_information(m0, m1).value
    gaps = []
    for n in (400, 4_000, 25_000):
        rate = -math.log(likelihood_ratio_test(m0, m1, n, type_one=0.2).type_two) / n
        gaps.append(abs(rate / stein - 1))
        bayes = -math.log(likelihood_ratio_test(m0, m1, n).bayes) / n
        assert chernoff <= bayes <= chernoff + (math.log(n) / 2 + 3) / n
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.06
    # Power: the Chernoff information, a quarter of it, is not the limit.
    assert stein > 3.9 * chernoff


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("prior", [None, [0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
def test_three_hypotheses_by_brute_force(n, prior):
    rng = np.random.default_rng(n)
    laws = [rng.dirichlet(np.ones(4)) for _ in range(3)]
    laws[0][1] = 0
    laws[0] /= laws[0].sum()
    weights = [1 / 3] * 3 if prior is None else prior
    reference = brute_bayes(laws, weights, n)
    exact = bayes_error(laws, prior, n)
    assert exact.exact
    assert exact.value == pytest.approx(reference, abs=1e-13)
    bracket = bayes_error(laws, prior, n, max_types=0)
    assert bracket.lower <= reference + 1e-12
    assert reference <= bracket.upper + 1e-12


def test_several_hypotheses_merge_proportional_outputs_and_scale():
    laws = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    split = np.concatenate([laws / 3, laws * 2 / 3], axis=1)
    assert bayes_error(list(split), n=100).value == pytest.approx(bayes_error(list(laws), n=100).value, rel=1e-10)
    large = bayes_error(list(laws), n=6000)
    assert (large.exact, large.method) == (False, "pairs")
    assert large.lower <= large.value <= large.upper <= 3 * large.lower
    rate = least_chernoff_information(list(laws)).value
    assert -math.log(large.upper) / 6000 == pytest.approx(rate, rel=0.02)
    assert bayes_error([LAW0, LAW1], [1, 0], 3).value == 0
    assert bayes_error([LAW0, LAW1], n=3).value == likelihood_ratio_test(LAW0, LAW1, 3).bayes


def test_least_chernoff_information_is_over_pairs():
    laws = [LAW0, LAW1, [0.25, 0.25, 0.25, 0.25], [0.24, 0.26, 0.25, 0.25]]
    found = least_chernoff_information(laws)
    values = {(i, j): chernoff_information(laws[i], laws[j]).value for i, j in itertools.combinations(range(4), 2)}
    assert found.pair == min(values, key=values.__getitem__) == (2, 3)
    assert found.value == values[2, 3]


def test_effective_sample_size_falls_like_epsilon_squared():
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.35, 0.45]
    limit = divergence(p0, p1, "tv") ** 2 / (2 * divergence(p0, p1, "kl"))
    ratios = [effective_sample_size(binary(p0, p1, e), p0, p1) / e**2 for e in (0.1, 0.01, 0.001)]
    errors = [abs(ratio / limit - 1) for ratio in ratios]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4
    # Power: neither a linear nor a cubic law would stay constant.
    assert effective_sample_size(binary(p0, p1, 0.001), p0, p1) / 0.001 < limit / 100
    for channel in (binary(p0, p1, 8), randomized_response(3, 8)):
        for kind in ("kl", "tv", "chi2", "hellinger2", "js"):
            assert 0 < effective_sample_size(channel, p0, p1, kind) <= 1
    assert effective_sample_size(randomized_response(3, 20), p0, p1) == pytest.approx(1, abs=1e-5)


def test_effective_sample_size_with_infinite_divergence():
    p0, p1 = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]
    with pytest.raises(NumberError, match=r"infinitely better by this divergence.*hellinger2"):
        effective_sample_size(randomized_response(3, 1), p0, p1)
    assert effective_sample_size(randomized_response(3, 1), p0, p1, "hellinger2") > 0
    with pytest.raises(NumberError, match="the same"):
        effective_sample_size(randomized_response(3, 1), p0, p0)


@pytest.mark.parametrize(
    ("m0", "m1", "one", "two"),
    [
        (COIN, NIOC, 0.05, 0.05),
        (LAW0, LAW1, 0.05, 0.1),
        ([0.5, 0.5, 0], [0, 0.5, 0.5], 0.01, 0.01),
        (COIN, NIOC, 0.5, 1e-6),
    ],
)
def test_sample_size_is_the_least(m0, m1, one, two):
    found = sample_size(m0, m1, one, two)
    assert found.exact
    assert likelihood_ratio_test(m0, m1, found.n, type_one=one).type_two <= two
    assert likelihood_ratio_test(m0, m1, found.n - 1, type_one=one).type_two > two


def test_sample_size_edges():
    assert sample_size([1, 0], [0, 1], 0.1, 0.1).n == 1
    assert sample_size(COIN, COIN, 0.5, 0.5).n == 0
    with pytest.raises(NumberError, match="no number of reports"):
        sample_size(COIN, COIN, 0.1, 0.1)
    with pytest.raises(NumberError, match="too close"):
        sample_size([0.5, 0.5], [0.5 + 1e-8, 0.5 - 1e-8], 0.1, 0.1)


def test_people_needed_with_ten_categories():
    p0, p1 = random_pair(np.random.default_rng(5), 10, 0.7)
    channel = randomized_response(10, 2)
    found = people_needed(channel, p0, p1, 0.05, 0.05)
    assert found.private.exact
    assert found.direct.exact
    m0, m1 = marginals(channel, p0, p1)
    assert likelihood_ratio_test(m0, m1, found.private.n, type_one=0.05).lower <= 0.05
    assert likelihood_ratio_test(m0, m1, found.private.n - 1, type_one=0.05).upper > 0.05
    # Sample sizes are in inverse proportion to divergence, about.
    assert found.factor == pytest.approx(1 / effective_sample_size(channel, p0, p1), rel=0.3)
    stricter = people_needed(randomized_response(10, "3/2"), p0, p1, 0.05, 0.05)
    assert stricter.private.n > found.private.n
    assert stricter.direct == found.direct


def test_refusals():
    with pytest.raises(NumberError, match="between 1 and 10\\^12, not 0"):
        likelihood_ratio_test(COIN, NIOC, 0)
    with pytest.raises(NumberError, match="an integer, not 2"):
        likelihood_ratio_test(COIN, NIOC, 2.5)
    with pytest.raises(NumberError, match="prior"):
        likelihood_ratio_test(COIN, NIOC, 2, prior=1.0)
    with pytest.raises(NumberError, match="type-I error"):
        likelihood_ratio_test(COIN, NIOC, 2, type_one=0)
    with pytest.raises(NumberError, match="type-II rate"):
        sample_size(COIN, NIOC, 0.1, math.nan)
    with pytest.raises(ShapeError):
        likelihood_ratio_test(COIN, LAW0, 2)
    with pytest.raises(ProbabilityError):
        chernoff_information([0.5, 0.6], COIN)
    with pytest.raises(ShapeError, match="two or more"):
        bayes_error([COIN], n=1)
    with pytest.raises(ShapeError, match="two or more"):
        least_chernoff_information([COIN])
    with pytest.raises(ShapeError):
        bayes_error([COIN, NIOC], [0.5, 0.25, 0.25], 1)


def test_results_are_plain_values():
    result = likelihood_ratio_test(COIN, NIOC, 4)
    assert result == likelihood_ratio_test(COIN, NIOC, 4)
    assert isinstance(result, TestError)
    with pytest.raises(AttributeError):
        result.bayes = 0.0


def test_extreme_questions_give_valid_brackets():
    rng = np.random.default_rng(11)
    for _ in range(6):
        m0, m1 = (law + 1e-12 for law in rng.dirichlet(np.full(6, 0.1), size=2))
        m0, m1 = m0 / m0.sum(), m1 / m1.sum()
        n = int(10 ** rng.uniform(0, 12))
        for ask in ({"prior": 0.01}, {"prior": 1e-300}, {"type_one": 1e-5}, {"type_one": 0.9}):
            result = likelihood_ratio_test(m0, m1, n, max_types=1, **ask)
            assert 0 <= result.lower <= result.upper <= 1
            assert 0 <= result.type_one <= 1
            assert 0 <= result.type_two <= 1


def test_the_plot_shows_both_mechanisms_and_the_reference():
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.35, 0.45]
    ax = plot_effective_sample_size(p0, p1, [0.1, 0.2, 0.4, 0.8])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert len(ax.lines) == 3
    one_bit, direct, reference = (line.get_ydata() for line in ax.lines)
    assert one_bit[0] == pytest.approx(effective_sample_size(binary(p0, p1, 0.1), p0, p1))
    assert direct[-1] == pytest.approx(effective_sample_size(randomized_response(3, 0.8), p0, p1))
    np.testing.assert_allclose(reference / one_bit[0], [1, 4, 16, 64])
    assert plot_effective_sample_size(p0, p1, [1, 2], kind="tv", ax=ax) is ax


def test_the_search_for_people_says_what_it_tries():
    said = []

    def progress(what, share):
        said.append(what)

    found = sample_size([0.6, 0.4], [0.4, 0.6], 0.05, 0.05, progress)
    assert f"are {found.n} reports enough?" in said
    before = len(said)
    assert people_needed(randomized_response(2, 1), [0.9, 0.1], [0.5, 0.5], 0.05, 0.05, progress).private.n == 75
    assert "are 75 reports enough?" in said[before:]
