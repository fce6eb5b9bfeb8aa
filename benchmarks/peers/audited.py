"""A client of another package as a program: one value per line in, one report in hexadecimal digits per line out.

    python audited.py "pure-ldp" "GRR"

It runs in the environment of that package and needs nothing else. An empty line begins another device.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

ANSWERS = 8
EPSILON = 1.0
COLUMNS = 3
BLOOM_BITS = 32


def pure_ldp(what: str) -> Callable[[str], Any]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient
    from pure_ldp.frequency_oracles.local_hashing import LHClient
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    if what.startswith("RAPPOR"):
        from pure_ldp.core import generate_hash_funcs
        from pure_ldp.frequency_oracles.rappor import RAPPORClient

        hashes = [generate_hash_funcs(int(what.split()[1]), BLOOM_BITS)]
        filters = RAPPORClient(0, BLOOM_BITS, hashes, num_of_cohorts=1)
        filters.update_params(f=filters.convert_eps_to_f(EPSILON), hash_funcs=hashes)
        return lambda value: filters.privatise(int(value) + 1)[0]
    client = {
        "GRR": lambda: DEClient(EPSILON, ANSWERS),
        "OUE": lambda: UEClient(EPSILON, ANSWERS, use_oue=True),
        "OLH": lambda: LHClient(EPSILON, ANSWERS, use_olh=True),
    }[what]()
    return lambda value: client.privatise(int(value) + 1)


def multi_freq_ldpy(what: str) -> Callable[[str], Any]:
    from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Client
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def record(value: str) -> Any:
        return RSpFD_GRR_Client([int(value)] * COLUMNS, [ANSWERS] * COLUMNS, COLUMNS, EPSILON)

    made: dict[str, Callable[[str], Any]] = {
        "GRR": lambda value: GRR_Client(int(value), ANSWERS, EPSILON),
        "OUE": lambda value: UE_Client(int(value), ANSWERS, EPSILON, True),
        "subset selection": lambda value: SS_Client(int(value), ANSWERS, EPSILON),
        "L-GRR, 20 epochs": lambda value: L_GRR_Client(int(value), 2, EPSILON, EPSILON / 2),
        "RS+FD, 3 columns": record,
    }
    return made[what]


def ldp_toolbox(what: str) -> Callable[[str], Any]:
    from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
    from ldp_toolbox.protocols.frequency.ss import SubsetSelection
    from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

    client = {
        "GRR": lambda: GeneralizedRandomizedResponse(ANSWERS, EPSILON),
        "OUE": lambda: UnaryEncoding(ANSWERS, EPSILON, optimal=True),
        "subset selection": lambda: SubsetSelection(ANSWERS, EPSILON),
    }[what]()
    return lambda value: client.obfuscate(int(value))


def opendp(what: str) -> Callable[[str], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if what == "GRR":
        truth = math.exp(EPSILON) / (math.exp(EPSILON) + ANSWERS - 1)
        randomize = dp.m.make_randomized_response(list(range(ANSWERS)), prob=truth)
        return lambda value: randomize(int(value))
    one_bit = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    bits = dp.m.make_randomized_response_bitvec(*one_bit, f=2 / (1 + math.exp(EPSILON / 2)))
    return lambda value: bits((1 << int(value)).to_bytes(ANSWERS // 8, "little"))


PACKAGES = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy, "ldp-toolbox": ldp_toolbox, "opendp": opendp}


def written(report: Any) -> str:
    """Any report as hexadecimal digits: its bytes, or the text of what it is made of."""
    if isinstance(report, bytes | bytearray):
        return bytes(report).hex()
    if isinstance(report, list | tuple) or hasattr(report, "tolist"):
        listed = report.tolist() if hasattr(report, "tolist") else list(report)
        flat = json.loads(json.dumps(listed, default=lambda own: own.tolist() if hasattr(own, "tolist") else int(own)))
        places = flat if isinstance(flat, list) else [flat]
        if all(isinstance(one, int | float) and 0 <= one < 256 for one in places):
            return bytes(int(one) for one in places).hex()
        return json.dumps(flat).encode().hex()
    return int(report).to_bytes(4, "little", signed=True).hex()


def main() -> None:
    client = PACKAGES[sys.argv[1]](sys.argv[2])
    for line in sys.stdin:
        print("" if not line.strip() else written(client(line.strip())), flush=True)


if __name__ == "__main__":
    main()
