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

from deniable.domains.base import Domain, domain_kinds, load_domain
from deniable.domains.bit_strings import BitDomain, BitRows, BitStrings, ShortText
from deniable.domains.interval import Interval
from deniable.domains.listed import Categories, DomainLike, Integers, Labels, ListedDomain, as_domain, as_listed
from deniable.domains.records import (
    PLACES_ARE_READ_AS,
    RECORDS_ARE_READ_AS,
    Box,
    Grid,
    RecordColumns,
    Records,
)
from deniable.domains.sets import KeyNumbers, SetColumn, Sets
from deniable.domains.text import Strings, Texts

__all__ = [
    "PLACES_ARE_READ_AS",
    "RECORDS_ARE_READ_AS",
    "BitDomain",
    "BitRows",
    "BitStrings",
    "Box",
    "Categories",
    "Domain",
    "DomainLike",
    "Grid",
    "Integers",
    "Interval",
    "KeyNumbers",
    "Labels",
    "ListedDomain",
    "RecordColumns",
    "Records",
    "SetColumn",
    "Sets",
    "ShortText",
    "Strings",
    "Texts",
    "as_domain",
    "as_listed",
    "domain_kinds",
    "load_domain",
]
