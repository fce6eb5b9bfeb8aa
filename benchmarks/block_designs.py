"""Block designs beside subset selection, whose law they have, and beside linear OLH, whose place they take.

Loss       variance of an answer that nobody gave, over that of the best subset selection, by formula: of the usual
           design, or of subset selection itself where its report has at most 8 bytes. The numbers of answers go from 2
           to 2^20, and epsilon from 0.1 to 6
Simulated  mean square error over that of the formula of the best subset selection, with Zipf's shares; its own error is
           about sqrt(2 / answers / runs)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from benchmarks.registry import Case, Size, at_least, at_most, benchmark, cost, faster, work
from deniable.protocols.frequency.block_design import best_setting
from deniable.protocols.frequency.subset_selection import Subsets, best_size, spreads

GROUP = "block-designs"
SHORT = 8
"""The longest report of subset selection that is compared, in bytes."""
EPSILONS = np.round(np.arange(0.1, 6.001, 0.05), 2)
POINTS = [
    (1024, 0.3),
    (1024, 0.55),
    (1024, 1),
    (1024, 3),
    (300, 3),
    (114, 2.5),
    (5000, 4),
    (1 << 16, 2),
    (1 << 18, 0.5),
    (1 << 18, 5),
]


def least(answers: int, epsilon: float) -> tuple[float, int]:
    """The smallest variance of subset selection, and the bytes of its report."""
    members = best_size(answers, epsilon)
    return float(spreads(answers, epsilon, np.array([float(members)]))[0][0]), Subsets(answers, members).report_bytes


def sizes(size: Size) -> list[int]:
    """Numbers of answers: all small ones, those next to powers of two, and others evenly spread by their logarithm."""
    near = [2**power + step for power in range(6, 21) for step in (-1, 0, 1) if 2**power + step <= 1 << 20]
    spread = np.unique(np.geomspace(2, 1 << 20, size(240, 20)).astype(np.int64)).tolist()
    return sorted({*range(2, size(200, 10)), *near, *spread, 114, 887, 1328, 31_398})


@benchmark("block-loss", "loss of block designs against the best subset selection", group=GROUP, rounds=1)
def losses(size: Size) -> Case:
    worst, longest, pairs = (0.0, 0, 0.0), 0, 0
    for answers in sizes(size):
        for epsilon in EPSILONS.tolist():
            best, width = least(answers, epsilon)
            design = best_setting(answers, epsilon)
            loss, used = (1.0, width) if width <= SHORT else (design.variance / best, design.report_bytes)
            worst, longest, pairs = max(worst, (loss, answers, epsilon)), max(longest, used), pairs + 1
    facts = {
        "pairs of answers and epsilon": pairs,
        "largest loss": f"{worst[0]:.4f} at {worst[1]:,} answers and epsilon {worst[2]:g}",
        "longest report, bytes": longest,
    }
    return Case({"one setting": work(lambda: best_setting(1024, 1.0))}, facts=facts)


@benchmark(
    "block-simulated", "simulated error of block designs over that of the best subset selection", group=GROUP, rounds=1
)
def simulated(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    for answers, epsilon in POINTS:
        protocol = dn.BlockDesign(answers, epsilon)
        people, runs = size(100_000, 5_000), max(1, size(1 << 14, 1 << 10) // answers)
        shares = 1 / np.arange(1, answers + 1)
        truth = np.random.default_rng(1).choice(answers, people, p=shares / shares.sum())
        errors = [error(protocol, truth, seed) for seed in range(runs)]
        ratio = float(np.mean(errors)) / least(answers, epsilon)[0]
        facts[f"{answers:,} answers, epsilon {epsilon:g}, {protocol.report_bytes} bytes"] = round(ratio, 3)
    return Case({"one report": work(lambda: protocol.report_encoded(0))}, facts=facts)


def error(protocol: dn.BlockDesign, truth: NDArray[np.int64], seed: int) -> float:
    """The mean square error of the shares, times the number of people, without what frequent answers add."""
    found = protocol.estimate(protocol.tally(protocol.privatize(truth, dn.Simulation(seed)))).counts
    counts = np.bincount(truth, minlength=protocol.domain.size)
    n = truth.size
    exact = np.asarray(protocol.variance(n, counts / n, population=False)) / protocol.variance(n, population=False)
    return float(np.mean((found - counts) ** 2 / exact)) / n


@benchmark("block-cost", "a block design beside OLH, 1,024 answers, epsilon 1", group=GROUP)
def costs(size: Size) -> Case:
    n = size(1 << 21, 1 << 16)
    answers = np.random.default_rng(1).integers(0, 1024, n)
    ours, olh = dn.BlockDesign(1024, 1), dn.OLH(1024, 1)
    sent, other = ours.privatize(answers).array, olh.privatize(answers).array
    return Case(
        tasks={
            "tally": work(lambda: ours.tally(sent), n, "report"),
            "tally of OLH": work(lambda: olh.tally(other), n, "report"),
            "column": work(lambda: ours.privatize(answers), n, "report"),
            "column of OLH": work(lambda: olh.privatize(answers), n, "report"),
            "single": work(lambda: [ours.report_encoded(5) for _ in range(10_000)], 10_000, "report"),
            "single of OLH": work(lambda: [olh.report_encoded(5) for _ in range(10_000)], 10_000, "report"),
        },
        ratios=[
            faster("tally", than="tally of OLH", goal=at_least(1)),
            cost("column", of="column of OLH", goal=at_most(2)),
            cost("single", of="single of OLH", goal=at_most(2)),
        ],
        facts={"bytes": ours.report_bytes, "bytes of OLH": olh.report_bytes},
    )
