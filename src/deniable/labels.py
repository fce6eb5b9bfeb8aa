"""Names of a channel's inputs and outputs.

A label is text (Unicode form NFC), an integer, a truth value, a fraction, a float, or a tuple of labels.
True and 1 are different labels, although Python treats them as equal.
"""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from deniable._plain import escaped
from deniable.errors import LabelError, ShapeError, SpecError
from deniable.exact import fraction
from deniable.specs import integer_text, read_integer

Label = Hashable


_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,16})(\.0*)?\s*")


def as_label(value: Any) -> Label:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    # Subclasses (members of an Enum, numpy's strings) count as the plain value, so that they are not separate labels.
    if isinstance(value, str):
        if not is_utf8(value):
            raise LabelError("a label is text that UTF-8 can write, and half a surrogate pair is not")
        return unicodedata.normalize("NFC", str.__str__(value))
    if isinstance(value, bool | Fraction):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LabelError("a label cannot be NaN or infinite")
        return float(value) + 0.0  # -0.0 and 0.0 are the same label
    if isinstance(value, tuple | list):
        return tuple(as_label(part) for part in value)
    raise LabelError(f"a label is text, a number, a truth value or a tuple of those, not a {type(value).__name__}")


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode a text; checked first, because the codec's own exception would contain the text."""
    return _SURROGATE.search(text) is None


def label_key(label: Label) -> Hashable:
    """A key that distinguishes True, 1 and 1.0."""
    if isinstance(label, tuple):
        return tuple(label_key(part) for part in label)
    return (type(label), label)


def as_labels(values: Iterable[Any] | None, size: int, what: str) -> tuple[Label, ...]:
    """`size` different labels; 0, 1, 2, ... when none are given."""
    if values is None:
        return tuple(range(size))
    labels = tuple(as_label(value) for value in in_order(values, f"the {what} labels"))
    if len(labels) != size:
        raise ShapeError(f"there are {len(labels)} {what} labels for {size} {what}s")
    seen: set[Hashable] = set()
    for label in labels:
        key = label_key(label)
        if key in seen:
            raise LabelError(f"the {what} label {label!r} stands twice")
        seen.add(key)
    return labels


def in_order(values: Any, what: str) -> list[Any]:
    """The entries of a list, tuple, range or array, in order; refuses types whose order may differ between runs.

    Positions are randomized and counted, so two processes must agree on them.
    """
    kind = type(values).__name__
    if isinstance(values, str | bytes):
        raise LabelError(f"{what} are one text: give a list of labels")
    if isinstance(values, Set | Mapping | MappingView):
        raise LabelError(f"{what} are a {kind}, whose order may differ from one run to the next: give a list of labels")
    if isinstance(values, Iterator):
        raise LabelError(f"{what} are a {kind}, whose order cannot be seen: give a list of labels")
    try:
        return list(values)
    except TypeError:
        raise LabelError(f"{what} are a {kind}: give a list of labels") from None


def index_of(labels: Sequence[Label]) -> dict[Hashable, int]:
    return {label_key(label): i for i, label in enumerate(labels)}


def numbers_first(labels: Sequence[Label]) -> int:
    """The number of whole-number labels, if they ascend and only words follow; else 0. Such answers keep their order.

    >>> numbers_first(range(18, 100)), numbers_first([1, 2, 3, "no answer"]), numbers_first([2, 1])
    (82, 3, 0)
    """
    if isinstance(labels, range):
        return len(labels)
    numbers = [label for label in labels if isinstance(label, int) and not isinstance(label, bool)]
    rising = all(a < b for a, b in pairwise(numbers))
    return len(numbers) if rising and all(isinstance(label, str) for label in labels[len(numbers) :]) else 0


def text(label: Label) -> str:
    """A label for people: tuples of short parts are written without quotes."""
    if isinstance(label, tuple):
        return "(" + ", ".join(text(part) for part in label) + ")"
    return str(label)


def shown(label: Label) -> str:
    """A label in a sentence, a table or a picture: without characters that control a terminal or reorder a line."""
    return escaped(text(label))


def cell(label: Label) -> Any:
    """A label in a column of CSV: numbers stay numbers, everything else is written as people read it."""
    return label if isinstance(label, int | float) else text(label)


def written(label: Label) -> tuple[str, ...]:
    """The spellings of a label by people and spreadsheets: truth values in any case, all others as shown.

    >>> written(True), written("yes")
    (('True', 'true', 'TRUE'), ('yes',))
    """
    said = text(label)
    return (said, said.lower(), said.upper()) if isinstance(label, bool) else (said,)


def whole_number(said: str) -> int | None:
    """The integer that this text means to people and spreadsheets, or None; columns with gaps often hold floats.

    >>> whole_number("3"), whole_number(" 3.0"), whole_number("3.5"), whole_number("three")
    (3, 3, None, None)
    """
    found = _WHOLE_NUMBER.fullmatch(said)
    return None if found is None else int(found[1])


def label_spec(label: Label) -> Any:
    """A label in JSON; text, small integers and truth values are unchanged."""
    if isinstance(label, bool | str):
        return label
    if isinstance(label, numbers.Integral):
        number = int(label)
        return number if abs(number) < 2**53 else {"integer": integer_text(number)}
    if isinstance(label, Fraction):
        return {"fraction": str(label)}
    if isinstance(label, float):
        return {"float": repr(label)}
    if isinstance(label, tuple):
        return [label_spec(part) for part in label]
    raise SpecError(f"a {type(label).__name__} cannot be a label in a spec")


def load_label(spec: Any) -> Label:
    if isinstance(spec, bool | str | int):
        return as_label(spec)
    if isinstance(spec, list):
        return tuple(load_label(part) for part in spec)
    if isinstance(spec, dict) and len(spec) == 1:
        ((kind, value),) = spec.items()
        reader: Any = {"integer": read_integer, "fraction": fraction, "float": float}.get(kind)
        if reader is not None and isinstance(value, str):
            try:
                return as_label(reader(value))
            except (ValueError, ZeroDivisionError):
                pass
    raise SpecError("a label in the spec is not one of text, integer, truth value, fraction, float or list")
