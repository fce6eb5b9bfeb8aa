"""Spark sessions, and work that is spread over them: a function of a task, merged in a tree.

Sessions   local[*], spark://, yarn, k8s by RDDs; sc:// (Spark Connect) has none and gets the same through mapInArrow
Executors  need Python with numpy, pyarrow and deniable, whose wheel can be shipped: `connect(wheel=...)`
Failures   tasks are pure: Spark repeats what a dead executor had, and a result is taken once
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any

from deniable._extras import require
from deniable.engines.layout import REPORT
from deniable.errors import DeniableError, ReportError

PARTITIONS_OF_CONNECT = 32
_TREE_FROM = 64
_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


class ClusterError(DeniableError, RuntimeError):
    """A cluster that cannot be reached, or that gave up."""


@contextmanager
def connect(
    master: str | None = None, wheel: str | Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A Spark session, ended with the block; `wheel` is shipped to the executors."""
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
    """Send the wheel of deniable to every executor, where it goes on Python's path."""
    if not os.path.isfile(wheel):
        raise ReportError(f"there is no wheel {str(wheel)!r}: make one with python -m build, or pip wheel")
    # A wheel is a zip archive, but Spark puts it on Python's path only if it is called one. Executors fetch it from
    # here when they first need it, so it stays until the end.
    folder = tempfile.mkdtemp(prefix="deniable-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = shutil.copy(wheel, Path(folder) / f"{Path(wheel).stem}.zip")
    if _is_remote(session):
        session.addArtifacts(str(archive), pyfile=True)
    else:
        session.sparkContext.addPyFile(str(archive))


def run_on(session: Any, function: Callable[[Any], Any], tasks: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """merge of function(task) over all tasks, one Spark task each, merged in a tree."""
    with hushed():
        try:
            if not _is_remote(session):
                spread = session.sparkContext.parallelize(tasks, len(tasks)).map(function)
                return spread.treeReduce(merge, depth=2 if len(tasks) >= _TREE_FROM else 1)
            # One row a partition, whose number says which task it is.
            numbers = session.range(0, len(tasks), 1, len(tasks))
            found = numbers.mapInArrow(partial(_one_task, function, list(tasks)), f"{REPORT} binary")
            if len(tasks) >= _TREE_FROM:
                few = math.isqrt(len(tasks))
                found = found.repartition(few).mapInArrow(partial(_merged_rows, merge), f"{REPORT} binary")
            return reduce(merge, [pickle.loads(bytes(row[0])) for row in found.collect()])
        except DeniableError:
            raise
        except Exception as wrong:
            raise ClusterError(_last_words(wrong)) from None


def _one_task(function: Callable[[Any], Any], tasks: list[Any], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.record_batch({REPORT: pa.array([pickle.dumps(function(tasks[number]))], pa.binary())})


def _merged_rows(merge: Callable[[Any, Any], Any], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    parts = [pickle.loads(part) for batch in batches for part in batch.column(0).to_pylist()]
    if parts:
        yield pa.record_batch({REPORT: pa.array([pickle.dumps(reduce(merge, parts))], pa.binary())})


def width(session: Any) -> int:
    """How many tasks run at once; a Connect client cannot know."""
    return PARTITIONS_OF_CONNECT if _is_remote(session) else int(session.sparkContext.defaultParallelism)


def _is_remote(session: Any) -> bool:
    return ".connect." in type(session).__module__


def _last_words(wrong: Exception) -> str:
    """The line of a long Java story that says what happened."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    missing = [line for line in lines if "No module named" in line]
    if missing:
        return f"the executors lack a package ({missing[-1][:200]}): install it there, or ship it (see docs/scale.md)"
    return f"Spark gave up: {(telling or lines or [type(wrong).__name__])[-1][:300]}"


@contextmanager
def hushed() -> Iterator[None]:
    """PySpark warns of versions of pandas, of which nothing here makes use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def collected(frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]]) -> list[Any]:
    """What each partition gives, as an object."""
    with hushed():
        try:
            rows = frame.mapInArrow(partial(_as_rows, function), f"{REPORT} binary").collect()
        except Exception as wrong:
            raise ClusterError(_last_words(wrong)) from None
    return [pickle.loads(bytes(row[0])) for row in rows]


def _as_rows(function: Callable[[Iterator[Any]], Iterator[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "files")
    for found in function(batches):
        yield pa.record_batch({REPORT: pa.array([pickle.dumps(found)], pa.binary())})
