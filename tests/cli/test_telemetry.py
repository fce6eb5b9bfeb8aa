"""`deniable telemetry`: what an application collects, and whether it would collect here."""

from __future__ import annotations

import pytest

from deniable.collect.client.telemetry import BUILD_SERVERS, explained
from tests.cli.test_dossier import made
from tests.surveys.test_dossier import faults, text_of


@pytest.mark.parametrize("language", ["en", "de"])
def test_explain(run, tmp_path, language):
    survey = made(tmp_path / "survey.json")
    page = tmp_path / "telemetry.html"
    content = run("telemetry", "explain", tmp_path / "survey.json", "--language", language, "-o", page, "--json").json
    sections = explained(survey, language)
    assert [(one["heading"], one["sentences"]) for one in content["sections"]] == sections
    written = page.read_text(encoding="utf-8")
    assert faults(written) == []
    assert f'<html lang="{language}">' in written
    plain = " ".join(run("telemetry", "explain", tmp_path / "survey.json", "--language", language).out.split())
    for heading, sentences in sections:
        for one in (heading, *sentences):
            assert one in text_of(written)
            assert one in plain


def test_status(run, monkeypatch):
    for name in ("DO_NOT_TRACK", *BUILD_SERVERS):
        monkeypatch.delenv(name, raising=False)
    assert run("telemetry", "status").out.startswith("on: ")
    monkeypatch.setenv("CI", "true")
    assert run("telemetry", "status").out == "off: the environment has CI\n"
    assert run("telemetry", "status", "--json").json == {"on": False, "variable": "CI"}
