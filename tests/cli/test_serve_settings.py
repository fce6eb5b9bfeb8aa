"""The settings of `deniable serve` from a file, from variables and from flags."""

from __future__ import annotations

import tomllib

import pytest

from deniable.collect.server import Settings
from deniable.collect.stores.base import REOPEN_SECONDS


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text('port = 1\nrate = 2.5\nplans = false\ningest-key = true\nlog-level = "error"\n', encoding="utf-8")
    return path


def test_a_flag_counts_more_than_a_variable_and_a_variable_more_than_the_file(run, file, monkeypatch):
    monkeypatch.setenv("DENIABLE_SERVE_PORT", "2")
    monkeypatch.setenv("DENIABLE_SERVE_WORKERS", "3")
    monkeypatch.setenv("DENIABLE_STORE", "postgresql://ada@host/db")
    printed = run("serve", "--config", file, "--workers", "4", "--print-config").out
    found = tomllib.loads(printed)
    assert (found["port"], found["workers"], found["rate"], found["plans"]) == (2, 4, 2.5, False)
    assert (found["ingest-key"], found["log-level"], found["host"]) == (True, "error", "127.0.0.1")
    lines = dict(line.split(" = ", 1) for line in printed.splitlines() if " = " in line)
    ends = {name: lines[name].rpartition("# ")[2] for name in ("port", "workers", "rate", "host")}
    assert ends == {"port": "variable", "workers": "flag", "rate": "file", "host": "default"}


def test_the_clock_and_reopening_have_settings(run, file, monkeypatch):
    file.write_text("steady-seconds = 600\n", encoding="utf-8")
    monkeypatch.setenv("DENIABLE_SERVE_REOPEN_SECONDS", "86400")
    found = tomllib.loads(run("serve", "--config", file, "--print-config").out)
    assert (found["steady-seconds"], found["reopen-seconds"]) == (600, 86_400)
    monkeypatch.delenv("DENIABLE_SERVE_REOPEN_SECONDS")
    found = tomllib.loads(run("serve", "--print-config").out)
    assert (found["steady-seconds"], found["reopen-seconds"]) == (Settings(store="x").steady_seconds, REOPEN_SECONDS)
    assert "reopen" in run("serve", "--reopen-seconds", "-1", "--print-config", code=2).err


def test_what_is_printed_can_be_read_again(run, file, tmp_path):
    first = run("serve", "--config", file, "--print-config").out
    (tmp_path / "again.toml").write_text(first, encoding="utf-8")
    assert tomllib.loads(run("serve", "--config", tmp_path / "again.toml", "--print-config").out) == tomllib.loads(
        first
    )


@pytest.mark.parametrize(
    "url", ["postgresql://ada:hunter2@host/db", "postgresql://ada@host/db?password=hunter2&connect_timeout=3"]
)
def test_passwords_are_not_printed(run, monkeypatch, url, tmp_path):
    monkeypatch.setenv("DENIABLE_STORE", url)
    assert "hunter2" not in run("serve", "--print-config").out
    monkeypatch.delenv("DENIABLE_STORE")
    path = tmp_path / "serve.toml"
    path.write_text(f'store = "{url}"\n', encoding="utf-8")
    for mode in (0o644, 0o640, 0o604, 0o620):
        path.chmod(mode)
        assert "chmod 600" in run("serve", "--config", path, "--print-config", code=2).err, oct(mode)
    path.chmod(0o600)
    printed = run("serve", "--config", path, "--print-config").out
    assert "hunter2" not in printed
    assert "ada@host/db" in printed


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("prot = 1", "'prot'"), ("port = ", "not TOML"), ('port = "x"', "--port"), ('config = "x"', "'config'")],
)
def test_a_wrong_file_is_refused(run, file, text, wrong):
    file.write_text(text, encoding="utf-8")
    assert wrong in run("serve", "--config", file, "--print-config", code=2).err
