"""`deniable channel show`, `push` and `list`."""

from __future__ import annotations

import csv
import json
from fractions import Fraction

import pytest

from deniable import Channel
from deniable.channels import coin_response, randomized_response, truncated_geometric
from deniable.cli.read_channels import FORMS

COIN = ",yes,no\nyes,3/4,1/4\nno,1/4,3/4\n"


def test_it_shows_the_law_and_the_level(run):
    out = run("channel", "show", "coin").out
    assert "epsilon      1.098612289 over all pairs" in out
    assert "output yes is 3 times as likely from input yes as from no" in out
    assert coin_response().fingerprint in out
    assert out.endswith("input     yes      no\nyes    0.7500  0.2500\nno     0.2500  0.7500\n")


def test_json_has_exact_numbers_beside_floats(run):
    shown = run("channel", "show", "coin", "--json").json
    assert shown["ratio"] == "3"
    assert shown["epsilon"] == pytest.approx(1.0986122886681098, abs=1e-15)
    assert shown["rows"] == [[0.75, 0.25], [0.25, 0.75]]
    assert shown["exact"] == [["3/4", "1/4"], ["1/4", "3/4"]]
    assert shown["witness"] == {"inputs": ["yes", "no"], "output": "yes", "distance": "1"}
    assert Channel(shown["exact"], shown["inputs"], shown["outputs"]).fingerprint == shown["fingerprint"]


def test_an_infinite_level_is_null_in_json(run, write):
    path = write(",a,b\nx,1,0\ny,1/2,1/2\n")
    shown = run("channel", "show", path, "--json").json
    assert (shown["epsilon"], shown["ratio"]) == (None, "inf")
    out = run("channel", "show", path).out
    assert "epsilon      infinite" in out
    assert "output b can come from input y and never from x" in out


def test_fractions(run):
    out = run("channel", "show", "warner:epsilon=1", "--exact").out
    law = randomized_response(["yes", "no"], 1)
    assert str(law.ratio) in out
    assert str(law.probability("yes", "yes")) in out


def test_rare_outcomes_are_not_shown_as_zero(run):
    out = run("channel", "show", "truncated-geometric:n=10,epsilon=2").out
    assert "0.0000" not in out
    assert "e-" in out


def test_a_large_matrix_is_cut_unless_all_is_asked_for(run):
    source = "randomized-response:k=30,epsilon=1"
    cut = run("channel", "show", source).out
    assert "of 30 rows and 30 columns" in cut
    whole = run("channel", "show", source, "--all").out
    assert len(whole.splitlines()) == len(cut.splitlines()) + 30 - 24 - 1
    assert len(whole.splitlines()[-1].split()) == 31


@pytest.mark.parametrize("flag", [[], ["--exact"]])
def test_csv_can_be_read_again(run, flag):
    written = run("channel", "show", "truncated-geometric:n=4,epsilon=1", "--csv", *flag).out
    again = run("channel", "show", "-", "--json", stdin=written).json
    law = truncated_geometric(4, 1)
    assert again["rows"] == pytest.approx(law.rows, abs=1e-15)
    if flag:
        assert [list(map(Fraction, row)) for row in again["exact"]] == [
            [law.probability(x, y) for y in law.outputs] for x in law.inputs
        ]


def test_a_saved_spec_is_the_same_channel(run, tmp_path):
    path = tmp_path / "channel.json"
    run("channel", "show", "truncated-geometric:n=6,epsilon=1/2", "--save", path)
    assert Channel.load(json.loads(path.read_text())) == truncated_geometric(6, "1/2")
    first = run("channel", "show", path, "--json").json
    assert first["fingerprint"] == truncated_geometric(6, "1/2").fingerprint


def test_a_plot_is_written(run, tmp_path):
    path = tmp_path / "law.png"
    assert f"drawn: {path}" in run("channel", "show", "coin", "--plot", path).out
    assert path.read_bytes().startswith(b"\x89PNG")


def test_labels_cannot_drive_a_plot_or_a_terminal(run, write, tmp_path):
    path = write(json.dumps({"rows": [[0.75, 0.25], [0.25, 0.75]], "outputs": ["$x_$", "\x1b[31mred"]}))
    out = run("channel", "show", path, "--plot", tmp_path / "law.svg").out
    assert r"\x1b[31mred" in out


@pytest.mark.parametrize(
    "content",
    [
        COIN,
        "\ufeff" + COIN,
        COIN.replace(",", ";"),
        COIN.replace(",", "\t"),
        COIN.replace("\n", "\r\n"),
        " anything , yes, no\n yes , 0.75, 0.25\n\n no, .25, 75e-2\n",
        '[["3/4", "1/4"], [0.25, 0.75]]',
        '{"rows": [[0.75, 0.25], [0.25, 0.75]], "inputs": ["yes", "no"]}',
        json.dumps(coin_response().spec()),
    ],
)
def test_ways_to_write_a_channel(run, write, content):
    assert run("channel", "show", write(content), "--json").json["exact"] == [["3/4", "1/4"], ["1/4", "3/4"]]
    assert run("channel", "epsilon", "-", "--json", stdin=content).json["ratio"] == "3"


def test_every_closed_form_has_a_working_example(run):
    listed = run("channel", "list", "--json").json
    assert [form["name"] for form in listed] == list(FORMS)
    text = run("channel", "list").out
    for form in listed:
        assert form["example"] in text
        assert run("channel", "epsilon", form["example"], "--json").json["epsilon"] > 0


def test_parameters_of_closed_forms(run, write):
    def law(source):
        return run("channel", "show", source, "--json").json

    assert law("coin:truth=1/3,yes=0.1")["exact"][1][0] == "1/15"
    assert law("warner:labels=ja,nein,epsilon=1")["inputs"] == ["ja", "nein"]
    assert law("randomized-response:epsilon=1, labels = never,once,often")["outputs"] == ["never", "once", "often"]
    assert law("subset-selection:k=5,epsilon=1,w=2")["outputs"][0] == [0, 1]
    assert law("truncated-geometric:n=3,epsilon=1,sensitivity=2")["adjacency"] == {"line": 2}
    assert law("binary:p0=1/2,3/10,0.2,p1=0.2,0.3,0.5,epsilon=1,ties=1")["rows"][1][1] > 0.7
    assert law("product-response:sizes=2,3,epsilon=1,split=no")["inputs"][5] == [1, 2]
    scores = write(",a,b,c\nx,1,0,0\ny,0,1,0\n", "scores.csv")
    fitted = law(f"exponential:scores={scores},epsilon=1")
    assert (fitted["inputs"], fitted["outputs"]) == (["x", "y"], ["a", "b", "c"])
    assert fitted["epsilon"] <= 1
    assert law("exponential:n=4,epsilon=1,adjacency=line")["epsilon_under_adjacency"] <= 1


def test_push(run, write):
    pushed = run("channel", "push", "coin", "1/5,4/5", "--json").json
    assert pushed["probabilities"] == pytest.approx([0.35, 0.65])
    assert pushed["exact"] == ["7/20", "13/20"]
    files = write("label,probability\nyes,0.2\nno,0.8\n", "a"), write('{"yes": 0.2, "no": 0.8}', "b")
    for prior in ("no=0.8,yes=0.2", *files):
        assert run("channel", "push", "coin", prior, "--json").json == pushed
    assert run("channel", "push", "coin", "uniform", "--json").json["exact"] == ["1/2", "1/2"]
    table = run("channel", "push", "coin", "0.2,0.8").out
    assert table == "output  probability\nyes          0.3500\nno           0.6500\n"


def test_posterior(run):
    pushed = run("channel", "push", "coin", "0.5,0.5", "--posterior", "--json").json
    assert pushed["posterior"] == [[0.75, 0.25], [0.25, 0.75]]
    assert "0.4286  0.5714" in run("channel", "push", "coin", "0.2,0.8", "--posterior").out
    rows = list(csv.reader(run("channel", "push", "coin", "0.2,0.8", "--posterior", "--csv").out.splitlines()))
    assert rows[0] == ["output", "probability", "yes", "no"]
    assert [float(cell) for cell in rows[1][1:]] == pytest.approx([0.35, 3 / 7, 4 / 7])


def test_an_impossible_output_has_no_posterior(run, write):
    path = write(",a,b\nx,1,0\ny,1/2,1/2\n")
    assert run("channel", "push", path, "1,0", "--posterior", "--json").json["posterior"][1] == [None, None]
    assert run("channel", "push", path, "1,0", "--posterior").out.splitlines()[-1].split() == ["b", "-", "-"]


@pytest.mark.slow
def test_a_channel_of_a_thousand_counts(run):
    source = "truncated-geometric:n=1000,epsilon=1"
    shown = run("channel", "show", source).out
    assert "1001 inputs, 1001 outputs" in shown
    assert "none: the exact law is too large to write down" in shown
    assert "neighbours on the line: epsilon 1" in shown
    found = run("channel", "push", source, "uniform", "--json").json
    assert found["exact"] is None
    assert abs(sum(found["probabilities"]) - 1) < 1e-9
    assert "gigabytes" in run("channel", "show", source, "--save", "large.json", code=2).err
