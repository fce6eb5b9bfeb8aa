"""The picture of an estimate: a bar an answer, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._extras import require
from deniable.labels import text

if TYPE_CHECKING:
    from deniable.protocols.estimate import Estimate, Floats

SEEN, UNSEEN, INK = "#2f6f9f", "#b9c2cb", "#1b2733"
LONGEST_NAME = 24


def bars(estimate: Estimate, intervals: Floats, ax: Any = None, level: float = 0.95, most: int = 40) -> Any:
    """Shares as bars, the largest `most` of them; grey where the interval covers zero. Returns the axes."""
    order = estimate._order(most)
    shares, ends = estimate.frequencies[order], intervals[order]
    seen = (ends[:, 0] > 0) | (ends[:, 1] < 0)
    if ax is None:
        width = max(5.0, min(0.32 * order.size + 1.5, 14.0))
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(width, 3.6))[1]
    places = np.arange(order.size)
    for which, color, name in ((seen, SEEN, "clear of zero"), (~seen, UNSEEN, "may be zero")):
        if which.any():
            ax.bar(places[which], shares[which], 0.72, color=color, label=name)
    finite = np.isfinite(ends).all(axis=1)
    ax.vlines(places[finite], *ends[finite].T, color=INK, linewidth=1)
    ax.axhline(0, color=INK, linewidth=0.6)
    names = [_short(text(estimate.labels[i])) for i in order]
    crowded = sum(map(len, names)) > 60
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(places, names, **turned)
    ax.margins(x=0.02)
    ax.set_ylabel("share")
    some = f"the {order.size} largest of {len(estimate.labels)} answers, " if order.size < len(estimate.labels) else ""
    title = f"{estimate.protocol}, {estimate.method}, n = {estimate.n:,}: {some}{100 * level:g} % intervals"
    ax.set_title(title, fontsize="medium")
    if seen.any() and not seen.all():
        ax.legend(frameon=False, fontsize="small")
    return ax


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
