"""Errors of sums over several epochs, in which one device may stand several times.

Coverage   simulated: 4,000 collections a case, 95 % intervals; at this number 93.5 % is 4.3 standard deviations below
           95 %, so that a right law is refused once in 10^5. The seed is fixed
Power      the same intervals without the correction cover far less than 93.5 %
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from deniable.domains import Strings
from deniable.protocols import CMS, GRR, OUE, Protocol
from deniable.protocols.tally import Tally
from deniable.surveys.results import ONCE, SAME_NOISE, SAME_PEOPLE, Repeats, find, noise_floor
from deniable.surveys.terms import Longitudinal

RUNS, PEOPLE, SHARE, EPOCHS = 4_000, 400, 0.3, 10
MEMOIZE, FRESH = Longitudinal("memoize", epochs=EPOCHS), Longitudinal("none", epochs=EPOCHS)


def coverage(protocol: Protocol, rule: Longitudinal, sizes: list[int], repeats: Repeats) -> float:
    """How often the interval of the first answer covers its share in the population.

    The first `sizes[e]` people answer in epoch e, and nobody changes the answer: the most that devices can repeat.
    """
    rng = np.random.default_rng(7)
    p, q, n = float(protocol.p), float(protocol.q), sum(sizes)
    truth = rng.random((RUNS, max(sizes))) < SHARE
    chances = np.where(truth, p, q)
    supports = rng.random(truth.shape) < chances
    counts = np.zeros(RUNS, dtype=np.int64)
    for size in sizes:
        if rule.rule == "none":
            supports = rng.random(truth.shape) < chances
        counts += supports[:, :size].sum(axis=1)
    covered = 0
    for count, times in zip(*np.unique(counts, return_counts=True), strict=True):
        tally = Tally(protocol.fingerprint, n, [count, n - count])
        low, high = find(protocol, tally, repeats=repeats).table().ends[0]
        covered += times * (low <= SHARE <= high)
    return covered / RUNS


@pytest.mark.parametrize("rule", [MEMOIZE, FRESH], ids=lambda rule: rule.rule)
@pytest.mark.parametrize("sizes", [[PEOPLE] * EPOCHS, [PEOPLE, PEOPLE // 2, PEOPLE // 4, 5]], ids=["equal", "nested"])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_intervals_over_several_epochs_cover(rule: Longitudinal, sizes: list[int], epsilon: int) -> None:
    protocol = GRR(["yes", "no"], epsilon)
    repeats = Repeats.over(rule, sizes)
    assert coverage(protocol, rule, sizes, repeats) > 0.935
    # At epsilon 1 fresh noise, which does average out, is much larger than the sampling error.
    if rule is MEMOIZE or epsilon > 1:
        assert coverage(protocol, rule, sizes, ONCE) < 0.9


def test_ten_epochs_of_the_same_reports_say_no_more_than_one() -> None:
    protocol = GRR(["yes", "no"], 1)
    once = find(protocol, Tally(protocol.fingerprint, 400, [220, 180])).table()
    often = Tally(protocol.fingerprint, 4_000, [2_200, 1_800])
    repeats = Repeats.over(MEMOIZE, [400] * 10)
    assert np.allclose(find(protocol, often, repeats=repeats).table().ends, once.ends)
    naive = find(protocol, often).table().ends
    assert np.allclose(np.diff(naive) * 10**0.5, np.diff(once.ends), rtol=0.05)
    assert noise_floor(protocol, 4_000, 0.95, repeats.noise) == pytest.approx(noise_floor(protocol, 400, 0.95))


def test_the_factor_is_the_largest_that_participation_allows() -> None:
    """Three people, three epochs: of all patterns, the sum of squares of how often each takes part is largest here."""
    most: dict[tuple[int, ...], int] = {}
    for pattern in product(product((0, 1), repeat=3), repeat=3):
        sizes = tuple(int(n) for n in np.sum(pattern, axis=0))
        most[sizes] = max(most.get(sizes, 0), sum(sum(person) ** 2 for person in pattern))
    assert len(most) == 64
    for sizes, squares in most.items():
        if sum(sizes):
            assert Repeats.over(MEMOIZE, sizes).noise == pytest.approx(squares / sum(sizes))


def test_who_answers_once_repeats_nothing() -> None:
    assert Repeats.over(Longitudinal(), [100, 100]) == ONCE
    assert Repeats.over(MEMOIZE, []) == Repeats.over(MEMOIZE, [0]) == ONCE
    assert Repeats.of(None, [3, 4]) == ONCE
    assert Repeats.over(MEMOIZE, [50]) == ONCE
    assert Repeats.over(Longitudinal("memoize", epochs=2), [50] * 8) == Repeats(2.0, 2.0), "twice at most"
    assert Repeats.over(FRESH, [50, 0, 50]) == Repeats(1.0, 2.0)
    assert [one.notes for one in (ONCE, Repeats(2, 2), Repeats(1, 2))] == [[], [SAME_NOISE], [SAME_PEOPLE]]


@pytest.mark.parametrize("protocol", [OUE(["a", "b", "c"], 1), CMS(Strings(cells=64, cohorts=8, key="t"), 2)], ids=str)
def test_every_number_beside_an_estimate_allows_for_it(protocol: Protocol) -> None:
    words = ["a", "b", "c"]
    tally = protocol.tally(protocol.privatize(words * 200))
    candidates = words if isinstance(protocol.domain, Strings) else None
    for population, consistent in product((False, True), (None, "norm-sub")):
        how = {"candidates": candidates, "consistent": consistent}
        once, often = (find(protocol, tally, repeats=repeats, **how) for repeats in (ONCE, Repeats(4.0, 4.0)))
        tables = [one.table(population=population) for one in (once, often)]
        assert np.allclose(tables[1].stderr, 2 * tables[0].stderr)
        assert (np.diff(tables[1].ends) > np.diff(tables[0].ends)).all()
        wins = [one.winner(population=population) for one in (once, often)]
        assert wins[1].error == pytest.approx(2 * wins[0].error)
        if candidates:
            assert often.unlisted_stderr == pytest.approx(2 * once.unlisted_stderr)
