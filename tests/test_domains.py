"""Domains: every way in gives the same positions, and nothing outside gets through."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deniable as dn
from deniable.domains import Categories, Integers, Strings, as_domain, load_domain
from deniable.errors import DeniableError, DomainError, SpecError, ValueRefused
from deniable.protocols import GRR, OUE

ANSWERS = Categories(["never", "once", "often"])
VALUES = ["often", "never", "often", "once"]
POSITIONS = [2, 0, 2, 1]


@pytest.mark.parametrize(
    "column",
    [
        VALUES,
        tuple(VALUES),
        iter(VALUES),
        np.array(VALUES),
        np.array(VALUES, dtype=object),
        pa.array(VALUES),
        pa.array(VALUES).dictionary_encode(),
        pa.chunked_array([VALUES[:1], VALUES[1:]]),
        pa.chunked_array([VALUES]).dictionary_encode(),
        pd.Series(VALUES),
        pd.Series(VALUES, dtype="category"),
        pd.Series(VALUES, dtype="string[pyarrow]"),
        pl.Series(VALUES),
        pl.Series(VALUES, dtype=pl.Categorical),
    ],
    ids=lambda column: type(column).__name__,
)
def test_every_kind_of_column(column: Any) -> None:
    assert ANSWERS.index(column).tolist() == POSITIONS


def test_one_value_and_none() -> None:
    assert ANSWERS.index("once").tolist() == [1]
    assert ANSWERS.index([]).tolist() == []
    assert Integers(5, 9).index(7).tolist() == [2]
    assert Integers(5, 9).index([]).tolist() == []


def test_numbers_and_truth_values_are_different_answers() -> None:
    mixed = Categories([1, True, "1", 0])
    assert mixed.index([True, 1, "1", 0]).tolist() == [1, 0, 2, 3]
    assert mixed.index(np.array([1, 0])).tolist() == [0, 3]
    assert mixed.index(np.array([True])).tolist() == [1]
    with pytest.raises(DomainError, match="bool"):
        Categories([1, 0]).index([True])
    with pytest.raises(DomainError):
        Categories([1, 0]).index(np.array([True]))


def test_text_is_compared_in_one_unicode_form() -> None:
    assert Categories(["caf\u00e9", "tea"]).index(["cafe\u0301"]).tolist() == [0]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["never", "s3cret"], "value 1, a str, is not one of the 3 categories"),
        (pd.Series(["never", None]), "value 1 is missing"),
        (pl.Series(["never", None]), "value 1 is missing"),
        (pd.Series(["never", None], dtype="category"), "value 1 is missing"),
        ([None], "value 0 is missing"),
        ([float("nan")], "value 0 is missing"),
        (pa.array(["never", None]), "value 1 is missing"),
        (pa.array(["never", "s3cret"]), "value 1, a str"),
        (np.array(["s3cret"]), "value 0, a str"),
        ([3], "an int"),
        (pd.Series(["never", None], dtype="string"), "value 1 is missing"),
        (pd.Series(["never", pd.NA], dtype=object), "value 1 is missing"),
        (np.zeros((2, 2)), "flat column"),
        ([["never"]], "a list"),
    ],
)
def test_unknown_answers_are_refused_by_kind_and_place(column: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message) as refused:
        ANSWERS.index(column)
    assert "s3cret" not in str(refused.value)


def test_unknown_answers_may_count_as_other() -> None:
    answers = Categories(["a", "b"], other="something else")
    assert answers.values == ("a", "b", "something else")
    assert answers.index(["b", "z", 7]).tolist() == [1, 2, 2]
    assert answers.index(pa.array(["z", "a"])).tolist() == [2, 0]
    assert Categories(["a", "rest"], other="rest").size == 2
    with pytest.raises(DomainError, match="missing"):
        answers.index([None])


@pytest.mark.parametrize(
    ("values", "message"),
    [(["a"], "at least 2"), (["a", "a"], "twice"), ("ab", "one text"), ([1.5, 2], "float"), ([("a",), "b"], "tuple")],
)
def test_unusable_categories(values: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        Categories(values)


UNORDERED = [
    {"yes", "no"},
    frozenset({"yes", "no"}),
    {"yes": 1, "no": 2},
    {"yes": 1, "no": 2}.keys(),
    {1: "yes", 2: "no"}.values(),
    {"yes": 1, "no": 2}.items(),
    Counter(["yes", "no"]),
]


@pytest.mark.parametrize(
    "build",
    [
        Categories,
        as_domain,
        lambda labels: GRR(labels, 1),
        lambda labels: dn.plan(labels, epsilon=1, n=100),
        lambda labels: dn.channels.randomized_response(labels, 1),
        lambda labels: dn.Channel([[0.5, 0.5], [0.5, 0.5]], inputs=labels),
        lambda labels: dn.Channel([[0.5, 0.5], [0.5, 0.5]], outputs=labels),
        lambda labels: dn.channels.exponential(lambda x, y: float(x == y), 1, labels, ["yes", "no"]),
    ],
)
def test_labels_without_an_order_are_refused(build: Any) -> None:
    """The order of a set of texts differs from one process to the next, and with it every position."""
    for labels in UNORDERED:
        with pytest.raises(DeniableError, match=r"order may differ.*give a list"):
            build(labels)
    for labels in (iter(["yes", "no"]), (label for label in ["yes", "no"]), map(str, [1, 2])):
        with pytest.raises(DeniableError, match=r"order cannot be seen: give a list"):
            build(labels)
    for labels in (["yes", "no"], ("yes", "no"), np.array(["yes", "no"]), pd.Index(["yes", "no"])):
        build(labels)


@pytest.mark.parametrize(
    "column",
    [
        ["b", None, float("nan"), "a"],
        np.array(["b", None, np.nan, "a"], dtype=object),
        pa.array(["b", None, None, "a"]),
        pa.chunked_array([["b", None], [None, "a"]]).dictionary_encode(),
        pd.Series(["b", None, np.nan, "a"]),
        pd.Series(["b", pd.NA, None, "a"], dtype="string"),
        pd.Series(["b", None, None, "a"], dtype="category"),
        pl.Series(["b", None, None, "a"]),
        pl.Series(["b", None, None, "a"], dtype=pl.Categorical),
    ],
)
def test_missing_answers_may_count_as_one_that_is_named(column: Any) -> None:
    named = Categories(["a", "b"], missing="no answer")
    assert named.values == ("a", "b", "no answer")
    assert named.index(column).tolist() == [1, 2, 2, 0]
    assert Categories(["a", "b"], other="else", missing="none").index(column).tolist() == [1, 3, 3, 0]
    encoded = Strings(missing="no answer").encode(column)
    codes, texts = encoded.which, encoded.entries
    assert [texts[code] for code in codes] == ["b", "no answer", "no answer", "a"]
    for refusing in (Categories(["a", "b"]).encode, Strings().encode):
        with pytest.raises(DomainError, match=r'value 1 is missing.*"missing": "no answer"'):
            refusing(column)


def test_numbers_with_gaps() -> None:
    years = Categories([*range(2020, 2026), "no answer"], missing="no answer")
    assert years.index(pd.Series([2020, None, 2025])).tolist() == [0, 6, 5]
    assert years.index(pl.Series([2020, None, 2025])).tolist() == [0, 6, 5]
    with pytest.raises(DomainError, match="value 1, a float"):
        years.index([2020.0, 2020.5])


def test_what_is_nearly_a_category_is_told() -> None:
    answers = Categories(["Yes", "no"])
    for near, hint in ((" no", "without the blanks around it"), ("yes", "but for upper and lower case"), ("x", "")):
        with pytest.raises(DomainError) as refused:
            answers.index(["no", near])
        assert hint in str(refused.value)
        assert ("it would be one" in str(refused.value)) == bool(hint)


def test_integers() -> None:
    years = Integers(1900, 2026)
    assert years.size == 127
    assert years.index(np.array([1900, 2026], dtype=np.int16)).tolist() == [0, 126]
    for column in (pa.array([1901]), pd.Series([1901]), pl.Series([1901]), pd.Series([1901], dtype="Int64")):
        assert years.index(column).tolist() == [1]
    assert list(years.labels)[:2] == [1900, 1901]
    for bad, message in [
        ([2027], "value 0 is not one of"),
        ([1950.5], "value 0 is not one of"),
        ([1950, 1950.5], "value 1 is not one of"),
        (np.array([1950, 1950.5]), "value 1 is not one of"),
        (np.array([1950, np.inf]), "value 1 is not one of"),
        (np.array([-1950.0]), "value 0 is not one of"),
        ([1950.0, True], "value 1, a bool"),
        ([1950, np.True_], "value 1, a bool"),
        ([True], "a bool"),
        (np.array([True]), "bool"),
        (["1950"], "a str"),
        ([None], "value 0 is missing"),
        ([1950.0, float("nan")], "value 1 is missing"),
        (pa.array([1950, None]), "value 1 is missing"),
        (pd.Series([1950, None], dtype="Int64"), "value 1 is missing"),
        (pd.Series([1950, pd.NA], dtype=object), "value 1 is missing"),
        ([10**30], "value 0"),
        ([1950.0, 10**400], "value 1"),
    ]:
        with pytest.raises(DomainError, match=message):
            years.index(bad)


@pytest.mark.parametrize(
    "column",
    [
        [1901.0, 2026.0],
        [1901, 2026.0],
        [np.float32(1901), np.int16(2026)],
        np.array([1901, 2026], dtype=np.float32),
        pd.Series([1901, None, 2026]).dropna(),
        pl.Series([1901.0, 2026.0]),
        pa.array([1901.0, 2026.0]),
    ],
)
def test_whole_floats_are_whole_numbers(column: Any) -> None:
    """A column of numbers with gaps comes as floats, and stays so when the gaps are gone."""
    assert Integers(1900, 2026).index(column).tolist() == [1, 126]


def test_every_integer_survives_among_floats() -> None:
    last = (1 << 53) - 1
    assert Integers(last - 3, last).index([last - 3.0, last - 1, last]).tolist() == [0, 2, 3]


@pytest.mark.parametrize("ends", [(3, 3), (3, 1), (0, 1 << 60), (0.0, 3), (True, 3)])
def test_unusable_ranges(ends: Any) -> None:
    with pytest.raises(DomainError):
        Integers(*ends)


def test_shorthands() -> None:
    assert as_domain(4) == Integers(0, 3)
    assert as_domain(["a", "b"]) == Categories(["a", "b"])
    assert as_domain(ANSWERS) is ANSWERS
    for bad in (1, True, None, "ab"):
        with pytest.raises(DomainError):
            as_domain(bad)


@pytest.mark.parametrize(
    "domain",
    [
        ANSWERS,
        Categories([1, True, "x"]),
        Categories(["a"], other="b"),
        Categories(["a"], other="b", missing=7),
        Categories([1], other=True),
        Integers(-3, 8),
        Strings(cells=4),
        Strings(missing="no answer"),
    ],
)
def test_specs_load(domain: Any) -> None:
    assert load_domain(domain.spec()) == domain


@pytest.mark.parametrize(
    "spec", [{}, {"kind": "categories"}, {"kind": "integers", "low": 1}, [], "x", {"kind": "sets"}]
)
def test_unreadable_specs(spec: Any) -> None:
    with pytest.raises(SpecError):
        load_domain(spec)


def test_a_refusal_lists_up_to_twenty_answers():
    for size, end in ((12, "a10, a11)"), (20, "a18, a19)"), (21, "a19, ...)")):
        with pytest.raises(DomainError) as refused:
            Categories([f"a{i}" for i in range(size)]).index(["b1"])
        assert str(refused.value).endswith(end)


def test_a_long_list_of_answers_is_not_printed_whole():
    many = Categories([f"answer {i}" for i in range(1000)], other="another")
    assert repr(many).startswith("Categories(['answer 0', 'answer 1', ")
    assert repr(many).endswith("'answer 7', ... 993 more], other='another')")
    assert len(repr(Categories(["x" * 4000, "y"]))) < 60
    assert len(repr(OUE(many, 1))) < 200
    few = Categories(["never", "once", "it's \u00e9t\u00e9"], other="once")
    assert eval(repr(few), {"Categories": Categories}) == few


def test_what_is_printed_builds_it_again():
    named = {name: getattr(dn, name) for name in dn.__all__}
    for protocol in (
        dn.Window(dn.Interval("1/3", 100, unit="hours"), "5/2"),
        dn.OneBitMean(dn.Interval(-1, 1), 1),
        dn.LGRR(["a", "b"], "1/3", 2),
        dn.THE(["a", "b"], 1, threshold="2/3"),
        dn.OLH(100, 1),
        dn.CMS(["a", "b", "c"], 1),
        dn.RAPPOR(Strings(32), 2),
    ):
        assert eval(repr(protocol), named) == protocol
    assert repr(dn.Window(dn.Interval(0, 24), 3)) == "Window(Interval(0, 24), epsilon=3, positions=6, width=2)"
    assert repr(GRR(["yes", "no"], 0.5)) == "GRR(Categories(['yes', 'no']), epsilon='1/2')"


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (dn.Categories(["yes", "no"]), ["yes", "maybe"]),
        (dn.Categories(["yes", "no"]), ["yes", None]),
        (dn.Integers(0, 3), [1, 9]),
        (dn.Integers(0, 3), [1, "x"]),
        (dn.Interval(0, 1), [0.5, "x"]),
        (dn.Strings(), ["a", 1]),
        (dn.Sets(["a", "b"], 1), [["a"], ["c"]]),
        (dn.KeyNumbers(["a", "b"], (0, 1), 1), [{"a": 1}, {"a": "x"}]),
        (dn.Records({"a": ["x", "y"], "b": ["u", "v"]}), [{"a": "x", "b": "u"}, {"a": "x", "b": "w"}]),
    ],
    ids=str,
)
def test_a_refused_value_carries_its_index(domain, values):
    """Nothing has to find the index in the sentence, and any name may stand in its place."""
    with pytest.raises(ValueRefused) as caught:
        domain.encode(values)
    wrong = caught.value
    assert wrong.place == 1
    assert str(wrong) == f"value 1{wrong.complaint}"
    assert wrong.about("row 7") == f"row 7{wrong.complaint}"
    assert str(pickle.loads(pickle.dumps(wrong))) == str(wrong)
    with pytest.raises(ValueRefused) as alone:
        domain.encode_one(values[1])
    assert alone.value.place == 0
