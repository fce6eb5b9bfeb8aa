"""The pictures of the docs can be taken again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.screens import TARGET, pictures


@pytest.mark.slow
def test_all_pictures_are_taken(tmp_path: Path) -> None:
    # In a process of its own: this one may hold a browser for other tests already.
    code = "import sys, pathlib; from tests.web.screens import shoot; shoot(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=TARGET.parents[2], check=True)
    written = list(tmp_path.iterdir())
    assert {file.name for file in written} == {f"{name}-{mode}.png" for name, mode in pictures()}
    assert all(file.stat().st_size > 10_000 for file in written)


def test_the_docs_show_pictures_that_exist() -> None:
    pages = [TARGET.parents[1] / "collect" / name for name in ("browser.md", "builder.md")]
    shown = [
        line.split("screens/")[1].split(")")[0]
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if "screens/" in line
    ]
    assert shown
    for name in shown:
        assert (TARGET / name).is_file()
