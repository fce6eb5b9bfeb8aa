"""Optional packages: extras of this package, and plugins that others install.

Extras     the error for a missing package gives the command that installs it
Plugins    a package that adds domains and protocols names its module in its metadata, and the module registers its
           classes when it is imported:

               [project.entry-points."deniable.kinds"]
               mine = "my_package.my_module"

           They are imported when a spec, a draft or the planner looks up kinds, not by `import deniable`
Late names a package's `__init__` may load a name on first use: `late`
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from deniable.errors import MissingExtra, SpecError


def require(module: str, extra: str) -> Any:
    """Import `module`; if it is missing, raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtra(module.partition(".")[0], extra) from missing


def late(package: str, homes: Mapping[str, tuple[str, ...]], opened: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package that loads names on first use; `homes` maps each module to its names.

    Names under "" are modules of the package. The names of `opened` modules are listed in their own `__all__`.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is not None:
            module = import_module(f"{package}.{home or name}")
            return getattr(module, name) if home else module
        for home in () if name.startswith("_") else opened:
            module = import_module(f"{package}.{home}")
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


GROUP = "deniable.kinds"


def _nobody_adds() -> bool:
    """Whether no installed package uses our entry-point group; False if only the library's slower search can tell.

    The library's own search takes a tenth of a command's time, and nearly always finds nothing.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or os.curdir)
        except NotADirectoryError:
            return False  # an archive
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg")):
                for inside in ("entry_points.txt", "EGG-INFO/entry_points.txt"):
                    try:
                        with open(os.path.join(place, name, inside), "rb") as file:
                            if GROUP.encode() in file.read():
                                return False
                    except OSError:
                        continue
    return True


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every plugin module of the installed packages; returns the names of the entry points."""
    if _nobody_adds():
        return ()
    from importlib.metadata import entry_points  # this import takes as long as the rest of the command's start

    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    for entry in found:
        try:
            import_module(entry.module)
        except Exception as wrong:  # a third-party module may raise anything
            raise SpecError(
                f"the package behind the entry point {entry.name!r} of {GROUP} cannot be imported: {wrong}"
            ) from wrong
    return tuple(entry.name for entry in found)
