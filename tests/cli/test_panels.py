"""The list of commands: five panels, at most 22 commands, and no summary that is cut at 80 columns."""

from __future__ import annotations

import importlib
import re

import pytest
from typer.main import get_command

from deniable.cli import COMMANDS, PANELS, PARTS, app

KEPT = {"plan", "survey", "answer", "privatize", "tally", "estimate", "audit", "serve", "relay"}
GONE = ("campaign", "discover", "marginals", "places", "secure", "shuffle", "token")
GROUPS = {name: command for name, command in get_command(app).commands.items() if hasattr(command, "commands")}
GROUPS |= {"store token": GROUPS["store"].commands["token"]}


def listed(help):
    """The sections of a help page that list commands, as {section: {command: summary}}."""
    sections, section = {}, {}
    for line in help.partition("\n\nOptions:")[2].splitlines():
        if found := re.fullmatch(r"([A-Z]\w+):", line):
            sections[found[1]] = section = {}
        elif found := re.fullmatch(r"  ([a-z][a-z-]*) +(\S.*)", line):
            section[found[1]] = found[2]
    return {name: section for name, section in sections.items() if section}


def test_the_panels(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    help = run("--help").out
    shown = listed(help)
    assert list(PANELS) == ["plan", "collect", "analyse", "verify", "research"]
    assert shown == {panel.capitalize(): commands for panel, commands in PANELS.items()}
    assert len(COMMANDS) == sum(map(len, PANELS.values())) <= 22
    assert set(COMMANDS) >= KEPT
    panels = help.partition("\nPlan:")[2].partition("Examples:")[0]
    assert max(map(len, panels.splitlines())) <= 80
    assert "..." not in panels


@pytest.mark.parametrize("name", GROUPS)
def test_no_summary_of_a_group_is_cut(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    (shown,) = listed(run(*name.split(), "--help").out).values()
    firsts = {word: one.help.split("\n\n")[0].partition(". ")[0] for word, one in GROUPS[name].commands.items()}
    assert {word: summary.rstrip(".") for word, summary in shown.items()} == {
        word: first.rstrip(".") for word, first in firsts.items()
    }


@pytest.mark.parametrize("name", GONE)
def test_a_kind_is_no_command(run, name):
    assert f"No such command '{name}'" in run(name, code=2).err


def test_a_close_name_is_suggested(run):
    assert "Did you mean 'estimate'" in run("estimats", code=2).err


def test_every_part_of_a_group_is_in_it():
    for group, modules in PARTS.items():
        for module in modules:
            part = importlib.import_module(f"deniable.cli.{module}").app
            own = [one.name or one.callback.__name__ for one in part.registered_commands]
            assert own
            inside = (
                GROUPS[group].commands if part.registered_callback is None else GROUPS[f"{group} {module}"].commands
            )
            assert set(own) <= set(inside), (group, module)
