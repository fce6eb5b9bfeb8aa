"""A study's picture: the standard error of a share against what was varied; points measured, lines by the formula.

Across     the number that was varied most; each protocol has a colour
Panels     what else was varied: columns for the first, rows for the second; a third has line styles and marks
Axes       logarithmic, shared by all panels and labelled with plain numbers, at least two on the upright one: powers of
           ten are too far apart for a study within one decade
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deniable._extras import require
from deniable.engines.studies import ALONE, Row
from deniable.errors import SpecError
from deniable.planning.chart import COLORS, GRID, INK, STYLES

_AXES = {"epsilon": "epsilon", "people": "people", "answers": "possible answers"}
_MARKS = "osD^vP*X"
# The least ratio of the ends of the upright axis, so that small differences look small.
_SPREAD = 2.0
# Labels on the level axis are this share of its length apart.
_APART, _APART_IN_PANELS = 0.06, 0.16


def draw(rows: Sequence[Row]) -> Any:
    """One panel a combination of what else varies; returns the axes of the first."""
    if not rows:
        raise SpecError("there is nothing to draw: the study has no cells")
    plt = require("matplotlib.pyplot", "plot")
    axis = max(_AXES, key=lambda name: len(_values(rows, name)))
    others = [name for name in (*_AXES, "distribution") if name != axis and len(_values(rows, name)) > 1]
    across, down, third = [*others, None, None, None][:3]
    columns, lines = _values(rows, across), _values(rows, down)
    size = (7.2, 4.4) if not others else (2.9 * len(columns) + 2.2, 2.7 * len(lines) + 0.7)
    figure, grid = plt.subplots(
        len(lines), len(columns), figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for i, line in enumerate(lines):
        for j, column in enumerate(columns):
            panel = [row for row in rows if _value(row, across) == column and _value(row, down) == line]
            _panel(grid[i, j], panel, rows, axis, third)
            named = [_named(name, value) for name, value in ((across, column), (down, line)) if name is not None]
            grid[i, j].set_title(", ".join(named), fontsize="medium")
    _scales(grid, rows, axis)
    for ax in grid[-1]:
        ax.set_xlabel(_AXES[axis])
    for ax in grid[:, 0]:
        ax.set_ylabel("standard error of a share")
    _legend(figure, rows, third)
    return grid[0, 0]


def _panel(ax: Any, panel: Sequence[Row], rows: Sequence[Row], axis: str, third: str | None) -> None:
    protocols, kinds = _values(rows, "protocol"), _values(rows, third)
    curves: dict[tuple[int, int], list[Row]] = {}
    for row in panel:
        curves.setdefault((protocols.index(row.protocol), kinds.index(_value(row, third))), []).append(row)
    for (number, kind), points in curves.items():
        color = COLORS[number % len(COLORS)]
        points.sort(key=lambda row: float(_value(row, axis)))
        x = [_value(row, axis) for row in points]
        # A single point has no line, only a dash.
        dash = {"marker": "_", "markersize": 14} if len(points) == 1 else {"linestyle": STYLES[kind % len(STYLES)]}
        ax.plot(x, [_stderr(row.variance_theory, row) for row in points], color=color, linewidth=1.2, **dash)
        mark = _MARKS[(number if third is None else kind) % len(_MARKS)]
        ax.plot(x, [_stderr(row.variance, row) for row in points], mark, color=color, markersize=5)


def _scales(grid: Any, rows: Sequence[Row], axis: str) -> None:
    values = sorted({float(_value(row, axis)) for row in rows})
    ends = _ends([_stderr(variance, row) for row in rows for variance in (row.variance, row.variance_theory)])
    ticks = _ticks(*ends)
    for ax in grid.flat:
        ax.set(xscale="log", yscale="log")
        ax.minorticks_off()
        ax.margins(x=0.05 if grid.size == 1 else 0.12)
        ax.grid(True, which="major", color=GRID, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    # Shared by all panels.
    grid[0, 0].set_xticks(values, _labels(values, _APART if grid.size == 1 else _APART_IN_PANELS))
    grid[0, 0].set_yticks(ticks, [f"{tick:.10g}" for tick in ticks])
    grid[0, 0].set_ylim(*ends)


def _legend(figure: Any, rows: Sequence[Row], third: str | None) -> None:
    """Beside the panels, where it hides nothing."""
    lines = require("matplotlib.lines", "plot")
    entries = []
    for number, name in enumerate(_values(rows, "protocol")):
        mark = _MARKS[number % len(_MARKS)] if third is None else ""
        label = f"{name} (line: one answer alone)" if name in ALONE else name
        entries.append(lines.Line2D([], [], color=COLORS[number % len(COLORS)], marker=mark, markersize=5, label=label))
    for kind, value in enumerate(_values(rows, third) if third is not None else []):
        style = {"linestyle": STYLES[kind % len(STYLES)], "marker": _MARKS[kind % len(_MARKS)]}
        entries.append(lines.Line2D([], [], color=INK, markersize=5, label=_named(third, value), **style))
    figure.legend(
        handles=entries,
        loc="outside right upper",
        frameon=False,
        fontsize="small",
        title="points: measured\nlines: formula",
        title_fontsize="small",
        alignment="left",
    )


def _values(rows: Sequence[Row], name: str | None) -> list[Any]:
    """The different ones, in their order; a single None for nothing."""
    return list(dict.fromkeys(_value(row, name) for row in rows))


def _value(row: Row, name: str | None) -> Any:
    return None if name is None else getattr(row, name)


def _stderr(variance: float, row: Row) -> float:
    return math.sqrt(variance) / row.people


def _labels(values: Sequence[float], share: float) -> list[str]:
    """The numbers themselves; where they are crowded, only some of them, and always the first and the last."""
    places = [math.log(value) for value in values]
    apart = share * (places[-1] - places[0])
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


def _named(name: str | None, value: Any) -> str:
    if name == "distribution":
        return str(value)
    return f"{value:,} {name}" if isinstance(value, int) else f"{name} {value:g}"
