"""kill -9 under load: whatever was acknowledged is counted, and nothing is counted twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deniable.collect.stores import Store, open_store
from deniable.collect.stores.batches import SurveyCounter
from tests.collect.stores.adder import BIG, KEPT, POOL, pools
from tests.collect.surveys import current

FEW, MANY = 4, pytest.param(12, marks=pytest.mark.slow)
"""Rounds; two workers are killed in each."""


def kill(url: str, directory: Path, kills: int, *flags: str) -> set[int]:
    """What was acknowledged, as places in the pool."""
    call = [sys.executable, "-m", "tests.collect.stores.adder", url, str(directory), str(kills), *flags]
    subprocess.run(call, check=True, timeout=100)
    lines = [file.read_text().splitlines() for file in directory.iterdir()]
    assert len(lines) == 2 * kills
    assert all(lines), "a worker did nothing"
    return {int(line) for part in lines for line in part}


def wrong(store: Store, acknowledged: set[int]) -> list[str]:
    """What a store has that differs from what was sent."""
    pool, found = pools()[KEPT.fingerprint], list(store.check())
    place = {id.tobytes(): place for place, id in enumerate(pool.ids)}
    kept = [place[id.tobytes()] for batch in store.reports(KEPT.fingerprint) for id in batch.ids]
    if len(set(kept)) != len(kept) or not acknowledged <= set(kept):
        found.append("acknowledged submissions are missing or there twice")
    tally = store.tally(KEPT.fingerprint)
    expected = SurveyCounter(KEPT).tally(len(kept), SurveyCounter(KEPT).count(pool.answers[kept]))
    if tally.spec() != expected.spec():
        found.append("the tally is not the sum of what was counted")
    (epoch,) = store.epochs(BIG.fingerprint)
    if not len(acknowledged) <= epoch.n <= POOL or store.tally(BIG.fingerprint)["bread"].n != epoch.n:
        found.append("the large tally is not what was counted")
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "acknowledged"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("kills", [FEW, MANY])
def test_every_acknowledged_submission_is_counted_once(durable_url: str, directory: Path, kills: int) -> None:
    with open_store(durable_url) as store:
        store.publish(KEPT)
        store.publish(BIG)
        acknowledged = kill(durable_url, directory, kills)
        assert wrong(store, acknowledged) == []
        # Sent again, everything is a duplicate or new, and the counts are those of the pool.
        pool = pools()
        store.add([pool[survey.fingerprint].batch(survey, current(survey)) for survey in (KEPT, BIG)])
        for survey in (KEPT, BIG):
            whole = SurveyCounter(survey).count(pool[survey.fingerprint].answers)
            assert store.tally(survey.fingerprint).spec() == SurveyCounter(survey).tally(POOL, whole).spec()
        assert np.sum([epoch.n for survey in (KEPT, BIG) for epoch in store.epochs(survey.fingerprint)]) == 2 * POOL
        assert store.check() == []


def test_a_store_without_transactions_is_found_out(tmp_path: Path, directory: Path) -> None:
    url = f"sqlite:///{tmp_path / 'torn.db'}"
    with open_store(url) as store:
        store.publish(KEPT)
        store.publish(BIG)
        acknowledged = kill(url, directory, 6, "--torn")
        assert wrong(store, acknowledged) != []
