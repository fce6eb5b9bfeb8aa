"""Sets of items and numbers by key: what is found of real baskets and of keys, against rivals, and what it costs.

Baskets    88,162 supermarket baskets (Brijs et al. 1999), one per line, item numbers; the file is named by the
           environment variable DENIABLE_RETAIL and is not a part of the project: without it the benchmark is about
           made-up baskets
Found      of the 32 most common items (or pairs) those among the 32 largest estimates: F1, and NCR, in which the most
           common one counts 32, the next 31, ...
Rivals     items: three phases (Wang, Li and Jha 2018): 40 percent of the people for 64 candidates, 10 for the length of
           sets, 50 for padding and sampling at its 90th percentile; local hashing, whose noise is drawn from its law.
           Pairs: products of the estimated shares of items. Keys: PCKV-UE and PCKV-GRR (Gu et al. 2020)
"""

from __future__ import annotations

import gzip
import math
import os
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, at_most, benchmark, seconds, work
from deniable.domains import SetColumn
from deniable.protocols import CollisionSets, ItemSets, KeyValue
from deniable.protocols.sets.key_value import _key_variances

Floats = NDArray[np.float64]

GROUP = "sets"
TOP = 32
LIMITS = {4: 8, 2: 8, 1: 4}
"""How many items of a basket are reported, by epsilon."""
PAIRS = {4: (8, [19, 1]), 2: (12, [19, 1]), 1: (6, [9, 1])}
"""How many items of a basket are reported where pairs are looked for, and how many people report items and pairs."""
KEYS, EACH = 100, 8
SEEDS = 1000
"""The first one: nothing was ever tuned on seeds from here on."""


def baskets(size: int) -> SetColumn:
    """The real baskets, or made-up ones whose items follow Zipf's law."""
    named = os.environ.get("DENIABLE_RETAIL")
    if named and Path(named).is_file():
        with gzip.open(named, "rt") as file:
            return SetColumn.of([sorted(set(map(int, line.split()))) for line in file][:size])
    random = np.random.default_rng(1)
    law = 1 / np.arange(1, 2001) ** 1.1
    return SetColumn.of(
        [np.unique(random.choice(2000, random.integers(1, 16), p=law / law.sum())).tolist() for _ in range(size // 4)]
    )


def found(estimated: Floats, truth: Floats) -> tuple[float, float]:
    """F1 and NCR of the largest estimates."""
    best = np.argsort(-truth, kind="stable")[:TOP].tolist()
    worth = {place: TOP - rank for rank, place in enumerate(best)}
    chosen = np.argsort(-estimated, kind="stable")[:TOP].tolist()
    hits = [worth.get(place, 0) for place in chosen]
    return sum(hit > 0 for hit in hits) / TOP, sum(hits) / (TOP * (TOP + 1) / 2)


def items(people: SetColumn, epsilon: int, seed: int) -> tuple[float, float, float]:
    """F1, NCR, and how many of the 32 chosen have their share in their interval."""
    count = int(people.items.max()) + 1
    protocol = CollisionSets(dn.Sets(count, LIMITS[epsilon]), epsilon)
    result = protocol.estimate(protocol.tally(protocol.draw_many(people, dn.Simulation(seed))))
    top = result.top(TOP)
    kept = np.minimum(1.0, LIMITS[epsilon] / np.maximum(people.sizes, 1))
    share = np.bincount(people.items, np.repeat(kept, people.sizes), minlength=count) / len(people)
    ends, own = top.interval(population=False), share[[int(label) for label in top.labels]]
    truth = np.bincount(people.items, minlength=count).astype(float)
    return *found(result.counts, truth), float(np.mean((ends[:, 0] <= own) & (own <= ends[:, 1])))


def three_phases(people: SetColumn, epsilon: int, seed: int) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    n, count, e = len(people), int(people.items.max()) + 1, math.exp(epsilon)
    phases = random.permutation(n)
    first, second, third = np.split(phases, [int(0.4 * n), int(0.5 * n)])
    noise = 2 * math.sqrt(e) / (e - 1)

    def sampled(rows: NDArray[np.int64], inside: NDArray[np.bool_], length: int) -> Floats:
        """Padding and sampling: one element of each set among the candidates, counted with the noise of its law."""
        some = people.take(rows)
        kept = inside[some.items]
        sizes = np.bincount(some.rows[kept], minlength=len(some))
        picked = random.integers(0, np.maximum(sizes, length))
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        has = picked < sizes
        chosen = some.items[kept][(starts + picked)[has]]
        counts = np.bincount(chosen, minlength=count).astype(float)
        return length * (counts + noise * math.sqrt(len(rows)) * random.normal(size=count))

    candidates = np.zeros(count, dtype=np.bool_)
    candidates[np.argsort(-sampled(first, np.ones(count, dtype=np.bool_), 1))[: 2 * TOP]] = True
    some = people.take(second)
    sizes = np.bincount(some.rows[candidates[some.items]], minlength=len(some)).clip(max=63)
    lengths = np.bincount(sizes, minlength=64) + noise * math.sqrt(len(second)) * random.normal(size=64)
    shares = np.cumsum(np.clip(lengths, 0, None))
    length = max(1, int(np.searchsorted(shares, 0.9 * shares[-1])))
    estimated = np.where(candidates, sampled(third, candidates, length), -np.inf)
    return found(estimated, np.bincount(people.items, minlength=count).astype(float))


def pairs(people: SetColumn, epsilon: int, seed: int, truth: dict[tuple[int, int], int]) -> Floats:
    """F1 and NCR of pairs by the best guess and unbiased, then of products of shares from all of the people."""
    count, (most, weights) = int(people.items.max()) + 1, PAIRS[epsilon]
    protocol = ItemSets(dn.Sets(count, most), epsilon, largest=2, weights=weights)
    result = protocol.estimate(protocol.tally(protocol.draw_many(people, dn.Simulation(seed))))
    scored = result.pairs
    alone = CollisionSets(dn.Sets(count, most), epsilon)
    rival = alone.estimate(alone.tally(alone.draw_many(people, dn.Simulation(seed)))).counts
    common = np.argsort(-rival)[:64].tolist()
    rivals = {pair: rival[pair[0]] * rival[pair[1]] for pair in combinations(sorted(common), 2)}
    each = [dict(zip(scored.sets, one.tolist(), strict=True)) for one in (scored.blended, scored.frequencies)]
    return np.array([figure for one in (*each, rivals) for figure in _found_pairs(one, truth)])


def _found_pairs(estimated: dict[tuple[int, int], float], truth: dict[tuple[int, int], int]) -> tuple[float, float]:
    named = list({*estimated, *truth})
    scores, counts = [estimated.get(one, -math.inf) for one in named], [float(truth.get(one, 0)) for one in named]
    return found(np.array(scores), np.array(counts))


def common_pairs(people: SetColumn) -> dict[tuple[int, int], int]:
    """How many have both, for the pairs of the 200 most common items."""
    often = np.sort(np.argsort(-np.bincount(people.items))[:200])
    has = np.zeros((len(people), often.size), dtype=np.float32)
    at = np.searchsorted(often, people.items).clip(max=often.size - 1)
    kept = often[at] == people.items
    has[people.rows[kept], at[kept]] = 1
    both = has.T @ has
    return {
        (int(often[i]), int(often[j])): int(both[i, j]) for i, j in combinations(range(often.size), 2) if both[i, j] > 0
    }


def keyed(people: int, keys: int, each: int, seed: int) -> tuple[SetColumn, Floats, Floats]:
    """People with so many different keys each, the first more common; shares of keys and means on [-1, 1]."""
    random = np.random.default_rng(seed)
    law = 1 / np.sqrt(np.arange(1, keys + 1))
    scores = -np.log(random.random((people, keys))) / law
    chosen = np.sort(np.argpartition(scores, each, axis=1)[:, :each], axis=1)
    means = np.linspace(-0.8, 0.8, keys)
    numbers = np.clip(means[chosen] + 0.4 * random.normal(size=chosen.shape), -1, 1)
    column = SetColumn(np.arange(0, people * each + 1, each), chosen.reshape(-1), numbers.reshape(-1))
    counts = np.bincount(column.items, minlength=keys)
    return column, counts / people, np.bincount(column.items, column.numbers, minlength=keys) / counts


def key_errors(epsilon: int, seed: int, people: int = 100_000, keys: int = KEYS, each: int = EACH) -> Floats:
    """Mean squared errors of shares and means: ours, PCKV-UE, PCKV-GRR."""
    column, shares, means = keyed(people, keys, each, seed)
    protocol = KeyValue(keys, dn.Interval(-1, 1), epsilon, at_most=each)
    result = protocol.estimate(protocol.tally(protocol.draw_many(column, dn.Simulation(seed))))
    ours = (result["share"].frequencies, result["mean"].value)
    rivals = [_pckv(column, epsilon, keys, each, seed, kind) for kind in ("UE", "GRR")]
    found = [(np.mean((f - shares) ** 2), np.mean((m - means) ** 2)) for f, m in (ours, *rivals)]
    return np.array(found).reshape(-1)


def _pckv(column: SetColumn, epsilon: int, keys: int, each: int, seed: int, kind: str) -> tuple[Floats, Floats]:
    """One key of each person, drawn; its number rounded to a sign; counts drawn from their law."""
    random = np.random.default_rng(1000 + seed)
    assert column.numbers is not None
    n, e = len(column), math.exp(epsilon)
    at = column.starts[:-1] + random.integers(0, each, n)
    up = random.random(n) < (column.numbers[at] + 1) / 2
    plus = np.bincount(column.items[at][up], minlength=keys)
    minus = np.bincount(column.items[at][~up], minlength=keys)
    if kind == "UE":
        a, b, p = 0.5, 2 / (e + 3), e / (e + 1)
    else:
        inner, domain = each * (e - 1) + 1, keys + each
        b = 1 / ((inner + 1) / 2 + domain - 1)
        a, p = b * (inner + 1) / 2, inner / (inner + 1)
    rest = n - plus - minus

    def drawn(people: NDArray[np.int64], first: float, second: float) -> NDArray[np.int64]:
        law = [first, second, 1 - first - second]
        return np.array([random.multinomial(one, law)[:2] for one in people])

    ones = drawn(plus, a * p, a * (1 - p)) + drawn(minus, a * (1 - p), a * p) + drawn(rest, b / 2, b / 2)
    shares = each * (ones.sum(axis=1) / n - b) / (a - b)
    x, y = a * p - b / 2, a * (1 - p) - b / 2
    n1, n2 = (ones - n * b / 2).T
    up_, down = (x * n1 - y * n2) / (x * x - y * y), (x * n2 - y * n1) / (x * x - y * y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return shares, np.clip(np.nan_to_num((up_ - down) / (up_ + down)), -1, 1)


def pckv_grr_variances(keys: int, most: int, epsilon: float, share: float) -> tuple[float, float]:
    """The noise of one report of PCKV-GRR about the share of a key and the sum of its numbers.

    A key at one end is one of 2 (keys + most) symbols; that of a person's own keys is e / W each, another 1 / W.
    """
    whole = most * math.exp(epsilon) + 2 * keys + most
    p, q = math.exp(epsilon) / whole, 1 / whole
    alone = share * (p * (1 - p) + q * (1 - q)) + (1 - share) * 2 * q * (1 - q)
    between = -2 * (share * p * q + (1 - share) * q * q)
    return (alone + between) / (p - q) ** 2, (alone - between) / (p - q) ** 2


@benchmark("items", "the 32 most common items of baskets in one round, against three phases", group=GROUP, rounds=3)
def baskets_of_items(size: Size) -> Case:
    people, runs = baskets(size(88_162, 2_000)), size(20, 1)
    facts = {}
    for epsilon in LIMITS:
        ours = np.mean([items(people, epsilon, seed) for seed in range(SEEDS, SEEDS + runs)], axis=0)
        rival = np.mean([three_phases(people, epsilon, seed) for seed in range(SEEDS, SEEDS + runs)], axis=0)
        facts[f"epsilon {epsilon}"] = (
            f"F1 {ours[0]:.2f}, NCR {ours[1]:.2f}, intervals of the chosen cover {ours[2]:.1%}; "
            f"three phases F1 {rival[0]:.2f}, NCR {rival[1]:.2f}"
        )
    protocol = CollisionSets(dn.Sets(int(people.items.max()) + 1, 8), 4)
    reports = protocol.draw_many(people, dn.Simulation(1))
    tally = protocol.tally(reports)
    tasks = {
        "privatize": work(lambda: protocol.draw_many(people, dn.Simulation(2)), len(people), "report"),
        "tally": work(lambda: protocol.tally(reports), len(people), "report"),
        "estimate": work(lambda: protocol.estimate(tally), 1, "estimate"),
    }
    return Case(tasks, [seconds("estimate", at_most(5.0, full_only=True))], facts)


@benchmark("pairs", "the 32 most common pairs of baskets in one round, against products of shares", group=GROUP)
def baskets_of_pairs(size: Size) -> Case:
    people, runs = baskets(size(88_162, 2_000)), size(20, 1)
    truth, facts = common_pairs(people), {}
    for epsilon in PAIRS:
        got = np.mean([pairs(people, epsilon, seed, truth) for seed in range(SEEDS, SEEDS + runs)], axis=0)
        facts[f"epsilon {epsilon}"] = (
            f"F1 {got[0]:.2f}, NCR {got[1]:.2f}; unbiased F1 {got[2]:.2f}, NCR {got[3]:.2f}; "
            f"products F1 {got[4]:.2f}, NCR {got[5]:.2f}"
        )
    return Case({}, [], facts)


@benchmark("key-value", "shares and means of 100 keys, 8 each, 100,000 people, against PCKV", group=GROUP)
def keys_and_means(size: Size) -> Case:
    facts = {}
    for epsilon in (1, 2, 4):
        runs = [key_errors(epsilon, seed, size(100_000, 2_000)) for seed in range(SEEDS, SEEDS + size(20, 1))]
        share, mean, *rivals = np.mean(runs, axis=0)
        told = [f"{name} {rivals[2 * i] / share:.1f}x and {rivals[2 * i + 1] / mean:.1f}x" for i, name in _RIVALS]
        law = KeyValue(KEYS, dn.Interval(-1, 1), epsilon, at_most=EACH).inner
        formula = [
            rival / own
            for own, rival in zip(
                _key_variances(law, EACH / KEYS), pckv_grr_variances(KEYS, EACH, epsilon, EACH / KEYS), strict=True
            )
        ]
        facts[f"epsilon {epsilon}"] = (
            f"mean squared error of shares {share:.2e}, of means {mean:.3f}; {', '.join(told)} that; by the formulas "
            f"of noise PCKV-GRR {formula[0]:.3f}x and {formula[1]:.3f}x"
        )
    return Case({}, [], facts)


_RIVALS = ((0, "PCKV-UE"), (1, "PCKV-GRR"))
