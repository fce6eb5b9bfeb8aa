"""Files read strictly: no repeated or unknown keys, no NaN, one sentence for what is wrong."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from deniable.errors import DeniableError, SpecError
from deniable.surveys.characters import text_problem

T = TypeVar("T")


def read_json(path: str | Path) -> Any:
    """The value that a JSON file holds."""
    return parse_json(Path(path).read_bytes(), repr(str(path)))


def load_json(path: str | Path, read: Callable[[Any], T]) -> T:
    """What `read` makes of a JSON file; its refusals get the name of the file."""
    content = read_json(path)
    try:
        return read(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{str(path)!r}: {wrong}") from None


def parse_json(raw: bytes, where: str) -> Any:
    """The value that these bytes write; `where` is how messages call them."""
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{where} is not UTF-8 text") from None
    if not content.strip():
        raise SpecError(f"{where} is empty")

    def refuse(constant: str) -> Any:
        raise SpecError(f"{where} holds {constant}, which is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise SpecError(f"{where} has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
        return found

    try:
        return json.loads(content, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as wrong:
        raise SpecError(f"{where} is not JSON: {wrong.msg} in line {wrong.lineno}, column {wrong.colno}") from None
    except SpecError:
        raise
    except (ValueError, RecursionError):
        raise SpecError(f"{where} is not usable JSON: its numbers are too long or its lists too deep") from None


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
