"""One byte string for one spec, and nothing in it that two languages could write differently."""

from __future__ import annotations

import hashlib
import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from deniable.errors import SpecError
from deniable.specs import canonical_bytes, fingerprint, integer_text, read_integer
from tests.memory import memory_below

nfc = st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: unicodedata.normalize("NFC", text))
safe = st.integers(-(2**53) + 1, 2**53 - 1)
specs = st.recursive(
    st.none() | st.booleans() | safe | nfc,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(nfc, inner, max_size=4),
    max_leaves=12,
)


@given(specs)
def test_canonical_bytes_read_back_and_are_stable(spec):
    data = canonical_bytes(spec)
    assert json.loads(data) == spec
    assert canonical_bytes(json.loads(data)) == data


def test_the_order_of_keys_does_not_matter_and_that_of_items_does():
    assert canonical_bytes({"b": 1, "a": [1, 2]}) == canonical_bytes({"a": [1, 2], "b": 1}) == b'{"a":[1,2],"b":1}'
    assert canonical_bytes([1, 2]) != canonical_bytes([2, 1])


def test_truth_values_and_integers_stay_apart():
    assert canonical_bytes([True, 1, False, 0, None]) == b"[true,1,false,0,null]"


def test_text_is_utf8_with_the_escapes_of_json_only():
    assert canonical_bytes('é"\\\n\x01\u2028🎲') == '"é\\"\\\\\\n\\u0001\u2028🎲"'.encode()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (0.5, "float"),
        ([1.0], "float"),
        ({"a": {"b": float("nan")}}, "float"),
        (2**53, "2\\^53"),
        (-(2**53), "2\\^53"),
        ("e\u0301", "NFC"),
        ({"e\u0301": 1}, "NFC"),
        ({1: 2}, "text keys"),
        ({None: 2}, "text keys"),
        ((1, 2), "tuple"),
        (b"x", "bytes"),
        ({1, 2}, "set"),
        ("\ud800", "surrogate"),
        (["a\udfff"], "surrogate"),
    ],
)
def test_what_a_spec_cannot_hold(spec, reason):
    with pytest.raises(SpecError, match=reason):
        canonical_bytes(spec)


def test_a_deep_spec_is_refused_and_not_followed():
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(SpecError, match="nested"):
        canonical_bytes(deep)
    ten: list[object] = [[[[[[[[[["a"]]]]]]]]]]
    assert canonical_bytes(ten)


def test_fingerprints_are_kept_apart_by_kind():
    expected = hashlib.sha256(b'deniable-channel-v1\0{"a":1}').hexdigest()
    assert fingerprint("channel", {"a": 1}) == expected
    assert fingerprint("protocol", {"a": 1}) != expected


@given(st.integers())
def test_integers_as_text(number):
    assert integer_text(number) == str(number)
    assert read_integer(integer_text(number)) == number


@pytest.mark.parametrize(("base", "power"), [(10, 4299), (10, 4300), (-7, 9001), (3, 40000)])
def test_integers_beyond_what_str_writes(base, power):
    number = base**power
    text = integer_text(number)
    assert read_integer(text) == number
    assert text.lstrip("-").isdigit()


@pytest.mark.parametrize(
    "text",
    ["", "007", "-0", "+1", " 1", "1 ", "1\n", "1e3", "1.0", "1_0", "٣", "0x1", "9" * 2_000_000, 5, 5.0, None],
    ids=lambda text: repr(text)[:12],
)
def test_what_is_no_integer_in_a_spec(text):
    with memory_below(100_000), pytest.raises(SpecError, match="decimal digits"):
        read_integer(text)
