"""A picture of the price of privacy: effective sample size against epsilon (matplotlib, imported when drawn)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._extras import require
from deniable.channels._vectors import probability_vector
from deniable.channels.divergences import FDivergence, find_divergence
from deniable.channels.hypothesis.people import effective_sample_size


def plot_effective_sample_size(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilons: Sequence[float] | None = None,
    kind: str | FDivergence = "kl",
    ax: Any = None,
) -> Any:
    """Factor by which n shrinks, for the binary mechanism and k-ary randomized response, on logarithmic axes.

    The dashed line has slope epsilon^2 and meets the binary mechanism at the smallest epsilon. Returns the axes.
    """
    from deniable.channels import binary, randomized_response

    pyplot = require("matplotlib.pyplot", "plot")
    first = probability_vector(p0, what="first distribution")
    second = probability_vector(p1, first.size, what="second distribution")
    levels = np.sort(np.geomspace(0.05, 8, 40) if epsilons is None else np.asarray(epsilons, np.float64))
    one_bit = [effective_sample_size(binary(first, second, float(e)), first, second, kind) for e in levels]
    direct = [effective_sample_size(randomized_response(first.size, float(e)), first, second, kind) for e in levels]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6, 4), layout="constrained")
    ax.loglog(levels, one_bit, label="binary mechanism")
    ax.loglog(levels, direct, label=f"randomized response, k = {first.size}")
    reference = one_bit[0] * (levels / levels[0]) ** 2
    shown = reference <= 1
    ax.loglog(levels[shown], reference[shown], "--", color="0.5", label="slope epsilon^2")
    ax.set_xlabel("epsilon")
    ax.set_ylabel("effective sample size / n")
    ax.set_title(f"What privacy costs ({find_divergence(kind).name})")
    ax.grid(True, which="both", alpha=0.2)
    ax.legend()
    return ax
