"""Block designs: exactly the law of subset selection, in a few bytes, with an exact tally and an exact audit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable import BlockDesign, SubsetSelection, load, plan, privacy
from deniable.errors import DomainError, NumberError
from deniable.exact import exp_at_least
from deniable.protocols.frequency import block_design
from deniable.protocols.frequency.block_design import best_setting, settings
from deniable.protocols.structures import Seeded
from deniable.randomness import Simulation, exhaust

SMALL = [(4, 4, 1), (4, 2, 1), (7, 4, 3), (8, 8, 3), (16, 8, 3), (4, 5, 2), (7, 7, 3), (10, 11, 4)]
"""Answers, cells and window of designs whose reports can all be listed."""
REGIMES = [(64, 8, 3, 5_000), (64, 8, 3, 300), (1000, 64, 3, 400), (30_000, 16, 3, 300), (300, 307, 13, 500)]
"""Answers, cells, window and people: forms counted once, few reports, many cells, many answers, progressions."""


def supported(protocol: BlockDesign) -> list[list[Fraction]]:
    """P(a report supports x | v) for each v and x, from the bytes of all reports."""
    channel = protocol.channel()
    rows = np.array([list(bytes.fromhex(output)) for output in channel.outputs], dtype=np.uint8)
    speaks = protocol.support(rows)
    size = protocol.domain.size
    total = sum(int(one) for one in channel.numerators[0])
    return [
        [Fraction(sum(int(one) for one in channel.numerators[v][speaks[:, x]]), total) for x in range(size)]
        for v in range(size)
    ]


@pytest.mark.parametrize(("size", "cells", "window"), SMALL)
def test_the_law_is_that_of_subset_selection(size: int, cells: int, window: int) -> None:
    protocol = BlockDesign(size, 1, cells=cells, window=window)
    for v, row in enumerate(supported(protocol)):
        assert row == [protocol.p if x == v else protocol.q for x in range(size)]
    if protocol.slots == size:
        same = SubsetSelection(size, 1, subset_size=protocol.members)
        assert float(same.p) == pytest.approx(float(protocol.p), rel=1e-15)
        assert float(same.q) == pytest.approx(float(protocol.q), rel=1e-15)


def test_a_polynomial_that_is_reducible_gives_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = list(block_design._LOW)
    broken[3] = 1  # x^4 + 1 = (x + 1)^4
    monkeypatch.setattr(block_design, "_LOW", tuple(broken))
    protocol = BlockDesign(16, 1, cells=8, window=3)
    assert any(entry not in (protocol.p, protocol.q) for row in supported(protocol) for entry in row)


def test_every_polynomial_is_irreducible() -> None:
    def times(a: int, b: int, degree: int, whole: int) -> int:
        found = 0
        while b:
            found ^= a if b & 1 else 0
            a <<= 1
            a ^= whole if a >> degree & 1 else 0
            b >>= 1
        return found

    def common(a: int, b: int) -> int:
        while b:
            while a.bit_length() >= b.bit_length() and a:
                a ^= b << a.bit_length() - b.bit_length()
            a, b = b, a
        return a

    for degree, low in enumerate(block_design._LOW[1:], 2):  # Rabin's test
        power, whole, powers = 2, 1 << degree | low, [2]
        for _ in range(degree):
            power = times(power, power, degree, whole)
            powers.append(power)
        assert powers[degree] == 2
        for prime in (p for p in range(2, degree + 1) if degree % p == 0 and all(p % k for k in range(2, p))):
            assert common(whole, powers[degree // prime] ^ 2) == 1


@pytest.mark.parametrize(("size", "cells", "window", "people"), REGIMES)
def test_a_tally_counts_the_supports(size: int, cells: int, window: int, people: int) -> None:
    protocol = BlockDesign(size, 1, cells=cells, window=window)
    answers = np.random.default_rng(1).integers(0, size, people)
    reports = protocol.privatize(answers, Simulation(2)).array
    tally = protocol.tally(reports)
    counts = protocol._support_counts(tally.counts)
    assert (counts == protocol.support(reports).sum(axis=0)).all()
    singles = [protocol.tally([row.tobytes()]).counts for row in reports[:50]]
    assert (protocol.tally(reports[:50]).counts == np.sum(singles, axis=0)).all()
    assert (tally.counts == protocol.tally(reports[:100]).counts + protocol.tally(reports[100:]).counts).all()


@pytest.mark.parametrize("size", [3, 70, 1000, 1 << 20])
@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1/2", "1", "2", "4", "8"])
def test_the_exact_epsilon_is_never_above_the_one_asked_for(size: int, epsilon: str) -> None:
    protocol = BlockDesign(size, epsilon)
    assert exp_at_least(protocol.epsilon, protocol.ratio)
    assert protocol.realized_epsilon == pytest.approx(float(protocol.epsilon), rel=1e-9)
    found = privacy.audit(protocol, seed=1)
    assert (found.verdict, found.exact) == ("cleared", pytest.approx(float(protocol.epsilon), rel=1e-9))
    assert protocol.report_bytes <= 8
    if size == 3:
        assert protocol.channel().ratio == protocol.ratio
    else:
        assert found.method == "structure"


@pytest.mark.parametrize(("cells", "window"), [(8, 3), (16, 1), (11, 4), (97, 30)])
def test_the_ratio_of_a_seeded_structure_is_that_of_its_reports(cells: int, window: int) -> None:
    structure = Seeded(1, cells, lambda answer, seed: answer, BlockDesign(100, 1).keep, window)
    laws = [exhaust(lambda bits, answer=answer: structure.draw(answer, bits)).law for answer in range(4)]
    ratios = [laws[i][sent] / laws[j][sent] for i in range(4) for j in range(4) for sent in laws[i]]
    assert max(ratios) == structure.ratio


class Bold(BlockDesign):
    """Keeps the hash too often."""

    @property
    def keep(self) -> Any:
        return BlockDesign(self.domain, self.epsilon + Fraction(1, 100), self.cells, self.window).keep


def test_an_audit_finds_a_device_that_keeps_too_much() -> None:
    found = privacy.audit(Bold(1000, 1), seed=1)
    assert found.verdict == "violated"
    assert found.exact == pytest.approx(1.01, rel=1e-9)


def test_cells_that_do_not_exist_are_refused_on_the_device() -> None:
    structure = Seeded(3, 4, lambda answer, seed: 4, BlockDesign(4, 1).keep, 1)
    with pytest.raises(DomainError, match="other cells than there are"):
        structure.draw(0, Simulation(1))


@pytest.mark.parametrize(
    ("cells", "window", "why"),
    [
        (6, 1, "power of two up to 64, or a prime"),
        (128, 1, "power of two"),
        (61, 1, "a prime from 64"),
        (4, 4, "does not support all answers"),
        (4, 0, "at least one"),
        (True, 1, "whole numbers"),
    ],
)
def test_impossible_designs_are_refused(cells: int, window: int, why: str) -> None:
    with pytest.raises(NumberError, match=why):
        BlockDesign(64, 1, cells=cells, window=window)


def test_malformed_reports_are_told_apart() -> None:
    protocol = BlockDesign(1000, 1, cells=4, window=1)
    seed, cell = 1, 1 << 10
    numbers = [0, seed, cell, seed | 3 * cell, seed | 4 * cell]
    rows = [number.to_bytes(2, "little") for number in numbers]
    assert protocol.valid(protocol._rows(rows)).tolist() == [False, True, False, True, False]
    prime = BlockDesign(10, 1, cells=11, window=3)
    assert prime.valid(
        prime._rows([bytes([11]), bytes([10]), bytes([10 | 10 << 4]), bytes([10 | 11 << 4])])
    ).tolist() == [*(False, True, True, False)]


def loss(size: int, epsilon: float) -> float:
    """Variance over that of the best subset selection, for rare answers; 1 where that has at most 8 bytes itself."""
    odds = math.exp(epsilon)

    def variance(members: int) -> float:
        p = members * odds / (members * odds + size - members)
        q = (members - p) / (size - 1)
        return q * (1 - q) / (p - q) ** 2

    ideal = size / (odds + 1)
    best = min((max(1, members) for members in (math.floor(ideal), math.ceil(ideal))), key=variance)
    short = SubsetSelection(size, epsilon, subset_size=best).report_bytes <= 8
    return 1.0 if short else best_setting(size, epsilon).variance / variance(best)


@pytest.mark.parametrize("size", [65, 90, 114, 129, 257, 513, 887, 1025, 4097, 31_398, 65_537, 10**5, 1 << 20])
def test_the_loss_against_the_best_subset_selection_is_small(size: int) -> None:
    assert max(loss(size, epsilon) for epsilon in np.arange(0.1, 6.01, 0.1)) <= 1.01
    assert max(setting.report_bytes for epsilon in (0.1, 1, 6) for setting in settings(size, epsilon)) <= 8


def test_the_usual_settings() -> None:
    found = [best_setting(1 << 20, epsilon)[:2] for epsilon in (0.1, 0.3, 0.5, 0.55, 1, 1.5, 2, 3, 4)]
    assert found == [(2, 1), (16, 7), (8, 3), (8, 3), (4, 1), (16, 3), (8, 1), (64, 3), (256, 5)]
    # With so many people that the work counts, fewer cells are worth some variance.
    assert best_setting(1 << 20, 3, n=10**10).additions < best_setting(1 << 20, 3, n=10**6).additions


POINTS = [
    (1024, 0.3),
    (1024, 0.55),
    (1024, 1),
    (1024, 2),
    (1024, 3),
    (300, 3),
    (114, 2.5),
    (70, 1),
    (5000, 4),
    (1 << 16, 5),
]


@pytest.mark.parametrize(("size", "epsilon"), POINTS)
def test_the_error_is_that_of_the_formula(size: int, epsilon: float) -> None:
    # The mean square over many answers has a relative standard deviation of about sqrt(2 / answers / runs); the bound
    # is five of them: a false alarm in less than one of 10^6 points.
    protocol, people, runs = BlockDesign(size, epsilon), 20_000, max(1, 4096 // size)
    shares = 1 / np.arange(1, size + 1)
    truth = np.random.default_rng(3).choice(size, people, p=shares / shares.sum())
    counts = np.bincount(truth, minlength=size)
    errors = []
    for seed in range(runs):
        estimate = protocol.estimate(protocol.tally(protocol.privatize(truth, Simulation(seed))))
        errors.append((estimate.counts - counts) ** 2 / protocol.variance(people, counts / people, population=False))
    assert np.mean(errors) == pytest.approx(1.0, abs=5 * math.sqrt(2 / (size * runs)) + 5 / math.sqrt(people))


def test_the_planner_takes_it_for_many_answers() -> None:
    best = plan(1 << 20, epsilon=0.5, n=100_000).best
    assert isinstance(best, BlockDesign)
    assert best.report_bytes <= 4
    assert isinstance(plan(1024, epsilon=1, n=100_000).best, BlockDesign)
    assert load(best.spec()) == best
