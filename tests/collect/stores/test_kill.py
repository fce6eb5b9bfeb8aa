"""kill -9 under load: whatever was acknowledged is counted, and nothing is counted twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deniable.collect.stores import Store, open_store, segments
from deniable.collect.stores.batches import SurveyCounter
from deniable.files import count_files, read_batches
from deniable.surveys import Survey, SurveyTally
from tests.collect.conftest import DURABLE, new_url
from tests.collect.stores.adder import KEPT, POOL, pools, surveys
from tests.collect.surveys import current

FEW, MANY = 2, pytest.param(12, marks=pytest.mark.faults)
"""Rounds; two workers are killed in each."""


def kill(url: str, directory: Path, kills: int, *flags: str) -> set[int]:
    """What was acknowledged, as places in the pool."""
    call = [sys.executable, "-m", "tests.collect.stores.adder", url, str(directory), str(kills), *flags]
    subprocess.run(call, check=True, timeout=100)
    lines = [file.read_text().splitlines() for file in directory.iterdir()]
    assert len(lines) == 2 * kills
    assert all(lines), "a worker did nothing"
    return {int(line) for part in lines for line in part}


class Counted:
    """What a store has counted, or what the engine counts of its files."""

    def __init__(self, store: Store, url: str) -> None:
        self._store, self._directory = store, None
        if url.startswith("files:///"):
            self._directory = Path(url.removeprefix("files:///"), "parts")
            store.tidy()

    def tally(self, survey: Survey) -> SurveyTally:
        if self._directory is None:
            return self._store.tally(survey.fingerprint)
        tally = count_files(survey, [self._directory / survey.fingerprint / "reports"], dedupe=True).tally
        assert isinstance(tally, SurveyTally)
        return tally

    def kept(self, survey: Survey) -> list[bytes]:
        """Ids; those of files are counted once, however often they are there."""
        if self._directory is None:
            return [id.tobytes() for batch in self._store.reports(survey.fingerprint) for id in batch.ids]
        parts = (self._directory / survey.fingerprint).rglob("*.parquet")
        return list(
            {id.tobytes() for part in parts for batch in read_batches(part, survey, ids=True) for id in batch["id"]}
        )


def wrong(store: Store, url: str, acknowledged: set[int]) -> list[str]:
    """What a store has that differs from what was sent."""
    pool, counted, found = pools(url)[KEPT.fingerprint], Counted(store, url), list(store.check())
    place = {id.tobytes(): place for place, id in enumerate(pool.ids)}
    kept = [place[id] for id in counted.kept(KEPT)]
    if len(set(kept)) != len(kept) or not acknowledged <= set(kept):
        found.append("acknowledged submissions are missing or there twice")
    expected = SurveyCounter(KEPT).tally(len(kept), SurveyCounter(KEPT).count(pool.answers[kept]))
    if counted.tally(KEPT).spec() != expected.spec():
        found.append("the tally is not the sum of what was counted")
    n = counted.tally(surveys(url)[1])["bread"].n
    if not len(acknowledged) <= n <= POOL:
        found.append("the large tally is not what was counted")
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "acknowledged"
    directory.mkdir()
    return directory


@pytest.fixture(params=[*DURABLE, "files"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new store that outlives its process, of each kind; files become parts at once."""
    monkeypatch.setattr(segments, "PART_ROWS", 1)
    monkeypatch.setattr(segments, "PART_SECONDS", 0)
    return new_url(request.param, request, tmp_path)


@pytest.mark.parametrize("kills", [FEW, MANY])
def test_every_acknowledged_submission_is_counted_once(url: str, directory: Path, kills: int) -> None:
    both = surveys(url)
    with open_store(url) as store:
        for survey in both:
            store.publish(survey)
        acknowledged = kill(url, directory, kills)
        assert wrong(store, url, acknowledged) == []
        # Sent again, everything is a duplicate or new, and the counts are those of the pool.
        pool = pools(url)
        store.add([pool[survey.fingerprint].batch(survey, current(survey)) for survey in both])
        counted = Counted(store, url)
        for survey in both:
            whole = SurveyCounter(survey).count(pool[survey.fingerprint].answers)
            assert counted.tally(survey).spec() == SurveyCounter(survey).tally(POOL, whole).spec()
        if not url.startswith("files:"):  # whose numbers include what came again
            assert sum(epoch.n for survey in both for epoch in store.epochs(survey.fingerprint)) == 2 * POOL
        assert store.check() == []


@pytest.mark.parametrize("url", ["sqlite", "files"], indirect=True)
def test_a_store_that_acknowledges_too_early_is_found_out(url: str, directory: Path) -> None:
    with open_store(url) as store:
        for survey in surveys(url):
            store.publish(survey)
        acknowledged = kill(url, directory, 6, "--torn")
        assert wrong(store, url, acknowledged) != []
