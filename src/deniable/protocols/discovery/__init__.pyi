from deniable.protocols.discovery.discovery import HeavyHitters as HeavyHitters
from deniable.protocols.discovery.found import Found as Found
