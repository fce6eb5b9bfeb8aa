"""The protocols that the planner chooses from, with what each costs.

Device     random bytes that one report draws on average, in the documented order of a single report
Server     word operations to add one report to the tally: counters touched, or for bitmaps the 5 instructions that
           a carry-save adder spends on 64 bits
Leverage   by how much one fake report can raise the estimated count of one answer: (1 - q) / (p - q)
Attack     see `attack`; None where it depends on a dictionary that the planner does not know

A new protocol joins with one entry in CANDIDATES, or in TEXT_CANDIDATES if it takes open text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deniable.domains import Domain
from deniable.planning import attack
from deniable.protocols import (
    BLH,
    CMS,
    GRR,
    HCMS,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    THE,
    HadamardResponse,
    OLHSketch,
    Protocol,
    PureProtocol,
    SubsetSelection,
)
from deniable.protocols.frequency.local_hashing import LocalHashing
from deniable.protocols.frequency.sketch import SketchProtocol

WORD = 8
ADDER = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """How to build a protocol, and its costs as functions of what was built."""

    build: Callable[[Domain, Any], Protocol]
    device: Callable[[Any], float]
    server: Callable[[Any], float]
    leverage: Callable[[Any], float]
    attack: Callable[[Any], float] | None = None


def pure_leverage(protocol: PureProtocol) -> float:
    return float((1 - protocol.q) / (protocol.p - protocol.q))


def bitmap_operations(lanes: int) -> float:
    return float(ADDER * -(-lanes // 64))


def packed_bytes(lanes: int) -> float:
    """Words until the slowest of up to 64 lanes is decided, each digit deciding it with probability 1/2; in bytes."""

    def words(count: int) -> float:
        return sum(1 - (1 - 0.5**digit) ** count for digit in range(64)) if count else 0.0

    return WORD * (lanes // 64 * words(64) + words(lanes % 64))


def hashed_bytes(protocol: LocalHashing) -> float:
    return float(WORD * (protocol.hash_bits + 2))


def _unary(kind: type[Protocol]) -> Candidate:
    return Candidate(
        build=kind,
        device=lambda built: packed_bytes(built.domain.size) + WORD,
        server=lambda built: bitmap_operations(built.domain.size),
        leverage=pure_leverage,
        attack=attack.unary,
    )


def _hashing(kind: type[Protocol]) -> Candidate:
    return Candidate(
        build=kind,
        device=hashed_bytes,
        server=lambda built: float((1 << built.hash_bits) - 1),
        leverage=pure_leverage,
        attack=attack.linear_hash,
    )


CANDIDATES: dict[str, Candidate] = {
    "GRR": Candidate(GRR, lambda built: 2.0 * WORD, lambda built: 1.0, pure_leverage, attack.response),
    "SUE": _unary(SUE),
    "OUE": _unary(OUE),
    "THE": _unary(THE),
    "BLH": _hashing(BLH),
    "OLH": _hashing(OLH),
    "SubsetSelection": Candidate(
        build=SubsetSelection,
        device=lambda built: WORD * (1 + built.subset_size - float(built.p)),
        server=lambda built: min(float(built.subset_size), bitmap_operations(built.domain.size)),
        leverage=pure_leverage,
        attack=attack.subset,
    ),
    "HadamardResponse": Candidate(
        build=HadamardResponse,
        device=lambda built: 2.0 * WORD,
        server=lambda built: 1.0,
        leverage=lambda built: 1 / float(built.response.keep),
        attack=attack.hadamard,
    ),
}
"""For domains that list their answers."""


def _sketch(kind: type[SketchProtocol]) -> Candidate:
    inner = CANDIDATES["SUE" if kind is CMS else "BLH" if kind is HCMS else "OLH"]
    return Candidate(
        build=kind,
        device=lambda built: WORD + inner.device(built.inner),
        server=lambda built: 1 + inner.server(built.inner),
        leverage=lambda built: _in_cells(pure_leverage(built.inner), built.hashing.cells),
    )


def _in_cells(reports: float, cells: int) -> float:
    """What so many reports in one cell add to the count of a string there: the mean cell is taken off."""
    return (cells * reports - 1) / (cells - 1)


TEXT_CANDIDATES: dict[str, Candidate] = {
    "CMS": _sketch(CMS),
    "HCMS": _sketch(HCMS),
    "OLHSketch": _sketch(OLHSketch),
    "RAPPOR": Candidate(
        build=RAPPOR,
        device=lambda built: WORD * (1 + built.hashes) + packed_bytes(built.bloom_bits),
        server=lambda built: 1 + bitmap_operations(built.bloom_bits),
        leverage=lambda built: 1 / (1 - 2 * float(built.flip)),
    ),
}
"""For open text."""
