"""Writing to a store in SQL: one set of statements, and one order of locks.

A subclass says how a transaction begins, how ids are claimed and how they are forgotten.

Locks      survey, epoch, ids, tally; among several by survey, epoch and id, so that no workers wait in a circle
Waiting    answers of a survey with a large tally wait in `pending` under their ids and are added up when enough wait or
           the epoch closes; a reader adds those that wait, so the integers are the same at every moment
Reports    kept ones stay when their epoch closes, until `drop_reports`
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress

from deniable.collect.counting import digest
from deniable.collect.stores.base import CLOSED, OPEN, Added, Batch, Epoch, Rejections, StoreError, Token
from deniable.collect.stores.checking import complaints
from deniable.collect.stores.entry import Entry, collected, still_open, to_bytes
from deniable.collect.stores.grouping import Flags, Group, Outcome, grouped, rows
from deniable.collect.stores.reading import SqlReader
from deniable.protocols.tally import Counts
from deniable.surveys import Survey

ATTEMPTS = 4


class AgainError(Exception):
    """What a transaction took for granted is not so: it is undone, and tried anew with more care."""


class SqlStore(SqlReader):
    """The statements that change something; `?` stands for a parameter."""

    locking = ""
    """How a SELECT takes the rows that it is about to change."""

    def __init__(self, shard: int) -> None:
        super().__init__()
        if not 0 <= shard < 1 << 31:
            raise StoreError(f"the shard of a worker is a number from 0 on, not {shard}")
        self._shard = shard
        self._waiting: dict[tuple[int, int], int] = {}

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """All or nothing, durable when it ends."""

    def _ready(self, entry: Entry, epoch: int) -> None:
        """Make what must be there before the first reports of an epoch."""

    @abstractmethod
    def _state(self, entry: Entry, epoch: int) -> str:
        """Whether reports of this epoch are taken; until the transaction ends it stays so."""

    @abstractmethod
    def _claim(self, entry: Entry, group: Group, careful: bool) -> Flags:
        """Insert a group's ids; which of them were not there."""

    @abstractmethod
    def _set_aside(self, entry: Entry, epoch: int, ids: list[bytes], answers: list[bytes]) -> None:
        """Let answers wait to be added up."""

    @abstractmethod
    def _sweep(self) -> None:
        """Drop the ids of all closed epochs; kept reports stay."""

    @abstractmethod
    def _drop(self, entry: Entry, epoch: int) -> int:
        """Remove the kept reports of a closed epoch; how many there were."""

    @abstractmethod
    def _damage(self, deep: bool) -> list[str]:
        """What the database says about itself."""

    # -- surveys -----------------------------------------------------------------------------------

    def publish(self, survey: Survey) -> bool:
        canonical = collected(survey).canonical
        insert = "INSERT INTO survey (fingerprint, canonical, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        with self._writing():
            return bool(self._query(f"{insert} RETURNING key", survey.fingerprint, canonical, OPEN))

    def close_survey(self, fingerprint: str) -> None:
        entry = self._entry(fingerprint)
        with self._writing():
            self._query("UPDATE survey SET state = ? WHERE key = ?", CLOSED, entry.key)
        for epoch in self.epochs(fingerprint):
            if epoch.state == OPEN:
                self.close_epoch(fingerprint, epoch.epoch)

    # -- ingest ------------------------------------------------------------------------------------

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        groups = list(grouped(batches))
        entries = {group.survey: self._entry(group.survey) for group in groups}
        refused = {(self._entry(name).key, day, reason): n for (name, day, reason), n in (rejected or {}).items()}
        for group in groups:
            self._ready(entries[group.survey], group.epoch)
        for attempt in range(ATTEMPTS):
            outcome = Outcome(batches)
            with suppress(AgainError):
                with self._writing():
                    for group in groups:
                        self._add_group(entries[group.survey], group, outcome, careful=attempt > 0)
                    self._add_rejections(refused)
                self._add_up(groups, entries)
                return outcome.added
        raise StoreError("the store changed under this transaction again and again: try later")

    def _add_group(self, entry: Entry, group: Group, outcome: Outcome, careful: bool) -> None:
        if self._state(entry, group.epoch) != OPEN:
            outcome.closed(group)
            return
        fresh = self._claim(entry, group, careful)
        duplicates = outcome.counted(group, fresh)
        if duplicates:
            insert = "INSERT INTO duplicate VALUES (?, ?, ?)"
            change = "ON CONFLICT (survey, shard) DO UPDATE SET n = duplicate.n + excluded.n"
            self._query(f"{insert} {change}", entry.key, self._shard, duplicates)
        if not fresh.any():
            return
        answers = group.answers if fresh.all() else group.answers[fresh]
        if entry.waits:
            ids = [id for id, is_new in zip(group.ids, fresh, strict=True) if is_new]
            self._wait(entry, group.epoch, ids, rows(answers))
        else:
            self._increase(entry, group.epoch, len(answers), entry.counter.count(answers))

    def _increase(self, entry: Entry, epoch: int, n: int, counts: Counts) -> None:
        place, where = (entry.key, epoch, self._shard), "WHERE survey = ? AND epoch = ? AND shard = ?"
        while True:
            found = self._query(f"SELECT n, counts FROM tally {where} {self.locking}", *place)
            if found:
                before, raw = found[0]
                total = to_bytes(entry.counts(raw) + counts)
                self._query(f"UPDATE tally SET n = ?, counts = ? {where}", before + n, total, *place)
                return
            # Someone of the same shard may have been faster; then there is a row now.
            insert = "INSERT INTO tally VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING n"
            if self._query(insert, *place, n, to_bytes(counts)):
                return

    def _add_rejections(self, refused: dict[tuple[int, int, str], int]) -> None:
        insert = "INSERT INTO rejected VALUES (?, ?, ?, ?, ?)"
        change = "ON CONFLICT (survey, day, reason, shard) DO UPDATE SET n = rejected.n + excluded.n"
        for (key, day, reason), n in sorted(refused.items()):
            self._query(f"{insert} {change}", key, day, reason, self._shard, n)

    # -- answers that wait -------------------------------------------------------------------------

    def _wait(self, entry: Entry, epoch: int, ids: list[bytes], answers: list[bytes]) -> None:
        place = (entry.key, epoch)
        if place not in self._waiting:
            # Others may have left some.
            select = "SELECT COUNT(*) FROM pending WHERE survey = ? AND epoch = ?"
            self._waiting[place] = self._query(select, *place)[0][0]
        self._set_aside(entry, epoch, ids, answers)
        self._waiting[place] += len(ids)

    def _add_up(self, groups: Sequence[Group], entries: dict[str, Entry]) -> None:
        """Add up what waits where it is enough. The submissions are counted already: a failure here loses nothing."""
        for group in groups:
            entry = entries[group.survey]
            if self._waiting.get((entry.key, group.epoch), 0) >= entry.enough:
                with suppress(StoreError), self._writing():
                    if self._hold(entry, group.epoch) == OPEN:
                        self._fold(entry, group.epoch)

    def _hold(self, entry: Entry, epoch: int) -> str | None:
        """Keep everyone else out of an epoch until the transaction ends; its state."""
        select = f"SELECT state FROM epoch WHERE survey = ? AND epoch = ? {self.locking}"
        found = self._query(select, entry.key, epoch)
        return found[0][0] if found else None

    def _fold(self, entry: Entry, epoch: int) -> None:
        n, counts = self._pending(entry, epoch)
        if n:
            self._increase(entry, epoch, n, counts)
            self._query("DELETE FROM pending WHERE survey = ? AND epoch = ?", entry.key, epoch)
        self._waiting[entry.key, epoch] = 0

    # -- closing -----------------------------------------------------------------------------------

    def close_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        entry, where = self._entry(fingerprint), "WHERE survey = ? AND epoch = ?"
        with self._writing():
            self._query("INSERT INTO epoch VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING", entry.key, epoch, OPEN)
            if self._hold(entry, epoch) == OPEN:
                self._fold(entry, epoch)
                n, counts = self._total(entry, epoch, epoch)
                self._query(f"DELETE FROM tally {where}", entry.key, epoch)
                self._query("INSERT INTO tally VALUES (?, ?, 0, ?, ?)", entry.key, epoch, n, to_bytes(counts))
                final = (CLOSED, digest(n, counts), entry.key, epoch)
                self._query(f"UPDATE epoch SET state = ?, sha256 = ? {where}", *final)
        # After closing, so that nobody waits for it; an interruption is made good by the next sweep.
        self._sweep()
        return next(found for found in self.epochs(fingerprint) if found.epoch == epoch)

    def drop_reports(self, fingerprint: str, epoch: int) -> int:
        """Remove the kept reports of a closed epoch; how many there were."""
        entry = self._entry(fingerprint)
        with self._writing():
            state = self._hold(entry, epoch)
            if state == OPEN:
                raise still_open(epoch)
            dropped = self._drop(entry, epoch) if state == CLOSED else 0
        self._sweep()
        return dropped

    # -- tokens and care ---------------------------------------------------------------------------

    def add_token(self, token: Token) -> None:
        change = "ON CONFLICT (sha256) DO UPDATE SET role = excluded.role, label = excluded.label"
        with self._writing():
            self._query(f"INSERT INTO token VALUES (?, ?, ?) {change}", token.sha256, token.role, token.label)

    def remove_token(self, sha256: str) -> bool:
        with self._writing():
            return bool(self._query("DELETE FROM token WHERE sha256 = ? RETURNING sha256", sha256))

    def check(self, deep: bool = True) -> list[str]:
        return [*self._damage(deep), *complaints(self, deep)]
