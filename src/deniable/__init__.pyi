from deniable import (
    channels as channels,
    collect as collect,
    design as design,
    domains as domains,
    errors as errors,
    exact as exact,
    files as files,
    planning as planning,
    postprocess as postprocess,
    privacy as privacy,
    protocols as protocols,
    randomness as randomness,
    results as results,
    surveys as surveys,
)
from deniable.channels import (
    Channel as Channel,
    DiscreteLaplace as DiscreteLaplace,
    GridLaplace as GridLaplace,
    Query as Query,
    divergence as divergence,
    inference,
)
from deniable.channels.utilities import utility as utility
from deniable.domains import (
    BitStrings as BitStrings,
    Box as Box,
    Categories as Categories,
    Grid as Grid,
    Integers as Integers,
    Interval as Interval,
    KeyNumbers as KeyNumbers,
    Records as Records,
    Sets as Sets,
    ShortText as ShortText,
    Strings as Strings,
)
from deniable.files.comparison import study as study
from deniable.planning import Plan as Plan, plan as plan
from deniable.protocols import (
    Estimate as Estimate,
    PrivateStrata as PrivateStrata,
    Protocol as Protocol,
    Reports as Reports,
    Stratified as Stratified,
    Table as Table,
    Tally as Tally,
    combine as combine,
    graphs as graphs,
    load as load,
    profiles as profiles,
)
from deniable.protocols.discovery import *
from deniable.protocols.frequency import *
from deniable.protocols.longitudinal import *
from deniable.protocols.numeric import *
from deniable.protocols.ranges import *
from deniable.protocols.records import *
from deniable.protocols.sets import *
from deniable.randomness import Secure as Secure, Simulation as Simulation
from deniable.results import (
    Distribution as Distribution,
    Mean as Mean,
    SignificanceTest as SignificanceTest,
    compare as compare,
    independence as independence,
)
from deniable.surveys import (
    Campaign as Campaign,
    Narrowing as Narrowing,
    Panel as Panel,
    Question as Question,
    RegressionRounds as RegressionRounds,
    Screening as Screening,
    Survey as Survey,
    SurveyTally as SurveyTally,
)

infer = inference

__version__: str
