"""What can be asked: one grammar for drafts, options of commands, queries over HTTP and the planner page.

    ["never", "once", "often"]                                      one of these labels
    {"low": 18, "high": 99, "read": "distribution"}                 a whole number
    {"number": {"low": 0, "high": 24, "unit": "hours"}}             any number, for its mean
    "text"                                                          any text
    {"discover": {"bytes": 16}}, {"discover": {"bits": 64}}         texts or identifiers that nobody lists
    {"multiple": ["mail", "maps", "music"], "at_most": 2}           a set of listed items
    {"keys": ["mail", "maps"], "low": 1, "high": 5, "at_most": 2}   a number for each of some keys
    {"record": {"smoke": ["yes", "no"], "age": {...}}}              several answers of one person, by name
    {"places": {"columns": 16, "rows": 12, "cell": "500 m"}}        a cell of a grid
    {"kind": ...}                                                   the spec of a domain

Read       `read_answers`; errors carry the position of what is wrong, such as answers.record.smoke[1]
Write      `write_answers`, such that reading it again gives the same domain
Options    `from_options` turns the short forms of options and query parameters (64, 0..24, 16x12) into this grammar
Schema     `answers_schema`, a JSON Schema; what it cannot say is in `BEYOND_THE_SCHEMA`

A kind of domain from another package adds its own form by `Domain.from_answers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deniable.columns import kind
from deniable.domains import (
    PLACES_ARE_READ_AS,
    RECORDS_ARE_READ_AS,
    BitStrings,
    Categories,
    Domain,
    Grid,
    Integers,
    Interval,
    KeyNumbers,
    ListedDomain,
    Records,
    Sets,
    ShortText,
    Strings,
    domain_kinds,
    load_domain,
)
from deniable.domains.bit_strings import LEAST_BYTES, MOST_BITS, MOST_BYTES
from deniable.errors import DeniableError, DomainError, SpecError
from deniable.labels import label_spec, load_label

__all__ = [
    "BEYOND_THE_SCHEMA",
    "AnswersError",
    "answers_schema",
    "from_options",
    "read_answers",
    "reading",
    "readings",
    "write_answers",
]

ROOT = "answers"
NUMBERS_ARE_READ_AS = ("mean", "distribution", "ranges")
WHOLE_NUMBERS_ARE_READ_AS = ("shares", *NUMBERS_ARE_READ_AS)
PARTS_PER_DEVICE = (1, "pairs", "triples", "best")
MOST_NUMBERS_LISTED = 10_000
"""A range of more numbers is not listed beside a label for missing answers."""

_READINGS = {
    "range": WHOLE_NUMBERS_ARE_READ_AS,
    "number": NUMBERS_ARE_READ_AS,
    "record": RECORDS_ARE_READ_AS,
    "places": PLACES_ARE_READ_AS,
}

_NAMES = (
    'the answers are a list, {"low": ..., "high": ...}, {"number": {"low": ..., "high": ...}}, '
    '{"multiple": [...], "at_most": ...}, {"keys": [...], "low": ..., "high": ..., "at_most": ...}, '
    '{"record": {...}}, {"places": {...}}, {"discover": {"bytes": ...}}, "text" or the spec of a domain'
)


class AnswersError(SpecError):
    """Answers that cannot be asked for.

    Attributes:
        position: where the mistake is, such as `answers.record.age.low`.
        reason: what is wrong, without the position.
    """

    def __init__(self, reason: str, position: str = ROOT) -> None:
        self.reason, self.position = reason, position
        # At the root a position says nothing that the reader does not know.
        super().__init__(reason if re.fullmatch(r"[^.\[]+", position) else f"{position}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.position)


def _wrong(position: str, reason: str) -> AnswersError:
    return AnswersError(reason, position)


@dataclass(frozen=True)
class _Given:
    """What a question says beside its answers."""

    other: Any = None
    missing: Any = None
    key: str = ""

    def refuse_other(self, at: str) -> None:
        if self.other is not None:
            raise _wrong(at, '"other" goes with a list of answers only')

    def refuse_missing(self, at: str, reason: str) -> None:
        if self.missing is not None:
            raise _wrong(at, reason)


def read_answers(answers: Any, *, other: Any = None, missing: Any = None, key: str = "", where: str = ROOT) -> Domain:
    """The domain of these answers.

    Args:
        answers: what can be answered, in the grammar of this module.
        other: the label for every answer that is not listed.
        missing: the label for every missing answer.
        key: names the hash functions of open text, so that those of two questions differ.
        where: what the answers are called in the position of an error.

    Raises:
        AnswersError: the answers have no known form, or a part of them is wrong.

    >>> read_answers({"number": {"low": 0, "high": 24, "unit": "hours"}})
    Interval(0, 24, unit='hours')
    >>> read_answers({"record": {"smoke": ["yes", "no"], "age": {"low": 9, "high": "old"}}})
    Traceback (most recent call last):
    deniable.answers.AnswersError: answers.record.age: the ends of a range are whole numbers, not a str
    """
    return _read(answers, _Given(other, missing, key), where)


def _read(answers: Any, given: _Given, at: str) -> Domain:
    try:
        for form in _FORMS:
            if form.matches(answers):
                return form.read(answers, given, at)
        hook = {"other": given.other, "missing": given.missing, "key": given.key}
        for known in domain_kinds():
            found = known.from_answers(answers, {name: value for name, value in hook.items() if value is not None})
            if found is not None:
                return found
    except AnswersError:
        raise
    except (DeniableError, TypeError) as wrong:
        raise _wrong(at, str(wrong)) from None
    raise _wrong(at, _NAMES)


def reading(answers: Any) -> str | None:
    """What the answers say is to be estimated, if they say it.

    >>> reading({"low": 0, "high": 9, "read": "mean"}), reading({"record": {}, "per_device": "pairs"}), reading("text")
    ('mean', 'pairs', None)
    """
    if not isinstance(answers, Mapping):
        return None
    asked = answers.get("per_device") if "record" in answers else None
    found = answers.get("read", asked if asked in ("pairs", "triples") else None)
    return found if isinstance(found, str) else None


def readings(answers: Any) -> tuple[str, ...]:
    """What can be estimated of answers like these, where there is a choice.

    >>> readings({"number": {"low": 0, "high": 1}}), readings(["yes", "no"])
    (('mean', 'distribution', 'ranges'), ())
    """
    form = next((form.name for form in _FORMS if form.matches(answers)), "")
    return _READINGS.get(form, ())


def write_answers(domain: Domain) -> dict[str, Any]:
    """What a draft's question says of its answers: "answers", and "other" and "missing" where the domain has them.

    A domain that no short form describes is written as its spec.

    >>> write_answers(Categories(["yes", "no"], missing="no answer"))
    {'answers': ['yes', 'no'], 'missing': 'no answer'}
    """
    found = {"answers": next((short for form in _FORMS if (short := form.write(domain)) is not None), None)}
    for name in ("other", "missing"):
        if getattr(domain, name, None) is not None:
            found[name] = label_spec(getattr(domain, name))
    labels: dict[str, Any] = {name: load_label(found[name]) for name in ("other", "missing") if name in found}
    try:
        if found["answers"] is not None and read_answers(found["answers"], **labels) == domain:
            return found
    except AnswersError:
        pass
    return {"answers": domain.spec()}


# -- the forms -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """One way to say what can be answered."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, _Given, str], Domain]
    write: Callable[[Domain], Any]
    schema: dict[str, Any]
    example: Any


def _has(key: str) -> Callable[[Any], bool]:
    return lambda answers: isinstance(answers, Mapping) and key in answers and "table" not in answers


def _only(answers: Mapping[str, Any], needed: set[str], optional: set[str], at: str, reason: str) -> None:
    """Refuse missing and unknown keys."""
    if not needed <= set(answers) <= needed | optional:
        raise _wrong(at, reason)


def _labels(labels: list[Any], at: str) -> list[Any]:
    found = []
    for place, label in enumerate(labels):
        try:
            own = load_label(label)
        except DeniableError as wrong:
            raise _wrong(f"{at}[{place}]", str(wrong)) from None
        if not isinstance(own, str | int):
            reason = f"a category is text, a whole number or a truth value, not {kind(own)}"
            raise _wrong(f"{at}[{place}]", reason)
        found.append(own)
    return found


def _items(items: Any, at: str) -> ListedDomain:
    """A list of labels, or a number of items."""
    if isinstance(items, list):
        return _made(at, Categories, _labels(items, at))  # type: ignore[no-any-return]
    if isinstance(items, bool) or not isinstance(items, int):
        raise _wrong(at, "the items are a list of labels, or how many there are")
    if items < 2:
        raise _wrong(at, f"a question needs at least 2 possible answers, not {items}")
    return Integers(0, items - 1)


def _made(at: str, kind: Callable[..., Any], *arguments: Any) -> Any:
    """A domain, with errors about its parameters at this position."""
    try:
        return kind(*arguments)
    except AnswersError:
        raise
    except (DeniableError, TypeError, ValueError) as wrong:
        raise _wrong(at, str(wrong)) from None


def _read_as(answers: Mapping[str, Any], default: str, known: tuple[str, ...], at: str, reason: str) -> None:
    if answers.get("read", default) not in known:
        raise _wrong(f"{at}.read", reason)


def _read_list(answers: Any, given: _Given, at: str) -> Domain:
    return _made(at, Categories, _labels(answers, at), given.other, given.missing)  # type: ignore[no-any-return]


def _read_whole(answers: Any, given: _Given, at: str) -> Domain:
    _only(answers, {"low", "high"}, {"read"}, at, _NAMES)
    given.refuse_other(at)
    known = 'whole numbers are read as "shares", "mean", "distribution" or "ranges"'
    _read_as(answers, "shares", WHOLE_NUMBERS_ARE_READ_AS, at, known)
    numbers: Integers = _made(at, Integers, answers["low"], answers["high"])
    if given.missing is None:
        return numbers
    if answers.get("read", "shares") != "shares":
        raise _wrong(f"{at}.read", '"missing" goes with shares only: leave it out, and drop the rows')
    if numbers.size > MOST_NUMBERS_LISTED:
        raise _wrong(
            at,
            f"a range of {numbers.size} numbers is too long to list beside {given.missing!r}: group the numbers, or "
            'leave "missing" out',
        )
    return _made(at, Categories, numbers.labels, None, given.missing)  # type: ignore[no-any-return]


def _read_number(answers: Any, given: _Given, at: str) -> Domain:
    ends = answers["number"]
    if not isinstance(ends, Mapping):
        raise _wrong(f"{at}.number", _NAMES)
    _only(ends, {"low", "high"}, {"unit"}, f"{at}.number", 'a number has "low", "high" and perhaps "unit"')
    known = (
        'a number is read as "mean", "distribution" or "ranges": {"number": {"low": ..., "high": ...}, "read": "mean"}'
    )
    _only(answers, {"number"}, {"read"}, at, known)
    _read_as(answers, "mean", NUMBERS_ARE_READ_AS, at, known)
    given.refuse_other(at)
    given.refuse_missing(at, 'a number has no label for missing answers: leave "missing" out, and drop the rows')
    return _made(f"{at}.number", Interval, ends["low"], ends["high"], ends.get("unit", ""))  # type: ignore[no-any-return]


def _read_text(answers: Any, given: _Given, at: str) -> Domain:
    given.refuse_other(at)
    return _made(at, lambda: Strings(key=given.key, missing=given.missing))  # type: ignore[no-any-return]


def _read_discovered(answers: Any, given: _Given, at: str) -> Domain:
    size = answers["discover"]
    if not isinstance(size, Mapping) or len(answers) != 1 or len(size) != 1 or not {"bytes", "bits"} & set(size):
        raise _wrong(at, 'what is discovered is {"discover": {"bytes": 16}} for text, or {"discover": {"bits": 64}}')
    given.refuse_other(at)
    given.refuse_missing(at, 'discovery has no label for missing answers: leave "missing" out, and drop the rows')
    kind: Any = ShortText if "bytes" in size else BitStrings
    (number,) = size.values()
    return _made(f"{at}.discover", kind, number, given.key)  # type: ignore[no-any-return]


def _read_multiple(answers: Any, given: _Given, at: str) -> Domain:
    needed = 'several answers need "multiple", the items, and "at_most", how many are reported'
    _only(answers, {"multiple", "at_most"}, set(), at, needed)
    given.refuse_other(at)
    return _made(at, Sets, _items(answers["multiple"], f"{at}.multiple"), answers["at_most"])  # type: ignore[no-any-return]


def _read_keys(answers: Any, given: _Given, at: str) -> Domain:
    needed = 'numbers by key need "keys", "low", "high" and "at_most"; "unit" may be given'
    _only(answers, {"keys", "low", "high", "at_most"}, {"unit"}, at, needed)
    given.refuse_other(at)
    interval = _made(at, Interval, answers["low"], answers["high"], answers.get("unit", ""))
    return _made(at, KeyNumbers, _items(answers["keys"], f"{at}.keys"), interval, answers["at_most"])  # type: ignore[no-any-return]


_BESIDE_A_RECORD = {"per_device", "read", "cells", "queries", "regress", "titles"}


def _read_record(answers: Any, given: _Given, at: str) -> Domain:
    columns = answers["record"]
    if not isinstance(columns, Mapping) or not set(answers) <= {"record"} | _BESIDE_A_RECORD:
        raise _wrong(at, _NAMES)
    ask = answers.get("per_device", 1)
    if isinstance(ask, bool) or (ask not in PARTS_PER_DEVICE and not isinstance(ask, list)):
        raise _wrong(
            f"{at}.per_device", '"per_device" is 1 part of the record, "pairs", "triples", "best" or a list of parts'
        )
    known = f"a record is read as {' or '.join(map(repr, RECORDS_ARE_READ_AS))}"
    _read_as(answers, Records.reads, RECORDS_ARE_READ_AS, at, known)
    given.refuse_other(at)
    found = {}
    for name, part in columns.items():
        own = found[name] = _read(part, given, f"{at}.record.{name}")
        if isinstance(part, Mapping) and part.get("read", own.reads) != own.reads:
            reason = f"a column of a record is read as {own.reads!r}: ask {name!r} by itself"
            raise _wrong(f"{at}.record.{name}.read", reason)
    titles = answers.get("titles", {})
    if not isinstance(titles, Mapping):
        reason = '"titles" are what people are asked, by column: {"smoke": "Do you smoke?"}'
        raise _wrong(f"{at}.titles", reason)
    return _made(at, Records, found, titles)  # type: ignore[no-any-return]


def _read_places(answers: Any, given: _Given, at: str) -> Domain:
    grid = answers["places"]
    if not isinstance(grid, Mapping) or not set(answers) <= {"places", "read"}:
        raise _wrong(at, _NAMES)
    given.refuse_other(at)
    given.refuse_missing(at, '"missing" goes with a list of answers or numbers: of places everybody has one')
    needed = 'places are {"columns": 16, "rows": 12, "cell": "500 m"}'
    _only(grid, {"columns", "rows"}, {"cell"}, f"{at}.places", needed)
    known = f"places are read as {' or '.join(map(repr, PLACES_ARE_READ_AS))}"
    _read_as(answers, Grid.reads, PLACES_ARE_READ_AS, at, known)
    return _made(f"{at}.places", Grid, grid["columns"], grid["rows"], grid.get("cell", ""))  # type: ignore[no-any-return]


def _read_spec(answers: Any, given: _Given, at: str) -> Domain:
    return load_domain(answers)


# -- the same forms, written ---------------------------------------------------------------------------


def _ends(interval: Interval) -> dict[str, Any]:
    low, high = (int(end) if end.denominator == 1 else str(end) for end in (interval.low, interval.high))
    return {"low": low, "high": high, **({"unit": interval.unit} if interval.unit else {})}


def _write_list(domain: Domain) -> Any:
    return [label_spec(label) for label in _own_labels(domain)] if type(domain) is Categories else None


def _own_labels(domain: Categories) -> list[Any]:
    """The labels without those for other and missing answers."""
    added = [label for label in (domain.other, domain.missing) if label is not None]
    return [label for label in domain.labels if label not in added]


def _write_items(domain: ListedDomain) -> Any:
    if isinstance(domain, Integers):
        return domain.size if domain.low == 0 else None
    return _write_list(domain)


def _write_sets(domain: Domain) -> Any:
    if type(domain) is not Sets or (items := _write_items(domain.items)) is None:
        return None
    return {"multiple": items, "at_most": domain.at_most}


def _write_keys(domain: Domain) -> Any:
    if type(domain) is not KeyNumbers or (items := _write_items(domain.items)) is None:
        return None
    return {"keys": items, **_ends(domain.interval), "at_most": domain.at_most}


def _write_record(domain: Domain) -> Any:
    if type(domain) is not Records:
        return None
    parts = {name: write_answers(part) for name, part in domain.columns}
    if any(set(part) > {"answers"} for part in parts.values()):
        return None
    found: dict[str, Any] = {"record": {name: part["answers"] for name, part in parts.items()}}
    return found | ({"titles": dict(domain.titles_of)} if domain.titles_of else {})


def _write_places(domain: Domain) -> Any:
    if type(domain) is not Grid:
        return None
    rows, columns = domain.shape
    return {"places": {"columns": columns, "rows": rows, **({"cell": domain.cell} if domain.cell else {})}}


# -- the schema ----------------------------------------------------------------------------------------


BEYOND_THE_SCHEMA = (
    "one label alone, if there is none for other or missing answers, and labels that are written alike",
    "a low end that is not below the high end, and ranges that are too long",
    "texts that are not numbers where a number is written as text",
    "more items reported than there are",
    "columns of a record that are none, that cannot be columns, or are read in another way than a column",
    "tables, queries and regressions whose parts are not columns of the record",
    "grids of too many cells, and cells whose size is not a number and a unit",
    "specs of domains",
)
"""What `read_answers` refuses although the schema allows it."""

_NUMBER = {"type": ["number", "string"], "description": "a number, or a fraction as text, such as 1/3"}


def _object(needed: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": needed | optional,
        "required": list(needed),
        "additionalProperties": False,
    }


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


_UNIT = {"type": "string"}
_WHOLE = {"type": "integer"}
_ITEMS = {"anyOf": [_ref("labels"), {"type": "integer", "minimum": 2}]}
_SIZE = {"type": "integer", "minimum": 1}

_FORMS = (
    _Form("spec", _has("kind"), _read_spec, lambda domain: None, _object({"kind": {"type": "string"}}), None),
    _Form("list", lambda a: isinstance(a, list), _read_list, _write_list, _ref("labels"), ["never", "once", "often"]),
    _Form("text", lambda a: a == "text", _read_text, lambda d: "text" if type(d) is Strings else None,
          {"const": "text"}, "text"),
    _Form("multiple", _has("multiple"), _read_multiple, _write_sets,
          _object({"multiple": _ITEMS, "at_most": _SIZE}), {"multiple": ["mail", "maps", "music"], "at_most": 2}),
    _Form("keys", _has("keys"), _read_keys, _write_keys,
          _object({"keys": _ITEMS, "low": _NUMBER, "high": _NUMBER, "at_most": _SIZE}, unit=_UNIT),
          {"keys": ["mail", "maps"], "low": 1, "high": 5, "unit": "stars", "at_most": 2}),
    _Form("number", _has("number"), _read_number,
          lambda d: {"number": _ends(d)} if type(d) is Interval else None,
          _object({"number": _object({"low": _NUMBER, "high": _NUMBER}, unit=_UNIT)},
                  read={"enum": list(NUMBERS_ARE_READ_AS)}),
          {"number": {"low": 0, "high": 24, "unit": "hours"}, "read": "mean"}),
    _Form("record", _has("record"), _read_record, _write_record,
          _object({"record": {"type": "object", "additionalProperties": _ref("answers"), "minProperties": 1}},
                  per_device={"anyOf": [{"enum": list(PARTS_PER_DEVICE)}, {"type": "array"}]},
                  read={"enum": list(RECORDS_ARE_READ_AS)},
                  titles={"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
                  cells={}, queries={}, regress={}),
          {"record": {"smoke": ["yes", "no"], "age": {"low": 18, "high": 99}}, "per_device": 1}),
    _Form("places", _has("places"), _read_places, _write_places,
          _object({"places": _object({"columns": {"type": "integer", "minimum": 2},
                                      "rows": {"type": "integer", "minimum": 2}}, cell={"type": "string"})},
                  read={"enum": list(PLACES_ARE_READ_AS)}),
          {"places": {"columns": 16, "rows": 12, "cell": "500 m"}}),
    _Form("discover", _has("discover"), _read_discovered,
          lambda d: {"discover": {"bytes": d.bytes}} if type(d) is ShortText
          else {"discover": {"bits": d.bits}} if type(d) is BitStrings else None,
          _object({"discover": {"anyOf": [
              _object({"bytes": {"type": "integer", "minimum": LEAST_BYTES, "maximum": MOST_BYTES}}),
              _object({"bits": {"type": "integer", "minimum": 1, "maximum": MOST_BITS}})]}}),
          {"discover": {"bytes": 16}}),
    _Form("range", lambda a: isinstance(a, Mapping) and {"low", "high"} <= set(a) and "table" not in a, _read_whole,
          lambda d: {"low": d.low, "high": d.high} if type(d) is Integers else None,
          _object({"low": _WHOLE, "high": _WHOLE}, read={"enum": list(WHOLE_NUMBERS_ARE_READ_AS)}),
          {"low": 18, "high": 99, "read": "distribution"}),
)  # fmt: skip


def answers_schema() -> dict[str, Any]:
    """The JSON Schema of answers, as drafts, options and queries have them."""
    label = {
        "anyOf": [
            {"type": ["string", "integer", "boolean"]},
            _object({"integer": {"type": "string", "description": "a whole number beyond 2^53"}}),
        ]
    }
    forms: dict[str, Any] = {form.name: dict(form.schema) for form in _FORMS}
    forms["spec"]["additionalProperties"] = True
    for form in _FORMS:
        if form.example is not None:
            forms[form.name]["examples"] = [form.example]
    labels = {"type": "array", "items": _ref("label"), "minItems": 1, "uniqueItems": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What can be asked",
        "$ref": "#/$defs/answers",
        "$defs": {
            "answers": {"anyOf": [_ref(name) for name in forms]},
            **forms,
            "labels": labels,
            "label": label,
        },
    }


# -- short forms, in options and in queries ------------------------------------------------------------


_OPTIONS = {
    "categories": " (a number, or the answers with commas between them)",
    "text": "",
    "number": " LOW..HIGH",
    "record": "",
    "discover": " BYTES",
    "places": " COLUMNSxROWS",
}
"""The options, one of them given, and what is written after each."""


def from_options(
    *,
    categories: str | int | None = None,
    text: bool = False,
    number: str | None = None,
    unit: str = "",
    record: Any = None,
    discover: str | None = None,
    places: str | None = None,
    at_most: int | None = None,
    answers: Any = None,
    spell: Callable[[str], str] = str,
) -> Any:
    """The answers that options describe.

    Args:
        categories: how many answers there are, or the answers with commas between them.
        text: whether any text may be an answer.
        number: the ends of a number, such as "0..24".
        unit: of the number.
        record: the parts of a record, with or without {"record": ...} around them.
        discover: how long texts that nobody lists may be, such as "16", or identifiers, such as "64bits".
        places: columns and rows of a grid, such as "16x12".
        at_most: how many of several categories are reported; with `number`, each of them has a number.
        answers: in the grammar itself.
        spell: how an error writes the name of an option; empty for one that is not there.

    >>> from_options(categories="yes,no"), from_options(number="0..24", unit="hours")
    (['yes', 'no'], {'number': {'low': '0', 'high': '24', 'unit': 'hours'}})
    >>> from_options(categories=30, number="1..5", at_most=4)
    {'keys': 30, 'low': '1', 'high': '5', 'at_most': 4}
    """
    if at_most is not None and categories is None:
        raise SpecError(f"{spell('at_most')} goes with {spell('categories')}, of which several may be an answer")
    beside = at_most is not None and number is not None
    kinds = [categories, None if beside else number, record, discover, places, answers]
    if sum([text, *(given is not None for given in kinds)]) != 1:
        listed = [spell(name) + more for name, more in _OPTIONS.items() if spell(name)]
        raise SpecError(f"give one of {', '.join(listed)} and {spell('answers')}")
    if unit and number is None:
        raise SpecError(f"{spell('unit')} goes with {spell('number')}")
    if answers is not None:
        return answers
    if text:
        return "text"
    if discover is not None:
        return {"discover": _discovered(discover)}
    if places is not None:
        return {"places": _grid(places)}
    if record is not None:
        return _with_parts(record)
    ends = {} if number is None else _range(number, unit)
    if categories is None:
        return {"number": ends}
    items = _choices(categories)
    if at_most is not None:
        return {"multiple" if number is None else "keys": items, **ends, "at_most": at_most}
    return _counted(items) if isinstance(items, int) else items


def _counted(count: int) -> dict[str, int]:
    if count < 2:
        raise DomainError(f"a question needs at least 2 possible answers, not {count}")
    return {"low": 0, "high": count - 1}


def _choices(categories: str | int) -> int | list[str]:
    if isinstance(categories, str):
        return int(categories) if categories.strip().isdecimal() else categories.split(",")
    return categories


def _with_parts(record: Any) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise SpecError('a record is an object with the answers of each part: {"smoke": ["yes", "no"], ...}')
    return record if "record" in record else {"record": record}


def _grid(text: str) -> dict[str, int]:
    columns, _, rows = text.partition("x")
    if not (columns.isdecimal() and rows.isdecimal()):
        raise DomainError('a grid is written as columns and rows, "16x12"')
    return {"columns": int(columns), "rows": int(rows)}


def _range(text: str, unit: str) -> dict[str, str]:
    low, dots, high = text.partition("..")
    if not dots:
        raise DomainError(f"a range of numbers is written LOW..HIGH, such as 0..24, not {text!r}")
    return {"low": low.strip(), "high": high.strip(), **({"unit": unit} if unit else {})}


def _discovered(size: str) -> dict[str, int]:
    found = re.fullmatch(r"([0-9]{1,6}) *(bytes|bits|)", size.strip())
    if found is None:
        raise SpecError(
            f"what is discovered is said by how long texts may be, such as 16 (bytes), or identifiers (64bits), not "
            f"{size!r}"
        )
    return {found[2] or "bytes": int(found[1])}
