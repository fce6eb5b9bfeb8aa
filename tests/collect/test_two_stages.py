"""Two stages from a draft to estimates: real clients over several epochs, a real service, and the commands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.cli.demo import DemoService, running
from deniable.collect.analyst import Analyst
from deniable.collect.client import Client, Ledger
from deniable.surveys import Survey

DAY = 86_400
DEVICES, EPOCHS = 12, 4
NOW = time.time() // DAY * DAY + DAY / 2

DRAFT: dict[str, Any] = {
    "name": "weekly health",
    "owner": "Example Institute",
    "purpose": "To follow an illness.",
    "people": 20_000,
    "min_reports": 1,
    "opens": time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(NOW - 5 * DAY)),
    "days": 30,
    "epochs": {"days": 1, "late": 5},
    "longitudinal": {"rule": "two-stage", "first": "1/2", "forever": "1", "values": 2, "epochs": 20},
    "questions": [{"id": "ill", "text": "Are you well?", "answers": ["well", "ill"]}],
}


def command(*arguments: str) -> str:
    ran = CliRunner().invoke(app, list(arguments))
    assert ran.exit_code == 0, ran.output
    return " ".join((ran.stdout + ran.stderr).split())


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """Made by the command, as an author would."""
    folder = tmp_path_factory.mktemp("two-stages")
    (folder / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    said = command("survey", "new", str(folder / "draft.json"), "-o", str(folder / "survey.json"))
    assert "LGRR has the least noise" in said
    shown = command("survey", "show", str(folder / "survey.json"))
    assert "up to 2 different answers are randomized once and kept, and every report is drawn from that" in shown
    assert "What is counted, epsilon 2" in shown
    assert "epsilon 22.939 at most; a budget of 2" in shown
    return Survey.load(folder / "survey.json")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, survey: Survey) -> Iterator[DemoService]:
    with running(tmp_path_factory.mktemp("service"), survey) as found:
        yield found


def test_each_epoch_is_counted_and_each_state_is_paid_for_once(
    service: DemoService, survey: Survey, tmp_path: Path
) -> None:
    """What the service sums per epoch is what left the devices, restarts between epochs included."""
    assert survey.terms is not None
    today = survey.terms.epochs.at(NOW)
    sent: dict[int, list[bytes]] = {}
    for device in range(DEVICES):
        for epoch in range(today - EPOCHS + 1, today + 1):
            clock = survey.terms.epochs.start(epoch) + 3600
            # A new client each time: the state comes from the ledger.
            with Client(
                service.address, survey.fingerprint, tmp_path / f"{device}.sqlite", clock=lambda now=clock: now
            ) as client:
                receipt = client.answer({"ill": "ill" if device % 3 == 0 and epoch == today else "well"}, wait=10)
                assert receipt.state == "sent", receipt.reason
                sent.setdefault(epoch, []).append(receipt.body[24:])
        assert client.budget().spent == survey.budget_epsilon == 2
        assert client.ledger.remembered() == [(survey.fingerprint, "ill", 2 if device % 3 == 0 else 1)]
    protocol = survey["ill"].protocol
    with Analyst(service.address, service.analyst) as analyst:
        for epoch, reports in sent.items():
            rows = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(-1, 1)
            assert analyst.tally(survey, epoch, epoch)["ill"] == protocol.tally(rows, survey.source("ill"))
        assert analyst.tally(survey)["ill"].n == DEVICES * EPOCHS
    token = tmp_path / "token"
    token.write_text(service.analyst, encoding="utf-8")
    asked = ("estimate", survey.fingerprint, "--from", service.address, "--token-file", str(token))
    found = json.loads(CliRunner().invoke(app, [*asked, "--epochs", f"{today}..{today}", "--json"]).stdout)
    assert found["questions"][0]["n"] == DEVICES
    assert "drawn from kept states" in command(*asked), "over several epochs the errors allow for the same states"
    shown = command("ledger", "show", "--ledger", str(tmp_path / "0.sqlite"))
    assert "2 answers to ill of weekly health, to report from again" in shown


def test_a_plan_for_two_stages_on_the_command_line() -> None:
    said = command("plan", "--categories", "well,ill", "--epsilon", "0.5", "--forever", "1", "--people", "20000")
    assert "epsilon 0.5 per report and 1 for ever" in said
    assert "LGRR" in said
    ran = CliRunner().invoke(app, ["plan", "--categories", "2", "--forever", "1", "--people", "9", "--within", "0.1"])
    assert ran.exit_code == 2
    assert "--forever goes with --epsilon" in ran.stderr
    simulated = command(
        "simulate", "--protocol", "LGRR", "--epsilon", "1", "--people", "1000", "--categories", "4", "--runs", "5"
    )
    assert "LGRR" in simulated


def test_minutes_of_use_keep_one_state_per_mark(tmp_path: Path) -> None:
    """A number that is recorded every day, from a draft to the ledger: a state per mark, up to the cap."""
    question = {"id": "minutes", "text": "Minutes?", "answers": {"number": {"low": 0, "high": 1440, "unit": "minutes"}}}
    question |= {"protocol": "LOneBitMean", "parameters": {"steps": 24}}
    rule = {"rule": "two-stage", "first": "1", "forever": "2", "values": 3, "epochs": 20}
    survey = Survey.from_draft(DRAFT | {"longitudinal": rule, "questions": [question]})
    protocol = survey["minutes"].protocol
    assert (protocol.name, protocol.steps, survey.budget_epsilon) == ("LOneBitMean", 24, 6)
    assert survey.terms is not None
    ledger = Ledger(tmp_path / "ledger.sqlite")
    day, first = [0], survey.terms.opens + 3600
    client = Client(
        "http://127.0.0.1:9", survey.fingerprint, ledger, clock=lambda: first + DAY * day[0], idle={"minutes": 0}
    )
    ledger.pin(survey)
    for minutes in (600, 601, 600, 1300, 20, 601, 777):
        client.record("minutes", minutes)
        day[0] += 1
    client.settle()
    made = ledger.submissions(survey.fingerprint)
    assert {body[24:] for body in (one.body for one in made)} <= {b"\0", b"\1"}
    kept = ledger.remembered(survey.fingerprint)
    assert kept == [(survey.fingerprint, "minutes", 3)], "three marks, and beyond them the first"
    (spent,) = ledger.budgets()
    assert spent.spent == 6
    assert [float(one.epsilon) for one in made] == [2, 2, 2, 0, 0, 0, 0], "debits say nothing about the numbers"
