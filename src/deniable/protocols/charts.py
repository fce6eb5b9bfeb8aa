"""The picture of an estimate: a bar an answer, with its interval.

Numbers keep their order and are all there; more than `MOST_BARS` of them are a line within the band of the intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._extras import require
from deniable.labels import numbers_first, text

if TYPE_CHECKING:
    from deniable.protocols.estimate import Estimate, Floats

SEEN, UNSEEN, INK = "#2f6f9f", "#b9c2cb", "#1b2733"
LONGEST_NAME = 24
MOST_BARS = 60
_WIDEST = 60.0  # inches


def bars(
    estimate: Estimate,
    intervals: Floats,
    ax: Any = None,
    level: float = 0.95,
    most: int = 40,
    simultaneous: bool = False,
    population: bool = True,
) -> Any:
    """Shares as bars, the largest `most` of them; grey where the interval covers zero. Returns the axes."""
    size = len(estimate.labels)
    numbers = numbers_first(estimate.labels)
    order = np.arange(size) if numbers else estimate._order(most)
    some = f"the {order.size} largest of {size} answers, " if order.size < size else ""
    at_once = ", all answers at once" if simultaneous else ""
    whom = "" if population else ", among those who answered"
    how = f"{100 * level:g} % intervals{at_once}{whom}"
    title = f"{estimate.protocol}, {estimate.method}, n = {estimate.n:,}: {some}{how}"
    if numbers > MOST_BARS:
        words = "".join(f", {text(estimate.labels[i])} {estimate.frequencies[i]:.1%}" for i in range(numbers, size))
        return _band(estimate, intervals, numbers, ax, title + words)
    shares, ends = estimate.frequencies[order], intervals[order]
    seen = (ends[:, 0] > 0) | (ends[:, 1] < 0)
    if ax is None:
        width = max(5.0, min(0.32 * order.size + 1.5, _WIDEST))
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
    ax.set_title(title, fontsize="medium")
    if seen.any() and not seen.all():
        # Beside the bars: inside it would hide an interval sooner or later.
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return ax


def _band(estimate: Estimate, intervals: Floats, numbers: int, ax: Any, title: str) -> Any:
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(9.0, 3.6))[1]
    values = np.array(list(estimate.labels)[:numbers])
    ax.fill_between(values, *intervals[:numbers].T, color=UNSEEN, alpha=0.6, linewidth=0, label="intervals")
    ax.plot(values, estimate.frequencies[:numbers], color=SEEN, linewidth=1.2, label="share")
    ax.axhline(0, color=INK, linewidth=0.6)
    ax.margins(x=0.02)
    ax.set(xlabel="answer", ylabel="share")
    ax.set_title(title, fontsize="medium")
    return ax


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
