"""Shuffling: never below exact enumeration; the published numbers; what it refuses."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable import exact
from deniable.errors import ChannelError, NumberError
from deniable.privacy import CannotShuffle, fewest_people, largest_epsilon, shuffle, shuffled
from deniable.protocols.blanket import supporting
from deniable.protocols.protocol import registered

pytestmark = pytest.mark.floats
GRID = 1 << 11


def histograms(rows, people):
    """The law of how often each report came, as integers over the product of the row sums."""
    law = {(): 1}
    for person in people:
        grown: dict[tuple[int, ...], int] = {}
        for seen, weight in law.items():
            for report, mass in enumerate(rows[person]):
                key = tuple(sorted((*seen, report)))
                grown[key] = grown.get(key, 0) + weight * mass
        law = grown
    return law


def enumerated(rows, n, odds):
    """The exact delta of n shuffled reports: the largest over all neighbouring crowds."""
    size, whole, most = range(len(rows)), sum(rows[0]) ** n, 0
    up, down = odds.numerator, odds.denominator
    for others in itertools.combinations_with_replacement(size, n - 1):
        laws = [histograms(rows, (*others, person)) for person in size]
        for one, other in itertools.permutations(laws, 2):
            most = max(most, sum(max(0, down * one[k] - up * other[k]) for k in one))
    return Fraction(most, down * whole)


def random_rows(source):
    """A channel of three answers: some reports nearly equal, some very different, some never sent."""
    outputs = source.choice((2, 3, 4))
    scale = source.choice((4, 20, 300))
    rows = [[source.randint(1, scale) for _ in range(outputs)] for _ in range(3)]
    whole = math.lcm(*(sum(row) for row in rows))
    return [[entry * whole // sum(row) for entry in row] for row in rows]


@pytest.fixture(scope="module")
def judged():
    """200 random channels with a number of people, an epsilon and the exact delta there."""
    source, cases = random.Random(20), []
    for _ in range(200):
        rows = random_rows(source)
        channel = dn.Channel.from_integers(rows, sum(rows[0]))
        n = source.choice((2, 2, 3))
        level = exact.log(channel.ratio) * source.choice((0.05, 0.3, 0.6, 0.9))
        odds = exact.exp_floor(Fraction(level))
        cases.append((channel, n, level, float(enumerated(rows, n, odds))))
    return cases


def test_no_bound_is_below_exact_enumeration_on_200_random_channels(judged):
    tight = 0
    for channel, n, level, truth in judged:
        crowd = shuffled(channel, n, 1e-3)
        bound = crowd._blanket_at(level, GRID)
        assert bound >= truth
        assert crowd._clones_at(level) >= truth
        tight += truth > 0.5 * bound
    assert tight > 50  # a bound of one would pass as well


def test_the_judge_rejects_a_bound_that_hides_too_many(judged):
    """With a third more in the blanket than there is, some of the cases are below the truth."""
    wrong = 0
    for channel, n, level, truth in judged[:60]:
        for cells in shuffled(channel, n, 1e-3).blankets:
            more = tuple(
                cell._replace(mass=cell.mass * 4 / 3, one=cell.one * 3 / 4, other=cell.other * 3 / 4) for cell in cells
            )
            if sum(cell.mass for cell in more) <= 1:
                found = shuffle._blanket_delta(more, n, exact.exp_floor(Fraction(level)), GRID)
                wrong += found < truth * (1 - 1e-9)
    assert wrong


def exact_pair(channel, odds):
    """The exact delta of two shuffled reports, over all neighbouring crowds."""
    rows = channel.rows
    most = 0.0
    for z in rows:
        laws = [np.triu(np.outer(x, z) + np.outer(z, x)) - np.diag(x * z) for x in rows]
        for one, other in itertools.permutations(laws, 2):
            most = max(most, float(np.maximum(one - odds * other, 0.0).sum()))
    return most


@pytest.mark.parametrize("name", sorted(registered()))
def test_the_blanket_of_every_protocol_covers_its_listed_law(name):
    """The blanket that a protocol states is no larger than the common part of its law, and its bound is not too low."""
    for protocol in registered()[name].examples():
        if protocol.law().clear or protocol.guarantee.relation not in ("any", "profiles") or protocol.guarantee.delta:
            continue
        try:
            channel = protocol.channel(max_cells=1 << 12)
        except ChannelError:
            continue
        common = sum(int(min(column)) for column in channel.numerators.T)
        whole = int(channel.numerators[0].sum())
        for cells in protocol.law().blankets:
            assert sum(cell.mass for cell in cells) <= Fraction(common, whole)
            assert sum(cell.mass * cell.one for cell in cells) == sum(cell.mass * cell.other for cell in cells) == 1
        crowd = shuffled(protocol, 2, 1e-3)
        assert crowd.blankets, name
        if protocol.guarantee.relation == "any":
            for part in (0.1, 0.5):
                level = float(crowd.epsilon_0) * part
                assert crowd._blanket_at(level, GRID) >= exact_pair(channel, math.exp(level)) - 1e-12


def test_a_linear_hash_has_a_blanket_of_its_own():
    """The matrix of zeros hashes every answer alike: gamma = g / (e + g - 1) + (e - 1) / (e + g - 1) 2^-rL."""
    protocol = dn.OLH(16, epsilon=1, hash_bits=2)
    (cells,) = protocol.law().blankets
    e, g = math.e, 4
    assert float(sum(cell.mass for cell in cells)) == pytest.approx((g + (e - 1) * 2.0**-8) / (e + g - 1), abs=1e-9)


@pytest.mark.parametrize(
    ("release", "n", "golden"),
    [
        (1, 1000, 0.182412),
        (2, 10_000, 0.155045),
        (4, 100_000, 0.169770),
        (dn.GRR(2, epsilon=1), 1000, 0.148671),
        (dn.GRR(10, epsilon=1), 1000, 0.080161),
    ],
)
def test_golden_values(release, n, golden):
    crowd = shuffled(release, n, 1e-6)
    assert crowd.epsilon == pytest.approx(golden, abs=1.01e-6)
    assert crowd.delta_at(crowd.epsilon) <= 1e-6 < crowd.delta_at(0.999 * crowd.epsilon)


def test_of_many_people_the_bound_is_found_on_the_fine_grid():
    crowd = shuffled(dn.OUE(100, epsilon=1), 1_000_000, 1e-8)
    assert crowd.delta_at(crowd.epsilon) <= 1e-8 < crowd.delta_at(0.999 * crowd.epsilon)


def test_clones_against_exact_sums():
    """delta of the clones, in fractions, at a ratio of 3 among 30 people."""
    n, ratio, odds = 30, Fraction(3), Fraction(3, 2)
    truth, total = ratio / (ratio + 1), Fraction(0)
    for c in range(n):
        weight = math.comb(n - 1, c) * (1 / ratio) ** c * (1 - 1 / ratio) ** (n - 1 - c)
        laws = [Fraction(math.comb(c, a), 2**c) if 0 <= a <= c else Fraction(0) for a in range(-1, c + 2)]
        total += weight * sum(
            max(Fraction(0), (truth - odds * (1 - truth)) * laws[a] + ((1 - truth) - odds * truth) * laws[a + 1])
            for a in range(c + 2)
        )
    found = shuffle._clones_delta(n, ratio, math.log(1.5))
    assert total <= found <= float(total) * (1 + 1e-6)


@pytest.mark.parametrize("protocol", [dn.GRR(3, 1), dn.GRR(2, 1), dn.OUE(3, 1), dn.OLH(4, 1), dn.SubsetSelection(4, 1)])
def test_the_lower_bound_is_an_attack(protocol):
    crowd = shuffled(protocol, 3, 1e-2)
    channel = protocol.channel()
    if channel.numerators.shape[1] <= 8:
        rows = [[int(entry) for entry in row] for row in channel.numerators]
        assert crowd._attack_at(0.2) <= float(enumerated(rows, 3, exact.exp_ceil(Fraction("0.2")))) * (1 + 1e-9)
    many = shuffled(protocol, 500, 1e-6)
    assert 0.5 * many.epsilon < many.lower <= many.epsilon


def test_questions_of_one_submission_count_together():
    """Two questions: epsilon_0 is the sum, and the bound covers the product of their laws."""
    first, second = dn.GRR(2, epsilon=1), dn.GRR(3, epsilon="1/2")
    crowd = shuffled([first, second], 2, 1e-3)
    assert crowd.epsilon_0 == Fraction(3, 2)
    assert crowd.ratio == first.ratio * second.ratio
    rows = np.kron(first.channel().rows, second.channel().rows)
    both = dn.Channel.from_floats(rows, epsilon=1.6)
    assert crowd._blanket_at(0.4, GRID) >= exact_pair(both, math.exp(0.4)) - 1e-6
    assert shuffled([first, second], 1000, 1e-6).epsilon > shuffled([first], 1000, 1e-6).epsilon


@pytest.mark.slow
def test_epochs_are_composed_from_the_curve():
    crowd = shuffled(dn.GRR(4, epsilon=2), 5000, 1e-8)
    often = crowd.over(16)
    assert crowd.epsilon < often.epsilon_at(1e-7) < 8 * crowd.epsilon


def test_only_the_first_epoch_of_kept_states_is_amplified():
    kept = shuffled(dn.LGRR(["yes", "no"], first="1/2", forever=1), 5000, 1e-8)
    assert "first epoch only" in kept.words
    with pytest.raises(CannotShuffle, match="first epoch only"):
        kept.over(2)


def test_the_other_way_round():
    found = largest_epsilon(10_000, 1, 1e-8, lambda level: dn.GRR(2, level))
    assert found.delta_at(1) <= 1e-8
    more = found.epsilon_0 + Fraction(1, 100)
    assert shuffled(dn.GRR(2, more), 10_000, 1e-8).delta_at(1) > 1e-8
    assert largest_epsilon(1, 1, 1e-8).epsilon_0 == 1
    n = fewest_people(2, epsilon=1, delta=1e-6)
    assert shuffled(2, n, 1e-6).delta_at(1) <= 1e-6 < shuffled(2, n - 2, 1e-6).delta_at(1)
    assert fewest_people(2, epsilon=2, delta=1e-6) == 1


def test_what_cannot_be_shuffled_is_refused():
    with pytest.raises(NumberError, match="probability"):
        shuffled(1, 1000, 0)
    with pytest.raises(NumberError, match="honest reports"):
        shuffled(1, 0, 1e-6)
    with pytest.raises(CannotShuffle, match="over the epochs"):
        shuffled(dn.Evolving(["yes", "no"], epsilon=1, epochs=4, changes=1), 1000, 1e-6)
    with pytest.raises(CannotShuffle, match="for certain"):
        shuffled(dn.Channel([[1, 0], [0, 1]]), 1000, 1e-6)
    with pytest.raises(CannotShuffle, match="without questions"):
        shuffled([], 1000, 1e-6)


def test_one_report_stays_what_it_is():
    alone = shuffled(dn.GRR(2, epsilon=1), 1, 1e-6)
    assert alone.epsilon == pytest.approx(1.0, abs=1e-5)
    assert "adds nothing" in alone.words
    strata = shuffled(dn.protocols.Stratified({"country": ["de", "fr"]}, dn.GRR(2, 1)), 1000, 1e-6)
    assert strata.words.startswith("With 1,000 honest reports of one stratum in random order, epsilon 1 of one report")


def test_common_support_is_least_where_it_must_be():
    """Where both answers must share support, all of it is shared that must be."""
    cells = {(one, other): mass for mass, one, other in supporting(Fraction(3, 5), Fraction(2))}
    assert sum(cells.values()) == Fraction(3, 5)
    assert cells[Fraction(2), Fraction(2)] == Fraction(1, 5)
