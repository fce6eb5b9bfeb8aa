"""A load generator: many connections to a service, each sending its next request when the last is answered.

Its own process, so that it shares nothing with what is measured but the machine. Reads a survey's bytes of answers
from its arguments, makes ids, and prints one JSON object: requests, seconds, the percentiles of latency, and how many
requests were answered in each period of `WINDOW` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time

HEADER = b"DNR1"
WINDOW = 10.0


class Connection(asyncio.Protocol):
    """One device, or one relay: `batch` submissions a request."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._received = b""
        self._next()

    def _next(self) -> None:
        request = self._work.next_request()
        if request is None:
            self._transport.close()
            return
        self._begun = time.perf_counter()
        self._transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"}") and b"\r\n\r\n" in self._received:
            self._work.answered(self._received, time.perf_counter() - self._begun)
            self._received = b""
            self._next()

    def connection_lost(self, _: Exception | None) -> None:
        self._work.left()


class Work:
    """What all connections share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._waiting = options.requests
        self._begun = time.perf_counter()
        self._end = self._begun + (options.seconds or float("inf"))
        self._out = options.connections
        self.latencies: list[float] = []
        self.windows: list[int] = []
        self.refused = 0
        self.done = asyncio.get_running_loop().create_future()
        size = len(HEADER) + 4 + options.batch * (16 + len(options.answers))
        head = (
            f"POST /v1/surveys/{options.survey}/reports HTTP/1.1\r\nhost: x\r\n"
            f"content-type: application/vnd.deniable.reports\r\ncontent-length: {size}\r\n\r\n"
        )
        self._head = head.encode() + HEADER + options.epoch.to_bytes(4, "little")
        self._answers, self._batch = options.answers, options.batch

    def next_request(self) -> bytes | None:
        if not self._waiting or time.perf_counter() > self._end:
            return None
        self._waiting -= 1
        ids = os.urandom(16 * self._batch)
        return self._head + b"".join([ids[i : i + 16] + self._answers for i in range(0, len(ids), 16)])

    def answered(self, response: bytes, seconds: float) -> None:
        self.latencies.append(seconds)
        window = int((time.perf_counter() - self._begun) / WINDOW)
        self.windows += [0] * (window + 1 - len(self.windows))
        self.windows[window] += 1
        self.refused += not response.startswith(b"HTTP/1.1 200")

    def left(self) -> None:
        self._out -= 1
        if not self._out and not self.done.done():
            self.done.set_result(None)


async def main(options: argparse.Namespace) -> None:
    loop, work = asyncio.get_running_loop(), Work(options)
    begun = time.perf_counter()
    for _ in range(options.connections):
        await loop.create_connection(lambda: Connection(work), "127.0.0.1", options.port)
    await work.done
    seconds = time.perf_counter() - begun
    ordered = sorted(work.latencies)
    percentiles = {str(p): ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in (50, 90, 99, 99.9)}
    outcome = {"requests": len(ordered), "refused": work.refused, "seconds": seconds, "latency": percentiles}
    print(json.dumps(outcome | {"windows": work.windows}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "epoch", "requests", "connections", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long; 0: after all requests")
    parser.add_argument("--survey", required=True)
    parser.add_argument("--answers", type=bytes.fromhex, required=True)
    chosen = parser.parse_args()
    try:
        import uvloop

        uvloop.run(main(chosen))
    except ImportError:
        asyncio.run(main(chosen))
