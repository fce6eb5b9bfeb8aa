"""Protocols for numbers."""

from __future__ import annotations

from deniable.protocols.numeric.mean_table import MeanTable
from deniable.protocols.numeric.moments import Moments
from deniable.protocols.numeric.window import OneBitMean, Window

__all__ = ["MeanTable", "Moments", "OneBitMean", "Window"]
