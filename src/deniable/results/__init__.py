"""Results: shares of answers, a mean, a distribution, ... all of them one table with the same output forms."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
