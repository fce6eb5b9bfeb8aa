"""One shape of results: every form of every kind has the same numbers, and every object renders in a notebook."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable._sheets import Sheet, Shown
from deniable.audit import audit
from deniable.errors import LabelError, MismatchError, MissingExtra
from deniable.planning import information
from deniable.protocols import Protocol
from deniable.results import Difference, Quantity, Result, Series
from deniable.surveys import Longitudinal
from tests.results.test_document import KINDS, some_result
from tests.surveys.test_terms import SURVEY, TERMS

HOSTILE = ["<script>alert(1)</script>", r"50 % & \input{x}_$", "a\u202eb"]


def same(first: Any, second: Any) -> bool:
    """Equal numbers; an unknown one is null in frames."""
    known = [math.nan if one is None else float(one) for one in first]
    return np.array_equal(known, np.where(np.isfinite(second), second, math.nan), equal_nan=True)


@pytest.mark.parametrize("protocol", KINDS)
def test_every_form_has_the_numbers_of_the_table(protocol: Protocol) -> None:
    result: Result = some_result(protocol)
    for level in (0.95, 0.8):
        rows = result.table(level)
        size, arrow = len(rows), result.to_arrow(level)
        pandas, polars = result.to_pandas(level), result.to_polars(level)
        assert pandas.shape == polars.shape == arrow.shape
        for name in ("value", "stderr", "low", "high"):
            column = arrow[name].to_pylist()
            assert same(column[:size], getattr(rows, name))
            assert same(pandas[name], np.array(column, dtype=float))
            assert polars[name].to_list() == column
        body = result.sheet(level).body
        latex, html = result.to_latex(level), result.sheet(level).html()
        assert latex.count(r"\\") == len(body) + 1
        assert html.count("<tr>") == len(body) + 1
    rows, ends = result.table(), result.table(0.8).ends
    if isinstance(result, Series):  # answers by epochs; its table has the mean over all epochs besides
        kept = np.array([label != "all epochs" for label in rows.labels])
        assert result.value.shape == result.stderr.shape == result.interval().shape[:2]
        rows, ends = rows.some(kept), ends[kept]
    assert same(np.ravel(result.value), rows.value)
    assert same(np.ravel(result.stderr), rows.stderr)
    assert same(np.ravel(result.interval(0.8)), ends.reshape(-1))


@pytest.mark.parametrize("protocol", KINDS)
def test_a_figure_is_a_row_of_the_table(protocol: Protocol) -> None:
    result: Result = some_result(protocol)
    rows = result.table()
    for place, key in islice(enumerate(rows.keys), 6):
        figure = Result.__getitem__(result, key)
        assert isinstance(figure, Quantity)
        assert same([figure.value, figure.stderr], [rows.value[place], rows.stderr[place]])
        for population in (True, False):
            assert same(figure.interval(0.8, population), result.table(0.8, population=population).ends[place])
    for key in result:
        assert result[key] is not None
    with pytest.raises(LabelError, match="there"):
        result["no such answer"]


def test_a_figure_is_found_by_its_label_and_no_other() -> None:
    found = some_result(dn.GRR([True, 1, "1"], epsilon=2))
    assert [found[label].value for label in (True, 1, "1")] == found.value.tolist()
    with pytest.raises(LabelError, match="no row 'yes'; there are True, 1, '1'"):
        found["yes"]
    parts = some_result(dn.Attributes({"a": ["x", "y"], "b": ["x", "z"]}, epsilon=2))
    assert parts["a"]["x"] == parts["a", "x"] != parts["b", "x"]


def some_shown() -> dict[str, Any]:
    """One object of each sort that has a table."""
    smoke = dn.GRR(["yes", "no"], epsilon=1)
    first, second = some_result(smoke), some_result(smoke, people=900)
    coin = dn.Channel([[3 / 4, 1 / 4], [1 / 4, 3 / 4]], inputs=["yes", "no"], outputs=["yes", "no"])
    design = dn.design.mutual_information([1 / 2, 1 / 2], 1)
    survey = dn.Survey("habits", [dn.Question("smoke", "Do you smoke?", smoke)])
    return {
        "plan": dn.plan(["yes", "no"], epsilon=1, n=1000),
        "information": information(dn.Categories(["yes", "no"]), 1, protocols=[smoke]),
        "channel": coin,
        "design": design,
        "verdict": design.certificate.verify(),
        "difference": first - second,
        "test": first.test([0.5, 0.5]),
        "audit": audit(survey),
        "survey": survey.estimate(survey.privatize({"smoke": ["yes", "no"] * 50}, bits=dn.Simulation(3))),
    }


def test_every_object_renders_and_becomes_a_frame() -> None:
    for name, one in some_shown().items():
        assert isinstance(one, Shown)
        html, arrow = one._repr_html_(), one.to_arrow()
        assert html.count("<tr>") >= 2, name
        assert ("<img" in html) == (name in ("channel", "design", "survey")), name
        assert one.to_pandas().shape == one.to_polars().shape == arrow.shape, name
        assert arrow.num_rows >= 1, name
        assert r"\toprule" in one.to_latex(), name
    levels = dn.LGRR(["yes", "no"], first=1, forever=2).law().stages.levels(4, 1)
    assert levels._repr_html_().count("<tr>") == 5


def test_frames_have_the_numbers_of_their_objects() -> None:
    known = some_shown()
    plan = known["plan"]
    assert plan.to_pandas()["noise"].tolist() == [option.noise for option in plan.table]
    assert plan.to_pandas()["chosen"].tolist() == [option is plan.choice for option in plan.table]
    assert known["channel"].to_pandas()["probability"].tolist() == [0.75, 0.25, 0.25, 0.75]
    difference: Difference = known["difference"]
    assert difference.to_pandas()["difference"].tolist() == difference.value.tolist()
    assert known["test"].to_pandas()["p_value"].tolist() == [known["test"].p_value]
    assert known["audit"].to_pandas()["exact"].tolist() == [
        part.exact for part in (*known["audit"].parts, known["audit"])
    ]


def test_a_channel_with_many_answers_shows_its_beginning() -> None:
    large = dn.GRR(50, epsilon=1).channel()
    made = large.sheet()
    assert (len(made.body), len(made.head)) == (20, 21)
    assert made.below == ["the first 20 x 20 of 50 x 50"]
    assert large.to_arrow().num_rows == 2500


def test_labels_are_text_in_html_and_in_latex() -> None:
    html, latex = (
        form(some_result(dn.OUE(HOSTILE, epsilon=1)))
        for form in (lambda one: one._repr_html_(), lambda one: one.to_latex())
    )
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\u202e" not in html + latex
    assert r"\input" not in latex
    assert r"50 \% \& \textbackslash{}input\{x\}\_\$" in latex
    assert not re.search(r"(?<!\\)[%$#_]", latex)


def test_a_result_has_its_picture_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    found = some_result(dn.GRR(["yes", "no"], epsilon=1))
    assert 'src="data:image/png;base64,' in found._repr_html_()
    assert pyplot.get_fignums() == before, "a notebook would show the picture twice"
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "<img" not in found._repr_html_()
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}.*deniable\[frames\]"):
        getattr(some_result(dn.GRR(["yes", "no"], epsilon=1)), f"to_{package}")()


def test_a_table_of_two_columns_is_pivoted() -> None:
    both = dn.Attributes({"a": ["x", "y"], "b": ["1", "2", "3"]}, epsilon=2, ask="pairs")
    given = [{"a": "xy"[i % 2], "b": "123"[i % 3]} for i in range(600)]
    crossed = both.estimate(both.tally(both.privatize(given, bits=dn.Simulation(5)))).table("a", "b")
    frame = crossed.pivot()
    assert frame.index.tolist() == ["x", "y"]
    assert frame.columns.tolist() == ["1", "2", "3"]
    assert (frame.index.name, frame.columns.name) == ("a", "b")
    assert np.array_equal(frame.to_numpy(), crossed.array)
    assert frame.loc["y", "2"] == crossed["y", "2"].value == crossed["y & 2"].value
    assert np.array_equal(crossed.pivot("low").to_numpy().reshape(-1), crossed.table().low)
    assert crossed.sheet().head == ["a / b", "1", "2", "3"]
    assert len(crossed.sheet().body) == 2
    assert crossed.over("a").pivot().shape == (1, 2)
    with pytest.raises(LabelError, match="no figure 'median'"):
        crossed.pivot("median")


def test_a_survey_estimates_reports_and_tallies_alike() -> None:
    questions = [dn.Question("smoke", "Do you smoke?", dn.GRR(["yes", "no"], epsilon=1))]
    questions.append(dn.Question("age", "How old?", dn.Window(dn.Interval(0, 100), 1)))
    survey = dn.Survey("habits", questions)
    reports = survey.privatize({"smoke": ["yes", "no"] * 40, "age": [20.0, 40.0] * 40}, bits=dn.Simulation(4))
    tally = survey.tally(reports)
    found = survey.estimate(reports)
    assert list(found) == ["smoke", "age"]
    direct = survey["smoke"].protocol.estimate(tally["smoke"])
    for other in (survey.estimate(tally), survey.estimate(tally.tallies), found):
        assert other["smoke"].value.tolist() == direct.value.tolist()
        assert other["age"].value == found["age"].value
    frame = found.to_pandas()
    assert frame["question"].tolist() == ["smoke", "smoke", "age"]
    assert frame["value"].tolist()[:2] == direct.value.tolist()
    assert survey.estimate(tally, consistent="norm-sub")["smoke"].method == "norm-sub"
    with pytest.raises(MismatchError):
        dn.Survey("other", questions).estimate(tally)
    with pytest.raises(LabelError, match="no question 'smokes'"):
        found["smokes"]


def test_a_survey_that_repeats_its_noise_says_so() -> None:
    terms = replace(TERMS, longitudinal=Longitudinal("memoize", epochs=3))
    survey = dn.Survey(SURVEY.name, SURVEY.questions, terms)
    said = next(iter(survey.estimate(dn.SurveyTally.empty(survey)).values())).notes
    assert any("too small if these reports are of several" in one for one in said)


def test_a_sheet_marks_the_row_that_stands_out() -> None:
    sheet = Sheet([], ["a", "b"], [["1", "2"], ["3", "4"]], marked=1)
    assert "<th>3</th><th>4</th>" in sheet.html()
    assert "<td>1</td>" in sheet.html()
