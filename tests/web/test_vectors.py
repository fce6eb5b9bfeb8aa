"""Python still draws what the browser was given to repeat; a change of one byte fails here."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from deniable.exact import Dyadic
from deniable.protocols import GRR, load, registered
from tests.web import vectors


def test_the_file_is_what_python_draws_now():
    assert not vectors.differences(), "python -m tests.web.vectors shows the difference"


def test_only_the_last_digits_of_a_float_may_differ(monkeypatch: pytest.MonkeyPatch):
    drawn = vectors.document()
    monkeypatch.setattr(vectors, "document", lambda: drawn)
    stage = next(stage for stage in drawn["stages"] if stage["linking"][1] % 1)
    exact = stage["linking"][1]
    stage["linking"][1] = exact * (1 + 1e-13)
    assert not vectors.differences()
    stage["linking"][1] = exact * (1 + 1e-8)
    assert any("linking" in line for line in vectors.differences())
    stage["linking"][1] = exact
    drawn["cases"][0]["reports"] = "ff" + drawn["cases"][0]["reports"][2:]
    assert len(vectors.differences()) == 5


def test_every_protocol_has_enough_vectors():
    counts: Counter[str] = Counter()
    for entry in json.loads(vectors.FILE.read_text(encoding="ascii"))["cases"]:
        counts[entry["spec"]["protocol"]] += len(entry["words"])
    ours = {name for name, kind in registered().items() if kind.__module__.startswith("deniable.")}
    assert set(counts) == ours
    assert min(counts.values()) >= 1000


def test_the_file_stays_small():
    assert vectors.FILE.stat().st_size < 1_200_000


def test_specs_in_the_file_load_again():
    document = json.loads(vectors.FILE.read_text(encoding="ascii"))
    for part in ("cases", "explicit", "thresholds"):
        for entry in document[part]:
            assert load(entry["spec"]).spec() == entry["spec"]


def test_the_stream_of_a_seed_is_as_documented():
    bits = vectors.Hashed(258)
    blocks = [
        hashlib.sha256(b"deniable-vector-v1\x02\x01" + bytes(6) + bytes([i]) + bytes(7)).digest() for i in range(3)
    ]
    assert bits.take(8) + bits.take(72) == b"".join(blocks)[:80]


def test_a_changed_law_would_be_noticed(monkeypatch: pytest.MonkeyPatch):
    before = vectors.case(GRR(["yes", "no"], 1), ["yes"], 0, 100)
    kept = GRR.draw

    def broken(self, value, bits):
        drawn = bits.integers(self.domain.size)  # the two draws in the other order
        return (value if bits.bernoulli(self.response.keep) else drawn).to_bytes(1, "little")

    monkeypatch.setattr(GRR, "draw", broken)
    assert vectors.case(GRR(["yes", "no"], 1), ["yes"], 0, 100) != before
    monkeypatch.setattr(GRR, "draw", kept)
    assert vectors.case(GRR(["yes", "no"], 1), ["yes"], 0, 100) == before


def test_a_threshold_that_is_off_by_one_would_be_noticed(monkeypatch: pytest.MonkeyPatch):
    before = [entry["thresholds"] for entry in vectors.threshold_cases()]
    rounded = Dyadic.ceil_of
    monkeypatch.setattr(Dyadic, "ceil_of", lambda function, x: Dyadic(rounded(function, x).numerator - 1))
    after = [entry["thresholds"] for entry in vectors.threshold_cases()]
    assert sum(a != b for a, b in zip(after, before, strict=True)) >= 40
