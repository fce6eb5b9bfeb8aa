"""Collecting over the network: devices with a ledger, a service that adds up, and where the sums are kept."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.collect.analyst import Analyst
    from deniable.collect.client import AsyncClient, Client

__all__ = ["Analyst", "AsyncClient", "Client"]

# A service needs no client and a client no service: each loads what it uses.
_HOMES = {"Analyst": "analyst", "AsyncClient": "client", "Client": "client"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deniable.collect' has no attribute {name!r}")
    return getattr(import_module(f"deniable.collect.{_HOMES[name]}"), name)
