"""deniable estimate of answers that nobody listed, and what the planner and a draft say about discovery beforehand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from deniable import HeavyHitters, ShortText, Simulation, Survey, plan
from tests.documents import rows_of

DRAFT = {
    "name": "words",
    "epsilon": 8,
    "people": 4000,
    "questions": [
        {"id": "word", "text": "Which word?", "answers": {"discover": {"bytes": 4}}},
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
    ],
}
WORD = ("--question", "word")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A survey, the tally of 4,000 people of whom a third say tea, and one of people who all say something else."""
    folder = tmp_path_factory.mktemp("words")
    survey, random = Survey.from_draft(DRAFT), np.random.default_rng(1)
    others = [f"{one:x}" for one in random.integers(0, 1 << 16, 4000)]
    for name, words in (("tally", ["tea", "日"] * 1300 + others[2600:]), ("nothing", others)):
        answers = {"word": words, "smoke": ["yes", "no"] * 2000}
        survey.tally(survey.privatize(answers, bits=Simulation(2))).save(folder / f"{name}.json")
    survey.save(folder / "survey.json")
    return folder


def test_common_words_are_found_with_intervals_and_p_values(run, counted):
    survey, tally = counted / "survey.json", counted / "tally.json"
    (found,) = run("estimate", survey, tally, *WORD, "--json").json["questions"]
    assert (found["id"], found["kind"]) == ("word", "found")
    assert {row["label"] for row in rows_of(found)} == {"tea", "日"}
    for row in rows_of(found):
        assert row["low"] < row["value"] < row["high"]
        assert abs(row["value"] - 0.325) < 4 * row["stderr"]  # by chance in one of 16,000 rows
        assert row["p_value"] < 1e-9
    assert found["facts"]["false_finds"] == pytest.approx(0.0498, abs=1e-4)
    assert found["facts"]["smallest"] == pytest.approx(Survey.load(survey)["word"].protocol.worth(4000).visible())
    shown = run("estimate", survey, tally, *WORD).out
    assert "p-value" in shown.splitlines()[5]
    assert "5 of 100 collections at most would find anything" in " ".join(shown.split())
    rows = list(csv.DictReader(io.StringIO(run("estimate", survey, tally, *WORD, "--csv").out)))
    assert {row["label"]: float(row["p_value"]) < 1e-9 for row in rows} == {"tea": True, "日": True}
    strict = run("estimate", survey, tally, *WORD, "--significant", "0.01", "--json").json["questions"][0]
    assert "p-values up to 0.01" in strict["method"]
    for chosen in ((), ("--significant", "0.01")):
        narrow, wide = (
            rows_of(run("estimate", survey, tally, *WORD, "--json", *chosen, *more).json["questions"][0])
            for more in ((), ("--robust", "40"))
        )
        for one, other in zip(narrow, wide, strict=True):
            assert other["low"] < one["low"] < one["high"] < other["high"]
    assert "even if up to 40 of the reports are forged" in run("estimate", survey, tally, *WORD, "--robust", "40").out


def test_nothing_common_gives_an_empty_list_and_a_sentence(run, counted):
    survey, tally = counted / "survey.json", counted / "nothing.json"
    assert rows_of(run("estimate", survey, tally, *WORD, "--json").json["questions"][0]) == []
    assert "nothing was found; answers of less than" in " ".join(run("estimate", survey, tally, *WORD).out.split())
    assert len(run("estimate", survey, tally, *WORD, "--csv").out.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--question", "smoke", "--significant", "0.01"), "--significant is for discovered answers"),
        (("--question", "wrod"), "there is no question 'wrod'"),
        (("--significant", "2"), "lies between 0 and 1"),
        (("--json", "--csv"), "--json"),
    ],
)
def test_what_cannot_be_discovered_is_refused_in_a_sentence(run, counted, arguments, said):
    assert said in run("estimate", counted / "survey.json", counted / "tally.json", *arguments, code=2).err


def test_the_planner_says_beforehand_what_will_be_found(run, counted):
    made = run("plan", "--discover", "4", "--epsilon", "8", "--people", "4000", "--json").json
    protocol = HeavyHitters(ShortText(4), 8, people=4000)
    assert made["best"] == protocol.spec(), "the settings are those for so many people"
    assert made["table"][0]["visible"] == pytest.approx(protocol.worth(4000).visible())
    small = plan(ShortText(4), epsilon=8, n=4000, memory=1_000_000).best
    assert 8 * small.tally_size <= 1_000_000 < 8 * protocol.tally_size
    assert (
        "found nine times out of ten" in run("plan", "--discover", "64bits", "--epsilon", "4", "--people", "9999").out
    )
    assert (
        "allow more memory"
        in run("plan", "--discover", "8", "--epsilon", "4", "--people", "9999", "--memory", "0.0001", code=2).err
    )
    assert "64bits" in run("plan", "--discover", "many", "--epsilon", "4", "--people", "9999", code=2).err
    Path(counted / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    lines = run("survey", "new", counted / "draft.json", "-o", counted / "again.json").out.splitlines()
    (word,) = [line for line in lines if line.startswith("word ") and "points" in line]
    assert word.endswith(f"{100 * protocol.worth(4000).visible():.1f} %")
