"""The ledger of a device: what it has answered, what that has cost, and what still has to be sent.

Order      one transaction checks the caps and writes the debit, the final bytes and their id; only what is committed
           may leave. A crash before the commit has debited nothing; after it, the same bytes are sent, never new ones
Caps       at most one submission an epoch of a survey, at most `epochs` of them, and at most the lifetime epsilon of
           the budget group over all its surveys; the smallest cap that any of them named counts
Debit      the survey's epsilon for each of the first `draws` submissions, then nothing. The k-th submission can hold
           at most k different values, so this is never less than what was drawn, and it does not depend on values
Refusals   come before the answers are looked at: whether a device answers depends on the calendar and on its past
           participation only, so that silence says nothing
Clock      an epoch is answered once, whichever way the clock moves; a clock that goes back may fill an epoch that was
           left out, within the same caps
Answers    are drawn from the system's generator, and no key is kept that would give a report again. While a submission
           waits, the file tells no more than its bytes do; once it is settled they are erased, and the file tells
           nothing of it. The id is keyed for each survey, and the key of a past epoch is erased (`report_ids`)
Memoized   the device must know its own answer to repeat its report: value and report are in the file, in the clear
Leaving    opting out deletes what only that survey needs (memos, key, waiting bytes, the survey's own bytes), and
           withdrawing does so for all and erases the ids as well. The debits and the list of answered epochs stay, or
           coming back would begin a second lifetime
Restored   a ledger that was put back from a copy gives the same ids, but draws again: what was answered since the copy
           and is answered again counts once, although a second sample has left, which costs up to another epsilon each.
           Debits made since the copy are forgotten with it
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.collect import wire
from deniable.collect.client import rows
from deniable.collect.client.answers import check_questions, checked
from deniable.collect.client.database import transaction
from deniable.collect.client.errors import LedgerError, OptedOut, check_fingerprint
from deniable.collect.client.records import (
    DELETED,
    DROPPED,
    OPTED_OUT,
    QUEUED,
    SENT,
    WITHDRAWN,
    OptOuts,
    Spending,
    Submission,
)
from deniable.surveys import Survey
from deniable.surveys.terms import Terms

STEPS = ("begun", "checked", "drawn", "keyed", "written", "committed")
"""Where a test may stop a submission, by setting `Ledger._step`."""


class Ledger:
    """One device's ledger, in the file `path`; safe to use from several threads, processes and forks.

    The file is made by the first thing that has to be written; until then the ledger is empty. Without a path it lies
    where the system keeps a user's data (`default_path`), in a directory that is made for it; the directory of a path
    that is given must be there.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite")
    >>> ledger.submissions(), ledger.budgets(), ledger.exists
    ([], [], False)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path | None = None) -> None:
        # A program that changes its directory keeps its ledger.
        self.path = Path(default_path() if path is None else path).absolute()
        self._makes_folder = path is None
        self._step: Callable[[str], None] = lambda step: None
        self._sound = False

    @property
    def exists(self) -> bool:
        """Whether there is a file; if not, this is a device that has done nothing yet."""
        if os.path.lexists(self.path):
            return True
        if not self._makes_folder and not os.path.isdir(self.path.parent):
            raise LedgerError(f"there is no directory {str(self.path.parent)!r} for a ledger: name another, or make it")
        return False

    @contextmanager
    def _transaction(self, compact: bool = False) -> Iterator[sqlite3.Connection]:
        if not self.exists and self._makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with transaction(self.path, check=not self._sound, compact=compact) as connection:
            self._sound = True
            yield connection

    # -- answering ---------------------------------------------------------------------------------

    def submit(
        self, survey: Survey, epoch: int, answers: Mapping[str, Any], due: float = 0.0
    ) -> tuple[Submission, bool]:
        """Debit, draw and queue an epoch's answers; where the epoch was answered before, what was queued then."""
        terms = survey.terms
        if terms is None:
            raise LedgerError("a survey without terms is not collected: it has neither epochs nor a budget")
        check_questions(survey, answers)
        with self._transaction() as connection:
            self._step("begun")
            if rows.opted_out(connection, survey.fingerprint):
                raise OptedOut
            earlier = rows.submissions(connection, "survey = ? AND epoch = ?", survey.fingerprint, epoch)
            if earlier:
                return earlier[0], False
            debit = rows.debit(connection, survey, terms)
            self._step("checked")
            reports = rows.draw(connection, survey, terms, checked(survey, answers))
            self._step("drawn")
            id = rows.next_id(connection, survey, terms, epoch)
            self._step("keyed")
            body = wire.encode(epoch, id, reports, survey.report_bytes)
            # Until then a service that keeps reports may be asked to delete this one, by its id.
            until = terms.epochs.start(epoch + terms.epochs.late + 1) if terms.retention == "reports" else 0
            made = Submission(survey.fingerprint, epoch, id, body, QUEUED, "", debit, due, float(until))
            rows.write(connection, made, survey, terms)
            self._step("written")
        self._step("committed")
        return made, True

    # -- sending -----------------------------------------------------------------------------------

    def queued(self, survey: str) -> list[Submission]:
        """What is waiting, oldest epoch first; nothing once opted out."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            if rows.opted_out(connection, survey):
                return []
            return rows.submissions(connection, "survey = ? AND state = ?", survey, QUEUED)

    def mark(self, submission: Submission, state: str, reason: str = "") -> None:
        """What became of a queued submission; one that was dropped or withdrawn meanwhile stays so.

        Its bytes are erased, and so is its id where the service keeps no reports.
        """
        which = "survey = ? AND epoch = ? AND id = ?"
        with self._transaction() as connection:
            rows.settle(connection, state, reason, which, submission.survey, submission.epoch, submission.id)

    def mark_deleted(self, submission: Submission, reason: str) -> None:
        """A service has answered for the deletion of this report: nothing is left here to find it by."""
        state = submission.state
        if state == QUEUED:  # it had arrived without a reply, or it never did
            state = SENT if reason == DELETED else DROPPED
        elif state != SENT:
            reason = submission.reason
        with self._transaction() as connection:
            connection.execute(
                "UPDATE submission SET state = ?, reason = ?, id = NULL, body = NULL, due = 0 "
                "WHERE survey = ? AND epoch = ? AND id = ?",
                (state, reason, submission.survey, submission.epoch, submission.id),
            )

    def forget_ids(self, now: float) -> None:
        """Erase the ids of sent reports that a service would not delete any more."""
        if not self.exists:
            return
        with self._transaction() as connection:
            connection.execute("UPDATE submission SET id = NULL WHERE state <> ? AND id_until <= ?", (QUEUED, now))

    # -- surveys -----------------------------------------------------------------------------------

    def pin(self, survey: Survey) -> None:
        """Keep a survey's bytes, so that they are not fetched again."""
        with self._transaction() as connection:
            rows.pin(connection, survey)

    def pinned(self, fingerprint: str) -> bytes | None:
        """A survey's bytes, where they are known."""
        if not self.exists:
            return None
        with self._transaction() as connection:
            row = connection.execute("SELECT canonical FROM survey WHERE fingerprint = ?", (fingerprint,)).fetchone()
            return None if row is None or row[0] is None else bytes(row[0])

    def surveys(self) -> dict[str, str]:
        """The names of all surveys that this device has met, by fingerprint; empty where its bytes are not known."""
        if not self.exists:
            return {}
        with self._transaction() as connection:
            return rows.surveys(connection)

    # -- looking -----------------------------------------------------------------------------------

    def submissions(self, survey: str | None = None) -> list[Submission]:
        """Everything that was ever queued, by survey and epoch."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            if survey is None:
                return rows.submissions(connection, "1")
            return rows.submissions(connection, "survey = ?", survey)

    def remembered(self, survey: str | None = None) -> list[tuple[str, str, int]]:
        """Survey, question and number of the answers that are kept with their reports, to repeat these."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            chosen = "WHERE ?1 IS NULL OR survey = ?1 GROUP BY 1, 2 ORDER BY 1, 2"
            query = f"SELECT survey, question, count(*) FROM memo {chosen}"
            return connection.execute(query, (survey,)).fetchall()

    def budgets(self) -> list[Spending]:
        """The lifetime budget of every owner's group that was ever answered."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            caps = connection.execute("SELECT owner, name, cap FROM budget ORDER BY owner, name").fetchall()
            return [rows.spending(connection, owner, name, rows.amount(cap)) for owner, name, cap in caps]

    def spending(self, terms: Terms) -> Spending:
        """The budget that a survey with these terms draws on."""
        for known in self.budgets():
            if (known.owner, known.group) == (terms.owner, terms.budget.group):
                return replace(known, cap=min(known.cap, terms.budget.epsilon))
        return Spending(terms.owner, terms.budget.group, terms.budget.epsilon)

    # -- leaving -----------------------------------------------------------------------------------

    def opted_out(self, survey: str) -> bool:
        """Whether this device takes no part in a survey."""
        if not self.exists:
            return False
        with self._transaction() as connection:
            return rows.opted_out(connection, survey)

    def opt_outs(self) -> OptOuts:
        """Everything that this device takes no part in."""
        if not self.exists:
            return OptOuts()
        with self._transaction() as connection:
            return rows.opt_outs(connection)

    def opt_out(self, survey: str | None = None) -> None:
        """Take no part any more in this survey, or in any: what waits is dropped, and what only it needs is deleted.

        That is its memos, its key, the waiting bytes and the survey's own bytes. The debits and the list of answered
        epochs stay, and so does the id of a report that a service may still be asked to delete.
        """
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction(compact=True) as connection:
            rows.choose(connection, survey, out=True)
            rows.settle(connection, DROPPED, OPTED_OUT, "(?3 IS NULL OR survey = ?3)", survey)
            rows.forget(connection, survey)

    def opt_in(self, survey: str | None = None) -> None:
        """Take part again, in this survey (whatever was chosen for the others) or in all."""
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction() as connection:
            rows.choose(connection, survey, out=False)

    def withdraw(self) -> None:
        """Delete memos, keys, outbox and ids, and opt out of everything; debits and answered epochs stay."""
        with self._transaction(compact=True) as connection:
            rows.forget(connection, None)
            connection.execute(
                "UPDATE submission SET state = ?, reason = '', id = NULL, body = NULL, due = 0", (WITHDRAWN,)
            )
            rows.choose(connection, None, out=True)


def default_path() -> Path:
    """Where programs keep data on this system."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "deniable" / "ledger.sqlite"
