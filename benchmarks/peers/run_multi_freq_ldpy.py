"""What of multi-freq-ldpy is timed; see the package's docstring. Its clients are compiled, one value a call.

Its aggregators take all reports at once and return clipped and rescaled frequencies only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

PACKAGE = "multi-freq-ldpy"
ANSWERS = 1024
EPSILON = 1.0

Made = tuple[Callable[..., Any], Callable[..., Any]]


def oracle(client: Callable[[int], Any], aggregate: Callable[[list[Any]], Any]) -> Made:
    def server() -> tuple[Callable[..., None], Callable[[], Any]]:
        kept: list[list[Any]] = []
        return kept.append, lambda: aggregate(kept[0])

    return lambda values: [client(value) for value in values], server


def listed(client: Callable[..., Any], aggregate: Callable[..., Any]) -> Made:
    return oracle(lambda value: client(value, ANSWERS, EPSILON), lambda reports: aggregate(reports, ANSWERS, EPSILON))


def unary(optimized: bool) -> Made:
    return oracle(
        lambda value: UE_Client(value, ANSWERS, EPSILON, optimized),
        lambda reports: UE_Aggregator_MI(reports, EPSILON, optimized),
    )


TASKS: dict[str, Callable[[int], Callable[[], object]]] = {}
ORACLES = {
    "GRR": lambda: listed(GRR_Client, GRR_Aggregator_MI),
    "SUE": partial(unary, False),
    "OUE": partial(unary, True),
    "OLH": lambda: listed(LH_Client, LH_Aggregator_MI),
    "SubsetSelection": lambda: listed(SS_Client, SS_Aggregator_MI),
}
