"""The chart of the page on extremal mechanisms: seconds against the number of symbols."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.design import SIZES, STAGES, task_name
from benchmarks.timing import Result

COLORS = dict(zip(STAGES, ("#3949ab", "#d08a2e", "#5b9a68"), strict=True))
MARKERS = dict(zip(STAGES, "osD", strict=True))
LABELS = {
    "design": "design the mechanism",
    "certify": "work out the certificate",
    "verify": "verify it, without the solver",
}


def draw(results: Sequence[Result], path: Path) -> None:
    """Save the times of `extremal-cost` as SVG; without them, nothing is drawn."""
    best = {
        timing.task: timing.best for result in results if result.name == "extremal-cost" for timing in result.timings
    }
    if not best:
        return
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "deniable", "svg.fonttype": "none", "font.size": 10}):
        chart, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
        for stage in STAGES:
            known = [(k, best[task_name(stage, k)]) for k in SIZES if task_name(stage, k) in best]
            axes.loglog(*zip(*known, strict=True), marker=MARKERS[stage], color=COLORS[stage], label=LABELS[stage])
        axes.set_xlabel("symbols k")
        axes.set_ylabel("time")
        axes.set_yticks([1e-3, 1e-2, 1e-1, 1, 10], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"])
        axes.set_xticks([10, 100, 1_000, 10_000], ["10", "100", "1,000", "10,000"])
        axes.grid(which="major", color="#e3e7eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        chart.savefig(path, format="svg", metadata={"Date": None})
        plt.close(chart)
