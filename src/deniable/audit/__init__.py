"""Audits of the epsilon that a client, a survey or a program claims: exact, by structure, or by samples."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
