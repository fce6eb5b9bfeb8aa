"""Packages that may be there: optional dependencies, and what other people add.

Extras     a missing package is named with the line that installs it
Plugins    a package that adds domains and protocols names its module in its metadata, and the module registers its
           classes when it is imported:

               [project.entry-points."deniable.kinds"]
               mine = "my_package.my_module"

           They are imported when a spec, a draft or the planner asks for kinds, not by `import deniable`
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from deniable.errors import MissingExtra, SpecError


def require(module: str, extra: str) -> Any:
    """Import `module`, or say which extra brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtra(module.partition(".")[0], extra) from missing


GROUP = "deniable.kinds"


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every module that an installed package names; the names of the entry points."""
    from importlib.metadata import entry_points  # it takes as long as the rest of the command's start

    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    for entry in found:
        try:
            import_module(entry.module)
        except Exception as wrong:  # somebody else's module may raise anything
            raise SpecError(
                f"the package behind the entry point {entry.name!r} of {GROUP} cannot be imported: {wrong}"
            ) from wrong
    return tuple(entry.name for entry in found)
