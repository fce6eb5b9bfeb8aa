"""Timing of prepared tasks, and the figures that follow.

Rounds     every task of a benchmark once, then all again: a busy moment of the machine hits all of them
Figure     the minimum over the rounds, since disturbances only ever add time; the median is kept beside it
Warm-up    one untimed round, so that caches are filled and tables built
Garbage    collected before a round, and the collector is off during it
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

from benchmarks.registry import Benchmark, Case, Goal, Ratio, Size, Task, UnavailableError


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per unit."""

    task: str
    unit: str
    count: int
    rounds: int
    best: float
    median: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio that was computed, and whether its goal was met (None: it has none, or none for this size)."""

    label: str
    value: float
    goal: Goal | None
    met: bool | None
    speedup: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's outcome; `problem` says why there is none."""

    name: str
    title: str
    timings: tuple[Timing, ...] = ()
    figures: tuple[Figure, ...] = ()
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    problem: str | None = None
    group: str = "core"

    @property
    def missed(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.met is False]

    @property
    def not_judged(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.goal is not None and figure.met is None]


def measure(benchmark: Benchmark, size: Size, rounds: int, tick: Callable[[], None] = lambda: None) -> Result:
    """Prepare and time one benchmark; a failure becomes its `problem`, so that the others still run."""
    try:
        case = benchmark.prepare(size)
        timings = _time(case, rounds, tick)
        figures = tuple(figure(ratio, timings, size) for ratio in case.ratios)
    except UnavailableError as error:
        return Result(benchmark.name, benchmark.title, problem=f"not available: {error}", group=benchmark.group)
    except Exception as error:
        problem = f"failed: {type(error).__name__}: {error}"
        return Result(benchmark.name, benchmark.title, problem=problem, group=benchmark.group)
    times = tuple(timings.values())
    return Result(benchmark.name, benchmark.title, times, figures, case.facts, group=benchmark.group)


def figure(ratio: Ratio, timings: Mapping[str, Timing], size: Size) -> Figure:
    value = timings[ratio.over].best / (1.0 if ratio.under is None else timings[ratio.under].best)
    judged = ratio.goal is not None and not (size.quick and ratio.goal.full_only)
    met = ratio.goal.met(value) if ratio.goal is not None and judged else None
    return Figure(ratio.label, value, ratio.goal, met, ratio.speedup)


def _time(case: Case, rounds: int, tick: Callable[[], None]) -> dict[str, Timing]:
    for task in case.tasks.values():
        task.once()
    tick()
    taken: dict[str, list[float]] = {name: [] for name in case.tasks}
    for _ in range(rounds):
        for name, task in case.tasks.items():
            taken[name].append(_undisturbed(task))
        tick()
    return {
        name: Timing(name, task.unit, task.count, rounds, min(times) / task.count, median(times) / task.count)
        for (name, task), times in zip(case.tasks.items(), taken.values(), strict=True)
    }


def _undisturbed(task: Task) -> float:
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        return task.once()
    finally:
        if was_on:
            gc.enable()
