"""Reading a store in SQL: everything is a sum over shards.

A subclass says how to connect, how a transaction begins, and where ids and kept reports are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from deniable.collect.counting import BLOCK
from deniable.collect.stores.base import CLOSED, Batch, Epoch, Published, Store, Token
from deniable.collect.stores.copying import Row
from deniable.collect.stores.entry import Entry, unknown
from deniable.collect.stores.grouping import joined
from deniable.collect.wire import ID_BYTES
from deniable.protocols.tally import Counts
from deniable.surveys import SurveyTally
from deniable.surveys.terms import LAST_EPOCH


class SqlReader(Store):
    """The statements that change nothing; `?` stands for a parameter."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    @abstractmethod
    def _query(self, sql: str, *parameters: Any) -> list[Row]: ...

    @abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """Everything as of one moment."""

    @abstractmethod
    def _page(self, entry: Entry, epoch: int, after: bytes) -> list[Row]:
        """Ids and answers of kept reports after this id, ascending; a deleted report has an id only."""

    @abstractmethod
    def _remembered(self, entry: Entry, epoch: int) -> int:
        """How many ids of this epoch there are."""

    def _entry(self, fingerprint: str) -> Entry:
        if fingerprint not in self._entries:
            found = self._query("SELECT key, canonical FROM survey WHERE fingerprint = ?", fingerprint)
            if not found:
                raise unknown(fingerprint)
            self._entries[fingerprint] = Entry.read(found[0][0], bytes(found[0][1]))
        return self._entries[fingerprint]

    def surveys(self) -> list[Published]:
        found = self._query("SELECT fingerprint, canonical, state FROM survey ORDER BY key")
        return [Published(fingerprint, bytes(canonical), state) for fingerprint, canonical, state in found]

    def epochs(self, fingerprint: str) -> list[Epoch]:
        entry = self._entry(fingerprint)
        found = self._query(
            """
            SELECT e.epoch, state, COALESCE(SUM(n), 0), sha256, COALESCE(SUM(deleted), 0)
            FROM epoch e LEFT JOIN tally t ON t.survey = e.survey AND t.epoch = e.epoch AND t.block = 0
            WHERE e.survey = ? GROUP BY e.epoch, state, sha256 ORDER BY e.epoch
            """,
            entry.key,
        )
        epochs = [Epoch(int(epoch), state, int(n), sha256, int(deleted)) for epoch, state, n, sha256, deleted in found]
        return [epoch for epoch in epochs if epoch.n or epoch.deleted or epoch.state == CLOSED]

    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        entry = self._entry(fingerprint)
        with self._reading():
            n, _, counts = self._total(entry, first, LAST_EPOCH if last is None else last)
            return entry.counter.tally(n, counts)

    def _total(self, entry: Entry, first: int, last: int) -> tuple[int, int, Counts]:
        """The sum over epochs and shards: submissions, deleted ones, counters. One shard at a time may be large."""
        n, deleted, total = 0, 0, np.zeros((-(-entry.counter.size // BLOCK), BLOCK), dtype=np.int64)
        where = "WHERE survey = ? AND block = 0 AND epoch BETWEEN ? AND ?"
        for epoch, shard in self._query(f"SELECT epoch, shard FROM tally {where}", entry.key, first, last):
            select = "SELECT block, n, deleted, counts FROM tally WHERE survey = ? AND epoch = ? AND shard = ?"
            found = self._query(select, entry.key, epoch, shard)
            places, numbers, gone, raws = zip(*found, strict=True)
            n, deleted = n + sum(numbers), deleted + sum(gone)
            entry.add_packed(total, places, places, raws)
        return n, deleted, total.reshape(-1)[: entry.counter.size]

    def reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        entry = self._entry(fingerprint)
        if not entry.keeps:
            return
        where = "WHERE survey = ? AND epoch BETWEEN ? AND ?"
        most = LAST_EPOCH if last is None else last
        for (epoch,) in self._query(f"SELECT epoch FROM epoch {where} ORDER BY epoch", entry.key, first, most):
            after = b""
            while page := self._page(entry, epoch, after):
                after = bytes(page[-1][0])
                kept = [(id, raw) for id, raw in page if raw is not None]
                if kept:
                    ids = joined([id for id, _ in kept], ID_BYTES)
                    yield Batch(fingerprint, epoch, ids, joined([raw for _, raw in kept], entry.counter.width))

    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        select = "SELECT day, reason, SUM(n) FROM rejected WHERE survey = ? GROUP BY day, reason ORDER BY day, reason"
        return [(day, reason, int(n)) for day, reason, n in self._query(select, self._entry(fingerprint).key)]

    def duplicates(self, fingerprint: str) -> int:
        select = "SELECT COALESCE(SUM(n), 0) FROM duplicate WHERE survey = ?"
        return int(self._query(select, self._entry(fingerprint).key)[0][0])

    def tokens(self) -> list[Token]:
        return [Token(*found) for found in self._query("SELECT sha256, role, label FROM token ORDER BY sha256")]
