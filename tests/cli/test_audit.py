"""`deniable audit`: verdicts, exit codes, programs and the page that a reviewer signs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.privacy import forge
from deniable.randomness import Simulation

CLIENT = "import sys\nfor line in sys.stdin: print(format({value}, '02x'), flush=True)"


def _run(*words: object) -> object:
    return CliRunner().invoke(app, ["audit", *map(str, words)])


def _client(value: str) -> str:
    return shlex.join([sys.executable, "-c", CLIENT.format(value=value)])


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    smoke = dn.Question("smoke", "Do you <smoke>?", dn.GRR(["yes", "no"], epsilon=1))
    drink = dn.Question("drink", "How often?", dn.OUE(["never", "weekly", "daily"], epsilon="1/2"))
    path = tmp_path / "survey.json"
    dn.Survey("habits", [smoke, drink]).save(path)
    return path


def test_a_survey_is_cleared_and_its_page_says_so(survey: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    result = _run(survey, "--report", page, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["audit"]["verdict"] == "cleared"
    assert content["audit"]["exact"] == pytest.approx(1.5)
    text = page.read_text(encoding="utf-8")
    assert dn.Survey.load(survey).fingerprint in text
    assert "Do you &lt;smoke&gt;?" in text
    assert "<smoke>" not in text
    assert "src=" not in text  # nothing is loaded
    assert "href=" not in text
    again = json.loads(_run(survey, "--seed", content["seed"], "--json").stdout)
    assert again | {"written": ""} == content | {"written": ""}  # the same figures


def test_exit_codes_say_the_verdict() -> None:
    told = _run("--client", _client("int(line)"), "--values", "0,1", "--epsilon", "1", "--samples", "1000")
    assert told.exit_code == 1, told.output
    silent = _run("--client", _client("7"), "--values", "0,1", "--epsilon", "1", "--samples", "1000")
    assert silent.exit_code == 3, silent.output
    assert "no power" in silent.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a survey"),
        (["--client", "./client"], "--values"),
        (["--client", "./client", "--values", "0,1"], "--epsilon"),
        (["--client", "./no-such", "--values", "0,1", "--epsilon", "1"], "cannot be started"),
        (["--client", "./no-such", "--values", "0,0", "--epsilon", "1"], "stands twice"),
        (["--client", "./no-such", "--values", "0,1", "--epsilon=-1"], "not negative"),
        (["--client", "'./no-such", "--values", "0,1", "--epsilon", "1"], "cannot be read"),
        (["--client", "./no-such", "--values", "0,1", "--epsilon", "1", "--samples", "5"], "100"),
    ],
)
def test_a_wrong_call_is_two(words: list[str], said: str) -> None:
    result = _run(*words)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("values", [1, 3])
def test_the_page_states_a_number_for_all_reports_only_where_one_holds(tmp_path: Path, values: int) -> None:
    draft = {
        "name": "habits",
        "owner": "Institute",
        "purpose": "a study",
        "days": 60,
        "epochs": {"days": 7},
        "longitudinal": {"rule": "memoize", "values": values, "epochs": 4},
        "questions": [{"id": "smoke", "text": "?", "answers": ["yes", "no", "never"], "epsilon": 1, "protocol": "GRR"}],
    }
    asked, page = tmp_path / "survey.json", tmp_path / "audit.html"
    survey = dn.Survey.from_draft(draft)
    survey.save(asked)
    assert _run(asked, "--report", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert ("no epsilon bounds all reports together" in text) is (survey.lifetime_epsilon is None) is (values == 3)
    assert ("All that a device may ever send: epsilon 1." in text) is (values == 1)


def test_forged_reports_raise_an_alarm(tmp_path: Path) -> None:
    """Honest reports raise none; a test is wrong in one of a thousand honest collections, and the seed is fixed."""
    protocol, bits = dn.OUE(20, epsilon=1), Simulation(1)
    spec = tmp_path / "protocol.json"
    spec.write_text(json.dumps(protocol.spec()))
    honest = protocol.privatize([1, 2, 3, 4] * 500, bits)
    forged = forge(protocol, [7, 8, 9], 100)
    honest.save(tmp_path / "honest.txt")
    forged.save(tmp_path / "forged.txt")
    calm = _run(spec, "--reports", tmp_path / "honest.txt")
    assert calm.exit_code == 0, calm.output
    assert "No sign of forged reports among 2,000" in " ".join(calm.output.split())
    both = ["--reports", tmp_path / "honest.txt", "--reports", tmp_path / "forged.txt"]
    found = _run(spec, *both)
    assert found.exit_code == 1
    said = " ".join(found.output.split())
    assert "Alarm: honest devices alone hardly ever send 2,100 reports like these." in said
    assert "Too many reports are the same, byte for byte" in said
    content = json.loads(_run(spec, *both, "--json").stdout)["questions"]["report"]
    assert content["alarm"] is True
    assert content["n"] == 2100
    assert content["agreement"] < 1e-9
    wrong = _run("--reports", tmp_path / "honest.txt")
    assert wrong.exit_code == 2
