"""Matrix inversion: unbiased, with exact variances and intervals that cover as often as they say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from deniable.channels.channel import Channel
from deniable.channels.closed_forms import randomized_response
from deniable.channels.inference import invert
from deniable.errors import ChannelError, LabelError, NumberError

pytestmark = pytest.mark.floats

COIN = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
LOPSIDED = Channel([["7/10", "3/10"], ["1/5", "4/5"]])
THREE = Channel([["6/10", "3/10", "1/10"], ["1/10", "7/10", "2/10"], ["2/10", "2/10", "6/10"]])


def outcomes(n, k):
    """All count vectors of n reports over k outputs."""
    for bars in itertools.combinations(range(n + k - 1), k - 1):
        edges = (-1, *bars, n + k - 1)
        yield np.diff(edges) - 1


@pytest.mark.parametrize("channel", [COIN, LOPSIDED, THREE, randomized_response(3, 1)])
def test_unbiased_with_the_stated_covariance_by_enumeration(channel):
    k = channel.shape[0]
    truth = np.arange(1, k + 1) / (k * (k + 1) / 2)
    law = channel.push(truth)
    n = 6
    mean, second, claimed = np.zeros(k), np.zeros(k), np.zeros(k)
    for counts in outcomes(n, k):
        weight = stats.multinomial.pmf(counts, n, law)
        result = invert(channel, counts)
        mean += weight * result.frequencies
        second += weight * result.frequencies**2
        claimed += weight * result.stderr**2
    np.testing.assert_allclose(mean, truth, atol=1e-12)
    # The plug-in variance of a multinomial is too small by exactly the factor (n - 1) / n.
    np.testing.assert_allclose(claimed, (second - mean**2) * (n - 1) / n, rtol=1e-9)


def test_projection_is_biased_and_the_enumeration_sees_it():
    truth = np.array([0.05, 0.95])
    law = COIN.push(truth)
    for project in ("clip", "simplex"):
        mean = sum(
            stats.multinomial.pmf(counts, 6, law) * invert(COIN, counts, project).frequencies
            for counts in outcomes(6, 2)
        )
        assert abs(mean[0] - 0.05) > 0.05


def test_projected_results_are_distributions_and_keep_the_raw_estimate():
    counts = [700, 300, 30, 40]
    channel = randomized_response(4, 1)
    raw = invert(channel, counts)
    assert raw.frequencies.min() < 0
    assert math.isnan(raw.gap)
    for project in ("clip", "simplex"):
        result = invert(channel, counts, project)
        assert result.frequencies.min() >= 0
        assert result.frequencies.sum() == pytest.approx(1)
        np.testing.assert_array_equal(result.raw, raw.frequencies)
        np.testing.assert_array_equal(result.stderr, raw.stderr)
        np.testing.assert_array_equal(result.interval(), np.clip(raw.interval(), 0, 1))
    clipped, nearest = (invert(channel, counts, project).frequencies for project in ("clip", "simplex"))
    assert np.abs(clipped - nearest).max() > 0.01


def test_counts_by_label():
    np.testing.assert_array_equal(
        invert(COIN, {"no": 600, "yes": 400}).frequencies, invert(COIN, [400, 600]).frequencies
    )
    with pytest.raises(LabelError):
        invert(COIN, {"maybe": 3})


def test_refusals_name_the_reason_and_the_way_out():
    with pytest.raises(ChannelError, match=r"2 x 3 .* not square: use ibu"):
        invert(Channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]]), [1, 2, 3])
    with pytest.raises(ChannelError, match=r"rank 2 of 3.* use ibu"):
        invert(Channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["3/8", "3/8", "1/4"]]), [1, 2, 3])
    with pytest.raises(ChannelError, match=r"condition number .* use ibu"):
        invert(Channel([["500000000001/1000000000000", "499999999999/1000000000000"], ["1/2", "1/2"]]), [1, 2])
    with pytest.raises(ChannelError, match="projection"):
        invert(COIN, [1, 2], project="sharp")


def clopper_pearson_coverage(channel, n, truth, level, shrink=1.0):
    """The exact probability that input 0's interval contains the truth."""
    counts = np.arange(n + 1)
    weights = stats.binom.pmf(counts, n, channel.push([truth, 1 - truth])[0])
    covered = 0.0
    for count, weight in zip(counts, weights, strict=True):
        low, high = invert(channel, [count, n - count]).interval(level)[0]
        middle, reach = (low + high) / 2, (high - low) / 2 * shrink
        covered += weight * (middle - reach <= truth <= middle + reach)
    return covered


@pytest.mark.parametrize("channel", [COIN, LOPSIDED, Channel([["1/4", "3/4"], ["3/4", "1/4"]])])
@pytest.mark.parametrize("truth", [0.0, 0.03, 0.4, 1.0])
def test_clopper_pearson_covers_exactly(channel, truth):
    assert clopper_pearson_coverage(channel, 40, truth, 0.9) >= 0.9


def test_narrower_intervals_would_be_caught():
    assert clopper_pearson_coverage(COIN, 40, 0.4, 0.9, shrink=0.7) < 0.85


def test_clopper_pearson_on_randomized_response_is_binomial_in_each_count():
    channel = randomized_response(5, 1)
    counts = [80, 40, 30, 30, 20]
    result = invert(channel, counts)
    p, q = channel.rows[0, 0], channel.rows[0, 1]
    ends = np.array([[stats.beta.ppf(0.05, c, 200 - c + 1), stats.beta.ppf(0.95, c + 1, 200 - c)] for c in counts])
    np.testing.assert_allclose(result.interval(0.9), (ends - q) / (p - q), rtol=1e-9)
    both = result.interval(0.9, simultaneous=True)
    np.testing.assert_allclose(both, result.interval(1 - 0.1 / 5))
    assert (np.diff(both) > np.diff(result.interval(0.9))).all()


def wald_coverage(channel, truth, n, repeats, scale=1.0):
    rng = np.random.default_rng(7)
    covered = np.zeros(truth.size)
    for counts in rng.multinomial(n, channel.push(truth), repeats):
        result = invert(channel, counts)
        low, high = result.interval(method="wald").T
        middle, reach = (low + high) / 2, (high - low) / 2 * scale
        covered += (middle - reach <= truth) & (truth <= middle + reach)
    return covered / repeats


def test_wald_intervals_cover_ninety_five_percent():
    # 2,000 repeats: a deviation of 0.025 is five standard deviations, so the test errs with probability 2e-6.
    truth = np.array([0.5, 0.3, 0.2])
    assert np.abs(wald_coverage(THREE, truth, 2000, 2000) - 0.95).max() < 0.025
    assert np.abs(wald_coverage(THREE, truth, 2000, 500, scale=0.8) - 0.95).min() > 0.025


def test_intervals_fall_back_to_the_score_and_say_when_they_cannot():
    result = invert(THREE, [500, 300, 200])
    np.testing.assert_array_equal(result.interval(), result.interval(method="score"))
    np.testing.assert_allclose(result.interval(), result.interval(method="wald"), atol=0.005)
    with pytest.raises(ChannelError, match="bootstrap"):
        result.interval(method="clopper-pearson")
    with pytest.raises(ChannelError, match="bootstrap"):
        result.interval(method="percentile")
    with pytest.raises(NumberError):
        result.interval(1.0)
    with pytest.raises(NumberError):
        result.interval(method="guess")
