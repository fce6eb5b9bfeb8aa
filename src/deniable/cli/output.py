"""Output of the commands: tables on a terminal, plain aligned text in a pipe, JSON or CSV on request.

Terminal   rich's tables and colours
Pipe       no colour codes, no boxes, nothing wrapped or shortened
JSON       one document; exact numbers are strings "a/b" next to floats, NaN and infinities are null
Progress   on a terminal only, and never on standard output
Text       control and bidirectional characters are written as escapes, so that nobody's text drives the terminal
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from deniable import exact
from deniable._extras import require
from deniable._files import atomic_write
from deniable._plain import csv_cell, escaped
from deniable.errors import SpecError

PIPE_CLOSED = 141  # the exit code that a shell reports for a command ended by a closed pipe
WIDEST_PROSE = 88

_FOREIGN = re.compile(r"[^\n -~]+")

# Exact laws have integers of some thousand digits; Python's limit is for servers that read untrusted numbers.
_LONGEST_INTEGER = 200_000


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def write(content: str) -> None:
    """Text for people, to standard output; if its reader has gone, the command ends quietly."""
    _put(escaped(content, keep="\n"))


def data(content: str) -> None:
    """The same for data: unchanged in a pipe, made readable on a terminal."""
    _put(escaped(content, keep="\n\t") if on_terminal() else content)


def _put(content: str) -> None:
    try:
        sys.stdout.write(content)
    except BrokenPipeError:
        hush()
        raise typer.Exit(PIPE_CLOSED) from None


def hush() -> None:
    """Drop what is still buffered, so that Python does not complain when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(kind: str, message: str) -> None:
    """One line on standard error."""
    print(escaped(f"{kind}: {' '.join(message.split())}"), file=sys.stderr)


def shown(label: Any) -> str:
    """A label for a table."""
    from deniable.labels import text  # loads numpy, which `deniable --help` should not wait for

    return escaped(text(label))


def number(value: float, digits: int = 10) -> str:
    """A number for people, with this many digits."""
    return "infinite" if math.isinf(value) else f"{value:.{digits}g}"


def many(n: int, what: str) -> str:
    """A number with its noun.

    >>> many(1, "survey"), many(2, "survey")
    ('1 survey', '2 surveys')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def document(content: Any) -> None:
    """Print one JSON document."""
    written = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    data(_FOREIGN.sub(_visible, written) + "\n")


def _visible(found: re.Match[str]) -> str:
    """Characters of a JSON document, escaped if they are invisible."""
    return "".join(c if c == escaped(c) else json.dumps(c)[1:-1] for c in found[0])


def save_json(path: Path, content: Any, indent: int | None = None) -> None:
    """Write one JSON document to a file, which appears whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(content, indent=indent, ensure_ascii=False) + "\n").encode())


def csv_table(rows: Sequence[Sequence[Any]], formulas: bool = False) -> None:
    """Print rows as CSV; text that a spreadsheet would run gets a ' in front, unless `formulas` is set."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([csv_cell(cell, formulas) for cell in row] for row in rows)
    data(out.getvalue())


def prose(content: str) -> None:
    """A paragraph, wrapped at words."""
    lines = textwrap.wrap(content, min(WIDEST_PROSE, width()), break_on_hyphens=False)
    write("\n".join(lines) + "\n")


def heading(content: str) -> None:
    """A line above a section."""
    styled(content, "bold cyan")


def styled(content: str, style: str) -> None:
    """One line, in colour if the output has colours."""
    if not on_terminal():
        write(content + "\n")
        return
    from rich.text import Text

    _console().print(Text(escaped(content), style=style), soft_wrap=True)


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, one pair per line; a long value is never cut."""
    left = max(len(name) for name, _ in pairs)
    if not on_terminal():
        write("".join(f"{escaped(name):<{left}}  {escaped(value)}\n" for name, value in pairs))
        return
    from rich.text import Text

    for name, value in pairs:
        _console().print(Text.assemble((f"{escaped(name):<{left}}  ", "cyan"), escaped(value)), soft_wrap=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """A table whose first `left` columns are text and the others numbers."""
    if on_terminal():
        _rich_table(head, rows, left)
        return
    head, rows = [escaped(cell) for cell in head], [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        sized = zip(row, widths, strict=True)
        cells = [cell.ljust(size) if i < left else cell.rjust(size) for i, (cell, size) in enumerate(sized)]
        write("  ".join(cells).rstrip() + "\n")


def _rich_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False, show_edge=False)
    for i, name in enumerate(head):
        # Folding keeps every digit; cutting would lose some.
        drawn.add_column(Text(escaped(name)), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(escaped(cell)) for cell in row))
    _console().print(drawn)


def examples(*lines: str) -> str:
    """The end of a command's help. The backspace tells the formatter to keep the lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def files(**written: Path | None) -> None:
    """Print the files that a command has written, each with what was done: `files(saved=path, drawn=None)`."""
    for word, path in written.items():
        if path is not None:
            write(f"\n{word}: {path}\n")


def save_figure(path: Path, draw: Callable[[], Any]) -> None:
    """Draw with `draw`, which returns axes, and write the picture. Matplotlib works without a display here."""
    matplotlib = require("matplotlib", "plot")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    # Labels may contain any text: no formulas between dollar signs, no warning about a missing glyph.
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = draw().figure
        try:
            known = figure.canvas.get_supported_filetypes()
            if path.suffix[1:].lower() not in known:
                raise SpecError(f"a picture cannot be written as {path.name!r}: call it .png, .svg or .pdf")
            figure.savefig(path, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)


def width() -> int:
    """The width of the terminal; in a pipe, the width of prose."""
    return shutil.get_terminal_size().columns if on_terminal() else WIDEST_PROSE


def fitting_columns(widest_label: int, widths: Sequence[int]) -> int:
    """How many columns of a matrix fit next to its labels on the terminal; in a pipe all of them."""
    if not on_terminal():
        return len(widths)
    room = width() - widest_label
    fitting = 0
    for needed in widths:
        room -= needed + 2
        if room < 0:
            break
        fitting += 1
    return max(1, fitting)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def ratio_text(ratio: Fraction | float) -> str:
    """Exact for JSON: "a/b", "a" or "inf"."""
    return "inf" if isinstance(ratio, float) else str(ratio)


def ratio_words(ratio: Fraction | float) -> str:
    """For people: short fractions unchanged, long ones as a decimal."""
    if isinstance(ratio, float):
        return "infinite"
    if len(str(ratio)) <= 12:
        return str(ratio)
    return number(float(ratio)) if ratio < 10**12 else f"e^{number(exact.log(ratio))}"


@contextmanager
def long_integers() -> Iterator[None]:
    """Allow the integers of an exact law to be written and read in full."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(_LONGEST_INTEGER)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


# -- while a command works: how far it is, how fast, and the time that is left ------------------------


TERMINATED = 143

Rows = Callable[[int, float | None], None]
"""Called with the number of finished rows, and the finished share if it is known."""

Steps = Callable[[str, float | None], None]
"""Called with the current step of a solver, and the finished share if it is known."""


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Rows | None]:
    """Show finished rows, their speed and the time that is left, on a terminal only.

    Yields the function to call, or None if nobody watches. SIGTERM ends the block like Ctrl-C.
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
            # The rows of an earlier run say nothing about the speed of this one.
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
    """Show the steps of a solver. Yields the function to call, or None if nobody watches."""
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
