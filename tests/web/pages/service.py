"""A real `deniable serve` of its own process on an embedded store, which can be stopped and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from deniable.collect.stores import Token, open_store
from deniable.collect.wire import hashed, new_token
from deniable.randomness import Simulation
from deniable.surveys import Survey
from tests.collect.server.live import free_port
from tests.collect.surveys import Crowd, crowd

PATIENCE = 90.0
PROGRAM = [sys.executable, "-m", "deniable"]


@dataclass
class Service:
    """A service at a port that stays the same over restarts."""

    directory: Path
    port: int
    analyst: str = field(default_factory=new_token)
    admin: str = field(default_factory=new_token)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.directory / 'collection.db'}"

    def publish(self, survey: Survey) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.admin}"}
        request = urllib.request.Request(f"{self.address}/v1/surveys", survey.canonical, headers)
        urllib.request.urlopen(request, timeout=90).close()

    def close_epoch(self, survey: Survey, epoch: int) -> None:
        address = f"{self.address}/v1/surveys/{survey.fingerprint}/epochs/{epoch}/close"
        request = urllib.request.Request(address, b"", {"Authorization": f"Bearer {self.admin}"})
        urllib.request.urlopen(request, timeout=90).close()

    def fill(self, survey: Survey, epoch: int, n: int, seed: int = 1) -> None:
        """Answers of made-up people."""
        self.fill_with(survey, epoch, crowd(survey, n, seed))

    def fill_answers(self, survey: Survey, epoch: int, answers: Mapping[str, Sequence[Any]], seed: int = 1) -> None:
        """These answers, one column per question."""
        bits, n = Simulation(seed), len(next(iter(answers.values())))
        reports = [np.asarray(one.protocol.privatize(answers[one.id], bits)) for one in survey]
        ids = bits.words(2 * n).view(np.uint8).reshape(n, 16).copy()
        self.fill_with(survey, epoch, Crowd(ids, np.concatenate(reports, axis=1)))

    def fill_with(self, survey: Survey, epoch: int, people: Crowd) -> None:
        with open_store(self.store) as store:
            store.add([people.batch(survey, epoch)])

    def ask(self, survey: Survey, path: str) -> Any:
        """What the service says to an analyst."""
        address = f"{self.address}/v1/surveys/{survey.fingerprint}/{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.analyst}"})
        with urllib.request.urlopen(request, timeout=90) as reply:
            return json.load(reply)

    def count(self, survey: Survey) -> int:
        """Submissions that were counted."""
        with open_store(self.store) as store:
            return sum(epoch.n for epoch in store.epochs(survey.fingerprint))

    def survey_page(self, survey: Survey) -> str:
        return f"{self.address}/s/{survey.fingerprint}"

    def dashboard(self, survey: Survey) -> str:
        return f"{self.address}/dashboard/{survey.fingerprint}"

    # -- the process -------------------------------------------------------------------------------

    def start(self) -> None:
        command = [*PROGRAM, "serve", "--store", self.store, "--port", str(self.port)]
        with open(self.directory / "service.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ), start_new_session=True
            )
        self._await("/readyz")

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:  # a stream that a browser holds open
            self.process.kill()
            self.process.wait()
        self.process = None

    def _await(self, path: str) -> None:
        assert self.process is not None
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(self.address + path, timeout=5).close()
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                log = (self.directory / "service.log").read_text(encoding="utf-8")
                assert self.process.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.05)


@contextmanager
def serving(directory: Path, *surveys: Survey) -> Iterator[Service]:
    """A service that has these surveys, stopped at the end of the block."""
    service = Service(directory, free_port())
    with open_store(service.store) as store:
        store.add_token(Token(hashed(service.analyst), "analyst", "tests"))
        store.add_token(Token(hashed(service.admin), "admin", "tests"))
        for survey in surveys:
            store.publish(survey)
    service.start()
    try:
        yield service
    finally:
        if service.process is not None:
            service.stop()


@contextmanager
def site_of(lines: str) -> Iterator[str]:
    """The address of a site of somebody else, with these lines in its only page."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            body = f"<!doctype html><html lang=en><title>a site</title><h1>News</h1>{lines}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()
