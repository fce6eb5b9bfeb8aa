"""Reading a store in SQL: everything is a sum over shards, and what waits to be added up is added.

A subclass says how to connect, how a transaction begins, and where ids and kept reports are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from deniable.collect.stores.base import CLOSED, OPEN, Batch, Epoch, Published, Store, Token
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
        """Ids and answers of kept reports after this id, ascending."""

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
            SELECT epoch, state, sha256,
                   COALESCE((SELECT SUM(n) FROM tally t WHERE t.survey = e.survey AND t.epoch = e.epoch), 0)
                   + (SELECT COUNT(*) FROM pending p WHERE p.survey = e.survey AND p.epoch = e.epoch)
            FROM epoch e WHERE survey = ? ORDER BY epoch
            """,
            entry.key,
        )
        epochs = [Epoch(int(epoch), state, int(n), sha256) for epoch, state, sha256, n in found]
        return [epoch for epoch in epochs if epoch.n or epoch.state == CLOSED]

    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        entry = self._entry(fingerprint)
        with self._reading():
            return entry.counter.tally(*self._total(entry, first, LAST_EPOCH if last is None else last))

    def _total(self, entry: Entry, first: int, last: int) -> tuple[int, Counts]:
        """The sum over epochs and shards, with what waits; one row at a time, as one may be large."""
        n, counts = 0, entry.zero()
        where = "WHERE survey = ? AND epoch BETWEEN ? AND ?"
        for epoch, shard in self._query(f"SELECT epoch, shard FROM tally {where}", entry.key, first, last):
            select = "SELECT n, counts FROM tally WHERE survey = ? AND epoch = ? AND shard = ?"
            ((part, raw),) = self._query(select, entry.key, epoch, shard)
            n, counts = n + part, counts + entry.counts(raw)
        if entry.waits:
            for (epoch,) in self._query(f"SELECT epoch FROM epoch {where} AND state = ?", entry.key, first, last, OPEN):
                more, sums = self._pending(entry, epoch)
                n, counts = n + more, counts + sums
        return n, counts

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
                ids = joined([id for id, _ in page], ID_BYTES)
                yield Batch(fingerprint, epoch, ids, joined([raw for _, raw in page], entry.counter.width))

    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        select = "SELECT day, reason, SUM(n) FROM rejected WHERE survey = ? GROUP BY day, reason ORDER BY day, reason"
        return [(day, reason, int(n)) for day, reason, n in self._query(select, self._entry(fingerprint).key)]

    def duplicates(self, fingerprint: str) -> int:
        select = "SELECT COALESCE(SUM(n), 0) FROM duplicate WHERE survey = ?"
        return int(self._query(select, self._entry(fingerprint).key)[0][0])

    def _pending(self, entry: Entry, epoch: int) -> tuple[int, Counts]:
        n, counts, last = 0, entry.zero(), b""
        while page := self._pending_page(entry, epoch, last):
            n, last = n + len(page), page[-1][0]
            counts += entry.counter.count(joined([answers for _, answers in page], entry.counter.width))
        return n, counts

    def _pending_page(self, entry: Entry, epoch: int, after: bytes) -> list[Row]:
        select = "SELECT id, answers FROM pending WHERE survey = ? AND epoch = ? AND id > ? ORDER BY id LIMIT ?"
        return self._query(select, entry.key, epoch, after, entry.page)

    def tokens(self) -> list[Token]:
        return [Token(*found) for found in self._query("SELECT sha256, role, label FROM token ORDER BY sha256")]
