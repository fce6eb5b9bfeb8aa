"""A progress bar for iterations that stop when a gap is small enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def progress_bar(wanted: bool, title: str, tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """Yields what `maximize` should call after each update, or None."""
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn(title), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns) as bar:
        task = bar.add_task("", total=1.0)
        reach: list[float] = []

        def report(iteration: int, gap: float) -> None:
            # Progress is measured in digits of the gap: from the first one to the tolerance.
            digits = -float(np.log(max(gap, tolerance)))
            reach[:] = reach or [digits]
            whole = -float(np.log(tolerance)) - reach[0]
            done = 1.0 if whole <= 0 else (digits - reach[0]) / whole
            bar.update(task, completed=done, description=f"{iteration} updates, gap {gap:.1e}")

        yield report
