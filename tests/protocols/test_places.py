"""Places on a grid: the law against its formula and its promise, read-out, intervals, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable import exact
from deniable.domains import Grid, Integers, Records, load_domain
from deniable.errors import ChannelError, DomainError, NumberError, SpecError
from deniable.planning import plan
from deniable.protocols import PlanarLaplace, Rectangles, load
from deniable.protocols.numeric.planar_laplace import planar_weights
from deniable.randomness import Simulation
from deniable.surveys import Survey

TOWN = Grid(16, 12, cell="500 m")


def kernel(epsilon: Fraction, reach: int) -> np.ndarray:
    """V(k) of the offsets up to twice the reach, as whole numbers."""
    weights = planar_weights(epsilon, reach)
    found = np.full((4 * reach + 1, 4 * reach + 1), weights.floor, dtype=object)
    north, east = weights.offsets.T + 2 * reach
    found[north, east] += np.array(weights.above, dtype=object)
    return found


def beyond(values: np.ndarray, epsilon: Fraction, reach: int) -> int:
    """In how many pairs of offsets the ratio exceeds e^(epsilon |s|), s being the step between them."""
    size, wrong = len(values), 0
    for north in range(reach + 1):
        for east in range(-reach, reach + 1):
            if (north, east) <= (0, 0):
                continue
            low = Fraction(math.isqrt((north**2 + east**2) << 64), 1 << 32)
            bound = exact.exp_floor(epsilon * low)
            a = values[north:, max(0, east) : size + min(0, east)]
            b = values[: size - north, max(0, -east) : size - max(0, east)]
            wrong += int(np.sum(a * bound.denominator > b * bound.numerator))
            wrong += int(np.sum(b * bound.denominator > a * bound.numerator))
    return wrong


@pytest.mark.parametrize(("epsilon", "reach"), [("1/100", 4), ("1/2", 5), ("3", 5), ("8", 3), ("24", 1)])
def test_every_two_moves_keep_the_promise(epsilon: str, reach: int) -> None:
    """All offsets and all steps between them, in whole numbers; with weights of an epsilon 1 % larger they do not."""
    level = Fraction(epsilon)
    assert beyond(kernel(level, reach), level, reach) == 0
    if level * reach * Fraction(101, 100) <= 24:
        assert beyond(kernel(level * Fraction(101, 100), reach), level, reach) > 0


def test_weights_are_those_of_the_formula() -> None:
    weights = planar_weights(Fraction(1, 2), 6)
    for offset, above in zip(weights.offsets, weights.above, strict=True):
        length = math.ceil(65536 * math.hypot(*offset))
        assert (above + weights.floor) / 2**64 == pytest.approx(math.exp(-length / 2 / 65538), rel=1e-12)
    assert len(weights.offsets) == sum(a * a + b * b < 36 for a in range(-6, 7) for b in range(-6, 7))


def test_the_stated_level_is_that_of_cells_side_by_side() -> None:
    town = PlanarLaplace(TOWN, 1)
    assert town.guarantee.relation == "metric"
    assert town.guarantee.over.startswith("two places one cell side (500 m) apart, and so much more")
    assert 0.9999 < town.realized_epsilon < 1
    assert 4.4 < town.radius(0.95) < 5.1  # on a plane without cells 4.74
    assert PlanarLaplace(TOWN, "1/100", reach=2).radius(0.95) == math.inf


def test_a_channel_tells_its_level_per_distance() -> None:
    small = PlanarLaplace(Grid(4, 3), "1/2", reach=2)
    channel = small.channel()
    assert channel.satisfies(small.epsilon, small.law().distance)
    assert not channel.satisfies(small.epsilon * Fraction(99, 100), small.law().distance)
    assert channel.epsilon > small.epsilon, "between cells far apart more is told"


@pytest.mark.parametrize("shape", [(5, 4), (4, 7), (2, 2)])
def test_sectors_are_the_channel(shape: tuple[int, int]) -> None:
    protocol = PlanarLaplace(Grid(*shape), "2/3", reach=2)
    rows, law = np.asarray(protocol.channel().rows), protocol.linear
    some = np.random.default_rng(3).dirichlet(np.ones(rows.shape[0]), size=2)
    assert np.allclose(law.mix(some[0]), some[0] @ rows, rtol=1e-12)
    assert np.allclose(law.expected(some[0]), rows @ some[0], rtol=1e-12)
    assert np.allclose(law.weights(some) @ rows.T, some, atol=1e-9)
    assert protocol.worth().guess == pytest.approx(rows.max(axis=0).mean() * rows.shape[1] / rows.shape[0])
    assert np.allclose(protocol._extremes[0], rows.min(axis=0), rtol=1e-12)


def people(n: int, seed: int) -> dict[str, np.ndarray]:
    """Two towns and what lies between them."""
    random = np.random.default_rng(seed)
    centre = np.where(random.random(n)[:, None] < 0.6, [4.0, 5.0], [9.0, 13.0])
    found = np.clip(np.round(centre + random.normal(0, 1.2, (n, 2))), 1, [12, 16]).astype(int)
    return {"north": found[:, 0], "east": found[:, 1]}


def test_intervals_cover_the_truth() -> None:
    """5 collections with 5 rectangles each: 95 % intervals miss 8 or more of 25 with probability below 1e-4."""
    protocol, given = PlanarLaplace(TOWN, 1), people(20_000, 1)
    asked = [((1, 6), (1, 8)), ((3, 5), (4, 6)), ((1, 12), (9, 16)), ((9, 9), (13, 13)), ((7, 12), (1, 4))]
    missed = 0
    for seed in range(5):
        found = protocol.estimate(protocol.tally(protocol.privatize(given, Simulation(seed))))
        for north, east in asked:
            inside = (given["north"] >= north[0]) & (given["north"] <= north[1])
            inside &= (given["east"] >= east[0]) & (given["east"] <= east[1])
            low, high = found.rectangle(north, east).interval(0.95, population=False)
            missed += not low <= inside.mean() <= high
    assert missed < 8


def test_a_fit_finds_the_towns() -> None:
    protocol, given = PlanarLaplace(TOWN, 1), people(50_000, 2)
    found = protocol.estimate(protocol.tally(protocol.privatize(given, Simulation(9))))
    assert found.kind == "rectangles"
    assert "north" in found.headline
    sharp = found.unbiased.rectangle((1, 6), (1, 8))
    inside = ((given["north"] <= 6) & (given["east"] <= 8)).mean()
    assert abs(sharp.value - inside) < 5 * sharp.stderr
    assert abs(found.rectangle((1, 6), (1, 8)).value - inside) < 0.02
    assert found.rectangle().value == pytest.approx(1)
    assert not protocol.misfit(protocol.tally(protocol.privatize(given, Simulation(8)))).suspicious
    forged = protocol.tally(np.zeros((5000, 1), dtype=np.uint8))
    assert protocol.misfit(forged).suspicious


def test_no_reports_say_nothing() -> None:
    found = PlanarLaplace(TOWN, 1).estimate(PlanarLaplace(TOWN, 1).empty())
    assert found.n == 0
    assert found.rectangle((1, 2), (1, 2)).interval() == (0.0, 1.0)


def test_batches_and_single_reports_have_one_law_on_wide_grids() -> None:
    """Chi-square of 20,000 moves by both ways in 9 blocks of 30 x 20 cells: a false alarm in 1 of 10,000."""
    protocol = PlanarLaplace(Grid(30, 20), "1/3")
    place = {"north": 10, "east": 3}
    batch = protocol.privatize([place] * 20_000, Simulation(4)).array
    bits = Simulation(5)
    single = np.array([list(protocol.report(place, bits)) for _ in range(4000)], dtype=np.uint8)
    expected = protocol.linear.mix(np.eye(600)[9 * 30 + 2])
    for reports, n in ((batch, 20_000), (single, 4000)):
        seen = protocol.count(reports).reshape(2, 10, 3, 10).sum(axis=(1, 3)).reshape(-1)
        law = expected.reshape(2, 10, 3, 10).sum(axis=(1, 3)).reshape(-1)
        assert ((seen - n * law) ** 2 / (n * law)).sum() < 25.7


@pytest.mark.parametrize("wrong", [(1, 5), (5, 1), (65, 64), (True, 5), (2.5, 5)])
def test_grids_that_are_none_are_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(DomainError):
        Grid(*wrong)


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(DomainError, match="500 m"):
        Grid(3, 3, cell="wide")
    for wrong in ({"north": 0, "east": 1}, {"north": 13, "east": 1}, {"north": 1}, {"x": 1, "y": 2}, (1, 2), None):
        with pytest.raises(DomainError):
            PlanarLaplace(TOWN, 1).privatize(wrong)
    with pytest.raises(DomainError, match=r"dn\.Grid"):
        PlanarLaplace(Records({"x": Integers(1, 3), "y": Integers(1, 3)}), 1)
    with pytest.raises(ChannelError, match="one cell side"):
        PlanarLaplace(TOWN, 25)
    for reach in (-1, 25, True, 1.5):
        with pytest.raises(NumberError):
            PlanarLaplace(TOWN, 1, reach=reach)
    with pytest.raises(SpecError):
        load_domain({"kind": "grid", "columns": 3, "rows": 3})


def test_a_spec_gives_the_protocol_again() -> None:
    for protocol in (PlanarLaplace(TOWN, 1), PlanarLaplace(Grid(64, 64), "1/10"), PlanarLaplace(Grid(2, 2), 24)):
        assert load(protocol.spec()) == protocol
        assert protocol.reach * protocol.epsilon <= 24


def test_a_draft_asks_for_places_with_both_promises() -> None:
    """Fading with the distance, or between any two places: the same grid under local differential privacy."""
    places = {"columns": 16, "rows": 12, "cell": "500 m"}
    entry = {"id": "home", "text": "Where do you live?", "answers": {"places": places}}
    near = Survey.from_draft({"name": "homes", "epsilon": "1", "people": 20000, "questions": [entry]})
    assert near.questions[0].protocol == PlanarLaplace(TOWN, 1)
    entry = entry | {"answers": {"places": places, "read": "rectangles"}}
    anywhere = Survey.from_draft({"name": "homes", "epsilon": "1", "people": 20000, "questions": [entry]})
    protocol = anywhere.questions[0].protocol
    assert isinstance(protocol, Rectangles)
    assert protocol.domain == TOWN
    found = protocol.estimate(protocol.tally(protocol.privatize(people(2000, 3), Simulation(1))))
    low, high = found.rectangle((1, 6), (1, 8)).interval(0.9999)
    assert low < 0.55 < high
    for wrong in ({"columns": 3}, {"columns": 3, "rows": 3, "size": 1}, {"columns": 3, "rows": 1}):
        with pytest.raises(SpecError):
            Survey.from_draft(
                {"name": "n", "epsilon": 1, "people": 9, "questions": [entry | {"answers": {"places": wrong}}]}
            )


def test_a_plan_says_how_far_reports_lie() -> None:
    found = plan(TOWN, epsilon=1, n=20_000)
    assert [option.name for option in found.table] == ["PlanarLaplace"]
    assert "95 % of the reports lie within 5 cells of 500 m of the place" in found.reason
    assert found.within < plan(TOWN, epsilon="1/2", n=20_000).within
    assert plan(TOWN, epsilon=1, n=20_000, read="rectangles").best.name == "Rectangles"
