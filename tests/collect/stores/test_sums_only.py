"""Where reports are not kept, none is found: not in a table, an index, a log, a free page or a copy.

Open text has so many counters that an earlier version let whole submissions wait to be added up.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from deniable.collect.stores import Store, open_store
from deniable.collect.stores.batches import BLOCK, Blocks, StoredSurvey, SurveyCounter
from deniable.surveys import Survey
from tests.collect.postgres import PostgresServer
from tests.collect.surveys import all_surveys, crowd, mixed, text

PEOPLE = crowd(text(), 5)


def below(directory: Path) -> bytes:
    """Every byte of every file."""
    found = []
    for folder, _, names in os.walk(directory):
        found += [(Path(folder) / name).read_bytes() for name in names if not name.startswith(".s.")]
    return b"\n".join(found)


def found_in(content: bytes) -> int:
    """How many answers are found: the bits of each, without its cohort."""
    return sum(raw[1:].tobytes() in content for raw in PEOPLE.answers)


def submit(store: Store, survey: Survey) -> None:
    """Each by itself, as from five devices on a quiet day."""
    store.publish(survey)
    for place in range(5):
        store.add([PEOPLE[[place]].batch(survey, 10)])


@pytest.mark.parametrize(("retention", "expected"), [("tally", 0), ("reports", 5)])
def test_files_of_sqlite_hold_no_report(tmp_path: Path, retention: str, expected: int) -> None:
    survey = text(retention=retention)
    (tmp_path / "store").mkdir()
    with open_store(f"sqlite:///{tmp_path / 'store' / 'store.db'}") as store:
        submit(store, survey)
        assert found_in(below(tmp_path / "store")) == expected
        store.tidy()
        assert found_in(below(tmp_path / "store")) == expected
        store.backup(tmp_path / "copy.db")
        assert found_in((tmp_path / "copy.db").read_bytes()) == expected
        assert store.tally(survey.fingerprint)["bread"].n == 5
    assert found_in(below(tmp_path / "store")) == expected


def test_files_of_postgres_hold_no_report(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Its own log included. Power: where reports are kept, they are found."""
    del postgres_server  # only to skip where there is none
    with PostgresServer() as server:
        for retention, expected in (("tally", 0), ("reports", 5)):
            with open_store(server.new_database()) as store:
                submit(store, text(retention=retention))
                store.tidy()
                store.backup(tmp_path / "copy.db")
            server.stop()
            assert (found_in(below(server._directory)) > 0) == (expected > 0)
            assert found_in((tmp_path / "copy.db").read_bytes()) == expected
            server.start()


@pytest.mark.parametrize("survey", [*all_surveys(), text(cells=1024, cohorts=33)], ids=lambda survey: survey.name)
@pytest.mark.parametrize("n", [1, 400])
def test_blocks_are_the_sum(survey: Survey, n: int) -> None:
    counter, people = SurveyCounter(survey), crowd(survey, n, seed=3)
    expected = counter.count(people.answers)
    blocks = counter.blocks(people.answers)
    assert np.array_equal(blocks.whole(counter.size), expected)
    assert blocks.places[0] == 0
    assert np.array_equal(Blocks.of(expected).whole(counter.size), expected)


@pytest.mark.parametrize("largest", [1, 127, 128, -128, -129, 2**15, 2**31, -(2**40), 2**62])
def test_counters_of_any_size_come_back(largest: int) -> None:
    survey = mixed() if largest % 2 else text()
    entry = StoredSurvey(1, survey, SurveyCounter(survey))
    counts = np.arange(entry.counter.size, dtype=np.int64) % 7
    counts[[0, -1]] = largest
    blocks = Blocks.of(counts)
    total = np.zeros((-(-counts.size // BLOCK), BLOCK), dtype=np.int64)
    entry.add_packed(total, blocks.places.tolist(), blocks.places.tolist(), entry.packed(blocks))
    assert np.array_equal(total.reshape(-1)[: counts.size], counts)


def test_a_deleted_report_leaves_no_trace_in_sqlite(tmp_path: Path) -> None:
    survey = text(retention="reports")
    with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        submit(store, survey)
        for place in range(4):
            assert store.delete(survey.fingerprint, PEOPLE.ids[place].tobytes())
        store.tidy()
        assert found_in(below(tmp_path)) == 1
        assert PEOPLE.ids[0].tobytes() in below(tmp_path)
        store.close_epoch(survey.fingerprint, 10)
        assert PEOPLE.ids[0].tobytes() not in below(tmp_path)


def test_a_deleted_report_is_in_no_row_of_postgres(postgres_url: str) -> None:
    """Its id is still known."""
    survey = text(retention="reports")
    with open_store(postgres_url) as opened:
        store = opened
        submit(store, survey)
        store.tidy()
        for place in range(5):
            assert store.delete(survey.fingerprint, PEOPLE.ids[place].tobytes())
        store.tidy()
        query = store._query  # type: ignore[attr-defined]
        assert query("SELECT SUM(length(records)) FROM report_1_10") == [(0,)]
        assert query("SELECT SUM(length(ids)) FROM seen_1_10") == [(5 * 16,)]
