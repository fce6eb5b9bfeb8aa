"""Results of the strata of one question: each by itself, all together, and whether they differ.

Parts      "all" first, then the strata in their order
Test       of the strata with at least 20 reports; the finding stands among the notes of "all"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from deniable.errors import MismatchError
from deniable.results.base import Result
from deniable.results.misfit import Misfit
from deniable.results.several import Several
from deniable.results.significance import SAME, SignificanceTest, compare, nothing

ALL = "all"
"""What all strata together are called."""

LEAST = 20
"""Strata with fewer reports are left out of the test, whose law is one of large samples."""


@dataclass(frozen=True, eq=False, repr=False)
class Strata(Several):
    """Results by stratum."""

    kind: ClassVar[str] = "strata"

    overall: Result | None = field(default=None, kw_only=True)
    """Of everybody."""

    @property
    def parts(self) -> Mapping[str, Result]:
        if self.overall is None:
            return self.by_name
        heard = [one for one in self.by_name.values() if one.n >= LEAST]
        said = (self.differ().sentence().replace("groups", "strata"),) if len(heard) > 1 else ()
        return {ALL: replace(self.overall, said=said), **self.by_name}

    def differ(self) -> SignificanceTest:
        """Whether the strata differ."""
        heard = [one for one in self.by_name.values() if one.n >= LEAST]
        return compare(*heard) if len(heard) > 1 else nothing(SAME, [0] * len(self.by_name))

    def test(self, given: Any) -> SignificanceTest:
        """Whether the figures of everybody are the given ones."""
        if self.overall is None:
            raise MismatchError("there is no result of everybody here: test one stratum")
        return self.overall.test(given)

    def _each(self, change: Callable[[Any], Result], check: Callable[..., Misfit] | None) -> Strata:
        overall = None if self.overall is None else change(self.overall)
        return replace(
            self, by_name={name: change(part) for name, part in self.by_name.items()}, check=check, overall=overall
        )

    def __repr__(self) -> str:
        return f"<Strata: {', '.join(self.by_name)} from {self.n} reports, {self.protocol}>"
