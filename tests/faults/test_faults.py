"""Nothing acknowledged is lost and nothing is counted twice, whatever breaks: the table of `make test-faults`."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.collect.conftest import started
from tests.collect.postgres import NEWEST, OLDEST, PostgresServer, in_memory
from tests.collect.server.live import eventually
from tests.collect.server.test_workers import children
from tests.collect.surveys import DAY
from tests.collect.wire_faults import Proxy
from tests.faults.conftest import Tell
from tests.faults.places import Disk, FilesPlace, Place, PostgresPlace, SqlitePlace, small_disk
from tests.faults.trial import Result, Trial, trial

SQLITE, FILES, POSTGRES = "SQLite", "files", [f"PostgreSQL {version}" for version in (OLDEST, NEWEST)]
EVERY = [SQLITE, *POSTGRES, FILES]
ONE_VERSION = [SQLITE, POSTGRES[0], FILES]
"""For what breaks in the service or between it and others, whatever the version of the database: time is short."""
HASTY = {
    "settings": {"request_seconds": 8.0},
    "postgres": {"ANSWER_SECONDS": 4.0, "LOCK_SECONDS": 2.0, "SILENT_SECONDS": 0.5},
}
"""Connections on which nothing comes are given up early, so that the trial need not wait."""
ASKED: dict[str, dict[str, Any]] = {
    "connections black-holed": HASTY | {"seconds": 4.0},
    "clock jumps": {"pause": 0.02},
    "backup and restore": {"pause": 0.02},
}
"""Devices pause between requests where a fault takes seconds: what they send meanwhile has to be accounted for."""
STEADY = 2.5
"""Seconds after which a clock is trusted, in the place of an hour."""


# -- what breaks ---------------------------------------------------------------------------------------


def kill_server(trial: Trial, times: int = 8) -> None:
    service = trial.serve()
    trial.send()
    for _ in trial.injects(times):
        service.kill()
        service.start()


def kill_worker(trial: Trial) -> None:
    service = trial.serve("--workers", "2")
    trial.send()
    for _ in trial.injects(6):
        eventually(lambda: children(service.process.pid), 30)
        os.kill(trial.chance.choice(children(service.process.pid)), signal.SIGKILL)


def kill_database(trial: Trial) -> None:
    trial.serve()
    trial.send()
    for number in trial.injects(6):
        if number % 2:
            trial.place.server.kill()
        else:
            trial.place.server.kill_backend()


def restart(trial: Trial) -> None:
    service = trial.serve()
    trial.send()
    for number in trial.injects(6):
        if number % 2 and isinstance(trial.place, PostgresPlace):
            trial.place.server.restart("fast")
        else:
            assert service.stop() == 0
            service.start()


def wired(trial: Trial) -> list[Proxy]:
    """Devices reach the service, and the service its database, by way of proxies."""
    found = []
    if isinstance(trial.place, PostgresPlace):
        found.append(Proxy(trial.place.server.socket))
        service = trial.serve(store=trial.place.behind(found[0]))
    else:
        service = trial.serve()
    found.append(Proxy(service.port))
    for proxy in found:
        trial.after(proxy.close)
    trial.send([found[-1].port])
    return found


def cut(trial: Trial) -> None:
    wires = wired(trial)
    for number in trial.injects(12):
        wires[number % len(wires)].cut()


def black_hole(trial: Trial) -> None:
    """Connections that carry nothing any more, and a network in which nothing moves for a second."""
    wires = wired(trial)
    for number in trial.injects(8):
        wire = wires[number % len(wires)]
        if number < 6:
            wire.swallow()
        else:
            wire.fall_silent()
            time.sleep(1)
            wire.speak()


def fill_disk(trial: Trial, disk: Disk) -> None:
    trial.serve()
    trial.send()
    for _ in trial.injects(4):
        before = trial.failures
        disk.fill()
        eventually(lambda: trial.failures > before + 20, 60)  # noqa: B023
        disk.make_room()
        trial.place.revive()


def turn_the_clock(trial: Trial) -> None:
    """By 40 days: epochs would close, and the survey be over. Two of the jumps are met by a service that starts."""
    clock = trial.folder / "clock"
    settings = {"steady_seconds": STEADY, "housekeeping_seconds": 0.1, "refresh_seconds": 0.1}
    service = trial.serve(clock=str(clock), settings=settings)
    trial.send()
    for number in trial.injects(4):
        time.sleep(STEADY + 0.5)
        clock.write_text(str(40 * DAY if number % 2 else -40 * DAY))
        if number > 1:
            service.kill()
            service.start()
        time.sleep(STEADY / 2)
        clock.write_text("0")


def restore(trial: Trial) -> None:
    """A copy is made while devices send, and later put in the place of the store.

    What was acknowledged after the copy was begun is forgotten with the store; it is sent again at the end.
    """
    service = trial.serve()
    trial.send()
    for number in trial.injects(2):
        copy, began = trial.folder / f"{number}.db", time.monotonic()
        trial.place.backup(copy, service)
        trial.under_way()
        service.kill()
        trial.place.restore(copy)
        trial.forgiven.append((began, time.monotonic()))
        service.start()


def replicas(trial: Trial) -> None:
    """Two services; every batch goes to both, in either order, and now and then one of them is killed."""
    both = [trial.serve(), trial.serve(store=trial.place.replica)]
    trial.send()
    for number in trial.injects(6):
        both[number % 2].kill()
        both[number % 2].start()


FAULTS: dict[str, tuple[Callable[..., None], list[str]]] = {
    "server: kill -9": (kill_server, EVERY),
    "worker: kill -9": (kill_worker, [*POSTGRES, FILES]),
    "database: kill -9": (kill_database, POSTGRES),
    "restarts": (restart, EVERY),
    "connections cut": (cut, EVERY),
    "connections black-holed": (black_hole, ONE_VERSION),
    "disk full": (fill_disk, EVERY),
    "clock jumps": (turn_the_clock, ONE_VERSION),
    "backup and restore": (restore, ONE_VERSION),
    "two replicas": (replicas, ONE_VERSION),
}
CELLS = [(fault, place) for fault, (_, places) in FAULTS.items() for place in places]


# -- where ---------------------------------------------------------------------------------------------


LOCAL: dict[str, Callable[[Path], Place]] = {SQLITE: SqlitePlace, FILES: FilesPlace}


class Servers:
    """One server per version, started when it is first asked for."""

    def __init__(self) -> None:
        self._stack, self._started = ExitStack(), dict[int, PostgresServer]()

    def of(self, version: int) -> PostgresServer:
        if version not in self._started:
            self._started[version] = self._stack.enter_context(started(version))
        return self._started[version]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    found.close()


def run(fault: str, place: Place, *arguments: object, **asked: object) -> Result:
    began = time.monotonic()
    with place, trial(place, **ASKED.get(fault, {}), **asked) as made:
        FAULTS[fault][0](made, *arguments)
        return made.account(fault, began)


def full_disk(name: str) -> Result:
    with ExitStack() as stack:
        if name in LOCAL:
            disk = stack.enter_context(small_disk(64))
            return run("disk full", LOCAL[name](disk.path), disk)
        version = int(name.split()[1])
        disk = stack.enter_context(small_disk(256))
        started(version).close()  # skips where there is none
        server = stack.enter_context(
            PostgresServer(version=version, within=disk.path, min_wal_size="32MB", max_wal_size="48MB")
        )
        return run("disk full", PostgresPlace(server, version), disk)


@pytest.mark.faults
@pytest.mark.parametrize(("fault", "name"), CELLS, ids=[f"{fault}, {name}" for fault, name in CELLS])
def test_nothing_is_lost_or_doubled(fault: str, name: str, servers: Servers, tell: Tell) -> None:
    if fault == "disk full":
        result = full_disk(name)
    else:
        with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
            if name in LOCAL:
                place = LOCAL[name](Path(folder))
            else:
                version = int(name.split()[1])
                place = PostgresPlace(servers.of(version), version)
            result = run(fault, place)
    tell(result)
    assert (result.lost, result.doubled, result.wrong) == (0, 0, [])


# -- whether it would be noticed -----------------------------------------------------------------------


def test_two_kills(tmp_path: Path) -> None:
    """The shortest of the trials, for every day."""
    result = run("server: kill -9", SqlitePlace(tmp_path), 2)
    assert (result.injected, result.lost, result.doubled, result.wrong) == (2, 0, 0, [])
    assert result.acknowledged > 100


@pytest.mark.faults
def test_a_service_that_acknowledges_first_loses(tmp_path: Path) -> None:
    assert run("server: kill -9", SqlitePlace(tmp_path), mistake="acknowledge_first").lost > 0


@pytest.mark.faults
def test_a_store_that_forgets_ids_counts_twice(tmp_path: Path) -> None:
    result = run("server: kill -9", SqlitePlace(tmp_path), 3, mistake="forget_ids")
    assert result.doubled > 0
    assert result.wrong


@pytest.mark.faults
def test_a_service_that_believes_its_clock_refuses(tmp_path: Path) -> None:
    result = run("clock jumps", SqlitePlace(tmp_path), mistake="believe_the_clock")
    assert any("epochTooOld" in text or "epochTooEarly" in text for text in result.wrong)
