"""Maximum likelihood from reports: the maximum of the enumerated channel, of another optimizer, and a smaller error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from deniable.channels.inference import ibu
from deniable.channels.inference.em import information_stderr, maximize
from deniable.errors import MismatchError, NumberError, ReportError
from deniable.protocols import BLH, GRR, OLH, OUE, SUE, THE, HadamardResponse, SubsetSelection
from deniable.protocols.frequency import histogram as protocols
from deniable.protocols.frequency.histogram import SupportModel, Supports, distinct
from deniable.randomness import Simulation

pytestmark = pytest.mark.floats

ALL = (GRR, SUE, OUE, THE, BLH, OLH, SubsetSelection, HadamardResponse)
ITERATED = tuple(kind for kind in ALL if kind is not GRR)


def zipf(size, n, seed, exponent=1.3):
    weight = 1 / np.arange(1, size + 1) ** exponent
    return np.random.default_rng(seed).multinomial(n, weight / weight.sum())


def collect(protocol, counts, seed=0):
    return protocol.privatize(np.repeat(np.arange(counts.size), counts), Simulation(seed))


def histogram(reports):
    forms, often = np.unique(np.asarray(reports), axis=0, return_counts=True)
    return {form.tobytes().hex(): int(count) for form, count in zip(forms, often, strict=True)}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (3, 0.3), (5, 1.2)])
def test_equals_the_bayesian_update_on_the_enumerated_channel(kind, size, epsilon):
    protocol = kind(size, epsilon)
    counts = zipf(size, 3000, seed=size)
    reports = collect(protocol, counts)
    found = protocol.mle(reports, tolerance=1e-13)
    reference = ibu(protocol.channel(), histogram(reports), tolerance=1e-13)
    np.testing.assert_allclose(found.frequencies, reference.frequencies, atol=1e-8)
    assert found.fit.converged
    assert found.method == "mle"
    # The channel's errors are for a population; `errors(population=True)` is the same thing by another road.
    if kind is not GRR and reference.frequencies.min() > 1e-6:
        rows, shares = protocol.channel().rows, reference.frequencies
        observed = rows * (reference.observed / (shares @ rows) ** 2) @ rows.T
        np.testing.assert_allclose(found.stderr, information_stderr(observed, shares), rtol=1e-5)
        np.testing.assert_allclose(found.stderr, reference.stderr, rtol=0.05)


def test_a_wrong_ratio_gives_another_maximum():
    protocol, counts = OUE(4, 1), zipf(4, 3000, seed=1)
    reports = np.asarray(collect(protocol, counts))
    rows, often = distinct(reports)
    right = protocol.mle(reports).frequencies
    wrong = SupportModel(Supports.of(protocol, rows), float(protocol.ratio - 1) * 1.01)
    shares = maximize(wrong, often / often.sum(), np.full(4, 0.25)).point
    assert np.abs(shares - right).max() > 1e-4


@pytest.mark.parametrize("kind", ITERATED)
def test_reaches_the_maximum_of_an_independent_optimizer(kind):
    size = 12
    protocol = kind(size, 1)
    reports = collect(protocol, zipf(size, 2000, seed=3), seed=4)
    support = protocol.support(reports).astype(float)
    contrast = float(protocol.ratio - 1)

    def objective(x):
        mixture = 1 + contrast * (support @ x)
        return -np.log(mixture).mean(), -contrast * (support.T @ (1 / mixture)) / len(support)

    best = minimize(
        objective,
        np.full(size, 1 / size),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(size)},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    other = np.maximum(best.x, 0) / np.maximum(best.x, 0).sum()
    found = protocol.mle(reports)
    mine, theirs = -objective(found.frequencies)[0], -objective(other)[0]
    assert mine >= theirs - 1e-9
    assert theirs >= mine - 1e-6  # no straw man
    assert theirs <= mine + found.fit.gap + 1e-12  # the certificate
    np.testing.assert_allclose(found.frequencies, other, atol=2e-3)


@pytest.mark.parametrize("size", [2, 3, 16, 21])
@pytest.mark.parametrize("hash_bits", [1, 2, 4])
def test_the_fast_form_for_hashes_is_the_plain_one(size, hash_bits):
    protocol = OLH(size, 2, hash_bits=hash_bits)
    reports = np.asarray(collect(protocol, zipf(size, 500, seed=1)))
    fast = protocol._likelihoods(reports)
    plain = SupportModel(Supports.of(protocol, reports), float(protocol.ratio - 1))
    random = np.random.default_rng(0)
    point, share = random.dirichlet(np.ones(size)), random.dirichlet(np.ones(len(reports)))
    np.testing.assert_allclose(fast.mix(point), plain.mix(point), rtol=1e-12)
    for a, b in zip(fast.update(point, share), plain.update(point, share), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    change = random.normal(size=size)
    np.testing.assert_allclose(fast.mix(change), plain.mix(change), atol=1e-10)
    np.testing.assert_allclose(fast.curvature(share), plain.curvature(share), rtol=1e-5)


def test_blocks_and_repeats_change_nothing(monkeypatch):
    protocol = SubsetSelection(9, 1)
    reports = collect(protocol, zipf(9, 4000, seed=2))
    whole = protocol.mle(reports)
    monkeypatch.setattr(protocols, "_BLOCK_CELLS", 64)
    monkeypatch.setattr(protocols, "_KEPT_CELLS", 0)
    monkeypatch.setattr(protocols, "distinct", lambda rows: (rows, np.ones(len(rows), dtype=np.int64)))
    pieces = protocol.mle(reports)
    np.testing.assert_allclose(pieces.frequencies, whole.frequencies, atol=1e-7)
    np.testing.assert_allclose(pieces.variance, whole.variance, rtol=1e-4)


def test_distinct_reports():
    rows, often = distinct(np.array([[1, 2], [3, 4], [1, 2]], dtype=np.uint8))
    assert sorted(zip(rows.tolist(), often.tolist(), strict=True)) == [([1, 2], 2), ([3, 4], 1)]
    wide = np.zeros((3, 9), dtype=np.uint8)
    assert distinct(wide)[1].tolist() == [1, 1, 1]


def test_a_tally_is_enough_for_grr_and_hadamard_response():
    for kind in (GRR, HadamardResponse):
        protocol = kind(6, 1)
        reports = collect(protocol, zipf(6, 5000, seed=5))
        a, b = protocol.mle(reports), protocol.mle(protocol.tally(reports))
        np.testing.assert_allclose(a.frequencies, b.frequencies, atol=1e-7)
        np.testing.assert_allclose(a.variance, b.variance, rtol=1e-3)
        with pytest.raises(MismatchError):
            protocol.mle(kind(6, 2).tally(kind(6, 2).privatize([1, 2])))
    with pytest.raises(ReportError, match="give the reports"):
        OUE(6, 1).mle(OUE(6, 1).tally(OUE(6, 1).privatize([1, 2, 3])))


@pytest.mark.parametrize("kind", [OUE, OLH, SubsetSelection])
def test_smaller_total_error_than_the_unbiased_estimate(kind):
    protocol = kind(16, 1)
    counts = zipf(16, 2000, seed=0, exponent=2)
    truth = counts / counts.sum()
    unbiased, likely = [], []
    for seed in range(12):
        reports = collect(protocol, counts, seed)
        unbiased.append(((protocol.estimate(protocol.tally(reports)).frequencies - truth) ** 2).mean())
        likely.append(((protocol.mle(reports, tolerance=1e-6).frequencies - truth) ** 2).mean())
    assert np.mean(likely) < 0.6 * np.mean(unbiased)


@pytest.mark.slow
def test_error_bars_have_the_size_of_the_errors():
    # 1,000 runs estimate a standard deviation to 2.2 %, so 11 % is five of its standard errors: false alarms 1e-6.
    protocol = OUE(4, 3)
    counts = np.array([500, 400, 350, 250])
    results = [protocol.mle(collect(protocol, counts, seed), tolerance=1e-7) for seed in range(1000)]
    spread = np.std([result.frequencies for result in results], axis=0)
    claimed = np.mean([result.errors(population=False) for result in results], axis=0)
    np.testing.assert_allclose(claimed, spread, rtol=0.11)
    # The same test sees the error for a population, and the unbiased estimate's error.
    population = np.mean([result.stderr for result in results], axis=0)
    assert (population > 1.2 * spread).all()
    assert (np.sqrt(protocol.variance(1500, counts / 1500, population=False)) / 1500 > 1.12 * spread).all()


@pytest.mark.parametrize("kind", [GRR, OUE, pytest.param(SubsetSelection, marks=pytest.mark.slow)])
def test_intervals_at_large_epsilon_with_answers_that_nobody_gives(kind):
    # 150 surveys: 0.85 is 5.6 standard deviations below 0.95, so a fair interval fails with probability 1e-8 an answer.
    for epsilon in (2, 8):
        protocol, truth = kind(5, epsilon), np.array([0.9, 0.09, 0.01, 0.0, 0.0])
        hits = np.zeros(5)
        for seed, people in enumerate(np.random.default_rng(2).multinomial(1000, truth, 150)):
            found = protocol.mle(collect(protocol, people, seed), tolerance=1e-6)
            ends = found.interval()
            assert (ends[:, 1] < 0.2 + 1.5 * truth).all()
            assert (found.stderr <= np.sqrt(protocol.variance(1000, found.frequencies)) / 1000 * (1 + 1e-9)).all()
            hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        assert (hits / 150).min() > 0.85


@pytest.mark.parametrize(
    ("kind", "runs"),
    [
        (GRR, 200),
        pytest.param(HadamardResponse, 200, marks=pytest.mark.slow),
        pytest.param(OUE, 80, marks=pytest.mark.slow),
    ],
)
def test_intervals_where_shares_that_stop_at_zero_pull_the_others_down(kind, runs):
    # 4.5 standard deviations below 0.95, so a fair interval fails with probability 3e-6.
    least, size, n = 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / runs), 64, 1000
    protocol, truth = kind(size, 2), np.pad(1 / np.arange(1, 9) ** 1.3, (0, size - 8))
    truth /= truth.sum()
    people = np.random.default_rng(3).multinomial(n, truth, runs)
    hits, around = np.zeros((2, size)), np.zeros(2)
    for seed, counts in enumerate(people):
        found = protocol.mle(collect(protocol, counts, seed), tolerance=1e-6)
        for which, (population, shares) in enumerate([(True, truth), (False, counts / n)]):
            low, high = found.interval(population=population).T
            assert (low <= found.frequencies).all()
            assert (found.frequencies <= high).all()
            hits[which] += (low <= shares) & (shares <= high)
            # The intervals would have missed the largest share more often, had they been around the estimate.
            half = (high[0] - low[0]) / 2
            around[which] += abs(found.frequencies[0] - shares[0]) <= half
    assert (hits / runs)[:, :8].min() > least
    assert (around / runs).min() < 0.9


def test_score_intervals_have_the_error_that_the_other_answers_of_a_block_leave():
    # Answers 0 and 4 share a block, which holds nearly everybody; the others have one of their own.
    protocol = HadamardResponse(5, 2)
    fit = protocol.mle(collect(protocol, np.array([900, 90, 10, 0, 0]))).fit
    shares, n = np.clip(fit.unbiased.frequencies, 0, 1), fit.unbiased.n
    none, linear, square = fit.spread
    claimed = (none + linear * shares + square * shares**2) / n
    np.testing.assert_allclose(claimed, fit.unbiased.variance / n**2, rtol=1e-9)
    assert (np.abs(protocol.variance(n, shares) / fit.unbiased.variance - 1) > 0.05).any()


def test_many_answers_fall_back_to_the_unbiased_error(monkeypatch):
    protocol = OLH(64, 1)
    reports = collect(protocol, zipf(64, 3000, seed=1))
    exact = protocol.mle(reports, tolerance=1e-6)
    monkeypatch.setattr(protocols, "FISHER_LIMIT", 10)
    cautious = protocol.mle(reports, tolerance=1e-6)
    np.testing.assert_array_equal(exact.frequencies, cautious.frequencies)
    np.testing.assert_allclose(cautious.variance, protocol.variance(3000, cautious.frequencies))
    assert np.median(exact.stderr / cautious.stderr) < 1


def test_the_estimate_is_a_distribution_and_says_so():
    protocol = OLH(["a", "b", "c", "d"], 1)
    result = protocol.mle(protocol.privatize(["a"] * 400 + ["b"] * 100, Simulation(1)))
    assert result.frequencies.min() >= 0
    assert result.frequencies.sum() == pytest.approx(1)
    ends = result.interval(0.99)
    assert ends.min() >= 0
    assert ends.max() <= 1
    assert "OLH, mle, n = 500" in str(result)
    early = protocol.mle(protocol.privatize(["a"] * 400 + ["b"] * 100, Simulation(1)), max_iterations=2)
    assert not early.fit.converged
    assert "not converged" in str(early)


def test_progress_and_refusals(capsys):
    protocol = OUE(5, 1)
    reports = protocol.privatize([0, 1, 2, 3, 4, 4, 4], Simulation(2))
    protocol.mle(reports)
    assert capsys.readouterr().out == ""
    protocol.mle(reports, progress=True)
    assert "MLE" in capsys.readouterr().out
    with pytest.raises(NumberError, match="tolerance"):
        protocol.mle(reports, tolerance=0)
    with pytest.raises(NumberError, match="iteration"):
        protocol.mle(reports, max_iterations=0)
    assert protocol.mle(np.empty((0, 1), dtype=np.uint8)).notes
    with pytest.raises(ReportError, match="malformed"):
        protocol.mle(np.array([[255]], dtype=np.uint8))
    assert GRR(5, 1).mle(GRR(5, 1).empty()).notes
