"""Labels: what may be one, which are the same, and how they travel in a spec."""

from __future__ import annotations

import json
import math
from enum import Enum, IntEnum
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.errors import LabelError, ShapeError, SpecError
from deniable.labels import as_label, as_labels, index_of, label_key, label_spec, load_label, text
from tests.memory import memory_below


class Answer(str, Enum):  # noqa: UP042  (what people still write)
    YES = "yes"


class Grade(IntEnum):
    GOOD = 1


scalars = (
    st.text(st.characters(codec="utf-8"), max_size=6)
    | st.integers(-(2**70), 2**70)
    | st.booleans()
    | st.fractions()
    | st.floats(allow_nan=False, allow_infinity=False)
)
labels = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5).map(as_label)


@given(labels)
def test_a_label_survives_json(label):
    spec = json.loads(json.dumps(label_spec(label)))
    assert label_key(load_label(spec)) == label_key(label)
    assert label_key(as_label(label)) == label_key(label)
    assert isinstance(text(label), str)


@given(st.lists(labels, max_size=6))
def test_keys_tell_labels_apart_exactly_when_specs_do(many):
    specs = [json.dumps(label_spec(label)) for label in many]
    assert len({label_key(label) for label in many}) == len(set(specs))


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (np.str_("yes"), "yes"),
        (Answer.YES, "yes"),
        (Grade.GOOD, 1),
        (np.int8(3), 3),
        (np.float64(0.5), 0.5),
        (np.True_, True),
        (np.array(3), 3),
        (np.array([1, 0]), (1, 0)),
        (["a", ["b", 1]], ("a", ("b", 1))),
        ("e\u0301", "é"),
        (("e\u0301",), ("é",)),
        (-0.0, 0.0),
        (Fraction(2), Fraction(2)),
    ],
    ids=repr,
)
def test_subclasses_count_as_the_plain_value(value, label):
    assert label_key(as_label(value)) == label_key(label)
    assert type(as_label(value)) is type(label)
    assert repr(as_label(value)) == repr(label)


def test_equal_for_python_but_different_labels():
    assert len({label_key(label) for label in (1, True, 1.0, Fraction(1), "1", (1,), (True,))}) == 7
    assert index_of([True, 1, 1.0]) == {(bool, True): 0, (int, 1): 1, (float, 1.0): 2}


@pytest.mark.parametrize(
    "value", [None, {}, {1}, b"x", 1j, Ellipsis, np.datetime64("2020-01-01"), ("a", None)], ids=repr
)
def test_what_is_no_label(value):
    with pytest.raises(LabelError, match="a label is text, a number"):
        as_label(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_labels_are_finite(value):
    with pytest.raises(LabelError, match="NaN or infinite"):
        as_label(value)


@pytest.mark.parametrize(
    ("values", "size", "kind", "reason"),
    [
        ("ab", 2, LabelError, "one text"),
        (7, 2, LabelError, "give a list of labels"),
        (["a"], 2, ShapeError, "1 input labels for 2 inputs"),
        (["a", "a"], 2, LabelError, "'a' stands twice"),
        ([0.0, -0.0], 2, LabelError, "stands twice"),
    ],
)
def test_lists_of_labels_that_do_not_fit(values, size, kind, reason):
    with pytest.raises(kind, match=reason):
        as_labels(values, size, "input")


def test_default_labels_are_positions():
    assert as_labels(None, 3, "input") == (0, 1, 2)
    assert as_labels(np.array(["a", "b"]), 2, "input") == ("a", "b")
    assert as_labels([True, 1], 2, "input") == (True, 1)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        0.5,
        {},
        {"integer": 5},
        {"integer": "1e5"},
        {"fraction": "1/0"},
        {"fraction": "1e999999999"},
        {"float": "x"},
        {"float": "nan"},
        {"date": "2020"},
        {"integer": "1", "float": "1"},
        ["a", None],
    ],
    ids=repr,
)
def test_label_specs_that_cannot_be_read(spec):
    with memory_below(100_000), pytest.raises(SpecError, match="a label in the spec"):
        load_label(spec)


def test_label_specs_by_hand():
    assert label_spec(2**53 - 1) == 2**53 - 1
    assert label_spec(2**53) == {"integer": "9007199254740992"}
    assert label_spec((1, True, "x", Fraction(1, 3), 0.5)) == [1, True, "x", {"fraction": "1/3"}, {"float": "0.5"}]
    with pytest.raises(SpecError, match="object"):
        label_spec(object())


def test_text_for_people():
    assert text(("yes", (1, True))) == "(yes, (1, True))"
    assert text(Fraction(1, 3)) == "1/3"
