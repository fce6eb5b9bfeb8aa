"""Nothing that a relay has acknowledged is lost or doubled, whatever breaks: a column of the table of faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.collect.server.live import eventually
from tests.collect.surveys import DAY
from tests.faults.conftest import Tell
from tests.faults.places import Disk, small_disk
from tests.faults.relayed import STEADY, RelayTrial
from tests.faults.trial import Result

# -- what breaks ---------------------------------------------------------------------------------------


def kill_both(trial: RelayTrial, times: int = 5) -> None:
    for number in trial.injects(2 * times):
        process = trial.collector if number % 2 else trial.relay
        process.kill()
        process.start()


def refuse(trial: RelayTrial) -> None:
    """For the moment, for good, slowly, and with answers that get lost."""
    for mood in (503, "slow", 500, "lost", 429, "slow"):
        trial.before.mood = mood
        trial.under_way()
        time.sleep(1)
        trial.before.mood = None
        trial.injected += 1
    for status in (401, 404):
        trial.before.mood = status
        eventually(lambda: f"the collector answers {status}" in trial.ready(), 60)  # noqa: B023
        trial.before.mood = None
        trial.injected += 1
        eventually(lambda: trial.ready() == "ok", 60)
        trial.under_way()


def end_and_forget(trial: RelayTrial) -> None:
    """Survey B ends at the collector and survey C was never there, while A goes on; the relay is killed, too."""
    ended, unknown = (trial.surveys[name].fingerprint for name in "BC")
    eventually(lambda: unknown in trial.ready(), 60)
    assert trial.collector.ask("POST", f"/v1/surveys/{ended}/close", role="admin").status == 200
    trial.injected += 2
    eventually(lambda: ended in trial.ready() and trial.ended, 60)
    for _ in trial.injects(3):
        trial.relay.kill()
        trial.relay.start()
        before = trial.counted("A")
        eventually(lambda: trial.counted("A") > before, 60)  # noqa: B023
        eventually(lambda: ended in trial.ready() and unknown in trial.ready(), 60)
    told = trial.operator.get("/metrics").body.decode()
    for survey, reason in ((ended, "surveyClosed"), (unknown, "unknownSurvey")):
        assert f'deniable_relay_set_aside{{survey="{survey}",reason="{reason}"}}' in told


def fill_disk(trial: RelayTrial, disk: Disk) -> None:
    for _ in trial.injects(4):
        before = trial.failures
        disk.fill()
        eventually(lambda: trial.failures > before + 20, 60)  # noqa: B023
        assert "no room" in trial.ready()
        disk.make_room()


def turn_the_clock(trial: RelayTrial) -> None:
    """By 40 days: epochs would end, and what waits be discarded. Two of the jumps are met by a relay that starts."""
    for number in trial.injects(4):
        time.sleep(STEADY + 0.5)
        trial.clock.write_text(str(40 * DAY if number % 2 else -40 * DAY))
        if number > 1:
            trial.relay.kill()
            trial.relay.start()
        time.sleep(STEADY / 2)
        trial.clock.write_text("0")


FAULTS: dict[str, Callable[..., None]] = {
    "relay and collector: kill -9": kill_both,
    "refusing and slow collector": refuse,
    "ended and unknown surveys": end_and_forget,
    "disk full": fill_disk,
    "clock jumps": turn_the_clock,
}


def run(fault: str, folder: Path) -> Result:
    began = time.monotonic()
    if fault == "disk full":
        with small_disk(32) as disk, RelayTrial(folder, queue=disk.path / "relay.db") as trial:
            fill_disk(trial, disk)
            return trial.account(fault, began)
    several = {"surveys": "ABC", "published": "AB"} if fault == "ended and unknown surveys" else {}
    with RelayTrial(folder, **several) as trial:
        FAULTS[fault](trial)
        return trial.account(fault, began)


@pytest.mark.faults
@pytest.mark.parametrize("fault", FAULTS)
def test_a_relay_loses_and_doubles_nothing(fault: str, tmp_path: Path, tell: Tell) -> None:
    result = run(fault, tmp_path)
    tell(result)
    assert (result.lost, result.doubled, result.wrong) == (0, 0, [])
    assert result.acknowledged > 100


@pytest.mark.slow
def test_two_kills_of_each(tmp_path: Path) -> None:
    began = time.monotonic()
    with RelayTrial(tmp_path) as trial:
        kill_both(trial, 1)
        result = trial.account("kill -9", began)
    assert (result.injected, result.lost, result.doubled, result.wrong) == (2, 0, 0, [])
