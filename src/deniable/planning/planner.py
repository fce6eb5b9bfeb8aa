"""Which protocol for this domain, epsilon and number of people; or how many people, or which epsilon.

Rule       the smallest variance of the share of an answer that nobody gave, in the worst case over what the others
           gave; among the protocols within 5 percent of it, the fewest report bytes, then the least work on the server
Error      exact, from the realized probabilities of each protocol as it would be built; nothing of size d is built
Forms      where reports repeat, only protocols with few different reports may be used: `forms` leaves the others out
Width      of the interval of such a share from end to end: 2 z stderr
Solving    the smallest n, or the smallest epsilon to four digits, at which the protocol that the rule chooses reaches
           the width. Along epsilon the choice may change to a protocol with up to 5 percent more variance, so
           an epsilon smaller by about 2 percent may do with another protocol than the chosen one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.domains import Domain, Strings, as_domain
from deniable.errors import ChannelError, DomainError, NumberError
from deniable.planning.candidates import CANDIDATES, TEXT_CANDIDATES, Candidate
from deniable.planning.result import Option, Plan
from deniable.protocols import Protocol
from deniable.protocols.estimate import Floats, quantile

SAME = 1.05  # variances this close count as equal
SOME, FEW = 1.25, 4  # worth a word: up to a quarter more variance for a quarter of the bytes or less
MOST_PEOPLE = 10**10
MOST_COUNTERS = 1 << 32
_DIGITS = 4


def plan(
    domain: Any,
    epsilon: Any = None,
    n: int | None = None,
    width: float | None = None,
    level: float = 0.95,
    forms: int | None = None,
    people: int | None = None,
) -> Plan:
    """The protocols for a domain, compared; give any two of epsilon, n and width.

    `people` is another name for n, the one that the command and survey files use.

    `domain` may be a list of categories, a number of answers, or a domain. `width` is that of the interval of a share
    near zero at confidence `level`, from end to end. With `forms` only protocols with at most so many different reports
    are looked at.

    >>> plan(1024, epsilon=1, n=100_000).best
    OLH(domain=Integers(low=0, high=1023), epsilon=Fraction(1, 1), hash_bits=2)
    >>> plan(["yes", "no"], epsilon=1, width=0.01).n
    141470
    >>> plan(30, epsilon=1, n=1000).best.name, plan(30, epsilon=1, n=1000, forms=1024).best.name
    ('SubsetSelection', 'BLH')
    """
    if people is not None:
        if n is not None:
            raise NumberError("n and people are two names of one number: give one of them")
        n = people
    answers = as_domain(domain)
    quantile(level)  # refuses a level that is none
    if sum(given is not None for given in (epsilon, n, width)) != 2:
        raise NumberError("give two of epsilon, n (or people) and width: the third follows")
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise NumberError(f"the number of people is a positive whole number, not {n!r}")
    if width is None:
        return _plan(answers, exact.as_epsilon(epsilon), int(n or 0), level, "width", forms)
    if not 0 < width < math.inf:
        raise NumberError(f"the width of an interval is positive, not {width!r}")
    if n is None:
        crowd = _people(answers, exact.as_epsilon(epsilon), float(width), level, forms)
        return _plan(answers, exact.as_epsilon(epsilon), crowd, level, "n", forms)
    return _plan(answers, _level(answers, int(n), float(width), level, forms), int(n), level, "epsilon", forms)


def candidates(domain: Domain) -> Mapping[str, Candidate]:
    return TEXT_CANDIDATES if isinstance(domain, Strings) else CANDIDATES


def build(domain: Domain, epsilon: Any, forms: int | None = None) -> dict[str, Protocol]:
    """Every protocol that exists at this level; some need a larger epsilon for so many answers, or have more forms."""
    built: dict[str, Protocol] = {}
    for name, candidate in candidates(domain).items():
        try:
            protocol = candidate.build(domain, epsilon)
        except ChannelError:
            continue
        if protocol.tally_size <= MOST_COUNTERS:
            built[name] = protocol
    if not built:
        raise DomainError(
            f"no protocol can count {domain} at epsilon {exact.shown(exact.as_epsilon(epsilon))}: "
            "group the answers, or hash them as text with dn.Strings()"
        )
    if forms is None:
        return built
    few = {name: protocol for name, protocol in built.items() if _has_few(protocol, forms)}
    if not few:
        raise DomainError(f"no protocol counts {domain} with at most {forms:,} different reports: group the answers")
    return few


def _has_few(protocol: Protocol, forms: int) -> bool:
    # No protocol has fewer reports than answers, and with many answers the number itself would take long.
    listed = 0 if isinstance(protocol.domain, Strings) else protocol.domain.size
    return listed <= forms and protocol.report_forms <= forms


def choose(protocols: Mapping[str, Protocol], n: int) -> str:
    """The rule."""
    variances = {name: protocol.worst_variance(n) for name, protocol in protocols.items()}
    close = [name for name in protocols if variances[name] <= SAME * min(variances.values())]
    return min(close, key=lambda name: (protocols[name].report_bytes, _server(name, protocols[name]), variances[name]))


def _server(name: str, protocol: Protocol) -> float:
    return candidates(protocol.domain)[name].server(protocol)


def half_width(protocol: Protocol, n: int, level: float) -> float:
    """Of the interval of an answer that nobody gave, in the worst case."""
    return quantile(level) * math.sqrt(protocol.worst_variance(n)) / n


def _people(domain: Domain, epsilon: Fraction, width: float, level: float, forms: int | None) -> int:
    protocols = build(domain, epsilon, forms)

    def reached(n: int) -> bool:
        return 2 * half_width(protocols[choose(protocols, n)], n, level) <= width

    if not reached(MOST_PEOPLE):
        least = 2 * half_width(protocols[choose(protocols, MOST_PEOPLE)], MOST_PEOPLE, level)
        raise NumberError(
            f"at epsilon {exact.shown(epsilon)} no number of people gives intervals {width:.3g} wide: with 10^10, more "
            f"than there are, they are {least:.3g} wide; raise epsilon or accept wider ones"
        )
    low, high = 0, MOST_PEOPLE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _level(domain: Domain, n: int, width: float, level: float, forms: int | None) -> Fraction:
    def reached(epsilon: Fraction) -> bool:
        try:
            protocols = build(domain, epsilon, forms)
        except DomainError:
            return False
        return 2 * half_width(protocols[choose(protocols, n)], n, level) <= width

    low, high = exact.SMALLEST_EPSILON, exact.LARGEST_EPSILON
    if not reached(high):
        raise NumberError(
            f"no epsilon gives intervals {width:.3g} wide with {n:,} people: ask more people or accept wider ones"
        )
    if reached(low):
        return low
    while high > low * Fraction(10001, 10000):
        middle = _rounded(math.sqrt(low * high), 2 * _DIGITS)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return _first(reached, _rounded(float(low), _DIGITS))


def _first(reached: Callable[[Fraction], bool], epsilon: Fraction) -> Fraction:
    """The next number of four digits at which it is so; the choice may change in between."""
    while not reached(epsilon):
        epsilon = min(_rounded(float(epsilon) * (1 + 10.0**-_DIGITS), _DIGITS), exact.LARGEST_EPSILON)
    return epsilon


def _rounded(value: float, digits: int) -> Fraction:
    """Up to so many digits."""
    return Fraction(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def _plan(domain: Domain, epsilon: Fraction, n: int, level: float, solved: str, forms: int | None) -> Plan:
    protocols = build(domain, epsilon, forms)
    options = {name: _option(candidates(domain)[name], protocol, n, level) for name, protocol in protocols.items()}
    choice = options[choose(protocols, n)]
    table = tuple(sorted(options.values(), key=lambda option: (option.stderr, option is not choice)))
    among = "" if forms is None else f"Of the protocols with at most {forms:,} different reports, "
    return Plan(domain, epsilon, n, level, solved, table, choice, among + _reason(choice, table, epsilon))


def _option(candidate: Candidate, protocol: Protocol, n: int, level: float) -> Option:
    return Option(
        protocol=protocol,
        stderr=math.sqrt(protocol.worst_variance(n)) / n,
        half_width=half_width(protocol, n, level),
        visible=visible(protocol, n, level),
        report_bytes=protocol.report_bytes,
        device=candidate.device(protocol),
        server=candidate.server(protocol),
        counters=protocol.tally_size,
        leverage=candidate.leverage(protocol),
        attack=None if candidate.attack is None else candidate.attack(protocol),
    )


def epsilons_around(epsilon: float, points: int) -> Floats:
    """A range of levels for a picture: what people use, and the plan's own."""
    return np.geomspace(min(0.1, epsilon / 2), max(6.0, min(1.5 * epsilon, 64.0)), points)


def visible(protocol: Protocol, n: int, level: float) -> float | None:
    """The share that is as large as its own simultaneous half-width; None if even a share of one is not."""
    tests = 1 if isinstance(protocol.domain, Strings) else protocol.domain.size
    reach = quantile(level, tests)

    def clear(share: float) -> bool:
        return share * n > reach * math.sqrt(protocol.worst_variance(n, share))

    if not clear(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if clear(middle) else (middle, high)
    return high


def _reason(choice: Option, table: Sequence[Option], epsilon: Fraction) -> str:
    first = table[0]
    close = [option.name for option in table if option is not choice and option.variance <= SAME * first.variance]
    if choice is first:
        rivals = f"; {_listed(close)} within 5 %, with no fewer bytes a report" if close else ""
        said = f"{choice.name} has the smallest error{rivals}"
    else:
        more = choice.variance / first.variance - 1
        price = (
            f"{100 * more:.1f} % more variance than {first.name}, but"
            if more >= 5e-4
            else f"the error of {first.name}, and"
        )
        saved = "less work on the server"
        if choice.report_bytes < first.report_bytes:
            saved = f"{choice.report_bytes:,} bytes a report instead of {first.report_bytes:,}"
        said = f"{choice.name} has {price} {saved}"
    small = [option for option in table if FEW * option.report_bytes <= choice.report_bytes]
    if small and small[0].variance <= SOME * choice.variance:
        more = 100 * (small[0].variance / choice.variance - 1)
        said += f"; {small[0].name} would do with {small[0].report_bytes:,} for {more:.0f} % more variance"
    return said + (". An epsilon this large protects little." if epsilon > 8 else ".")


def _listed(names: Sequence[str]) -> str:
    return names[0] + " is" if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]} are"
