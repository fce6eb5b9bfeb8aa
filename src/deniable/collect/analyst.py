"""The analyst's and the owner's side over HTTP: surveys, sums, status, live changes.

Tallies are downloaded, and estimates are computed here: nobody has to trust the service's arithmetic, and every option
of `estimate` works. Survey bytes are checked against their fingerprint. Replies are streamed; lists are paged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

import msgspec
import numpy as np

from deniable.collect.http import Reply, Transport
from deniable.collect.stores.batches import SurveyCounter, rows
from deniable.collect.wire import ID_BYTES, from_text, to_text
from deniable.errors import DeniableError, MismatchError, SpecError
from deniable.protocols.numeric.secure_sum import ImpossibleSum, TooFewShares, joined, too_few
from deniable.protocols.structures import Sum
from deniable.surveys import Survey, SurveyTally

LARGEST_REPLY = 1 << 30
AT_ONCE = 10_000
"""Ids per request."""

_RANGE = re.compile(r"([0-9]{1,10})|([0-9]{0,10})\.\.([0-9]{0,10})")


class ServiceRefused(DeniableError, RuntimeError):
    """The service refused a request; its own sentence is the message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ListedSurvey:
    """A survey in the service's list."""

    fingerprint: str
    name: str
    state: str
    """waiting, collecting, over or closed."""
    open: bool | None = None
    """Whether a report of the current epoch is accepted; None if the service does not say."""
    replaces: str | None = None
    replaced_by: str | None = None
    """Fingerprints of the surveys before and after this one."""
    next_round: str | None = None
    """The fingerprint of the next round of its campaign, if that is published."""


@dataclass(frozen=True)
class EpochChange:
    """A live message: the tally of an epoch now has `n` answers."""

    epoch: int
    n: int
    version: str
    """The version to continue from with `changes(since=...)`. Epochs that change together are sent one after the other,
    and only the last of them has the new version: a client that leaves in between gets all of them again."""


class Analyst:
    """A connection to a service, with a token.

    with Analyst("https://collect.example.org", token) as service:
        survey = service.survey(fingerprint)
        tally = service.tally(survey, first=3, last=5)
        print(survey["smoke"].protocol.estimate(tally["smoke"]))

    Args:
        server: Address of the service: https://host.
        token: The analyst's token.
        insecure: Whether http:// to another machine is allowed.
    """

    def __init__(self, server: str, token: str | None = None, insecure: bool = False) -> None:
        self._transport, self._insecure = Transport(server, insecure=insecure), insecure
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    # -- surveys -----------------------------------------------------------------------------------

    def surveys(self) -> Iterator[ListedSurvey]:
        """All surveys, page by page."""
        after = ""
        while True:
            page = self._json("/v1/surveys" + (f"?{urlencode({'after': after})}" if after else ""))
            for entry in page["surveys"]:
                yield ListedSurvey(
                    *(entry[key] for key in ("fingerprint", "name", "state")),
                    *(entry.get(key) for key in ("open", "replaces", "replaced_by", "next_round")),
                )
            after = page.get("next") or ""
            if not after:
                return

    def survey(self, fingerprint: str) -> Survey:
        """The survey of this fingerprint; other bytes from the service are refused."""
        raw = self._read(self._path(fingerprint)).body
        if hashlib.sha256(b"deniable-survey-v1\0" + raw).hexdigest() != fingerprint:
            raise MismatchError(f"the service sent another survey than {fingerprint}")
        return Survey.from_spec(json.loads(raw))

    def publish(self, survey: Survey, weaker_privacy: bool = False) -> bool:
        """Publish; False if it was published before.

        A survey that replaces one with more privacy is refused unless `weaker_privacy` allows it.
        """
        path = "/v1/surveys" + ("?weaker_privacy=true" if weaker_privacy else "")
        reply = self._read(path, "POST", survey.canonical, {"Content-Type": "application/json"})
        return reply.status == 201

    def close_survey(self, fingerprint: str) -> None:
        self._read(self._path(fingerprint, "/close"), "POST", b"")

    def delete_survey(self, fingerprint: str) -> None:
        """Delete a closed survey with all that was collected; it cannot be published there again."""
        self._read(self._path(fingerprint), "DELETE")

    def delete_reports(self, fingerprint: str, first: int | None = None, last: int | None = None) -> int:
        """Delete the kept reports of these closed epochs; returns how many there were. The sums stay."""
        query = urlencode({"epochs": epoch_range(first, last)})
        reply = self._read(self._path(fingerprint, f"/reports?{query}"), "DELETE")
        return int(msgspec.json.decode(reply.body)["deleted"])

    def close_epoch(self, fingerprint: str, epoch: int) -> dict[str, Any]:
        """The closed epoch: its number of answers and the hash of its tally."""
        closed: dict[str, Any] = msgspec.json.decode(
            self._read(self._path(fingerprint, f"/epochs/{epoch}/close"), "POST", b"").body
        )
        return closed

    # -- shares ------------------------------------------------------------------------------------

    def shares(self, fingerprint: str, epoch: int) -> dict[str, Any]:
        """The state of an epoch's shares on the way to a sum; for a closed epoch with the ids."""
        return self._json(self._path(fingerprint, f"/epochs/{epoch}/shares"))

    def _share_step(self, fingerprint: str, epoch: int, step: str, **content: Any) -> dict[str, Any]:
        path, body = self._path(fingerprint, f"/epochs/{epoch}/shares/{step}"), msgspec.json.encode(content)
        found: dict[str, Any] = msgspec.json.decode(
            self._read(path, "POST", body, {"Content-Type": "application/json"}).body
        )
        return found

    def leave_out(self, fingerprint: str, epoch: int, ids: Iterable[bytes]) -> None:
        """Erase the shares of people whom other collectors do not have."""
        given = list(ids)
        for at in range(0, len(given), AT_ONCE):
            self._share_step(fingerprint, epoch, "leave-out", ids=to_text(b"".join(given[at : at + AT_ONCE])))

    def sum_shares(self, fingerprint: str, epoch: int, people: str) -> bytes:
        """The collector's sum over the named set of people, 8 bytes per counter; its shares are erased."""
        return _raw(self._share_step(fingerprint, epoch, "sum", people=people)["total"])

    def settle_shares(self, fingerprint: str, epoch: int, n: int, total: bytes) -> None:
        """Make the sum over all collectors the tally of the epoch; n = 0 means no result."""
        self._share_step(fingerprint, epoch, "settle", n=n, total=to_text(total))

    def address(self, fingerprint: str) -> str:
        return self._transport.server.rstrip("/") + self._path(fingerprint)

    # -- what was collected ------------------------------------------------------------------------

    def tally(self, survey: Survey, first: int | None = None, last: int | None = None) -> SurveyTally:
        """The sum over these epochs, both included."""
        query = f"?{urlencode({'epochs': epoch_range(first, last)})}" if first is not None or last is not None else ""
        raw = self._read(self._path(survey.fingerprint, f"/tally.json{query}")).body
        tally = SurveyTally.from_spec(json.loads(raw))
        tally.check(survey)
        return tally

    def status(self, fingerprint: str) -> dict[str, Any]:
        return self._json(self._path(fingerprint, "/status"))

    def estimates(self, fingerprint: str, **options: str) -> dict[str, Any]:
        """The service's own estimates, with the options of its API (`epochs`, `level`, `post`, `per`)."""
        return self._json(self._path(fingerprint, "/estimates") + (f"?{urlencode(options)}" if options else ""))

    def changes(self, fingerprint: str, since: str | None = None) -> Iterator[EpochChange]:
        """Live: one `EpochChange` whenever the tally of an epoch has grown, for as long as the service runs.

        Uses its own connection, so that sums can be requested in between.
        """
        headers = self._headers | ({"Last-Event-ID": since} if since else {})
        path, version = self._path(fingerprint, "/stream"), since or ""
        live = Transport(self._transport.server, insecure=self._insecure)
        with live, live.stream("GET", path, headers) as response:
            if response.status != 200:
                raise _refusal(response.status, live.read(response))
            for event in _events(live.chunks(response)):
                version = event.get("id", version)
                if "data" in event:
                    content = json.loads(event["data"])
                    yield EpochChange(content["epoch"], content["n"], version)

    # -- requests ----------------------------------------------------------------------------------

    def _path(self, fingerprint: str, rest: str = "") -> str:
        if len(fingerprint) != 64 or set(fingerprint) - set("0123456789abcdef"):
            raise SpecError("a survey is named by its fingerprint, 64 hexadecimal digits")
        return f"/v1/surveys/{fingerprint}{rest}"

    def _json(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(self._read(path).body)
        return content

    def _read(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        reply = self._transport.request(method, path, self._headers | (headers or {}), body, LARGEST_REPLY)
        if reply.status >= 300:
            raise _refusal(reply.status, reply.body)
        return reply


def add_up(survey: Survey, epoch: int, collectors: Sequence[Analyst]) -> SurveyTally:
    """The sum over all collectors, of the people whom all of them have, published at each of them.

    `collectors` are in the order of the survey's terms, each with an admin's token of that collector. Their epochs are
    closed, lists of ids are compared, shares of people who are incomplete are erased everywhere, and only then does
    each collector sum and erase. A call that broke off can be repeated, and continues where it stopped. Raises
    TooFewShares if the noise of the complete people does not suffice, and ImpossibleSum if honest people cannot have
    given the sums; then all shares are erased, and there will be no result.
    """
    name, counter = survey.fingerprint, SurveyCounter(survey)
    if survey.terms is None or len(survey.terms.collectors) != len(collectors):
        raise SpecError("shares are added up at all collectors that the survey names, in their order")
    for one in collectors:
        one.close_epoch(name, epoch)
    found = [one.shares(name, epoch) for one in collectors]
    done = [one for one in found if one["state"] == "settled"]
    if done:
        n = complete = done[0]["n"]
        total = _raw(done[0]["total"])
    else:
        n, total, complete = _summed(survey, epoch, collectors, found)
    tally = counter.tally(n, np.frombuffer(total, dtype="<i8"))
    wrong: DeniableError | None = None
    if not n:
        wrong = (
            TooFewShares("this epoch was settled without a result") if done else too_few(_strictest(survey), complete)
        )
    elif not done:
        try:
            for question in survey:
                question.protocol.estimate(tally[question.id])
        except ImpossibleSum as impossible:
            n, total, wrong = 0, bytes(len(total)), impossible
    for one in collectors:
        one.settle_shares(name, epoch, n, total)
    if wrong is not None:
        raise wrong
    return tally


def _summed(
    survey: Survey, epoch: int, collectors: Sequence[Analyst], found: Sequence[dict[str, Any]]
) -> tuple[int, bytes, int]:
    """The number of people in the total, zero if they are too few; the total; and how many people there were."""
    name = survey.fingerprint
    lists = [_ids(one["ids"]) for one in found if one["state"] == "closed"]
    if len(lists) == len(found):
        common = frozenset.intersection(*lists)
        if len(common) < _strictest(survey).enough:
            return 0, bytes(8 * SurveyCounter(survey).size), len(common)
        # Everywhere before the first sum: a collector that has summed can no longer say whom.
        for one, ids in zip(collectors, lists, strict=True):
            one.leave_out(name, epoch, sorted(ids - common))
        found = [one.shares(name, epoch) for one in collectors]
    people = {one["people"] for one in found}
    if len(people) != 1:
        raise MismatchError("the collectors hold shares of different people, although they had agreed: no sum is right")
    (agreed,) = people
    n = found[0]["n"]
    return n, joined([one.sum_shares(name, epoch, agreed) for one in collectors]), n


def _strictest(survey: Survey) -> Sum:
    """The question that needs the most people."""
    asked = [question.protocol.law().sum for question in survey]
    return max((one for one in asked if one is not None), key=lambda one: one.enough)


def _ids(text: str) -> frozenset[bytes]:
    return frozenset(rows(np.frombuffer(_raw(text), dtype=np.uint8).reshape(-1, ID_BYTES)))


def _raw(text: str) -> bytes:
    raw = from_text(text, len(text) * 3 // 4)
    if raw is None:
        raise MismatchError("the service sent what is not base64url")
    return raw


def epoch_range(first: int | None, last: int | None) -> str:
    """
    >>> epoch_range(3, 5), epoch_range(None, 5), epoch_range(3, None)
    ('3..5', '..5', '3..')
    """
    return f"{'' if first is None else first}..{'' if last is None else last}"


def read_range(text: str) -> tuple[int | None, int | None]:
    """
    >>> read_range("3..5"), read_range("7"), read_range("3..")
    ((3, 5), (7, 7), (3, None))
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        raise SpecError(f"epochs are written 3..5, 3.., ..5 or 3, not {text!r}")
    one, low, high = found.groups()
    first, last = (int(end) if end else None for end in ((one, one) if one else (low, high)))
    if first is not None and last is not None and first > last:
        raise SpecError(f"a range of epochs goes upwards, which {text!r} does not")
    return first, last


def _events(chunks: Iterable[bytes]) -> Iterator[dict[str, str]]:
    r"""Server-sent events, each as a dictionary of its fields; an incomplete event is dropped.

    >>> list(_events([b"retry: 9\n\nid: 3\nda", b"ta: {}\n\ndata: {"]))
    [{'retry': '9'}, {'id': '3', 'data': '{}'}]
    """
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        for event in whole:
            fields = (line.partition(": ") for line in event.decode().splitlines())
            yield {name: value for name, _, value in fields if name}


def _refusal(status: int, body: bytes) -> ServiceRefused:
    try:
        problem = msgspec.json.decode(body)
        message = str(problem.get("detail") or problem["title"])
    except (msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        message = "it did not say why"
    return ServiceRefused(status, f"the service answered {status}: {message}")
