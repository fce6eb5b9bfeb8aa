"""URLs with passwords and options: all of it reaches the filesystem, none of it a message or a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyarrow import fs

from deniable.errors import MismatchError, ReportError
from deniable.files import count_files, places, tally_files, units, write_reports
from deniable.protocols import GRR
from deniable.randomness import Simulation
from deniable.surveys import Survey

PROTOCOL = GRR(["a", "b"], 1)
ALONE = Survey.of(PROTOCOL)
REPORTS = PROTOCOL.privatize(["a"] * 100, Simulation(1))
TALLY = PROTOCOL.tally(REPORTS)
SECRETS = ("hunter2", "eu-west-9")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bucket that is served to those who give a password and a region; messages of the server repeat them."""
    (tmp_path / "bucket").mkdir()
    real = places.filesystem

    def filesystem(url: str) -> tuple[Any, str]:
        if not url.startswith("s3://"):
            return real(url)
        stem, options = places.split_options(url)
        if not stem.startswith("s3://me:hunter2@") or options != "?region=eu-west-9":
            raise OSError(f"{url}: access denied to {stem} in {options}")
        path = fs.FileSystem.from_uri(f"s3://{stem.partition('@')[2]}?region=us-east-1")[1]
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), path

    monkeypatch.setattr(places, "filesystem", filesystem)
    return tmp_path / "bucket"


def url(path: str) -> str:
    return f"s3://me:hunter2@bucket/{path}?region=eu-west-9"


def test_all_of_a_url_reaches_the_filesystem(bucket: Path, tmp_path: Path) -> None:
    for name in ("1.parquet", "a%20b.parquet"):
        assert write_reports(url(name), ALONE, [{"report": REPORTS}]) == 100
    assert sorted(path.name for path in bucket.iterdir()) == ["1.parquet", "a b.parquet"]
    for inputs in ([url("")], [url("*.parquet")], [url("1.parquet"), url("a*")]):
        assert tally_files(ALONE, inputs)["report"] == TALLY + TALLY
    first = count_files(ALONE, [url("")], resume=tmp_path / "done.json")
    again = count_files(ALONE, [url("")], resume=tmp_path / "done.json")
    assert (first.resumed, again.resumed) == (0, 2)
    kept = (tmp_path / "done.json").read_text()
    assert "s3://bucket/a%20b.parquet" in kept
    assert not any(secret in kept for secret in SECRETS)
    # Another region, another file; the same one is known by its name.
    assert all("#" in name for name in json.loads(kept)["files"])


def test_no_message_has_the_password_or_the_options(bucket: Path) -> None:
    (bucket / "empty.parquet").touch()
    (bucket / "torn.parquet").write_bytes(b"PAR1 PAR1")
    inputs = [url(name) for name in ("nowhere.parquet", "no-*.parquet", "empty.parquet", "torn.parquet")]
    inputs += ["s3://me:hunter2@bucket/x?region=eu-west-9-b", "quux://me:hunter2@host/x"]
    refused = count_files(ALONE, inputs).refused
    assert [refusal.name for refusal in refused][:3] == [
        f"s3://bucket/{name}.parquet" for name in ("nowhere", "no-*", "empty")
    ]
    assert len(refused) == len(inputs)
    for refusal in refused:
        text = f"{refusal.name} {refusal.reason} {refusal.error}"
        assert not any(secret in text for secret in SECRETS), text
    with pytest.raises(MismatchError, match=r"^'s3://bucket/torn.parquet' is the same file as 's3://bucket/torn.parq"):
        places.expand([url("torn.parquet")] * 2)


def test_half_a_file_elsewhere_is_hidden(bucket: Path) -> None:
    def batches() -> Any:
        yield {"report": REPORTS}
        assert [path.name for path in bucket.iterdir()] == [".1.csv.partial"]
        with pytest.raises(ReportError, match="holds no files"):
            tally_files(ALONE, [url("")])

    write_reports(url("1.csv"), ALONE, batches(), format="text")
    assert tally_files(ALONE, [url("")])["report"] == TALLY


def test_what_a_library_raises_is_told(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    class Strange(Exception):
        pass

    def fails(*_: Any, **__: Any) -> Any:
        raise Strange("memory://box/a.parquet is forbidden")

    request.addfinalizer(lambda: fsspec.filesystem("memory").rm("/", recursive=True))
    write_reports("memory://box/a.parquet", ALONE, [{"report": REPORTS}])
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", fails)
    (refusal,) = count_files(ALONE, ["memory://box/a.parquet"]).refused
    assert "cannot be reached: Strange" in refusal.reason


def test_processes_are_not_forked_beside_threads_that_nobody_sees() -> None:
    assert units.forks([places.Place("a.parquet"), places.Place("memory://a"), places.Place("file:///a")])
    for scheme in ("s3", "gs", "hdfs", "abfss"):
        assert not units.forks([places.Place("a.parquet"), places.Place(f"{scheme}://a/b")])
