"""A survey: a named set of questions, each with its protocol, published once and identified by its fingerprint.

File       JSON in UTF-8: kind "survey", version, name, questions with id, text and the spec of a protocol; version 2
           adds the terms of a collection (`Terms`), without which a survey is for files only
Identity   SHA-256("deniable-survey-v1" + NUL + canonical JSON), so white space and the order of keys do not count
Languages  its texts may come in several languages, all of them inside the fingerprint: see `translations`
Privacy    one submission answers every question: epsilons and deltas add up, likelihood ratios multiply, all exactly.
           All questions have one relation (`Guarantee`): levels of different relations cannot be added
Protocol   alone is a survey of one question, `Survey.of(protocol)`, for files and commands. It has no name; spec,
           fingerprint, reports and tallies are those of the protocol
Versions   an unknown key is refused by name, because an ignored field could be a promise that is not kept. A new field
           raises the version; old versions keep loading, and a survey is written in the lowest version that has its
           fields, so that no upgrade changes a fingerprint
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deniable import exact
from deniable._files import atomic_write, load_json
from deniable.errors import DomainError, LabelError, NumberError, ReportError, SpecError
from deniable.exact import epsilon_text, largest_text
from deniable.protocols import Protocol, Reports, Tally
from deniable.protocols.memoized import FEW_FORMS, all_linking, linking_horizon
from deniable.protocols.structures import Stages
from deniable.randomness import Bits
from deniable.specs import as_text, canonical_bytes, fingerprint, keys, short
from deniable.surveys.draft import plan_draft
from deniable.surveys.panel import Panel, refuse_without_panel
from deniable.surveys.question import TOO_MANY_FORMS, Question, read_question, too_linkable
from deniable.surveys.tally import SurveyTally
from deniable.surveys.terms import EVOLVING, MEMOIZE, Longitudinal, Terms
from deniable.surveys.translations import as_original, check_known, own_texts, read_translations

if TYPE_CHECKING:
    from deniable.surveys.results import SurveyEstimate

PLAIN, COLLECTED = 1, 2

MOST_QUESTIONS = 1000

_SURVEY = ("kind", "version", "name", "questions")
_LANGUAGES = ("language", "translations")


@dataclass(frozen=True)
class Survey:
    """A named set of questions, with the terms of a collection if it is published.

    Args:
        name: Name of the survey.
        questions: At least one question; their ids differ.
        terms: The promises of a collection over the network; None for a survey for files.
        language: Code of the language of these texts, such as "en"; needed for translations.
        translations: The same texts in other languages, by their codes.

    Raises:
        SpecError: There are no questions, ids repeat, the terms do not fit the questions, or a translation is not
            complete.

    >>> from deniable.protocols import GRR, OUE
    >>> smoke = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))
    >>> drink = Question("drink", "How often do you drink?", OUE(["never", "weekly", "daily"], epsilon="1/2"))
    >>> survey = Survey("habits", [smoke, drink])
    >>> survey.epsilon, survey.source("smoke") == survey.fingerprint + "/smoke"
    (Fraction(3, 2), True)
    """

    name: str
    questions: tuple[Question, ...]
    terms: Terms | None = None
    language: str | None = None
    translations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        name: str,
        questions: Iterable[Question],
        terms: Terms | None = None,
        language: str | None = None,
        translations: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        object.__setattr__(self, "name", as_text(name, "the name of a survey"))
        object.__setattr__(self, "questions", tuple(questions))
        if not self.questions:
            raise SpecError("a survey needs at least one question")
        _check_number(self.questions)
        ids = [question.id for question in self.questions]
        for known in ids:
            if ids.count(known) > 1:
                raise SpecError(f"two questions have the id {known!r}: give each its own")
        self._check_sums()
        object.__setattr__(self, "terms", terms)
        self._check_shares(() if terms is None else terms.collectors)
        if terms is not None:
            self._check_terms(terms)
        object.__setattr__(self, "language", language)
        object.__setattr__(self, "translations", read_translations(language, translations, own_texts(self)))

    @classmethod
    def of(cls, protocol: Protocol, id: str = "report") -> Survey:
        """A protocol alone, as a survey of one question without a text.

        Its identity is the protocol's: spec, fingerprint, reports and tallies are those of the protocol. It has no
        terms, so that no service collects it.

        Args:
            protocol: The protocol; it is not checked as a question is, because nobody publishes it.
            id: Id of the question, which names its column in a table or a file.

        Returns:
            The survey.

        Raises:
            SpecError: This is no protocol.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> Survey.of(coin).fingerprint == coin.fingerprint, Survey.of(coin).kind
        (True, 'protocol')
        """
        if not isinstance(protocol, Protocol):
            raise SpecError(f"a protocol is wanted, not a {type(protocol).__name__}")
        survey = cls.__new__(cls)
        values: dict[str, Any] = {"name": "", "questions": (Question.of(protocol, id),), "terms": None}
        for name, value in (values | {"language": None, "translations": {}}).items():
            object.__setattr__(survey, name, value)
        return survey

    def _check_shares(self, collectors: Sequence[str]) -> None:
        """A report without an epsilon of its own is sent in shares, to as many collectors as it is made for."""
        for question in self.questions:
            asked = question.protocol
            shared = asked.law().sum
            if not asked.traits.local and shared is None:
                raise SpecError(
                    f"question {question.id!r} is asked by {asked.name}, whose reports keep no epsilon by themselves: "
                    "only those of SecureSum are sent in shares"
                )
            if shared is not None and shared.collectors != len(collectors):
                named = f"the survey names {len(collectors)}" if collectors else "the survey names none"
                raise SpecError(
                    f"question {question.id!r} is split between {shared.collectors} collectors, and {named}: give "
                    'their addresses as "collectors" in the terms of a collection'
                )
            if asked.traits.local and collectors:
                raise SpecError(
                    f"question {question.id!r} is asked by {asked.name}, whose reports are not added up in shares: "
                    "with several collectors use SecureSum"
                )

    def _check_sums(self) -> None:
        asked: dict[str, str] = {}
        for question in self.questions:
            asked.setdefault(question.protocol.guarantee.relation, question.id)
        if len(asked) > 1:
            about = " and ".join(f"{id!r} is about the relation {relation!r}" for relation, id in asked.items())
            raise SpecError(
                f"question {about}: their epsilons cannot be added; ask them in separate surveys, each with a budget "
                "group of its own"
            )
        level, delta = Fraction(0), Fraction(0)
        for question in self.questions:
            level, delta = level + question.protocol.epsilon, delta + question.protocol.guarantee.delta
            try:
                exact.short_number(level, "the sum of the questions' epsilons")
                exact.short_number(delta, "the sum of the questions' deltas")
            except NumberError as long:
                raise SpecError(str(long)) from None

    def _check_terms(self, terms: Terms) -> None:
        if terms.budget.relation != self.relation:
            raise SpecError(
                f"the questions are about the relation {self.relation!r} and the budget about "
                f"{terms.budget.relation!r}: they are not the same secret; name the relation of the questions in the "
                "budget, and a group of its own"
            )
        if self.budget_delta > terms.budget.delta:
            raise SpecError(
                f"a device may answer {_times(self.draws)}, with a delta of {exact.canonical(self.budget_delta)} in "
                f'all, more than its budget of {exact.canonical(terms.budget.delta)}: give the budget a "delta" '
                "that covers it, or ask less often"
            )
        if self.budget_epsilon > terms.budget.epsilon:
            raise SpecError(self._over_budget(terms.budget.epsilon))
        if terms.campaign is not None:
            terms.campaign.check(self)
        rule = terms.longitudinal
        if rule.is_two_stage:
            self._check_stages(rule)
        self._check_evolving(terms)
        if rule.keeps:
            self._check_links(rule)

    def _check_links(self, rule: Longitudinal) -> None:
        """Check that repeated reports, or reports from kept states, do not distinguish a device from all others."""
        protocols = [question.protocol for question in self]
        links = all_linking(protocols, rule.epochs)
        if not rule.is_two_stage and links > FEW_FORMS:
            raise SpecError(TOO_MANY_FORMS)
        if rule.linkable and links <= FEW_FORMS:
            raise SpecError(
                f"the reports of a device cannot be recognized as its own in {rule.epochs:,} epochs: leave "
                '"linkable" out'
            )
        if links > FEW_FORMS and not rule.linkable:
            raise SpecError(too_linkable(linking_horizon(protocols) or 0, rule.epochs))

    def _check_evolving(self, terms: Terms) -> None:
        """A stream of answers is reported by a protocol that is made for it, with the same epochs and changes."""
        rule = terms.longitudinal
        for question in self:
            made = question.protocol.parameters() if question.protocol.guarantee.relation == "stream" else None
            if (made is not None) != rule.is_evolving:
                raise SpecError(
                    f'question {question.id!r} is asked by {question.protocol.name}: the rule "{EVOLVING}" goes with '
                    "protocols for answers that change, such as Evolving, and only with them"
                )
            if made is None:
                continue
            if (made["epochs"], made["changes"]) != (rule.epochs, rule.changes):
                raise SpecError(
                    f"question {question.id!r} is about {made['epochs']} epochs and {made['changes']} changes, and "
                    f"the survey about {rule.epochs} and {rule.changes}: they have to be the same"
                )
            if terms.count > rule.epochs:
                raise SpecError(
                    f"the collection has {terms.count} epochs, and a device reports over {rule.epochs}: give as many"
                )

    def _check_stages(self, rule: Longitudinal) -> None:
        one = [question for question in self if question.protocol.law().stages is None]
        if one:
            raise SpecError(
                f"question {one[0].id!r} is asked by {one[0].protocol.name}, which has one stage: for the rule "
                f'"{rule.rule}" use a protocol with two, such as LGRR'
            )
        first = sum((question.protocol.epsilon for question in self), Fraction(0))
        forever = sum((stages.forever for stages in self._stages or ()), Fraction(0))
        for name, found, stated in (("first", first, rule.first), ("forever", forever, rule.forever)):
            if found != stated:
                raise SpecError(
                    f'"{name}" is the sum over the questions, epsilon {epsilon_text(found)}, not '
                    f"{epsilon_text(stated or Fraction(0))}"
                )

    def _over_budget(self, budget: Fraction) -> str:
        if self._stages is not None:
            return (
                f"a device may keep {self.draws} answers, which costs epsilon {epsilon_text(self.budget_epsilon)} in "
                f'all, more than its budget of {epsilon_text(budget)}: lower "forever" '
                f'({largest_text(budget / self.draws)} fits), raise the budget, or keep fewer "values"'
            )
        fits, each = budget / self.draws, "submission"
        if len({question.protocol.epsilon for question in self}) == 1:
            fits, each = fits / len(self), "question"
        less = "ask less" if self.draws == 1 else "ask less often"
        return (
            f"a device may answer {_times(self.draws)}, which costs epsilon {epsilon_text(self.budget_epsilon)} "
            f"in all, more than its budget of {epsilon_text(budget)}: lower epsilon ({largest_text(fits)} a {each} "
            f"fits), raise the budget, or {less}"
        )

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, id: str) -> Question:
        for question in self.questions:
            if question.id == id:
                return question
        raise LabelError(f"there is no question {id!r}; there are {', '.join(q.id for q in self.questions)}")

    # -- languages ---------------------------------------------------------------------------------

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the texts come in, that of the survey's own texts first; none if it is not named."""
        return () if self.language is None else (self.language, *self.translations)

    def texts(self, language: str | None = None) -> Mapping[str, Any]:
        """The texts in a language, in the form of a translation; by default the survey's own.

        >>> from deniable.protocols import GRR
        >>> smoke = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))
        >>> german = {"smoke": {"text": "Rauchen Sie?", "answers": ["ja", "nein"]}}
        >>> translations = {"de": {"name": "Gewohnheiten", "questions": german}}
        >>> survey = Survey("habits", [smoke], language="en", translations=translations)
        >>> survey.texts("de")["questions"]["smoke"]["answers"], survey.languages
        (['ja', 'nein'], ('en', 'de'))
        """
        if language is None or language == self.language:
            return own_texts(self)
        check_known(self.languages, language)
        return self.translations[language]

    def original(self, id: str, answer: Any, language: str) -> Any:
        """An answer to a question in this language, as the survey's own answer at the same position."""
        own, shown = (self.texts(one)["questions"][self[id].id] for one in (None, language))
        return as_original(answer, shown, own)

    # -- identity ----------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Whose identity it has: "survey" its own, "protocol" that of the protocol that it was made of (`of`)."""
        return "survey" if self.name else "protocol"

    def spec(self) -> dict[str, Any]:
        """JSON that gives this survey again, anywhere: `Survey.from_spec(spec)`; of a protocol alone, its spec."""
        if self.kind == "protocol":
            return self.questions[0].protocol.spec()
        version = PLAIN if self.terms is None else COLLECTED
        questions = [question.spec() for question in self.questions]
        plain = {"kind": "survey", "version": version, "name": self.name, "questions": questions}
        spoken = {} if self.language is None else {"language": self.language}
        translations = {"translations": self.translations} if self.translations else {}
        return plain | spoken | translations | ({} if self.terms is None else self.terms.spec())

    @cached_property
    def canonical(self) -> bytes:
        """The bytes that are hashed."""
        return canonical_bytes(self.spec())

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.kind, self.spec())

    def source(self, id: str) -> str | None:
        """The source of this question's tally, so that it is not added to another's; None for a protocol alone."""
        return f"{self.fingerprint}/{self[id].id}" if self.kind == "survey" else None

    # -- what it promises --------------------------------------------------------------------------

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one submission that answers every question: the exact sum."""
        return sum((question.protocol.epsilon for question in self.questions), Fraction(0))

    @property
    def relation(self) -> str:
        """The relation for which epsilon holds: the same for all questions."""
        return self.questions[0].protocol.guarantee.relation

    @property
    def delta(self) -> Fraction:
        """The delta of one submission: the exact sum."""
        return sum((question.protocol.guarantee.delta for question in self.questions), Fraction(0))

    @property
    def budget_delta(self) -> Fraction:
        """Maximum that a device's ledger debits from the budget's delta for this survey."""
        return self.delta * self.draws

    @property
    def ratio(self) -> Fraction:
        """The exact largest likelihood ratio of one submission, beyond its delta; for streams, of all submissions."""
        return math.prod((question.protocol.law().kept.ratio for question in self.questions), start=Fraction(1))

    @property
    def realized_epsilon(self) -> float:
        """The epsilon of the bytes of one submission: never above epsilon."""
        return exact.log(self.ratio)

    @property
    def draws(self) -> int:
        """Maximum number of times that a device randomizes a submission in its lifetime."""
        return 1 if self.terms is None else self.terms.longitudinal.draws

    @property
    def debit(self) -> Fraction:
        """What a device's ledger debits each time that answers are randomized: epsilon, or that of the kept states.

        With two stages the debit is made once per state, and pays for all reports that are ever drawn from it.
        """
        forever = None if self.terms is None else self.terms.longitudinal.forever
        return self.epsilon if forever is None else forever

    @property
    def budget_epsilon(self) -> Fraction:
        """Maximum that a device's ledger debits for this survey."""
        return self.debit * self.draws

    @property
    def shows_changes(self) -> bool:
        """Whether equal and unequal reports of one device show when its answer changed and which earlier one returned.

        This is so if several memoized answers are repeated: then no epsilon bounds what all reports reveal.
        """
        return self.terms is not None and self.terms.longitudinal.rule == MEMOIZE and self.draws > 1

    @property
    def lifetime_epsilon(self) -> Fraction | None:
        """Exact bound on what all that a device may send reveals; None if no number holds (`shows_changes`).

        It holds between any two courses of answers over the epochs. If two stages keep several states, this is more
        than `budget_epsilon`, which holds between courses in which the same answers return in the same epochs.
        """
        if self.shows_changes:
            return None
        stages = self._stages
        if stages is None:
            return self.budget_epsilon
        each = [question.protocol.law().kept.lifetime(*self._states) for question in self]
        return sum((one for one in each if one is not None), Fraction(0))

    @property
    def realized_lifetime_epsilon(self) -> float | None:
        """The same for the bytes that leave: never above `lifetime_epsilon`."""
        if self.shows_changes:
            return None
        stages = self._stages
        if stages is None:
            return exact.log(self.ratio) * self.draws
        return sum(float(each.levels(*self._states).any) for each in stages)

    @property
    def _stages(self) -> list[Stages] | None:
        """The two stages of each question of a survey whose answers are randomized in two stages."""
        if self.terms is None or not self.terms.longitudinal.is_two_stage:
            return None
        each = [question.protocol.law().stages for question in self]
        return [stages for stages in each if stages is not None]

    @property
    def _states(self) -> tuple[int, int]:
        """Maximum number of reports that a device sends, and of the states that they are drawn from."""
        assert self.terms is not None
        return self.terms.longitudinal.epochs, self.draws

    @property
    def report_bytes(self) -> int:
        """The size of one submission's answers."""
        return sum(question.protocol.report_bytes for question in self.questions)

    @property
    def forms(self) -> int:
        """The number of different possible submissions."""
        return math.prod(question.protocol.law().forms for question in self.questions)

    # -- answers -----------------------------------------------------------------------------------

    def privatize(
        self,
        table: Any,
        columns: Mapping[str, str] | None = None,
        bits: Bits | None = None,
        panel: Panel | None = None,
    ) -> dict[str, Reports]:
        """Randomize a table of answers, one row per person: reports for each question, by its id.

        `table` is a frame of pandas or polars, an Arrow table, a DuckDB relation, or a dictionary of columns. `columns`
        says which column answers which question, {"smoke": "Do you smoke?"}; without it each question is answered by
        the column with its id. Nothing is randomized if one answer is refused. A survey whose people answer in several
        epochs, by a rule that keeps something, needs a `panel`: who answered, and in which epoch.

        >>> from deniable.protocols import GRR
        >>> survey = Survey("habits", [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))])
        >>> reports = survey.privatize({"smoke": ["yes", "no", "no"]})
        >>> len(reports["smoke"]), survey.tally(reports)["smoke"].n
        (3, 3)
        """
        from deniable.surveys.tables import as_answers, chosen_columns, questions_of, refusal, table_columns

        self._refuse_whole_reports()
        chosen = chosen_columns([question.id for question in self], columns)
        domains = {question.id: question.protocol.domain for question in self}
        if panel is None:
            refuse_without_panel(self.terms, (question.protocol for question in self))
        else:
            panel.check_questions(self, questions_of(chosen))
            chosen, domains = chosen | panel.columns, domains | panel.domains
        found = table_columns(table, chosen, domains)
        own = {} if panel is None else {key: found.pop(key) for key in panel.columns}
        made: dict[str, Any] = {}
        for id, column in found.items():
            protocol = self[id].protocol
            try:
                answers = as_answers(protocol.domain, column)
                made[id] = protocol.privatize(answers, bits).array if panel is None else protocol.domain.encode(answers)
            except DomainError as wrong:
                raise refusal(wrong, chosen.get(id, id), "the table") from None
        lengths = sorted({len(column) for column in (*made.values(), *own.values())})
        if len(lengths) > 1:
            raise ReportError(f"the columns of the table have different lengths: {', '.join(map(str, lengths))}")
        if panel is not None:
            try:
                with panel.opened(self) as session:
                    made = session.draw(own, made, bits)
            except DomainError as wrong:
                raise refusal(wrong, panel.person, "the table") from None
        protocols = {id: self[id].protocol for id in made}
        return {
            id: Reports(protocol.fingerprint, made[id], protocol.spec(), self.source(id))
            for id, protocol in protocols.items()
        }

    def _refuse_whole_reports(self) -> None:
        if self.terms is not None and self.terms.collectors:
            raise SpecError(
                "a report of this survey tells the answer by itself: it is sent in shares to its collectors, by "
                "deniable.collect.Client or deniable answer, and never stands in a table"
            )

    def tally(self, reports: Mapping[str, Reports]) -> SurveyTally:
        """Count what `privatize` returned; a question without reports has an empty tally."""
        strange = [id for id in reports if id not in {question.id for question in self}]
        if strange:
            self[strange[0]]
        counted = {q.id: q.protocol.tally(reports[q.id], self.source(q.id)) for q in self if q.id in reports}
        return SurveyTally(self.fingerprint, {**SurveyTally.empty(self).tallies, **counted})

    def estimate(self, source: SurveyTally | Mapping[str, Reports | Tally], **how: Any) -> SurveyEstimate:
        """The result of each question, by its id, from tallies or from what `privatize` returned.

        Args:
            source: The tallies of the survey, or reports or tallies by the id of their question.
            how: Options of `deniable.surveys.results.find`: `consistent`, `candidates`, `bins`, `fakes`, `assume`, ...

        Returns:
            The results, with the same forms as a single one.

        Raises:
            MismatchError: The tallies belong to another survey.

        >>> from deniable.protocols import GRR
        >>> survey = Survey("habits", [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))])
        >>> found = survey.estimate(survey.privatize({"smoke": ["yes", "no", "no"] * 1000}))
        >>> 0 < found["smoke"]["yes"].value < 1
        True
        """
        from deniable.surveys.results import UNKNOWN_EPOCHS, SurveyEstimate, epochs_matter, find

        if isinstance(source, Mapping):
            given = {self[id].id: one for id, one in source.items() if isinstance(one, Tally)}
            counted = self.tally({id: one for id, one in source.items() if not isinstance(one, Tally)})
            source = SurveyTally(self.fingerprint, {**counted.tallies, **given})
        source.check(self)
        found = {question.id: find(question.protocol, source[question.id], **how) for question in self}
        if "repeats" not in how and epochs_matter(self.terms):
            found = {id: replace(result, said=(*result.said, UNKNOWN_EPOCHS)) for id, result in found.items()}
        return SurveyEstimate(self, source, found)

    # -- files -------------------------------------------------------------------------------------

    @classmethod
    def from_spec(cls, spec: Any) -> Survey:
        """The survey of a complete spec; `from_draft` takes shorter ones."""
        if not isinstance(spec, Mapping) or spec.get("kind") != "survey":
            raise SpecError('this is not a survey: it needs "kind": "survey"')
        version = spec.get("version")
        if type(version) is not int or version not in (PLAIN, COLLECTED):
            raise SpecError(
                f"surveys of version {short(version)} are unknown here, only {PLAIN} and {COLLECTED} are: "
                "try a newer deniable"
            )
        if version == PLAIN:
            keys(spec, _SURVEY, "the survey", optional=_LANGUAGES)
        missing = [key for key in _SURVEY if key not in spec]
        if missing:
            raise SpecError(f"the survey misses {', '.join(missing)}")
        if not isinstance(spec["questions"], list):
            raise SpecError('"questions" is not a list')
        _check_number(spec["questions"])
        questions = [read_question(entry, place) for place, entry in enumerate(spec["questions"], start=1)]
        rest = {key: value for key, value in spec.items() if key not in (*_SURVEY, *_LANGUAGES)}
        spoken = {key: spec[key] for key in _LANGUAGES if key in spec}
        survey = cls(spec["name"], questions, Terms.from_spec(rest) if version == COLLECTED else None, **spoken)
        if survey.spec() != spec:
            raise SpecError("the survey is not in canonical form: its texts must be in Unicode form NFC")
        return survey

    @classmethod
    def from_draft(cls, draft: Any, now: float | None = None) -> Survey:
        """The survey of a draft: answers and epsilon per question, protocols by name or chosen by the planner."""
        return plan_draft(cls, draft, now)[0]

    def save(self, path: str | Path) -> None:
        """Write the file, readable by people; it appears whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json().encode())

    def to_json(self) -> str:
        return json.dumps(self.spec(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        return load_json(path, cls.from_spec)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _check_number(questions: Sequence[Any]) -> None:
    if len(questions) > MOST_QUESTIONS:
        raise SpecError(f"a survey has at most {MOST_QUESTIONS} questions")
