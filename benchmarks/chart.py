"""The chart of the docs page: how many times faster, on a logarithmic axis, with the goals marked."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Run, ratio_text


def draw(run: Run, path: Path) -> None:
    """Save the speed-ups of a run as SVG."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    bars = [(result.name, figure) for result in run.results for figure in result.figures if figure.speedup]
    bars.sort(key=lambda bar: bar[1].value)
    # A fixed salt and no date: the same figures give the same file.
    with plt.rc_context({"svg.hashsalt": "deniable", "svg.fonttype": "none", "font.size": 9}):
        chart, axes = plt.subplots(figsize=(9, 0.8 + 0.42 * len(bars)), layout="constrained")
        for place, (_, figure) in enumerate(bars):
            color = "#c0392b" if figure.met is False else "#2f6f9f" if figure.met else "#9aa5b1"
            # From one: a bar to the left of it is something slower.
            axes.barh(place, figure.value - 1, left=1, color=color, height=0.6)
            axes.annotate(
                f"{ratio_text(figure.value)}x",
                (max(figure.value, 1), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
            if figure.goal is not None:
                axes.plot([figure.goal.limit] * 2, [place - 0.4, place + 0.4], color="#1b2733", linewidth=2)
        axes.set_xscale("log")
        axes.axvline(1, color="#1b2733", linewidth=0.8)
        axes.set_xlim(right=4 * max(figure.value for _, figure in bars))
        labels = [f"{name}\n{figure.label}" for name, figure in bars]
        axes.set_yticks(range(len(bars)), labels, fontsize=8)
        axes.set_xlabel("times faster (dark line: the goal; red: missed; grey: no goal)")
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        chart.savefig(path, format="svg", metadata={"Date": None})
        plt.close(chart)
