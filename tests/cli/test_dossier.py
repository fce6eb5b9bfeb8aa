"""`deniable dossier`, and the recipe of the docs that fails when a survey change weakens privacy."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from deniable.surveys import Survey
from tests.cli.conftest import COMMAND

PAGE = Path(__file__).parents[2] / "docs" / "dossier.md"
DRAFT = {
    "name": "usage",
    "owner": "Example Institute",
    "purpose": "To plan capacity.",
    "people": 1000,
    "opens": "2026-11-01T00:00:00Z",
    "days": 28,
    "epochs": {"days": 28},
    "questions": [{"id": "often", "text": "How often?", "answers": ["daily", "weekly"], "protocol": "GRR"}],
}


def made(path: Path, epsilon: str = "1") -> Survey:
    survey = Survey.from_draft(DRAFT | {"epsilon": epsilon})
    survey.save(path)
    return survey


@pytest.fixture
def survey(tmp_path):
    made(tmp_path / "survey.json")
    return tmp_path / "survey.json"


def test_page_record_and_json(run, survey, tmp_path):
    page, record = tmp_path / "dossier.html", tmp_path / "record.yaml"
    ran = run("dossier", survey, "-o", page, "--registry", record, "--seed", 3, "--json")
    assert ran.json["kind"] == "dossier"
    assert ran.json["audit"]["seed"] == 3
    assert "to be filled in: deployment.basic.data_product_region" in ran.err
    assert yaml.safe_load(record.read_text(encoding="utf-8")) == ran.json["registry"]
    assert ran.json["fingerprint"] in page.read_text(encoding="utf-8")
    assert run("dossier", survey, "--seed", 3).out.startswith("<!doctype html>")
    assert "written: " in run("dossier", survey, "-o", page).out


def test_previous_version_and_language(run, survey, tmp_path):
    old = tmp_path / "old.json"
    made(old, "1/2")
    found = run("dossier", survey, "--previous", old, "--language", "de", "--json").json
    assert found["previous"]["weaker"]
    assert found["language"] == "de"
    assert "verwürfelt" in found["promises"][0]
    assert run("dossier", "-", "--previous", old, "--json", stdin=survey.read_text()).json["previous"]["weaker"]


@pytest.mark.parametrize("wrong", [("--language", "xx"), ("--previous", "nowhere.json")])
def test_mistakes_are_one_line(run, survey, wrong):
    run("dossier", survey, *wrong, code=2)


def test_standard_input_is_read_once(run, survey):
    run("dossier", "-", "--previous", "-", stdin=survey.read_text(), code=2)


# -- the recipe of the docs -----------------------------------------------------------------------------------


def recipes() -> tuple[list[str], str]:
    """The commands of the workflow, and that of the hook."""
    workflow, hook = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    steps = [step["run"] for step in workflow["jobs"]["survey"]["steps"] if "run" in step]
    return [step for step in steps if not step.startswith("pip ")], hook["repos"][0]["hooks"][0]["entry"]


def shell(command: str, folder: Path) -> int:
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "GITHUB_BASE_REF": "main", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True).returncode


@pytest.fixture
def repository(tmp_path):
    """A repository whose remote has the survey with epsilon 1 on its main branch."""
    made(tmp_path / "survey.json")
    author = "-c user.name=A -c user.email=a@example.org"
    begun = f"git init -q -b main && git add survey.json && git {author} commit -qm one"
    assert shell(f"{begun} && git update-ref refs/remotes/origin/main HEAD", tmp_path) == 0
    return tmp_path


@pytest.mark.parametrize(("epsilon", "fails"), [("1", False), ("1/2", False), ("2", True)])
def test_the_recipe_fails_only_if_privacy_gets_weaker(repository, epsilon, fails):
    steps, hook = recipes()
    assert [step.split()[:3] for step in steps if step.startswith("deniable")] == [
        ["deniable", "survey", "diff"],
        ["deniable", "audit", "survey.json"],
        ["deniable", "dossier", "survey.json"],
    ]
    made(repository / "survey.json", epsilon)
    codes = [shell(step, repository) for step in steps]
    assert codes == [0, int(fails), 0, 0]
    assert shell(hook, repository) == int(fails)
    assert (repository / "dossier.html").stat().st_size > 10_000
