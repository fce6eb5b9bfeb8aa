"""Every mechanism, with small parameters: register it here and it inherits all checks.

`Mechanism` is for a finite channel and the code that samples from it, `Sampler` for a law without end, whose
outcomes are put into cells. Both are given as functions of epsilon, so that the statistical check can show
that it refuses the same code at a slightly different level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import channels as ch
from deniable.channels import Channel
from deniable.exact import Dyadic
from deniable.randomness import Bits

Indices = NDArray[Any]


@dataclass(frozen=True)
class Mechanism:
    """A way to build a channel at a level, and the code that draws from it (by default the channel's own)."""

    name: str
    build: Callable[[Fraction], Any]
    epsilon: Fraction = Fraction(1)
    adjacency: Any = "all"
    tight: bool = True
    channel: Callable[[Any], Channel] = lambda built: built
    one: Callable[[Any, int, Bits], int] = lambda built, x, bits: built.sample_index(x, bits)
    many: Callable[[Any, Indices, Bits], Indices] = lambda built, xs, bits: built.sample_indices(xs, bits)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sampler:
    """A law on cells at a level, and the code that draws from it."""

    name: str
    law: Callable[[Fraction], NDArray[np.float64]]
    draw: Callable[[Fraction, int, Bits], Indices]
    epsilon: Fraction = Fraction(1)

    def __str__(self) -> str:
        return self.name


def _coin(epsilon: Fraction) -> Channel:
    """The coin protocol with the bias that gives a level: truth = (e - 1) / (e + 1)."""
    return ch.coin_response(truth=Dyadic.floor_of(lambda e: (e - 1) / (e + 1), epsilon).value)


def _counting(epsilon: Fraction) -> Channel:
    """A counting query on databases of three bits, through the geometric mechanism."""
    return ch.Query.on_records(3, [0, 1], sum).oblivious(ch.truncated_geometric(3, epsilon))


MECHANISMS = [
    Mechanism("coin", _coin),
    Mechanism("warner", ch.warner),
    Mechanism("randomized response, 3 values", lambda e: ch.randomized_response(3, e)),
    Mechanism("randomized response, 16 values", lambda e: ch.randomized_response(16, e)),
    Mechanism(
        "randomized response, 16 values, without its matrix",
        lambda e: ch.RandomizedResponse.at(16, e),
        channel=lambda law: law.channel(),
        one=lambda law, x, bits: int(law.sample_indices(np.array([x], dtype=np.uint8), bits)[0]),
        many=lambda law, xs, bits: law.sample_indices(xs, bits).astype(np.int64),
    ),
    Mechanism("a record of two attributes, split", lambda e: ch.product_response([2, 3], e)),
    Mechanism("a record of two attributes, whole", lambda e: ch.product_response([2, 3], e, split=False)),
    Mechanism("binary", lambda e: ch.binary([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], e)),
    Mechanism("truncated geometric", lambda e: ch.truncated_geometric(6, e), adjacency="line"),
    Mechanism(
        "truncated geometric, sensitivity 2",
        lambda e: ch.truncated_geometric(6, e, sensitivity=2),
        adjacency=ch.line(2),
    ),
    Mechanism("clamped noise", lambda e: ch.two_sided_geometric(e).clamp(-2, 2), adjacency="line"),
    Mechanism("counting query", _counting, adjacency="hamming"),
    Mechanism("subset selection", lambda e: ch.subset_selection(5, e)),
    Mechanism(
        "exponential",
        lambda e: ch.exponential(lambda x, y: -abs(x - y), e, range(4), range(4), adjacency="line"),
        adjacency="line",
        tight=False,
    ),
    Mechanism("repaired", lambda e: Channel.from_floats(np.eye(3) + 1e-17, epsilon=e)),
]


def _laplace_cells(rate: float, reach: int) -> NDArray[np.float64]:
    a = math.exp(-rate)
    inner = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    tail = a ** (reach + 1) / (1 + a)
    return np.concatenate([[tail], inner, [tail]])


def _into_cells(values: Indices, reach: int) -> Indices:
    return np.clip(values, -reach - 1, reach + 1) + reach + 1


def _draw_grid(epsilon: Fraction, n: int, bits: Bits) -> Indices:
    noisy = ch.GridLaplace(epsilon, sensitivity="0.1", grid="0.05").sample(np.full(n, 50.02), bits)
    return _into_cells(np.rint((noisy - 50) / 0.05).astype(np.int64), 20)


def _lie(epsilon: Fraction) -> Dyadic:
    return Dyadic.ceil_of(lambda e: 1 / (e + 1), epsilon)


def _byte_law(bit: Dyadic) -> NDArray[np.float64]:
    ones = np.array([byte.bit_count() for byte in range(256)])
    return float(bit) ** ones * (1 - float(bit)) ** (8 - ones)


SAMPLERS = [
    Sampler(
        "discrete Laplace",
        lambda e: _laplace_cells(float(e), 8),
        lambda e, n, bits: _into_cells(ch.DiscreteLaplace(e).sample(np.zeros(n, dtype=np.int64), bits), 8),
    ),
    Sampler(
        "discrete Laplace, sensitivity 3",
        lambda e: _laplace_cells(float(e) / 3, 20),
        lambda e, n, bits: _into_cells(ch.DiscreteLaplace(e, 3).sample(np.zeros(n, dtype=np.int64), bits), 20),
    ),
    Sampler("packed bits", lambda e: _byte_law(_lie(e)), lambda e, n, bits: bits.packed(_lie(e), 8, n)[:, 0]),
    Sampler(
        "Bernoulli",
        lambda e: np.array([1 - float(_lie(e)), float(_lie(e))]),
        lambda e, n, bits: bits.bernoulli(_lie(e), n).astype(np.int64),
    ),
    Sampler(
        "Bernoulli(exp)",
        lambda e: np.array([1 - math.exp(-e), math.exp(-e)]),
        lambda e, n, bits: bits.bernoulli_exp(e, n).astype(np.int64),
    ),
    Sampler(
        "report noisy max",
        lambda e: ch.noisy_max_law([2, 0, 1], e),
        lambda e, n, bits: ch.report_noisy_max([2, 0, 1], e, bits=bits, size=n),
    ),
    Sampler("Laplace on a grid", lambda e: _laplace_cells(float(e) / 2, 20), _draw_grid),
]
