"""Checks that every mechanism, protocol and campaign must pass, those of this package and yours.

A protocol is checked on the small instances that its `examples()` gives: the law of its bytes is enumerated and
compared with what it promises, batches are drawn and counted, tallies are added, specs are loaded.
`deniable conformance module:Class` runs them from the command line.
"""

from __future__ import annotations

from collections.abc import Iterator

from deniable.conformance.campaigns import campaign_duties
from deniable.conformance.channels import channel_duties
from deniable.conformance.checks import ConformanceError, Duty, Finding, run
from deniable.conformance.protocols import enumerated, examples, protocol_duties, registered_examples
from deniable.protocols import Protocol
from deniable.surveys import Campaign

__all__ = [
    "ConformanceError",
    "Duty",
    "Finding",
    "check",
    "duties",
    "enumerated",
    "examples",
    "run",
]


def duties(kind: type[Protocol] | type[Campaign] | None = None) -> Iterator[Duty]:
    """Every check of a kind of protocol or campaign; without one, of everything, channels included.

    Args:
        kind: A class with `examples()`; everything if None.

    Yields:
        The checks.

    Raises:
        SpecError: The kind gives no examples.
    """
    if kind is not None and issubclass(kind, Campaign):
        yield from campaign_duties(kind)
        return
    if kind is not None:
        yield from protocol_duties(examples(kind))
        return
    yield from protocol_duties(registered_examples())
    yield from channel_duties()
    yield from campaign_duties()


def check(kind: type[Protocol] | type[Campaign]) -> list[Finding]:
    """What every check finds about the examples of a kind of protocol or campaign.

    Args:
        kind: A class with `examples()`.

    Returns:
        One finding per check and example.

    Raises:
        SpecError: The kind gives no examples.

    >>> from deniable.protocols import GRR
    >>> {finding.status for finding in check(GRR)}
    {'passed'}
    """
    return list(run(duties(kind)))
