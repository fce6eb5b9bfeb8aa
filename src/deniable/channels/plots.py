"""Pictures of channels (matplotlib, imported when one is drawn)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable._extras import require
from deniable.channels.levels import level_text
from deniable.labels import text

if TYPE_CHECKING:
    from deniable.channels.channel import Channel

_MOST_NAMED = 24
_MOST_WRITTEN = 12


def heat_map(channel: Channel, ax: Any = None) -> Any:
    """Rows are inputs, columns are outputs; darker is likelier."""
    pyplot = require("matplotlib.pyplot", "plot")
    rows, columns = channel.shape
    if ax is None:
        size = (min(10.0, 2.6 + 0.45 * columns), min(8.0, 1.8 + 0.4 * rows))
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    top = float(channel.rows.max())
    image = ax.imshow(channel.rows, cmap="Blues", vmin=0.0, vmax=top, aspect="auto")
    if columns <= _MOST_NAMED:
        names = [text(label) for label in channel.outputs]
        slant = 45 if max(map(len, names)) > 4 and columns > 6 else 0
        # "$5-$10" is a range of money, not a formula.
        ax.set_xticks(range(columns), names, rotation=slant, ha="right" if slant else "center", parse_math=False)
    if rows <= _MOST_NAMED:
        ax.set_yticks(range(rows), [text(label) for label in channel.inputs], parse_math=False)
    if rows <= _MOST_WRITTEN and columns <= _MOST_WRITTEN:
        for x in range(rows):
            for y in range(columns):
                value = float(channel.rows[x, y])
                ax.text(y, x, f"{value:.3g}", ha="center", va="center", fontsize=8,
                        color="white" if value > 0.6 * top else "black")  # fmt: skip
    ax.set_xlabel("output")
    ax.set_ylabel("input")
    worst = channel.witness(channel.adjacency)
    level = f"epsilon = {level_text(worst.ratio, worst.distance, digits=4)}"
    scope = "" if channel.adjacency.kind == "all" else f" for {channel.adjacency}"
    ax.set_title(f"P(output | input), {level}{scope}")
    ax.figure.colorbar(image, ax=ax, label="probability")
    return ax
