"""A draft of a survey, proposed from a file of answers: one question per column.

Lists      text with few different values; values of fewer people than a threshold become "other"
Ranges     integers, from low to high, both rounded outwards
Text       columns with too many values to list
Left out   columns that look like ids, names or dates, decimals, and columns that are empty or constant

The labels and ranges of a survey are public, and here they come from true data: a rare label could identify a person.
So labels are sorted, not ranked, extremes and the number of people are rounded, and the author has to read the
draft before publishing the survey.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from deniable.answers import write_answers
from deniable.columns import coded, is_absent
from deniable.domains import Integers, Strings
from deniable.domains.text import LONGEST_TEXT
from deniable.errors import NumberError, ReportError
from deniable.files.answers import column_names, read_answers
from deniable.files.places import STDIN, Source, plain, shown
from deniable.labels import whole_number

AT_LEAST = 10
"""Minimum number of people for an answer to be listed."""
MOST_LISTED = 50
MOST_NUMBERS = 10_000
OTHER, MISSING = "other", "no answer"

_LOOKED_AT = 100_000  # different values of a column; more are not distinguished
_MANY_ROWS, _NEARLY = 20, 0.9
_MANY_NUMBERS = 200
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]\d{1,2}:\d{2}.*)?\s*")
_DECIMAL = re.compile(r"\s*[+-]?(?!0\d)(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*")
_PERSONAL = re.compile(
    r"(^|_)(id|ids|uuid|guid|key|token|hash|name|names|first_?name|last_?name|surname|user|username|login|e_?mail|mail|"
    r"phone|telephone|mobile|address|street|ip|iban|ssn|passport|url)(_|$)"
)


@dataclass(frozen=True)
class Proposal:
    """A draft, and notes for its author."""

    draft: dict[str, Any]
    columns: dict[str, str]
    """The column of each question: id -> name."""
    left_out: dict[str, str]
    """Columns without a question, and why."""
    folded: tuple[str, ...]
    """Questions in which rare answers became "other"."""
    rows: int


@dataclass
class _Column:
    """The relevant content of a column."""

    counts: Counter[Any] = field(default_factory=Counter)
    missing: int = 0

    def add(self, values: Any) -> None:
        column = coded(values)
        often = np.bincount(column.codes + 1, minlength=len(column.entries) + 1)
        self.missing += int(often[0])
        for entry, times in zip(column.entries, often[1:].tolist(), strict=True):
            if not times:
                continue
            if is_absent(entry) or entry == "":
                self.missing += times
            elif entry in self.counts or len(self.counts) < _LOOKED_AT:
                self.counts[entry] += times


def propose(answers: str | Path, epsilon: str = "1", at_least: int = AT_LEAST) -> Proposal:
    """A draft for the columns of a CSV or Parquet file; answers of fewer than `at_least` people are not listed."""
    if at_least < 1:
        raise NumberError(f"the smallest number of people is at least 1, not {at_least}")
    source = Source.open(answers)
    try:
        flat, nested = column_names(source)
        names = [name for name in flat if name.strip()]
        found = {name: _Column() for name in names}
        rows = 0
        wanted = {name: name.strip() for name in names}
        for batch in read_answers(source, wanted, dict.fromkeys(names, Strings())):
            rows += len(next(iter(batch.values())))
            for name, values in batch.items():
                found[name].add(values)
    finally:
        source.close()
    if not source.is_parquet and any(_DECIMAL.fullmatch(name) or name in found[name].counts for name in names):
        raise ReportError(
            f"the first line of {source.name} looks like answers, not like a header: write the columns' names above it"
        )
    if rows == 0:
        raise ReportError(f"{source.name} has no answers: there is no row below the header")
    stem = "answers" if str(answers) == STDIN else PurePath(plain(shown(str(answers)))).stem
    lists = dict.fromkeys(nested, "it holds lists or structures")
    return _drafted(stem or "answers", found, lists, rows, epsilon, at_least)


def _drafted(
    name: str, found: dict[str, _Column], left_out: dict[str, str], rows: int, epsilon: str, at_least: int
) -> Proposal:
    questions: list[dict[str, Any]] = []
    columns: dict[str, str] = {}
    folded = []
    for title, column in found.items():
        answers = _answers(title, column, at_least)
        if isinstance(answers, str):
            left_out[title] = answers
            continue
        id = _id(title, columns)
        columns[id] = title.strip()
        if OTHER in answers:
            folded.append(id)
        missing = {"missing": MISSING} if column.missing else {}
        questions.append({"id": id, "text": title.strip(), **answers, **missing})
    draft = {"name": name, "epsilon": epsilon, "people": _rounded(rows), "questions": questions}
    return Proposal(draft, columns, left_out, tuple(folded), rows)


def _answers(title: str, column: _Column, at_least: int) -> dict[str, Any] | str:
    """The part of a question that defines its answers, or why there is no question."""
    counts = column.counts
    n, different = counts.total(), len(counts)
    if n == 0:
        return "it is empty"
    if different == 1 and not column.missing:
        return "it always says the same"
    if _most(counts, lambda value: isinstance(value, date | datetime | time | timedelta) or _is_date(value)):
        return "it looks like a date or a time: ask for a year, an age or a band instead"
    if different > MOST_LISTED and _PERSONAL.search(_slug(title).replace("-", "_")):
        return "it looks like a name or an id"
    numbers = {value: _whole(value) for value in counts}
    if None not in numbers.values():
        return _range([number for number in numbers.values() if number is not None], n)
    if all(isinstance(value, float | Decimal) or _DECIMAL.fullmatch(str(value)) for value in counts):
        return (
            'it holds decimals: for their mean, add a question with "answers": {"number": {"low": ..., "high": ...}}, '
            "with ends that you know without these data; for shares, group them into bands"
        )
    if n >= _MANY_ROWS and different >= _NEARLY * n:
        return "nearly every row has another value, like an id or a name"
    if not all(isinstance(value, str | bool) for value in counts):
        return "it is no column of text or whole numbers"
    if different <= MOST_LISTED:
        return _listed(counts, at_least)
    if max(len(str(value).encode()) for value in counts) > LONGEST_TEXT:
        return f"it holds texts of more than {LONGEST_TEXT} bytes"
    return write_answers(Strings())


def _range(numbers: list[int], n: int) -> dict[str, Any] | str:
    low, high = min(numbers), max(numbers)
    if n >= _MANY_NUMBERS and len(numbers) >= _NEARLY * n:
        return "nearly every row has another number, like an id"
    low, high = _outwards(low, high)
    if high - low >= MOST_NUMBERS:
        return f"its whole numbers spread over more than {MOST_NUMBERS:,}: group them into bands"
    return write_answers(Integers(low, high))


def _listed(counts: Counter[Any], at_least: int) -> dict[str, Any] | str:
    common = [value for value, times in counts.items() if times >= at_least]
    if not common:
        return f"no answer was given by at least {at_least} people"
    # Sorted: an order by frequency would reveal the most common answer.
    labels = sorted(common, key=lambda value: (str(value).casefold(), str(value)))
    rare = len(common) < len(counts)
    return {"answers": labels, **({OTHER: OTHER} if rare else {})}


def _most(counts: Counter[Any], holds: Any) -> bool:
    return bool(sum(times for value, times in counts.items() if holds(value)) >= 0.95 * counts.total())


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(value) is not None


def _whole(value: Any) -> int | None:
    """A value as an integer; codes such as 007 are text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        return int(value) if abs(float(value)) < 2**53 and value == int(value) else None
    if not isinstance(value, str) or re.match(r"\s*[+-]?0\d", value):
        return None
    return whole_number(value)


def _outwards(low: int, high: int) -> tuple[int, int]:
    """Both ends rounded, so that neither is a person's own number.

    >>> _outwards(18, 97), _outwards(1, 5), _outwards(0, 1), _outwards(1931, 2008)
    ((10, 100), (1, 5), (0, 1), (1930, 2010))
    """
    span = high - low
    step = 1 if span < 20 else 10 ** (len(str(span)) - 1)
    return low // step * step, -(-high // step) * step


def _rounded(rows: int) -> int:
    """The number of people, rounded down to two digits.

    >>> _rounded(4321), _rounded(17), _rounded(1)
    (4300, 17, 1)
    """
    unit = int(10 ** max(0, len(str(rows)) - 2))
    return max(1, rows // unit * unit)


def _slug(title: str) -> str:
    plain_letters = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", plain_letters).lower()
    return re.sub(r"[^a-z0-9_]+", "-", words).strip("-")[:64]


def _id(title: str, taken: Iterable[str]) -> str:
    """An id for a column: its own name if that is a valid id."""
    known = set(taken)
    stem = title.strip() if re.fullmatch(r"[a-z0-9_-]{1,64}", title.strip()) else _slug(title)
    stem = stem or "question"
    number, id = 2, stem
    while id in known:
        id, number = f"{stem[:60]}-{number}", number + 1
    return id
