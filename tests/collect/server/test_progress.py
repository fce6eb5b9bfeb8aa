"""Server-sent events."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

from deniable.collect import Analyst
from tests.collect.server.live import TOKENS, Live, eventually, in_thread
from tests.collect.surveys import crowd, current, daily, plain


class Listener:
    """One stream, read as it comes."""

    def __init__(self, live: Live, fingerprint: str, last: str | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", live.port), timeout=90)
        resume = f"Last-Event-ID: {last}\r\n" if last else ""
        request = f"GET /v1/surveys/{fingerprint}/stream HTTP/1.1\r\nHost: x\r\n{resume}"
        self.socket.sendall(f"{request}Authorization: Bearer {TOKENS['analyst']}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])

    def events(self) -> Iterator[tuple[str, dict[str, int]]]:
        id = ""
        for line in self.file:
            text = line.decode().strip()
            if text.startswith("id: "):
                id = text[4:]
            if text.startswith("data: "):
                yield id, json.loads(text[6:])
                id = ""

    def lines(self) -> Iterator[str]:
        for line in self.file:
            yield line.decode().strip()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()


def test_news_as_it_happens(live):
    survey = daily()
    now = current(survey)
    live.send(survey, now, crowd(survey, 5))
    with Listener(live, survey.fingerprint) as listener:
        events = listener.events()
        assert next(events) == ("5", {"epoch": now, "n": 5, "version": 5})
        live.send(survey, now, crowd(survey, 3, seed=1))
        assert next(events) == ("8", {"epoch": now, "n": 8, "version": 8})
        live.send(survey, now + 1, crowd(survey, 2, seed=2))
        assert next(events) == ("10", {"epoch": now + 1, "n": 2, "version": 10})
        live.ask("POST", f"/v1/surveys/{survey.fingerprint}/epochs/{now}/close", role="admin")
        assert next(events) == ("11", {"epoch": now, "n": 8, "version": 11})


def test_coming_back(live):
    survey = daily()
    now = current(survey)
    live.send(survey, now, crowd(survey, 5))
    live.send(survey, now + 1, crowd(survey, 5, seed=1))
    time.sleep(0.1)
    with Listener(live, survey.fingerprint, last="5") as listener:
        events = listener.events()
        # The whole state, and only its last event can be resumed from.
        assert [next(events) for _ in range(2)] == [
            ("", {"epoch": now, "n": 5, "version": 10}),
            ("10", {"epoch": now + 1, "n": 5, "version": 10}),
        ]
    with Listener(live, survey.fingerprint, last="10") as listener:
        live.send(survey, now, crowd(survey, 1, seed=2))
        assert next(listener.events()) == ("11", {"epoch": now, "n": 6, "version": 11})


def test_leaving_in_the_middle_of_a_round_misses_no_epoch(live):
    """Epochs that changed at once come one after the other; whoever goes on after the first is told of the second."""
    survey = daily()
    now = current(survey)
    live.send(survey, now, crowd(survey, 5))
    live.send(survey, now + 1, crowd(survey, 5, seed=1))
    time.sleep(0.1)
    with Analyst(f"http://127.0.0.1:{live.port}", TOKENS["analyst"]) as analyst:
        changes = analyst.changes(survey.fingerprint)
        first = next(changes)
        changes.close()
        again = analyst.changes(survey.fingerprint, since=first.version)
        told = set()
        for seed in (2, 3):
            # Something always comes: an epoch that is missed would not hold the test up.
            live.send(survey, now, crowd(survey, 1, seed=seed))
            told.add(next(again).epoch)
        again.close()
    assert told == {now, now + 1}


def test_sums_between_changes(live):
    survey = daily()
    live.send(survey, current(survey), crowd(survey, 5))
    found: list[int] = []

    def look() -> None:
        with Analyst(f"http://127.0.0.1:{live.port}", TOKENS["analyst"]) as analyst:
            change = next(changes := analyst.changes(survey.fingerprint))
            found.extend([change.n, analyst.tally(survey, change.epoch, change.epoch)["smoke"].n])
            changes.close()

    # A thread, because one connection for both would wait for itself.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(10)
    assert found == [5, 5]


def test_the_heart_beats_and_places_are_given_back(tmp_path):
    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, heartbeat_seconds=0.1, listeners=2) as live:
        with Listener(live, survey.fingerprint) as first, Listener(live, survey.fingerprint) as second:
            assert (first.status, second.status) == (200, 200)
            assert next(line for line in first.lines() if line.startswith(":")) == ": still here"
            with Listener(live, survey.fingerprint) as third:
                assert third.status == 503
        eventually(lambda: live.service.listeners == 0)
        with Listener(live, survey.fingerprint) as again:
            assert again.status == 200
            # A listener does not hold up the end of the service, which follows here.
            again.socket.settimeout(None)
