"""A study's picture: the standard error of a share against what was varied; points measured, lines by the formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable._extras import require
from deniable.engines.studies import Row
from deniable.errors import SpecError

_AXES = {"epsilon": "epsilon", "people": "people", "answers": "possible answers"}
_COLORS = ("#2f6f9f", "#d08a2e", "#5b9a68", "#a2507c", "#6b7785", "#8c6d4f", "#3aa6b9", "#c2453f")
_MARKS = "osD^vP*X"


def draw(rows: Sequence[Row]) -> Any:
    """Axes with one curve a protocol; what else varies is named beside it."""
    if not rows:
        raise SpecError("there is nothing to draw: the study has no cells")
    plt = require("matplotlib.pyplot", "plot")
    axis = max(_AXES, key=lambda name: len({getattr(row, name) for row in rows}))
    others = [
        name for name in (*_AXES, "distribution") if name != axis and len({getattr(row, name) for row in rows}) > 1
    ]
    curves: dict[str, list[Row]] = {}
    for row in rows:
        label = ", ".join([row.protocol, *(_named(name, getattr(row, name)) for name in others)])
        curves.setdefault(label, []).append(row)
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    _, axes = plt.subplots(figsize=(7.2, 4.4))
    for number, (label, points) in enumerate(curves.items()):
        color = _COLORS[protocols.index(points[0].protocol) % len(_COLORS)]
        points.sort(key=lambda row: float(Fraction(getattr(row, axis))))
        x = [float(Fraction(getattr(row, axis))) for row in points]
        axes.plot(x, [math.sqrt(row.variance_theory) / row.people for row in points], color=color, linewidth=1.2)
        measured = [math.sqrt(row.variance) / row.people for row in points]
        axes.plot(x, measured, _MARKS[number % len(_MARKS)], color=color, label=label, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel=_AXES[axis], ylabel="standard error of a share")
    values = sorted({float(Fraction(getattr(row, axis))) for row in rows})
    axes.set_xticks(values, [f"{value:,.10g}" for value in values])
    axes.minorticks_off()
    axes.grid(True, which="major", color="#d9dee3", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", title="points: measured, lines: formula", title_fontsize="small")
    return axes


def _named(name: str, value: Any) -> str:
    if name == "distribution":
        return str(value)
    return f"{value:,} {name}" if isinstance(value, int) else f"{name} {value}"
