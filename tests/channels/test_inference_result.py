"""What every estimator returns, the standard errors of maximum likelihood, and the bootstrap."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from deniable.channels import truncated_geometric
from deniable.channels.channel import Channel
from deniable.channels.closed_forms import randomized_response
from deniable.channels.inference import bootstrap, fisher_stderr, ibu, invert, mle_randomized_response
from deniable.channels.inference.em import information_stderr
from deniable.channels.inference.estimators import independent_rows
from deniable.errors import ChannelError, NumberError
from tests.documents import rows_of

pytestmark = pytest.mark.floats

COIN = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
WIDE = Channel([["5/10", "3/10", "1/10", "1/10"], ["1/10", "2/10", "3/10", "4/10"], ["2/10", "5/10", "2/10", "1/10"]])


def test_the_table():
    shown = str(ibu(COIN, [400, 600]))
    assert shown.splitlines()[0].startswith("IBU, n = 1,000; ")
    assert shown.splitlines()[2].split()[:4] == ["yes", "300.0", "0.300", "0.031"]
    many = str(invert(randomized_response(30, 2), np.arange(1, 31)))
    assert many.endswith("the 20 largest of 30")
    assert repr(ibu(COIN, [400, 600])) == "<Inference by IBU: 2 frequencies from 1000 reports>"


def test_results_do_not_change():
    result = ibu(COIN, [400, 600])
    with pytest.raises(FrozenInstanceError):
        result.method = "other"
    with pytest.raises(ValueError, match="read-only"):
        result.frequencies[0] = 1


def test_counts_and_labels():
    result = invert(COIN, [400, 600])
    np.testing.assert_allclose(result.counts, [300, 700])
    assert result.labels == ("yes", "no")
    assert result.n == 1000


def test_json():
    hopeless = Channel([["1/2", "1/2"], ["1/2", "1/2"]], inputs=[(1, "a"), (2, "b")])
    record = json.loads(json.dumps(ibu(hopeless, [3, 4]).to_dict(), allow_nan=False))
    assert [row["stderr"] for row in rows_of(record)] == [None, None]
    assert [row["label"] for row in rows_of(record)] == [[1, "a"], [2, "b"]]
    assert (record["kind"], record["n"], record["level"], record["population"]) == ("shares", 7, 0.95, True)
    assert record["notes"] == ["different crowds look the same through this channel: this is one of many solutions"]
    assert record["facts"]["identifiable"] is False
    raw = invert(COIN, [100, 900]).to_dict()
    assert raw["facts"]["gap"] is None
    json.dumps(raw, allow_nan=False)


def test_the_picture():
    axes = invert(COIN, [400, 600]).plot(truth=[0.25, 0.75])
    names = [bars.get_label() for bars in axes.containers]
    assert names == ["true", "noisy", "reconstructed"]
    assert [bar.get_height() for bar in axes.containers[1]] == [0.4, 0.6]
    assert len(axes.collections[0].get_segments()) == 2
    axes = ibu(WIDE, [30, 20, 20, 30]).plot()
    assert [bars.get_label() for bars in axes.containers] == ["reconstructed"]
    axes = ibu(Channel([["1/2", "1/2"], ["1/2", "1/2"], ["9/10", "1/10"]]), [60, 40]).plot()
    assert len(axes.patches) == 3
    import matplotlib.pyplot as plt

    plt.close("all")


def test_import_stays_light():
    code = (
        "import sys, deniable.channels.inference, deniable.channels.utilities, deniable.channels.leakages;"
        "print([name for name in ('scipy', 'matplotlib', 'rich') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def coverage(support, repeats=300):
    """Coverage of 95% intervals of each frequency by maximum likelihood, with mass close to zero."""
    channel = randomized_response(8, 1)
    truth = 1 / np.arange(1, 9) ** 1.3
    truth /= truth.sum()
    covered = np.zeros(8)
    for counts in np.random.default_rng(0).multinomial(500, channel.push(truth), repeats):
        found = mle_randomized_response(channel, counts).frequencies
        reach = 1.96 * fisher_stderr(channel.rows, counts.astype(float), found, support)
        covered += (found - reach <= truth) & (truth <= found + reach)
    return covered / repeats


def test_likelihood_intervals_cover_even_next_to_zero():
    # 300 repeats: 0.88 is 5.5 standard deviations below 0.95, so a fair interval fails with probability 2e-8 a value.
    assert coverage("all").min() > 0.88
    # Holding the zeros fixed is the broken variant: it misses the small frequencies.
    assert coverage("active").min() < 0.8


def test_errors_of_rare_answers_at_large_epsilon():
    found = mle_randomized_response(randomized_response(3, 8), [990, 10, 0])
    np.testing.assert_allclose(found.stderr[:2], 0.0031, atol=2e-4)  # inversion has 0.0031
    assert found.stderr[2] < 0.001
    assert (np.diff(found.interval()[2]) > 0.003).all()  # up to three in a thousand may have been missed
    assert np.isfinite(ibu(randomized_response(10, 6), [990, 10] + [0] * 8).stderr).all()


ZEROS = ([0.7, 0.3, 0.0, 0.0, 0.0], [0.9, 0.09, 0.01, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "epsilon", ["0.5", pytest.param("2", marks=pytest.mark.slow), pytest.param("6", marks=pytest.mark.slow), "8"]
)
@pytest.mark.parametrize("law", [randomized_response, truncated_geometric])
def test_likelihood_intervals_cover_zeros_at_every_epsilon(law, epsilon):
    # 60 surveys: a fair interval misses more than 14 of them with probability 2e-7 an entry.
    channel = law(5 if law is randomized_response else 4, epsilon)
    for truth in map(np.array, ZEROS):
        hits = np.zeros(5)
        for counts in np.random.default_rng(5).multinomial(1000, channel.push(truth), 60):
            found = ibu(channel, counts, tolerance=1e-8)
            ends = found.interval()
            hits += (ends[:, 0] <= truth + 1e-12) & (truth <= ends[:, 1] + 1e-12)
        assert hits.min() >= 46, truth
    if epsilon == "8" and law is randomized_response:
        assert ibu(channel, [990, 10, 0, 0, 0]).interval(method="wald")[2, 1] < 0.0015  # far below three in a thousand


def test_fisher_errors_match_the_spread_of_the_estimates():
    truth = np.array([0.4, 0.35, 0.25])
    draws = np.random.default_rng(4).multinomial(5000, WIDE.push(truth), 400)
    results = [ibu(WIDE, counts) for counts in draws]
    spread = np.std([result.frequencies for result in results], axis=0)
    claimed = np.mean([result.stderr for result in results], axis=0)
    # A standard deviation from 400 draws is off by 3.5%; 20% is beyond five and a half of those.
    np.testing.assert_allclose(spread, claimed, rtol=0.2)
    assert (np.abs(spread - 1.5 * claimed) > 0.2 * 1.5 * claimed).all()


@pytest.mark.parametrize("size", [2, 16, 64])
def test_rounding_errors_and_constants_leave_the_errors_alone(size):
    # Another processor's linear algebra rounds differently, and what is constant in a row or column says nothing.
    channel, random = randomized_response(size, 2), np.random.default_rng(size)
    truth = random.dirichlet(np.ones(size))
    counts = 1e5 * channel.push(truth)
    expected = fisher_stderr(channel.rows, counts, truth)
    information = channel.rows * (1e5 / channel.push(truth)) @ channel.rows.T
    noise = 1e-8 * np.abs(information).max() * random.normal(size=(size, size))
    np.testing.assert_allclose(information_stderr(information + noise + noise.T, truth), expected, rtol=1e-4)
    # A constant direction that is judged by its size stays in for some of these: errors thousands of times too large.
    for large in 10.0 ** np.arange(6, 13):
        tilt = random.normal(size=size)
        rough = information + large * (7 + tilt + tilt[:, None])
        np.testing.assert_allclose(information_stderr(rough, truth), expected, rtol=1e-5)
    assert expected.max() < 0.1


def test_a_flat_direction_is_infinite_whatever_the_rounding():
    twins = Channel([["1/2", "1/4", "1/4"], ["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"], ["1/3", "1/3", "1/3"]])
    assert independent_rows(twins) == 3
    for seed in range(20):
        rows = twins.rows * (1 + 1e-15 * np.random.default_rng(seed).normal(size=twins.rows.shape))
        errors = fisher_stderr(rows, np.array([300.0, 200, 500]), np.array([0.2, 0.3, 0.4, 0.1]), rank=3)
        assert np.isinf(errors).tolist() == [True, True, False, False]
        np.testing.assert_allclose(errors[2:], ibu(twins, [300, 200, 500], [0.2, 0.3, 0.4, 0.1]).stderr[2:], rtol=1)


def test_the_rank_is_that_of_the_integers():
    near = Channel([["1/2", "1/2"], ["500000000000000000000001/1000000000000000000000000",
                    "499999999999999999999999/1000000000000000000000000"]])  # fmt: skip
    assert independent_rows(near) == 2
    assert np.linalg.matrix_rank(near.rows) == 1
    random = np.random.default_rng(1)
    for k, m, rank in ((4, 6, 2), (6, 4, 3), (5, 5, 5)):
        basis, mix = random.integers(1, 9, (rank, m)), random.integers(1, 9, (k, rank))
        table = mix @ basis
        rows = [[Fraction(int(c), int(row.sum())) for c in row] for row in table]
        assert independent_rows(Channel(rows)) == rank


def test_fisher_errors_on_the_active_face():
    counts = np.array([700.0, 300, 30, 40])
    channel = randomized_response(4, 1)
    found = mle_randomized_response(channel, counts).frequencies
    assert (found[2:] == 0).all()
    active = fisher_stderr(channel.rows, counts, found, "active")
    assert (active[2:] == 0).all()
    assert (active[:2] < fisher_stderr(channel.rows, counts, found)[:2]).all()
    assert active[0] == pytest.approx(active[1])  # two frequencies that sum to one


@pytest.mark.parametrize("estimator", ["ibu", "inversion", "clip", "simplex", "closed form"])
def test_bootstrap_agrees_with_the_formula_in_the_interior(estimator):
    channel = randomized_response(3, 2)
    counts = [4000, 3000, 3000]
    result = bootstrap(channel, counts, estimator, replicates=400, seed=1)
    formula = invert(channel, counts)
    np.testing.assert_allclose(result.frequencies, formula.frequencies, atol=1e-6)
    np.testing.assert_allclose(result.stderr, formula.stderr, rtol=0.2)
    np.testing.assert_allclose(result.interval(), formula.interval(), atol=0.35 * formula.stderr.max())
    np.testing.assert_array_equal(
        result.replicates, bootstrap(channel, counts, estimator, replicates=400, seed=1).replicates
    )


def test_bootstrap_of_any_function_and_its_refusals():
    by_name = bootstrap(COIN, [100, 900], "simplex", replicates=50)
    by_function = bootstrap(COIN, [100, 900], lambda c, counts: invert(c, counts, "simplex"), replicates=50)
    np.testing.assert_array_equal(by_name.replicates, by_function.replicates)
    # The estimate is zero here, but some replicates are not: a warm start must not freeze them.
    fast = bootstrap(COIN, [245, 755], replicates=20)
    slow = bootstrap(COIN, [245, 755], ibu, replicates=20)
    assert fast.frequencies[0] == 0 < fast.replicates[:, 0].max()
    np.testing.assert_allclose(fast.replicates, slow.replicates, atol=1e-4)
    with pytest.raises(ChannelError, match="estimator"):
        bootstrap(COIN, [1, 2], "magic")
    with pytest.raises(NumberError, match="replicates"):
        bootstrap(COIN, [1, 2], replicates=1)
    with pytest.raises(NumberError, match="whole"):
        bootstrap(COIN, [1.5, 2])
