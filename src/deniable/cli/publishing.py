"""What is refused before a survey is published, whichever command does it.

Files only   a survey without terms is not collected
Expired      nobody could answer it
Replaces     a survey that is not there (a mistyped fingerprint), or one with more privacy, unless that is meant
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from deniable.cli.files import named
from deniable.errors import SpecError
from deniable.surveys import Survey
from deniable.surveys.diff import diff, weaker
from deniable.surveys.terms import write_time


def refuse_uncollected(survey: Survey, source: str) -> None:
    if survey.terms is None:
        raise SpecError(f"{named(source)} is for files only: a collection needs terms (owner, purpose and an end)")


def refuse_expired(survey: Survey, source: str) -> None:
    if survey.terms is not None and survey.terms.expires <= time.time():
        ended = write_time(survey.terms.expires)
        raise SpecError(f"{named(source)} expired at {ended}, so nobody could answer it: give it a later end")


def losses(survey: Survey, source: str, published: Collection[str], read: Callable[[str], Survey]) -> str:
    """What a respondent loses against the survey that this one replaces, in words; empty if nothing gets weaker.

    `published` are the fingerprints that are there, and `read` gives the survey of one.
    """
    before = survey.terms.replaces if survey.terms is not None else None
    if before is None or survey.fingerprint in published:
        return ""
    if before not in published:
        raise SpecError(
            f'{named(source)} replaces {before}, which is not published there: correct its "replaces", or leave it out'
        )
    return ", ".join(change.what for change in weaker(diff(read(before), survey)))
