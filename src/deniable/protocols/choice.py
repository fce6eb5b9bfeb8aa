"""Which registered protocols can ask a question, and the rule that chooses one of them.

Rule       the smallest noise in the headline figure, in the worst case over what the others gave, or the smallest of
           another figure that is given; among the protocols within 5 percent of that variance (2 percent where somebody
           asks for the figure), the fewest report bytes, then the least work on the server
Settings   of several candidates of one kind the first that will do; of frequency oracles the one with the smallest
           figure, where one is given
Forms      where reports repeat, only protocols with few different reports may be used: `forms` leaves the others out
Two stages with `forever` only protocols that keep a state of that epsilon are built; epsilon is that of one report.
           Over `epochs` their reports may fit each other at most `forms` times better than those of two devices
Streams    with `changes` epsilon is that of all reports of `epochs` epochs, between any two streams of answers: the
           tree of differences, and fresh reports that share the epsilon, are compared by their noise in one epoch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from deniable import exact
from deniable.domains import Domain
from deniable.errors import ChannelError, DomainError
from deniable.protocols.base import Protocol, registered

SAME = 1.05
"""Variances this close count as equal."""

ASKED = 1.02
"""The same of the variance of a figure that somebody asks for."""

MOST_COUNTERS = 1 << 32


def build(
    domain: Domain,
    epsilon: Any,
    forms: float | None = None,
    n: int | None = None,
    forever: Any = None,
    read: str | None = None,
    quick: bool = False,
    epochs: int = 1,
    counters: int = MOST_COUNTERS,
    changes: int | None = None,
    rivals: bool = False,
    figure: Callable[[Protocol], float] | None = None,
) -> dict[str, Protocol]:
    """Every protocol that exists at this epsilon; some need a larger one for so many answers, or have more forms.

    `read` is what is to be estimated, where that is not what the domain is usually read for. `quick` leaves out what is
    slow to build. A tally has at most so many `counters`. `rivals` adds what is usually read for something else and
    answers this question, too. `figure` chooses among several settings of one frequency oracle: the smallest.
    """
    reads = domain.reads if read is None else read
    # Shares of an answer that is asked once are what frequency oracles are for: nothing else offers them.
    plain = reads == "shares" and forever is None and changes is None
    built: dict[str, Protocol] = {}
    for kind in registered("frequency" if plain else None).values():
        if isinstance(kind.reads, str) and kind.reads != reads and not (rivals and reads in kind.serves):
            continue  # it is read in other ways only
        if quick and kind.slow_to_build:
            continue
        if changes is not None:
            offered = kind.stream_candidates(domain, exact.as_epsilon(epsilon), epochs, changes, n)
        elif forever is not None:
            offered = kind.two_stage_candidates(domain, epsilon, forever, n)
        else:
            offered = kind.candidates(domain, epsilon, n)
        with suppress(ChannelError):
            for protocol in offered:
                fits = protocol.reads in (reads, "series") or (rivals and protocol.figures(reads) is not None)
                if not fits or protocol.tally_size > counters:
                    continue
                known = built.get(protocol.name)
                if known is None or not plain or figure is None or figure(protocol) < figure(known):
                    built[protocol.name] = protocol
                if _has_few(protocol, forms, epochs) and not (plain and figure):
                    break  # of several candidates of one kind the first that will do
    if not built and reads != domain.reads:
        raise DomainError(f"no protocol can read the {reads} of {domain}")
    if not built and forever is not None:
        raise DomainError(f"no protocol in two stages can ask for {domain}: list the answers")
    if not built and counters < MOST_COUNTERS:
        raise DomainError(f"no protocol counts {domain} in {8 * counters:,} bytes: allow more memory")
    if not built:
        raise DomainError(
            f"no protocol can ask for {domain} at epsilon {exact.shown(exact.as_epsilon(epsilon))}: "
            "group the answers, or hash them as text with dn.Strings()"
        )
    if forms is None:
        return built
    few = {name: protocol for name, protocol in built.items() if _has_few(protocol, forms, epochs)}
    if not few:
        if forever is not None:
            raise DomainError(
                f"the reports of a device could be recognized as its own over {epochs:,} epochs, whatever the protocol "
                f"in two stages that counts {domain}: group the answers, or ask for fewer epochs"
            )
        raise DomainError(f"no protocol counts {domain} with at most {forms:,} different reports: group the answers")
    return few


def _has_few(protocol: Protocol, forms: float | None, epochs: int) -> bool:
    return forms is None or protocol.linking(epochs) <= forms


def choose(
    protocols: Mapping[str, Protocol],
    n: int,
    reads: str | None = None,
    figure: Callable[[Protocol], float] | None = None,
) -> str:
    """The rule; among those that are read as `reads`, where that is given and there are any.

    With `figure` by the standard error that was asked for instead of the noise.
    """
    protocols = {name: one for name, one in protocols.items() if one.reads == reads} or protocols
    variances = {name: (one.noise(n) if figure is None else figure(one)) ** 2 for name, one in protocols.items()}
    same = SAME if figure is None else ASKED
    close = [name for name in protocols if variances[name] <= same * min(variances.values())]

    def order(name: str) -> tuple[int, float, float, str]:
        # Some protocols are the same law at some sizes: the last digits of their variances decide nothing.
        protocol = protocols[name]
        return protocol.report_bytes, protocol.cost.operations, digits(variances[name]), name

    return min(close, key=order)


def digits(number: float) -> float:
    """A number to so many digits that rounding does not tell equal ones apart."""
    return float(f"{number:.9e}")
