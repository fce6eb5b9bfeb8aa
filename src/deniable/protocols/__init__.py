"""Protocols: mechanisms with a report format, a tally and an estimator, for both sides of a collection."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
