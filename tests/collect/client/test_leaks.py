"""No answer appears in what the client and `deniable answer` say, log or raise (see tests/test_leaks.py)."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from typer.testing import CliRunner

from deniable.collect.client import AsyncClient, Ledger
from deniable.collect.client.records import preview
from deniable.errors import DeniableError
from tests.collect.client.test_commands import app
from tests.collect.surveys import mixed
from tests.leaks import ANSWERS, SECRET, leaks, told

GOOD = {"smoke": "yes", "drink": 3, "age": 42, "town": 7}
BAD = [{**GOOD, id: bad} for id in GOOD for bad in ANSWERS] + [{"smoke": SECRET}, [SECRET], SECRET]


def test_the_client(server, device, tmp_path, clock, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    survey = mixed()
    client = device(survey)
    other = AsyncClient(server.url, survey.fingerprint, tmp_path / "other.sqlite", clock=clock)
    ways = [
        client.answer,
        lambda answers: asyncio.run(other.answer(answers)),
        lambda answers: Ledger(tmp_path / "third.sqlite").submit(survey, 0, answers),
        lambda answers: preview(survey, 0, answers),
    ]
    for number, answers in enumerate(BAD):
        for way in ways if number % 5 == 0 else ways[:1]:
            with pytest.raises((DeniableError, TypeError, KeyError)) as wrong:
                way(answers)
            assert leaks(wrong.value) == []
    assert server.posts == []
    assert not told("".join(capfd.readouterr()))
    assert not any(told(record.getMessage()) for record in caplog.records)


@pytest.mark.parametrize("form", ["arguments", "lines", "json", "word", "rehearsal"])
def test_the_command(server, tmp_path, form):
    survey = mixed()
    server.publish(survey)
    file = tmp_path / "answers"
    for id in GOOD:
        entries = [f"{one}={SECRET if one == id else value}" for one, value in GOOD.items()]
        arguments = {
            "arguments": entries,
            "rehearsal": [*entries, "--dry-run"],
            "word": [SECRET],
            "lines": ["--answers", file],
            "json": ["--answers", file],
        }[form]
        file.write_text(json.dumps({**GOOD, id: SECRET}) if form == "json" else "\n".join(entries))
        environment = {"DENIABLE_LEDGER": str(tmp_path / "ledger.sqlite"), "DENIABLE_DEBUG": "1"}
        line = ["answer", server.url, survey.fingerprint, *map(str, arguments)]
        ran = CliRunner(env=environment).invoke(app, line)
        assert ran.exit_code == 2, ran.output
        assert "Traceback" in ran.stderr
        assert not told(ran.output)
    assert server.posts == []
