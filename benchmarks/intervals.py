"""How often 95 % intervals hold, from 10 reports on, and how large and how sharp the test of independence is.

Surveys    people are drawn anew each time, then their reports; intervals are about the population
Truths     those of this table had no part in the choice of a method. Numbers from 0 to 1: uniform; skewed: exponential
           with mean .12, cut at 1; rare: .8 of 2 % of the people, else 0; point: .62 of everybody. Shares of 8 answers:
           even; skewed: halves; rare: 96 % have the first answer; point: all have it
Figures    shares: the mean over all answers; means; all figures of `Moments`; the three largest items of sets; shares
           of private strata that are shown; cells of triples from a model ("blend") of pairs
Width      of an interval beside that of a normal one, 2 * 1.96 standard errors, on average, for truth "uniform"
Errors     of a coverage about 1.4 points (250 surveys; 2 points at n = 3,000), of shares less; of a size 1.3 points
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, benchmark, work
from deniable.design.mean import mean as best_mean
from deniable.protocols import ShareProtocol
from deniable.protocols.numeric.mean_table import MeanTable
from deniable.protocols.private_strata import PrivateStrata

GROUP, SIZES, RIDGE = "intervals", "independence", "ridge"
PEOPLE, EPSILONS = (10, 50, 300, 3000), (1, 4)
TRUTHS = ("uniform", "skewed", "rare", "point")
NORMAL = 2 * 1.959964
Floats = NDArray[np.float64]
Held = tuple[Floats, Floats]
"""Whether intervals hold, and how wide they are beside normal ones, of one survey."""

ANSWERS, ITEMS = 8, 12
NUMBERS = dn.Interval(0, 1)


def shares(truth: str, size: int = ANSWERS) -> Floats:
    """A population of listed answers."""
    found = {
        "uniform": np.full(size, 1 / size),
        "skewed": 0.5 ** np.arange(1, size + 1),
        "rare": np.r_[0.96, np.full(size - 1, 0.04 / (size - 1))],
        "point": np.r_[1.0, np.zeros(size - 1)],
    }[truth]
    return np.asarray(found / found.sum())


def numbers(truth: str, n: int, random: np.random.Generator) -> Floats:
    """People of a population of numbers."""
    if truth == "uniform":
        return random.random(n)
    if truth == "skewed":
        return np.minimum(random.exponential(0.12, n), 1.0)
    return np.where(random.random(n) < 0.02, 0.8, 0.0) if truth == "rare" else np.full(n, 0.62)


def moments(truth: str) -> tuple[float, float]:
    """Mean and deviation of a population of numbers."""
    held = numbers(truth, 300_000, np.random.default_rng(0))
    return float(held.mean()), float(held.std())


def held(rows: Any, truth: Floats) -> Held:
    with np.errstate(divide="ignore", invalid="ignore"):
        width = (rows.high - rows.low) / (NORMAL * rows.stderr)
    return (rows.low <= truth + 1e-9) & (truth <= rows.high + 1e-9), width


def of_shares(protocol: ShareProtocol, truth: str, n: int, runs: int) -> Iterator[Held]:
    known, random = shares(truth), np.random.default_rng([n, runs])
    for seed, people in enumerate(random.multinomial(n, known, runs)):
        yield held(protocol.estimate(protocol.simulate(None, 1, seed, counts=people).tally(0)).table(), known)


def of_numbers(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
    mean, deviation = moments(truth)
    known = np.array([mean] if protocol.reads == "mean" else [mean, deviation**2, deviation])
    random, bits = np.random.default_rng([n, runs]), dn.Simulation(n)
    reports = protocol.privatize(numbers(truth, n * runs, random), bits)
    for place in range(runs):
        yield held(protocol.estimate(protocol.tally(reports[place * n : (place + 1) * n])).table(), known)


def of_top(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
    known, random, bits = 2 * shares(truth, ITEMS).clip(max=0.4), np.random.default_rng([n, runs]), dn.Simulation(n)
    names = list(protocol.domain.items.labels)
    chances = np.append(known / 2, 1 - known.sum() / 2)
    for _ in range(runs):  # two draws with replacement, or none: at most two items
        first, second = random.choice(ITEMS + 1, (2, n), p=chances)
        rows = [[names[one] for one in sorted({a, b} - {ITEMS})] for a, b in zip(first, second, strict=True)]
        top = protocol.estimate(protocol.tally(protocol.privatize(rows, bits))).top(3)
        own = np.array([1 - (1 - chances[names.index(label)]) ** 2 for label in top.labels])
        yield held(top.table(), own)


def of_strata(protocol: PrivateStrata, truth: str, n: int, runs: int) -> Iterator[Held]:
    sizes, random, bits = np.array([0.55, 0.25, 0.15, 0.05]), np.random.default_rng([n, runs]), dn.Simulation(n)
    known = np.array([np.roll(shares(truth, 3), place) for place in range(4)])
    for _ in range(runs):
        cells = random.choice(12, n, p=(sizes[:, None] * known).ravel())
        rows = {"s": (cells // 3).tolist(), "x": (cells % 3).tolist()}
        found = protocol.estimate(protocol.tally(protocol.privatize(rows, bits)))
        for place in range(4):
            part = found.by_name[str(place)]
            if part.n:
                yield held(part.table(), known[place])


def of_cells(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
    random, bits = np.random.default_rng([n, runs]), dn.Simulation(n)
    known = np.zeros((2, 2, 2, 2))
    for sign in (0, 1):  # the last two columns follow the first with probability .8
        for column, one, other in np.ndindex(2, 2, 2):
            chance = shares(truth, 2)[column] * (0.8 if one == sign else 0.2) * (0.8 if other == sign else 0.2)
            known[sign, column, one, other] += chance / 2
    known = known.ravel()
    for _ in range(max(2, runs // 10)):
        cells = np.unravel_index(random.choice(16, n, p=known), (2, 2, 2, 2))
        rows = dict(zip("abcd", cells, strict=True))
        result = protocol.estimate(protocol.tally(protocol.privatize(rows, bits)))
        model, whole = result.model(draws=2), known.reshape(2, 2, 2, 2)
        for triple in combinations(range(4), 3):
            left = tuple(set(range(4)) - set(triple))
            yield held(model.table(*("abcd"[one] for one in triple)).table(), whole.sum(axis=left).ravel())


def kinds(epsilon: int) -> dict[str, tuple[Any, Callable[..., Iterator[Held]]]]:
    table = MeanTable(best_mean(epsilon, positions=9), NUMBERS)
    strata = dn.Records({"s": dn.Integers(0, 3), "x": dn.Integers(0, 2)})
    return {
        **{kind.__name__: (kind(ANSWERS, epsilon), of_shares) for kind in (dn.GRR, dn.OUE, dn.HadamardResponse)},
        "OneBitMean": (dn.OneBitMean(NUMBERS, epsilon), of_numbers),
        "Window": (dn.Window(NUMBERS, epsilon), of_numbers),
        "MeanTable": (table, of_numbers),
        "Moments": (dn.Moments(NUMBERS, epsilon), of_numbers),
        "top items": (dn.ItemSets(dn.Sets([f"i{i}" for i in range(ITEMS)], 2), epsilon), of_top),
        "private strata": (PrivateStrata(strata, epsilon), of_strata),
        "modelled cells": (dn.Attributes(dict.fromkeys("abcd", 2), epsilon, ask="pairs"), of_cells),
    }


@benchmark("coverage", "how often 95 % intervals hold, by kind, reports and truth", group=GROUP)
def coverage(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    for epsilon in EPSILONS:
        for name, (protocol, of) in kinds(epsilon).items():
            for n in PEOPLE if not size.quick else PEOPLE[:2]:
                runs = size(250 if n < 1000 else 120, 20)
                if of in (of_top, of_strata):
                    runs //= 3
                said, wide = [], ""
                for truth in TRUTHS:
                    each = list(of(protocol, truth, n, runs))
                    if not each:
                        said.append(f"{truth} -")
                        continue
                    said.append(f"{truth} {np.mean([one.mean() for one, _ in each]):.3f}")
                    if truth == "uniform" and of is not of_cells:
                        ratios = np.concatenate([width for _, width in each])
                        wide = f"; width {np.median(ratios[np.isfinite(ratios)]):.2f}"
                facts[f"{name}, epsilon {epsilon}, n {n:,}"] = ", ".join(said) + wide
    window = dn.Window(NUMBERS, 4)
    mean = window.estimate(window.tally(window.privatize(numbers("skewed", 3000, np.random.default_rng(1)))))
    return Case({"interval of a mean": work(mean.interval, 1, "interval")}, (), facts)


EVEN = np.outer([0.55, 0.45], [0.6, 0.3, 0.1])
DEPENDENT = EVEN + 0.08 * np.array([[1, -1, 0], [-1, 1, 0]])


@benchmark("independence", "size at 5 % and power of dn.independence, 2 x 3 answers", group=SIZES)
def independence(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    runs = size(300, 20)
    for kind in (dn.GRR, dn.OUE, dn.OLH):
        for epsilon in ("1/4", "1", "4"):
            protocol = kind(6, epsilon)
            for n in (50, 500, 2000, 10_000):
                found = [
                    100 * np.mean([dn.independence(one, (2, 3)).rejected() for one in surveys(protocol, law, n, runs)])
                    for law in (EVEN, DEPENDENT)
                ]
                facts[f"{kind.__name__}, epsilon {epsilon}, n {n:,}"] = f"size {found[0]:.1f} %, power {found[1]:.1f} %"
    (one,) = surveys(dn.GRR(6, 1), EVEN, 3000, 1)
    return Case({"test": work(lambda: dn.independence(one, (2, 3)), 1, "test")}, (), facts)


SLOPES = np.array([0.5, -0.3, 0.2, 0.0])


@benchmark("ridge", "linear regression on four columns with equal correlations, epsilon 2, 40 collections", group=RIDGE)
def ridge(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    n, runs = size(100_000, 20_000), size(40, 2)
    columns = {name: dn.Interval(0, 10) for name in "abcd"} | {"y": dn.Interval(0, 24)}
    protocol = dn.Queries(columns, 2, people=n, regress={"target": "y"})
    for correlation in (0.5, 0.9):
        known, ridges, errors, ends = 0, 0, [], []
        for seed in range(runs):
            random = np.random.default_rng(seed)
            common, own = random.standard_normal((n, 1)), random.standard_normal((n, 4))
            x = np.clip(5 + 1.8 * (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own), 0, 10)
            y = np.clip(8 + x @ SLOPES + random.standard_normal(n), 0, 24)
            truth = np.linalg.lstsq(np.column_stack([np.ones(n), x]), y, rcond=None)[0]
            table = dict(zip("abcd", x.T, strict=True)) | {"y": y}
            found = protocol.estimate(protocol.tally(protocol.privatize(table, dn.Simulation(seed))))
            if found.is_known:
                known, ridges = known + 1, ridges + ("ridge" in found.method)
                low, high = found.interval().T
                ends.append((low <= truth) & (truth <= high))
                errors.append((found.value - truth)[1:])
        head = f"correlation {correlation}"
        facts[f"{head}, estimates"] = f"{known} of {runs}, by ridge {ridges}"
        facts[f"{head}, error of a slope"] = f"{np.sqrt(np.mean(np.square(errors))):.2f}"
        facts[f"{head}, intervals hold"] = f"{100 * np.mean(ends):.1f} %"
    return Case({"reports": work(lambda: protocol.privatize(table), n, "report")}, (), facts)


def surveys(protocol: ShareProtocol, law: Floats, n: int, runs: int) -> Iterator[dn.Estimate]:
    random = np.random.default_rng([n, runs, *protocol.name.encode()])
    for seed, people in enumerate(random.multinomial(n, law.ravel(), runs)):
        yield protocol.estimate(protocol.simulate(None, 1, seed, counts=people).tally(0))
