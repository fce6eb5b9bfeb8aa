"""What a trusted curator could do: the rivals that local privacy is measured against.

Counting   one person changes a count by at most 1, so the geometric mechanism gives it with constant error
Noisy max  noise on every count, the largest wins; only its name is published
Source     Dwork and Roth 2014, chapter 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels.noise import DiscreteLaplace
from deniable.errors import LabelError, ShapeError
from deniable.randomness import SYSTEM, Bits


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
    array = np.asarray(counts)
    if array.ndim != 1 or array.size < 1 or not np.issubdtype(array.dtype, np.integer):
        raise ShapeError("noisy max needs a flat list of integer counts")
    scale = _stretch(neighbours) / exact.as_epsilon(epsilon)
    runs = 1 if size is None else size
    noise = (bits or SYSTEM).discrete_laplace(scale, array.size * runs).reshape(runs, array.size)
    winners = np.argmax(array + noise, axis=1)
    return int(winners[0]) if size is None else winners


def _stretch(neighbours: str) -> int:
    if neighbours not in ("substitute", "add-remove"):
        raise LabelError("neighbours are 'substitute' or 'add-remove'")
    return 2 if neighbours == "substitute" else 1


def noisy_max_law(counts: Sequence[int], epsilon: Any, neighbours: str = "substitute") -> np.ndarray[Any, Any]:
    """P(each position wins), as floats: a sum over the winner's noisy count."""
    array = np.asarray(counts, dtype=np.int64)
    rate = float(exact.as_epsilon(epsilon)) / _stretch(neighbours)
    reach = int(np.ptp(array)) + int(np.ceil(45 / rate))
    values = np.arange(array.min() - reach, array.max() + reach + 1)
    gaps = values[None, :] - array[:, None]
    point = np.tanh(rate / 2) * np.exp(-rate * np.abs(gaps))
    tail = np.exp(-rate * np.abs(gaps)) / (1 + np.exp(-rate))
    below = np.where(gaps < 0, tail, 1 - tail * np.exp(-rate))  # P(noisy count <= value)
    strictly = below - point
    wins = [point[i] * np.prod(strictly[:i], axis=0) * np.prod(below[i + 1 :], axis=0) for i in range(array.size)]
    return np.array([win.sum() for win in wins])
