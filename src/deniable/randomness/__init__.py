"""Sources of random bits, with exact samplers on top.

`Secure` for anything that leaves a device, `Simulation(seed)` for reproducible studies,
`Exhaustive` for tests: it runs the real code once along every branch, with exact weights.
"""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
