"""What got slower: the ratios of a run against those that are stored, each named with both values.

Only ratios are compared, never times of different machines, and only of runs of the same size. A ratio moves by itself
by a factor of up to 1.8 on a busy machine, so a change counts from a factor of two on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import Run, ratio_text

TOLERANCE = 2.0


def stored_runs(folder: Path) -> Iterator[dict[str, Any]]:
    """Every run that was stored, whichever groups it has."""
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def slower(run: Run, stored: Iterable[dict[str, Any]], tolerance: float = TOLERANCE) -> list[str]:
    """One line for each ratio that is worse than before."""
    before = {
        (result["name"], figure["label"]): figure["value"]
        for old in stored
        if old["quick"] == run.quick
        for result in old["results"]
        for figure in result["figures"]
    }
    lines = []
    for result in run.results:
        for figure in result.figures:
            old = before.get((result.name, figure.label))
            # Seconds are of the machine; a goal of their own judges them.
            if old is None or figure.label.endswith(": seconds"):
                continue
            worse = old / figure.value if figure.speedup else figure.value / old
            if not worse < tolerance:
                now, then = ratio_text(figure.value), ratio_text(old)
                lines.append(f"{result.name}: {figure.label}: {now}, was {then} ({worse:.1f} times worse)")
    return lines
