"""The device's client: randomize locally, write it down, send the same bytes until they have arrived."""

from __future__ import annotations

from deniable.collect.client.asynchronous import AsyncClient
from deniable.collect.client.client import Client, Flushed
from deniable.collect.client.errors import (
    BudgetSpent,
    LedgerError,
    NotOpen,
    OptedOut,
    Refused,
    SuccessorDiffers,
    Untrusted,
)
from deniable.collect.client.ledger import Ledger, default_path
from deniable.collect.client.records import Deleted, OptOuts, Receipt, Spending, Submission

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
    "Receipt",
    "Refused",
    "Spending",
    "Submission",
    "SuccessorDiffers",
    "Untrusted",
    "default_path",
]
