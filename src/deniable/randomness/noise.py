"""Exact draws of Bernoulli(e^-x) and of the discrete Laplace law, from uniform integers alone.

Bernoulli  for x in [0, 1]: the first K with U_K >= x / K; K is odd with probability e^-x
Laplace    z proportional to e^(-|z| s / t): U below t accepted with e^(-U / t), V failures of e^-1,
           z = +-floor((U + t V) / s), and "-0" drawn again
Source     Canonne, Kamath and Steinke 2020, algorithms 1 and 2
Order      one at a time: U, the coins of e^(-U / t), the coins of V, then the sign (`bernoulli(1/2)`, true is minus)
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deniable.exact import WORD, Dyadic

if TYPE_CHECKING:
    from deniable.randomness.source import Bits

HALF = Dyadic(WORD // 2)
_ONE = Fraction(1)

# Beyond this the products below would leave 63 bits; such scales are drawn one at a time.
_LARGEST_SCALE = 1 << 40


def bernoulli_exp(bits: Bits, x: Fraction) -> bool:
    while x > 1:
        if not bernoulli_exp(bits, _ONE):
            return False
        x -= 1
    trial = 1
    while bits.integers(x.denominator * trial) < x.numerator:
        trial += 1
    return trial % 2 == 1


def bernoulli_exp_array(bits: Bits, x: Fraction, size: int) -> NDArray[np.bool_]:
    if x.denominator > _LARGEST_SCALE:
        return np.array([bernoulli_exp(bits, x) for _ in range(size)], dtype=np.bool_)
    alive = np.arange(size)
    while x > 1:
        alive = alive[_coins(bits, np.ones(alive.size, dtype=np.int64), 1)]
        x -= 1
    out = np.zeros(size, dtype=np.bool_)
    out[alive] = _coins(bits, np.full(alive.size, x.numerator, dtype=np.int64), x.denominator)
    return out


def _coins(bits: Bits, tops: NDArray[np.int64], bottom: int) -> NDArray[np.bool_]:
    """Bernoulli(e^-(top / bottom)) for each top in 0 .. bottom."""
    odd = np.ones(tops.size, dtype=np.bool_)
    active = np.arange(tops.size)
    trial = 1
    while active.size:
        active = active[bits.integers(bottom * trial, active.size) < tops[active]]
        odd[active] ^= True
        trial += 1
    return odd


def discrete_laplace(bits: Bits, scale: Fraction) -> int:
    t, s = scale.numerator, scale.denominator
    while True:
        offset = bits.integers(t)
        if not bernoulli_exp(bits, Fraction(offset, t)):
            continue
        rounds = 0
        while bernoulli_exp(bits, _ONE):
            rounds += 1
        magnitude = (offset + t * rounds) // s
        minus = bits.bernoulli(HALF)
        if minus and magnitude == 0:
            continue
        return -magnitude if minus else magnitude


def discrete_laplace_array(bits: Bits, scale: Fraction, size: int) -> NDArray[np.int64]:
    t, s = scale.numerator, scale.denominator
    if max(t, s) > _LARGEST_SCALE:
        return np.array([discrete_laplace(bits, scale) for _ in range(size)], dtype=np.int64)
    out = np.empty(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        offsets = bits.integers(t, todo.size)
        accepted = _coins(bits, offsets, t)
        offsets = offsets[accepted]
        rounds = _rounds(bits, offsets.size)
        magnitude = (offsets + t * rounds) // s
        minus = bits.bernoulli(HALF, magnitude.size)
        good = ~(minus & (magnitude == 0))
        places = todo[accepted]
        out[places[good]] = np.where(minus, -magnitude, magnitude)[good]
        todo = np.concatenate([todo[~accepted], places[~good]])
    return out


def _rounds(bits: Bits, size: int) -> NDArray[np.int64]:
    """How often Bernoulli(e^-1) comes true before it fails."""
    rounds = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[_coins(bits, np.ones(active.size, dtype=np.int64), 1)]
        rounds[active] += 1
    return rounds
