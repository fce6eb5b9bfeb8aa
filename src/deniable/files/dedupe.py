"""Count each report once: duplicates are found by the id of the row, exactly, in bounded memory.

Which      one report per id and question counts: among several rows the one whose reports are the smallest as bytes,
           in sequence, so that neither engine nor the order of files matters. If files with different
           questions share an id, each question has the smallest of its reports
Epochs     a file that names its epoch has ids of that epoch: the same id of another epoch is another submission
Conflicts  an id with different reports is listed: the same submission cannot have been randomized twice
How        rows go to partitions on disk, by a keyed hash of the id that outsiders cannot control; then each partition
           is sorted separately. Two passes, both by all workers. Spark's executors do the same, with the partitions of
           its shuffle
Memory     rows of one partition per worker, about 64 MiB of them, however often one id repeats; the disk holds id,
           place and reports of every row, in the directory for temporary files
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
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
from deniable.protocols.reports import Bytes

PARTITION_BYTES = 1 << 26
CHUNK_BYTES = 1 << 26
MOST_PARTITIONS = 1 << 12
PARTITIONS_OF_A_PIPE = 1 << 8
_SHOWN = 5
_KEY = ID_BYTES + 8
"""Id and epoch."""
_HEAD = _KEY + 8
"""And the number of the file."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The number of duplicates that were left out, and the conflicts."""

    rows: int = 0
    """Rows with a report that was not counted because another row had the same id."""
    conflicts: int = 0
    """Ids that came with different reports."""
    examples: tuple[str, ...] = ()
    """Some of these ids, in hexadecimal."""

    def __add__(self, other: Duplicates) -> Duplicates:
        examples = tuple(sorted({*self.examples, *other.examples})[:_SHOWN])
        return Duplicates(self.rows + other.rows, self.conflicts + other.conflicts, examples)


@dataclass(frozen=True, slots=True)
class Spread:
    """How rows are spread over partitions."""

    partitions: int
    keys: tuple[int, int]

    @classmethod
    def over(cls, places: list[Place], least: int = 1) -> Spread:
        """Enough partitions to keep each of them small."""
        size = sum(place.size or 0 for place in places)
        # Compressed reports may be a few times longer when they are read.
        partitions = max(least, -(-3 * size // PARTITION_BYTES))
        if any(place.once for place in places):
            partitions = max(partitions, PARTITIONS_OF_A_PIPE)  # the size of the input is unknown
        return cls(min(MOST_PARTITIONS, partitions), (secrets.randbits(64) | 1, secrets.randbits(64) | 1))

    def of(self, ids: Bytes) -> NDArray[np.int64]:
        words: NDArray[np.uint64] = np.ascontiguousarray(ids).view("<u8")
        mixed: NDArray[np.uint64] = words[:, 0] * np.uint64(self.keys[0]) + words[:, 1] * np.uint64(self.keys[1])
        # Multiplication carries upwards only: the top bits depend on the whole id.
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(52)).astype(np.int64) % self.partitions

    def pieces(self, layout: Layout, rows: IdRows, number: int) -> Iterator[tuple[int, str, bytes]]:
        """Partition, shape and records of the rows of a file; the shape tells which questions the records have."""
        part = self.of(rows.ids)
        sorting = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[sorting], np.arange(self.partitions + 1))
        columns = [name for name in layout.protocols if name in rows.reports]
        shape = format(sum(1 << place for place, name in enumerate(layout.protocols) if name in rows.reports), "x")
        head = np.array([[-1 if rows.epoch is None else rows.epoch, number]], dtype="<i8").view(np.uint8)
        heads = np.broadcast_to(head, (len(rows.ids), head.shape[1]))
        records = np.hstack([rows.ids, heads, *(rows.reports[name] for name in columns)])[sorting]
        for partition in np.flatnonzero(np.diff(ends)).tolist():
            yield partition, shape, records[ends[partition] : ends[partition + 1]].tobytes()


@dataclass(frozen=True, slots=True)
class IdRows:
    """Some rows of a file."""

    ids: Bytes
    reports: dict[str, Bytes]
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Spool:
    """The directory for rows between the two passes."""

    folder: Path
    spread: Spread
    numbers: dict[str, int]
    """The number of each file in the order of the inputs."""

    def write(self, layout: Layout, rows: IdRows, number: int) -> None:
        for partition, shape, data in self.spread.pieces(layout, rows, number):
            _append(self.path(partition, shape), data)

    def path(self, partition: int, shape: str) -> Path:
        return self.folder / f"{partition}-{shape}"

    def shapes(self) -> list[str]:
        return sorted({path.name.partition("-")[2] for path in self.folder.iterdir()})


def count_once(
    layout: Layout, places: list[Place], workers: int, progress: Progress | None
) -> tuple[Gathered, Duplicates]:
    """The tallies of all files, with one report per id and question."""
    layout.check_ids()
    for place in places:
        # Refused before the work, if the name shows that it is a tally.
        if place.name.endswith(".json") and not place.once:
            with suppress(OSError), said_of(place.name), closing(Source.open(place.name)) as source:
                if source.is_json:
                    raise _tally(source.name)
    with tempfile.TemporaryDirectory(prefix="deniable-") as folder:
        numbers = {place.name: number for number, place in enumerate(places)}
        spool = Spool(Path(folder), Spread.over(places), numbers)
        done = _spread(layout, spool, places, workers, sum(place.size or 0 for place in places), progress)
        refused = frozenset(numbers[name] for name in done.refused)
        tasks, shared = range(spool.spread.partitions), (layout, spool, spool.shapes(), refused)
        total: Tallies = {}
        duplicates = Duplicates()
        found = (
            ((task, _settle(shared, task)) for task in tasks)
            if workers == 1
            else run_all(_settle, shared, tasks, workers, fork=forks(places))
        )
        for _, (tallies, twice) in found:
            total = add_up(total, tallies, "the files")
            duplicates = duplicates + twice
    done.tallies = total
    return done, duplicates


def _spread(layout: Layout, spool: Spool, places: list[Place], workers: int, size: int, progress: Any) -> Gathered:
    """The first pass; its result has rows and refusals, and no tallies yet."""
    done = Gathered()
    seen_bytes = 0
    here = [Unit(place) for place in places if place.once or workers == 1]
    units = cut([place for place in places if not place.once], workers) if workers > 1 else []

    def again() -> None:
        # A killed worker may have left half a row: everything is written again.
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

    # Inputs that can be read only once come last, when no worker can die any more.
    if units:
        for unit, found in run_all(_spread_unit, (layout, spool), units, workers, again, forks(places)):
            take(unit, found)
    for unit in here:
        take(unit, _spread_unit((layout, spool), unit))
    return done


def _spread_unit(shared: tuple[Layout, Spool], unit: Unit) -> Counted | Refused:
    layout, spool = shared
    name = unit.place.name
    try:
        done = 0
        for rows in unit_rows(layout, unit):
            spool.write(layout, rows, spool.numbers[name])
            done += len(rows.ids)
        return Counted(unit, done, {})
    except OSError as wrong:
        if wrong.filename is not None and str(wrong.filename).startswith(str(spool.folder)):
            raise  # the disk for temporary files, not the file that was read
        return Refused(name, wrong)
    except MixtureError:
        raise  # a sum without it would not be the requested one
    except DeniableError as wrong:
        return Refused(name, wrong)


class MixtureError(ReportError):
    """A tally among files that are checked for duplicates."""


def _tally(name: str) -> MixtureError:
    return MixtureError(
        f"{name} is a tally: it has no ids by which duplicates could be found; count the reports alone with --dedupe, "
        "then add the tallies without it"
    )


def unit_rows(layout: Layout, unit: Unit) -> Iterator[IdRows]:
    """The rows of a unit with their ids, all well-formed. Raises an error if the whole file is unusable."""
    with said_of(unit.place.name), closing(Source.open(unit.place.name)) as source:
        if source.is_json:
            raise _tally(source.name)
        rows = 0
        for batch in read_batches(source, layout.target, ids=True, part=(unit.part, unit.parts)):
            ids = batch.pop(ID)
            start = source.taken - len(ids) if source.is_parquet else rows
            for name, reports in batch.items():
                if not layout.protocols[name].valid(reports).all():
                    raise malformed(layout.protocols[name], reports, start, name, source.name)
            yield IdRows(ids, batch, source.epoch)
            rows += len(ids)


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


def _settle(shared: tuple[Layout, Spool, list[str], frozenset[int]], partition: int) -> tuple[Tallies, Duplicates]:
    layout, spool, shapes, refused = shared
    paths = {shape: spool.path(partition, shape) for shape in shapes}
    chunks = {shape: _chunks(layout, shape, path, refused) for shape, path in paths.items() if path.exists()}
    return settled(layout, chunks)


def _chunks(layout: Layout, shape: str, path: Path, refused: frozenset[int]) -> Iterator[Bytes]:
    """The records of a spool file, some at a time, without those of refused files."""
    width = _width(layout, shape)
    with open(path, "rb") as file:
        while data := file.read(max(1, CHUNK_BYTES // width) * width):
            records = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
            if refused:
                number = np.ascontiguousarray(records[:, _KEY:_HEAD]).view(np.int64)[:, 0]
                records = records[~np.isin(number, np.fromiter(refused, np.int64))]
            yield records


def held(layout: Layout, shape: str) -> dict[str, slice]:
    """The position of the reports of each question in the records of a shape."""
    found, at = {}, _HEAD
    for place, (name, protocol) in enumerate(layout.protocols.items()):
        if int(shape, 16) >> place & 1:
            found[name] = slice(at, at + protocol.report_bytes)
            at += protocol.report_bytes
    return found


def _width(layout: Layout, shape: str) -> int:
    return max((place.stop for place in held(layout, shape).values()), default=_HEAD)


def records_of(layout: Layout, shape: str, data: bytes) -> Bytes:
    """Records converted back to rows."""
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, _width(layout, shape))


def settled(layout: Layout, shapes: Mapping[str, Iterable[Bytes]]) -> tuple[Tallies, Duplicates]:
    """The tallies of one report per id and question, and the duplicates; `shapes` has the records of each shape."""
    kept: dict[str, Bytes] = {}
    left, torn = 0, set[bytes]()
    for shape, chunks in shapes.items():
        least, differs = np.empty((0, _width(layout, shape)), dtype=np.uint8), np.empty(0, dtype=np.bool_)
        for records in chunks:
            both = np.concatenate([differs, np.zeros(len(records), dtype=np.bool_)])
            before = len(least) + len(records)
            least, differs = _least_of_each(np.concatenate([least, records]), both)
            left += before - len(least)
        kept[shape] = least
        torn |= {record[:ID_BYTES].tobytes() for record in least[differs]}
    again = {shape: np.zeros(len(records), dtype=np.bool_) for shape, records in kept.items()}
    tallies: Tallies = {}
    for name, protocol in layout.protocols.items():
        holding = {shape: records for shape, records in kept.items() if name in held(layout, shape)}
        if not holding:
            continue
        reports = [np.ascontiguousarray(records[:, held(layout, shape)[name]]) for shape, records in holding.items()]
        if len(holding) > 1:
            found = _across(holding, reports, again)
            reports, torn = found[0], torn | found[1]
        tallies[name] = protocol.tally(np.concatenate(reports), layout.source(name))
    examples = tuple(sorted(id.hex() for id in torn)[:_SHOWN])
    return tallies, Duplicates(left + sum(int(some.sum()) for some in again.values()), len(torn), examples)


def _across(
    holding: dict[str, Bytes], reports: list[Bytes], again: dict[str, NDArray[np.bool_]]
) -> tuple[list[Bytes], set[bytes]]:
    """One report per id from shapes that share a question, and the ids with different ones.

    `again` collects the records with a report that is not counted.
    """
    pairs = zip(holding.values(), reports, strict=True)
    whole = np.concatenate([np.hstack([records[:, :_HEAD], own]) for records, own in pairs])
    places = np.arange(len(whole), dtype="<i8")
    whole[:, _KEY:_HEAD] = places[:, None].view(np.uint8)
    least, differs = _least_of_each(whole, np.zeros(len(whole), dtype=np.bool_))
    chosen = np.zeros(len(whole), dtype=np.bool_)
    chosen[np.ascontiguousarray(least[:, _KEY:_HEAD]).view("<i8")[:, 0]] = True
    for shape, some in zip(holding, np.split(chosen, np.cumsum([len(own) for own in reports])[:-1]), strict=True):
        again[shape] |= ~some
    return [np.ascontiguousarray(least[:, _HEAD:])], {record[:ID_BYTES].tobytes() for record in least[differs]}


def _least_of_each(records: Bytes, torn: NDArray[np.bool_]) -> tuple[Bytes, NDArray[np.bool_]]:
    """For each id and epoch the record with the smallest reports, and whether its records differ."""
    if not len(records):
        return records, torn
    words = np.ascontiguousarray(records[:, :_KEY]).view("<u8")
    sorting = np.lexsort(words.T)
    records, words, torn = records[sorting], words[sorting], torn[sorting]
    new = np.ones(len(records), dtype=np.bool_)
    new[1:] = (words[1:] != words[:-1]).any(axis=1)
    if new.all():
        return records, torn
    first, group = np.flatnonzero(new), np.cumsum(new) - 1
    differs = (records[:, _HEAD:] != records[first[group], _HEAD:]).any(axis=1)
    torn = np.logical_or.reduceat(differs | torn, first)
    if differs.any():
        several = np.zeros(len(first), dtype=np.bool_)
        several[group[differs]] = True
        which = np.flatnonzero(several[group])
        # Bytes are compared from left to right; all have the same length, so that trailing zeros do no harm.
        reports = np.ascontiguousarray(records[which, _HEAD:]).view(f"S{records.shape[1] - _HEAD}")[:, 0]
        which = which[np.lexsort((reports, group[which]))]
        begins = np.ones(len(which), dtype=np.bool_)
        begins[1:] = group[which][1:] != group[which][:-1]
        first[group[which[begins]]] = which[begins]
    return records[first], torn
