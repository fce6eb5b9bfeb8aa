"""The store that a command works on: its URL, its password, and how it is opened."""

from __future__ import annotations

import os
from typing import Annotated
from urllib.parse import parse_qsl, quote, urlsplit

import typer

from deniable._extras import require
from deniable.cli.options import read_text
from deniable.collect.stores import Store, StoreError, open_store
from deniable.errors import SpecError

PASSWORD_FILE = "DENIABLE_STORE_PASSWORD_FILE"


def _whole(ctx: typer.Context, param: typer.CallbackParam, url: str) -> str:
    """The URL with the password from a file. A password on the command line is refused."""
    source = ctx.get_parameter_source(param.name or "")
    given = source is not None and source.name == "COMMANDLINE"
    if url.startswith("files:") and has_password(url) and given:
        raise SpecError(
            "everybody on this machine can read a password on a command line: give the keys of the place that parts "
            "move to in its own variables (AWS_ACCESS_KEY_ID ...), or the whole URL in DENIABLE_STORE"
        )
    if not url.startswith(("postgresql://", "postgres://")):
        return url
    if has_password(url):
        if given:
            raise SpecError(
                "everybody on this machine can read a password on a command line: leave it out of --store, and name a "
                f"file that holds it in the variable {PASSWORD_FILE}, or give the whole URL in DENIABLE_STORE"
            )
        return url
    file = os.environ.get(PASSWORD_FILE)
    if not file:
        return url
    password = read_text(file).strip("\r\n")
    return f"{url}{'&' if '?' in url else '?'}password={quote(password, safe='')}"


StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DENIABLE_STORE",
        callback=_whole,
        help="sqlite:///name.db, sqlite:////absolute/name.db, postgresql://user@host/name or files:///directory.",
    ),
]
DEFAULT = "sqlite:///deniable.db"


def sqlite_file(url: str) -> str | None:
    """The file of an SQLite store; None for other stores.

    >>> sqlite_file("sqlite:////var/lib/collect.db"), sqlite_file("memory:")
    ('/var/lib/collect.db', None)
    """
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None


def _database(url: str) -> str | None:
    """The file that every store on this machine has; None for stores on a server, and in memory."""
    if url.startswith("files:///"):
        return os.path.join(url.removeprefix("files:///").partition("?to=")[0], "control.db")
    return sqlite_file(url)


def has_password(url: str) -> bool:
    """Whether a URL holds a password.

    >>> has_password("postgresql://ada:secret@host/db"), has_password("postgresql://ada@host/db?host=/run/pg")
    (True, False)
    """
    if url.startswith("files:"):
        return has_password(url.partition("?to=")[2])
    user, at, _ = url.partition("://")[2].rpartition("@")
    return bool(at and ":" in user) or any(key == "password" for key, _ in parse_qsl(urlsplit(url).query))


def without_password(url: str) -> str:
    """A URL to be shown.

    >>> without_password("postgresql://ada:secret@host/db"), without_password("postgresql://ada@host/db?password=x&a=1")
    ('postgresql://ada@host/db', 'postgresql://ada@host/db?a=1')
    >>> without_password("files:///node?to=s3://key:secret@bucket/reports")
    'files:///node?to=s3://bucket/reports'
    """
    if url.startswith("files:"):
        from deniable.files.places import shown

        directory, to, place = url.partition("?to=")
        return f"{directory}{to}{shown(place)}"
    kind, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    place, mark, query = place.partition("?")
    left = "&".join(part for part in query.split("&") if part.partition("=")[0] != "password")
    return f"{kind}://{user.partition(':')[0]}{at}{place}{mark if left else ''}{left}"


def is_made(url: str) -> bool:
    """Whether a store exists at a URL. Looking makes none."""
    file = _database(url)
    if file is not None:
        return os.path.isfile(file) and os.path.getsize(file) > 0
    return not url.startswith(("postgresql://", "postgres://")) or _has_tables(url)


def existing(url: str, read_only: bool = False) -> Store:
    """Open the store at a URL. Raises `StoreError` if there is none: a mistyped name must not become an empty store."""
    if not is_made(url):
        # Not the URL of a server: it may hold a password.
        where = _database(url)
        missing = "there is no store in this PostgreSQL database" if where is None else f"there is no store {where!r}"
        raise StoreError(f"{missing}: name another with --store; a new one is made by deniable serve")
    return open_store(url, read_only=read_only)


def _has_tables(url: str) -> bool:
    psycopg = require("psycopg", "postgres")
    from deniable.collect.stores.postgres import CONNECT_SECONDS, without_password

    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, application_name="deniable") as connection:
            return bool(connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()[0])
    except psycopg.Error as error:
        reason = without_password(url, " ".join(str(error).split()))
        raise StoreError(f"the PostgreSQL store cannot be used: {reason or type(error).__name__}") from None
