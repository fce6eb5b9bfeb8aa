"""A plan: the protocols side by side, the one to use, and why.

Picture    above, the noise: the standard error of the share of an answer that nobody gave, in the worst case; below,
           the same divided by the smallest one, because the good protocols lie too close together to be told apart
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable._extras import require
from deniable.domains import Domain, Integers, ListedDomain
from deniable.errors import DomainError, EpsilonError
from deniable.exact import epsilon_text
from deniable.protocols import Protocol
from deniable.protocols.choice import build
from deniable.results import RESPONDENTS, Floats

# What the columns show, in order: heading, attribute, how it is written.
COLUMNS = (
    ("protocol", "name", "{}"),
    ("noise", "noise", "{:.3g}"),
    ("within +-", "half_width", "{:.3g}"),
    ("visible share", "visible", "{:.3g}"),
    ("report bytes", "report_bytes", "{:,}"),
    ("random bytes", "device", "{:,.0f}"),
    ("server ops", "server", "{:,.0f}"),
    ("counters", "counters", "{:,}"),
    ("leverage", "leverage", "{:.3g}"),
    ("attack", "attack", "{:.3g}"),
)


@dataclass(frozen=True, slots=True)
class Option:
    """One protocol at the plan's epsilon and n."""

    protocol: Protocol
    noise: float
    """The standard error of the share of an answer that nobody gave, in the worst case."""
    half_width: float
    """How far the interval of the headline figure reaches to either side, where that is most.

    Of a record: of the column where it is most, as a part of the width of what the figure can be.
    """
    visible: float | None
    """The smallest share whose interval excludes zero on average when all answers are looked at together; None if
    even a share of one would not."""
    report_bytes: int
    device: float
    """Random bytes that a report draws."""
    server: float
    """Word operations that add a report to the tally."""
    counters: int
    """The length of the tally."""
    leverage: float | None
    """How many reports one fake report is worth to the answer that it favours."""
    attack: float | None
    """How often the best guess of one person's answer is right, every answer being equally likely beforehand."""

    @property
    def name(self) -> str:
        return self.protocol.name

    @property
    def variance(self) -> float:
        """The square of `noise`."""
        return self.noise**2

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {attribute: getattr(self, attribute) for _, attribute, _ in COLUMNS}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """The planner's answer."""

    domain: Domain
    epsilon: Fraction
    n: int
    level: float
    solved: str
    """Which of "within", "n" and "epsilon" followed from the other two."""
    table: tuple[Option, ...]
    """All protocols, the least noise first."""
    choice: Option
    reason: str
    population: bool = True
    """Whether intervals are about the population, or only about those who answer."""
    forever: Fraction | None = None
    """Of two stages: the epsilon of what a device keeps; `epsilon` is that of one report."""

    @property
    def best(self) -> Protocol:
        """The protocol to use."""
        return self.choice.protocol

    @property
    def within(self) -> float:
        """How far the interval of a share reaches to either side at most."""
        return self.choice.half_width

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values; `best` is a spec that `deniable.load` reads."""
        return {
            "domain": str(self.domain),
            "reads": self.best.reads,
            "unit": self.best.unit,
            "epsilon": exact.canonical(self.epsilon),
            "n": self.n,
            "within": self.within,
            "level": self.level,
            "population": self.population,
            **({} if self.forever is None else {"forever": exact.canonical(self.forever)}),
            "solved": self.solved,
            "best": self.best.spec(),
            "reason": self.reason,
            "table": [option.to_dict() for option in self.table],
        }

    def plot(self) -> Any:
        """Errors against epsilon and against the number of answers; returns the axes."""

        return draw(self)

    def _title(self) -> str:
        answers = self.domain.short
        given = {
            "answers": answers,
            "epsilon": f"epsilon {epsilon_text(self.epsilon)}",
            "n": f"{self.n:,} people",
            "within": f"{100 * self.level:g} % intervals within +-{self.within:.3g} {self.best.unit}".rstrip(),
        }
        if self.forever is not None:
            given["epsilon"] += f" per report and {epsilon_text(self.forever)} for ever"
        if not self.population:
            given["within"] += f" {RESPONDENTS}"
        given[self.solved] = f"=> {given[self.solved]}"
        return ", ".join(given.pop(key) for key in sorted(given, key=lambda key: key == self.solved)).replace(
            ", =>", " =>"
        )

    def cells(self) -> list[list[str]]:
        """The table as text, without its heading."""
        rows = []
        for option in self.table:
            values = [(getattr(option, attribute), form) for _, attribute, form in COLUMNS]
            rows.append(["-" if value is None else form.format(value) for value, form in values])
        return rows

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(title=self._title(), caption=self.reason)
        for heading, attribute, _ in COLUMNS:
            table.add_column(heading, justify="left" if attribute == "name" else "right")
        for option, row in zip(self.table, self.cells(), strict=True):
            table.add_row(*row, style="bold" if option is self.choice else None)
        return table

    def __str__(self) -> str:
        rows = [[heading for heading, _, _ in COLUMNS], *self.cells()]
        marks = ["  ", *("> " if option is self.choice else "  " for option in self.table)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        lines = [self._title()]
        for mark, row in zip(marks, rows, strict=True):
            padded = [
                f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append((mark + "  ".join(padded)).rstrip())
        return "\n".join([*lines, self.reason])

    def __repr__(self) -> str:
        return f"<Plan: {self._title()}: {self.best.name}>"


# -- its picture: the error of each protocol against epsilon and against the number of answers --------


COLORS = ("#2f6f9f", "#d08a2e", "#5b9a68", "#a2507c", "#6b7785", "#8c6d4f", "#3aa6b9", "#c2453f")
STYLES = ("-", "--", "-.", ":")
INK, GRID = "#1b2733", "#d9dee3"
WORST_SHOWN = 2.5
_POINTS = 49


def epsilons_around(epsilon: float, points: int) -> Floats:
    """A range of epsilons for a picture: what people use, and the plan's own."""
    return np.geomspace(min(0.1, epsilon / 2), max(6.0, min(1.5 * epsilon, 64.0)), points)


def draw(plan: Plan) -> Any:
    """Two columns of panels; the plan's choice is marked. Open text has no number of answers, so one column only."""
    plt = require("matplotlib.pyplot", "plot")
    size = plan.domain.size if isinstance(plan.domain, ListedDomain) else None
    names = sorted(option.name for option in plan.table)
    columns = 1 if size is None else 2
    fig, axes = plt.subplots(2, columns, figsize=(4 * columns + 1.6, 5.6), squeeze=False, sharex="col", sharey="row")
    epsilon = float(plan.epsilon)
    epsilons = epsilons_around(epsilon, _POINTS)
    errors = [_errors(plan.domain, f"{x:.6g}", plan) for x in epsilons]
    _column(axes[:, 0], names, epsilons, errors, epsilon, plan)
    axes[1, 0].set(xlabel="epsilon", ylabel="times the smallest")
    axes[0, 0].set(ylabel=f"noise, n = {plan.n:,}")
    if size is not None:
        sizes = np.unique(np.geomspace(2, max(4096, 4 * size), _POINTS).astype(np.int64))
        errors = [_errors(Integers(0, int(x) - 1), plan.epsilon, plan) for x in sizes]
        _column(axes[:, 1], names, sizes, errors, size, plan)
        axes[1, 1].set(xlabel="number of answers")
        axes[0, 1].set(title=f"epsilon {epsilon:g}")
        axes[0, 0].set(title=f"{size:,} answers")
    axes[0, -1].legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if fig.get_layout_engine() is None:
        fig.tight_layout()
    return axes


def _errors(domain: Domain, epsilon: Any, plan: Plan) -> dict[str, float]:
    try:
        return {name: built.noise(plan.n) for name, built in build(domain, epsilon, forever=plan.forever).items()}
    except (DomainError, EpsilonError):  # the first report of two stages tells less than what is kept
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
