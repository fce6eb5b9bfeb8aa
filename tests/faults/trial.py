"""A trial: devices send known submissions over HTTP while something breaks, and then every one is accounted for.

Devices    threads with connections of their own. A batch is sent until it is acknowledged, the same bytes each time;
           now and then an answer is not read, and a batch that was acknowledged long ago is sent again
Lost       acknowledged, and the store does not know the id when the faults are over
Doubled    counted beyond the number of ids that were ever sent, after all of them were sent once more
Tallies    of the store, and of the answers that were sent, are compared as integers
"""

from __future__ import annotations

import http.client
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collect.stores.batches import SurveyCounter
from deniable.collect.wire import BINARY, ID_BYTES
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey
from tests.collect.server.live import Process, body, eventually
from tests.collect.surveys import Crowd, crowd, current, mixed
from tests.faults.places import KEY, Place

FORM = mixed()
"""What all surveys of the trial look like, whether their reports are kept or not."""
EPOCH = current(FORM)
SIZES = (1, 1, 3, 20, 200)
"""Submissions of a request, chosen at random."""
DEVICES = 6
_ANSWERS = 20_000


@cache
def answers() -> Bytes:
    return crowd(FORM, _ANSWERS).answers


@dataclass
class Parcel:
    """What one request carries, and when it was acknowledged."""

    people: Crowd
    acknowledged: float | None = None

    @property
    def content(self) -> bytes:
        return body(FORM, EPOCH, self.people)


class Device(threading.Thread):
    """Sends one batch after the other, to each of the ports in turn if there are several."""

    def __init__(
        self,
        survey: Survey,
        ports: Callable[[], list[int]],
        seed: int,
        seconds: float,
        pause: float,
        stop: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self._path = f"/v1/surveys/{survey.fingerprint}/reports"
        self._ports, self._seconds, self._pause, self._end = ports, seconds, pause, stop
        self._chance, self._numbers = random.Random(seed), np.random.default_rng(seed)
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self.parcels: list[Parcel] = []
        self.failures = 0
        self.wrong: list[str] = []
        """Answers that nobody should get."""

    def run(self) -> None:
        while not self._end.is_set() and not self.wrong:
            parcel = self._next()
            self.parcels.append(parcel)
            if self._delivered(parcel):
                parcel.acknowledged = time.monotonic()
            if self._chance.random() < 0.05:
                self._delivered(self._chance.choice(self.parcels))
            self._end.wait(self._pause)
        for connection in self._connections.values():
            connection.close()

    def _next(self) -> Parcel:
        size = self._chance.choice(SIZES)
        ids = self._numbers.integers(0, 256, (size, ID_BYTES), dtype=np.uint8)
        start = self._chance.randrange(_ANSWERS - size)
        return Parcel(Crowd(ids, answers()[start : start + size]))

    def _delivered(self, parcel: Parcel) -> bool:
        """Whether every port has acknowledged it; False when it is time to stop."""
        ports, content = self._ports(), parcel.content
        for port in self._chance.sample(ports, len(ports)):
            while not self._sent(port, content, len(parcel.people)):
                self.failures += 1
                if self._end.wait(0.02) or self.wrong:
                    return False
        return True

    def _sent(self, port: int, content: bytes, size: int) -> bool:
        connection = self._connections.get(port)
        try:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=self._seconds)
                self._connections[port] = connection
            connection.request("POST", self._path, content, {"Content-Type": BINARY})
            if self._chance.random() < 0.02:
                raise http.client.HTTPException("the answer is never read")
            response = connection.getresponse()
            told = response.read()
        except (OSError, http.client.HTTPException):
            if connection is not None:
                connection.close()
            self._connections.pop(port, None)
            return False
        if response.status in (503, 507):
            return False
        if (response.status, told) != (200, b'{"accepted":%d,"rejected":[]}' % size):
            self.wrong.append(f"{response.status}: {told[:200].decode(errors='replace')}")
            return False
        return True


@dataclass
class Result:
    """One cell of the table."""

    fault: str
    place: str
    injected: int
    acknowledged: int
    lost: int
    doubled: int
    seconds: float
    wrong: list[str] = field(default_factory=list)
    """Whatever else should not be."""

    @property
    def cell(self) -> str:
        numbers = f"{self.injected} faults, {self.acknowledged:,} acknowledged"
        verdict = f"**{self.lost} lost, {self.doubled} doubled**, tallies {'differ' if self.wrong else 'equal'}"
        return f"{numbers}, {verdict}, {self.seconds:.0f} s"


def table(results: list[Result]) -> str:
    """Rows are faults, columns are stores.

    >>> print(table([Result("restarts", "SQLite", 6, 1200, 0, 0, 7.1)]))
    | fault | SQLite |
    |---|---|
    | restarts | 6 faults, 1,200 acknowledged, **0 lost, 0 doubled**, tallies equal, 7 s |
    """
    places = list(dict.fromkeys(result.place for result in results))
    cells = {(result.fault, result.place): result.cell for result in results}
    lines = [f"| fault | {' | '.join(places)} |", "|---|" + "---|" * len(places)]
    for fault in dict.fromkeys(result.fault for result in results):
        lines.append(f"| {fault} | {' | '.join(cells.get((fault, place), '') for place in places)} |")
    return "\n".join(lines)


class Trial:
    """What a fault may use: the place, its services, and the devices that send meanwhile."""

    def __init__(self, place: Place, seconds: float = 10.0, pause: float = 0.0, **asked: Any) -> None:
        self.place, self._seconds, self._pause, self._asked = place, seconds, pause, asked
        self._stack, self._stop = ExitStack(), threading.Event()
        self.services: list[Process] = []
        self.ports: list[int] | None = None
        """Where devices send to, unless to the services themselves."""
        self.devices: list[Device] = []
        self.forgiven: list[tuple[float, float]] = []
        """What was acknowledged between these times may be unknown: an older copy was put in its place."""
        self.injected = 0
        self.chance = random.Random(5)
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.survey = place.survey
        place.prepare(place.url)

    # -- for faults --------------------------------------------------------------------------------

    def serve(self, *arguments: str, store: str | None = None, **asked: Any) -> Process:
        """Start a service, which lives until the trial ends."""
        variables = {"FAULTS": json.dumps(self._asked | asked)}
        service = Process(store or self.place.url, *arguments, program="tests.faults.served", **variables)
        self._stack.enter_context(service)
        self.services.append(service)
        return service

    def after(self, what: Callable[[], None]) -> None:
        """Do this when the trial ends."""
        self._stack.callback(what)

    def send(self, ports: list[int] | None = None) -> None:
        """Let the devices begin."""
        self.ports = ports
        for seed in range(DEVICES):
            self.devices.append(Device(self.survey, self._ports, seed, self._seconds, self._pause, self._stop))
            self.devices[-1].start()
        self.under_way()

    def _ports(self) -> list[int]:
        return self.ports if self.ports is not None else [service.port for service in self.services]

    def _begun(self) -> int:
        """Requests, of which all but the last of each device are acknowledged."""
        return sum(len(device.parcels) for device in self.devices)

    @property
    def failures(self) -> int:
        """Requests that were not acknowledged."""
        return sum(device.failures for device in self.devices)

    def under_way(self, requests: int = 30) -> None:
        """Wait until devices have got on, and then a moment that is different each time."""
        before = self._begun()
        eventually(lambda: self._begun() >= before + requests or any(one.wrong for one in self.devices), 90)
        time.sleep(self.chance.uniform(0.05, 0.5))

    def injects(self, n: int) -> Iterator[int]:
        """Count faults, each of which comes while devices send."""
        for number in range(n):
            yield number
            self.injected += 1
            self.under_way()

    # -- the account -------------------------------------------------------------------------------

    def account(self, fault: str, began: float) -> Result:
        self._stop.set()
        for device in self.devices:
            device.join()
        parcels = [parcel for device in self.devices for parcel in device.parcels]
        wrong = [text for device in self.devices for text in device.wrong]
        taken = [parcel for parcel in parcels if parcel.acknowledged is not None]
        known = self.place.ids()
        owed = [parcel for parcel in taken if not self._forgiven(parcel.acknowledged)]
        lost = int((~np.isin(_keys(owed), known)).sum())
        self._send_all(parcels, wrong)
        for service in self.services:
            assert service.stop() == 0
        counted = self.place.tally()
        sent = _joined([parcel.people.answers for parcel in parcels], FORM.report_bytes)
        counter = SurveyCounter(self.survey)
        exact = counter.tally(len(sent), counter.count(sent))
        n = counted["smoke"].n
        if counted.spec() != exact.spec():
            wrong.append(f"the tally of {n} differs from that of the {len(sent)} that were sent")
        if set(map(len, (_keys(parcels), np.unique(_keys(parcels))))) != {len(sent)}:
            wrong.append("the devices' ids are not distinct: the trial itself is broken")
        wrong += self.place.check()
        if not self.injected or self._begun() < 30:
            wrong.append("nothing has happened")
        acknowledged = sum(len(parcel.people) for parcel in taken)
        doubled = max(0, n - len(sent))
        return Result(
            fault, self.place.name, self.injected, acknowledged, lost, doubled, time.monotonic() - began, wrong
        )

    def _forgiven(self, moment: float | None) -> bool:
        return any(first <= (moment or 0) <= last for first, last in self.forgiven)

    def _send_all(self, parcels: list[Parcel], wrong: list[str]) -> None:
        """Once more, in other groups, to each service: what was not acknowledged is counted now, and nothing else."""
        everybody = Crowd(
            _joined([parcel.people.ids for parcel in parcels], ID_BYTES),
            _joined([parcel.people.answers for parcel in parcels], FORM.report_bytes),
        )
        for service in self.services:
            for at in range(0, len(everybody), 5000):
                some = everybody[at : at + 5000]
                give_up = time.monotonic() + 60
                while (answer := service.send(self.survey, EPOCH, some)).status in (503, 507):
                    assert time.monotonic() < give_up, answer.body
                    time.sleep(0.1)
                if (answer.status, answer.json) != (200, {"accepted": len(some), "rejected": []}):
                    wrong.append(f"{answer.status}: {answer.body[:200].decode(errors='replace')}")
                    return

    def close(self) -> None:
        self._stop.set()
        for device in self.devices:
            device.join()
        self._stack.close()


@contextmanager
def trial(place: Place, **given: Any) -> Iterator[Trial]:
    made = Trial(place, **given)
    try:
        yield made
    finally:
        made.close()


def _joined(pieces: list[Bytes], width: int) -> Bytes:
    return np.concatenate([np.empty((0, width), dtype=np.uint8), *pieces])


def _keys(parcels: list[Parcel]) -> Any:
    ids = _joined([parcel.people.ids for parcel in parcels], ID_BYTES)
    return np.ascontiguousarray(ids).view(KEY).reshape(-1)
