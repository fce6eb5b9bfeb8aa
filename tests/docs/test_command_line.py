"""The docs and the command agree: every command and option is listed, and no page names one that is not there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from deniable.cli import app
from docs._hooks.execute import fenced_blocks, run_block

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command-line.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

LINE = re.compile(r"^\s*(?:\$ )?(?:\w+=\S* )*(deniable [a-z].*)$", re.MULTILINE)
SPAN = re.compile(r"`(deniable [a-z][^`]*)`")


def commands(command: Any, name: str = "deniable") -> dict[str, Any]:
    inner = getattr(command, "commands", {})
    found = {name: command}
    for word, one in inner.items():
        found |= commands(one, f"{name} {word}")
    return found


COMMANDS = commands(get_command(app))
LEAVES = [name for name, command in COMMANDS.items() if not hasattr(command, "commands")]


def options(name: str) -> set[str]:
    return {flag for parameter in COMMANDS[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.fixture(scope="module")
def listed() -> str:
    """The page's tables, as they are built."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = fenced_blocks(PAGE.read_text(encoding="utf-8").split("\n"))
    return "".join(run_block(b.text, namespace, PAGE.name) for b in blocks if b.info == "python exec markdown")


def test_every_command_is_listed_with_its_options(listed: str) -> None:
    shown = dict(
        re.findall(r'^\?\?\? abstract "([^"]+)"\n\n    ```text\n(.*?)^    ```$', listed, re.MULTILINE | re.DOTALL)
    )
    assert [name for name in LEAVES if f"| `{name}` | " not in listed] == []
    assert [name for name in LEAVES if f"Usage: {name} " not in shown.get(name, "")] == []
    missing = [(name, flag) for name in LEAVES for flag in options(name) if flag not in shown[name]]
    assert [(name, flag) for name, flag in missing if flag.startswith("--")] == []


def wrong(line: str) -> str | None:
    """What a command line names that does not exist."""
    try:
        words = shlex.split(re.split(r"\s[|><&]|\s#| {2,}|\)", line)[0])
    except ValueError:
        words = line.split()
    name = "deniable"
    while hasattr(COMMANDS[name], "commands") and len(words) > len(name.split()):
        word = words[len(name.split())]
        if word.startswith("-"):
            break
        # `survey new|validate` and `ledger show,` stand for several; the first is enough.
        name = f"{name} {re.split('[|,;:]', word)[0]}"
        if name not in COMMANDS:
            return name
    known = options(name) | {"--help", "-h"}
    flags = [word.split("=")[0] for word in words if re.match(r"--[a-z]", word)]
    return next((f"{name} {flag}" for flag in flags if flag not in known), None)


def mentioned(text: str) -> list[str]:
    """Command lines in code: lines of blocks, and what stands between backticks."""
    blocks = [block for block in fenced_blocks(text.split("\n")) if not block.info.startswith("python")]
    return [*(line for block in blocks for line in LINE.findall(block.text)), *SPAN.findall(text)]


def test_no_page_names_a_command_or_an_option_that_is_not_there() -> None:
    named = [(page, line) for page in PAGES for line in mentioned(page.read_text(encoding="utf-8"))]
    assert [(str(page.relative_to(ROOT)), line) for page, line in named if wrong(line)] == []


def test_what_is_not_there_is_caught() -> None:
    text = "Run `deniable tallly x`.\n\n```sh\nA=1 deniable tally s.json --worker 3 | cat\n```\n\n`deniable ledger`\n"
    assert [wrong(line) for line in mentioned(text)] == ["deniable tally --worker", "deniable tallly", None]
    assert sum(len(mentioned(page.read_text(encoding="utf-8"))) for page in PAGES) > 30
