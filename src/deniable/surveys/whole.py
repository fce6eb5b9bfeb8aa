"""The name under which the command line still imports `atomic_write`."""

from __future__ import annotations

from deniable._files import atomic_write as whole

__all__ = ["whole"]
