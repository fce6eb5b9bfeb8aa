"""Collection over the network: devices with a ledger, a service that counts, and stores for the sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late

if TYPE_CHECKING:
    from deniable.collect.analyst import Analyst
    from deniable.collect.client import AsyncClient, Client

__all__ = ["Analyst", "AsyncClient", "Client"]

# A service needs no client and a client no service: each loads what it uses.
__getattr__ = late(__name__, {"analyst": ("Analyst",), "client": ("AsyncClient", "Client")})
