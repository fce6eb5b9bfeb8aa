"""Work for anybody who asks, which must not hold up the collection: the planner's.

One thread     which rests between two pieces of work, four times as long as the first took: a flood of questions takes
               a fifth of a processor at most
Short queue    who finds it full is told to come back
Kept answers   the same question again costs nothing; asked by several at once it is worked out once
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

from deniable.collect.server.cache import Cache
from deniable.collect.server.problems import overloaded

WAITING = 8
REST = 4.0
CACHE_BYTES = 4 << 20


class Aside:
    """Answers as bytes, by what was asked."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._rested = 0.0
        self._cache = Cache(CACHE_BYTES)
        self._asked: dict[Hashable, asyncio.Future[bytes]] = {}

    async def answer(self, question: Hashable, job: Callable[[], bytes]) -> bytes:
        found = self._cache.get(question)
        if found is not None:
            return found
        asked = self._asked.get(question)
        if asked is None:
            if len(self._asked) >= WAITING:
                raise overloaded("too many plans are asked for", 2.0)
            asked = asyncio.get_running_loop().run_in_executor(self._thread, self._work, job)
            self._asked[question] = asked
            asked.add_done_callback(lambda done: self._done(question, done))
        # One who leaves does not end the work for the others.
        return await asyncio.shield(asked)

    def _work(self, job: Callable[[], bytes]) -> bytes:
        time.sleep(max(0.0, self._rested - time.monotonic()))
        begun = time.thread_time()
        try:
            return job()
        finally:
            self._rested = time.monotonic() + REST * (time.thread_time() - begun)

    def _done(self, question: Hashable, done: asyncio.Future[bytes]) -> None:
        self._asked.pop(question, None)
        if not done.cancelled() and done.exception() is None:
            self._cache.put(question, done.result())

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)
