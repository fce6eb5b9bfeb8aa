"""A database that falls silent or holds a lock: everybody gets an answer, and the service ends when it is told to."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.collect.stores import Added, StoreError, open_store, postgres
from tests.collect.postgres import PostgresServer
from tests.collect.server.live import Process, eventually, in_thread
from tests.collect.surveys import crowd, daily, plain

SURVEY, DAILY = plain(), daily()
PEOPLE = crowd(SURVEY, 30)


class Proxy:
    """Forwards connections on a loopback port to a server's socket, until it is told to fall silent."""

    turns = 0
    """How often a client has spoken after an answer."""

    def __init__(self, path: Path) -> None:
        self._path, self._forwarding = path, threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.speak()
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Connections stay open, and nothing comes through: what a lost route looks like."""
        self._forwarding.clear()

    def speak(self) -> None:
        self._forwarding.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(str(self._path))
            last = server
            while True:
                ready, _, _ = select.select([client, server], [], [], 0.05)
                for one in ready if self._forwarding.is_set() else []:
                    if not (data := one.recv(65_536)):
                        return
                    self.turns += one is client and last is server
                    last = one
                    (server if one is client else client).sendall(data)
                if not self._forwarding.is_set():
                    self._forwarding.wait(0.05)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres_server._directory / ".s.PGSQL.5432")
    yield proxy
    proxy.speak()
    proxy.close()


@pytest.fixture
def url(proxy: Proxy, postgres_url: str) -> str:
    name = postgres_url.partition("@/")[2].partition("?")[0]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}?sslmode=disable&gssencmode=disable"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"ANSWER_SECONDS": 0.6, "LOCK_SECONDS": 0.3, "SILENT_SECONDS": 0.3}.items():
        monkeypatch.setattr(postgres, name, seconds)


@pytest.mark.usefixtures("impatient")
def test_a_silent_connection_is_given_up(proxy: Proxy, url: str) -> None:
    with open_store(url) as store:
        store.publish(SURVEY)
        store.add([PEOPLE[:10].batch(SURVEY, 0)])
        proxy.fall_silent()
        with pytest.raises(StoreError, match="cannot be used"):
            store.add([PEOPLE.batch(SURVEY, 0)])
        proxy.speak()
        assert store.add([PEOPLE.batch(SURVEY, 0)]) == [Added(20, 10)]
        assert store.check() == []


def test_a_commit_waits_for_the_database_twice(proxy: Proxy, url: str) -> None:
    """Once to look, once to commit: a wait is a round trip over the network, with the epoch locked."""
    with open_store(url) as store:
        store.publish(SURVEY)
        for place in range(3):
            store.add([PEOPLE[place : place + 1].batch(SURVEY, 0)])
        before = proxy.turns
        assert store.add([PEOPLE[3:6].batch(SURVEY, 0)]) == [Added(3)]
        assert store.add([PEOPLE[:10].batch(SURVEY, 0)]) == [Added(4, 6)]
        assert proxy.turns - before == 4
        assert store.check() == []


def test_an_epoch_whose_ids_were_dropped_by_another_process_is_closed(postgres_url: str) -> None:
    with open_store(postgres_url) as store, open_store(postgres_url) as other:
        store.publish(SURVEY)
        store.add([PEOPLE[:10].batch(SURVEY, 0)])
        other.close_epoch(SURVEY.fingerprint, 0)
        for _ in range(2):
            assert store.add([PEOPLE.batch(SURVEY, 0)], {(SURVEY.fingerprint, 1, "x"): 1}) == [Added(closed=True)]
        assert store.rejections(SURVEY.fingerprint) == [(1, "x", 2)]


@pytest.mark.usefixtures("impatient")
def test_a_held_lock_is_given_up(postgres_url: str) -> None:
    with open_store(postgres_url) as store, open_store(postgres_url) as opened:
        other: Any = opened
        store.publish(SURVEY)
        store.add([PEOPLE[:10].batch(SURVEY, 0)])
        with other._writing():
            other._hold(other._entry(SURVEY.fingerprint), 0)
            with pytest.raises(StoreError, match="in use by others") as failed:
                store.add([PEOPLE.batch(SURVEY, 0)])
            assert failed.value.code == "55P03"
        assert store.add([PEOPLE.batch(SURVEY, 0)]) == [Added(20, 10)]


def test_a_request_is_answered_while_the_database_is_silent(proxy: Proxy, url: str) -> None:
    """503, with the time to come back; what is sent again is counted once. The service ends in the silence."""
    with in_thread(url, SURVEY, request_seconds=2, stop_seconds=1) as live:
        assert live.send(SURVEY, 0, PEOPLE[:10]).status == 200
        store = live.service.writer._store
        proxy.fall_silent()
        answer = live.send(SURVEY, 0, PEOPLE)
        assert (answer.status, answer.problem) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1
        proxy.speak()
        eventually(lambda: live.send(SURVEY, 0, PEOPLE).status == 200)
        # What was known of the ids is still known: to read millions anew would take a while.
        assert live.service.writer._store is store
        with live.store() as other:
            assert other.tally(SURVEY.fingerprint)["smoke"].n == 30
        proxy.fall_silent()
        assert live.send(SURVEY, 0, PEOPLE).status == 503


def test_sigterm_ends_a_process_whose_database_is_silent(proxy: Proxy, url: str) -> None:
    with open_store(url) as store:
        store.publish(SURVEY)
    with Process(url) as service:
        assert service.send(SURVEY, 0, PEOPLE).status == 200
        proxy.fall_silent()
        assert service.stop() == 0


def test_housekeeping_that_fails_is_shown(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the answer to /readyz, with what PostgreSQL calls it, and among the figures."""

    def refused(self: postgres.PostgresStore) -> None:
        self._query("SELECT 1 / 0")

    monkeypatch.setattr(postgres.PostgresStore, "tidy", refused)
    with in_thread(postgres_url, SURVEY, tidy_seconds=0.1) as live:
        assert live.send(SURVEY, 0, PEOPLE).status == 200
        eventually(lambda: b"tidy (22012)" in live.get("/readyz").body)
        figures = live.get("/metrics", "analyst").body.decode()
        assert 'deniable_housekeeping_failures_total{step="tidy",worker="0"}' in figures
        assert "deniable_untidied_seconds 0\n" not in figures
        monkeypatch.undo()
        eventually(lambda: live.get("/readyz").body == b'{"status":"ok"}')
