from deniable.domains.base import Domain as Domain, domain_kinds as domain_kinds, load_domain as load_domain
from deniable.domains.bit_strings import (
    BitDomain as BitDomain,
    BitRows as BitRows,
    BitStrings as BitStrings,
    ShortText as ShortText,
)
from deniable.domains.interval import Interval as Interval
from deniable.domains.listed import (
    Categories as Categories,
    DomainLike as DomainLike,
    Integers as Integers,
    Labels as Labels,
    ListedDomain as ListedDomain,
    as_domain as as_domain,
    as_listed as as_listed,
)
from deniable.domains.records import (
    PLACES_ARE_READ_AS as PLACES_ARE_READ_AS,
    RECORDS_ARE_READ_AS as RECORDS_ARE_READ_AS,
    Box as Box,
    Grid as Grid,
    RecordColumns as RecordColumns,
    Records as Records,
)
from deniable.domains.sets import KeyNumbers as KeyNumbers, SetColumn as SetColumn, Sets as Sets
from deniable.domains.text import Strings as Strings, Texts as Texts
