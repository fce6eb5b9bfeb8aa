"""Optimal mechanisms: what they cost as the alphabet grows, and against another package's linear program.

Against qif  the same mechanism, ours with a proof and made exact. Prior: uniform, whose answer is randomized response,
             and Zipf, whose answer uses few outputs: both packages find that one sooner, and the ratio is smaller. The
             unit is an input, because qif is asked for a number of inputs
Cost         designing an extremal mechanism, working out its certificate, and verifying that without the solver, for
             two random laws on k symbols
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.environments import task
from benchmarks.peers.worker import shares
from benchmarks.registry import Case, Ratio, Size, Task, at_least, at_most, benchmark, faster, seconds, work
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
