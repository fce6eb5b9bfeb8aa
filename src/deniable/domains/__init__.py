"""Domains: the possible answers to a question.

Categories   a list of labels
Integers     every whole number from low to high
Interval     any number from low to high, in a unit
Strings      any text at all
Records      several answers of one person, by name
Grid         places, as cells of a grid; a `Box` of coordinates says which cell a place is in
Sets         any set of listed items
KeyNumbers   a number for each of some listed keys
BitStrings   strings with a fixed number of bits, to be discovered
ShortText    short texts, to be discovered
"""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
