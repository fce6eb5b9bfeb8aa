"""The format of submissions on the network: fixed-width bytes, or JSON for people.

Submission  a random id of 16 bytes, the epoch, and the answers: each question's report, in the survey's order
Binary      "DNR1", the epoch as 4 bytes little-endian, then id and answers of each submission, nothing between them;
            every submission of a body has one epoch
JSON        {"reports": [["<id, 22 letters>", epoch, "<answers>"], ...]}, base64url without padding
Tied        if a report has public coins, for example the hash function of a set, they follow from the submission's
            id, so that nobody chooses them freely; not if reports are kept and repeated
Shares      if the terms name several collectors, the answers are words of 64 bits, and each collector gets a body of
            the same form, id and epoch with its share in place of the answers
Bad parts   a record that cannot be used is named by its place and reason and the others are accepted; a body that is
            not in either form is refused as a whole
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import DeniableError
from deniable.protocols.numeric.secure_sum import joined, split
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits
from deniable.surveys.terms import LAST_EPOCH

BINARY, JSON = "application/vnd.deniable.reports", "application/json"
MAGIC = b"DNR1"
ID_BYTES = 16
HEADER_BYTES = 8

BAD_PAYLOAD = "badPayload"
CONFLICT = "conflict"
"""Reason for submissions that share an id with another but have other answers; their senders do not learn it."""
EPOCH_CLOSED, EPOCH_TOO_EARLY, EPOCH_TOO_OLD, NOT_STARTED = "epochClosed", "epochTooEarly", "epochTooOld", "notStarted"
REASONS = (BAD_PAYLOAD, EPOCH_CLOSED, EPOCH_TOO_EARLY, EPOCH_TOO_OLD, NOT_STARTED)


class MalformedBody(DeniableError, ValueError):
    """The body is not a list of submissions at all."""


class TooMany(MalformedBody):
    """The body has more submissions than are accepted at once."""


@dataclass(frozen=True)
class Submissions:
    """The contents of a body: the usable records, with their places in it, and why the others are not usable."""

    ids: Bytes
    epochs: NDArray[np.uint32]
    answers: Bytes
    places: NDArray[np.int64]
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    """(place, id as text, reason); an unreadable id is empty."""

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, which: NDArray[Any]) -> Submissions:
        """Some of the usable records."""
        return Submissions(self.ids[which], self.epochs[which], self.answers[which], self.places[which])

    def by_epoch(self) -> Iterator[tuple[int, Submissions]]:
        if len(self.epochs) and (self.epochs == self.epochs[0]).all():
            yield int(self.epochs[0]), self
            return
        for epoch in np.unique(self.epochs):
            yield int(epoch), self.at(self.epochs == epoch)


def encode(epoch: int, ids: bytes | Bytes, answers: bytes | Bytes, width: int) -> bytes:
    """A binary body; ids and answers are concatenated, or rows of an array."""
    left = np.frombuffer(bytes(ids), dtype=np.uint8).reshape(-1, ID_BYTES)
    right = np.frombuffer(bytes(answers), dtype=np.uint8).reshape(-1, width)
    records = np.concatenate([left, right], axis=1)
    return MAGIC + epoch.to_bytes(4, "little") + records.tobytes()


def shared(body: bytes, collectors: int, bits: Bits | None = None) -> bytes:
    """A body with one submission as shares: one body for each collector, concatenated."""
    start = HEADER_BYTES + ID_BYTES
    return b"".join(body[:start] + share for share in split(body[start:], collectors, bits))


def shares_of(bodies: bytes, collectors: int) -> list[bytes]:
    """The body of each collector."""
    size = len(bodies) // collectors
    return [bodies[at : at + size] for at in range(0, size * collectors, size)]


def unshared(bodies: bytes, collectors: int) -> bytes:
    """The submission from all of its shares: the inverse of `shared`."""
    start, each = HEADER_BYTES + ID_BYTES, shares_of(bodies, collectors)
    return each[0][:start] + joined([body[start:] for body in each])


def decode(body: bytes, width: int, most: int) -> Submissions:
    """The submissions of a binary body, whose answers have `width` bytes."""
    if len(body) < HEADER_BYTES or body[:4] != MAGIC:
        raise MalformedBody(f'a binary body begins with "{MAGIC.decode()}" and the epoch')
    size = ID_BYTES + width
    n, rest = divmod(len(body) - HEADER_BYTES, size)
    if rest or not n:
        raise MalformedBody(f"after its {HEADER_BYTES} bytes of header a body holds whole records of {size} bytes")
    _count(n, most)
    records = np.frombuffer(body, dtype=np.uint8, offset=HEADER_BYTES).reshape(n, size)
    epoch = int.from_bytes(body[4:HEADER_BYTES], "little")
    return Submissions(
        np.ascontiguousarray(records[:, :ID_BYTES]),
        np.full(n, epoch, dtype=np.uint32),
        np.ascontiguousarray(records[:, ID_BYTES:]),
        np.arange(n),
    )


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    reports: list[tuple[str, int, str]]


_decoder = msgspec.json.Decoder(_Body)


def decode_json(body: bytes, width: int, most: int) -> Submissions:
    """The submissions of a JSON body."""
    try:
        records = _decoder.decode(body).reports
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise MalformedBody('a JSON body is {"reports": [["<id>", epoch, "<answers>"], ...]}') from None
    if not records:
        raise MalformedBody("a body holds at least one submission")
    _count(len(records), most)
    good: list[tuple[bytes, int, bytes, int]] = []
    rejected: list[tuple[int, str, str]] = []
    for place, (name, epoch, answers) in enumerate(records):
        id, raw = from_text(name, ID_BYTES), from_text(answers, width)
        if id is None or raw is None or not 0 <= epoch <= LAST_EPOCH:
            rejected.append((place, name if id is not None else "", BAD_PAYLOAD))
        else:
            good.append((id, epoch, raw, place))
    return Submissions(
        _rows((id for id, _, _, _ in good), ID_BYTES),
        np.array([epoch for _, epoch, _, _ in good], dtype=np.uint32),
        _rows((raw for _, _, raw, _ in good), width),
        np.array([place for _, _, _, place in good], dtype=np.int64),
        rejected,
    )


def encode_json(records: Iterable[tuple[bytes, int, bytes]]) -> bytes:
    """A JSON body of (id, epoch, answers)."""
    return msgspec.json.encode({"reports": [[to_text(id), epoch, to_text(raw)] for id, epoch, raw in records]})


def to_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_text(text: str, width: int) -> bytes | None:
    """The bytes of base64url text, or None unless it is how `to_text` writes `width` bytes."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == width and to_text(raw) == text else None


def public_number(survey: str, question: str, id: bytes) -> int:
    """The seed of a report's public coins: a hash of the survey's fingerprint, the question and the id.

    >>> public_number("0" * 64, "apps", bytes(16))
    8617318020219407857
    """
    digest = hashlib.sha256(b"deniable-cohort-v1\0" + survey.encode() + question.encode() + id).digest()
    return int.from_bytes(digest[:8], "little")


def _rows(parts: Iterable[bytes], width: int) -> Bytes:
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, width)


def _count(n: int, most: int) -> None:
    if n > most:
        raise TooMany(f"a body holds at most {most} submissions, not {n}")


# -- tokens -------------------------------------------------------------------------------------------


PREFIX = "dn_"


def new_token() -> str:
    """
    >>> len(new_token())
    46
    """
    return PREFIX + to_text(secrets.token_bytes(32))


def hashed(token: str | bytes) -> str:
    """The part of a token that a store keeps: its hash."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()
