"""An application records as often as it likes; one submission per epoch leaves, with or without an event."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from deniable.collect import wire
from deniable.collect.client import AsyncClient, Ledger
from deniable.domains import Integers
from deniable.errors import DomainError, LabelError
from deniable.protocols import GRR
from deniable.surveys import Question, Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import TODAY, terms

# At epsilon 64 a report is the answer but once in 10^27: what was reported can be read.
MINUTES = Question("minutes", "Minutes of use today", GRR(Integers(0, 24), epsilon=64))


def usage(epochs=20, budget=10_000, late=1):
    return Survey("usage", [MINUTES], terms(longitudinal=Longitudinal(epochs=epochs), budget=budget, late=late))


def reported(server, survey):
    """Epoch and value of each submission that arrived."""
    read = [wire.decode(body, survey.report_bytes, 1) for body in server.posts]
    return [(int(one.epochs[0]) - 10, int(one.answers[0, 0])) for one in read]


def test_the_last_value_of_an_epoch_is_sent_once_it_is_over(server, device, clock):
    survey = usage()
    client = device(survey, idle={"minutes": 0})
    for value in (3, 12, 7):
        assert client.record("minutes", value)
    assert server.posts == []
    clock.days(1)
    assert client.record("minutes", 20)
    for _ in range(5):
        client.record("minutes", 9)
        assert client.settle() == []
    assert reported(server, survey) == [(0, 7)]
    clock.days(1)
    (receipt,) = client.settle()
    assert (receipt.state, receipt.epoch, receipt.fresh) == ("sent", 11, True)
    assert reported(server, survey) == [(0, 7), (1, 9)]


def test_values_may_be_added_up(server, device, clock):
    survey = usage()
    client = device(survey, idle={"minutes": 0})
    for value in (3, 12, 7):
        client.record("minutes", value, add=True)
    clock.days(1)
    client.settle()
    assert reported(server, survey) == [(0, 22)]


def test_an_epoch_without_an_event_sends_as_much(server, device, clock):
    survey = usage()
    client = device(survey, idle={"minutes": 0})
    client.settle()
    for day in range(4):
        if day == 2:
            client.record("minutes", 24)
        clock.days(1)
        client.settle()
    assert reported(server, survey) == [(0, 0), (1, 0), (2, 24), (3, 0)]
    assert len({len(body) for body in server.posts}) == 1


def test_epochs_that_the_service_takes_no_more_are_left_out(server, device, clock):
    survey = usage(late=2)
    client = device(survey, idle={"minutes": 0})
    client.record("minutes", 5)
    clock.days(4)
    client.settle()
    assert reported(server, survey) == [(2, 0), (3, 0)]
    assert client.ledger.recorded(survey.fingerprint, 10) == {}


def test_a_restart_goes_on_where_it_was(server, device, clock, tmp_path):
    survey = usage()
    device(survey, idle={"minutes": 0}).record("minutes", 5)
    clock.days(1)
    again = device(survey, publish=False, ledger=Ledger(tmp_path / "ledger.sqlite"), idle={"minutes": 0})
    again.settle()
    again.settle()
    assert reported(server, survey) == [(0, 5)]
    with sqlite3.connect(tmp_path / "ledger.sqlite") as file:
        assert file.execute("SELECT count(*) FROM recorded WHERE epoch >= 0").fetchone() == (0,)


def test_nothing_is_made_beyond_the_budget(server, device, clock):
    survey = usage(epochs=2)
    client = device(survey, idle={"minutes": 0})
    client.settle()
    for _ in range(5):
        clock.days(1)
        assert client.record("minutes", 1)
    assert reported(server, survey) == [(0, 0), (1, 1)]


def test_who_has_opted_out_records_nothing(server, device, clock):
    survey = usage()
    client = device(survey, idle={"minutes": 0})
    client.record("minutes", 5)
    client.opt_out()
    assert client.ledger.recorded(survey.fingerprint, 10) == {}
    assert not client.record("minutes", 6)
    clock.days(1)
    assert client.settle() == []
    assert server.posts == []


def test_after_the_end_the_last_epoch_is_still_sent(server, device, clock):
    survey = usage()
    client = device(survey, idle={"minutes": 0})
    clock.days(29)
    assert client.record("minutes", 8)
    clock.days(1)
    assert not client.record("minutes", 9)
    client.settle()
    assert reported(server, survey) == [(29, 8)]


def test_what_is_no_answer_is_refused_and_not_kept(device):
    client = device(usage(), idle={"minutes": 0})
    with pytest.raises(DomainError, match="minutes") as refused:
        client.record("minutes", 999)
    assert "999" not in str(refused.value)
    with pytest.raises(LabelError, match="no question"):
        client.record("hours", 1)
    assert client.ledger.recorded(usage().fingerprint, 10) == {}
    with pytest.raises(LabelError, match="without an event"):
        device(usage(), publish=False).settle()


def test_the_asynchronous_client_records_too(server, clock, tmp_path):
    survey = usage()
    server.publish(survey)

    async def two_days():
        path = tmp_path / "ledger.sqlite"
        async with AsyncClient(server.url, survey.fingerprint, path, clock=clock, idle={"minutes": 0}) as client:
            await client.record("minutes", 4)
            clock.days(1)
            return await client.settle()

    (receipt,) = asyncio.run(two_days())
    assert receipt.epoch == (clock.now - TODAY) // 86_400 + 9
    assert reported(server, survey) == [(0, 4)]
