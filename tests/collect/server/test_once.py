"""Exactly once, under fire: the service is killed again and again while clients send and send again the same bytes."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time

import numpy as np
import pytest

from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from deniable.collect.wire import BINARY
from deniable.surveys import Survey
from tests.collect.server.live import Process, body, eventually, in_thread, prepare
from tests.collect.surveys import Crowd, crowd, current, mixed, plain


class Device(threading.Thread):
    """Sends its submissions one batch after the other, each until it is acknowledged; at times hangs up too early."""

    def __init__(self, service: Process, survey: Survey, people: Crowd, stop: threading.Event, seed: int) -> None:
        super().__init__(daemon=True)
        self._service, self._survey, self._end, self._random = service, survey, stop, random.Random(seed)
        self._people, self._sizes = people, iter(lambda: self._random.choice((1, 1, 3, 20)), None)
        self.acknowledged = 0
        """The first so many of `people` were acknowledged."""
        self.tried = 0
        self.failures = 0

    def run(self) -> None:
        while not self._end.is_set() and self.acknowledged < len(self._people):
            size = min(next(self._sizes), len(self._people) - self.acknowledged)
            content = body(
                self._survey, current(self._survey), self._people[self.acknowledged : self.acknowledged + size]
            )
            self.tried = self.acknowledged + size
            while not self._sent(content, size):
                self.failures += 1
                if self._end.is_set():
                    return
                time.sleep(0.01)
            self.acknowledged += size

    def _sent(self, content: bytes, size: int) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=10)
            try:
                path = f"/v1/surveys/{self._survey.fingerprint}/reports"
                connection.request("POST", path, content, {"Content-Type": BINARY})
                if self._random.random() < 0.1:
                    return False  # the answer is never read
                response = connection.getresponse()
                answered = response.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return False
        if response.status == 503:
            return False
        assert response.status == 200, answered
        assert answered == b'{"accepted":%d,"rejected":[]}' % size, answered
        return True


def under_fire(url: str, kills: int, devices: int = 6, arguments: tuple[str, ...] = ()) -> None:
    survey = mixed()
    with open_store(url) as store:
        prepare(store, survey)
    people = [crowd(survey, 4000, seed=i) for i in range(devices)]
    stop, random_ = threading.Event(), random.Random(7)
    with Process(url, *arguments) as service:
        staff = [Device(service, survey, some, stop, seed) for seed, some in enumerate(people)]
        for device in staff:
            device.start()
        for _ in range(kills):
            time.sleep(random_.uniform(0.05, 0.4))
            service.kill()
            service.start()
        time.sleep(0.3)
        stop.set()
        for device in staff:
            device.join()
        assert service.stop() == 0
    acknowledged = sum(device.acknowledged for device in staff)
    assert acknowledged > 50 * kills
    assert sum(device.failures for device in staff) >= kills
    # What was tried last and not acknowledged may have been counted or not; send it again, and it is, once.
    with Process(url, *arguments) as service:
        for device, some in zip(staff, people, strict=True):
            if device.tried > device.acknowledged:
                last = some[device.acknowledged : device.tried]
                assert service.send(survey, current(survey), last).json["accepted"] == len(last)
    sent = [
        (some.ids[: device.tried], some.answers[: device.tried]) for device, some in zip(staff, people, strict=True)
    ]
    answers = np.concatenate([answers for _, answers in sent])
    with open_store(url) as store:
        tally = store.tally(survey.fingerprint)
        assert store.check() == []
    counter = SurveyCounter(survey)
    exact = counter.tally(len(answers), counter.count(answers))
    assert {id: own.n for id, own in tally.tallies.items()} == {id: own.n for id, own in exact.tallies.items()}
    assert all(tally[id] == exact[id] for id in tally.tallies)


def test_three_kills_on_sqlite(tmp_path):
    under_fire(f"sqlite:///{tmp_path / 'store.db'}", kills=3)


@pytest.mark.slow
def test_twenty_kills(durable_url):
    under_fire(durable_url, kills=20)


@pytest.mark.slow
def test_twenty_kills_of_two_workers(postgres_url):
    """The first process is killed; its workers notice and end by themselves."""
    under_fire(postgres_url, kills=20, arguments=("--workers", "2"))


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
    with in_thread(url, survey) as live, socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
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
