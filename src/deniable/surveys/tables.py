"""Answers in a table: one row per person, one column per question.

Tables     pandas and polars frames, Arrow tables, DuckDB relations and everything else with Arrow's C stream interface;
           a dictionary of columns, or of the answers of one person
Written    text is matched with the written form of the answers, 1 or "1", true or "True", and represents a whole number
           that is written so, 3 or 3.0; decimals that are whole are whole numbers
Records    a question for a record is answered by its own column (structures, dictionaries, or JSON as text), or by one
           column per part, named like the part; a part's column may be chosen as {"habits.age": "How old?"}
Missing    a null, NaN, and empty text that is not an answer; refused unless the question has an answer for it
Messages   name row and column of a bad answer, never the answer
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from deniable._extras import require
from deniable.columns import MOST_NAMED, absent, coded, ignore, kind
from deniable.domains import Domain
from deniable.errors import DomainError, LabelError, ReportError, SpecError, ValueRefused

Columns = Mapping[str, str]
"""Which column of a table answers which question: question id -> column name; "id.part" for a part of a record."""


def table_columns(table: Any, columns: Columns, domains: Mapping[str, Domain]) -> dict[str, Any]:
    """The column of each question, by its id; for a record in parts, a dictionary of columns."""
    refuse_other_things(table)
    if not isinstance(table, Mapping) and not _is_frame(table, "pandas") and not _is_frame(table, "polars"):
        table = _as_arrow(table)
    names = list(table.keys() if isinstance(table, Mapping) else getattr(table, "column_names", table.columns))
    places = column_places(names, spread(columns, domains, names), "the table")
    ignore(names, (names[place] for place in places.values()), "the table")
    return joined({key: table[names[place]] for key, place in places.items()})


def chosen_columns(ids: Iterable[str], columns: Columns | None) -> dict[str, str]:
    """Which column answers which question, in the order of the questions; by default the column with its id."""
    known = list(ids)
    if columns is None:
        return {id: id for id in known}
    if not isinstance(columns, Mapping):
        raise SpecError(f"columns are given as {{id of the question: name of the column}}, not as {kind(columns)}")
    for key, name in columns.items():
        if not isinstance(key, str) or not isinstance(name, str):
            raise SpecError("columns are given as {id of the question: name of the column}, both of them text")
        if _id_of(key) not in known:
            swapped = name in known and f"; did you mean columns={{{name!r}: {key!r}}}, the question first?"
            raise LabelError(f"there is no question {key!r}; there are {', '.join(known)}{swapped or ''}")
    return {key: name for id in known for key, name in columns.items() if _id_of(key) == id}


def spread(columns: Columns, domains: Mapping[str, Domain], names: Iterable[Any]) -> dict[str, str]:
    """The columns to read from a table with these names.

    A record without its own column there, or whose parts were chosen, has one column per part: "id.part" -> name.
    """
    held = {str(name).strip() for name in names}
    found: dict[str, str] = {}
    for id in questions_of(columns):
        parts = [name for name, _ in domains[id].columns]
        chosen = {key: name for key, name in columns.items() if _id_of(key) == id and key != id}
        strange = [key for key in chosen if key.removeprefix(f"{id}.") not in parts]
        if strange:
            raise LabelError(f"question {id!r} has no part {strange[0]!r}; it has {', '.join(parts) or 'none'}")
        # A part with the question's name, as in strata, is in the question's column, if the others have theirs.
        own = {part: columns.get(id, id) if part == id else part for part in parts}
        if chosen or (parts and (columns[id] not in held or (id in parts and held.issuperset(own.values())))):
            found |= {f"{id}.{part}": chosen.get(f"{id}.{part}", column) for part, column in own.items()}
        else:
            found[id] = columns[id]
    return found


def joined(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns by question: those of the parts of a record become one dictionary."""
    found: dict[str, Any] = {}
    for key, column in columns.items():
        id, dot, part = key.partition(".")
        if dot:
            found.setdefault(id, {})[part] = column
        else:
            found[id] = column
    return found


def questions_of(columns: Iterable[str]) -> list[str]:
    """The ids of the questions that these columns answer."""
    return list(dict.fromkeys(map(_id_of, columns)))


def _id_of(key: str) -> str:
    return key.partition(".")[0]


def refuse_other_things(table: Any) -> None:
    """Refuse anything that is not a table, before a message could quote its contents."""
    name = type(table).__name__
    if isinstance(table, str | Path):
        raise SpecError(
            "this is the name of a file, not a table: use dn.files.privatize_file(survey, answers, output), or read "
            "the file with pandas or polars first"
        )
    if _is_frame(table, "pyspark"):
        raise SpecError("for a DataFrame of Spark use deniable.files.spark.write_frame(frame, survey, folder)")
    if name == "LazyFrame":
        raise SpecError("a LazyFrame has no rows yet: give frame.collect()")
    if name == "Series":
        raise SpecError("this is one column, and a table has one per question: give {'id of the question': column}")
    if isinstance(table, list | tuple):
        raise SpecError("answers are given as a table or a dictionary of columns, {'id of the question': [...]}")


def _is_frame(table: Any, package: str) -> bool:
    return type(table).__module__.partition(".")[0] == package and hasattr(table, "columns")


def _as_arrow(table: Any) -> Any:
    if not hasattr(table, "__arrow_c_stream__"):
        for export in ("to_arrow_table", "arrow", "to_arrow"):  # older versions of DuckDB, and others
            if hasattr(table, export):
                return _as_arrow(getattr(table, export)())
        raise SpecError(
            f"{kind(table)} is no table: give a frame of pandas or polars, an Arrow table, a DuckDB "
            "relation, or a dictionary of columns"
        )
    return require("pyarrow", "files").table(table)


def column_places(names: list[str], columns: Columns, where: str, typed: bool = True) -> dict[str, int]:
    """The position of each question's column; a name that is nearly right is pointed out.

    The names of a file that is not `typed` are its first line. Without a header that is somebody's answers, so they are
    shown only if one of them is a name that was looked for.
    """
    found = {id: [i for i, name in enumerate(names) if str(name).strip() == wanted] for id, wanted in columns.items()}
    for id, places in found.items():
        if len(places) > 1:
            raise ReportError(f"{where} has the column {columns[id]!r} twice: rename one")
        if not places:
            complaint = f"{where} has no column {columns[id]!r}"
            near = _meant(names, columns[id], id)
            if typed or any(found.values()):
                shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
                more = ", ..." if len(names) > MOST_NAMED else ""
                raise ReportError(f"{complaint}; it has {shown or 'none'}{more}{near}")
            if near:
                raise ReportError(f"{complaint}{near}")
            raise ReportError(
                f"{complaint}: in its first line, which should be a header, it has {len(names)} other names, separated "
                "by commas, semicolons or tabs"
            )
    return {id: place for id, (place,) in found.items()}


def _meant(names: Iterable[Any], wanted: str, id: str) -> str:
    by_letters = {_letters(str(name)): str(name) for name in names}
    close = get_close_matches(_letters(wanted), by_letters, n=1, cutoff=0.75)
    if not close:
        return ""
    name = by_letters[close[0]].strip()
    if id.startswith("@"):  # a column of a panel, which answers no question
        return f" (did you mean {name!r}?)"
    return f" (did you mean {name!r}? Then say columns={{{id!r}: {name!r}}}, or --column {id}={_quoted(name)})"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _quoted(name: str) -> str:
    from shlex import quote

    return quote(name)


def as_answers(domain: Domain, column: Any, typed: bool = True) -> Any:
    """A column in the form that the domain takes; text becomes the labels that are written so.

    A `typed` column distinguishes 1 and "1"; text such as CSV cannot.
    """
    if (own := domain.from_column(column, typed)) is not None:
        return own
    if domain.columns and (parts := _parts(column)) is not None:
        known = dict(domain.columns)
        return {name: as_answers(known[name], one, typed) if name in known else one for name, one in parts.items()}
    if getattr(getattr(column, "dtype", None), "kind", "O") in "iufb":  # numbers of numpy and pandas
        return column
    found = coded(column)
    if domain.takes_numbers:
        found = found.map(lambda entry: _number(entry) if isinstance(entry, Decimal) else entry)
    if not any(isinstance(entry, str) for entry in found.entries):
        return found
    meaning, empty = domain.reader(typed), domain.empty_is_an_answer
    return found.map(
        lambda entry: entry if not isinstance(entry, str) else None if not entry and not empty else meaning(entry)
    )


def _parts(column: Any) -> Mapping[str, Any] | None:
    """The columns inside a column of records, if it has any."""
    if isinstance(column, Mapping):
        return column
    if not hasattr(column, "type") or not hasattr(column, "flatten") or not hasattr(column.type, "get_field_index"):
        return None
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if array.null_count:
        raise absent(int(np.argmax(array.is_null())))
    return {field.name: array.field(place) for place, field in enumerate(array.type)}


def _number(value: Decimal) -> int | float:
    return int(value) if value.is_finite() and value == int(value) else float(value)


def refusal(wrong: DomainError, column: str, where: str, row: int = 0) -> DomainError:
    """A domain's error about one value of a column, with row and column instead of the value's place."""
    if not isinstance(wrong, ValueRefused) or wrong.place is None:
        return DomainError(f"column {column!r} of {where}: {wrong}")
    part = wrong.complaint.startswith(", column ")  # a record names its part itself
    return DomainError(
        wrong.about(f"row {row + wrong.place + 1} of {where}" + ("" if part else f", column {column!r}"))
    )
