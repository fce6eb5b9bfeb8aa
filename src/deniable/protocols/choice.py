"""Which registered protocols can ask a question, and the rule that chooses one of them.

Rule       the smallest noise in the headline figure, in the worst case over what the others gave, or the smallest of
           another figure that is given; among the protocols within 5 percent of that variance (2 percent where somebody
           asks for the figure), the fewest report bytes; then the least work on the server, if all reports together
           take minutes; then the smallest figure
Settings   the first usable one of several candidates of a kind; for frequency oracles the one with the smallest figure,
           if a figure is given
Forms      if reports repeat, only protocols with few different reports may be used: `forms` leaves the others out
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
from deniable.protocols.protocol import Protocol, registered
from deniable.protocols.traits import Ask, offered
from deniable.protocols.worth import MUCH_WORK

SAME = 1.05
"""Variances this close count as equal."""

ASKED = 1.02
"""The same of the variance of a figure that somebody asks for."""

MOST_COUNTERS = 1 << 32

SERIES = "series"
"""What a protocol for answers that change is read for, whatever the figure."""


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
    """Every protocol that exists at this epsilon; some need a larger epsilon for this many answers, or more forms.

    `read` is what to estimate, if it is not the usual figure of the domain. `quick` leaves out protocols that are slow
    to build. `counters` is the largest size of a tally. `rivals` adds protocols for another figure that answer this
    question, too. `figure` chooses among several settings of one frequency oracle: the smallest wins.
    """
    reads = domain.reads if read is None else read
    # Shares of an answer that is asked once are what frequency oracles are for: nothing else offers them.
    plain = reads == "shares" and forever is None and changes is None
    ask = Ask(domain, epsilon, n, forever) if changes is None else Ask(domain, epsilon, n, None, epochs, changes)
    built: dict[str, Protocol] = {}
    for kind in registered("frequency" if plain else None).values():
        traits = kind.traits
        # Some oracles add up shares of single numbers to answer a question about ranges.
        rival = rivals and (reads in traits.serves or "shares" in traits.reads)
        if not rival and not {reads, SERIES} & set(traits.reads):
            continue  # it is read in other ways only
        if quick and traits.slow:
            continue
        with suppress(ChannelError):
            for protocol in offered(kind, ask):
                fits = protocol.worth().read in (reads, SERIES) or (rivals and protocol.worth(1, reads).answers)
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
    return forms is None or protocol.law().kept.linking(epochs) <= forms


def choose(
    protocols: Mapping[str, Protocol],
    n: int,
    reads: str | None = None,
    figure: Callable[[Protocol], float] | None = None,
) -> str:
    """The rule; among those that are read as `reads`, where that is given and there are any.

    With `figure` by the standard error that was asked for instead of the noise.
    """
    protocols = {name: one for name, one in protocols.items() if one.worth().read == reads} or protocols
    variances = {name: (one.worth(n).noise if figure is None else figure(one)) ** 2 for name, one in protocols.items()}
    same = SAME if figure is None else ASKED
    close = [name for name in protocols if variances[name] <= same * min(variances.values())]

    def order(name: str) -> tuple[int, float, float, str]:
        # Some protocols are the same law at some sizes: the last digits of their variances decide nothing.
        protocol = protocols[name]
        work = n * protocol.worth().cost.operations
        return protocol.report_bytes, work if work > MUCH_WORK else 0.0, digits(variances[name]), name

    return min(close, key=order)


def digits(number: float) -> float:
    """A number rounded to ten digits, so that rounding errors do not separate equal numbers."""
    return float(f"{number:.9e}")
