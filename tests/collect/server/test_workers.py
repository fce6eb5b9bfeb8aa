"""Several workers on PostgreSQL, and the process as an operator meets it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deniable.collect.server.run import refuse_workers
from deniable.collect.stores import StoreError, open_store
from deniable.collect.stores.batches import SurveyCounter
from tests.collect.server.live import Client, Process, eventually, free_port, prepare
from tests.collect.surveys import crowd, current, daily, plain


def children(pid: int) -> list[int]:
    """The worker processes; Python's helper that tracks resources is not one of them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == pid and b"spawn_main" in command:
                found.append(int(entry.name))
    return found


def test_sqlite_has_one_worker(tmp_path):
    with pytest.raises(StoreError, match="PostgreSQL"):
        refuse_workers("sqlite:///x.db")
    command = [sys.executable, "-m", "deniable", "serve", "--store", f"sqlite:///{tmp_path / 'x.db'}", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "one writer at a time" in done.stderr


def test_two_workers_share_a_port_a_store_and_a_sum(postgres_url):
    survey = daily()
    epoch, people = current(survey), crowd(daily(), 400)
    with open_store(postgres_url) as store:
        prepare(store, survey)
    operator = Client(free_port())
    with Process(postgres_url, "--workers", "2", "--operator-port", str(operator.port)) as service:
        for at in range(0, 400, 10):
            # A new connection each time, which either worker may get.
            client = Client(service.port)
            assert client.send(survey, epoch, people[at : at + 10]).json["accepted"] == 10
            client.close()
        # One scrape sees what each worker counted, and the store's figures once.
        text = operator.get("/metrics").body.decode()
        counted = dict(re.findall(r'deniable_submissions_total{outcome="counted",worker="(.)"} (\d+)', text))
        assert set(counted) == {"0", "1"}
        assert sum(map(int, counted.values())) == 400
        assert re.findall(r"^deniable_epoch_ids.* (\d+)$", text, re.MULTILINE) == ["400"]
        tally = service.get(f"/v1/surveys/{survey.fingerprint}/tally.json", "analyst").body.decode()
        counter = SurveyCounter(survey)
        assert tally == counter.tally(400, counter.count(people.answers)).to_json()
        # A worker that dies is replaced, and nothing is lost.
        first = children(service.process.pid)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        eventually(lambda: len(set(children(service.process.pid)) - set(first)) == 1, 30)
        eventually(lambda: operator.get("/readyz").status == 200, 30)
        # The level of the log is changed in all of them by a signal to the first process.
        service.process.send_signal(signal.SIGUSR1)
        eventually(lambda: service.log.read_text().count('"event":"log level"') == 3)
        assert service.stop() == 0
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in first))


@pytest.mark.faults
def test_workers_end_with_their_parent(postgres_url):
    with open_store(postgres_url) as store:
        prepare(store, plain())
    with Process(postgres_url, "--workers", "2") as service:
        pids = children(service.process.pid)
        assert len(pids) == 2
        service.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 20)


@pytest.mark.faults
def test_the_store_restarts_under_the_service(postgres_server, postgres_url):
    survey = plain()
    with open_store(postgres_url) as store:
        prepare(store, survey)
    with Process(postgres_url) as service:
        assert service.send(survey, 0, crowd(survey, 5)).status == 200
        postgres_server.restart()
        deadline = time.monotonic() + 90
        while service.send(survey, 0, crowd(survey, 8, seed=1)).status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert service.get("/readyz").status == 200
        assert service.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["accepted"] == 13
