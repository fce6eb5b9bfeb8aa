"""simulate, and what tally does on many files, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deniable.files import tally_files, write_reports
from deniable.files.studies import load_study
from deniable.protocols import GRR
from deniable.randomness import Simulation
from deniable.surveys import Survey

PROTOCOL = GRR(["yes", "no"], 1)
ALONE = Survey.of(PROTOCOL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("protocol.json").write_text(json.dumps(PROTOCOL.spec()))
    Path("reports").mkdir()
    for i in range(3):
        made = PROTOCOL.privatize(["yes"] * 50, Simulation(i))
        write_reports(f"reports/{i}.parquet", ALONE, [{"report": made}])
    Path("answers.csv").write_text("answer\n" + "yes\nno\n" * 100)
    return tmp_path


SWEEP = ["simulate", "--protocol", "GRR,OUE", "--epsilon", "1,2", "--categories", "8", "--people", "1e3", "--runs", 5]


def test_a_study(run, folder):
    out = run(*SWEEP, "-o", "study.parquet", "--plot", "study.png").out
    assert "of theory" in out
    assert "saved: study.parquet" in out
    assert Path("study.png").read_bytes().startswith(b"\x89PNG")
    again = run(*SWEEP, "-o", "study.parquet", "--json")
    assert again.err == "note: 4 of 4 cells are taken from 'study.parquet': the same settings and seed\n"
    assert [row["variance"] for row in again.json] == [row.variance for row in load_study("study.parquet")]
    assert "4 of 6 cells are taken" in run(*SWEEP, "--epsilon", "3", "-o", "study.parquet").err
    csv = run(*SWEEP, "--csv", "--workers", 2).out.splitlines()
    assert len(csv) == 5
    assert csv[0].startswith("protocol,epsilon,epsilon_exact,people,")
    assert csv[1].startswith("GRR,1.0,1,1000,")


@pytest.mark.slow
def test_a_study_of_means(run, folder):
    numbers = ["simulate", "--protocol", "Window,OneBitMean", "--epsilon", "2", "--number", "0..24", "--unit", "hours"]
    crowd = ["--people", 400, "--runs", 200, "--distribution", "bell,ends:0.2,values:6/7.5/30"]
    ran = run(*numbers, *crowd, "-o", "study.parquet", "--plot", "study.png")
    assert "0..24 hours" in ran.out
    rows = run(*numbers, *crowd, "-o", "study.parquet", "--json").json
    assert [(row["protocol"], row["distribution"]) for row in rows][:3] == [
        ("Window", "bell"),
        ("Window", "ends:0.2"),
        ("Window", "values:6/7.5/30"),
    ]
    for row in rows:
        # 200 runs: coverage at least 0.95 - 5 standard errors, and a variance within 5 of them of the formula's.
        assert row["coverage"] >= 0.87
        assert 0.5 <= row["variance"] / row["variance_theory"] <= 1.5
        assert row["mae"] <= row["variance"] ** 0.5
    assert run(*numbers, *crowd[:-1], "spike:0.3", "--csv").out.splitlines()[1].endswith("0..24 hours,")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--number", "0..24"], "give one of --categories"),
        (["--unit", "hours"], "--unit goes with --number"),
        (["--protocol", "Attributes"], "Attributes cannot ask for"),
        (["--protocol", "XYZ"], "there is no protocol 'XYZ'"),
        (["--people", "many"], "--people takes positive whole numbers"),
        (["--people", "1.5e0"], "not '1.5e0'"),
        (["--distribution", "normal"], "no distribution 'normal'"),
        (["--runs", "0"], "number of runs"),
        (["--master", "local"], "add --engine spark"),
        (["-o", "answers.csv"], "give another name"),
        (["-o", "nowhere/study.parquet"], "'nowhere/study.parquet': No such file"),
        (["--json", "--csv"], "exclude each other"),
    ],
)
def test_refusals(run, folder, options, message):
    assert message in run(*SWEEP, *options, code=2).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--number", "24"], "written LOW..HIGH"),
        (["--number", "24..0"], "needs low < high"),
        (["--number", "0..1", "--protocol", "GRR"], "GRR cannot ask for a number from 0 to 1"),
        (["--number", "0..1", "--distribution", "zipf"], "no distribution of numbers 'zipf'"),
        (["--number", "0..1", "--distribution", "values:a/b"], "no parameter of values"),
        (["--number", "0..1", "--distribution", "bell:3"], "lies here between 0 and 1"),
    ],
)
def test_refusals_of_numbers(run, folder, options, message):
    plain = ["simulate", "--protocol", "Window", "--epsilon", "1", "--people", "10"]
    assert message in run(*plain, *options, code=2).err


def test_files_that_are_not_counted_are_listed(run, folder):
    torn = Path("reports/1.parquet")
    torn.write_bytes(torn.read_bytes()[:-3])
    Path("hollow").mkdir()
    ran = run("tally", "protocol.json", "reports", "hollow", "-o", "tally.json", code=1)
    assert "report        100" in ran.out
    lines = ran.err.splitlines()
    assert "not counted: 'reports/1.parquet'" in lines[0]
    assert "the directory 'hollow' holds no files" in lines[1]
    assert lines[2] == "warning: 2 of 4 inputs were not counted"
    assert json.loads(Path("tally.json").read_text())["n"] == 100
    assert "truncated" in run("tally", "protocol.json", "reports", "--strict", "-o", "x.json", code=2).err
    assert not Path("x.json").exists()
    assert "truncated" in run("estimate", "protocol.json", "reports", code=2).err


def test_workers_and_manifests_change_nothing(run, folder):
    plain = run("tally", "protocol.json", "reports").out
    for options in (["--workers", 1], ["--workers", 2], ["--resume", "done.json"], ["--resume", "done.json"]):
        assert run("tally", "protocol.json", "reports", *options).out == plain
    assert json.loads(plain) == tally_files(ALONE, ["reports"]).spec()
    ran = run("tally", "protocol.json", "reports", "--resume", "done.json", "-o", "tally.json")
    assert "known from before: 3 of 3 files" in ran.out


def test_each_id_once(run, folder):
    options = ["--column", "answer", "--ids"]
    run("privatize", "protocol.json", "answers.csv", "-o", "a.parquet", *options)
    Path("b.parquet").write_bytes(Path("a.parquet").read_bytes())
    ran = run("tally", "protocol.json", "a.parquet", "b.parquet", "--dedupe")
    assert ran.json["n"] == 200
    assert "200 rows came again" in ran.err
    run("privatize", "protocol.json", "answers.csv", "-o", "a.arrow", *options)
    assert Path("a.arrow").read_bytes().startswith(b"\xff\xff\xff\xff")
    assert run("tally", "protocol.json", "a.arrow", "a.parquet", "--dedupe").json["n"] == 400


def test_reports_through_a_pipe(folder):
    import subprocess

    from tests.cli.conftest import COMMAND

    line = f"{COMMAND} privatize protocol.json answers.csv --column answer -o - | {COMMAND} tally protocol.json -"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == 200
