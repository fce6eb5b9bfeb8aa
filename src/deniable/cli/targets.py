"""What the commands of a collection share: the survey or protocol they are about, and a line that shows progress."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from deniable.channels.levels import epsilon_text, level_text
from deniable.cli.files import named, parse_json, read_text
from deniable.errors import DeniableError, SpecError
from deniable.protocols import Protocol
from deniable.surveys import Survey
from deniable.surveys.survey import load_protocol

TERMINATED = 143

Target = Survey | Protocol

About = Annotated[
    str,
    typer.Argument(
        metavar="SURVEY", help="A survey file (or the spec of a single protocol), in JSON.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where the result goes.", show_default="standard output"),
]


def read_target(source: str) -> Target:
    """The survey or the protocol in a file."""
    content, where = parse_json(read_text(source), named(source)), named(source)
    kind = content.get("kind") if isinstance(content, dict) else None
    try:
        if kind == "protocol":
            return load_protocol(content)
        if kind is None and isinstance(content, dict) and "questions" in content:
            raise SpecError("this is a draft: make it a survey with deniable survey new")
        return Survey.from_spec(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None


def read_first(source: str, others: list[str], command: str) -> Target:
    """The survey in the first argument; a survey among the others says that they were swapped."""
    try:
        return read_target(source)
    except (DeniableError, OSError):
        found = next((other for other in others if _is_target(other)), None)
        if found is None:
            raise
    order = f"{shlex.quote(found)} {shlex.quote(source)}"
    raise SpecError(f"{source!r} is no survey, and {found!r} is one: did you mean deniable {command} {order} ...?")


def _is_target(source: str) -> bool:
    try:
        with open(source, "rb") as file:
            if file.read(16).lstrip()[:1] != b"{":
                return False
        read_target(source)
    except (DeniableError, OSError):
        return False
    return True


def questions(target: Target) -> dict[str, tuple[str, Protocol]]:
    """Text and protocol of each column of reports."""
    if isinstance(target, Survey):
        return {question.id: (question.text, question.protocol) for question in target}
    return {"report": ("", target)}


def level(target: Target) -> str:
    """The level as asked for and as it is."""
    return f"{epsilon_text(target.epsilon)} ({level_text(target.ratio)} realized)"


def many(n: int, what: str) -> str:
    """
    >>> many(1, "survey"), many(2, "survey")
    ('1 survey', '2 surveys')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def refuse_keyboard(instead: str) -> None:
    if sys.stdin.isatty():
        raise SpecError(f"there is nothing to read: {instead}")


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Callable[[int, float | None], None] | None]:
    """Shows rows done, how fast, and the time that is left; on a terminal only. SIGTERM ends the block like Ctrl-C."""
    with _terminable(), _shown(what, unit) as advance:
        yield advance


@contextmanager
def _terminable() -> Iterator[None]:
    """Workers, temporary files and manifests are seen to before the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(what: str, unit: str) -> Iterator[Callable[[int, float | None], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.fields[rows]:,}} {unit}, {{task.fields[rate]}} a second"),
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
    """
    >>> _large(950.0), _large(12_345.0), _large(2.5e8)
    ('950', '12.3 thousand', '250 million')
    """
    for scale, word in ((1e6, " million"), (1e3, " thousand")):
        if value >= scale:
            return f"{value / scale:.3g}{word}"
    return f"{value:.0f}"
