"""A database that falls silent or holds a lock: everybody gets an answer, and the service ends when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deniable.collect.stores import Added, StoreError, open_store, postgres
from tests.collect.postgres import PostgresServer, through
from tests.collect.server.live import Process, eventually, in_thread
from tests.collect.surveys import crowd, daily, plain
from tests.collect.wire_faults import Proxy

SURVEY, DAILY = plain(), daily()
PEOPLE = crowd(SURVEY, 30)


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres_server.socket)
    yield proxy
    proxy.speak()
    proxy.close()


@pytest.fixture
def url(proxy: Proxy, postgres_url: str) -> str:
    return through(proxy, postgres_url)


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


def test_a_request_is_answered_while_the_database_is_silent(
    proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, with the time to come back; what is sent again is counted once. The service ends in the silence."""
    monkeypatch.setattr("deniable.collect.server.service.LAST_SECONDS", 0.5)
    with in_thread(url, SURVEY, request_seconds=1, stop_seconds=1) as live:
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


@pytest.mark.faults
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
