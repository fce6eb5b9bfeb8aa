"""The container files name things that exist, and two workers with a database that keeps its word."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.server.run import GRACE_SECONDS, SPARE_FILES
from deniable.collect.server.settings import Settings

ROOT = Path(__file__).parents[1]
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))


def serve_options() -> set[str]:
    return set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["serve", "--help"]).stdout))


def test_what_is_copied_is_there():
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER, re.MULTILINE) for name in line.split()
    ]
    assert {"src", "web", "pyproject.toml"} <= set(copied)
    assert all((ROOT / name).exists() for name in copied)


def test_the_service_is_started_with_options_that_it_has():
    (command,) = re.findall(r"^CMD \[(.+)\]$", CONTAINER, re.MULTILINE)
    words = re.findall(r'"([^"]*)"', command) + COMPOSE["services"]["collect"]["command"]
    assert {word for word in words if word.startswith("--")} <= serve_options()
    assert "USER deniable" in CONTAINER


def test_two_workers_share_a_database_that_is_durable():
    collect, database = COMPOSE["services"]["collect"], COMPOSE["services"]["db"]
    at = collect["command"].index("--workers")
    assert collect["command"][at + 1] == "2"
    assert "-csynchronous_commit=on" in database["command"]
    assert all(port.startswith("127.0.0.1:") for port in collect["ports"])
    assert (ROOT / "deploy" / collect["build"]["context"]).resolve() == ROOT


def test_no_password_is_on_a_command_line_or_in_the_file():
    for service in COMPOSE["services"].values():
        words = " ".join(service["command"])
        assert "password" not in words.lower()
        assert "$" not in words
        settings = service["environment"]
        assert not any("PASSWORD" in name and not name.endswith("_FILE") for name in settings)
        assert settings.get("DENIABLE_STORE", "").count(":") <= 1
        (file,) = [value for name, value in settings.items() if name.endswith("PASSWORD_FILE")]
        assert file == f"/run/secrets/{service['secrets'][0]}"
    assert [*COMPOSE["secrets"]] == ["database_password"]


def test_the_unit_starts_what_there_is_and_waits_for_its_end():
    unit = (ROOT / "deploy" / "deniable.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    assert set(re.findall(r"--[a-z-]+", command)) <= serve_options()
    settings = Settings(store="sqlite:///x.db")
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(seconds) >= settings.stop_seconds + GRACE_SECONDS
    (files,) = re.findall(r"^LimitNOFILE=(\d+)$", unit, re.MULTILINE)
    assert int(files) >= settings.connections + SPARE_FILES
