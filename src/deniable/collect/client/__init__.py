"""The device's client: randomize locally, record it, send the same bytes until they have arrived."""

from __future__ import annotations

from deniable.collect.client.client import AsyncClient, Client, Flushed
from deniable.collect.client.ledger import Ledger, default_path
from deniable.collect.client.records import (
    BudgetSpent,
    Deleted,
    LedgerError,
    NotOpen,
    OptedOut,
    OptOuts,
    OtherRelation,
    Receipt,
    Refused,
    Spending,
    Submission,
    SuccessorDiffers,
    TookPart,
    Untrusted,
)

__all__ = [
    "AsyncClient",
    "BudgetSpent",
    "Client",
    "Deleted",
    "Flushed",
    "Ledger",
    "LedgerError",
    "NotOpen",
    "OptOuts",
    "OptedOut",
    "OtherRelation",
    "Receipt",
    "Refused",
    "Spending",
    "Submission",
    "SuccessorDiffers",
    "TookPart",
    "Untrusted",
    "default_path",
]
