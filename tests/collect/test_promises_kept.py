"""What the sentences of a survey say about ledger, server and leaving, against what a real client and service do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.client import Client, Ledger, ledger as ledger_module
from deniable.collect.http import Transport
from deniable.domains import Strings
from deniable.protocols import CMS, GRR, LGRR, OUE, Protocol
from deniable.surveys import Longitudinal, Question, Survey
from deniable.surveys.promises import promises
from deniable.surveys.terms import span
from tests.collect.server.live import Live, in_thread
from tests.collect.surveys import terms

WORD = "sentinelword"
ASKED: dict[str, tuple[Protocol, Any]] = {
    "text": (CMS(Strings(cells=256, cohorts=64, key="kept"), 4), WORD),
    "bits": (OUE([WORD, *(f"answer {i}" for i in range(199))], 1), WORD),
    "words": (GRR([WORD, "other"], 1), WORD),
}
RULES = {
    "once": Longitudinal(),
    "three times": Longitudinal(epochs=3),
    "first repeated": Longitudinal("memoize", epochs=30, values=1),
    "three repeated": Longitudinal("memoize", epochs=30, values=3),
}


TWO_STAGES = Longitudinal("two-stage", epochs=30, values=3, first=Fraction(1), forever=Fraction(2))


def surveys() -> Iterator[tuple[str, Survey, Any]]:
    for kind, (protocol, answer) in ASKED.items():
        for rule, longitudinal in RULES.items():
            if longitudinal.rule == "memoize" and kind != "words":
                continue  # too many forms to be repeated
            for retention in ("tally", "reports"):
                name = f"{kind}, {rule}, {retention}"
                given = terms(longitudinal=longitudinal, retention=retention)
                yield name, Survey(name, [Question("q", "Which?", protocol)], given), answer
    for retention in ("tally", "reports"):
        name = f"two stages, {retention}"
        question = Question("q", "Which?", LGRR([WORD, "other"], first=1, forever=2))
        yield name, Survey(name, [question], terms(longitudinal=TWO_STAGES, retention=retention)), WORD


ALL = {name: (survey, answer) for name, survey, answer in surveys()}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    url = f"sqlite:///{tmp_path_factory.mktemp('kept') / 'store.db'}"
    with in_thread(url, *(survey for survey, _ in ALL.values()), tidy_seconds=0.1) as running:
        yield running


@pytest.fixture(params=ALL.values(), ids=list(ALL))
def case(request: pytest.FixtureRequest, live: Live, tmp_path: Path) -> Iterator[tuple[Survey, Any, Client]]:
    survey, answer = request.param
    with Client(f"http://127.0.0.1:{live.port}", survey.fingerprint, tmp_path / "ledger.sqlite") as client:
        yield survey, answer, client


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def count(live: Live, survey: Survey) -> int:
    """Submissions in the tally."""
    return int(live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["accepted"])


def test_a_device_keeps_what_the_sentence_says(case: tuple[Survey, Any, Client], tmp_path: Path) -> None:
    """While a report waits, once it has arrived, and after leaving: the whole of the ledger's files is searched."""
    survey, answer, client = case
    said = promises(survey)["device"]
    waiting, _ = client.ledger.submit(survey, client.epoch(), {"q": answer})
    sent = waiting.body[24:]
    assert waiting.body in files(tmp_path), "it waits here"
    client.flush(5)
    (known,) = client.history()
    assert (known.state, known.body) == ("sent", b"")
    remembered = sqlite3.connect(tmp_path / "ledger.sqlite").execute("SELECT * FROM memo").fetchall()
    if "keeps your answer and its randomized report" in said:
        (row,) = remembered
        assert sent in [bytes(cell) for cell in row if isinstance(cell, bytes)], "the report"
        position = survey["q"].protocol.domain.index([answer])[0]
        assert any(isinstance(cell, bytes) and cell[:1] == b"\0" and cell[1] == position for cell in row), "the answer"
    elif "keeps your answer and what it was randomized to" in said:
        ((_, _, _, value, outcome),) = remembered
        assert (value[:2], outcome in (b"\0", b"\1")) == (b"\0\0", True), "the answer, and the state"
    else:
        assert "does not keep your answer" in said
        assert remembered == []
        assert waiting.body not in files(tmp_path)
        if len(sent) > 8:
            assert sent not in files(tmp_path)
        if isinstance(survey["q"].protocol.domain, Strings):
            assert WORD.encode() not in files(tmp_path)
    assert bool(known.id) == (survey.terms.retention == "reports")  # type: ignore[union-attr]
    if "keeps your answer" not in said:
        assert ("its random number" in said) == bool(known.id)
    client.opt_out()
    assert sqlite3.connect(tmp_path / "ledger.sqlite").execute("SELECT * FROM memo").fetchall() == []


def test_a_service_keeps_what_the_sentence_says(case: tuple[Survey, Any, Client], live: Live) -> None:
    """The database, its log and its free pages are searched for the bytes of the report."""
    survey, answer, client = case
    sent = client.answer({"q": answer}, wait=5).body
    folder = Path(live.url.removeprefix("sqlite:///")).parent
    said = promises(survey)["kept"]
    if len(sent) <= 24 + 8:  # a byte or two stand anywhere
        with sqlite3.connect(live.url.removeprefix("sqlite:///")) as store:
            tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = [(table, row) for table in tables for row in store.execute(f"SELECT * FROM {table}")]
        cells = [(table, cell) for table, row in rows for cell in row if isinstance(cell, bytes)]
        beside = [(table, cell) for table, cell in cells if sent[8:24] in cell]
        assert beside, "the id is held while its epoch is open, so that a report counts once"
        # In the table of ids another one follows, which may begin with the same byte.
        found = any(sent[8:] in cell for table, cell in beside if table != "seen")
    else:
        found = sent[24:] in files(folder)
    assert found == ("every randomized report" in said)
    assert ("no report is kept" in said) == (not found)


def test_leaving_does_what_the_sentence_says(case: tuple[Survey, Any, Client], live: Live, tmp_path: Path) -> None:
    survey, answer, client = case
    before = count(live, survey)
    client.answer({"q": answer}, wait=5)
    assert count(live, survey) == before + 1
    said = promises(survey)["leaving"]
    command = ["ledger", "withdraw", "--yes", "--ledger", str(tmp_path / "ledger.sqlite")]
    server = f"http://127.0.0.1:{live.port}"
    if "keeps no report" in said:
        assert client.delete_sent().deleted == 0
        ran = CliRunner().invoke(app, command)
        assert "--delete-at" not in ran.stderr
        assert count(live, survey) == before + 1
    else:
        assert "the request shows it the network address" in said
        ran = CliRunner().invoke(app, [*command, "--delete-at", "http://127.0.0.1:9"])
        assert ran.exit_code == 2
        assert "nothing was withdrawn" in ran.stderr
        assert "add --delete-at SERVER" not in ran.stderr
        ran = CliRunner().invoke(app, [*command, "--delete-at", server])
        assert "deleted by the service: 1" in ran.stdout
        assert count(live, survey) == before
    assert ran.exit_code == 0, ran.output
    assert said in " ".join(ran.stderr.split())
    assert Ledger(tmp_path / "ledger.sqlite").submissions()[0].state == "withdrawn"


def test_a_request_holds_what_the_sentence_says(
    case: tuple[Survey, Any, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name, address, cookie or time but the period: a request is its length, its kind, an id and the reports."""
    survey, answer, client = case
    import socket

    raw: list[bytes] = []
    send = socket.socket.sendall
    monkeypatch.setattr(
        socket.socket, "sendall", lambda self, data, *rest: (raw.append(bytes(data)), send(self, data, *rest))[1]
    )
    receipt = client.answer({"q": answer}, wait=5)
    assert receipt.state == "sent"
    whole = b"".join(raw)
    head = whole[whole.index(b"POST ") : whole.index(receipt.body)]
    names = {line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:] if line}
    assert names == {b"host", b"content-type", b"content-length"}
    said = promises(survey)["address"]
    assert "no name, no address, no cookie and no time but its period" in said
    assert receipt.body[:4] == b"DNR1"
    epoch = int.from_bytes(receipt.body[4:8], "little")
    assert epoch == client.epoch()
    calendar = client.terms().epochs
    assert f"which lasts {span(calendar.start(epoch + 1) - calendar.start(epoch))}." in said
    assert len(receipt.body) == 24 + survey.report_bytes


# -- the tests above notice a broken promise -------------------------------------------------------------


@pytest.fixture
def fresh(live: Live, tmp_path: Path) -> Iterator[tuple[Survey, Any, Client]]:
    survey, answer = ALL["text, once, tally"]
    with Client(f"http://127.0.0.1:{live.port}", survey.fingerprint, tmp_path / "ledger.sqlite") as client:
        yield survey, answer, client


def test_a_ledger_that_keeps_what_it_sent_is_caught(
    fresh: tuple[Survey, Any, Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(connection: sqlite3.Connection, state: str, reason: str, where: str, *values: object) -> None:
        connection.execute(f"UPDATE submission SET state = ? WHERE {where}", (state, *values))

    monkeypatch.setattr(ledger_module, "_settle", kept)
    with pytest.raises(AssertionError):
        test_a_device_keeps_what_the_sentence_says(fresh, tmp_path)


def test_a_request_that_says_more_is_caught(fresh: tuple[Survey, Any, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    post = Transport.post
    named = {"User-Agent": "device 7"}
    monkeypatch.setattr(Transport, "post", lambda self, path, body, headers: post(self, path, body, headers | named))
    with pytest.raises(AssertionError):
        test_a_request_holds_what_the_sentence_says(fresh, monkeypatch)


def test_a_service_that_keeps_reports_of_a_tally_is_caught(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentences of one retention against the service of the other."""
    survey, answer = ALL["text, once, reports"]
    tally = promises(ALL["text, once, tally"][0])
    monkeypatch.setitem(globals(), "promises", lambda _: tally)
    with Client(f"http://127.0.0.1:{live.port}", survey.fingerprint, tmp_path / "ledger.sqlite") as client:
        case = survey, answer, client
        with pytest.raises(AssertionError):
            test_a_service_keeps_what_the_sentence_says(case, live)
        with pytest.raises(AssertionError):
            test_leaving_does_what_the_sentence_says(case, live, tmp_path)
