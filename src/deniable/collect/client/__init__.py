"""The device's client: randomize locally, record it, send the same bytes until they have arrived."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
