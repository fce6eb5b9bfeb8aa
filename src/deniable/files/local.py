"""The local engine: files of reports counted by all cores of one machine, in bounded memory.

Units      small files whole, large ones by row groups; each process reads its own, so that only tallies are sent
Memory     a batch of at most 8 MiB of reports per process, and the tallies; it does not grow with the files
Refused    a file that is damaged, of another survey, or that holds a malformed report is listed with the reason and
           not counted at all; the others are counted
Integers   the same for any number of workers, any order and any interruption

A manifest lists the counted files and their content, so that a run can continue where another stopped.

File       JSON: kind "tally-manifest", version 1, the fingerprint of the survey or protocol; for each file its size,
           time of change, checksum of its end (for Parquet, the footer), rows, whether it is a tally, and in which of
           the sums it is; and the sums, tallies whose counts are the shortest integers that hold them, little-endian,
           compressed, in base64
Small      one sum per file while tallies are short; at most 2^20 counters in all, or one sum, so that files share sums
           where tallies are long (open text: millions of counters)
Whole      replaced atomically: after the first file, then every two seconds or, if writing takes
           long, ten times as long as that, and at the end: a killed run loses seconds
Changed    a file whose size, time or end differs, or whose time is unknown, is counted again, and so are the files
           that share its sum; also those that share a sum with a file that is not among the inputs any more
Secrets    URLs are stored without user and password, and their options only as a hash
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zlib
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deniable._extras import require
from deniable._files import atomic_write, read_json
from deniable.errors import DeniableError, MismatchError, ReportError, SpecError
from deniable.files.dedupe import Duplicates, count_once
from deniable.files.places import Place, Progress, Refused, expand, is_url, open_url, shown, split_options
from deniable.files.reports import Layout
from deniable.files.units import Counted, Gathered, Tallies, Unit, add_up, count_unit, cut, forks, run_all, worker_count
from deniable.protocols import Tally
from deniable.surveys import Survey, SurveyTally

VERSION = 1
SECONDS_BETWEEN = 2.0
MOST_COUNTERS = 1 << 20
_LONGEST_END = 1 << 26
_SHORTEST_END = 1 << 12
_FACTS = {"size", "modified", "end", "rows", "tally"}


@dataclass
class _Sum:
    """The sum over some files: as tallies, in written form, or both."""

    files: list[str] = field(default_factory=list)
    tallies: Tallies | None = None
    packed: dict[str, Any] | None = None


class Manifest:
    """The files done so far; `keep` adds one and writes the manifest from time to time."""

    def __init__(self, path: str | Path, layout: Layout) -> None:
        self._path, self._layout = Path(path), layout
        self.known: set[str] = set()
        self._files: dict[str, dict[str, Any]] = {}
        self._sums: list[_Sum] = []
        # The sums of files of this run. Others are for runs over other files, and nothing is added to them.
        self._ours: list[int] = []
        self._most = max(1, MOST_COUNTERS // sum(each.tally_size for each in layout.protocols.values()))
        self._due, self._changed = 0.0, True
        if self._path.exists():
            self._read()
        else:
            # Find out before the work if the place cannot be written.
            self.write()
            self._due = 0.0

    def recall(self, places: Iterable[Place]) -> Gathered:
        """The content of the files that have not changed since they were counted; `known` lists them."""
        asked = {_key(place): place for place in places if not place.once}
        done = Gathered()
        before, self._sums = self._sums, []
        for each in before:
            found = [key for key in each.files if key in asked]
            if not found:
                self._sums.append(each)
            elif len(found) == len(each.files) and all(self._same(key, asked[key]) for key in found):
                self.known.update(asked[key].name for key in found)
                done.rows += sum(self._files[key]["rows"] for key in found)
                done.sums |= {asked[key].name: self._files[key]["rows"] for key in found if self._files[key]["tally"]}
                tallies = self._tallies(each)
                done.tallies = add_up(done.tallies, tallies, str(self._path))
                self._add(each.files, tallies, each.packed)
            else:
                for key in each.files:
                    del self._files[key]
                self._changed = True
        done.files = len(self.known)
        return done

    def keep(self, place: Place, end: str | None, is_tally: bool, rows: int, tallies: Tallies) -> None:
        """Record a file as done; `end` is its checksum from before it was counted."""
        if place.once:
            return
        key = _key(place)
        if key in self._files:
            return  # the same file under another name, which is recorded
        facts = {"size": place.size, "modified": place.modified, "end": end, "rows": rows, "tally": is_tally}
        self._files[key] = facts
        self._add([key], tallies, None)
        self._changed = True

    def write_if_due(self) -> None:
        if self._changed and time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        start = time.monotonic()
        for each in self._sums:
            if each.packed is None:
                each.packed = {
                    name: {"n": tally.n, "counts": _packed(tally)} for name, tally in (each.tallies or {}).items()
                }
        files = {
            key: self._files[key] | {"sum": number} for number, each in enumerate(self._sums) for key in each.files
        }
        content = {"kind": "tally-manifest", "version": VERSION, self._layout.kind: self._layout.fingerprint}
        content |= {"files": files, "sums": [each.packed for each in self._sums]}
        with atomic_write(self._path) as file:
            file.write(json.dumps(content, separators=(",", ":")).encode())
        now = time.monotonic()
        # However large it grows, writing it takes a small part of the time.
        self._due, self._changed = now + max(SECONDS_BETWEEN, 10 * (now - start)), False

    def done(self, places: Iterable[Place]) -> int:
        """How many of these are recorded."""
        return sum(not place.once and _key(place) in self._files for place in places)

    def __str__(self) -> str:
        return str(self._path)

    def _add(self, files: list[str], tallies: Tallies, packed: dict[str, Any] | None) -> None:
        if len(self._ours) < self._most:
            self._ours.append(len(self._sums))
            self._sums.append(_Sum(files, tallies if packed is None else None, packed))
            return
        number = self._ours[len(self._files) % self._most]
        each = self._sums[number]
        # In one step: a signal in between would leave a sum that contains more than its files.
        self._sums[number] = _Sum(each.files + files, add_up(self._tallies(each), tallies, str(self._path)))

    def _same(self, key: str, place: Place) -> bool:
        facts = self._files[key]
        if place.modified is None or facts["size"] != place.size or facts["modified"] != place.modified:
            return False  # without a time a change cannot be detected
        try:
            return bool(facts["end"] == end_checksum(place))
        except OSError:
            return False  # counting will report the error

    def _read(self) -> None:
        where = repr(str(self._path))
        content = read_json(self._path)
        match content:
            case {"kind": "tally-manifest", "version": 1, "files": dict(files), "sums": list(sums)}:
                pass
            case {"kind": "tally-manifest", "version": version} if version != VERSION:
                raise SpecError(f"{where} is a manifest of version {version!r}: try a newer deniable")
            case _:
                raise SpecError(f"{where} is no manifest of a tally: give another name, or remove it")
        owner = content.get(self._layout.kind)
        if owner != self._layout.fingerprint:
            raise MismatchError(
                f"the manifest {where} does not belong to {self._layout.kind} {self._layout.fingerprint}"
            )
        if not all(isinstance(packed, dict) for packed in sums):
            raise self._damaged()
        self._sums = [_Sum(packed=packed) for packed in sums]
        for name, entry in files.items():
            if not isinstance(entry, dict) or set(entry) != _FACTS | {"sum"} or entry["sum"] not in range(len(sums)):
                raise SpecError(f"{where} is damaged at {name!r}: remove it to count everything anew")
            self._sums[entry.pop("sum")].files.append(name)
        self._files, self._changed = files, False

    def _tallies(self, each: _Sum) -> Tallies:
        if each.tallies is not None:
            return each.tallies
        try:
            return {
                name: Tally(
                    self._layout.protocols[name].fingerprint,
                    packed["n"],
                    _unpacked(packed["counts"], self._layout.protocols[name].tally_size),
                    self._layout.source(name),
                )
                for name, packed in (each.packed or {}).items()
            }
        except (KeyError, TypeError, ValueError, zlib.error):
            raise self._damaged() from None

    def _damaged(self) -> SpecError:
        return SpecError(f"{str(self._path)!r} is damaged: remove it to count everything anew")


def end_checksum(place: Place) -> str | None:
    """SHA-256 of a Parquet file's footer, and of the last bytes of any other file; None if it cannot be read."""
    if place.once or place.size is None:
        return None
    with _opened(place.name) as file:
        file.seek(max(0, place.size - 8))
        last = file.read(8)
        length = _SHORTEST_END
        if last[4:] == b"PAR1":
            length = min(_LONGEST_END, int.from_bytes(last[:4], "little") + 8)
        file.seek(max(0, place.size - length))
        return hashlib.sha256(file.read(length)).hexdigest()


def _opened(name: str) -> Any:
    return open_url(name)[0] if is_url(name) else open(name, "rb")


def _key(place: Place) -> str:
    if not is_url(place.name):
        return os.path.realpath(place.name)
    # Options may be secret: store only whether they are the same.
    options = split_options(place.name)[1]
    return shown(place.name) + (f"#{hashlib.sha256(options.encode()).hexdigest()[:16]}" if options else "")


def _packed(tally: Tally) -> str:
    """Compressed integers, after their type."""
    counts, shortest = tally.counts, "<i8"
    for kind in ("<i4", "<i2", "<i1"):
        limits = np.iinfo(kind)
        if counts.size and (counts.min() < limits.min or counts.max() > limits.max):
            break
        shortest = kind
    return f"{shortest[1:]}:" + base64.b64encode(zlib.compress(counts.astype(shortest).tobytes(), 1)).decode()


def _unpacked(text: str, size: int) -> Any:
    kind, _, code = text.partition(":")
    if kind not in ("i1", "i2", "i4", "i8"):
        raise ValueError("integers of another kind")
    counts = np.frombuffer(zlib.decompress(base64.b64decode(code, validate=True)), dtype=f"<{kind}")
    if counts.size != size:
        raise ValueError("a tally of another size")
    return counts.astype(np.int64)


WORTH_A_WORKER = 1 << 23
MOST_NAMED = 20


@dataclass(frozen=True)
class Outcome:
    """The result of counting many files.

    Args:
        tally: The sum of all files.
        rows: Number of reports; for a tally, those that it is the sum of.
        files: Number of files counted, including those of an earlier run.
        refused: The files that were not counted, with the reasons.
        resumed: Number of files known from an earlier run.
        duplicates: What was found out about ids, if they were compared.
        tallies: Number of files that were tallies.
        summed: Number of reports that came in tallies.
    """

    tally: SurveyTally
    rows: int
    files: int
    refused: list[Refused] = field(default_factory=list)
    resumed: int = 0
    duplicates: Duplicates | None = None
    tallies: int = 0
    summed: int = 0


def count_files(
    target: Survey,
    inputs: Iterable[str | Path],
    workers: int | None = 1,
    strict: bool = False,
    dedupe: bool = False,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Add up files of reports and of tallies: all of them, or those that can be read.

    Args:
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        inputs: Paths, directories, patterns, URLs, or "-" for standard input.
        workers: Number of processes; None means one per core, fewer for small inputs.
        strict: Whether refused files raise an error that names all of them, instead of being left out.
        dedupe: Whether only one report per id and question is counted.
        resume: Path of a manifest that records what was counted, to continue after an interruption.
        progress: Called with the rows done and, if known, the completed share of the input.

    Returns:
        The tally, with numbers of rows and files.
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
    """One exception for all refused inputs, each with its reason."""
    if len(refused) == 1:
        return refused[0].error
    named = "; ".join(entry.complaint for entry in refused[:MOST_NAMED])
    more = f"; and {len(refused) - MOST_NAMED} more" if len(refused) > MOST_NAMED else ""
    return ReportError(f"{len(refused)} inputs are refused, so that nothing is counted: {named}{more}")


def whole_tally(layout: Layout, tallies: Tallies) -> SurveyTally:
    """A tally for every question, empty if nothing was counted."""
    total = {
        name: tallies.get(name) or protocol.empty(layout.source(name)) for name, protocol in layout.protocols.items()
    }
    return SurveyTally(layout.fingerprint, total)


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
        # An interruption also leaves a manifest of all finished work.
        if manifest is not None:
            manifest.write()
    return done, len(known)


def _end(place: Place) -> str | None:
    try:
        return end_checksum(place)
    except (OSError, DeniableError):
        return None  # counting will report the error


def _found(
    layout: Layout, places: list[Place], workers: int, meter: Meter
) -> Generator[tuple[Unit, Counted | Refused]]:
    """Every unit with its content."""
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
    """Sums the progress of the units: rows and completed share."""

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


def tally_files(
    target: Survey,
    inputs: Iterable[str | Path],
    progress: Progress | None = None,
    workers: int | None = 1,
) -> SurveyTally:
    """Add up files of reports and of tallies, in any mixture; "-" is standard input.

    Args:
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        inputs: Paths, directories, patterns, URLs, or "-" for standard input.
        progress: Called with the rows done and, if known, the completed share of the input.
        workers: Number of processes; None means one per core, fewer for small inputs.

    Returns:
        The tally of all files.
    """
    return count_files(target, inputs, workers, strict=True, progress=progress).tally
