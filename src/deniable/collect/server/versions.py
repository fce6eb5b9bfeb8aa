"""How far a survey's sums have come, as one number that grows with each change.

Version    the submissions ever counted plus those deleted plus the epochs closed: all only grow, and a tally changes
           only when one of them does, so equal versions mean equal sums, in whichever process or worker they are read
Polling    the store is asked at most once in `seconds` a survey, however many listen
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from deniable.collect.server.readers import Readers
from deniable.collect.stores.base import CLOSED, Epoch


@dataclass(frozen=True)
class Progress:
    """The epochs of a survey at one moment."""

    epochs: tuple[Epoch, ...]

    @property
    def version(self) -> int:
        # A deleted submission is out of n: twice, so that the version grows by one.
        return sum(one.n + 2 * one.deleted for one in self.epochs) + len(self.closed)

    @property
    def closed(self) -> set[int]:
        return {one.epoch for one in self.epochs if one.state == CLOSED}


class Versions:
    """The latest known progress of each survey."""

    def __init__(self, readers: Readers, seconds: float) -> None:
        self._readers, self._seconds = readers, seconds
        self._known: dict[str, tuple[float, Progress]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, fingerprint: str) -> Progress:
        """As of now."""
        found = await self._readers.run(lambda store: store.epochs(fingerprint))
        progress = Progress(tuple(found))
        self._known[fingerprint] = time.monotonic(), progress
        return progress

    async def recent(self, fingerprint: str) -> Progress:
        """As of at most `seconds` ago."""
        async with self._locks.setdefault(fingerprint, asyncio.Lock()):
            read, progress = self._known.get(fingerprint, (-1e9, None))
            if progress is not None and time.monotonic() - read < self._seconds:
                return progress
            return await self.read(fingerprint)
