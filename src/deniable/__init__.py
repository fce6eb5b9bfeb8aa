"""deniable: learn what a crowd thinks without learning what anyone said.

Local differential privacy with exact laws. `plan` picks a protocol; a protocol (`GRR`, `OUE`, `OLH`, ...) randomizes
answers on a device, adds the reports up and estimates; a `Survey` is a named set of questions; a `Channel` is a
mechanism as an exact matrix, for analysis and proofs.
"""

from __future__ import annotations

from deniable._extras import exports

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = exports(__name__)
__all__ += ["__version__"]
