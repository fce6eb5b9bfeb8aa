"""The total privacy loss of one person, attacks on it, and audits of the epsilon that a client claims."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
