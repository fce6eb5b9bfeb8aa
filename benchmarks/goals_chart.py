"""Every claim that has a goal, and how far from it the last run was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import goal_text, ratio_text
from benchmarks.timing import Figure

COLOURS = {"core": "#2f6f9f", "design": "#b07d2b", "files": "#6b8e23", "frequency": "#7a5195", "service": "#c0567a"}


def margin(figure: Figure) -> float:
    """How many times better than its goal; below one it was missed."""
    if figure.goal is None:
        raise ValueError("a figure without a goal has no margin")
    better = figure.value / figure.goal.limit
    return better if figure.goal.kind == "at least" else 1 / better


def draw(figures: Sequence[tuple[str, str, Figure]], path: Path) -> None:
    """Save the margins of (group, benchmark, figure) as SVG."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    bars = sorted(figures, key=lambda bar: (bar[0], margin(bar[2])))
    with plt.rc_context({"svg.hashsalt": "deniable", "svg.fonttype": "none", "font.size": 9}):
        chart, axes = plt.subplots(figsize=(9, 1.2 + 0.3 * len(bars)), layout="constrained")
        for place, (group, _, figure) in enumerate(bars):
            times = margin(figure)
            colour = COLOURS.get(group, "#9aa5b1") if times >= 1 else "#c0392b"
            axes.barh(place, times - 1, left=1, color=colour, height=0.65)
            text = f"{ratio_text(figure.value)} ({goal_text(figure.goal)})"
            axes.annotate(text, (max(times, 1), place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set_xscale("log")
        axes.axvline(1, color="#1b2733", linewidth=1)
        axes.set_xlim(left=0.5, right=20 * max(margin(figure) for _, _, figure in bars))
        axes.set_yticks(range(len(bars)), [f"{name}: {figure.label}" for _, name, figure in bars], fontsize=7)
        axes.set_xlabel("times better than the goal (dark line: the goal; red: missed)")
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        chart.savefig(path, format="svg", metadata={"Date": None})
        plt.close(chart)
