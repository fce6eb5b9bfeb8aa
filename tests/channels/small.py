"""Small channels for hypothesis, and their privacy by plain enumeration of fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
from hypothesis import strategies as st

from deniable.channels.channel import Channel

Rows = list[list[Fraction]]


@st.composite
def rows(draw: Any, inputs: int | None = None, outputs: int | None = None, positive: bool = False) -> Rows:
    """Rows over different denominators; zeros, columns of zeros and single rows included."""
    k = draw(st.integers(1, 4)) if inputs is None else inputs
    m = draw(st.integers(1, 4)) if outputs is None else outputs
    # Half of the channels have no zeros: with zeros nearly every ratio would be infinite.
    least = 1 if positive or draw(st.booleans()) else 0
    weights = st.lists(st.integers(least, 7), min_size=m, max_size=m).filter(any)
    table = [draw(weights) for _ in range(k)]
    return [[Fraction(w, sum(row)) for w in row] for row in table]


def channels(**shape: Any) -> st.SearchStrategy[Channel]:
    return rows(**shape).map(Channel)


def largest_ratio(law: Rows, pairs: Iterable[tuple[int, int]]) -> Fraction | float:
    """max P(y | i) / P(y | j) over both orders of each pair and all y that can happen; 0 / 0 does not count."""
    worst: Fraction | float = Fraction(1)
    for i, j in pairs:
        for a, b in [*zip(law[i], law[j], strict=True), *zip(law[j], law[i], strict=True)]:
            if a > 0:
                worst = max(worst, a / b if b else math.inf)
    return worst


def all_pairs(law: Rows) -> list[tuple[int, int]]:
    return [(i, j) for i in range(len(law)) for j in range(i)]


def smallest_delta(law: Rows, odds: Fraction) -> Fraction:
    """max over ordered pairs of sum over y of max(0, P(y | i) - odds P(y | j))."""
    return max(
        (
            sum((max(a - odds * b, Fraction(0)) for a, b in zip(law[i], law[j], strict=True)), Fraction(0))
            for i, j in permutations(range(len(law)), 2)
        ),
        default=Fraction(0),
    )


def exp_between(x: Fraction, bits: int = 400) -> tuple[Fraction, Fraction]:
    """e^x between two fractions, by mpmath and not by the package."""
    with mpmath.workprec(bits + 20):
        value = mpmath.exp(mpmath.mpf(x.numerator) / mpmath.mpf(x.denominator))
        middle = Fraction(int(mpmath.floor(value * mpmath.mpf(2) ** bits)), 2**bits)
    margin = Fraction(2 + int(value), 2**bits)
    return middle - margin, middle + margin


def log_between(ratio: Fraction, digits: int = 40) -> tuple[Fraction, Fraction]:
    """Decimals just below and just above ln(ratio)."""
    with mpmath.workdps(digits + 20):
        scaled = int(mpmath.floor(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator) * 10**digits))
    return Fraction(scaled, 10**digits), Fraction(scaled + 1, 10**digits)


def exactly(channel: Channel) -> Rows:
    return [[Fraction(int(entry), channel.denominator) for entry in row] for row in channel.numerators]


Metric = Callable[[Any, Any], Any]
