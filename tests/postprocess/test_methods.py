"""Each post-processing method does what its definition says, and helps where it is said to help."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError
from deniable.postprocess import METHODS, apply, cut_quantile, fitted_exponent, power_shares, project_simplex
from deniable.postprocess.power_law import FLATTEST, STEEPEST


def noisy(shape: str, size: int, n: int, seed: int = 0, error: float = 1.92):
    """True shares, unbiased estimates and their standard errors, as from OUE at epsilon 1."""
    random = np.random.default_rng(seed)
    weight = {"zipf": 1 / np.arange(1, size + 1) ** 1.5, "flat": np.ones(size), "one": np.eye(size)[0]}[shape]
    truth = random.multinomial(n, weight / weight.sum()) / n
    stderr = np.full(size, error / np.sqrt(n))
    return truth, truth + stderr * random.normal(size=size), stderr


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=30), st.floats(0, 1, width=32))
def test_what_every_method_promises(method, values, error):
    given_shares = np.array(values)
    if method == "norm-mul" and not (given_shares > 0).any():
        return
    before = given_shares.copy()
    shares = apply(method, given_shares, np.full(given_shares.size, error), n=1000)
    np.testing.assert_array_equal(given_shares, before)
    assert shares.shape == given_shares.shape
    assert np.isfinite(shares).all()
    if METHODS[method].distribution:
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1, abs=1e-9)
        # Larger estimates stay larger: nothing here reorders equally reliable answers.
        order = np.argsort(given_shares)
        assert np.diff(shares[order]).min() >= -1e-9


def test_the_definitions_by_hand():
    shares, errors = [0.7, 0.5, -0.1, 0.02], [0.05] * 4
    expected = {
        "none": shares,
        "clip": [0.7, 0.5, 0, 0.02],
        "norm": [0.67, 0.47, -0.13, -0.01],
        "norm-mul": np.array([0.7, 0.5, 0, 0.02]) / 1.22,
        "norm-sub": [0.6, 0.4, 0, 0],
        "base-cut": [0.7, 0.5, 0, 0.02],
    }
    for method, values in expected.items():
        np.testing.assert_allclose(apply(method, shares, errors, 100), values, atol=1e-12)


def test_base_cut_lets_two_of_many_empty_answers_through_on_average():
    # z is where a standard normal is exceeded with probability 2 / d; the mean of 400 runs has standard error 0.07.
    random = np.random.default_rng(5)
    for size in (10, 1000):
        assert stats.norm.sf(cut_quantile(size)) * size == pytest.approx(2, rel=1e-9)
        survivors = [
            np.count_nonzero(apply("base-cut", random.normal(size=size), np.ones(size), 10)) for _ in range(400)
        ]
        assert np.mean(survivors) == pytest.approx(2, abs=5 * np.sqrt(2 / 400))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_base_cut_of_few_answers_is_clipping(size):
    shares = np.array([0.9, -0.2, 0.01, 0.3])[:size]
    np.testing.assert_array_equal(apply("base-cut", shares, np.ones(size), 10), np.maximum(shares, 0))
    assert cut_quantile(size) == 0


def test_base_cut_keeps_what_it_keeps_as_it_is():
    shares = np.linspace(-0.05, 0.2, 100)
    kept = apply("base-cut", shares, np.full(100, 0.03), 10)
    assert set(kept[kept > 0]) <= set(shares)
    assert kept[kept > 0].min() > cut_quantile(100) * 0.03
    assert kept.min() == 0


def posterior_mean(share, error, lowest, exponent):
    """By adaptive quadrature in the logarithm of the share."""

    def integrand(u, power):
        return np.exp((1 + power - exponent) * u - 0.5 * ((share - np.exp(u)) / error) ** 2)

    ends = np.log([lowest, min(1.0, max(share, 0) + 12 * error)])
    middle = np.clip(np.log(np.maximum([error, share - 2 * error, share, share + 2 * error], lowest)), *ends)
    cuts = np.unique([ends[0], *middle, ends[1]])
    pieces = [
        sum(integrate.quad(integrand, a, b, (k,), epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(cuts))
        for k in (0, 1)
    ]
    return pieces[1] / pieces[0]


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.0, 2.5, 5.0, 7.9])
def test_the_power_posterior_is_the_integral(z, monkeypatch):
    error, n = 0.002, 10**6
    monkeypatch.setattr("deniable.postprocess.power_law.fitted_exponent", lambda *_: 1.5)
    (found,) = power_shares(np.array([z * error]), np.array([error]), n)
    assert found == pytest.approx(posterior_mean(z * error, error, 1 / n, 1.5), abs=1e-4 * error)
    # The same comparison sees a wrong exponent.
    if z > 0:
        assert abs(found - posterior_mean(z * error, error, 1 / n, 1.4)) > 1e-3 * error


def test_far_from_zero_the_power_law_hardly_matters(monkeypatch):
    monkeypatch.setattr("deniable.postprocess.power_law.fitted_exponent", lambda *_: 1.5)
    error = 0.002
    for z in (8.1, 20.0, 100.0):
        (found,) = power_shares(np.array([z * error]), np.array([error]), 10**6)
        assert found == pytest.approx(posterior_mean(z * error, error, 1e-6, 1.5), abs=0.01 * error)


@pytest.mark.parametrize("exponent", [0.8, 1.5, 2.2])
def test_the_exponent_is_recovered(exponent):
    # Shares drawn from the model itself; 20,000 of them, of which the fit sees every fifth.
    random, lowest = np.random.default_rng(1), 1e-4
    k = 1 - exponent
    shares = (lowest**k + random.uniform(size=20_000) * (1 - lowest**k)) ** (1 / k)
    error = np.full(shares.size, 2e-4)
    found = fitted_exponent(shares + error * random.normal(size=shares.size), error, lowest)
    assert found == pytest.approx(exponent, abs=0.05)


def test_the_exponent_stays_in_its_range():
    for shares in (np.full(5, -3.0), np.full(5, 0.99), np.zeros(3)):
        assert FLATTEST <= fitted_exponent(shares, np.full(shares.size, 0.01), 1e-6) <= STEEPEST


def total_error(method, shape, size, n, runs=40):
    errors = []
    for seed in range(runs):
        truth, shares, stderr = noisy(shape, size, n, seed)
        errors.append(((apply(method, shares, stderr, n) - truth) ** 2).mean())
    return np.mean(errors)


def test_skewed_data_profit_and_flat_data_need_not():
    skewed = {method: total_error(method, "zipf", 256, 10**5) for method in METHODS}
    assert skewed["norm-sub"] < skewed["none"] / 4
    assert skewed["power"] < 0.8 * skewed["norm-sub"]
    assert skewed["clip"] < 0.7 * skewed["none"]
    assert skewed["norm-mul"] > 2 * skewed["none"]
    assert skewed["norm"] == pytest.approx(skewed["none"], rel=0.02)
    flat = {method: total_error(method, "flat", 64, 10**6) for method in METHODS}
    assert flat["norm-sub"] == pytest.approx(flat["none"], rel=0.05)
    assert flat["power"] > 0.99 * flat["norm-sub"]
    hidden = {method: total_error(method, "flat", 64, 10**5) for method in METHODS}
    assert hidden["base-cut"] > 2 * hidden["none"]
    assert hidden["power"] > 1.1 * hidden["norm-sub"]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_positive_zeros_and_two_answers(method):
    for shares in ([-0.3, -0.1, -0.2], [0.0, 0.0, 0.0], [-1.0, -1.0]):
        stderr = [0.1] * len(shares)
        if method == "norm-mul":
            with pytest.raises(ProbabilityError, match="norm-sub"):
                apply(method, shares, stderr, 50)
        else:
            assert np.isfinite(apply(method, shares, stderr, 50)).all()
    two = apply(method, [1.2, -0.2], [0.1, 0.1], 50)
    if METHODS[method].distribution:
        np.testing.assert_allclose(two, [1, 0], atol=0.02)


def test_without_noise_power_changes_nothing_but_the_sum():
    np.testing.assert_allclose(apply("power", [0.5, 0.3, 0.2], [0.0] * 3, 100), [0.5, 0.3, 0.2])
    np.testing.assert_allclose(apply("power", [0.5, 0.3, 0.1], [0.0] * 3, 1), project_simplex([0.5, 0.3, 0.1]))


def test_very_many_answers():
    random = np.random.default_rng(2)
    stderr = np.full(200_000, 1e-3)
    shares = stderr * random.normal(size=stderr.size)
    shares[:50] += 0.02
    found = apply("power", shares, stderr, 10**6)
    assert found[:50].sum() > 0.9
    assert found.sum() == pytest.approx(1)


def test_refusals_name_the_way_out():
    with pytest.raises(LabelError, match="'norm-sub' for a distribution") as refused:
        apply("xyz", [0.5, 0.5], [0.1, 0.1], 10)
    assert all(repr(name) in str(refused.value) and known.bias in str(refused.value) for name, known in METHODS.items())
    with pytest.raises(LabelError, match=r"no method 'Norm_sub': did you mean 'norm-sub'\? There are 'none',"):
        apply("Norm_sub", [0.5, 0.5], [0.1, 0.1], 10)
    with pytest.raises(LabelError, match=r"protocol\.mle\(reports\)"):
        apply("MLE", [0.5, 0.5], [0.1, 0.1], 10)
    with pytest.raises(NumberError, match="NaN"):
        apply("clip", [0.5, np.nan], [0.1, 0.1], 10)
    with pytest.raises(NumberError, match="NaN"):
        apply("none", [0.5, 0.5], [0.1, np.inf], 10)
    with pytest.raises(NumberError, match="negative"):
        apply("none", [0.5, 0.5], [0.1, -0.1], 10)
    with pytest.raises(NumberError, match="at least one"):
        apply("none", [0.5, 0.5], [0.1, 0.1], 0)
    with pytest.raises(ShapeError, match="2 frequencies and 3"):
        apply("none", [0.5, 0.5], [0.1, 0.1, 0.1], 10)
    for wrong in ([], [[0.5, 0.5]], "text"):
        with pytest.raises(ShapeError):
            apply("none", wrong, [0.1], 10)
