"""Profile-based privacy: hide which distribution a person's data come from, and not more than that.

A `ProfileGraph` says which profiles must look alike; `OneBitCluster`, `SmoothOneBit` and `SmoothCategorical` find how
little noise that takes; a `ProfileTable` is such a mechanism as the protocol of a question; `verify` checks any set of
channels exactly; `compose` says what several releases tell.
"""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
