"""A server to talk to, a clock to turn, and devices with a ledger of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from deniable.collect.client import Client
from tests.collect.client.hooks import hooked
from tests.collect.client.server import Server
from tests.collect.surveys import TODAY

SHM = Path("/dev/shm")


class Clock:
    """The calendar, and a timer that only sleeping moves."""

    def __init__(self, now: float = TODAY + 3600.0) -> None:
        self.now = now
        self.elapsed = 0.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def timer(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.elapsed += seconds
        self.now += seconds

    def days(self, number: int) -> None:
        self.now += number * 86_400


@pytest.fixture
def tmp_path():
    """In memory where there is such a place: a ledger waits for the disk several times a submission."""
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def device(server, clock, tmp_path):
    """A client of the server for a survey, which is published there."""
    made = []

    def make(survey, publish=True, ledger=None, **options):
        if publish:
            server.publish(survey)
        path = tmp_path / "ledger.sqlite" if ledger is None else ledger
        client = Client(server.url, survey.fingerprint, path, **{"clock": clock} | options)
        made.append(hooked(client, sleep=clock.sleep, timer=clock.timer))
        return made[-1]

    yield make
    for client in made:
        client.close()
