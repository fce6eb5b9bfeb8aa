"""A year of daily telemetry: real clients, HTTP and an injected clock; and a crowd through files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.collect.client import Client, Ledger
from deniable.files import tally_files, write_reports
from deniable.privacy import compose
from deniable.protocols import Evolving
from deniable.randomness import Simulation
from deniable.surveys import Survey
from deniable.surveys.terms import read_time
from tests.collect.server.live import in_thread, moving
from tests.documents import rows_of

DAY = 86_400
START = read_time("2026-01-01T00:00:00Z")
SHM = Path("/dev/shm")

COMMON: dict[str, Any] = {
    "owner": "Example Institute",
    "purpose": "To plan capacity.",
    "opens": "2026-01-01T00:00:00Z",
    "epochs": {"days": 1},
    "min_reports": 1,
}


def usage(days: int) -> Survey:
    """Minutes of use, afresh every day."""
    return Survey.from_draft(
        COMMON
        | {
            "name": "usage",
            "days": days,
            "people": 500,
            "epsilon": "1/10",
            "longitudinal": {"rule": "none", "epochs": days},
            "questions": [
                {
                    "id": "minutes",
                    "text": "Minutes of use today",
                    "answers": {"number": {"low": 0, "high": 1440, "unit": "minutes"}, "read": "mean"},
                }
            ],
        }
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: a ledger waits for the disk several times a submission."""
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as made:
        yield Path(made)


def year(folder: Path, devices: int, days: int, restart: int, lose: int) -> None:
    """Devices record values, or none, every day; each starts again every `restart` days; some lose their ledgers."""
    survey, moment = usage(days), [float(START + 3600)]
    random = np.random.default_rng(1)
    habit = random.gamma(2.0, 120.0, devices)
    minutes = np.clip(np.rint(habit[:, None] * random.gamma(4.0, 1 / 4, (devices, days))), 0, 1440).astype(int)
    minutes[random.random((devices, days)) < 0.2] = 0  # a day without an event
    lost = {int(device): int(random.integers(1, days)) for device in random.permutation(devices)[:lose]}

    with in_thread(f"sqlite:///{folder / 'store.db'}", survey, **moving(moment)) as service:
        address = f"http://127.0.0.1:{service.port}"

        def client(device: int) -> Client:
            ledger = Ledger(folder / f"{device}.sqlite")
            opened[device] = open_ledger = ExitStack()
            open_ledger.enter_context(ledger.kept_open())  # as in a process that goes on: fewer connections to the file
            return Client(address, survey.fingerprint, ledger, clock=lambda: moment[0], idle={"minutes": 0})

        opened: dict[int, ExitStack] = {}
        clients = [client(device) for device in range(devices)]

        def live(device: int, day: int) -> None:
            if lost.get(device) == day or (day and day % restart == device % restart):
                clients[device].close()
                opened[device].close()
                if lost.get(device) == day:
                    (folder / f"{device}.sqlite").unlink()
                clients[device] = client(device)
            one, used = clients[device], int(minutes[device, day])
            for part in (used // 3, used - used // 3) if used else ():
                one.record("minutes", part, add=True)
            one.settle()

        with ThreadPoolExecutor(8) as threads:  # a client mostly waits for the service
            for day in range(days):
                list(threads.map(partial(live, day=day), range(devices)))
                moment[0] += DAY
        for one in clients:
            one.settle()
            one.close()
        for each in opened.values():
            each.close()
        path = f"/v1/surveys/{survey.fingerprint}/estimates?per=epoch&about=respondents"
        readings = service.get(path, role="analyst").json["series"]

    # A ledger that is lost on a day takes the values of the day before with it, which had no submission yet.
    asked = np.ones((devices, days), dtype=bool)
    for device, day in lost.items():
        asked[device, day - 1] = False
    covered = 0
    for day, found in enumerate(readings):
        (row,) = rows_of(found["questions"][0])
        assert found["n"] == asked[:, day].sum()
        truth = minutes[asked[:, day], day].mean()
        covered += row["low"] <= truth <= row["high"]
    # Of independent days at 95 %: fewer than this once in 10^6 times. Intervals are about a population, so wider.
    assert covered >= 0.95 * days - 4.8 * np.sqrt(days * 0.95 * 0.05)

    # What the ledger has debited is what accounting says of as many fresh reports.
    protocol = survey["minutes"].protocol
    for device in range(devices):
        made = days - lost[device] if device in lost else days
        (spent,) = Ledger(folder / f"{device}.sqlite").budgets()
        assert spent.spent == compose(protocol, times=made).epsilon == Fraction(made, 10)


def test_two_weeks_of_daily_telemetry(folder: Path) -> None:
    year(folder, devices=8, days=10, restart=4, lose=2)


@pytest.mark.slow
def test_a_year_of_daily_telemetry(folder: Path) -> None:
    year(folder, devices=12, days=365, restart=30, lose=2)


def crowd(folder: Path, people: int, days: int) -> None:
    """A feature that spreads, followed through files: one file per day, all counted together."""
    protocol = Evolving(["off", "on"], 2, epochs=days, changes=1)
    random = np.random.default_rng(2)
    since = random.integers(0, 2 * days, people)  # half of them never
    streams = (np.arange(days) >= since[:, None]).astype(np.int64)
    answers = np.array(["off", "on"], dtype=object)
    files = []
    for day, reports in enumerate(protocol.streams(answers[streams], Simulation(3))):
        files.append(folder / f"day-{day:03d}.parquet")
        write_reports(files[-1], Survey.of(protocol), [{"report": reports}])
    tally = tally_files(Survey.of(protocol), files)["report"]
    assert tally.n == people * days
    found = protocol.estimate(tally)
    truth = streams.mean(axis=0)
    z = (found.frequencies[1] - truth) / found.stderr[1]
    # Neighbouring epochs share most of their noise: all of them within 5.5 standard errors but once in 10^5 times.
    assert np.abs(z).max() < 5.5
    assert np.mean(np.abs(z) < 1.96) > 0.5
    assert abs(found.total[0][1] - truth.mean()) < 5 * found.total[1][1]
    assert protocol.law().kept.lifetime(days) == compose(protocol, times=days, how="longitudinal").epsilon == 2


def test_a_crowd_through_files(folder: Path) -> None:
    crowd(folder, people=500, days=8)


@pytest.mark.slow
def test_fifty_thousand_devices_through_files_for_a_year(folder: Path) -> None:
    crowd(folder, people=50_000, days=365)


ANSWERING = """
import sys
from deniable.collect.client import Ledger
from deniable.surveys import Survey
made, _ = Ledger(sys.argv[1]).submit(Survey.load(sys.argv[2]), int(sys.argv[3]), {"on": sys.argv[4]})
print(made.body[24:].hex(), made.epsilon)
"""


@pytest.mark.slow
def test_one_ledger_repeats_its_state_in_other_processes(folder: Path) -> None:
    rule = {"rule": "memoize", "epochs": 30, "values": 2}
    question = {"id": "on", "text": "Is it on?", "answers": [str(place) for place in range(500)], "protocol": "GRR"}
    draft = COMMON | {"name": "on", "days": 30, "epsilon": 1, "longitudinal": rule, "questions": [question]}
    Survey.from_draft(draft).save(folder / "survey.json")
    sent = []
    for epoch, answer in enumerate(("7", "8", "7", "8", "9")):
        command = [sys.executable, "-c", ANSWERING, folder / "ledger.sqlite", folder / "survey.json", epoch, answer]
        sent.append(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.split())
    reports = [report for report, _ in sent]
    assert reports[0] == reports[2] == reports[4]  # beyond the cap the first one
    assert reports[1] == reports[3]
    assert [epsilon for _, epsilon in sent] == ["1", "1", "0", "0", "0"]
