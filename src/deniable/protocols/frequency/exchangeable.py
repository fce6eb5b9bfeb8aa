"""Protocols whose reports support any two other answers together equally likely, so that covariances are known."""

from __future__ import annotations

from deniable.protocols.frequency.grr import GRR
from deniable.protocols.frequency.local_hashing import OLH
from deniable.protocols.frequency.subset_selection import SubsetSelection

EXCHANGEABLE = (GRR, SubsetSelection, OLH)
