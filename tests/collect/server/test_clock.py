"""A clock that jumps ends no survey: nothing closes, no honest report is refused, and operators are told.

Services and stores are real. Their clocks are hands of a `Watch` that a test turns; the wall's hand alone is a jump.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.server.service import DISAGREES, JUMPED, SETTLED, STARTED, TrustedClock
from deniable.collect.stores import StoreError, open_store
from deniable.collect.stores.base import StoredTime
from deniable.collect.stores.batches import SurveyCounter
from tests.collect.server.live import Live, eventually, in_thread
from tests.collect.surveys import DAY, crowd, current, daily

HOUR = 3600.0
SHORT = 25.0
"""The hour of tests with PostgreSQL, whose own clock cannot be turned and must not be a minute away."""
JUMP = 40 * DAY


class Watch:
    """Two hands: the wall clock is what the machine shows, the monotonic clock counts on."""

    def __init__(self, wall: float | None = None) -> None:
        self._wall = time.time() if wall is None else wall
        self._passed = 0.0

    def passes(self, seconds: float) -> None:
        self._passed += seconds

    def jumps(self, seconds: float) -> None:
        self._wall += seconds

    def wall(self) -> float:
        return self._wall + self._passed

    def monotonic(self) -> float:
        return 1000.0 + self._passed

    def settings(self, steady: float = SHORT) -> dict[str, Any]:
        clocks = {"clock": self.wall, "monotonic": self.monotonic}
        return {**clocks, "steady_seconds": steady, "housekeeping_seconds": 0.02, "refresh_seconds": 0.02}


def status(live: Live) -> dict[str, Any]:
    found: dict[str, Any] = live.get(f"/v1/surveys/{daily().fingerprint}/status", "analyst").json
    return found


def settled(live: Live) -> bool:
    return status(live)["clock"] is None


def looked_twice(live: Live) -> None:
    """Housekeeping has gone round with the clocks as they are now."""
    rounds = [0]
    check = live.service._close_all_past

    async def counting() -> None:
        await check()
        rounds[0] += 1

    live.service._close_all_past = counting  # type: ignore[method-assign]
    eventually(lambda: rounds[0] >= 2)


def states(live: Live) -> list[str]:
    return [one["state"] for one in status(live)["epochs"]]


@pytest.mark.parametrize("jump", [JUMP, -JUMP], ids=["forward", "back"])
def test_a_jump_closes_nothing_and_refuses_no_honest_report(durable_url, jump):
    watch, survey, people = Watch(), daily(), crowd(daily(), 30)
    now = current(survey, watch.wall())
    with in_thread(durable_url, survey, **watch.settings()) as live:
        assert status(live)["clock"].startswith(STARTED)
        watch.passes(SHORT)
        eventually(lambda: settled(live))
        assert live.send(survey, now, people[:10]).json["accepted"] == 10
        watch.jumps(jump)
        # Before housekeeping looks, and after.
        assert live.send(survey, now, people[:20]).json == {"accepted": 20, "rejected": []}
        looked_twice(live)
        assert live.send(survey, now, people).json == {"accepted": 30, "rejected": []}
        assert status(live)["current_epoch"] == now
        assert states(live) == ["open"]
        assert (JUMPED in status(live)["clock"]) or (DISAGREES in status(live)["clock"])
        assert b"trust-clock" in live.get("/readyz").body
        watch.jumps(-jump)
        looked_twice(live)
        assert states(live) == ["open"]
        watch.passes(SHORT)
        eventually(lambda: settled(live))
        assert (states(live), status(live)["accepted"], status(live)["duplicates"]) == (["open"], 30, 30)
        assert live.get("/readyz").json == {"status": "ok"}


@pytest.mark.parametrize("jump", [JUMP, -JUMP], ids=["forward", "back"])
def test_a_start_during_a_jump(durable_url, jump):
    watch, survey, people = Watch(), daily(), crowd(daily(), 20)
    now = current(survey, watch.wall())
    with in_thread(durable_url, survey, **watch.settings()) as live:
        assert live.send(survey, now, people[:10]).json["accepted"] == 10
    watch.jumps(jump)
    with in_thread(durable_url, **watch.settings()) as live:
        looked_twice(live)
        assert live.send(survey, now, people).json == {"accepted": 20, "rejected": []}
        assert states(live) == ["open"]
    watch.jumps(-jump)
    with in_thread(durable_url, **watch.settings()) as live:
        assert live.send(survey, now, people).json["accepted"] == 20
        watch.passes(SHORT)
        eventually(lambda: settled(live))
        assert (states(live), status(live)["accepted"]) == (["open"], 20)


def test_a_start_that_knows_no_earlier_time_closes_nothing_for_an_hour(tmp_path):
    watch, survey = Watch(), daily()
    url, now = f"sqlite:///{tmp_path / 'store.db'}", current(daily(), watch.wall())
    with open_store(url) as store:
        store.publish(survey)
        store.add([crowd(survey, 5).batch(survey, now)])
    watch.jumps(JUMP / 2)
    with in_thread(url, **watch.settings(HOUR)) as live:
        watch.passes(HOUR - 1)
        looked_twice(live)
        assert states(live) == ["open"]
        watch.passes(1)
        eventually(lambda: states(live) == ["closed"])


def test_time_that_passes_closes_epochs_after_an_hour(tmp_path):
    watch, survey = Watch(), daily()
    url, now = f"sqlite:///{tmp_path / 'store.db'}", current(daily(), watch.wall())
    with in_thread(url, survey, **watch.settings(HOUR)) as live:
        live.send(survey, now, crowd(survey, 5))
        # Just after a start the clock is believed by nobody, however late it is.
        watch.passes(HOUR / 2)
        watch.jumps(5 * DAY)
        looked_twice(live)
        watch.passes(HOUR - 61)
        looked_twice(live)
        assert states(live) == ["open"]
        watch.passes(61)
        eventually(lambda: states(live) == ["closed"])
        assert live.send(survey, now, crowd(survey, 6)).json["rejected"][0][2] == "epochTooOld"


def test_an_operator_confirms_the_clock(tmp_path):
    watch, survey = Watch(time.time() - 5 * DAY), daily()
    url, now = f"sqlite:///{tmp_path / 'store.db'}", current(daily(), time.time() - 5 * DAY)
    call = ["store", "trust-clock", "--store", url]
    with in_thread(url, survey, **watch.settings(HOUR)) as live:
        live.send(survey, now, crowd(survey, 5))
        with open_store(url) as store:
            store.confirm_time(time.time() - 2)
        looked_twice(live)
        assert not settled(live), "this machine's clock is not the one that was confirmed"
        watch.jumps(5 * DAY)
        refused = CliRunner().invoke(app, call)
        assert refused.exit_code != 0
        looked_twice(live)
        assert states(live) == ["open"]
        assert CliRunner().invoke(app, [*call, "--yes"]).exit_code == 0
        eventually(lambda: states(live) == ["closed"])
        assert settled(live)


@pytest.mark.parametrize("retention", ["tally", "reports"])
def test_an_epoch_that_a_wrong_clock_closed_is_opened_again(durable_url, retention):
    """Sums go on from where they were, and what was counted before is not counted again."""
    watch, survey, people = Watch(), daily(retention=retention), crowd(daily(), 30)
    now = current(survey, watch.wall())
    call = ["store", "reopen-epoch", str(now), "--store", durable_url]
    path = f"/v1/surveys/{survey.fingerprint}"
    with in_thread(durable_url, survey, **watch.settings()) as live:

        def known() -> dict[str, Any]:
            found: dict[str, Any] = live.get(f"{path}/status", "analyst").json
            return found

        live.send(survey, now, people[:10])
        assert "it is not closed" in CliRunner().invoke(app, call).output
        if durable_url.startswith("sqlite:"):
            watch.jumps(9 * DAY)
            looked_twice(live)
            watch.passes(SHORT)
            eventually(lambda: known()["epochs"][0]["state"] == "closed")
            watch.jumps(-9 * DAY)
            looked_twice(live)
        else:
            # The clock of the database would have to be wrong as well.
            live.ask("POST", f"{path}/epochs/{now}/close", role="admin")
        assert live.send(survey, now, people).json["rejected"][0][2] == "epochClosed"
        before = known()
        watch.passes(SHORT)
        eventually(lambda: known()["clock"] is None)
        assert CliRunner().invoke(app, call).exit_code == 0
        looked_twice(live)
        after = known()
        assert after["version"] > before["version"]
        assert [one["state"] for one in after["epochs"]] == ["open"]
        assert live.send(survey, now, people).json["accepted"] == 30
        counter = SurveyCounter(survey)
        with open_store(durable_url) as store:
            counted = store.tally(survey.fingerprint).spec()
            assert counted == counter.tally(30, counter.count(people.answers)).spec()
            assert (store.duplicates(survey.fingerprint), store.check()) == (10, [])
            assert (store.epochs(survey.fingerprint)[0].n, store.epochs(survey.fingerprint)[0].reopened) == (30, 1)


def test_ids_are_forgotten_after_the_days_of_grace_by_a_trusted_clock_only(tmp_path):
    watch, survey = Watch(), daily()
    url, now = f"sqlite:///{tmp_path / 'store.db'}", current(daily(), watch.wall())

    def ids() -> int:
        with closing(sqlite3.connect(tmp_path / "store.db")) as database:
            return int(database.execute("SELECT COALESCE(SUM(LENGTH(ids)), 0) / 16 FROM seen").fetchone()[0])

    with in_thread(url, survey, **watch.settings(HOUR)) as live:
        watch.passes(HOUR)
        eventually(lambda: settled(live))
        live.send(survey, now, crowd(survey, 5))
        watch.passes(3 * DAY)
        eventually(lambda: states(live) == ["closed"])
        watch.jumps(30 * DAY)
        looked_twice(live)
        assert ids() == 5
        watch.jumps(-30 * DAY)
        looked_twice(live)
        watch.passes(HOUR)
        eventually(lambda: settled(live))
        looked_twice(live)
        assert ids() == 5
        refused = CliRunner().invoke(app, ["store", "reopen-epoch", str(now + 9), "--store", url]).output
        assert "it is not closed" in refused
        watch.passes(3 * DAY)
        eventually(lambda: ids() == 0)
        with live.store() as store, pytest.raises(StoreError, match="ids of its submissions are forgotten"):
            store.reopen_epoch(survey.fingerprint, now)


def test_two_workers_of_which_one_jumps(postgres_url):
    """The one does not close; the other goes on closing."""
    right, wrong, survey, people = Watch(), Watch(), daily(), crowd(daily(), 20)
    now = current(survey, right.wall())
    with (
        in_thread(postgres_url, survey, shard=0, **right.settings(HOUR)) as one,
        in_thread(postgres_url, shard=1, **wrong.settings(HOUR)) as other,
    ):
        for watch, live in ((right, one), (wrong, other)):
            watch.passes(50)
            looked_twice(live)
        assert one.send(survey, now, people[:10]).json["accepted"] == 10
        wrong.jumps(JUMP)
        # However long it is steady, the database has another time.
        wrong.passes(30 * HOUR)
        looked_twice(other)
        looked_twice(one)
        assert other.send(survey, now, people).json == {"accepted": 20, "rejected": []}
        assert states(one) == states(other) == ["open"]
        assert DISAGREES in status(other)["clock"]
        with open_store(postgres_url) as store:
            store.confirm_time(time.time())
        eventually(lambda: settled(one))
        assert not settled(other)
        assert status(one)["accepted"] == 20


def test_a_clock_that_is_set_right_slowly_is_followed():
    watch = Watch(1e9)
    clock = TrustedClock(watch.wall, watch.monotonic, HOUR)
    watch.passes(HOUR)
    assert clock.check() == [SETTLED]
    for _ in range(100):
        watch.passes(HOUR)
        watch.jumps(-59)
        assert clock.check() == []
        assert clock.bounds().guess == watch.wall()
    watch.jumps(61)
    assert clock.check() == [JUMPED]


def test_a_database_that_disagrees_and_agrees_again():
    watch = Watch(1e9)
    clock = TrustedClock(watch.wall, watch.monotonic, HOUR)
    watch.passes(HOUR)
    clock.check(StoredTime(None, None, watch.wall()))
    assert clock.bounds().doubt is None
    assert clock.check(StoredTime(None, None, watch.wall() - DAY)) == [DISAGREES]
    found = clock.bounds()
    assert (found.earliest, found.guess, found.latest) == (watch.wall() - DAY, watch.wall(), watch.wall())
    watch.passes(HOUR - 1)
    clock.check(StoredTime(None, None, watch.wall()))
    assert clock.bounds().doubt == DISAGREES
    watch.passes(1)
    assert clock.check(StoredTime(None, None, watch.wall())) == [SETTLED]


def test_the_store_keeps_times(store):
    assert (store.time().trusted, store.time().confirmed) == (None, None)
    store.note_time(1000.7, first=True)
    store.note_time(2000, first=True)
    assert store.time().trusted == 1000
    store.note_time(900)
    assert store.time().trusted == 900
    store.confirm_time(3000)
    assert (store.time().trusted, store.time().confirmed) == (3000, 3000)


def test_a_copy_keeps_times(store, tmp_path):
    store.confirm_time(3000)
    store.backup(tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert dict(copy.execute("SELECT name, moment FROM clock")) == {"trusted": 3000, "confirmed": 3000}
