"""Checks that an audit follows the code that devices run: every way to a report, on equal bits and the system's bits.

Ways       the code of one report itself; `report`, `report_encoded` and `privatize`, which lead to it and which no kind
           may change (`protocols.protocol.sealed`); of two stages, a kept state and a report from it; whole columns,
           from answers and from answers that were read before; and reports with public coins, as a ledger draws them
Bits       once those of a simulation; once those of `SYSTEM`, the very object that a device draws from, which gives the
           bytes of the simulation during the check. This detects code that sends something else on a device
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from deniable.errors import DomainError
from deniable.protocols import Protocol
from deniable.protocols.protocol import unsealed
from deniable.protocols.structures import Stages
from deniable.randomness import SYSTEM, Bits, Simulation, Tied
from deniable.randomness.secure import _Stream

COMPARED, MOST_COMPARED, _BOXED = 256, 1 << 10, 16
"""Reports to compare each way; the most of them, if there are more answers; and reports by `privatize`."""
_SEED, _PUBLIC = 1729, 0x5EED
_STATE = "permanent()"


@contextmanager
def replayed(bits: Simulation) -> Iterator[None]:
    """For so long `SYSTEM` gives the bytes of a simulation, in this thread; afterwards it has a new key."""
    stream = _Stream()
    stream.buffer._produce = bits._buffer._produce
    SYSTEM._local.stream = stream
    try:
        yield
    finally:
        SYSTEM._give_up()


def disagreement(protocol: Protocol, answers: Sequence[Any]) -> str:
    """What a device sends otherwise than the code that an audit follows, in words; "" if nothing."""
    try:
        return _disagreement(protocol, answers)
    except DomainError as wrong:
        return f"an answer of its domain is refused: {wrong}"


def _disagreement(protocol: Protocol, answers: Sequence[Any]) -> str:
    for name in unsealed(protocol):
        return f"{name}() is not the one that every device calls: its kind has changed it"
    count = max(COMPARED, min(len(answers), MOST_COMPARED))
    some = [answers[place * max(len(answers), count) // count % len(answers)] for place in range(count)]
    both = [(answer, protocol.domain.encode_one(answer)) for answer in some]

    def each(way: Callable[[Any, Any, Bits | None], Any]) -> Callable[[Bits | None], list[bytes]]:
        return lambda bits: [bytes(way(answer, encoded, bits)) for answer, encoded in both]

    def boxed(bits: Bits | None) -> list[bytes]:
        return [protocol.privatize([answer], bits).to_bytes() for answer in some[:_BOXED]]

    def column(bits: Bits | None) -> list[bytes]:
        return [protocol.privatize(some, bits).to_bytes()]

    followed = each(lambda _, encoded, bits: protocol.draw(encoded, SYSTEM if bits is None else bits))
    ways: dict[str, tuple[Callable[[Bits | None], list[bytes]], Callable[[Bits | None], list[bytes]]]] = {
        "report()": (followed, each(lambda answer, _, bits: protocol.report(answer, bits))),
        "report_encoded()": (followed, each(lambda _, encoded, bits: protocol.report_encoded(encoded, bits))),
        "privatize()": (lambda bits: followed(bits)[:_BOXED], boxed),
        "privatize() of a column": (_encoded_column(protocol, some), column),
    }
    match protocol.law().structure:
        case Stages(device=staged) as stages:
            kept = each(lambda answer, _, bits: staged.report_from(staged.permanent(answer, bits), bits))
            ways["a report from a kept state"] = (followed, kept)
            states = each(lambda _, encoded, bits: stages.state(encoded, SYSTEM if bits is None else bits))
            ways[_STATE] = (states, each(lambda answer, _, bits: staged.permanent(answer, bits)))
    if protocol.law().public is not None:
        tied = each(lambda _, encoded, bits: protocol.report_encoded(encoded, Tied(bits or SYSTEM, _PUBLIC)))
        ways["a report with public coins"] = (tied, tied)
    for name, (expected, sent) in ways.items():
        told = expected(Simulation(_SEED))
        if sent(Simulation(_SEED)) != told:
            what = "a state" if name == _STATE else "one report"
            return f"{name} sends other bytes than the code that draws {what}"
        with replayed(Simulation(_SEED)):
            if sent(None) != told:
                return f"{name} sends other bytes from the system's bits than from equal bits of a simulation"
    return ""


def _encoded_column(protocol: Protocol, answers: Sequence[Any]) -> Callable[[Bits | None], list[bytes]]:
    def drawn(bits: Bits | None) -> list[bytes]:
        rows = protocol.draw_many(protocol.domain.encode(answers), SYSTEM if bits is None else bits)
        return [np.ascontiguousarray(rows).tobytes()]

    return drawn
