"""Worth: what a protocol is worth to an analyst, and what it costs; planner, drafts, risk and pages read only this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.record import Record

if TYPE_CHECKING:
    from deniable.protocols.protocol import Protocol
    from deniable.protocols.reports import Bytes

WORD_BYTES = 8
"""Bytes of a random word."""
MUCH_WORK = 1 << 36
"""Word operations of some minutes on one core: from here on it matters which protocol takes less work."""


class Cost(NamedTuple):
    """What one report costs.

    Args:
        random_bytes: Random bytes that the device draws on average, in the documented order of a single report.
        operations: Word operations that add the report to the tally.
    """

    random_bytes: float
    operations: float


class Worth(Record):
    """What n people are worth, for one figure, about the population or about those who answered.

    Args:
        **facts: The fields of the record, by name; those that are left out keep their defaults.
    """

    read: str
    """What an estimate is about: "shares" of answers, the "mean" of a number, its "distribution", ..."""
    answers: bool
    """Whether the protocol's estimates answer a question about this."""
    noise: float
    """The standard error that the protocol adds to its headline figure, in the worst case."""
    error: float
    """Noise and sampling error of the headline figure, in the worst case, in the question's unit."""
    share: Callable[[float], float] | None
    """The same error for an answer of this share; None if the figure is not the share of an answer."""
    total: float | None
    """Root mean square error over all answers, if all are equally common; None without a list of answers."""
    unit: str
    """The unit of the headline figure; "" for a share."""
    scale: float
    """The width of the range of the headline figure, in its unit: 1 for a share."""
    tests: int
    """The number of figures of an estimate that are tested together."""
    strata: tuple[str, ...]
    """The parts of an answer that split the results into strata, in clear or randomized."""
    unreadable: str
    """Why nothing can be estimated from the reports; "" if something can. A question refuses such a protocol."""
    parts: Mapping[str, tuple[Protocol, int]]
    """The protocols of the parts of an answer, with the approximate number of people each gets; by default one part
    without a name."""
    split: Callable[[Any], Mapping[str, tuple[Protocol, Any]]]
    """(tally) -> the protocols of the parts of an answer, and the tally of each part's own reports."""
    hypotheses: tuple[Any, ...]
    """The names of the hypotheses that the question was designed for, if any."""
    takes_laws: bool
    """Whether `decide` also takes laws that the question was not designed for."""
    decide: Callable[..., Any]
    """(tally, level=1/20, laws=None) -> the decision between the hypotheses or these laws; None without any."""
    cost: Cost
    leverage: Any
    """How many honest reports one forged report outweighs, for the figure that it favours; None if not known."""
    moved: Any
    """The headline figure moves at most by this times the share of forged reports, in its unit; None if not known."""
    forgeries: Callable[[Any], Bytes]
    """Encoded answers -> reports that include the one that favours them most together: what a forger sends."""
    guess: Any
    """How often the best guess of an answer is right, given the report, if all answers are equally likely before."""
    visible: Callable[[float], float | None]
    """The smallest figure that stands out of the noise at a confidence level; None if that is not defined."""
    resolves: bool
    """Whether each single number stands out of the noise, so that a fitted shape gains nothing."""
    remark: Callable[[float], str]
    """Why to use the protocol, at a confidence level, in a plan without other candidates; "" leaves it to the
    planner."""
    truth: Callable[..., NDArray[np.float64]]
    """(answers, people=None) -> the figures of an estimate without noise, in the order of its table."""
    variances: Callable[..., NDArray[np.float64]]
    """(answers, people=None) -> the variance of each of these figures among these people."""
    spreads: Callable[..., NDArray[np.float64]]
    """(answers) -> the variance over people of what each figure is about."""
    scales: NDArray[np.float64]
    """Errors of the figures are divided by these before a study averages them."""
    formula_for: str
    """What `variances` is about, if not about exactly these people."""

    defaults: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("noise", "error", "share", "total", "parts", "split", "cost", "leverage", "moved", "forgeries", "guess")
    ) | {
        "read": "shares",
        "answers": True,
        "unit": "",
        "scale": 1.0,
        "tests": 1,
        "strata": (),
        "hypotheses": (),
        "takes_laws": False,
        "decide": lambda tally, level=None, laws=None: None,
        "unreadable": "",
        "visible": lambda level=0.95: None,
        "resolves": False,
        "remark": lambda level=0.95: "",
        "truth": None,
        "variances": None,
        "spreads": None,
        "scales": lambda: np.ones(1),
        "formula_for": "the worst case",
    }
    lazy: ClassVar[frozenset[str]] = frozenset(
        ("noise", "error", "total", "unit", "scale", "tests", "strata", "unreadable", "parts", "cost", "leverage")
    ) | {"moved", "guess", "resolves", "scales", "read", "answers"}
