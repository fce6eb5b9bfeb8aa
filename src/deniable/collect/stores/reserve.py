"""Reserved room on a disk for the time when it is full.

A file of zeros next to a SQLite file, as large as its log has been. When there is no room left it is released first:
then the log can be written back, an epoch closed and something deleted. Until it is recreated nothing is added.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

SMALLEST, LARGEST = 1 << 20, 16 << 20


class Reserve:
    """
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reserve = Reserve(Path(folder, "store.db"))
    ...     made = reserve.keep(), reserve.held
    ...     reserve.give_up()
    ...     made, reserve.held
    ((True, 1048576), 0)
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-reserve")

    @property
    def held(self) -> int:
        """Its size in bytes; 0 if it was released."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def keep(self, wanted: int = SMALLEST) -> bool:
        """Create or enlarge it, within bounds; False if there is no reserve now."""
        held, size = self.held, min(LARGEST, max(SMALLEST, wanted))
        if held >= size:
            return True
        try:
            file = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file, 0, size)
                else:
                    os.write(file, bytes(size))
            finally:
                os.close(file)
        except OSError:
            if not held:
                self.give_up()
            return bool(held)
        return True

    def give_up(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)
