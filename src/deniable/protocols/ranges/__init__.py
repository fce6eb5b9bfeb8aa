"""Ranges of ordered answers."""

from deniable.protocols.ranges.ranges import Ranges

__all__ = ["Ranges"]
