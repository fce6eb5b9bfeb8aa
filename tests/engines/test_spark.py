"""Spark: the same integers from a local session, a standalone cluster whose worker is killed, and Spark Connect.

Sessions live in processes of their own, because PySpark cannot change from one kind to another within one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.engines import write_reports
from deniable.engines.frames import counted_batches, fixed_rows, privatized_batches
from deniable.engines.layout import Layout
from deniable.errors import DomainError, ReportError
from deniable.protocols import GRR, Protocol
from deniable.randomness import Simulation
from tests.conformance.protocol_registry import PROTOCOL_CASES
from tests.engines.cluster import SETTINGS, cluster, connect_server, need_spark
from tests.engines.files import SURVEY, answers

ROOT = Path(__file__).parents[2]

SCRIPT = """
import json, sys, time
from pathlib import Path

from deniable.engines.spark import ClusterError, connect, count_files_on, privatize_frame, tally_frame, write_frame
from deniable.engines import count_files
from deniable.protocols import load
from tests.engines.files import SURVEY, answers

master, folder, settings, wait = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), float(sys.argv[4])
found = {}
with connect(master, settings=settings) as session:
    print("started", flush=True)
    specs = sorted(folder.glob("*.json"))
    for path in specs:
        protocol = load(json.loads(path.read_text()))
        outcome = count_files_on(session, protocol, [path.with_suffix("")])
        found[path.stem] = [outcome.tally.spec(), outcome.files, [r.reason for r in outcome.refused]]
        print("counted", path.stem, flush=True)
        time.sleep(wait)
    given = answers(200)
    rows = [(smoke, age) for smoke, age in zip(given["smoke"], given["age"])]
    frame = session.createDataFrame(rows, "smoke string, age int").repartition(3)
    from deniable.surveys import Survey

    survey = Survey("part", SURVEY.questions[:2])
    written = write_frame(frame, survey, str(folder / "written"), ids=True)
    files = count_files(survey, [folder / "written"], dedupe=True)
    reports = privatize_frame(frame, survey)
    tally = tally_frame(reports, survey)
    found["frames"] = [written, files.tally["age"].n, tally["smoke"].n, sorted(reports.columns)]
    refusals = []
    for work in (
        lambda: tally_frame(frame.selectExpr("cast(smoke as binary) smoke", "cast(smoke as binary) age"), survey),
        lambda: write_frame(frame.selectExpr("'SECRET' smoke", "age"), survey, str(folder / "bad")),
    ):
        try:
            work()
        except Exception as wrong:
            refusals.append([type(wrong).__name__, str(wrong)])
    found["refusals"] = refusals
    from deniable.engines.studies import by_spark, grid, run_study

    cells = grid(["GRR", "OLH"], ["1", "2"], [1000], [8], runs=3)
    here, there = run_study(cells), run_study(cells, engine=by_spark(session))
    found["studies"] = [[a.cell == b.cell and a.variance == b.variance for a, b in zip(here, there)], len(there)]
(folder / "found").write_text(json.dumps(found))
"""


def reports(protocol: Protocol, rows: int, seed: int) -> Any:
    labels = list(protocol.domain.labels)
    return protocol.privatize([labels[i * i % len(labels)] for i in range(rows)], Simulation(seed))


def prepared(folder: Path) -> dict[str, Any]:
    """A directory of three files for every protocol, one of them cut off; and the tally of the good ones."""
    expected = {}
    for number, case in enumerate(PROTOCOL_CASES):
        protocol = case.build(case.epsilon)
        own = folder / f"{number:02d}"
        own.mkdir()
        made = reports(protocol, 600, number)
        for part in range(3):
            write_reports(own / f"{part}.parquet", protocol, [{"report": made[part * 200 : part * 200 + 200]}])
        (own / "torn.parquet").write_bytes((own / "0.parquet").read_bytes()[:-10])
        own.with_suffix(".json").write_text(json.dumps(protocol.spec()))
        expected[own.name] = protocol.tally(made).spec()
    return expected


def start(master: str, folder: Path, settings: dict[str, str], wait: float = 0.0) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, str(folder / "script.py"), master, str(folder), json.dumps(settings), str(wait)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder
    )


def finished(process: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err[-4000:]
    content: dict[str, Any] = json.loads((folder / "found").read_text())
    return content


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, tally in expected.items():
        assert found[name][0] == tally, name
        assert found[name][1] == 3
        assert len(found[name][2]) == 1
        assert "truncated or damaged" in found[name][2][0]
    assert found["frames"] == [200, 200, 200, ["age", "smoke"]]
    (first, words), (second, more) = found["refusals"]
    assert (first, second) == ("ReportError", "DomainError")
    assert "a report has 1 bytes" in words or "a report has 3 bytes" in words
    assert "is not one of" in more
    assert "SECRET" not in more
    assert found["studies"] == [[True] * 4, 4]


def test_a_local_session_gives_the_same_integers(tmp_path: Path) -> None:
    need_spark()
    expected = prepared(tmp_path)
    found = finished(start("local[2]", tmp_path, {"spark.ui.enabled": "false"}), tmp_path)
    check(found, expected)
    # The comparison could fail: another protocol's tally is another one.
    with pytest.raises(AssertionError):
        check(found, {"00": expected["01"]})


@pytest.mark.slow
def test_a_cluster_of_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    need_spark()
    expected = prepared(tmp_path)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as running:
        process = start(running.url, tmp_path, SETTINGS, wait=0.3)
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line.strip())
            if line.startswith("counted 03"):
                break
        assert seen[-1] == "counted 03", process.stderr.read()[-3000:] if process.stderr else seen
        # In the middle of the job, between and within the next protocols.
        time.sleep(0.35)
        running.kill_worker(0)
        check(finished(process, tmp_path), expected)


@pytest.mark.slow
def test_spark_connect(tmp_path: Path) -> None:
    need_spark()
    pytest.importorskip("grpc", reason="needs deniable[connect]")
    expected = prepared(tmp_path)
    (tmp_path / "server").mkdir()
    with connect_server(tmp_path / "server") as url:
        check(finished(start(url, tmp_path, {}), tmp_path), expected)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    need_spark()
    protocol = GRR(4, 1)
    made = reports(protocol, 500, 1)
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.spec()))
    write_reports(tmp_path / "reports.parquet", protocol, [{"report": made}])
    done = subprocess.run(
        [Path(sys.executable).with_name("deniable"), "tally", "protocol.json", "reports.parquet", "nowhere.parquet",
         "--engine", "spark", "--master", "local[2]", "-o", "tally.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "not counted: 'nowhere.parquet': No such file" in done.stderr
    assert json.loads((tmp_path / "tally.json").read_text()) == protocol.tally(made).spec()


# -- what an executor does, without Spark --------------------------------------------------------------


def test_reports_in_frames_of_any_binary_type() -> None:
    import pyarrow as pa

    protocol = GRR(1000, 1)
    made = reports(protocol, 100, 1)
    rows = [row.tobytes() for row in made.array]
    for kind in (pa.binary(), pa.large_binary(), pa.binary(2)):
        column = pa.array([b"xx", *rows], kind)[1:]
        assert np.array_equal(fixed_rows(column, 2, "report", 0), made.array)
        batch = pa.record_batch({"r": column})
        (found,) = counted_batches(Layout(protocol), {"report": "r"}, iter([batch, batch]))
        assert found.tallies["report"] == protocol.tally(made) + protocol.tally(made)
    for bad, words in (
        (pa.array([b"ab", None], pa.binary()), "row 2"),
        (pa.array([b"abc"]), "has 2 bytes"),
        (pa.array([1]), "holds int64"),
    ):
        with pytest.raises(ReportError, match=words):
            fixed_rows(bad, 2, "report", 0)
    (found,) = counted_batches(Layout(protocol), {"report": "r"}, iter([pa.record_batch({"r": [b"\xff\xff"]})]))
    assert not found.tallies
    assert "no report of GRR" in found.refused["a partition"].reason


def test_randomized_frames_keep_what_they_are_told() -> None:
    import pyarrow as pa

    given = answers(50)
    batch = pa.record_batch({"who": list(range(50)), "s": given["smoke"], "age": given["age"]})
    chosen = {"smoke": "s", "age": "age"}
    (made,) = privatized_batches(Layout(SURVEY), chosen, ["who"], iter([batch]))
    assert made.schema.names == ["who", "smoke", "age"]
    assert made.column("who").equals(batch.column("who"))
    assert {len(report) for report in made.column("age").to_pylist()} == {SURVEY["age"].protocol.report_bytes}
    bad = pa.record_batch({"who": [1], "s": ["SECRET"], "age": [20]})
    with pytest.raises(DomainError, match="column 's'") as refused:
        list(privatized_batches(Layout(SURVEY), chosen, [], iter([bad])))
    assert "SECRET" not in str(refused.value)
