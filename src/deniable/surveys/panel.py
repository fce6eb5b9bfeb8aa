"""A panel: the same people answer a longitudinal survey in several epochs, from tables or files.

Under the rules "memoize", "two-stage" and "evolving" a report depends on what the person's earlier reports were drawn
from. A panel keeps that in a file, per person, and draws in the same way as a device's ledger (`kept.next_report`).

State      SQLite: the survey, the epochs that each person has answered, and what is kept per person and question.
           Under "memoize" and "two-stage" that is the answer itself, so store the file with the answers, never with
           the reports that leave; only its owner can read it
Caps       at most one answer per person and epoch, and at most as many epochs as the survey allows; other rows are
           refused
Atomic     a table or file is one transaction: all of its rows are recorded, or none. It is committed before the file of
           reports appears. After a crash in between, the epoch counts as answered and its reports are lost: drawing
           them again would reveal more than the survey promises
Lost       without the state everybody is a new person: a second draw costs another epsilon
Epochs     count from 1, the first epoch of the collection
Messages   name a row, never a person
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable._files import sync_directory
from deniable.columns import coded
from deniable.domains import Domain, Strings
from deniable.errors import MismatchError, ReportError, SpecError, ValueRefused
from deniable.protocols import Protocol
from deniable.randomness import Bits
from deniable.surveys.kept import Kept, next_report
from deniable.surveys.terms import Terms

if TYPE_CHECKING:
    from deniable.surveys.survey import Survey

APPLICATION = 0x444E5031  # "DNP1"
VERSION = 1
PATIENCE = 5.0

_SCHEMA = """
CREATE TABLE survey (fingerprint TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE answered (person TEXT NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY (person, epoch)) WITHOUT ROWID;
CREATE TABLE kept (
    person TEXT NOT NULL, question TEXT NOT NULL, place INTEGER NOT NULL, value BLOB NOT NULL, drawn BLOB NOT NULL,
    PRIMARY KEY (person, question, place)
) WITHOUT ROWID;
"""

WAY_OUT = (
    "name the column that says who answered, the epoch, and a file for the state: "
    'privatize(..., panel=dn.Panel("person", "panel.sqlite", epoch=1)), or '
    "deniable privatize --person COLUMN --epoch 1 --state panel.sqlite"
)


@dataclass(frozen=True)
class Panel:
    """Who answers each row, in which epoch, and where the state of these people is kept.

    Args:
        person: The column that names the person: text or whole numbers.
        state: The file of the state; the first use creates it.
        epoch: The epoch of all rows, from 1; or the column that holds it.

    Raises:
        SpecError: A field has the wrong type.

    >>> Panel("person", "panel.sqlite", epoch=3).columns
    {'@person': 'person'}
    """

    person: str
    state: str | Path
    epoch: int | str

    def __post_init__(self) -> None:
        if not isinstance(self.person, str) or not self.person:
            raise SpecError("a panel needs the name of the column that says who answered")
        if isinstance(self.epoch, bool) or not isinstance(self.epoch, int | str):
            raise SpecError("the epoch of a panel is a whole number from 1, or the name of a column")

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a table that it reads, besides those of the answers."""
        return {PERSON: self.person} | ({EPOCH: self.epoch} if isinstance(self.epoch, str) else {})

    @property
    def domains(self) -> dict[str, Domain]:
        """How these columns are read: unchanged, one value per row."""
        return {key: Strings() for key in self.columns}

    def check_questions(self, survey: Survey, ids: Sequence[str]) -> None:
        """Raise SpecError unless all questions are answered: an epoch is answered as a whole."""
        missing = [question.id for question in survey if question.id not in ids]
        if missing:
            raise SpecError(f"a panel answers all questions of an epoch together, and {missing[0]!r} is left out")

    @contextmanager
    def opened(self, survey: Survey) -> Iterator[Session]:
        """A session that draws reports; they are recorded when the block ends without an error."""
        terms = survey.terms
        if terms is None or not keeps(terms):
            raise SpecError("this survey draws every report afresh: it needs no panel, so leave the person out")
        path, new = Path(self.state), not os.path.lexists(self.state)
        if new:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            sync_directory(path.absolute().parent)
        try:
            with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
                _begin(connection, survey.fingerprint, str(self.state))
                yield Session(connection, survey, terms, self.epoch if isinstance(self.epoch, int) else None)
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as wrong:
            if "locked" in str(wrong):
                raise ReportError(f"the panel {str(self.state)!r} is in use by another process") from None
            raise ReportError(f"the panel {str(self.state)!r} cannot be used ({wrong}): nothing was recorded") from None
        except BaseException:
            if new:
                path.unlink(missing_ok=True)
            raise


PERSON, EPOCH = "@person", "@epoch"
"""Take the place of a question in a list of columns; no question has such a name."""


def keeps(terms: Terms) -> bool:
    """Whether a person's reports of several epochs depend on what is kept of the earlier ones."""
    return terms.longitudinal.keeps and terms.longitudinal.epochs > 1


def refuse_without_panel(terms: Terms | None, protocols: Iterable[Protocol]) -> None:
    """Raise SpecError if rows without people and epochs would break the promise."""
    if terms is not None and keeps(terms):
        raise SpecError(
            f'under the rule "{terms.longitudinal.rule}" a person\'s reports are drawn from what is kept of earlier '
            f"epochs, so that rows without a person would break the promise: {WAY_OUT}"
        )
    for protocol in protocols:
        reports = protocol.law().kept.reports
        if protocol.guarantee.relation == "stream" and reports > 1:
            raise SpecError(
                f"{protocol.name} reports how a person's answer changes over {reports} epochs: ask it in "
                'a survey with terms and the rule "evolving", and privatize the epochs as a panel'
            )


class Session:
    """Draws the reports of one table, row by row."""

    def __init__(self, connection: sqlite3.Connection, survey: Survey, terms: Terms, epoch: int | None) -> None:
        self._connection, self._survey, self._terms, self._epoch = connection, survey, terms, epoch

    def draw(
        self, given: Mapping[str, Any], answers: Mapping[str, Any], bits: Bits | None = None
    ) -> dict[str, NDArray[np.uint8]]:
        """One report per row and question.

        Args:
            given: The columns of the panel, under the names in `Panel.columns`.
            answers: Encoded answers of all questions, by id.
            bits: The source of random bits, the system's by default.

        Raises:
            DomainError: A row cannot be answered; the message begins with "value" and its place.
        """
        people = _texts(given[PERSON])
        epochs = [self._epoch] * len(people) if self._epoch is not None else _numbers(given[EPOCH])
        reports: dict[str, list[bytes]] = {question.id: [] for question in self._survey}
        for place, (person, epoch) in enumerate(zip(people, epochs, strict=True)):
            self._record(place, person, epoch)
            for id, drawn in reports.items():
                column = answers[id]
                one = column[place].item() if isinstance(column, np.ndarray) else column[place]
                drawn.append(self._next(person, id, one, epoch, bits))
        return {
            id: np.frombuffer(b"".join(drawn), dtype=np.uint8).reshape(len(people), -1) for id, drawn in reports.items()
        }

    def _record(self, place: int, person: str, epoch: int) -> None:
        rule, last = self._terms.longitudinal, self._terms.count
        if not 1 <= epoch <= last:
            raise ValueRefused(f" is of an epoch that the survey does not have: it has 1 to {last}", place)
        query = "SELECT count(*), coalesce(sum(epoch = ?2), 0) FROM answered WHERE person = ?1"
        often, same = self._connection.execute(query, (person, epoch)).fetchone()
        if same:
            raise ValueRefused(f" is of somebody who has answered in epoch {epoch} already", place)
        if often >= rule.epochs:
            raise ValueRefused(f" is of somebody who has answered in {often} epochs, as many as allowed", place)
        self._connection.execute("INSERT INTO answered VALUES (?, ?)", (person, epoch))

    def _next(self, person: str, id: str, encoded: Any, epoch: int, bits: Bits | None) -> bytes:
        query = "SELECT place, value, drawn FROM kept WHERE person = ? AND question = ? ORDER BY place"
        known = [Kept(*row) for row in self._connection.execute(query, (person, id))]
        report, kept = next_report(self._survey[id].protocol, self._terms.longitudinal, known, encoded, epoch, bits)
        if kept is not None:
            self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", (person, id, *kept))
        return report


def _begin(connection: sqlite3.Connection, fingerprint: str, where: str) -> None:
    """Begin a transaction; refuses anything that is not the state of a panel of this survey."""
    for setting in ("journal_mode = DELETE", "synchronous = EXTRA", "secure_delete = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN IMMEDIATE")
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables == application == version == 0:
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("INSERT INTO survey VALUES (?)", (fingerprint,))
        return
    if application != APPLICATION:
        raise ReportError(f"{where!r} is not the state of a panel: name another file")
    if version != VERSION:
        raise ReportError(f"the panel {where!r} is of version {version}, unknown here: try a newer deniable")
    (owner,) = connection.execute("SELECT fingerprint FROM survey").fetchone()
    if owner != fingerprint:
        raise MismatchError(f"the panel {where!r} belongs to survey {owner}, not to {fingerprint}")


def _texts(column: Any) -> list[str]:
    """Who answered, as text: 7, 7.0 and "7" are the same person."""
    return _read(
        column,
        lambda entry: entry if isinstance(entry, str) and entry else _whole(entry),
        "a person by text or a whole number",
    )


def _numbers(column: Any) -> list[int]:
    return [int(text) for text in _read(column, _whole, "an epoch by a whole number")]


def _whole(entry: Any) -> str | None:
    """A whole number in digits; None for anything else."""
    if isinstance(entry, str):
        return str(int(entry)) if entry.isascii() and entry.isdigit() and len(entry) < 19 else None
    if isinstance(entry, bool) or not isinstance(entry, int | float):
        return None
    return str(int(entry)) if abs(entry) < 2**63 and entry == int(entry) else None


def _read(column: Any, meaning: Callable[[Any], str | None], what: str) -> list[str]:
    found = coded(column)
    entries = [meaning(entry) for entry in found.entries]
    rows = []
    for place, code in enumerate(found.codes.tolist()):
        entry = entries[code] if code >= 0 else None
        if entry is None:
            raise ValueRefused(f" does not name {what}", place)
        rows.append(entry)
    return rows
