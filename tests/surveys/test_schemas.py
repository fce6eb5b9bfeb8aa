"""The JSON Schemas: stored as they are made, allowing what is read and written, and refusing what is not."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.errors import DeniableError
from deniable.randomness import Simulation
from deniable.surveys import Survey, SurveyTally, schemas
from deniable.surveys.draft import _SHARED, TERMS

GOLDEN = Path(__file__).parents[1] / "golden"
ASKED: dict[str, Any] = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"], "protocol": "GRR"}
PLAIN: dict[str, Any] = {"$schema": "draft.schema.json", "name": "habits", "epsilon": "1", "questions": [ASKED]}
ASKS = {"owner": "Acme Ltd", "purpose": "to plan the canteen"}
COLLECTED = (
    PLAIN
    | ASKS
    | {
        "people": 2000,
        "opens": "2026-11-01T00:00:00Z",
        "days": 14,
        "epochs": {"days": 1, "late": 2},
        "longitudinal": {"rule": "memoize", "epochs": 7, "values": 1},
        "retention": "tally",
        "min_reports": 50,
    }
)
DRAFTS = {
    "plain": PLAIN,
    "collected": COLLECTED,
    "with two ends": PLAIN | ASKS | {"opens": "2026-11-01T00:00:00Z", "expires": "2026-11-09T00:00:00Z"},
    "divided": PLAIN | ASKS | {"days": 2, "budget": {"group": "g", "epsilon": 4}, "people": "500"},
    "strata": PLAIN | {"strata": {"country": ["de", "fr"]}},
    "per device": PLAIN | {"per_device": 1, "people": 900, "questions": [
        {"id": "a", "text": "A?", "answers": ["yes", "no"]},
        {"id": "b", "text": "B?", "answers": {"low": 0, "high": 9}}]},
    "a spec": PLAIN | {"questions": [{"id": "a", "text": "A?", "protocol": dn.OUE(["x", "y"], epsilon=1).spec()}]},
    "left out": PLAIN | {"questions": [ASKED | {"other": None, "missing": None, "people": None}]},
    "other": PLAIN | {"questions": [ASKED | {"other": "else", "missing": "none", "epsilon": 0.5, "parameters": {}}]},
}  # fmt: skip


def wrong(kind: str, content: Any) -> list[str]:
    validator = jsonschema_rs.validator_for(json.loads(schemas.stored(kind)))
    return [error.message for error in validator.iter_errors(content)]


def plain(content: Any) -> Any:
    return json.loads(json.dumps(content))


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_the_stored_schema_is_the_one_that_is_made(kind: str) -> None:
    assert schemas.stored(kind) == schemas.text(kind), "run python -m deniable.surveys.schemas"
    jsonschema_rs.meta.validate(json.loads(schemas.text(kind)))
    assert {path.stem for path in schemas.HERE.iterdir()} == set(schemas.KINDS)
    assert wrong(kind, {}) != []


@pytest.mark.parametrize("name", DRAFTS)
def test_drafts_surveys_and_tallies_follow_their_schemas(name: str) -> None:
    survey = Survey.from_draft(DRAFTS[name])
    assert wrong("draft", DRAFTS[name]) == []
    assert wrong("survey", plain(survey.spec())) == []
    assert wrong("tally", plain(SurveyTally.empty(survey).spec())) == []


def test_a_draft_names_its_schema_and_gives_the_same_survey() -> None:
    without = {key: value for key, value in PLAIN.items() if key != "$schema"}
    assert Survey.from_draft(PLAIN).fingerprint == Survey.from_draft(without).fingerprint
    assert "$schema" not in Survey.from_draft(PLAIN).spec()


@pytest.mark.parametrize(
    "change",
    [
        {"peple": 3},
        {"questions": []},
        {"questions": [ASKED | {"answer": ["x"]}]},
        {"questions": [{"id": "smoke", "text": "Do you smoke?"}]},
        {"questions": [ASKED | {"id": "A question"}]},
        {"days": 0},
        {"opens": "tomorrow"},
        {"retention": "all"},
        {"longitudinal": {"rule": "often"}},
    ],
    ids=str,
)
def test_what_is_refused_is_not_in_the_schema(change: dict[str, Any]) -> None:
    draft = copy.deepcopy(COLLECTED) | change
    assert wrong("draft", draft) != []
    with pytest.raises(DeniableError):
        Survey.from_draft(draft)


def test_editors_complete_every_key_and_every_protocol() -> None:
    made = json.loads(schemas.stored("draft"))
    more = {"strata", "per_device", "language", "translations", "$schema"}
    assert set(made["properties"]) == {"name", "questions", *_SHARED, *TERMS, *more}
    names = made["properties"]["protocol"]["anyOf"][0]["enum"]
    assert names[0] == "best"
    assert {"GRR", "OLH", "Window"} <= set(names)


def test_published_surveys_follow_the_schema() -> None:
    stored = json.loads((GOLDEN / "surveys.json").read_text(encoding="utf-8"))
    assert len(stored) >= 9
    for entry in stored:
        assert wrong("survey", entry["spec"]) == []
        assert wrong("survey", entry["spec"] | {"version": 3}) != []
        assert wrong("survey", entry["spec"] | {"colour": "red"}) != []


def test_results_and_audits_follow_their_schemas(tmp_path: Path) -> None:
    survey = Survey.from_draft(COLLECTED)
    survey.save(tmp_path / "survey.json")
    protocol = survey["smoke"].protocol
    counted = protocol.tally(protocol.privatize(["yes", "no"] * 250, Simulation(1)))
    counted = replace(counted, source=survey.source("smoke"))
    tally = SurveyTally(survey.fingerprint, {"smoke": counted})
    tally.save(tmp_path / "tally.json")
    assert wrong("tally", json.loads((tmp_path / "tally.json").read_text())) == []

    def printed(*words: str) -> Any:
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    (found,) = printed("estimate", str(tmp_path / "survey.json"), str(tmp_path / "tally.json"))["questions"]
    assert wrong("document", found) == []
    assert wrong("document", found | {"n": "many"}) != []
    audited = printed("audit", str(tmp_path / "survey.json"))
    assert wrong("audit", audited) == []
    assert wrong("audit", audited | {"fingerprint": "none"}) != []
    (tmp_path / "protocol.json").write_text(json.dumps(survey["smoke"].protocol.spec()))
    assert wrong("audit", printed("audit", str(tmp_path / "protocol.json"))) == []


def test_the_command_writes_the_schema(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["survey", "schema", "tally"]).stdout == schemas.stored("tally")
    runner.invoke(app, ["survey", "schema", "draft", "-o", str(tmp_path / "draft.schema.json")])
    assert (tmp_path / "draft.schema.json").read_text(encoding="utf-8") == schemas.stored("draft")
    refused = runner.invoke(app, ["survey", "schema", "shopping"])
    assert refused.exit_code == 2
