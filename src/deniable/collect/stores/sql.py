"""A store in SQL: one set of statements, and one order of locks. Every number read is a sum over shards.

A subclass says how to connect, how a transaction begins, how ids are claimed and forgotten, and where kept reports are.

Locks      survey, epoch, ids, tally; among several by survey, epoch and id, so that no workers wait in a circle
Sums       a group adds to the blocks of counters that it touches, in the transaction that inserts its ids; nothing
           waits to be summed
Reports    kept ones stay when their epoch closes, until `drop_reports`. A row holds those of all ids with the same
           first bits, in the order of ids; a full row is split by the next bit. So rows are the same in whatever
           order the reports came, and a row's location, which changes with it, shows nothing about a single report
Going      data to delete is marked in one transaction, and from then on nobody reads it; its rows are removed after
           that, some at a time. After an interruption the next sweep finishes, at the latest when the store is
           reopened
Checks     a store is checked by counting again: published bytes have their fingerprint; n and the deleted ones are
           the number of ids, while these are kept; a closed tally has its hash; ids that are not kept are gone; kept
           reports give the tally again (deep)

Versions   tables have a version, and a store of another version is refused: nothing converts it. Processes of several
           versions of deniable may read a store, and one version writes: every transaction that writes looks at
           `schema_version` first, and `upgrade` waits until none is in progress

The tables:

survey      fingerprint, the published bytes (none once it is deleted), state; other tables use its short key
epoch       state, and once closed the hash of the final tally and until when ids are kept (none once they may go); how
            often it was reopened; whether kept reports were deleted. It has a row from its first report on
seen        counted ids, many per row, until the epoch closes
report      ids and answers where reports are kept. In PostgreSQL each epoch has its own tables for both, so that
            forgetting is dropping them. A deleted report has left its id in `seen`
tally       counters of each survey, epoch and shard, in blocks; blocks of zeros have no row. Block 0 always has one,
            and it holds how many submissions are in the sum and how many were deleted
duplicate   how many submissions came again, by survey and shard
rejected    how many were refused, by survey, day, reason and shard
token       SHA-256, role, label, the survey that it is valid for, and when it expires
clock       the last trusted time, and the last time that an operator confirmed
schema_version   of the tables, and the version of deniable that writes

No submission has a number, a time or a place in a queue: each is found by its random id.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import astuple
from typing import Any

import numpy as np

from deniable import __version__
from deniable.collect.stores.base import (
    CLOSED,
    DELETED,
    OPEN,
    SETTLED,
    SUMMED,
    Added,
    Batch,
    Epoch,
    NoShares,
    Published,
    Rejections,
    Shares,
    Store,
    StoredTime,
    StoreError,
    SurveyDeleted,
    Token,
    VersionError,
    collected,
    not_reopened,
    refuse_needed,
    refuse_shares,
    still_open,
    unknown,
    why_not_reopened,
)
from deniable.collect.stores.batches import (
    BLOCK,
    BatchResults,
    BehindError,
    Blocks,
    EpochGroup,
    Flags,
    RunTable,
    SortedRuns,
    StoredSurvey,
    check_people,
    digest,
    grouped,
    joined,
    keys,
    rows,
    share_sum,
)
from deniable.collect.wire import ID_BYTES
from deniable.errors import DeniableError
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.terms import LAST_EPOCH

VERSION = 8
"""Version of the tables."""
TABLES = ("survey", "epoch", "seen", "report", "tally", "duplicate", "rejected", "token", "clock")

_GONE = f"s.state = '{DELETED}'"
_OVER = {
    "seen": f"({_GONE} OR e.state = '{CLOSED}' AND e.forget IS NULL)",
    "report": f"({_GONE} OR e.dropped = 1)",
}
"""Epochs (e) of surveys (s) whose ids or reports are no longer needed."""

ROW_BYTES, ROW_RECORDS = 900, 32
"""Maximum size of a row of kept reports: this many bytes, or this many reports if that is more. A row of a thousand
bytes still lies within a page of SQLite's tree."""

Row = tuple[Any, ...]
Place = tuple[int, int, int]
"""Survey, epoch and shard."""


def make_tables(statements: Sequence[str], run: Callable[[str], object]) -> None:
    """Create the tables if they do not exist; the caller holds a lock and a transaction."""
    run("CREATE TABLE schema_version (version INTEGER NOT NULL, software TEXT NOT NULL)")
    run(f"INSERT INTO schema_version VALUES ({VERSION}, '{__version__}')")
    for statement in statements:
        run(statement)


def check_tables(row: Row) -> None:
    """Raise VersionError for tables of another version, given the row of `schema_version`."""
    version, *software = row
    if version != VERSION:
        by = f" by deniable {software[0]}" if software else ""
        raise VersionError(
            f"this store was written{by} with tables of version {version}, and this is deniable {__version__}, which "
            f"reads version {VERSION} only: use the {'newer' if version > VERSION else 'older'} deniable that wrote it"
        )


def check_software(row: Row) -> None:
    """Raise VersionError unless this version of deniable is the one that writes, given that row."""
    check_tables(row)
    _, software = row
    if software != __version__:
        raise VersionError(
            f"this store is written by deniable {software}, and this is deniable {__version__}: use {software}, or "
            "stop all its processes, make a copy with deniable store backup, and run deniable store upgrade"
        )


class SqlStore(Store):
    """The statements that all databases share; `?` stands for a parameter."""

    locking, sharing = "", ""
    """How a SELECT locks the rows that it is about to change, or that nobody else may change."""

    def __init__(self, shard: int) -> None:
        if not 0 <= shard < 1 << 31:
            raise StoreError(f"the shard of a worker is a number from 0 on, not {shard}")
        self._shard = shard
        self._entries: dict[str, StoredSurvey] = {}
        self._runs: dict[tuple[int, int], SortedRuns] = {}
        """What is known of the ids of each survey and epoch."""

    # -- what a database adds ----------------------------------------------------------------------

    @abstractmethod
    def _query(self, sql: str, *parameters: Any) -> list[Row]: ...

    def _send(self, sql: str, *parameters: Any) -> None:
        """A statement whose answer nobody needs; it fails at the latest when the transaction ends."""
        self._query(sql, *parameters)

    @abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """A transaction that only reads, and sees everything as of one moment."""

    @abstractmethod
    def _reports_in(self, entry: StoredSurvey, epoch: int) -> str | None:
        """Table and condition, extensible by AND, of an epoch's kept reports; None if it has no table."""

    @abstractmethod
    def _remembered(self, entry: StoredSurvey, epoch: int) -> int:
        """How many ids of this epoch are stored."""

    @abstractmethod
    def _kept(self, entry: StoredSurvey, epoch: int) -> int:
        """How many reports of this epoch are stored."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """A transaction that writes: all or nothing, durable when it ends.

        Raises VersionError unless this version of deniable is the one that writes.
        """

    @abstractmethod
    def _exclusive(self) -> AbstractContextManager[None]:
        """A transaction that writes, whatever version this is, while no transaction of `_writing` is in progress."""

    def _adding(self) -> AbstractContextManager[None]:
        """The same for submissions."""
        return self._writing()

    def _ready(self, entry: StoredSurvey, epoch: int) -> None:
        """Create what must exist before the first reports of an epoch."""

    @abstractmethod
    def _state(self, entry: StoredSurvey, epoch: int) -> str:
        """OPEN if reports of this epoch are accepted, else CLOSED; it stays so until the transaction ends."""

    @abstractmethod
    def _claim(self, entry: StoredSurvey, group: EpochGroup) -> Flags:
        """Insert a group's ids; returns which of them were new."""

    @abstractmethod
    def _report_rows(self, entry: StoredSurvey, epoch: int, ids: Bytes) -> list[Row]:
        """The rows in which reports of these ascending ids are or would be: first id, bits, records; ascending."""

    @abstractmethod
    def _put_report_rows(self, entry: StoredSurvey, epoch: int, content: Sequence[Row]) -> None:
        """Write (first id, bits, records), replacing what is there."""

    @abstractmethod
    def _blocks(self, place: Place, blocks: list[int]) -> list[Row]:
        """(block, n, deleted, counts) of these blocks, which nobody else changes until the transaction ends."""

    @abstractmethod
    def _put(self, place: Place, blocks: Sequence[Row]) -> None:
        """Write (block, n, deleted, counts), replacing what is there."""

    def _keeps(self, entry: StoredSurvey) -> bool:
        """Whether there may be reports of this survey."""
        return entry.keeps

    @abstractmethod
    def _left(self, table: str) -> str:
        """A condition: whether `seen` or `report` has rows of the epoch e."""

    @abstractmethod
    def _drop(self, table: str, key: int, epoch: int) -> None:
        """Remove the rows of an epoch from `seen` or `report`, unless others use them."""

    def _reopened(self, entry: StoredSurvey, epoch: int) -> None:
        """Create what an epoch with reports has, if it was closed before it had any."""

    @abstractmethod
    def _damage(self, deep: bool) -> list[str]:
        """What the database's own check finds, one sentence each."""

    # -- reading -----------------------------------------------------------------------------------

    def _entry(self, fingerprint: str) -> StoredSurvey:
        """The survey; raises StoreError if it does not exist, SurveyDeleted if it was deleted."""
        known = self._entries.get(fingerprint)
        canonical = "canonical" if known is None else "NULL"
        found = self._query(f"SELECT key, state, {canonical} FROM survey WHERE fingerprint = ?", fingerprint)
        if not found:
            raise unknown(fingerprint)
        ((key, state, raw),) = found
        if state == DELETED:
            self._entries.pop(fingerprint, None)
            raise SurveyDeleted(fingerprint)
        if known is None:
            known = self._entries[fingerprint] = StoredSurvey.read(key, bytes(raw))
        return known

    def _known(self, fingerprint: str) -> StoredSurvey | None:
        """The same from the cache if it is known; None if it was deleted. Its state comes from `_state`."""
        with suppress(SurveyDeleted):
            return self._entries.get(fingerprint) or self._entry(fingerprint)
        return None

    def _share(self, entry: StoredSurvey) -> None:
        """Keep the survey from being deleted until the transaction ends."""
        if self._query(f"SELECT state FROM survey WHERE key = ? {self.sharing}", entry.key) == [(DELETED,)]:
            raise SurveyDeleted(entry.survey.fingerprint)

    def _begin_runs(self, place: tuple[int, int], table: RunTable) -> SortedRuns:
        """Start to track the ids of an epoch, and forget those of epochs that are closed or gone."""
        opened = set(self._query("SELECT survey, epoch FROM epoch WHERE state = ?", OPEN))
        self._runs = {known: runs for known, runs in self._runs.items() if known in opened}
        self._runs[place] = SortedRuns(table)
        return self._runs[place]

    def surveys(self) -> list[Published]:
        found = self._query("SELECT fingerprint, canonical, state FROM survey WHERE state <> ? ORDER BY key", DELETED)
        return [Published(fingerprint, bytes(canonical), state) for fingerprint, canonical, state in found]

    def deleted(self) -> list[str]:
        select = "SELECT fingerprint FROM survey WHERE state = ? ORDER BY fingerprint"
        return [fingerprint for (fingerprint,) in self._query(select, DELETED)]

    def epochs(self, fingerprint: str) -> list[Epoch]:
        entry = self._entry(fingerprint)
        found = self._query(
            """
            SELECT e.epoch, state, COALESCE(SUM(n), 0), sha256, COALESCE(SUM(deleted), 0), forget, reopened, dropped
            FROM epoch e LEFT JOIN tally t ON t.survey = e.survey AND t.epoch = e.epoch AND t.block = 0
            WHERE e.survey = ? GROUP BY e.epoch, state, sha256, forget, reopened, dropped ORDER BY e.epoch
            """,
            entry.key,
        )
        epochs = [
            Epoch(int(epoch), state, int(n), sha256, int(deleted), forget, reopened, bool(dropped))
            for epoch, state, n, sha256, deleted, forget, reopened, dropped in found
        ]
        return [one for one in epochs if one.n or one.deleted or one.state == CLOSED or one.reopened]

    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        entry, most = self._entry(fingerprint), LAST_EPOCH if last is None else last
        with self._reading():
            if not entry.counter.is_shared:
                n, _, counts = self._total(entry, first, most)
                return entry.counter.tally(n, counts)
            n, counts = 0, entry.zero()
            for epoch in self._settled(entry, first, most):
                some, _, sums = self._total(entry, epoch, epoch)
                n, counts = n + some, counts + sums
            return entry.counter.tally(n, counts)

    def _settled(self, entry: StoredSurvey, first: int, last: int) -> list[int]:
        """The epochs whose shares were summed by all collectors."""
        select = "SELECT epoch FROM epoch WHERE survey = ? AND epoch BETWEEN ? AND ? AND dropped = 1 ORDER BY epoch"
        return [epoch for (epoch,) in self._query(select, entry.key, first, last)]

    def _total(self, entry: StoredSurvey, first: int, last: int) -> tuple[int, int, Counts]:
        """The sum over epochs and shards: submissions, deleted ones, counters. Reads one shard at a time."""
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
        where = "WHERE survey = ? AND epoch BETWEEN ? AND ? AND dropped = 0"
        most = LAST_EPOCH if last is None else last
        for (epoch,) in self._query(f"SELECT epoch FROM epoch {where} ORDER BY epoch", entry.key, first, most):
            after = b""
            while len(page := self._page(entry, epoch, after)):
                after = page[-1, :ID_BYTES].tobytes()
                yield Batch(fingerprint, epoch, page[:, :ID_BYTES], page[:, ID_BYTES:])

    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        select = "SELECT day, reason, SUM(n) FROM rejected WHERE survey = ? GROUP BY day, reason ORDER BY day, reason"
        return [(day, reason, int(n)) for day, reason, n in self._query(select, self._entry(fingerprint).key)]

    def duplicates(self, fingerprint: str) -> int:
        select = "SELECT COALESCE(SUM(n), 0) FROM duplicate WHERE survey = ?"
        return int(self._query(select, self._entry(fingerprint).key)[0][0])

    def tokens(self) -> list[Token]:
        select = "SELECT sha256, role, label, survey, expires FROM token ORDER BY sha256"
        return [Token(*found) for found in self._query(select)]

    # -- surveys -----------------------------------------------------------------------------------

    def publish(self, survey: Survey) -> bool:
        canonical = collected(survey).canonical
        insert = "INSERT INTO survey (fingerprint, canonical, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        with self._writing():
            if self._query(f"{insert} RETURNING key", survey.fingerprint, canonical, OPEN):
                return True
        self._entry(survey.fingerprint)
        return False

    def close_survey(self, fingerprint: str) -> None:
        entry = self._entry(fingerprint)
        with self._writing():
            self._query("UPDATE survey SET state = ? WHERE key = ? AND state = ?", CLOSED, entry.key, OPEN)
        for epoch in self.epochs(fingerprint):
            if epoch.state == OPEN:
                self.close_epoch(fingerprint, epoch.epoch)

    def delete_survey(self, fingerprint: str) -> None:
        entry = self._entry(fingerprint)
        refuse_needed(fingerprint, self.surveys())
        with self._writing():
            self._query("UPDATE survey SET state = ?, canonical = ? WHERE key = ?", DELETED, b"", entry.key)
            for table in ("duplicate", "rejected"):
                self._query(f"DELETE FROM {table} WHERE survey = ?", entry.key)
        self._entries.pop(fingerprint, None)
        self._sweep()

    # -- ingest ------------------------------------------------------------------------------------

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        groups = list(grouped(batches))
        found = {
            name: self._known(name) for name in {group.survey for group in groups} | {key[0] for key in rejected or ()}
        }
        entries = {name: entry for name, entry in found.items() if entry is not None}
        refused = {
            (entries[name].key, day, reason): n
            for (name, day, reason), n in (rejected or {}).items()
            if name in entries
        }
        for group in groups:
            if group.survey in entries:
                self._ready(entries[group.survey], group.epoch)
        while True:
            try:
                return self._add_groups(groups, entries, refused, BatchResults(batches))
            except BehindError as behind:
                with self._reading():
                    behind.runs.catch_up()

    def _add_groups(
        self,
        groups: Sequence[EpochGroup],
        entries: dict[str, StoredSurvey],
        refused: dict[tuple[int, int, str], int],
        results: BatchResults,
    ) -> list[Added]:
        """Add all of them in one transaction; raises BehindError, with nothing added, if it would take long."""
        with self._adding():
            for group in groups:
                entry = entries.get(group.survey)
                if entry is None or self._state(entry, group.epoch) != OPEN:
                    results.closed(group)
                else:
                    self._add_group(entry, group, results)
            self._add_rejections(refused)
        return results.added

    def _add_group(self, entry: StoredSurvey, group: EpochGroup, results: BatchResults) -> None:
        fresh = self._claim(entry, group)
        kept = {} if fresh.all() or not entry.keeps else self._answers(entry, group.epoch, group.ids[~fresh])
        duplicates = results.counted(group, fresh, kept)
        if duplicates:
            self._add_duplicates(entry, duplicates)
        if not fresh.any():
            return
        ids, answers = (group.ids, group.answers) if fresh.all() else (group.ids[fresh], group.answers[fresh])
        if entry.keeps:
            self._keep(entry, group.epoch, ids, answers)
        self._increase(entry, group.epoch, entry.counter.blocks(answers), len(answers))

    def _increase(self, entry: StoredSurvey, epoch: int, sums: Blocks, n: int, deleted: int = 0) -> None:
        place, blocks = (entry.key, epoch, self._shard), sums.places.tolist()
        found = self._blocks(place, blocks)
        if found:
            at = {block: row for row, block in enumerate(blocks)}
            known, numbers, gone, raws = zip(*found, strict=True)
            n, deleted = n + sum(numbers), deleted + sum(gone)
            entry.add_packed(sums.rows, [at[block] for block in known], known, raws)
        self._put(place, _numbered(entry, sums, n, deleted))

    def delete(self, fingerprint: str, id: bytes) -> bool:
        entry = self._entry(fingerprint)
        if not entry.keeps:
            return False
        select = "SELECT epoch FROM epoch WHERE survey = ? AND state = ? ORDER BY epoch"
        with self._writing():
            for (epoch,) in self._query(select, entry.key, OPEN):
                answers = self._erase(entry, epoch, id) if self._state(entry, epoch) == OPEN else None
                if answers is not None:
                    sums = -entry.counter.blocks(joined([answers], entry.counter.width))
                    self._increase(entry, epoch, sums, -1, 1)
                    return True
        return False

    def _add_duplicates(self, entry: StoredSurvey, n: int) -> None:
        insert = "INSERT INTO duplicate VALUES (?, ?, ?)"
        change = "ON CONFLICT (survey, shard) DO UPDATE SET n = duplicate.n + excluded.n"
        self._send(f"{insert} {change}", entry.key, self._shard, n)

    # -- kept reports ------------------------------------------------------------------------------

    def _keep(self, entry: StoredSurvey, epoch: int, ids: Bytes, answers: Bytes) -> None:
        """Add reports, by ascending ids that are new."""
        given = np.concatenate([ids, answers], axis=1)
        firsts, bits, content = zip(*self._report_rows(entry, epoch, ids), strict=True)
        held = joined(content, given.shape[1])
        merged = np.insert(held, np.searchsorted(keys(held[:, :ID_BYTES]), keys(ids)), given, axis=0)
        starts = np.searchsorted(keys(merged[:, :ID_BYTES]), keys(joined(firsts, ID_BYTES)))
        pieces = np.split(merged, starts[1:])
        changed = [row for cell in zip(firsts, bits, pieces, strict=True) for row in report_rows(*cell)]
        self._put_report_rows(entry, epoch, changed)

    def _answers(self, entry: StoredSurvey, epoch: int, ids: Bytes) -> dict[bytes, bytes]:
        """The kept answers of these ascending ids; perhaps those of other ids, too."""
        held = joined([raw for *_, raw in self._report_rows(entry, epoch, ids)], ID_BYTES + entry.counter.width)
        return dict(zip(rows(held[:, :ID_BYTES]), rows(held[:, ID_BYTES:]), strict=True))

    def _erase(self, entry: StoredSurvey, epoch: int, id: bytes) -> bytes | None:
        """Remove the report of an id, which stays known; returns the answers, None if no report is kept."""
        for first, bits, raw in self._report_rows(entry, epoch, joined([id], ID_BYTES)):
            records = rows(joined([raw], ID_BYTES + entry.counter.width))
            for at, record in enumerate(records):
                if record.startswith(id):
                    del records[at]
                    self._put_report_rows(entry, epoch, [(first, bits, b"".join(records))])
                    return record[ID_BYTES:]
        return None

    def _page(self, entry: StoredSurvey, epoch: int, after: bytes) -> Bytes:
        """Kept reports after this id, ascending: rows of id and answers, empty after the last."""
        place, width = self._reports_in(entry, epoch), ID_BYTES + entry.counter.width
        if place is None:
            return np.empty((0, width), dtype=np.uint8)
        # Rows may be split while they are read: so by id, not by row.
        begin = f"COALESCE((SELECT first FROM {place} AND first <= ? ORDER BY first DESC LIMIT 1), ?)"
        select = f"SELECT records FROM {place} AND first >= {begin} ORDER BY first LIMIT ?"
        found = self._query(select, after, b"", 2 + entry.page // ROW_RECORDS)
        records = joined([raw for (raw,) in found], width)
        return records[keys(records[:, :ID_BYTES]) > keys(joined([after], ID_BYTES))] if after else records

    def _add_rejections(self, refused: dict[tuple[int, int, str], int]) -> None:
        # Nothing is recorded for a survey that was deleted, even if another process did so a moment ago.
        insert = f"INSERT INTO rejected SELECT key, ?, ?, ?, ? FROM survey WHERE key = ? AND state <> ? {self.sharing}"
        change = "ON CONFLICT (survey, day, reason, shard) DO UPDATE SET n = rejected.n + excluded.n"
        for (key, day, reason), n in sorted(refused.items()):
            self._send(f"{insert} {change}", day, reason, self._shard, n, key, DELETED)

    def _hold(self, entry: StoredSurvey, epoch: int) -> str | None:
        """Keep everyone else out of an epoch until the transaction ends; returns its state, None for a new epoch."""
        select = f"SELECT state FROM epoch WHERE survey = ? AND epoch = ? {self.locking}"
        found = self._query(select, entry.key, epoch)
        return found[0][0] if found else None

    # -- closing -----------------------------------------------------------------------------------

    def close_epoch(self, fingerprint: str, epoch: int, forget: float | None = None) -> Epoch:
        entry, where = self._entry(fingerprint), "WHERE survey = ? AND epoch = ?"
        with self._writing():
            self._share(entry)
            insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL, NULL, 0, 0) ON CONFLICT DO NOTHING"
            self._query(insert, entry.key, epoch, OPEN)
            if self._hold(entry, epoch) == OPEN:
                n, deleted, counts = self._total(entry, epoch, epoch)
                self._query(f"DELETE FROM tally {where}", entry.key, epoch)
                self._put((entry.key, epoch, 0), _numbered(entry, Blocks.of(counts), n, deleted))
                final = (CLOSED, digest(n, counts), None if forget is None else int(forget), entry.key, epoch)
                self._query(f"UPDATE epoch SET state = ?, sha256 = ?, forget = ? {where}", *final)
        # After closing, so that nobody waits for it; after an interruption the next sweep finishes.
        self._sweep()
        return self._epoch(fingerprint, epoch)

    def _epoch(self, fingerprint: str, epoch: int) -> Epoch:
        return next(found for found in self.epochs(fingerprint) if found.epoch == epoch)

    def forget_ids(self, now: float) -> None:
        update = "UPDATE epoch SET forget = NULL WHERE state = ? AND forget <= ? RETURNING epoch"
        due = "SELECT 1 FROM epoch WHERE state = ? AND forget <= ?"
        if self._query(due, CLOSED, int(now)):
            with self._writing():
                self._query(update, CLOSED, int(now))
        self._sweep()

    def reopen_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        entry, where = self._entry(fingerprint), "WHERE survey = ? AND epoch = ?"
        with self._writing():
            ((survey,),) = self._query(f"SELECT state FROM survey WHERE key = ? {self.locking}", entry.key)
            state = self._hold(entry, epoch)
            kept = self._query(f"SELECT forget, dropped FROM epoch {where}", entry.key, epoch)
            why = why_not_reopened(survey, state, *(kept[0] if kept else (None, False)))
            if entry.counter.is_shared:
                why = "its shares are to be added up, or have been"
            if why is not None:
                raise not_reopened(epoch, why)
            self._reopened(entry, epoch)
            change = "state = ?, sha256 = NULL, forget = NULL, reopened = reopened + 1"
            self._query(f"UPDATE epoch SET {change} {where}", OPEN, entry.key, epoch)
        return self._epoch(fingerprint, epoch)

    def drop_reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> int:
        entry, most = self._entry(fingerprint), LAST_EPOCH if last is None else last
        if not self._keeps(entry) or entry.counter.is_shared:
            return 0
        where = "WHERE survey = ? AND epoch BETWEEN ? AND ?"
        with self._writing():
            self._query(f"SELECT epoch FROM epoch {where} ORDER BY epoch {self.locking}", entry.key, first, most)
            found = [one for one in self.epochs(fingerprint) if first <= one.epoch <= most]
            for one in found:
                if one.state == OPEN:
                    raise still_open(one.epoch)
            dropped = sum(one.n for one in found if not one.dropped)
            # Without its reports an epoch cannot be reopened, so its ids are useless.
            change = f"UPDATE epoch SET dropped = 1, forget = NULL {where} AND state = ?"
            self._query(change, entry.key, first, most, CLOSED)
        self._sweep()
        return dropped

    # -- shares ------------------------------------------------------------------------------------

    def shares(self, fingerprint: str, epoch: int) -> Shares:
        entry = self._entry(fingerprint)
        with self._reading():
            state = self._shares_state(entry, epoch, "")
            n, _, counts = self._total(entry, epoch, epoch)
            ids = self._all_shares(entry, epoch)[:, :ID_BYTES] if state == CLOSED else np.empty((0, ID_BYTES), np.uint8)
        # There is never a result of one person, so one row for several people is their sum.
        return Shares(SUMMED if len(ids) == 1 < n else state or OPEN, n, ids, counts)

    def leave_out(self, fingerprint: str, epoch: int, ids: Bytes) -> int:
        entry = self._entry(fingerprint)
        with self._writing():
            self._hold_shares(entry, epoch)
            kept = self._all_shares(entry, epoch)
            stay = ~np.isin(keys(kept[:, :ID_BYTES]), keys(ids))
            left = int(len(kept) - stay.sum())
            if left:
                self._put_shares(entry, epoch, kept[stay])
                self._increase(entry, epoch, Blocks.of(entry.zero()), -left, left)
                self._rehash(entry, epoch)
        return left

    def sum_shares(self, fingerprint: str, epoch: int, digest: bytes, least: int) -> Counts:
        entry = self._entry(fingerprint)
        with self._writing():
            self._hold_shares(entry, epoch)
            kept = self._all_shares(entry, epoch)
            if len(kept) != 1 or kept[0, :ID_BYTES].tobytes() != digest:
                check_people(kept[:, :ID_BYTES], digest, least)
                total = share_sum(kept[:, ID_BYTES:]).astype("<i8").tobytes()
                kept = joined([digest + total], ID_BYTES + entry.counter.width)
                self._put_shares(entry, epoch, kept)
        self._sweep()
        return share_sum(kept[:, ID_BYTES:])

    def settle_shares(self, fingerprint: str, epoch: int, n: int, counts: Counts) -> Epoch:
        entry, where = self._entry(fingerprint), "WHERE survey = ? AND epoch = ?"
        with self._writing():
            if self._shares_state(entry, epoch, self.locking) == SETTLED:
                known, _, sums = self._total(entry, epoch, epoch)
                if known != n or not np.array_equal(sums, counts):
                    raise NoShares(f"epoch {epoch} has another result already, which stays")
            else:
                self._hold_shares(entry, epoch)
                before, deleted, _ = self._total(entry, epoch, epoch)
                self._query(f"DELETE FROM tally {where}", entry.key, epoch)
                settled = _numbered(entry, Blocks.of(counts), n, deleted + before - n)
                self._put((entry.key, epoch, 0), settled)
                self._put_shares(entry, epoch, joined([], ID_BYTES + entry.counter.width))
                change = f"UPDATE epoch SET dropped = 1, forget = NULL, sha256 = ? {where}"
                self._query(change, digest(n, counts), entry.key, epoch)
        self._sweep()
        return self._epoch(fingerprint, epoch)

    def _shares_state(self, entry: StoredSurvey, epoch: int, lock: str) -> str | None:
        """OPEN, CLOSED or SETTLED, and None for a new epoch."""
        if not entry.counter.is_shared:
            raise NoShares("this survey has one collector, who gets reports and no shares")
        select = f"SELECT state, dropped FROM epoch WHERE survey = ? AND epoch = ? {lock}"
        found = self._query(select, entry.key, epoch)
        return None if not found else SETTLED if found[0][1] else found[0][0]

    def _hold_shares(self, entry: StoredSurvey, epoch: int) -> None:
        """Raise NoShares unless the epoch is closed and its shares wait to be summed; then nobody else changes it."""
        refuse_shares(epoch, self._shares_state(entry, epoch, self.locking))

    def _all_shares(self, entry: StoredSurvey, epoch: int) -> Bytes:
        pages, after = [joined([], ID_BYTES + entry.counter.width)], b""
        while len(page := self._page(entry, epoch, after)):
            after = page[-1, :ID_BYTES].tobytes()
            pages.append(page)
        return np.concatenate(pages)

    def _put_shares(self, entry: StoredSurvey, epoch: int, records: Bytes) -> None:
        """Keep these records, by ascending ids, in place of all that were kept."""
        place = self._reports_in(entry, epoch)
        if place is not None:
            self._query(f"DELETE FROM {place}")
        if len(records):
            self._put_report_rows(entry, epoch, list(report_rows(bytes(ID_BYTES), 0, records)))

    def _rehash(self, entry: StoredSurvey, epoch: int) -> None:
        """Record the hash of a tally that has changed after its epoch was closed."""
        n, _, counts = self._total(entry, epoch, epoch)
        change = "UPDATE epoch SET sha256 = ? WHERE survey = ? AND epoch = ?"
        self._query(change, digest(n, counts), entry.key, epoch)

    def _sweep(self) -> None:
        """Remove what is marked for deletion, unless others use it."""
        epochs = "FROM epoch e JOIN survey s ON s.key = e.survey"
        for table, over in _OVER.items():
            select = f"SELECT e.survey, e.epoch {epochs} WHERE {over} AND {self._left(table)}"
            for key, epoch in self._query(select):
                self._runs.pop((key, epoch), None)
                self._drop(table, key, epoch)
        nothing = " AND ".join(f"NOT {self._left(table)}" for table in _OVER)
        for key, epoch in self._query(f"SELECT e.survey, e.epoch {epochs} WHERE {_GONE} AND {nothing}"):
            with self._writing():
                for table in ("tally", "epoch"):
                    self._query(f"DELETE FROM {table} WHERE survey = ? AND epoch = ?", key, epoch)

    # -- tokens and care ---------------------------------------------------------------------------

    def add_token(self, token: Token) -> None:
        with self._writing():
            self._query("DELETE FROM token WHERE sha256 = ?", token.sha256)
            self._query("INSERT INTO token VALUES (?, ?, ?, ?, ?)", *astuple(token))

    def remove_token(self, sha256: str) -> bool:
        with self._writing():
            return bool(self._query("DELETE FROM token WHERE sha256 = ? RETURNING sha256", sha256))

    def time(self) -> StoredTime:
        known: dict[str, int] = dict(self._query("SELECT name, moment FROM clock"))
        return StoredTime(known.get("trusted"), known.get("confirmed"), self._clock())

    def _clock(self) -> float | None:
        """The time of the database's own clock, if it has one."""
        return None

    def note_time(self, trusted: float, first: bool = False) -> None:
        with self._writing():
            self._note("trusted", trusted, first)

    def confirm_time(self, time: float) -> None:
        with self._writing():
            self._note("trusted", time)
            self._note("confirmed", time)

    def _note(self, name: str, moment: float, first: bool = False) -> None:
        change = "NOTHING" if first else "UPDATE SET moment = excluded.moment"
        self._query(f"INSERT INTO clock VALUES (?, ?) ON CONFLICT (name) DO {change}", name, int(moment))

    def _versions(self) -> Row:
        """The version of the tables, and the version of deniable that writes."""
        return self._query("SELECT * FROM schema_version")[0]

    def software(self) -> str:
        return str(self._versions()[1])

    def upgrade(self) -> None:
        with self._exclusive():
            check_tables(self._versions())
            self._query("UPDATE schema_version SET software = ?", __version__)

    def check(self, deep: bool = True) -> list[str]:
        return [*self._damage(deep), *complaints(self, deep)]


def report_rows(first: bytes, bits: int, records: Bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """The rows for these records, whose ids begin with the first `bits` bits of `first`: one, or as many as needed."""
    if len(records) <= max(ROW_RECORDS, ROW_BYTES // records.shape[1]) or bits == 8 * ID_BYTES:
        yield first, bits, records.tobytes()
        return
    middle = (int.from_bytes(first, "big") | 1 << 8 * ID_BYTES - 1 - bits).to_bytes(ID_BYTES, "big")
    at = int(np.searchsorted(keys(records[:, :ID_BYTES]), keys(joined([middle], ID_BYTES)))[0])
    yield from report_rows(first, bits + 1, records[:at])
    yield from report_rows(middle, bits + 1, records[at:])


def _numbered(entry: StoredSurvey, sums: Blocks, n: int, deleted: int) -> list[Row]:
    """Rows of the tally; the first has the numbers."""
    packed = zip(sums.places.tolist(), entry.packed(sums), strict=True)
    return [(block, 0, 0, raw) if block else (0, n, deleted, raw) for block, raw in packed]


def complaints(store: SqlStore, deep: bool) -> Iterator[str]:
    """One sentence per thing that is wrong."""
    left = f"SELECT DISTINCT s.fingerprint FROM survey s JOIN epoch e ON e.survey = s.key WHERE {_GONE} ORDER BY 1"
    yield from (f"survey {name} was deleted, but not all of it is gone: try again" for (name,) in store._query(left))
    for published in store.surveys():
        name = published.fingerprint
        try:
            entry = StoredSurvey.read(0, published.canonical)
        except (DeniableError, ValueError):
            yield f"the bytes of survey {name} are not a survey any more"
            continue
        if entry.survey.fingerprint != name:
            yield f"the bytes of survey {name} have the fingerprint {entry.survey.fingerprint}"
            continue
        known = store._entry(name)
        for (epoch,) in store._query("SELECT epoch FROM epoch WHERE survey = ? ORDER BY epoch", known.key):
            try:
                with store._reading():
                    found = _wrong_epoch(store, known, epoch, deep)
            except DeniableError as error:
                found = [str(error)]
            yield from (f"survey {name}, epoch {epoch}: {problem}" for problem in found)


def _wrong_epoch(store: SqlStore, entry: StoredSurvey, epoch: int, deep: bool) -> list[str]:
    select = "SELECT state, sha256, forget, dropped FROM epoch WHERE survey = ? AND epoch = ?"
    ((state, sha256, forget, dropped),) = store._query(select, entry.key, epoch)
    n, deleted, counts = store._total(entry, epoch, epoch)
    ids = store._remembered(entry, epoch)
    found = []
    if (state != CLOSED or forget is not None) and ids != n + deleted:
        besides = f" and {deleted} were deleted" if deleted else ""
        found.append(f"{n} submissions are in the tally{besides}, but there are {ids} ids")
    if state == CLOSED and digest(n, counts) != sha256:
        found.append("the tally is not the one that was closed")
    if state == CLOSED and forget is None and ids:
        found.append(f"it is closed, but {ids} ids are still there: close it again")
    kept = store._kept(entry, epoch) if entry.keeps else 0
    if dropped and kept:
        found.append(f"its reports were deleted, but {kept} are still there: delete them again")
    summed = entry.counter.is_shared and kept == 1
    if entry.keeps and not dropped and kept != n and not summed:
        found.append(f"of {n} reports {kept} are kept")
    if (
        deep
        and entry.keeps
        and not dropped
        and kept == n
        and not np.array_equal(_recounted(store, entry, epoch), counts)
    ):
        found.append("the reports that are kept do not give the tally")
    return found


def _recounted(store: SqlStore, entry: StoredSurvey, epoch: int) -> Counts:
    total = entry.zero()
    for batch in store.reports(entry.survey.fingerprint, epoch, epoch):
        total += entry.counter.count(batch.answers)
    return total
