"""Optional dependencies: a missing one is named with the line that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deniable.errors import MissingExtra


def require(module: str, extra: str) -> Any:
    """Import `module`, or say which extra brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtra(module.partition(".")[0], extra) from missing
