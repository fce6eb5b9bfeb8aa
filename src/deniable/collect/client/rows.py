"""What one transaction of the ledger does, statement by statement: caps, draws, and rows in and out.

Source     `ledger` says why; nothing here begins, commits or sends
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from deniable.channels.levels import epsilon_text
from deniable.collect.client import memo
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
    (epochs,) = connection.execute("SELECT count(*) FROM submission WHERE survey = ?", (survey.fingerprint,)).fetchone()
    if epochs >= rule.epochs:
        times = "once" if epochs == 1 else f"{epochs} times"
        raise BudgetSpent(f"this device has answered {times}, as often as the survey allows: nothing was drawn or sent")
    # After a withdrawal the memos are gone and values are drawn anew, so they are paid for anew.
    (drawn,) = connection.execute(
        "SELECT count(*) FROM submission, identity WHERE survey = ? AND submission.generation = identity.generation",
        (survey.fingerprint,),
    ).fetchone()
    debit = survey.epsilon if drawn < rule.draws else Fraction(0)
    spent = spending(connection, terms.budget.group, cap_of(connection, terms))
    if not spent.account.allows(debit):
        raise BudgetSpent(
            f"the lifetime budget of the group {spent.group!r} does not cover another answer from this device: epsilon "
            f"{epsilon_text(spent.spent)} of {epsilon_text(spent.cap)} is spent, {epsilon_text(spent.left)} is left, "
            f"and the answer would cost {epsilon_text(debit)}; nothing was drawn or sent"
        )
    return debit


def cap_of(connection: sqlite3.Connection, terms: Terms) -> Fraction:
    row = connection.execute("SELECT cap FROM budget WHERE name = ?", (terms.budget.group,)).fetchone()
    return terms.budget.epsilon if row is None else min(amount(row[0]), terms.budget.epsilon)


def spending(connection: sqlite3.Connection, group: str, cap: Fraction) -> Spending:
    levels: dict[str, list[Fraction]] = {}
    query = "SELECT survey, epsilon FROM spending WHERE budget = ? ORDER BY survey, epoch"
    for survey, epsilon in connection.execute(query, (group,)):
        levels.setdefault(survey, []).append(amount(epsilon))
    return Spending(group, cap, tuple((survey, sequential(parts)) for survey, parts in levels.items()))


def draw(
    connection: sqlite3.Connection, key: bytes, survey: Survey, terms: Terms, epoch: int, answers: Mapping[str, Any]
) -> bytes:
    """The reports of all questions, one after the other."""
    if terms.longitudinal.rule == "none":
        scope = memo.in_epoch(epoch)
        return b"".join(memo.draw(key, survey.fingerprint, asked, scope, answers[asked.id]) for asked in survey)
    return b"".join(
        memoized(connection, key, survey, question.id, answers[question.id], terms.longitudinal.values)
        for question in survey
    )


def memoized(connection: sqlite3.Connection, key: bytes, survey: Survey, id: str, answer: Any, values: int) -> bytes:
    """The report of a value that was drawn before, or a new one; at the cap, the first."""
    question = survey[id]
    value = memo.encode_value(question.protocol.domain, answer)
    digest = memo.value_digest(key, survey.fingerprint, id, value)
    query = "SELECT digest, report FROM memo WHERE survey = ? AND question = ? ORDER BY place"
    known = connection.execute(query, (survey.fingerprint, id)).fetchall()
    for drawn, report in known:
        if drawn == digest:
            return bytes(report)
    if len(known) >= values:
        return bytes(known[0][1])
    report = memo.draw(key, survey.fingerprint, question, memo.PERMANENT, answer)
    row = (survey.fingerprint, id, len(known), digest, report)
    connection.execute("INSERT INTO memo VALUES (?, ?, ?, ?, ?)", row)
    return report


def write(connection: sqlite3.Connection, made: Submission, survey: Survey, terms: Terms) -> None:
    group = terms.budget.group
    connection.execute(
        "INSERT INTO submission SELECT ?, ?, generation, ?, ?, ?, ?, '' FROM identity",
        (made.survey, made.epoch, made.id, made.body, made.due, made.state),
    )
    if made.epsilon:
        row = (made.survey, made.epoch, group, canonical(made.epsilon))
        connection.execute("INSERT INTO spending VALUES (?, ?, ?, ?)", row)
    cap = canonical(cap_of(connection, terms))
    connection.execute("INSERT OR REPLACE INTO budget VALUES (?, ?)", (group, cap))
    connection.execute("INSERT OR REPLACE INTO survey VALUES (?, ?)", (survey.fingerprint, survey.canonical))


def submissions(connection: sqlite3.Connection, where: str, *values: object) -> list[Submission]:
    query = (
        "SELECT survey, epoch, id, body, state, reason, coalesce(epsilon, '0'), due "
        f"FROM submission LEFT JOIN spending USING (survey, epoch) WHERE {where} ORDER BY survey, epoch"
    )
    return [
        Submission(survey, epoch, id or b"", body or b"", state, reason, amount(epsilon), due)
        for survey, epoch, id, body, state, reason, epsilon, due in connection.execute(query, values)
    ]


def surveys(connection: sqlite3.Connection) -> dict[str, str]:
    """Fingerprints and names of all that was ever pinned, answered or chosen; what was not pinned has no name."""
    query = (
        "SELECT fingerprint, canonical FROM (SELECT fingerprint FROM survey UNION SELECT survey FROM submission "
        "UNION SELECT survey FROM opt_out) LEFT JOIN survey USING (fingerprint) WHERE fingerprint <> ? ORDER BY 1"
    )
    return {
        fingerprint: "" if content is None else str(json.loads(content)["name"])
        for fingerprint, content in connection.execute(query, (EVERYTHING,))
    }


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
