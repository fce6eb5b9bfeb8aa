"""Protocols for sets of items, and for numbers by key."""

from deniable.protocols.sets.collision import CollisionSets
from deniable.protocols.sets.item_sets import ItemSets
from deniable.protocols.sets.key_value import KeyValue
from deniable.protocols.sets.subset import SubsetSets

__all__ = ["CollisionSets", "ItemSets", "KeyValue", "SubsetSets"]
