"""The planner over HTTP: the numbers of `deniable plan`, open to everyone because nothing in them is collected.

Given      two of epsilon, people and within; the third follows
Curve      the half-width of each protocol over a range of epsilons, for the chart next to the table
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from deniable import planning
from deniable._files import parse_json
from deniable.answers import from_options, read_answers, reading, readings
from deniable.collect.server.api import Answer, Call, Operation, Parameter
from deniable.collect.server.estimates import POPULATION, RESPONDENTS
from deniable.collect.server.problems import Problem
from deniable.collect.wire import JSON
from deniable.domains import RECORDS_ARE_READ_AS, Domain
from deniable.errors import DeniableError, DomainError, SpecError
from deniable.planning import MOST_PEOPLE, TOTAL, WORST, ZERO, Plan, epsilons_around

MOST_CATEGORIES = 1 << 27
MOST_COLUMNS = 16
POINTS = 25
SLOW_STEP = 4
"""For a protocol that is slow to build, the curve has only one in this many points."""
_ASKED = ("answers", "categories", "number", "unit", "record", "places", "discover", "at_most")
_END = "-?[0-9]{1,9}([.][0-9]{1,9})?"


class PlannedProtocol(msgspec.Struct):
    """One protocol; the columns of `deniable plan`."""

    name: str
    noise: float
    """The standard error of the share of an answer that nobody gave; for a mean or median, in its unit."""
    half_width: float
    """Half-width of the interval of the plan's figure."""
    visible: float | None
    """The smallest share that can be detected; null if there is no such share."""
    report_bytes: int
    device: float
    """Random bytes drawn per report."""
    server: float
    """Word operations to add one report to the tally."""
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
    """The unit of noise and intervals: empty for shares, and for records, where they are fractions of a range."""
    epsilon: str
    n: int
    within: float
    """Half-width of the figure's interval, from both the noise and the sampling error of asking n people."""
    level: float
    population: bool
    solved: str
    """Which of epsilon, n and within was computed from the other two."""
    objective: str
    """The criterion for comparing protocols: the noise at share "zero", the "worst" share, the "total", or a share."""
    figure: str
    """What within and the half-widths are about, in the same words."""
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
    """Points around the plan's epsilon, which is one of them."""
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


def _asked(query: Mapping[str, Any]) -> tuple[Domain, str | None]:
    """The domain in the query, and what to estimate."""
    options: dict[str, Any] = {name: query[name] for name in _ASKED}
    for name in ("record", "answers"):
        if options[name] is not None:
            options[name] = parse_json(options[name], f"the {name}")
    options["unit"] = options["unit"] or ""
    kinds = ("categories", "number", "record", "places", "discover", "answers")
    is_text = all(options[name] is None for name in kinds)
    answers = from_options(text=is_text, spell=lambda name: "" if name == "text" else name, **options)
    read = query["read"]
    if read is not None and (options["categories"] is not None or read not in readings(answers)):
        raise SpecError(
            "read goes with number, rectangles, pairs and triples with a record, and rectangles with places"
        )
    if isinstance(answers, Mapping) and "kind" in answers:
        raise SpecError("specs of domains are not planned here: the command deniable plan takes them")
    domain = read_answers(answers)
    refuse_large(domain)
    return domain, read or reading(answers)


def refuse_large(domain: Domain) -> None:
    """Raise SpecError for answers that take too long to plan here."""
    sizes = [getattr(one, "size", 0) for one in (domain, getattr(domain, "items", None), *domain.parts.values())]
    if max(sizes) > MOST_CATEGORIES:
        raise SpecError(f"at most {MOST_CATEGORIES:,} possible answers are planned here")
    if len(domain.parts) > MOST_COLUMNS:
        raise SpecError(f"a record is planned here for at most {MOST_COLUMNS} columns")


async def plan(call: Call) -> Response:
    if not call.service.settings.plans:
        raise Problem("notFound", "this service makes no plans: the command deniable plan has the same numbers")
    query = call.query
    epsilon, people, within = (query[name] for name in ("epsilon", "people", "within"))
    if sum(given is not None for given in (epsilon, people, within)) != 2:
        raise Problem("malformed", "give two of epsilon, people and within: the third follows")
    try:
        domain, read = _asked(query)
    except DeniableError as wrong:
        raise Problem("malformed", str(wrong)) from None

    def work() -> bytes:
        made = planning.plan(
            domain,
            epsilon=epsilon,
            n=people,
            within=within,
            read=read,
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
                "answers",
                {"type": "string", "maxLength": 4000},
                'what can be answered in JSON, as in a draft: ["yes", "no"], {"low": 0, "high": 9}; the other forms '
                "are short, and without any of them answers are open text",
            ),
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
                "answers that nobody can list: texts of up to this many bytes, such as 16, or identifiers: 64bits",
            ),
            Parameter(
                "at_most",
                {"type": "integer", "minimum": 1, "maximum": 1 << 16},
                "several of the categories may be an answer, and at most this many are reported; with number, each of "
                "them has a number",
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
