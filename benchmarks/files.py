"""Benchmarks of files: reports to tallies, against pyarrow that merely reads them, and on Spark."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.registry import Case, Size, UnavailableError, at_most, benchmark, cost, faster, work
from deniable.files import count_files, report_writer, tally_files
from deniable.files.places import expand
from deniable.files.units import Unit, cut, run_all
from deniable.protocols import GRR, OUE, Protocol
from deniable.randomness import Simulation
from deniable.surveys import Survey

GROUP = "files"
ANSWERS = 1024
BLOCK = 1 << 20
# At small sizes the start of processes is most of the time.
WITHIN = at_most(1.5, full_only=True)


@cache
def scratch() -> Path:
    """A directory for this run's files."""
    folder = Path(tempfile.mkdtemp(prefix="deniable-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def files(protocol: Protocol, rows: int, parts: int = 4) -> Path:
    """A directory with `parts` files of reports, `rows` in all."""
    folder = scratch() / f"{protocol.name}-{rows}"
    folder.mkdir()
    bits, rng = Simulation(rows), np.random.default_rng(1)
    for part in range(parts):
        with report_writer(folder / f"{part}.parquet", Survey.of(protocol)) as writer:
            left = rows // parts
            while left:
                count = min(left, BLOCK)
                values = rng.zipf(1.5, count) % protocol.domain.size
                writer.write({"report": np.asarray(protocol.privatize(values, bits))})
                left -= count
    return folder


def read_table(folder: Path, threads: bool = True) -> None:
    import pyarrow.parquet as pq

    pq.read_table(folder, use_threads=threads)


def read_unit(checked: bool, unit: Unit) -> int:
    """What a worker does, without the counting: the batches come and go. It verifies the checksums of pages as well."""
    import pyarrow.parquet as pq

    name = unit.place.name
    with pq.ParquetFile(name, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=checked) as file:
        groups = file.metadata.num_row_groups
        mine = list(range(groups * unit.part // unit.parts, groups * (unit.part + 1) // unit.parts))
        return sum(batch.num_rows for batch in file.iter_batches(BLOCK, row_groups=mine, use_threads=False))


def read_by_processes(folder: Path, workers: int, checked: bool = False) -> None:
    units = cut(expand([folder]), workers)  # type: ignore[arg-type]
    assert sum(rows for _, rows in run_all(read_unit, checked, units, workers)) > 0


def peak(protocol: str, folder: Path) -> int:
    """MiB of a fresh process that tallies with one worker; what `getrusage` says would include its parent's."""
    code = (
        "import sys; from deniable.files import tally_files; from deniable.protocols import GRR, OUE; "
        f"from deniable.surveys import Survey; tally_files(Survey.of({protocol}), [sys.argv[1]]); "
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout) >> 10


def against_reading(protocol: Protocol, rows: int, small: int) -> Case:
    folder, cores = files(protocol, rows), len(os.sched_getaffinity(0))
    text = f"{protocol.name}({ANSWERS}, 1)"
    return Case(
        tasks={
            "tally, all cores": work(lambda: tally_files(Survey.of(protocol), [folder], workers=cores), rows, "report"),
            "pyarrow reads, all cores": work(lambda: read_table(folder), rows, "report"),
            "pyarrow reads, same processes": work(lambda: read_by_processes(folder, cores), rows, "report"),
            "pyarrow reads and verifies": work(lambda: read_by_processes(folder, cores, True), rows, "report"),
            "tally, one core": work(lambda: tally_files(Survey.of(protocol), [folder], workers=1), rows, "report"),
        },
        ratios=[
            cost("tally, all cores", of="pyarrow reads, all cores", goal=WITHIN),
            cost("tally, all cores", of="pyarrow reads, same processes"),
            cost("tally, all cores", of="pyarrow reads and verifies"),
            faster("tally, all cores", than="tally, one core"),
        ],
        facts={
            "reports": f"{rows:,}",
            "bytes in the files": f"{sum(path.stat().st_size for path in folder.iterdir()):,}",
            f"peak memory for {small:,} reports, MiB": peak(text, files(protocol, small)),
            f"peak memory for {rows:,} reports, MiB": peak(text, folder),
        },
    )


@benchmark("engine-grr", "local tally of GRR reports from Parquet, d = 1024", group=GROUP)
def grr(size: Size) -> Case:
    return against_reading(GRR(ANSWERS, 1), size(10**8, 4 * 10**6), size(10**7, 10**6))


@benchmark("engine-oue", "local tally of OUE reports from Parquet, d = 1024", group=GROUP)
def oue(size: Size) -> Case:
    return against_reading(OUE(ANSWERS, 1), size(10**7, 4 * 10**5), size(10**6, 10**5))


@benchmark("engine-scaling", "how the time of a tally grows with the number of reports", group=GROUP)
def scaling(size: Size) -> Case:
    sizes = [size(10**6, 10**5), size(10**7, 10**6), size(10**8, 4 * 10**6)]
    protocol = GRR(ANSWERS, 1)
    facts: dict[str, str | int | float] = {}
    for workers in (1, 2):
        times = []
        for rows in sizes:
            folder = files(protocol, rows)
            times.append(
                min(_timed(lambda f=folder, w=workers: count_files(Survey.of(protocol), [f], w)) for _ in range(5))
            )
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        facts[f"fitted exponent, {workers} worker{'s' * (workers > 1)}"] = round(float(slope), 3)
        shown = ", ".join(f"{rows:.0e}: {taken:.3f} s" for rows, taken in zip(sizes, times, strict=True))
        facts[f"seconds, {workers} worker{'s' * (workers > 1)}"] = shown
    return Case(tasks={}, facts=facts)


@benchmark("engine-spark", "Spark against the local engine, GRR reports from Parquet, d = 1024", group=GROUP)
def spark(size: Size) -> Case:
    rows, protocol = size(10**8, 4 * 10**6), GRR(ANSWERS, 1)
    folder = files(protocol, rows)
    facts: dict[str, str | int | float] = {"reports": f"{rows:,}"}
    for executors in (1, 2):
        start = time.perf_counter()
        with _session(f"local-cluster[{executors},1,1024]") as session:
            if executors == 1:
                facts["seconds to start Java and a session"] = round(time.perf_counter() - start, 1)
            _count_on(session, protocol, folder)
            taken = min(_timed(lambda s=session: _count_on(s, protocol, folder)) for _ in range(5))
        facts[f"warm seconds, {executors} executor{'s' * (executors > 1)} of one core"] = round(taken, 3)
    manager = _session("local[2]")
    session = manager.__enter__()
    atexit.register(manager.__exit__, None, None, None)
    facts["seconds of the first tally of a session"] = round(_timed(lambda: _count_on(session, protocol, folder)), 1)
    return Case(
        tasks={
            "Spark, warm": work(lambda: _count_on(session, protocol, folder), rows, "report"),
            "local engine": work(lambda: tally_files(Survey.of(protocol), [folder], workers=2), rows, "report"),
        },
        ratios=[cost("Spark, warm", of="local engine", goal=at_most(4, full_only=True))],
        facts=facts,
    )


def _session(master: str) -> Any:
    try:
        import pyspark

        from deniable.files.spark import connect
    except ImportError as missing:
        raise UnavailableError(str(missing)) from None
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return connect(master, settings={"spark.ui.enabled": "false"})


def _count_on(session: Any, protocol: Protocol, folder: Path) -> None:
    from deniable.files.spark import count_files_on

    assert count_files_on(session, Survey.of(protocol), [folder]).files == 4


def _timed(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
