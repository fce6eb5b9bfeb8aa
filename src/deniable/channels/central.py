"""What a trusted curator could do: the rivals that local privacy is measured against.

Counting   one person changes a count by at most 1, so the geometric mechanism gives it with constant error
Noisy max  noise on every count, the largest wins; only its name is published
Source     Dwork and Roth 2014, chapter 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels._vectors import Floats
from deniable.channels.noise import DiscreteLaplace
from deniable.errors import ChannelError, LabelError, NumberError, ShapeError
from deniable.randomness import Bits, source_of

_LARGEST = 1 << 62
_MOST_CELLS = 1 << 24
_BLOCK_CELLS = 1 << 20


def noisy_count(count: Any, epsilon: Any, bits: Bits | None = None) -> Any:
    """A counting query answered by a trusted curator: the count plus two-sided geometric noise."""
    return DiscreteLaplace(epsilon).sample(count, bits)


def report_noisy_max(
    counts: ArrayLike,
    epsilon: Any,
    neighbours: str = "substitute",
    bits: Bits | None = None,
    size: int | None = None,
) -> Any:
    """The position of the largest count after noise; `size` gives that many independent runs.

    Neighbouring databases differ in one person: `substitute` changes the answer (one count falls, another
    rises: noise of scale 2 / epsilon), `add-remove` takes the person away (all counts move the same way:
    scale 1 / epsilon). Ties go to the first.
    """
    array = _counts(counts)
    scale = _stretch(neighbours) / exact.as_epsilon(epsilon)
    runs = 1 if size is None else size
    noise = source_of(bits).discrete_laplace(scale, array.size * runs).reshape(runs, array.size)
    winners = np.argmax(array + noise, axis=1)
    return int(winners[0]) if size is None else winners


def _counts(counts: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(counts)
    if array.ndim != 1 or array.size < 1 or not np.issubdtype(array.dtype, np.integer):
        raise ShapeError("noisy max needs a flat list of integer counts")
    if int(array.max()) >= _LARGEST or int(array.min()) <= -_LARGEST:
        raise NumberError("a count is 2^62 or more from zero: with noise it would not fit in a 64-bit integer")
    return array.astype(np.int64)


def _at_most(gaps: NDArray[np.int64], rate: float) -> Floats:
    """P(noise <= gap), accurate in the lower tail."""
    tail: Floats = np.exp(-rate * np.where(gaps < 0, -gaps, gaps + 1)) / (1 + np.exp(-rate))
    return np.where(gaps < 0, tail, 1 - tail)


def _stretch(neighbours: str) -> int:
    if neighbours not in ("substitute", "add-remove"):
        raise LabelError("neighbours are 'substitute' or 'add-remove'")
    return 2 if neighbours == "substitute" else 1


def noisy_max_law(counts: Sequence[int], epsilon: Any, neighbours: str = "substitute") -> np.ndarray[Any, Any]:
    """P(each position wins), as floats: a sum over the winner's noisy count."""
    array = _counts(counts)
    rate = float(exact.as_epsilon(epsilon)) / _stretch(neighbours)
    reach = int(np.ptp(array)) + int(np.ceil(45 / rate))
    if reach * array.size > _MOST_CELLS:
        raise ChannelError("the sum over noisy counts is too long: raise epsilon, or simulate report_noisy_max")
    law = np.zeros(array.size)
    values = np.arange(array.min() - reach, array.max() + reach + 1)
    for start in range(0, values.size, max(1, _BLOCK_CELLS // array.size)):
        law += _wins(array, values[start : start + max(1, _BLOCK_CELLS // array.size)], rate)
    return law


def _wins(counts: NDArray[np.int64], values: NDArray[np.int64], rate: float) -> Floats:
    """P(each position wins with one of these noisy counts): strictly above those before it, not below those after."""
    gaps = values - counts[:, None]
    point = np.tanh(rate / 2) * np.exp(-rate * np.abs(gaps))
    none = np.ones((1, values.size))
    before = np.cumprod(np.concatenate([none, _at_most(gaps[:-1] - 1, rate)]), axis=0)
    after = np.cumprod(np.concatenate([none, _at_most(gaps[:0:-1], rate)]), axis=0)[::-1]
    won: Floats = (point * before * after).sum(axis=1)
    return won
