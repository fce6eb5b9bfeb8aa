"""What of ldp-toolbox is timed; see the package's docstring. Its clients are compiled, one value a call.

Its estimators take all reports at once and return clipped and rescaled frequencies only; that of local hashing
uses all cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
from ldp_toolbox.protocols.frequency.lh import LocalHashing
from ldp_toolbox.protocols.frequency.ss import SubsetSelection
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

PACKAGE = "ldp-toolbox"
ANSWERS = 1024
EPSILON = 1.0

Made = tuple[Callable[..., Any], Callable[..., Any]]


def oracle(protocol: Any) -> Made:
    def server() -> tuple[Callable[..., None], Callable[[], Any]]:
        kept: list[list[Any]] = []
        return kept.append, lambda: protocol.estimate(kept[0])

    return lambda values: [protocol.obfuscate(value) for value in values], server


TASKS: dict[str, Callable[[int], Callable[[], object]]] = {}
ORACLES = {
    "GRR": lambda: oracle(GeneralizedRandomizedResponse(ANSWERS, EPSILON)),
    "SUE": lambda: oracle(UnaryEncoding(ANSWERS, EPSILON, optimal=False)),
    "OUE": lambda: oracle(UnaryEncoding(ANSWERS, EPSILON)),
    "OLH": lambda: oracle(LocalHashing(ANSWERS, EPSILON)),
    "SubsetSelection": lambda: oracle(SubsetSelection(ANSWERS, EPSILON)),
}
