"""Fingerprints of specifications: two parties hold the same object if, and only if, the hashes are the same.

Form       keys sorted, no white space, UTF-8 without escapes beyond JSON's own, no floats
Numbers    integers that may exceed 2^53 are decimal strings, so that every language reads them alike
Hash       SHA-256("deniable-<kind>-v1" + NUL + canonical bytes), as lower-case hex
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from decimal import Decimal
from typing import Any, TypeGuard

from deniable._files import parse_json
from deniable.errors import SpecError

_SAFE_INTEGER = 2**53
_SHORT_BITS = 14_000  # under 4300 digits
_MOST_DIGITS = 1_000_000
_DEEPEST = 64
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def canonical_bytes(spec: Any) -> bytes:
    """The one byte string that stands for this spec.

    >>> canonical_bytes({"b": [1, True], "a": "x"})
    b'{"a":"x","b":[1,true]}'
    """
    _check(spec)
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def is_fingerprint(value: Any) -> TypeGuard[str]:
    """Whether this has the form of a fingerprint: 64 lower-case hex digits."""
    return isinstance(value, str) and _FINGERPRINT.fullmatch(value) is not None


def fingerprint(kind: str, spec: Any) -> str:
    """SHA-256 of the canonical bytes, kept apart for each kind of object."""
    return hashlib.sha256(f"deniable-{kind}-v1\0".encode() + canonical_bytes(spec)).hexdigest()


def parsed(spec: Any) -> Any:
    """The spec as a dictionary, also when it is given as JSON text."""
    return parse_json(spec, "the spec") if isinstance(spec, str | bytes) else spec


def integer_text(number: int) -> str:
    """An integer in decimal digits, however long (`str` stops at 4300 digits)."""
    return str(number) if number.bit_length() < _SHORT_BITS else format(Decimal(number), "f")


def read_integer(text: Any) -> int:
    """The integer that `integer_text` wrote, and nothing else that looks like a number.

    >>> read_integer("-12")
    -12
    """
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
        raise SpecError("a spec writes large integers as decimal digits in a string, without leading zeros")
    return int(Decimal(text))


def _check(value: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise SpecError(f"a spec is nested at most {_DEEPEST} deep")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SpecError("a spec holds text that UTF-8 can write, and half a surrogate pair is not") from None
        if unicodedata.normalize("NFC", value) != value:
            raise SpecError("a spec holds text in Unicode form NFC only")
        return
    if isinstance(value, int):
        if abs(value) >= _SAFE_INTEGER:
            raise SpecError("a spec writes integers of 2^53 and beyond as strings")
        return
    if isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SpecError("a spec has text keys only")
            _check(key)
            _check(item, depth + 1)
        return
    raise SpecError(f"a spec cannot hold a {type(value).__name__}")
