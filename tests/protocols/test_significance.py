"""Tests on private data: the covariance of every protocol exactly, and the size and the power of the tests.

A size is compared with 0.05 at five standard errors of the simulation: by chance once in two million times per test
(seeds are fixed).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.channels import Channel
from deniable.protocols import BLH, GRR, OLH, OUE, SUE, THE, HadamardResponse, ShareProtocol, SubsetSelection, Table
from deniable.results.significance import LEVEL

SMALL = [GRR(4, 1), SUE(3, 1), OUE(4, "1/2"), THE(3, 1), BLH(5, 1), OLH(5, "3/2", hash_bits=2), SubsetSelection(5, 1)]
HADAMARD = [HadamardResponse(5, 1), HadamardResponse(6, 3)]
TABLE = Table(Channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]], inputs=["yes", "no"]), 1)


def enumerated(protocol: ShareProtocol, shares: np.ndarray) -> np.ndarray:
    """The covariance that one report adds to the estimated counts, from all reports and their probabilities."""
    channel = protocol.channel()
    reports = np.array([list(bytes.fromhex(output)) for output in channel.outputs], dtype=np.uint8)
    said = np.array([protocol.estimate(protocol.tally(report[None])).counts for report in reports])
    found = np.zeros((shares.size, shares.size))
    for share, row in zip(shares, channel.rows, strict=True):
        mean = row @ said
        found += share * (said.T @ (row[:, None] * said) - np.outer(mean, mean))
    return found


@pytest.mark.parametrize("protocol", [*SMALL, *HADAMARD, TABLE], ids=lambda one: f"{one.name}-{one.domain.size}")
def test_the_covariance_is_that_of_all_reports(protocol: ShareProtocol) -> None:
    size = protocol.domain.size
    shares = np.arange(1.0, size + 1) / (size * (size + 1) / 2)
    known = protocol._noise_covariance(shares)
    assert known is not None
    assert known == pytest.approx(enumerated(protocol, shares), abs=1e-9)


def surveys(protocol: ShareProtocol, shares: np.ndarray, n: int, runs: int, seed: int) -> list[dn.Estimate]:
    """Estimates from people who are drawn anew each time."""
    random = np.random.default_rng(seed)
    people = random.multinomial(n, shares, runs)
    tallies = [protocol.kernel().simulate(row, 1, random) for row in people]
    return [protocol.estimate(dn.Tally(protocol.fingerprint, n, row[0])) for row in tallies if row is not None]


SHARES = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
DEPENDENT = np.array([0.2, 0.2, 0.1, 0.1, 0.2, 0.2])


def sizes(protocol: ShareProtocol, second: ShareProtocol, runs: int, seed: int) -> dict[str, float]:
    """How often each test rejects what is true."""
    here, third = (surveys(protocol, SHARES, n, runs, seed + n) for n in (3000, 1500))
    there = surveys(second, SHARES, 2000, runs, seed)
    rejected = {
        "fit": [one.test(SHARES).rejected() for one in here],
        "two groups": [dn.compare(a, b).rejected() for a, b in zip(here, there, strict=True)],
        "three groups": [dn.compare(*each).rejected() for each in zip(here, there, third, strict=True)],
    }
    return {name: float(np.mean(one)) for name, one in rejected.items()}


def reach(runs: int) -> float:
    return 5 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def test_a_true_hypothesis_is_rejected_in_one_survey_of_twenty() -> None:
    runs = 200
    for found in sizes(GRR(5, 1), OUE(5, 2), runs, 1).values():
        assert abs(found - LEVEL) < reach(runs)
    # With a third less noise than there is the size is wrong, and the same check says so.
    coin = GRR(5, 1)
    found = surveys(coin, SHARES, 3000, runs, 4)
    alone = [replace(one, law=lambda at: coin._noise_covariance(at) / 1.5) for one in found]
    size = float(np.mean([one.test(SHARES).rejected(0.5) for one in alone]))
    assert abs(size - 0.5) > 5 * math.sqrt(0.25 / runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [(GRR(5, 1), OUE(5, 2)), (SUE(5, "1/2"), GRR(5, 4)), (HadamardResponse(5, 2), HadamardResponse(5, 1))],
    ids=["GRR and OUE", "SUE and GRR", "Hadamard"],
)
def test_the_size_in_many_surveys(one: ShareProtocol, other: ShareProtocol) -> None:
    runs = 1_500
    for found in sizes(one, other, runs, 11).values():
        assert abs(found - LEVEL) < reach(runs)


def independent(protocol: ShareProtocol, shares: np.ndarray, n: int, runs: int, seed: int) -> float:
    found = surveys(protocol, shares, n, runs, seed)
    return float(np.mean([dn.independence(one, (2, 3)).rejected() for one in found]))


def test_independence_has_the_size_and_finds_dependence() -> None:
    runs, even = 100, np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel()
    assert abs(independent(OUE(6, 2), even, 5000, runs, 3) - LEVEL) < reach(runs)
    assert independent(OUE(6, 2), DEPENDENT, 5000, 50, 5) > 0.9


def test_independence_keeps_its_size_where_noise_is_large() -> None:
    """At OUE, epsilon 1/2 and n = 100 a test with the law of large samples rejects 27 of 100 true hypotheses."""
    even = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel()
    assert independent(OUE(6, "1/2"), even, 100, 60, 3) <= 9 / 60


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GRR, OUE, OLH])
def test_the_size_of_independence_from_fifty_people_on(kind: type) -> None:
    even, runs = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel(), 150
    for epsilon in ("1/4", "1", "4"):
        for n in (50, 500, 10_000):
            protocol, people = kind(6, epsilon), np.random.default_rng(n).multinomial(n, even, runs)
            tallies = (protocol.simulate(None, 1, seed, counts=row).tally(0) for seed, row in enumerate(people))
            found = np.mean([dn.independence(protocol.estimate(one), (2, 3)).rejected() for one in tallies])
            assert found < LEVEL + reach(runs), (epsilon, n)


@pytest.mark.slow
def test_the_size_of_independence_in_many_surveys() -> None:
    even = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel()
    for protocol in (GRR(6, 2), OUE(6, 1)):
        assert abs(independent(protocol, even, 5000, 1000, 3) - LEVEL) < reach(1000)


def test_the_power_is_the_one_that_was_promised() -> None:
    truth, runs, n = np.array([0.47, 0.26, 0.16, 0.11, 0.0]), 400, 4000
    for protocol in (GRR(5, 1), OUE(5, 1)):
        promised = protocol.power(SHARES, truth, n)
        assert 0.1 < promised < 0.9
        seen = np.mean([one.test(SHARES).rejected() for one in surveys(protocol, truth, n, runs, 8)])
        assert abs(seen - promised) < 5 * math.sqrt(promised * (1 - promised) / runs)


def test_means_and_distributions_are_tested_too() -> None:
    warm, bits = dn.Window(dn.Interval(0, 10), 2), dn.Simulation(3)
    numbers = np.random.default_rng(1).uniform(0, 10, 20_000)
    cold = warm.estimate(warm.tally(warm.privatize(0.8 * numbers, bits)))
    same = [warm.estimate(warm.tally(warm.privatize(numbers, bits))) for _ in range(2)]
    assert dn.compare(cold, same[0]).rejected()
    assert not dn.compare(*same).rejected(1e-6)
    assert cold.test(5.0).rejected()
    assert not cold.test(4.0).rejected(1e-6)
    ages = dn.Window(dn.Integers(0, 19), 2, read="distribution")
    people = np.random.default_rng(2).binomial(19, 0.4, (2, 20_000))
    young, old = (ages.estimate(ages.tally(ages.privatize(one, bits))) for one in people)
    older = ages.estimate(ages.tally(ages.privatize(np.minimum(people[0] + 2, 19), bits)))
    assert not dn.compare(young, old).rejected(1e-6)
    assert dn.compare(young, older).rejected(1e-6)
    assert (young - older).p_value == pytest.approx(dn.compare(young, older).p_value)
    law = [math.comb(19, k) * 0.4**k * 0.6 ** (19 - k) for k in range(20)]
    assert not young.test(law).rejected(1e-6)
    assert older.test(law).rejected(1e-6)
    total = np.cumsum(law)
    assert young.test(lambda x: total[x.astype(int)]).p_value == pytest.approx(young.test(law).p_value)


def test_the_mean_of_a_distribution_is_tested_by_its_intervals() -> None:
    numbers = np.arange(2000) % 12
    for protocol in (dn.Window(dn.Integers(0, 20), 2, read="distribution"), dn.Ranges(dn.Integers(0, 20), 2)):
        found = protocol.estimate(protocol.tally(protocol.privatize(numbers, dn.Simulation(1))))
        for level in (0.95, 0.99):
            low, high = found.mean.interval(level)
            assert found.test(high).p_value == pytest.approx(1 - level, abs=1e-6)
            assert found.test(low).p_value == pytest.approx(1 - level, abs=1e-6)
        assert found.test(5.5).p_value > 0.01 > found.test(8).p_value
        with pytest.raises(dn.errors.NumberError, match="against a number"):
            found.test(math.nan)
        assert protocol.estimate(protocol.empty()).test(3).p_value == 1


def test_shares_that_need_not_add_up_are_tested_one_by_one_and_in_part() -> None:
    """Of sets and of texts, what is left out is not tested."""
    sets = dn.ItemSets(dn.Sets(["x", "y", "z"], at_most=2), 3)
    found = sets.estimate(sets.tally(sets.privatize([["x", "y"], ["x"]] * 500, dn.Simulation(1))))
    assert found.test({"x": 1.0, "y": 0.5}).p_value > 0.001 > found.test({"x": 0.5}).p_value
    assert "smallest of 2" in found.test({"x": 1.0, "y": 0.5}).method
    with pytest.raises(dn.errors.NumberError, match="between 0 and 1"):
        found.test({"x": 1.5})
    texts = dn.CMS(dn.Strings(), 4)
    heard = texts.estimate(
        texts.tally(texts.privatize(["tea"] * 300 + ["milk"] * 700, dn.Simulation(1))), ["tea", "rye"]
    )
    assert heard.test({"tea": 0.3}).p_value > 0.001 > heard.test({"tea": 0.9, "rye": 0}).p_value
    shares = GRR(["a", "b"], 1)
    with pytest.raises(dn.errors.NumberError, match="by answer or in order"):
        shares.estimate(shares.tally(shares.privatize(["a"] * 9, dn.Simulation(1)))).test(3)


def test_repeated_reports_weaken_a_test() -> None:
    coin = GRR(["yes", "no"], 1)
    once = coin.estimate(dn.Tally(coin.fingerprint, 2000, [1060, 940]))
    assert once.test([0.5, 0.5]).p_value < once.repeated(1.0, 4.0).test([0.5, 0.5]).p_value
    assert once.repeated(4.0, 4.0).test([0.5, 0.5]).statistic == pytest.approx(once.test([0.5, 0.5]).statistic / 4)


def test_unknown_covariances_fall_back_to_single_figures() -> None:
    sketch = dn.CMS(dn.Strings(64, 4, "k"), 2)
    tally = sketch.tally(sketch.privatize(["yes"] * 900 + ["no"] * 100, dn.Simulation(1)))
    found = sketch.estimate(tally, ["yes", "no", "other", "none"])
    tested = found.test({"yes": 0.2, "no": 0.8})
    assert "Bonferroni" in tested.method
    assert tested.rejected()
    assert dn.compare(found, found).p_value == 1.0
    with pytest.raises(dn.errors.MismatchError, match="covariance"):
        dn.independence(found, (2, 2))


def test_what_a_test_says() -> None:
    coin = GRR(["yes", "no"], Fraction(1))
    empty, full = (coin.estimate(dn.Tally(coin.fingerprint, n, [n * 3 // 5, n * 2 // 5])) for n in (0, 1000))
    assert empty.test([0.5, 0.5]).sentence() == "Nothing can be said yet: there are no reports."
    assert dn.compare(empty, full).p_value == 1.0
    assert "fewer than two of the groups" in dn.compare(empty, full).sentence()
    assert str(full.test({"yes": 1})).startswith("Differs from what was given (p < 0.0001, n = 1,000).")
    assert full.test({"yes": 0.7165, "no": 0.2835}).sentence().startswith("Nothing speaks against what was given (p = ")
    assert set(full.test([0.5, 0.5]).to_dict()) > {"p_value", "statistic", "freedom", "sentence"}
    with pytest.raises(dn.errors.NumberError, match="at least two"):
        dn.compare(full)
    with pytest.raises(dn.errors.NumberError, match="add up to one"):
        full.test([0.5, 0.6])
    with pytest.raises(dn.errors.LabelError, match="maybe"):
        full.test({"maybe": 1})
    with pytest.raises(dn.errors.MismatchError, match="different answers"):
        dn.compare(full, GRR(["a", "b"], 1).estimate(dn.Tally(GRR(["a", "b"], 1).fingerprint, 10, [5, 5])))
