"""What an operator sees: probes and figures on their own port, a full disk, a held lock, too few files."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from deniable.collect.server import admin, service as serving
from deniable.collect.stores import open_store
from deniable.collect.wire import to_text
from tests.collect.server.live import Client, Process, eventually, free_port, in_thread, prepare
from tests.collect.surveys import crowd, current, daily, plain

SURVEY = plain()


@contextmanager
def watched(url: str, *arguments: str) -> Iterator[tuple[Process, Client]]:
    """A service, and a client of its operator's port."""
    with open_store(url) as store:
        prepare(store, SURVEY)
    port = free_port()
    with Process(url, "--operator-port", str(port), *arguments) as service:
        yield service, Client(port)


def figures(client: Client) -> dict[str, float]:
    text = client.get("/metrics").body.decode()
    return {name: float(value) for name, value in re.findall(r"^([a-z][^ ]*) ([^ ]+)$", text, re.MULTILINE)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    call = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(call, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_probes_and_figures_have_a_port_that_full_connections_do_not_take(tmp_path):
    """Every connection that the service takes is taken, and no file is left for more; the operator is answered."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    limit = (200, 200)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open_store(url) as store:
        prepare(store, SURVEY)
    port, inside = free_port(), f"ulimit -n {limit[0]}; exec {sys.executable} -m deniable serve --store {url}"
    with ExitStack() as stack:
        service = stack.enter_context(
            subprocess.Popen(
                ["sh", "-c", f"{inside} --port 0 --operator-port {port}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(service.terminate)
        lines = iter(service.stdout.readline, "")
        address = next(line for line in lines if line.startswith("serving:")).split()[1]
        own, operator = int(address.rstrip("/").rpartition(":")[2]), Client(port)
        taken = [stack.enter_context(socket.create_connection(("127.0.0.1", own))) for _ in range(400)]
        for one in taken:
            one.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        eventually(lambda: figures(operator)['deniable_connections{worker="0"}'] >= 100)
        assert operator.get("/healthz").json == {"status": "ok"}
        assert operator.get("/readyz").json["status"].startswith("ok")
        assert figures(operator)['deniable_connections_limit{worker="0"}'] == 100
        assert operator.get("/v1/surveys").status == 404
        service.terminate()
        told = [json.loads(line) for line in service.communicate(timeout=60)[1].splitlines()]
    fewer = next(line for line in told if line["event"] == "fewer connections")
    assert (fewer["connections"], fewer["files"]) == (100, 200)
    assert not [line for line in told if line["event"] in ("error", "library")], "no connection was without a file"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_one_scrape_sees_everything(tmp_path):
    now = daily()
    with watched(f"sqlite:///{tmp_path / 'store.db'}") as (service, operator):
        with open_store(service.url) as store:
            store.publish(now)
        assert service.send(SURVEY, 0, crowd(SURVEY, 7)).status == 200
        assert service.send(now, current(now), crowd(now, 5)).status == 200
        with open_store(service.url) as store:
            store.close_epoch(SURVEY.fingerprint, 0)
        survey = f'survey="{now.fingerprint}"'
        eventually(lambda: figures(operator).get(f'deniable_last_closed_epoch{{survey="{SURVEY.fingerprint}"}}') == 0)
        seen = figures(operator)
        assert seen['deniable_submissions_total{outcome="counted",worker="0"}'] == 12
        assert seen['deniable_request_seconds_count{operation="sendReports",worker="0"}'] == 2
        assert seen['deniable_request_seconds_bucket{operation="sendReports",le="+Inf",worker="0"}'] == 2
        assert 0 < seen['deniable_request_seconds_sum{operation="sendReports",worker="0"}'] < 20
        assert seen['deniable_connections{worker="0"}'] == 1
        assert seen['deniable_ready{worker="0"}'] == seen['deniable_up{worker="0"}'] == 1
        assert seen["deniable_store_bytes"] > 10_000
        assert seen[f'deniable_epoch_ids{{{survey},epoch="{current(now)}"}}'] == 5
        assert seen[f"deniable_overdue_epochs{{{survey}}}"] == 0
        assert any(name.startswith('deniable_build_info{version="') for name in seen)
        text = operator.get("/metrics").body.decode()
        heads = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
        assert len(dict(heads)) == len(heads), "each family stands in one place"
        # The public port has the same figures of its worker for those who have a token.
        assert service.get("/metrics").problem == "unauthorized"
        assert b"deniable_epoch_ids" in service.get("/metrics", "analyst").body


def test_a_full_disk_is_said(small_disk):
    with watched(f"sqlite:///{small_disk / 'store.db'}") as (service, operator):
        assert operator.get("/readyz").status == 200
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            for _ in range(2048):
                file.write(bytes(4096))
        eventually(lambda: operator.get("/readyz").status == 503)
        assert "no room left, and its reserve is given up" in operator.get("/readyz").json["detail"]
        assert service.get("/readyz").problem == "storageFull"
        assert figures(operator)['deniable_ready{worker="0"}'] == 0
        # Who reads is served meanwhile.
        assert service.get(f"/v1/surveys/{SURVEY.fingerprint}/status", "analyst").status == 200
        filler.unlink()
        eventually(lambda: operator.get("/readyz").status == 200, 20)
        assert service.send(SURVEY, 0, crowd(SURVEY, 3)).status == 200


def test_a_full_server_is_said(postgres_url):
    """What the last commit found, because only the database's own machine knows its disk."""
    with open_store(postgres_url) as store, in_thread(postgres_url, SURVEY) as live:
        store._query(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
        )
        store._query("CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON tally EXECUTE FUNCTION full_disk()")
        assert live.get("/readyz").status == 200
        assert live.send(SURVEY, 0, crowd(SURVEY, 3)).problem == "storageFull"
        assert live.get("/readyz").problem == "storageFull"


def test_a_held_lock_does_not_take_the_readers(tmp_path):
    """However often probes ask while another process holds the file, analysts are answered; afterwards, devices too."""
    people, path = crowd(SURVEY, 10), f"/v1/surveys/{SURVEY.fingerprint}/status"
    with watched(f"sqlite:///{tmp_path / 'store.db'}") as (service, operator), ThreadPoolExecutor(6) as probes:
        assert service.send(SURVEY, 0, people[:4]).status == 200
        with sqlite3.connect(tmp_path / "store.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            scrape = probes.submit(operator.get, "/metrics")
            asked = [probes.submit(operator.get, "/readyz") for _ in range(5)]
            for _ in range(12):
                assert service.ask("GET", path, role="analyst", timeout=5).json["accepted"] == 4
            assert {one.result().status for one in asked} <= {200, 503}  # 200: as it was a moment before
            eventually(lambda: operator.get("/readyz").status == 503, 60)
            assert service.ask("GET", path, role="analyst", timeout=5).json["accepted"] == 4
            assert 'deniable_store_answers{worker="0"} 1' in scrape.result().body.decode()
            other.execute("ROLLBACK")
        other.close()
        eventually(lambda: operator.get("/readyz").status == 200)
        assert service.send(SURVEY, 0, people).json["accepted"] == 10


def test_probes_do_not_wait_for_a_store_that_does_not_answer(tmp_path, monkeypatch):
    """Their answers come although the store would be waited for ten minutes: first as it was, then that it is stuck."""
    monkeypatch.setattr(admin, "PING_SECONDS", 600.0)
    monkeypatch.setattr(admin, "FRESH_SECONDS", 0.0)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", SURVEY) as live:
        assert live.get("/readyz").status == 200
        stuck = threading.Event()
        waiting = asyncio.run_coroutine_threadsafe(live.service.writer.run(lambda _: stuck.wait(120)), live.loop)
        reading = [
            asyncio.run_coroutine_threadsafe(live.service.readers.run(lambda _: stuck.wait(120)), live.loop)
            for _ in range(live.service.settings.readers)
        ]
        try:
            assert live.get("/readyz").status == 200, "as it was"
            assert live.get("/metrics", "analyst").status == 200
            monkeypatch.setattr(serving, "OLD_SECONDS", 0.0)
            assert "does not answer" in live.get("/readyz").json["detail"]
            assert live.get("/metrics", "analyst").status == 200
        finally:
            stuck.set()
        assert waiting.result(60)
        assert all(one.result(60) for one in reading)


def test_changes_take_no_reader_while_the_lock_is_held(tmp_path):
    """Whoever closes or deletes is told to come back later, and analysts are answered meanwhile."""
    survey, people = plain(retention="reports"), crowd(SURVEY, 4)
    path, id = f"/v1/surveys/{survey.fingerprint}", to_text(people.ids[0].tobytes())
    changes = [
        ("POST", f"{path}/epochs/0/close", "admin"),
        ("POST", f"{path}/close", "admin"),
        ("DELETE", f"{path}/reports/{id}", None),
        ("DELETE", f"{path}/reports?epochs=..", "admin"),
    ]
    with (
        in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, request_seconds=2) as live,
        ThreadPoolExecutor(12) as asking,
    ):
        assert live.send(survey, 0, people).status == 200
        with sqlite3.connect(tmp_path / "store.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            asked = [asking.submit(live.ask, method, place, None, role) for method, place, role in 3 * changes]
            while not all(one.done() for one in asked):
                assert live.get(f"{path}/status", "analyst").json["accepted"] == 4
            for one in asked:
                assert one.result().problem == "overloaded"
                assert int(one.result().headers["retry-after"]) >= 1
            time.sleep(1)  # a thread may still be about to find the lock: it must not be given away yet
            other.execute("ROLLBACK")
        other.close()
        eventually(lambda: live.ask(*changes[2][:2]).json == {"deleted": True})
        assert live.ask("POST", f"{path}/close", role="admin").status == 200
        assert live.ask("DELETE", f"{path}/reports?epochs=..", role="admin").json == {"deleted": 3}


def test_the_level_of_the_log_changes_while_it_runs(tmp_path):
    settings = ("--log-level", "warning", "--steady-seconds", "0")
    with watched(f"sqlite:///{tmp_path / 'store.db'}", *settings) as (service, operator):
        assert operator.get("/readyz").json == {"status": "ok"}, "the clock is trusted at once"
        for _ in range(2):
            before = service.log.read_text()
            service.process.send_signal(signal.SIGUSR1)
            eventually(lambda: service.log.read_text() != before)  # noqa: B023
        assert operator.get("/healthz").status == 200
        assert service.stop() == 0
        told = [json.loads(line) for line in service.log.read_text().splitlines()]
    # "started" was below the level, "stopped" no longer is.
    assert [line["event"] for line in told] == ["log level", "log level", "stopped"]
    assert [line.get("log_level") for line in told[:2]] == ["error", "info"]
    assert {line["level"] for line in told} == {"error", "info"}


def test_everything_on_standard_error_is_json():
    """Warnings, loggers of libraries and threads that fail, without what their messages quote."""
    code = """
import logging, threading, warnings
from deniable.collect.server.telemetry import own_the_process
own_the_process("info")
warnings.warn("careful", stacklevel=1)
logging.getLogger("asyncio").error("it failed for %s", "203.0.113.7")
logging.getLogger("asyncio").error("Traceback (most recent call last):\\n  in x\\nStoreError: why")
thread = threading.Thread(target=lambda: {}["203.0.113.7"], name="reader")
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["where"] for line in told] == ["py.warnings", "asyncio", "asyncio", "reader"]
    assert told[2]["message"] == "StoreError: why"
    assert told[3]["kind"] == "KeyError"
    assert "203.0.113.7" not in done.stderr
