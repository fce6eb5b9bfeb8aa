"""Keyed randomness of a device: the same question, answer and epoch give the same bytes, whatever was forgotten.

A ledger remembers what was sent. This file is the second line of defence, for a ledger that was restored from an old
copy: what a device draws is a function of its secret and of what is being answered, so drawing again gives the same
report, not a second sample. Clients in other languages follow it byte by byte; in a browser `crypto.subtle` has it all.

secret     32 random bytes, made once a device, in a file that only its owner can read
value      00 and the answer's position in the domain as 8 bytes, little-endian; for open text 01 and the text in
           Unicode form NFC as UTF-8. An unlisted answer of a domain with `other` has the position of `other`
question   the survey's fingerprint (32 bytes), the length of the question's id (1 byte), the id in ASCII
scope      rule "memoize": 00; rule "none": 01 and the epoch as 4 bytes, little-endian
key        HMAC-SHA256(secret, "deniable-memo-v1" NUL question scope value)
stream     block i is HMAC-SHA256(key, i as 8 bytes, little-endian), i = 0, 1, 2, ...; the blocks one after the other
           are the random bytes of one report, which consumes them as every single report does
digest     HMAC-SHA256(secret, "deniable-value-v1" NUL question value): how the ledger knows a memoized value again
id         the first 16 bytes of HMAC-SHA256(secret, "deniable-report-id-v1" NUL fingerprint epoch), epoch as above

Memoizing  each question on its own: a value that has a memo repeats it; a new value is drawn and kept while fewer than
           `values` are; after that every other value repeats the first memo

What a restored ledger gives away. The same answers: nothing, byte for byte what was sent before, under the same id.
Another answer in the same epoch (rule "none"), or another first answer (rule "memoize"): one more draw, hence at most
one more epsilon for every such change, because the streams of different values are independent. Were the value not in
the key, two reports of one stream would differ only when both tell the truth; that is why it is there. Debits made
since the copy are forgotten with it, so epochs after it may cost up to that much beyond the cap.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Domain, Strings
from deniable.randomness import Bits
from deniable.surveys import Question

SECRET_BYTES = 32
ID_BYTES = 16

PERMANENT = b"\0"


def in_epoch(epoch: int) -> bytes:
    """The scope of an answer that is drawn afresh every epoch."""
    return b"\1" + epoch.to_bytes(4, "little")


def encode_value(domain: Domain, value: object) -> bytes:
    """One answer as bytes; what is no answer is refused without being named.

    >>> from deniable.domains import Categories
    >>> encode_value(Categories(["yes", "no"]), "no").hex()
    '000100000000000000'
    """
    if isinstance(domain, Strings):
        _, texts = domain.column([value])
        return b"\1" + texts[0].encode()
    return b"\0" + int(domain.index([value])[0]).to_bytes(8, "little")


def question_bytes(fingerprint: str, question: str) -> bytes:
    return bytes.fromhex(fingerprint) + bytes([len(question)]) + question.encode("ascii")


def stream_key(secret: bytes, fingerprint: str, question: str, scope: bytes, value: bytes) -> bytes:
    return _hmac(secret, b"deniable-memo-v1\0" + question_bytes(fingerprint, question) + scope + value)


def value_digest(secret: bytes, fingerprint: str, question: str, value: bytes) -> bytes:
    return _hmac(secret, b"deniable-value-v1\0" + question_bytes(fingerprint, question) + value)


def report_id(secret: bytes, fingerprint: str, epoch: int) -> bytes:
    message = b"deniable-report-id-v1\0" + bytes.fromhex(fingerprint) + epoch.to_bytes(4, "little")
    return _hmac(secret, message)[:ID_BYTES]


def draw(secret: bytes, fingerprint: str, question: Question, scope: bytes, answer: object) -> bytes:
    """The report of one answer.

    >>> from deniable.protocols import GRR
    >>> smoke = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))
    >>> [draw(bytes(32), "ab" * 32, smoke, in_epoch(day), "yes").hex() for day in range(8)]
    ['00', '01', '00', '00', '00', '01', '01', '01']
    """
    value = encode_value(question.protocol.domain, answer)
    bits = Keyed(stream_key(secret, fingerprint, question.id, scope, value))
    return question.protocol.privatize([answer], bits).to_bytes()


class Keyed(Bits):
    """The stream of one key, for one report.

    >>> Keyed(bytes(32)).take(8).hex()
    'f375180aba928884'
    """

    __slots__ = ("_block", "_key", "_left")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._block = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        parts, ready = [self._left], len(self._left)
        while ready < count:
            parts.append(_hmac(self._key, self._block.to_bytes(8, "little")))
            self._block += 1
            ready += len(parts[-1])
        stream = b"".join(parts)
        self._left = stream[count:]
        return stream[:count]

    def fill(self, out: NDArray[np.uint8]) -> None:
        out[:] = np.frombuffer(self.take(out.size), dtype=np.uint8)

    def __repr__(self) -> str:
        return "Keyed(...)"


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, hashlib.sha256)
