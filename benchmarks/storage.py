"""What is kept of a run: a file a group, `results/GROUP.json` and `GROUP.md`, with a chart where a group has one.

A group is stored as a whole, when all of its benchmarks could be run; a part of one would mix two days and two loads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.registry import Goal
from benchmarks.report import Run, document, markdown
from benchmarks.timing import Figure, Result

GOALS = "benchmarks-goals.svg"


def store_group(run: Run, group: str, results: Path, assets: Path) -> list[str]:
    """Write the files of one group; says which."""
    part = run.only(group)
    write_json(results / f"{group}.json", part)
    (results / f"{group}.md").write_text(markdown(part), encoding="utf-8")
    written = [f"{group}.json", f"{group}.md"]
    if group in CHARTS:
        written += CHARTS[group](part, results, assets)
    return written


def store_goals(results: Path, assets: Path) -> None:
    """The chart of everything that has a goal, from all groups that are stored."""
    from benchmarks import goals_chart

    found: list[tuple[str, str, Figure]] = []
    for path in sorted(results.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for result in content["results"]:
            found += [(path.stem, result["name"], _figure(entry)) for entry in result["figures"] if entry["goal"]]
    if found:
        goals_chart.draw(found, assets / GOALS)


def write_json(path: Path, run: Run) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(run), indent=1) + "\n", encoding="utf-8")


def _figure(entry: dict[str, Any]) -> Figure:
    return Figure(**{**entry, "goal": Goal(**entry["goal"])})


def _core(run: Run, results: Path, assets: Path) -> list[str]:
    from benchmarks import chart

    chart.draw(run, assets / "benchmarks.svg")
    return ["benchmarks.svg"]


def _frequency(run: Run, results: Path, assets: Path) -> list[str]:
    from benchmarks import comparison

    rows: Sequence[Result] = run.results
    (results / "comparison.md").write_text(comparison.markdown(rows), encoding="utf-8")
    comparison.draw(rows, assets / "benchmarks-frequency.svg")
    return ["comparison.md", "benchmarks-frequency.svg"]


def _design(run: Run, results: Path, assets: Path) -> list[str]:
    from benchmarks import cost_chart

    cost_chart.draw(run.results, assets / "benchmarks-design.svg")
    return ["benchmarks-design.svg"]


def _load(run: Run, results: Path, assets: Path) -> list[str]:
    from benchmarks import capacity

    (results / "rates.md").write_text(capacity.rates(run), encoding="utf-8")
    return ["rates.md"]


CHARTS: dict[str, Callable[[Run, Path, Path], list[str]]] = {
    "core": _core,
    "frequency": _frequency,
    "design": _design,
    "load": _load,
}
"""What else is made of a group."""
