"""deniable: learn what a crowd thinks without learning what anyone said.

Local differential privacy with exact laws. `plan` picks a protocol; a protocol (`GRR`, `OUE`, `OLH`, ...) randomizes
answers on a device, adds the reports up and estimates; a `Survey` is a named set of questions; a `Channel` is a
mechanism as an exact matrix, for analysis and proofs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable import channels as channels
    from deniable import collect as collect
    from deniable import design as design
    from deniable import domains as domains
    from deniable import errors as errors
    from deniable import exact as exact
    from deniable import files as files
    from deniable import planning as planning
    from deniable import postprocess as postprocess
    from deniable import privacy as privacy
    from deniable import protocols as protocols
    from deniable import randomness as randomness
    from deniable import results as results
    from deniable import surveys as surveys
    from deniable.channels import Channel as Channel
    from deniable.channels import DiscreteLaplace as DiscreteLaplace
    from deniable.channels import GridLaplace as GridLaplace
    from deniable.channels import Query as Query
    from deniable.channels import divergence as divergence
    from deniable.channels import inference as infer  # noqa: F401
    from deniable.channels.utility import utility as utility
    from deniable.domains import BitStrings as BitStrings
    from deniable.domains import Box as Box
    from deniable.domains import Categories as Categories
    from deniable.domains import Grid as Grid
    from deniable.domains import Integers as Integers
    from deniable.domains import Interval as Interval
    from deniable.domains import KeyNumbers as KeyNumbers
    from deniable.domains import Records as Records
    from deniable.domains import Sets as Sets
    from deniable.domains import ShortText as ShortText
    from deniable.domains import Strings as Strings
    from deniable.planning import Plan as Plan
    from deniable.planning import plan as plan
    from deniable.protocols import LGRR as LGRR
    from deniable.protocols import LOLOHA as LOLOHA
    from deniable.protocols import LOSUE as LOSUE
    from deniable.protocols import LSUE as LSUE
    from deniable.protocols import Attributes as Attributes
    from deniable.protocols import DBitFlip as DBitFlip
    from deniable.protocols import Estimate as Estimate
    from deniable.protocols import Evolving as Evolving
    from deniable.protocols import HeavyHitters as HeavyHitters
    from deniable.protocols import ItemSets as ItemSets
    from deniable.protocols import KeyValue as KeyValue
    from deniable.protocols import LOneBitMean as LOneBitMean
    from deniable.protocols import MeanTable as MeanTable
    from deniable.protocols import Moments as Moments
    from deniable.protocols import OneBitMean as OneBitMean
    from deniable.protocols import Piecewise as Piecewise
    from deniable.protocols import PlanarLaplace as PlanarLaplace
    from deniable.protocols import PrivateStrata as PrivateStrata
    from deniable.protocols import Protocol as Protocol
    from deniable.protocols import Queries as Queries
    from deniable.protocols import Ranges as Ranges
    from deniable.protocols import Rectangles as Rectangles
    from deniable.protocols import Reports as Reports
    from deniable.protocols import SecureSum as SecureSum
    from deniable.protocols import SquareWave as SquareWave
    from deniable.protocols import Stratified as Stratified
    from deniable.protocols import Table as Table
    from deniable.protocols import Tally as Tally
    from deniable.protocols import Window as Window
    from deniable.protocols import combine as combine
    from deniable.protocols import graphs as graphs
    from deniable.protocols import load as load
    from deniable.protocols import profiles as profiles
    from deniable.protocols.frequency import *  # noqa: F403  # one list of them, in their own package
    from deniable.randomness import Secure as Secure
    from deniable.randomness import Simulation as Simulation
    from deniable.results import Distribution as Distribution
    from deniable.results import Mean as Mean
    from deniable.results import SignificanceTest as SignificanceTest
    from deniable.results import compare as compare
    from deniable.results import independence as independence
    from deniable.surveys import Campaign as Campaign
    from deniable.surveys import Narrowing as Narrowing
    from deniable.surveys import Panel as Panel
    from deniable.surveys import Question as Question
    from deniable.surveys import RegressionRounds as RegressionRounds
    from deniable.surveys import Screening as Screening
    from deniable.surveys import Survey as Survey
    from deniable.surveys import SurveyTally as SurveyTally

__version__ = "0.1.0"

# Loaded on first use, so that a script that needs one protocol does not load every layer.
_HOMES = {
    "channels": ("Channel", "DiscreteLaplace", "GridLaplace", "Query", "divergence", "utility"),
    "domains": (
        "BitStrings",
        "Box",
        "Categories",
        "Grid",
        "Integers",
        "Interval",
        "KeyNumbers",
        "Records",
        "Sets",
        "ShortText",
        "Strings",
    ),
    "planning": ("Plan", "plan"),
    "protocols": (
        *("Attributes", "DBitFlip", "Estimate", "Evolving", "HeavyHitters", "ItemSets", "KeyValue", "LGRR", "LOLOHA"),
        *("LOSUE", "LOneBitMean", "LSUE", "MeanTable", "Moments", "OneBitMean", "Piecewise", "PlanarLaplace"),
        *("PrivateStrata", "Protocol", "Queries", "Ranges", "Rectangles", "Reports", "SecureSum", "SquareWave"),
        *("Stratified", "Table", "Tally", "Window", "combine", "load"),
    ),
    "randomness": ("Secure", "Simulation"),
    "results": ("Distribution", "Mean", "SignificanceTest", "compare", "independence"),
    "surveys": ("Campaign", "Narrowing", "Panel", "Question", "RegressionRounds", "Screening", "Survey", "SurveyTally"),
}
_HOME_OF = {name: f"deniable.{home}" for home, names in _HOMES.items() for name in names}
_MODULES = {
    **{
        name: f"deniable.{name}"
        for name in (
            *("channels", "collect", "design", "domains", "errors", "exact", "files", "planning", "postprocess"),
            *("privacy", "protocols", "randomness", "results", "surveys"),
        )
    },
    "graphs": "deniable.protocols.graphs",
    "infer": "deniable.channels.inference",
    "profiles": "deniable.protocols.profiles",
}

_OPENED = "deniable.protocols.frequency"
"""A family whose names are listed in its own `__all__`, and are all names of this package."""


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__all__":
        value = sorted([*_HOME_OF, *_MODULES, *import_module(_OPENED).__all__, "__version__"])
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif not name.startswith("_") and name in import_module(_OPENED).__all__:
        value = getattr(import_module(_OPENED), name)
    else:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
