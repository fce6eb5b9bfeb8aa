"""Post-processing of estimates: named methods, the simplex, and power laws."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
