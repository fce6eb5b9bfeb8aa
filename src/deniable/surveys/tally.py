"""The tallies of a survey's questions in one document.

Digest     SHA-256("deniable-survey-tally-v1" + NUL + canonical JSON), by which the next round of a campaign names it
File       JSON: kind "survey-tally", version 1, the survey's fingerprint, and a tally for each question's id; that of a
           protocol alone (`Survey.of`) is written as the protocol's tally
Addition   question by question, exactly; tallies of another survey are refused with both fingerprints
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable._files import atomic_write, load_json
from deniable.errors import MismatchError, NumberError, SpecError
from deniable.protocols import Tally
from deniable.specs import fingerprint, keys

if TYPE_CHECKING:
    from deniable.surveys.survey import Survey

VERSION = 1


@dataclass(frozen=True)
class SurveyTally:
    """One tally per question, all of one survey.

    Args:
        survey: Fingerprint of the survey.
        tallies: One tally per question, by its id.

    >>> from deniable.protocols import GRR
    >>> from deniable.surveys import Question, Survey
    >>> survey = Survey("habits", [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))])
    >>> (SurveyTally.empty(survey) + SurveyTally.empty(survey))["smoke"].n
    0
    """

    survey: str
    tallies: Mapping[str, Tally]

    @classmethod
    def empty(cls, survey: Survey) -> SurveyTally:
        return cls(survey.fingerprint, {q.id: q.protocol.empty(survey.source(q.id)) for q in survey})

    def __getitem__(self, id: str) -> Tally:
        return self.tallies[id]

    def __add__(self, other: SurveyTally) -> SurveyTally:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        if other.survey != self.survey or set(other.tallies) != set(self.tallies):
            raise MismatchError(f"tallies of different surveys do not add: {self.survey} and {other.survey}")
        try:
            total = {id: tally + other.tallies[id] for id, tally in self.tallies.items()}
        except OverflowError:
            raise NumberError("the sum of these tallies does not fit in 64 bits: a file is broken or forged") from None
        return SurveyTally(self.survey, total)

    def check(self, survey: Survey) -> None:
        """Raise an error unless these are tallies of this survey, question by question."""
        if self.survey != survey.fingerprint:
            raise MismatchError(f"this is a tally of survey {self.survey}, not of {survey.fingerprint}")
        keys(self.tallies, [question.id for question in survey], "the tally")
        for question in survey:
            tally, protocol = self.tallies[question.id], question.protocol
            if tally.fingerprint != protocol.fingerprint:
                raise MismatchError(
                    f"the tally of question {question.id!r} is of protocol {tally.fingerprint}, "
                    f"not of {protocol.fingerprint}"
                )
            if tally.source != survey.source(question.id):
                raise MismatchError(f"the tally of question {question.id!r} has the source {tally.source!r}")
            if tally.counts.size != protocol.tally_size:
                raise MismatchError(
                    f"the tally of question {question.id!r} has {tally.counts.size} counters, not {protocol.tally_size}"
                )

    @property
    def digest(self) -> str:
        """A hash of exactly these counts of this survey, as 64 hexadecimal digits."""
        return fingerprint("survey-tally", self.spec())

    def spec(self) -> dict[str, Any]:
        tallies = {id: tally.spec() for id, tally in self.tallies.items()}
        if [(tally.fingerprint, tally.source) for tally in self.tallies.values()] == [(self.survey, None)]:
            return next(iter(tallies.values()))
        return {"kind": "survey-tally", "version": VERSION, "survey": self.survey, "tallies": tallies}

    @classmethod
    def from_spec(cls, spec: Any) -> SurveyTally:
        if not isinstance(spec, Mapping) or spec.get("kind") != "survey-tally":
            raise SpecError('these are not the tallies of a survey: they need "kind": "survey-tally"')
        if type(spec.get("version")) is not int or spec["version"] != VERSION:
            raise SpecError(f"tallies of version {spec.get('version')!r} are unknown here: only {VERSION} is")
        keys(spec, ("kind", "version", "survey", "tallies"), "the tally")
        if not isinstance(spec["survey"], str) or not isinstance(spec["tallies"], Mapping):
            raise SpecError('"survey" is a fingerprint and "tallies" has a tally for each question')
        return cls(spec["survey"], {id: read_tally(entry) for id, entry in spec["tallies"].items()})

    def to_json(self) -> str:
        return json.dumps(self.spec(), separators=(",", ":"), ensure_ascii=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write JSON; the file appears whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> SurveyTally:
        return load_json(path, cls.from_spec)


def read_tally(spec: Any) -> Tally:
    """One tally; a number beyond 64 bits is bad input like any other."""
    try:
        return Tally.from_spec(spec)
    except OverflowError:
        raise SpecError("a number in the tally does not fit in 64 bits: the file is broken or forged") from None
