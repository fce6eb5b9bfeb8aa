"""A trial of the relay: devices send sealed submissions while relay, collector, disk or clock fail.

Devices    threads; a submission is sent until it is acknowledged, the same bytes each time
Account    the relay's clock is turned to the end of the epoch, so that everything leaves. Then each acknowledged id of
           a survey that the collector takes is known there (else it is lost), and the tally is that of the known ids
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import numpy as np

from deniable.collect import wire
from deniable.collect.sealing import SEALED, CollectorKey, sealed
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from tests.collect.server.live import Client, Process, eventually, free_port, prepare
from tests.collect.surveys import DAY, crowd, current
from tests.collect.test_sealing import relayed
from tests.faults.places import ids_of
from tests.faults.trial import Result

RELAY = "relay"
BATCH = 20
DEVICES = 4
STEADY = 2.0
"""Seconds after which the relay's clock is trusted, in the place of an hour."""


class RelayProcess(Process):
    command = ("relay", "serve")


class Capricious:
    """Stands before a collector: passes requests on, refuses them, takes its time, or loses the answers."""

    def __init__(self, port: int) -> None:
        capricious = self
        self.mood: str | int | None = None
        """A status to answer with, "slow", "lost", or None."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body, mood = self.rfile.read(int(self.headers["Content-Length"])), capricious.mood
                if isinstance(mood, int):
                    self._answer(mood, b"{}")
                    return
                if mood == "slow":
                    time.sleep(1.5)
                collector = Client(port)
                try:
                    asked = collector.ask("POST", self.path, body, headers={"Content-Type": SEALED})
                except (OSError, http.client.HTTPException):
                    self.close_connection = True
                    return
                finally:
                    collector.close()
                if mood == "lost":
                    self.close_connection = True
                    return
                with suppress(OSError):  # the relay was killed
                    self._answer(asked.status, asked.body)

            def _answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class RelayTrial:
    """Relay, collector and devices; `surveys` names those that the relay carries, `published` those that the collector
    has."""

    def __init__(self, folder: Path, surveys: str = "A", published: str = "A", queue: Path | None = None) -> None:
        self._stack, self._stop = ExitStack(), threading.Event()
        key = CollectorKey.make(folder / "collector.pem")
        address = f"http://127.0.0.1:{free_port()}"
        self.surveys = {name: relayed(key, BATCH, address, name) for name in surveys}
        self.sent: dict[str, list[bytes]] = {name: [] for name in surveys}
        self.acknowledged: dict[str, list[bytes]] = {name: [] for name in surveys}
        self.failures, self.injected, self.ended = 0, 0, 0
        """Submissions that were not acknowledged, faults, and refusals because the survey has ended."""
        self.wrong: list[str] = []
        self.chance = random.Random(11)
        self.url, self.clock = f"sqlite:///{folder / 'collector.db'}", folder / "clock"
        with open_store(self.url) as store:
            prepare(store, *(self.surveys[name] for name in published))
        files = []
        for name, survey in self.surveys.items():
            files.append(str(folder / f"{name}.json"))
            Path(files[-1]).write_text(json.dumps(survey.spec()), encoding="utf-8")
        self.collector = self._stack.enter_context(Process(self.url, "--relay-key", str(folder / "collector.pem")))
        self.before = Capricious(self.collector.port)
        self._stack.callback(self.before.close)
        self.operator = Client(free_port())
        arguments = (*files, "--collector", f"http://127.0.0.1:{self.before.port}")
        arguments += ("--steady-seconds", str(STEADY), "--operator-port", str(self.operator.port))
        store = f"sqlite:///{queue or folder / 'relay.db'}"
        faults = {"FAULTS": json.dumps({"clock": str(self.clock)})}
        self.relay = self._stack.enter_context(RelayProcess(store, *arguments, program="tests.faults.served", **faults))
        self._devices = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(DEVICES)]
        for device in self._devices:
            device.start()
        self.under_way()

    def _send(self, number: int) -> None:
        numbers, chance = np.random.default_rng(number), random.Random(number)
        answers = {name: crowd(survey, 500, number).answers for name, survey in self.surveys.items()}
        device = Client(self.relay.port)
        while not self._stop.is_set():
            name = chance.choice(sorted(self.surveys))
            survey, id = self.surveys[name], numbers.bytes(wire.ID_BYTES)
            record = id + answers[name][id[0]].tobytes()
            self.sent[name].append(record)
            epoch = current(survey)
            body = sealed(survey, wire.MAGIC + epoch.to_bytes(4, "little") + record)
            while not self._stop.is_set() and not self.wrong:
                with suppress(OSError, http.client.HTTPException):
                    told = device.post(survey, body, SEALED, timeout=5)
                    if told.status == 200 and told.json == {"accepted": 1, "rejected": []}:
                        self.acknowledged[name].append(record)
                        break
                    if told.status == 410:
                        self.ended += 1
                        break
                    if told.status == 503 and len(self.surveys) > 1:  # the device has other things to do meanwhile
                        break
                    if told.status not in (503, 507):
                        self.wrong.append(f"{told.status}: {told.body[:200]!r}")
                self.failures += 1
                time.sleep(0.02)
        device.close()

    def taken(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def under_way(self, more: int = 50) -> None:
        """Wait until devices have got on, and then a moment that is different each time."""
        before = self.taken()
        eventually(lambda: self.taken() >= before + more or self.wrong, 90)
        time.sleep(self.chance.uniform(0.05, 0.4))

    def injects(self, n: int) -> Iterator[int]:
        for number in range(n):
            yield number
            self.injected += 1
            self.under_way()

    def ready(self) -> str:
        """What /readyz says."""
        told = self.operator.get("/readyz").json
        return str(told.get("status") if told.get("status") != 503 else told["detail"])

    def known(self) -> set[bytes]:
        """The ids that the collector has."""
        copy = Path(self.url.removeprefix("sqlite:///")).with_name("copy.db")
        with open_store(self.url) as store:
            store.backup(copy)
        return {id.tobytes() for id in ids_of(copy).view(f"V{wire.ID_BYTES}")}

    def counted(self, name: str) -> int:
        with open_store(self.url) as store:
            return sum(one.n for one in store.epochs(self.surveys[name].fingerprint))

    def account(self, fault: str, began: float, good: str = "A") -> Result:
        """Let everything leave, and compare: of the survey that the collector takes."""
        self._stop.set()
        for device in self._devices:
            device.join(60)
        self.before.mood = None
        self.clock.write_text(str(2 * DAY))
        survey, taken = self.surveys[good], self.acknowledged[good]
        with suppress(AssertionError):  # what is missing is counted below
            eventually(lambda: self.counted(good) >= len(taken), 120)
        known = self.known()
        lost = sum(record[: wire.ID_BYTES] not in known for record in taken)
        # Beside what was acknowledged, what was taken and whose acknowledgement did not arrive.
        there = [record[wire.ID_BYTES :] for record in self.sent[good] if record[: wire.ID_BYTES] in known]
        doubled = max(0, self.counted(good) - len(there))
        with open_store(self.url) as store:
            tally, problems = store.tally(survey.fingerprint), store.check()
        counter, answers = SurveyCounter(survey), np.frombuffer(b"".join(there), dtype=np.uint8)
        if counter.tally(len(there), counter.count(answers.reshape(len(there), -1))).spec() != tally.spec():
            self.wrong.append("the tally differs from that of what arrived")
        wrong = [*self.wrong, *problems]
        return Result(fault, RELAY, self.injected, len(taken), lost, doubled, time.monotonic() - began, wrong)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for device in self._devices:
            device.join(60)
        self._stack.close()
