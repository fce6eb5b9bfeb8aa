"""A result as one document: what is estimated, how far to trust it, and its sections as data.

Document   one per question, or per part of its answers. Text, HTML, JSON, CSV, Arrow, the HTTP API and the dashboard
           all draw this document (`deniable.results.render`), so that they show the same numbers
Section    rows with the picture that shows them: bars, points, histogram, curve, map, matrix or lines
Marks      rows, or points of a picture, with a meaning, as data: {"row": 2, "quantile": 0.5}
Schema     `schema()` is the JSON Schema
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from deniable.labels import label_spec
from deniable.results.rows import Drawing, Picture, Rows, View, finite
from deniable.words import Said, plain as plain_fact

if TYPE_CHECKING:
    from deniable.results.base import Result


class Mark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row, or a point of the picture, with a meaning."""

    row: int | None = None
    """The position of the row in its section."""
    quantile: float | None = None
    """Which quantile it is."""
    figure: str = ""
    """Which other figure it is: "mean", "deviation", or "total" for all epochs together."""
    value: float | None = None
    """Where the point is, if it is not a row of its section."""
    low: float | None = None
    high: float | None = None


class Axis(msgspec.Struct):
    """One column of a table of several columns."""

    name: str
    labels: list[str]


class Section(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Rows with the picture that shows them."""

    id: str
    """What the rows are: "shares", "figures", "bins", "cumulative", "ranges", "sizes", "together", ..."""
    picture: Picture
    """What shows the rows."""
    heading: str = "value"
    """The heading of the value column."""
    unit: str = ""
    """The unit of all values; empty for shares, and if units differ: then each row has its own."""
    columns: list[str]
    """The names of the columns, in order."""
    rows: list[dict[str, Any]]
    """One object per row, with these names; an unknown number is null."""
    marks: list[Mark] = []
    """Rows, or points of the picture, with a meaning."""
    axes: list[Axis] = []
    """Tables of several columns: the rows are the combinations of their answers, row by row."""
    limits: list[float] = []
    """The ends between which all figures lie, whatever the reports are; an interval that reaches both says nothing."""
    ordered: bool = False
    """Whether the rows are always shown in full and in their own order."""
    simultaneous: bool = False
    """Whether the intervals hold for all rows at once."""
    further: bool = False
    """Whether these figures come in addition to the table of the result."""


class MostCommon(msgspec.Struct):
    """The answer that looks most common."""

    label: Any
    runner_up: Any
    share: float
    margin: float
    """Its lead over the runner-up, as a difference of shares."""
    error: float
    """The standard error of that lead."""
    confidence: float
    """The highest confidence level at which no other answer is more common."""
    level: float
    certain: bool
    """Whether that confidence level reaches the requested one; if not, there is no clear leader."""
    population: bool
    sentence: str
    """The same in words."""


class Hypothesis(msgspec.Struct):
    """One hypothesis of a decision."""

    label: Any
    p_value: float
    """If it were true: how often another hypothesis would be this many times likelier; an upper bound."""
    posterior: float
    """Its probability, if one of the hypotheses is true and all were equally likely beforehand."""
    anytime: float
    """A p-value that stays valid however often one looks."""
    rejected: bool


class Choice(msgspec.Struct, kw_only=True):
    """Which hypothesis the reports favour; wrong with probability at most `level`, if one of them is true."""

    outcome: str
    """ "favours", "undecided" or "none"."""
    favoured: Any
    """The only hypothesis that is left; null if there is not exactly one."""
    remaining: list[Any]
    """The hypotheses that are not rejected."""
    level: float
    verdict: str
    """The decision in one sentence."""
    fit: float
    """Probability that the likeliest hypothesis, if true, leads the next one by so small a margin."""
    doubt: str | None
    """Why perhaps none of the hypotheses is true, if there is a reason."""
    more: int | None
    """If undecided: about how many more people would decide; null if no number of them does."""
    hypotheses: list[Hypothesis]


class Trust(msgspec.Struct, kw_only=True):
    """How far the figures can be trusted."""

    misfit: float | None = None
    """Upper bound on how often honest reports would fit the protocol this badly; null if they were not tested."""
    warning: str | None = None
    """What to check if that is below 0.001."""
    epsilon: str | None = None
    """Epsilon of the question, exactly; null if the result does not know its protocol."""
    realized_epsilon: float | None = None
    noise_floor: float | None = None
    """The smallest share that can be distinguished from zero."""
    poisoning: float | None = None
    """If a share s of the reports is forged, a frequency moves by at most s times this."""
    leverage: float | None = None
    """Upper bound on how many honest reports of the question one forged report outweighs; null if there is no bound."""
    forgery: str = ""
    """The same in a sentence."""


class Phrase(msgspec.Struct, kw_only=True):
    """A sentence: its id and parameters, and its English text."""

    id: str
    parameters: dict[str, Any]
    text: str


class Document(msgspec.Struct, kw_only=True):
    """Everything that is shown of one result."""

    id: str = ""
    """The question."""
    part: str = ""
    """The part of the answers that this is about; empty if an answer has no parts."""
    text: str = ""
    """The question as it was asked."""
    kind: str
    """What is estimated: "shares" of answers, a "mean", ..."""
    protocol: str
    """The name of the protocol."""
    method: str
    """How the figures were estimated."""
    biased: bool = False
    """Whether the values were made consistent; the intervals are those of the unbiased values, cut to [0, 1]."""
    n: int | float
    """Number of reports: an integer, except if counts were weighted."""
    level: float
    """The confidence level of the intervals."""
    simultaneous: bool
    """Whether the intervals hold for all answers of the question simultaneously."""
    population: bool
    """Whether errors and intervals are about the population that the respondents were drawn from, or them alone."""
    fakes: int = 0
    """The number of reports that may be forged: intervals hold for the honest ones."""
    assumed: str = ""
    """What some of the intervals assume about the population; empty: nothing."""
    enough: bool = True
    """Whether there are enough answers to show figures."""
    message: str | None = None
    """The reason if there are no figures here."""
    headline: Phrase | None = None
    """The finding in words, if there is one."""
    notes: list[str] = []
    """Remarks to show with the figures."""
    remark: str = ""
    """What the table leaves out, in a sentence: for texts, which candidates stand out of the noise."""
    trust: Trust
    """How far the figures can be trusted."""
    winner: MostCommon | None = None
    """Shares: the most common answer, and how certain that is."""
    decision: Choice | None = None
    """Questions that were designed for hypotheses, within one epoch or where no device answers twice."""
    facts: dict[str, Any] = {}
    """Single numbers next to the table, by name: for texts, the share of texts that are not listed ("unlisted")."""
    sections: list[Section]
    """The figures, with the pictures that show them."""
    sentences: list[Phrase] = []
    """The sentences above that the catalogue of words has, for readers of other languages."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table: of all sections but the further ones."""
        return [row for section in self.sections if not section.further for row in section.rows]

    def section(self, id: str) -> Section | None:
        """The section with this id, if there is one."""
        return next((section for section in self.sections if section.id == id), None)


def sentences(texts: Iterable[str | None]) -> list[Phrase]:
    """Those of these texts that the catalogue has, with their ids and parameters."""
    return [
        Phrase(id=text.id, parameters={name: plain_fact(fact) for name, fact in text.facts.items()}, text=str(text))
        for text in texts
        if isinstance(text, Said)
    ]


def kept(document: Document) -> Document:
    """The same document, with the ids of its sentences in a list of their own."""
    trust, choice = document.trust, document.decision
    said = [*document.notes, document.remark, trust.warning, trust.forgery]
    said += [] if choice is None else [choice.verdict, choice.doubt]
    document.sentences = [*document.sentences, *sentences(said)]
    document.notes, document.remark = list(map(str, document.notes)), str(document.remark)
    trust.forgery, trust.warning = str(trust.forgery), None if trust.warning is None else str(trust.warning)
    if choice is not None:
        choice.verdict, choice.doubt = str(choice.verdict), None if choice.doubt is None else str(choice.doubt)
    return document


def schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    return msgspec.json.schema(Document)


def plain(document: Document) -> dict[str, Any]:
    """A document as JSON values."""
    content: dict[str, Any] = msgspec.to_builtins(document)
    return content


CONSISTENT = ("consistent", "consistent_low", "consistent_high")


def drawn(drawing: Drawing, beside: Rows | None = None) -> Section:
    """A section; `beside` has the same rows after they were made consistent."""
    rows = drawing.rows
    records = rows.records(json=True)
    columns = list(records[0]) if records else list(rows.columns)
    if beside is not None:
        for row, other in zip(records, beside.records(json=True), strict=True):
            row |= dict(zip(CONSISTENT, (other["value"], other["low"], other["high"]), strict=True))
        columns += CONSISTENT
    units = set(rows.units)
    return Section(
        id=drawing.id,
        picture=drawing.picture,
        heading=drawing.heading,
        unit=(units.pop() if len(units) == 1 else "") if rows.units else rows.unit,
        columns=columns,
        rows=records,
        marks=[Mark(**mark) for mark in drawing.marks],
        axes=[Axis(name, list(labels)) for name, labels in drawing.axes],
        limits=[] if drawing.limits is None else list(map(float, drawing.limits)),
        ordered=rows.is_ordered,
        simultaneous=rows.simultaneous,
        further=drawing.is_further,
    )


def documented(
    result: Result, view: View, rows: Rows, beside: Rows | None = None, further: bool = True, winner: bool = True
) -> Document:
    """The document of a result whose table is `rows`; without `further` only the table."""
    misfit = result.misfit
    drawings = result.drawings(view, rows, further)
    leader = result.leader(rows) if winner else None
    choice = result.choice()
    said = result.finding()
    made = Document(
        kind=result.kind,
        protocol=result.protocol,
        method=result.method,
        biased=result.is_biased,
        n=result.n,
        level=rows.level,
        simultaneous=rows.simultaneous,
        population=rows.population,
        fakes=result.fakes,
        assumed=rows.assumption,
        headline=None if said is None else Phrase(id=said[0], parameters=dict(said[1]), text=said[2]),
        notes=result.notes,
        remark=result.remark,
        trust=Trust() if misfit is None else Trust(misfit=misfit.p_value, warning=misfit.message),
        winner=None if leader is None else most_common(leader.to_dict() | {"sentence": str(leader)}),
        decision=None if choice is None else chosen(choice),
        facts={name: finite(fact) if isinstance(fact, float) else fact for name, fact in result.facts.items()},
        sections=[drawn(one, None if one.is_further else _part(beside, one.rows)) for one in drawings],
    )
    return kept(made)


def _part(beside: Rows | None, rows: Rows) -> Rows | None:
    """The consistent form of a section's rows: of a table in one section, the whole table."""
    return beside if beside is not None and list(beside.labels) == list(rows.labels) else None


def most_common(content: Mapping[str, Any]) -> MostCommon:
    return MostCommon(**content)


def chosen(content: Mapping[str, Any]) -> Choice:
    """A decision, from the values of `Result.choice`."""
    names = ("label", "p_value", "posterior", "anytime", "rejected")
    listed: Sequence[Sequence[Any]] = content["hypotheses"]
    hypotheses = [Hypothesis(**dict(zip(names, (label_spec(row[0]), *row[1:]), strict=True))) for row in listed]
    return Choice(**{**content, "hypotheses": hypotheses})
