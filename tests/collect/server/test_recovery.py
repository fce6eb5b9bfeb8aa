"""After a loss, and between versions: copies made under load, restored and sent to again; other versions refused."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from deniable import __version__
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from tests.collect.postgres import PostgresServer
from tests.collect.server.live import Live, eventually, in_thread, moving, prepare
from tests.collect.server.test_commands import deniable
from tests.collect.surveys import DAY, TODAY, crowd, current, daily

KEPT = daily(retention="reports")
EPOCH = current(KEPT)
SENDERS, SHARE, SIZE = 4, 750, 25


class Sender(threading.Thread):
    """Sends its share: a third, a third while the copy is made, and a third after that."""

    def __init__(self, live: Live, number: int, making: threading.Event, made: threading.Event) -> None:
        super().__init__(daemon=True)
        self._live, self._people, self._events = live, crowd(KEPT, SHARE, seed=number), (making, made)
        self.third = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        for at in range(0, SHARE, SIZE):
            if at == SHARE // 3:
                self.third.set()
                self._events[0].wait(30)
            if at == 2 * SHARE // 3:
                self._events[1].wait(30)
            self.acknowledged += self._live.send(KEPT, EPOCH, self._people[at : at + SIZE]).json["accepted"]


@pytest.mark.parametrize("pair", ["sqlite sqlite", "sqlite postgres", "postgres postgres", "postgres sqlite"])
def test_a_copy_made_under_load_loses_and_doubles_nothing(
    pair: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """What the copy holds is a duplicate when it is sent again, what it does not hold counts: all count once."""
    kinds = pair.split()
    urls = [
        f"sqlite:///{tmp_path / f'{place}.db'}" if kind == "sqlite" else postgres_server.new_database()
        for place, kind in enumerate(kinds)
    ]
    making, made, copy = threading.Event(), threading.Event(), str(tmp_path / "copy.db")
    with in_thread(urls[0], KEPT) as live:
        senders = [Sender(live, number, making, made) for number in range(SENDERS)]
        for one in senders:
            one.start()
        for one in senders:
            assert one.third.wait(30)
        making.set()
        deniable("store", "backup", copy, "--store", urls[0])
        made.set()
        for one in senders:
            one.join(30)
        assert [one.acknowledged for one in senders] == [SHARE] * SENDERS
    deniable("store", "restore", copy, "--store", urls[1])
    with in_thread(urls[1], KEPT) as live:
        status = f"/v1/surveys/{KEPT.fingerprint}/status"
        held = live.get(status, "analyst").json["accepted"]
        assert SENDERS * SHARE // 3 <= held <= 2 * SENDERS * SHARE // 3, "acknowledged before and after it was made"
        for number in range(SENDERS):
            assert live.send(KEPT, EPOCH, crowd(KEPT, SHARE, seed=number)).json["accepted"] == SHARE
        after = live.get(status, "analyst").json
        assert (after["accepted"], after["duplicates"]) == (SENDERS * SHARE, held)
    with open_store(urls[1]) as store:
        counts = sum(SurveyCounter(KEPT).count(crowd(KEPT, SHARE, seed=number).answers) for number in range(SENDERS))
        expected = SurveyCounter(KEPT).tally(SENDERS * SHARE, counts)
        assert store.tally(KEPT.fingerprint).spec() == expected.spec()
        assert store.check() == []


def test_a_copy_restored_a_week_later_is_a_service_that_stood_still(tmp_path: Path) -> None:
    """The time of the copy is known: until the clock is trusted, no epoch of that time closes or refuses reports."""
    survey, moment = daily(), [TODAY + DAY / 2]
    epoch, people, name = current(survey), crowd(daily(), 20), daily().fingerprint
    url, restored = (f"sqlite:///{tmp_path / name}" for name in ("store.db", "restored.db"))
    copy = str(tmp_path / "copy.db")
    with in_thread(url, survey, **moving(moment)) as live:
        assert live.send(survey, epoch, people[:10]).json["accepted"] == 10
        with live.store() as store:
            eventually(lambda: store.time().trusted is not None)
        deniable("store", "backup", copy, "--store", url)
    moment[0] += 7 * DAY
    deniable("store", "restore", copy, "--store", restored)
    with in_thread(restored, survey, steady_seconds=3600.0, housekeeping_seconds=0.05, **moving(moment)) as live:
        assert "the service has started" in live.get("/readyz").json["status"]
        assert live.send(survey, epoch, people).json == {"accepted": 20, "rejected": []}
        with live.store() as store:
            assert [(one.state, one.n) for one in store.epochs(name)] == [("open", 20)]
            moment[0] += 3601
            eventually(lambda: store.epochs(name)[0].state == "closed")
            assert store.epochs(name)[0].n == 20
        reasons = {reason for _, _, reason in live.send(survey, epoch, people).json["rejected"]}
        assert reasons == {"epochTooOld"}


def other_version(url: str, version: str = "9.9.9") -> None:
    with open_store(url) as opened:
        store: Any = opened
        with store._exclusive():
            store._query("UPDATE schema_version SET software = ?", version)


def newer(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of another version of deniable, in a process of its own."""
    code = "import deniable; deniable.__version__ = '9.9.9'; from deniable.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_the_way_to_another_version_and_back(postgres_url: str, tmp_path: Path) -> None:
    """As docs/collect/deployment.md has it, with a replica of the old version that nobody has stopped."""
    people, place = crowd(KEPT, 40), ("--store", postgres_url)
    with in_thread(postgres_url, KEPT) as old:
        assert old.send(KEPT, EPOCH, people[:10]).status == 200
        refused = newer("serve", "--port", "0", *place)
        assert refused.returncode == 2
        assert f"written by deniable {__version__}, and this is deniable 9.9.9" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert newer("store", "backup", str(tmp_path / "before.db"), *place).returncode == 0
        assert newer("store", "upgrade", "--yes", *place).returncode == 0
        assert old.send(KEPT, EPOCH, people[:20]).status == 503
        # Back to the old version: nothing is lost, and what was refused is sent again.
        assert "9.9.9" in deniable("store", "upgrade", "--yes", *place)
        eventually(lambda: old.send(KEPT, EPOCH, people[:20]).status == 200)
    # Back to the copy: what came after it is lost, unless it is sent again.
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    deniable("store", "restore", str(tmp_path / "before.db"), "--store", restored)
    with in_thread(restored, KEPT) as old:
        status = f"/v1/surveys/{KEPT.fingerprint}/status"
        assert old.get(status, "analyst").json["accepted"] == 10
        assert old.send(KEPT, EPOCH, people).json["accepted"] == 40
        assert old.get(status, "analyst").json["accepted"] == 40


def test_a_process_of_another_version_does_not_start(durable_url: str) -> None:
    with open_store(durable_url) as store:
        prepare(store, KEPT)
    other_version(durable_url)
    for command in (("serve", "--port", "0"), ("store", "token", "create", "--role", "admin")):
        said = deniable(*command, "--store", durable_url, code=2)
        assert f"written by deniable 9.9.9, and this is deniable {__version__}" in said
        assert "deniable store upgrade" in said
    # Reading is for all.
    assert "nothing is wrong" in deniable("store", "check", "--store", durable_url)
    assert "say --yes" in deniable("store", "upgrade", "--store", durable_url, code=2)
    with open_store(durable_url) as store:
        assert store.software() == "9.9.9"
        told = deniable("store", "upgrade", "--yes", "--store", durable_url)
        assert "9.9.9" in told
        assert __version__ in told
        store.ping()


def test_no_command_converts_tables(durable_url: str, tmp_path: Path) -> None:
    """Those of another version are named by every command, and stay as they are."""
    with open_store(durable_url) as store:
        prepare(store, KEPT)
    with open_store(durable_url) as opened:
        other: Any = opened
        with other._exclusive():
            other._query("UPDATE schema_version SET version = 3, software = '0.0.3'")
        for command in (
            ("serve", "--port", "0"),
            ("store", "token", "list"),
            ("store", "check"),
            ("store", "upgrade", "--yes"),
            ("store", "backup", str(tmp_path / "copy.db")),
            ("store", "export", str(tmp_path / "out")),
        ):
            said = deniable(*command, "--store", durable_url, code=2)
            assert f"written by deniable 0.0.3 with tables of version 3, and this is deniable {__version__}" in said
        assert other._versions() == (3, "0.0.3")


def test_a_running_service_stops_writing_when_another_version_takes_over(durable_url: str) -> None:
    people = crowd(KEPT, 20)
    with in_thread(durable_url, KEPT) as live:
        assert live.send(KEPT, EPOCH, people[:10]).status == 200
        other_version(durable_url)
        answer = live.send(KEPT, EPOCH, people)
        assert (answer.status, answer.problem) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1
        eventually(lambda: live.get("/readyz").status == 503)
        assert "written by deniable 9.9.9" in live.get("/readyz").json["detail"]
        with live.store() as store:
            assert store.tally(KEPT.fingerprint)["smoke"].n == 10
            store.upgrade()
        # Back again, as after a rollback: what was refused is sent again, and counts once.
        eventually(lambda: live.send(KEPT, EPOCH, people).status == 200)
        with live.store() as store:
            assert store.tally(KEPT.fingerprint)["smoke"].n == 20
            assert store.check() == []
