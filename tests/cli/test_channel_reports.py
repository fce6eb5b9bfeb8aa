"""`deniable channel sample` and `infer`."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter

import numpy as np
import pytest

from deniable.channels import coin_response, randomized_response, subset_selection
from deniable.channels.inference import ibu, invert, mle_randomized_response
from tests.documents import rows_of

LABELS = "randomized-response:labels=never,once,often,epsilon=1"


def test_sample_gives_one_label_a_line(run):
    lines = run("channel", "sample", "coin", "yes", "no", "no").out.splitlines()
    assert len(lines) == 3
    assert set(lines) <= {"yes", "no"}
    assert run("channel", "sample", "coin", stdin="yes\r\nno\n").out.count("\n") == 2
    assert len(run("channel", "sample", "coin", "yes", "--times", "7", "--json").json["outputs"]) == 7


def test_sample_does_not_repeat_the_truth(run):
    assert run("channel", "sample", "coin", "yes", "--json").json.keys() == {"outputs"}
    err = run("channel", "sample", "coin", "i-cheated", code=2).err
    assert "i-cheated" not in err
    assert "'yes', 'no'" in err
    err = run("channel", "sample", "coin", stdin="yes\ni-cheated\n", code=2).err
    assert "i-cheated" not in err
    assert "line 2" in err


def test_a_seed_repeats_and_warns(run):
    first, second, other = (
        run("channel", "sample", "coin", "yes", "--times", "200", "--seed", seed) for seed in ("5", "5", "6")
    )
    assert first.out == second.out
    assert first.out != other.out
    assert first.err.startswith("warning: --seed makes a simulation")
    assert run("channel", "sample", "coin", "yes").err == ""


def test_sample_follows_the_law(run):
    """Chi-square with 1 degree of freedom at 1e-6 (24.1); the seed is fixed, and a fair coin is told apart."""
    counts = Counter(run("channel", "sample", "coin", "yes", "--times", "4000", "--seed", "1").out.split())

    def distance(share):
        return (counts["yes"] - 4000 * share) ** 2 / (4000 * share * (1 - share))

    assert distance(0.75) < 24.1 < distance(0.7) < distance(0.5)


def test_labels_that_are_numbers_are_found_by_their_text(run):
    assert int(run("channel", "sample", "randomized-response:k=4,epsilon=1", "3").out) in range(4)
    subset = run("channel", "sample", "subset-selection:k=6,epsilon=1,w=2", "3").out
    assert subset.strip() in {str(output) for output in subset_selection(6, 1, 2).outputs}


def column(found, name):
    """One figure of every row of a result in JSON."""
    return [row[name] for row in rows_of(found)]


def test_counts_of_nothing_say_that_nothing_is_known(run):
    for method in ("invert", "ibu", "mle", "simplex"):
        ran = run("channel", "infer", "coin", "0,0", "--method", method, "--json")
        rows = [(row["value"], row["stderr"], row["low"], row["high"]) for row in rows_of(ran.json)]
        assert rows == [(None, None, 0, 1)] * 2
        assert ran.json["notes"] == ["there are no reports yet: nothing is known"]
    ran = run("channel", "infer", "coin", "0,0")
    assert "yes            -         -       -  0.0000 .. 1.0000" in ran.out
    assert "there are no reports yet" in ran.err
    assert "yes,,,0.0,1.0,," in run("channel", "infer", "coin", "0,0", "--csv").out


def test_infer_prints_estimates_with_error_bars(run):
    out = run("channel", "infer", "coin", "400,600").out
    assert "method   inversion\nreports  1000\n" in out
    assert "answer  reported  estimate  stderr   95 % interval\n" in out
    assert "yes       0.4000     0.300   0.031  0.2" in out


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("auto", invert),
        ("invert", invert),
        ("clip", lambda channel, counts: invert(channel, counts, "clip")),
        ("simplex", lambda channel, counts: invert(channel, counts, "simplex")),
        ("ibu", ibu),
        ("mle", mle_randomized_response),
    ],
)
def test_methods(run, method, expected):
    found = run("channel", "infer", LABELS, "700,290,10", "--method", method, "--level", "0.9", "--json").json
    result = expected(randomized_response(["never", "once", "often"], 1), [700, 290, 10])
    assert found["method"] == result.method
    assert column(found, "value") == pytest.approx(result.frequencies, abs=1e-12)
    assert column(found, "stderr") == pytest.approx(result.stderr, abs=1e-12)
    assert pytest.approx(result.interval(0.9), abs=1e-12) == np.array([column(found, "low"), column(found, "high")]).T
    assert found["level"] == 0.9
    # The counts are such that the unbiased estimate leaves the simplex: no two kinds of method agree here.
    assert (min(column(found, "value")) < 0) is (method in ("auto", "invert"))


def test_auto_falls_back_to_ibu(run, write):
    source = "subset-selection:k=4,epsilon=1,w=2"
    found = run("channel", "infer", source, "90,80,70,60,50,40", "--json").json
    assert found["method"] == "IBU"
    refused = run("channel", "infer", source, "90,80,70,60,50,40", "--method", "invert", code=2).err
    assert "use --method ibu" in refused
    singular = write(",a,b\nx,1/2,1/2\ny,1/2,1/2\n")
    ran = run("channel", "infer", singular, "5,5")
    assert ran.err.startswith("warning: different crowds look the same through this channel")
    assert "unknown" in ran.out
    assert column(run("channel", "infer", singular, "5,5", "--json").json, "stderr") == [None, None]


def test_ways_to_give_counts(run, write):
    expected = run("channel", "infer", LABELS, "700,290,10", "--json").json
    forms = [
        "often=10,never=700,once=290",
        write("label,count\nnever,700\nonce,290\noften,10\n", "a"),
        write("never;700\nonce;290\noften;10\n", "b"),
        write("700\n290\n10\n", "c"),
        write("700,290,10\n", "d"),
        write("[700, 290, 10]", "e"),
        write('{"never": 700, "often": 10.0, "once": 290}', "f"),
    ]
    for counts in forms:
        assert run("channel", "infer", LABELS, counts, "--json").json == expected
    assert run("channel", "infer", LABELS, "-", "--json", stdin="[700, 290, 10]").json == expected
    assert run("channel", "infer", LABELS, "--json", stdin="[700, 290, 10]").json == expected
    lines = "never\n" * 700 + "once\n" * 290 + "often\n" * 10
    assert run("channel", "infer", LABELS, "--observations", "--json", stdin=lines).json == expected
    assert run("channel", "infer", LABELS, write(lines), "--observations", "--json").json == expected


def test_labels_left_out_count_as_zero(run):
    found = run("channel", "infer", LABELS, "never=70,once=30", "--json").json
    assert found["facts"]["observed"] == {"never": 70, "once": 30, "often": 0}


def test_a_bad_first_line_is_not_taken_for_a_header(run, write):
    err = run("channel", "infer", "coin", write("yes,62O\nno,380\n"), code=2).err
    assert "'62O' is not a number" in err


def test_csv(run):
    rows = list(csv.DictReader(run("channel", "infer", "coin", "400,600", "--csv").out.splitlines()))
    assert [row["label"] for row in rows] == ["yes", "no"]
    assert float(rows[0]["value"]) == pytest.approx(0.3)
    assert float(rows[0]["count"]) == pytest.approx(300)
    assert float(rows[0]["low"]) < 0.3 < float(rows[0]["high"])


def test_plot(run, tmp_path):
    for name, start in (("a.png", b"\x89PNG"), ("b.svg", b"<?xml")):
        assert f"drawn: {tmp_path / name}" in run("channel", "infer", "coin", "4,6", "--plot", tmp_path / name).out
        assert (tmp_path / name).read_bytes().startswith(start)


def test_sampling_and_inferring_fit_together(run, tmp_path):
    """The estimate is within 5 standard errors (false alarm below 1e-6, fixed seed); the raw share is not."""
    spec = tmp_path / "coin.json"
    spec.write_text(json.dumps(coin_response().spec()))
    answers = "yes\n" * 1000 + "no\n" * 4000
    reports = run("channel", "sample", spec, "--seed", "3", stdin=answers).out
    found = run("channel", "infer", spec, "--observations", "--json", stdin=reports).json
    error = column(found, "stderr")[0]
    assert abs(column(found, "value")[0] - 0.2) < 5 * error
    assert abs(found["facts"]["observed"]["yes"] / 5000 - 0.2) > 5 * error
    assert math.isclose(sum(column(found, "value")), 1)


def test_counts_that_no_crowd_gives_are_said_to_be_so(run):
    found = run("channel", "infer", "coin", "yes=5,no=1000")
    assert "warning: these reports do not look like this channel's: p = " in found.err
    assert run("channel", "infer", "coin", "yes=5,no=1000", "--json").json["trust"]["misfit"] < 1e-9
    fine = run("channel", "infer", "coin", "yes=500,no=505")
    assert "do not look like" not in fine.err
