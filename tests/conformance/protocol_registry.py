"""Every protocol at small size: register it here and it inherits the checks of `protocol_checks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from deniable.protocols import BLH, GRR, OLH, OUE, SUE, THE, HadamardResponse, Protocol, SubsetSelection

THREE = ["never", "once", "often"]


@dataclass(frozen=True)
class ProtocolCase:
    """How to build a protocol at a level, small enough that all its reports can be listed."""

    name: str
    build: Callable[[Fraction], Protocol]
    epsilon: Fraction = Fraction(1)
    tight: bool = True

    def __str__(self) -> str:
        return self.name


PROTOCOL_CASES = [
    ProtocolCase("GRR, 2 answers", lambda e: GRR([True, False], e)),
    ProtocolCase("GRR, 5 answers", lambda e: GRR(5, e)),
    ProtocolCase("SUE", lambda e: SUE(THREE, e)),
    ProtocolCase("OUE", lambda e: OUE(THREE, e)),
    ProtocolCase("THE", lambda e: THE(THREE, e, threshold="2/3"), tight=False),
    ProtocolCase("BLH", lambda e: BLH(5, e)),
    ProtocolCase("OLH, 1 hash bit", lambda e: OLH(3, e, hash_bits=1)),
    ProtocolCase("OLH, 2 hash bits", lambda e: OLH(4, e, hash_bits=2)),
    ProtocolCase("subset selection, bitmap", lambda e: SubsetSelection(5, e, subset_size=2)),
    ProtocolCase("subset selection, one member", lambda e: SubsetSelection(20, e, subset_size=1)),
    ProtocolCase("subset selection, list", lambda e: SubsetSelection(20, e, subset_size=2)),
    ProtocolCase("Hadamard response, 1 block", lambda e: HadamardResponse(3, e, blocks=1)),
    ProtocolCase("Hadamard response, 2 blocks", lambda e: HadamardResponse(5, e, blocks=2)),
]
