"""The interface of every domain, and the registry that finds a domain by its kind.

A domain defines the possible answers. Protocols, surveys, files and pages use this interface, never the kind:

encode       a column of answers -> the form that protocols work on; invalid answers are refused
encode_one   the same for one answer
reader       parses a text in a file or from a keyboard as an answer
answer_key   an encoded answer as bytes, for a ledger that remembers it
choices      what a person may answer, in a few words
spec         JSON that recreates the domain anywhere

A new kind of domain is a subclass with `kind`; its definition registers it. A third-party package lists
its modules under the entry point "deniable.kinds".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

from deniable._extras import load_plugins
from deniable.errors import SpecError

_KINDS: dict[str, type[Domain]] = {}


class Domain(ABC):
    """The set of possible answers."""

    kind: ClassVar[str]
    """The name of the domain in a spec."""

    is_listed: ClassVar[bool] = False
    """Whether all answers are known beforehand; then the domain is a `ListedDomain`."""

    reads: ClassVar[str] = "shares"
    """The default reading of a question of this kind: "shares" of answers, a "mean", ..."""

    takes_numbers: ClassVar[bool] = True
    """Whether decimal numbers in a column may be answers."""

    is_column: ClassVar[bool] = True
    """Whether it can be a column of a record."""

    nested: ClassVar[tuple[str, ...]] = ()
    """Which columns of a file with several values per row may hold answers: "lists", "structures", "maps"."""

    columns: tuple[tuple[str, Domain], ...] = ()
    """The parts of an answer, each with its own domain; an answer that is a single value has none."""

    @property
    def least_forms(self) -> int:
        """Minimum number of different reports of any protocol for this domain."""
        return 2

    empty_is_an_answer: bool = False
    """Whether an empty text is an answer; else an empty cell of a file is a missing answer."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "kind" in cls.__dict__:
            known = _KINDS.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise SpecError(f"there are two kinds of domains called {cls.kind!r}: rename one")
            _KINDS[cls.kind] = cls

    @abstractmethod
    def encode(self, values: Any) -> Any:
        """A column of answers as protocols take it, with a length; raises DomainError for invalid answers.

        An error about one value is a `ValueRefused`: it gives the index and the type of the value, never the value.
        """

    @abstractmethod
    def encode_one(self, value: Any) -> Any:
        """One answer as protocols take it; raises DomainError like `encode`."""

    @abstractmethod
    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        """A function that parses a text as an answer, or returns the text itself if it is not an answer.

        `typed` columns distinguish 1 and "1"; a CSV file and a keyboard do not.
        """

    def from_column(self, column: Any, typed: bool) -> Any:
        """A column of a table with its texts parsed, if the domain does this itself; None leaves it to the table."""
        return None

    def answer(self, label: Any) -> Any:
        """The answer for a label at the inputs of a channel."""
        return label

    @abstractmethod
    def answer_key(self, encoded: Any) -> bytes:
        """One encoded answer as bytes: equal for equal answers, different for different ones."""

    @property
    def parts(self) -> Mapping[str, Domain]:
        """The domains of the parts of an answer, by name; empty if an answer is a single value."""
        return {}

    @property
    def titles_of(self) -> Mapping[str, str]:
        """The question text for each of the `parts`, where it differs from the name."""
        return {}

    @property
    def texts(self) -> dict[str, Any]:
        """What people read, as a translation mirrors it: "answers", a "unit", "parts" by name; only what there is."""
        return {}

    def translated(self, texts: Mapping[str, Any]) -> Domain:
        """The same answers at the same positions, in other texts of the form of `texts`."""
        return self

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
        """For kinds of other packages: the domain that the `answers` of a draft describe; None if they are not its own.

        The forms of this package are in `deniable.answers`. `given` may hold "other" and "missing", the labels of such
        answers, and "key", which names hash functions.
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
        """The domain for a spec of this kind; raises SpecError for unknown keys and wrong types."""


def load_domain(spec: Any) -> Domain:
    """The domain for a spec; the error for an unknown kind names it.

    Args:
        spec: The domain as JSON, with its "kind".

    Returns:
        The domain.

    Raises:
        SpecError: The kind is unknown or its fields cannot be read.
    """
    name = spec.get("kind") if isinstance(spec, Mapping) else None
    if name not in _KINDS:
        load_plugins()
    if not isinstance(name, str) or name not in _KINDS:
        raise SpecError(f"there is no domain of kind {name!r}; there are {', '.join(sorted(_KINDS))}")
    return _KINDS[name].from_spec(spec)


def domain_kinds() -> Iterable[type[Domain]]:
    """All kinds of domains, those of installed packages included."""
    load_plugins()
    return tuple(_KINDS.values())


def wrong_spec(kind: str, needed: str) -> SpecError:
    return SpecError(f"the spec of {kind} needs {needed}, and nothing else")
