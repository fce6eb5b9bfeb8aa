"""Writing to a store in SQL: one set of statements, and one order of locks.

A subclass says how a transaction begins, how ids are claimed and how they are forgotten.

Locks      survey, epoch, ids, tally; among several by survey, epoch and id, so that no workers wait in a circle
Sums       a group adds to those blocks of counters that it touches, in the transaction that inserts its ids; nothing
           waits to be added up
Reports    kept ones stay when their epoch closes, until `drop_reports`
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress

from deniable.collect.counting import Blocks, digest
from deniable.collect.stores.base import CLOSED, OPEN, Added, Batch, Epoch, Rejections, StoreError, Token
from deniable.collect.stores.checking import complaints
from deniable.collect.stores.copying import Row
from deniable.collect.stores.entry import Entry, collected, still_open
from deniable.collect.stores.grouping import Flags, Group, Outcome, grouped, joined
from deniable.collect.stores.reading import SqlReader
from deniable.surveys import Survey

ATTEMPTS = 4
Place = tuple[int, int, int]
"""Survey, epoch and shard."""


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
    def _bury(self, entry: Entry, epoch: int, id: bytes) -> bytes | None:
        """Take away the answers of an id and keep the id; the answers, None if there are none."""

    @abstractmethod
    def _forget_buried(self, entry: Entry, epoch: int) -> None:
        """Drop the ids of deleted reports."""

    @abstractmethod
    def _blocks(self, place: Place, blocks: list[int]) -> list[Row]:
        """(block, n, deleted, counts) of these blocks, which nobody else changes until the transaction ends."""

    @abstractmethod
    def _put(self, place: Place, blocks: Sequence[Row]) -> None:
        """Write (block, n, deleted, counts), in the place of what is there."""

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
        self._increase(entry, group.epoch, entry.counter.blocks(answers), len(answers))

    def _increase(self, entry: Entry, epoch: int, sums: Blocks, n: int, deleted: int = 0) -> None:
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
                answers = self._bury(entry, epoch, id) if self._state(entry, epoch) == OPEN else None
                if answers is not None:
                    sums = -entry.counter.blocks(joined([answers], entry.counter.width))
                    self._increase(entry, epoch, sums, -1, 1)
                    return True
        return False

    def _add_rejections(self, refused: dict[tuple[int, int, str], int]) -> None:
        insert = "INSERT INTO rejected VALUES (?, ?, ?, ?, ?)"
        change = "ON CONFLICT (survey, day, reason, shard) DO UPDATE SET n = rejected.n + excluded.n"
        for (key, day, reason), n in sorted(refused.items()):
            self._query(f"{insert} {change}", key, day, reason, self._shard, n)

    def _hold(self, entry: Entry, epoch: int) -> str | None:
        """Keep everyone else out of an epoch until the transaction ends; its state."""
        select = f"SELECT state FROM epoch WHERE survey = ? AND epoch = ? {self.locking}"
        found = self._query(select, entry.key, epoch)
        return found[0][0] if found else None

    # -- closing -----------------------------------------------------------------------------------

    def close_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        entry, where = self._entry(fingerprint), "WHERE survey = ? AND epoch = ?"
        with self._writing():
            self._query("INSERT INTO epoch VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING", entry.key, epoch, OPEN)
            if self._hold(entry, epoch) == OPEN:
                n, deleted, counts = self._total(entry, epoch, epoch)
                if deleted:
                    self._forget_buried(entry, epoch)
                self._query(f"DELETE FROM tally {where}", entry.key, epoch)
                self._put((entry.key, epoch, 0), _numbered(entry, Blocks.of(counts), n, deleted))
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


def _numbered(entry: Entry, sums: Blocks, n: int, deleted: int) -> list[Row]:
    """Rows of the tally; the numbers stand in the first."""
    packed = zip(sums.places.tolist(), entry.packed(sums), strict=True)
    return [(block, 0, 0, raw) if block else (0, n, deleted, raw) for block, raw in packed]
