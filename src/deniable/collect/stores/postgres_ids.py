"""Where PostgreSQL keeps the ids of an epoch, and how it loses track of the order in which they came.

Tables      an epoch has two: `fresh_<survey>_<epoch>` takes new ids, `seen_<survey>_<epoch>` has those that were mixed.
            Both are dropped when the epoch closes; kept reports then move to `report`, by id
Once        INSERT ... ON CONFLICT DO NOTHING RETURNING id, ids ascending: two workers with the same ids wait for each
            other in one direction only. An id that was mixed is looked up
Order       PostgreSQL numbers rows by place (ctid) and by transaction (xmin), and both follow the arrivals. Mixing
            writes the new ids again, in the order of the ids and many to a transaction, and clears their old places:
            what can be told afterwards is in which period between two mixings an id may have come, not where in it
Locks       whoever adds or closes holds the epoch's row and whoever mixes takes it alone, so nobody looks for an id
            while it moves
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, suppress

import numpy as np

from deniable.collect.stores.base import CLOSED, OPEN, StoreError
from deniable.collect.stores.copying import Row
from deniable.collect.stores.entry import Entry
from deniable.collect.stores.grouping import Flags, Group, rows
from deniable.collect.stores.sql import SqlStore

PATIENCE = 1000
"""Milliseconds to wait for readers of a table that is to be dropped."""
MIXED = 20_000
"""Ids that move in one transaction, so that ingest goes on between; taken by id, of the whole period."""


class TakenError(StoreError):
    """Something that others hold."""


class PostgresIds(SqlStore):
    """Ids and kept reports; a subclass has the connection."""

    def __init__(self, shard: int) -> None:
        super().__init__(shard)
        self._ready_epochs: set[tuple[int, int]] = set()

    @abstractmethod
    def _locked(self) -> AbstractContextManager[None]:
        """A transaction in which nobody else makes tables."""

    # -- taking ------------------------------------------------------------------------------------

    def _ready(self, entry: Entry, epoch: int) -> None:
        """The epoch's row and its tables. Made apart, for whoever makes a table must not wait for others' ids."""
        if (entry.key, epoch) in self._ready_epochs:
            return
        with self._locked():
            if self._query("SELECT state FROM survey WHERE key = ? FOR SHARE", entry.key) == [(CLOSED,)]:
                return
            insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING RETURNING epoch"
            if self._query(insert, entry.key, epoch, OPEN):
                for table in _tables(entry.key, epoch):
                    self._query(f"CREATE TABLE {table} (id BYTEA PRIMARY KEY, answers BYTEA)")
        self._ready_epochs.add((entry.key, epoch))

    def _state(self, entry: Entry, epoch: int) -> str:
        join = "survey s JOIN epoch e ON e.survey = s.key"
        select = f"SELECT s.state, e.state FROM {join} WHERE s.key = ? AND e.epoch = ? FOR SHARE"
        return OPEN if self._query(select, entry.key, epoch) == [(OPEN, OPEN)] else CLOSED

    def _claim(self, entry: Entry, group: Group, careful: bool) -> Flags:
        fresh, seen = _tables(entry.key, group.epoch)
        columns, values = ("id, answers", "?b, ?b") if entry.keeps else ("id", "?b")
        given = [group.ids, rows(group.answers)] if entry.keeps else [group.ids]
        # LIMIT keeps the planner from reading all of `seen` to join it with a few ids.
        known = f"LEFT JOIN LATERAL (SELECT 1 AS one FROM {seen} s WHERE s.id = given.id LIMIT 1) known ON true"
        new = f"SELECT given.* FROM unnest({values}) given ({columns}) {known} WHERE known.one IS NULL"
        found = self._query(f"INSERT INTO {fresh} ({columns}) {new} ON CONFLICT DO NOTHING RETURNING id", *given)
        if len(found) == len(group):
            return np.ones(len(group), dtype=np.bool_)
        counted = {id for (id,) in found}
        return np.array([id in counted for id in group.ids], dtype=np.bool_)

    def _bury(self, entry: Entry, epoch: int, id: bytes) -> bytes | None:
        fresh, seen = _tables(entry.key, epoch)
        for table in (fresh, seen):
            found = self._query(f"DELETE FROM {table} WHERE id = ? AND answers IS NOT NULL RETURNING answers", id)
            if found:
                # Among the new ones in either case: there it tells the next mixing that something was deleted.
                self._query(f"INSERT INTO {fresh} VALUES (?, NULL)", id)
                return bytes(found[0][0])
        return None

    def _forget_buried(self, entry: Entry, epoch: int) -> None:
        for table in _tables(entry.key, epoch):
            self._query(f"DELETE FROM {table} WHERE answers IS NULL")

    # -- mixing ------------------------------------------------------------------------------------

    def mix(self) -> None:
        for fingerprint, epoch in self._query(
            "SELECT fingerprint, epoch FROM epoch e JOIN survey s ON s.key = e.survey WHERE e.state = ?", OPEN
        ):
            entry = self._entry(fingerprint)
            fresh, seen = _tables(entry.key, epoch)
            deleted = self._any_buried(entry, epoch)
            moved = False
            while self._mix_some(entry, epoch):
                moved = True
            if moved:
                # Rows that were deleted stay in their old places until this, and earlier sums too. It waits for nobody.
                self._query(f"VACUUM (SKIP_LOCKED) {fresh}, tally{f', {seen}' if deleted else ''}")

    def _any_buried(self, entry: Entry, epoch: int) -> bool:
        """Whether reports were deleted since the last mixing."""
        with self._writing():
            if not entry.keeps or self._hold(entry, epoch) != OPEN:
                return False
            fresh, _ = _tables(entry.key, epoch)
            return self._query(f"SELECT EXISTS (SELECT 1 FROM {fresh} WHERE answers IS NULL)") == [(True,)]

    def _mix_some(self, entry: Entry, epoch: int) -> bool:
        """Move some ids; whether any moved."""
        fresh, seen = _tables(entry.key, epoch)
        with self._writing():
            if self._hold(entry, epoch) != OPEN:
                return False
            last = f"SELECT MAX(id) FROM (SELECT id FROM {fresh} ORDER BY id LIMIT {MIXED}) chosen"
            moved = f"WITH moved AS (DELETE FROM {fresh} WHERE id <= ({last}) RETURNING id, answers)"
            insert = f"INSERT INTO {seen} SELECT * FROM moved ORDER BY id RETURNING 1"
            return self._query(f"{moved}, written AS ({insert}) SELECT COUNT(*) FROM written") != [(0,)]

    # -- forgetting --------------------------------------------------------------------------------

    def _sweep(self) -> None:
        table = "to_regclass('seen_' || e.survey || '_' || e.epoch)"
        left = f"FROM epoch e JOIN survey s ON s.key = e.survey WHERE e.state = ? AND {table} IS NOT NULL"
        for fingerprint, epoch in self._query(f"SELECT fingerprint, epoch {left}", CLOSED):
            # Tables that are being read, as by a backup, are dropped by a later sweep.
            with suppress(TakenError):
                self._forget(self._entry(fingerprint), epoch)

    def _forget(self, entry: Entry, epoch: int) -> None:
        with self._writing():
            self._query(f"SET LOCAL lock_timeout = {PATIENCE}")
            self._query(f"SELECT pg_advisory_xact_lock({entry.key}, {epoch - (1 << 31)})")
            if not self._has_tables(entry, epoch):
                return
            if entry.keeps:
                both = _both(entry, epoch)
                self._query(f"INSERT INTO report SELECT {entry.key}, {epoch}, id, answers FROM {both} ORDER BY id")
            self._query(f"DROP TABLE {', '.join(_tables(entry.key, epoch))}")

    def _drop(self, entry: Entry, epoch: int) -> int:
        where, dropped = "WHERE survey = ? AND epoch = ?", self._remembered(entry, epoch)
        self._query(f"DELETE FROM report {where}", entry.key, epoch)
        if self._has_tables(entry, epoch):
            self._query(f"TRUNCATE {', '.join(_tables(entry.key, epoch))}")
        return dropped

    # -- reading -----------------------------------------------------------------------------------

    def _has_tables(self, entry: Entry, epoch: int) -> bool:
        return self._query("SELECT to_regclass(?) IS NOT NULL", _tables(entry.key, epoch)[1]) == [(True,)]

    def _page(self, entry: Entry, epoch: int, after: bytes) -> list[Row]:
        if self._has_tables(entry, epoch):
            both = _both(entry, epoch)
            return self._query(f"SELECT id, answers FROM {both} WHERE id > ? ORDER BY id LIMIT ?", after, entry.page)
        select = "SELECT id, answers FROM report WHERE survey = ? AND epoch = ? AND id > ? ORDER BY id LIMIT ?"
        return self._query(select, entry.key, epoch, after, entry.page)

    def _remembered(self, entry: Entry, epoch: int) -> int:
        select = "SELECT COUNT(*) FROM report WHERE survey = ? AND epoch = ?"
        n = int(self._query(select, entry.key, epoch)[0][0])
        if self._has_tables(entry, epoch):
            n += int(self._query(f"SELECT COUNT(*) FROM {_both(entry, epoch)}")[0][0])
        return n


def _tables(survey: int, epoch: int) -> tuple[str, str]:
    """Of new ids, and of mixed ones."""
    return f"fresh_{survey}_{epoch}", f"seen_{survey}_{epoch}"


def _both(entry: Entry, epoch: int) -> str:
    fresh, seen = _tables(entry.key, epoch)
    return f"(SELECT * FROM {fresh} UNION ALL SELECT * FROM {seen}) ids"
