"""What a benchmark is: a function that prepares named tasks and says which of them to compare.

    @benchmark("keystream", "secure bytes")
    def keystream(size: Size) -> Case:
        n = size(1 << 24, 1 << 20)
        return Case(
            tasks={
                "ours": work(lambda: bits.fill(out), n, "byte"),
                "system": work(lambda: os.urandom(n), n, "byte"),
            },
            ratios=[faster("ours", than="system", goal=at_least(2))],
        )

The runner does the timing, so that every benchmark is measured in the same way. A ratio is of seconds per
unit, so that a slow rival may be timed on fewer units.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


class UnavailableError(RuntimeError):
    """Something that a benchmark compares with cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much work to prepare: `size(full, quick)`."""

    quick: bool = False

    def __call__(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Task:
    """Something that can be timed: `once()` does all `count` units and returns the seconds that they took."""

    once: Callable[[], float]
    count: int
    unit: str


def work(function: Callable[[], object], count: int = 1, unit: str = "call") -> Task:
    """A task of this process."""

    def once() -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    return Task(once, count, unit)


@dataclass(frozen=True, slots=True)
class Goal:
    """The bound that a figure must keep; some say nothing about small sizes, and are judged in full only."""

    kind: Literal["at least", "at most"]
    limit: float
    full_only: bool = False

    def met(self, value: float) -> bool:
        """A value that is not a number meets no goal."""
        return value >= self.limit if self.kind == "at least" else value <= self.limit


def at_least(limit: float, full_only: bool = False) -> Goal:
    return Goal("at least", limit, full_only)


def at_most(limit: float, full_only: bool = False) -> Goal:
    return Goal("at most", limit, full_only)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One task's seconds per unit over another's; over one second where there is no other."""

    label: str
    over: str
    under: str | None
    goal: Goal | None
    speedup: bool


def faster(task: str, than: str, goal: Goal | None = None, label: str | None = None) -> Ratio:
    """How many times less time `task` takes; large is good."""
    return Ratio(label or f"{task}: times faster than {than}", than, task, goal, speedup=True)


def cost(task: str, of: str, goal: Goal | None = None, label: str | None = None) -> Ratio:
    """How many times the time of a part or a bound `task` takes; small is good."""
    return Ratio(label or f"{task}: times the time of {of}", task, of, goal, speedup=False)


def seconds(task: str, goal: Goal) -> Ratio:
    """A limit on the time itself, for what people wait for."""
    return Ratio(f"{task}: seconds", task, None, goal, speedup=False)


@dataclass(frozen=True, slots=True)
class Case:
    """What a benchmark prepared. `facts` are results that are not times."""

    tasks: Mapping[str, Task]
    ratios: Sequence[Ratio] = ()
    facts: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Benchmark:
    name: str
    title: str
    prepare: Callable[[Size], Case]
    peers: tuple[str, ...] = ()
    group: str = "core"
    rounds: int | None = None
    """How often each task is timed at full size; None: as often as those of other benchmarks."""


_registered: dict[str, Benchmark] = {}


def benchmark(
    name: str, title: str, peers: tuple[str, ...] = (), group: str = "core", rounds: int | None = None
) -> Callable[[Callable[[Size], Case]], Callable[[Size], Case]]:
    """Register a function under a name for `--only` and a title for people.

    `peers` are the packages compared with; a `group` has a table and a chart of its own.
    `rounds` is how often tasks are timed, if they take long.
    """

    def register(prepare: Callable[[Size], Case]) -> Callable[[Size], Case]:
        if name in _registered:
            raise ValueError(f"two benchmarks are called {name!r}")
        _registered[name] = Benchmark(name, title, prepare, peers, group, rounds)
        return prepare

    return register


def registered() -> dict[str, Benchmark]:
    """All benchmarks by name, in the order of registration."""
    return dict(_registered)
