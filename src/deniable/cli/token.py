"""`deniable store token`: who may do what at the collection service; only hashes of tokens are kept."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.load_survey import chosen_in, read_moment
from deniable.cli.options import Json, argument, new_app, option
from deniable.cli.output import examples, shown
from deniable.cli.store import DEFAULT, StoreUrl, existing
from deniable.collect.stores import Token
from deniable.collect.wire import hashed, new_token
from deniable.errors import LabelError, SpecError
from deniable.surveys.terms import write_time

app = new_app()

ROLES = ("admin", "analyst", "ingest")
SHORTEST = 8
_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


@app.callback(
    epilog=examples(
        "deniable store token create --role analyst --label 'monthly report' --store sqlite:///collect.db",
        "deniable store token create --role analyst --survey after-work --expires 30d --store sqlite:///collect.db",
        "deniable store token list --store sqlite:///collect.db",
        "deniable store token revoke 3f2a91c0 --store sqlite:///collect.db",
    )
)
def token(ctx: typer.Context) -> None:
    """Who may do what at the collection service.

    The token of an admin publishes surveys, that of an analyst reads results, and an ingest token sends reports. It is
    good for all surveys or for one, until it is revoked or until a time.

    A running service takes a new token at once, and refuses a revoked one within a second.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(
    epilog=examples(
        "deniable store token create --role analyst --store sqlite:///collect.db",
        "deniable store token create --role admin -o admin.token",
    )
)
def create(
    role: Annotated[str, option("|".join(ROLES), "What the token allows.")],
    store: StoreUrl = DEFAULT,
    label: Annotated[str, option("TEXT", "What it is for, in your words.", default=True)] = "",
    survey: Annotated[
        str | None,
        option(
            "SURVEY",
            "The only survey that it is good for: its name, or the beginning of its fingerprint.",
            default="all surveys",
        ),
    ] = None,
    expires: Annotated[
        str | None, option("WHEN", "When it ends: 12h, 30d or 4w from now, or a date in UTC.", default="never")
    ] = None,
    to: Annotated[
        Path | None, option("FILE", "Write it to a new file that only you can read.", "-o", "--output", default=True)
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it once: the store keeps only its SHA-256."""
    if role not in ROLES:
        raise LabelError(f"a role is {', '.join(ROLES)}, not {role!r}")
    end = None if expires is None else _end(expires, int(time.time()))
    made = new_token()
    with existing(store) as opened:
        only = None if survey is None else chosen_in(opened, survey).fingerprint
        kept = Token(hashed(made), role, label, only, end)
        if to is not None:
            _write_secret(to, made)
        opened.add_token(kept)
    if as_json:
        shown_once = {} if to is not None else {"token": made}
        output.document(shown_once | _described(kept))
    elif to is not None:
        output.write(f"saved: {to}\n")
    else:
        output.write(made + "\n")


def _end(text: str, now: int) -> int:
    """When a token expires.

    >>> _end("30d", 0), _end("1970-01-03", 0)
    (2592000, 172800)
    """
    length = re.fullmatch(r"([0-9]{1,5}) ?([hdw])", text)
    end = now + int(length[1]) * _UNITS[length[2]] if length else read_moment(text)
    if end <= now:
        raise SpecError(f"it is {write_time(now)} now: a token ends later than that")
    return end


def _described(token: Token) -> dict[str, str | None]:
    expires = None if token.expires is None else write_time(token.expires)
    return {
        "id": token.sha256,
        "role": token.role,
        "label": token.label,
        "survey": token.survey,
        "expires": expires,
    }


def _write_secret(path: Path, token: str) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise SpecError(f"{str(path)!r} is there already: name a new file") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")


@app.command("list", epilog=examples("deniable store token list --store sqlite:///collect.db --json"))
def show(store: StoreUrl = DEFAULT, as_json: Json = False) -> None:
    """List the tokens by their hashes, with what they are good for."""
    with existing(store) as opened:
        tokens = opened.tokens()
    if as_json:
        output.document([_described(token) for token in tokens])
        return
    rows = [
        [token.sha256[:16], token.role, (token.survey or "all")[:12], _ends(token), shown(token.label)]
        for token in tokens
    ]
    output.table(["id", "role", "survey", "expires", "label"], rows, left=5)


def _ends(token: Token) -> str:
    if token.expires is None:
        return "never"
    return ("expired " if token.expires <= time.time() else "") + write_time(token.expires)


@app.command(epilog=examples("deniable store token revoke 3f2a91c0 --store sqlite:///collect.db"))
def revoke(
    id: Annotated[str, argument("ID", "The beginning of the token's SHA-256, as list shows it.")],
    store: StoreUrl = DEFAULT,
) -> None:
    """Revoke a token; a running service notices within a second."""
    if len(id) < SHORTEST:
        raise SpecError(f"give at least {SHORTEST} digits of the id, so that no other token is meant")
    with existing(store) as opened:
        found = [token.sha256 for token in opened.tokens() if token.sha256.startswith(id.lower())]
        if len(found) != 1:
            raise LabelError("no token has this id" if not found else "several tokens begin so: give more digits")
        opened.remove_token(found[0])
    output.write(f"revoked: {found[0][:16]}\n")
