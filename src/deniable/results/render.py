"""Documents as text, HTML, rich tables, CSV and Arrow.

Text, HTML and rich tables round each figure by the one rule of `deniable.results.rows`. CSV and Arrow have every number
in full: one line per row, all sections one below the other, under the names of `COLUMNS`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deniable._extras import require
from deniable._plain import csv_cell, escaped
from deniable._sheets import Sheet
from deniable.labels import cell, load_label, shown, text
from deniable.results.document import CONSISTENT, Document, Section
from deniable.results.rows import RESPONDENTS, ROWS_SHOWN, decimals, number, order

NONE = "none"
"""Shown instead of an interval that would be the whole range."""

NUMBERS = ("value", "stderr", "low", "high")
OF_ROWS = (
    *("group", "label", *NUMBERS, "unit", "count", "p_value", "begin", "end", "second_begin", "second_end"),
    *("lift", "lift_stderr", "guess", "posterior", "anytime", "rejected", *CONSISTENT, "assumed"),
)
"""Columns that differ from row to row."""
OF_DOCUMENTS = (
    *("n", "level", "population", "simultaneous", "method", "protocol", "unlisted", "epsilon", "noise_floor"),
    "poisoning",
)
"""Columns that are the same for all rows of a document."""
COLUMNS = ("question", "section", *OF_ROWS, *OF_DOCUMENTS)


def question_name(document: Document) -> str:
    """The name of a question, or of a part of it: "habits.age"."""
    return f"{document.id}.{document.part}" if document.part else document.id


# -- for people ---------------------------------------------------------------------------------------


def title(document: Document) -> str:
    """The protocol, the method and the number of reports; for channels how far the iteration came."""
    head = "" if document.protocol == "channel" else f"{document.protocol}, "
    steps = document.facts.get("iterations")
    within = f"; {steps} updates, within {document.facts['gap']:.1e} nats per report of the maximum" if steps else ""
    return f"{head}{document.method}, n = {document.n:,}{within}"


def interval_name(document: Document, section: Section) -> str:
    """The heading of the intervals, with everything that qualifies them."""
    said = ", all answers at once" if section.simultaneous else ""
    said += "" if document.population else f", {RESPONDENTS}"
    assumed = next((row["assumed"] for row in section.rows if row.get("assumed")), "")
    said += f", assuming {assumed}" if assumed else ""
    return f"{100 * document.level:g} % interval{'s' if section.simultaneous else ''}{said}"


def p_text(p: float | None) -> str:
    """A p-value for people."""
    return "-" if p is None or math.isnan(p) else "<1e-15" if p < 1e-15 else f"{p:.2g}"


def name_of(row: Mapping[str, Any]) -> str:
    """What a row is about, with its part."""
    name = shown(load_label(row["label"]))
    return f"{escaped(row['group'])}: {name}" if row.get("group") else name


def _order(section: Section, most: float) -> list[int]:
    labels = [load_label(row["label"]) for row in section.rows]
    value = np.array([math.nan if row["value"] is None else row["value"] for row in section.rows])
    groups = [row.get("group", "") for row in section.rows]
    return [int(one) for one in order(labels, value, groups if any(groups) else (), section.ordered, most)]


def merged(document: Document) -> Section:
    """The table of a document: its sections as one, without the further ones."""
    own = [section for section in document.sections if not section.further]
    if len(own) == 1:
        return own[0]
    columns = list(dict.fromkeys(column for section in own for column in section.columns))
    first = own[0]
    return Section(
        id=first.id,
        picture=first.picture,
        heading=first.heading,
        columns=columns,
        rows=document.rows,
        ordered=first.ordered,
        simultaneous=first.simultaneous,
    )


def cells(document: Document, section: Section, most: float = ROWS_SHOWN) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of a section for people: the rows to show, each rounded by its own error."""
    if section.id == "hypotheses":
        return _hypotheses(section)
    units = {row.get("unit", "") for row in section.rows}
    unit = section.unit or (units.pop() if len(units) == 1 else "")
    own = {name: name in section.columns for name in ("count", "p_value", "lift")}
    head = ["answer", *(["count"] if own["count"] else []), section.heading + (f", {unit}" if unit else "")]
    head += ["stderr", interval_name(document, section), *(["p-value"] if own["p_value"] else [])]
    head += ["lift"] if own["lift"] else []
    body = []
    for place in _order(section, most):
        row = section.rows[place]
        error = row["stderr"]
        digits = decimals(math.nan if error is None else error)
        after = "" if unit or not row["unit"] else f" {shown(row['unit'])}"
        line = [name_of(row), *([_number(row["count"], 1)] if own["count"] else []), _number(row["value"], digits)]
        line += [_error(row, digits), _span(document, section, row, digits) + after]
        line += [p_text(row["p_value"])] if own["p_value"] else []
        line += [_number(row["lift"], decimals(_float(row["lift_stderr"])))] if own["lift"] else []
        body.append(line)
    return head, body


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _number(value: float | None, digits: int) -> str:
    return number(_float(value), digits)


def _error(row: Mapping[str, Any], digits: int) -> str:
    if row["stderr"] is None:
        return "-" if row["value"] is None else "unknown"
    return number(row["stderr"], digits)


def _span(document: Document, section: Section, row: Mapping[str, Any], digits: int) -> str:
    low, high = row["low"], row["high"]
    known = bool(section.limits) and bool(document.n) and low is not None and high is not None
    if known and low <= section.limits[0] and high >= section.limits[1]:
        return NONE
    ends = ("-inf" if low is None else number(low, digits)), ("inf" if high is None else number(high, digits))
    return f"{ends[0]} .. {ends[1]}"


def _hypotheses(section: Section) -> tuple[list[str], list[list[str]]]:
    body = []
    for row in section.rows:
        low, high = p_text(row["low"]), p_text(row["value"])
        span = high if low == high else f"{low} to {high}"
        out = "rejected" if row["rejected"] else "possible"
        body.append([name_of(row), span, number(row["posterior"], 4), p_text(row["anytime"]), out])
    return ["hypothesis", "p-value", "posterior", "p-value, any number of looks", "verdict"], body


def remarks(document: Document, shown_rows: int, rows: int) -> list[str]:
    """The sentences below a table."""
    some = [f"the {shown_rows} largest of {rows}"] if rows > shown_rows else []
    said = [*some, *document.notes, *([document.remark] if document.remark else [])]
    return [*said, unlisted(document)] if document.n and document.facts.get("unlisted") is not None else said


def unlisted(document: Document) -> str:
    """The share of the texts that are not listed, with its standard error."""
    rest, error = document.facts["unlisted"], _float(document.facts["unlisted_stderr"])
    digits = decimals(error)
    return f"unlisted: {number(rest, digits)} +- {number(error, digits)}"


def sheet(document: Document) -> Sheet:
    """The table of a document for people, with its sentences."""
    section = merged(document)
    head, body = cells(document, section)
    above = [*([document.headline.text] if document.headline else []), title(document)]
    return Sheet(above, head, body, remarks(document, len(body), len(section.rows)))


def as_text(document: Document) -> str:
    """The table of a document in aligned columns, with its sentences."""
    made = sheet(document)
    above, head, body, below = made.above, made.head, made.body, made.below
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    lines = [
        "  ".join(
            f"{one:<{width}}" if i == 0 else f"{one:>{width}}"
            for i, (one, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [head, *body]
    ]
    return "\n".join(escaped(one) for one in [*above, *lines, *below])


def as_rich(document: Document) -> Any:
    """The same as a table of rich."""
    from rich.table import Table
    from rich.text import Text

    made = sheet(document)
    above, head, body, below = made.above, made.head, made.body, made.below
    heading, caption = (Text("\n".join(map(escaped, lines))) for lines in (above, below))
    table = Table(title=heading, caption=caption if below else None)
    for i, name in enumerate(head):
        table.add_column(Text(escaped(name)), justify="left" if i == 0 else "right")
    for line in body:
        table.add_row(*(Text(escaped(one)) for one in line))
    return table


def as_html(document: Document) -> str:
    """The same as a table for notebooks."""
    return sheet(document).html()


# -- for programs -------------------------------------------------------------------------------------


def columns_of(documents: Iterable[Document]) -> list[str]:
    """The names of `COLUMNS` that these documents have, with those that only their kinds know."""
    known: set[str] = {"section", "n", "level", "population", "simultaneous", "method", "protocol"}
    others: dict[str, None] = {}
    for document in documents:
        known |= {"question"} if document.id else set()
        known |= {"unlisted"} if "unlisted" in document.facts else set()
        known |= {"epsilon", "noise_floor", "poisoning"} if document.trust.epsilon else set()
        for section in document.sections:
            known.update(section.columns)
            others |= dict.fromkeys(column for column in section.columns if column not in OF_ROWS)
    return [*(name for name in COLUMNS if name in known), *others]


def lines_of(document: Document, columns: Sequence[str]) -> Iterable[list[Any]]:
    """One list per row of all sections, under these columns; labels are Python's."""
    trust = document.trust
    same: dict[str, Any] = {"question": question_name(document), "n": document.n, "level": document.level}
    same |= {"population": document.population, "method": document.method, "protocol": document.protocol}
    same |= {"unlisted": document.facts.get("unlisted"), "epsilon": decimal_epsilon(trust.epsilon)}
    same |= {"noise_floor": trust.noise_floor, "poisoning": trust.poisoning}
    for section in document.sections:
        own = same | {"section": section.id, "simultaneous": section.simultaneous}
        for row in section.rows:
            found = own | row | {"label": load_label(row["label"])}
            yield [found.get(column) for column in columns]
    if not document.sections:
        own = same | {"simultaneous": document.simultaneous}
        yield [own.get(column) for column in columns]


def decimal_epsilon(epsilon: str | None) -> float | None:
    """Epsilon as a decimal number: a spreadsheet would read 1/2 as a date."""
    if epsilon is None:
        return None
    top, _, bottom = epsilon.partition("/")
    return float(f"{float(top) / float(bottom or 1):.15g}")


def as_csv(documents: Sequence[Document], formulas: bool = False, columns: Sequence[str] | None = None) -> str:
    """CSV with one line per row, after a line with the names of the columns.

    Text that a spreadsheet would run as a formula gets a leading ', unless `formulas` is set.
    """
    out = io.StringIO()
    names = columns_of(documents) if columns is None else columns
    csv.writer(out, lineterminator="\n").writerow(names)
    return out.getvalue() + csv_lines(documents, names, formulas)


def csv_lines(
    documents: Iterable[Document], columns: Sequence[str], formulas: bool = False, first: Sequence[Any] = ()
) -> str:
    """The lines of `as_csv`, each after the cells of `first`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    place = columns.index("label") if "label" in columns else None
    for document in documents:
        for line in lines_of(document, columns):
            if place is not None and line[place] is not None:
                line[place] = cell(line[place])
            writer.writerow([*first, *("" if one is None else csv_cell(one, formulas) for one in line)])
    return out.getvalue()


_TEXTS = ("question", "section", "group", "unit", "method", "protocol", "assumed")
_TRUTHS = ("population", "simultaneous")


def as_arrow(documents: Sequence[Document]) -> Any:
    """A pyarrow table with the same columns; an unknown number is null."""
    pa = require("pyarrow", "files")
    names = columns_of(documents)
    lines = [line for document in documents if document.sections for line in lines_of(document, names)]
    columns = dict(zip(names, zip(*lines, strict=True), strict=True)) if lines else dict.fromkeys(names, ())
    found = {}
    for name, column in columns.items():
        if name == "label":
            alike = len({type(label) for label in column}) == 1
            found[name] = pa.array(list(column) if alike else [text(label) for label in column])
        elif name in _TEXTS:
            found[name] = pa.array(column, pa.string())
        else:
            whole = name == "n" and all(isinstance(one, int) for one in column)
            found[name] = pa.array(column, pa.bool_() if name in _TRUTHS else pa.int64() if whole else pa.float64())
    return pa.table(found)
