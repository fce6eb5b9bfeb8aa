"""A survey in words, in a table and in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deniable.channels.levels import epsilon_text
from deniable.cli import output
from deniable.cli.output import shown
from deniable.cli.targets import level, many
from deniable.domains import Categories, Domain
from deniable.labels import text
from deniable.surveys import Survey, Terms
from deniable.surveys.promises import band, kept, lifetime
from deniable.surveys.terms import span, write_time

if TYPE_CHECKING:
    from deniable.planning import Plan

_MOST_ANSWERS = 40


def print_survey(survey: Survey) -> None:
    output.facts(
        [
            ("survey", shown(survey.name)),
            ("fingerprint", survey.fingerprint),
            ("questions", str(len(survey))),
            ("epsilon", _level(survey)),
            ("report", _sizes(survey)),
            *(_terms(survey, survey.terms) if survey.terms is not None else []),
        ]
    )
    output.write("\n")
    rows = [
        [q.id, q.text, p.name, _answers(p.domain), epsilon_text(p.epsilon), str(p.report_bytes)]
        for q, p in ((question, question.protocol) for question in survey)
    ]
    head = ["question", "text", "protocol", "answers", "epsilon", "bytes"]
    output.table(head, [[shown(cell) for cell in row] for row in rows], left=4)


def print_valid(survey: Survey) -> None:
    """That it is valid, and what it promises."""
    output.facts(
        [
            ("valid", shown(survey.name)),
            ("fingerprint", survey.fingerprint),
            ("epsilon", _level(survey)),
            ("lifetime", _lifetime(survey)),
            ("protection", band(survey)),
        ]
    )


def print_plans(survey: Survey, plans: Mapping[str, Plan]) -> None:
    """Why the planner chose what it did."""
    if not plans:
        return
    rule = "" if survey.terms is None else survey.terms.longitudinal.rule
    few = ", of those with few enough different reports to be memoized" if rule == "memoize" else ""
    output.write(f"\nthe planner's choice{few}:\n")
    for id, plan in plans.items():
        output.write(f"  {id}: {plan.reason}\n")


def _level(survey: Survey) -> str:
    return f"{level(survey)}, all questions together"


def _lifetime(survey: Survey) -> str:
    if survey.terms is None:
        return f"epsilon {epsilon_text(survey.epsilon)} if answered once: a survey for files keeps no count"
    budget = survey.terms.budget
    bound = f"{lifetime(survey)}{'' if survey.shows_changes else ' at most'}"
    return f"{bound}; a budget of {epsilon_text(budget.epsilon)} for the group {budget.group}"


def _sizes(survey: Survey) -> str:
    answers = f"randomized answers {many(survey.report_bytes, 'byte')}"
    if survey.terms is None:
        return answers
    from deniable.collect.wire import HEADER_BYTES, ID_BYTES

    return f"{answers}, {HEADER_BYTES + ID_BYTES + survey.report_bytes} sent in all"


def _answers(domain: Domain) -> str:
    """The possible answers, in full unless there are very many."""
    if not isinstance(domain, Categories):
        return str(domain)
    listed = ", ".join(map(text, domain.values[:_MOST_ANSWERS]))
    more = f" and {domain.size - _MOST_ANSWERS} more" if domain.size > _MOST_ANSWERS else ""
    return f"the {domain.size} categories ({listed}{more})"


def _epochs(terms: Terms) -> str:
    if terms.count == 1:
        return f"one epoch of {span(min(terms.epochs.seconds, terms.expires - terms.opens))}"
    return f"{terms.count} epochs of {span(terms.epochs.seconds)}{''.join(f', {cut}' for cut in cut_epochs(terms))}"


def cut_epochs(terms: Terms) -> list[str]:
    """The first and the last epoch, where opening and end leave only a part of them."""
    first = terms.epochs.start(terms.first + 1) - terms.opens
    last = terms.expires - terms.epochs.start(terms.last)
    ends = (("first", first), ("last", last)) if terms.count > 1 else ()
    return [f"the {name} of {span(length)}" for name, length in ends if length < terms.epochs.seconds]


def _clocks(terms: Terms) -> list[tuple[str, str]]:
    ends = (("early", terms.epochs.early), ("late", terms.epochs.late))
    said = [f"{many(count, 'epoch')} {name}" for name, count in ends if count]
    return [("accepted", f"answers up to {' and '.join(said)}")] if said else []


def _terms(survey: Survey, terms: Terms) -> list[tuple[str, str]]:
    rule = terms.longitudinal
    often = "once" if rule.epochs == 1 else f"once an epoch, {rule.epochs} times at most"
    if rule.rule == "memoize" and rule.values == 1:
        often += "; the first answer is randomized once and repeated"
    elif rule.rule == "memoize":
        often += f"; up to {rule.values} different answers are randomized, each once, and repeated"
    return [
        ("lifetime", _lifetime(survey)),
        ("protection", band(survey)),
        ("answered", often),
        ("owner", shown(terms.owner)),
        ("purpose", shown(terms.purpose)),
        ("open", f"{write_time(terms.opens)} to {write_time(terms.expires)}, {_epochs(terms)}"),
        *_clocks(terms),
        ("kept", kept(survey)),
        ("shown from", f"{many(terms.show_from, 'answer')} on"),
        *([("replaces", terms.replaces)] if terms.replaces else []),
    ]


def describe(survey: Survey) -> dict[str, Any]:
    return {
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "epsilon": str(survey.epsilon),
        "realized_epsilon": survey.realized_epsilon,
        "ratio": str(survey.ratio),
        "protection": band(survey),
        "lifetime_epsilon": None if survey.lifetime_epsilon is None else str(survey.lifetime_epsilon),
        "budget_epsilon": str(survey.budget_epsilon),
        "realized_lifetime_epsilon": survey.realized_lifetime_epsilon,
        "terms": None if survey.terms is None else survey.terms.spec(),
        "questions": [
            {
                "id": question.id,
                "text": question.text,
                "source": survey.source(question.id),
                "protocol": question.protocol.spec(),
                "fingerprint": question.protocol.fingerprint,
                "realized_epsilon": question.protocol.realized_epsilon,
                "report_bytes": question.protocol.report_bytes,
                "tally_size": question.protocol.tally_size,
            }
            for question in survey
        ],
    }
