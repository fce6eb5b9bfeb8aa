"""`deniable token`: keys to the collection service, of which only hashes are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.cli.stores import StoreUrl
from deniable.errors import LabelError, SpecError

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

ROLES = ("admin", "analyst", "ingest")
SHORTEST = 8


@app.callback(
    epilog=examples(
        "deniable token create --role analyst --label 'monthly report' --store sqlite:///collection.db",
        "deniable token list --store sqlite:///collection.db",
        "deniable token revoke 3f2a91c0 --store sqlite:///collection.db",
    )
)
def token(ctx: typer.Context) -> None:
    """Keys to the collection service: admins publish, analysts read, ingest keys send reports."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(epilog=examples("deniable token create --role analyst --store sqlite:///collection.db"))
def create(
    role: Annotated[str, typer.Option(metavar="|".join(ROLES), help="What the token allows.", show_default=False)],
    store: StoreUrl = "sqlite:///deniable.db",
    label: Annotated[str, typer.Option(metavar="TEXT", help="What it is for, in your words.")] = "",
    as_json: Json = False,
) -> None:
    """Make a token and print it: it is kept nowhere, only its SHA-256 is."""
    from deniable.collect.stores import Token, open_store
    from deniable.collect.tokens import hashed, new_token

    if role not in ROLES:
        raise LabelError(f"a role is {', '.join(ROLES)}, not {role!r}")
    made = new_token()
    kept = Token(hashed(made), role, label)
    with open_store(store) as opened:
        opened.add_token(kept)
    if as_json:
        output.document({"token": made, "id": kept.sha256, "role": role, "label": label})
    else:
        output.write(made + "\n")


@app.command("list", epilog=examples("deniable token list --store sqlite:///collection.db --json"))
def show(store: StoreUrl = "sqlite:///deniable.db", as_json: Json = False) -> None:
    """List the tokens by their hashes."""
    from deniable.collect.stores import open_store

    with open_store(store) as opened:
        tokens = opened.tokens()
    if as_json:
        output.document([{"id": token.sha256, "role": token.role, "label": token.label} for token in tokens])
        return
    rows = [[token.sha256[:16], token.role, shown(token.label)] for token in tokens]
    output.table(["id", "role", "label"], rows, left=3)


@app.command(epilog=examples("deniable token revoke 3f2a91c0 --store sqlite:///collection.db"))
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The beginning of the token's SHA-256, as list shows it.")],
    store: StoreUrl = "sqlite:///deniable.db",
) -> None:
    """Revoke a token; a running service notices within a second."""
    from deniable.collect.stores import open_store

    if len(id) < SHORTEST:
        raise SpecError(f"give at least {SHORTEST} digits of the id, so that no other token is meant")
    with open_store(store) as opened:
        found = [token.sha256 for token in opened.tokens() if token.sha256.startswith(id.lower())]
        if len(found) != 1:
            raise LabelError("no token has this id" if not found else "several tokens begin so: give more digits")
        opened.remove_token(found[0])
    output.write(f"revoked: {found[0][:16]}\n")
