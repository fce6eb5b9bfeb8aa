"""What the commands share that work on a store: the option that names it, and opening one that is there."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from deniable.collect.stores import Store, StoreError, open_store

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DENIABLE_STORE",
        help="sqlite:///name.db, sqlite:////absolute/name.db or postgresql://user@host/name.",
    ),
]
DEFAULT = "sqlite:///deniable.db"


def sqlite_file(url: str) -> str | None:
    """The file of a store that is one.

    >>> sqlite_file("sqlite:////var/lib/collect.db"), sqlite_file("memory:")
    ('/var/lib/collect.db', None)
    """
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None


def existing(url: str) -> Store:
    """The store at a URL, which `deniable serve` has made: a mistyped name does not become an empty store."""
    file = sqlite_file(url)
    if file and not (os.path.isfile(file) and os.path.getsize(file)):
        raise StoreError(f"there is no store {file!r}: name another with --store; a new one is made by deniable serve")
    return open_store(url)
