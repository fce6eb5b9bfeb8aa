"""The open points of the threat model that apply to a survey, for a reviewer who has to accept them.

The titles are those of the page "Known vulnerabilities" of the docs, which explains each; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deniable.protocols.law import METRIC
from deniable.surveys.survey import Survey
from deniable.surveys.terms import EVOLVING, MEMOIZE, Terms


class OpenPoint(NamedTuple):
    """One weakness that remains."""

    title: str
    words: str


def _always(survey: Survey) -> bool:
    return True


def _collected(survey: Survey) -> bool:
    return survey.terms is not None


def _terms(holds: Callable[[Terms], bool]) -> Callable[[Survey], bool]:
    """A condition on the terms; it does not hold for a survey without them."""
    return lambda survey: survey.terms is not None and holds(survey.terms)


_sends = _terms(lambda terms: not terms.collectors)
_again = _terms(lambda terms: terms.longitudinal.epochs > 1)
_memoizes = _terms(lambda terms: terms.longitudinal.rule == MEMOIZE)
_relayed = _terms(lambda terms: terms.relay is not None)
_files = _terms(lambda terms: terms.delete_days is not None)
_keeps_reports = _terms(lambda terms: terms.retention == "reports")

POINTS: tuple[tuple[str, Callable[[Survey], bool], str], ...] = (
    ("Timing and other side channels", _always, "The time, memory and energy of randomizing were not analysed."),
    ("Memory cannot be erased reliably", _always, "Answers and keys may remain in freed memory, swap or a core dump."),
    ("A compromised device", _always, "Software that controls the device sees the answer before it is randomized."),
    ("The operating system's generator", _always, "The noise is as unpredictable as the system's random numbers."),
    ("Epsilon adds up", _always, "Other owners, other budget groups and a second device have ledgers of their own."),
    (
        "Repeated answers show changes",
        lambda survey: survey.shows_changes,
        "Equal and unequal reports show when an answer changed: no epsilon holds over all epochs.",
    ),
    (
        "Two stages slow that down and do not stop it",
        _terms(lambda terms: terms.longitudinal.is_two_stage),
        "Many reports from one kept state identify the state.",
    ),
    (
        "Answers that change: what the number leaves out",
        _terms(lambda terms: terms.longitudinal.rule == EVOLVING),
        "A device that loses its ledger begins a second stream, which costs epsilon again.",
    ),
    (
        "Recorded values wait in the clear",
        _again,
        "What an application records waits in the ledger until its epoch ends.",
    ),
    ("Memoized answers over several epochs", _memoizes, "Repeated noise does not average out over the epochs."),
    ("A restored ledger draws again", _collected, "An old copy of a ledger costs up to one more epsilon per epoch."),
    (
        "Sums of short epochs",
        _collected,
        "If one device answers in an epoch, the epoch's sum is its randomized report.",
    ),
    ("Memoized answers are on the device", _memoizes, "Anybody who reads the ledger reads the memoized answers."),
    ("Erased is not always gone", _collected, "Disks, file systems and browsers may keep deleted bytes for a while."),
    ("Browsers clear storage", _collected, "A browser that clears its storage is a new device with a new budget."),
    ("Networks see who takes part", _collected, "The machine that ends the connection sees the sender's address."),
    ("A survey for each person", _collected, "An operator can make one survey per person: publish the fingerprint."),
    ("A clock that stays wrong", _collected, "A service with a wrong clock closes epochs too early."),
    ("Traces of order in a database", _collected, "The store shows roughly when a submission came."),
    ("Traces of order in files", _files, "A part of a file shows the period in which its rows came."),
    ("Deleting on one of several nodes", _keeps_reports, "With several nodes, a deletion must be sent to all of them."),
    ("The databases' own logs", _collected, "The log of the database may show the sum of a single commit."),
    ("Sums of few reports", _collected, "A sum of few reports shows them, each with its stated epsilon."),
    ("Analysts see answers arrive", _sends, "Anybody with an analyst's token sees when submissions arrive."),
    ("Copies outlive a deletion", _collected, "Backups and exports keep what the service has deleted."),
    (
        "No amplification is claimed without a relay",
        lambda survey: survey.terms is None or (survey.terms.relay is None and not survey.terms.collectors),
        "Every figure is about single reports: nobody mixes them.",
    ),
    (
        "A relay and a collector that work together, or made-up submissions",
        _relayed,
        "Together they know who sent which randomized report.",
    ),
    (
        "Collectors that work together, and liars among those who are added up",
        _terms(lambda terms: bool(terms.collectors)),
        "Together the collectors can read every answer, and one device can spoil every sum.",
    ),
    ("Correlated respondents", _always, "People who share an answer reveal it with the sum of their epsilons."),
    (
        "What everybody learns",
        _always,
        "Published results say something about everybody, also about those who stayed away.",
    ),
    ("Taking part is visible", _collected, "That somebody takes part is not hidden."),
    (
        "What a guesser knows beforehand",
        _always,
        "A guesser who knows more than nothing is right more often than stated.",
    ),
    (
        "Distant places can be distinguished",
        lambda survey: survey.relation == METRIC,
        "Epsilon holds between neighbouring cells: reports reveal the region.",
    ),
    ("Fake respondents", _always, "A collector cannot tell a forged report from noise."),
    ("Audits from samples miss rare leaks", _always, "An audit from samples states what it could not have seen."),
    (
        "Some guesses are bounded, not computed",
        _always,
        'A share of right guesses that says "at most" is an upper bound, and the truth may be much lower.',
    ),
    ("Translations were not reviewed", _always, "No native speaker has reviewed the Arabic sentences of the pages."),
    ("Not reviewed from outside", _always, "Code and proofs were checked by their own tests only."),
    ("Dependencies are trusted", _always, "NumPy, SciPy, cryptography and Python can read the whole process."),
)


def open_points(survey: Survey) -> list[OpenPoint]:
    """The open points that apply, in the order of the docs."""
    return [OpenPoint(title, words) for title, applies, words in POINTS if applies(survey)]
