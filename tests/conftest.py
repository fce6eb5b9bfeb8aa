"""Settings that all tests share."""

from __future__ import annotations

import gc
import os

from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine is no reason to fail, and a failure must come back on the next run.
settings.register_profile("deniable", deadline=None, derandomize=True)
settings.load_profile("deniable")


def pytest_collection_finish() -> None:
    """What was loaded until now stays to the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
