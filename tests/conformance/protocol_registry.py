"""Every protocol at small size: register it here and it inherits the checks of `protocol_checks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from deniable.channels import randomized_response
from deniable.domains import Interval, Strings
from deniable.protocols import (
    BLH,
    CMS,
    GRR,
    HCMS,
    LGRR,
    OLH,
    OUE,
    RAPPOR,
    SUE,
    THE,
    Attributes,
    HadamardResponse,
    OLHSketch,
    OneBitMean,
    Protocol,
    SubsetSelection,
    Table,
    Window,
)

THREE = ["never", "once", "often"]
BREADS = ["rye", "sourdough", "naïve", "baguette", "食パン", ""]

COLLISIONS = {
    "check_unbiased": "a fixed hash collides: unbiased over redrawn keys, see test_sketch.py and test_rappor.py",
}
TABLE = {
    "check_unbiased": "each answer has a variance of its own: unbiased by enumeration in tests/protocols/test_table.py",
    "check_support": "a table need not have two likelihoods only",
}
NUMBER = {
    "check_unbiased": "a mean is no histogram: unbiased by enumeration in tests/protocols/test_window.py",
    "check_support": "a window speaks for no list of answers",
    "check_number_is_refused": "any number is an answer, clipped to the interval",
}
RECORD = {
    "check_unbiased": "a record is no histogram: unbiased by enumeration in tests/protocols/test_attributes.py",
    "check_support": "a report about one column speaks for no list of records",
}
BLOOM = {
    "check_unbiased": COLLISIONS["check_unbiased"],
    "check_support": "a Bloom filter overlaps in part: more than two likelihoods, see tests/protocols/test_rappor.py",
}


@dataclass(frozen=True)
class ProtocolCase:
    """How to build a protocol at a level, small enough that all its reports can be listed."""

    name: str
    build: Callable[[Fraction], Protocol]
    epsilon: Fraction = Fraction(1)
    tight: bool = True
    slow: bool = False
    """Whether the statistical check takes so many reports that it is left to `make test-slow`."""
    waived: dict[str, str] = field(default_factory=dict)
    """Checks that do not apply, each with the reason and where the protocol is tested instead."""

    def __str__(self) -> str:
        return self.name


PROTOCOL_CASES = [
    ProtocolCase("GRR, 2 answers", lambda e: GRR([True, False], e)),
    ProtocolCase("GRR, 5 answers", lambda e: GRR(5, e)),
    ProtocolCase("LGRR, 2 answers", lambda e: LGRR([True, False], first=e, forever=2 * e)),
    ProtocolCase("LGRR, 3 answers", lambda e: LGRR(3, first=e, forever=e + 3)),
    ProtocolCase("SUE", lambda e: SUE(THREE, e)),
    ProtocolCase("OUE", lambda e: OUE(THREE, e)),
    ProtocolCase("THE", lambda e: THE(THREE, e, threshold="2/3"), tight=False),
    ProtocolCase("BLH", lambda e: BLH(5, e)),
    ProtocolCase("OLH, 1 hash bit", lambda e: OLH(3, e, hash_bits=1)),
    ProtocolCase("OLH, 2 hash bits", lambda e: OLH(4, e, hash_bits=2)),
    ProtocolCase("subset selection, bitmap", lambda e: SubsetSelection(5, e, subset_size=2)),
    ProtocolCase("subset selection, one member", lambda e: SubsetSelection(9, e, subset_size=1)),
    ProtocolCase("subset selection, list", lambda e: SubsetSelection(17, e, subset_size=2)),
    ProtocolCase("Hadamard response, 1 block", lambda e: HadamardResponse(3, e, blocks=1)),
    ProtocolCase("Hadamard response, 2 blocks", lambda e: HadamardResponse(5, e, blocks=2)),
    ProtocolCase("CMS", lambda e: CMS(THREE, e, hashing=Strings(4, 2)), slow=True, waived=COLLISIONS),
    ProtocolCase("HCMS", lambda e: HCMS(THREE, e, hashing=Strings(4, 2)), slow=True, waived=COLLISIONS),
    ProtocolCase(
        "OLH sketch", lambda e: OLHSketch(THREE, e, 2, hashing=Strings(2, 3, "k")), slow=True, waived=COLLISIONS
    ),
    ProtocolCase(
        "OLH sketch, numbers", lambda e: OLHSketch(3, e, 1, hashing=Strings(4, 1)), slow=True, waived=COLLISIONS
    ),
    ProtocolCase("table", lambda e: Table(randomized_response(3, e), e), waived=TABLE),
    ProtocolCase("window", lambda e: Window(Interval(0, 1), e, positions=3, width=2), waived=NUMBER),
    ProtocolCase("window of 4 positions", lambda e: Window(Interval(-10, 30), e, positions=4, width=1), waived=NUMBER),
    ProtocolCase("one-bit mean", lambda e: OneBitMean(Interval(-1, 1), e), waived=NUMBER),
    ProtocolCase(
        "attributes", lambda e: Attributes.of({"a": GRR(2, e), "b": OUE(3, e)}, {"a": 1, "b": 2}), waived=RECORD
    ),
    ProtocolCase(
        "attributes with numbers",
        lambda e: Attributes.of({"a": Window(Interval(0, 1), e, 3, 2), "b": OneBitMean(Interval(0, 1), e / 2)}),
        slow=True,
        waived=RECORD,
    ),
    ProtocolCase("RAPPOR, 1 hash", lambda e: RAPPOR(BREADS[:3], e, 4, 1, 2), slow=True, waived=COLLISIONS),
    ProtocolCase("RAPPOR, 2 hashes", lambda e: RAPPOR(BREADS, e, 4, 2, 2), slow=True, waived=BLOOM),
]
