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
Values     are nowhere in the file; a memoized one is known by a keyed digest (`memo`)
Withdrawn  secret, memos, outbox and sent bytes are deleted; the debits and the list of answered epochs stay, or coming
           back would begin a second lifetime
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deniable.collect import wire
from deniable.collect.client import memo, rows, secret
from deniable.collect.client.answers import check_questions, checked
from deniable.collect.client.database import present, transaction
from deniable.collect.client.errors import LedgerError, OptedOut, check_fingerprint
from deniable.collect.client.records import DROPPED, OPTED_OUT, QUEUED, WITHDRAWN, OptOuts, Spending, Submission
from deniable.surveys import Survey
from deniable.surveys.terms import Terms

STEPS = ("begun", "checked", "secret", "drawn", "written", "committed")
"""Where a test may stop a submission, by setting `Ledger._step`."""


class Ledger:
    """One device's ledger, in the file `path`; safe to use from several threads, processes and forks.

    The file is made by the first thing that has to be written; until then the ledger is empty. Without a path it lies
    where the system keeps a user's data (`default_path`), in a directory that is made for it; the directory of a path
    that is given must be there. Beside the file lies the device's secret.

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
        if present(self.path):
            return True
        if not self._makes_folder and not os.path.isdir(self.path.parent):
            raise LedgerError(f"there is no directory {str(self.path.parent)!r} for a ledger: name another, or make it")
        return False

    @property
    def secret_path(self) -> Path:
        return secret.secret_path(self.path)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if not self.exists and self._makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with transaction(self.path, check=not self._sound) as connection:
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
            key = self._secret(connection)
            self._step("secret")
            reports = rows.draw(connection, key, survey, terms, epoch, checked(survey, answers))
            self._step("drawn")
            id = memo.report_id(key, survey.fingerprint, epoch)
            body = wire.encode(epoch, id, reports, survey.report_bytes)
            made = Submission(survey.fingerprint, epoch, id, body, QUEUED, "", debit, due)
            rows.write(connection, made, survey, terms)
            self._step("written")
        self._step("committed")
        return made, True

    def _secret(self, connection: sqlite3.Connection) -> bytes:
        """The secret that belongs to this ledger, made where there has been none."""
        known, withdrawn = connection.execute("SELECT secret_check, withdrawn FROM identity").fetchone()
        key = secret.read(self.secret_path) if secret.exists(self.secret_path) else None
        if known is not None and not withdrawn:
            if key is None:
                raise LedgerError(
                    f"the device's secret {str(self.secret_path)!r} is missing, and the ledger has answers drawn with "
                    "it: restore it, or withdraw"
                )
            if not hmac.compare_digest(_check(key), known):
                raise LedgerError(
                    f"{str(self.secret_path)!r} is not the secret of this ledger: restore it, or withdraw"
                )
            return key
        if key is not None and withdrawn and _check(key) == known:
            secret.destroy(self.secret_path)
            key = None
        # A secret that the ledger does not know is kept: the ledger is an older copy, or a process died in between.
        key = key or secret.create(self.secret_path)
        connection.execute("UPDATE identity SET secret_check = ?, withdrawn = 0", (_check(key),))
        return key

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
        """What became of a queued submission; one that was dropped or withdrawn meanwhile stays so."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE submission SET state = ?, reason = ? WHERE survey = ? AND epoch = ? AND state = ? AND id = ?",
                (state, reason, submission.survey, submission.epoch, QUEUED, submission.id),
            )

    # -- surveys -----------------------------------------------------------------------------------

    def pin(self, survey: Survey) -> None:
        """Keep a survey's bytes, so that they are not fetched again."""
        with self._transaction() as connection:
            row = (survey.fingerprint, survey.canonical)
            connection.execute("INSERT OR REPLACE INTO survey VALUES (?, ?)", row)

    def pinned(self, fingerprint: str) -> bytes | None:
        """A survey's bytes, where they are known."""
        if not self.exists:
            return None
        with self._transaction() as connection:
            row = connection.execute("SELECT canonical FROM survey WHERE fingerprint = ?", (fingerprint,)).fetchone()
            return None if row is None else bytes(row[0])

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

    def budgets(self) -> list[Spending]:
        """The lifetime budget of every group that was ever answered."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            caps = connection.execute("SELECT name, cap FROM budget ORDER BY name").fetchall()
            return [rows.spending(connection, name, rows.amount(cap)) for name, cap in caps]

    def spending(self, terms: Terms) -> Spending:
        """The budget that a survey with these terms draws on."""
        for known in self.budgets():
            if known.group == terms.budget.group:
                return Spending(known.group, min(known.cap, terms.budget.epsilon), known.surveys)
        return Spending(terms.budget.group, terms.budget.epsilon)

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
        """Take no part any more in this survey, or in any; what waits is dropped."""
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction() as connection:
            rows.choose(connection, survey, out=True)
            connection.execute(
                "UPDATE submission SET state = ?, reason = ? WHERE state = ? AND (?4 IS NULL OR survey = ?4)",
                (DROPPED, OPTED_OUT, QUEUED, survey),
            )

    def opt_in(self, survey: str | None = None) -> None:
        """Take part again, in this survey (whatever was chosen for the others) or in all."""
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction() as connection:
            rows.choose(connection, survey, out=False)

    def withdraw(self) -> None:
        """Delete secret, memos, outbox and sent bytes, and opt out of everything; debits stay."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM memo")
            connection.execute(
                "UPDATE submission SET state = ?, reason = '', id = NULL, body = NULL, due = 0", (WITHDRAWN,)
            )
            rows.choose(connection, None, out=True)
            connection.execute("UPDATE identity SET withdrawn = 1, generation = generation + 1")
        self._step("forgotten")
        # A crash before this line leaves a file that the ledger no longer trusts, and that the next use removes.
        secret.destroy(self.secret_path)


def _check(key: bytes) -> bytes:
    """How a ledger knows its secret, without holding it."""
    return hmac.digest(key, b"deniable-ledger-check-v1", "sha256")


def default_path() -> Path:
    """Where programs keep data on this system."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "deniable" / "ledger.sqlite"
