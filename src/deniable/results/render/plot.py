"""The picture of most results: one bar per row, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._extras import require
from deniable.labels import numbers_first, shown
from deniable.results.rows import Rows

if TYPE_CHECKING:
    from deniable.results.base import Result

SEEN, UNSEEN, INK = "#2f6f9f", "#b9c2cb", "#1b2733"
LONGEST_NAME = 24
MOST_BARS = 60
_WIDEST = 60.0  # inches
_LETTER = 0.09  # inches, of a letter below a bar


def bars(result: Result, rows: Rows, ax: Any = None, most: int = 40) -> Any:
    """Values as bars, the largest `most` of them; grey where the interval covers zero. Returns the axes."""
    size = len(rows)
    numbers = numbers_first(rows.labels)
    order = np.arange(size) if numbers else rows.order(most)
    some = f"the {order.size} largest of {size} answers, " if order.size < size else ""
    title = f"{result.title}: {some}{100 * rows.level:g} % intervals{rows.qualifiers}"
    unit = f", {rows.unit}" if rows.unit else ""
    name_of_value = result.heading + unit
    if numbers > MOST_BARS:
        words = "".join(f", {shown(rows.labels[i])} {rows.value[i]:.1%}" for i in range(numbers, size))
        return _band(rows, numbers, ax, title + words, name_of_value)
    shares, ends = rows.value[order], rows.ends[order]
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
    known = rows.names
    names = [_short(known[i]) for i in order]
    room = ax.get_position().width * ax.figure.get_figwidth() / max(1, order.size)
    crowded = max(map(len, names), default=0) * _LETTER > room
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(places, names, **turned)
    ax.margins(x=0.02)
    ax.set_ylabel(name_of_value)
    ax.set_title(title, fontsize="medium")
    if seen.any() and not seen.all():
        # Next to the bars: inside it would sooner or later hide an interval.
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return ax


def _band(rows: Rows, numbers: int, ax: Any, title: str, name_of_value: str) -> Any:
    if ax is None:
        ax = require("matplotlib.pyplot", "plot").subplots(figsize=(9.0, 3.6))[1]
    values = np.array(list(rows.labels)[:numbers])
    band = rows.low[:numbers], rows.high[:numbers]
    ax.fill_between(values, *band, color=UNSEEN, alpha=0.6, linewidth=0, label="intervals")
    ax.plot(values, rows.value[:numbers], color=SEEN, linewidth=1.2, label=name_of_value)
    ax.axhline(0, color=INK, linewidth=0.6)
    ax.margins(x=0.02)
    ax.set(xlabel="answer", ylabel=name_of_value)
    ax.set_title(title, fontsize="medium")
    return ax


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
