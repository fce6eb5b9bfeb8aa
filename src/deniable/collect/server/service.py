"""What the parts of one process share, from its start to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from deniable.collect.server.limits import Bucket, Receiving
from deniable.collect.server.problems import Problem, wait
from deniable.collect.server.readers import Cache, Readers, SideWork, Versions
from deniable.collect.server.registry import RANK, Entry, Registry, bearer, forbidden, unauthorized
from deniable.collect.server.settings import Settings
from deniable.collect.server.telemetry import Metrics, log
from deniable.collect.server.writer import Writer
from deniable.collect.stores import Store, open_store
from deniable.collect.stores.base import OPEN, Epoch, StoreError


class Service:
    """Settings, threads, and what is known of the store."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.readers = Readers(self._open, settings.readers, settings.max_reads)
        self.writer = Writer(self._open, settings, self.metrics)
        self.registry = Registry(settings, self.readers)
        self.versions = Versions(self.readers, settings.refresh_seconds)
        self.receiving = Receiving(settings)
        self.aside = SideWork()
        self.cache = Cache(settings.cache_bytes)
        self.bucket = (
            None if settings.rate is None else Bucket(settings.rate, max(settings.rate, settings.max_submissions))
        )
        self.listeners = 0
        self.pinged = -1e9
        """When the store could be written, as far as somebody asked."""
        self.stopping = False

    @property
    def _mix_seconds(self) -> float:
        # A SQLite file has its log emptied, which costs nothing; PostgreSQL has rows written anew.
        return self.settings.mix_seconds or (5.0 if self.settings.store.startswith("sqlite:") else 60.0)

    def _open(self) -> Store:
        return open_store(self.settings.store, self.settings.shard)

    def now(self) -> float:
        return self.settings.clock()

    # -- who asks, and about what ------------------------------------------------------------------

    async def authorize(self, role: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse whoever has no token of this role or a stronger one."""
        token = bearer(headers)
        rank = await self.registry.rank(token)
        if rank == 0:
            raise unauthorized(role, token)
        if rank < RANK[role]:
            raise forbidden(role)

    def allow(self, entry: Entry, n: int) -> None:
        """Charge n submissions, or refuse if they come faster than they may; 0 only asks."""
        buckets = [bucket for bucket in (entry.bucket, self.bucket) if bucket is not None]
        seconds = max((bucket.wait() for bucket in buckets), default=0.0)
        if seconds:
            raise Problem("rateLimited", "send the same bytes again later", {"Retry-After": wait(seconds)})
        for bucket in buckets:
            bucket.take(n)

    def refund(self, entry: Entry, n: int) -> None:
        """Give back what was charged too much."""
        for bucket in (entry.bucket, self.bucket):
            if bucket is not None:
                bucket.give_back(n)

    # -- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.readers.start()
        self.writer.start()
        try:
            await self.writer.run(lambda store: store.ping())
            await self.registry.refresh()
            log("started", shard=self.settings.shard, surveys=len(self.registry.entries))
            keeper = asyncio.create_task(self._keep_house())
            try:
                yield
            finally:
                keeper.cancel()
                with suppress(asyncio.CancelledError):
                    await keeper
        finally:
            self.stopping = True
            await self.writer.stop()
            with suppress(Problem, StoreError):
                await self.readers.run(lambda store: store.mix())
            await asyncio.get_running_loop().run_in_executor(None, self.readers.stop)
            self.aside.stop()
            log("stopped", shard=self.settings.shard)

    async def _keep_house(self) -> None:
        """Learn what other processes changed, close epochs whose time is over, and mix what came."""
        due = time.monotonic()
        mixing, logging, mixed = due + self._mix_seconds, due + self.settings.log_seconds, 0
        while True:
            try:
                await self.registry.refresh()
                if time.monotonic() >= due:
                    due = time.monotonic() + self.settings.housekeeping_seconds
                    for entry in list(self.registry.entries.values()):
                        await self._close_past(entry)
                if time.monotonic() >= logging:
                    logging += self.settings.log_seconds
                    self.writer.report()
                if time.monotonic() >= mixing:
                    mixing = time.monotonic() + self._mix_seconds
                    if self.writer.commits != mixed:
                        mixed = self.writer.commits
                        await self.readers.run(lambda store: store.mix())
            except (Problem, StoreError) as error:
                log("error", where="housekeeping", kind=type(error).__name__)
            except Exception as error:  # a bug here must not end the loop silently
                log("error", where="housekeeping", kind=type(error).__name__)
            await asyncio.sleep(self.settings.refresh_seconds)

    async def _close_past(self, entry: Entry) -> None:
        """Epochs that take no report any more: their ids need not be remembered."""
        oldest = entry.terms.epochs.at(self.now()) - entry.terms.epochs.late
        known = await self.readers.run(lambda store: store.epochs(entry.fingerprint))
        for one in known:
            if one.state == OPEN and one.epoch < oldest:
                await self.close_epoch(entry, one.epoch)
                self.metrics.count("deniable_epochs_closed_total")

    async def close_epoch(self, entry: Entry, epoch: int) -> Epoch:
        """Close an epoch beside the writer, because forgetting its ids takes long."""
        closed = await self.readers.run(lambda store: store.close_epoch(entry.fingerprint, epoch))
        log("closed epoch", survey=entry.fingerprint, epoch=epoch, n=closed.n)
        return closed
