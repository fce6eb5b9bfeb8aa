"""deniable: learn what a crowd thinks without learning what anyone said.

Local differential privacy with exact laws. Start with `Channel`, the closed forms in `deniable.channels`,
and `deniable.infer`.
"""

from __future__ import annotations

from deniable import channels, errors, exact, randomness
from deniable.channels import Channel, DiscreteLaplace, GridLaplace, Query, divergence, utility
from deniable.channels import inference as infer
from deniable.randomness import Secure, Simulation

__version__ = "0.1.0"

__all__ = [
    "Channel",
    "DiscreteLaplace",
    "GridLaplace",
    "Query",
    "Secure",
    "Simulation",
    "__version__",
    "channels",
    "divergence",
    "errors",
    "exact",
    "infer",
    "randomness",
    "utility",
]
