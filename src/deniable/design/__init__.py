"""Designs: the best mechanism for given knowledge and goals, found by optimization and returned with its proof."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
