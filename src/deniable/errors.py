"""The exceptions that the package raises.

Every exception of the package derives from `DeniableError` and from the built-in exception that a
Python user would expect. A message is one sentence that names the problem, followed by
how to fix it. On a device a message never contains the respondent's value; in analysis code it may.
"""

from __future__ import annotations


class DeniableError(Exception):
    """Base class of all errors that this package raises."""


class NumberError(DeniableError, ValueError):
    """A number that cannot be read exactly, or is out of range."""


class EpsilonError(NumberError):
    """An epsilon that is not a sensible privacy level."""


class ProbabilityError(DeniableError, ValueError):
    """Probabilities that are negative, not finite, or do not sum to one."""


class ShapeError(DeniableError, ValueError):
    """Sizes that do not fit together."""


class LabelError(DeniableError, ValueError):
    """An unknown, repeated or unusable label."""


class DomainError(DeniableError, ValueError):
    """An answer that the domain does not have, or a domain that cannot be used."""


class ValueRefused(DomainError):
    """An answer that the domain does not have, with its index in the column.

    Args:
        complaint: What is wrong, to be read after a name of the value: ", a str, is not a number".
        place: Index of the value; None if the complaint is a whole sentence.
    """

    def __init__(self, complaint: str, place: int | None = None) -> None:
        self.complaint, self.place = complaint, place
        super().__init__(self.about(f"value {place}"))

    def about(self, name: str) -> str:
        """The message with another name for the value, such as "row 3"."""
        return self.complaint if self.place is None else f"{name}{self.complaint}"

    def __reduce__(self) -> tuple[type[ValueRefused], tuple[str, int | None]]:
        return type(self), (self.complaint, self.place)


class ReportError(DeniableError, ValueError):
    """Bytes that are not a report of this protocol."""


class MismatchError(DeniableError, ValueError):
    """Reports, tallies or estimates of different protocols or surveys; they must not be added or compared."""


class ChannelError(DeniableError, ValueError):
    """A channel that does not support the requested operation (singular, too large, not private)."""


class SpecError(DeniableError, ValueError):
    """A specification that cannot be read."""


class MissingExtra(DeniableError, RuntimeError):
    """An optional dependency that is not installed.

    Args:
        package: The package that is missing.
        extra: The extra of this project that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"this needs {package}, which is not installed: pip install 'deniable[{extra}]'")


class IgnoredColumns(UserWarning):
    """Columns of a table that answer nothing: they are left out, and a typing error would look the same."""


class InternalError(DeniableError, RuntimeError):
    """A check inside the package that failed: a bug, reported instead of a wrong privacy claim."""
