"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine is no reason to fail, and a failure must come back on the next run.
settings.register_profile("deniable", deadline=None, derandomize=True)
settings.load_profile("deniable")
