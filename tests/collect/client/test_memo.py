"""Keyed randomness: the byte construction is fixed, its law is the protocol's, and different things are independent."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter

import numpy as np
import pytest

from deniable.collect.client import memo
from deniable.domains import Categories, Integers, Strings
from deniable.errors import DomainError
from deniable.protocols import CMS, GRR, OLH, OUE, SubsetSelection
from deniable.surveys import Question

SECRET = bytes(range(32))
FINGERPRINT = "0123456789abcdef" * 4
SMOKE = Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))


def test_vectors_for_other_languages():
    """Written down once: a change here breaks every device in the field."""
    value = memo.encode_value(SMOKE.protocol.domain, "no")
    key = memo.stream_key(SECRET, FINGERPRINT, "smoke", memo.in_epoch(7), value)
    assert value.hex() == "000100000000000000"
    assert key.hex() == "04e25e2729c123ff64210a4b0ac41fbde0a523f3672d6dea9554bc9fda9e5497"
    assert (
        memo.Keyed(key).take(40).hex()
        == "f9c51f8613f87d0416f29e6751c8f8ea482f9a7553cede3cc619c395c6501643af34c0bfc5f009e1"
    )
    assert (
        memo.value_digest(SECRET, FINGERPRINT, "smoke", value).hex()
        == "d43710529b49d5a2e9b24b0c5a8dad05f59e67ab33006db170e74559aa836ac0"
    )
    assert memo.report_id(SECRET, FINGERPRINT, 7).hex() == "c7f75366429ff99f9ca284fdaaeeb621"


def test_the_construction_as_the_docstring_says():
    message = b"deniable-memo-v1\0" + bytes.fromhex(FINGERPRINT) + b"\x05smoke" + b"\x00" + b"\x01" + "naïve".encode()
    key = hmac.new(SECRET, message, hashlib.sha256).digest()
    value = memo.encode_value(Strings(), "nai\u0308ve")
    assert memo.stream_key(SECRET, FINGERPRINT, "smoke", memo.PERMANENT, value) == key
    blocks = [hmac.new(key, i.to_bytes(8, "little"), hashlib.sha256).digest() for i in range(4)]
    assert memo.Keyed(key).take(128) == b"".join(blocks)


def test_the_stream_does_not_depend_on_how_it_is_read():
    whole, parts = memo.Keyed(SECRET).take(500), memo.Keyed(SECRET)
    read = parts.take(0) + parts.take(3) + parts.words(4).tobytes() + parts.word().to_bytes(8, "little")
    rest = np.empty(500 - len(read), dtype=np.uint8)
    parts.fill(rest)
    assert read + rest.tobytes() == whole


def test_everything_that_is_answered_is_in_the_key():
    value = memo.encode_value(SMOKE.protocol.domain, "no")
    keys = {
        memo.stream_key(SECRET, FINGERPRINT, "smoke", memo.in_epoch(7), value),
        memo.stream_key(SECRET[::-1], FINGERPRINT, "smoke", memo.in_epoch(7), value),
        memo.stream_key(SECRET, FINGERPRINT[::-1], "smoke", memo.in_epoch(7), value),
        memo.stream_key(SECRET, FINGERPRINT, "smok", memo.in_epoch(7), b"e" + value),
        memo.stream_key(SECRET, FINGERPRINT, "smoke", memo.in_epoch(8), value),
        memo.stream_key(SECRET, FINGERPRINT, "smoke", memo.PERMANENT, value),
        memo.stream_key(
            SECRET, FINGERPRINT, "smoke", memo.in_epoch(7), memo.encode_value(SMOKE.protocol.domain, "yes")
        ),
        memo.value_digest(SECRET, FINGERPRINT, "smoke", value),
    }
    assert len(keys) == 8


def test_values_are_what_the_domain_sees():
    assert memo.encode_value(Integers(-5, 5), -5) == bytes(9)
    unlisted = Categories(["a", "b"], other="else")
    assert memo.encode_value(unlisted, "z") == memo.encode_value(unlisted, "else")
    assert memo.encode_value(Categories([1, True]), True)[1] == 1
    assert memo.encode_value(Strings(), "\0") == b"\1\0"
    for value in ("never", None, ["yes"], 1):
        with pytest.raises(DomainError):
            memo.encode_value(SMOKE.protocol.domain, value)


@pytest.mark.parametrize(
    "protocol",
    [GRR(5, epsilon=2), OUE(20, epsilon=1), OLH(100, epsilon=2), SubsetSelection(16, epsilon=1)],
    ids=lambda protocol: protocol.name,
)
def test_a_report_is_the_protocols_own(protocol):
    question = Question("q", "?", protocol)
    reports = [memo.draw(SECRET, FINGERPRINT, question, memo.in_epoch(day), 3) for day in range(50)]
    again = [memo.draw(SECRET, FINGERPRINT, question, memo.in_epoch(day), 3) for day in range(50)]
    assert reports == again
    assert len(set(reports)) > 1
    rows = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(50, -1)
    assert protocol.valid(rows).all()


def law(reports, protocol) -> bool:
    """Whether the counts of GRR reports fit the law for answer 0, by a chi-squared test of level 1e-6."""
    counts = Counter(reports)
    row = protocol.channel().rows[0]
    n = len(reports)
    statistic = sum((counts[bytes([y])] - n * p) ** 2 / (n * p) for y, p in enumerate(row))
    return statistic < 33.4  # four degrees of freedom; its tail beyond is 1.0e-6


def test_the_law_over_secrets():
    """False alarm: 1e-6, and the secrets are fixed. A stream that is keyed by a constant is caught."""
    question = Question("q", "?", GRR(5, epsilon=1))
    secrets = [hashlib.sha256(str(i).encode()).digest() for i in range(4000)]
    drawn = [memo.draw(secret, FINGERPRINT, question, memo.PERMANENT, 0) for secret in secrets]
    assert law(drawn, question.protocol)
    constant = [memo.draw(SECRET, FINGERPRINT, question, memo.PERMANENT, 0) for _ in secrets]
    assert not law(constant, question.protocol)


def test_reports_of_two_values_are_independent():
    """With the value out of the key, two reports that differ would both be true: here they differ as chance has it."""
    question = Question("q", "?", GRR(2, epsilon=1))
    secrets = [hashlib.sha256(str(i).encode()).digest() for i in range(4000)]
    pairs = [
        (memo.draw(key, FINGERPRINT, question, memo.PERMANENT, 0), memo.draw(key, FINGERPRINT, question, b"\0", 1))
        for key in secrets
    ]
    both_true = sum(pair == (b"\0", b"\1") for pair in pairs)
    both_false = sum(pair == (b"\1", b"\0") for pair in pairs)
    p = float(question.protocol.channel().rows[0, 0])
    for count, chance in ((both_true, p * p), (both_false, (1 - p) ** 2)):
        # Within 5 standard errors: false alarm 6e-7. A shared stream has no pair that is false twice.
        assert abs(count - 4000 * chance) < 5 * (4000 * chance * (1 - chance)) ** 0.5


def test_open_text():
    question = Question("bread", "?", CMS(Strings(cells=256, cohorts=4, key="t"), epsilon=2))
    first = memo.draw(SECRET, FINGERPRINT, question, memo.PERMANENT, "rye")
    assert first == memo.draw(SECRET, FINGERPRINT, question, memo.PERMANENT, "rye")
    assert first != memo.draw(SECRET, FINGERPRINT, question, memo.PERMANENT, "spelt")


def test_a_key_is_not_printed():
    assert repr(memo.Keyed(SECRET)) == "Keyed(...)"
