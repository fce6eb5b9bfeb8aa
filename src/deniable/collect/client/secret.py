"""The device's secret: 32 bytes in a file of their own, which appears whole, once, readable by its owner alone.

It lies beside the ledger and not in it: a ledger that is restored from an old copy still finds it, and then draws the
same reports again.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from deniable.collect.client.errors import LedgerError
from deniable.collect.client.memo import SECRET_BYTES


def secret_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ".secret")


def exists(path: Path) -> bool:
    # Not Path.exists: a link that points nowhere is something that should not be there, not an absent secret.
    return os.path.lexists(path)


def read(path: Path) -> bytes:
    """The secret; refused when it is torn, or open to others."""
    try:
        with open(path, "rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(SECRET_BYTES + 1)
    except OSError as wrong:
        raise LedgerError(f"the device's secret {str(path)!r} cannot be read: {wrong.strerror}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise LedgerError(f"the device's secret {str(path)!r} can be read by others: chmod 600 it")
    if len(content) != SECRET_BYTES:
        raise LedgerError(f"the device's secret {str(path)!r} is damaged: it has not {SECRET_BYTES} bytes")
    return content


def create(path: Path) -> bytes:
    """A new secret, on the disk before it is used; refused if there is one."""
    made = secrets.token_bytes(SECRET_BYTES)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(made)
                file.flush()
                os.fsync(file.fileno())
            # A link takes the name only if nobody has it, and what has the name is whole.
            os.link(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as wrong:
        raise LedgerError(f"the device's secret {str(path)!r} cannot be written: {wrong.strerror}") from None
    return made


def destroy(path: Path) -> None:
    """Overwrite and remove the secret; a file system that copies on write may still keep the old bytes for a while."""
    try:
        with suppress(FileNotFoundError):
            if not path.is_symlink():
                with open(path, "r+b") as file:
                    file.write(bytes(SECRET_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            path.unlink()
            sync_directory(path.parent)
    except OSError as wrong:
        raise LedgerError(f"the device's secret {str(path)!r} cannot be removed: {wrong.strerror}") from None


def sync_directory(path: Path) -> None:
    """Make a new or removed name durable, where directories can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
