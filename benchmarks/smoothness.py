"""Intervals of quantiles and bins, for any distribution and for one that is assumed to be smooth.

People     are drawn anew each time, then their reports at epsilon 1; intervals are about the population
Figures    five quantiles, and the shares of ten bins; positions and cells are 128
Holds      how often 95 % intervals hold, on average over the figures of each kind, "smooth" first
Shorter    the mean length of the intervals for any distribution, divided by that of those that assume "smooth"
Smooth     truths whose density bends less than the usual assumption allows; `bend` has how much. Nothing was chosen
           on them: the width is a round number, and all else is a formula
Rough      truths that break the assumption
Errors     of a coverage of 95 % about two points: 40 collections, 20 of rough truths, of some figures each
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, benchmark
from deniable.results.smooth import USUAL

Floats = NDArray[np.float64]

GROUP = "smoothness"
PEOPLE = (300, 3_000, 100_000)
SMOOTH = ("uniform", "normal", "two humps", "exponential", "beta", "tilted")
ROUGH = ("triangle", "narrow humps", "steps", "arcsine", "half rounded", "smooth with a spike")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FIRST = 9000
"""The first seed."""


def drawn(truth: str, n: int, random: np.random.Generator) -> Floats:
    """Numbers of n people on [0, 1]."""
    if truth == "uniform":
        found = random.random(n)
    elif truth == "normal":
        found = _inside(lambda size: random.normal(0.45, 0.15, size), n)
    elif truth == "two humps":
        found = _inside(lambda size: random.normal(np.where(random.random(size) < 0.6, 0.3, 0.72), 0.1), n)
    elif truth == "exponential":
        found = _inside(lambda size: random.exponential(0.2, size), n)
    elif truth == "beta":
        found = random.beta(3, 5, n)
    elif truth == "tilted":  # a straight density, from 0.4 to 1.6
        found = (-0.4 + np.sqrt(0.16 + 2.4 * random.random(n))) / 1.2
    elif truth == "triangle":
        found = random.triangular(0.1, 0.3, 0.9, n)
    elif truth == "narrow humps":
        found = _inside(lambda size: random.normal(random.choice([0.2, 0.45, 0.8], size), 0.04), n)
    elif truth == "steps":
        found = (random.choice(6, n, p=[0.05, 0.3, 0.1, 0.35, 0.15, 0.05]) + random.random(n)) / 6
    elif truth == "arcsine":
        found = random.beta(0.5, 0.5, n)
    elif truth == "half rounded":
        found = _inside(lambda size: random.normal(0.5, 0.15, size), n)
        found = np.where(random.random(n) < 0.5, np.round(found * 10) / 10, found)
    else:
        found = _inside(lambda size: random.normal(0.45, 0.2, size), n)
        found = np.where(random.random(n) < 0.25, 0.65, found)
    return found


def _inside(draw: object, n: int) -> Floats:
    """Only numbers from 0 to 1: those beyond are drawn again."""
    found = np.zeros(0)
    while found.size < n:
        more = draw(2 * n)  # type: ignore[operator]
        found = np.append(found, more[(more >= 0) & (more <= 1)])
    return found[:n]


def bend(truth: str, people: int = 4_000_000) -> float:
    """By how much the density bends, beside the most that is assumed: as cells of 1/40 show it."""
    cells = 40
    held = np.histogram(drawn(truth, people, np.random.default_rng(0)), cells, (0, 1))[0] * cells / people
    bends = np.diff(held, 2) * cells**2
    noise = 6 * cells * cells**4 / people * np.convolve(held, [1, 4, 1], "valid") / 6
    found = float(np.mean(bends**2 - noise))
    return float(np.sqrt(max(0.0, found) / (3 / (8 * np.sqrt(np.pi) * USUAL**5))))


def protocols(cells: int) -> dict[str, dn.Window | dn.Ranges]:
    unit = dn.Interval(0, 1)
    return {"distribution": dn.Window(unit, 1, cells, read="distribution"), "ranges": dn.Ranges(unit, 1, cells=cells)}


def surveyed(
    protocol: dn.Window | dn.Ranges, truth: str, n: int, runs: int, first: int = FIRST, assume: str = "smooth"
) -> dict[str, tuple[float, float, float]]:
    """By kind of figure: how often both intervals hold, "smooth" first, and how much longer the other one is."""
    known = np.sort(drawn(truth, 1_000_000, np.random.default_rng(1)))
    below = np.searchsorted(known, np.arange(11) / 10, side="right") / known.size
    below[0] = 0.0
    wanted = {
        "quantiles": np.quantile(known, QUANTILES),
        "bins": np.diff(below),
    }
    held: dict[str, list[Floats]] = {kind: [] for kind in wanted}
    for seed in range(first, first + runs):
        people = drawn(truth, n, np.random.default_rng(seed))
        found = protocol.estimate(protocol.tally(protocol.privatize(people, dn.Simulation(seed)))).binned(10)
        each = [ends_of(one) for one in (found.assuming(assume), found)]
        for kind, truths in wanted.items():
            spans = np.array([one[kind] for one in each])
            inside = (spans[..., 0] <= truths + 1e-9) & (truths <= spans[..., 1] + 1e-9)
            held[kind].append(np.stack([inside.mean(axis=1), np.ptp(spans, axis=2).mean(axis=1)]))
    means = {kind: np.mean(rows, axis=0) for kind, rows in held.items()}
    return {kind: (float(one[0, 0]), float(one[0, 1]), float(one[1, 1] / one[1, 0])) for kind, one in means.items()}


def ends_of(found: dn.Distribution) -> dict[str, Floats]:
    """The intervals of the quantiles and of the bins, the last rows of a table."""
    ends = found.table().ends
    return {"quantiles": ends[: len(QUANTILES)], "bins": ends[-(found.edges.size - 1) :]}


@benchmark(
    "smooth intervals", 'intervals that assume "smooth" and those that assume nothing, epsilon 1', group=GROUP, rounds=1
)
def smooth_intervals(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    least, cells = 1.0, size(128, 64)
    for kind, truths, runs in (("smooth", SMOOTH, size(40, 1)), ("rough", ROUGH, size(20, 1))):
        for truth in truths:
            facts[f"bend, {kind}, {truth}"] = f"{bend(truth):.2f} of what is assumed"
            for name, protocol in protocols(cells).items():
                for n in PEOPLE if not size.quick else PEOPLE[:1]:
                    found = surveyed(protocol, truth, n, runs)
                    told = [f"{one} {a:.3f} and {b:.3f}, shorter {c:.2f}" for one, (a, b, c) in found.items()]
                    facts[f"{kind}, {truth}, {name}, n {n:,}"] = "; ".join(told)
                    if kind == "smooth":
                        least = min(least, *(a for a, *_ in found.values()))
    facts["least"] = f"{least:.3f} of the intervals hold in the worst smooth cell"
    return Case({}, [], facts)
