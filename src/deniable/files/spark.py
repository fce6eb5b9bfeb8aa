"""The Spark engine: the same integers, counted on a cluster.

Files      a list of units goes to the executors; each reads its files with pyarrow and returns tallies, which are
           merged in a tree. Rows never pass through the JVM. All executors must reach the files by the same names
Once       duplicates are found as by the local engine, with the partitions of Spark's shuffle instead of files
Frames     reports in a DataFrame that does not come from files pass as Arrow batches; each partition returns one tally
Sessions   local[*], spark://, yarn, k8s by RDDs; sc:// (Spark Connect) has no RDDs and uses mapInArrow instead
Executors  need Python with numpy, pyarrow and deniable, whose wheel can be shipped: `connect(wheel=...)`
Failures   tasks are pure: Spark repeats the tasks of a dead executor, and a result is used once
Folders    files that many executors write appear when all are written, or not at all: until the end a name begins with
           a dot and the run's own mark, which readers skip. A folder that holds files is refused: two runs in one
           folder would be counted as one
"""

from __future__ import annotations

import atexit
import math
import operator
import os
import pickle
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from deniable._extras import require
from deniable.errors import DeniableError, DomainError, LabelError, ReportError, SpecError
from deniable.files.answers import as_answers, check_types
from deniable.files.dedupe import Duplicates, MixtureError, Spread, records_of, settled, unit_rows
from deniable.files.local import Outcome, outcome, whole_tally
from deniable.files.places import Place, Refused, below, expand, filesystem, is_url, plain, said_of, shown
from deniable.files.reports import ID, ID_BYTES, Layout, as_arrow, as_bytes, report_writer
from deniable.files.units import Counted, Counters, Gathered, Tallies, Unit, add_up, count_unit, cut
from deniable.protocols.reports import Bytes
from deniable.randomness import SYSTEM
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.tables import Columns, chosen_columns, joined, questions_of, spread

__all__ = [
    "ClusterError",
    "connect",
    "count_files_on",
    "privatize_frame",
    "run_on",
    "ship",
    "tally_files_on",
    "tally_frame",
    "width",
    "write_frame",
]

PARTITIONS_OF_CONNECT = 32
_TREE_FROM = 64
_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}

_WHERE = "a partition"
_ROW = "result"


# -- sessions -------------------------------------------------------------------------------------------


class ClusterError(DeniableError, RuntimeError):
    """A cluster that cannot be reached, or that gave up."""


@contextmanager
def connect(
    master: str | None = None, wheel: str | Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A Spark session, ended with the block

    Args:
        master: Address of the cluster: Spark's master, or sc://host for Spark Connect; this machine if None.
        wheel: Path of a wheel of deniable that is sent to the executors.
        settings: Further settings of Spark.

    Yields:
        The session.

    Raises:
        ClusterError: The cluster cannot be reached.
    """
    with hushed():
        sql = require("pyspark.sql", "spark")
        remote = master is not None and master.startswith("sc://")
        builder = sql.SparkSession.builder.appName("deniable")
        for key, value in {**({} if remote else _QUIET), **(settings or {})}.items():
            builder = builder.config(key, value)
        if master is not None:
            builder = builder.remote(master) if remote else builder.master(master)
        if not remote and (master or "local").startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            session = builder.getOrCreate()
        except Exception as wrong:
            raise ClusterError(_why(master, wrong)) from None
    try:
        if wheel is not None:
            ship(session, wheel)
        yield session
    finally:
        with hushed():
            session.stop()


def _why(master: str | None, wrong: Exception) -> str:
    text = str(wrong)
    if "JAVA_GATEWAY_EXITED" in text or "JAVA_HOME" in text:
        return "Spark did not start: it needs Java 17 or newer, found by JAVA_HOME or on the PATH"
    if "grpc" in text.lower() or isinstance(wrong, ImportError):
        return f"Spark Connect at {master} cannot be used: {text.splitlines()[0][:200]}"
    return f"there is no Spark at {master or 'the default master'}: {(text.splitlines() or ['?'])[0][:200]}"


def ship(session: Any, wheel: str | Path) -> None:
    """Send the wheel of deniable to every executor and put it on Python's path.

    Args:
        session: A Spark session.
        wheel: Path of the wheel.

    Raises:
        ReportError: There is no such file.
    """
    if not os.path.isfile(wheel):
        raise ReportError(f"there is no wheel {str(wheel)!r}: make one with python -m build, or pip wheel")
    # A wheel is a zip archive, but Spark puts it on Python's path only if it has that suffix. Executors fetch it from
    # here when they first need it, so it stays until the end.
    folder = tempfile.mkdtemp(prefix="deniable-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = shutil.copy(wheel, Path(folder) / f"{Path(wheel).stem}.zip")
    if _is_remote(session):
        session.addArtifacts(str(archive), pyfile=True)
    else:
        session.sparkContext.addPyFile(str(archive))


def run_on(session: Any, function: Callable[[Any], Any], tasks: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """merge of function(task) over all tasks, one Spark task each, merged in a tree.

    Args:
        session: A Spark session.
        function: Maps a task to a result.
        tasks: The tasks, one per Spark task.
        merge: Adds two results.

    Returns:
        The merged result.
    """
    with hushed():
        try:
            if not _is_remote(session):
                spread = session.sparkContext.parallelize(tasks, len(tasks)).map(function)
                return spread.treeReduce(merge, depth=2 if len(tasks) >= _TREE_FROM else 1)
            # One row per partition; its number identifies the task.
            numbers = session.range(0, len(tasks), 1, len(tasks))
            found = numbers.mapInArrow(partial(_one_task, function, list(tasks)), f"{_ROW} binary")
            if len(tasks) >= _TREE_FROM:
                few = math.isqrt(len(tasks))
                found = found.repartition(few).mapInArrow(partial(_merged_rows, merge), f"{_ROW} binary")
            return reduce(merge, [pickle.loads(bytes(row[0])) for row in found.collect()])
        except DeniableError:
            raise
        except Exception as wrong:
            raise ClusterError(_last_words(wrong)) from None


def _one_task(function: Callable[[Any], Any], tasks: list[Any], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.record_batch({_ROW: pa.array([pickle.dumps(function(tasks[number]))], pa.binary())})


def _merged_rows(merge: Callable[[Any, Any], Any], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    parts = [pickle.loads(part) for batch in batches for part in batch.column(0).to_pylist()]
    if parts:
        yield pa.record_batch({_ROW: pa.array([pickle.dumps(reduce(merge, parts))], pa.binary())})


def width(session: Any) -> int:
    """Number of tasks that run at once; a Connect client cannot know.

    Args:
        session: A Spark session.

    Returns:
        The number of tasks.
    """
    return PARTITIONS_OF_CONNECT if _is_remote(session) else int(session.sparkContext.defaultParallelism)


def _is_remote(session: Any) -> bool:
    return ".connect." in type(session).__module__


def _last_words(wrong: Exception) -> str:
    """The line of a Java stack trace that describes the error."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    missing = [line for line in lines if "No module named" in line]
    if missing:
        return f"the executors lack a package ({missing[-1][:200]}): install it there, or ship it (see docs/scale.md)"
    return f"Spark gave up: {(telling or lines or [type(wrong).__name__])[-1][:300]}"


@contextmanager
def hushed() -> Iterator[None]:
    """Hide PySpark's warnings about versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def collected(frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]]) -> list[Any]:
    """The results of `function` for each partition, one object per result."""
    with hushed():
        try:
            rows = frame.mapInArrow(partial(_as_rows, function), f"{_ROW} binary").collect()
        except Exception as wrong:
            raise ClusterError(_last_words(wrong)) from None
    return [pickle.loads(bytes(row[0])) for row in rows]


def _as_rows(function: Callable[[Iterator[Any]], Iterator[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    for found in function(batches):
        yield pa.record_batch({_ROW: pa.array([pickle.dumps(found)], pa.binary())})


# -- a folder that many executors write together --------------------------------------------------------


@contextmanager
def new_files(folder: str) -> Iterator[tuple[str, str, Callable[[list[str]], None]]]:
    """The folder by its full name, the prefix of hidden names, and a function that renames files to their final names.

    An error in the block removes the written files.
    """
    place = plain(folder)
    place = place if is_url(place) else os.path.abspath(place)
    with said_of(place):
        files, path = filesystem(place)
        path = path.rstrip("/")
        if any(not _last(entry).startswith((".", "_")) for entry in _inside(files, path)):
            raise ReportError(f"{shown(place)!r} is not empty: reports of two runs would be mixed, name a new folder")
        if not is_url(place):
            files.create_dir(path, recursive=True)
    run = f".{secrets.token_hex(8)}-"
    moved: list[str] = []

    def show(names: list[str]) -> None:
        with said_of(place):
            for name in names:
                moved.append(name)
                files.move(f"{path}/{run}{name}", f"{path}/{name}")

    try:
        yield place, run, show
    except BaseException:
        for name in moved:
            with suppress(Exception):
                files.delete_file(f"{path}/{name}")
        raise
    finally:
        with suppress(Exception):
            for entry in _inside(files, path):
                if _last(entry).startswith(run):
                    files.delete_file(entry.path)


def _inside(files: Any, path: str) -> list[Any]:
    fs = require("pyarrow.fs", "files")
    return list(files.get_file_info(fs.FileSelector(path, allow_not_found=True)))


def _last(entry: Any) -> str:
    return str(entry.path).rstrip("/").rpartition("/")[2]


# -- what an executor does with the Arrow batches of a partition ----------------------------------------


def check_names(held: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a frame without a wanted column, before Spark does so at length. Like Spark, ignores case."""
    names = list(held)
    known = {name.lower() for name in names}
    for name in wanted:
        if name.lower() not in known:
            raise LabelError(f"the frame has no column {name!r}; it has {', '.join(map(repr, names)) or 'none'}")


def counted_batches(layout: Layout, columns: Columns, batches: Iterator[Any]) -> Iterator[Gathered]:
    """The tallies of a partition, treated like a file: counted as a whole, or refused."""
    done, counters = Gathered(files=1), Counters(layout, _WHERE)
    try:
        for batch in batches:
            for id, column in columns.items():
                rows = fixed_rows(batch.column(column), layout.protocols[id].report_bytes, column, done.rows)
                counters.add(id, rows, done.rows)
            done.rows += batch.num_rows
        done.tallies = counters.tallies()
    except DeniableError as wrong:
        done = Gathered(refused={_WHERE: Refused(_WHERE, wrong)})
        for _ in batches:
            pass  # Spark expects that every batch is read
    yield done


def fixed_rows(column: Any, width: int, name: str, row: int) -> Bytes:
    """Rows of bytes from binary values, which must all have the same length; a view if possible."""
    pa, pc = require("pyarrow", "files"), require("pyarrow.compute", "files")
    if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == width:
        return as_bytes(column, name, row, _WHERE)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise ReportError(f"column {name!r} holds {column.type}, not reports of {width} bytes")
    right = pc.fill_null(pc.equal(pc.binary_length(column), width), False).to_numpy(zero_copy_only=False)
    if not right.all():
        place = row + int(np.argmin(right)) + 1
        raise ReportError(f"row {place} of {_WHERE}, column {name!r}: a report has {width} bytes")
    if not len(column):
        return np.empty((0, width), dtype=np.uint8)
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    start = int(np.frombuffer(column.buffers()[1], dtype=kind)[column.offset])
    flat = np.frombuffer(column.buffers()[2], dtype=np.uint8)
    return flat[start : start + len(column) * width].reshape(len(column), width)


def privatized_batches(layout: Layout, columns: Columns, keep: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """Reports for the answers of each batch, next to the kept columns."""
    pa = require("pyarrow", "files")
    for batch in batches:
        arrays = {name: batch.column(name) for name in keep}
        for id, reports in _randomized(layout, columns, batch).items():
            arrays[id] = as_arrow(pa, reports).cast(pa.binary())
        yield pa.record_batch(arrays)


def written_batches(
    layout: Layout, columns: Columns, folder: str, run: str, ids: bool, batches: Iterator[Any]
) -> Iterator[tuple[str, int] | DeniableError]:
    """Reports for the answers of a partition, in a separate file, hidden by `run`; returns its name and rows."""
    name = f"part-{require('pyspark', 'spark').TaskContext.get().partitionId():05d}.parquet"
    rows = 0
    try:
        held = questions_of(columns)
        with report_writer(below(folder, run + name), layout.target, held, ids=ids) as writer:
            for batch in batches:
                reports = _randomized(layout, columns, batch)
                if ids:
                    drawn = np.frombuffer(SYSTEM.take(ID_BYTES * batch.num_rows), dtype=np.uint8)
                    reports[ID] = drawn.reshape(-1, ID_BYTES)
                writer.write(reports)
                rows += batch.num_rows
        yield name, rows
    except DeniableError as wrong:
        for _ in batches:
            pass
        yield wrong


def _randomized(layout: Layout, columns: Columns, batch: Any) -> dict[str, Bytes]:
    reports = {}
    domains = {id: layout.protocols[id].domain for id in questions_of(columns)}
    check_types(batch.schema, columns, domains, "the frame")
    for id, column in joined({key: batch.column(name) for key, name in columns.items()}).items():
        try:
            if isinstance(column, dict):
                column = {part: as_answers(dict(domains[id].columns)[part], one, True) for part, one in column.items()}
            else:
                column = as_answers(domains[id], column, True)
            reports[id] = layout.protocols[id].privatize(column, SYSTEM).array
        except DomainError as wrong:
            # The row number would be useless in a partition, and the answer itself is private.
            raise DomainError(f"column {columns.get(id, id)!r}: {wrong}") from None
    return reports


# -- files ----------------------------------------------------------------------------------------------


def count_files_on(
    session: Any,
    target: Survey,
    inputs: Iterable[str | Path],
    strict: bool = False,
    partitions: int | None = None,
    dedupe: bool = False,
) -> Outcome:
    """The result of `count_files`, counted by the executors of a session.

    With `dedupe` files are read twice: once to find out which of them are refused, and once to bring the rows of each
    id together.

    Args:
        session: A Spark session.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        inputs: Paths, directories, patterns or URLs that every executor can read.
        strict: Whether refused files raise an error that names all of them, instead of being left out.
        partitions: Number of tasks; chosen by the size of the cluster if None.
        dedupe: Whether only one report per id and question is counted; files are then read twice.

    Returns:
        The tally, with numbers of rows and files.
    """
    layout, found = Layout(target), expand(inputs)
    if dedupe:
        layout.check_ids()
    found = [_refuse_once(entry) for entry in found]
    places = [_absolute(entry) for entry in found if isinstance(entry, Place)]
    wide = partitions or width(session)
    units = cut(places, max(2, wide))
    split = {unit.place.name: unit.parts for unit in units if unit.parts > 1}
    done, duplicates = Gathered(), Duplicates() if dedupe else None
    if units:
        work = partial(_look if dedupe else _gather, layout)
        done = run_on(session, work, _dealt(units, _hands(units, wide)), partial(_merge, split))
        for refusal in done.refused.values():
            if isinstance(refusal.error, MixtureError):
                raise refusal.error
    good = [unit for unit in units if unit.place.name not in done.refused]
    if dedupe and good:
        done.tallies, duplicates = _count_once_on(session, layout, good, wide)
    found = [_absolute(entry) if isinstance(entry, Place) else entry for entry in found]
    return outcome(layout, done, found, strict, duplicates=duplicates)


def _hands(units: Sequence[Unit], wide: int) -> int:
    return max(1, min(len(units), 4 * wide))


def tally_files_on(session: Any, target: Survey, inputs: Iterable[str | Path]) -> SurveyTally:
    """The result of `tally_files`, counted by the executors of a session.

    Args:
        session: A Spark session.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        inputs: Paths, directories, patterns or URLs that every executor can read.

    Returns:
        The tally of all files.
    """
    return count_files_on(session, target, inputs, strict=True).tally


def _gather(layout: Layout, units: list[Unit]) -> Gathered:
    done = Gathered()
    for unit in units:
        done.add(count_unit(layout, unit))
    return done


def _look(layout: Layout, units: list[Unit]) -> Gathered:
    """The number of rows, and the refused files; tallies come later."""
    done = Gathered()
    for unit in units:
        try:
            rows = sum(len(some.ids) for some in unit_rows(layout, unit))
            done.add(Counted(unit, rows, {}))
        except (OSError, DeniableError) as wrong:
            done.add(Refused(unit.place.name, wrong))
    return done


def _count_once_on(session: Any, layout: Layout, units: list[Unit], wide: int) -> tuple[Tallies, Duplicates]:
    """The tallies of files without errors, with one report per id and question."""
    spread = Spread.over(list({unit.place.name: unit.place for unit in units}.values()), least=wide)
    tasks = _dealt(units, _hands(units, wide))
    with hushed():
        # One row per partition; its number identifies the task; rows of reports are sent many at a time.
        numbers = session.range(0, len(tasks), 1, len(tasks))
        pieces = numbers.mapInArrow(
            partial(_spread_tasks, layout, spread, tasks), "partition int, shape string, records binary"
        )
        together = pieces.repartition(spread.partitions, "partition")
    found = collected(together, partial(_settled_batches, layout))
    total: Tallies = {}
    for tallies, _ in found:
        total = add_up(total, tallies, "the files")
    return total, reduce(operator.add, (duplicates for _, duplicates in found), Duplicates())


def _spread_tasks(layout: Layout, spread: Spread, tasks: list[list[Unit]], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for unit in tasks[number]:
                for rows in unit_rows(layout, unit):
                    pieces = list(zip(*spread.pieces(layout, rows, 0), strict=True))
                    if pieces:
                        columns = zip(pieces, (pa.int32(), pa.string(), pa.binary()), strict=True)
                        arrays = [pa.array(column, kind) for column, kind in columns]
                        yield pa.record_batch(arrays, names=["partition", "shape", "records"])


def _settled_batches(layout: Layout, batches: Iterator[Any]) -> Iterator[tuple[Tallies, Duplicates]]:
    shapes: dict[str, list[Bytes]] = {}
    for batch in batches:
        _, shape, records = (column.to_pylist() for column in batch.columns)
        for name, data in zip(shape, records, strict=True):
            shapes.setdefault(name, []).append(records_of(layout, name, data))
    if shapes:
        yield settled(layout, {shape: [np.concatenate(chunks)] for shape, chunks in shapes.items()})


def _merge(split: dict[str, int], first: Gathered, second: Gathered) -> Gathered:
    return first.merge(second, split)


def _refuse_once(entry: Place | Refused) -> Place | Refused:
    if isinstance(entry, Place) and entry.once:
        return Refused(entry.name, ReportError(f"{entry.name!r} can be read once and only here: use the local engine"))
    return entry


def _absolute(place: Place) -> Place:
    """An absolute place, because executors have another working directory."""
    local = "://" not in place.name
    return Place(os.path.abspath(place.name) if local else place.name, place.size, place.modified)


def _dealt(units: Sequence[Unit], hands: int) -> list[list[Unit]]:
    """Units dealt out like cards, from the largest down, so that every task has about the same amount of work."""
    return [list(units[hand::hands]) for hand in range(hands)]


# -- frames ---------------------------------------------------------------------------------------------


def tally_frame(frame: Any, target: Survey, columns: Columns | None = None) -> SurveyTally:
    """The tally of reports in the binary columns of a DataFrame.

    Args:
        frame: A DataFrame with binary columns of reports.
        target: The survey of the reports; `Survey.of(protocol)` for a protocol alone.
        columns: Column of each question's reports: {"smoke": "smoke_report"}; if None, columns have the ids of the
            questions ("report" for a single protocol).

    Returns:
        The tally.
    """
    layout = Layout(target)
    chosen = _chosen(layout, columns, frame)
    batches = frame.select(*dict.fromkeys(chosen.values()))
    found = collected(batches, partial(counted_batches, layout, chosen))
    done = reduce(partial(_merge, {}), found, Gathered())
    for refusal in done.refused.values():
        raise refusal.error
    return whole_tally(layout, done.tallies)


def privatize_frame(
    frame: Any,
    target: Survey,
    columns: Columns | None = None,
    keep: Iterable[str] = (),
) -> Any:
    """A DataFrame of reports, one binary column per question, for each row of answers.

    Every evaluation draws new noise: write the result once and read it from there, because two evaluations of one
    answer cost twice its epsilon. `write_frame` does that in one step.

    Args:
        frame: A DataFrame of answers.
        target: The survey; `Survey.of(protocol)` for a protocol alone.
        columns: Column of each question; if None, columns have the ids of the questions.
        keep: Names of columns that are passed on unchanged.

    Returns:
        A DataFrame of reports, one binary column per question.
    """
    layout, kept = Layout(target), list(keep)
    _refuse(layout)
    chosen = _asked(layout, columns, frame)
    check_names(frame.columns, kept)
    schema = require("pyspark.sql.types", "spark")
    both = sorted(set(kept) & set(questions_of(chosen)))
    if both:
        raise LabelError(f"the reports would be called like the kept column {both[0]!r}: rename that one first")
    fields = [frame.schema[name] for name in kept]
    fields += [schema.StructField(id, schema.BinaryType(), False) for id in questions_of(chosen)]
    narrowed = frame.select(*dict.fromkeys([*kept, *chosen.values()]))
    with hushed():
        return narrowed.mapInArrow(partial(privatized_batches, layout, chosen, kept), schema.StructType(fields))


def write_frame(
    frame: Any,
    target: Survey,
    folder: str,
    columns: Columns | None = None,
    ids: bool = False,
) -> int:
    """Randomize every row of a DataFrame of answers into report files, one per partition.

    All files appear when the last is written, or
    none: until then their names begin with a dot. A repeated task overwrites the output of its first
    attempt, so that no answer leaves two reports.

    Args:
        frame: A DataFrame of answers.
        target: The survey; `Survey.of(protocol)` for a protocol alone.
        folder: Path or URL that every executor can write, new or empty.
        columns: Column of each question; if None, columns have the ids of the questions.
        ids: Whether each row gets 16 random bytes, which identify a row that is delivered twice.

    Returns:
        The number of rows.
    """
    layout = Layout(target)
    _refuse(layout)
    chosen = _asked(layout, columns, frame)
    narrowed = frame.select(*dict.fromkeys(chosen.values()))
    with new_files(folder) as (place, run, show):
        written = collected(narrowed, partial(written_batches, layout, chosen, place, run, ids))
        for entry in written:
            if isinstance(entry, DeniableError):
                raise entry
        show([name for name, _ in written])
    return sum(rows for _, rows in written)


def _refuse(layout: Layout) -> None:
    """Refuse reports that must not be in a frame, and people whose state executors would have to share."""
    layout.refuse_shares()
    try:
        layout.refuse_without_panel()
    except SpecError:
        raise SpecError(
            "this survey keeps a state per person between epochs, which Spark's executors do not share: write the "
            "answers to files, one per epoch, and use deniable privatize --person COLUMN --epoch 1 --state FILE"
        ) from None


def _chosen(layout: Layout, columns: Columns | None, frame: Any) -> dict[str, str]:
    chosen = chosen_columns(layout.protocols, columns)
    check_names(frame.columns, chosen.values())
    return chosen


def _asked(layout: Layout, columns: Columns | None, frame: Any) -> dict[str, str]:
    """The columns of the answers; a record may have one per part."""
    domains = {id: protocol.domain for id, protocol in layout.protocols.items()}
    chosen = spread(chosen_columns(layout.protocols, columns), domains, frame.columns)
    check_names(frame.columns, chosen.values())
    return chosen
