"""Writes the first page of a site that has one folder per version of the docs: links to all, the newest first.

python tools/docs_versions.py site          write site/index.html and site/versions.json
python tools/docs_versions.py --current     print the version of this source
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>deniable: versions of the docs</title>
<h1>deniable</h1>
<p>The docs by version, the newest first:</p>
<ul>
{items}
</ul>
</html>
"""


def current() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def versions(site: Path) -> list[str]:
    """The versions that have a folder with a first page; the newest first, and finished ones before candidates."""
    found = []
    for folder in site.iterdir():
        try:
            version = Version(folder.name)
        except InvalidVersion:
            continue
        if (folder / "index.html").is_file():
            found.append((not version.is_prerelease, version, folder.name))
    return [name for _, _, name in sorted(found, reverse=True)]


def write(site: Path) -> list[str]:
    names = versions(site)
    if not names:
        raise SystemExit(f"there are no docs in {site}: run make docs-version")
    items = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (site / "index.html").write_text(PAGE.format(items=items), encoding="utf-8")
    (site / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    return names


if __name__ == "__main__":
    print(current() if sys.argv[1:] == ["--current"] else ", ".join(write(Path(sys.argv[1]))))
