"""Who may do what: bearer tokens, of which only the SHA-256 is kept.

Token      "dn_" and 32 random bytes in base64url; shown once, when it is made
Roles      admin may do everything; analyst reads; ingest sends reports where that needs a key
Answer     a malformed, unknown or revoked token: the same bytes after the same work, which is one hash and one
           comparison in constant time with every token there is. No token: the same work, and bytes that say so
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from deniable.collect.server.problems import Problem
from deniable.collect.stores.base import Token
from deniable.collect.tokens import hashed, new_token

__all__ = ["RANK", "Keys", "bearer", "forbidden", "hashed", "new_token", "unauthorized"]

RANK = {"ingest": 1, "analyst": 2, "admin": 3}


@dataclass(frozen=True)
class Keys:
    """The tokens of a service."""

    known: tuple[tuple[str, int], ...] = ()
    """SHA-256 and rank."""

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> Keys:
        return cls(tuple((token.sha256, RANK[token.role]) for token in tokens))

    def rank(self, token: bytes) -> int:
        """The rank of a token, 0 if it is not one of these.

        >>> keys = Keys.of([Token(hashed("dn_secret"), "analyst", "")])
        >>> keys.rank(b"dn_secret"), keys.rank(b"dn_guess"), keys.rank(b"")
        (2, 0, 0)
        """
        given, found = hashed(token), 0
        for sha256, rank in self.known:
            # No early end: the time says nothing about which token came close.
            found += rank * hmac.compare_digest(given, sha256)
        return found


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The token that a request carries; empty if there is none."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.partition(b" ")
            return token.strip() if scheme.lower() == b"bearer" else b""
    return b""


def unauthorized(role: str, token: bytes) -> Problem:
    """Says whether a token came, which its sender knows, and nothing about which tokens there are."""
    wrong = "this token is not accepted here: it is mistyped, or was revoked" if token else "this needs a token"
    how = f"whoever runs the service makes one with deniable token create --role {role}"
    return Problem("unauthorized", f"{wrong}; {how}", {"WWW-Authenticate": "Bearer"})


def forbidden(role: str) -> Problem:
    return Problem("forbidden", f"this needs a token with the role {role}")
