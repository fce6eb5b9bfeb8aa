"""Stores to collect in: real SQLite files and a real PostgreSQL server.

Where PostgreSQL cannot be started its tests are skipped with the reason; with CI=true that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deniable.collect.stores import Store, open_store
from tests.collect.postgres import NEWEST, VERSIONS, MissingPostgres, PostgresServer
from tests.collect.stores.memory import MemoryStore

STORES = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")


def started(version: int) -> PostgresServer:
    try:
        import psycopg  # noqa: F401

        return PostgresServer(version=version)
    except (ImportError, MissingPostgres) as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """This process's server of the newest version, started when the first test asks for it."""
    with started(NEWEST) as server:
        yield server


EACH = [
    version if version in (min(VERSIONS), max(VERSIONS)) else pytest.param(version, marks=pytest.mark.slow)
    for version in VERSIONS
]


@pytest.fixture(scope="session", params=EACH)
def each_postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of each version that is supported; those between the oldest and the newest in the slow tests."""
    with started(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The URL of a real server."""
    return postgres_server.url()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)


def new_url(kind: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """The URL of a new store of this kind."""
    if kind == "memory":
        return "memory:"
    if kind == "sqlite":
        return f"sqlite:///{directory / 'store.db'}"
    if kind == "files":
        return f"files:///{directory / 'store'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store of each kind."""
    return new_url(request.param, request, tmp_path)


@pytest.fixture(params=DURABLE)
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store that outlives its process, of each kind."""
    return new_url(request.param, request, tmp_path)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with MemoryStore() if store_url == "memory:" else open_store(store_url) as store:
        yield store
