"""A study's picture: the standard error of a share against what was varied; points measured, lines by the formula.

Both axes are logarithmic and labelled with plain numbers, at least two on the upright one: powers of ten are too far
apart for a study within one decade.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable._extras import require
from deniable.engines.studies import Row
from deniable.errors import SpecError
from deniable.planning.chart import COLORS, GRID

_AXES = {"epsilon": "epsilon", "people": "people", "answers": "possible answers"}
_MARKS = "osD^vP*X"
# The least ratio of the ends of the upright axis, so that small differences look small.
_SPREAD = 2.0
# Labels on the level axis are this share of its length apart.
_APART = 0.06


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
        color = COLORS[protocols.index(points[0].protocol) % len(COLORS)]
        points.sort(key=lambda row: float(Fraction(getattr(row, axis))))
        x = [float(Fraction(getattr(row, axis))) for row in points]
        # A single point has no line, only a dash.
        dash = {"marker": "_", "markersize": 14} if len(points) == 1 else {}
        axes.plot(x, [_stderr(row.variance_theory, row) for row in points], color=color, linewidth=1.2, **dash)
        measured = [_stderr(row.variance, row) for row in points]
        axes.plot(x, measured, _MARKS[number % len(_MARKS)], color=color, label=label, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel=_AXES[axis], ylabel="standard error of a share")
    axes.minorticks_off()
    values = sorted({float(Fraction(getattr(row, axis))) for row in rows})
    axes.set_xticks(values, _labels(values))
    errors = [_stderr(variance, row) for row in rows for variance in (row.variance, row.variance_theory)]
    ends = _ends(errors)
    ticks = _ticks(*ends)
    axes.set_yticks(ticks, [f"{tick:.10g}" for tick in ticks])
    axes.set_ylim(*ends)
    axes.grid(True, which="major", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", title="points: measured, lines: formula", title_fontsize="small")
    return axes


def _stderr(variance: float, row: Row) -> float:
    return math.sqrt(variance) / row.people


def _labels(values: Sequence[float]) -> list[str]:
    """The numbers themselves; where they are crowded, only some of them, and always the first and the last."""
    places = [math.log(value) for value in values]
    apart = _APART * (places[-1] - places[0])
    shown = [0]
    for i in range(1, len(values) - 1):
        if places[i] - places[shown[-1]] >= apart and places[-1] - places[i] >= apart:
            shown.append(i)
    shown.append(len(values) - 1)
    return [f"{value:,.10g}" if i in shown else "" for i, value in enumerate(values)]


def _ends(errors: Sequence[float]) -> tuple[float, float]:
    """Where the upright axis begins and ends. Errors of zero, of a protocol that never lies, have no place on it."""
    positive = [error for error in errors if error > 0] or [1.0]
    low, high = min(positive), max(positive)
    wider = max((high / low) ** 0.05, math.sqrt(_SPREAD * low / high))
    return low / wider, high * wider


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends: at least two if the ends are a factor of 2 apart.

    >>> _ticks(0.013, 0.09), _ticks(0.0011, 0.0022), _ticks(0.003, 40)
    ([0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08], [0.0015, 0.002], [0.01, 0.1, 1.0, 10.0])
    """
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)))
    for digits in ((10,), (10, 20, 50), (10, 15, 20, 30, 40, 50, 60, 80)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks


def _named(name: str, value: Any) -> str:
    if name == "distribution":
        return str(value)
    return f"{value:,} {name}" if isinstance(value, int) else f"{name} {value}"
