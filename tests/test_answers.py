"""One grammar for what can be asked: it is read, written, described by a schema, and wrong answers have a position."""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest

import deniable as dn
from deniable.answers import (
    BEYOND_THE_SCHEMA,
    AnswersError,
    answers_schema,
    from_options,
    read_answers,
    reading,
    readings,
    write_answers,
)
from deniable.domains import BitStrings, ShortText

EXAMPLES = {
    "list": ["never", "once", 2, True, {"integer": "99999999999999999999"}],
    "whole": {"low": 18, "high": 99},
    "read": {"low": 18, "high": 99, "read": "distribution"},
    "number": {"number": {"low": 0, "high": "49/2", "unit": "hours"}, "read": "ranges"},
    "text": "text",
    "bytes": {"discover": {"bytes": 16}},
    "bits": {"discover": {"bits": 64}},
    "multiple": {"multiple": ["mail", "maps", "music"], "at_most": 2},
    "counted": {"multiple": 30, "at_most": 4},
    "keys": {"keys": ["mail", "maps"], "low": 1, "high": 5, "unit": "stars", "at_most": 2},
    "record": {"record": {"smoke": ["yes", "no"], "age": {"low": 18, "high": 99}}, "per_device": "pairs"},
    "titles": {"record": {"smoke": ["yes", "no"], "sex": ["f", "m"]}, "titles": {"smoke": "Do you smoke?"}},
    "places": {"places": {"columns": 16, "rows": 12, "cell": "500 m"}, "read": "rectangles"},
    "spec": {"kind": "integers", "low": 0, "high": 3},
}
DOMAINS = [
    dn.Categories(["yes", "no"]),
    dn.Categories(["yes", 10**20, 2], other="else", missing="no answer"),
    dn.Integers(-3, 12),
    dn.Interval(0, "49/2", "hours"),
    dn.Strings(),
    dn.Strings(cells=64),
    dn.Sets(["a", "b", "c"], 2),
    dn.Sets(40, 3),
    dn.Sets(dn.Integers(5, 9), 2),
    dn.KeyNumbers(["a", "b"], (1, 5), 2),
    dn.Records({"a": ["x", "y"], "b": dn.Interval(0, 1), "c": dn.Integers(0, 4)}, {"a": "Which?"}),
    dn.Records({"a": dn.Categories(["x", "y"], missing="none"), "b": ["u", "v"]}),
    dn.Grid(8, 6, "500 m"),
    ShortText(16),
    ShortText(16, key="own"),
    BitStrings(64),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_what_is_written_is_read_again(domain):
    written = json.loads(json.dumps(write_answers(domain)))
    assert read_answers(**written) == domain
    short = written["answers"]
    odd = (dn.Strings(cells=64), ShortText(16, key="own"), dn.Sets(dn.Integers(5, 9), 2))
    assert (isinstance(short, dict) and "kind" in short) == (domain in odd or "missing='none'" in repr(domain))


WRONG = {
    "answers[1]": ["yes", 0.5],
    "answers.record.smoke[0]": {"record": {"smoke": [None, "no"], "age": {"low": 1, "high": 9}}},
    "answers.record.age": {"record": {"smoke": ["yes", "no"], "age": {"low": 9, "high": "old"}}},
    "answers.record.age.read": {"record": {"smoke": ["yes", "no"], "age": {"low": 1, "high": 9, "read": "mean"}}},
    "answers.record.in.record.x[1]": {"record": {"in": {"record": {"x": ["a", 0.1]}}, "y": ["u", "v"]}},
    "answers.multiple[2]": {"multiple": ["a", "b", {}], "at_most": 2},
    "answers.keys[0]": {"keys": [{"float": "x"}, "b"], "low": 0, "high": 1, "at_most": 1},
    "answers.number": {"number": {"low": 3, "high": 1}},
    "answers.read": {"low": 0, "high": 9, "read": "median"},
    "answers.per_device": {"record": {"a": ["x", "y"], "b": ["u", "v"]}, "per_device": 3},
    "answers.titles": {"record": {"a": ["x", "y"], "b": ["u", "v"]}, "titles": "A?"},
    "answers.places": {"places": {"columns": 1, "rows": 5}},
    "answers.discover": {"discover": {"bytes": 0}},
    "answers": {"lower": 1},
}


@pytest.mark.parametrize("position", WRONG)
def test_an_error_carries_its_position(position):
    with pytest.raises(AnswersError) as caught:
        read_answers(WRONG[position])
    assert caught.value.position == position
    assert str(caught.value).startswith(f"{position}: ") == (position != "answers")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.position, again.reason, str(again)) == (position, caught.value.reason, str(caught.value))


def test_a_draft_names_the_question_and_the_position():
    asked = {"id": "habits", "text": "?", "answers": {"record": {"smoke": ["yes", 0.5], "sex": ["f", "m"]}}}
    with pytest.raises(dn.errors.SpecError, match=r"question 'habits': answers\.record\.smoke\[1\]: a label"):
        dn.Survey.from_draft({"name": "n", "epsilon": 1, "people": 100, "questions": [asked]})


# -- the schema ----------------------------------------------------------------------------------------


def allows(schema, value, root):
    """Whether a JSON Schema allows a value, for the keywords that are used here."""
    known = {"type", "anyOf", "enum", "const", "items", "minItems", "uniqueItems", "properties", "required"}
    known |= {
        "additionalProperties",
        "minProperties",
        "minimum",
        "maximum",
        "minLength",
        "$ref",
        "description",
        "examples",
        "title",
    }
    assert set(schema) <= known | {"$schema", "$defs"}, "a keyword that this validator does not know"
    if "$ref" in schema and not allows(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root):
        return False
    if "anyOf" in schema and not any(allows(one, value, root) for one in schema["anyOf"]):
        return False
    exact = [json.dumps(one) for one in [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]]
    if exact and json.dumps(value) not in exact:
        return False
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    is_kind = [isinstance(value, kinds[one]) and (one == "boolean" or not isinstance(value, bool)) for one in wanted]
    if wanted and not any(is_kind):
        return False
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, list):
        unique = len({json.dumps(one, sort_keys=True) for one in value}) == len(value)
        if len(value) < schema.get("minItems", 0) or (schema.get("uniqueItems") and not unique):
            return False
        return all(allows(schema.get("items", {}), one, root) for one in value)
    if isinstance(value, dict):
        named, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not set(schema.get("required", [])) <= set(value) or len(value) < schema.get("minProperties", 0):
            return False
        for key, one in value.items():
            own = named.get(key, rest)
            if own is False or (own is not True and not allows(own, one, root)):
                return False
    return True


def accepted(answers):
    try:
        read_answers(answers)
    except AnswersError:
        return False
    return True


BAD = [None, True, False, -1, 0, 1, 0.5, "", "x", [], {}, ["a"], ["a", "a"], ["a", None], {"low": 1}]


def changed(value):
    """Copies of a value in which one thing is another, is missing, or is added."""
    yield from BAD
    if isinstance(value, dict):
        for key in value:
            yield {name: one for name, one in value.items() if name != key}
            for other in changed(value[key]):
                yield {**value, key: other}
        yield {**value, "more": 1}
    if isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
            for other in BAD:
                yield [*value[:place], other, *value[place + 1 :]]


# How the reader says what a schema cannot say, in the order of `BEYOND_THE_SCHEMA`.
BEYOND = (
    "a question needs at least 2 possible answers, not 1$",
    "needs low < high",
    "is not a number: write it like",
    "at most .* are reported",
    "a record has a column that is not one of",
    "queries",
    "the size of a cell is a number and a unit",
    "there is no domain of kind|the spec of integers needs|the ends of a range are whole numbers, not a bool",
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_schema_allows_what_is_read(name):
    """Every answer that is read is allowed, and what is allowed and not read is beyond a schema, and says why."""
    schema = answers_schema()
    assert accepted(EXAMPLES[name])
    assert allows(schema, EXAMPLES[name], schema)
    neither = 0
    for answers in changed(copy.deepcopy(EXAMPLES[name])):
        read, allowed = accepted(answers), allows(schema, answers, schema)
        assert allowed or not read, f"read, but not in the schema: {answers!r}"
        neither += not read and not allowed
        if allowed and not read:
            with pytest.raises(AnswersError) as caught:
                read_answers(answers)
            assert any(re.search(one, caught.value.reason) for one in BEYOND), (answers, caught.value.reason)
    assert neither > 10
    assert len(BEYOND) == len(BEYOND_THE_SCHEMA)


def test_the_examples_of_the_schema_are_read():
    schema = answers_schema()
    assert json.loads(json.dumps(schema)) == schema
    examples = [one for form in schema["$defs"].values() for one in form.get("examples", [])]
    assert len(examples) == len(schema["$defs"]["answers"]["anyOf"]) - 1
    assert all(accepted(one) and allows(schema, one, schema) for one in examples)


# -- options and queries -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "domain"),
    [
        ({"categories": "9"}, dn.Integers(0, 8)),
        ({"categories": 9}, dn.Integers(0, 8)),
        ({"categories": "yes,no"}, dn.Categories(["yes", "no"])),
        ({"text": True}, dn.Strings()),
        ({"number": "-1..2.5", "unit": "m"}, dn.Interval(-1, "2.5", "m")),
        ({"discover": "16"}, ShortText(16)),
        ({"discover": "64bits"}, BitStrings(64)),
        ({"places": "16x12"}, dn.Grid(16, 12)),
        ({"categories": "30", "at_most": 4}, dn.Sets(30, 4)),
        ({"categories": "a,b", "number": "1..5", "unit": "stars", "at_most": 1},
         dn.KeyNumbers(["a", "b"], dn.Interval(1, 5, "stars"), 1)),
        ({"record": {"a": ["x", "y"], "b": {"low": 0, "high": 4}}},
         dn.Records({"a": ["x", "y"], "b": dn.Integers(0, 4)})),
        ({"record": {"record": {"a": ["x", "y"], "b": ["u", "v"]}}}, dn.Records({"a": ["x", "y"], "b": ["u", "v"]})),
        ({"answers": {"low": 1, "high": 9}}, dn.Integers(1, 9)),
    ],
)  # fmt: skip
def test_options_are_short_forms(options, domain):
    answers = from_options(**options)
    assert read_answers(json.loads(json.dumps(answers))) == domain


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give one of categories"),
        ({"categories": "9", "text": True}, "give one of categories"),
        ({"categories": "9", "number": "0..1"}, "give one of categories"),
        ({"at_most": 3}, "at_most goes with categories"),
        ({"categories": "9", "unit": "m"}, "unit goes with number"),
        ({"categories": "1"}, "at least 2 possible answers"),
        ({"number": "24"}, "written LOW..HIGH"),
        ({"places": "eight"}, "16x12"),
        ({"discover": "many"}, "64bits"),
        ({"record": [1]}, "a record is an object"),
    ],
)
def test_options_that_say_nothing_are_refused(options, said):
    with pytest.raises(dn.errors.DeniableError, match=said):
        from_options(**options)
    with pytest.raises(dn.errors.DeniableError, match="--at-most goes with --categories"):
        from_options(at_most=3, spell=lambda name: f"--{name.replace('_', '-')}")


def test_what_is_to_be_estimated():
    assert [reading(EXAMPLES[name]) for name in ("list", "read", "number", "record", "places")] == [
        None, "distribution", "ranges", "pairs", "rectangles"
    ]  # fmt: skip
    for name, answers in EXAMPLES.items():
        assert reading(answers) is None or reading(answers) in readings(answers), name


def test_a_kind_of_another_package_brings_its_form(monkeypatch):
    monkeypatch.setattr(dn.Integers, "from_answers", classmethod(lambda cls, answers, given: cls(0, 9)
                        if answers == "digit" else None))  # fmt: skip
    assert read_answers("digit") == dn.Integers(0, 9)
    assert read_answers({"record": {"a": "digit", "b": ["x", "y"]}})["a"] == dn.Integers(0, 9)
