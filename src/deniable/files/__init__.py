"""Whole files at a time: answers to reports, reports to tallies, streamed in bounded memory, on one core or many."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
