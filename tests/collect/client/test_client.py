"""The client against a server on a socket: what leaves, what is tried again, what is refused before anything leaves."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest

from deniable.collect import wire
from deniable.collect.client import (
    AsyncClient,
    BudgetSpent,
    Client,
    Deleted,
    Ledger,
    NotOpen,
    OptedOut,
    SuccessorDiffers,
    Untrusted,
)
from deniable.collect.http import ForbiddenAddress, Unreachable
from deniable.errors import DeniableError, DomainError, LabelError
from deniable.protocols import GRR
from deniable.surveys import Question, Survey
from deniable.surveys.diff import diff
from deniable.surveys.terms import Budget, Longitudinal
from tests.collect.client.server import DROP_REQUEST, DROP_RESPONSE, OK, PORTAL, TORN
from tests.collect.surveys import DAY, SMOKE, TODAY, current, daily, memoized, mixed, plain, terms, text

MIXED = {"smoke": "yes", "drink": 3, "age": 42, "town": 7}


# -- what leaves -----------------------------------------------------------------------------------------


def test_an_answer_arrives_in_the_binary_form(server, device):
    survey = mixed()
    receipt = device(survey).answer(MIXED)
    assert (receipt.state, receipt.fresh, receipt.submission.epsilon) == ("sent", True, 4)
    (body,) = server.posts
    assert body == receipt.body
    read = wire.decode(body, survey.report_bytes, 1)
    assert read.epochs.tolist() == [current(survey)]
    for question, start in zip(survey, [0, 1, 4, 4 + survey["age"].protocol.report_bytes], strict=True):
        report = read.answers[:, start : start + question.protocol.report_bytes]
        assert question.protocol.law().plausible(report.copy()).all()


def test_a_request_says_nothing_about_who_is_asking(server, device):
    survey = plain()
    device(survey).answer({"smoke": "yes"})
    got, posted = server.requests
    host = server.url.removeprefix("http://").encode()
    assert got == b"GET /v1/surveys/%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (survey.fingerprint.encode(), host)
    head, _, body = posted.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /v1/surveys/%s/reports HTTP/1.1" % survey.fingerprint.encode(),
        b"Host: " + host,
        b"Content-Type: application/vnd.deniable.reports",
        b"Content-Length: %d" % len(body),
    ]


def test_an_ingest_key_is_sent_with_reports_only(server, device):
    device(plain(), token="open-sesame").answer({"smoke": "yes"})
    got, posted = server.requests
    assert b"Authorization" not in got
    assert b"\r\nAuthorization: Bearer open-sesame\r\n" in posted


def test_the_length_does_not_depend_on_the_answer(server, device, clock):
    client = device(text())
    lengths = set()
    for bread in ("rye", "x" * 4000, "pumpernickel"):
        other = device(text(), ledger=client.ledger.path.with_name(f"{len(bread)}.sqlite"))
        lengths.add(len(other.answer({"bread": bread}).body))
    assert len(lengths) == 1
    assert len(set(server.posts)) == 3


def test_the_survey_is_fetched_once_a_device(server, device):
    survey = daily()
    device(survey).survey()
    again = device(survey, publish=False)
    assert again.survey() == survey
    again.answer({"smoke": "no"})
    assert sum(raw.startswith(b"GET") for raw in server.requests) == 1


def test_history_and_budget_show_everything(device, clock, server):
    client = device(daily())
    for _ in range(3):
        client.answer({"smoke": "yes"})
        clock.days(1)
    assert [(known.epoch, known.state, known.body, known.id) for known in client.history()] == [
        (epoch, "sent", b"", b"") for epoch in (10, 11, 12)
    ]
    clock.days(1)
    server.script = [(503, {})]
    waiting = client.answer({"smoke": "yes"})
    assert client.history()[-1].body == waiting.body == server.posts[-1]
    budget = client.budget()
    assert (budget.owner, budget.group, budget.cap) == ("Example Institute", "tests", 5)
    assert (budget.spent, budget.left) == (4, 1)
    assert dict(budget.surveys) == {client.fingerprint: Fraction(4)}


def test_asyncio(server, tmp_path, clock):
    survey = daily()
    server.publish(survey)

    async def answer():
        async with AsyncClient(server.url, survey.fingerprint, tmp_path / "ledger.sqlite", clock=clock) as client:
            receipts = await asyncio.gather(*(client.answer({"smoke": "yes"}) for _ in range(5)))
            assert (await client.flush()).queued == 0
            assert (await client.budget()).spent == 1
            assert (await client.survey()) == survey
            await client.opt_out()
            with pytest.raises(OptedOut):
                await client.answer({"smoke": "yes"})
            await client.opt_in()
            await client.withdraw()
            return receipts, await client.history()

    receipts, history = asyncio.run(answer())
    (first,) = [receipt for receipt in receipts if receipt.fresh]
    assert {receipt.body for receipt in receipts} <= {first.body, b""}
    assert [known.state for known in history] == ["withdrawn"]
    assert len(server.counted) == 1
    assert server.conflicts == 0


def test_asyncio_has_every_method_and_argument():
    """Found by name, so that one that is added to the client alone is missed here."""

    def signatures(kind, names):
        return {name: str(inspect.signature(getattr(kind, name))) for name in names}

    names = [name for name, what in vars(Client).items() if callable(what) and not name.startswith("_")]
    assert {"answer", "epoch", "terms", "withdraw"} < set(names)
    assert signatures(AsyncClient, ["__init__", *names]) == signatures(Client, ["__init__", *names])


@pytest.mark.parametrize("kind", [Client, AsyncClient, Ledger])
def test_every_argument_is_public_and_explained(kind):
    names = set(inspect.signature(kind).parameters)
    assert not [name for name in names if name.startswith("_")]
    explained = Client.__doc__ if kind is AsyncClient else kind.__doc__
    assert [name for name in names if name not in explained] == []


# -- one submission an epoch -----------------------------------------------------------------------------


def test_an_epoch_is_answered_once_and_the_second_answer_is_not_looked_at(server, device):
    client = device(daily())
    first = client.answer({"smoke": "yes"})
    second = client.answer({"smoke": "this is no answer at all"})
    assert (second.fresh, second.state, second.body) == (False, "sent", b"")
    assert server.posts == [first.body]
    assert client.budget().spent == 1
    assert len(server.posts) == 1


def test_the_number_of_epochs_is_capped_whichever_way_the_clock_moves(server, device, clock):
    client = device(daily())
    for jump in (0, 3, -1, -4, 0, 7):
        clock.days(jump)
        client.answer({"smoke": "yes"})
    assert sorted(known.epoch for known in client.history()) == [8, 10, 12, 13, 15]
    for jump in (1, -14, 3):
        clock.days(jump)
        with pytest.raises(BudgetSpent):
            client.answer({"smoke": "yes"})
    assert len(server.counted) == 5
    assert client.budget().left == 0


# -- trying again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [DROP_REQUEST, DROP_RESPONSE, PORTAL, TORN, (503, {}), (500, {}), (507, {}), (302, {"Location": "/"}), (429, {})],
    ids=str,
)
def test_the_same_bytes_until_they_are_answered_for(server, device, clock, trouble):
    client = device(daily())
    server.script = [trouble] * 6
    receipt = client.answer({"smoke": "yes"})
    assert receipt.state == "queued"
    done = client.flush()
    assert (done.sent, done.dropped, done.queued) == (1, 0, 0)
    assert set(server.posts) == {receipt.body}
    assert len(server.counted) == 1
    assert client.history()[0].state == "sent"
    # 1, 2, 4, 8, 16 s, each times 1/2 to 1.
    assert all(base / 2 <= nap <= base for nap, base in zip(clock.naps, [1, 2, 4, 8, 16], strict=True))


def test_pauses_stay_below_half_a_minute(server, device, clock):
    client = device(daily())
    server.script = [(503, {})] * 12
    client.answer({"smoke": "yes"}, wait=None)
    assert all(15 <= nap <= 30 for nap in clock.naps[5:])
    assert len(set(clock.naps)) == len(clock.naps)


def test_retry_after_is_honoured_also_by_the_next_call(server, device, clock):
    client = device(daily())
    server.script = [(429, {"Retry-After": "77"})]
    assert client.answer({"smoke": "yes"}).state == "queued"
    assert client.flush(timeout=0).queued == 1
    assert client.flush(timeout=60).queued == 1
    assert len(server.posts) == 1
    assert client.flush().sent == 1
    assert clock.elapsed == pytest.approx(77)


def test_a_time_limit_is_kept(server, device, clock):
    client = device(daily())
    server.script = [(503, {})] * 100
    receipt = client.answer({"smoke": "yes"}, wait=20)
    assert receipt.state == "queued"
    assert clock.elapsed <= 20
    done = client.flush(timeout=0)
    assert (done.queued, done.reason) == (1, "status 503")


def test_nobody_there(device, server):
    client = device(daily())
    client.survey()
    server.close()
    receipt = client.answer({"smoke": "yes"})
    assert receipt.state == "queued"
    assert "cannot be reached" in receipt.reason
    assert "cannot be reached" in client.flush(timeout=0).reason


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407, 408])
def test_a_wrong_key_or_address_loses_nothing(server, device, status):
    client = device(daily())
    server.script = [(status, {}, "unauthorized"), (status, {}, "unauthorized")]
    receipt = client.answer({"smoke": "yes"})
    assert (receipt.state, client.flush(timeout=0).reason) == ("queued", f"status {status} unauthorized")
    # Put right, the same bytes are taken.
    assert client.flush(timeout=0).sent == 1
    assert len(server.posts) == 3
    assert len(set(server.posts)) == 1


@pytest.mark.parametrize("status", [400, 410, 413, 415])
def test_what_the_server_calls_wrong_is_dropped_with_its_reason(server, device, clock, status):
    client = device(daily())
    server.script = [(status, {}, "malformed")]
    receipt = client.answer({"smoke": "yes"}, wait=None)
    assert (receipt.state, receipt.submission.reason) == ("dropped", f"status {status} malformed")
    assert receipt.reason == receipt.submission.reason
    assert client.flush() == client.flush(timeout=0)
    assert len(server.posts) == 1
    assert client.budget().spent == 1, "it has left the device, so it is paid for"
    clock.days(1)
    assert client.answer({"smoke": "yes"}).state == "sent"


def test_a_rejected_submission_is_dropped_with_the_reason(server, device):
    client = device(daily())
    server.script = [("reject", "epochClosed")]
    receipt = client.answer({"smoke": "yes"}, wait=None)
    assert (receipt.state, receipt.submission.reason) == ("dropped", "epochClosed")
    assert receipt.reason == "its epoch is closed (epochClosed)"
    assert client.answer({"smoke": "yes"}).reason == receipt.reason, "of the first time"
    assert client.budget().spent == 1


def test_a_reason_cannot_write_anything_into_the_ledger(server, device):
    client = device(daily())
    server.script = [("reject", "\x1b[2J" + "x" * 10_000)]
    assert client.answer({"smoke": "yes"}).submission.reason == "unreadable"


def test_several_epochs_wait_and_are_sent_in_order(server, device, clock):
    client = device(daily())
    server.script = [DROP_RESPONSE, DROP_REQUEST, (503, {})]
    bodies = []
    for _ in range(3):
        receipt = client.answer({"smoke": "yes"})
        assert receipt.state == "queued"
        bodies.append(receipt.body)
        clock.days(1)
    assert client.flush().sent == 3
    assert server.conflicts == 0
    assert sorted(server.counted.values()) == sorted(bodies)


def test_a_slow_server_is_given_up_and_tried_again(server, device):
    client = device(daily(), timeout=0.2)
    server.script = [("slow", 0.5), OK]
    receipt = client.answer({"smoke": "yes"})
    assert receipt.state == "queued"
    assert "in time" in client.flush(timeout=0).reason or client.history()[0].state == "sent"
    assert client.flush().queued == 0
    assert set(server.posts) == {receipt.body}


def test_spread_puts_sending_off_at_random(server, device, clock, tmp_path):
    survey, delays = daily(), []
    for number in range(20):
        client = device(survey, ledger=tmp_path / f"{number}.sqlite", spread=600.0)
        before = clock.now
        assert client.answer({"smoke": "yes"}).state == "queued"
        assert not server.posts or len(server.posts) == number
        client.flush()
        delays.append(clock.now - before)
    assert len(set(delays)) == 20
    assert max(delays) <= 600
    # The mean of 20 uniform delays is farther than 5 standard errors (194) from 300 once in 2 million runs.
    assert abs(sum(delays) / 20 - 300) < 5 * 600 / (12 * 20) ** 0.5


def test_a_clock_set_back_does_not_hold_up_what_is_due(server, device, clock):
    client = device(daily(), spread=600.0)
    client.answer({"smoke": "yes"})
    clock.days(-100)
    assert client.flush(timeout=0).sent == 1


# -- refused, and nothing leaves -------------------------------------------------------------------------


def refuses(server, client, error, answers=None, match=None):
    """No submission reaches the socket, none is recorded, nothing is spent."""
    before = client.ledger.submissions()
    with pytest.raises(error, match=match) as caught:
        client.answer({"smoke": "yes"} if answers is None else answers)
    assert server.posts == []
    assert client.ledger.submissions() == before
    assert client.ledger.budgets() == []
    return str(caught.value)


def altered(survey: Survey, **changes) -> bytes:
    spec = survey.spec() | changes
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def weaker(survey: Survey) -> bytes:
    spec = json.loads(survey.canonical)
    spec["questions"][0]["protocol"]["epsilon"] = "5"
    return json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "content",
    [
        weaker(daily()),
        altered(daily(), purpose="Something else."),
        altered(daily(), extra=1),
        plain().canonical,
        daily().canonical + b"\n",
        b"",
        b"\xff" * 100,
        b"x" * (17 << 20),
    ],
    ids=["weaker", "purpose", "extra key", "another", "newline", "empty", "noise", "endless"],
)
def test_other_bytes_than_the_pinned_ones(server, device, content):
    survey = daily()
    client = device(survey, publish=False)
    server.publish(survey, content)
    refuses(server, client, DeniableError)
    assert client.ledger.pinned(survey.fingerprint) is None


def unchecked(content: bytes) -> str:
    return hashlib.sha256(b"deniable-survey-v1\0" + content).hexdigest()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (Survey("files", [SMOKE]).canonical, "for files"),
        (altered(daily(), extra=1), "unknown key"),
        (altered(daily(), version=3), "version"),
        (json.dumps(daily().spec()).encode(), "canonical"),
        (b"[]", "not a survey"),
    ],
    ids=["no terms", "unknown key", "version", "not canonical", "list"],
)
def test_pinned_bytes_that_are_no_usable_survey(server, tmp_path, content, match):
    server.surveys[unchecked(content)] = content
    client = Client(server.url, unchecked(content), tmp_path / "ledger.sqlite")
    refuses(server, client, Untrusted, match=match)


def test_an_unknown_survey_and_a_server_in_trouble(server, device):
    client = device(daily(), publish=False)
    refuses(server, client, Untrusted, match="404")
    server.close()
    refuses(server, client, Unreachable)


@pytest.mark.parametrize(("days", "match"), [(-11, "not open yet"), (30, "over"), (400, "over")])
def test_outside_the_calendar(server, device, clock, days, match):
    clock.days(days)
    refuses(server, device(daily()), NotOpen, match=match)


@pytest.mark.parametrize(
    ("answers", "error", "match"),
    [
        ({}, LabelError, "silence"),
        ({"smoke": "yes", "drink": 3, "age": 42}, LabelError, r"no answer to town: .* \(smoke, drink, age, town\)"),
        (MIXED | {"tow": "secretvalue"}, LabelError, "no question 'tow': its questions are smoke, drink, age, town"),
        (MIXED | {"smoke": "secretvalue"}, DomainError, r"'smoke': the answer, a str, is not one of .* \(yes, no\)"),
        (MIXED | {"smoke": None}, DomainError, "smoke"),
        (MIXED | {"age": 41.5}, DomainError, "'age': the answer is not one of the whole numbers from 0 to 99"),
        (MIXED | {"age": True}, DomainError, "'age': the answer, a bool, is not one of the whole numbers"),
        (MIXED | {"age": 1234567}, DomainError, "age"),
        (MIXED | {"age": "secretvalue"}, DomainError, "age"),
        (MIXED | {"smoke": ["yes", "yes"]}, DomainError, "smoke"),
        (["yes"], LabelError, "by question"),
    ],
)
def test_answers_that_are_none(server, device, answers, error, match):
    message = refuses(server, device(mixed()), error, answers, match)
    assert not re.search("secret|1234567", message)


def test_a_whole_float_is_the_whole_number(tmp_path):
    """A memoized one repeats the report of the other."""
    question = Question("n", "?", GRR(1000, epsilon=1))
    survey = Survey("numbers", [question], terms(longitudinal=Longitudinal("memoize", epochs=5, values=3)))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first, second = (ledger.submit(survey, epoch, {"n": n})[0] for epoch, n in enumerate((42, 42.0)))
    assert first.body[24:] == second.body[24:]


def test_open_text_that_is_no_text(server, device):
    for value in (7, None, "x" * 5000, "secret\ud800"):
        assert "secret" not in refuses(server, device(text()), DomainError, {"bread": value})


@pytest.mark.parametrize("name", ["A" * 64, "ab" * 31, "", "../../etc/passwd", None])
def test_fingerprints_are_written_one_way(server, tmp_path, name):
    with pytest.raises(Untrusted, match="64 hexadecimal"):
        Client(server.url, name, tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "http://10.0.0.1:80", "http://localhost.example.org", "ftp://localhost", "localhost:80"],
)
def test_addresses_that_are_not_talked_to(address, tmp_path):
    with pytest.raises(ForbiddenAddress):
        Client(address, "ab" * 32, tmp_path / "ledger.sqlite")


def test_plain_http_elsewhere_only_on_demand(tmp_path):
    Client("http://example.org", "ab" * 32, tmp_path / "ledger.sqlite", insecure=True)


# -- leaving ---------------------------------------------------------------------------------------------


def test_an_opted_out_device_makes_no_connection(server, device, tmp_path):
    survey = daily()
    client = device(survey)
    client.opt_out()
    with pytest.raises(OptedOut, match=r"opted out, .*: opt_in\(\) takes part again"):
        client.answer({"smoke": "yes"})
    with pytest.raises(OptedOut):
        client.survey()
    assert client.flush().sent == 0
    assert client.history() == []
    assert server.connections == 0
    client.opt_in()
    client.answer({"smoke": "yes"})
    assert server.connections > 0


def test_opting_out_drops_what_waits(server, device):
    client = device(daily())
    server.script = [(503, {})]
    client.answer({"smoke": "yes"})
    connections = server.connections
    client.opt_out()
    assert [(known.state, known.reason) for known in client.history()] == [("dropped", "optedOut")]
    client.flush()
    client.opt_in()
    client.flush()
    assert server.connections == connections
    assert client.answer({"smoke": "yes"}).state == "dropped"


def test_opting_out_of_one_survey_or_of_all(device):
    one, other = device(daily()), device(memoized())
    one.opt_out()
    assert other.answer({"mood": "good"}).state == "sent"
    Ledger(one.ledger.path).opt_out()
    with pytest.raises(OptedOut):
        other.answer({"mood": "good"})
    other.opt_in()
    assert not other.ledger.opted_out(other.fingerprint)
    assert one.ledger.opted_out(one.fingerprint)
    assert one.ledger.opted_out("ab" * 32), "coming back to one survey is not coming back to all"
    Ledger(one.ledger.path).opt_in()
    assert not one.ledger.opted_out(one.fingerprint)


def test_withdrawing_deletes_everything_but_the_debits(server, device, clock):
    client = device(memoized())
    server.script = [OK, (503, {})]
    bodies = [client.answer({"mood": "good"}).body]
    clock.days(1)
    bodies.append(client.answer({"mood": "bad"}).body)
    client.withdraw()
    assert [(known.state, known.body, known.id) for known in client.history()] == [("withdrawn", b"", b"")] * 2
    stored = b"".join(path.read_bytes() for path in client.ledger.path.parent.iterdir())
    assert not any(body in stored or body[8:24] in stored for body in bodies)
    assert client.survey().canonical not in stored
    requests = len(server.requests)
    assert client.flush().sent == 0
    with pytest.raises(OptedOut):
        client.answer({"mood": "good"})
    assert len(server.requests) == requests

    client.opt_in()
    assert client.answer({"mood": "good"}).fresh is False, "this epoch was answered before the withdrawal"
    assert client.budget().spent == 2
    clock.days(1)
    again = client.answer({"mood": "good"})
    assert again.submission.epsilon == 1, "drawn anew, so paid for again"
    clock.days(1)
    with pytest.raises(BudgetSpent):
        client.answer({"mood": "good"})


# -- deleting reports ------------------------------------------------------------------------------------


def asked(server) -> list[bytes]:
    """Everything that was sent with DELETE, but for the host."""
    return [raw.split(b"\r\n")[0] for raw in server.requests if raw.startswith(b"DELETE")]


def test_reports_of_this_device_are_deleted_by_their_ids(server, device, clock):
    client = device(daily(retention="reports"), token="ingest")  # which deleting does not need
    bodies = [client.answer({"smoke": "yes"}).body]
    clock.days(1)
    bodies.append(client.answer({"smoke": "yes"}).body)
    kept = [known.id for known in client.history()]
    assert kept == [body[8:24] for body in bodies]
    assert all(known.erased for known in client.history())
    del server.counted[kept[1]]
    assert client.delete_sent() == Deleted(deleted=1, not_held=1)
    paths = [f"DELETE /v1/surveys/{client.fingerprint}/reports/{wire.to_text(id)} HTTP/1.1".encode() for id in kept]
    assert asked(server) == paths
    assert not any(b"Authorization" in raw for raw in server.requests if raw.startswith(b"DELETE"))
    assert [(known.state, known.reason, known.id) for known in client.history()] == [
        ("sent", "deleted", b""),
        ("sent", "notHeld", b""),
    ]
    assert client.delete_sent() == Deleted()
    assert len(asked(server)) == 2
    assert client.budget().spent == 2, "what was sent was seen"


def test_ids_are_kept_while_nobody_answers_for_the_deletion(server, device):
    client = device(daily(retention="reports"))
    client.answer({"smoke": "yes"})
    for trouble in ((503, {}), (404, {}), (429, {})):
        server.script = [trouble]
        failed = client.delete_sent()
        assert (failed.failed, failed.reason) == (1, f"status {trouble[0]}")
    assert client.history()[0].id
    server.script = [(409, {})]
    assert client.delete_sent() == Deleted(not_held=1)
    assert not client.history()[0].id


def test_what_was_deleted_with_its_survey_is_not_asked_for_again(server, device):
    client = device(daily(retention="reports"))
    client.answer({"smoke": "yes"})
    server.script = [(410, {})]
    assert client.delete_sent() == Deleted(not_held=1)
    assert not client.history()[0].id


def test_an_id_is_kept_no_longer_than_the_service_deletes_by_it(server, device, clock):
    client = device(daily(retention="reports"))
    client.answer({"smoke": "yes"})
    late = client.terms().epochs.late
    assert client.history()[0].id_until == client.terms().epochs.start(10 + late + 1)
    clock.days(late)
    client.flush(timeout=0)
    assert client.history()[0].id
    clock.days(1)
    client.flush(timeout=0)
    assert client.history()[0].id == b""
    assert client.delete_sent() == Deleted()
    assert asked(server) == []


def test_a_survey_that_keeps_counts_leaves_no_id_to_delete_by(server, device):
    client = device(daily())
    client.answer({"smoke": "yes"})
    assert client.history()[0].id == b""
    assert client.delete_sent() == Deleted()
    assert asked(server) == []


def test_what_may_have_arrived_without_a_reply_is_deleted_too(server, device, clock):
    client = device(daily(retention="reports"))
    server.script = [DROP_RESPONSE, DROP_REQUEST, DROP_REQUEST]
    client.answer({"smoke": "yes"})
    clock.days(1)
    client.answer({"smoke": "yes"})
    assert [known.state for known in client.history()] == ["queued", "queued"]
    assert client.delete_sent() == Deleted(deleted=1, not_held=1)
    assert [(known.state, known.reason) for known in client.history()] == [("sent", "deleted"), ("dropped", "notHeld")]
    assert client.flush().sent == 0


def test_reports_can_be_deleted_after_opting_out_but_not_after_withdrawing(server, device):
    client = device(daily(retention="reports"))
    client.answer({"smoke": "yes"})
    client.opt_out()
    assert client.delete_sent() == Deleted(deleted=1)
    other = device(daily(retention="reports"), ledger=client.ledger.path.with_name("other.sqlite"))
    other.answer({"smoke": "yes"})
    other.withdraw()
    assert other.delete_sent() == Deleted()


# -- a survey that replaces another ----------------------------------------------------------------------


def succeeding(before: Survey, epsilon: str = "2") -> Survey:
    question = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=epsilon))
    return Survey("daily", [question], replace(before.terms, replaces=before.fingerprint, budget=Budget("tests", 10)))


@pytest.mark.parametrize(("epsilon", "worse"), [("2", True), ("1/2", False)])
def test_a_successor_of_a_pinned_survey_is_answered_when_somebody_has_agreed(server, device, clock, epsilon, worse):
    before = daily()
    after = succeeding(before, epsilon)
    assert device(before).answer({"smoke": "yes"}).state == "sent"
    posts, client = len(server.posts), device(after)
    with pytest.raises(SuccessorDiffers) as caught:
        client.answer({"smoke": "yes"})
    assert caught.value.predecessor == before.fingerprint
    assert list(caught.value.changes) == client.changes() == diff(before, after)
    assert ("epsilon of a submission" in str(caught.value)) is worse
    assert len(server.posts) == posts
    assert client.history() == []
    assert client.answer({"smoke": "yes"}, accept_changes=True).state == "sent"
    clock.days(1)
    assert client.changes() == []
    assert client.answer({"smoke": "yes"}).state == "sent", "agreed once"


def test_a_successor_of_an_unknown_survey_is_a_new_one(device):
    client = device(succeeding(daily()))
    assert client.changes() == []
    assert client.answer({"smoke": "yes"}).fresh


def test_a_predecessor_that_cannot_be_read_any_more_counts_as_weaker(device):
    before = daily()
    client = device(succeeding(before))
    client.survey()
    with sqlite3.connect(client.ledger.path) as connection:
        connection.execute("INSERT INTO survey VALUES (?, 'x', ?, NULL, NULL)", (before.fingerprint, b"{}"))
    connection.close()
    (change,) = client.changes()
    assert change.privacy == "weaker"


def test_today_is_in_the_tenth_epoch():
    assert current(daily()) == 10
    assert daily().terms.opens == TODAY - 10 * DAY
