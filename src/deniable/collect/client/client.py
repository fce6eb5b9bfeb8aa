"""The device's side of a collection: answer a pinned survey with a report that was randomized here.

Pinned     a client is built for one fingerprint. The server is only where the bytes come from: other bytes are refused
Local      answers are randomized here; what leaves is in the ledger first, and is erased there once it has arrived
Refused    before anything leaves: other bytes than the pinned survey, a survey without terms, not open yet or expired,
           unknown or missing answers, a spent budget, an opted-out device (which makes no request at all), a survey
           that replaces a pinned one until somebody has agreed to the differences
Messages   never contain an answer, and nothing is logged
Metadata   a request carries the survey's fingerprint, the submission and nothing else (`collect.http`); the server
           still sees the address that it comes from, unless a relay stands between
"""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.collect.client import outbox
from deniable.collect.client.errors import NotOpen, OptedOut, SuccessorDiffers, Untrusted, check_fingerprint
from deniable.collect.client.ledger import Ledger
from deniable.collect.client.records import (
    DELETED,
    DROPPED,
    NOT_HELD,
    QUEUED,
    SENT,
    Deleted,
    Receipt,
    Spending,
    Submission,
)
from deniable.collect.http import TIMEOUT, Transport, Turn, Unreachable
from deniable.errors import DeniableError
from deniable.surveys import Survey
from deniable.surveys.diff import WEAKER, Change, diff
from deniable.surveys.strict import parse_json
from deniable.surveys.terms import Terms, write_time

LARGEST_SURVEY = 16 << 20


@dataclass(frozen=True)
class Flushed:
    """What became of the outbox: how many submissions were sent and dropped, and how many are still queued."""

    sent: int = 0
    dropped: int = 0
    queued: int = 0
    reason: str = ""
    """Why the last attempt failed, where something is still queued."""


class Client:
    """Answers one survey from this device; safe to use from several threads, processes and forks.

    server       where reports go: https://host, with a port or a path if need be
    fingerprint  the survey, by the 64 hexadecimal digits that its owner has published
    ledger       a file in a directory that is there, or a `Ledger`: one for all surveys of the device, by default
                 where the system keeps a user's data. Another file is another device
    clock        seconds since 1970, to know the epoch by
    timeout      seconds in which a reply must have come, whole
    spread       seconds over which sending is put off at random, so that the moment of an answer does not tell devices
                 apart: then `answer` only queues, and `flush` sends what is due
    token        for services that take reports with an ingest key only; one that not all devices share would tell them
                 apart
    published    the fingerprints that the survey's owner has published, from another source than the link: any other
                 is refused, because a survey that was made for one person would tell who answers it
    insecure     allows http:// to another machine, where anybody on the way can read who answers, and change it
    context      TLS settings of your own, such as the certificate of a private authority

    Nobody listens at this address, so the answer waits in the ledger:

    >>> import tempfile
    >>> from deniable.surveys.draft import from_draft
    >>> question = {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}
    >>> draft = {"name": "habits", "owner": "Example Institute", "purpose": "To show a client.", "days": 7,
    ...          "epsilon": "1", "people": 1000, "questions": [question]}
    >>> survey = from_draft(draft)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite")
    >>> ledger.pin(survey)  # or else it is fetched from the server, once
    >>> with Client("http://127.0.0.1:9", survey.fingerprint, ledger) as client:
    ...     receipt = client.answer({"smoke": "no"})
    ...     receipt.state, len(receipt.body), client.budget().left
    ('queued', 25, Fraction(0, 1))
    >>> folder.cleanup()
    """

    def __init__(
        self,
        server: str,
        fingerprint: str,
        ledger: str | Path | Ledger | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = TIMEOUT,
        spread: float = 0.0,
        token: str | None = None,
        published: Iterable[str] | None = None,
        insecure: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.fingerprint = check_fingerprint(fingerprint)
        if published is not None and self.fingerprint not in set(published):
            raise Untrusted(
                "this survey is not on the published list, so it may have been made for you alone: nothing was fetched "
                "and nothing was sent"
            )
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._transport = Transport(server, timeout, insecure, context)
        self._clock, self._sleep, self._timer = clock, time.sleep, time.monotonic
        self._step: Callable[[str], None] = lambda step: None
        self._spread = spread
        self._token = token
        self._survey: Survey | None = None
        self._not_before = 0.0
        self._sending = Turn()

    # -- the survey --------------------------------------------------------------------------------

    def survey(self, record: bool = True) -> Survey:
        """The pinned survey: from the ledger, or fetched once, checked against the fingerprint, and recorded there.

        With `record=False` what is fetched is not written to the ledger; the same holds for `terms` and `epoch`.
        """
        if self._survey is None:
            known = self.ledger.pinned(self.fingerprint)
            if known is not None:
                self._survey = verified(known, self.fingerprint)
            else:
                self._refuse_opted_out()
                self._survey = self._fetch()
                if record:
                    self.ledger.pin(self._survey)
        return self._survey

    def _fetch(self) -> Survey:
        try:
            reply = self._transport.get(f"/v1/surveys/{self.fingerprint}", most=LARGEST_SURVEY)
        finally:
            self._transport.close()
        if 400 <= reply.status < 500 and reply.status != 429:
            raise Untrusted(f"{self._transport.server} has no such survey (status {reply.status})")
        if reply.status != 200:
            raise Unreachable(f"{self._transport.server} does not give out surveys now (status {reply.status})")
        return verified(reply.body, self.fingerprint)

    def terms(self, record: bool = True) -> Terms:
        """The terms of the survey: who asks, when, how often, and what it may cost."""
        terms = self.survey(record).terms
        if terms is None:
            raise Untrusted("this survey is for files: it has no terms, so nothing is sent")
        return terms

    def epoch(self, record: bool = True) -> int:
        """The epoch that is answered now, or a refusal when the survey is not open."""
        terms, now = self.terms(record), self._clock()
        if now < terms.opens:
            raise NotOpen(f"the survey is not open yet: it opens at {write_time(terms.opens)}")
        if now >= terms.expires:
            raise NotOpen(f"the survey is over: it expired at {write_time(terms.expires)}")
        return terms.epochs.at(now)

    # -- answering ---------------------------------------------------------------------------------

    def changes(self, record: bool = True) -> list[Change]:
        """How this survey differs from the one that it replaces, as far as that matters here.

        Empty where it replaces none that this device has pinned, and once it was answered here: then somebody has
        agreed. Each change says what it does to privacy: "weaker", "stronger" or "neutral".
        """
        survey, before = self.survey(record), self.terms(record).replaces
        known = None if before is None else self.ledger.pinned(before)
        if before is None or known is None or self.history():
            return []
        try:
            return diff(verified(known, before), survey)
        except Untrusted:  # a newer version may refuse what an older one has taken
            return [Change("survey", "one that cannot be read here any more", survey.name, WEAKER)]

    def answer(self, answers: Mapping[str, Any], *, wait: float | None = 0.0, accept_changes: bool = False) -> Receipt:
        """Randomize, debit and queue the answers of this epoch, and try to send them.

        `answers` has an answer for each question, by its id. Sends once by default; with `wait` tries for so many
        seconds, and with None until it is done. What could not be sent stays queued, for `flush` or the next `answer`.
        An epoch that was answered already is not answered again: the receipt is of the first time, and the answers
        given now are not looked at, beyond being to the right questions.

        A survey that replaces one that this device has pinned is answered only with `accept_changes=True`, or else
        raises `SuccessorDiffers`, which carries the `changes`.
        """
        self._refuse_opted_out()
        survey, epoch = self.survey(), self.epoch()
        changes = [] if accept_changes else self.changes()
        if changes:
            raise SuccessorDiffers(self.terms().replaces or "", changes)
        due = self._clock() + outbox.some_of(self._spread) if self._spread else 0.0
        submission, fresh = self.ledger.submit(survey, epoch, answers, due)
        reason, body = "", submission.body
        if submission.state == QUEUED:
            reason = self.flush(wait).reason
            submission = next(known for known in self.history() if known.epoch == epoch)
        return Receipt.of(submission, fresh, reason, body)

    def flush(self, timeout: float | None = None) -> Flushed:
        """Send what is queued, the same bytes again until they are answered for, at most for `timeout` seconds.

        A timeout of 0 sends what is due and stops at the first failure; none waits until the outbox is empty.
        """
        with self._sending:
            end = None if timeout is None else self._timer() + timeout
            self.ledger.forget_ids(self._clock())
            try:
                return self._flush(end)
            finally:
                self._transport.close()

    def _flush(self, end: float | None) -> Flushed:
        counted = {SENT: 0, DROPPED: 0}
        failures, reason = 0, ""
        while waiting := self.ledger.queued(self.fingerprint):
            # Together with what a server asked for, what is due first decides how long there is nothing to do.
            first = min(waiting, key=self._delay)
            rest = max(self._delay(first), self._not_before - self._timer())
            if rest <= 0:
                outcome = self._attempt(first)
                if outcome.state != QUEUED:
                    self.ledger.mark(first, outcome.state, outcome.reason)
                    self._step("marked")
                    counted[outcome.state] += 1
                    failures = 0
                    continue
                failures, reason = failures + 1, outcome.reason
                if outcome.wait:
                    self._not_before = self._timer() + outcome.wait
                rest = max(outcome.wait, outbox.pause(failures))
            if end is not None and self._timer() + rest > end:
                break
            self._sleep(rest)
        left = len(self.ledger.queued(self.fingerprint))
        return Flushed(counted[SENT], counted[DROPPED], left, reason if left else "")

    def _attempt(self, submission: Submission) -> outbox.Outcome:
        self._step("sending")
        outcome = outbox.send(self._transport, submission, self._clock, self._token)
        self._step("replied")
        return outcome

    def _delay(self, submission: Submission) -> float:
        """Seconds until a submission is due; a clock that was set back does not put it off for longer than `spread`."""
        rest = submission.due - self._clock()
        return rest if 0 < rest <= self._spread else 0.0

    # -- looking -----------------------------------------------------------------------------------

    def history(self) -> list[Submission]:
        """Every submission of this survey, with every byte of those that wait; what was sent is erased."""
        return self.ledger.submissions(self.fingerprint)

    def budget(self) -> Spending:
        """The lifetime budget of the survey's owner and group on this device."""
        return self.ledger.spending(self.terms())

    # -- leaving -----------------------------------------------------------------------------------

    def delete_sent(self) -> Deleted:
        """Ask a service that keeps reports to delete those of this device, by their ids, and erase the ids here.

        The service deletes a report while its epoch is open; after that, and for a survey that keeps counts only, no
        id is left and nothing is asked. What waits here may have arrived without a reply, so it is asked for as well
        and not sent any more. Asking shows the service which address these reports came from.
        """
        with self._sending:
            self.ledger.forget_ids(self._clock())
            count, reason = {DELETED: 0, NOT_HELD: 0, QUEUED: 0}, ""
            try:
                for submission in self.history():
                    if submission.id_until:
                        outcome = outbox.delete(self._transport, submission)
                        count[outcome.state] += 1
                        if outcome.state == QUEUED:
                            reason = outcome.reason
                        else:
                            self.ledger.mark_deleted(submission, outcome.state)
            finally:
                self._transport.close()
            return Deleted(count[DELETED], count[NOT_HELD], count[QUEUED], reason)

    def opt_out(self) -> None:
        """Take no part in this survey any more: what waits and what only this survey needs is deleted here.

        No request is made until `opt_in`, but for `delete_sent`.
        """
        self.ledger.opt_out(self.fingerprint)

    def opt_in(self) -> None:
        """Take part in this survey again; what was dropped stays so, and the survey is fetched again."""
        self.ledger.opt_in(self.fingerprint)

    def withdraw(self) -> None:
        """Leave every survey of this device: memos, keys, what waits and the ids are deleted.

        The debits stay, and so does the list of answered epochs: what was sent cannot be called back, so someone who
        comes back must not begin with a full budget. Whoever deletes the ledger's file as well is a new device. To
        have reports deleted at a service that keeps them, call `delete_sent` first.
        """
        self.ledger.withdraw()

    def close(self) -> None:
        """End the connection. The ledger has nothing open between calls, and the client may still be used."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_opted_out(self) -> None:
        if self.ledger.opted_out(self.fingerprint):
            raise OptedOut


def verified(content: bytes, fingerprint: str) -> Survey:
    """The survey of these bytes, if they are the ones that the fingerprint names and every field is understood."""
    if hashlib.sha256(b"deniable-survey-v1\0" + content).hexdigest() != fingerprint:
        raise Untrusted("this is not the pinned survey: its bytes have another fingerprint, and nothing was sent")
    try:
        survey = Survey.from_spec(parse_json(content, "the survey"))
    except DeniableError as wrong:
        raise Untrusted(f"the survey is not usable here: {wrong}") from None
    if survey.fingerprint != fingerprint:
        raise Untrusted("the survey is not in canonical form, so its meaning is not what its fingerprint names")
    if survey.terms is None:
        raise Untrusted("this survey is for files: it has no terms, so nothing is sent")
    return survey
