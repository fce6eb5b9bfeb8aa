"""The planner over HTTP: the numbers of `deniable plan`, for anybody, because nothing in them is collected.

Given      two of epsilon, people and within; the third follows
Curve      the half-width of each protocol over a range of epsilons, for the picture beside the table
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from deniable import planning
from deniable._files import parse_json
from deniable.collect.server.api import Answer, Call, Operation, Parameter
from deniable.collect.server.estimates import POPULATION, RESPONDENTS
from deniable.collect.server.problems import Problem
from deniable.collect.wire import JSON
from deniable.domains import (
    RECORDS_ARE_READ_AS,
    Domain,
    Grid,
    Integers,
    Interval,
    KeyNumbers,
    Sets,
    Strings,
    read_discovered,
    read_record,
)
from deniable.errors import DeniableError, DomainError, SpecError
from deniable.planning import MOST_PEOPLE, TOTAL, WORST, ZERO, Plan, epsilons_around

MOST_CATEGORIES = 1 << 27
MOST_COLUMNS = 16
POINTS = 25
SLOW_STEP = 4
"""Of a protocol that is slow to build, the curve has only one point in so many."""
_ASKED = ("categories", "number", "unit", "record", "places", "discover", "read", "at_most")
_END = "-?[0-9]{1,9}([.][0-9]{1,9})?"


class PlannedProtocol(msgspec.Struct):
    """One protocol; the columns of `deniable plan`."""

    name: str
    noise: float
    """The standard error of the share of an answer that nobody gave; of a mean, or of the median, in its unit."""
    half_width: float
    """How far the interval of the plan's figure reaches to either side."""
    visible: float | None
    """The smallest share that stands out; null if none does."""
    report_bytes: int
    device: float
    """Random bytes that a report draws."""
    server: float
    """Word operations that add a report to the tally."""
    counters: int
    leverage: float | None
    """How many honest reports one fake report outweighs."""
    attack: float | None
    """How often the best guess of one person's answer is right."""


class Point(msgspec.Struct):
    """Half-widths at one epsilon, by protocol."""

    epsilon: float
    half_widths: dict[str, float]


class Planned(msgspec.Struct):
    """A plan."""

    domain: str
    reads: str
    """What is estimated: "shares" of answers, the "mean", the "distribution" or "ranges" of a number, "attributes",
    the parts of a record, its "pairs" or "triples", "rectangles" of two numbers, "places", "items" of sets, "keys" with
    numbers, or what is "found" although nobody listed it."""
    unit: str
    """The unit of noise and intervals: empty for shares, and for records, where they are parts of a range."""
    epsilon: str
    n: int
    within: float
    """How far intervals of the figure reach to either side, noise and the error of asking n people together."""
    level: float
    population: bool
    solved: str
    """Which of epsilon, n and within followed from the other two."""
    objective: str
    """What the protocols are compared by: the noise at share "zero", the "worst" share, the "total", or a share."""
    figure: str
    """What within and half-widths are about, in the same words."""
    choice: str
    """The protocol to use."""
    best: dict[str, Any]
    """Its spec."""
    reason: str
    table: list[PlannedProtocol]
    """All protocols, the smallest objective first."""
    curve: list[Point]


def planned(plan: Plan) -> Planned:
    content = plan.to_dict()
    table = [PlannedProtocol(**row) for row in content.pop("table")]
    return Planned(**content, choice=plan.best.name, table=table, curve=curve(plan))


def curve(plan: Plan) -> list[Point]:
    """Around the plan's epsilon, which is one of the points."""
    level = float(plan.epsilon)
    around = enumerate(epsilons_around(level, POINTS))
    points = [Point(float(x), _half_widths(plan, f"{x:.6g}", place % SLOW_STEP > 0)) for place, x in around]
    points.append(Point(level, {option.name: option.half_width for option in plan.table}))
    return sorted(points, key=lambda point: point.epsilon)


def _half_widths(plan: Plan, epsilon: str, quick: bool) -> dict[str, float]:
    try:
        built = plan.at(epsilon, quick=quick)
    except DomainError:
        return {}
    return {name: plan.half_width_of(one) for name, one in built.items()}


def _domain(query: Mapping[str, Any]) -> Domain:
    """What is asked for: one of the kinds, or open text."""
    categories, number, unit, record, places, discover, read, most = (query[name] for name in _ASKED)
    keyed = categories is not None and number is not None and most is not None
    kinds = [None if keyed else categories, number, record, places, discover]
    if sum(given is not None for given in kinds) > 1 or (unit and number is None):
        raise SpecError(
            "give one of categories, number (with its unit), record, places and discover, or none of them for open text"
        )
    if most is not None and categories is None:
        raise SpecError("at_most goes with categories, of which several may be an answer")
    if read is not None and (most is not None or discover is not None):
        raise SpecError("read goes with number, record and places")
    if places is not None and read in (None, "rectangles"):
        return Grid.parse(places)
    if read is not None and (record if read in RECORDS_ARE_READ_AS else number) is None:
        raise SpecError(
            "read goes with number, rectangles, pairs and triples with a record, and rectangles with places"
        )
    interval = None
    if number is not None:
        low, _, high = number.partition("..")
        interval = Interval(low, high, unit or "")
    if most is not None:
        return Sets(categories, most) if interval is None else KeyNumbers(categories, interval, most)
    if interval is not None:
        return interval
    if discover is not None:
        return read_discovered(discover)
    if record is not None:
        domain = read_record(parse_json(record, "the record"))
        if len(domain.columns) > MOST_COLUMNS:
            raise SpecError(f"a record is planned here for at most {MOST_COLUMNS} columns")
        return domain
    return Strings() if categories is None else Integers(0, categories - 1)


async def plan(call: Call) -> Response:
    if not call.service.settings.plans:
        raise Problem("notFound", "this service makes no plans: the command deniable plan has the same numbers")
    query = call.query
    epsilon, people, within = (query[name] for name in ("epsilon", "people", "within"))
    if sum(given is not None for given in (epsilon, people, within)) != 2:
        raise Problem("malformed", "give two of epsilon, people and within: the third follows")
    try:
        domain = _domain(query)
    except DeniableError as wrong:
        raise Problem("malformed", str(wrong)) from None

    def work() -> bytes:
        made = planning.plan(
            domain,
            epsilon=epsilon,
            n=people,
            within=within,
            read=query["read"],
            level=query["level"],
            objective=query["objective"],
            population=query["about"] == POPULATION,
        )
        return msgspec.json.encode(planned(made))

    answer = await call.service.side_work.answer(tuple(sorted(query.items())), work)
    return Response(answer, 200, None, JSON)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/plan",
        "plan",
        "Which protocol, how many people, or which epsilon: the same numbers as the command deniable plan.",
        plan,
        {200: Answer("The plan.", {JSON: Planned})},
        problems=("notFound", "overloaded"),
        parameters=(
            Parameter(
                "categories",
                {"type": "integer", "minimum": 2, "maximum": MOST_CATEGORIES},
                "how many possible answers, from 2 to 2^27; without it, number and record, answers are open text",
            ),
            Parameter(
                "number",
                {"type": "string", "pattern": f"^{_END}[.][.]{_END}$"},
                "the mean of a number between two ends, such as 0..24, or its distribution",
            ),
            Parameter(
                "read",
                {"type": "string", "enum": ["mean", "distribution", "ranges", *RECORDS_ARE_READ_AS]},
                "what to estimate of a number; its mean by default. of a distribution, intervals are the median's, "
                "and of ranges those of a typical range; rectangles goes with a record of two numbers, or with places "
                "whose promise holds between any two of them, pairs and triples with any record",
            ),
            Parameter(
                "places",
                {"type": "string", "pattern": "^[1-9][0-9]{0,3}x[1-9][0-9]{0,3}$"},
                "a grid of places, columns and rows, such as 16x12; epsilon is that of one cell side",
            ),
            Parameter(
                "discover",
                {"type": "string", "pattern": "^[1-9][0-9]{0,3}(bytes|bits)?$"},
                "answers that nobody can list: texts of up to so many bytes, such as 16, or identifiers: 64bits",
            ),
            Parameter(
                "at_most",
                {"type": "integer", "minimum": 1, "maximum": 1 << 16},
                "several of the categories may be an answer, of which so many are reported at most; with number, each "
                "of them has a number",
            ),
            Parameter("unit", {"type": "string", "maxLength": 40}, "the unit of the number"),
            Parameter(
                "record",
                {"type": "string", "maxLength": 4000},
                'the parts of a record in JSON, as in a draft: {"smoke": ["yes", "no"], "age": {"low": 1, "high": 99}}',
            ),
            Parameter(
                "epsilon",
                {"type": "string", "pattern": "^[0-9]{1,9}([.][0-9]{1,9}|/[1-9][0-9]{0,8})?$"},
                "the epsilon of one answer, such as 1, 0.5 or 1/2",
            ),
            Parameter("people", {"type": "integer", "minimum": 1, "maximum": MOST_PEOPLE}, "how many will answer"),
            Parameter(
                "within",
                {"type": "number", "minimum": 1e-9, "maximum": 1e15},
                "how far the interval of a share may reach to either side: 0.01 is plus or minus 1 percentage point; "
                "of a mean, in its unit",
            ),
            Parameter(
                "objective",
                {
                    "type": "string",
                    "pattern": f"^({ZERO}|{WORST}|{TOTAL}|0?[.][0-9]{{1,9}}|[1-9][0-9]{{0,8}}/[1-9][0-9]{{0,8}})$",
                },
                "what protocols are compared by, and what within is about: zero, an answer that nobody gave; worst, "
                "the share where the error is largest; a share such as 0.1; or total, an answer on average. without "
                "it, worst with within, and zero otherwise",
            ),
            Parameter(
                "about",
                {"type": "string", "enum": [POPULATION, RESPONDENTS], "default": POPULATION},
                "intervals for everybody whom the respondents are drawn from, or for those who answer",
            ),
            Parameter(
                "level",
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95},
                "the confidence of the intervals, between 0 and 1",
            ),
        ),
        public=True,
    ),
)
