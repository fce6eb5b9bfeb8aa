"""What the service says about itself: a log and figures, and never anything about anybody else.

Log        one JSON object per line on standard error: the time to the second, the event, and numbers or kinds
Figures    of all workers or of one, in the text form that Prometheus reads. No label ever holds what a stranger sent
Never      an address, a header, a path, a body, an id, or the text of an exception, which could quote one of them
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

HELP = {
    "deniable_requests_total": "Answered requests by operation and status.",
    "deniable_submissions_total": "Submissions by what became of them.",
    "deniable_groups_total": "Transactions of submissions by outcome.",
    "deniable_epochs_closed_total": "Epochs closed because their time was over.",
    "deniable_housekeeping_failures_total": "Steps of housekeeping that failed.",
}


def log(event: str, **fields: str | int | float | None) -> None:
    """One event."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": moment, "event": event} | fields, separators=(",", ":"))
    # One write, so that lines of several threads and workers stay whole.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Quiet(logging.Handler):
    """What the HTTP library logs, without the arguments of its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"level": record.levelname.lower(), "message": str(record.msg).strip()}
        if record.exc_info and record.exc_info[0] is not None:
            fields["kind"] = record.exc_info[0].__name__
        log("http", **fields)


def quiet_library() -> None:
    """Send what the HTTP library logs through here, and its log of accesses nowhere."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = False
        logger.setLevel(logging.CRITICAL + 1 if name == "uvicorn.access" else logging.ERROR)
    logging.getLogger("uvicorn.error").addHandler(Quiet())


Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """Figures of one name."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, Labels, float], ...]
    """The end of the name (of a histogram's parts), labels and value."""
    shared: bool = False
    """Whether this is of the store, and so the same in every worker."""


def gauge(name: str, help: str, value: float) -> Family:
    return Family(name, "gauge", help, (("", (), value),))


def shared_gauge(name: str, help: str, values: Mapping[Labels, float]) -> Family:
    return Family(name, "gauge", help, tuple(("", labels, value) for labels, value in values.items()), True)


def exposition(families: Mapping[int, Sequence[Family]]) -> str:
    """The figures of workers in the text form that Prometheus reads.

    Each has the label of its worker; those of the store are given once, without it.

    >>> queue = gauge("queue", "Requests that wait.", 2)
    >>> print(exposition({0: [queue], 1: [queue]}), end="")
    # HELP queue Requests that wait.
    # TYPE queue gauge
    queue{worker="0"} 2
    queue{worker="1"} 2
    """
    merged: dict[str, tuple[Family, list[str]]] = {}
    for worker, some in sorted(families.items()):
        for family in some:
            first, lines = merged.setdefault(family.name, (family, []))
            if family.shared and first is not family:
                continue
            own = () if family.shared else (("worker", str(worker)),)
            for end, labels, value in family.samples:
                inside = ",".join(f'{key}="{text}"' for key, text in (*labels, *own))
                lines.append(
                    f"{family.name}{end}{{{inside}}} {value:.15g}" if inside else f"{family.name} {value:.15g}"
                )
    heads = {name: [f"# HELP {name} {one.help}", f"# TYPE {name} {one.kind}"] for name, (one, _) in merged.items()}
    return "\n".join(line for name, (_, lines) in merged.items() for line in (*heads[name], *lines)) + "\n"


class Histogram:
    """How many took how long."""

    def __init__(self) -> None:
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        self._buckets[bisect_left(BOUNDS, seconds)] += 1
        self._seconds += seconds

    def samples(self, *labels: tuple[str, str]) -> list[tuple[str, Labels, float]]:
        totals = accumulate(self._buckets)
        found = [
            ("_bucket", (*labels, ("le", bound)), float(n))
            for bound, n in zip((*map(str, BOUNDS), "+Inf"), totals, strict=True)
        ]
        return [*found, ("_sum", labels, self._seconds), ("_count", labels, found[-1][2])]


class Metrics:
    """Counters and times; any thread may count."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, Labels], int] = defaultdict(int)
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, Histogram] = defaultdict(Histogram)
        self._commits = Histogram()
        self._lock = threading.Lock()

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Called by the event loop only, so without a lock."""
        self._requests[operation, status] += 1
        self._times[operation].add(seconds)

    def count(self, name: str, n: int = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name, tuple(labels.items())] += n

    def commit(self, seconds: float) -> None:
        with self._lock:
            self._commits.add(seconds)

    def families(self) -> list[Family]:
        """Called by the event loop only."""
        with self._lock:
            counters, commits = dict(self._counters), self._commits.samples()
        for (operation, status), n in sorted(self._requests.items()):
            counters["deniable_requests_total", (("operation", operation), ("status", str(status)))] = n
        times = [one for name, some in sorted(self._times.items()) for one in some.samples(("operation", name))]
        return [
            *(
                Family(name, "counter", text, tuple(("", key[1], n) for key, n in counters.items() if key[0] == name))
                for name, text in HELP.items()
            ),
            Family("deniable_request_seconds", "histogram", "Time until an answer begins.", tuple(times)),
            Family("deniable_commit_seconds", "histogram", "Time of one transaction of submissions.", tuple(commits)),
        ]
