"""Kernel: faster forms of drawing, checking and counting reports, which must equal the plain ones.

Every field has a plain form, which `Protocol.kernel` gives. A kind changes some with `super().kernel().but(...)`. The
conformance suite compares each with the plain form. A class that overrides a hook loses the inherited forms of it
(`FORMS_OF`), because they would still do what the base class does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.record import Record, remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes
from deniable.protocols.tally import Adder, Counts, Halves, PlainAdder
from deniable.randomness import Bits

if TYPE_CHECKING:
    from deniable.protocols.protocol import Protocol


class Kernel(Record):
    """Faster forms. Reports of at most eight bytes are also little-endian numbers: numpy handles those much faster.

    Args:
        **facts: The fields of the record, by name; those that are left out keep their defaults.
    """

    draw_numbers: Callable[[Any, Bits], NDArray[Any]]
    """(answers, bits) -> `draw_many` as numbers, in any unsigned type that holds them."""
    count_numbers: Callable[[NDArray[Any]], Counts]
    """(numbers) -> `count`."""
    valid_numbers: Callable[[NDArray[Any]], NDArray[np.bool_]]
    """(numbers) -> `valid`, for numbers that fit in the bytes of a report."""
    halves: Halves | None
    """How reports are counted by their halves, so that several groups are counted together (`tally.py`)."""
    adder: Callable[[], Adder]
    """What counts many batches, if it is cheaper to finish the counters once at the end."""
    add: Callable[[Any, Bytes], None] | None
    """(adder, reports) -> adds them to the adder, or raises ReportError and adds none if one is malformed. None: they
    are checked first and then added."""
    pieces: Callable[[Bytes], Iterator[tuple[int, Counts]]]
    """(reports) -> the counters in pieces: where each begins, and its counters. Those in no piece are zero. Raises
    ReportError if a report is malformed."""
    simulate: Callable[[Counts, int, np.random.Generator], Counts] | None
    """(people, runs, generator) -> tallies drawn from their joint law without drawing reports, one per row. `people` is
    the number of people who hold each answer. None if that is not possible."""

    defaults: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("draw_numbers", "count_numbers", "valid_numbers", "halves", "adder", "add", "pieces", "simulate")
    )
    lazy: ClassVar[frozenset[str]] = frozenset(("halves",))


def plain(protocol: Protocol) -> Kernel:
    """The plain forms."""

    def pieces(reports: Bytes) -> Iterator[tuple[int, Counts]]:
        protocol._check_valid(reports)
        yield 0, protocol.count(reports)

    return Kernel(
        draw_numbers=lambda answers, bits: from_bytes(protocol.draw_many(answers, bits)),
        count_numbers=lambda numbers: protocol.count(to_bytes(numbers, protocol.report_bytes)),
        valid_numbers=lambda numbers: protocol.valid(to_bytes(numbers, protocol.report_bytes)),
        adder=lambda: PlainAdder(protocol),
        pieces=pieces,
    )


FORMS_OF: Mapping[str, tuple[str, ...]] = {
    "draw": ("simulate",),
    "draw_many": ("draw_numbers", "simulate"),
    "count": ("count_numbers", "halves", "adder", "add", "pieces", "simulate"),
    "valid": ("valid_numbers", "halves", "add", "pieces"),
}
"""The faster forms of each hook."""


def without_stale_forms(kind: type[Protocol]) -> Any:
    """The `kernel` of a class that overrides hooks and not the kernel; None if it overrides none of them."""
    stale = {field for hook, fields in FORMS_OF.items() if hook in vars(kind) for field in fields}
    if not stale or "kernel" in vars(kind):
        return None

    def kernel(self: Any) -> Kernel:
        forms = plain(self)
        return super(kind, self).kernel().but(**{field: getattr(forms, field) for field in stale})  # type: ignore[no-any-return]

    kernel.__qualname__ = f"{kind.__qualname__}.kernel"
    return remembered(kernel)
