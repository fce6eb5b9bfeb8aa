"""Times another package, in its environment. Usage: worker.py run_NAME.py; one request a line in, one answer out.

{"what": "version"}                                   -> {"version": "1.2.0"}
{"what": "response", "count": 1000}                   -> {"seconds": 0.01}, of a task
{"what": "client", "oracle": "OUE", "count": 1000}    -> {"seconds": 0.04}, randomizing so many answers
{"what": "server", "oracle": "OUE", "count": 1000}    -> {"seconds": 0.01}, from so many reports to all estimates
{"what": "tally", "oracle": "CMS", "count": 1000}     -> {"seconds": 0.01}, without the estimates
{"what": "estimate", "oracle": "OUE", "count": 1000}  -> {"frequencies": [0.18, ...]}

A client takes a list of answers and returns a list of reports. A server is made anew for each collection: a
function that takes the reports, and one that then returns all frequencies. The process stays, so that imports and
compilation are paid once and never timed.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import sys
import time
from bisect import bisect
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from itertools import accumulate
from typing import Any

ANSWERS = 1024
EXPONENT = 1.1


@cache
def shares(size: int = ANSWERS) -> tuple[float, ...]:
    """The Zipf law that the answers follow."""
    weights = [rank**-EXPONENT for rank in range(1, size + 1)]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def zipf(count: int, size: int = ANSWERS) -> list[int]:
    """Answers by inversion of evenly spread numbers: the same for every package, whatever random source it has."""
    steps = [*accumulate(shares(size))]
    golden = (5**0.5 - 1) / 2
    return [min(bisect(steps, (i * golden) % 1.0), size - 1) for i in range(count)]


class Timer:
    """One package: its tasks, and the oracle that was last asked for with its reports."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer
        self.oracle = ""
        self.count = 0

    def answer(self, what: str, count: int = 0, oracle: str = "") -> dict[str, Any]:
        if what == "version":
            return {"version": version(self.peer.PACKAGE)}
        if oracle:
            return self._oracle(what, oracle, count)
        prepare = self.peer.TASKS[what]
        prepare(10)()
        return {"seconds": _seconds(prepare(count))}

    def _oracle(self, what: str, oracle: str, count: int) -> dict[str, Any]:
        if oracle != self.oracle:
            self.oracle, self.count = oracle, 0
            self.client, self.server = self.peer.ORACLES[oracle]()
            self.client(zipf(10))  # compiles what is compiled when first called
        if what == "client":
            values = zipf(count)
            return {"seconds": _seconds(lambda: self.client(values))}
        if count != self.count:
            self.reports, self.count = self.client(zipf(count)), count
        collect, frequencies = self.server()
        if what == "estimate":
            collect(self.reports)
            return {"frequencies": [float(share) for share in frequencies()]}
        finish: Callable[[], object] = frequencies if what == "server" else lambda: None
        return {"seconds": _seconds(lambda: (collect(self.reports), finish()))}


def _seconds(run: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        done = run()
        taken = time.perf_counter() - start
    finally:
        gc.enable()
    del done  # freeing the reports is nobody's work
    return taken


def main(script: str) -> None:
    # What packages print must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    found = importlib.util.spec_from_file_location("peer", script)
    assert found is not None
    assert found.loader is not None
    peer = importlib.util.module_from_spec(found)
    found.loader.exec_module(peer)
    timer = Timer(peer)
    for line in sys.stdin:
        print(json.dumps(timer.answer(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
