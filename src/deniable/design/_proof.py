"""Checking a claim about an extremal mechanism with long decimals: no solver, no trust in floats.

Arithmetic Python's `decimal` rounds every operation, ln, exp and sqrt included, correctly to so many digits; all
           quantities stay below E^2 (E = e^epsilon), so with 60 + 2 epsilon digits all rounding errors of a check
           together are below k 10^-50 times the sum of |lambda| (at least 1): taken off the value, added to the bound
Value      D_f of the exact marginals
Bound      sum of lambda, plus what the worst column is above it. With w_x = t P0(x) + h P1(x) - lambda_x, symbol x is
           on for z in [low_x, high_x], floats found by bisection. They need not be roots: w_x is concave in t and
           peaks at z = ln(P0/P1), inside, so on the wrong side |w_x| is at most its value at an end, and the sum of
           these values times E - 1 is added to the largest excess of the patterns that the intervals define
Any column s with excess B over lambda is below lambda + B / (k + E - 1), except the flat one, whose utility is 0
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels._vectors import Floats
from deniable.design._curves import Curve, curve_of
from deniable.design._pair import Pair
from deniable.design._sweep import Switches, sweep, switches
from deniable.errors import InternalError

_ONE = Decimal(1)
# What floats may lose in the check of a user's own divergence, relative to the largest terms.
_NUMERIC = 1e-13


def context(epsilon: Fraction) -> Context:
    return Context(prec=60 + math.ceil(2 * epsilon), Emin=-(10**6), Emax=10**6)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def float_below(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_above(value: Decimal) -> float:
    return -float_below(-value)


# -- what f is, in decimals ------------------------------------------------------------------------------


def _column(name: str, a: Decimal, b: Decimal) -> Decimal:
    """b f(a/b) with f(1) = f'(1) = 0."""
    if name == "kl":
        return a * (a / b).ln() - (a - b)
    if name == "reverse-kl":
        return a - b - b * (a / b).ln()
    if name == "tv":
        return abs(a - b) / 2
    if name == "chi2":
        return (a - b) ** 2 / b
    if name == "hellinger2":
        return (a.sqrt() - b.sqrt()) ** 2 / 2
    if name == "js":
        middle = (a + b) / 2
        return (a * (a / middle).ln() + b * (b / middle).ln()) / 2
    raise InternalError(f"no decimal form of {name!r}")


def _tangent(name: str, z: Decimal) -> tuple[Decimal, Decimal]:
    """t and h of the tangent at z."""
    if name == "tv":
        return z, -z
    if name == "hellinger2":
        root = (z / 2).exp()
        return (1 - 1 / root) / 2, (1 - root) / 2
    u = z.exp()
    if name == "kl":
        return z, 1 - u
    if name == "reverse-kl":
        return 1 - 1 / u, -z
    if name == "chi2":
        return 2 * (u - 1), 1 - u * u
    if name == "js":
        half = ((1 + u) / 2).ln()
        return (z - half) / 2, -half / 2
    raise InternalError(f"no decimal form of {name!r}")


# -- value and bound -------------------------------------------------------------------------------------


def proven_value(name: str, m0: list[Fraction], m1: list[Fraction], epsilon: Fraction) -> tuple[float, float]:
    """Floats just below and just above the divergence of two exact laws with positive entries."""
    with localcontext(context(epsilon)) as digits:
        total = sum((_column(name, decimal(a), decimal(b)) for a, b in zip(m0, m1, strict=True)), Decimal(0))
        margin = len(m0) * Decimal(10) ** (10 - digits.prec)
        low, high = max(total - margin, Decimal(0)), total + margin
        return float_below(low), float_above(high)


def proven_bound(name: str, pair: Pair, multipliers: Floats, epsilon: Fraction) -> float:
    """A float that no epsilon-LDP mechanism's divergence exceeds, whatever the multipliers are."""
    if pair.groups == 1:
        return 0.0  # P0 = P1, and so are the laws of reports
    odds = float(exact.exp_ceil(epsilon) - 1)
    lower, gaps = _floats(pair)
    intervals = switches(lower, gaps, multipliers, odds, curve_of(name))
    with localcontext(context(epsilon)) as digits:
        above = Context(prec=digits.prec, rounding=ROUND_CEILING)
        ceiling = exact.exp_ceil(epsilon, 4 * digits.prec)
        rise = above.subtract(above.divide(Decimal(ceiling.numerator), Decimal(ceiling.denominator)), _ONE)
        law0, law1 = (
            np.array([Decimal(w) / total for w in weights], dtype=object)
            for weights, total in zip((pair.weights0, pair.weights1), map(Decimal, pair.totals), strict=True)
        )
        price = np.array([Decimal(repr(value)) for value in multipliers.tolist()], dtype=object)
        intervals, slack = _residuals(name, law0, law1, price, intervals, rise)
        excess = _largest_excess(name, law0, law1, price, intervals, rise)
        # Multipliers from a file may be huge, and cancel: what their sums lose grows with them.
        margin = pair.size * Decimal(10) ** -50 * max(_ONE, sum(map(abs, price.tolist()), Decimal(0)))
        over = max(excess + rise * slack + margin, Decimal(0))
        total = sum(price.tolist(), Decimal(0)) + over * pair.size / (pair.size + rise)
        return float_above(max(total, Decimal(0)) + margin)


def _floats(pair: Pair) -> tuple[Floats, Floats]:
    n0, n1 = pair.totals
    return (
        np.array([b / n1 for b in pair.weights1]),
        np.array([(a * n1 - b * n0) / (n0 * n1) for a, b in zip(pair.weights0, pair.weights1, strict=True)]),
    )


def _residuals(name: str, law0: Any, law1: Any, price: Any, given: Switches, rise: Decimal) -> tuple[Switches, Decimal]:
    """Intervals that certainly hold the peaks, and the sum of what is wrong at their ends."""
    low, high = given.low.copy(), given.high.copy()
    end = 0.5 if name == "tv" else float_above((1 + rise).ln() * (1 + Decimal(10) ** -20))
    slack = Decimal(0)
    for x in range(low.size):
        p, q, cost = law0[x], law1[x], price[x]
        peak = _peak(name, p, q, end)
        if not given.on[x]:
            slack += max(_top(name, p, q, peak, end) - cost, Decimal(0))
            continue
        low[x], high[x] = min(low[x], math.nextafter(peak, -9e9)), max(high[x], math.nextafter(peak, 9e9))
        wrong = Decimal(0)
        for z, edge in ((low[x], -end), (high[x], end)):
            t, h = _tangent(name, Decimal(float(z)))
            w = p * t + q * h - cost
            # Beyond an end of the span there is nothing, so only being on where w < 0 can be wrong there.
            beyond = z <= edge if edge < 0 else z >= edge
            wrong = max(wrong, -w, Decimal(0) if beyond else w)
        slack += wrong
    return Switches(given.on, low, high), slack


def _peak(name: str, p: Decimal, q: Decimal, end: float) -> float:
    if name == "tv":
        return math.copysign(end, p - q)
    if p == 0 or q == 0:
        return -end if p == 0 and q != 0 else end
    return min(max(float((p / q).ln()), -end), end)


def _top(name: str, p: Decimal, q: Decimal, peak: float, end: float) -> Decimal:
    """The largest t P0 + h P1 on the span: f itself if the peak is inside, else the value at the end."""
    if name != "tv" and p > 0 and q > 0 and abs((p / q).ln()) <= Decimal(end):
        return _column(name, p, q)
    t, h = _tangent(name, Decimal(peak))
    return p * t + q * h


def _largest_excess(name: str, law0: Any, law1: Any, price: Any, intervals: Switches, rise: Decimal) -> Decimal:
    symbols, signs = intervals.events()
    total = sum(price.tolist(), Decimal(0))
    a = b = _ONE
    cost, worst = total, -total
    for x, sign in zip(symbols.tolist(), signs.tolist(), strict=True):
        step = rise * sign
        a, b, cost = a + step * law0[x], b + step * law1[x], cost + step * price[x]
        worst = max(worst, _column(name, a, b) - cost)
    return worst


def numeric_bound(curve: Curve, pair: Pair, multipliers: Floats, epsilon: Fraction) -> float:
    """The same in floats, for a divergence whose functions are a user's: checked, not proved."""
    odds = float(exact.exp_ceil(epsilon) - 1)
    lower, gaps = _floats(pair)
    worst = sweep(lower, gaps, multipliers, odds, curve)
    scale = float(np.abs(multipliers).sum()) * (1 + odds) + float(worst.utility.max(initial=0.0))
    over = max(worst.largest + _NUMERIC * scale, 0.0)
    return math.nextafter(math.fsum(multipliers) + over * pair.size / (pair.size + odds), math.inf)
