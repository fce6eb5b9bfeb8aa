"""A record of the solver runs behind a design, and a way to watch them.

Step       one run of a solver: its input, how it ended, and how long it took
Watch      the steps so far; passes on progress messages, with the completed share if it is known
Programs   a longest path is recorded as the equivalent linear program: one row per node, one column per arc, two
           entries per column
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[str, float | None], object]
"""Called with a description of the current work and, if known, the completed share."""

_METHODS = {"highs": "HiGHS", "highs-ds": "HiGHS dual simplex", "highs-ipm": "HiGHS interior point"}
_ENDINGS = {0: "optimal", 1: "out of time or iterations", 2: "infeasible", 3: "unbounded", 4: "numerical difficulties"}


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a solver.

    Args:
        solver: Name of the solver.
        status: How it ended.
        iterations: Number of iterations.
        seconds: Duration.
        rows: Rows of the problem.
        columns: Columns of the problem.
        nonzeros: Entries of the problem that are not zero.
        value: Value of the solution in the units of the design; None if there is no solution.
    """

    solver: str
    status: str
    iterations: int
    seconds: float
    rows: int
    columns: int
    nonzeros: int
    value: float | None = None

    def __str__(self) -> str:
        size = f"{self.rows:,} rows, {self.columns:,} columns, {self.nonzeros:,} nonzeros"
        runs = f"{self.iterations:,} iteration{'' if self.iterations == 1 else 's'}"
        return f"{self.solver}: {self.status} after {runs} in {self.seconds:.3g} s ({size})"

    def spec(self) -> dict[str, Any]:
        return asdict(self)


class Watch:
    """Collects steps, and passes messages on to `progress` if it is given."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.steps: list[Step] = []
        self._progress = progress

    def say(self, what: str, share: float | None = None) -> None:
        if self._progress is not None:
            self._progress(what, share)

    def add(self, step: Step) -> None:
        self.steps.append(step)

    def worth(self, value: float) -> None:
        """Record the value of the last step's solution."""
        self.steps[-1] = replace(self.steps[-1], value=value)


def summary(steps: Sequence[Step]) -> str:
    """All steps in one line: solvers, iterations, seconds."""
    if not steps:
        return "no solver was needed"
    solvers = ", ".join(dict.fromkeys(step.solver for step in steps))
    iterations, seconds = sum(step.iterations for step in steps), sum(step.seconds for step in steps)
    last = steps[-1]
    count = f"{len(steps)} run{'' if len(steps) == 1 else 's'}, " if len(steps) > 1 else ""
    return (
        f"{solvers}: {count}{iterations:,} iteration{'' if iterations == 1 else 's'}, {seconds:.3g} s, {last.status} "
        f"({last.rows:,} x {last.columns:,}, {last.nonzeros:,} nonzeros)"
    )


def highs(
    cost: NDArray[np.float64],
    limits: tuple[Any, Any] | None,
    sums: tuple[Any, Any] | None,
    bounds: Any,
    method: str,
    options: dict[str, Any],
    watch: Watch,
    what: str,
) -> Any:
    """min cost x  with  limits[0] x <= limits[1],  sums[0] x = sums[1], by SciPy; the step is added to `watch`."""
    from scipy.optimize import linprog

    tables = [table for table, _ in (limits or (None, None), sums or (None, None)) if table is not None]
    rows, nonzeros = sum(int(table.shape[0]) for table in tables), sum(map(_nonzeros, tables))
    watch.say(f"{what}: {rows:,} x {cost.size:,} program, {nonzeros:,} nonzeros")
    began = time.perf_counter()
    left, right = limits or (None, None)
    same, target = sums or (None, None)
    answer = linprog(cost, A_ub=left, b_ub=right, A_eq=same, b_eq=target, bounds=bounds, method=method, options=options)
    spent = time.perf_counter() - began
    status = _ENDINGS.get(int(answer.status), "unknown")
    iterations = int(getattr(answer, "nit", 0) or 0)
    watch.add(Step(_METHODS[method], status, iterations, spent, rows, int(cost.size), nonzeros))
    return answer


def _nonzeros(table: Any) -> int:
    return int(table.nnz) if hasattr(table, "nnz") else int(np.count_nonzero(table))
