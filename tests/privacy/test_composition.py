"""Composed levels are never too small, close to exact ones, and refused where they would mean nothing."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable import exact
from deniable.channels import Channel, randomized_response
from deniable.privacy import CannotCompose, Loss, compose, composition as under_test
from deniable.protocols import GRR, LGRR, OLH, OUE, SUE, SubsetSelection
from deniable.protocols.law import Guarantee

COIN = GRR(["yes", "no"], "0.1")


@pytest.mark.parametrize(
    ("epsilon", "times", "known"), [("0.1", 100, 4.7746), ("0.1", 365, 10.3139), ("0.5", 10, 4.99989)]
)
def test_known_epsilons_at_a_delta_of_a_millionth(epsilon, times, known):
    for release in (GRR(["yes", "no"], epsilon), epsilon, randomized_response(2, epsilon)):
        found = compose(release, times=times).epsilon_at("1e-6")
        assert found == pytest.approx(known, abs=5e-5)
        assert compose(release, times=times).delta(found) <= 1e-6 < compose(release, times=times).delta(found - 1e-4)


def test_known_delta_of_five_coins():
    assert compose(GRR(2, "0.5"), times=5).delta(1) == pytest.approx(0.184098, abs=5e-7)


def test_a_year_takes_less_than_a_second():
    start = time.perf_counter()
    compose(COIN, times=365).epsilon_at("1e-6")
    assert time.perf_counter() - start < 1


def excess(channels, odds):
    """The exact largest delta over all pairs of streams of inputs, by listing every output."""
    worst = Fraction(0)
    laws = [[[Fraction(int(p), c.denominator) for p in row] for row in c.numerators] for c in channels]
    for one in product(*(range(len(rows)) for rows in laws)):
        for other in product(*(range(len(rows)) for rows in laws)):
            joint = [
                [math.prod(each) for each in product(*(rows[x] for rows, x in zip(laws, stream, strict=True)))]
                for stream in (one, other)
            ]
            worst = max(worst, sum(max(p - odds * q, Fraction(0)) for p, q in zip(*joint, strict=True)))
    return worst


def uneven(rows, columns, seed):
    random = np.random.default_rng(seed)
    return Channel([[Fraction(int(n), int(row.sum())) for n in row] for row in random.integers(1, 9, (rows, columns))])


CASES = [
    [randomized_response(3, "0.7")] * 2,
    [uneven(2, 3, seed=1)] * 3,
    [uneven(3, 3, seed=2), uneven(2, 2, seed=3)],
    [randomized_response(2, 1), randomized_response(3, "1/3"), uneven(2, 2, seed=4)],
]


def too_small(channels):
    """The epsilons at which a composed delta is below the exact one, and the largest difference above it."""
    composed, off = compose(*channels), 0.0
    below = []
    for share in (Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5), Fraction(99, 100)):
        epsilon = share * exact.log_ceil(composed.ratio)
        true = excess(channels, exact.exp_ceil(epsilon))
        found = Fraction(composed.delta(epsilon))
        below += [epsilon] if found < true else []
        off = max(off, float(found - true))
    return below, off


@pytest.mark.parametrize("channels", CASES)
def test_a_delta_is_never_too_small_and_close_to_the_exact_one(channels):
    below, off = too_small(channels)
    assert below == []
    # One pair of inputs is the worst at every epsilon where all pairs look alike; else two pairs share one bound.
    assert off < (1e-9 if channels == CASES[0] else 0.06)


def test_the_comparison_would_see_a_delta_that_is_too_small(monkeypatch):
    """Losses that are rounded down, and the curve of one pair of inputs instead of the worst."""
    rounded = under_test._Grid.excess
    monkeypatch.setattr(under_test._Grid, "excess", lambda grid, e: rounded(grid, e + grid.step))
    assert too_small(CASES[0])[0] != []
    monkeypatch.undo()
    curve = under_test._curve
    monkeypatch.setattr(under_test, "_curve", lambda pairs: curve([next(iter(pairs))]))
    assert too_small(CASES[1])[0] != []


@pytest.mark.parametrize("protocol", [GRR(4, 1), OUE(3, 1), SUE(3, "1/2"), OLH(4, 1), SubsetSelection(4, 1)])
def test_protocols_are_composed_by_the_law_of_their_bytes(protocol):
    one, channel = compose(protocol), protocol.channel()
    assert one.ratio == protocol.ratio
    assert one.epsilon == protocol.epsilon
    for epsilon in ("0", "1/4", "1/2"):
        assert one.delta(epsilon) == pytest.approx(channel.delta(epsilon), rel=1e-12)
    assert compose(protocol, times=30).epsilon_at("1e-6") <= compose(protocol.epsilon, times=30).epsilon_at("1e-6")


def test_a_law_too_large_to_list_counts_as_randomized_response():
    big = OLH(1024, 1)
    assert not Loss.of_protocol(big).is_exact
    same = compose(big, times=50).epsilon_at("1e-6")
    assert same == pytest.approx(compose(1, times=50).epsilon_at("1e-6"), rel=1e-9)


def test_repeating_adding_and_reordering_give_the_same():
    a, b = compose(COIN), compose(GRR(3, 1))
    assert compose(COIN, times=7) == 7 * a == a * 3 + 4 * a == compose(*[COIN] * 7)
    assert a + b == b + a == compose(COIN, GRR(3, 1))
    assert 0 * a + b == b
    assert compose().epsilon == 0
    assert compose().delta(0) == 0


def test_parallel_is_the_largest_and_a_group_is_a_sum():
    both = compose(COIN, GRR(3, 1), how="parallel")
    assert both.epsilon == 1
    assert both.delta("1/2") == compose(GRR(3, 1)).delta("1/2")
    assert compose(COIN, times=5, how="group") == compose(COIN, times=5)
    with pytest.raises(CannotCompose, match="each first"):
        2 * both
    assert compose(both, "1").epsilon == 2


def test_reports_that_share_a_state_are_not_added_as_if_they_were_independent():
    stages = LGRR(["yes", "no"], first="1/2", forever=1)
    assert compose(stages).epsilon == Fraction(1, 2)
    for twice in (lambda: compose(stages, times=2), lambda: compose(stages, stages), lambda: 2 * compose(stages)):
        with pytest.raises(CannotCompose, match="not independent"):
            twice()
    assert compose(stages, times=2, how="group").epsilon == 1
    kept = compose(stages, times=365, how="longitudinal", values=1)
    assert kept.epsilon == 1
    assert (kept + kept).epsilon == 2  # two questions
    assert compose(stages, times=30, how="longitudinal", values=2).epsilon == stages.law().kept.lifetime(30, 2)


def test_reports_that_are_repeated_have_a_level_for_one_value_only():
    assert compose(COIN, times=365, how="longitudinal").epsilon == Fraction(73, 2)
    assert compose(COIN, times=365, how="longitudinal", values=1) == compose(COIN)
    with pytest.raises(CannotCompose, match="no epsilon holds"):
        compose(COIN, times=365, how="longitudinal", values=2)


def test_what_means_nothing_is_refused():
    edge = Guarantee("edge", Fraction(1))
    for wrong, words in [
        (lambda: compose(COIN, edge), "different secrets"),
        (lambda: compose(COIN, edge, how="parallel"), "different secrets"),
        (lambda: compose(object()), "is not known here"),
        (lambda: compose("much"), "is not known here"),
        (lambda: compose(Channel([[1, 0], [0, 1]])), "no finite epsilon"),
        (lambda: compose(COIN, how="magic"), "'magic'"),
        (lambda: compose(COIN, values=2), "longitudinal"),
        (lambda: compose(COIN, times=-1), "whole number"),
    ]:
        with pytest.raises((CannotCompose, ValueError), match=words):
            wrong()


def test_a_list_that_is_made_on_the_way_has_the_sum_and_no_delta():
    on_the_way = compose(COIN, GRR(3, 1), times=10, adaptive=True)
    assert on_the_way.epsilon == 11
    assert on_the_way.delta(11) == 0
    for asked in (lambda: on_the_way.delta(5), lambda: on_the_way.epsilon_at("1e-6")):
        with pytest.raises(CannotCompose, match="on the way"):
            asked()


def test_deltas_of_the_releases_add_up():
    some = Guarantee("profiles", Fraction(1), Fraction(1, 10**7))
    year = compose(some, times=10)
    assert year.unbounded == Fraction(1, 10**6)
    assert year.delta(10) == pytest.approx(1e-6, rel=1e-4)
    assert year.delta(5) > 1e-6
    with pytest.raises(ValueError, match="of their own"):
        year.epsilon_at("1e-7")
    assert year.epsilon_at("1e-4") < 10


def test_words_say_where_a_delta_gains_nothing():
    assert "nothing is gained" in compose("0.5", times=10).words()
    assert "nothing is gained" not in compose("0.1", times=100).words()
