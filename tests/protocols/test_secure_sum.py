"""Secure aggregation: the noise of all people is the discrete Laplace law, and one collector's shares are uniform."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable import Integers, exact
from deniable.errors import DomainError, NumberError, ReportError, ShapeError
from deniable.privacy import Collector, ImpossibleSum, SecureSum, TooFewShares, close_epoch
from deniable.protocols.numeric.secure_sum import noise_table
from deniable.protocols.tally import Tally
from deniable.randomness import Simulation, exhaust

SEVEN_EIGHTHS, THIRD = Fraction(7, 8), Fraction(1, 3)


def convolved(p: list[Fraction], q: list[Fraction], most: int) -> list[Fraction]:
    return [sum(p[i] * q[k - i] for i in range(max(0, k - len(q) + 1), min(k, len(p) - 1) + 1)) for k in range(most)]


def test_the_table_is_the_negative_binomial_law() -> None:
    """At 7/8 and a third the law is rational: P(0) = (1 - 7/8)^(1/3) = 1/2."""
    law, distance = noise_table(SEVEN_EIGHTHS, THIRD, Fraction(1, 10**12))
    chance, total, off = Fraction(1, 2), Fraction(0), Fraction(0)
    for k, weight in enumerate(law.weights):
        off += abs(Fraction(weight, law.total) - chance)
        total += chance
        chance *= SEVEN_EIGHTHS * (k + THIRD) / (k + 1)
    assert (off + 1 - total) / 2 <= distance <= Fraction(1, 10**12)
    assert (off + 1 - total) / 2 > distance / 10


def test_three_people_add_up_to_the_discrete_laplace_law() -> None:
    law, distance = noise_table(SEVEN_EIGHTHS, THIRD, Fraction(1, 10**12))
    few = 60
    one = [Fraction(weight, law.total) for weight in law.weights]
    three = convolved(convolved(one, one, few), one, few)  # shape 1: geometric
    for k in range(few):
        assert abs(three[k] - Fraction(1, 8) * SEVEN_EIGHTHS**k) <= 2 * 3 * distance
    # X - Y of two geometric numbers: P(z) = (1 - a) / (1 + a) a^|z|, here by an endless sum of fractions.
    for z in range(5):
        found = Fraction(1, 64) * SEVEN_EIGHTHS**z / (1 - SEVEN_EIGHTHS**2)
        assert found == Fraction(1, 15) * SEVEN_EIGHTHS**z
    # Two people instead of three would not do.
    two = convolved(one, one, few)
    assert abs(two[0] - Fraction(1, 8)) > Fraction(1, 10)


def test_epsilon_and_delta_are_bounds() -> None:
    asked = SecureSum(["a", "b", "c"], "0.7", people=50, missing=10)
    # One answer for another changes two cells by one: the ratio of the sum's law is 1 / a for each.
    assert exact.exp_at_least(asked.epsilon, 1 / asked.decay**2)
    assert not exact.exp_at_least(asked.epsilon - Fraction(1, 10**9), 1 / asked.decay**2)
    assert asked.shape == Fraction(1, 40)
    assert 0 < asked.realized_delta <= asked.delta
    assert SecureSum(["a", "b", "c"], "0.7", 50, 10, delta="1e-6").realized_delta > asked.realized_delta


def noise_of(asked: SecureSum, people: int) -> dict[int, int]:
    """The exact law of the noise in one cell of so many people's sum, as integers over one denominator."""
    weights = np.array(asked._table[0].weights, dtype=object)
    one = np.convolve(weights, weights[::-1])  # X - Y
    law = one
    for _ in range(people - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    return {place - middle: int(weight) for place, weight in enumerate(law)}


def beyond(noise: dict[int, int], epsilon: Fraction) -> Fraction:
    """How much probability the sums of two neighbours' answers, one in another cell, have beyond e^epsilon."""
    factor, whole, total = exact.exp_floor(epsilon), Fraction(0), sum(noise.values())
    ends = range(min(noise) - 1, max(noise) + 2)
    for a in ends:
        for b in ends:
            here = noise.get(a - 1, 0) * noise.get(b, 0)
            there = noise.get(a, 0) * noise.get(b - 1, 0)
            if here > factor * there:
                whole += here - factor * there
    return whole / total**2


def test_the_sum_is_as_private_as_it_says() -> None:
    """Over all sums of two cells, exactly: delta is kept, a smaller epsilon is not, and so with a person too few."""
    asked = SecureSum(["a", "b"], 1, people=3, missing=1, delta="1/1000")
    assert 0 < beyond(noise_of(asked, 2), asked.epsilon) <= asked.realized_delta <= asked.delta
    assert beyond(noise_of(asked, 3), asked.epsilon) <= asked.delta
    assert beyond(noise_of(asked, 2), asked.epsilon * Fraction(9, 10)) > 10 * asked.delta
    assert beyond(noise_of(asked, 1), asked.epsilon) > 10 * asked.delta


@pytest.mark.parametrize("read", ["shares", "mean"])
def test_single_reports_and_batches_have_the_law_of_the_table(read: str) -> None:
    """Both by the exact table: single ones by every branch of a short one, batches by 20,000 draws.

    Five standard deviations in each of about ten places: false alarms once in a hundred thousand; the seed is fixed.
    """
    asked = SecureSum(Integers(0, 1), 3, people=4, missing=2, read=read, delta="1/5")
    weights = asked._table[0].weights
    total, zero = sum(weights), sum(weight * weight for weight in weights)
    chance = float(Fraction(zero, total**2)) ** asked.cells
    silent = asked.vector(1)
    law = exhaust(lambda bits: asked.draw(1, bits)).law
    assert float(law[silent.astype("<i8").tobytes()]) == pytest.approx(chance, rel=1e-12)
    many = asked.privatize([1] * 20_000, Simulation(5)).array.view("<i8")
    found = (many == silent).all(axis=1).mean()
    assert abs(found - chance) < 5 * np.sqrt(chance * (1 - chance) / 20_000)


def test_a_mean_comes_out() -> None:
    asked = SecureSum(Integers(-5, 5), 1, people=2000, missing=100, read="mean")
    found = asked.estimate(asked.tally(asked.privatize([-5, 3, 4, 4] * 500, Simulation(1))))
    # Five standard errors of the noise: false alarms once in a million.
    assert abs(found.value - 1.5) < 5 * found.noise
    assert found.stderr > found.noise
    assert asked.estimate(asked.empty()).n == 0


def test_one_collectors_shares_are_uniform() -> None:
    """The first share is a uniform word. The second is too: for every answer each value has exactly one first share."""

    class Fixed(Simulation):
        """Bits that give these words, and no noise."""

        masks: tuple[int, ...] = ()

        def words(self, count: int) -> np.ndarray:
            return np.array(self.masks, dtype=np.uint64)

        def draw(self, law: object, size: int | None = None) -> np.ndarray:
            return np.zeros(size or 1, dtype=np.int64)

    asked = SecureSum(["a", "b"], 1, people=2)
    bits, random = Fixed(1), np.random.default_rng(1)
    for wanted in [[0, 0], [2**64 - 1, 1], *random.integers(0, 2**64, (20, 2), dtype=np.uint64).tolist()]:
        for place, answer in enumerate(("a", "b")):
            bits.masks = tuple((int(place == cell) - word) % 2**64 for cell, word in enumerate(wanted))
            first, second = asked.shares(answer, bits)
            assert tuple(first.tolist()) == bits.masks
            assert second.tolist() == wanted
    # And with noise from real bits: each bit is set in half of 200 runs, within 5 standard deviations.
    counts = np.zeros((2, 64))
    for seed in range(200):
        for place, share in enumerate(asked.shares("b", Simulation(seed))):
            counts[place] += [(int(share[1]) >> bit) & 1 for bit in range(64)]
    assert (abs(counts - 100) < 5 * np.sqrt(50)).all()


def collected(asked: SecureSum, people: int, drop: int = 0) -> list[Collector]:
    bits, collectors = Simulation(3), [Collector(asked, place) for place in range(asked.collectors)]
    for id in range(people):
        for place, share in enumerate(asked.shares("b" if id % 4 == 0 else "a", bits)):
            if not (place == 1 and id < drop):  # some never reach the second collector
                collectors[place].take(f"{id}", share)
    return collectors


@pytest.mark.parametrize("collectors", [2, 3])
def test_counts_come_out_and_shares_are_erased(collectors: int) -> None:
    asked = SecureSum(["a", "b"], 2, people=400, missing=40, collectors=collectors)
    kept = collected(asked, 390, drop=20)
    held = list(kept[0]._kept.values())
    found = close_epoch(kept)
    assert found.n == 370
    # Five standard errors: false alarms once in a million.
    assert (abs(found.counts - [370 - 92, 92]) < 5 * np.sqrt(found.noise) + 1).all()
    assert all(not one.ids() for one in kept)
    assert all(not share.any() for share in held)
    assert "do not pool" in str(found)
    assert found.noise[0] == pytest.approx(asked.variance(370))
    assert found.noise[0] >= asked.variance(360)


def test_too_many_missing_give_no_result() -> None:
    asked = SecureSum(["a", "b"], 2, people=50, missing=5)
    assert close_epoch(collected(asked, 50, drop=5)).n == 45
    kept = collected(asked, 50, drop=6)
    with pytest.raises(TooFewShares, match="44 of 50"):
        close_epoch(kept)
    assert all(not one.ids() for one in kept)
    with pytest.raises(TooFewShares, match="no result"):
        collected(asked, 50)[0].close(frozenset("1"))


def test_what_makes_no_sense_is_refused() -> None:
    asked = SecureSum(["a", "b"], 1, people=5)
    for make, error in (
        (lambda: SecureSum(["a", "b"], 1, people=5, missing=5), NumberError),
        (lambda: SecureSum(["a", "b"], 1, people=5, collectors=1), NumberError),
        (lambda: asked.shares("c"), DomainError),
        (lambda: asked.split([0.5, 1]), ShapeError),
        (lambda: Collector(asked, 0).take("1", np.zeros(3, dtype=np.uint64)), ReportError),
        (lambda: close_epoch([Collector(asked, 0)]), ShapeError),
        (lambda: SecureSum(["a", "b"], 1, people=5, delta="1e-70").realized_delta, NumberError),
    ):
        with pytest.raises(error):
            make()


@pytest.mark.parametrize("asked", list(SecureSum.examples()), ids=str)
def test_impossible_sums_are_refused(asked):
    """One share of random words moves the sum by 2^62 on average; honest people are never refused."""
    honest = asked.privatize([asked.domain.labels[-1]] * asked.people, Simulation(5))
    tally = asked.tally(honest)
    asked.estimate(tally)
    noise = asked.most_noise(asked.people)
    for wrong in (1 << 50, -(1 << 50), tally.n * asked.sensitivity + noise + 1, -noise - 1):
        counts = tally.counts.copy()
        counts[0] = wrong
        with pytest.raises(ImpossibleSum, match="these sums are impossible"):
            asked.estimate(Tally(asked.fingerprint, tally.n, counts))


def test_the_bound_of_the_noise_holds_and_is_not_wide():
    """10^5 sums of the noise of 20 people: the largest stays below the bound, and the bound below 40 deviations.

    The bound is for a probability of 2^-60, a Laplace tail of 42 scales or 29 deviations.
    """
    asked = SecureSum(["yes", "no"], epsilon="1/2", people=20)
    noise = np.abs(asked.noise_of(20 * 100_000, Simulation(3)).reshape(20, -1).sum(axis=0))
    deviation = np.sqrt(asked.variance(20))
    assert abs(noise.std() ** 2 + noise.mean() ** 2 - deviation**2) < 0.05 * deviation**2
    assert noise.max() < asked.most_noise(20) < 40 * deviation


def test_counts_that_do_not_add_up_to_the_people_are_refused():
    asked = SecureSum(["a", "b", "c"], epsilon=4, people=1000)
    with pytest.raises(ImpossibleSum, match="add up to 2,700"):
        asked.estimate(Tally(asked.fingerprint, 1000, np.array([900, 900, 900])))
