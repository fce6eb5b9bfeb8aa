"""deniable: learn what a crowd thinks without learning what anyone said.

Local differential privacy with exact laws. A protocol (`GRR`, `OUE`, `OLH`, ...) randomizes answers on a device, adds
the reports up and estimates; a `Channel` is a mechanism as an exact matrix, for analysis and proofs.
"""

from __future__ import annotations

from deniable import channels, errors, exact, protocols, randomness
from deniable.channels import Channel, DiscreteLaplace, GridLaplace, Query, divergence, utility
from deniable.channels import inference as infer
from deniable.domains import Categories, Integers, Strings
from deniable.protocols import (
    BLH,
    CMS,
    GRR,
    HCMS,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    THE,
    Estimate,
    HadamardResponse,
    OLHSketch,
    Protocol,
    Reports,
    SubsetSelection,
    Tally,
    combine,
    load,
)
from deniable.randomness import Secure, Simulation

__version__ = "0.1.0"

__all__ = [
    "BLH",
    "CMS",
    "GRR",
    "HCMS",
    "OLH",
    "OUE",
    "RAPPOR",
    "SUE",
    "THE",
    "Categories",
    "Channel",
    "DiscreteLaplace",
    "Estimate",
    "GridLaplace",
    "HadamardResponse",
    "Integers",
    "OLHSketch",
    "Protocol",
    "Query",
    "Reports",
    "Secure",
    "Simulation",
    "Strings",
    "SubsetSelection",
    "Tally",
    "__version__",
    "channels",
    "combine",
    "divergence",
    "errors",
    "exact",
    "infer",
    "load",
    "protocols",
    "randomness",
    "utility",
]
