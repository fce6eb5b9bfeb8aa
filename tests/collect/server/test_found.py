"""Answers that nobody listed, at a service: found over all epochs, followed from epoch to epoch, and compared."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from deniable.collect.wire import ID_BYTES
from deniable.domains import ShortText
from deniable.protocols import HeavyHitters
from deniable.protocols.discovery import discovery
from deniable.protocols.discovery.search import search
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from tests.collect.server.live import in_thread
from tests.collect.surveys import Crowd, terms
from tests.documents import rows_of

WORD = HeavyHitters(ShortText(4), 8, people=3000)
SURVEY = Survey("words", [Question("word", "Which word?", WORD)], terms=terms())
SHARES = {9: (0.4, 0.2), 10: (0.2, 0.2)}
"""Of two words, in two epochs."""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with in_thread(f"sqlite:///{tmp_path_factory.mktemp('found') / 'store.db'}", SURVEY) as running:
        for epoch, (tea, sun) in SHARES.items():
            random, bits, n = np.random.default_rng(epoch), Simulation(epoch), 3000
            words = ["tea"] * round(tea * n) + ["日"] * round(sun * n)
            words += [f"{one:x}" for one in random.integers(0, 1 << 16, n - len(words))]
            ids = np.frombuffer(bits.take(n * ID_BYTES), dtype=np.uint8).reshape(n, ID_BYTES)
            running.send(SURVEY, epoch, Crowd(ids, WORD.privatize(words, bits).array))
        yield running


def read(live, path):
    answered = live.get(f"/v1/surveys/{SURVEY.fingerprint}/{path}", "analyst")
    assert answered.status == 200, answered
    return answered


def test_what_was_found_has_p_values_and_the_rate_of_false_finds(live):
    (word,) = read(live, "estimates?post=norm-sub").json["series"][0]["questions"]
    assert (word["kind"], {row["label"] for row in rows_of(word)}) == ("found", {"tea", "日"})
    assert all(row["p_value"] < 1e-9 for row in rows_of(word))
    assert word["facts"]["false_finds"] == pytest.approx(0.0498, abs=1e-4)
    assert word["facts"]["smallest"] == pytest.approx(WORD.worth(6000).visible())
    assert word["winner"]["label"] == "tea"
    rows = list(csv.DictReader(io.StringIO(read(live, "estimates.csv").body.decode())))
    assert [float(row["p_value"]) < 1e-9 for row in rows] == [True, True]


@pytest.fixture
def searches(monkeypatch):
    """One entry per search; HeavyHitters is frozen, so its module is patched."""
    made = []
    monkeypatch.setattr(discovery, "search", lambda *given: made.append(1) or search(*given))
    return made


def test_all_epochs_are_searched_once_and_what_is_found_is_counted_in_each(live, searches):
    for _ in range(2):
        series = read(live, "estimates?per=epoch&level=0.9999").json["series"]
        assert len(searches) == 1
    for shares, reading in zip(SHARES.values(), series, strict=True):
        rows = {row["label"]: row for row in rows_of(reading["questions"][0])}
        assert list(rows) == ["tea", "日"]
        assert all(row["low"] <= share <= row["high"] for row, share in zip(rows.values(), shares, strict=True))
    assert "tea" in read(live, "estimates.csv?per=epoch").body.decode()
    assert len(searches) == 2, "at another level it is another question"


def test_the_same_words_are_followed_over_the_epochs_and_compared(live, searches):
    """Intervals of 99.99 %: wrong in fewer than 1 in 1,000 runs, and the seeds are fixed."""
    series = read(live, "estimates?per=epoch&values=tea&values=milk&level=0.9999").json["series"]
    for (tea, _), reading in zip(SHARES.values(), series, strict=True):
        first, second = rows_of(reading["questions"][0])
        assert (first["label"], second["label"]) == ("tea", "milk"), "in the order in which they were asked for"
        assert first["low"] <= tea <= first["high"]
        assert second["low"] <= 0 <= second["high"]
    assert not searches, "what is named is counted, not searched for"
    (word,) = read(live, "differences?before=9&after=10&level=0.9999").json["questions"]
    found = {row["label"]: row for row in word["rows"]}
    assert found["tea"]["low"] <= -0.2 <= found["tea"]["high"] < 0
    assert found["日"]["low"] <= 0 <= found["日"]["high"]
