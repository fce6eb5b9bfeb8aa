"""Spark: the same integers from a local session, a standalone cluster whose worker is killed, and Spark Connect.

Sessions live in processes of their own, because PySpark cannot change from one kind to another within one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.stores import open_store
from deniable.conformance.protocols import registered_examples
from deniable.errors import DomainError, ReportError
from deniable.files import count_files, write_reports
from deniable.files.local import Outcome
from deniable.files.reports import Layout
from deniable.files.spark import counted_batches, fixed_rows, privatized_batches
from deniable.protocols import GRR, Attributes, Protocol
from deniable.protocols.law import ANY
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey, SurveyTally
from tests.collect.surveys import Crowd, crowd, mixed
from tests.files.cluster import SETTINGS, cluster, connect_server, need_spark
from tests.files.files import SURVEY, answers

ROOT = Path(__file__).parents[2]

SURVEY_OF_ALL = Survey(
    "all",
    [
        Question(f"q{number}", name, protocol)
        for number, (name, protocol) in enumerate(registered_examples())
        if protocol.guarantee.relation == ANY  # those of another relation need surveys of their own
    ],
)
FILES, ROWS = 6, 100
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""A short life does not pay for optimizing, nor for looking at what the compiler made."""

SCRIPT = """
import json, sys, time
from pathlib import Path

from deniable.files.spark import connect, count_files_on
from deniable.surveys import Survey

master, folder, settings, rounds = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
survey = Survey.load(folder / "survey.json")
with connect(master, settings=settings) as session:
    for number in range(rounds):
        print("round", number, flush=True)
        outcome = count_files_on(session, survey, [folder / "reports"])
        result = [outcome.tally.spec(), outcome.files, [refusal.reason for refusal in outcome.refused]]
        with open(folder / "found", "a") as file:
            print(json.dumps(result), file=file)
    if (folder / "more.py").exists():
        exec((folder / "more.py").read_text())
"""

FRAMES = """
import traceback
from deniable.files import count_files
from deniable.files.spark import privatize_frame, tally_frame, write_frame
from deniable.files.studies import by_spark, grid, run_study
from tests.files.files import SURVEY, answers

given = answers(200)
frame = session.createDataFrame(list(zip(given["smoke"], given["age"])), "smoke string, age int").repartition(3)
part = Survey("part", SURVEY.questions[:2])
written = write_frame(frame, part, str(folder / "written"), ids=True)
files = count_files(part, [folder / "written"], dedupe=True)
reports = privatize_frame(frame, part)
frames = [written, files.tally["age"].n, tally_frame(reports, part)["smoke"].n, sorted(reports.columns)]
bad = frame.selectExpr("case when age = 99 then 'SECRET' else smoke end smoke", "age")
refusals = []
for work in (
    lambda: tally_frame(frame.selectExpr("cast(smoke as binary) smoke", "cast(smoke as binary) age"), part),
    lambda: write_frame(bad, part, str(folder / "bad")),
    lambda: write_frame(frame.limit(1), part, str(folder / "written")),
    lambda: write_frame(frame.selectExpr("array(smoke) smoke", "age"), part, str(folder / "lists")),
    lambda: privatize_frame(bad, part).collect(),
):
    try:
        work()
    except Exception as wrong:
        refusals.append([type(wrong).__name__, "".join(traceback.format_exception(wrong))])
cells = grid(["GRR", "OLH"], ["1", "2"], [1000], [8], runs=3)
pairs = zip(run_study(cells), run_study(cells, engine=by_spark(session)))
studies = [a.cell == b.cell and a.variance == b.variance for a, b in pairs]
left = [sorted(path.name for path in (folder / name).iterdir()) for name in ("written", "bad")]
(folder / "more").write_text(json.dumps([frames, refusals, studies, left]))
"""


ONCE = """
asked = Survey.load(folder / "once.json")
one = count_files_on(session, asked, [folder / "once"], dedupe=True)
told, twice = [one.tally.spec(), one.rows, one.files, len(one.refused)], one.duplicates
(folder / "once.found").write_text(json.dumps([told, twice.rows, twice.conflicts, twice.examples]))
"""


def sent_again(folder: Path) -> tuple[Any, list[str]]:
    """What two nodes took, with repeats and with other answers under the same id; returns the tally that a database
    makes of the same submissions, and the ids with other answers."""
    survey = mixed(retention="reports")
    people, other = crowd(survey, 300), crowd(survey, 300, seed=1)
    torn = Crowd(people.ids[:50], other.answers[:50])
    first = [people.batch(survey, 10)]
    # The same ids in another epoch are other submissions.
    second = [people[100:200].batch(survey, 10), torn.batch(survey, 10), people[:20].batch(survey, 11)]
    for node, batches in (("a", first), ("b", second)):
        with open_store(f"files:///{folder / node}") as store:
            store.publish(survey)
            store.add(batches)
        shutil.copytree(folder / node / "parts" / survey.fingerprint / "reports", folder / "once" / node)
    (part, *_) = (folder / "once").rglob("*.parquet")
    (folder / "once" / "torn.parquet").write_bytes(part.read_bytes()[:-10])
    survey.save(folder / "once.json")
    with open_store(f"sqlite:///{folder / 'store.db'}") as store:
        store.publish(survey)
        added = store.add([*first, *second])
        assert sum(one.conflicts for one in added) == 50
        return store.tally(survey.fingerprint).spec(), sorted(id.tobytes().hex() for id in torn.ids)


def summary(counted: Outcome) -> tuple[Any, ...]:
    return counted.tally.spec(), counted.rows, counted.files, len(counted.refused)


def check_once(found: Any, expected: Any, conflicts: list[str]) -> None:
    (tally, rows, files, refused), again, torn, examples = found
    assert tally == expected
    assert (rows, files, refused) == (300 + 100 + 50 + 20, 3, 1)
    assert (again, torn, list(examples)) == (150, 50, conflicts[:5])


def reports(protocol: Protocol, rows: int, seed: int) -> Any:
    labels = [protocol.domain.answer(label) for label, _ in protocol.law().inputs()]
    return protocol.privatize([labels[i * i % len(labels)] for i in range(rows)], Simulation(seed))


def prepared(folder: Path) -> dict[str, Any]:
    """Six files with a column for every protocol, and one that is cut off; and the tally of the good ones."""
    (folder / "reports").mkdir()
    SURVEY_OF_ALL.save(folder / "survey.json")
    made = {q.id: reports(q.protocol, FILES * ROWS, number) for number, q in enumerate(SURVEY_OF_ALL)}
    for part in range(FILES):
        batch = {id: rows[part * ROWS : (part + 1) * ROWS] for id, rows in made.items()}
        write_reports(folder / "reports" / f"{part}.parquet", SURVEY_OF_ALL, [batch])
    torn = (folder / "reports" / "0.parquet").read_bytes()[:-10]
    (folder / "reports" / "torn.parquet").write_bytes(torn)
    tallies = {q.id: q.protocol.tally(made[q.id], SURVEY_OF_ALL.source(q.id)) for q in SURVEY_OF_ALL}
    return SurveyTally(SURVEY_OF_ALL.fingerprint, tallies).spec()


def start(master: str, folder: Path, settings: dict[str, str], rounds: int = 1) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT)
    own = {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": QUICK,
    }
    command = [sys.executable, str(folder / "script.py"), master, str(folder), json.dumps(settings), str(rounds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **own}, cwd=folder
    )


def finished(process: subprocess.Popen[str], folder: Path, rounds: int = 1) -> list[Any]:
    """What each round found."""
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, out + err[-4000:]
    assert "SECRET" not in out + err  # nor in what Spark logs
    found = [json.loads(line) for line in (folder / "found").read_text().splitlines()]
    assert len(found) == rounds
    return found


def check(found: Any, expected: dict[str, Any]) -> None:
    tally, files, reasons = found
    assert tally == expected
    assert files == FILES
    assert len(reasons) == 1
    assert "truncated or damaged" in reasons[0]


def check_frames(folder: Path) -> None:
    frames, refusals, studies, left = json.loads((folder / "more").read_text())
    assert frames == [200, 200, 200, ["age", "smoke"]]
    (first, words), (second, more), (third, mixed), (fourth, lists), (_, lazily) = refusals
    assert (first, second) == ("ReportError", "DomainError")
    assert "a report has" in words
    assert "is not one of" in more
    assert "is not one of" in lazily
    assert "SECRET" not in more + lazily
    assert (third, fourth) == ("ReportError", "ReportError")
    assert "is not empty" in mixed
    assert "holds lists" in lists
    assert left == [["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"], []]
    assert studies == [True] * 4


def test_a_local_session_gives_the_same_integers_for_every_protocol(tmp_path: Path) -> None:
    need_spark()
    expected = prepared(tmp_path)
    assert count_files(SURVEY_OF_ALL, [tmp_path / "reports"]).tally.spec() == expected
    command = ["tally", str(tmp_path / "survey.json"), str(tmp_path / "reports"), "--workers", "2"]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 1  # the file that is cut off
    assert json.loads(ran.stdout) == expected
    (tmp_path / "more.py").write_text(ONCE)
    once, conflicts = sent_again(tmp_path)
    few = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    (found,) = finished(start("local[1]", tmp_path, few), tmp_path)
    check(found, expected)
    check_once(json.loads((tmp_path / "once.found").read_text()), once, conflicts)
    survey = Survey.load(tmp_path / "once.json")
    local, plain = (count_files(survey, [tmp_path / "once"], dedupe=dedupe) for dedupe in (True, False))
    assert local.duplicates is not None
    twice = local.duplicates.rows, local.duplicates.conflicts, local.duplicates.examples
    check_once((summary(local), *twice), once, conflicts)
    with pytest.raises(AssertionError):
        check_once((summary(plain), *twice), once, conflicts)
    # The comparison could fail.
    found[0]["tallies"]["q3"]["counts"][0] += 1
    with pytest.raises(AssertionError):
        check(found, expected)


@pytest.mark.slow
def test_a_cluster_of_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    need_spark()
    expected = prepared(tmp_path)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as running:
        process = start(running.url, tmp_path, SETTINGS, rounds=6)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("round 3"):
                break
        # A round takes longer than this, so that the worker dies in the middle of a job, with what it had done.
        time.sleep(0.2)
        running.kill_worker(0)
        for found in finished(process, tmp_path, rounds=6):
            check(found, expected)
        assert running.workers[0].poll() is not None
        assert running.workers[1].poll() is None


@pytest.mark.slow
def test_spark_connect_and_frames(tmp_path: Path) -> None:
    need_spark()
    pytest.importorskip("grpc", reason="needs deniable[connect]")
    expected = prepared(tmp_path)
    (tmp_path / "more.py").write_text(FRAMES)
    (tmp_path / "server").mkdir()
    with connect_server(tmp_path / "server") as url:
        (found,) = finished(start(url, tmp_path, {}), tmp_path)
    check(found, expected)
    check_frames(tmp_path)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    need_spark()
    protocol = GRR(4, 1)
    made = reports(protocol, 500, 1)
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.spec()))
    write_reports(tmp_path / "reports.parquet", Survey.of(protocol), [{"report": made}])
    done = subprocess.run(
        [Path(sys.executable).with_name("deniable"), "tally", "protocol.json", "reports.parquet", "nowhere.parquet",
         "--engine", "spark", "--master", "local[2]", "-o", "tally.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "not counted: 'nowhere.parquet': No such file" in done.stderr
    assert json.loads((tmp_path / "tally.json").read_text()) == protocol.tally(made).spec()


LACKING = """
import sys

sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") not in ({src!r}, {root!r})]
"""

SHIPPING = """
import json, sys
from deniable.files.spark import ClusterError, connect, count_files_on
from deniable.protocols import load
from deniable.surveys import Survey

folder, settings, wheel = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
protocol = load(open(f"{folder}/protocol.json").read())
for shipped in (None, wheel):
    with connect("local-cluster[1,1,1024]", wheel=shipped, settings=settings) as session:
        try:
            print(count_files_on(session, Survey.of(protocol), [f"{folder}/reports.parquet"]).rows)
        except ClusterError as wrong:
            print(wrong)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="wraps the interpreter in a shell script")
def test_the_wheel_reaches_executors_that_lack_it(tmp_path: Path) -> None:
    need_spark()
    import pyspark

    src = str(ROOT / "src")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(LACKING.format(src=src, root=str(ROOT)))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    if subprocess.run([python, "-c", "import deniable"], capture_output=True, cwd=tmp_path).returncode == 0:
        pytest.skip("deniable is installed for good here: no executor lacks it")
    wheel = tmp_path / "deniable-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in (ROOT / "src").rglob("*.py"):
            archive.write(path, path.relative_to(ROOT / "src"))
    protocol = GRR(4, 1)
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.spec()))
    write_reports(tmp_path / "reports.parquet", Survey.of(protocol), [{"report": reports(protocol, 500, 1)}])
    own = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": str(python), "PYTHONPATH": src}
    command = [sys.executable, "-c", SHIPPING, str(tmp_path), json.dumps(SETTINGS), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **own}, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    lacking, shipped = done.stdout.splitlines()
    assert "the executors lack a package" in lacking
    assert shipped == "500"


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
        (found,) = counted_batches(Layout(Survey.of(protocol)), {"report": "r"}, iter([batch, batch]))
        assert found.tallies["report"] == protocol.tally(made) + protocol.tally(made)
    for bad, words in (
        (pa.array([b"ab", None], pa.binary()), "row 2"),
        (pa.array([b"abc"]), "has 2 bytes"),
        (pa.array([1]), "holds int64"),
    ):
        with pytest.raises(ReportError, match=words):
            fixed_rows(bad, 2, "report", 0)
    (found,) = counted_batches(
        Layout(Survey.of(protocol)), {"report": "r"}, iter([pa.record_batch({"r": [b"\xff\xff"]})])
    )
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


def test_a_record_in_a_frame_has_a_column_per_part_or_structures() -> None:
    import pyarrow as pa

    protocol = Attributes.of({"smoke": GRR(["yes", "no"], 1), "age": GRR(9, 1)})
    rows = [{"smoke": "yes", "age": 3}, {"smoke": "no", "age": 8}] * 20
    layout = Layout(Survey("r", [Question("habits", "?", protocol)]))
    parts = pa.RecordBatch.from_pylist(rows)
    one = pa.record_batch({"habits": pa.array(rows)})
    for batch, chosen in ((parts, {"habits.smoke": "smoke", "habits.age": "age"}), (one, {"habits": "habits"})):
        (made,) = privatized_batches(layout, chosen, [], iter([batch]))
        assert made.schema.names == ["habits"]
        assert protocol.tally([list(report) for report in made.column("habits").to_pylist()]).n == 40
    with pytest.raises(ReportError, match="holds structures"):
        list(privatized_batches(Layout(SURVEY), {"smoke": "habits"}, [], iter([one])))
