"""The misfit test: valid for every population, blind to none of the usual mistakes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from deniable.channels import randomized_response, truncated_geometric
from deniable.channels.channel import Channel
from deniable.channels.inference import Misfit, ibu, invert, mle_randomized_response
from deniable.domains import Strings
from deniable.protocols import (
    BLH,
    GRR,
    HCMS,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    THE,
    HadamardResponse,
    SubsetSelection,
    Tally,
)
from deniable.randomness import Simulation
from deniable.results.significance import SUSPICIOUS, channel_misfit, too_far, too_few, too_many

pytestmark = pytest.mark.floats

COIN = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["yes", "no"])
DRAWN = (GRR, SUE, OUE, THE, HadamardResponse)  # tallies of these are drawn at once
OTHERS = (BLH, OLH, SubsetSelection)


def test_tails_are_those_of_the_binomial():
    law = [math.comb(9, k) * 0.3**k * 0.7 ** (9 - k) for k in range(10)]
    for k in range(10):
        assert too_few(k, 9, 0.3) == pytest.approx(sum(law[: k + 1]), rel=1e-12)
        assert too_many(k, 9, 0.3) == pytest.approx(sum(law[k:]), rel=1e-12)
    assert too_few(1, 9, 0.3, tests=3) == pytest.approx(min(1, 3 * sum(law[:2])), rel=1e-12)


@pytest.mark.parametrize("law", [[0.5, 0.3, 0.2], [0.98, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]])
@pytest.mark.parametrize("n", [1, 4, 15])
def test_the_entropy_bound_holds_exactly(law, n):
    # Every possible tally of n reports: the p-value is at most x with probability at most x, for every x.
    law = np.array(law)
    tallies = [t for t in itertools.product(range(n + 1), repeat=law.size) if sum(t) == n]
    ways = [math.factorial(n) / math.prod(map(math.factorial, t)) for t in tallies]
    chance = [way * math.prod(law ** np.array(t)) for way, t in zip(ways, tallies, strict=True)]
    found = [too_far(np.array(t, dtype=float), law) for t in tallies]
    for x in sorted(set(found)):
        assert sum(c for c, p in zip(chance, found, strict=True) if p <= x) <= x * (1 + 1e-9)


def populations(size):
    yield np.eye(size)[0]
    yield np.full(size, 1 / size)
    yield np.array([0.5, 0.5] + [0.0] * (size - 2))


@pytest.mark.parametrize("kind", DRAWN)
def test_honest_reports_are_seldom_suspected(kind):
    # 5 % would be allowed; the limit is five standard deviations above it, so a valid test fails with 3e-7.
    runs = 100
    for protocol in (kind(3, 1), kind(6, 4)):
        for truth in populations(protocol.domain.size):
            people = np.random.default_rng(1).multinomial(300, truth, runs)
            tallies = (protocol.simulate(None, 1, seed, counts=row).tally(0) for seed, row in enumerate(people))
            p_values = np.array([protocol.misfit(tally).p_value for tally in tallies])
            assert np.mean(p_values < 0.05) <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / runs)
            assert (p_values >= SUSPICIOUS).mean() > 0.96  # four of a hundred: by chance 4e-6


@pytest.mark.parametrize("kind", DRAWN + OTHERS)
def test_the_wrong_epsilon_is_noticed(kind):
    protocol, careless = kind(6, 1), kind(6, 3)
    everybody = np.array([3000, 0, 0, 0, 0, 0])
    honest = protocol.simulate(None, 1, 1, counts=everybody).tally(0)
    assert not protocol.misfit(honest).suspicious
    assert protocol.estimate(honest).misfit.message is None
    tally = careless.simulate(None, 1, 1, counts=everybody).tally(0)
    if tally.counts.size == protocol.tally_size:
        wrong = protocol.misfit(Tally(protocol.fingerprint, tally.n, tally.counts))
        assert wrong.suspicious
        assert wrong.message.startswith("these reports do not look like this protocol's: p ")
        shown = str(protocol.estimate(Tally(protocol.fingerprint, tally.n, tally.counts)))
        assert "do not look like" in shown


@pytest.mark.parametrize("kind", [HCMS, RAPPOR])
def test_open_text(kind):
    domain = Strings(cells=64, cohorts=4) if kind is HCMS else Strings()
    protocol = kind(domain, 2)
    reports = protocol.privatize(["rye"] * 800 + ["spelt"] * 200, Simulation(1))
    tally = protocol.tally(reports)
    assert not protocol.misfit(tally).suspicious
    one = np.repeat(np.asarray(reports)[:1], 1000, axis=0)
    assert protocol.misfit(protocol.tally(one)).suspicious  # all of one cohort
    assert protocol.estimate(tally, candidates=["rye"]).misfit.p_value > SUSPICIOUS


def test_repeated_reports_are_no_evidence_by_themselves():
    # Four epochs with the same noise: four times the deviation of one, which as independent reports would be too much.
    protocol = GRR(2, 1)
    few = Tally(protocol.fingerprint, 400, [88, 312])
    four = few + few + few + few
    assert not protocol.misfit(few).suspicious
    assert protocol.misfit(four).suspicious
    assert not protocol.misfit(four, repeats=4).suspicious
    assert protocol.misfit(four, repeats=4).p_value == pytest.approx(protocol.misfit(few).p_value)
    assert not protocol.estimate(four).repeated(4, 4).misfit.suspicious


def test_channels():
    for found in (invert(COIN, [5, 1000]), ibu(COIN, [5, 1000]), mle_randomized_response(COIN, [5, 1000])):
        assert found.misfit.p_value < 1e-50
        assert "do not look like this channel's: p = " in str(found)
        assert found.to_dict()["trust"]["misfit"] == found.misfit.p_value
    for counts in ([251, 749], [740, 260], [500, 500]):
        assert invert(COIN, counts).misfit.p_value > 0.05
        assert "do not look" not in str(invert(COIN, counts))
    line = truncated_geometric(4, 1)
    rng = np.random.default_rng(3)
    for truth in populations(5):
        draws = rng.multinomial(400, line.push(truth), 30)
        # At 5 % of 30 runs, 8 false alarms or more have a chance of 1e-4 under the worst valid test.
        assert sum(ibu(line, draw).misfit.p_value < 0.05 for draw in draws) <= 7
    # Every single share is possible here, but not these together: two neighbours that never mix.
    assert ibu(line, [500, 0, 0, 0, 500]).misfit.suspicious


def test_the_null_is_every_population():
    # A test that took the shares for known would suspect honest reports of any other population.
    channel = randomized_response(4, 2)
    counts = np.round(2000 * channel.push(np.eye(4)[1]))
    assert not ibu(channel, counts).misfit.suspicious
    uniform = np.full(4, 0.25)
    assert channel_misfit(np.tile(uniform, (4, 1)), counts, uniform).suspicious


def test_what_a_misfit_says():
    assert Misfit.of([]).p_value == 1
    assert Misfit.of([0.2, 0.01]) == Misfit(0.02)
    assert Misfit(0.5).message is None
    assert "p < 1e-300" in Misfit(0.0).message
