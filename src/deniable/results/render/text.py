"""Documents for people: text, rich tables and HTML, each figure rounded by the one rule of `deniable.results.rows`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable._plain import escaped
from deniable._sheets import Sheet
from deniable.labels import load_label, shown
from deniable.results.document import Document, Section
from deniable.results.rows import RESPONDENTS, ROWS_SHOWN, decimals, number, order

NONE = "none"
"""Shown instead of an interval that would be the whole range."""


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
