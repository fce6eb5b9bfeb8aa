"""`deniable design extremal` and `verify`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

import numpy as np
import pytest

from deniable.design import extremal
from tests.cli.conftest import COMMAND

LAWS = "answer,P0,P1\nnever,0.5,0.2\nonce,0.3,0.3\noften,0.2,0.5\n"


def test_it_shows_the_mechanism_and_its_bound(run):
    out = run("design", "extremal", "--p0", "never=0.5,once=0.3,often=0.2", "--p1", "never=.2,once=.3,often=.5",
              "--epsilon", "1").out  # fmt: skip
    assert "value      0.03999737982" in out
    assert "proved; relative gap" in out
    assert "once, often" in out


def test_it_says_what_the_solver_did(run):
    given = ("design", "extremal", "--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5", "--epsilon", "1")
    assert "solver     longest path: 2 runs" in run(*given).out
    trace = run(*given, "--json").json["trace"]
    assert [step["status"] for step in trace] == ["better", "optimal"]
    assert trace[-1].keys() == {"solver", "status", "iterations", "seconds", "rows", "columns", "nonzeros", "value"}
    assert "solver         HiGHS dual simplex: " in run("design", "bayes", "0.5,0.3,0.2", "--epsilon", "1").out


def test_a_terminal_shows_progress_and_nothing_else_changes(run, tmp_path):
    pty = pytest.importorskip("pty")
    weights = np.random.default_rng(1).integers(1, 1000, (2500, 2))
    laws = tmp_path / "laws.csv"
    laws.write_text(
        "".join(f"s{i},{a}/{weights[:, 0].sum()},{b}/{weights[:, 1].sum()}\n" for i, (a, b) in enumerate(weights))
    )
    command = [COMMAND, "design", "extremal", laws, "--epsilon", "2"]
    ours, theirs = pty.openpty()
    watched = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=120, check=True)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    piped = run(*command[1:])
    # Which steps are seen depends on how often the line is drawn while they take place.
    assert any(step in shown for step in (b"reading", b"of the search", b"proof"))
    assert b"\x1b[2K" in shown, "the line is drawn again"
    assert piped.err == ""
    without_time = [[line for line in out.splitlines() if "solver" not in line] for out in (watched.stdout, piped.out)]
    assert without_time[0] == without_time[1]


def test_files_and_options_say_the_same(run, write):
    table = run("design", "extremal", write(LAWS, "laws.csv"), "--epsilon", "1", "--json").json
    listed = {"p0": [0.5, 0.3, 0.2], "p1": ["1/5", "3/10", "1/2"], "inputs": ["never", "once", "often"]}
    parsed = run("design", "extremal", write(json.dumps(listed), "laws.json"), "--epsilon", "1", "--json").json
    given = run("design", "extremal", "--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5", "--epsilon", "1", "--json").json
    piped = run("design", "extremal", "-", "--epsilon", "1", "--json", stdin="0.5,0.2\n0.3,0.3\n0.2,0.5\n").json
    assert table["value"] == parsed["value"] == given["value"] == piped["value"]
    assert table["inputs"] == ["never", "once", "often"]
    assert given["inputs"] is None
    assert table["value"] == extremal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1).value


def test_a_certificate_goes_to_a_file_and_is_checked_there(run, write, tmp_path):
    proof = tmp_path / "proof.json"
    run("design", "extremal", write(LAWS, "laws.csv"), "--epsilon", "1", "--divergence", "chi2", "--save", proof)
    assert json.loads(proof.read_text())["inputs"] == ["never", "once", "often"]
    out = run("design", "verify", proof).out
    assert out.endswith("verdict  verified (proved)\n")
    false = json.loads(proof.read_text())
    false["value"] = "1.0"
    wrong = run("design", "verify", write(json.dumps(false), "false.json"), "--json", code=1).json
    assert [check["name"] for check in wrong["checks"] if not check["holds"]] == ["value"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--p0", "0.5,0.5", "--p1", "0.2,0.8"], "--epsilon"),
        (["--p0", "0.5,0.5", "--epsilon", "1"], "--p0 and --p1"),
        (["--p0", "0.5,0.5", "--p1", "0.2,0.9", "--epsilon", "1"], "sums to 1.1"),
        (["--p0", "0.5,0.5", "--p1", "0.2,0.8", "--epsilon", "0"], "must be positive"),
        (["--p0", "0.5,0.5", "--p1", "0.2,0.8", "--epsilon", "1", "--divergence", "x"], "not a divergence"),
        (["nowhere.csv", "--epsilon", "1"], "nowhere.csv"),
    ],
)
def test_refusals(run, args, words):
    assert words in run("design", "extremal", *args, code=2).err


def test_what_is_no_certificate(run, write):
    assert "not a certificate" in run("design", "verify", write("[1]"), code=2).err
    assert "not JSON" in run("design", "verify", write("hello"), code=2).err
    assert "every line" in run("design", "extremal", write("a,b,c,d\n"), "--epsilon", "1", code=2).err


def test_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "channel.png"
    run("design", "extremal", "--p0", "0.5,0.5", "--p1", "0.2,0.8", "--epsilon", "1", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_equal_hypotheses_and_impossible_ones(run):
    out = run("design", "extremal", "--p0", "0.5,0.5", "--p1", "1/2,1/2", "--epsilon", "1").out
    assert "a constant answer" in out
    assert "solver     no solver was needed" in out
    err = run("design", "extremal", "--p0", "0,0", "--p1", "1/2,1/2", "--epsilon", "1", code=2).err
    assert "something must be possible" in err


def test_parties_compute_together(run):
    said = run("design", "together", "and", "--parties", 2, "--epsilon", 1, "--check").out
    assert "0.76722" in said
    assert "0.77356" in said
    assert "gives an outsider 0.76722" in said
    found = run("design", "together", "0,0,0,1", "--epsilon", "1,2", "--json").json
    assert found["epsilons"] == ["1", "2"]
    assert found["parties"][0] > found["parties"][1]
    assert "1 to 12" in run("design", "together", "xor", "--parties", 99, "--epsilon", 1, code=2).err
