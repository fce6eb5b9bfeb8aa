"""The id of a submission: by it a service counts a submission once, also one that a restored ledger makes again.

key        32 random bytes of the system for each survey, made when the survey is first recorded; k_first belongs to
           the first epoch of the survey, and k_(e+1) = SHA-256(k_e)
id         the first 16 bytes of HMAC-SHA256(k_e, "deniable-report-id-v1" NUL fingerprint epoch), with the epoch as 4
           bytes, little-endian
Erased     recording epoch e replaces its key by k_(e+1). What is left in the ledger gives no id of a past epoch, so
           nobody who finds it can link it to what a service holds
Random     an epoch whose key is erased (the clock was set back) has a random id. So many epochs ahead that the chain
           would take long (`FARTHEST`), a new chain begins

The answers are nowhere in it: a report is drawn from the system's generator, and no key gives it again. Clients in
other languages follow this byte by byte.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 32
ID_BYTES = 16
FARTHEST = 1 << 16


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def random_id() -> bytes:
    return secrets.token_bytes(ID_BYTES)


def advance(key: bytes, epochs: int) -> bytes:
    """The key of a later epoch.

    >>> advance(bytes(32), 2) == advance(advance(bytes(32), 1), 1)
    True
    """
    for _ in range(epochs):
        key = hashlib.sha256(key).digest()
    return key


def report_id(key: bytes, fingerprint: str, epoch: int) -> bytes:
    message = b"deniable-report-id-v1\0" + bytes.fromhex(fingerprint) + epoch.to_bytes(4, "little")
    return hmac.digest(key, message, "sha256")[:ID_BYTES]
