"""Docs, messages and the command agree: every command and option is listed, and none is named that is not there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from deniable.cli import KINDS_OPTION, app
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
    known = options(name) | {"--help", "-h", KINDS_OPTION}
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


# -- what the package, its pages and its units of deployment say ----------------------------------------


NAMED = re.compile(r"(?<![\w/.-])deniable((?: [a-z][a-z-]*){1,2})")
# The name of the package, followed by a word of a sentence.
WORDS = {
    "again",
    "against",
    "as",
    "benchmarks",
    "collection",
    "import",
    "in",
    "is",
    "log",
    "may",
    "needs",
    "reports",
    "that",
    "to",
}
WORDS |= {"write", "writes"}
# "A mechanism of deniable design asks a question".
AFTER_A_GROUP = {"deniable design asks", "deniable design is", "deniable design saved"}


def texts(path: Path) -> Iterator[str]:
    """The strings of a Python module, with names in place of what is filled in; other files as they are."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield content
        return
    tree = ast.parse(content)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)  # type: ignore
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def unknown(text: str) -> list[str]:
    """The commands that a text names and that do not exist."""
    found = []
    for match in NAMED.finditer(text):
        first, *second = match[1].split()
        if first in WORDS:
            continue
        group = hasattr(COMMANDS.get(f"deniable {first}"), "commands")
        whole = " ".join(["deniable", first, *second]) if group else f"deniable {first}"
        if whole not in COMMANDS and whole not in AFTER_A_GROUP:
            found.append(whole)
    return found


SAYING = [
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "web").glob("*.js")),
    *sorted((ROOT / "web" / "pages").glob("*.*")),
    *(path for path in sorted((ROOT / "deploy").iterdir()) if path.is_file()),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
]


def test_no_message_names_a_command_that_is_not_there() -> None:
    said = [(path, text) for path in SAYING for text in texts(path) if "deniable " in text]
    assert [(str(path.relative_to(ROOT)), name) for path, text in said for name in unknown(text)] == []
    assert len(said) > 100


def test_every_example_of_a_command_is_a_command() -> None:
    lines = [
        line.strip()
        for name, command in COMMANDS.items()
        for line in (command.epilog or "").splitlines()
        if line.strip().startswith("deniable ")
    ]
    assert [line for line in lines if wrong(line)] == []
    assert len(lines) > 100


def test_a_message_about_what_is_not_there_is_caught() -> None:
    told = (
        "run deniable discover, or deniable survey nwe draft.json; the deniable that wrote it; deniable tally adds up"
    )
    assert unknown(told) == ["deniable discover", "deniable survey nwe"]
