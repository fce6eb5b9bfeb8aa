"""What one transaction of the ledger does, statement by statement: caps, draws, and rows in and out.

Source     `ledger` says why; nothing here begins, commits or sends
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from deniable.channels.levels import epsilon_text
from deniable.collect.client import report_ids
from deniable.collect.client.answers import encode_value
from deniable.collect.client.errors import BudgetSpent, LedgerError
from deniable.collect.client.records import OptOuts, Spending, Submission
from deniable.errors import NumberError
from deniable.exact import canonical, fraction
from deniable.privacy import sequential
from deniable.surveys import Survey
from deniable.surveys.terms import Terms

EVERYTHING = ""
"""Stands for all surveys in the list of opt-outs."""


def debit(connection: sqlite3.Connection, survey: Survey, terms: Terms) -> Fraction:
    """What the next submission costs, or a refusal. Nothing here knows the answers."""
    rule = terms.longitudinal
    # After memos were deleted values are drawn anew, so they are paid for anew: only what is repeated counts as drawn.
    epochs, drawn = connection.execute(
        "SELECT count(*), coalesce(sum(repeats), 0) FROM submission WHERE survey = ?", (survey.fingerprint,)
    ).fetchone()
    if epochs >= rule.epochs:
        times = "once" if epochs == 1 else f"{epochs} times"
        raise BudgetSpent(f"this device has answered {times}, as often as the survey allows: nothing was drawn or sent")
    debit = survey.epsilon if drawn < rule.draws else Fraction(0)
    spent = spending(connection, terms.owner, terms.budget.group, cap_of(connection, terms))
    if not spent.account.allows(debit):
        raise BudgetSpent(
            f"the lifetime budget of {spent.owner!r} for the group {spent.group!r} does not cover another answer from "
            f"this device: epsilon {epsilon_text(spent.spent)} of {epsilon_text(spent.cap)} is spent, "
            f"{epsilon_text(spent.left)} is left, and the answer would cost {epsilon_text(debit)}; nothing was drawn "
            "or sent"
        )
    return debit


def cap_of(connection: sqlite3.Connection, terms: Terms) -> Fraction:
    query = "SELECT cap FROM budget WHERE owner = ? AND name = ?"
    row = connection.execute(query, (terms.owner, terms.budget.group)).fetchone()
    return terms.budget.epsilon if row is None else min(amount(row[0]), terms.budget.epsilon)


def spending(connection: sqlite3.Connection, owner: str, group: str, cap: Fraction) -> Spending:
    levels: dict[str, list[Fraction]] = {}
    query = "SELECT survey, epsilon FROM spending WHERE owner = ? AND budget = ? ORDER BY survey, epoch"
    for survey, epsilon in connection.execute(query, (owner, group)):
        levels.setdefault(survey, []).append(amount(epsilon))
    return Spending(owner, group, cap, tuple((survey, sequential(parts)) for survey, parts in levels.items()))


def draw(connection: sqlite3.Connection, survey: Survey, terms: Terms, answers: Mapping[str, Any]) -> bytes:
    """The reports of all questions, one after the other, from the system's generator."""
    if terms.longitudinal.rule == "none":
        return b"".join(asked.protocol.privatize([answers[asked.id]]).to_bytes() for asked in survey)
    return b"".join(
        memoized(connection, survey, question.id, answers[question.id], terms.longitudinal.values)
        for question in survey
    )


def memoized(connection: sqlite3.Connection, survey: Survey, id: str, answer: Any, values: int) -> bytes:
    """The report of a value that was drawn before, or a new one; at the cap, the first."""
    protocol = survey[id].protocol
    value = encode_value(protocol.domain, answer)
    query = "SELECT value, report FROM memo WHERE survey = ? AND question = ? ORDER BY place"
    known = connection.execute(query, (survey.fingerprint, id)).fetchall()
    for drawn, report in known:
        if drawn == value:
            return bytes(report)
    if len(known) >= values:
        return bytes(known[0][1])
    report = protocol.privatize([answer]).to_bytes()
    row = (survey.fingerprint, id, len(known), value, report)
    connection.execute("INSERT INTO memo VALUES (?, ?, ?, ?, ?)", row)
    return report


def next_id(connection: sqlite3.Connection, survey: Survey, terms: Terms, epoch: int) -> bytes:
    """The id of an epoch's submission; its key is replaced by that of the next epoch."""
    row = connection.execute("SELECT epoch, key FROM id_key WHERE survey = ?", (survey.fingerprint,)).fetchone()
    start, key = row or (terms.first, report_ids.new_key())
    if epoch < start:
        return report_ids.random_id()
    near = epoch - start <= report_ids.FARTHEST
    key = report_ids.advance(bytes(key), epoch - start) if near else report_ids.new_key()
    following = (survey.fingerprint, epoch + 1, report_ids.advance(key, 1))
    connection.execute("INSERT OR REPLACE INTO id_key VALUES (?, ?, ?)", following)
    return report_ids.report_id(key, survey.fingerprint, epoch)


def write(connection: sqlite3.Connection, made: Submission, survey: Survey, terms: Terms) -> None:
    connection.execute(
        "INSERT INTO submission (survey, epoch, id, body, due, id_until, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (made.survey, made.epoch, made.id, made.body, made.due, made.id_until, made.state),
    )
    if made.epsilon:
        row = (made.survey, made.epoch, terms.owner, terms.budget.group, canonical(made.epsilon))
        connection.execute("INSERT INTO spending VALUES (?, ?, ?, ?, ?)", row)
    cap = canonical(cap_of(connection, terms))
    connection.execute("INSERT OR REPLACE INTO budget VALUES (?, ?, ?)", (terms.owner, terms.budget.group, cap))
    pin(connection, survey)


def pin(connection: sqlite3.Connection, survey: Survey) -> None:
    """Record a survey, with a key for its ids if it has none yet."""
    row = (survey.fingerprint, survey.name, survey.canonical)
    connection.execute("INSERT OR REPLACE INTO survey VALUES (?, ?, ?)", row)
    if survey.terms is not None:
        key = (survey.fingerprint, survey.terms.first, report_ids.new_key())
        connection.execute("INSERT OR IGNORE INTO id_key VALUES (?, ?, ?)", key)


def settle(connection: sqlite3.Connection, state: str, reason: str, where: str, *values: object) -> None:
    """What became of queued submissions: their bytes are erased, and the id unless a report may be deleted by it."""
    connection.execute(
        "UPDATE submission SET state = ?, reason = ?, body = NULL, due = 0, id = CASE WHEN id_until > 0 THEN id END "
        f"WHERE state = 'queued' AND {where}",
        (state, reason, *values),
    )


def forget(connection: sqlite3.Connection, survey: str | None) -> None:
    """Delete what only this survey needs, or any: memos, keys and pinned bytes; names, epochs and debits stay."""
    for statement in (
        "DELETE FROM memo WHERE ?1 IS NULL OR survey = ?1",
        "DELETE FROM id_key WHERE ?1 IS NULL OR survey = ?1",
        "UPDATE survey SET canonical = NULL WHERE ?1 IS NULL OR fingerprint = ?1",
        "UPDATE submission SET repeats = 0 WHERE ?1 IS NULL OR survey = ?1",
    ):
        connection.execute(statement, (survey,))


def submissions(connection: sqlite3.Connection, where: str, *values: object) -> list[Submission]:
    query = (
        "SELECT survey, epoch, id, body, state, reason, coalesce(epsilon, '0'), due, id_until "
        f"FROM submission LEFT JOIN spending USING (survey, epoch) WHERE {where} ORDER BY survey, epoch"
    )
    return [
        Submission(survey, epoch, id or b"", body or b"", state, reason, amount(epsilon), due, until if id else 0.0)
        for survey, epoch, id, body, state, reason, epsilon, due, until in connection.execute(query, values)
    ]


def surveys(connection: sqlite3.Connection) -> dict[str, str]:
    """Fingerprints and names of all that was ever pinned, answered or chosen; what was not pinned has no name."""
    query = (
        "SELECT fingerprint, coalesce(name, '') FROM (SELECT fingerprint FROM survey UNION SELECT survey FROM opt_out) "
        "LEFT JOIN survey USING (fingerprint) WHERE fingerprint <> ? ORDER BY 1"
    )
    return dict(connection.execute(query, (EVERYTHING,)).fetchall())


def opted_out(connection: sqlite3.Connection, survey: str) -> bool:
    """What was chosen for this survey, or else for everything."""
    query = "SELECT chosen FROM opt_out WHERE survey IN (?, ?) ORDER BY survey = ? LIMIT 1"
    row = connection.execute(query, (survey, EVERYTHING, EVERYTHING)).fetchone()
    return row is not None and bool(row[0])


def opt_outs(connection: sqlite3.Connection) -> OptOuts:
    chosen = dict(connection.execute("SELECT survey, chosen FROM opt_out ORDER BY survey"))
    everything = bool(chosen.pop(EVERYTHING, False))
    if everything:
        return OptOuts(True, but=tuple(survey for survey, out in chosen.items() if not out))
    return OptOuts(False, tuple(survey for survey, out in chosen.items() if out))


def choose(connection: sqlite3.Connection, survey: str | None, out: bool) -> None:
    """A choice for everything replaces those for single surveys."""
    if survey is None:
        connection.execute("DELETE FROM opt_out")
    connection.execute("INSERT OR REPLACE INTO opt_out VALUES (?, ?)", (survey or EVERYTHING, out))


def amount(text: Any) -> Fraction:
    try:
        return fraction(text)
    except NumberError:
        raise LedgerError("the ledger is damaged: an amount in it is not a number") from None
