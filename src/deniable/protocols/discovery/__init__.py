"""Discovery of common answers that nobody can list."""

from deniable.protocols.discovery.discovery import HeavyHitters
from deniable.protocols.discovery.found import Found

__all__ = ["Found", "HeavyHitters"]
