"""Collection over the network: devices with a ledger, a service that counts, and stores for the sums."""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__)
