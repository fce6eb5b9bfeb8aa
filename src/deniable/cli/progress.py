"""What a terminal shows while a command works: how far it is, how fast, and the time that is left.

Standard output is left alone. Where nobody watches, nothing is shown.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TERMINATED = 143

Rows = Callable[[int, float | None], None]
"""Called with the rows that are done, and the share of the whole where that is known."""

Steps = Callable[[str, float | None], None]
"""Called with what a solver does, and the share of the whole where that is known."""


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Rows | None]:
    """Show finished rows, their speed and the time that is left, on a terminal only.

    Yields the function to call, or None where nobody watches. SIGTERM ends the block like Ctrl-C.
    """
    with _terminable(), _shown(what, unit) as advance:
        yield advance


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the block like Ctrl-C, so that workers, temporary files and manifests are cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(what: str, unit: str) -> Iterator[Rows | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.fields[rows]:,}} {unit}, {{task.fields[rate]}} per second"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    start, first = time.monotonic(), None
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rows=0, rate="-")

        def advance(rows: int, share: float | None) -> None:
            nonlocal first
            # What an earlier run had done says nothing about the speed of this one.
            first = rows if first is None else first
            rate = (rows - first) / max(1e-3, time.monotonic() - start) or rows / max(1e-3, time.monotonic() - start)
            known = None if share is None else 1.0
            bar.update(task, rows=rows, rate=_large(rate), total=known, completed=share or 0.0)

        yield advance


def _large(value: float) -> str:
    """A large number in words.

    >>> _large(950.0), _large(12_345.0), _large(2.5e8)
    ('950', '12.3 thousand', '250 million')
    """
    for scale, word in ((1e6, " million"), (1e3, " thousand")):
        if value >= scale:
            return f"{value / scale:.3g}{word}"
    return f"{value:.0f}"


@contextmanager
def solving() -> Iterator[Steps | None]:
    """Show what a solver does. Yields the function to call, or None where nobody watches."""
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
