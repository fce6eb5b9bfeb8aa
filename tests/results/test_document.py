"""One document per result: every kind has one, with all numbers of its table, and all forms are drawn from it."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import deniable as dn
from deniable.errors import DeniableError
from deniable.labels import label_spec
from deniable.protocols import Protocol, registered
from deniable.protocols.traits import needs_candidates
from deniable.results import Document, Result, View
from deniable.results.document import documented, plain, schema
from deniable.results.render.csv import COLUMNS, as_arrow, as_csv, columns_of
from deniable.results.render.text import as_html, as_text, cells, merged
from deniable.results.rows import Rows, decimals, number

ROUNDING = Path(__file__).parents[2] / "web" / "test" / "rounding.json"
KINDS = [pytest.param(list(kind.examples())[-1], id=name) for name, kind in sorted(registered().items())]


def some_result(protocol: Protocol, people: int = 400) -> Any:
    try:
        inputs = zip(protocol.law().inputs(), range(8), strict=False)
        given = [protocol.domain.answer(label) for (label, _), _ in inputs]
    except DeniableError:
        given = []
    some = given or [protocol.domain.example]
    reports = protocol.privatize([some[(i * i) % len(some)] for i in range(people)], bits=dn.Simulation(7))
    named = (list(map(str, some)),) if needs_candidates(protocol) else ()
    return protocol.estimate(protocol.tally(reports), *named)


def numbers(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["label"], row["value"], row["stderr"], row["low"], row["high"], row["unit"]) for row in rows]


@pytest.mark.parametrize("protocol", KINDS)
def test_a_document_has_every_number_of_the_table(protocol: Protocol) -> None:
    result: Result = some_result(protocol)
    for view in (View(), View(0.8, True, consistent="norm-sub")):
        whole = result.document(view)
        expected = result.table(view.level, view.simultaneous, view.population).records(json=True)
        assert numbers(whole.rows) == numbers(expected)
        content = json.loads(json.dumps(plain(whole), allow_nan=False))
        assert msgspec.convert(content, Document) == whole
        for name, part in result.documents(view).items():
            own = result.tables(view.level, view.simultaneous, view.population)[name]
            assert numbers(part.rows) == numbers(own.records(json=True))
            assert all(set(row) == set(section.columns) for section in part.sections for row in section.rows)


@pytest.mark.parametrize("protocol", KINDS)
def test_all_forms_show_the_same_rows(protocol: Protocol) -> None:
    document = some_result(protocol).document()
    size = sum(len(section.rows) for section in document.sections)
    lines = list(csv.DictReader(io.StringIO(as_csv([document]))))
    assert len(lines) == size == as_arrow([document]).num_rows
    assert columns_of([document]) == as_arrow([document]).column_names
    assert set(columns_of([document])) <= set(COLUMNS)
    values = [row["value"] for section in document.sections for row in section.rows]
    assert [float(line["value"]) if line["value"] else None for line in lines] == values
    _, body = cells(document, merged(document))
    text = as_text(document)
    assert all(cell in text for line in body for cell in line)
    assert as_html(document).count("<tr>") == len(body) + 1


def test_marks_are_data_and_not_words() -> None:
    window = dn.Window(dn.Interval(0, 24, unit="hours"), 1, read="distribution")
    document = some_result(window).document(View(ranges=((2.0, 9.0), (1.0, 2.0, 3.0, 4.0))))
    sections = {section.id: section for section in document.sections}
    assert [(one.id, one.picture, one.further) for one in document.sections] == [
        ("figures", "points", False),
        ("bins", "histogram", False),
        ("cumulative", "curve", True),
        ("ranges", "points", True),
    ]
    figures = sections["figures"]
    assert [mark.quantile for mark in figures.marks if mark.quantile] == [0.05, 0.25, 0.5, 0.75, 0.95]
    median = next(mark.row for mark in figures.marks if mark.quantile == 0.5)
    assert figures.rows[median]["label"] == "median"
    on_curve = {mark.quantile: mark.value for mark in sections["cumulative"].marks}
    assert on_curve[0.5] == figures.rows[median]["value"]
    assert len(sections["ranges"].rows) == 1
    assert document.headline is not None
    assert (document.headline.id, document.headline.parameters["unit"]) == ("median", "hours")
    assert (sections["bins"].unit, figures.unit) == ("", "hours")


def test_the_consistent_form_stands_next_to_the_unbiased_one() -> None:
    estimate = some_result(dn.OUE(["tea", "coffee", "water"], epsilon=1))
    (document,) = estimate.documents(View(consistent="norm-sub")).values()
    made = estimate.consistent("norm-sub").table()
    rows = document.rows
    assert [row["consistent"] for row in rows] == made.value.tolist()
    assert [[row["consistent_low"], row["consistent_high"]] for row in rows] == made.ends.tolist()
    assert [row["value"] for row in rows] == estimate.table().value.tolist()
    assert (document.biased, estimate.consistent("norm-sub").document().biased) == (False, True)
    (mean,) = some_result(dn.Window(dn.Interval(0, 1), 1)).documents(View(consistent="norm-sub")).values()
    assert "consistent" not in mean.sections[0].columns


def test_the_tally_is_tested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tested, tabled = [], []
    protocol = dn.OUE(["tea", "coffee", "water"], epsilon=1)
    checks, table = Protocol.misfit, type(some_result(protocol)).table

    def counted(self: Protocol, *given: Any) -> Any:
        tested.append(self)
        return checks(self, *given)

    def shown(self: Any, *given: Any) -> Rows:
        tabled.append(self)
        return table(self, *given)

    result = some_result(protocol, people=20_000)
    monkeypatch.setattr(Protocol, "misfit", counted)
    monkeypatch.setattr(type(result), "table", shown)
    result = protocol.estimate(protocol.tally(protocol.privatize(["tea"] * 20_000, bits=dn.Simulation(1))))
    result.documents(View(consistent="norm-sub"))
    assert (len(tested), len(tabled)) == (1, 2)  # the unbiased and the consistent table


def test_the_schema_describes_documents() -> None:
    made = schema()
    fields = made["$defs"]["Document"]["properties"]
    assert {"sections", "trust", "headline", "notes"} <= set(fields)
    pictures = made["$defs"]["Section"]["properties"]["picture"]["enum"]
    assert sorted(pictures) == ["bars", "curve", "histogram", "lines", "map", "matrix", "points"]


def test_numbers_are_rounded_as_in_the_browser() -> None:
    """The same file is read by `web/test/format.test.js`."""
    for case in json.loads(ROUNDING.read_text()):
        digits = decimals(math.nan if case["error"] is None else case["error"])
        assert (digits, number(case["value"], digits)) == (case["decimals"], case["written"])


def test_a_stranger_writes_a_table_only() -> None:
    class Stranger(Result):
        kind, protocol, method, n = "strange", "Strange", "guessed", 5

        def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
            one = np.array([0.5, math.nan])
            more = {"luck": np.array([1.0, 2.0])}
            return Rows(["a", (1, "b")], one, one / 10, one - 0.1, one + 0.1, "kg", level, more=more)

        def repeated(self, noise: float, people: float) -> Any:
            return self

    found = Stranger()
    rows = found.table()
    document = documented(found, View(), rows)
    assert document.sections[0].rows[1]["label"] == label_spec((1, "b"))
    assert document.sections[0].columns[-1] == "luck"
    assert as_csv([document]).splitlines()[0].endswith(",luck")
    assert " ".join(str(found).split("\n")[2].split()) == "a 0.500 0.050 0.400 .. 0.600"
