"""Units of work: a file, or some row groups of a file, and the result of counting it.

A unit is counted as a whole or refused. The results of many units are merged in any order and grouping, on one machine
or by a tree of them. A file counts only if all its parts have been counted: one refused part refuses the file.

Worker processes that survive the death of one of them.

Kernels that work in the cache do not get faster with threads, but do with processes. A task is a pure function of its
arguments, so the work lost with a killed worker is repeated; a task that repeatedly kills its workers is
given up with an error message.

Start      fork if it is safe (Linux, no thread but those of a progress bar, which a worker never touches), which
           takes milliseconds; else a fresh interpreter, and always if the caller knows of hidden threads
End        a worker ends with its parent, even by kill -9; an interruption ends workers at once
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from deniable._files import parse_json
from deniable.errors import DeniableError, InternalError, MismatchError, NumberError, ReportError, SpecError
from deniable.files.places import Place, Progress, Refused, Source, loses_threads, opened, said_of, shown
from deniable.files.reports import Layout, UnnamedError, read_batches
from deniable.protocols import Protocol, Tally
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counter
from deniable.surveys import SurveyTally
from deniable.surveys.tally import read_tally

_TALLY = b"deniable.tally"

Tallies = dict[str, Tally]


@dataclass(frozen=True, slots=True)
class Unit:
    """Part `part` of `parts` of a file."""

    place: Place
    part: int = 0
    parts: int = 1

    @property
    def bytes(self) -> int:
        return (self.place.size or 0) // self.parts


@dataclass(frozen=True, slots=True)
class Counted:
    """The content of a unit."""

    unit: Unit
    rows: int
    """Number of reports; for a tally, those that it is the sum of."""
    tallies: Tallies
    is_tally: bool = False


def cut(places: Iterable[Place], workers: int, smallest: int = 1 << 22, largest: int = 1 << 26) -> list[Unit]:
    """Units of about equal size, several per worker; largest files first, so that none is left for the end."""
    found = list(places)
    total = sum(place.size or 0 for place in found)
    wanted = min(largest, max(smallest, total // (8 * workers)))
    units = []
    for place in found:
        parts = 1 if workers == 1 or place.once else max(1, -(-(place.size or 0) // wanted))
        units += [Unit(place, part, parts) for part in range(parts)]
    return units if workers == 1 else sorted(units, key=lambda unit: -unit.bytes)


def forks(places: Iterable[Place]) -> bool:
    """Whether processes that read these may be forked from one that has listed them."""
    return not any(loses_threads(place.name) for place in places)


def count_unit(layout: Layout, unit: Unit, rows: Progress | None = None) -> Counted | Refused:
    """The tallies of a unit; any error in the file becomes the reason of a refusal."""
    name = unit.place.name
    try:
        with said_of(name), closing(Source.open(name)) as source:
            return _counted(layout, unit, source, rows)
    except (OSError, DeniableError) as wrong:
        return Refused(name, wrong)


def _counted(layout: Layout, unit: Unit, source: Source, rows: Progress | None) -> Counted:
    if source.is_json:
        return _before(unit, _json_tallies(source, layout))
    try:
        return _reports(layout, unit, source, rows)
    except UnnamedError:
        # The footer is read a second time only if the file is not a file of reports.
        known = _parquet_tally(source, layout) if source.is_parquet else None
        if known is None:
            raise
        return _before(unit, known)


def _before(unit: Unit, known: Tallies) -> Counted:
    known = known if unit.part == 0 else {}
    return Counted(unit, max((tally.n for tally in known.values()), default=0), known, is_tally=True)


def _reports(layout: Layout, unit: Unit, source: Source, rows: Progress | None) -> Counted:
    counters, done = Counters(layout, source.name), 0
    for batch in read_batches(source, layout.target, part=(unit.part, unit.parts)):
        length = len(next(iter(batch.values()), ()))
        # A Parquet file counts its rows itself, from the beginning of the file and not of the part.
        before = source.taken - length if source.is_parquet else done
        for name, reports in batch.items():
            counters.add(name, reports, before)
        done += length
        if rows is not None:
            rows(done, source.taken / source.size if source.size else None)
    return Counted(unit, done, counters.tallies())


class Counters:
    """Counts batches of reports by column; an error about a malformed report gives its row."""

    def __init__(self, layout: Layout, where: str) -> None:
        self._layout, self._where = layout, where
        self._columns: dict[str, Counter] = {}

    def add(self, name: str, reports: Bytes, row: int) -> None:
        """Count a batch of a column; `row` is the number of rows before it."""
        protocol = self._layout.protocols[name]
        if name not in self._columns:
            self._columns[name] = protocol.counter(self._layout.source(name))
        try:
            self._columns[name].add(reports)
        except ReportError:
            raise malformed(protocol, reports, row, name, self._where) from None

    def tallies(self) -> Tallies:
        return {name: counter.tally() for name, counter in self._columns.items()}


def malformed(protocol: Protocol, reports: Bytes, row: int, name: str, where: str) -> ReportError:
    """An error with the row of the malformed report."""
    place = row + int(np.argmin(protocol.valid(reports))) + 1
    return ReportError(
        f"row {place} of {where}, column {name!r}: these bytes are no report of {protocol.name} "
        "(out of range, or padding that is not zero); nothing was counted"
    )


# -- many units ----------------------------------------------------------------------------------------


@dataclass
class Gathered:
    """The sum of complete files, parts of incomplete ones, and refusals; a commutative monoid."""

    tallies: Tallies = field(default_factory=dict)
    rows: int = 0
    files: int = 0
    waiting: dict[str, tuple[int, int, Tallies]] = field(default_factory=dict)
    """By file: parts seen, their rows, and their sum."""
    refused: dict[str, Refused] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    """The files that are tallies, and the number of reports that each is the sum of."""

    def add(self, found: Counted | Refused) -> tuple[int, Tallies] | None:
        """Add the result of a unit; returns rows and tallies of its file once that is complete."""
        if isinstance(found, Refused):
            self.refused.setdefault(found.place, found)
            self.waiting.pop(found.place, None)
            self.sums.pop(found.place, None)
            return None
        name = found.unit.place.name
        if found.is_tally and found.unit.part == 0 and name not in self.refused:
            self.sums[name] = found.rows
        return self._part(name, found.unit.parts, 1, found.rows, found.tallies)

    def _part(self, name: str, parts: int, count: int, rows: int, tallies: Tallies) -> tuple[int, Tallies] | None:
        if name in self.refused:
            return None
        seen, before, total = self.waiting.pop(name, (0, 0, {}))
        seen, rows, tallies = seen + count, rows + before, add_up(total, tallies, name)
        if seen < parts:
            self.waiting[name] = (seen, rows, tallies)
            return None
        self.files += 1
        self.rows += rows
        self.tallies = add_up(self.tallies, tallies, name)
        return rows, tallies

    def merge(self, other: Gathered, parts: dict[str, int]) -> Gathered:
        """Merge the other into this one; `parts` is the number of parts of each file."""
        self.sums |= {name: rows for name, rows in other.sums.items() if name not in self.refused}
        for refusal in other.refused.values():
            self.add(refusal)
        for name, (count, rows, tallies) in other.waiting.items():
            self._part(name, parts[name], count, rows, tallies)
        self.files += other.files
        self.rows += other.rows
        self.tallies = add_up(self.tallies, other.tallies, "the files")
        return self


def add_up(total: Tallies, more: Tallies, name: str) -> Tallies:
    """The sum of two sets of tallies, question by question, exactly."""
    try:
        return total | {id: total[id] + tally if id in total else tally for id, tally in more.items()}
    except OverflowError:
        raise NumberError(
            f"with {shown(name)!r} the sum no longer fits in 64 bits: a tally is broken or forged"
        ) from None


# -- existing tallies ----------------------------------------------------------------------------------


def _json_tallies(source: Source, layout: Layout) -> Tallies:
    content = parse_json(source.stream().read(), source.name)
    try:
        return _from_json(content, layout)
    except DeniableError as wrong:
        raise type(wrong)(f"{source.name}: {wrong}") from None


def _parquet_tally(source: Source, layout: Layout) -> Tallies | None:
    with opened(source) as file:
        if _TALLY not in (file.schema_arrow.metadata or {}):
            return None
        return _placed(Tally.from_arrow(file.read()), layout)


def _from_json(content: Any, layout: Layout) -> Tallies:
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind == "tally":
        return _placed(read_tally(content), layout)
    if kind != "survey-tally":
        raise SpecError(f"this is a {kind}, not reports or a tally" if isinstance(kind, str) else "this is no tally")
    found = SurveyTally.from_spec(content)
    if layout.kind == "protocol":
        raise MismatchError(f"this is a tally of survey {found.survey}, not of protocol {layout.fingerprint}")
    found.check(layout.target)
    return dict(found.tallies)


def _placed(tally: Tally, layout: Layout) -> Tallies:
    """A single tally, with its column."""
    for name, protocol in layout.protocols.items():
        if tally.source == layout.source(name) and tally.fingerprint == protocol.fingerprint:
            if tally.counts.size != protocol.tally_size:
                raise MismatchError(f"this tally has {tally.counts.size} counters, not {protocol.tally_size}")
            return {name: tally}
    origin = tally.source or f"protocol {tally.fingerprint}, of no survey"
    raise MismatchError(f"this is a tally of {origin}, which does not belong to {layout.kind} {layout.fingerprint}")


# -- worker processes that survive the death of one of them -------------------------------------------


Task = TypeVar("Task")
Found = TypeVar("Found")

MOST_DEATHS = 3


class WorkerError(DeniableError, RuntimeError):
    """Workers that die on the same work, however often it is restarted."""


def worker_count(wanted: int | None) -> int:
    """The requested number; by default all cores that this process may use."""
    if wanted is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise NumberError(f"the number of workers is a positive whole number, not {wanted!r}")
    return wanted


def run_all(
    function: Callable[[Any, Task], Found],
    shared: Any,
    tasks: Iterable[Task],
    workers: int,
    again: Callable[[], None] | None = None,
    fork: bool = True,
) -> Generator[tuple[Task, Found]]:
    """function(shared, task) for every task, in the order of completion.

    `again` is called before work is repeated; with it everything is repeated, without it only unfinished tasks.
    """
    waiting = list(tasks)
    everything = list(waiting)
    for _ in range(MOST_DEATHS):
        done: list[int] = []
        try:
            for index, found in _run(function, shared, waiting, workers, fork):
                done.append(index)
                yield waiting[index], found
            return
        except BrokenProcessPool:
            finished = set(done)
            waiting = [task for index, task in enumerate(waiting) if index not in finished]
            if again is not None:
                again()
                waiting = everything
    raise WorkerError(
        f"{MOST_DEATHS} times a worker process was killed, perhaps for want of memory: try fewer workers, "
        "or look in the system's log"
    )


def _run(
    function: Callable[[Any, Task], Found], shared: Any, tasks: list[Task], workers: int, fork: bool
) -> Iterator[tuple[int, Found]]:
    context = multiprocessing.get_context(_start_method(fork))
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(workers, len(tasks)) or 1, context, _begin, (function, shared))
    # A few tasks ahead keep every worker busy, and no more results than that have to wait.
    ahead = 2 * workers + 2
    order = iter(enumerate(tasks))
    pending: dict[Future[Found], int] = {}

    def fill() -> None:
        for index, task in order:
            with warnings.catch_warnings():
                # Newer Pythons warn of any fork next to another thread; pools of native libraries handle it.
                warnings.simplefilter("ignore", DeprecationWarning)
                pending[pool.submit(_do, task)] = index
            if len(pending) >= ahead:
                return

    try:
        fill()
        while pending:
            finished, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                index = pending.pop(future)
                yield index, future.result()
            fill()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        # Nobody needs the results of their current work.
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_method(fork: bool = True) -> str:
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if fork and sys.platform == "linux" and all(type(thread).__module__.startswith("rich.") for thread in others):
        return "fork"
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


_work: tuple[Callable[[Any, Any], Any], Any] | None = None


def _begin(function: Callable[[Any, Any], Any], shared: Any) -> None:
    global _work
    # The parent receives the interruption and ends its workers; a forked handler would prevent that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    _work = (function, shared)


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _do(task: Any) -> Any:
    if _work is None:
        raise InternalError("a worker was not told what to do")
    function, shared = _work
    return function(shared, task)
