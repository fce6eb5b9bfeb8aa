"""Protocols for numbers."""

from __future__ import annotations

from deniable.protocols.numeric.mean_table import MeanTable
from deniable.protocols.numeric.moments import Moments
from deniable.protocols.numeric.window import OneBitMean, Piecewise, SquareWave, Window

__all__ = ["MeanTable", "Moments", "OneBitMean", "Piecewise", "SquareWave", "Window"]
