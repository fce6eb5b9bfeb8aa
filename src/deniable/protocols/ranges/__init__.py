"""Ranges of ordered answers, and rectangles of two of them."""

from deniable.protocols.ranges.ranges import Ranges
from deniable.protocols.ranges.rectangles import Rectangles

__all__ = ["Ranges", "Rectangles"]
