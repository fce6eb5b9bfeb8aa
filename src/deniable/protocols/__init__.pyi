from deniable.protocols import (
    frequency as frequency,
    longitudinal as longitudinal,
    numeric as numeric,
    profiles as profiles,
)
from deniable.protocols.discovery import *
from deniable.protocols.frequency import *
from deniable.protocols.frequency.histogram import (
    FrequencyProtocol as FrequencyProtocol,
    PureProtocol as PureProtocol,
    ShareProtocol as ShareProtocol,
)
from deniable.protocols.frequency.open_text import TextEstimate as TextEstimate, TextProtocol as TextProtocol
from deniable.protocols.groups import Group as Group, Groups as Groups
from deniable.protocols.kernel import Kernel as Kernel
from deniable.protocols.law import Guarantee as Guarantee, Kept as Kept, Law as Law
from deniable.protocols.longitudinal import *
from deniable.protocols.memoized import Level as Level, Levels as Levels, Memoized as Memoized
from deniable.protocols.numeric import *
from deniable.protocols.private_strata import PrivateStrata as PrivateStrata
from deniable.protocols.protocol import Protocol as Protocol, load as load, registered as registered
from deniable.protocols.ranges import *
from deniable.protocols.records import *
from deniable.protocols.reports import Reports as Reports
from deniable.protocols.sets import *
from deniable.protocols.stratified import Stratified as Stratified
from deniable.protocols.table import Table as Table
from deniable.protocols.tally import Tally as Tally
from deniable.protocols.traits import Ask as Ask, Traits as Traits
from deniable.protocols.worth import Cost as Cost, Worth as Worth
from deniable.results import Difference as Difference, Estimate as Estimate, combine as combine
