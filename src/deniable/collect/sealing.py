"""Sealed submissions, which a relay carries and only the collector can open.

Suite      HPKE, base mode (RFC 9180): DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM; one message per key
Sealed     id and answers of one submission, to the collector's key, which is in the survey's terms. `info` binds the
           survey's fingerprint, and the additional data binds the epoch: a relay cannot move it to another
Form       "DNS1", the epoch as 4 bytes little-endian, then the records: the ephemeral public key (65 bytes) and the
           ciphertext (16 bytes more than id and answers). All records of a survey have one length
Same again the ephemeral key is derived from the submission itself, whose id is 128 random bits that nobody else knows:
           a repeated submission is the same bytes, so that a relay takes it once, and nothing has to be kept for that
Key        a file in PEM, readable by its owner; its public half is written as 65 bytes in base64url
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from deniable.collect.wire import HEADER_BYTES, ID_BYTES, MalformedBody, from_text, to_text
from deniable.errors import SpecError
from deniable.surveys.survey import Survey

SEALED = "application/vnd.deniable.sealed"
MAGIC = b"DNS1"
POINT_BYTES, TAG_BYTES = 65, 16

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_KEM = b"KEM\x00\x10"
_HPKE = b"HPKE\x00\x10\x00\x01\x00\x01"
_EMPTY = b""


class CannotOpen(ValueError):
    """The record was not sealed for this key, survey and epoch."""


# -- HPKE ---------------------------------------------------------------------------------------------


def _extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + material, "sha256")


def _expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    # One block of HKDF is enough: no key here is longer than 32 bytes.
    labeled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(key, labeled + b"\x01", "sha256")[:length]


def derived_key(material: bytes) -> ec.EllipticCurvePrivateKey:
    """The key pair derived from secret bytes (DeriveKeyPair of RFC 9180)."""
    root = _extract(_KEM, _EMPTY, b"dkp_prk", material)
    for counter in range(256):
        scalar = int.from_bytes(_expand(_KEM, root, b"candidate", bytes([counter]), 32), "big")
        if 0 < scalar < _ORDER:
            return ec.derive_private_key(scalar, ec.SECP256R1())
    raise ValueError("no key follows from these bytes")


def _context(shared: bytes, info: bytes) -> tuple[AESGCM, bytes]:
    """The cipher and the nonce of the first message."""
    context = b"\x00" + _extract(_HPKE, _EMPTY, b"psk_id_hash", _EMPTY) + _extract(_HPKE, _EMPTY, b"info_hash", info)
    secret = _extract(_HPKE, shared, b"secret", _EMPTY)
    return AESGCM(_expand(_HPKE, secret, b"key", context, 16)), _expand(_HPKE, secret, b"base_nonce", context, 12)


def _shared(secret: bytes, sent: bytes, own: bytes) -> bytes:
    root = _extract(_KEM, _EMPTY, b"eae_prk", secret)
    return _expand(_KEM, root, b"shared_secret", sent + own, 32)


def seal(key: bytes, info: bytes, bound: bytes, plain: bytes, ephemeral: ec.EllipticCurvePrivateKey) -> bytes:
    """One message to a public key: the ephemeral public key, then the ciphertext."""
    sent = point(ephemeral.public_key())
    secret = ephemeral.exchange(ec.ECDH(), public_key(key))
    cipher, nonce = _context(_shared(secret, sent, key), info)
    return sent + cipher.encrypt(nonce, plain, bound)


def unseal(private: ec.EllipticCurvePrivateKey, own: bytes, info: bytes, bound: bytes, record: bytes) -> bytes:
    """The message of a record. Raises CannotOpen if it was not sealed in this way."""
    sent, sealed = record[:POINT_BYTES], record[POINT_BYTES:]
    try:
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sent)
        cipher, nonce = _context(_shared(private.exchange(ec.ECDH(), theirs), sent, own), info)
        return cipher.decrypt(nonce, sealed, bound)
    except (InvalidTag, ValueError):
        raise CannotOpen from None


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@lru_cache(maxsize=64)
def public_key(key: bytes) -> ec.EllipticCurvePublicKey:
    """The key of 65 bytes. Raises SpecError for bytes that are not a point of the curve."""
    try:
        if len(key) != POINT_BYTES:
            raise ValueError
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        raise SpecError("the collector's key in the survey is no public key of the curve P-256") from None


# -- submissions --------------------------------------------------------------------------------------


def record_bytes(survey: Survey) -> int:
    """The length of a sealed record."""
    return POINT_BYTES + ID_BYTES + survey.report_bytes + TAG_BYTES


def _bindings(fingerprint: str, epoch: int) -> tuple[bytes, bytes]:
    return b"deniable-sealed-v1\0" + fingerprint.encode(), epoch.to_bytes(4, "little")


def _collector(survey: Survey) -> bytes:
    if survey.terms is None or survey.terms.relay is None:
        raise SpecError("this survey names no relay, so nothing is sealed for it")
    key = from_text(survey.terms.relay.key, POINT_BYTES)
    if key is None:
        raise SpecError("the collector's key in the survey is no public key of the curve P-256")
    return key


def sealed(survey: Survey, body: bytes) -> bytes:
    """A binary body with one submission, sealed for the collector; always the same bytes."""
    epoch = int.from_bytes(body[4:HEADER_BYTES], "little")
    ephemeral = derived_key(hashlib.sha256(b"deniable-ephemeral-v1\0" + survey.fingerprint.encode() + body).digest())
    record = seal(_collector(survey), *_bindings(survey.fingerprint, epoch), body[HEADER_BYTES:], ephemeral)
    return MAGIC + body[4:HEADER_BYTES] + record


def split(body: bytes, width: int, most: int) -> tuple[int, list[bytes]]:
    """The epoch and the records, each of `width` bytes, of a sealed body."""
    count, rest = divmod(len(body) - HEADER_BYTES, width)
    if not body.startswith(MAGIC) or rest or not 0 < count <= most:
        raise MalformedBody(
            f'a sealed body is "{MAGIC.decode()}", the epoch, and 1 to {most:,} whole records of {width} bytes'
        )
    places = range(HEADER_BYTES, len(body), width)
    return int.from_bytes(body[4:HEADER_BYTES], "little"), [body[place : place + width] for place in places]


def joined(epoch: int, records: list[bytes]) -> bytes:
    """The inverse of `split`."""
    return MAGIC + epoch.to_bytes(4, "little") + b"".join(records)


class CollectorKey:
    """The private key of a collector.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = CollectorKey.make(Path(folder) / "collector.pem")
    ...     len(made.public), CollectorKey.load(Path(folder) / "collector.pem").public == made.public
    (87, True)
    """

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        self._private, self._own = private, point(private.public_key())

    @property
    def public(self) -> str:
        """The public key as it is written in the terms of a survey."""
        return to_text(self._own)

    @classmethod
    def make(cls, path: Path) -> CollectorKey:
        """A new key in a new file, which only its owner can read."""
        made = ec.generate_private_key(ec.SECP256R1())
        text = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text)
        return cls(made)

    @classmethod
    def load(cls, path: str | Path) -> CollectorKey:
        try:
            found = load_pem_private_key(Path(path).read_bytes(), None)
        except (ValueError, TypeError):
            found = None
        if not isinstance(found, ec.EllipticCurvePrivateKey) or found.curve.name != "secp256r1":
            raise SpecError(f"{str(path)!r} is no private key of the curve P-256: make one with deniable relay key")
        return cls(found)

    def open(self, fingerprint: str, epoch: int, records: list[bytes]) -> Iterator[bytes | None]:
        """Id and answers of each record; None for records that cannot be opened."""
        info, bound = _bindings(fingerprint, epoch)
        for record in records:
            try:
                yield unseal(self._private, self._own, info, bound, record)
            except CannotOpen:
                yield None
