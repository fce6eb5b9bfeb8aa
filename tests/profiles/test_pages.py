"""The pages that reproduce the paper's figures run, and the claims that they assert hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs._hooks import execute

PAGES = sorted((Path(__file__).parents[2] / "docs" / "profiles").glob("*.md"))


def quick(page: Path) -> bool:
    """One page is run every time, and all of them with the slow tests and when the site is built."""
    return page == PAGES[0]


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[] if quick(page) else [pytest.mark.slow]) for page in PAGES]
)
def test_page(page):
    text = page.read_text(encoding="utf-8")
    images = []
    execute.run_page(text, page.name, lambda name, image: images.append(image) or name)
    assert len(images) == text.count("\nfigure(")
    assert all(len(image) > 1000 for image in images)


def test_there_are_pages():
    assert len(PAGES) == 8
