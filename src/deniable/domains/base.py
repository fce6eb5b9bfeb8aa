"""What every domain offers, and the registry that finds a domain by its kind.

A domain says what an answer can be. Protocols, surveys, files and pages ask it, and never what kind it is:

encode       a column of answers -> the form that protocols work on; what is no answer is refused
encode_one   the same for one answer
reader       how a text in a file or on a keyboard stands for an answer
answer_key   an encoded answer as bytes, for a ledger that remembers it
choices      what a person may answer, in a few words
spec         JSON that gives the domain again, anywhere

A new kind of domain is a subclass with `kind`; it is registered by being defined. A package of somebody else's names
its modules under the entry point "deniable.kinds".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from deniable._extras import load_plugins
from deniable.errors import SpecError

_KINDS: dict[str, type[Domain]] = {}


class Domain(ABC):
    """What an answer can be."""

    kind: ClassVar[str]
    """What the domain is called in a spec."""

    is_listed: ClassVar[bool] = False
    """Whether all answers are known beforehand; then the domain is a `ListedDomain`."""

    reads: ClassVar[str] = "shares"
    """What a question of this kind is read for, unless it says something else: "shares" of answers, a "mean", ..."""

    takes_numbers: ClassVar[bool] = True
    """Whether decimal numbers of a column may be answers."""

    is_column: ClassVar[bool] = True
    """Whether it can be a column of a record."""

    nested: ClassVar[tuple[str, ...]] = ()
    """Which columns of a file with several values per row may hold answers: "lists", "structures", "maps"."""

    columns: tuple[tuple[str, Domain], ...] = ()
    """The parts of an answer, each with a domain of its own; an answer that is one value has none."""

    @property
    def least_forms(self) -> int:
        """How many different reports every protocol for this domain has at least."""
        return 2

    empty_is_an_answer: bool = False
    """Whether an empty text is an answer; else an empty cell of a file is a missing one."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "kind" in cls.__dict__:
            known = _KINDS.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise SpecError(f"there are two kinds of domains called {cls.kind!r}: rename one")
            _KINDS[cls.kind] = cls

    @abstractmethod
    def encode(self, values: Any) -> Any:
        """A column of answers as protocols take it, with a length; raises DomainError for what is no answer.

        A message names the place and the kind of a value, never the value.
        """

    @abstractmethod
    def encode_one(self, value: Any) -> Any:
        """One answer as protocols take it; raises DomainError like `encode`."""

    @abstractmethod
    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        """A function from a text to the answer that it stands for, or to itself if it stands for none.

        In `typed` columns 1 and "1" can be told apart; in a CSV and on a keyboard they cannot.
        """

    def from_column(self, column: Any, typed: bool) -> Any:
        """A column of a table with its texts read, where the domain does that itself; None leaves it to the table."""
        return None

    def answer(self, label: Any) -> Any:
        """The answer that a label at the inputs of a channel stands for."""
        return label

    @abstractmethod
    def answer_key(self, encoded: Any) -> bytes:
        """One encoded answer as bytes: equal for equal answers, different for different ones."""

    @property
    def parts(self) -> Mapping[str, Domain]:
        """The domains of the parts of an answer, by name; none where an answer is one thing."""
        return {}

    @property
    def titles_of(self) -> Mapping[str, str]:
        """What people are asked for each of the `parts`, where that is not its name."""
        return {}

    @property
    def choices(self) -> str:
        """What a person may answer, in a few words."""
        return str(self)

    @property
    def short(self) -> str:
        """The domain in two or three words, for a title."""
        return str(self)

    @classmethod
    def from_answers(cls, answers: Any, given: Mapping[str, Any]) -> Domain | None:
        """The domain that the `answers` of a question's draft describe; None if they are of another kind.

        `given` may hold "other" and "missing", the labels of such answers, and "key", which names hash functions.
        """
        return None

    @property
    @abstractmethod
    def example(self) -> Any:
        """Some answer."""

    @abstractmethod
    def spec(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """The domain of a spec of this kind; raises SpecError for unknown keys and wrong types."""


def load_domain(spec: Any) -> Domain:
    """The domain of a spec; an unknown kind is refused by name."""
    name = spec.get("kind") if isinstance(spec, Mapping) else None
    if name not in _KINDS:
        load_plugins()
    if not isinstance(name, str) or name not in _KINDS:
        raise SpecError(f"there is no domain of kind {name!r}; there are {', '.join(sorted(_KINDS))}")
    return _KINDS[name].from_spec(spec)


def domain_of_answers(answers: Any, given: Mapping[str, Any]) -> Domain | None:
    """The domain that a draft describes, whichever kind knows it; None if none does."""
    load_plugins()
    if isinstance(answers, Mapping) and "kind" in answers:
        return load_domain(answers)
    for known in _KINDS.values():
        found = known.from_answers(answers, given)
        if found is not None:
            return found
    return None


def no_other(given: Mapping[str, Any]) -> None:
    if given.get("other") is not None:
        raise SpecError('"other" goes with a list of answers only')


def wrong_spec(kind: str, needed: str) -> SpecError:
    return SpecError(f"the spec of {kind} needs {needed}, and nothing else")
