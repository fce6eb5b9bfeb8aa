"""The option that names a store."""

from __future__ import annotations

from typing import Annotated

import typer

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DENIABLE_STORE",
        help="sqlite:///name.db, sqlite:////absolute/name.db or postgresql://user@host/name.",
    ),
]
