"""Surveys from drafts over HTTP: the same that the command line makes, with what to expect of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.server.drafts import MOST_BYTES, MOST_QUESTIONS
from deniable.surveys import Survey
from deniable.surveys.diff import diff
from tests.collect.server.live import Answered, Live, in_thread, moving
from tests.collect.surveys import TODAY, plain

DRAFT: dict[str, Any] = {
    "name": "habits",
    "owner": "Example Institute",
    "purpose": "to plan",
    "days": 30,
    "people": 2000,
    "epsilon": "1",
    "questions": [
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
        {"id": "sleep", "text": "Sleep?", "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}}},
        {"id": "parts", "text": "Parts", "answers": {"record": {"tea": ["yes", "no"], "town": ["a", "b", "c"]}}},
        {"id": "home", "text": "Where?", "answers": {"places": {"columns": 4, "rows": 3}, "read": "rectangles"}},
    ],
}
NOW = TODAY + 1800.0


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with in_thread(f"sqlite:///{tmp_path_factory.mktemp('drafts') / 'store.db'}", plain(), **moving([NOW])) as service:
        yield service


def post(live: Live, draft: Any, raw: bytes | None = None) -> Answered:
    body = json.dumps(draft).encode() if raw is None else raw
    return live.ask("POST", "/v1/drafts", body, headers={"Content-Type": "application/json"})


def test_it_is_the_survey_of_the_command_line(live: Live) -> None:
    made = post(live, DRAFT)
    assert made.status == 200
    wanted = Survey.from_draft(DRAFT, NOW)
    assert made.json["fingerprint"] == wanted.fingerprint
    assert made.json["survey"] == wanted.canonical.decode()
    assert made.json["changes"] == []
    assert live.get(f"/v1/surveys/{wanted.fingerprint}").status == 404, "nothing is published"
    headers = {"Content-Type": "application/json"}
    published = live.ask("POST", "/v1/surveys", made.json["survey"].encode(), "admin", headers)
    assert (published.status, published.json["fingerprint"]) == (201, wanted.fingerprint)


def test_the_expected_precision_is_that_of_the_command_line(live: Live, tmp_path: Path) -> None:
    figures = post(live, DRAFT).json["expected"]
    assert [one["id"] for one in figures] == ["smoke", "sleep", "parts.tea", "parts.town", "home"]
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    words = ["survey", "new", str(tmp_path / "draft.json"), "-o", str(tmp_path / "survey.json")]
    printed = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    for one in figures:
        reach = f"{one['half_width']:.3g} hours" if one["unit"] else f"{100 * one['half_width']:.1f} points"
        (line,) = [line for line in printed.splitlines() if line.split()[:2] == [one["id"], f"{one['people']:,}"]]
        assert f"+-{reach}" in " ".join(line.split())


def test_an_epsilon_that_is_a_float_is_read_by_its_digits(live: Live) -> None:
    made = post(live, DRAFT | {"epsilon": 0.1}).json
    assert made["fingerprint"] == Survey.from_draft(DRAFT | {"epsilon": "1/10"}, NOW).fingerprint


def test_more_people_make_it_more_exact(live: Live) -> None:
    few, many = (post(live, DRAFT | {"people": people}).json["expected"][0] for people in (500, 8000))
    assert many["half_width"] < few["half_width"] / 3
    assert many["visible"] < few["visible"] / 3


def test_changes_to_the_survey_that_it_replaces(live: Live) -> None:
    draft = DRAFT | {"replaces": plain().fingerprint}
    found = post(live, draft).json["changes"]
    wanted = diff(plain(), Survey.from_draft(draft, NOW))
    assert [(one["what"], one["privacy"]) for one in found] == [(edit.what, edit.privacy) for edit in wanted]
    assert "weaker" in {one["privacy"] for one in found}
    assert all(isinstance(one["before"], str) for one in found)
    unknown = post(live, DRAFT | {"replaces": "f" * 64})
    assert unknown.problem == "malformed"
    assert "not published here" in unknown.json["detail"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name of a survey"),
        ({"epsilon": "many"}, "epsilon"),
        ({"people": "some"}, "people"),
        ({"questions": []}, "question"),
        ({"questions": [{"id": "a", "text": "A", "answers": ["one"]}]}, "question 'a'"),
        ({"questions": [{"id": "a", "text": "A", "answers": {"low": 0, "high": 1 << 40}}]}, "question 'a': at most"),
        ({"questions": [{"id": "a", "text": "A", "answers": {"table": {}}}]}, "deniable survey new"),
        ({"questions": [{"id": "a", "text": "A", "answers": ["x", "y"], "protocol": {}}]}, "deniable survey new"),
        ({"questions": DRAFT["questions"][:1] * (MOST_QUESTIONS + 1)}, f"at most {MOST_QUESTIONS} questions"),
        ({"campaign": {"kind": "narrowing"}}, "no campaign"),
        ({"sponsor": "x"}, "sponsor"),
        ({"owner": ...}, "owner"),
        ({"owner": ..., "purpose": ..., "days": ...}, "who asks, and what for"),
    ],
)
def test_what_is_wrong_is_said(live: Live, change: dict[str, Any], message: str) -> None:
    draft = {key: value for key, value in (DRAFT | change).items() if value is not ...}
    refused = post(live, draft)
    assert (refused.status, refused.problem) == (400, "malformed")
    assert message in refused.json["detail"]


def test_other_bodies_are_refused(live: Live) -> None:
    for raw in (b"", b"[", b"3", b"[]", b'"draft"', b'{"questions": 3, "name": 4}'):
        assert post(live, None, raw).problem == "malformed"
    assert post(live, DRAFT | {"name": "x" * MOST_BYTES}).problem == "tooLarge"
    assert live.ask("POST", "/v1/drafts", b"{}").problem == "unsupportedMediaType"


def test_a_service_without_plans_makes_no_surveys(tmp_path: Path) -> None:
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), plans=False) as service:
        assert post(service, DRAFT).problem == "notFound"
