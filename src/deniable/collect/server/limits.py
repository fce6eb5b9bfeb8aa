"""How fast submissions may come: a bucket that fills steadily and is emptied by what is taken.

Debt       a request is taken while there is anything in the bucket, and may overdraw it: so a large batch passes, and
           what follows waits longer, but never longer than `LONGEST`
Refunds    what was charged and then not counted is given back
"""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 60.0
"""Seconds that anybody waits for a bucket that others have overdrawn, at most."""


class Bucket:
    """
    >>> now = [0.0]
    >>> bucket = Bucket(10, burst=5, clock=lambda: now[0])
    >>> bucket.take(8), round(bucket.take(1), 3)
    (0.0, 0.3)
    >>> bucket.give_back(8)
    >>> bucket.take(1_000_000), bucket.wait()
    (0.0, 60.0)
    >>> now[0] = 60.5
    >>> bucket.take(1)
    0.0
    """

    __slots__ = ("_burst", "_clock", "_held", "_rate", "_seen")

    def __init__(self, rate: float, burst: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst or rate, clock
        self._held, self._seen = self._burst, clock()

    def wait(self) -> float:
        """In how many seconds something can be taken; 0 if now."""
        now = self._clock()
        self._held = min(self._burst, self._held + (now - self._seen) * self._rate)
        self._seen = now
        return 0.0 if self._held > 0 else max(1e-3, -self._held / self._rate)

    def take(self, n: int) -> float:
        """Take n and answer 0, or take nothing and answer in how many seconds to ask again."""
        seconds = self.wait()
        if not seconds:
            self._held = max(-LONGEST * self._rate, self._held - n)
        return seconds

    def give_back(self, n: int) -> None:
        self._held = min(self._burst, self._held + n)
