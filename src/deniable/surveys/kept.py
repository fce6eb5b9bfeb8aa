"""What a person's device keeps of its answers between epochs, and the report that it draws from that.

The single rule for repeated answers: the ledger of a device and a panel in files both report by `next_report`.

Memoize    the report of a value is drawn once and repeated; beyond the cap the first report is repeated
Two stages the state of a value is drawn once, and each report afresh from it; beyond the cap from the first state
Evolving   one state per person, replaced with each report
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deniable.protocols import Protocol
from deniable.randomness import Bits
from deniable.surveys.terms import Longitudinal


class Kept(NamedTuple):
    """One kept item: a report to repeat, or a state to draw further reports from."""

    place: int
    """Its number among those of the question; an item with the same number is replaced."""
    key: bytes
    """The answer that it belongs to."""
    drawn: bytes


def next_report(
    protocol: Protocol, rule: Longitudinal, known: Sequence[Kept], encoded: Any, epoch: int, bits: Bits | None = None
) -> tuple[bytes, Kept | None]:
    """The report of an answer, and what must be kept for later epochs, if that is new.

    Args:
        protocol: How the question is asked.
        rule: A rule that keeps something.
        known: What is kept for the question, in the order of the places.
        encoded: The answer, as `domain.encode_one` gives it.
        epoch: The number of the epoch; the first of the collection is 1.
        bits: The source of random bits, the system's by default.

    Raises:
        ReportError: Something in `known` was not drawn by this protocol.
    """
    law = protocol.law()
    if law.stream is not None:
        state = known[0].drawn if known else law.stream.begin(bits)
        state, report = law.stream.step_encoded(state, encoded, epoch, bits)
        return report, Kept(0, b"", state)
    if rule.is_two_stage and law.stages is not None:
        device = law.stages.device
        kept, key = device.kept_state(encoded, [(one.key, one.drawn) for one in known], rule.values, bits)
        report = device.report_from(kept, bits)
    else:
        report, key = _repeated(protocol, rule, known, encoded, bits)
        kept = report
    return report, None if key is None else Kept(len(known), key, kept)


def _repeated(
    protocol: Protocol, rule: Longitudinal, known: Sequence[Kept], encoded: Any, bits: Bits | None
) -> tuple[bytes, bytes | None]:
    """The report that was drawn for a value before; or one that is drawn now, with its key; at the cap, the first."""
    value = protocol.domain.answer_key(encoded)
    for kept in known:
        if kept.key == value:
            return kept.drawn, None
    if len(known) >= rule.values:
        return known[0].drawn, None
    return protocol.report_encoded(encoded, bits), value
