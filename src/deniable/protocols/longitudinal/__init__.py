"""Protocols for answers that are asked again and again."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
