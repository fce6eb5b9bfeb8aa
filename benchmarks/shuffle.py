"""Shuffle amplification: how long a proven bound takes, and how near it is to what an attack reaches."""

from __future__ import annotations

import deniable as dn
from benchmarks.registry import Case, Size, at_most, benchmark, seconds, work
from deniable.privacy import shuffled


@benchmark("shuffle-bounds", "central epsilon of shuffled reports, delta 1e-8")
def bounds(size: Size) -> Case:
    n = size(1_000_000, 10_000)
    protocols = {
        "GRR, 10 answers": dn.GRR(10, 2),
        "OUE, 100 answers": dn.OUE(100, 2),
        "OLH, 100 answers": dn.OLH(100, 2),
    }
    crowds = {name: shuffled(protocol, n, 1e-8) for name, protocol in protocols.items()}
    facts: dict[str, str | int | float] = {"people": n}
    for name, crowd in crowds.items():
        facts[f"{name}: blanket over clones"] = round(crowd.epsilon / crowd.clones, 4)
        facts[f"{name}: attack over blanket"] = round(crowd.lower / crowd.epsilon, 4)
    tasks = {name: work(lambda p=protocol: shuffled(p, n, 1e-8).epsilon) for name, protocol in protocols.items()}  # type: ignore[misc]
    tasks["any protocol of epsilon 4"] = work(lambda: shuffled(4, n, 1e-8).epsilon)
    return Case(tasks=tasks, ratios=[seconds(name, at_most(1)) for name in tasks], facts=facts)
