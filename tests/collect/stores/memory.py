"""A store in memory, of sets and dictionaries: the reference that the tests compare the stores with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

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
    SurveyDeleted,
    Token,
    collected,
    not_reopened,
    refuse_needed,
    refuse_shares,
    still_open,
    unknown,
    why_not_reopened,
)
from deniable.collect.stores.batches import (
    BatchResults,
    Blocks,
    StoredSurvey,
    check_people,
    chunks,
    digest,
    grouped,
    joined,
    keys,
    rows,
    share_sum,
)
from deniable.collect.stores.sql import Row, report_rows
from deniable.collect.stores.sqlite import FileRuns, write_copy
from deniable.collect.wire import ID_BYTES
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.terms import LAST_EPOCH


@dataclass
class _Epoch:
    counts: Counts
    n: int = 0
    deleted: int = 0
    ids: set[bytes] = field(default_factory=set)
    kept: dict[bytes, bytes] = field(default_factory=dict)
    sha256: str | None = None
    forget: int | None = None
    reopened: int = 0
    dropped: bool = False

    @property
    def state(self) -> str:
        return OPEN if self.sha256 is None else CLOSED

    def told(self, epoch: int) -> Epoch:
        return Epoch(epoch, self.state, self.n, self.sha256, self.deleted, self.forget, self.reopened, self.dropped)


@dataclass
class _Survey:
    entry: StoredSurvey
    state: str = OPEN
    epochs: dict[int, _Epoch] = field(default_factory=dict)
    duplicates: int = 0
    rejected: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))

    def epoch(self, epoch: int) -> _Epoch:
        return self.epochs.setdefault(epoch, _Epoch(self.entry.zero()))


class MemoryStore(Store):
    """Gone when the process ends. Every object is a separate store."""

    def __init__(self) -> None:
        self._surveys: dict[str, _Survey] = {}
        self._deleted: dict[str, int] = {}
        """The keys of deleted surveys."""
        self._tokens: dict[str, Token] = {}
        self._time = StoredTime(None, None)

    def _survey(self, fingerprint: str) -> _Survey:
        if fingerprint in self._deleted:
            raise SurveyDeleted(fingerprint)
        if fingerprint not in self._surveys:
            raise unknown(fingerprint)
        return self._surveys[fingerprint]

    # -- surveys -----------------------------------------------------------------------------------

    def publish(self, survey: Survey) -> bool:
        canonical = collected(survey).canonical
        if survey.fingerprint in self._deleted:
            raise SurveyDeleted(survey.fingerprint)
        if survey.fingerprint in self._surveys:
            return False
        key = len(self._surveys) + len(self._deleted) + 1
        self._surveys[survey.fingerprint] = _Survey(StoredSurvey.read(key, canonical))
        return True

    def surveys(self) -> list[Published]:
        return [Published(name, found.entry.survey.canonical, found.state) for name, found in self._surveys.items()]

    def close_survey(self, fingerprint: str) -> None:
        survey = self._survey(fingerprint)
        survey.state = CLOSED
        for epoch in survey.epochs:
            self.close_epoch(fingerprint, epoch)

    def delete_survey(self, fingerprint: str) -> None:
        survey = self._survey(fingerprint)
        refuse_needed(fingerprint, self.surveys())
        self._deleted[fingerprint] = survey.entry.key
        del self._surveys[fingerprint]

    def deleted(self) -> list[str]:
        return sorted(self._deleted)

    # -- ingest ------------------------------------------------------------------------------------

    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        results, changes = BatchResults(batches), []
        refused = [
            (self._survey(name), day, reason, n)
            for (name, day, reason), n in (rejected or {}).items()
            if name not in self._deleted
        ]
        for group in grouped(batches):
            if group.survey in self._deleted:
                results.closed(group)
                continue
            survey = self._survey(group.survey)
            known = survey.epochs.get(group.epoch) or _Epoch(survey.entry.zero())
            if survey.state == CLOSED or known.state == CLOSED:
                results.closed(group)
                continue
            fresh = np.array([id not in known.ids for id in rows(group.ids)], dtype=np.bool_)
            sums = survey.entry.counter.count(group.answers[fresh])
            changes.append((survey, group, fresh, sums, results.counted(group, fresh, known.kept)))
        for survey, group, fresh, sums, duplicates in changes:
            survey.duplicates += duplicates
            if not fresh.any():
                continue
            known = survey.epoch(group.epoch)
            new = rows(group.ids[fresh])
            known.ids.update(new)
            known.n += len(new)
            known.counts = known.counts + sums
            if survey.entry.keeps:
                known.kept.update(zip(new, rows(group.answers[fresh]), strict=True))
        for survey, day, reason, n in refused:
            survey.rejected[day, reason] += n
        return results.added

    def close_epoch(self, fingerprint: str, epoch: int, forget: float | None = None) -> Epoch:
        known = self._survey(fingerprint).epoch(epoch)
        if known.state == OPEN:
            known.sha256 = digest(known.n, known.counts)
            known.forget = None if forget is None else int(forget)
            if forget is None:
                known.ids.clear()
        return known.told(epoch)

    def forget_ids(self, now: float) -> None:
        for survey in self._surveys.values():
            for epoch in survey.epochs.values():
                if epoch.forget is not None and epoch.forget <= int(now):
                    epoch.forget = None
                    epoch.ids.clear()

    def reopen_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        survey = self._survey(fingerprint)
        known = survey.epochs.get(epoch) or _Epoch(survey.entry.zero())
        why = why_not_reopened(survey.state, known.state, known.forget, known.dropped)
        if survey.entry.counter.is_shared:
            why = "its shares are to be added up, or have been"
        if why is not None:
            raise not_reopened(epoch, why)
        known.sha256, known.forget, known.reopened = None, None, known.reopened + 1
        return known.told(epoch)

    def delete(self, fingerprint: str, id: bytes) -> bool:
        survey = self._survey(fingerprint)
        for _, epoch in sorted(survey.epochs.items()):
            if epoch.state == OPEN and id in epoch.kept:
                answers = joined([epoch.kept.pop(id)], survey.entry.counter.width)
                epoch.counts = epoch.counts - survey.entry.counter.count(answers)
                epoch.n, epoch.deleted = epoch.n - 1, epoch.deleted + 1
                return True
        return False

    def drop_reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> int:
        survey, dropped = self._survey(fingerprint), 0
        keeps = survey.entry.keeps and not survey.entry.counter.is_shared
        going = _between(survey, first, last) if keeps else []
        for place, epoch in going:
            if epoch.state == OPEN:
                raise still_open(place)
        for _, epoch in going:
            dropped += len(epoch.kept)
            epoch.kept.clear()
            epoch.ids.clear()
            epoch.forget, epoch.dropped = None, True
        return dropped

    # -- shares ------------------------------------------------------------------------------------

    def shares(self, fingerprint: str, epoch: int) -> Shares:
        known = self._shared(fingerprint).epochs.get(epoch)
        if known is None:
            return Shares(OPEN, 0, joined([], ID_BYTES), np.zeros(0, dtype=np.int64))
        ids = joined(sorted(known.kept), ID_BYTES)
        state = SETTLED if known.dropped else SUMMED if len(ids) == 1 < known.n else known.state
        return Shares(state, known.n, ids, known.counts)

    def leave_out(self, fingerprint: str, epoch: int, ids: Bytes) -> int:
        known = self._waiting(fingerprint, epoch)
        gone = set(rows(ids)) & known.kept.keys()
        for id in gone:
            del known.kept[id]
        known.n, known.deleted = known.n - len(gone), known.deleted + len(gone)
        known.sha256 = digest(known.n, known.counts)
        return len(gone)

    def sum_shares(self, fingerprint: str, epoch: int, digest: bytes, least: int) -> Counts:
        known = self._waiting(fingerprint, epoch)
        width = self._shared(fingerprint).entry.counter.width
        if set(known.kept) != {digest}:
            check_people(joined(sorted(known.kept), ID_BYTES), digest, least)
            known.kept = {digest: share_sum(joined(list(known.kept.values()), width)).astype("<i8").tobytes()}
        return share_sum(joined(list(known.kept.values()), width))

    def settle_shares(self, fingerprint: str, epoch: int, n: int, counts: Counts) -> Epoch:
        known = self._shared(fingerprint).epoch(epoch)
        if known.dropped and (known.n != n or not np.array_equal(known.counts, counts)):
            raise NoShares(f"epoch {epoch} has another result already, which stays")
        if not known.dropped:
            refuse_shares(epoch, known.state)
            known.deleted, known.n, known.counts = known.deleted + known.n - n, n, counts
            known.sha256, known.forget, known.dropped = digest(n, counts), None, True
            known.kept.clear()
            known.ids.clear()
        return known.told(epoch)

    def _shared(self, fingerprint: str) -> _Survey:
        survey = self._survey(fingerprint)
        if not survey.entry.counter.is_shared:
            raise NoShares("this survey has one collector, who gets reports and no shares")
        return survey

    def _waiting(self, fingerprint: str, epoch: int) -> _Epoch:
        known = self._shared(fingerprint).epoch(epoch)
        refuse_shares(epoch, SETTLED if known.dropped else known.state)
        return known

    # -- reading -----------------------------------------------------------------------------------

    def epochs(self, fingerprint: str) -> list[Epoch]:
        known = sorted(self._survey(fingerprint).epochs.items())
        return [epoch.told(place) for place, epoch in known]

    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        survey = self._survey(fingerprint)
        total, n = survey.entry.zero(), 0
        for _, epoch in _between(survey, first, last):
            if epoch.dropped or not survey.entry.counter.is_shared:
                total, n = total + epoch.counts, n + epoch.n
        return survey.entry.counter.tally(n, total)

    def reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        survey = self._survey(fingerprint)
        width = survey.entry.counter.width
        for place, epoch in _between(survey, first, last):
            if epoch.kept:
                ids = sorted(epoch.kept)
                answers = joined([epoch.kept[id] for id in ids], width)
                yield Batch(fingerprint, place, joined(ids, len(ids[0])), answers)

    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        return sorted((day, reason, n) for (day, reason), n in self._survey(fingerprint).rejected.items())

    def duplicates(self, fingerprint: str) -> int:
        return self._survey(fingerprint).duplicates

    # -- tokens ------------------------------------------------------------------------------------

    def add_token(self, token: Token) -> None:
        self._tokens[token.sha256] = token

    def tokens(self) -> list[Token]:
        return sorted(self._tokens.values(), key=lambda token: token.sha256)

    def remove_token(self, sha256: str) -> bool:
        return self._tokens.pop(sha256, None) is not None

    # -- time --------------------------------------------------------------------------------------

    def time(self) -> StoredTime:
        return self._time

    def note_time(self, trusted: float, first: bool = False) -> None:
        if not first or self._time.trusted is None:
            self._time = replace(self._time, trusted=int(trusted))

    def confirm_time(self, time: float) -> None:
        self._time = StoredTime(int(time), int(time))

    # -- care --------------------------------------------------------------------------------------

    def tidy(self) -> bool:
        return True

    def check(self, deep: bool = True) -> list[str]:
        return []

    def backup(self, path: Path) -> None:
        write_copy(path, {table: iter(found) for table, found in self._tables().items()})

    def software(self) -> str:
        return __version__

    def upgrade(self) -> None:
        pass

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _tables(self) -> dict[str, list[Row]]:
        tables: dict[str, list[Row]] = defaultdict(list)
        tables["survey"] = [(key, name, b"", DELETED) for name, key in self._deleted.items()]
        for name, survey in self._surveys.items():
            key = survey.entry.key
            tables["survey"].append((key, name, survey.entry.survey.canonical, survey.state))
            tables["duplicate"].append((key, 0, survey.duplicates))
            for (day, reason), n in survey.rejected.items():
                tables["rejected"].append((key, day, reason, 0, n))
            for place, epoch in survey.epochs.items():
                head = (epoch.state, epoch.sha256, epoch.forget, epoch.reopened, int(epoch.dropped))
                tables["epoch"].append((key, place, *head))
                sums = Blocks.of(epoch.counts)
                for block, raw in zip(sums.places.tolist(), survey.entry.packed(sums), strict=True):
                    numbers = (0, 0) if block else (epoch.n, epoch.deleted)
                    tables["tally"].append((key, place, 0, block, *numbers, raw))
                if epoch.kept:
                    records = [id + raw for id, raw in sorted(epoch.kept.items())]
                    kept = report_rows(bytes(ID_BYTES), 0, joined(records, ID_BYTES + survey.entry.counter.width))
                    tables["report"] += [(key, place, *row) for row in kept]
                ids = keys(joined(sorted(epoch.ids), ID_BYTES))
                tables["seen"] += [(key, place, 1, *chunk) for chunk in chunks(ids, FileRuns.chunk)]
        tables["token"] = [astuple(token) for token in self._tokens.values()]
        noted = {"trusted": self._time.trusted, "confirmed": self._time.confirmed}
        tables["clock"] = [(name, moment) for name, moment in noted.items() if moment is not None]
        return tables


def _between(survey: _Survey, first: int, last: int | None) -> list[tuple[int, _Epoch]]:
    most = LAST_EPOCH if last is None else last
    return [(place, epoch) for place, epoch in sorted(survey.epochs.items()) if first <= place <= most]
