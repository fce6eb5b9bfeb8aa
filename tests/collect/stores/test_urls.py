"""URLs of stores: what opens, what is refused with the way out, and that a password is never shown."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from deniable.collect.stores import StoreError, open_store
from deniable.collect.stores.postgres import without_password


@pytest.mark.parametrize(
    "url", ["", "store.db", "sqlite://store.db", "sqlite:///", "mysql://me:hush-hush@host/db", "memory:"]
)
def test_urls_of_no_store(url: str) -> None:
    with pytest.raises(StoreError, match=r"sqlite:///name.db.*postgresql://.*files:///directory") as refused:
        open_store(url)
    assert "hush" not in str(refused.value)


def test_relative_and_absolute_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///near.db").close()
    open_store(f"sqlite:////{str(tmp_path / 'far.db').lstrip('/')}").close()
    assert {path.name for path in tmp_path.iterdir()} == {"near.db", "far.db"}
    assert (tmp_path / "near.db").stat().st_mode & 0o077 == 0
    with pytest.raises(StoreError, match="No such file or directory"):
        open_store("sqlite:///missing/near.db")
    with pytest.raises(StoreError, match="from 0 on"):
        open_store("sqlite:///near.db", shard=-1)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush-hush@127.0.0.1:1/db",
        "postgresql://me:hush%2Dhush@127.0.0.1:1/db",
        "postgresql://me:hush/hush@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=hush-hush",
        "postgresql://me:hush-hush@127.0.0.1:hush-hush/db",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="PostgreSQL store cannot be used") as refused:
        open_store(url)
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_short_password_hides_the_reason() -> None:
    assert "password" in without_password("postgresql://me:db@host/name", "no database db")
    assert without_password("postgresql://me@host/name", "no database db") == "no database db"


def test_files_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_bytes(b"not a database " * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(f"sqlite:///{tmp_path / 'text.db'}")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreError, match="something else"):
        open_store(f"sqlite:///{tmp_path / 'other.db'}")
    assert (tmp_path / "other.db").read_bytes() == before
    with open_store(f"sqlite:///{tmp_path / 'good.db'}") as store, pytest.raises(StoreError, match="the store itself"):
        store.backup(tmp_path / "good.db")
