from deniable.protocols.records.attributes import Attributes as Attributes
from deniable.protocols.records.queries import Queries as Queries
