"""The Bayes-optimal guess: exact, below the bound, simulated with real reports, and from several reports."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import deniable as dn
from deniable.domains import ListedDomain
from deniable.errors import ChannelError, NumberError
from deniable.privacy import attack, averaging, surest
from deniable.protocols import registered
from deniable.protocols.frequency.histogram import PureProtocol

E = math.e
KINDS = (dn.GRR, dn.SUE, dn.OUE, dn.THE, dn.SubsetSelection, dn.OLH, dn.HadamardResponse)


@pytest.fixture(scope="module")
def small():
    return [kind(4, 1) for kind in KINDS]


def unary(p, q, d):
    return p * (1 - (1 - q) ** d) / (d * q) + (1 - p) * (1 - q) ** (d - 1) / d


@pytest.mark.floats
@pytest.mark.parametrize("d", [4, 50])
def test_golden_values_of_the_uniform_prior(d):
    w = dn.SubsetSelection(d, 1).law().support.size
    half = math.sqrt(E)
    assert attack(dn.GRR(d, 1)).success == pytest.approx(E / (E + d - 1), abs=1e-9)
    assert attack(dn.SubsetSelection(d, 1)).success == pytest.approx(E / (w * E + d - w), abs=1e-9)
    assert attack(dn.OUE(d, 1)).success == pytest.approx(unary(0.5, 1 / (E + 1), d), abs=1e-9)
    assert attack(dn.SUE(d, 1)).success == pytest.approx(unary(half / (half + 1), 1 / (half + 1), d), abs=1e-9)


@pytest.mark.floats
def test_linear_hashing_tells_less_than_random_hashing():
    p, g, d = E / (E + 3), 4, 16
    random_hash = p * g * (1 - (1 - 1 / g) ** d) / d + (1 - p) * (1 - 1 / g) ** (d - 1) / d
    assert random_hash == pytest.approx(0.1181, abs=5e-5)
    assert attack(dn.OLH(d, 1, hash_bits=2)).success == pytest.approx(0.1120, abs=5e-5)


@pytest.mark.floats
def test_enumeration_agrees_with_each_protocols_own_formula(small):
    for protocol in small:
        found = attack(protocol)
        assert found.method == "enumerated"
        assert found.success == pytest.approx(protocol.worth().guess, abs=1e-9)


@pytest.mark.floats
@pytest.mark.parametrize("prior", [None, [0.4, 0.3, 0.2, 0.1], [0.91, 0.03, 0.03, 0.03]])
def test_no_guess_beats_the_bound_and_none_is_worse_than_without_a_report(small, prior):
    for protocol in small:
        found = attack(protocol, prior)
        assert found.blind - 1e-12 <= found.success <= found.bound + 1e-12
        assert found.bound == pytest.approx(surest(protocol.ratio, found.blind))
    # Reached by randomized response, so that nothing smaller is a bound.
    assert attack(dn.GRR(4, 1)).success == pytest.approx(attack(dn.GRR(4, 1)).bound)


@pytest.mark.parametrize("listed", [True, False], ids=["by its law", "by what a report supports"])
def test_simulated_guesses_agree_with_the_exact_figure(small, listed, monkeypatch):
    """Each of 39 comparisons fails by chance with probability 6e-5; the seed is fixed."""
    priors = None, [0.1, 0.2, 0.2, 0.5], [0.2, 0.2, 0.25, 0.35]
    kinds = [protocol for protocol in small if listed or isinstance(protocol, PureProtocol)]
    exact = [attack(protocol, prior) for protocol in kinds for prior in priors]
    if not listed:
        monkeypatch.setattr("deniable.privacy.attacks._listed", lambda protocol: None)
    for found in exact:
        seen = found.simulate(4000, seed=5)
        assert abs(seen - found.success) <= 4 * math.sqrt(found.success * (1 - found.success) / 4000)


def test_reports_that_are_too_many_to_list_are_simulated_below_the_bound():
    found = attack(dn.OUE(50, 3), [0.4, *[0.6 / 49] * 49])
    assert (found.success, found.method) == (None, "unknown")
    assert "at most" in found.words
    assert found.blind < found.simulate(4000, seed=5) < found.bound


def test_a_client_that_tells_too_much_beats_the_bound_of_its_claim():
    """The simulation uses real reports: a device at twice the epsilon is right more often than the claim allows."""
    claimed, real = dn.GRR(4, 1), dn.GRR(4, 2)
    found = attack(claimed)
    object.__setattr__(claimed, "privatize", real.privatize)
    seen = found.simulate(4000, seed=5)
    assert seen > found.bound + 4 * math.sqrt(found.bound * (1 - found.bound) / 4000)


def test_priors_by_answer_and_what_is_refused():
    coin = dn.GRR(["yes", "no"], 1)
    assert attack(coin, {"no": 0.9, "yes": 0.1}) == attack(coin, [0.1, 0.9])
    assert attack(coin, {"yes": 1}).bound == 1.0
    number = dn.plan(dn.Interval(0, 24), epsilon=1, n=1000).best
    assert attack(number).success is None
    with pytest.raises(ChannelError, match="not listed"):
        attack(number, [0.5, 0.5])
    with pytest.raises(ChannelError, match="not listed"):
        attack(number).simulate()
    for wrong in (lambda: surest(3, 0), lambda: averaging(coin, 0), lambda: averaging(coin, 2, how="twice")):
        with pytest.raises(NumberError):
            wrong()


@pytest.mark.floats
@pytest.mark.parametrize("prior", [0.5, 0.1, 0.8])
@pytest.mark.parametrize("protocol", [dn.GRR(2, 1), dn.GRR(3, 1), dn.OUE(2, 1)], ids=["coin", "three", "OUE"])
def test_repeated_reports_tell_what_the_product_of_their_laws_tells(protocol, prior):
    one, other = protocol.channel().rows[:2]
    for reports in (1, 2, 4):
        laws = [[math.prod(row[list(ys)]) for ys in product(range(one.size), repeat=reports)] for row in (one, other)]
        exact = np.maximum(prior * np.array(laws[0]), (1 - prior) * np.array(laws[1])).sum()
        found = averaging(protocol, reports, prior)
        assert found.is_exact
        assert exact - 1e-12 <= found.success <= exact + 1e-6
        assert found.success <= max(found.surest, surest(protocol.ratio**reports, 1 - prior)) + 1e-9


def test_reports_that_cannot_be_listed_or_are_kept_have_an_upper_bound():
    large, coin = averaging(dn.OUE(50, 1), 12), averaging(dn.GRR(2, 1), 12)
    assert not large.is_exact
    assert large.success >= coin.success - 1e-9
    kept = dn.LGRR(["yes", "no"], first="0.5", forever=1)
    year, household = averaging(kept, 365), averaging(kept, 12, how="group")
    assert year.success <= surest(dn.exact.exp_ceil(dn.exact.as_epsilon(1))) + 1e-9
    # Every device of a household draws its own state, so that many tell more than one.
    assert household.success > year.success
    assert household.success >= averaging(dn.GRR(2, "0.5"), 12).success


EVERY = [
    example
    for _, kind in sorted(registered().items())
    for example in kind.examples()
    if isinstance(example.domain, ListedDomain)
]
NAMES = [f"{example.name}-{place}" for place, example in enumerate(EVERY)]


def guessed(protocol):
    """The attack on an example with listed answers, with equal and with unequal priors; the exact success by hand."""
    if attack(protocol).method == "unknown":
        assert attack(protocol).success is None
        return
    size = protocol.domain.size
    for prior in (np.full(size, 1 / size), np.arange(1, size + 1) * 2 / (size * (size + 1))):
        yield attack(protocol, prior), float((protocol.channel().rows * prior[:, None]).max(axis=0).sum())


@pytest.mark.floats
@pytest.mark.parametrize("protocol", EVERY, ids=NAMES)
def test_every_example_is_guessed_as_its_channel_says_and_below_the_bound(protocol):
    for found, by_hand in guessed(protocol):
        assert found.success == pytest.approx(by_hand, abs=1e-9)
        assert found.bound is None or found.success <= found.bound + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("protocol", EVERY, ids=NAMES)
def test_simulated_guesses_of_every_example_are_within_two_percent(protocol):
    """200,000 guesses: two percent are at least five standard errors of successes above 0.25."""
    for found, by_hand in guessed(protocol):
        seen = found.simulate(200_000, seed=7)
        assert seen == pytest.approx(by_hand, rel=0.02)
        assert found.bound is None or seen <= found.bound + 4 * math.sqrt(0.25 / 200_000)
