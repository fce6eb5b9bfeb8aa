"""The ledger of a device: what it has answered, what that has cost, and what still has to be sent.

Order      one transaction checks the caps and writes the debit, the final bytes and their id; only what is committed
           may leave. A crash before the commit has debited nothing; after it, the same bytes are sent, never new ones
Caps       at most one submission per epoch of a survey, at most `epochs` of them, and at most the lifetime epsilon and
           delta of the budget group over all its surveys; the smallest cap that any of them named counts
Campaigns  a device answers one round: once a round was answered, another is refused, whatever became of the report.
           The list of answered rounds stays when the device leaves
Relation   a budget group has one relation (`Guarantee`), that of the first survey answered in it: a survey with another
           is refused, because the two epsilons protect different secrets
Debit      the survey's `debit` and delta for each of the first `draws` submissions, then nothing. The k-th can hold
           at most k different values, so this is never less than what was drawn, and it does not depend on values
Refusals   come before the answers are read: whether a device answers depends only on the calendar and on its past
           participation, so that silence says nothing
Clock      an epoch is answered once, whichever way the clock moves; a clock that goes back may fill an epoch that was
           left out, within the same caps
Answers    are drawn from the system's generator, and no key is kept that would give a report again. While a submission
           waits, the file reveals no more than its bytes do; once it is settled they are erased, and the file reveals
           nothing about it. With several collectors the bytes are all shares, which together reveal the answer
Memoized   the device must know its own answer to repeat its report: value and report are in the file, in the clear
Two stages the same with the state that reports are drawn from in place of the report. The state is debited once, with
           the epsilon of all reports that will ever be drawn from it; these are drawn afresh and cost nothing more
Recorded   what an application records during an epoch is kept in the clear until the epoch is over and its submission
           is drawn, then deleted; so is what came too late to be sent
Evolving   the state of the device, which is replaced with each report. An epoch before the last reported one draws from
           the current state: a clock that was set back does not weaken the promise
Leaving    opting out deletes what only that survey needs (memos, recorded values, key, waiting bytes, the survey's own
           bytes), and withdrawing does so for all and erases the ids as well. The debits and the list of answered
           epochs stay; otherwise a device that returns would begin a second lifetime
Restored   a ledger that was restored from a copy gives the same ids, but draws again: a submission since the copy that
           is answered again counts once, although a second sample has left, which costs up to another epsilon each.
           Debits made since the copy are forgotten with it, and so is a round of a campaign, so that another may be
           answered: that counts twice, and costs up to another epsilon

A service counts a submission once by its id, even if a restored ledger makes it again:

Key        32 random bytes of the system for each survey, made when the survey is first recorded; k_first belongs to
           the first epoch of the survey, and k_(e+1) = SHA-256(k_e)
Id         the first 16 bytes of HMAC-SHA256(k_e, "deniable-report-id-v1" NUL fingerprint epoch), with the epoch as 4
           bytes, little-endian
Erased     recording epoch e replaces its key by k_(e+1). What is left in the ledger gives no id of a past epoch, so
           nobody who finds it can link it to what a service holds
Shares     a survey with several collectors has random ids: shares of two draws under one id would spoil the sums
Random     an epoch whose key is erased (the clock was set back) has a random id. If an epoch is so far ahead that the
           chain would take long (`FARTHEST`), a new chain begins

Ids do not depend on the answers. Clients in other languages follow this byte by byte.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.collect import wire
from deniable.collect.client.ledger_file import RECORDED, LedgerFile
from deniable.collect.client.records import (
    DELETED,
    DROPPED,
    OPTED_OUT,
    QUEUED,
    SENT,
    WITHDRAWN,
    BudgetSpent,
    LedgerError,
    OptedOut,
    OptOuts,
    OtherRelation,
    Spending,
    Submission,
    TookPart,
    body_of,
    check_fingerprint,
    check_id,
    check_questions,
    drawn,
    encoded,
)
from deniable.errors import NumberError, ReportError
from deniable.exact import canonical, epsilon_text, fraction
from deniable.privacy import Account, sequential
from deniable.surveys import Survey
from deniable.surveys.kept import Kept, next_report
from deniable.surveys.terms import Budget, Terms

STEPS = ("begun", "checked", "drawn", "keyed", "written", "committed")
"""Where a test may stop a submission, by setting `Ledger._step`."""
EVERYTHING = ""
"""Represents all surveys in the list of opt-outs."""
KEY_BYTES = 32
FARTHEST = 1 << 16


class Ledger:
    """One device's ledger, in the file `path`; safe to use from several threads, processes and forks.

    The file is created by the first write; until then the ledger is empty. Without a path it lies where the system
    keeps a user's data (`default_path`), in a directory that is created for it; the directory of a given path must
    exist.

    Args:
        path: The file; in the user's data directory if None.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite")
    >>> ledger.submissions(), ledger.budgets(), ledger.exists
    ([], [], False)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path | None = None) -> None:
        # A program that changes its working directory keeps its ledger.
        self.path = Path(default_path() if path is None else path).absolute()
        self._file = LedgerFile(self.path)
        self._makes_folder = path is None
        self._step: Callable[[str], None] = lambda step: None

    @property
    def exists(self) -> bool:
        """Whether the file exists; if not, this device has done nothing yet."""
        if os.path.lexists(self.path):
            return True
        if not self._makes_folder and not os.path.isdir(self.path.parent):
            raise LedgerError(f"there is no directory {str(self.path.parent)!r} for a ledger: name another, or make it")
        return False

    @contextmanager
    def _transaction(self, compact: bool = False) -> Iterator[sqlite3.Connection]:
        if not self.exists and self._makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._file.transaction(compact) as connection:
            yield connection

    def kept_open(self) -> AbstractContextManager[None]:
        """A block whose calls share one connection to the file; it holds no lock between them."""
        return self._file.kept_open()

    # -- answering ---------------------------------------------------------------------------------

    def submit(
        self, survey: Survey, epoch: int, answers: Mapping[str, Any], due: float = 0.0
    ) -> tuple[Submission, bool]:
        """Debit, draw and queue an epoch's answers; if the epoch was answered before, return what was queued then.

        Returns the submission and whether it is new. Raises DomainError for an invalid answer, and OptedOut, TookPart,
        OtherRelation or BudgetSpent before the answers are read; then nothing is recorded.
        """
        terms = survey.terms
        if terms is None:
            raise LedgerError("a survey without terms is not collected: it has neither epochs nor a budget")
        check_questions(survey, answers)
        with self._transaction() as connection:
            self._step("begun")
            if _opted_out(connection, survey.fingerprint):
                raise OptedOut
            earlier = _submissions(connection, "survey = ? AND epoch = ?", survey.fingerprint, epoch)
            if earlier:
                return earlier[0], False
            other = _other_round(connection, survey)
            if other is not None and terms.campaign is not None:
                raise TookPart(other, terms.campaign.number)
            debit = _debit(connection, survey, terms)
            self._step("checked")
            id = _next_id(connection, survey, terms, epoch)
            self._step("keyed")
            reports = _draw(connection, survey, terms, epoch, answers, id)
            self._step("drawn")
            body = body_of(survey, epoch, id, reports)
            # Until then a service that keeps reports may be asked to delete this one, by its id.
            until = terms.epochs.start(epoch + terms.epochs.late + 1) if terms.retention == "reports" else 0
            made = Submission(survey.fingerprint, epoch, id, body, QUEUED, "", *debit, due, float(until))
            _write(connection, made, survey, terms)
            self._step("written")
        self._step("committed")
        return made, True

    # -- recording ---------------------------------------------------------------------------------

    def record(self, survey: Survey, epoch: int, question: str, value: Any, add: bool = False) -> bool:
        """Keep a value of this epoch for its submission: in place of an earlier one, or added to it.

        Returns whether epochs before this one wait for their submissions. Raises DomainError for an invalid answer, and
        OptedOut; then nothing is kept.
        """
        check_id(survey, question)
        fingerprint = survey.fingerprint
        with self._transaction() as connection:
            if _opted_out(connection, fingerprint):
                raise OptedOut
            begun = _recorded_from(connection, fingerprint)
            _start_recording(connection, fingerprint, epoch if begun is None else begun)
            kept = _recorded(connection, fingerprint, epoch)
            total = kept[question] + value if add and question in kept else value
            encoded(survey[question], total)
            row = (fingerprint, epoch, question, json.dumps(getattr(total, "item", lambda: total)()))
            connection.execute("INSERT OR REPLACE INTO recorded VALUES (?, ?, ?, ?)", row)
            return begun is not None and begun < epoch

    def recorded(self, survey: str, epoch: int) -> dict[str, Any]:
        """What was recorded in an epoch that has no submission yet, by question."""
        if not self.exists:
            return {}
        with self._transaction() as connection:
            return {} if _recorded_from(connection, survey) is None else _recorded(connection, survey, epoch)

    def recorded_from(self, survey: str, epoch: int) -> int:
        """The first epoch whose submission must still be made from recorded values; this epoch on a new device."""
        with self._transaction() as connection:
            if _opted_out(connection, survey):
                raise OptedOut
            begun = _recorded_from(connection, survey)
            if begun is None:
                _start_recording(connection, survey, epoch)
            return epoch if begun is None else begun

    def record_from(self, survey: str, epoch: int) -> None:
        """Forget what was recorded before this epoch: its submissions are made, or too late."""
        with self._transaction() as connection:
            _start_recording(connection, survey, epoch)
            connection.execute("DELETE FROM recorded WHERE survey = ? AND epoch BETWEEN 0 AND ?", (survey, epoch - 1))

    # -- sending -----------------------------------------------------------------------------------

    def queued(self, survey: str) -> list[Submission]:
        """Waiting submissions, oldest epoch first; empty once opted out."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            if _opted_out(connection, survey):
                return []
            return _submissions(connection, "survey = ? AND state = ?", survey, QUEUED)

    def mark(self, submission: Submission, state: str, reason: str = "") -> None:
        """Record the outcome of a queued submission; one that was dropped or withdrawn meanwhile stays so.

        Its bytes are erased, and so is its id if the service keeps no reports.
        """
        which = "survey = ? AND epoch = ? AND id = ?"
        with self._transaction() as connection:
            _settle(connection, state, reason, which, submission.survey, submission.epoch, submission.id)

    def mark_deleted(self, submission: Submission, reason: str) -> None:
        """Record that a service has answered the request to delete this report: its id and bytes are erased."""
        state = submission.state
        if state == QUEUED:  # it had arrived without a reply, or it never arrived
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
            _pin(connection, survey)

    def pinned(self, fingerprint: str) -> bytes | None:
        """A survey's bytes, if they are known."""
        if not self.exists:
            return None
        with self._transaction() as connection:
            row = connection.execute("SELECT canonical FROM survey WHERE fingerprint = ?", (fingerprint,)).fetchone()
            return None if row is None or row[0] is None else bytes(row[0])

    def surveys(self) -> dict[str, str]:
        """The names of all surveys that this device has met, by fingerprint; empty if its bytes are not known."""
        if not self.exists:
            return {}
        with self._transaction() as connection:
            return _surveys(connection)

    # -- looking -----------------------------------------------------------------------------------

    def submissions(self, survey: str | None = None, since: int = 0) -> list[Submission]:
        """Everything that was ever queued, by survey and epoch, from the epoch `since` on."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            return _submissions(connection, "(?1 IS NULL OR survey = ?1) AND epoch >= ?2", survey, since)

    def remembered(self, survey: str | None = None) -> list[tuple[str, str, int]]:
        """Survey, question and number of the answers that are kept with their reports or states."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            chosen = "WHERE ?1 IS NULL OR survey = ?1 GROUP BY 1, 2 ORDER BY 1, 2"
            query = f"SELECT survey, question, count(*) FROM memo {chosen}"
            return connection.execute(query, (survey,)).fetchall()

    def other_round(self, survey: Survey) -> int | None:
        """The other round of the survey's campaign that this device has answered; then it may answer no more."""
        if not self.exists:
            return None
        with self._transaction() as connection:
            return _other_round(connection, survey)

    def budgets(self) -> list[Spending]:
        """The lifetime budget of every owner's group that was ever answered."""
        if not self.exists:
            return []
        with self._transaction() as connection:
            groups = connection.execute("SELECT owner, name FROM budget ORDER BY owner, name").fetchall()
            known = [_spending(connection, owner, name) for owner, name in groups]
            return [spending for spending in known if spending is not None]

    def spending(self, terms: Terms) -> Spending:
        """The budget that a survey with these terms draws on."""
        for known in self.budgets():
            if (known.owner, known.group) == (terms.owner, terms.budget.group):
                return _capped(known, terms.budget)
        return _unspent(terms)

    # -- leaving -----------------------------------------------------------------------------------

    def opted_out(self, survey: str) -> bool:
        """Whether this device has opted out of a survey."""
        if not self.exists:
            return False
        with self._transaction() as connection:
            return _opted_out(connection, survey)

    def opt_outs(self) -> OptOuts:
        """Everything that this device has opted out of."""
        if not self.exists:
            return OptOuts()
        with self._transaction() as connection:
            return _opt_outs(connection)

    def opt_out(self, survey: str | None = None) -> None:
        """Leave this survey, or all: waiting submissions are dropped, and what only the survey needs is deleted.

        That is its memos, its key, the waiting bytes and the survey's own bytes. The debits and the list of answered
        epochs stay, and so does the id of a report that a service may still be asked to delete.
        """
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction(compact=True) as connection:
            _choose(connection, survey, out=True)
            _settle(connection, DROPPED, OPTED_OUT, "(?3 IS NULL OR survey = ?3)", survey)
            _forget(connection, survey)

    def opt_in(self, survey: str | None = None) -> None:
        """Take part again, in this survey (whatever was chosen for the others) or in all."""
        if survey is not None:
            check_fingerprint(survey)
        with self._transaction() as connection:
            _choose(connection, survey, out=False)

    def withdraw(self) -> None:
        """Delete memos, keys, outbox and ids, and opt out of everything; debits and answered epochs stay."""
        with self._transaction(compact=True) as connection:
            _forget(connection, None)
            connection.execute(
                "UPDATE submission SET state = ?, reason = '', id = NULL, body = NULL, due = 0", (WITHDRAWN,)
            )
            _choose(connection, None, out=True)


def default_path() -> Path:
    """Where programs keep data on this system."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "deniable" / "ledger.sqlite"


# -- ids ----------------------------------------------------------------------------------------------


def advance(key: bytes, epochs: int) -> bytes:
    """The key of a later epoch.

    >>> advance(bytes(32), 2) == advance(advance(bytes(32), 1), 1)
    True
    """
    for _ in range(epochs):
        key = hashlib.sha256(key).digest()
    return key


def report_id(key: bytes, fingerprint: str, epoch: int) -> bytes:
    """The id of an epoch's submission, from the epoch's key."""
    message = b"deniable-report-id-v1\0" + bytes.fromhex(fingerprint) + epoch.to_bytes(4, "little")
    return hmac.digest(key, message, "sha256")[: wire.ID_BYTES]


# -- what one transaction does: nothing here begins, commits or sends ---------------------------------


def _other_round(connection: sqlite3.Connection, survey: Survey) -> int | None:
    """The other round of the survey's campaign that this device has answered. This does not read the answers."""
    place = None if survey.terms is None else survey.terms.campaign
    if place is None:
        return None
    row = connection.execute(
        "SELECT round FROM survey JOIN submission ON survey = fingerprint WHERE campaign = ? AND fingerprint <> ?",
        (place.identity(survey.fingerprint), survey.fingerprint),
    ).fetchone()
    return None if row is None else int(row[0])


def _debit(connection: sqlite3.Connection, survey: Survey, terms: Terms) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of the next submission; raises BudgetSpent or OtherRelation. Does not read the answers."""
    rule = terms.longitudinal
    # Once memos are deleted, values are drawn and paid for again: only repeated values count as already drawn.
    epochs, drawn = connection.execute(
        "SELECT count(*), coalesce(sum(repeats), 0) FROM submission WHERE survey = ?", (survey.fingerprint,)
    ).fetchone()
    if epochs >= rule.epochs:
        times = "once" if epochs == 1 else f"{epochs} times"
        raise BudgetSpent(f"this device has answered {times}, as often as the survey allows: nothing was drawn or sent")
    pays = drawn < rule.draws
    debit, delta = (survey.debit, survey.delta) if pays else (Fraction(0), Fraction(0))
    spent = _spending(connection, terms.owner, terms.budget.group) or _unspent(terms)
    if spent.relation != survey.relation:
        raise OtherRelation(
            f"the budget group {spent.group!r} of {spent.owner!r} counts levels of the relation {spent.relation!r} on "
            f"this device, and this survey has the relation {survey.relation!r}: the two are never added. Nothing was "
            "drawn or sent; its owner has to publish it with a group of its own"
        )
    spent = _capped(spent, terms.budget)
    if not spent.account.allows(debit) or not Account(spent.delta_cap, spent.delta_spent).allows(delta):
        more = ""
        if delta:
            left = max(spent.delta_cap - spent.delta_spent, Fraction(0))
            more = f" and a delta of {canonical(delta)} ({canonical(left)} is left)"
        raise BudgetSpent(
            f"the lifetime budget of {spent.owner!r} for the group {spent.group!r} does not cover another answer from "
            f"this device: epsilon {epsilon_text(spent.spent)} of {epsilon_text(spent.cap)} is spent, "
            f"{epsilon_text(spent.left)} is left, and the answer would cost {epsilon_text(debit)}{more}; nothing was "
            "drawn or sent"
        )
    return debit, delta


def _unspent(terms: Terms) -> Spending:
    budget = terms.budget
    return Spending(terms.owner, budget.group, budget.epsilon, relation=budget.relation, delta_cap=budget.delta)


def _capped(spent: Spending, budget: Budget) -> Spending:
    """The same group with the smaller caps of the two."""
    return replace(spent, cap=min(spent.cap, budget.epsilon), delta_cap=min(spent.delta_cap, budget.delta))


def _spending(connection: sqlite3.Connection, owner: str, group: str) -> Spending | None:
    """What was spent in an owner's group; None if nothing was ever answered in it."""
    query = "SELECT cap, delta, relation FROM budget WHERE owner = ? AND name = ?"
    row = connection.execute(query, (owner, group)).fetchone()
    if row is None:
        return None
    levels: dict[str, list[Fraction]] = {}
    deltas = []
    # The debits of a survey have few different values: a device that answers every day sums a few products.
    query = (
        "SELECT survey, epsilon, delta, count(*) FROM spending WHERE owner = ? AND budget = ? "
        "GROUP BY survey, epsilon, delta ORDER BY survey, min(epoch)"
    )
    for survey, epsilon, delta, often in connection.execute(query, (owner, group)):
        levels.setdefault(survey, []).append(_amount(epsilon) * often)
        deltas.append(_amount(delta) * often)
    spent = tuple((survey, sequential(parts)) for survey, parts in levels.items())
    return Spending(owner, group, _amount(row[0]), spent, row[2], _amount(row[1]), sequential(deltas))


def _draw(
    connection: sqlite3.Connection, survey: Survey, terms: Terms, epoch: int, answers: Mapping[str, Any], id: bytes
) -> bytes:
    """The reports of all questions, concatenated, from the system's generator."""
    rule = terms.longitudinal
    if not rule.keeps:
        return drawn(survey, answers, id)
    reports = []
    for question in survey:
        read = encoded(question, answers[question.id])
        query = "SELECT place, value, drawn FROM memo WHERE survey = ? AND question = ? ORDER BY place"
        rows = connection.execute(query, (survey.fingerprint, question.id)).fetchall()
        known = [Kept(place, bytes(key), bytes(outcome)) for place, key, outcome in rows]
        try:
            report, kept = next_report(question.protocol, rule, known, read, epoch - terms.first + 1)
        except ReportError:
            raise LedgerError("the ledger is damaged: it has an invalid kept state") from None
        reports.append(report)
        if kept is not None:
            row = (survey.fingerprint, question.id, *kept)
            connection.execute("INSERT OR REPLACE INTO memo VALUES (?, ?, ?, ?, ?)", row)
    return b"".join(reports)


def _next_id(connection: sqlite3.Connection, survey: Survey, terms: Terms, epoch: int) -> bytes:
    """The id of an epoch's submission; its key is replaced by that of the next epoch."""
    if terms.collectors:
        # With two draws under one id, one collector could have a share of the first and another a share of the second,
        # and the sum over everybody would be lost. So a restored ledger counts twice instead.
        return secrets.token_bytes(wire.ID_BYTES)
    row = connection.execute("SELECT epoch, key FROM id_key WHERE survey = ?", (survey.fingerprint,)).fetchone()
    start, key = row or (terms.first, secrets.token_bytes(KEY_BYTES))
    if epoch < start:
        return secrets.token_bytes(wire.ID_BYTES)
    near = epoch - start <= FARTHEST
    key = advance(bytes(key), epoch - start) if near else secrets.token_bytes(KEY_BYTES)
    following = (survey.fingerprint, epoch + 1, advance(key, 1))
    connection.execute("INSERT OR REPLACE INTO id_key VALUES (?, ?, ?)", following)
    return report_id(key, survey.fingerprint, epoch)


def _write(connection: sqlite3.Connection, made: Submission, survey: Survey, terms: Terms) -> None:
    connection.execute(
        "INSERT INTO submission (survey, epoch, id, body, due, id_until, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (made.survey, made.epoch, made.id, made.body, made.due, made.id_until, made.state),
    )
    if made.epsilon:
        levels = (canonical(made.epsilon), canonical(made.delta))
        row = (made.survey, made.epoch, terms.owner, terms.budget.group, *levels)
        connection.execute("INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?)", row)
    group = _capped(_spending(connection, terms.owner, terms.budget.group) or _unspent(terms), terms.budget)
    kept = (group.owner, group.group, canonical(group.cap), canonical(group.delta_cap), group.relation)
    connection.execute("INSERT OR REPLACE INTO budget VALUES (?, ?, ?, ?, ?)", kept)
    _pin(connection, survey)


def _pin(connection: sqlite3.Connection, survey: Survey) -> None:
    """Record a survey, with a key for its ids if it has none yet."""
    place = None if survey.terms is None else survey.terms.campaign
    link = (None, None) if place is None else (place.identity(survey.fingerprint), place.number)
    row = (survey.fingerprint, survey.name, survey.canonical, *link)
    connection.execute("INSERT OR REPLACE INTO survey VALUES (?, ?, ?, ?, ?)", row)
    if survey.terms is not None:
        key = (survey.fingerprint, survey.terms.first, secrets.token_bytes(KEY_BYTES))
        connection.execute("INSERT OR IGNORE INTO id_key VALUES (?, ?, ?)", key)


def _settle(connection: sqlite3.Connection, state: str, reason: str, where: str, *values: object) -> None:
    """Record the outcome of queued submissions: erase the bytes, and the id unless a report may be deleted by it."""
    connection.execute(
        "UPDATE submission SET state = ?, reason = ?, body = NULL, due = 0, id = CASE WHEN id_until > 0 THEN id END "
        f"WHERE state = 'queued' AND {where}",
        (state, reason, *values),
    )


def _forget(connection: sqlite3.Connection, survey: str | None) -> None:
    """Delete what only this survey needs, or any: memos, keys and pinned bytes; names, epochs and debits stay."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recorded'").fetchone():
        connection.execute("DELETE FROM recorded WHERE ?1 IS NULL OR survey = ?1", (survey,))
    for statement in (
        "DELETE FROM memo WHERE ?1 IS NULL OR survey = ?1",
        "DELETE FROM id_key WHERE ?1 IS NULL OR survey = ?1",
        "UPDATE survey SET canonical = NULL WHERE ?1 IS NULL OR fingerprint = ?1",
        "UPDATE submission SET repeats = 0 WHERE ?1 IS NULL OR survey = ?1",
    ):
        connection.execute(statement, (survey,))


_FROM = -1
"""In place of an epoch: the row with the epoch whose submission comes next."""


def _recorded_from(connection: sqlite3.Connection, survey: str) -> int | None:
    """The first epoch that must still be made from recorded values; None if nothing was ever recorded."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recorded'").fetchone():
        return None
    query = "SELECT value FROM recorded WHERE survey = ? AND epoch = ?"
    row = connection.execute(query, (survey, _FROM)).fetchone()
    return None if row is None else int(row[0])


def _start_recording(connection: sqlite3.Connection, survey: str, epoch: int) -> None:
    connection.execute(RECORDED)
    connection.execute("INSERT OR REPLACE INTO recorded VALUES (?, ?, '', ?)", (survey, _FROM, str(epoch)))


def _recorded(connection: sqlite3.Connection, survey: str, epoch: int) -> dict[str, Any]:
    query = "SELECT question, value FROM recorded WHERE survey = ? AND epoch = ?"
    return {question: json.loads(value) for question, value in connection.execute(query, (survey, epoch))}


def _submissions(connection: sqlite3.Connection, where: str, *values: object) -> list[Submission]:
    query = (
        "SELECT survey, epoch, id, body, state, reason, coalesce(epsilon, '0'), coalesce(delta, '0'), due, id_until "
        f"FROM submission LEFT JOIN spending USING (survey, epoch) WHERE {where} ORDER BY survey, epoch"
    )
    return [
        Submission(
            survey,
            epoch,
            id or b"",
            body or b"",
            state,
            reason,
            _amount(epsilon),
            _amount(delta),
            due,
            until if id else 0.0,
        )
        for survey, epoch, id, body, state, reason, epsilon, delta, due, until in connection.execute(query, values)
    ]


def _surveys(connection: sqlite3.Connection) -> dict[str, str]:
    """Fingerprints and names of all surveys that were ever pinned, answered or chosen; unpinned ones have no name."""
    query = (
        "SELECT fingerprint, coalesce(name, '') FROM (SELECT fingerprint FROM survey UNION SELECT survey FROM opt_out) "
        "LEFT JOIN survey USING (fingerprint) WHERE fingerprint <> ? ORDER BY 1"
    )
    return dict(connection.execute(query, (EVERYTHING,)).fetchall())


def _opted_out(connection: sqlite3.Connection, survey: str) -> bool:
    """The choice for this survey, or else for everything."""
    query = "SELECT chosen FROM opt_out WHERE survey IN (?, ?) ORDER BY survey = ? LIMIT 1"
    row = connection.execute(query, (survey, EVERYTHING, EVERYTHING)).fetchone()
    return row is not None and bool(row[0])


def _opt_outs(connection: sqlite3.Connection) -> OptOuts:
    chosen = dict(connection.execute("SELECT survey, chosen FROM opt_out ORDER BY survey"))
    everything = bool(chosen.pop(EVERYTHING, False))
    if everything:
        return OptOuts(True, but=tuple(survey for survey, out in chosen.items() if not out))
    return OptOuts(False, tuple(survey for survey, out in chosen.items() if out))


def _choose(connection: sqlite3.Connection, survey: str | None, out: bool) -> None:
    """A choice for everything replaces those for single surveys."""
    if survey is None:
        connection.execute("DELETE FROM opt_out")
    connection.execute("INSERT OR REPLACE INTO opt_out VALUES (?, ?)", (survey or EVERYTHING, out))


def _amount(text: Any) -> Fraction:
    try:
        return fraction(text)
    except NumberError:
        raise LedgerError("the ledger is damaged: an amount in it is not a number") from None
