"""How often 95 % intervals hold, from 10 reports on, and how large and how sharp the test of independence is.

Surveys    people are drawn anew each time, then their reports; intervals are about the population
Truths     those of this table had no part in the choice of a method. Numbers from 0 to 1: uniform; skewed: exponential
           with mean .12, cut at 1; rare: .8 of 2 % of the people, else 0; point: .62 of everybody. Shares of 8 answers:
           even; skewed: halves; rare: 96 % have the first answer; point: all have it
           Sizes of sets: the same shares of the sizes 0 to 3, in a new order for each survey. Graphs: uniform, about 8
           neighbours each; skewed, few nodes have most edges; rare, one edge for every four nodes; point, no edge
Figures    shares: the mean over all answers; means; all figures of `Moments`; the three largest items of sets; shares
           of private strata that are shown; cells of triples from a model ("blend") of pairs; shares of texts, with a
           new key for each survey; shares and means of the numbers of keys; shares in four epochs, in which a part of
           the people change their answer; figures of graphs, where only the noise is chance
Width      of an interval beside that of a normal one, 2 * 1.96 standard errors, on average, for truth "uniform"
Errors     of a coverage at most 1.1 points (400 surveys; 1.5 points at n = 3,000, with 200), of shares and means .7
           points (1,000 surveys); of a size 1.3 points. What was shown less than 20 times has no figure
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
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
SET_GROUP, TEXT_GROUP, EPOCH_GROUP, GRAPH_GROUP = (f"intervals-{name}" for name in ("sets", "text", "epochs", "graphs"))
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
    for seed, people in enumerate(random.multinomial(n, known, runs), runs * TRUTHS.index(truth)):
        yield held(protocol.estimate(protocol.simulate(None, 1, seed, counts=people).tally(0)).table(), known)


def of_numbers(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
    mean, deviation = moments(truth)
    known = np.array([mean] if protocol.worth().read == "mean" else [mean, deviation**2, deviation])
    random, bits = np.random.default_rng([n, runs]), dn.Simulation(10 * n + TRUTHS.index(truth))
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


def of_set_sizes(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
    random, bits, most = np.random.default_rng([n, runs]), dn.Simulation(n), protocol.domain.at_most
    names, liked = np.array(protocol.domain.items.labels), np.array([0.4, 0.3] + [0.03] * (ITEMS - 2))
    for _ in range(runs):
        known = random.permutation(shares(truth, most + 1))
        sizes = random.choice(most + 1, n, p=known)
        # The items with the largest keys of Efraimidis and Spirakis: drawn without replacement.
        order = np.argsort(-(random.random((n, ITEMS)) ** (1 / liked)), axis=1)
        rows = [sorted(names[own[:size]].tolist()) for own, size in zip(order, sizes, strict=True)]
        yield held(protocol.estimate(protocol.tally(protocol.privatize(rows, bits))).sizes.table(), known)


KEY_SHARES, KEY_MEANS = np.array([0.7, 0.4, 0.2, 0.1, 0.05, 0.02]), np.array([0.1, 0.5, 0.9, 0.3, 0.05, 0.6])


def of_keys(part: str) -> Callable[..., Iterator[Held]]:
    def of(protocol: Any, truth: str, n: int, runs: int) -> Iterator[Held]:
        random, bits, size = np.random.default_rng([n, runs]), dn.Simulation(n), KEY_SHARES.size
        names = protocol.domain.items.labels
        for _ in range(runs):
            has = random.random((n, size)) < KEY_SHARES
            said = numbers(truth, n * size, random).reshape(n, size)
            means = np.full(size, moments(truth)[0])
            if truth == "uniform":
                said, means = np.clip(KEY_MEANS + random.uniform(-0.05, 0.05, (n, size)), 0, 1), KEY_MEANS
            rows = [{names[k]: float(own[k]) for k in np.flatnonzero(one)} for one, own in zip(has, said, strict=True)]
            found = protocol.estimate(protocol.tally(protocol.privatize(rows, bits))).by_name[part]
            yield held(found.table(), KEY_SHARES if part == "share" else means)

    return of


def of_texts(make: Callable[[str], ShareProtocol], truth: str, n: int, runs: int) -> Iterator[Held]:
    known, random = shares(truth), np.random.default_rng([n, runs])
    for seed, people in enumerate(random.multinomial(n, known, runs)):
        protocol = make(f"key {seed}")
        yield held(protocol.estimate(protocol.simulate(None, 1, seed, counts=people).tally(0)).table(), known)


EPOCHS, CHANGED = 4, 0.3


def of_streams(protocol: dn.Evolving, truth: str, n: int, runs: int) -> Iterator[Held]:
    """A part of the people give another answer from a random epoch on; nobody in truth "point"."""
    size, random = protocol.domain.size, np.random.default_rng([n, runs])
    first, changed = shares(truth, size), 0.0 if truth == "point" else CHANGED
    known = np.array([first + changed * epoch / (EPOCHS - 1) * (1 / size - first) for epoch in range(EPOCHS)]).T
    known = np.column_stack([known, known.mean(axis=1)]).ravel()
    for seed in range(runs):
        answers, others = random.choice(size, n, p=first), random.integers(size, size=n)
        begin = np.where(random.random(n) < changed, random.integers(1, EPOCHS, n), EPOCHS)
        table = np.where(np.arange(EPOCHS) < begin[:, None], answers[:, None], others[:, None])
        sent = protocol.streams(np.array(protocol.domain.labels)[table], dn.Simulation(seed))
        rows = protocol.estimate(sum((protocol.tally(one) for one in sent), protocol.empty())).table()
        right, width = held(rows, known)
        yield right[np.isfinite(rows.value)], width


@lru_cache(128)
def graph(truth: str, n: int, number: int) -> dn.graphs.Graph:
    random = np.random.default_rng([n, number])
    low, high = np.triu_indices(n, 1)
    chance = {"uniform": min(0.5, 8 / n), "rare": 0.5 / n}.get(truth, 0.0)
    edges = np.full(low.size, chance)
    if truth == "skewed":
        weight = np.arange(1, n + 1) ** -0.8
        edges = np.minimum(1.0, 6 * n * weight[low] * weight[high] / weight.sum() ** 2)
    kept = random.random(low.size) < edges
    return dn.graphs.Graph(np.column_stack([low[kept], high[kept]]), nodes=n)


def of_graphs(figure: str) -> Callable[..., Iterator[Held]]:
    graphs = dn.graphs

    def of(epsilon: int, truth: str, n: int, runs: int) -> Iterator[Held]:
        for seed in range(runs):
            if seed % 20 == 0:
                given = graph(truth, n, seed // 20)
                degrees, top = given.true_degrees, int(given.true_degrees.max(initial=0))
            bits = dn.Simulation(runs * TRUTHS.index(truth) + seed)
            if figure == "edges":
                found, known = graphs.edges(given, epsilon, bits=bits), [given.edge_count]
            elif figure == "edges from lists":
                found, known = graphs.edges(given, epsilon, "lists", bits), [given.edge_count]
            elif figure == "degrees":
                found, known = graphs.degrees(given, epsilon, bits=bits), degrees
            elif figure == "degrees from lists":
                found, known = graphs.degrees(given, epsilon, "lists", bits), degrees
            elif figure == "shares of degrees":
                found = graphs.distribution(given, epsilon, largest=top, bits=bits)
                known = np.bincount(degrees, minlength=top + 1) / n
            elif figure == "2-stars":
                found, known = graphs.stars(given, epsilon, bits=bits), [graphs.true_stars(given, 2)]
            elif figure == "3-stars":
                found, known = graphs.stars(given, epsilon, 3, bits=bits), [graphs.true_stars(given, 3)]
            else:
                rounds = 1 if figure == "triangles, one round" else 3
                found = graphs.triangles(given, epsilon, rounds, bits=bits)
                known = [graphs.true_triangles(given)]
            yield held(found.table(), np.asarray(known, dtype=np.float64))

    return of


LISTS = ("edges from lists", "degrees from lists", "triangles, one round", "triangles, three rounds")
"""Figures of graphs that take long for many nodes."""
FIGURES = ("edges", "degrees", "shares of degrees", "2-stars", "3-stars", *LISTS)
TEXTS = [f"text {place}" for place in range(ANSWERS)]


def bloom(**levels: Any) -> Callable[[str], Any]:
    return lambda key: dn.RAPPOR(TEXTS, **levels, bloom_bits=32, hashes=2, cohorts=8, key=key)


def text_kinds(epsilon: int) -> dict[str, tuple[Any, Callable[..., Iterator[Held]]]]:
    def sketch(kind: Any) -> Callable[[str], Any]:
        return lambda key: kind(TEXTS, epsilon, hashing=dn.Strings(256, 16, key=key))

    return {
        **{kind.__name__: (sketch(kind), of_texts) for kind in (dn.CMS, dn.HCMS, dn.OLHSketch)},
        "RAPPOR": (bloom(epsilon=epsilon), of_texts),
    }


def epoch_kinds(epsilon: int) -> dict[str, tuple[Any, Callable[..., Iterator[Held]]]]:
    stages = {"first": epsilon, "forever": 2 * epsilon}
    return {
        "RAPPOR, two stages": (bloom(**stages), of_texts),
        "LOLOHA": (lambda key: dn.LOLOHA(ANSWERS, **stages), of_texts),
        "DBitFlip": (lambda key: dn.DBitFlip(ANSWERS, **stages, bits=2), of_texts),
        "Evolving": (dn.Evolving(["a", "b", "c"], epsilon, EPOCHS, 1), of_streams),
    }


def set_kinds(epsilon: int) -> dict[str, tuple[Any, Callable[..., Iterator[Held]]]]:
    items, keys = [f"i{i}" for i in range(ITEMS)], [f"k{i}" for i in range(KEY_SHARES.size)]
    keyed = dn.KeyValue(keys, NUMBERS, epsilon, at_most=KEY_SHARES.size)
    return {
        "sizes of sets": (dn.ItemSets(dn.Sets(items, 3), epsilon), of_set_sizes),
        "shares of keys": (keyed, of_keys("share")),
        "means of keys": (keyed, of_keys("mean")),
    }


def graph_kinds(epsilon: int) -> dict[str, tuple[Any, Callable[..., Iterator[Held]]]]:
    return {f"graph: {figure}": (epsilon, of_graphs(figure)) for figure in FIGURES}


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


QUICK = ("GRR", "OUE", "HadamardResponse", "OneBitMean", "Window", "MeanTable")
"""Kinds that are simulated quickly: more surveys."""


def covered(of_epsilon: Callable[[int], dict[str, tuple[Any, Any]]], size: Size) -> dict[str, str | int | float]:
    """How often the intervals of all kinds hold, and how wide they are."""
    facts: dict[str, str | int | float] = {}
    for epsilon in EPSILONS:
        for name, (protocol, of) in of_epsilon(epsilon).items():
            for n in PEOPLE if not size.quick else PEOPLE[:2]:
                runs = size(1000 if name in QUICK else 400 if n < 1000 else 200, 20)
                said, wide = [], ""
                for truth in TRUTHS:
                    large = n >= 1000 and name.removeprefix("graph: ") in LISTS
                    each = [] if large else list(of(protocol, truth, n, runs))
                    if len(each) < 20:
                        said.append(f"{truth} -")
                        continue
                    said.append(f"{truth} {np.mean([one.mean() for one, _ in each if one.size]):.3f}")
                    if truth == "uniform" and of is not of_cells:
                        ratios = np.concatenate([width for _, width in each])
                        wide = f"; width {np.median(ratios[np.isfinite(ratios)]):.2f}"
                facts[f"{name}, epsilon {epsilon}, n {n:,}"] = ", ".join(said) + wide
    return facts


@benchmark("coverage", "how often 95 % intervals hold, by kind, reports and truth", group=GROUP)
def coverage(size: Size) -> Case:
    window = dn.Window(NUMBERS, 4)
    mean = window.estimate(window.tally(window.privatize(numbers("skewed", 3000, np.random.default_rng(1)))))
    return Case({"interval of a mean": work(mean.interval, 1, "interval")}, (), covered(kinds, size))


@benchmark("coverage-text", "how often 95 % intervals of texts hold", group=TEXT_GROUP)
def coverage_text(size: Size) -> Case:
    protocol = text_kinds(1)["CMS"][0]("key")
    found = protocol.estimate(protocol.tally(protocol.privatize(TEXTS * 100)))
    return Case({"intervals of CMS": work(found.interval, 1, "call")}, (), covered(text_kinds, size))


@benchmark("coverage-epochs", "how often 95 % intervals of kinds for several epochs hold", group=EPOCH_GROUP)
def coverage_epochs(size: Size) -> Case:
    protocol = dn.LOLOHA(ANSWERS, first=1, forever=2)
    found = protocol.estimate(protocol.tally(protocol.privatize([0, 1] * 500)))
    return Case({"intervals of LOLOHA": work(found.interval, 1, "call")}, (), covered(epoch_kinds, size))


@benchmark("coverage-sets", "how often 95 % intervals of sizes of sets and of keys hold", group=SET_GROUP)
def coverage_sets(size: Size) -> Case:
    protocol, _ = set_kinds(1)["means of keys"]
    found = protocol.estimate(protocol.tally(protocol.privatize([{"k0": 0.5}] * 1000))).by_name["mean"]
    return Case({"intervals of 6 means": work(found.interval, 1, "call")}, (), covered(set_kinds, size))


@benchmark("coverage-graphs", "how often 95 % intervals of figures of graphs hold", group=GRAPH_GROUP)
def coverage_graphs(size: Size) -> Case:
    found = dn.graphs.edges(graph("uniform", 300, 0), 1, "lists")
    return Case({"interval of edges": work(found.interval, 1, "call")}, (), covered(graph_kinds, size))


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
