"""Rectangles of two numbers: the law of the bytes, the exact variance of every rectangle, and intervals that hold."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from deniable import Integers, Interval, Records, Rectangles, Simulation, Tally
from deniable.errors import DomainError, NumberError, SpecError
from deniable.exact import exp_at_least
from deniable.protocols import load
from deniable.protocols.ranges.cells import FORGED_AMONG
from deniable.protocols.ranges.grids import EvenGrids, Grids, Layout
from deniable.protocols.ranges.tree import Level, SupportLaw
from tests.documents import rows_of

GRIDS = ((2, 2), (4, 4), (8, 1), (1, 4))
CELLS = (7, 4)
"""Of the first number one part has no cell."""


DRAWN = SupportLaw(0.24, 0.19, -0.01, -0.02, 0.4, 0.2)


def small(law: SupportLaw = DRAWN, people: tuple[int, ...] = (300, 200, 100, 400)) -> Grids:
    random, layout = np.random.default_rng(0), Layout.of(CELLS, GRIDS)
    shares = [random.dirichlet(np.ones(rows * columns)) for rows, columns in GRIDS]
    return Grids(layout, tuple(Level(n, own, law) for n, own in zip(people, shares, strict=True)))


def sums() -> list[np.ndarray]:
    """Each grid as a matrix over the 8 x 4 parts of the finest cuts."""
    return [
        np.kron(np.kron(np.eye(rows), np.ones(8 // rows)), np.kron(np.eye(columns), np.ones(4 // columns)))
        for rows, columns in GRIDS
    ]


def known_rectangles() -> np.ndarray:
    """All whose ends are those of the 4 x 4 grid, or are about one number alone."""
    ends = [(a, b, c, d) for a, b in spans(8, 2) for c, d in spans(4, 1)]
    ends += [(a, b, 0, 4) for a, b in spans(8, 1)]
    return np.array(ends, dtype=float)


def spans(length: int, step: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(0, length, step) for b in range(a + step, length + 1, step)]


def test_details_are_least_squares() -> None:
    """Values and weights of all known rectangles, against the normal equations with a sum of one."""
    grids = small()
    matrix = np.vstack(sums())
    variance = np.concatenate([np.full(level.shares.size, level.variance) for level in grids.levels])
    worth = matrix.T / variance
    seen = np.concatenate([level.shares for level in grids.levels])
    system = np.block([[worth @ matrix, np.ones((32, 1))], [np.ones((1, 32)), np.zeros((1, 1))]])
    best = (np.linalg.pinv(system) @ np.append(worth @ seen, 1.0))[:32]
    ends = known_rectangles()
    rows = np.array([written_out(one) for one in ends])
    assert np.allclose(grids.rectangles(ends).value, rows @ best)


def written_out(ends: np.ndarray) -> np.ndarray:
    a, b, c, d = ends
    return np.kron((np.arange(8) >= a) & (np.arange(8) < b), (np.arange(4) >= c) & (np.arange(4) < d)).astype(float)


def test_the_variance_of_every_rectangle_is_exact() -> None:
    """Against covariance matrices of single reports, written out in full."""
    grids, ends = small(), known_rectangles()
    law, found = grids.levels[0].law, grids.rectangles(known_rectangles())
    fitted = grids.fit.grid(8, 4)
    true, most = np.zeros((2, len(ends)))
    for place, (matrix, level) in enumerate(zip(sums(), grids.levels, strict=True)):
        nodes = matrix @ fitted
        one = np.diag(nodes) - np.outer(nodes, nodes)
        for answer, share in enumerate(nodes):
            each = np.full((nodes.size, nodes.size), law.pair)
            np.fill_diagonal(each, law.other)
            each[answer], each[:, answer], each[answer, answer] = law.mixed, law.mixed, law.own
            one += share * each / law.gap**2
        nothing = grids_with(grids, place, np.zeros(nodes.size)).rectangles(ends).value
        weights = np.column_stack(
            [grids_with(grids, place, row).rectangles(ends).value - nothing for row in np.eye(nodes.size)]
        )
        true += np.einsum("qi,ij,qj->q", weights, one, weights) / level.people
        most = np.maximum(most, np.abs(weights).sum(axis=1) / (law.gap * level.people))
    share = np.array([written_out(one) for one in ends]) @ fitted
    assert np.allclose(found.noise + found.people, true, atol=1e-12)
    assert np.allclose(found.people, share * (1 - share) / 1000, atol=1e-12)
    assert np.allclose(found.most, most)


def grids_with(grids: Grids, place: int, shares: np.ndarray) -> Grids:
    """The same people, with other shares in one grid; the fit stays, for it does not change what is tested here."""
    levels = [level._replace(shares=shares) if i == place else level for i, level in enumerate(grids.levels)]
    made = Grids(grids.layout, tuple(levels))
    made.__dict__["fit"] = grids.fit
    return made


def test_the_fit_is_the_best_one() -> None:
    """Its cells written out: no small step to other shares makes the sum that it minimizes smaller."""
    grids = small(SupportLaw(0.2, 0.2, 0.0, 0.0, 0.6, 0.2), (3000, 2000, 1000, 4000))
    cells = grids.fit.grid(8, 4)
    assert np.allclose(cells.reshape(8, 4)[7], 0)
    assert cells.sum() == pytest.approx(1)
    inside = cells.reshape(8, 4)[:7].reshape(-1)

    def loss(shares: np.ndarray) -> float:
        whole = np.append(shares, np.zeros(4))
        far = sum(
            float(((level.shares - matrix @ whole) ** 2).sum()) / level.variance
            for matrix, level in zip(sums(), grids.levels, strict=True)
        )
        return 10 * float((shares * np.log(shares * 28)).sum()) + far / 2

    random, best = np.random.default_rng(0), loss(inside)
    for _ in range(200):
        other = inside * np.exp(random.normal(0, 0.02, 28))
        assert loss(other / other.sum()) > best - 1e-6


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "8"])
def test_the_level_is_that_of_the_bytes(epsilon: str) -> None:
    """Enumerated from the report bytes over all pairs of cells: the ratio is the stated one, at most e^epsilon."""
    made = Rectangles({"x": Integers(1, 4), "y": Interval(0, 1)}, epsilon, cells=(4, 3), grids=[(2, 2), (4, 1), (1, 4)])
    channel = made.channel()
    assert len(channel.inputs) == 12
    worst = max(Fraction(int(a), int(b)) for column in channel.numerators.T for a in column for b in column if a and b)
    assert worst == made.ratio
    assert exp_at_least(made.epsilon, made.ratio)


def test_sizes_follow_the_people() -> None:
    """More people or a larger epsilon pay for finer grids; none of the others is better by what is compared."""
    work = Records({"age": Integers(17, 90), "hours": Integers(1, 99)})
    few, some, many = (Rectangles(work, 1, people=n) for n in (500, 30_000, 30_000_000))
    assert some.grids == ((4, 4), (8, 8), (80, 1), (1, 104))
    assert max(few.grids[-1]) < 8
    assert (32, 32) in many.grids
    assert Rectangles({"x": Integers(0, 1), "y": Integers(0, 1)}, 1).grids == ((2, 2),)
    alone = [Rectangles(work, 1, grids=[grid]).worth(30_000).error for grid in [(8, 8), (37, 33)]]
    assert some.worth(30_000).error < alone[1]


def test_before_the_first_report_and_after_it() -> None:
    made = Rectangles({"x": Integers(0, 9), "y": Integers(0, 9)}, 1)
    nothing = made.estimate(made.empty())
    assert (nothing.n, nothing.headline) == (0, "")
    assert nothing.notes
    assert math.isnan(nothing.rectangle((2, 5), (2, 5)))
    assert nothing.rectangle((2, 5), (2, 5)).interval() == (0, 1)
    assert all(row["value"] is None for row in rows_of(nothing.to_dict()))
    one = made.estimate(made.tally(made.privatize([{"x": 3, "y": 3}], Simulation(1))))
    assert one.rectangle((2, 5), (2, 5)).interval() == (0, 1)
    assert one.rectangle() == pytest.approx(1)
    assert one.rectangle().interval() == (pytest.approx(1), pytest.approx(1))


def test_whole_numbers_stand_in_the_middle_of_what_is_drawn() -> None:
    pytest.importorskip("matplotlib").use("agg")
    made = Rectangles({"x": Integers(1, 4), "y": Interval(0, 1)}, 1, cells=(4, 2), grids=[(2, 2)])
    axes = made.estimate(made.empty()).plot()
    (mesh,) = axes.collections
    corners = mesh.get_coordinates()
    assert corners[:, 0, 1].tolist() == [0.5, 2.5, 4.5], "1 to 2, then 3 to 4"
    assert corners[0, :, 0].tolist() == [0, 0.5, 1]
    along, up = axes.lines[0].get_data()
    assert (set(along), set(up)) == ({0.25, 0.75}, {1.5, 3.5})


@pytest.mark.parametrize("corner", [(0, 0), (0, 99), (73, 99)])
def test_everybody_in_one_corner(corner: tuple[int, int]) -> None:
    made = Rectangles({"x": Integers(0, 73), "y": Integers(0, 99)}, 1, people=30_000)
    x, y = corner
    found = made.estimate(made.tally(made.privatize({"x": [x] * 30_000, "y": [y] * 30_000}, Simulation(x + y))))
    share = found.rectangle((x, x), (y, y))
    low, high = share.interval(0.999)
    assert low <= 1 <= high
    assert share > 0.4
    near = found.rectangle((x // 40 * 40, x // 40 * 40 + 39), (y // 52 * 52, y // 52 * 52 + 51))
    assert near.interval(0.999)[0] <= 1 <= near.interval(0.999)[1]
    assert near > 0.95
    assert (found.table().value >= 0).all()


def test_rectangles_whose_ends_the_grids_do_not_know_lie_between_others() -> None:
    made = Rectangles({"x": Integers(0, 99), "y": Interval(0, 10, unit="m")}, 2, people=20_000)
    random = np.random.default_rng(1)
    x, y = random.binomial(99, 0.4, 20_000), np.clip(random.normal(4, 2, 20_000), 0, 10)
    found = made.estimate(made.tally(made.privatize({"x": x, "y": y}, Simulation(2))))
    for first, second in product([(0, 99), (26, 51), (30, 60)], [(0, 10), (2.5, 5), (3.1, 7.7)]):
        true = float(np.mean((x >= first[0]) & (x <= first[1]) & (y >= second[0]) & (y <= second[1])))
        share = found.rectangle(first, second)
        low, high = share.interval(0.9999)
        assert low <= true <= high
        assert low <= share <= high
        within = share.interval(population=False)
        assert within[1] - within[0] <= share.interval()[1] - share.interval()[0]
    inner, outer = found.rectangle((26, 51), (2.5, 5)), found.rectangle((26, 51), (2.6, 4.9))
    assert outer < inner
    assert outer.interval()[1] == inner.interval()[1]
    assert found.rectangle((40.2, 40.8), None) == 0
    assert found.rectangle((-50, 500), (-1, 99)) == pytest.approx(1)
    for wrong in ((9, 7), (math.nan, 1), (0, math.inf)):
        with pytest.raises(NumberError, match="a range goes from"):
            found.rectangle(wrong, None)
    rows, true = found.table(0.99999), made.worth().truth({"x": x, "y": y})
    assert true.size == len(rows)
    assert ((rows.low <= true) & (true <= rows.high)).all()
    unbiased = found.unbiased.table()
    assert unbiased.value.sum() == pytest.approx(1)
    assert found.binned(1).table().labels == found.binned(4).table().labels
    assert len(found.binned(1000).table()) >= len(found.table())
    assert found.repeated(4, 4).table().stderr == pytest.approx(2 * found.table().stderr)


def test_a_grid_that_nobody_reported_is_left_out() -> None:
    made = Rectangles({"x": Integers(0, 3), "y": Integers(0, 3)}, 3, grids=[(2, 2), (4, 4)])
    inner = made.groups[0].protocol
    coarse = inner.tally(inner.privatize([0, 3] * 5000, Simulation(1)))
    counts = np.concatenate([[10_000, 0], coarse.counts, np.zeros(made.groups[1].protocol.tally_size)])
    found = made.estimate(Tally(made.fingerprint, 10_000, counts.astype(np.int64)))
    low, high = found.rectangle((0, 1), (0, 1)).interval()
    assert low < 0.5 < high
    assert high - low < 0.1
    assert found.rectangle((0, 0), (0, 0)).interval() == (0, 1)


def test_a_spec_says_the_whole_law() -> None:
    made = Rectangles({"x": Integers(0, 30), "y": Interval(-1, 1, unit="m")}, "1/2", cells=(31, 50))
    again = load(made.spec())
    assert again == made
    assert again.fingerprint == made.fingerprint
    spec = made.spec()
    other = Records({"x": Integers(0, 1)}).spec()
    for change in (
        {"cells": [31, 1]},
        {"cells": [31]},
        {"grids": []},
        {"grids": [[3, 2], [2, 2]]},
        {"grids": [[2, 0]]},
        {"groups": []},
        {"more": 1},
        {"domain": other},
        {"domain": Integers(0, 5).spec()},
    ):
        with pytest.raises((SpecError, NumberError, DomainError)):
            load({**spec, **change})


def test_what_makes_no_rectangles_is_refused() -> None:
    pair = Records({"x": Integers(0, 9), "y": Integers(0, 9)})
    for wrong in (
        {"people": 0},
        {"cells": (5, 10)},
        {"cells": (10,)},
        {"grids": [(2, 1)]},
        {"grids": [(2, 2), (2, 2)]},
    ):
        with pytest.raises((NumberError, SpecError)):
            Rectangles(pair, 1, **wrong)  # type: ignore[arg-type]
    for grids in ([(2, 2), (4, 1), (3, 1)], [(1, 1)], [(20, 2)], [(2,)], [(2, True)]):
        with pytest.raises((NumberError, SpecError)):
            Rectangles(pair, 1, grids=grids)
    for domain in (Integers(0, 9), {"x": ["a", "b"], "y": Integers(0, 9)}, {"x": 5, "y": 5, "z": 5}):
        with pytest.raises(DomainError, match="two numbers"):
            Rectangles(domain, 1)
    made = Rectangles({"x": Integers(0, 9), "y": Interval(0, 1)}, 1)
    for answer in (float("nan"), None, "0.5", float("inf"), True):
        with pytest.raises(DomainError) as refused:
            made.report({"x": 3, "y": answer})
        assert "0.5" not in str(refused.value)
    assert made.report({"x": 3, "y": -7.0}, Simulation(1)) == made.report({"x": 3, "y": 0.0}, Simulation(1))


def covered(epsilon: str, runs: int, n: int) -> np.ndarray:
    """How often 95 % intervals of some rectangles hold, of people whose two numbers go together."""
    made = Rectangles({"x": Integers(0, 63), "y": Integers(0, 63)}, epsilon, people=n)
    ends = np.sort(np.random.default_rng(4).integers(0, 9, size=(12, 2)), axis=1) * 8
    ends[:, 1] += 7
    rectangles = [(tuple(a), tuple(b)) for a, b in zip(ends[:6].tolist(), ends[6:].tolist(), strict=True)]
    rectangles += [((3, 40), (11, 29)), ((5, 5), (0, 63))]
    place = (np.arange(64) - 31.5) / 12
    density = np.exp(-(place[:, None] ** 2 - 1.4 * np.outer(place, place) + place**2) / (2 * (1 - 0.49)))
    density /= density.sum()
    true = [float(density[a : b + 1, c : d + 1].sum()) for (a, b), (c, d) in rectangles]
    hits = []
    for run in range(runs):
        drawn = np.random.default_rng(run).choice(64 * 64, n, p=density.reshape(-1))
        answers = {"x": drawn // 64, "y": drawn % 64}
        found = made.estimate(made.tally(made.privatize(answers, Simulation(run))))
        figures = [found.rectangle(*one).interval() for one in rectangles]
        hits.append([low <= one <= high for one, (low, high) in zip(true, figures, strict=True)])
    return np.mean(hits, axis=0)


def test_intervals_hold_in_a_few_collections() -> None:
    """Six collections, each rectangle missed at most twice: 0.0022 each if all hold at exactly 95 %."""
    assert covered("1", 6, 5_000).min() > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_intervals_hold(epsilon: str) -> None:
    """Of 100 collections at least 88 %: below that with probability 0.0015 per rectangle if it is exactly 95 %."""
    assert covered(epsilon, 100, 20_000).min() >= 0.88


@pytest.mark.parametrize("place", [0, 1])
def test_leverage_is_that_of_the_worst_report_of_the_worst_rectangle(place):
    """By brute force: every report of every grid is read out, for every rectangle that is known."""
    protocol = list(Rectangles.examples())[place]
    even = EvenGrids(protocol.layout, protocol._evenly(FORGED_AMONG * len(protocol.groups)))
    ends = protocol.layout.rectangles
    plain, raised, apart = even.read(ends)[0], 0.0, 0.0
    for number, (_, inner) in enumerate(protocol.groups):
        rows = np.array([list(row) for row in product(range(256), repeat=inner.report_bytes)], dtype=np.uint8)
        moved = []
        for supported in np.unique(inner.support(rows[inner.valid(rows)]), axis=0):
            levels = [*even.levels]
            said = (supported - float(inner.q)) / float(inner.p - inner.q)
            levels[number] = levels[number]._replace(shares=said)
            moved.append(EvenGrids(protocol.layout, tuple(levels)).read(ends)[0] - plain)
        each = np.array(moved) * len(protocol.groups)
        raised, apart = max(raised, each.max()), max(apart, np.ptp(each, axis=0).max())
    assert (protocol.worth().leverage, protocol.worth().moved) == pytest.approx((raised, apart), rel=1e-9)


def test_leverage_of_many_rectangles_is_never_below_that_of_any(monkeypatch):
    """Every rectangle is the sum of four in one corner, with signs; of one number alone, of two."""
    exactly = [(one.worth().leverage, one.worth().moved) for one in Rectangles.examples()]
    monkeypatch.setattr("deniable.protocols.ranges.grids._LISTED", 0)
    for one, known in zip(Rectangles.examples(), exactly, strict=True):
        assert one.layout.rectangles is None
        for limit, found in zip((one.worth().leverage, one.worth().moved), known, strict=True):
            assert found <= limit * (1 + 1e-9) <= 4.1 * found
