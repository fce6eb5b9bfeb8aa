"""What the service reports about itself: a log and metrics, and never anything about anybody else.

Log        one JSON object per line on standard error: the time to the second, a level, the event, and numbers or kinds
Figures    of all workers or of one, in the Prometheus text format. No label ever holds anything that a client sent
Never      an address, a header, a path, a body, an id, or the text of an exception, which could quote one of them
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

LEVELS = ("error", "warning", "info")
REPEAT_SECONDS = 60.0
"""Seconds within which the same error is written only once."""
MOST_ERRORS = 1_000
"""Number of different errors that are remembered for that."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

HELP = {
    "deniable_requests_total": "Answered requests by operation and status.",
    "deniable_submissions_total": "Submissions by what became of them.",
    "deniable_groups_total": "Transactions of submissions by outcome.",
    "deniable_epochs_closed_total": "Epochs closed because their time was over.",
    "deniable_housekeeping_failures_total": "Steps of housekeeping that failed.",
}


Field = str | int | float | None


class Log:
    """Lines of JSON on standard error.

    Level      "error", "warning" or "info"; lines below the chosen level are left out. It may change at any time
    Repeats    the same error within a minute is only counted, and its next line gives the count

    >>> now = [0.0]
    >>> log = Log(write=print, clock=lambda: now[0])
    >>> for _ in range(3):
    ...     log("error", where="store", code="53100")
    {"time":"1970-01-01T00:00:00Z","level":"error","event":"error","where":"store","code":"53100"}
    >>> now[0] = 61.0
    >>> log("error", where="store", code="53100")
    {"time":"1970-01-01T00:01:01Z","level":"error","event":"error","where":"store","code":"53100","repeats":2}
    >>> log.level = "warning"
    >>> log("started")
    """

    def __init__(self, write: Callable[[str], object] | None = None, clock: Callable[[], float] = time.time) -> None:
        self._write, self._clock = write or _to_stderr, clock
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}
        """When the same error was written, and how often it has come since."""
        self.level = "info"

    def __call__(self, event: str, level: str | None = None, /, **fields: Field) -> None:
        level = level or ("error" if event == "error" else "info")
        if LEVELS.index(level) > LEVELS.index(self.level):
            return
        now, more = self._clock(), dict[str, Field]()
        if level == "error":
            same = json.dumps([event, fields])
            with self._lock:
                written, repeats = self._last.get(same, (-1e9, 0))
                if 0 <= now - written < REPEAT_SECONDS:
                    self._last[same] = written, repeats + 1
                    return
                if len(self._last) >= MOST_ERRORS:
                    self._last.clear()
                self._last[same] = now, 0
            more = {"repeats": repeats} if repeats else {}
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        self._write(json.dumps({"time": moment, "level": level, "event": event} | fields | more, separators=(",", ":")))

    def next_level(self) -> None:
        """From info to warning, to error, and to info again."""
        self.level = LEVELS[LEVELS.index(self.level) - 1]
        self("log level", self.level, log_level=self.level)


def _to_stderr(line: str) -> None:
    # One write, so that lines of several threads and workers stay whole.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


log = Log()


class Quiet(logging.Handler):
    """Log records of libraries, without the arguments of their messages."""

    def emit(self, record: logging.LogRecord) -> None:
        # Only the last line of a traceback, for example when the service does not start: what is wrong.
        fields: dict[str, Field] = {"where": record.name, "message": str(record.msg).strip().rpartition("\n")[2]}
        if record.exc_info and record.exc_info[0] is not None:
            fields["kind"] = record.exc_info[0].__name__
        log("library", "error" if record.levelno >= logging.ERROR else "warning", **fields)


def quiet_library() -> None:
    """Send the HTTP library's log through here, and discard its access log."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = False
        logger.setLevel(logging.CRITICAL + 1 if name == "uvicorn.access" else logging.ERROR)
    logging.getLogger("uvicorn.error").addHandler(Quiet())


def own_the_process(level: str) -> None:
    """Make every line that this process writes to standard error JSON, including warnings and failing threads.

    SIGUSR1 switches to the next level. For the main thread of a process that does nothing else.
    """
    log.level = level
    logging.getLogger().addHandler(Quiet(logging.WARNING))
    logging.captureWarnings(True)
    threading.excepthook = lambda failed: log(
        "error", where=failed.thread.name if failed.thread else "thread", kind=failed.exc_type.__name__
    )
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, lambda *_: log.next_level())


Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """The metrics of one name."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, Labels, float], ...]
    """The suffix of the name (for parts of a histogram), labels and value."""
    shared: bool = False
    """Whether this is about the store, and so the same in every worker."""


def gauge(name: str, help: str, value: float) -> Family:
    return Family(name, "gauge", help, (("", (), value),))


def shared_gauge(name: str, help: str, values: Mapping[Labels, float]) -> Family:
    return Family(name, "gauge", help, tuple(("", labels, value) for labels, value in values.items()), True)


def exposition(families: Mapping[int, Sequence[Family]]) -> str:
    """The metrics of workers in the Prometheus text format.

    Each has a label for its worker; those of the store are given once, without it.

    >>> queue = gauge("queue", "Requests that wait.", 2)
    >>> print(exposition({0: [queue], 1: [queue]}), end="")
    # HELP queue Requests that wait.
    # TYPE queue gauge
    queue{worker="0"} 2
    queue{worker="1"} 2
    """
    lines = []
    for name, (one, samples) in merged(families).items():
        lines += [f"# HELP {name} {one.help}", f"# TYPE {name} {one.kind}"]
        for end, labels, value in samples:
            inside = ",".join(f'{key}="{text}"' for key, text in labels)
            lines.append(f"{name}{end}{{{inside}}} {value:.15g}" if inside else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def merged(families: Mapping[int, Sequence[Family]]) -> dict[str, tuple[Family, list[tuple[str, Labels, float]]]]:
    """Each metric with its samples from all workers, labelled by worker; those of the store are given once."""
    found: dict[str, tuple[Family, list[tuple[str, Labels, float]]]] = {}
    for worker, some in sorted(families.items()):
        for family in some:
            first, samples = found.setdefault(family.name, (family, []))
            if family.shared and first is not family:
                continue
            own = () if family.shared else (("worker", str(worker)),)
            samples += [(end, (*labels, *own), value) for end, labels, value in family.samples]
    return found


class Histogram:
    """A histogram of durations."""

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
