"""The exceptions that the package raises.

Every exception of the package derives from `DeniableError` and from the built-in exception that a
Python user would expect in its place. A message is one sentence that names what is wrong, followed by
how to fix it. On a device a message never contains the respondent's value; in analysis code it may.
"""

from __future__ import annotations


class DeniableError(Exception):
    """Anything that this package refuses."""


class NumberError(DeniableError, ValueError):
    """A number that cannot be read exactly, or lies outside what is allowed."""


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


class ReportError(DeniableError, ValueError):
    """Bytes that are not a report of this protocol."""


class MismatchError(DeniableError, ValueError):
    """Reports, tallies or estimates of different protocols or surveys, which must not be added or compared."""


class ChannelError(DeniableError, ValueError):
    """A channel that cannot do what was asked of it (singular, too large, not private)."""


class SpecError(DeniableError, ValueError):
    """A specification that cannot be read."""


class MissingExtra(DeniableError, RuntimeError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"this needs {package}, which is not installed: pip install 'deniable[{extra}]'")


class InternalError(DeniableError, RuntimeError):
    """A check inside the package that failed: a bug, reported instead of a wrong privacy claim."""
