"""Specs read strictly: no missing or unknown keys, no hidden characters, one sentence for what is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from deniable.errors import SpecError
from deniable.surveys.characters import text_problem


def keys(entry: Mapping[Any, Any], known: Iterable[str], where: str, optional: Iterable[str] = ()) -> None:
    """Refuse keys that are missing or unknown, by name."""
    needed = list(known)
    allowed = [*needed, *optional]
    unknown = [key for key in entry if key not in allowed]
    if unknown:
        raise SpecError(f"{where} has the unknown key {short(unknown[0])}: it may have {', '.join(allowed)}")
    missing = [key for key in needed if key not in entry]
    if missing:
        raise SpecError(f"{where} misses {', '.join(missing)}")


def as_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{what} is text, not a {type(value).__name__}")
    if not value.strip():
        raise SpecError(f"{what} is empty")
    text = unicodedata.normalize("NFC", str.__str__(value))
    check_texts(text, what)
    return text


def check_texts(spec: Any, what: str) -> None:
    """Refuse hidden characters in every text that a spec holds."""
    if isinstance(spec, str):
        problem = text_problem(spec)
        if problem:
            raise SpecError(f"{what} {problem}")
    elif isinstance(spec, list | dict):
        for part in spec.values() if isinstance(spec, dict) else spec:
            check_texts(part, what)


def short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
