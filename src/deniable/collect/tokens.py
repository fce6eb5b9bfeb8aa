"""Tokens: "dn_" and 32 random bytes in base64url, shown once; what is kept is their SHA-256."""

from __future__ import annotations

import hashlib
import secrets

from deniable.collect.wire import to_text

PREFIX = "dn_"


def new_token() -> str:
    """
    >>> len(new_token())
    46
    """
    return PREFIX + to_text(secrets.token_bytes(32))


def hashed(token: str | bytes) -> str:
    """What a store keeps of a token."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()
