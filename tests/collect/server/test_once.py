"""Exactly once: the same bytes again and again, from many at once. What happens when things break: `tests/faults`."""

from __future__ import annotations

import socket
import threading

import pytest

from deniable.collect.wire import BINARY
from deniable.surveys import Survey
from tests.collect.server.live import body, eventually, in_thread
from tests.collect.surveys import crowd, plain


@pytest.fixture
def one(tmp_path) -> tuple[str, Survey]:
    return f"sqlite:///{tmp_path / 'store.db'}", plain()


def test_a_client_that_hangs_up_is_counted_once(one):
    """The response is lost on the way, many times over."""
    url, survey = one
    people = crowd(survey, 30)
    content = body(survey, 0, people)
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {BINARY}\r\nContent-Length: {len(content)}\r\n\r\n"
    with in_thread(url, survey) as live:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", live.port)) as connection:
                connection.sendall(request.encode() + content)
        assert live.send(survey, 0, people).json["accepted"] == 30
        eventually(lambda: live.service.writer.items == 0)
        with live.store() as store:
            assert store.tally(survey.fingerprint)["smoke"].n == 30


def test_the_same_bytes_from_many_at_once(one):
    url, survey = one
    people = crowd(survey, 200)
    with in_thread(url, survey) as live:
        senders = [
            threading.Thread(target=lambda: [live.send(survey, 0, people[i : i + 50]) for i in (0, 50, 100, 150)])
            for _ in range(8)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        with live.store() as store:
            assert store.tally(survey.fingerprint)["smoke"].n == 200
            assert store.duplicates(survey.fingerprint) == 7 * 200


def test_pipelined_requests(one):
    url, survey = one
    people = crowd(survey, 6)
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    data = b""
    for i in range(6):
        content = body(survey, 0, people[i : i + 1])
        data += f"POST {path} HTTP/1.1\r\nContent-Type: {BINARY}\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        data += content
    with in_thread(url, survey) as live, socket.create_connection(("127.0.0.1", live.port), timeout=90) as connection:
        connection.sendall(data)
        received = b""
        while received.count(b'{"accepted":1,"rejected":[]}') < 6:
            piece = connection.recv(65_536)
            assert piece
            received += piece
        assert live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["accepted"] == 6


def test_counting_twice_is_caught(one, monkeypatch):
    """Power: a store that forgets ids counts replays, and the sums above would show it."""
    from deniable.collect.stores.sqlite import SqliteStore

    url, survey = one
    people = crowd(survey, 10)

    def forgetful(self: SqliteStore, *arguments: object) -> object:
        added = real(self, *arguments)
        self._query("DELETE FROM seen")
        self._runs.clear()
        return added

    real = SqliteStore.add
    monkeypatch.setattr(SqliteStore, "add", forgetful)
    with in_thread(url, survey) as live:
        for _ in range(2):
            live.send(survey, 0, people)
        with live.store() as store:
            assert store.tally(survey.fingerprint)["smoke"].n == 20
            assert store.check() != []
