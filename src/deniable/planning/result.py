"""A plan: the protocols side by side, the one to use, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable.domains import Domain
from deniable.exact import epsilon_text
from deniable.protocols import Protocol
from deniable.results import RESPONDENTS

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
    """How far the interval of a share reaches to either side, for the share where that is most."""
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
            "epsilon": exact.canonical(self.epsilon),
            "n": self.n,
            "within": self.within,
            "level": self.level,
            "population": self.population,
            "solved": self.solved,
            "best": self.best.spec(),
            "reason": self.reason,
            "table": [option.to_dict() for option in self.table],
        }

    def plot(self) -> Any:
        """Errors against epsilon and against the number of answers; returns the axes."""
        from deniable.planning.chart import draw

        return draw(self)

    def _title(self) -> str:
        answers = self.domain.short
        given = {
            "answers": answers,
            "epsilon": f"epsilon {epsilon_text(self.epsilon)}",
            "n": f"{self.n:,} people",
            "within": f"{100 * self.level:g} % intervals within +-{self.within:.3g}",
        }
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
