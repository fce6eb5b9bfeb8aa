"""Names of a channel's inputs and outputs.

A label is text (Unicode form NFC), an integer, a truth value, a fraction, a float, or a tuple of labels.
True and 1 are different labels, although Python calls them equal.
"""

from __future__ import annotations

import math
import numbers
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from deniable.errors import LabelError, ShapeError, SpecError

Label = Hashable


def as_label(value: Any) -> Label:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if hasattr(value, "item") and not isinstance(value, Fraction):  # numpy's scalars
        value = value.item()
    if isinstance(value, bool | int | Fraction):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LabelError("a label cannot be NaN or infinite")
        return value
    if isinstance(value, tuple | list):
        return tuple(as_label(part) for part in value)
    raise LabelError(f"a label is text, a number, a truth value or a tuple of those, not a {type(value).__name__}")


def label_key(label: Label) -> Hashable:
    """A key under which True, 1 and 1.0 stay apart."""
    if isinstance(label, tuple):
        return tuple(label_key(part) for part in label)
    return (type(label), label)


def as_labels(values: Iterable[Any] | None, size: int, what: str) -> tuple[Label, ...]:
    """`size` different labels; 0, 1, 2, ... when none are given."""
    if values is None:
        return tuple(range(size))
    if isinstance(values, str):
        raise LabelError(f"the {what} labels are one text: give a list of labels")
    labels = tuple(as_label(value) for value in values)
    if len(labels) != size:
        raise ShapeError(f"there are {len(labels)} {what} labels for {size} {what}s")
    seen: set[Hashable] = set()
    for label in labels:
        key = label_key(label)
        if key in seen:
            raise LabelError(f"the {what} label {label!r} stands twice")
        seen.add(key)
    return labels


def index_of(labels: Sequence[Label]) -> dict[Hashable, int]:
    return {label_key(label): i for i, label in enumerate(labels)}


def text(label: Label) -> str:
    """A label for people: tuples of short parts are written without Python's quotes."""
    if isinstance(label, tuple):
        return "(" + ", ".join(text(part) for part in label) + ")"
    return str(label)


def label_spec(label: Label) -> Any:
    """A label in JSON; text, small integers and truth values as they are."""
    if isinstance(label, bool | str):
        return label
    if isinstance(label, numbers.Integral):
        number = int(label)
        return number if abs(number) < 2**53 else {"integer": str(number)}
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
        reader = {"integer": int, "fraction": Fraction, "float": float}.get(kind)
        if reader is not None and isinstance(value, str):
            try:
                return as_label(reader(value))
            except (ValueError, ZeroDivisionError):
                pass
    raise SpecError("a label in the spec is none of text, integer, truth value, fraction, float or list")
