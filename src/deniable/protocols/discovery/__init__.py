"""Discovery of common answers that nobody can list."""

from deniable.protocols.discovery.discovery import Discovery
from deniable.protocols.discovery.found import Found

__all__ = ["Discovery", "Found"]
