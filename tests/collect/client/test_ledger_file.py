"""The ledger's file: one connection per answer; while a request is out it holds no lock, and nobody inherits it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from deniable.collect.client import Ledger, ledger_file
from deniable.collect.client.ledger_file import LedgerFile
from deniable.errors import DomainError
from tests.collect.client.hooks import hooked
from tests.collect.surveys import daily, memoized

YES = {"smoke": "yes"}


@pytest.fixture
def opened(monkeypatch):
    """Every connection to a ledger that was opened."""
    made = []
    connect = ledger_file._connect

    def counted(path):
        made.append(connect(path))
        return made[-1]

    monkeypatch.setattr(ledger_file, "_connect", counted)
    return made


def while_sending(client, act):
    """The client, which does something else when the ledger is written and nothing has left yet."""
    return hooked(client, lambda step: act() if step == "sending" else None)


def closed(connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


@pytest.mark.parametrize(("survey", "answers"), [(daily(), YES), (memoized(), {"mood": "good"})], ids=["new", "kept"])
def test_an_answer_opens_one_connection(device, opened, clock, survey, answers):
    client = device(survey)
    for day in range(1, 4):
        assert client.answer(answers).state == "sent"
        assert len(opened) == day
        assert closed(opened[-1]), "nothing is open between calls"
        clock.days(1)


def test_sending_and_deleting_open_one_connection_each(device, opened, server):
    client = device(daily())
    client.survey()
    opened.clear()
    server.close()
    assert client.answer(YES).state == "queued"
    assert client.flush(timeout=0).queued == 1
    client.delete_sent()
    assert len(opened) == 3


def test_transactions_without_a_keeper_have_their_own_connections(tmp_path, opened):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.pin(daily())
    ledger.submissions()
    assert len(opened) == 2
    with ledger.kept_open(), ledger.kept_open():
        ledger.submissions()
        ledger.submissions()
    assert len(opened) == 3
    assert all(map(closed, opened))


@pytest.mark.parametrize(("survey", "answers"), [(daily(), YES), (memoized(), {"mood": "good"})], ids=["new", "kept"])
def test_an_answer_is_read_once(device, monkeypatch, survey, answers):
    """The encoding of an answer is its validation, and nothing looks at the answer again."""
    client = device(survey)
    (asked,) = client.survey()
    domain = type(asked.protocol.domain)
    seen = Counter()
    for name in ("index", "encode", "encode_one"):
        if hasattr(domain, name):
            whole = getattr(domain, name)

            def counted(self, *given, whole=whole, name=name):
                seen[name] += 1
                return whole(self, *given)

            monkeypatch.setattr(domain, name, counted)
    client.answer(answers)
    assert max(seen.values()) == 1, seen


def test_others_may_write_while_a_request_is_out(device, tmp_path):
    client = device(daily())

    def write():
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite", timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE budget SET cap = '3'")
            other.execute("COMMIT")

    assert while_sending(client, write).answer(YES).state == "sent"
    assert client.budget().cap == 3


def test_a_file_that_was_put_back_meanwhile_is_the_one_that_is_written(device, tmp_path, opened):
    """The copy is the ledger now: what has arrived is erased there."""
    path, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"

    def put_back():
        shutil.copy(path, copy)
        os.replace(copy, path)

    client = while_sending(device(daily()), put_back)
    assert client.answer(YES).state == "sent"
    assert [known.state for known in Ledger(path).submissions()] == ["sent"]
    assert len(opened) == 3, "one before, one after, and that of the last line"


def test_a_refusal_leaves_nothing_open_and_nothing_written(tmp_path, opened):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with ledger.kept_open():
        with pytest.raises(DomainError):
            ledger.submit(daily(), 3, {"smoke": "no answer at all"})
        assert closed(opened[0])
        assert ledger.submissions() == []
        assert len(opened) == 2


def inherited(path: Path) -> int:
    """How many descriptors of a file a process that is forked now has."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        found = [link for link in links if os.path.exists(link) and os.path.realpath(link) == str(path)]
        os.write(write, bytes([len(found)]))
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        return answer.read()[0]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists descriptors as on Linux")
def test_a_fork_while_a_request_is_out_inherits_no_connection(device, tmp_path):
    counts = []
    path = (tmp_path / "ledger.sqlite").resolve()
    client = while_sending(device(daily()), lambda: counts.append(inherited(path)))
    assert client.answer(YES).state == "sent"
    assert counts == [0]
    assert client.ledger._file._keepers == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists descriptors as on Linux")
def test_the_check_would_notice_a_connection_that_is_inherited(tmp_path, monkeypatch):
    file = LedgerFile((tmp_path / "ledger.sqlite").resolve())
    with file.kept_open():
        with file.transaction():
            pass
        monkeypatch.setattr(ledger_file, "_files", set())
        assert inherited(file.path) == 1
