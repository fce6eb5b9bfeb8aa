"""Ids: the byte construction is fixed, a restored ledger gives them again, and epochs out of turn have random ones."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from contextlib import closing

import pytest

from deniable.collect.client import Ledger, ledger as ledger_module
from deniable.collect.client.ledger import advance, report_id
from deniable.domains import Categories, Integers, Strings
from deniable.errors import DomainError
from deniable.surveys import Survey
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import SMOKE, terms

KEY = bytes(range(32))
FINGERPRINT = "0123456789abcdef" * 4
YES = {"smoke": "yes"}
SURVEY = Survey("often", [SMOKE], terms(longitudinal=Longitudinal(epochs=30)))


def test_vectors_for_other_languages():
    """Written down once: a change here makes a restored device count twice."""
    assert report_id(KEY, FINGERPRINT, 7).hex() == "c7f75366429ff99f9ca284fdaaeeb621"
    assert advance(KEY, 3).hex() == "4e05063392f42b5180353ef82da86c714042155044d91ab3253f1bab08120a0a"


def test_the_construction_as_the_docstring_says():
    key = KEY
    for epoch in range(5):
        assert advance(KEY, epoch) == key
        message = b"deniable-report-id-v1\0" + bytes.fromhex(FINGERPRINT) + bytes([epoch, 0, 0, 0])
        assert report_id(key, FINGERPRINT, epoch) == hmac.new(key, message, hashlib.sha256).digest()[:16]
        key = hashlib.sha256(key).digest()


def kept(ledger: Ledger) -> tuple[int, bytes]:
    with closing(sqlite3.connect(ledger.path)) as connection:
        return connection.execute("SELECT epoch, key FROM id_key").fetchone()


def test_the_key_moves_on_with_the_epochs(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.pin(SURVEY)
    epoch, first = kept(ledger)
    assert epoch == SURVEY.terms.first
    made, _ = ledger.submit(SURVEY, 4, YES)
    assert made.id == report_id(advance(first, 4), SURVEY.fingerprint, 4)
    assert kept(ledger) == (5, advance(first, 5))
    ledger.pin(SURVEY)
    assert kept(ledger) == (5, advance(first, 5)), "meeting the survey again makes no new key"


@pytest.mark.parametrize("between", [(), (5,), (5, 6, 7)], ids=str)
def test_a_restored_ledger_gives_the_same_id_whatever_was_answered_between(tmp_path, between):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.submit(SURVEY, 2, YES)
    copy = path.read_bytes()
    for epoch in between:
        ledger.submit(SURVEY, epoch, YES)
    first = ledger.submit(SURVEY, 9, YES)[0]
    path.write_bytes(copy)
    assert Ledger(path).submit(SURVEY, 9, {"smoke": "no"})[0].id == first.id
    path.write_bytes(copy)
    assert Ledger(path).submit(SURVEY, 10, YES)[0].id != first.id


def test_a_restored_ledger_draws_again(tmp_path):
    """A second sample under the same id. All 64 reports agree with probability below 0.74^63, about 6e-9."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).pin(SURVEY)
    copy, bodies = path.read_bytes(), set()
    for _ in range(64):
        path.write_bytes(copy)
        bodies.add(Ledger(path).submit(SURVEY, 0, YES)[0].body)
    assert len(bodies) == 2
    assert len({body[:24] for body in bodies}) == 1


def test_an_epoch_whose_key_is_erased_has_a_random_id(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.submit(SURVEY, 9, YES)
    copy, ids = path.read_bytes(), set()
    for _ in range(3):
        path.write_bytes(copy)
        ids.add(Ledger(path).submit(SURVEY, 3, YES)[0].id)
        assert kept(ledger)[0] == 10
    assert len(ids) == 3


def test_so_far_ahead_that_the_chain_would_take_long(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_module, "FARTHEST", 5)
    near, far = Ledger(tmp_path / "near.sqlite"), Ledger(tmp_path / "far.sqlite")
    for ledger, epoch in ((near, 5), (far, 6)):
        ledger.pin(SURVEY)
        _, first = kept(ledger)
        ledger.submit(SURVEY, epoch, YES)
        assert kept(ledger)[0] == epoch + 1
        assert (kept(ledger)[1] == advance(first, epoch + 1)) is (ledger is near)


def test_leaving_deletes_the_key(tmp_path):
    for leave in (lambda ledger: ledger.opt_out(SURVEY.fingerprint), Ledger.opt_out, Ledger.withdraw):
        path = tmp_path / "ledger.sqlite"
        ledger = Ledger(path)
        ledger.submit(SURVEY, 0, YES)
        leave(ledger)
        assert kept(ledger) is None
        path.unlink()


# -- memoized values -------------------------------------------------------------------------------------


def kept_as(domain, value):
    return domain.answer_key(domain.encode_one(value))


def test_values_as_a_ledger_keeps_them():
    assert kept_as(Integers(-5, 5), -5) == bytes(9)
    unlisted = Categories(["a", "else"], other="else")
    assert kept_as(unlisted, "z") == kept_as(unlisted, "else")
    assert kept_as(Categories([1, True]), True)[1] == 1
    assert kept_as(Strings(), "\0") == b"\1\0"
    assert kept_as(Strings(), "nai\u0308ve") == b"\1" + "naïve".encode()
    for value in ("maybe", None, 7):
        with pytest.raises(DomainError) as caught:
            kept_as(SMOKE.protocol.domain, value)
        assert "maybe" not in str(caught.value)
