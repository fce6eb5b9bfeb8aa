"""Text as an answer: its normal form (NFC), its limit of 4096 bytes of UTF-8, its hashes."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

from deniable.columns import absent, is_absent, kind
from deniable.errors import DomainError
from deniable.labels import is_utf8

LONGEST_TEXT = 4096


def text_digest(use: str, key: str, cohort: int, text: str) -> bytes:
    """SHA-256 of a text for one cohort, kept apart for each use and key."""
    return hashlib.sha256(f"deniable-{use}-v1\0{key}\0{cohort}\0{text}".encode()).digest()


def as_key(key: Any) -> str:
    """The name of a family of hash functions."""
    if not isinstance(key, str) or "\0" in key:
        raise DomainError("the key of a hash is text without the character NUL")
    return unicodedata.normalize("NFC", str.__str__(key))


def as_text(value: Any, place: int) -> str:
    if is_absent(value):
        raise absent(place)
    if not isinstance(value, str):
        raise DomainError(f"value {place}, {kind(value)}, is not text")
    text = unicodedata.normalize("NFC", str.__str__(value))
    if not is_utf8(text):
        raise DomainError(f"value {place} is text that UTF-8 cannot write: half a surrogate pair")
    if len(text.encode()) > LONGEST_TEXT:
        raise DomainError(f"value {place} is text of more than {LONGEST_TEXT} bytes: shorten it on the device")
    return text
