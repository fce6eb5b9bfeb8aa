"""The planner's picture: the error of each protocol against epsilon and against the number of answers.

Above, the noise: the standard error of the share of an answer that nobody gave, in the worst case; below, the same
divided by the smallest one, because the good protocols lie too close together to be told apart above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._extras import require
from deniable.domains import Domain, Integers, ListedDomain
from deniable.errors import DomainError
from deniable.planning.planner import epsilons_around
from deniable.protocols.choice import build

if TYPE_CHECKING:
    from deniable.planning.result import Plan

COLORS = ("#2f6f9f", "#d08a2e", "#5b9a68", "#a2507c", "#6b7785", "#8c6d4f", "#3aa6b9", "#c2453f")
STYLES = ("-", "--", "-.", ":")
INK, GRID = "#1b2733", "#d9dee3"
WORST_SHOWN = 2.5
_POINTS = 49


def draw(plan: Plan) -> Any:
    """Two columns of panels; the plan's choice is marked. Open text has no number of answers, so one column only."""
    plt = require("matplotlib.pyplot", "plot")
    size = plan.domain.size if isinstance(plan.domain, ListedDomain) else None
    names = sorted(option.name for option in plan.table)
    columns = 1 if size is None else 2
    fig, axes = plt.subplots(2, columns, figsize=(4 * columns + 1.6, 5.6), squeeze=False, sharex="col", sharey="row")
    epsilon = float(plan.epsilon)
    epsilons = epsilons_around(epsilon, _POINTS)
    errors = [_errors(plan.domain, f"{x:.6g}", plan.n) for x in epsilons]
    _column(axes[:, 0], names, epsilons, errors, epsilon, plan)
    axes[1, 0].set(xlabel="epsilon", ylabel="times the smallest")
    axes[0, 0].set(ylabel=f"noise, n = {plan.n:,}")
    if size is not None:
        sizes = np.unique(np.geomspace(2, max(4096, 4 * size), _POINTS).astype(np.int64))
        errors = [_errors(Integers(0, int(x) - 1), plan.epsilon, plan.n) for x in sizes]
        _column(axes[:, 1], names, sizes, errors, size, plan)
        axes[1, 1].set(xlabel="number of answers")
        axes[0, 1].set(title=f"epsilon {epsilon:g}")
        axes[0, 0].set(title=f"{size:,} answers")
    axes[0, -1].legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if fig.get_layout_engine() is None:
        fig.tight_layout()
    return axes


def _errors(domain: Domain, epsilon: Any, n: int) -> dict[str, float]:
    try:
        return {name: built.noise(n) for name, built in build(domain, epsilon).items()}
    except DomainError:
        return {}


def _column(
    axes: Any, names: Sequence[str], xs: Any, errors: Sequence[dict[str, float]], at: float, plan: Plan
) -> None:
    table = np.array([[row.get(name, math.nan) for name in names] for row in errors])
    shown = np.isfinite(table).any(axis=1)
    xs, table = np.asarray(xs)[shown], table[shown]
    ratios = table / np.nanmin(table, axis=1, keepdims=True)
    for i, name in enumerate(names):
        look = {"linestyle": STYLES[i % len(STYLES)], "color": COLORS[i % len(COLORS)], "linewidth": 1.5, "label": name}
        axes[0].plot(xs, table[:, i], **look)
        axes[1].plot(xs, ratios[:, i], **look)
    marked = {"marker": "o", "linestyle": "", "color": INK, "markersize": 5, "label": f"the plan: {plan.best.name}"}
    axes[0].plot([at], [plan.choice.noise], **marked)
    axes[1].plot([at], [plan.choice.noise / plan.table[0].noise], **marked)
    axes[0].set(xscale="log", yscale="log")
    axes[1].set(xscale="log", ylim=(0.97, WORST_SHOWN))
    for ax in axes:
        ax.grid(True, color=GRID, linewidth=0.6)
