"""Canonical JSON and fingerprints: two parties hold the same object iff the hashes are the same.

Form       keys sorted, no white space, UTF-8 without escapes beyond JSON's own, no floats
Numbers    integers that may exceed 2^53 are decimal strings, so that every language reads them alike
Hash       SHA-256("deniable-<kind>-v1" + NUL + canonical bytes), as lower-case hex
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

from deniable.errors import SpecError

_SAFE_INTEGER = 2**53


def canonical_bytes(spec: Any) -> bytes:
    """The one byte string that stands for this spec.

    >>> canonical_bytes({"b": [1, True], "a": "x"})
    b'{"a":"x","b":[1,true]}'
    """
    _check(spec)
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def fingerprint(kind: str, spec: Any) -> str:
    """SHA-256 of the canonical bytes, kept apart for each kind of object."""
    return hashlib.sha256(f"deniable-{kind}-v1\0".encode() + canonical_bytes(spec)).hexdigest()


def _check(value: Any) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if unicodedata.normalize("NFC", value) != value:
            raise SpecError("a spec holds text in Unicode form NFC only")
        return
    if isinstance(value, int):
        if abs(value) >= _SAFE_INTEGER:
            raise SpecError("a spec writes integers of 2^53 and beyond as strings")
        return
    if isinstance(value, list):
        for item in value:
            _check(item)
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SpecError("a spec has text keys only")
            _check(key)
            _check(item)
        return
    raise SpecError(f"a spec cannot hold a {type(value).__name__}")
