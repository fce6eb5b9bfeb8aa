"""The README's Python blocks run in order, and print exactly the text block that follows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs._hooks.execute import fenced_blocks, run_block

README = Path(__file__).parents[2] / "README.md"


def check(markdown):
    """Run the python blocks; where the next block is `text`, it must be what the code printed."""
    namespace = {"__name__": "__main__"}
    printed = None
    for number, block in enumerate(fenced_blocks(markdown.split("\n")), start=1):
        if block.info == "python":
            printed = run_block(block.text, namespace, f"README.md, block {number}").rstrip("\n")
            continue
        if block.info == "text" and printed is not None:
            assert printed == block.text, f"README.md, block {number} is not what the code above it prints"
        printed = None


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(README.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "markdown",
    [
        "",
        "```python\na = 1\n```\nthen\n```python\nprint(a)\n```\ngives\n```text\n1\n```",
        "```python\nprint(1)\n```\n```console\n$ ls\n```\n```text\nnot output\n```",
        "```python\nprint('a\\n\\n b')\n```\n```text\na\n\n b\n```",
    ],
)
def test_a_true_readme_passes(markdown):
    check(markdown)


@pytest.mark.parametrize("shown", ["2", "1 ", "1\n1", " 1", ""])
def test_a_wrong_output_is_caught(shown):
    with pytest.raises(AssertionError, match="block 2 is not what the code above it prints"):
        check(f"```python\nprint(1)\n```\n\n```text\n{shown}\n```")


def test_a_broken_example_is_caught():
    with pytest.raises(ZeroDivisionError):
        check("```python\n1 / 0\n```")


def broken_links(markdown):
    """Links and pictures that lead to no file of the repository; addresses elsewhere are left alone."""
    targets = re.findall(r"\]\(([^)#\s]+)", markdown)
    return [target for target in targets if "://" not in target and not (README.parent / target).exists()]


def test_links_lead_somewhere():
    assert broken_links(README.read_text(encoding="utf-8")) == []
    assert broken_links("[a](docs/index.md#start) ![b](docs/nowhere.png) [c](https://example.org/x)") == [
        "docs/nowhere.png"
    ]
