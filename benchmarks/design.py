"""Optimal mechanisms: what they cost as the alphabet grows, and against another package's linear program.

Against qif  the same mechanism, ours with a proof and made exact. Prior: uniform, whose answer is randomized response,
             and Zipf, whose answer uses few outputs: both packages find that one sooner, and the ratio is smaller. The
             unit is an input, because qif is asked for a number of inputs
Means        the largest variance of a mean on [-1, 1] over the hybrid mechanism's, and what a design and a report cost.
             A mixture of windows draws one of several windows with public coins: the best one, by a linear program.
             Dominated mechanisms stand here only, by their formulas
Cost         designing an extremal mechanism, working out its certificate, and verifying that without the solver, for
             two random laws on k symbols
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import deniable as dn
from benchmarks.peers.environments import task
from benchmarks.peers.worker import shares
from benchmarks.registry import Case, Ratio, Size, Task, at_least, at_most, benchmark, cost, faster, seconds, work
from deniable import design

EPSILON = 1
GOAL = at_least(10, full_only=True)
GROUP = "design"

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
STAGES = ("design", "certify", "verify")
LIMITS = {"design, k = 1000": 0.1, "certify, k = 100": 1.0, "design, k = 10000": 10.0}
"""Seconds that the tasks may take."""


@benchmark(
    "bayes-qif", "Bayes-optimal mechanism against qif, 50 inputs, 0/1 loss, epsilon = 1", peers=("qif",), group=GROUP
)
def bayes_qif(size: Size) -> Case:
    inputs = size(50, 20)
    priors = {"uniform": [1 / inputs] * inputs, "zipf": list(shares(inputs))}
    tasks, facts = {}, {}
    for name, prior in priors.items():
        found = design.bayes(prior, "zero-one", epsilon=EPSILON)
        tasks[f"deniable, {name}"] = _ours(prior)
        tasks[f"qif, {name}"] = task("qif", name, inputs, "input")
        facts[f"expected loss, {name}"] = f"{found.value:.9f} (relative gap {found.relative_gap:.1e})"
    # Few inputs say little: qif's time grows steeply with their number.
    goals = {"uniform": GOAL, "zipf": None}
    ratios = [faster(f"deniable, {name}", than=f"qif, {name}", goal=goal) for name, goal in goals.items()]
    return Case(tasks, ratios, facts)


def _ours(prior: list[float]) -> Task:
    return work(lambda: design.bayes(prior, "zero-one", epsilon=EPSILON), len(prior), "input")


def task_name(stage: str, k: int) -> str:
    return f"{stage}, k = {k}"


@benchmark("extremal-cost", "extremal mechanism for KL at epsilon = 2, against the number k of symbols", group=GROUP)
def extremal_cost(size: Size) -> Case:
    tasks: dict[str, Task] = {}
    facts: dict[str, str | int | float] = {}
    for k in SIZES[: size(len(SIZES), 4)]:
        rng = np.random.default_rng(k)
        laws = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
        found = design.extremal(*laws, epsilon=2)
        facts[f"k = {k}"] = f"{found.outputs} outputs, relative gap {found.relative_gap:.0e}"
        tasks |= {task_name(stage, k): run for stage, run in zip(STAGES, _stages(laws, found), strict=True)}
    ratios: list[Ratio] = [seconds(name, at_most(limit)) for name, limit in LIMITS.items() if name in tasks]
    return Case(tasks, ratios, facts)


def _stages(laws: tuple[Any, Any], found: design.Design) -> tuple[Task, Task, Task]:
    return (
        work(lambda: design.extremal(*laws, epsilon=2), 1, "mechanism"),
        work(found.certify, 1, "certificate"),
        work(found.certificate.verify, 1, "certificate"),
    )


# -- means -----------------------------------------------------------------------------------------------------------

UNIT = dn.Interval(-1, 1)


def hybrid(epsilon: float) -> float:
    """The largest variance of the hybrid mechanism (Wang et al. 2019), which does not depend on the number."""
    odds, root = math.exp(epsilon), math.exp(epsilon / 2)
    if epsilon <= 0.609352:
        return ((odds + 1) / (odds - 1)) ** 2
    return (root + 3) / (3 * root * (root - 1)) + (odds + 1) ** 2 / (root * (odds - 1) ** 2)


def mixture(epsilon: float, most_positions: int = 30, most_width: int = 6) -> float:
    """The largest variance of the best public mixture of windows."""
    from scipy.optimize import linprog

    numbers = np.linspace(-1, 1, 401)
    windows = [
        dn.Window(UNIT, epsilon, positions, width)
        for positions in range(2, most_positions + 1)
        for width in range(1, most_width + 1)
    ]
    rows = np.array([[window.worth().variances([x])[0] for x in numbers[200:]] for window in windows]).T
    limits = np.hstack([rows, -np.ones((len(rows), 1))])
    sums = np.append(np.ones(len(windows)), 0.0)[None, :]
    found = linprog(np.append(np.zeros(len(windows)), 1.0), limits, np.zeros(len(rows)), sums, [1.0], bounds=(0, None))
    return float(found.fun)


@benchmark("mean-design", "designed mean against the hybrid mechanism and others, largest variance", group=GROUP)
def mean_design(size: Size) -> Case:
    facts: dict[str, str | int | float] = {}
    for epsilon in (1, 2, 3, 4, 5)[: size(5, 1)]:
        found = design.mean(epsilon, positions=size(17, 9))
        rivals = {
            "window": dn.Window(UNIT, epsilon).worst_variance(1),
            "mixture of windows": mixture(epsilon, size(30, 4), size(6, 2)),
            "piecewise": dn.Window.piecewise(UNIT, epsilon).worst_variance(1),
            "one bit": dn.OneBitMean(UNIT, epsilon).worst_variance(1),
            "Laplace": 8 / epsilon**2,
        }
        known = hybrid(epsilon)
        others = ", ".join(f"{name} {worst / known:.3f}" for name, worst in rivals.items())
        ours = f"{found.value:.4g}, {found.value / known:.3f} of the hybrid's (relative gap {found.relative_gap:.0e})"
        facts[f"epsilon {epsilon}"] = f"{ours}; {others}"
    people = size(1_000_000, 20_000)
    numbers = np.random.default_rng(1).uniform(-1, 1, people)
    labels = np.random.default_rng(2).integers(0, 4, people)
    table, grr = dn.MeanTable(design.mean(3, positions=9), UNIT), dn.GRR(4, 3)
    tasks = {
        "design, 9 positions": work(lambda: design.mean(3, positions=9, progress=lambda *_: None), 1, "mechanism"),
        "MeanTable": work(lambda: table.tally(table.privatize(numbers)), people, "report"),
        "GRR": work(lambda: grr.tally(grr.privatize(labels)), people, "report"),
    }
    return Case(tasks, [seconds("design, 9 positions", at_most(1)), cost("MeanTable", "GRR", at_most(3))], facts)
