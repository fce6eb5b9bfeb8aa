"""The distribution of a number: how far the estimate is from the truth, against rivals, and how long a fit takes.

Distance   Wasserstein's, times 1,000: how far people must be moved on [0, 1] to make the truth of the estimate
Truths     five: normal; two humps; 15 atoms with a uniform rest; Zipf's law; exponential
Rivals     the square wave as published: the same reports, EM and EMS with the kernel 1/4, 1/2, 1/4, until a pass gains
           less than e^epsilon / 1,000 (EM) or 1 / 1,000 nats (EMS); and the binned oracle: OUE over 32 bins, made
           consistent by norm-sub, people even within a bin
Ranges     the root mean square error of their shares, times 1,000; a flat oracle adds up the shares of single numbers,
           and its error is that of its formula
Rectangles the mean absolute error of their shares, times 1,000, of the census table of DENIABLE_CENSUS (a CSV file, or
           .gz, with the columns age and hours_per_week, such as UCI's "Adult") and of two numbers that go together.
           Rivals: the flat oracle, OLH over all pairs, made consistent by norm-sub; and a uniform grid, OLH over g x g
           rectangles, made consistent, people even within one: of the published size sqrt(0.06 (E - 1) sqrt(n / E))
           with E = e^epsilon (Yang et al. 2020), and of the size that is best for these people, seen afterwards
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, at_most, benchmark, faster, seconds, work
from deniable import design
from deniable.protocols.numeric.density import WindowLaw

Floats = NDArray[np.float64]

GROUP = "distributions"
TRUTHS = ("normal", "two humps", "atoms", "Zipf", "exponential")
LEVELS = (0.5, 1, 2)
BINS = 32
MOST_PASSES = 10_000
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
    "ranges", "2,000 random ranges of a number at epsilon 1, against least squares alone and a flat oracle", group=GROUP
)
def ranges(size: Size) -> Case:
    facts = {}
    for people, runs in ((size(100_000, 10_000), size(20, 1)), (size(1_000_000, 20_000), size(3, 1))):
        for truth in TRUTHS:
            each = [_range_errors(truth, people, size(1024, 64), seed) for seed in range(runs)]
            ours, squares = np.mean(each, axis=0)
            facts[f"{people:,} people, {truth}"] = f"ours {ours:.1f}, least squares alone {squares:.1f}"
    people, cells = size(1_000_000, 20_000), size(65_536, 256)
    flat = 1000 * math.sqrt(float(np.mean(np.ptp(_ends(cells), axis=1))) * dn.OLH(cells, 1).noise(people) ** 2)
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


def _distances(window: dn.Window, people: Floats, seed: int) -> dict[str, float]:
    tally = window.tally(window.privatize(people, dn.Simulation(seed)))
    found = window.estimate(tally)
    shapes = {
        "ours": found.frequencies,
        "published EMS": published(window.law, tally.counts, 1e-3, blurred=True),
        "published EM": published(window.law, tally.counts, 1e-3 * math.exp(window.epsilon), blurred=False),
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
