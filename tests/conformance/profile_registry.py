"""Every profile mechanism on a small graph: register it here and it inherits the checks of `profile_checks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from deniable.protocols.profiles import (
    KaryResponse,
    OneBitCluster,
    ProfileGraph,
    ProfileMechanism,
    SmoothCategorical,
    SmoothOneBit,
    Warner,
)

BITS = ProfileGraph.chain({"north": "1/8", "south": "7/8"})
CLUSTERS = ProfileGraph.clusters({"n": {"A": "1/8", "B": "1/2"}, "s": {"C": "5/8", "D": 1}})
JOBS = ProfileGraph.chain(
    {"clerk": ["3/4", "1/8", "1/8"], "engineer": ["1/8", "1/8", "3/4"], "guest": ["1/8", "3/4", "1/8"]},
    values=["idle", "print", "compute"],
)

SOFT = "these profiles overlap, and randomized response would hide even profiles that do not"
FAITHFUL = "what says little about the profile is reported as it is: `in_the_clear` and test_categorical.py"
FEW = "two outputs cannot tell the shares of four profiles: refused, see tests/profiles/test_mechanism.py"


@dataclass(frozen=True)
class ProfileCase:
    """How to build a mechanism at a level, on a graph whose profiles are eighths."""

    name: str
    build: Callable[[Fraction], ProfileMechanism]
    epsilon: Fraction = Fraction(1)
    waived: dict[str, str] = field(default_factory=dict)
    """Checks that do not apply, each with the reason."""

    def __str__(self) -> str:
        return self.name


PROFILE_CASES = [
    ProfileCase("Warner", lambda e: Warner(BITS, e), waived={"check_tight": SOFT}),
    ProfileCase("one bit cluster", lambda e: OneBitCluster(BITS, e)),
    ProfileCase("one bit cluster, two components", lambda e: OneBitCluster(CLUSTERS, e), Fraction(1, 2),
                {"check_unbiased": FEW}),
    ProfileCase("smooth one bit", lambda e: SmoothOneBit(BITS, e)),
    ProfileCase("smooth one bit, two components", lambda e: SmoothOneBit(CLUSTERS, e), Fraction(1, 2),
                {"check_unbiased": FEW, "check_positions": FAITHFUL}),
    ProfileCase("k-ary response", lambda e: KaryResponse(JOBS, e), waived={"check_tight": SOFT}),
    ProfileCase("smooth categorical", lambda e: SmoothCategorical(JOBS, e)),
]  # fmt: skip
