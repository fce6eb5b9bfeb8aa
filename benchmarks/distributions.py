"""The distribution of a number: how far the estimate is from the truth, against rivals, and how long a fit takes.

Distance   Wasserstein's, times 1,000: how far people must be moved on [0, 1] to make the truth of the estimate
Truths     five: normal; two humps; 15 atoms with a uniform rest; Zipf's law; exponential
Fresh      eleven truths on which nothing was tuned: parameters were chosen on the five above and on a box, half a
           normal, a gamma law, a beta law with a spike, and normal numbers half of which are rounded
Rivals     the square wave as published: the same reports, EM and EMS with the kernel 1/4, 1/2, 1/4, until a pass gains
           less than e^epsilon / 1,000 (EM) or 1 / 1,000 nats (EMS); and the binned oracle: OUE over 32 bins, made
           consistent by norm-sub, people even within a bin
Ranges     the root mean square error of their shares, times 1,000, mean of 20 collections. Least squares alone is that
           of the same tally, whose fan-outs are the best ones for it. A flat oracle adds up the shares of single
           numbers, and its error is that of its formula
Rectangles the mean absolute error of their shares, times 1,000, of the census table of DENIABLE_CENSUS (a CSV file, or
           .gz, with the columns age and hours_per_week, such as UCI's "Adult") and of two numbers that go together.
           Rivals: the flat oracle, OLH over all pairs, made consistent by norm-sub; and a uniform grid, OLH over g x g
           rectangles, made consistent, people even within one: of the published size sqrt(0.06 (E - 1) sqrt(n / E))
           with E = e^epsilon (Yang et al. 2020), and of the size that is best for these people, seen afterwards
Places     the mean absolute error of the shares of rectangles of cells, times 1,000, and how often their intervals hold
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks import census
from benchmarks.registry import Case, Size, UnavailableError, at_most, benchmark, faster, seconds, work
from deniable import design
from deniable.protocols.numeric.density import WindowLaw

Floats = NDArray[np.float64]

GROUP = "distributions"
SHAPES = "shapes"
PLANES = "planes"
TRUTHS = ("normal", "two humps", "atoms", "Zipf", "exponential")
LEVELS = (0.5, 1, 2)
FRESH_TRUTHS = (
    "arcsine",
    "lognormal",
    "steps",
    "log-weights",
    "uniform",
    "triangle",
    "three humps",
    "heaped wages",
    "smooth with a spike",
    "cut off at the top",
    "Cauchy",
)
BINS = 32
MOST_PASSES = 10_000
FRESH = 7000
"""The first seed of collections on which nothing was tried before."""
GRIDS = (2, 3, 4, 5, 6, 8, 10, 12, 16)


@benchmark(
    "distribution", "distribution of a number, 1,024 positions, 100,000 people, against rivals", group=GROUP, rounds=5
)
def distribution(size: Size) -> Case:
    people, positions, runs = size(100_000, 10_000), size(1024, 128), size(20, 1)
    tasks, facts = {}, {}
    for epsilon in LEVELS:
        window = dn.Window(dn.Interval(0, 1), epsilon, positions, read="distribution")
        for truth in TRUTHS:
            found = [_distances(window, numbers(truth, people, seed), seed) for seed in range(runs)]
            mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
            facts[f"epsilon {epsilon}, {truth}"] = ", ".join(f"{name} {value:.1f}" for name, value in mean.items())
    window = dn.Window(dn.Interval(0, 1), 1, positions, read="distribution")
    for truth in ("normal", "Zipf"):
        tally = window.tally(window.privatize(numbers(truth, people, 0), dn.Simulation(0)))
        tasks[f"fit, {truth}"] = work(lambda tally=tally: window.estimate(tally), 1, "fit")  # type: ignore[misc]
    limits = [seconds(name, at_most(0.5, full_only=True)) for name in tasks]
    return Case(tasks, limits, facts)


@benchmark(
    "fresh distributions",
    "distributions on which nothing was tuned, 1,024 positions, 100,000 people, against rivals",
    group=SHAPES,
    rounds=1,
)
def fresh_distributions(size: Size) -> Case:
    people, positions, runs = size(100_000, 10_000), size(1024, 128), size(6, 1)
    facts: dict[str, str | int | float] = {}
    behind, behind_either = 0, 0
    for epsilon in LEVELS:
        window = dn.Window(dn.Interval(0, 1), epsilon, positions, read="distribution")
        for truth in FRESH_TRUTHS:
            seeds = range(FRESH, FRESH + runs)
            found = [_distances(window, fresh_numbers(truth, people, seed), seed) for seed in seeds]
            mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
            facts[f"epsilon {epsilon}, {truth}"] = ", ".join(f"{name} {value:.1f}" for name, value in mean.items())
            behind += mean["ours"] > mean["published EMS"]
            behind_either += mean["ours"] > min(mean["published EMS"], mean["published EM"])
    cells = len(LEVELS) * len(FRESH_TRUTHS)
    facts["behind"] = f"published EMS in {behind} of {cells}, the better of EMS and EM in {behind_either} of {cells}"
    return Case({}, [], facts)


@benchmark(
    "ranges", "2,000 random ranges of a number at epsilon 1, against least squares alone and a flat oracle", group=GROUP
)
def ranges(size: Size) -> Case:
    facts = {}
    for people in (size(100_000, 10_000), size(1_000_000, 20_000)):
        for truth in TRUTHS:
            seeds = range(FRESH, FRESH + size(20, 1))
            ours, squares = np.mean([_range_errors(truth, people, size(1024, 64), seed) for seed in seeds], axis=0)
            facts[f"{people:,} people, {truth}"] = (
                f"ours {ours:.1f}, least squares alone {squares:.1f}, {squares / ours:.2f} times as much"
            )
    people, cells = size(1_000_000, 20_000), size(65_536, 256)
    flat = 1000 * math.sqrt(float(np.mean(np.ptp(_ends(cells), axis=1))) * dn.OLH(cells, 1).worth(people).noise ** 2)
    facts[f"{cells:,} numbers, {people:,} people"] = (
        f"ours {_range_errors(TRUTHS[1], people, cells, 0)[0]:.1f}, flat {flat:.1f}"
    )
    tree, grr = dn.Ranges(dn.Integers(0, size(1023, 63)), 1), dn.GRR(size(1024, 64), 1)
    unit = dn.Interval(0, 1)
    asked = {
        "window": dn.Window(unit, 1, read="distribution"),
        "designed mean": dn.MeanTable(design.mean(1, positions=9), unit),
    }
    shares = numbers(TRUTHS[1], people, 0)
    places = (shares * (grr.domain.size - 1)).astype(int)
    each = [("ranges", tree, places), ("GRR", grr, places), *((name, one, shares) for name, one in asked.items())]
    tasks = {
        name: work(lambda one=one, held=held: one.tally(one.privatize(held, dn.Simulation(0))), people, "person")  # type: ignore[misc]
        for name, one, held in each
    }
    goals = [faster("GRR", than=name, goal=at_most(3, full_only=True)) for name in ("ranges", *asked)]
    return Case(tasks, goals, facts)


@benchmark(
    "rectangles", "2,000 random rectangles of two numbers at epsilon 1, against a flat oracle and a grid", group=PLANES
)
def rectangles(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    runs, tables = size(10, 1), {"two normals": _two_normals(size(100_000, 5_000), size(100, 20))}
    try:
        table = census.read()
        tables["census, age and hours"] = (table["age"].astype(int), table["hours_per_week"].astype(int))
    except UnavailableError as missing:
        facts["census, age and hours"] = f"not measured: {missing}"
    for name, columns in tables.items():
        found = [_rectangle_errors(*columns, seed) for seed in range(runs)]
        mean = {rival: float(np.mean([one[rival] for one in found])) for rival in found[0]}
        published = round(math.sqrt(0.06 * (math.e - 1) * math.sqrt(len(columns[0]) / math.e)))
        mean["uniform grid"] = mean[f"grid {published}"]
        mean["the best uniform grid, seen afterwards"] = min(mean[f"grid {size}"] for size in GRIDS)
        rivals = ("ours", "uniform grid", "the best uniform grid, seen afterwards", "flat")
        shown = ", ".join(f"{rival} {mean[rival]:.1f}" for rival in rivals)
        facts[f"{name}, {len(columns[0]):,} people"] = shown
    first, second = tables["two normals"]
    plane = dn.Rectangles({"x": _whole(first), "y": _whole(second)}, 1, people=len(first))
    grr, answers = dn.GRR(1024, 1), {"x": first, "y": second}
    tasks = {
        "rectangles": work(lambda: plane.tally(plane.privatize(answers, dn.Simulation(0))), len(first), "person"),
        "GRR": work(lambda: grr.tally(grr.privatize(first, dn.Simulation(0))), len(first), "person"),
    }
    return Case(tasks, [faster("GRR", than="rectangles", goal=at_most(3, full_only=True))], facts)


def _whole(values: NDArray[np.int64]) -> dn.Integers:
    return dn.Integers(int(values.min()), int(values.max()))


def _two_normals(people: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Normal, with correlation 0.8, in cells over six standard deviations."""
    one, other = np.random.default_rng(0).normal(size=(2, people))
    first, second = (
        np.clip((each / 6 + 0.5) * cells, 0, cells - 1).astype(int) for each in (one, 0.8 * one + 0.6 * other)
    )
    return first, second


def _rectangle_errors(first: NDArray[np.int64], second: NDArray[np.int64], seed: int) -> dict[str, float]:
    """The mean absolute error of rectangles with uniform ends, times 1,000: ours, the flat oracle's and the grids'."""
    people, domains = len(first), (_whole(first), _whole(second))
    cells = [domain.size for domain in domains]
    places = [values - domain.low for values, domain in zip((first, second), domains, strict=True)]
    random = np.random.default_rng(0)
    ends = np.hstack([np.sort(random.integers(0, size + 1, size=(2000, 2)), axis=1) for size in cells]).astype(float)
    true = _shares(np.histogram2d(*places, [np.arange(size + 1) for size in cells])[0] / people, ends)
    made = dn.Rectangles({"x": domains[0], "y": domains[1]}, 1, people=people)
    found = made.estimate(made.tally(made.privatize({"x": first, "y": second}, dn.Simulation(seed))))
    assert found.evidence is not None
    errors = {"ours": found.evidence.fitted(ends) - true}
    errors["flat"] = _shares(_gridded(places, cells, cells, seed), ends) - true
    for size in GRIDS:
        errors[f"grid {size}"] = _shares(_gridded(places, cells, [size, size], seed), ends) - true
    return {name: 1000 * float(np.abs(one).mean()) for name, one in errors.items()}


def _gridded(places: list[NDArray[np.int64]], cells: list[int], grid: list[int], seed: int) -> Floats:
    """The shares of all cells from one oracle over a grid, with people spread evenly within its rectangles."""
    parts = [np.arange(size) * own // size for size, own in zip(cells, grid, strict=True)]
    nodes = parts[0][places[0]] * grid[1] + parts[1][places[1]]
    oracle = dn.OLH(grid[0] * grid[1], 1)
    shares = oracle.estimate(oracle.tally(oracle.privatize(nodes, dn.Simulation(seed)))).consistent().frequencies
    widths = [np.bincount(part)[part] for part in parts]
    found: Floats = shares.reshape(grid)[np.ix_(*parts)] / np.outer(*widths)
    return found


def _shares(cells: Floats, ends: Floats) -> Floats:
    total = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1))
    total[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    a, b, c, d = ends.astype(int).T
    found: Floats = total[b, d] - total[a, d] - total[b, c] + total[a, c]
    return found


@benchmark("places", "places on a grid of 16 x 12 cells, 30,000 people: shares of rectangles, and cost", group=PLANES)
def places(size: Size) -> Case:
    """The same people with a promise per cell side, and with one between any two cells."""
    people, runs, grid = size(30_000, 3_000), size(20, 1), dn.Grid(16, 12)
    north, east = _two_towns(people)
    answers = {"north": north + 1, "east": east + 1}
    true = np.histogram2d(north, east, [np.arange(13), np.arange(17)])[0] / people
    random = np.random.default_rng(0)
    ends = np.hstack([np.sort(random.integers(0, own + 1, size=(200, 2)), axis=1) for own in (12, 16)]).astype(float)
    wanted, facts = _shares(true, ends), {}
    for name, protocol in {
        **{f"epsilon {level} per cell side": dn.PlanarLaplace(grid, level) for level in ("1/2", 1, 2)},
        **{f"epsilon {level} between any two": dn.Rectangles(grid, level, people=people) for level in (1, 2, 4)},
    }.items():
        errors, held = [], []
        for seed in range(runs):
            found = protocol.estimate(protocol.tally(protocol.privatize(answers, dn.Simulation(seed))))
            errors.append(np.abs(found.evidence.fitted(ends) - wanted).mean())
            low, high = found._interval(ends, 1.959964, False)
            held.append(np.mean((low <= wanted) & (wanted <= high)))
        facts[name] = f"mean error {1000 * np.mean(errors):.1f}, 95 % intervals hold {100 * np.mean(held):.1f} %"
    near, grr = dn.PlanarLaplace(grid, 1), dn.GRR(192, 1)
    cells = north * 16 + east
    tasks = {
        "places": work(lambda: near.tally(near.privatize(answers, dn.Simulation(0))), people, "person"),
        "GRR": work(lambda: grr.tally(grr.privatize(cells, dn.Simulation(0))), people, "person"),
    }
    return Case(tasks, [faster("GRR", than="places")], facts)


def _two_towns(people: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells of 12 rows and 16 columns."""
    random = np.random.default_rng(1)
    centre = np.where(random.random(people)[:, None] < 0.6, [3.0, 4.0], [8.0, 12.0])
    found = np.clip(np.round(centre + random.normal(0, 1.2, (people, 2))), 0, [11, 15]).astype(int)
    return found[:, 0], found[:, 1]


def _ends(cells: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(0).integers(0, cells, size=(2000, 2)), axis=1) + np.array([0, 1])


def _range_errors(truth: str, people: int, cells: int, seed: int) -> tuple[float, float]:
    """The root mean square error of ranges, times 1,000: of the values, and of least squares behind them."""
    protocol = dn.Ranges(dn.Integers(0, cells - 1), 1)
    values = np.minimum((numbers(truth, people, seed) * cells).astype(int), cells - 1)
    tally = protocol.tally(protocol.privatize(values, dn.Simulation(seed)))
    begin, end = _ends(cells).T
    true = np.cumsum(np.concatenate([[0.0], np.bincount(values, minlength=cells) / people]))
    fitted = np.cumsum(np.concatenate([[0.0], protocol.estimate(tally).frequencies]))
    wanted = true[end] - true[begin]
    ours, squares = fitted[end] - fitted[begin], protocol.tree(tally).ranges(begin, end).value
    return _root_mean_square(ours - wanted), _root_mean_square(squares - wanted)


def _root_mean_square(errors: Floats) -> float:
    return 1000 * math.sqrt(float(np.mean(errors**2)))


def numbers(truth: str, n: int, seed: int) -> Floats:
    """Numbers of n people on [0, 1]."""
    random = np.random.default_rng(seed)
    if truth == "normal":
        found = random.normal(0.5, 0.12, n)
    elif truth == "two humps":
        found = np.where(random.random(n) < 0.6, random.normal(0.25, 0.05, n), random.normal(0.7, 0.08, n))
    elif truth == "atoms":
        atoms = random.random(15)
        found = np.where(random.random(n) < 0.7, atoms[random.integers(0, 15, n)], random.random(n))
    elif truth == "Zipf":
        found = (random.zipf(1.3, n) % 1024) / 1024
    else:
        found = random.exponential(0.1, n)
    return np.clip(found, 0.0, 1.0)


def fresh_numbers(truth: str, n: int, seed: int) -> Floats:
    """Numbers of n people on [0, 1], of truths on which nothing was tuned."""
    random = np.random.default_rng(seed)
    if truth == "arcsine":
        found = random.beta(0.5, 0.5, n)
    elif truth == "lognormal":
        found = random.lognormal(-2, 0.6, n)
    elif truth == "steps":
        found = (random.choice(6, n, p=[0.05, 0.3, 0.1, 0.35, 0.15, 0.05]) + random.random(n)) / 6
    elif truth == "log-weights":
        weights = np.exp(random.normal(0, 1, 20))
        found = (random.choice(20, n, p=weights / weights.sum()) + random.random(n)) / 20
    elif truth == "uniform":
        found = random.random(n)
    elif truth == "triangle":
        found = random.triangular(0.1, 0.3, 0.9, n)
    elif truth == "three humps":
        centre = random.choice([0.2, 0.45, 0.8], n, p=[0.3, 0.5, 0.2])
        found = random.normal(centre, 0.05)
    elif truth == "heaped wages":
        found = random.lognormal(-1.2, 0.4, n)
        found = np.where(random.random(n) < 0.4, np.round(found * 10) / 10, found)
    elif truth == "smooth with a spike":
        found = np.where(random.random(n) < 0.25, 0.65, random.normal(0.45, 0.2, n))
    elif truth == "cut off at the top":
        found = random.normal(0.75, 0.25, n)
    else:
        found = 0.4 + 0.05 * random.standard_cauchy(n)
    return np.clip(found, 0.0, 1.0)


def _distances(window: dn.Window, people: Floats, seed: int) -> dict[str, float]:
    tally = window.tally(window.privatize(people, dn.Simulation(seed)))
    found = window.estimate(tally)
    shapes = {
        "ours": found.frequencies,
        "published EMS": published(window.linear, tally.counts, 1e-3, blurred=True),
        "published EM": published(window.linear, tally.counts, 1e-3 * math.exp(window.epsilon), blurred=False),
    }
    distances = {name: _distance(shares, people) for name, shares in shapes.items()}
    return distances | {"binned": _distance(_binned(people, window.epsilon, seed), people, even=True)}


def published(law: WindowLaw, counts: NDArray[np.int64], least: float, blurred: bool) -> Floats:
    """The estimate of Li et al. 2020."""
    share, point, before = counts / counts.sum(), np.full(law.positions, 1 / law.positions), -math.inf
    for _ in range(MOST_PASSES):
        mixture = law.mix(point)
        reached = float(counts @ np.log(mixture))
        if reached - before < least:
            break
        before = reached
        point = point * law.expected(share / mixture)
        if blurred:
            around = np.pad(point, 1, "edge")
            point = (around[:-2] + 2 * around[1:-1] + around[2:]) / 4
        point /= point.sum()
    return point


def _binned(people: Floats, epsilon: object, seed: int) -> Floats:
    oracle = dn.OUE(BINS, epsilon)  # type: ignore[arg-type]
    places = np.minimum((people * BINS).astype(int), BINS - 1)
    found = oracle.estimate(oracle.tally(oracle.privatize(places, dn.Simulation(seed))))
    return found.consistent().frequencies


def _distance(shares: Floats, people: Floats, even: bool = False) -> float:
    """Times 1,000; the shares are of positions on [0, 1], or of bins in which people are spread evenly."""
    at = (np.arange(1 << 14) + 0.5) / (1 << 14)
    true = np.searchsorted(np.sort(people), at, side="right") / people.size
    total = np.concatenate([[0.0], np.cumsum(shares)])
    if even:
        mine = np.interp(at, np.linspace(0, 1, total.size), total)
    else:
        mine = total[1 + (at * (shares.size - 1)).astype(int)]
    return 1000 * float(np.abs(true - mine).mean())
