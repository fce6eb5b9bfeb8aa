"""Optimal mechanisms against another package's linear program: the same mechanism, ours with a proof and made exact.

Prior    uniform, whose answer is randomized response, and Zipf, whose answer uses few outputs: both packages find that
         one sooner, and the ratio is smaller
Unit     an input, because qif is asked for a number of inputs
"""

from __future__ import annotations

from benchmarks.peers.environments import task
from benchmarks.peers.worker import shares
from benchmarks.registry import Case, Size, Task, at_least, benchmark, faster, work
from deniable import design

EPSILON = 1
GOAL = at_least(10)


@benchmark("bayes-qif", "Bayes-optimal mechanism against qif, 50 inputs, 0/1 loss, epsilon = 1", peers=("qif",))
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
    goals = {"uniform": None if size.quick else GOAL, "zipf": None}
    ratios = [faster(f"deniable, {name}", than=f"qif, {name}", goal=goal) for name, goal in goals.items()]
    return Case(tasks, ratios, facts)


def _ours(prior: list[float]) -> Task:
    return work(lambda: design.bayes(prior, "zero-one", epsilon=EPSILON), len(prior), "input")
