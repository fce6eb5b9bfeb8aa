"""Frequency oracles side by side: one table of ratios, one of errors, and one chart, for the docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.frequency import (
    CONSISTENT,
    GUESS,
    ONE_BY_ONE,
    ORACLES,
    OURS,
    RESCALED,
    SINGLE,
    error_label,
    largest_label,
    ratio_label,
    task_name,
)
from benchmarks.report import ratio_text, time_text
from benchmarks.timing import Figure, Result

PACKAGES = ("pure-ldp", "multi-freq-ldpy", "ldp-toolbox", "opendp")
SIDES = ("client", "server")
COLORS = dict(zip(PACKAGES, ("#2f6f9f", "#d98c21", "#3c8d5a", "#8a5aa8"), strict=True))
MARKERS = dict(zip(PACKAGES, "osD^", strict=True))


def ratio(result: Result, side: str, package: str) -> Figure | None:
    """How many times faster we are, where the package has that protocol."""
    label = ratio_label(side, package)
    return next((figure for figure in result.figures if figure.label == label), None)


def markdown(results: Sequence[Result]) -> str:
    """Times faster than each package, then the errors."""
    chosen = [result for result in results if result.name in ORACLES]
    lines = [
        _row("protocol", "side", "deniable, a report", *PACKAGES),
        _row("---", "---", "---:", *["---:"] * len(PACKAGES)),
    ]
    for result in chosen:
        best = {timing.task: timing.best for timing in result.timings}
        ours = {side: task_name(side, OURS) for side in SIDES} | {ONE_BY_ONE: task_name("client", SINGLE)}
        for side, task in ours.items():
            figures = [ratio(result, side, package) for package in PACKAGES]
            cells = ["" if figure is None else f"{ratio_text(figure.value)}x" for figure in figures]
            if task in best:
                lines.append(_row(result.name, side, time_text(best[task]), *cells))
    return "\n".join([*lines, "", *_errors(chosen)]) + "\n"


def _errors(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    facts = results[0].facts
    who = (OURS, CONSISTENT, *PACKAGES)
    return [
        "Mean squared error of the 1024 estimated frequencies, and in brackets the estimated share of the most common "
        f"answer, in truth {facts[largest_label('in truth')]}. All packages of a line estimate the shares of the same "
        f"people. Guessing 1 / 1024 for each answer has an error of {facts[error_label(GUESS)]}.",
        "",
        _row("protocol", "people", *(f"{name} (rescaled)" if name in RESCALED else name for name in who)),
        _row("---", *["---:"] * (1 + len(who))),
        *(
            _row(result.name, str(result.facts["people"]), *(_error(result, name) for name in who))
            for result in results
        ),
    ]


def _error(result: Result, who: str) -> str:
    if error_label(who) not in result.facts:
        return ""
    return f"{result.facts[error_label(who)]} ({result.facts[largest_label(who)]})"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def draw(results: Sequence[Result], path: Path) -> None:
    """Save the ratios as SVG: a line a protocol and side, a mark a package, a bar for a goal."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    rows = [(result, side) for result in results if result.name in ORACLES for side in SIDES][::-1]
    with plt.rc_context({"svg.hashsalt": "deniable", "svg.fonttype": "none", "font.size": 9}):
        chart, axes = plt.subplots(figsize=(9, 1.2 + 0.32 * len(rows)), layout="constrained")
        for place, (result, side) in enumerate(rows):
            for package in PACKAGES:
                figure = ratio(result, side, package)
                if figure is None:
                    continue
                axes.plot(figure.value, place, MARKERS[package], color=COLORS[package], markersize=7)
                if figure.goal is not None:
                    ends = [place - 0.38, place + 0.38]
                    axes.plot([figure.goal.limit] * 2, ends, color=COLORS[package], linewidth=2.5)
        for package in PACKAGES:
            axes.plot([], [], MARKERS[package], color=COLORS[package], label=package)
        axes.plot([], [], "|", color="#1b2733", markersize=11, markeredgewidth=2.5, label="goal, in its color")
        axes.set_xscale("log")
        axes.axvline(1, color="#1b2733", linewidth=0.8)
        axes.set_yticks(range(len(rows)), [f"{result.name}, {side}" for result, side in rows])
        axes.grid(axis="y", color="#e3e7eb", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("times faster than the other package, a report")
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, 1.09), ncols=5, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        chart.savefig(path, format="svg", metadata={"Date": None})
        plt.close(chart)
