"""Pictures of designs (matplotlib, imported when one is drawn)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._extras import require
from deniable.channels.divergences import FDivergence, divergence, find_divergence

if TYPE_CHECKING:
    from deniable.design.base import Design
    from deniable.design.regimes import Regimes

_BEST, _BINARY, _RESPONSE = "#3949ab", "#d08a2e", "#5b9a68"


def plot_channel(design: Design, ax: Any = None) -> Any:
    """The designed channel, with its value and its gap in the title."""
    ax = design.channel.plot(ax)
    ax.set_title(
        f"{design.name}, epsilon = {design.realized_epsilon:.4g}\n"
        f"value {design.value:.6g}, relative gap {design.relative_gap:.0e}"
    )
    return ax


def plot_value(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilons: Sequence[float] | None = None,
    kind: str | FDivergence = "kl",
    ax: Any = None,
) -> Any:
    """What the best mechanism, the binary one and randomized response are worth over epsilon."""
    from deniable.design.regimes import values_over

    pyplot = require("matplotlib.pyplot", "plot")
    levels = np.geomspace(0.05, 10, 60) if epsilons is None else np.sort(np.asarray(epsilons, np.float64))
    best, one_bit, direct = values_over(p0, p1, levels.tolist(), kind)
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    ax.loglog(levels, best, color=_BEST, linewidth=3, alpha=0.5, label="best mechanism")
    ax.loglog(levels, one_bit, color=_BINARY, label="binary mechanism")
    ax.loglog(levels, direct, color=_RESPONSE, label="randomized response")
    open_answers = divergence(p0, p1, kind)
    if math.isfinite(open_answers):
        ax.axhline(open_answers, color="0.5", linestyle="--", linewidth=1, label="open answers")
    ax.set(xlabel="epsilon", ylabel=f"divergence of reports ({find_divergence(kind).name})")
    ax.grid(True, which="both", alpha=0.2)
    ax.legend()
    return ax


def plot_regimes(found: Regimes, axes: Any = None) -> Any:
    """Two panels over epsilon: the share of the optimum that each classical mechanism reaches; number of outputs."""
    pyplot = require("matplotlib.pyplot", "plot")
    if axes is None:
        _, axes = pyplot.subplots(2, 1, figsize=(6.8, 5.4), sharex=True, layout="constrained", height_ratios=(2, 1))
    top, bottom = axes
    levels = np.array([at.epsilon for at in found.scan])
    best = np.array([at.best for at in found.scan])
    for values, colour, name in (
        ([at.binary for at in found.scan], _BINARY, "binary mechanism"),
        ([at.response for at in found.scan], _RESPONSE, "randomized response"),
    ):
        share = np.divide(values, best, out=np.ones_like(best), where=best > 0)
        top.semilogx(levels, share, color=colour, label=name)
    for panel in (top, bottom):
        panel.axvspan(levels[0], min(max(found.binary.low, levels[0]), levels[-1]), color=_BINARY, alpha=0.12)
        panel.axvspan(max(min(found.response.high, levels[-1]), levels[0]), levels[-1], color=_RESPONSE, alpha=0.12)
        panel.grid(True, which="both", alpha=0.2)
    top.set(ylabel="share of the optimum", title=f"who is optimal where ({found.divergence.name})", ylim=(0, 1.05))
    top.legend(loc="lower center")
    bottom.step(levels, [at.blocks for at in found.scan], where="mid", color=_BEST)
    bottom.set(xlabel="epsilon", ylabel="outputs")
    return axes
