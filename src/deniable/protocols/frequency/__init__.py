"""Frequency oracles: how many people hold each answer."""

from __future__ import annotations

from deniable.protocols.frequency.block_design import BlockDesign
from deniable.protocols.frequency.grr import GRR
from deniable.protocols.frequency.hadamard_response import HadamardResponse
from deniable.protocols.frequency.local_hashing import BLH, OLH
from deniable.protocols.frequency.rappor import RAPPOR
from deniable.protocols.frequency.sketch import CMS, HCMS, OLHSketch
from deniable.protocols.frequency.subset_selection import SubsetSelection
from deniable.protocols.frequency.unary import OUE, SUE, THE

EXCHANGEABLE = (GRR, SubsetSelection, OLH)
"""Protocols whose reports support any two other answers together equally likely, so that covariances are known."""

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
    "BlockDesign",
    "HadamardResponse",
    "OLHSketch",
    "SubsetSelection",
]
