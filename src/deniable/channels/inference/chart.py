"""The picture of an inference: what is true, what was seen, what was reconstructed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._extras import require
from deniable.channels._vectors import probability_vector
from deniable.labels import text

if TYPE_CHECKING:
    from deniable.channels.inference.result import Inference


def draw(result: Inference, truth: ArrayLike | None, level: float, ax: Any) -> Any:
    """Bars side by side, the estimate with whiskers; the noisy shares only where outputs are the inputs."""
    k = len(result.inputs)
    known = None if truth is None else probability_vector(truth, k, "truth")
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(max(5.0, min(0.5 * k + 2, 14)), 3.6))[1]
    bars: list[tuple[str, Any, str]] = []
    if known is not None:
        bars.append(("true", known, "#9aa5b1"))
    if result.outputs == result.inputs:
        bars.append(("noisy", result.observed / result.n, "#e3b778"))
    bars.append(("reconstructed", result.frequencies, "#2f6f9f"))
    places, width = np.arange(k), 0.84 / len(bars)
    for i, (name, heights, color) in enumerate(bars):
        ax.bar(places + (i - (len(bars) - 1) / 2) * width, heights, width, label=name, color=color)
    ends = result.interval(level)
    finite = np.isfinite(ends).all(axis=1)
    ax.vlines(places[finite] + (len(bars) - 1) / 2 * width, *ends[finite].T, color="#1b2733", linewidth=1)
    ax.axhline(0, color="#1b2733", linewidth=0.6)
    shown = places if k <= 40 else places[:: -(-k // 20)]
    crowded = sum(len(text(result.inputs[i])) for i in shown) > 60
    ax.set_xticks(shown, [text(result.inputs[i]) for i in shown], rotation=60 if crowded else 0)
    ax.set_ylabel("frequency")
    ax.set_title(f"{result.method}, n = {result.n:g}, {level:.0%} intervals", fontsize="medium")
    ax.legend(frameon=False)
    return ax
