"""Whether a SQLite file is served by this process alone.

Two services on one file count every submission once all the same, but wait for each other: worth a warning. The sign is
a local socket with no name in the file system, which ends with its process however that ends. Only Linux has these,
within one container; elsewhere nobody is warned.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def claimed(path: str) -> Iterator[bool]:
    """Claim a file until the block ends; False if another process has done so."""
    if sys.platform != "linux":
        yield True
        return
    # By number, so that two names of one file are one.
    file = os.stat(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sign:
        try:
            sign.bind(f"\0deniable/{file.st_dev}/{file.st_ino}")
        except OSError:
            yield False
        else:
            yield True
