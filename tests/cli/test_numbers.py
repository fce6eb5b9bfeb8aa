"""A question about a number, from the draft to the estimate, on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import deniable as dn
from tests.documents import rows_of, section

DRAFT = {
    "name": "sleep",
    "epsilon": "2",
    "people": 4000,
    "questions": [
        {
            "id": "hours",
            "text": "How many hours did you sleep?",
            "answers": {"number": {"low": 0, "high": 12, "unit": "hours"}, "read": "mean"},
        },
        {"id": "nap", "text": "Do you nap?", "answers": ["yes", "no"]},
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    hours = np.random.default_rng(5).normal(7, 2, 4000)
    lines = [f"{hour:.2f},{'yes' if i % 3 else 'no'}" for i, hour in enumerate(hours)]
    Path("answers.csv").write_text("\n".join(["hours,nap", *lines]) + "\n", encoding="utf-8")
    return hours


def test_a_number_from_draft_to_estimate(run, folder):
    made = run("survey", "new", "draft.json", "-o", "survey.json")
    assert "a number from 0 to 12 hours" in made.out
    assert "hours" in made.out.split("expected")[1]
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    found = run("estimate", "survey.json", "reports.parquet", "--json", "--parquet", "out.parquet").json["questions"]
    hours, nap = found
    assert (hours["kind"], nap["kind"]) == ("mean", "shares")
    (row,) = rows_of(hours)
    assert row["unit"] == "hours"
    assert abs(row["value"] - np.clip(folder, 0, 12).mean()) < 5 * row["stderr"]
    assert row["low"] < row["value"] < row["high"]
    text = run("estimate", "survey.json", "reports.parquet", "--question", "hours").out
    assert "mean, hours" in text
    asked = run("estimate", "survey.json", "reports.parquet", "--consistent", "norm-sub")
    assert "hours: --consistent is about shares, and there are none" in asked.err
    assert "nap: --consistent" not in asked.err
    assert run("estimate", "survey.json", "reports.parquet", "--csv").out.splitlines()[1].startswith("hours,mean,")
    run("estimate", "survey.json", "reports.parquet", "--plot", "both.png")
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")


def test_a_distribution_from_draft_to_estimate(run, folder):
    """Words first, then quantiles and bins in the order of their numbers; also where nobody asked for it by name."""
    answers = {"number": {"low": 0, "high": 12, "unit": "hours"}, "read": "distribution"}
    questions = [{**DRAFT["questions"][0], "answers": answers}]
    questions.append({"id": "age", "text": "How old are you?", "answers": {"low": 18, "high": 99}})
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": questions}), encoding="utf-8")
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert made.count("Window") >= 2
    rows = [f"{hour:.2f},{30 + i % 20}" for i, hour in enumerate(folder)]
    Path("answers.csv").write_text("\n".join(["hours,age", *rows]) + "\n", encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    text = run("estimate", "survey.json", "reports.parquet").out
    bins = re.search(r"^ *0 to ", text, re.MULTILINE)  # an interval may be "6.0 to 6.4", too
    assert bins is not None
    assert text.index("Median") < text.index("5 % quantile") < text.index("standard deviation") < bins.start()
    assert re.search(r"\d \.\. [\d.]+ hours", text)
    sure = ("--level", "0.999999", "--json", "--parquet", "out.parquet")
    found = run("estimate", "survey.json", "reports.parquet", *sure).json["questions"]
    for one, true in zip(found, (folder, 30 + np.arange(4000) % 20), strict=True):
        assert one["kind"] == "distribution"
        assert one["headline"]["text"].endswith("n = 4,000")
        (median,) = [row for row in rows_of(one) if row["label"] == "median"]
        assert median["low"] <= np.median(true) <= median["high"]
        begins = [row["begin"] for row in section(one, "bins")]
        assert begins == sorted(begins)
        assert section(one, "cumulative")[-1]["low"] == 1
    finer = run("estimate", "survey.json", "reports.parquet", "--bins", "40", "--json").json["questions"]
    assert len(rows_of(finer[1])) > len(rows_of(found[1]))
    lines = run("estimate", "survey.json", "reports.parquet", "--csv").out.splitlines()
    assert lines[1].startswith("hours,figures,5 % quantile,")
    run("estimate", "survey.json", "reports.parquet", "--plot", "shape.png", "--question", "age")
    assert Path("shape.png").read_bytes().startswith(b"\x89PNG")
    wrong = {**answers, "read": "mode"}
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [{**questions[0], "answers": wrong}]}))
    assert 'read as "mean", "distribution" or "ranges"' in run("survey", "new", "draft.json", code=2).err
    planned = run(
        "plan", "--number", "0..12", "--read", "distribution", "--epsilon", "1", "--people", "20000", "--json"
    )
    assert (planned.json["reads"], planned.json["best"]["read"]) == ("distribution", "distribution")
    assert "The interval of the median is" in planned.json["reason"]


def test_ranges_from_draft_to_estimate(run, folder):
    """The share of any range is asked for beside the table, also of a distribution; and refused where it is none."""
    number = {"low": 0, "high": 12, "unit": "hours"}
    age = {"low": 18, "high": 99, "read": "ranges"}
    kinds = [
        ("hours", {"number": number, "read": "ranges"}),
        ("age", age),
        ("week", {"number": number, "read": "distribution"}),
    ]
    questions = [{"id": id, "text": f"{id}?", "answers": answers} for id, answers in kinds]
    questions.append(DRAFT["questions"][1])
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": questions}), encoding="utf-8")
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert made.count("Ranges") >= 2
    assert re.search(r"^age .* points +-$", made.partition("expected:")[2], re.M)  # of a range, a share
    ages = 30 + np.arange(4000) % 20
    rows = [f"{hour:.2f},{years},{hour:.2f},yes" for hour, years in zip(folder, ages, strict=True)]
    Path("answers.csv").write_text("\n".join(["hours,age,week,nap", *rows]) + "\n", encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    tested = run("test", "survey.json", "reports.parquet", "--question", "age", "--mean", "39.5", "--json").json
    assert tested["questions"][0]["test"]["p_value"] > 0.001
    refused = run("test", "survey.json", "reports.parquet", "--question", "nap", "--mean", "3", code=2)
    assert "test its shares" in refused.err
    asked = ["--range", "35..44", "--range", "6..7.5"]
    found = run("estimate", "survey.json", "reports.parquet", *asked, "--level", "0.999999", "--json").json["questions"]
    assert [one["kind"] for one in found] == ["ranges", "ranges", "distribution", "shares"]
    for one, true, place in (
        (found[0], (folder >= 6) & (folder <= 7.5), 1),
        (found[1], (ages >= 35) & (ages <= 44), 0),
        (found[2], (folder >= 6) & (folder <= 7.5), 1),
    ):
        row = section(one, "ranges")[place]
        assert row["label"] == ("35 to 44", "6 to 7.5")[place]
        assert row["low"] <= true.mean() <= row["high"]
        assert row["low"] <= row["value"] <= row["high"]
        assert row["high"] - row["low"] < 0.95  # the whole range would say nothing
    assert "ranges" not in {one["id"] for one in found[3]["sections"]}
    shown = run("estimate", "survey.json", "reports.parquet", *asked)
    assert "35 to 44" in shown.out
    assert "nap: --range is about the distribution of a number" in shown.err
    assert "\nage,ranges,35 to 44," in run("estimate", "survey.json", "reports.parquet", *asked, "--csv").out
    smooth = run("estimate", "survey.json", "reports.parquet", *asked, "--assume", "smooth")
    assert smooth.out.count("assuming smooth:0.1") >= 6  # of three questions: the headline, the table, and the ranges
    assert smooth.out.count("bends no more") == 3
    assert "nap: --assume is about the distribution of a number" in smooth.err
    told = run("estimate", "survey.json", "reports.parquet", *asked, "--assume", "smooth:0.05", "--json").json
    for one in told["questions"][:3]:
        assert {row["assumed"] for row in rows_of(one)} == {"smooth:0.05", ""}  # means and deviations assume nothing
        assert {row["assumed"] for row in section(one, "ranges")} == {"smooth:0.05"}
    lines = run("estimate", "survey.json", "reports.parquet", "--assume", "smooth", "--csv").out.splitlines()
    assert ",smooth:0.1," in lines[1]
    assert "may assume" in run("estimate", "survey.json", "reports.parquet", "--assume", "even", code=2).err
    for wrong in ("44..35", "abc", "1..x", "nan..3"):
        assert (
            "a range is written like 25..45"
            in run("estimate", "survey.json", "reports.parquet", "--range", wrong, code=2).err
        )
    planned = run("plan", "--number", "0..12", "--read", "ranges", "--epsilon", "1", "--people", "20000", "--json").json
    assert (planned["reads"], planned["best"]["protocol"]) == ("ranges", "Ranges")
    assert "percentage points" in planned["reason"]
    assert "--read" in run("plan", "--number", "0..12", "--read", "mode", "--epsilon", "1", "--people", "9", code=2).err


def test_plan_reads_answers_as_a_draft_has_them(run, folder):
    rest = ["--epsilon", "1", "--people", "20000", "--json"]
    number = {"number": {"low": 0, "high": 24, "unit": "hours"}}
    for short, answers in [
        (["--categories", "never,once"], ["never", "once"]),
        (["--number", "0..24", "--unit", "hours"], number),
        (["--number", "0..24", "--unit", "hours", "--read", "ranges"], number | {"read": "ranges"}),
        (["--places", "8x6"], {"places": {"columns": 8, "rows": 6}}),
    ]:
        assert run("plan", "--answers", json.dumps(answers), *rest).json == run("plan", *short, *rest).json
    Path("asked.json").write_text(json.dumps(number), encoding="utf-8")
    assert run("plan", "--answers", "asked.json", *rest).json["reads"] == "mean"
    assert "answers[1]: " in run("plan", "--answers", '["yes", 0.5]', *rest, code=2).err
    assert "give one of --categories" in run("plan", "--answers", '["a", "b"]', "--text", *rest, code=2).err


def test_places_from_draft_to_estimate(run, folder):
    """Cells of a grid: asked by a draft, planned, and the share of any rectangle of cells beside the table."""
    question = {"id": "home", "text": "Where?", "answers": {"places": {"columns": 8, "rows": 6, "cell": "500 m"}}}
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [question]}), encoding="utf-8")
    assert "PlanarLaplace" in run("survey", "new", "draft.json", "-o", "survey.json").out
    assert "one cell side (500 m) apart" in run("survey", "show", "survey.json").out.replace("\n", " ")
    north, east = 1 + np.arange(4000) % 2, 1 + np.arange(4000) % 3
    rows = [f"{a},{b}" for a, b in zip(north, east, strict=True)]
    Path("answers.csv").write_text("\n".join(["north,east", *rows]) + "\n", encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    asked = ["estimate", "survey.json", "reports.parquet", "--range", "1..3,1..4", "--plot", "map.png"]
    (found,) = run(*asked, "--level", "0.999999", "--json").json["questions"]
    assert (found["kind"], section(found, "ranges")[0]["label"]) == ("rectangles", "north 1 to 3, east 1 to 4")
    assert section(found, "ranges")[0]["high"] == pytest.approx(1, abs=0.2)
    assert Path("map.png").stat().st_size > 1000
    plan = ["plan", "--places", "8x6", "--epsilon", "1", "--people", "20000"]
    assert run(*plan, "--json").json["best"]["protocol"] == "PlanarLaplace"
    assert run(*plan, "--read", "rectangles", "--json").json["best"]["protocol"] == "Rectangles"
    assert "16x12" in run("plan", "--places", "eight", "--epsilon", "1", "--people", "9", code=2).err
    assert "--read" in run(*plan, "--read", "mean", code=2).err


def test_rectangles_from_draft_to_estimate(run, folder):
    """Two numbers together: asked by a draft, planned, and the share of any rectangle beside the table."""
    two = {"age": {"low": 18, "high": 57}, "hours": {"number": {"low": 0, "high": 80, "unit": "h"}}}
    question = {"id": "work", "text": "Your work?", "answers": {"record": two, "read": "rectangles"}}
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [question]}), encoding="utf-8")
    assert "Rectangles" in run("survey", "new", "draft.json", "-o", "survey.json").out
    ages, hours = 18 + np.arange(4000) % 20, 20 + np.arange(4000) % 21
    rows = [f"{age},{hour}" for age, hour in zip(ages, hours, strict=True)]
    Path("answers.csv").write_text("\n".join(["age,hours", *rows]) + "\n", encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    estimate = ["estimate", "survey.json", "reports.parquet"]
    asked = ["--range", "18..27,0..40", "--range", "1..2", "--plot", "map.png"]
    (found,) = run(*estimate, *asked, "--level", "0.999999", "--json").json["questions"]
    assert found["kind"] == "rectangles"
    (row,) = section(found, "ranges")
    assert row["label"] == "age 18 to 27, hours 0 to 40"
    assert row["low"] <= np.mean(ages <= 27) <= row["high"]
    assert Path("map.png").stat().st_size > 1000
    shown = run(*estimate, *asked[:2])
    assert re.search("Most often age (18|28) to", shown.out)  # both halves are as common
    assert "a rectangle is two ranges" in run(*estimate, "--range", "1..2,1..2,1..2", code=2).err
    Path("two.json").write_text(json.dumps(two), encoding="utf-8")
    plan = ["plan", "--record", "two.json", "--epsilon", "1", "--people", "20000"]
    planned = run(*plan, "--read", "rectangles", "--json").json
    assert (planned["reads"], planned["best"]["protocol"]) == ("rectangles", "Rectangles")
    assert "4 x 4 rectangles" in planned["reason"]
    assert "--read" in run(*plan, "--read", "ranges", code=2).err
    question["answers"]["read"] = "ranges"
    Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [question]}), encoding="utf-8")
    assert "a record is read as" in run("survey", "new", "draft.json", code=2).err


def test_what_is_no_number_is_named_by_its_row(run, folder):
    run("survey", "new", "draft.json", "-o", "survey.json")
    Path("wrong.csv").write_text("hours,nap\n7.5,yes\nSECRET,no\n", encoding="utf-8")
    refused = run("privatize", "survey.json", "wrong.csv", "-o", "reports.parquet", code=2).err
    assert "row 2" in refused
    assert "SECRET" not in refused


def test_the_planner_counts_people_for_a_mean(run):
    made = run("plan", "--number", "0..24", "--unit", "hours", "--epsilon", "1", "--within", "0.5", "--json").json
    assert made["solved"] == "n"
    assert 10_200 < made["n"] < 10_500
    shown = run("plan", "--number", "0..24", "--unit", "hours", "--epsilon", "1", "--within", "0.5").out
    assert "intervals within +-0.5 hours =>" in shown
    for wrong in (["--number", "24"], ["--number", "24..0"], ["--categories", "3", "--unit", "hours"]):
        run("plan", *wrong, "--epsilon", "1", "--within", "0.5", code=2)


def test_a_designed_mechanism_from_its_proof_to_the_estimate(run, folder):
    run("design", "extremal", "--p0", "0.2,0.3,0.5", "--p1", "0.5,0.3,0.2", "--epsilon", "1", "--save", "proof.json")
    Path("draft.json").write_text(
        json.dumps({"name": "e", "questions": [{"id": "effect", "text": "?", "answers": {"table": "proof.json"}}]})
    )
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert "Table" in made
    Path("answers.csv").write_text("effect\n" + "0\n1\n2\n" * 300, encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    (found,) = run("estimate", "survey.json", "reports.parquet", "--json").json["questions"]
    assert (found["protocol"], len(rows_of(found)), found["n"]) == ("Table", 3, 900)
    proof = json.loads(Path("proof.json").read_text())
    proof["epsilon"] = "1/2"
    Path("proof.json").write_text(json.dumps(proof))
    assert "proof does not hold" in run("survey", "new", "draft.json", "-o", "other.json", code=2).err


def test_a_designed_mean_from_the_proof_to_the_estimate(run, folder):
    shown = run("design", "mean", "--epsilon", "2", "--positions", "5", "--save", "proof.json").out
    assert "relative gap" in shown
    assert "hybrid" in shown
    document = run("design", "mean", "--epsilon", "2", "--positions", "5", "--json").json
    assert document["value"] < document["rivals"]["hybrid"] < document["rivals"]["OneBitMean"]
    assert document["relative_gap"] < 1e-5
    assert "verified (proved)" in run("design", "verify", "proof.json").out
    made = run("survey", "new", "draft.json", "--table", "hours=proof.json", "-o", "survey.json").out
    assert "MeanTable" in made
    asked = json.loads(Path("survey.json").read_text(encoding="utf-8"))["questions"][0]["protocol"]
    assert (asked["protocol"], len(asked["rows"]), len(asked["certificate"])) == ("MeanTable", 5, 64)
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    (row,) = rows_of(run("estimate", "survey.json", "reports.parquet", "--json").json["questions"][0])
    assert row["unit"] == "hours"
    assert abs(row["value"] - np.clip(folder, 0, 12).mean()) < 5 * row["stderr"]
    proof = json.loads(Path("proof.json").read_text(encoding="utf-8"))
    Path("weak.json").write_text(json.dumps(proof | {"bound": proof["value"]}), encoding="utf-8")
    refused = run("survey", "new", "draft.json", "--table", "hours=weak.json", "-o", "other.json", code=2).err
    assert "the proof does not hold: bound" in refused
    refused = run("survey", "new", "draft.json", "--table", "nap=proof.json", "-o", "other.json", code=2).err
    assert "answers in the draft already" in refused
    assert "--epsilon" in run("design", "mean", code=2).err
    run("design", "mean", "--epsilon", "1", "--positions", "1", code=2)


def test_the_planner_shows_the_designed_mean(run):
    asked = ["plan", "--number", "0..24", "--unit", "hours", "--people", "1000", "--json", "--epsilon"]
    named = {row["name"]: row["noise"] for row in run(*asked, "2").json["table"]}
    assert named["MeanTable"] < named["Window"] < named["OneBitMean"]
    assert {row["name"] for row in run(*asked, "0.1").json["table"]} == {"Window", "OneBitMean"}


def test_variance_and_correlation_from_draft_to_estimate(run, folder):
    number = {"number": {"low": 0, "high": 12, "unit": "hours"}}
    one = {"id": "hours", "text": "How long?", "answers": number, "protocol": "Moments"}
    two = {
        "id": "both",
        "text": "Both?",
        "answers": {"record": {"sleep": number, "work": number}},
        "protocol": "Moments",
    }
    Path("draft.json").write_text(json.dumps(DRAFT | {"questions": [one, two]}), encoding="utf-8")
    made = run("survey", "new", "draft.json", "-o", "survey.json").out
    assert "Moments" in made
    run("survey", "show", "survey.json")
    lines = [f"{hour:.2f},{hour:.2f},{12 - hour:.2f}" for hour in np.tile(folder, 5)]
    Path("answers.csv").write_text("\n".join(["hours,sleep,work", *lines]) + "\n", encoding="utf-8")
    run("privatize", "survey.json", "answers.csv", "-o", "reports.parquet")
    found = run("estimate", "survey.json", "reports.parquet", "--json").json["questions"]
    assert [one["kind"] for one in found] == ["moments", "moments"]
    rows = {row["label"]: row for row in rows_of(found[0])}
    assert rows["standard deviation"]["unit"] == "hours"
    assert (
        abs(rows["standard deviation"]["value"] - np.clip(folder, 0, 12).std())
        < 5 * rows["standard deviation"]["stderr"]
    )
    (correlation,) = (row for row in rows_of(found[1]) if row["label"] == "correlation")
    assert abs(correlation["value"] + 1) < 5 * correlation["stderr"]
    assert "standard deviation" in run("estimate", "survey.json", "reports.parquet").out
    assert run("estimate", "survey.json", "reports.parquet", "--csv").out.count("correlation") == 1
    run("estimate", "survey.json", "reports.parquet", "--plot", "both.png")


def test_a_draft_says_what_is_known_of_the_shape(run, folder):
    def chosen(**more):
        age = {"id": "age", "text": "How old are you?", "answers": {"low": 18, "high": 99, "read": "distribution"}}
        Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [{**age, **more}]}))
        made = run("survey", "new", "draft.json", "-o", "survey.json").out
        survey = json.loads(Path("survey.json").read_text())
        return survey["questions"][0]["protocol"]["protocol"], " ".join(made.split())

    assert [chosen(shape=shape)[0] for shape in ("smooth", "rough", "unknown")] == ["Window", "Ranges", "Window"]
    assert "many people are assumed to give the same few numbers" in chosen(shape="rough")[1]
    for wrong, why in (
        ({"shape": "spiky"}, "'smooth', 'rough' or 'unknown'"),
        ({"shape": "smooth", "protocol": "Ranges"}, "leave one of them out"),
        ({"shape": "smooth", "answers": ["yes", "no"]}, "distribution or ranges"),
    ):
        age = {"id": "age", "text": "?", "answers": {"low": 18, "high": 99, "read": "distribution"}}
        Path("draft.json").write_text(json.dumps({**DRAFT, "questions": [{**age, **wrong}]}))
        assert why in " ".join(run("survey", "new", "draft.json", code=2).err.split())


def test_coordinates_become_cells_that_can_be_privatized(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    box = ["--box", "52.34,13.09,52.68,13.76"]
    Path("homes.csv").write_text("name,latitude,longitude\na,52.52,13.405\nb,40,13.76\n\nc,52.34,13.09\n")
    said = run("survey", "cells", "homes.csv", *box, "--columns", "24", "-o", "cells.csv").out
    assert Path("cells.csv").read_text() == "north,east,name\n11,12,a\n1,24,b\n1,1,c\n"
    assert "a grid of 24 x 20 places" in said
    assert run("survey", "cells", "homes.csv", *box, "--grid", "24x20", "-o", "-").out == Path("cells.csv").read_text()
    home = {"id": "home", "text": "Where?", "answers": {"places": {"columns": 24, "rows": 20}}}
    Path("draft.json").write_text(json.dumps({"name": "homes", "epsilon": "1", "people": 100, "questions": [home]}))
    run("survey", "new", "draft.json", "-o", "survey.json")
    assert "3 rows" in run("privatize", "survey.json", "cells.csv", "-o", "reports.parquet").out
    Path("plane.csv").write_text("y,x\n5,15\n")
    plane = ["--box", "0,0,10,20", "--plane", "--latitude", "y", "--longitude", "x", "--grid", "4x2", "-o", "-"]
    assert run("survey", "cells", "plane.csv", *plane).out == "north,east\n2,4\n"
    Path("bad.csv").write_text("latitude,longitude\n52.5,13.4\ns3cret,13.4\n")
    for given, why in (
        (["bad.csv", *box, "--columns", "24"], "row 2: latitude and longitude"),
        (["plane.csv", *box, "--columns", "24"], "no column 'latitude'"),
        (["homes.csv", "--box", "1,2,3", "--columns", "24"], "south, west, north and east"),
        (["homes.csv", "--box", "60,13,50,14", "--columns", "24"], "south below north"),
        (["homes.csv", "--box", "60,13,91,14", "--columns", "24"], "between -90 and 90"),
        (["homes.csv", *box], "either --grid"),
        (["missing.csv", *box, "--columns", "24"], "missing.csv"),
    ):
        refused = run("survey", "cells", *given, "-o", "out.csv", code=2)
        assert why in " ".join(refused.err.split())
        assert "s3cret" not in refused.err
    assert not Path("out.csv").exists()


def test_intervals_allow_for_forged_reports(run, tmp_path):
    protocol = dn.GRR(["yes", "no"], epsilon=1)
    (tmp_path / "coin.json").write_text(json.dumps(protocol.spec()))
    protocol.tally(protocol.privatize(["yes"] * 300 + ["no"] * 200, dn.Simulation(1))).save(tmp_path / "tally.json")
    files = str(tmp_path / "coin.json"), str(tmp_path / "tally.json")
    plain, robust = (
        json.loads(run("estimate", *files, "--json", *more).out)["questions"][0] for more in ((), ("--robust", "20"))
    )
    for before, after in zip(rows_of(plain), rows_of(robust), strict=True):
        assert after["value"] == before["value"]
        assert after["low"] < before["low"] - 20 / 500
        assert after["high"] > before["high"]
    assert "even if up to 20 of the reports are forged" in " ".join(robust["notes"])
    assert "20 of the reports are forged" in run("estimate", *files, "--robust", "20").out
