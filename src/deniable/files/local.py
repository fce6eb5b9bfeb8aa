"""The local engine: files of reports counted by all cores of one machine, in bounded memory.

Units      small files whole, large ones by row groups; each process reads its own, so that only tallies travel
Memory     a batch of at most 8 MiB of reports per process, and the tallies; it does not grow with the files
Refused    a file that is damaged, of another survey, or that holds a malformed report is listed with the reason and not
           counted at all; the others are counted
Integers   the same for any number of workers, any order and any interruption
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from deniable._extras import require
from deniable.errors import DeniableError, ReportError, SpecError
from deniable.files.dedupe import Duplicates, count_once
from deniable.files.layout import Layout
from deniable.files.manifest import Manifest, end_checksum
from deniable.files.places import Place, Progress, Refused, expand
from deniable.files.units import Counted, Gathered, Tallies, Unit, count_unit, cut, forks, run_all, worker_count
from deniable.protocols import Protocol, Tally
from deniable.surveys import Survey, SurveyTally

WORTH_A_WORKER = 1 << 23
MOST_NAMED = 20


@dataclass(frozen=True)
class Outcome:
    """The result of counting many files."""

    tally: SurveyTally | Tally
    rows: int
    """How many reports; of a tally, those that it is the sum of."""
    files: int
    """How many were counted, those of an earlier run included."""
    refused: list[Refused] = field(default_factory=list)
    resumed: int = 0
    """How many were known from an earlier run."""
    duplicates: Duplicates | None = None
    tallies: int = 0
    """How many of the files were tallies."""
    summed: int = 0
    """How many of the reports came in tallies."""


def count_files(
    target: Survey | Protocol,
    inputs: Iterable[str | Path],
    workers: int | None = 1,
    strict: bool = False,
    dedupe: bool = False,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Add up files of reports and of tallies: paths, directories, patterns, URLs, "-" for standard input.

    `workers` None means one for each core, fewer for little. `strict` raises an error that names all refused files,
    in the order of the inputs, instead of going on without them. `dedupe` counts one report per id and question.
    `resume` names a manifest.
    """
    require("pyarrow", "files")
    layout, found = Layout(target), expand(inputs)
    places = [entry for entry in found if isinstance(entry, Place)]
    processes = worker_count(workers)
    if workers is None:
        # Starting a process takes as long as counting some megabytes.
        processes = min(processes, max(1, sum(place.size or 0 for place in places) // WORTH_A_WORKER))
    if dedupe:
        if resume is not None:
            raise SpecError(
                "--dedupe has to see the ids of all files together, so that files done before would save nothing: "
                "leave out --resume, or --dedupe"
            )
        done, duplicates = count_once(layout, places, processes, progress)
        return outcome(layout, done, found, strict, duplicates=duplicates)
    manifest = None if resume is None else Manifest(resume, layout)
    done, resumed = _count(layout, places, processes, strict, manifest, progress)
    return outcome(layout, done, found, strict, resumed)


def outcome(
    layout: Layout,
    done: Gathered,
    found: list[Place | Refused],
    strict: bool,
    resumed: int = 0,
    duplicates: Duplicates | None = None,
) -> Outcome:
    """The result: refusals in the order of the inputs, questions in the order of the survey."""
    refused = [
        entry if isinstance(entry, Refused) else done.refused[entry.name]
        for entry in found
        if isinstance(entry, Refused) or entry.name in done.refused
    ]
    if strict and refused:
        raise all_refused(refused)
    tally = whole_tally(layout, done.tallies)
    return Outcome(tally, done.rows, done.files, refused, resumed, duplicates, len(done.sums), sum(done.sums.values()))


def all_refused(refused: list[Refused]) -> Exception:
    """One exception for all inputs that were refused, each with its reason."""
    if len(refused) == 1:
        return refused[0].error
    named = "; ".join(entry.complaint for entry in refused[:MOST_NAMED])
    more = f"; and {len(refused) - MOST_NAMED} more" if len(refused) > MOST_NAMED else ""
    return ReportError(f"{len(refused)} inputs are refused, so that nothing is counted: {named}{more}")


def whole_tally(layout: Layout, tallies: Tallies) -> SurveyTally | Tally:
    """A tally for every question, empty where nothing was counted."""
    total = {
        name: tallies.get(name) or protocol.empty(layout.source(name)) for name, protocol in layout.protocols.items()
    }
    if isinstance(layout.target, Survey):
        return SurveyTally(layout.target.fingerprint, total)
    (only,) = total.values()
    return only


def _count(
    layout: Layout,
    places: list[Place],
    workers: int,
    strict: bool,
    manifest: Manifest | None,
    progress: Progress | None,
) -> tuple[Gathered, int]:
    done, ends = Gathered() if manifest is None else manifest.recall(places), {}
    known = set() if manifest is None else manifest.known
    todo = [place for place in places if place.name not in known]
    by_name = {place.name: place for place in todo}
    meter = Meter(done.rows, sum(place.size or 0 for place in todo), progress)
    try:
        if manifest is not None:
            ends = {place.name: _end(place) for place in todo}
        with closing(_found(layout, todo, workers, meter)) as results:
            for unit, found in results:
                complete = done.add(found)
                if manifest is None:
                    continue
                if complete is not None:
                    name = unit.place.name
                    manifest.keep(by_name[name], ends[name], name in done.sums, *complete)
                manifest.write_if_due()
    except (KeyboardInterrupt, SystemExit) as stop:
        if manifest is not None:
            stop.add_note(f"{manifest.done(places)} of {len(places)} files are in {manifest}, run the same again")
        raise
    finally:
        # An interruption too leaves a manifest of all that was done.
        if manifest is not None:
            manifest.write()
    return done, len(known)


def _end(place: Place) -> str | None:
    try:
        return end_checksum(place)
    except (OSError, DeniableError):
        return None  # whatever it is, counting will name it


def _found(
    layout: Layout, places: list[Place], workers: int, meter: Meter
) -> Generator[tuple[Unit, Counted | Refused]]:
    """Every unit with what it held."""
    once = [place for place in places if place.once]
    units = cut([place for place in places if not place.once], workers)
    here = cut(once, 1) + (units if workers == 1 or len(units) == 1 else [])
    for unit in here:
        found = count_unit(layout, unit, meter.within(unit))
        meter.done(unit, found)
        yield unit, found
    if len(here) == len(once) + len(units):
        return
    with closing(run_all(count_unit, layout, units, workers, fork=forks(places))) as results:
        for unit, found in results:
            meter.done(unit, found)
            yield unit, found


class Meter:
    """Adds up the progress of the units: rows and share done."""

    def __init__(self, rows: int, size: int, progress: Progress | None) -> None:
        self._rows, self._bytes, self._size, self._progress = rows, 0.0, size, progress

    def within(self, unit: Unit) -> Progress | None:
        if self._progress is None:
            return None
        return lambda rows, share: self._show(self._rows + rows, self._bytes + (share or 0.0) * unit.bytes)

    def done(self, unit: Unit, found: Any) -> None:
        if isinstance(found, Counted):
            self._rows += found.rows
        self._bytes += unit.bytes
        self._show(self._rows, self._bytes)

    def _show(self, rows: int, size: float) -> None:
        if self._progress is not None:
            self._progress(rows, min(1.0, size / self._size) if self._size else None)


@overload
def tally_files(
    target: Survey, inputs: Iterable[str | Path], progress: Progress | None = None, workers: int | None = 1
) -> SurveyTally: ...
@overload
def tally_files(
    target: Protocol, inputs: Iterable[str | Path], progress: Progress | None = None, workers: int | None = 1
) -> Tally: ...
def tally_files(
    target: Survey | Protocol,
    inputs: Iterable[str | Path],
    progress: Progress | None = None,
    workers: int | None = 1,
) -> SurveyTally | Tally:
    """Add up files of reports and of tallies, in any mixture; "-" is standard input.

    `workers` is the number of processes; None means one for each core.
    """
    return count_files(target, inputs, workers, strict=True, progress=progress).tally
