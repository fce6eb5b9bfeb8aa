"""Channels: mechanisms as exact matrices, their privacy, their utility, and inference through them."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
