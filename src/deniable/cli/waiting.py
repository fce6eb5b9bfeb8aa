"""What is shown on a terminal while a solver works: what it does, how far it is where that is known, and the time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.design.trace import Progress as Report


@contextmanager
def solving() -> Iterator[Report | None]:
    """Yields what a design should call, or None where nobody watches; standard output is left alone."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def report(what: str, share: float | None) -> None:
            # Without a known share the bar only moves, and claims nothing.
            bar.update(task, description=what, total=None if share is None else 1.0, completed=share or 0.0)

        yield report
