"""`deniable design bayes`."""

from __future__ import annotations

import json

import pytest

from deniable.design import bayes


def test_it_shows_the_mechanism_and_its_bound(run):
    out = run("design", "bayes", "a=0.45,b=0.45,c=0.1", "--gain", "identity", "--epsilon", "1").out
    assert "expected gain  0.657952720" in out
    assert "proved; relative gap" in out
    assert "all pairs, 2 outputs in use" in out


def test_a_line_of_counts(run):
    found = run("design", "bayes", "0=0.1,1=0.2,2=0.4,3=0.2,4=0.1", "--loss", "absolute", "--adjacency", "line",
                "--epsilon", "0.5", "--json").json  # fmt: skip
    expected = bayes([0.1, 0.2, 0.4, 0.2, 0.1], "absolute", epsilon="0.5", adjacency="line")
    assert found["value"] == expected.value
    assert found["epsilon"]["realized"] <= 0.5
    assert found["channel"]["adjacency"] == "line"


def test_files_say_the_same(run, write):
    prior = write("answer,share\na,0.5\nb,0.3\nc,0.2\n", "prior.csv")
    loss = write("guess,c,b,a\na,2,1,0\nb,1,0,1\nc,0,1,2\n", "loss.csv")
    edges = write("a,b\nb,c\n", "edges.csv")
    by_file = run("design", "bayes", prior, "--loss", loss, "--adjacency", edges, "--epsilon", "1", "--json").json
    listed = write(json.dumps([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), "loss.json")
    parsed = write(json.dumps({"a": 0.5, "b": "3/10", "c": 0.2}), "prior.json")
    by_json = run("design", "bayes", parsed, "--loss", listed, "--adjacency", "line", "--epsilon", "1", "--json").json
    piped = run("design", "bayes", "-", "--loss", "absolute", "--adjacency", "line", "--epsilon", "1", "--json",
                stdin="0.5\n0.3\n0.2\n").json  # fmt: skip
    assert by_file["value"] == pytest.approx(by_json["value"], rel=1e-12)
    assert by_file["value"] == pytest.approx(piped["value"], rel=1e-12)
    assert by_file["channel"]["inputs"] == ["a", "b", "c"]


def test_a_certificate_goes_to_a_file_and_is_checked_there(run, write, tmp_path):
    proof = tmp_path / "proof.json"
    run("design", "bayes", "0.5,0.3,0.2", "--epsilon", "1", "--save", proof)
    assert run("design", "verify", proof).out.endswith("verdict  verified (proved)\n")
    false = json.loads(proof.read_text())
    false["value"] = "0.1"
    wrong = run("design", "verify", write(json.dumps(false), "false.json"), "--json", code=1).json
    assert [check["name"] for check in wrong["checks"] if not check["holds"]] == ["value"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["0.5,0.5"], "--epsilon"),
        (["0.5,0.6", "--epsilon", "1"], "sums to 1.1"),
        (["0.5,b=0.5", "--epsilon", "1"], "or none"),
        (["nowhere.csv", "--epsilon", "1"], "nowhere.csv"),
        (["0.5,0.5", "--epsilon", "1", "--loss", "cubic"], "cubic"),
        (["0.5,0.5", "--epsilon", "1", "--loss", "absolute", "--gain", "identity"], "not both"),
        (["a=0.5,b=0.5", "--epsilon", "1", "--loss", "absolute"], "does not work on these labels"),
        (["0.5,0.5", "--epsilon", "1", "--adjacency", "ring"], "ring"),
    ],
)
def test_refusals(run, args, words):
    assert words in run("design", "bayes", *args, code=2).err


def test_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "channel.png"
    run("design", "bayes", "0.5,0.5", "--epsilon", "1", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
