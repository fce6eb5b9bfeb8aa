"""Looking for an answer in everything that an exception carries."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

SECRET, NUMBER = "s3ntinel", 7351990245
"""An answer that no domain of the tests has, as text and as a number."""


class Unprintable:
    """An answer of a strange type."""

    def __repr__(self) -> str:
        return SECRET


# Text in several disguises, numbers out of every range, and things that are no answers at all.
ANSWERS: list[Any] = [
    SECRET,
    f" {SECRET} ",
    f"{SECRET}\ud800",
    SECRET * 1000,
    NUMBER,
    NUMBER + 0.5,
    10**400 + NUMBER,
    SECRET.encode(),
    [SECRET],
    {SECRET: NUMBER},
    {SECRET},
    (SECRET, NUMBER),
    Unprintable(),
]


def told(text: str) -> bool:
    return SECRET in text or str(NUMBER) in text


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all that are behind it, those included that a traceback does not show."""
    while error is not None:
        yield error
        if error.__cause__ is not None and error.__cause__ is not error.__context__:
            yield from chain(error.__cause__)
        error = error.__context__


def leaks(error: BaseException) -> list[str]:
    """Where an exception holds the answer; empty if it does not."""
    found = []
    for one in chain(error):
        held = [*one.args, *getattr(one, "__notes__", []), *(value for value in vars(one).values())]
        held += [getattr(one, name, "") for name in ("object", "filename", "doc", "key", "obj")]
        if any(told(repr(value)) for value in held) or told(str(one)):
            found.append(f"{type(one).__name__}: {one!r}"[:300])
    # The lines of code in a traceback name variables, not what they hold.
    if told("".join(traceback.format_exception(error))):
        found.append("the formatted traceback")
    return found
