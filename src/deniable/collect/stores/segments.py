"""A store of files: submissions are appended to a log, become Parquet parts, and are counted by the engines.

Ack        after one append for a whole group of requests is on the disk
Log        frames with a length and a checksum. A frame that was cut off when a process or a machine died is the last
           one, was never acknowledged, and is left out. A log that is damaged before its last frame is set aside whole,
           for people to look at; `tidy` and `check` report it
Sealing    every process may rename a log while its writer is not appending; the writer notices and begins another. So
           every process, after kill -9 too, can finish what another has begun
Parts      sealed logs are combined by survey and epoch, in the order of ids, each id once: of repeats, the smallest
           answers. Rows that are numerous or old enough become a part, and so does all of a closed epoch, and
           everything when the store is closed. The rest waits, in the order of ids, for more rows: a small part would
           show when its rows came
Switch     new files have hidden names until one transaction of the database replaces the old ones by them; renaming
           and removing files is repeated after a crash
Deleting   a report that its sender deletes is erased wherever it lies on this node, or was moved to. All reports of a
           survey with `delete_days` are erased some hours before that time is over, tallied or not
Elsewhere  with "?to=" finished parts move to another place, which never sees anything else
Nodes      share nothing. A submission that two of them took is counted once when their parts are tallied together
           (`deniable tally --dedupe`), so a node has no sums: requests for them are refused and say what to run
Database   surveys, tokens, the states of epochs, and the list of parts lie in a small SQLite file. The number of
           submissions of an epoch is that of the rows that this node has taken, repeats included, as of the last
           `tidy`

directory/control.db                                    the database
directory/segments/                                     logs, sealed logs, and the rest that waits
directory/parts/FINGERPRINT/survey.json                 the first argument of `deniable tally`
directory/parts/FINGERPRINT/reports/epoch-N/*.parquet   its next arguments
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deniable._extras import require
from deniable._files import atomic_path, sync_directory
from deniable.collect.stores.base import (
    CLOSED,
    OPEN,
    Added,
    Batch,
    CountedElsewhere,
    Epoch,
    Rejections,
    StorageFull,
    StoreError,
    SurveyDeleted,
)
from deniable.collect.stores.batches import (
    BatchResults,
    Blocks,
    EpochGroup,
    Flags,
    StoredSurvey,
    found,
    grouped,
    joined,
    keys,
)
from deniable.collect.stores.sql import check_software
from deniable.collect.stores.sqlite import SqliteStore
from deniable.collect.wire import CONFLICT, ID_BYTES
from deniable.errors import DeniableError, ReportError, SpecError
from deniable.files.places import Source, below, filesystem, is_url, opened, plain, said_of, shown, written
from deniable.files.reports import ID, Layout, as_bytes, read_batches, report_writer
from deniable.protocols.reports import Bytes
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.terms import LAST_EPOCH

LOG_BYTES = 1 << 25
"""A log of this size is sealed by its writer."""
T = TypeVar("T")

AT_ONCE = 1 << 25
"""Maximum number of bytes of sealed logs that are combined at once."""
PART_BYTES = 1 << 24
"""This many bytes of rows become a part at once."""
PART_SECONDS = 600.0
PART_ROWS = 1000
"""After this many seconds, this many rows are enough for a part."""
DAY = 86_400
ELSEWHERE_SECONDS = 60.0
"""Maximum seconds to move a part to another place, and for any other request to that place."""
EARLIER = 6 * 3600
"""Reports are deleted this many seconds before the survey promises it: a clock may be in doubt for an hour."""

MAGIC = b"deniable log 1\n"
_FRAME = struct.Struct("<II")
"""Length and checksum."""
_RUN = struct.Struct("<32sIII")
"""Survey, epoch, number of submissions, bytes of their answers; then id and answers of each."""
_LOG, _SEALED, _REST, _DAMAGED = ".log", ".sealed", ".rest", ".damaged"
_ELSEWHERE = "elsewhere:"

_TABLES = """
    CREATE TABLE part (
        name TEXT PRIMARY KEY, survey INTEGER NOT NULL, epoch INTEGER NOT NULL, n INTEGER NOT NULL,
        made INTEGER NOT NULL, sent INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE move (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID;
    CREATE TABLE erased (
        survey INTEGER NOT NULL, epoch INTEGER NOT NULL, id BLOB NOT NULL, done INTEGER NOT NULL,
        PRIMARY KEY (survey, epoch, id)
    ) WITHOUT ROWID
"""

Rows = dict[tuple[str, int], list[Bytes]]
"""By survey and epoch: rows of id and answers."""


# -- logs -------------------------------------------------------------------------------------------------


class SegmentLog:
    """A file to which frames are appended until somebody seals it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{secrets.token_hex(8)}{_LOG}"
        self._file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            _write_all(self._file, MAGIC)
            sync_directory(folder)
        except OSError:
            self.close()
            raise
        self._size = len(MAGIC)

    def append(self, content: bytes) -> bool:
        """Add a frame and return once it is on the disk; False if the log is sealed. After an error it is unusable."""
        with _locked(self._file):
            if not self.path.exists():
                return False
            _write_all(self._file, framed(content))
            os.fdatasync(self._file)
            self._size += _FRAME.size + len(content)
            if self._size >= LOG_BYTES:
                _rename(self.path, self.path.with_suffix(_SEALED))
        return True

    def close(self) -> None:
        os.close(self._file)


def seal(log: Path) -> None:
    """Prevent all further appends to a log; waits for an append in progress."""
    with suppress(FileNotFoundError):
        file = os.open(log, os.O_RDONLY)
        try:
            with _locked(file):
                _rename(log, log.with_suffix(_SEALED))
        finally:
            os.close(file)


def framed(content: bytes) -> bytes:
    return _FRAME.pack(len(content), zlib.crc32(content)) + content


def frames(log: Path) -> Iterator[bytes]:
    """The frames of a log, without one that was cut off at its end. Raises StoreError for damage before that."""
    raw = log.read_bytes()
    at = len(MAGIC)
    if raw[:at] != MAGIC[: len(raw)]:
        raise StoreError(f"{str(log)!r} is not a log of submissions: move it elsewhere")
    while len(raw) - at >= _FRAME.size:
        length, checksum = _FRAME.unpack_from(raw, at)
        end = at + _FRAME.size + length
        content = raw[at + _FRAME.size : end]
        if length == 0 or end > len(raw):
            return
        if zlib.crc32(content) != checksum:
            if end == len(raw):
                return
            raise StoreError(
                f"the log {log.stem} in {str(log.parent)!r} is damaged at byte {at} and not counted: what was "
                "acknowledged may be lost; look at the disk, restore the file from a copy, or remove it"
            )
        yield content
        at = end


def run_of(survey: str, epoch: int, rows: Bytes) -> bytes:
    """Submissions in the form of a frame."""
    return _RUN.pack(bytes.fromhex(survey), epoch, len(rows), rows.shape[1] - ID_BYTES) + rows.tobytes()


def runs(content: bytes) -> Iterator[tuple[str, int, Bytes]]:
    """Survey, epoch and rows, the inverse of `run_of`."""
    at = 0
    while at < len(content):
        survey, epoch, n, width = _RUN.unpack_from(content, at)
        at += _RUN.size
        size = n * (ID_BYTES + width)
        yield survey.hex(), epoch, np.frombuffer(content, np.uint8, size, at).reshape(n, -1)
        at += size


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


@contextmanager
def _locked(file: int, wait: bool = True) -> Iterator[bool]:
    """The file's lock, against threads and processes alike; False if it is not free and `wait` is not set."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _rename(old: Path, new: Path) -> None:
    os.rename(old, new)
    sync_directory(new.parent)


def _make_folder(folder: Path) -> None:
    """Create a directory, and those above it, so that they survive a power loss."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        sync_directory(folder.parent)


# -- the store --------------------------------------------------------------------------------------------


@dataclass
class _Changes:
    """What one round of finishing writes into the database."""

    moves: dict[str, str | None]
    """From hidden names to names; None: the file is removed."""
    parts: list[tuple[str, StoredSurvey, int, int]]
    taken: list[tuple[StoredSurvey, int, int, int, int]]
    """Survey, epoch, submissions, those with an id that was already there, and those of them with other answers."""


class _UndeliveredError(StoreError):
    """Finished parts could not be moved to the other place."""


class SegmentStore(SqliteStore):
    """The store in a directory, which is created if it is new."""

    has_sums = False

    def __init__(self, directory: str | Path, to: str | None = None, shard: int = 0, read_only: bool = False) -> None:
        if os.name != "posix":
            raise StoreError("a store of files needs locks that only Unix has: use sqlite:///name.db")
        require("pyarrow", "files")
        self._directory = Path(directory)
        self._segments, self._parts = self._directory / "segments", self._directory / "parts"
        self._to = to
        self._log: SegmentLog | None = None
        self._told: set[str] = set()
        try:
            for folder in (self._segments, self._parts) if not read_only else ():
                _make_folder(folder)
        except OSError as error:
            raise StoreError(f"{str(directory)!r} cannot be a store of files: {error.strerror}") from None
        super().__init__(self._directory / "control.db", shard, read_only)

    def _prepare(self) -> None:
        super()._prepare()
        if "part" not in self._tables():
            with self._writing():
                if "part" not in self._tables():
                    for statement in _TABLES.split(";"):
                        self._query(statement)

    # -- surveys -----------------------------------------------------------------------------------

    def publish(self, survey: Survey) -> bool:
        if survey.terms is not None and survey.terms.collectors:
            raise SpecError("a store of files keeps no shares of several collectors: use sqlite:/// or postgresql://")
        if survey.terms is not None and survey.terms.retention == "tally" and survey.terms.delete_days is None:
            raise SpecError(
                'this survey says that no report is kept once it is counted (retention "tally"), and a store of files '
                'keeps reports until they are tallied: say in the survey when they are deleted ("delete_days": 7), '
                'give it the retention "reports", or publish it in another store'
            )
        Layout(survey).check_ids()
        new = super().publish(survey)
        folder = self._parts / survey.fingerprint
        _make_folder(folder)
        survey.save(folder / "survey.json")
        return new

    # -- ingest ------------------------------------------------------------------------------------

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        check_software(self._versions())
        results, content = BatchResults(batches), []
        for name, _, _ in rejected or {}:
            self._known(name)
        for group in grouped(batches):
            entry = self._known(group.survey)
            if entry is None or self._is_closed(entry, group.epoch):
                results.closed(group)
                continue
            _refuse_malformed(entry, group)
            results.counted(group, np.ones(len(group), dtype=np.bool_), {})
            if len(group):
                content.append(run_of(group.survey, group.epoch, np.concatenate([group.ids, group.answers], axis=1)))
        if content:
            self._append(b"".join(content))
        # Last: if it fails, the same submissions come again, which is harmless.
        if rejected:
            super().add([], rejected)
        return results.added

    def _is_closed(self, entry: StoredSurvey, epoch: int) -> bool:
        join = "survey s LEFT JOIN epoch e ON e.survey = s.key AND e.epoch = ?"
        ((survey, state),) = self._query(f"SELECT s.state, e.state FROM {join} WHERE s.key = ?", epoch, entry.key)
        return bool(survey != OPEN or state == CLOSED)

    def _append(self, content: bytes) -> None:
        try:
            for _ in range(2):
                if self._log is None:
                    self._log = SegmentLog(self._segments)
                if self._log.append(content):
                    return
                self._forget_log()
            raise StoreError(f"the logs in {str(self._segments)!r} are sealed faster than they are written")
        except OSError as error:
            # It is unknown how much of it is on the disk: nothing may follow it in this file.
            self._forget_log()
            raise self._failed(error) from None

    def _forget_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with suppress(OSError):
                log.close()

    def _failed(self, error: OSError | ReportError) -> StoreError:
        where, number = repr(str(self._directory)), getattr(error, "errno", None)
        if number in (errno.ENOSPC, errno.EDQUOT):
            return StorageFull(f"the disk of {where} is full: nothing of this was acknowledged; make room on it")
        # The other filesystem's errors have a sentence but no number or name.
        if number is None or is_url(str(getattr(error, "filename", ""))):
            where = repr(shown(self._to or str(self._directory)))
        failure = StoreError(f"the store of files {where} cannot be written: {_reason(error)}")
        failure.code = _code(error)
        return failure

    # -- from logs to parts ------------------------------------------------------------------------

    def tidy(self) -> bool:
        """Seal the logs and sort their rows by id; make and move the parts that are due."""
        done = super().tidy()
        try:
            with self._alone(wait=False) as alone:
                if alone:
                    self._finish()
                    self._deliver()
        except (OSError, ReportError) as error:
            raise self._failed(error) from None
        return done

    @contextmanager
    def _alone(self, wait: bool) -> Iterator[bool]:
        """Whether no other process finishes logs of this directory; ingest goes on."""
        file = os.open(self._directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            with _locked(file, wait) as alone:
                yield alone
        finally:
            os.close(file)

    def _finish(self, everything: bool = False) -> None:
        self._complete()
        for log in sorted(self._segments.glob(f"*{_LOG}")):
            seal(log)
        rest = sorted(self._segments.glob(f"*{_REST}"))
        damaged = list[StoreError]()
        while sealed := _some(sorted(self._segments.glob(f"*{_SEALED}"))):
            self._put_together(rest, sealed, everything, damaged)
            rest = sorted(self._segments.glob(f"*{_REST}"))
        if rest:
            self._put_together(rest, [], everything, damaged)
        if damaged:
            raise damaged[0]

    def _complete(self) -> None:
        """Finish what the database records as done, and remove files that it does not know."""
        moves = self._query("SELECT old, new FROM move")
        folders = set()
        for old, new in moves:
            path = self._directory / old
            if new is None:
                continue
            folders.add(path.parent)
            with suppress(FileNotFoundError):
                os.rename(path, self._directory / new)
        for folder in folders:
            sync_directory(folder)
        for old, new in moves:
            if new is None:
                self._remove(old)
        if moves:
            sync_directory(self._segments)
            with self._writing():
                for old, _ in moves:
                    self._query("DELETE FROM move WHERE old = ?", old)
        for hidden in [*self._segments.glob(".*"), *self._parts.glob("*/reports/*/.*")]:
            hidden.unlink(missing_ok=True)
        self._erase_deleted()

    def _remove(self, old: str) -> None:
        if not old.startswith(_ELSEWHERE):
            (self._directory / old).unlink(missing_ok=True)
            return
        place = self._elsewhere(old.removeprefix(_ELSEWHERE))

        def delete() -> None:
            files, path = filesystem(place)
            if files.get_file_info(path).is_file:
                files.delete_file(path)

        _timed(place, delete)

    def _put_together(self, rest: list[Path], sealed: list[Path], everything: bool, damaged: list[StoreError]) -> None:
        waiting, coming = self._read(rest, damaged), self._read(sealed, damaged)
        moves: dict[str, str | None] = {self._relative(path): None for path in (*rest, *sealed) if path.exists()}
        changes, left, same = _Changes(moves, [], []), list[bytes](), not sealed
        for survey, epoch in sorted({*waiting, *coming}):
            entry = self._known_entry(survey)
            # Rows in transit are dropped if their survey or reports were deleted meanwhile.
            if entry is None or self._is_dropped(entry, epoch):
                same = False
                continue
            arrived = coming.get((survey, epoch), [])
            rows = np.concatenate([*waiting.get((survey, epoch), []), *arrived])
            (group,) = grouped([Batch(survey, epoch, rows[:, :ID_BYTES], rows[:, ID_BYTES:])])
            taken = sum(map(len, arrived))
            changes.taken.append((entry, epoch, taken, len(rows) - len(group), len(group.conflicts)))
            keep = ~found(self._erased(entry, epoch), keys(group.ids))
            if not keep.any():
                same = False
            elif everything or self._is_due(entry, epoch, int(keep.sum())):
                self._make_part(entry, group, keep, changes)
                same = False
            else:
                same = same and bool(keep.all())
                kept = np.concatenate([group.ids[keep], group.answers[keep]], axis=1)
                left.append(run_of(survey, epoch, kept))
        if same:
            return
        if left:
            name = f"{secrets.token_hex(8)}{_REST}"
            with atomic_path(self._segments / f".{name}", private=True) as partial:
                partial.write_bytes(MAGIC + b"".join(map(framed, left)))
            moves[f"segments/.{name}"] = f"segments/{name}"
        self._record(changes)
        self._complete()

    def _read(self, logs: list[Path], damaged: list[StoreError]) -> Rows:
        """The rows of logs; damaged logs are set aside."""
        rows: Rows = {}
        for log in logs:
            try:
                contents = list(frames(log))
            except StoreError as error:
                damaged.append(error)
                _rename(log, log.with_suffix(_DAMAGED))
                continue
            for survey, epoch, some in (run for content in contents for run in runs(content)):
                rows.setdefault((survey, epoch), []).append(some)
        return rows

    def _known_entry(self, survey: str) -> StoredSurvey | None:
        """None for a deleted survey. A database that fails raises its error; otherwise rows would be lost."""
        with suppress(SurveyDeleted):
            return self._entry(survey)
        return None

    def _is_dropped(self, entry: StoredSurvey, epoch: int) -> bool:
        select = "SELECT 1 FROM epoch WHERE survey = ? AND epoch = ? AND dropped = 1"
        return bool(self._query(select, entry.key, epoch))

    def _erased(self, entry: StoredSurvey, epoch: int) -> Any:
        """Ids of deleted reports, ascending."""
        select = "SELECT id FROM erased WHERE survey = ? AND epoch = ? ORDER BY id"
        return keys(joined([id for (id,) in self._query(select, entry.key, epoch)], ID_BYTES))

    def _is_due(self, entry: StoredSurvey, epoch: int, n: int) -> bool:
        if self._is_closed(entry, epoch) or n * (ID_BYTES + entry.counter.width) >= PART_BYTES:
            return True
        ((made,),) = self._query("SELECT MAX(made) FROM part WHERE survey = ? AND epoch = ?", entry.key, epoch)
        return n >= PART_ROWS and not 0 <= time.time() - (made or 0) < PART_SECONDS

    def _make_part(self, entry: StoredSurvey, group: EpochGroup, keep: Flags, changes: _Changes) -> None:
        """Write a part under its hidden name."""
        name, survey = f"{secrets.token_hex(8)}.parquet", entry.survey
        folder = self._parts / survey.fingerprint / "reports" / f"epoch-{group.epoch}"
        _make_folder(folder)
        with report_writer(folder / f".{name}", survey, ids=True, epoch=group.epoch) as writer:
            writer.write(_columns(entry, group.ids[keep], group.answers[keep]))
        where = self._relative(folder)
        changes.moves[f"{where}/.{name}"] = f"{where}/{name}"
        changes.parts.append((f"{where}/{name}", entry, group.epoch, int(keep.sum())))

    def _record(self, changes: _Changes) -> None:
        """The transaction after which the new files count and the old do not."""
        with self._writing():
            for old, new in changes.moves.items():
                self._query("INSERT INTO move VALUES (?, ?)", old, new)
            for name, entry, epoch, n in changes.parts:
                self._query("INSERT INTO part VALUES (?, ?, ?, ?, ?, 0)", name, entry.key, epoch, n, int(time.time()))
            refused: dict[tuple[int, int, str], int] = {}
            for entry, epoch, n, duplicates, conflicts in changes.taken:
                if n:
                    insert = "INSERT INTO epoch VALUES (?, ?, ?, NULL, NULL, 0, 0) ON CONFLICT DO NOTHING"
                    self._query(insert, entry.key, epoch, OPEN)
                    self._increase(entry, epoch, Blocks.of(entry.zero()), n)
                if duplicates:
                    self._add_duplicates(entry, duplicates)
                if conflicts:
                    place = entry.key, int(time.time()) // DAY, CONFLICT
                    refused[place] = refused.get(place, 0) + conflicts
            self._add_rejections(refused)

    def _deliver(self) -> None:
        """Move finished parts to the other place; those that cannot be moved wait here."""
        self.trouble = None
        try:
            self._move_parts()
        except (OSError, ReportError) as error:
            failed = self._failed(error)
            self.trouble = str(failed)
            undelivered = _UndeliveredError(self.trouble)
            undelivered.code = failed.code
            raise undelivered from None

    def _move_parts(self) -> None:
        if self._to is None:
            return
        for (name,) in self._query("SELECT name FROM part WHERE sent = 0"):
            survey = name.split("/")[1]
            if survey not in self._told:
                self._copy_to_place(f"parts/{survey}/survey.json")
                self._told.add(survey)
            self._copy_to_place(name)
            with self._writing():
                self._query("UPDATE part SET sent = 1 WHERE name = ?", name)
                self._query("INSERT INTO move VALUES (?, NULL)", name)
            self._complete()

    def _copy_to_place(self, name: str) -> None:
        target = self._elsewhere(name)
        if not is_url(target):
            _make_folder(Path(target).parent)

        def copy() -> None:
            with open(self._directory / name, "rb") as part, written(target) as other:
                shutil.copyfileobj(part, other)

        _timed(target, copy)

    def _elsewhere(self, name: str) -> str:
        assert self._to is not None
        relative = name.removeprefix("parts/")
        return below(self._to, relative) if is_url(plain(self._to)) else os.path.join(plain(self._to), relative)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._directory).as_posix()

    # -- deleting ----------------------------------------------------------------------------------

    def delete(self, fingerprint: str, id: bytes) -> bool:
        entry = self._entry(fingerprint)
        if not entry.keeps:
            return False
        try:
            with self._alone(wait=True):
                self._finish()
                for one in self.epochs(fingerprint):
                    if one.state == OPEN and self._is_held(entry, one.epoch, id):
                        with self._writing():
                            self._query("INSERT INTO erased VALUES (?, ?, ?, 0)", entry.key, one.epoch, id)
                            self._increase(entry, one.epoch, Blocks.of(entry.zero()), -1, 1)
                        self._finish()
                        return True
        except (OSError, ReportError) as error:
            raise self._failed(error) from None
        return False

    def _is_held(self, entry: StoredSurvey, epoch: int, id: bytes) -> bool:
        """Whether this node has a report of this id that was not deleted; the logs are empty now."""
        if found(self._erased(entry, epoch), keys(joined([id], ID_BYTES))).any():
            return False
        waiting = self._read(sorted(self._segments.glob(f"*{_REST}")), []).get((entry.survey.fingerprint, epoch), [])
        if any(found(keys(rows[:, :ID_BYTES]), keys(joined([id], ID_BYTES))).any() for rows in waiting):
            return True
        return any(self._holds(name, sent, id) for name, _, sent in self._parts_of(entry, epoch))

    def _parts_of(self, entry: StoredSurvey, epoch: int) -> list[tuple[str, int, int]]:
        """Name, number of rows, and whether it is elsewhere."""
        return self._query("SELECT name, n, sent FROM part WHERE survey = ? AND epoch = ?", entry.key, epoch)

    def _place(self, name: str, sent: int) -> str:
        return self._elsewhere(name) if sent else str(self._directory / name)

    def _holds(self, name: str, sent: int, id: bytes) -> bool:
        """Whether a part has a row of this id; reads only the row groups whose range of ids includes it."""
        place = self._place(name, sent)
        return _timed(place, lambda: _has_row(place, id))

    def _erase_deleted(self) -> None:
        """Rewrite the parts that hold deleted reports."""
        for key, epoch, id in self._query("SELECT survey, epoch, id FROM erased WHERE done = 0"):
            ((canonical,),) = self._query("SELECT canonical FROM survey WHERE key = ?", key)
            if not canonical:
                continue  # the survey was deleted, and its parts go with the next sweep
            entry = StoredSurvey.read(key, canonical)
            for name, n, sent in self._parts_of(entry, epoch):
                if self._holds(name, sent, id):
                    place = self._place(name, sent)
                    _timed(place, partial(_write_without, place, entry.survey, epoch, id))
                    with self._writing():
                        self._query("UPDATE part SET n = ? WHERE name = ?", n - 1, name)
            with self._writing():
                self._query("UPDATE erased SET done = 1 WHERE survey = ? AND epoch = ? AND id = ?", key, epoch, id)

    def drop_reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> int:
        self._finish_alone()
        entry, most = self._entry(fingerprint), LAST_EPOCH if last is None else last
        # Not the number of submissions, which includes repeats.
        kept = "SELECT COALESCE(SUM(n), 0) FROM part WHERE survey = ? AND epoch BETWEEN ? AND ?"
        ((dropped,),) = self._query(kept, entry.key, first, most)
        super().drop_reports(fingerprint, first, last)
        self._finish_alone()
        return int(dropped)

    def delete_survey(self, fingerprint: str) -> None:
        super().delete_survey(fingerprint)
        folder = f"parts/{fingerprint}"
        with self._writing():
            for place in ("", *([_ELSEWHERE] if self._to is not None else [])):
                self._query("INSERT OR REPLACE INTO move VALUES (?, NULL)", f"{place}{folder}/survey.json")
        self._finish_alone()
        shutil.rmtree(self._directory / folder, ignore_errors=True)

    def _keeps(self, entry: StoredSurvey) -> bool:
        return True

    def close_epoch(self, fingerprint: str, epoch: int, forget: float | None = None) -> Epoch:
        closed = super().close_epoch(fingerprint, epoch, forget)
        # The last part of the epoch, even if another process was finishing logs meanwhile.
        with suppress(_UndeliveredError):
            self._finish_alone()
        return closed

    def _sweep(self) -> None:
        with suppress(_UndeliveredError):
            super()._sweep()

    def _finish_alone(self) -> None:
        try:
            with self._alone(wait=True):
                self._finish()
                self._deliver()
        except (OSError, ReportError) as error:
            raise self._failed(error) from None

    def forget_ids(self, now: float) -> None:
        """Also delete the reports of closed epochs whose survey promises their deletion by now."""
        super().forget_ids(now)
        for published in self.surveys():
            entry = self._entry(published.fingerprint)
            terms = entry.survey.terms
            if terms is None or terms.delete_days is None:
                continue
            for one in self.epochs(published.fingerprint):
                due = terms.ends(one.epoch) + terms.delete_days * DAY - EARLIER
                if one.state == CLOSED and now >= due and self._parts_of(entry, one.epoch):
                    self.drop_reports(published.fingerprint, one.epoch, one.epoch)

    def _left(self, table: str) -> str:
        if table == "seen" or "part" not in self._tables():
            return super()._left(table)
        return "(" + " OR ".join(super(SegmentStore, self)._left(own) for own in ("part", "erased")) + ")"

    def _drop(self, table: str, key: int, epoch: int) -> None:
        """Forget the parts of an epoch; their files go with the next `tidy`."""
        if table == "seen":
            super()._drop(table, key, epoch)
            return
        with self._writing():
            for name, sent in self._query("SELECT name, sent FROM part WHERE survey = ? AND epoch = ?", key, epoch):
                self._query("INSERT OR REPLACE INTO move VALUES (?, NULL)", f"{_ELSEWHERE if sent else ''}{name}")
            for own in ("part", "erased"):
                self._query(f"DELETE FROM {own} WHERE survey = ? AND epoch = ?", key, epoch)

    # -- reading -----------------------------------------------------------------------------------

    def epochs(self, fingerprint: str) -> list[Epoch]:
        # There are no sums here, so there is no hash to show.
        return [replace(one, sha256=None) for one in super().epochs(fingerprint)]

    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        raise self._counted_elsewhere(fingerprint)

    def reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        raise self._counted_elsewhere(fingerprint)

    def _counted_elsewhere(self, fingerprint: str) -> CountedElsewhere:
        self._entry(fingerprint)
        survey, reports = (self._shown(f"parts/{fingerprint}/{name}") for name in ("survey.json", "reports"))
        return CountedElsewhere(
            "this node writes reports to files and has no sums, as other nodes may have the rest of the survey: run "
            f"deniable tally {survey} {reports} --dedupe -o tally.json over the parts of all nodes"
        )

    def _shown(self, name: str) -> str:
        return shown(self._elsewhere(name)) if self._to is not None else str(self._directory / name)

    # -- care --------------------------------------------------------------------------------------

    def check(self, deep: bool = True) -> list[str]:
        """Logs that cannot be read, and parts that are missing, damaged or of the wrong length."""
        wrong = self._damage(deep)
        for log in sorted(self._segments.glob("[!.]*")):
            try:
                for content in frames(log):
                    list(runs(content))
            except FileNotFoundError:
                continue  # it was finished meanwhile
            except (StoreError, struct.error, ValueError) as error:
                wrong.append(str(error) if isinstance(error, StoreError) else f"{str(log)!r} is damaged")
        for published in self.surveys():
            entry = self._entry(published.fingerprint)
            for epoch in self.epochs(published.fingerprint):
                for name, n, sent in self._parts_of(entry, epoch.epoch):
                    wrong += self._wrong_part(entry, name, n, sent, deep)
        return wrong + self._wrong_place()

    def _wrong_place(self) -> list[str]:
        """Why parts cannot be moved to the other place, if they should be."""
        to = self._to
        if to is None or not is_url(plain(to)):
            return []

        def look() -> bool:
            files, path = filesystem(to)
            # A bucket is never created by writing; folders below it are.
            return bool(files.get_file_info(path.partition("/")[0]).type.value)

        try:
            if _timed(to, look):
                return []
            why = "it is not there"
        except (OSError, ReportError) as error:
            why = _reason(error)
        ((waiting,),) = self._query("SELECT COUNT(*) FROM part WHERE sent = 0")
        return [f"{waiting} parts wait to be moved to {shown(to)!r}, which cannot be used: {why}"]

    def _wrong_part(self, entry: StoredSurvey, name: str, n: int, sent: int, deep: bool) -> list[str]:
        place = self._place(name, sent)
        if sent and not deep:
            return []
        try:
            rows = _timed(place, lambda: _rows_of(place, entry.survey)) if deep else n
        except (OSError, DeniableError) as error:
            return [f"the part {shown(place)!r} cannot be read: {error}"]
        return [] if rows == n else [f"the part {shown(place)!r} has {rows} reports, not {n}"]

    def backup(self, path: Path) -> None:
        raise StoreError(
            f"a copy of this store is a copy of its directory {str(self._directory)!r}: stop the service, and copy it; "
            "parts never change once they are there, and can be copied at any time"
        )

    def impatient(self) -> AbstractContextManager[None]:
        # A change here takes several transactions, so it is not restarted; and none holds the database for long.
        return nullcontext()

    def size(self) -> int:
        files = (path for folder in (self._segments, self._parts) for path in folder.rglob("*"))
        return super().size() + sum(_size(path) for path in files)

    def close(self) -> None:
        """Make parts of everything, if this store took submissions."""
        if self._log is not None:
            self._forget_log()
            # What is not done now is done after the next start.
            with suppress(OSError, DeniableError), self._alone(wait=True):
                self._finish(everything=True)
                self._deliver()
        super().close()


def _timed(place: str, job: Callable[[], T]) -> T:
    """The result of a job on a file, within `ELSEWHERE_SECONDS` if that is elsewhere; errors as in `said_of`."""
    if not is_url(plain(place)):
        return job()
    # A library that does not return keeps its thread, and nobody waits for it.
    asked: Future[T] = Future()

    def work() -> None:
        try:
            with said_of(place):
                asked.set_result(job())
        except BaseException as wrong:
            asked.set_exception(wrong)

    threading.Thread(target=work, name="elsewhere", daemon=True).start()
    try:
        return asked.result(ELSEWHERE_SECONDS)
    except TimeoutError:
        if asked.done():
            raise
        late = f"it does not answer within {ELSEWHERE_SECONDS:g} seconds"
        raise OSError(errno.ETIMEDOUT, late, shown(place)) from None


def _reason(error: OSError | ReportError) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _code(error: OSError | ReportError) -> str:
    """For logs, which quote no messages: the name that the system or the object store gives the error."""
    number = getattr(error, "errno", None)
    if number is not None:
        return errno.errorcode.get(number, str(number))
    found = re.search(r"AWS Error ([A-Z_]+)|HTTP status ([0-9]{3})", str(error))
    return next(filter(None, found.groups())) if found else type(error).__name__


def _has_row(place: str, id: bytes) -> bool:
    with closing(Source.open(place)) as source, opened(source) as file:
        for number in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(number).column(0).statistics
            if facts is not None and facts.has_min_max and not facts.min <= id <= facts.max:
                continue
            column = file.read_row_group(number, columns=[ID]).column(0).combine_chunks()
            if found(keys(as_bytes(column, ID, 0, source.name)), keys(joined([id], ID_BYTES))).any():
                return True
    return False


def _write_without(place: str, survey: Survey, epoch: int, id: bytes) -> None:
    batches = list(read_batches(place, survey, ids=True))
    with report_writer(place, survey, ids=True, epoch=epoch) as writer:
        for batch in batches:
            other = (batch[ID] != np.frombuffer(id, np.uint8)).any(axis=1)
            writer.write({column: rows[other] for column, rows in batch.items()})


def _rows_of(place: str, survey: Survey) -> int:
    with closing(Source.open(place)) as source:
        return sum(len(batch[ID]) for batch in read_batches(source, survey, ids=True))


def _some(logs: list[Path]) -> list[Path]:
    """The first of these, as many as are combined at once, and at least one if there is one."""
    chosen, size = list[Path](), 0
    for log in logs:
        size += _size(log)
        if chosen and size > AT_ONCE:
            break
        chosen.append(log)
    return chosen


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _columns(entry: StoredSurvey, ids: Bytes, answers: Bytes) -> Mapping[str, Bytes]:
    return {ID: ids} | {part.id: answers[:, part.bytes] for part in entry.counter.parts}


def _refuse_malformed(entry: StoredSurvey, group: EpochGroup) -> None:
    """One malformed report would make a whole part useless."""
    for part in entry.counter.parts:
        if not part.protocol.valid(np.ascontiguousarray(group.answers[:, part.bytes])).all():
            raise ReportError(
                f"a submission has bytes that are not a report of question {part.id!r}: nothing was stored"
            )
