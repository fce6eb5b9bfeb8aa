"""What the service says about itself: a log and figures, and never anything about anybody else.

Log        one JSON object per line on standard error: the time to the second, the event, and numbers or kinds
Figures    of one process, in the text form that Prometheus reads. No label ever holds what a stranger sent
Never      an address, a header, a path, a body, an id, or the text of an exception, which could quote one of them
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import defaultdict
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


class Metrics:
    """Counters and one histogram; any thread may count."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, tuple[tuple[str, str], ...]], int] = defaultdict(int)
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self._lock = threading.Lock()

    def request(self, operation: str, status: int) -> None:
        """Called by the event loop only, so without a lock."""
        self._requests[operation, status] += 1

    def count(self, name: str, n: int = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name, tuple(labels.items())] += n

    def commit(self, seconds: float) -> None:
        with self._lock:
            self._buckets[sum(seconds > bound for bound in BOUNDS)] += 1
            self._seconds += seconds

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """The exposition; `gauges` has help and value by name."""
        with self._lock:
            counters, buckets, total = dict(self._counters), list(self._buckets), self._seconds
        for (operation, status), n in sorted(self._requests.items()):
            counters["deniable_requests_total", (("operation", operation), ("status", str(status)))] = n
        lines: list[str] = []
        for name, text in HELP.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
            for (counter, labels), n in counters.items():
                if counter == name:
                    inside = ",".join(f'{key}="{value}"' for key, value in labels)
                    lines.append(f"{name}{{{inside}}} {n}" if inside else f"{name} {n}")
        lines += self._histogram(buckets, total)
        for name, (text, value) in gauges.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _histogram(buckets: list[int], total: float) -> list[str]:
        name, seen = "deniable_commit_seconds", 0
        lines = [f"# HELP {name} Time of one transaction of submissions.", f"# TYPE {name} histogram"]
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
            seen += n
            lines.append(f'{name}_bucket{{le="{bound}"}} {seen}')
        return [*lines, f"{name}_sum {total:g}", f"{name}_count {seen}"]
