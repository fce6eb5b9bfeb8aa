"""Each report once: duplicates are found by the id of the row, exactly, in bounded memory.

Which      one report per id and question counts; of several, the first in the order of inputs and rows
Conflicts  an id that came with different reports is named: the same submission cannot have been randomized twice
How        rows go to partitions on disk, by a keyed hash of the id that nobody outside can steer; then each partition
           is sorted by itself. Two passes, both by all workers
Memory     rows of one partition per worker, about 64 MiB of them, however often one id repeats; the disk holds id,
           place and report of every row, in the directory for temporary files
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import DeniableError, ReportError
from deniable.files.places import Place, Progress, Refused, Source, said_of
from deniable.files.reports import ID, ID_BYTES, Layout, read_batches
from deniable.files.units import Counted, Gathered, Tallies, Unit, add_up, cut, forks, malformed, run_all
from deniable.protocols import Tally
from deniable.protocols.reports import Bytes

PARTITION_BYTES = 1 << 26
CHUNK_BYTES = 1 << 26
MOST_PARTITIONS = 1 << 12
PARTITIONS_OF_A_PIPE = 1 << 8
_ROW_BITS = 40
_SHOWN = 5
_HEAD = ID_BYTES + 8


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What was left out, and what does not fit together."""

    rows: int = 0
    """Rows of which a report was not counted because an earlier one had its id."""
    conflicts: int = 0
    """Ids that came with different reports."""
    examples: tuple[str, ...] = ()
    """Some of these ids, in hexadecimal."""

    def __add__(self, other: Duplicates) -> Duplicates:
        examples = tuple(sorted({*self.examples, *other.examples})[:_SHOWN])
        return Duplicates(self.rows + other.rows, self.conflicts + other.conflicts, examples)


@dataclass(frozen=True, slots=True)
class Spool:
    """Where rows wait, and how they are spread."""

    folder: Path
    partitions: int
    keys: tuple[int, int]
    numbers: dict[str, int]
    """The number of each file in the order of the inputs."""

    def path(self, column: int, partition: int) -> Path:
        return self.folder / f"{column}-{partition}"

    def spread(self, ids: Bytes) -> NDArray[np.int64]:
        words: NDArray[np.uint64] = np.ascontiguousarray(ids).view("<u8")
        mixed: NDArray[np.uint64] = words[:, 0] * np.uint64(self.keys[0]) + words[:, 1] * np.uint64(self.keys[1])
        # Multiplication carries upwards only: the top bits have seen all of the id.
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(52)).astype(np.int64) % self.partitions


def count_once(
    layout: Layout, places: list[Place], workers: int, progress: Progress | None
) -> tuple[Gathered, Duplicates]:
    """The tallies of all files, with one report per id and question."""
    layout.check_ids()
    for place in places:
        # Refused before the work, where the name says that it is a tally.
        if place.name.endswith(".json") and not place.once:
            with suppress(OSError), said_of(place.name), closing(Source.open(place.name)) as source:
                if source.is_json:
                    raise _tally(source.name)
    size = sum(place.size or 0 for place in places)
    # Compressed reports may be a few times as long when they are read.
    partitions = min(MOST_PARTITIONS, max(1, -(-3 * size // PARTITION_BYTES)))
    if any(place.once for place in places):
        partitions = max(partitions, PARTITIONS_OF_A_PIPE)  # nobody knows how much will come
    keys = (secrets.randbits(64) | 1, secrets.randbits(64) | 1)
    with tempfile.TemporaryDirectory(prefix="deniable-") as folder:
        numbers = {place.name: number for number, place in enumerate(places)}
        spool = Spool(Path(folder), partitions, keys, numbers)
        done = _spread(layout, spool, places, workers, size, progress)
        refused = frozenset(numbers[name] for name in done.refused)
        tasks = range(partitions)
        total: Tallies = {}
        duplicates = Duplicates()
        found = (
            ((task, _settle((layout, spool, refused), task)) for task in tasks)
            if workers == 1
            else run_all(_settle, (layout, spool, refused), tasks, workers, fork=forks(places))
        )
        for _, (tallies, twice) in found:
            total = add_up(total, tallies, "the files")
            duplicates = duplicates + twice
    done.tallies = total
    return done, duplicates


def _spread(layout: Layout, spool: Spool, places: list[Place], workers: int, size: int, progress: Any) -> Gathered:
    """The first pass; what it returns has rows and refusals, and no tallies yet."""
    done = Gathered()
    seen_bytes = 0
    here = [Unit(place) for place in places if place.once or workers == 1]
    units = cut([place for place in places if not place.once], workers) if workers > 1 else []

    def again() -> None:
        # A killed worker may have left half a row: everything is written anew.
        nonlocal done
        done = Gathered()
        for left in spool.folder.iterdir():
            left.unlink()

    def take(unit: Unit, found: Counted | Refused) -> None:
        nonlocal seen_bytes
        done.add(found)
        seen_bytes += unit.bytes
        if progress is not None:
            progress(done.rows, min(1.0, seen_bytes / size) if size else None)

    # What can be read only once comes last, when no worker can die any more.
    if units:
        for unit, found in run_all(_spread_unit, (layout, spool), units, workers, again, forks(places)):
            take(unit, found)
    for unit in here:
        take(unit, _spread_unit((layout, spool), unit))
    return done


def _spread_unit(shared: tuple[Layout, Spool], unit: Unit) -> Counted | Refused:
    layout, spool = shared
    where = unit.place.name
    try:
        with said_of(where), closing(Source.open(where)) as source:
            return Counted(unit, _spread_rows(layout, spool, unit, source), {})
    except MixtureError:
        raise  # a sum without it would not be what was asked for
    except DeniableError as wrong:
        return Refused(where, wrong)
    except OSError as wrong:
        if wrong.filename is not None and str(wrong.filename).startswith(str(spool.folder)):
            raise  # the disk for temporary files, not the file that was read
        return Refused(where, wrong)


class MixtureError(ReportError):
    """A tally where duplicates are to be found."""


def _tally(name: str) -> MixtureError:
    return MixtureError(
        f"{name} is a tally: it has no ids by which duplicates could be found; count the reports alone with --dedupe, "
        "then add the tallies without it"
    )


def _spread_rows(layout: Layout, spool: Spool, unit: Unit, source: Source) -> int:
    """How many rows of a unit went to the partitions."""
    if source.is_json:
        raise _tally(source.name)
    first, rows = spool.numbers[unit.place.name] << _ROW_BITS, 0
    for batch in read_batches(source, layout.target, ids=True, part=(unit.part, unit.parts)):
        ids = batch.pop(ID)
        start = source.taken - len(ids) if source.is_parquet else rows
        for name, reports in batch.items():
            if not layout.protocols[name].valid(reports).all():
                raise malformed(layout.protocols[name], reports, start, name, source.name)
        order = np.arange(first + start, first + start + len(ids), dtype=np.int64)
        _write(layout, spool, ids, order, batch)
        rows += len(ids)
    return rows


def _write(layout: Layout, spool: Spool, ids: Bytes, order: NDArray[np.int64], batch: dict[str, Bytes]) -> None:
    part = spool.spread(ids)
    sorting = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[sorting], np.arange(spool.partitions + 1))
    for column, name in enumerate(layout.protocols):
        if name not in batch:
            continue
        records = np.hstack([ids, order[:, None].view(np.uint8), batch[name]])[sorting]
        for partition in np.flatnonzero(np.diff(ends)):
            path = spool.path(column, int(partition))
            data = records[ends[partition] : ends[partition + 1]].tobytes()
            _append(path, data)


def _append(path: Path, data: bytes) -> None:
    """One write at the end of a file that all workers share."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as wrong:
        raise OSError(wrong.errno, wrong.strerror, str(path)) from None
    finally:
        os.close(handle)


# -- the second pass -----------------------------------------------------------------------------------


def _settle(shared: tuple[Layout, Spool, frozenset[int]], partition: int) -> tuple[Tallies, Duplicates]:
    """The tallies of the first report of each id in a partition, and what came after it."""
    layout, spool, refused = shared
    tallies: Tallies = {}
    # A row, and an id, counts once, in however many questions it came again.
    again: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    torn: set[bytes] = set()
    for column, name in enumerate(layout.protocols):
        if spool.path(column, partition).exists():
            tallies[name], rows, ids = _settle_column(layout, name, spool.path(column, partition), refused)
            again = np.union1d(again, rows)
            torn |= ids
    examples = tuple(sorted(id.hex() for id in torn)[:_SHOWN])
    return tallies, Duplicates(len(again), len(torn), examples)


def _settle_column(
    layout: Layout, name: str, path: Path, refused: frozenset[int]
) -> tuple[Tally, NDArray[np.int64], set[bytes]]:
    """The tally of a question, places of rows that came again, and ids that came with different reports."""
    protocol = layout.protocols[name]
    width = _HEAD + protocol.report_bytes
    kept, torn = np.empty((0, width), dtype=np.uint8), np.empty(0, dtype=np.bool_)
    twice = [np.empty(0, dtype=np.int64)]
    with open(path, "rb") as file:
        while data := file.read(max(1, CHUNK_BYTES // width) * width):
            rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
            if refused:
                number = _order(rows) >> _ROW_BITS
                rows = rows[~np.isin(number, np.fromiter(refused, np.int64))]
            kept, torn, more = _first_of_each(
                np.concatenate([kept, rows]), np.concatenate([torn, np.zeros(len(rows), bool)])
            )
            twice.append(more)
    ids = {row[:ID_BYTES].tobytes() for row in kept[torn]}
    tally: Tally = protocol.tally(np.ascontiguousarray(kept[:, _HEAD:]), layout.source(name))
    return tally, np.concatenate(twice), ids


def _order(rows: Bytes) -> NDArray[np.int64]:
    return np.ascontiguousarray(rows[:, ID_BYTES:_HEAD]).view(np.int64)[:, 0]


def _first_of_each(rows: Bytes, torn: NDArray[np.bool_]) -> tuple[Bytes, NDArray[np.bool_], NDArray[np.int64]]:
    """The earliest row of each id, whether rows of that id differ, and the places of the others."""
    if not len(rows):
        return rows, torn, np.empty(0, dtype=np.int64)
    words = np.ascontiguousarray(rows[:, :ID_BYTES]).view("<u8")
    sorting = np.lexsort((_order(rows), words[:, 1], words[:, 0]))
    rows, words, torn = rows[sorting], words[sorting], torn[sorting]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (words[1:] != words[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    differs = (rows[:, _HEAD:] != rows[starts[group], _HEAD:]).any(axis=1) | torn
    return rows[starts], np.logical_or.reduceat(differs, starts), _order(rows[~new])
