"""The surveys and tokens that a process knows: read from the store, and again when another may change them.

Token      "dn_" and 32 random bytes in base64url; shown once, when it is made. Only the SHA-256 is kept
Roles      admin may do everything; analyst reads; ingest sends reports where that needs a key
Answer     a malformed, unknown or revoked token: the same bytes after the same work, which is one hash and one
           comparison in constant time with every token there is. No token: the same work, and bytes that say so
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from deniable.collect.counting import SurveyCounter
from deniable.collect.server.limits import Bucket
from deniable.collect.server.problems import Problem
from deniable.collect.server.readers import Readers
from deniable.collect.server.settings import Settings
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import CLOSED, Published, Store, Token
from deniable.collect.tokens import hashed
from deniable.errors import DeniableError
from deniable.surveys import Survey, Terms

FRESH_SECONDS = 0.05
"""A survey or token that is not known is looked up in the store before it is refused, at most this often."""
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


@dataclass(frozen=True)
class Entry:
    """A published survey, ready for use."""

    survey: Survey
    canonical: bytes
    state: str
    bucket: Bucket | None = None

    @property
    def fingerprint(self) -> str:
        return self.survey.fingerprint

    @cached_property
    def counter(self) -> SurveyCounter:
        return SurveyCounter(self.survey)

    @cached_property
    def width(self) -> int:
        return self.counter.width

    @cached_property
    def terms(self) -> Terms:
        if self.survey.terms is None:
            raise DeniableError("a survey without terms is not collected over the network")
        return self.survey.terms

    def phase(self, now: float) -> str:
        """What the survey does at this moment."""
        if self.state == CLOSED:
            return "closed"
        if self.terms.over(now):
            return "over"
        return "collecting" if now >= self.terms.opens else "waiting"


class Registry:
    """Known surveys in the order of their fingerprints, and keys."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self._settings, self._readers = settings, readers
        self._read = -1e9
        self._lock = asyncio.Lock()
        self.entries: dict[str, Entry] = {}
        self.successors: dict[str, str] = {}
        """The survey that replaces another, by fingerprint; of several, the one that opens last."""
        self.keys = Keys()
        self._unreadable: set[str] = set()

    def get(self, fingerprint: str) -> Entry | None:
        return self.entries.get(fingerprint)

    async def find(self, fingerprint: str) -> Entry:
        """A survey, looked up in the store if it is new; a problem if there is none."""
        entry = self.entries.get(fingerprint)
        if entry is None:
            await self.refresh(FRESH_SECONDS)
            entry = self.entries.get(fingerprint)
        if entry is None:
            raise Problem("unknownSurvey", "look at /v1/surveys for those that are collected here")
        return entry

    async def rank(self, token: bytes) -> int:
        """The rank of a token; 0 if nobody has it."""
        found = self.keys.rank(token)
        if found == 0:
            await self.refresh(FRESH_SECONDS)
            found = self.keys.rank(token)
        return found

    async def refresh(self, pause: float = 0.0) -> None:
        """Read the store, `pause` seconds after the last time at the earliest; one reading answers all who wait."""
        asked = time.monotonic()
        async with self._lock:
            if self._read >= asked:
                return
            await asyncio.sleep(max(0.0, self._read + pause - time.monotonic()))
            begun = time.monotonic()
            published, tokens, parsed = await self._readers.run(self._load)
            self._take(published, parsed)
            self.keys = Keys.of(tokens)
            self._read = begun

    def _load(self, store: Store) -> tuple[list[Published], list[Token], dict[str, Survey]]:
        published, parsed = store.surveys(), {}
        for one in published:
            if one.fingerprint not in self.entries and one.fingerprint not in self._unreadable:
                try:
                    survey = Survey.from_spec(json.loads(one.canonical))
                except (DeniableError, ValueError):
                    log("unreadable survey", survey=one.fingerprint)
                    self._unreadable.add(one.fingerprint)
                else:
                    if survey.terms is not None:
                        parsed[one.fingerprint] = survey
        return published, store.tokens(), parsed

    def _take(self, published: list[Published], parsed: dict[str, Survey]) -> None:
        entries: dict[str, Entry] = {}
        for one in sorted(published, key=lambda one: one.fingerprint):
            known = self.entries.get(one.fingerprint)
            survey = known.survey if known is not None else parsed.get(one.fingerprint)
            if known is not None and known.state == one.state:
                entries[one.fingerprint] = known
            elif survey is not None:
                bucket = known.bucket if known is not None else self._bucket()
                entries[one.fingerprint] = Entry(survey, one.canonical, one.state, bucket)
        self.entries = entries
        later = sorted(entries.values(), key=lambda entry: entry.terms.opens)
        self.successors = {one.terms.replaces: one.fingerprint for one in later if one.terms.replaces is not None}

    def _bucket(self) -> Bucket | None:
        rate = self._settings.survey_rate
        return None if rate is None else Bucket(rate, max(rate, self._settings.max_submissions))
