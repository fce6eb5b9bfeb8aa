"""Planning a collection: which protocol, how many people, which epsilon; and how much one report reveals.

`plan(domain, ...)` with any two of epsilon, n (or people) and within; the `Plan` explains itself when printed.
`half_width` gives the accuracy of a given protocol, and `information` the information in its reports.

Objective  the standard error by which protocols are compared: "zero" is the noise in the share of an answer that
           nobody gave, in the worst case over the other answers; "worst" the largest error of any share; a number
           between 0 and 1 the error of that share; "total" the root mean square error over all answers, if all are
           equally common. The default is "worst" with `within` and "zero" without it. Figures other than shares
           have "zero", the noise alone, and "worst"
Rule       the smallest objective; among the protocols within 5 percent of its variance (2 percent with `within` or with
           an `objective`), the fewest report bytes; then the least work on the server, if all reports together take
           minutes. Subset selection and block designs take the size that is best for the objective
Error      exact, from the realized probabilities of each protocol as it would be built; nothing of size d is built
Forms      if reports repeat, only protocols with few different reports may be used: `forms` excludes the others
Two stages with `forever` only protocols that keep a state of that epsilon are compared; `epsilon` is that of one report
Within     z times the standard error of the objective: half the length of the interval that an estimate will show, up
           to what exact intervals for few people add. Without an objective it refers to "worst": noise plus the
           sampling error of n people, for the share where their sum is largest. `population=False` refers to the
           shares among those who answer, and leaves the sampling error out
Solving    the smallest n, or the smallest epsilon to four digits, at which the protocol that the rule chooses reaches
           `within`. No other protocol needs more than 2 percent fewer people for it, or an epsilon smaller by more
           than about 1 percent
Plan       the compared protocols, the one to use, and why. The upper part of its picture is the noise: the standard
           error of the share of an answer that nobody gave, in the worst case; the lower part is the same divided by
           the smallest one, because the good protocols are too close together to distinguish

How much one report reveals: information, capacity and Fisher information of every protocol, from its exact channel.

Information  mutual information of answer and report, in nats, when the answers follow a prior
Capacity     the largest information over all priors
Spread       n times the sum, over the answers, of the variance of the best unbiased estimate of the shares from n
             reports: the trace of the inverse Fisher information (Cramer and Rao), at the prior; infinite where reports
             do not determine the shares
Optimum      the largest information of any mechanism at this epsilon: `design.mutual_information`
Channels     enumerated from the report bytes; protocols with too many forms of a report are skipped and listed
Source       Kairouz, Oh and Viswanath 2014 (mutual information as a utility); Ye and Barg 2018 (Fisher information)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable import exact
from deniable._extras import require
from deniable._sheets import Sheet, Shown
from deniable.channels import Channel, capacity, mutual_information
from deniable.channels.inference import fisher_stderr
from deniable.channels.utilities import Distribution, read_prior
from deniable.domains import Domain, DomainLike, Integers, Interval, ListedDomain, as_domain
from deniable.errors import ChannelError, DomainError, EpsilonError, NumberError
from deniable.exact import epsilon_text
from deniable.protocols import Protocol
from deniable.protocols.choice import ASKED, MOST_COUNTERS, SAME, build, choose, digits
from deniable.protocols.law import ANY
from deniable.protocols.memoized import FEW_FORMS
from deniable.results import RESPONDENTS, Floats, quantile

if TYPE_CHECKING:
    from deniable.design import Design

__all__ = ["Information", "Option", "Plan", "Told", "half_width", "information", "plan"]

# The columns, in order: heading, attribute, format.
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


ZERO, WORST, TOTAL = "zero", "worst", "total"


@dataclass(frozen=True, slots=True)
class Option:
    """One protocol at the plan's epsilon and n.

    Args:
        protocol: The protocol.
        noise: The standard error of the share of an answer that nobody gave, in the worst case.
        half_width: Half-width of the interval of the plan's figure; for the worst case unless another objective was
            given. For a record: that of the column with the largest half-width, as a fraction of the range of the
            figure.
        visible: The smallest share whose interval excludes zero on average when all answers are examined together; None
            if even a share of one does not.
        report_bytes: Size of a report.
        device: Random bytes that a report uses.
        server: Word operations to add a report to the tally.
        counters: The length of the tally.
        leverage: How many honest reports one fake report outweighs for the answer that it favours.
        attack: How often the best guess of one person's answer is right, if all answers are equally likely beforehand.
        label: The name if the answers are made coarser first, such as the binned oracle.
    """

    protocol: Protocol
    noise: float
    half_width: float
    visible: float | None
    report_bytes: int
    device: float
    server: float
    counters: int
    leverage: float | None
    attack: float | None
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.protocol.name

    @property
    def variance(self) -> float:
        """The square of `noise`."""
        return self.noise**2

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {attribute: getattr(self, attribute) for _, attribute, _ in COLUMNS}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Shown):
    """The planner's answer.

    Args:
        domain: The possible answers.
        epsilon: Epsilon of a report.
        n: Number of people.
        level: Confidence level of the intervals.
        solved: Which of "within", "n" and "epsilon" was computed from the other two.
        table: All protocols, the smallest objective first.
        choice: The recommended option.
        reason: Why it is recommended, in one sentence.
        population: Whether intervals refer to the population, or only to those who answer.
        forever: Two-stage protocols: the epsilon of the state that a device keeps; `epsilon` is that of one report.
        epochs: Number of epochs in which devices report.
        changes: Changing answers: the maximum number of changes over all epochs; then `epsilon` is that of all reports.
        read: The requested reading; the protocol's own may differ if it answers the request as well.
        objective: The objective by which protocols are compared: "zero", "worst", "total" or a share as text.
        figure: The objective that `within` refers to, in the same words.
    """

    domain: Domain
    epsilon: Fraction
    n: int
    level: float
    solved: str
    table: tuple[Option, ...]
    choice: Option
    reason: str
    population: bool = True
    forever: Fraction | None = None
    epochs: int = 1
    changes: int | None = None
    read: str | None = None
    objective: str = ZERO
    figure: str = WORST

    @property
    def reads(self) -> str:
        """The figure that noise and intervals refer to."""
        return self.best.worth().read if self.read is None else self.read

    @property
    def unit(self) -> str:
        """The unit of noise and intervals."""
        return self.best.worth(self.n, _read(self.best, self.read)).unit

    @property
    def best(self) -> Protocol:
        """The protocol to use."""
        return self.choice.protocol

    @property
    def within(self) -> float:
        """Half-width of the interval of `figure`."""
        return self.choice.half_width

    def at(self, epsilon: Any, domain: Domain | None = None, quick: bool = False) -> dict[str, Protocol]:
        """The protocols at another epsilon, or for another domain; `quick` skips protocols that are slow to build."""
        read = None if self.changes is not None else self.best.worth().read
        return build(
            self.domain if domain is None else domain,
            epsilon,
            n=self.n,
            forever=self.forever,
            read=read,
            quick=quick,
            epochs=self.epochs,
            changes=self.changes,
            figure=lambda one: error_of(one, self.n, self.population, self.read, self.objective),
        )

    def half_width_of(self, protocol: Protocol) -> float:
        """The value of `within` with another protocol."""
        return half_width(protocol, self.n, self.level, self.population, self.read, self.figure)

    def with_shuffler(self, delta: exact.Number = "1e-8") -> str:
        """The gain from a shuffler: the local epsilon at which the plan's epsilon is the central one.

        >>> plan(["yes", "no"], epsilon=1, n=100_000).with_shuffler().partition(":")[0]
        'With a shuffler and 100,000 people you may use epsilon_0 = 7.38 for a central (1, 1e-08)'
        """
        from deniable.privacy import largest_epsilon

        def build(level: Fraction) -> Protocol:
            return build_one(self.domain, level, self.n, self.best.worth().read)

        if self.forever is not None:
            return "A shuffler amplifies the first epoch only where devices keep a state."
        if self.best.guarantee.relation != ANY:
            return "What a shuffler gains is known for promises between any two answers."
        found = largest_epsilon(self.n, self.epsilon, delta, build)
        reach = self.half_width_of(build(found.epsilon_0))
        unit = f" {self.best.worth().unit}" if self.best.worth().unit else ""
        return (
            f"With a shuffler and {self.n:,} people you may use epsilon_0 = {float(found.epsilon_0):.3g} for a central "
            f"({epsilon_text(self.epsilon)}, {float(found.delta):g}): within +-{reach:.3g}{unit} instead of "
            f"{self.within:.3g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values; `best` is a spec that `deniable.load` reads."""
        return {
            "domain": str(self.domain),
            "reads": self.reads,
            "unit": self.unit,
            "epsilon": exact.canonical(self.epsilon),
            "n": self.n,
            "within": self.within,
            "level": self.level,
            "population": self.population,
            **({} if self.forever is None else {"forever": exact.canonical(self.forever)}),
            **({} if self.changes is None else {"epochs": self.epochs, "changes": self.changes}),
            "solved": self.solved,
            "objective": self.objective,
            "figure": self.figure,
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
            "within": f"{100 * self.level:g} % intervals within +-{self.within:.3g} {self.unit}".rstrip(),
        }
        if self.forever is not None:
            given["epsilon"] += f" per report and {epsilon_text(self.forever)} for ever"
        if self.changes is not None:
            given["epsilon"] += f" for all reports of {self.epochs:,} epochs with at most {self.changes:,} changes"
        if self.figure != WORST:
            given["within"] += f" around {in_words(self.figure)}"
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

    def sheet(self) -> Sheet:
        rows = [option.to_dict() for option in self.table]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        columns["chosen"] = [option is self.choice for option in self.table]
        chosen = next(place for place, option in enumerate(self.table) if option is self.choice)
        head = [heading for heading, _, _ in COLUMNS]
        return Sheet([self._title()], head, self.cells(), [self.reason], columns, chosen)

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
_SLOW_STEP = 8  # for a protocol that is slow to build, only one point in eight


def epsilons_around(epsilon: float, points: int) -> Floats:
    """A range of epsilons for a picture: common values, and the plan's own."""
    return np.geomspace(min(0.1, epsilon / 2), max(6.0, min(1.5 * epsilon, 64.0)), points)


def draw(plan: Plan) -> Any:
    """Two columns of panels; the plan's choice is marked. Open text has no number of answers, so one column only."""
    plt = require("matplotlib.pyplot", "plot")
    size = plan.domain.size if isinstance(plan.domain, ListedDomain) else None
    drawn = [
        option for option in plan.table if plan.read is None or option.protocol.worth().read == plan.best.worth().read
    ]
    names = sorted(option.name for option in drawn)
    columns = 1 if size is None else 2
    fig, axes = plt.subplots(2, columns, figsize=(4 * columns + 1.6, 5.6), squeeze=False, sharex="col", sharey="row")
    epsilon = float(plan.epsilon)
    epsilons = epsilons_around(epsilon, _POINTS)
    errors = [_errors(plan.domain, f"{x:.6g}", plan, place % _SLOW_STEP > 0) for place, x in enumerate(epsilons)]
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


def _errors(domain: Domain, epsilon: Any, plan: Plan, quick: bool = False) -> dict[str, float]:
    try:
        built = plan.at(epsilon, domain, quick)
        return {name: protocol.worth(plan.n, _read(protocol, plan.read)).noise for name, protocol in built.items()}
    except (DomainError, EpsilonError):  # the first report needs a smaller epsilon than the kept state
        return {}


def _column(
    axes: Any, names: Sequence[str], xs: Any, errors: Sequence[dict[str, float]], at: float, plan: Plan
) -> None:
    table = np.array([[row.get(name, math.nan) for name in names] for row in errors])
    for column in table.T:  # interpolate linearly between the computed points
        known = np.flatnonzero(np.isfinite(column))
        if known.size > 1:
            between = np.arange(known[0], known[-1] + 1)
            column[between] = np.exp(np.interp(np.log(xs)[between], np.log(xs)[known], np.log(column[known])))
    shown = np.isfinite(table).any(axis=1)
    xs, table = np.asarray(xs)[shown], table[shown]
    ratios = table / np.nanmin(table, axis=1, keepdims=True)
    for i, name in enumerate(names):
        look = {"linestyle": STYLES[i % len(STYLES)], "color": COLORS[i % len(COLORS)], "linewidth": 1.5, "label": name}
        axes[0].plot(xs, table[:, i], **look)
        axes[1].plot(xs, ratios[:, i], **look)
    marked = {"marker": "o", "linestyle": "", "color": INK, "markersize": 5, "label": f"the plan: {plan.best.name}"}
    axes[0].plot([at], [plan.choice.noise], **marked)
    axes[1].plot([at], [plan.choice.noise / min(option.noise for option in plan.table)], **marked)
    axes[0].set(xscale="log", yscale="log")
    axes[1].set(xscale="log", ylim=(0.97, WORST_SHOWN))
    for ax in axes:
        ax.grid(True, color=GRID, linewidth=0.6)


SOME, FEW = 1.25, 4  # worth mentioning: up to a quarter more variance for a quarter of the bytes or less
MOST_PEOPLE = 10**10
_DIGITS = 4
_REBUILDS = 4
_CLOSE = 2.5e-5
_FAR = 40.0  # logarithm of a ratio that counts as infinite
_ANY_PEOPLE = 10_000
"""Number of people for which settings are compared before the number is known."""


def plan(
    domain: DomainLike,
    epsilon: exact.Number | None = None,
    n: int | None = None,
    within: exact.Number | None = None,
    level: float = 0.95,
    forms: float | None = None,
    people: int | None = None,
    population: bool = True,
    forever: exact.Number | None = None,
    read: str | None = None,
    epochs: int | None = None,
    memory: int | None = None,
    changes: int | None = None,
    shape: str | None = None,
    objective: exact.Number | None = None,
) -> Plan:
    """Compare the protocols for a domain; give any two of epsilon, n and within.

    `people` is another name for n, used by the command and by survey files.

    `within` is the half-width of the interval of a share at confidence `level`, for any share: 0.01 is plus or minus
    one percentage point. It refers to the population that n people are drawn from; with `population=False` to those who
    answer. With `within` the result is the smallest epsilon, or the fewest people, over all protocols. `objective`
    selects another figure for comparing protocols and for `within`: "zero", an answer that nobody gave, which is the
    default without `within`; "worst", the share with the largest error; a share, such as 0.1; or "total", the average
    over answers, if all are equally common.

    With `forms`, only protocols with at most `forms` different reports are considered. With `forever`, the epsilon of a
    state that devices keep over the epochs, two-stage protocols are compared, and `epsilon` is that of one report; with
    `epochs`, only protocols whose reports cannot be linked to one device after that many epochs. With `epochs` and
    `changes`, the maximum number of changes of an answer, `epsilon` is that of all reports of a device together,
    between any two streams of answers: `Evolving` is compared with fresh reports of epsilon / epochs.

    `read` is "shares", "mean", "distribution", "ranges", "rectangles", "places", or for a record "pairs" or "triples",
    if that is not the domain's usual reading. For a distribution, noise and `within` are those of the median, in its
    unit, if all numbers are equally common; for ranges, rectangles and places those of the share of a typical one.
    `memory` is the maximum size of a tally in bytes. `shape` states, for numbers that are read for their distribution
    or ranges, whether they are spread smoothly: "smooth" chooses a window, whose shares are then more accurate, unless
    n people are enough to estimate each number by itself; "rough" chooses a tree of ranges, whose errors hold for any
    shape; "unknown" is the default, and follows `read`. Both protocols answer both questions, and the table lists both,
    next to flat oracles over single numbers and over bins.

    Args:
        domain: A list of categories, a number of answers, or a domain.
        epsilon: Epsilon of a report; with `changes`, of all reports of a device together.
        n: Number of people.
        within: Half-width of the interval of the figure.
        level: Confidence level.
        forms: Maximum number of different reports.
        people: Another name for `n`.
        population: Whether `within` is about the population, or only about those who answer.
        forever: Epsilon of the state that a device keeps; compares two-stage protocols.
        read: The reading, if it is not the domain's usual one.
        epochs: Number of epochs in which devices report.
        memory: Maximum size of a tally, in bytes.
        changes: Maximum number of changes of an answer over all epochs.
        shape: Whether numbers are spread smoothly: "smooth", "rough" or "unknown".
        objective: The figure by which protocols are compared, and that `within` is about.

    Returns:
        The table of protocols, the choice and the reason.

    Raises:
        NumberError: Not exactly two of epsilon, n and within are given, or a number is out of range.

    >>> plan(["never", "once", "often"], epsilon=1, n=100_000).best
    GRR(Categories(['never', 'once', 'often']), epsilon=1)
    >>> plan(["yes", "no"], epsilon=1, within=0.01).n
    44971
    >>> plan(["yes", "no"], epsilon=1, within=0.01, population=False).n
    35368
    >>> [plan(16, epsilon=2, within=0.01, objective=figure).n for figure in ("worst", "0.1", "total")]
    [39677, 27018, 24465]
    >>> plan(30, epsilon=1, n=1000, forms=1024).best.name
    'BLH'
    >>> [plan(["yes", "no"], epsilon=2, n=50_000, epochs=epochs, changes=2).best.name for epochs in (4, 60)]
    ['GRR', 'Evolving']
    """
    if people is not None:
        if n is not None:
            raise NumberError("n and people are two names of one number: give one of them")
        n = people
    answers = as_domain(domain)
    quantile(level)  # raises an error for an invalid level
    if sum(given is not None for given in (epsilon, n, within)) != 2:
        raise NumberError("give two of epsilon, n (or people) and within: the third follows")
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise NumberError(f"the number of people is a positive whole number, not {n!r}")
    if forever is not None and epsilon is None:
        raise NumberError("with forever, give the epsilon of one report: it is not solved for")
    if epochs is not None and (isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1):
        raise NumberError(f"the number of epochs is a positive whole number, not {epochs!r}")
    if changes is not None and (isinstance(changes, bool) or not isinstance(changes, int) or changes < 0):
        raise NumberError(f"the number of changes is a whole number from 0 on, not {changes!r}")
    if changes is not None and (epochs is None or forever is not None):
        raise NumberError("changes go with epochs, and without forever: epsilon is that of all reports together")
    if forever is not None and epochs is not None and forms is None:
        forms = FEW_FORMS
    kept = None if forever is None else exact.as_epsilon(forever)
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 8):
        raise NumberError(f"memory is a whole number of bytes, 8 at least, not {memory!r}")
    counters = MOST_COUNTERS if memory is None else memory // 8
    if shape is not None and (shape not in (*SHAPES, UNKNOWN) or (read or answers.reads) not in SHAPES.values()):
        raise NumberError(
            "a shape is 'smooth', 'rough' or 'unknown', of numbers that are read for their distribution or ranges"
        )
    shape = None if shape == UNKNOWN else shape
    named = None if objective is None else read_objective(objective)
    by, about = named or (None if within is None else WORST), named or WORST
    goal = _Goal(answers, level, forms, population, kept, read, epochs or 1, counters, changes, shape, by, about)
    if within is None:
        return goal.plan(exact.as_epsilon(epsilon), int(n or 0), "within")
    wanted = float(exact.fraction(within, "within"))
    if not wanted > 0:
        raise NumberError(f"within is how far an interval reaches to either side, a positive number, not {within!r}")
    if n is None:
        chosen = exact.as_epsilon(epsilon)
        return goal.plan(chosen, goal.people(chosen, wanted), "n")
    return goal.plan(goal.epsilon(int(n), wanted), int(n), "epsilon")


def read_objective(given: exact.Number) -> str:
    """An objective in its stored form: its name, or a share as text.

    >>> read_objective("worst"), read_objective(0.1), read_objective("1/4")
    ('worst', '0.1', '0.25')
    """
    if given in (ZERO, WORST, TOTAL):
        return str(given)
    with suppress(NumberError):
        share = exact.fraction(given, "the objective")
        if 0 < share < 1:
            return exact.shown(share)
    raise NumberError(f'an objective is "zero", "worst", "total" or a share between 0 and 1, not {given!r}')


def in_words(objective: str) -> str:
    """An objective in words."""
    words = {ZERO: "an answer that nobody gave", WORST: "any answer", TOTAL: "an answer on average"}
    return words.get(objective) or f"an answer of share {objective}"


def half_width(
    protocol: Protocol,
    n: int,
    level: float,
    population: bool = True,
    read: str | None = None,
    objective: str = WORST,
) -> float:
    """Half-width of the interval of the headline figure, in the worst case.

    Args:
        protocol: The protocol.
        n: Number of people.
        level: Confidence level.
        population: Whether the interval is about the population, or only about those who answer.
        read: The reading; the protocol's own if None.
        objective: The figure: "zero", "worst", "total" or a share as text.

    Returns:
        The half-width, in the unit of the figure.
    """
    return quantile(level) * error_of(protocol, n, population, read, objective)


def error_of(protocol: Protocol, n: int, population: bool, read: str | None, objective: str) -> float:
    """The standard error of an objective."""
    worth = protocol.worth(n, _read(protocol, read), population)
    if objective == ZERO:
        return worth.noise
    if objective == WORST:
        return worth.error
    if objective == TOTAL and worth.total is not None:
        return worth.total
    if objective != TOTAL and worth.share is not None:
        return worth.share(float(Fraction(objective)))
    raise NumberError(f"the objective {objective} is about shares of answers: {protocol.name} has zero and worst")


def _read(protocol: Protocol, read: str | None) -> str | None:
    """What a protocol is judged by: the requested reading, or its own if its estimates do not answer the request."""
    return read if read is not None and protocol.worth(1, read).answers else None


UNKNOWN = "unknown"
SHAPES = {"smooth": "distribution", "rough": "ranges"}
"""The reading for numbers of a known shape: single numbers that many people give make it rough."""
SHAPE_UNKNOWN = {
    "distribution": "a distribution was asked for, and fitting one is nearest where numbers are spread smoothly",
    "ranges": "ranges were asked for, and its errors hold for any shape",
}


_BINS = tuple(2**power for power in range(1, 11))


@dataclass(frozen=True, slots=True)
class _Goal:
    """The requirements, which stay fixed while people or epsilon are searched for."""

    domain: Domain
    level: float
    forms: float | None
    population: bool
    forever: Fraction | None = None
    read: str | None = None
    epochs: int = 1
    counters: int = MOST_COUNTERS
    changes: int | None = None
    shape: str | None = None
    objective: str | None = None
    """The requested objective; without it protocols are compared by their noise."""
    figure: str = WORST
    """The objective that `within` refers to."""

    def error(self, protocol: Protocol, n: int) -> float:
        """The error by which protocols are compared."""
        return error_of(protocol, n, self.population, self._asked, self.objective or ZERO)

    def _built(self, epsilon: Fraction, n: int | None) -> dict[str, Protocol]:
        """The protocols with their settings for n people; without n, for any number of people."""
        return build(
            self.domain,
            epsilon,
            self.forms,
            n,
            forever=self.forever,
            read=self.read,
            epochs=self.epochs,
            counters=self.counters,
            changes=self.changes,
            rivals=self.forever is None,
            figure=None if self.objective is None else lambda one: self.error(one, n or _ANY_PEOPLE),
        )

    @property
    def _asked(self) -> str | None:
        """The requested reading, if protocols with different readings can answer it."""
        asked = self.read or self.domain.reads
        return asked if asked in SHAPES.values() else None

    def _chosen(self, protocols: Mapping[str, Protocol], n: int) -> str:
        """The protocol for the requested reading, unless the shape selects another.

        If every number can be estimated alone, nothing is left to smooth, and ranges are more accurate for any shape.
        """
        reads = self._asked if self.shape is None else SHAPES[self.shape]
        if self.shape == "smooth" and any(protocol.worth(n).resolves for protocol in protocols.values()):
            reads = "ranges"
        return choose(protocols, n, reads, None if self.objective is None else lambda one: self.error(one, n))

    def half_width(self, protocol: Protocol, n: int) -> float:
        return half_width(protocol, n, self.level, self.population, self._asked, self.figure)

    def reach(self, protocols: Mapping[str, Protocol], n: int) -> float:
        return self.half_width(protocols[self._chosen(protocols, n)], n)

    def _check_range(self, protocols: Mapping[str, Protocol], within: float) -> None:
        """Refuse intervals as wide as the range of the figure: they carry no information."""
        asked = self.read or self.domain.reads
        own = [one for one in protocols.values() if one.worth().read == asked] or list(protocols.values())
        if within >= (most := max(one.worth().scale for one in own)):
            hint = "5 percentage points are 0.05" if most == 1 else "it is in the unit of the number"
            raise NumberError(
                f"within is less than {most:g}, the range of the figure: intervals of +-{within:g} say nothing; {hint}"
            )

    def people(self, epsilon: Fraction, within: float) -> int:
        protocols = self._built(epsilon, None)
        self._check_range(protocols, within)
        for _ in range(_REBUILDS):  # settings may depend on the number of people
            n = self._fewest(epsilon, protocols, within)
            protocols = self._built(epsilon, n)
            if self.reach(protocols, n) <= within:
                break
        return n

    def _fewest(self, epsilon: Fraction, protocols: Mapping[str, Protocol], within: float) -> int:
        """The smallest number of people with which these protocols reach `within`."""

        @cache
        def missing(n: int) -> float:
            return self.reach(protocols, n) / within

        if (least := missing(MOST_PEOPLE)) > 1:
            raise NumberError(
                f"at epsilon {exact.shown(epsilon)} no number of people gives intervals of +-{within:.3g}: with 10^10, "
                f"more than there are, they are +-{within * least:.3g}; raise epsilon or accept wider ones"
            )
        if missing(1) <= 1:
            return 1
        found: int = _narrowed(
            *(missing, 1, MOST_PEOPLE),
            inside=lambda guess, low, high: min(max(round(guess), low + 1), high - 1),
            wide=lambda low, high: high - low > 1,
        )[1]
        return found

    def epsilon(self, n: int, within: float) -> Fraction:
        @cache
        def missing(epsilon: Fraction) -> float:
            try:
                return self.reach(self._built(epsilon, n), n) / within
            except (DomainError, EpsilonError):  # the epsilon of a fresh report may be too small
                return math.inf

        low, high = exact.SMALLEST_EPSILON, exact.LARGEST_EPSILON
        while missing(high) == math.inf and high > 1:  # some domains have no protocol at the largest epsilon
            high /= 2
        self._check_range(self._built(high, n), within)
        if missing(high) > 1:
            least = quantile(self.level) / math.sqrt(4 * n) if (self.read or self.domain.reads) == "shares" else 0.0
            alone = f", for asking {n:,} alone leaves +-{least:.3g}" if self.population and least > within else ""
            raise NumberError(
                f"no epsilon gives intervals of +-{within:.3g} with {n:,} people{alone}: ask more people or accept "
                "wider ones"
            )
        if missing(low) <= 1:
            return low
        low, _ = _narrowed(
            *(missing, low, high),
            inside=lambda guess, low, high: _rounded(min(max(guess, low * (1 + _CLOSE)), high * (1 - _CLOSE)), 8),
            wide=lambda low, high: high > low * (1 + 4 * _CLOSE),
        )
        return _first(lambda epsilon: missing(epsilon) <= 1, _rounded(float(low), _DIGITS))

    def plan(self, epsilon: Fraction, n: int, solved: str) -> Plan:
        protocols = self._built(epsilon, n)
        options = {name: self.option(protocol, n) for name, protocol in protocols.items()}
        choice = options[self._chosen(protocols, n)]
        rows = [*options.values(), *self._binned(epsilon, n)]
        # A requested figure is the one in the column; without it protocols are compared by their noise.
        by = _noise if self.objective is None else _half_width
        table = tuple(sorted(rows, key=lambda option: (digits(by(option)), option is not choice, option.name)))
        among = few = ""
        if self.forms is not None and self.forever is None:
            among = f"Among the protocols with at most {self.forms:,} different reports, "
            few = f" There are at most {self.forms:,} different reports."
        elif self.forms is not None:
            among = (
                f"Among the protocols whose reports cannot be recognized as one device's in {self.epochs:,} epochs, "
            )
        if self.changes is not None:
            among = f"With epsilon {epsilon_text(epsilon)} for all {self.epochs:,} epochs together, including changes, "
        own = choice.protocol.worth(n, population=self.population).remark(self.level)
        reason = f"{own}{few}" if own else among + _reason(choice, table, epsilon, by) + self._over_epochs(choice, n)
        reason += self._beside(choice, table) + self._of_common(choice, table)
        streams = (self.epochs, self.changes)
        return Plan(
            *(self.domain, epsilon, n, self.level, solved, table, choice, reason, self.population, self.forever),
            *streams,
            read=self._asked,
            objective=self.objective or ZERO,
            figure=self.figure,
        )

    def _binned(self, epsilon: Fraction, n: int) -> Iterator[Option]:
        """The binned oracle: numbers cut into the best number of bins, whose shares one protocol estimates and sums.

        Its error assumes that the numbers inside a bin are evenly spread.
        """
        if self._asked is None or self.forever is not None or not isinstance(self.domain, Interval | Integers):
            return
        from deniable.protocols.frequency.histogram import in_order
        from deniable.protocols.ranges.cells import best_protocol

        size = self.domain.size if isinstance(self.domain, Integers) else math.inf
        width = float(self.domain.high - self.domain.low)
        found = []
        for bins in (bins for bins in _BINS if bins < size):
            with suppress(ChannelError):
                protocol = best_protocol(bins, epsilon)
                facts = in_order(protocol, n, self._asked, width, 1 / (bins * math.sqrt(12)), self.population)
                assert facts is not None
                figures = protocol.worth(n).but(**facts)
                few = self.forms is None or protocol.law().forms <= self.forms
                if few and protocol.tally_size <= self.counters:
                    found.append((figures.noise, bins, protocol, figures))
        if not found:
            return
        noise, bins, protocol, figures = min(found, key=lambda one: one[:2])
        reach = quantile(self.level) * figures.error
        name = f"{protocol.name} of {bins} bins"
        yield replace(self.option(protocol, n), noise=noise, half_width=reach, visible=None, label=name)

    def _beside(self, choice: Option, table: Sequence[Option]) -> str:
        """Distributions and ranges: the accuracy of the other protocols, and why this one was chosen."""
        if self._asked is None or len(table) < 2 or self.forever is not None:
            return ""
        unit = f" {choice.protocol.worth(1, _read(choice.protocol, self._asked)).unit}".rstrip()
        points, of = (1.0, unit) if self._asked == "distribution" else (100.0, " percentage points")
        what = "the median" if self._asked == "distribution" else "a typical range"
        each = [f"{one.name} +-{points * one.half_width:.3g}{of}" for one in table if one is not choice]
        bins = " Bins count what lies inside of one as evenly spread." if any(one.label for one in table) else ""
        if self._asked == "distribution" and any(one.protocol.worth().read == "shares" for one in table):
            bins += " Oracles that add up shares have no interval of the median: theirs is that of the share below it."
        own = f"its own error, if nothing is assumed, is +-{points * choice.half_width:.3g}{of}"
        why = {
            "smooth": "the numbers are assumed to be spread smoothly, and then its shares are the most accurate",
            "rough": "many people are assumed to give the same few numbers, and its errors hold for any shape",
            None: SHAPE_UNKNOWN[self._asked],
        }[self.shape]
        if self.shape == "smooth" and choice.protocol.worth().read == "ranges":
            why = "with this many people each number stands out by itself, and then no shape needs to be fitted"
        return f" {choice.name} is chosen because {why}; {own}. The others, for {what}: {', '.join(each)}.{bins}"

    def _of_common(self, choice: Option, table: Sequence[Option]) -> str:
        """Warn if the protocol, chosen for rare answers, is much worse than another one for common answers."""
        best = min(table, key=lambda option: option.half_width)
        if self.objective is not None or choice.protocol.worth(1, _read(choice.protocol, self._asked)).share is None:
            return ""
        if choice.half_width**2 <= SOME * best.half_width**2:
            return ""
        return (
            f" It is chosen for rare answers: intervals of any share are within +-{best.half_width:.3g} with "
            f'{best.name} instead of +-{choice.half_width:.3g} (objective "worst").'
        )

    def _over_epochs(self, choice: Option, n: int) -> str:
        """The total over several epochs, in a sentence or two."""
        protocol = choice.protocol
        if self.changes is not None and protocol.guarantee.relation != "stream":
            return f" Each report is drawn afresh, at epsilon {epsilon_text(protocol.epsilon)}."
        if self.forever is None or self.epochs == 1:
            return ""
        kept, any_two = protocol.law().kept.noise, protocol.law().kept.lifetime(self.epochs)
        average = choice.noise * math.sqrt(kept + (1 - kept) / self.epochs)
        bound = "" if any_two is None else f", and up to {float(any_two):.4g} between any two streams of answers"
        forever = epsilon_text(self.forever)
        return (
            f" The average over {self.epochs:,} epochs of people who never change has noise {average:.3g}. All reports "
            f"of a device tell epsilon {forever} where it keeps one state{bound} where it keeps more."
        )

    def option(self, protocol: Protocol, n: int) -> Option:
        return Option(
            protocol=protocol,
            noise=protocol.worth(n, _read(protocol, self._asked)).noise,
            half_width=self.half_width(protocol, n),
            visible=protocol.worth(n, population=self.population).visible(self.level),
            report_bytes=protocol.report_bytes,
            device=protocol.worth().cost.random_bytes,
            server=protocol.worth().cost.operations,
            counters=protocol.tally_size,
            leverage=protocol.worth().leverage,
            attack=protocol.worth().guess,
        )


def build_one(domain: Domain, epsilon: Any, n: int, read: str) -> Protocol:
    """The protocol that the rule chooses."""
    built = build(domain, epsilon, n=n, read=read, quick=True)
    return built[choose(built, n)]


def _narrowed(
    missing: Callable[[Any], float],
    low: Any,
    high: Any,
    inside: Callable[[float, Any, Any], Any],
    wide: Callable[[Any, Any], bool],
) -> tuple[Any, Any]:
    """Narrow the bracket in which a falling ratio passes 1, when each evaluation may take long.

    Interpolates linearly in logarithms, because the ratio is close to a power of people, and of epsilon. An end that
    stays twice counts half (the Illinois rule), and every fourth step bisects. `inside` gives a value near a guess
    between the ends.
    """
    above, below = (_log(missing(end)) for end in (low, high))
    stayed = steps = 0
    while wide(low, high):
        steps += 1
        part = 0.5 if steps % 4 == 0 else above / (above - below)
        guess = inside(math.exp(math.log(low) + part * (math.log(high) - math.log(low))), low, high)
        found = _log(missing(guess))
        if found > 0:
            low, above, below = guess, found, below / 2 if stayed > 0 else below
            stayed = 1
        else:
            high, below, above = guess, found, above / 2 if stayed < 0 else above
            stayed = -1
    return low, high


def _log(ratio: float) -> float:
    """The logarithm of a ratio, capped where the ratio is unknown."""
    return max(-_FAR, min(_FAR, math.log(ratio))) if ratio > 0 else -_FAR


def _first(reached: Callable[[Fraction], bool], epsilon: Fraction) -> Fraction:
    """The next number of four digits at which `reached` holds; the choice may change in between."""
    while not reached(epsilon):
        epsilon = min(_rounded(float(epsilon) * (1 + 10.0**-_DIGITS), _DIGITS), exact.LARGEST_EPSILON)
    return epsilon


def _rounded(value: float, digits: int) -> Fraction:
    """The value rounded up to `digits` digits."""
    return Fraction(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def _noise(option: Option) -> float:
    return option.noise


def _half_width(option: Option) -> float:
    return option.half_width


def _reason(choice: Option, table: Sequence[Option], epsilon: Fraction, by: Callable[[Option], float]) -> str:
    """Why the choice: by noise, or by the requested intervals, whose squares are proportional to people."""
    first, asked = table[0], by is _half_width
    same, extra = (ASKED, "people") if asked else (SAME, "noise variance")

    def times(option: Option, other: Option) -> float:
        return (by(option) / by(other)) ** 2

    close = [option.name for option in table if option is not choice and times(option, first) <= same]
    if choice is first:
        rivals = f"; {_listed(close)} within {100 * same - 100:.0f} %, with no fewer bytes per report" if close else ""
        said = f"{choice.name} {'needs the fewest people' if asked else 'has the least noise'}{rivals}"
    else:
        more = times(choice, first) - 1
        verb = "needs" if asked else "has"
        price = f"the {'people' if asked else 'noise'} of {first.name}, and"
        if more >= 5e-4:
            price = f"{100 * more:.1f} % more {extra} than {first.name}, but"
        saved = "less work on the server"
        if choice.report_bytes < first.report_bytes:
            saved = f"{choice.report_bytes:,} bytes per report instead of {first.report_bytes:,}"
        said = f"{choice.name} {verb} {price} {saved}"
    small = [option for option in table if FEW * option.report_bytes <= choice.report_bytes]
    if small and times(small[0], choice) <= SOME:
        more = 100 * (times(small[0], choice) - 1)
        said += f"; {small[0].name} would do with {small[0].report_bytes:,} for {more:.0f} % more {extra}"
    return said + (". An epsilon this large protects little." if epsilon > 8 else ".")


def _listed(names: Sequence[str]) -> str:
    return names[0] + " is" if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]} are"


# -- how much one report reveals -------------------------------------------------------------------------


# Enumerating this many cells takes seconds; a channel of a thousand unary reports takes ten times as long.
MOST_CELLS = 1 << 13


@dataclass(frozen=True, slots=True)
class Told:
    """The information in a report of one protocol.

    Args:
        name: Name of the protocol.
        information: Mutual information between answer and report, in nats.
        capacity: The largest mutual information over all priors, in nats.
        spread: Sum of the variances of the estimated shares, times the number of reports.
    """

    name: str
    information: float
    capacity: float
    spread: float

    @classmethod
    def of(cls, name: str, channel: Channel, prior: Distribution | None = None) -> Told:
        """The same figures for any channel; the default prior is uniform."""
        weights = _even(len(channel.inputs)) if prior is None else read_prior(prior, channel.inputs)
        errors = fisher_stderr(channel.rows, np.ones(1), weights, rank=None)
        return cls(name, mutual_information(channel, weights), capacity(channel).value, float(np.square(errors).sum()))


@dataclass(frozen=True, slots=True)
class Information(Shown):
    """Protocols by information, largest first; the optimum of any mechanism; protocols with too many report forms.

    Args:
        epsilon: The guarantee of every protocol.
        rows: The protocols, with the most informative first.
        best: The mechanism with the largest mutual information.
        left_out: Names of the protocols with too many report forms.
    """

    epsilon: Fraction
    rows: tuple[Told, ...]
    best: Design
    left_out: tuple[str, ...]

    def sheet(self) -> Sheet:
        names = ("name", "information", "capacity", "spread")
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        body = [[row.name, *(f"{getattr(row, name):.4g}" for name in names[1:])] for row in self.rows]
        said = f"At epsilon {epsilon_text(self.epsilon)} no mechanism gives more than {self.best.value:.4g} nats."
        others = [f"Too many forms of a report: {', '.join(self.left_out)}."] if self.left_out else []
        head = ["protocol", "information, nats", "capacity, nats", "spread"]
        return Sheet([said], head, body, others, columns)


def information(
    domain: ListedDomain,
    epsilon: Any,
    prior: Distribution | None = None,
    protocols: Iterable[Protocol] | None = None,
    max_cells: int = MOST_CELLS,
) -> Information:
    """The information in a report about an answer that follows `prior`, for each protocol.

    Args:
        domain: The possible answers.
        epsilon: The guarantee.
        prior: A probability per answer; uniform if None.
        protocols: The protocols to compare; the planner's list if None.
        max_cells: Channels with more cells than this are left out.

    Returns:
        The protocols by information, with the optimum.

    >>> from deniable import GRR, Categories
    >>> colours = Categories(["red", "green", "blue"])
    >>> found = information(colours, 1, protocols=[GRR(colours, 1)])
    >>> [(told.name, round(told.information, 4)) for told in found.rows], round(found.best.value, 4)
    ([('GRR', 0.1233)], 0.1233)
    """
    from deniable import design

    level = exact.as_epsilon(epsilon)
    if protocols is None:
        protocols = [one.protocol for one in plan(domain, epsilon=level, n=1000, objective=TOTAL).table]
    rows, left_out = [], []
    for protocol in protocols:
        try:
            channel = protocol.channel(max_cells)
        except ChannelError:
            left_out.append(protocol.name)
            continue
        rows.append(Told.of(protocol.name, channel, prior))
    weights = _even(domain.size) if prior is None else read_prior(prior, tuple(domain.labels))
    best = design.mutual_information(weights, level)
    return Information(level, tuple(sorted(rows, key=lambda told: -told.information)), best, tuple(left_out))


def _even(size: int) -> Any:
    return np.full(size, 1 / size)
