"""A run as a table for the terminal, as JSON, and as Markdown for the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from benchmarks.registry import Goal
from benchmarks.timing import Figure, Result

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Run:
    """All results of one run, with what they were measured on."""

    date: str
    quick: bool
    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    results: Sequence[Result]

    def only(self, group: str) -> Run:
        """The results of one group of benchmarks."""
        return replace(self, results=[result for result in self.results if result.group == group])

    @property
    def missed(self) -> list[Figure]:
        return [figure for result in self.results for figure in result.missed]

    @property
    def problems(self) -> list[Result]:
        return [result for result in self.results if result.problem is not None]

    @property
    def passed(self) -> bool:
        return not self.missed and not self.problems


def joined(parts: Sequence[Run]) -> Run:
    """The groups of one run together."""
    versions = {name: version for part in parts for name, version in part.versions.items()}
    return replace(parts[0], versions=versions, results=[result for part in parts for result in part.results])


def document(run: Run) -> dict[str, Any]:
    """What is written as JSON."""
    return {"format": FORMAT, **asdict(run), "passed": run.passed}


def ratio_text(value: float) -> str:
    """Three figures are more than the timing is worth, two are too few near a goal.

    >>> [ratio_text(value) for value in (0.1066, 3.234, 228.4, 51234.0)]
    ['0.107', '3.23', '228', '51,200']
    """
    return f"{float(f'{value:.3g}'):,.10g}"


def time_text(value: float) -> str:
    """
    >>> time_text(2.51e-9), time_text(0.0123), time_text(1.5)
    ('2.51 ns', '12.3 ms', '1.5 s')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def goal_text(goal: Goal | None) -> str:
    return "" if goal is None else f"{goal.kind} {goal.limit:,g}"


def verdict(figure: Figure) -> str:
    if figure.met is None:
        return "" if figure.goal is None else "not judged"
    return "met" if figure.met else "MISSED"


def rows(result: Result) -> list[tuple[str, str, str, str]]:
    """Figure, value, goal and verdict, for each line of a table."""
    if result.problem is not None:
        return [(result.problem, "", "", "FAILED")]
    shown = [
        (figure.label, ratio_text(figure.value), goal_text(figure.goal), verdict(figure)) for figure in result.figures
    ]
    return shown + [(fact, str(value), "", "") for fact, value in result.facts.items()]


def terminal_table(results: Sequence[Result], group: str) -> Table:
    table = Table(title=f"deniable benchmarks: {group}")
    table.add_column("benchmark")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("goal", justify="right")
    table.add_column("")
    styles = {"met": "green", "MISSED": "bold red", "FAILED": "bold red", "not judged": "yellow"}
    for result in results:
        for line, (label, value, goal, outcome) in enumerate(rows(result)):
            name = result.name if line == 0 else ""
            table.add_row(name, escape(label), value, goal, Text(outcome, styles.get(outcome, "")))
        table.add_section()
    return table


def markdown(run: Run) -> str:
    """The tables of the docs page."""
    versions = ", ".join(f"{name} {value}" for name, value in run.versions.items())
    facts = run.machine
    lines = [
        f"Measured on {run.date[:10]}: {facts['cpu']}, {facts['cores']} cores, {facts['system']}, "
        f"load {facts.get('load at the start', 'unknown')} at the start; {versions}.",
        "",
        "| benchmark | figure | value | goal | |",
        "|---|---|---:|---:|---|",
    ]
    for result in run.results:
        lines += [_row("" if line else result.title, *cells) for line, cells in enumerate(rows(result))]
    lines += [
        "",
        "The times behind the ratios, which hold for that machine on that day only:",
        "",
        "| benchmark | task | best | median | per |",
        "|---|---|---:|---:|---|",
    ]
    for result in run.results:
        for line, timing in enumerate(result.timings):
            cells = timing.task, time_text(timing.best), time_text(timing.median), timing.unit
            lines.append(_row("" if line else result.title, *cells))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
