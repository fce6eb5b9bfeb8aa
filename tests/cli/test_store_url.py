"""Secrets of the collection service stay off command lines: a store's password and tokens come from files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import typer
from typer.testing import CliRunner

from deniable.cli import app
from deniable.cli.store import DEFAULT, StoreUrl
from deniable.collect.stores import open_store
from deniable.collect.wire import hashed

SECRET = "hush hush/&@:1"


def resolved(*arguments: str) -> str:
    """The URL that a command is given."""
    found: list[str] = []
    own = typer.Typer()

    @own.command()
    def command(store: StoreUrl = DEFAULT) -> None:
        found.append(store)

    done = CliRunner().invoke(own, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return found[0]


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text(SECRET + "\n")
    monkeypatch.setenv("DENIABLE_STORE_PASSWORD_FILE", str(tmp_path / "password"))


@pytest.mark.parametrize("url", ["postgresql://ada@host/db", "postgresql://ada@/db?host=/run/pg"])
@pytest.mark.usefixtures("secret")
def test_the_password_comes_from_a_file(url: str) -> None:
    whole = resolved("--store", url)
    assert whole.startswith(url)
    assert parse_qs(urlsplit(whole).query)["password"] == [SECRET]


@pytest.mark.usefixtures("secret")
def test_a_url_from_the_environment_may_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENIABLE_STORE", "postgresql://ada:own@host/db")
    assert resolved() == "postgresql://ada:own@host/db"
    assert resolved("--store", "sqlite:///a.db") == "sqlite:///a.db"


@pytest.mark.parametrize("url", ["postgresql://ada:hush@host/db", "postgresql://ada@host/db?password=hush"])
@pytest.mark.parametrize("command", [("serve",), ("store", "token", "list"), ("store", "check")])
def test_a_password_on_the_command_line_is_refused(url: str, command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*command, "--store", url])
    assert done.exit_code == 2
    assert "DENIABLE_STORE_PASSWORD_FILE" in done.stderr
    assert "hush" not in done.output


def test_a_token_is_written_where_only_its_owner_reads(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'store.db'}", tmp_path / "admin.token"
    open_store(url).close()
    call = ["store", "token", "create", "--role", "admin", "--store", url, "-o", str(file)]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0
    token = file.read_text().strip()
    assert token.startswith("dn_")
    assert token not in done.output
    assert file.stat().st_mode & 0o777 == 0o600
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 2
    assert "name a new file" in again.stderr
    with open_store(url) as store:
        assert [one.sha256 for one in store.tokens()] == [hashed(token)]


def test_keys_of_another_place_are_refused_on_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"files:///{tmp_path / 'node'}?to=s3://key:hush@bucket/reports"
    ran = CliRunner().invoke(app, ["store", "check", "--store", url])
    assert ran.exit_code == 2
    assert "AWS_ACCESS_KEY_ID" in ran.output
    assert "hush" not in ran.output
    monkeypatch.setenv("DENIABLE_STORE", url)
    assert resolved() == url
    shown = CliRunner().invoke(app, ["serve", "--print-config"]).output
    assert "?to=s3://bucket/reports" in shown
    assert "hush" not in shown
