"""Records of several columns: one part of a record per device, and statistical queries."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
