"""Packages of other people that add domains and protocols.

Such a package names its module in its metadata, and the module registers its classes when it is imported:

    [project.entry-points."deniable.kinds"]
    mine = "my_package.my_module"

They are imported when a spec, a draft or the planner asks for kinds, not by `import deniable`.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points

from deniable.errors import SpecError

GROUP = "deniable.kinds"


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every module that an installed package names; the names of the entry points."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    for entry in found:
        try:
            importlib.import_module(entry.module)
        except Exception as wrong:  # somebody else's module may raise anything
            raise SpecError(
                f"the package behind the entry point {entry.name!r} of {GROUP} cannot be imported: {wrong}"
            ) from wrong
    return tuple(entry.name for entry in found)
