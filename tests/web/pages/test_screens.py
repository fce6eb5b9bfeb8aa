"""The pictures of the docs can be taken again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.screens import MODES, SHOTS, TARGET, shoot


@pytest.mark.slow
def test_all_pictures_are_taken(tmp_path: Path) -> None:
    written = shoot(tmp_path)
    assert {file.name for file in written} == {f"{name}-{mode}.png" for name in SHOTS for mode in MODES}
    assert all(file.stat().st_size > 20_000 for file in written)


def test_the_docs_show_pictures_that_exist() -> None:
    page = TARGET.parents[1] / "collect" / "browser.md"
    shown = [
        line.split("screens/")[1].split(")")[0]
        for line in page.read_text(encoding="utf-8").splitlines()
        if "screens/" in line
    ]
    assert shown
    for name in shown:
        assert (TARGET / name).is_file()
