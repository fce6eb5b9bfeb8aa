"""Telemetry of an application: off where it is unwanted, announced before it begins, one report per epoch.

Off      decided from the environment, before a file is read or written and before any request: by `DO_NOT_TRACK`, and
         on build servers
Notice   shown before the first value is recorded; if nobody can see it, nothing is recorded. Until the epoch is over
         nothing is sent, so there is time to opt out, which deletes what was recorded
Sent     as `Client.record` and `Client.settle` do: one report per epoch, event or not
Silent   nothing is logged, and an error never repeats a value
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deniable.collect import wire
from deniable.collect.client.client import Client
from deniable.collect.client.ledger import Ledger, default_path
from deniable.collect.client.records import Receipt
from deniable.domains import ListedDomain
from deniable.errors import SpecError
from deniable.labels import text as label_text
from deniable.surveys import Question, Survey, Terms
from deniable.surveys.terms import read_time
from deniable.words import DEFAULT, Joined, catalogue, duration, word

DO_NOT_TRACK = "DO_NOT_TRACK"
BUILD_SERVERS = (
    *("CI", "CONTINUOUS_INTEGRATION", "BUILD_NUMBER", "BUILD_ID", "RUN_ID", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD"),
    *("JENKINS_URL", "TEAMCITY_VERSION", "BUILDKITE", "CIRCLECI", "TRAVIS", "APPVEYOR", "DRONE", "CODEBUILD_BUILD_ID"),
    "BITBUCKET_BUILD_NUMBER",
)
"""Variables that build servers set."""
_UNSET = ("", "0", "false", "no", "off")


def why_off(environ: Mapping[str, str] | None = None) -> str | None:
    """The variable of the environment that turns telemetry off; None if none does.

    Args:
        environ: The environment; that of this process if None.

    Returns:
        The name of the variable, or None.

    >>> why_off({"DO_NOT_TRACK": "1"}), why_off({"GITHUB_ACTIONS": "true"}), why_off({"CI": "false"})
    ('DO_NOT_TRACK', 'GITHUB_ACTIONS', None)
    """
    given = os.environ if environ is None else environ
    names = (DO_NOT_TRACK, *BUILD_SERVERS)
    return next((name for name in names if given.get(name, "").strip().lower() not in _UNSET), None)


def on_terminal(text: str) -> bool:
    """Show a notice on standard error if that is a terminal; returns whether it was shown."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    print(text, file=sys.stderr)
    return True


class Telemetry:
    """Records values of an application, unless telemetry is off here.

    Args:
        survey: The survey, or its file, which is read only if telemetry is on.
        server: Where reports go.
        ledger: A file, or a `Ledger`, as for `Client`.
        notice: Shows a text to the person and returns whether it could be seen. By default a terminal shows it.
        language: Language of the notice.
        environ: The environment that decides; that of this process if None.
        **options: As for `Client`: `idle`, `clock`, `spread` and others.

    >>> Telemetry("no-such-survey.json", "https://collect.example.org", environ={"CI": "true"}).record("minutes", 12)
    False
    """

    def __init__(
        self,
        survey: Survey | str | Path,
        server: str,
        ledger: str | Path | Ledger | None = None,
        *,
        notice: Callable[[str], bool] = on_terminal,
        language: str = DEFAULT,
        environ: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.off = why_off(environ)
        self._survey, self._notice, self._language = survey, notice, language
        self._made: Client | None = None
        self._noticed = False
        self._options: dict[str, Any] = {"server": server, "ledger": ledger, **options}

    @property
    def client(self) -> Client:
        """The client beneath, for its history, its budget and `opt_out`; made when it is first needed."""
        if self._made is None:
            if not isinstance(self._survey, Survey):
                self._survey = Survey.load(self._survey)
            self._made = Client(fingerprint=self._survey.fingerprint, **self._options)
        return self._made

    def record(self, question: str, value: Any, *, add: bool = False) -> bool:
        """Record a value of this epoch; nothing is sent for it.

        Args:
            question: Id of the question.
            value: The value; the last one of an epoch counts.
            add: Whether to add it to what was recorded in this epoch.

        Returns:
            Whether it was recorded: not if telemetry is off, nobody saw the notice, or the device has opted out.

        Raises:
            DomainError: The value is no answer to the question; the message does not repeat it.
        """
        return self._is_announced() and self.client.record(question, value, add=add)

    def settle(self, wait: float | None = 0.0) -> list[Receipt]:
        """Make and send one submission for each epoch that is over.

        Args:
            wait: Seconds to keep trying; None until it is done.

        Returns:
            A receipt for each submission. `receipt.fresh` is False if that epoch was answered before.
        """
        return self.client.settle(wait) if self._is_announced() else []

    def _is_announced(self) -> bool:
        """Whether telemetry is on and the person has seen the notice; shows it the first time."""
        if self.off is not None:
            return False
        if not self._noticed:
            ledger, fingerprint = self.client.ledger, self.client.fingerprint
            if ledger.opted_out(fingerprint):
                return False
            if ledger.pinned(fingerprint) is None:
                assert isinstance(self._survey, Survey)
                if not self._notice(notice(self._survey, self._language, ledger.path)):
                    return False
                ledger.pin(self._survey)  # remembers that the notice was shown
            self._noticed = True
        return True

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._made is not None:
            self._made.close()


class AsyncTelemetry:
    """`Telemetry` for asyncio: each call runs in a thread, so that no file or socket blocks the loop.

    Args:
        telemetry: What is called.

    >>> quiet = Telemetry("no-such-survey.json", "https://collect.example.org", environ={"DO_NOT_TRACK": "1"})
    >>> asyncio.run(AsyncTelemetry(quiet).settle())
    []
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry

    async def record(self, question: str, value: Any, *, add: bool = False) -> bool:
        """As `Telemetry.record`."""
        return await asyncio.to_thread(self.telemetry.record, question, value, add=add)

    async def settle(self, wait: float | None = 0.0) -> list[Receipt]:
        """As `Telemetry.settle`."""
        return await asyncio.to_thread(self.telemetry.settle, wait)

    async def close(self) -> None:
        """As `Telemetry.close`."""
        await asyncio.to_thread(self.telemetry.close)


class ManualClock:
    """A clock for the tests of an application: it moves only when it is told to.

    Args:
        now: Seconds since 1970, or a time such as "2026-11-01T08:00:00Z".

    >>> clock = ManualClock("2026-11-01T08:00:00Z")
    >>> before = clock()
    >>> clock.advance(days=1)
    >>> clock() - before
    86400.0
    """

    def __init__(self, now: float | str) -> None:
        self._now = float(read_time(now) if isinstance(now, str) else now)

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float = 0.0, *, days: float = 0.0) -> None:
        """Move on by this many seconds and days."""
        self._now += seconds + 86_400 * days


# -- what is collected, in words ----------------------------------------------------------------------------


_FIRST = ("line", "guess", "shows", "clear", "profiles", "distance", "parts", "collectors")
"""The promises that a notice has room for: what can be found out, and what is not hidden."""
_MOST_LISTED = 12


def _asked(question: Question) -> str:
    """A question with its answers, if they are few."""
    domain = question.protocol.domain
    if not isinstance(domain, ListedDomain) or domain.size > _MOST_LISTED:
        return question.text
    return f"{question.text} ({', '.join(map(label_text, domain.labels))})"


def _collected(survey: Survey) -> Terms:
    if survey.terms is None:
        raise SpecError("this survey is for files: it has no terms, so no application collects it")
    return survey.terms


def _opt_out(survey: Survey, ledger: Path | None) -> str:
    """The command that opts out; a ledger that is not the usual one is named."""
    which = "" if ledger is None or ledger == default_path() else f" --ledger {shlex.quote(str(ledger))}"
    return f"deniable ledger optout {survey.fingerprint}{which}"


def notice(survey: Survey, language: str = DEFAULT, ledger: Path | None = None) -> str:
    """What a person reads before anything is recorded."""
    from deniable.surveys.promises import promises  # a client that shows no notice starts without them

    terms, words, said = _collected(survey), catalogue(language), promises(survey, language=language)
    return "\n".join(
        [
            words.say("telemetry.who", owner=terms.owner, purpose=terms.purpose),
            words.say("telemetry.what", texts=Joined([one.text for one in survey], "; ")),
            words.say("telemetry.how", length=duration(terms.epochs.seconds)),
            " ".join(said[name] for name in _FIRST if name in said),
            words.say("telemetry.off", command=_opt_out(survey, ledger)),
        ]
    )


def explained(survey: Survey, language: str = DEFAULT, ledger: Path | None = None) -> list[tuple[str, list[str]]]:
    """What is collected, as headings with their sentences."""
    from deniable.surveys.promises import paragraphs, promises

    terms, words = _collected(survey), catalogue(language)
    own, shared = survey.report_bytes, ".shared" if terms.collectors else ""
    size = word(f"terms.bytes{shared}", n=wire.HEADER_BYTES + wire.ID_BYTES + own, own=own)
    asked = [_asked(one) for one in survey]
    return [
        (
            words.say("telemetry.heading.what"),
            [words.say("telemetry.who", owner=terms.owner, purpose=terms.purpose), *asked],
        ),
        (
            words.say("telemetry.heading.sent"),
            [
                words.say("telemetry.how", length=duration(terms.epochs.seconds)),
                words.say("telemetry.sent", bytes=size),
                words.say("telemetry.waits"),
            ],
        ),
        (words.say("telemetry.heading.promised"), paragraphs(promises(survey, language=language), worst_case=True)),
        (words.say("telemetry.heading.off"), [words.say("telemetry.off", command=_opt_out(survey, ledger))]),
    ]
