"""Sources of random bits, with exact samplers on top.

`Secure` for anything that leaves a device, `Simulation(seed)` for reproducible studies,
`Exhaustive` for tests: it runs the real code once along every branch, with exact weights.
"""

from __future__ import annotations

from deniable.randomness.kernels import IntegerWeights, KnownBoundaries
from deniable.randomness.secure import SYSTEM, Counting, Secure, Simulation, source_of
from deniable.randomness.source import Bits, Enumeration, Exhaustive, Tied, exhaust, floyd, listed_bits, written_number

__all__ = [
    "SYSTEM",
    "Bits",
    "Counting",
    "Enumeration",
    "Exhaustive",
    "IntegerWeights",
    "KnownBoundaries",
    "Secure",
    "Simulation",
    "Tied",
    "exhaust",
    "floyd",
    "listed_bits",
    "source_of",
    "written_number",
]
