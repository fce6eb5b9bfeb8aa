"""Protocols: mechanisms with a report format, a tally and an estimator, for both sides of a collection."""

from __future__ import annotations

from deniable.protocols import frequency, longitudinal, numeric, profiles
from deniable.protocols.attributes import Attributes
from deniable.protocols.base import Cost, Guarantee, Protocol, load, registered
from deniable.protocols.discovery import Discovery, Found
from deniable.protocols.frequency import *  # noqa: F403  # one list of them, in their own package
from deniable.protocols.frequency.histogram import FrequencyProtocol, PureProtocol, ShareProtocol
from deniable.protocols.frequency.open_text import TextEstimate, TextProtocol
from deniable.protocols.groups import Group, Groups
from deniable.protocols.longitudinal import *  # noqa: F403
from deniable.protocols.memoized import Level, Levels, Memoized
from deniable.protocols.numeric import MeanTable, Moments, OneBitMean, Window
from deniable.protocols.places import Places
from deniable.protocols.ranges import Ranges, Rectangles
from deniable.protocols.reports import Reports
from deniable.protocols.sets import CollisionSets, ItemSets, KeyValue, SubsetSets
from deniable.protocols.stratified import Stratified
from deniable.protocols.table import Table
from deniable.protocols.tally import Tally
from deniable.results import Difference, Estimate, combine

__all__ = [
    "Attributes",
    "CollisionSets",
    "Cost",
    "Difference",
    "Discovery",
    "Estimate",
    "Found",
    "FrequencyProtocol",
    "Group",
    "Groups",
    "Guarantee",
    "ItemSets",
    "KeyValue",
    "Level",
    "Levels",
    "MeanTable",
    "Memoized",
    "Moments",
    "OneBitMean",
    "Places",
    "Protocol",
    "PureProtocol",
    "Ranges",
    "Rectangles",
    "Reports",
    "ShareProtocol",
    "Stratified",
    "SubsetSets",
    "Table",
    "Tally",
    "TextEstimate",
    "TextProtocol",
    "Window",
    "combine",
    "frequency",
    "load",
    "longitudinal",
    "numeric",
    "profiles",
    "registered",
]
__all__ += frequency.__all__
__all__ += longitudinal.__all__
