"""Protocols: mechanisms with a report format, a tally and an estimator, for both sides of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late
from deniable.protocols.base import FAMILIES, Protocol, load, registered
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Guarantee, Kept, Law
from deniable.protocols.reports import Reports
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import Cost, Worth
from deniable.results import Difference, Estimate, combine

if TYPE_CHECKING:
    from deniable.protocols import frequency, longitudinal, numeric, profiles
    from deniable.protocols.attributes import Attributes
    from deniable.protocols.discovery import Found, HeavyHitters
    from deniable.protocols.frequency import *  # noqa: F403  # one list of them, in their own package
    from deniable.protocols.frequency import EXCHANGEABLE
    from deniable.protocols.frequency.histogram import FrequencyProtocol, PureProtocol, ShareProtocol
    from deniable.protocols.frequency.open_text import TextEstimate, TextProtocol
    from deniable.protocols.groups import Group, Groups
    from deniable.protocols.longitudinal import *  # noqa: F403
    from deniable.protocols.longitudinal import LRAPPOR
    from deniable.protocols.memoized import Level, Levels, Memoized
    from deniable.protocols.numeric import MeanTable, Moments, OneBitMean, Piecewise, SquareWave, Window
    from deniable.protocols.places import PlanarLaplace
    from deniable.protocols.private_strata import PrivateStrata
    from deniable.protocols.queries import Queries
    from deniable.protocols.ranges import Ranges, Rectangles
    from deniable.protocols.secure_sum import SecureSum
    from deniable.protocols.sets import CollisionSets, ItemSets, KeyValue, SubsetSets
    from deniable.protocols.stratified import Stratified
    from deniable.protocols.table import Table

__all__ = [  # and the names of `frequency` and `longitudinal`, which most people take from `deniable`
    "EXCHANGEABLE",
    "LRAPPOR",
    "Ask",
    "Attributes",
    "CollisionSets",
    "Cost",
    "Difference",
    "Estimate",
    "Found",
    "FrequencyProtocol",
    "Group",
    "Groups",
    "Guarantee",
    "HeavyHitters",
    "ItemSets",
    "Kept",
    "Kernel",
    "KeyValue",
    "Law",
    "Level",
    "Levels",
    "MeanTable",
    "Memoized",
    "Moments",
    "OneBitMean",
    "Piecewise",
    "PlanarLaplace",
    "PrivateStrata",
    "Protocol",
    "PureProtocol",
    "Queries",
    "Ranges",
    "Rectangles",
    "Reports",
    "SecureSum",
    "ShareProtocol",
    "SquareWave",
    "Stratified",
    "SubsetSets",
    "Table",
    "Tally",
    "TextEstimate",
    "TextProtocol",
    "Traits",
    "Window",
    "Worth",
    "combine",
    "frequency",
    "load",
    "longitudinal",
    "numeric",
    "profiles",
    "registered",
]

# A family is loaded when one of its names is first used.
__getattr__ = late(
    __name__,
    {
        "": FAMILIES,
        "attributes": ("Attributes",),
        "discovery": ("HeavyHitters", "Found"),
        "frequency": ("EXCHANGEABLE",),
        "frequency.histogram": ("FrequencyProtocol", "PureProtocol", "ShareProtocol"),
        "frequency.open_text": ("TextEstimate", "TextProtocol"),
        "groups": ("Group", "Groups"),
        "memoized": ("Level", "Levels", "Memoized"),
        "numeric": ("MeanTable", "Moments", "OneBitMean", "Piecewise", "SquareWave", "Window"),
        "places": ("PlanarLaplace",),
        "private_strata": ("PrivateStrata",),
        "queries": ("Queries",),
        "ranges": ("Ranges", "Rectangles"),
        "secure_sum": ("SecureSum",),
        "sets": ("CollisionSets", "ItemSets", "KeyValue", "SubsetSets"),
        "stratified": ("Stratified",),
        "table": ("Table",),
    },
    opened=("frequency", "longitudinal"),
)
