"""What of multi-freq-ldpy is timed; see the package's docstring. Its clients are compiled, one value a call.

Its aggregators take all reports at once and return clipped and rescaled frequencies only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Aggregator_MI, dBitFlipPM_Client
from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Aggregator_MI, L_GRR_Client
from multi_freq_ldpy.long_freq_est.L_LH import L_LH_Aggregator_MI, L_LH_Client
from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Aggregator_MI, L_OSUE_Client
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI, L_SUE_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

PACKAGE = "multi-freq-ldpy"
ANSWERS = 1024
FEW = 16  # of those in two stages
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


def kept(client: Callable[..., Any], aggregate: Callable[..., Any], counts: bool = False) -> Made:
    """In two stages. Its clients draw both anew in every call: nothing is kept."""
    sizes = (FEW,) if counts else ()
    return oracle(
        lambda value: client(value * FEW // ANSWERS, FEW, 2 * EPSILON, EPSILON),
        lambda reports: aggregate(reports, *sizes, 2 * EPSILON, EPSILON),
    )


BUCKETS, BITS = 32, 8


def bit_flip() -> Made:
    return oracle(
        lambda value: dBitFlipPM_Client(value, ANSWERS, BUCKETS, BITS, EPSILON),
        lambda reports: dBitFlipPM_Aggregator_MI(reports, BUCKETS, BITS, EPSILON),
    )


TASKS: dict[str, Callable[[int], Callable[[], object]]] = {}
ORACLES = {
    "GRR": lambda: listed(GRR_Client, GRR_Aggregator_MI),
    "SUE": partial(unary, False),
    "OUE": partial(unary, True),
    "OLH": lambda: listed(LH_Client, LH_Aggregator_MI),
    "LGRR": lambda: kept(L_GRR_Client, L_GRR_Aggregator_MI, counts=True),
    "LSUE": lambda: kept(L_SUE_Client, L_SUE_Aggregator_MI),
    "LOSUE": lambda: kept(L_OSUE_Client, L_OSUE_Aggregator_MI),
    "LOLOHA": lambda: kept(L_LH_Client, L_LH_Aggregator_MI, counts=True),
    "DBitFlip": bit_flip,
    "SubsetSelection": lambda: listed(SS_Client, SS_Aggregator_MI),
}
