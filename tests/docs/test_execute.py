"""The examples of the docs are really run: what they print is shown, and a failure stops the build."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort, PluginError

from docs._hooks import execute

ROOT = Path(__file__).parents[2]


def run(markdown, save=lambda name, image: name):
    return execute.run_page(markdown, "page.md", save)


def test_output_follows_the_code():
    page = run("Before\n\n```python exec\nprint(6 * 7)\n```\n\nAfter")
    assert page == "Before\n\n```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\n\nAfter"


def test_blocks_share_one_namespace_and_pages_do_not():
    page = run("```python exec\na = 20\n```\n\n```python exec\nprint(a + 1)\n```")
    assert "```text\n21\n```" in page
    with pytest.raises(PluginError, match="NameError: name 'a' is not defined"):
        run("```python exec\nprint(a)\n```")


def test_options():
    hidden = run("```python exec hide\nprint(6 * 7)\n```")
    assert "42" in hidden
    assert "6 * 7" not in hidden
    silent = run("```python exec silent\nprint(6 * 7)\n```")
    assert "6 * 7" in silent
    assert "42" not in silent
    table = run("```python exec markdown\nprint('| a |\\n| --- |')\n```")
    assert table == "| a |\n| --- |\n"
    with pytest.raises(PluginError, match=r"page\.md, block 1: unknown option 'hidden'"):
        run("```python exec hidden\n```")


@pytest.mark.parametrize("markdown", ["", "text", "```python\n1 / 0\n```", "```\n1 / 0\n```", "```text\nexec\n```"])
def test_other_text_is_left_alone(markdown):
    assert run(markdown) == markdown


def test_a_quoted_block_is_not_run():
    quoted = "````markdown\n```python exec\n1 / 0\n```\n````"
    assert run(quoted) == quoted


def test_a_block_inside_an_admonition_keeps_its_indent():
    page = run("!!! note\n\n    ```python exec\n    if True:\n        print('in')\n    ```\n")
    assert "    ```python\n    if True:\n        print('in')\n    ```" in page
    assert "    ```text\n    in\n    ```" in page


def test_output_with_backticks_gets_a_longer_fence():
    assert "````text\n```\n````" in run("```python exec hide\nprint('`' * 3)\n```")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
        ("raise SystemExit(2)", "SystemExit"),
        ("import warnings; warnings.warn('old')", "UserWarning: old"),
    ],
)
def test_a_failure_names_the_page_the_block_and_the_line(code, message):
    with pytest.raises(PluginError) as caught:
        run(f"```python exec\n```\n\n```python exec\n{code}\n```")
    text = str(caught.value)
    assert text.startswith("page.md, block 2 failed\n")
    assert message in text
    assert code in text
    assert "execute.py" not in text


def test_an_open_fence_is_refused():
    with pytest.raises(ValueError, match="'```python exec' is never closed"):
        run("```python exec\nprint(1)\n")


def test_a_figure_is_saved_and_shown():
    pytest.importorskip("matplotlib")
    saved = {}

    def save(name, image):
        saved[name] = image
        return f"images/{name}"

    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nfigure('line.png', alt='a line')"
    page = run(f"```python exec hide\n{code}\n```", save)
    assert "![a line](images/line.png)" in page
    assert saved["line.png"].startswith(b"\x89PNG")
    with pytest.raises(PluginError, match="not 'line'"):
        run("```python exec\nfigure('line', alt='')\n```")


@pytest.fixture
def site(tmp_path):
    """A site with one page in a folder; build(markdown) returns where it was built."""
    (tmp_path / "docs" / "guide").mkdir(parents=True)

    def build_site(markdown):
        (tmp_path / "docs" / "guide" / "page.md").write_text(markdown)
        config = load_config(
            config_file=str(tmp_path / "mkdocs.yml"),
            site_name="test",
            docs_dir=str(tmp_path / "docs"),
            site_dir=str(tmp_path / "site"),
            hooks=[execute.__file__],
            strict=True,
        )
        build(config)
        return tmp_path / "site"

    (tmp_path / "mkdocs.yml").write_text("site_name: test\n")
    return build_site


def test_mkdocs_publishes_output_and_figures(site):
    pytest.importorskip("matplotlib")
    figure = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nfigure('line.png', alt='a line')"
    built = site(f"# Page\n\n```python exec\nprint(6 * 7)\n{figure}\n```\n")
    assert (built / "assets/generated/guide/page/line.png").read_bytes().startswith(b"\x89PNG")
    html = (built / "guide/page/index.html").read_text()
    assert ">42\n" in html
    assert 'src="../../assets/generated/guide/page/line.png"' in html


def test_mkdocs_stops_at_a_broken_link_even_when_quiet(site):
    logger = logging.getLogger("mkdocs")
    before = logger.level
    logger.setLevel(logging.ERROR)  # what --quiet does
    try:
        with pytest.raises(Abort, match="strict mode"):
            site("# Page\n\n[nowhere](nowhere.md)\n")
    finally:
        logger.setLevel(before)


def test_mkdocs_stops_at_a_failing_block(site, caplog):
    with pytest.raises(Abort):
        site("# Page\n\n```python exec\n1 / 0\n```\n")
    assert "guide/page.md, block 1 failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_page_runs_again_only_when_something_it_read_has_changed(site, tmp_path):
    """Its own text, or a module of the project; what stays the same costs no run."""
    counter = tmp_path / "runs"
    code = f"import docs._hooks.modules\nwith open({str(counter)!r}, 'a') as file:\n    print('x', end='', file=file)"

    def runs(markdown: str) -> int:
        site(markdown)
        return len(counter.read_text())

    page = f"# Page\n\n```python exec\n{code}\n```\n"
    assert [runs(page), runs(page), runs(page + "more\n")] == [1, 1, 2]
    stored = tmp_path / ".docs_cache" / "guide+page.md.json"
    entry = json.loads(stored.read_text())
    assert "docs/_hooks/modules.py" in entry["read"]
    stored.write_text(json.dumps({**entry, "read": {**entry["read"], "docs/_hooks/modules.py": "another"}}))
    assert runs(page + "more\n") == 3


def test_a_page_that_starts_a_program_depends_on_every_source(site, tmp_path):
    site("# Page\n\n```python exec\nimport subprocess\nsubprocess.run(['true'])\n```\n")
    read = json.loads((tmp_path / ".docs_cache" / "guide+page.md.json").read_text())["read"]
    assert {"src/deniable/collect/server/relay.py", "web/deniable.js"} <= set(read)


def test_mkdocs_stops_at_a_repeated_figure(site, caplog):
    pytest.importorskip("matplotlib")
    with pytest.raises(Abort):
        site("```python exec\nfigure('line.png', alt='')\nfigure('line.png', alt='')\n```\n")
    assert "'line.png' was already drawn on this page" in caplog.text


HOOK = """
from docs._hooks import execute, reference

execute.run_block = lambda code, namespace, name: ""
on_page_markdown = execute.on_page_markdown
on_files = reference.on_files
"""


def test_every_link_and_every_page_of_the_site_is_there(tmp_path, monkeypatch, caplog):
    """The real site, built strictly in seconds: its examples are shown and not run, which `make docs` does."""
    monkeypatch.setattr(execute, "run_block", execute.run_block)  # the hook changes it
    (tmp_path / "hook.py").write_text(HOOK)
    config = load_config(
        config_file=str(ROOT / "mkdocs.yml"),
        site_dir=str(tmp_path / "site"),
        hooks=[str(tmp_path / "hook.py")],
        theme={"name": "mkdocs"},
        plugins=[],
        strict=True,
    )
    with suppress(Abort):
        build(config)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert (tmp_path / "site" / "index.html").exists()


def test_a_page_that_goes_elsewhere_leaves_the_next_one_where_it_was() -> None:
    here = os.getcwd()
    execute.run_page(
        "```python exec\nimport os, tempfile\nos.chdir(tempfile.gettempdir())\n```\n", "page.md", lambda name, _: name
    )
    assert os.getcwd() == here
