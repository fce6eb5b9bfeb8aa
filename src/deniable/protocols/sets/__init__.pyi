from deniable.protocols.sets.collision import CollisionSets as CollisionSets
from deniable.protocols.sets.item_sets import ItemSets as ItemSets
from deniable.protocols.sets.key_value import KeyValue as KeyValue
from deniable.protocols.sets.subset import SubsetSets as SubsetSets
