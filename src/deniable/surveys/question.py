"""One question of a survey: its id, the text that people see, and the protocol of the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.errors import DeniableError, SpecError
from deniable.protocols import Protocol, load
from deniable.protocols.memoized import FEW_FORMS
from deniable.protocols.wrapped import check_wrapped
from deniable.specs import as_text, check_texts, keys, short

TOO_MANY_FORMS = (
    "memoized answers would tell devices apart, because their bytes repeat and, all questions together, have more than "
    f"{FEW_FORMS:,} forms: offer fewer answers, ask fewer questions, use protocols with few outputs such as GRR, or "
    'the rule "none"'
)


def too_linkable(horizon: int, epochs: int) -> str:
    """Why two stages are refused if their states would work as a cookie."""
    until = f"after {horizon:,} epochs" if horizon else "from the first epoch on"
    return (
        f"two stages would tell devices apart: {until} the reports of a device fit each other more than {FEW_FORMS:,} "
        f"times better than those of two devices, so that its kept states work as a cookie, and the survey has "
        f'{epochs:,} epochs. Ask for fewer epochs, offer fewer answers, use LOLOHA or LGRR, or say "linkable": true in '
        '"longitudinal", and the page tells people what that means'
    )


_ID = re.compile(r"[a-z0-9_-]{1,64}")
_QUESTION = ("id", "text", "protocol")


@dataclass(frozen=True)
class Question:
    """One question of a survey.

    Args:
        id: Short name: 1 to 64 characters of a-z, 0-9, _ and -.
        text: The question as people see it.
        protocol: The protocol of the answer.

    Raises:
        SpecError: The id is not valid, or the protocol cannot be asked in a survey.
    """

    id: str
    text: str
    protocol: Protocol

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise SpecError(f"the id of a question is 1 to 64 characters of a-z, 0-9, _ and -, not {short(self.id)}")
        if not isinstance(self.protocol, Protocol):
            raise SpecError(f"question {self.id!r} needs a protocol, not a {type(self.protocol).__name__}")
        check_wrapped(self.protocol)
        if self.protocol.worth().unreadable:
            raise SpecError(f"question {self.id!r} could never be evaluated: {self.protocol.worth().unreadable}")
        object.__setattr__(self, "text", as_text(self.text, f"the text of question {self.id!r}"))
        check_texts(self.protocol.spec(), f"an answer or key of question {self.id!r}")

    @classmethod
    def of(cls, protocol: Protocol, id: str) -> Question:
        """The question of a protocol alone, without a text: it is for files, and shown to nobody."""
        question = cls.__new__(cls)
        for name, value in (("id", id), ("text", ""), ("protocol", protocol)):
            object.__setattr__(question, name, value)
        return question

    def spec(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "protocol": self.protocol.spec()}


def read_question(entry: Any, place: int) -> Question:
    if not isinstance(entry, Mapping):
        raise SpecError(f"question {place} is not an object with id, text and protocol")
    where = question_name(entry, place)
    keys(entry, _QUESTION, where)
    try:
        protocol = load_protocol(entry["protocol"])
    except DeniableError as wrong:
        raise SpecError(f"{where}: {wrong}") from None
    return Question(entry["id"], entry["text"], protocol)


def load_protocol(spec: Any) -> Protocol:
    """The protocol of a spec in a file."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("protocol"), str):
        raise SpecError(
            'a protocol is an object with the protocol\'s name, "protocol": "...", as protocol.spec() gives it'
        )
    return load(spec)


def question_name(entry: Mapping[str, Any], place: int) -> str:
    """The name of a question in messages."""
    return f"question {entry['id']!r}" if isinstance(entry.get("id"), str) else f"question {place}"
