"""Optional packages: extras of this package, and plugins that others install.

Extras     the error for a missing package gives the command that installs it
Plugins    a package that adds domains and protocols names its module in its metadata, and the module registers its
           classes when it is imported:

               [project.entry-points."deniable.kinds"]
               mine = "my_package.my_module"

           They are imported when a spec, a draft or the planner looks up kinds, not by `import deniable`
Files      kinds in a file of one's own need no package: `deniable --kinds my.py`, or the variable DENIABLE_KINDS, whose
           files are separated like those of PATH; processes that a command starts inherit them
Exports    a package's stub lists its names, each loaded on first use: `exports`
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

from deniable.errors import MissingExtra, SpecError

_ROOT = os.path.dirname(__file__)


def require(module: str, extra: str) -> Any:
    """Import `module`; if it is missing, raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtra(module.partition(".")[0], extra) from missing


def _listed(package: str) -> dict[str, tuple[str, str]]:
    """The names that the stub of a package lists, each with its module and its name there."""
    stub = os.path.join(_ROOT, *package.split(".")[1:], "__init__.pyi")
    found, imported = {}, {}
    with open(stub, encoding="utf-8") as file:
        lines = ast.parse(file.read()).body
    for line in lines:
        if isinstance(line, ast.ImportFrom) and line.module:
            for entry in line.names:
                imported[entry.name] = (line.module, entry.name)
                if entry.name == "*":
                    found.update(_listed(line.module))
                elif entry.asname:
                    found[entry.asname] = imported[entry.name]
        elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            found[line.targets[0].id] = imported[cast(ast.Name, line.value).id]  # another name of what was imported
    return found


def exports(package: str, at_once: bool = False) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose stub, `__init__.pyi`, lists what it exports.

    A name is loaded when it is first used, or all of them at once, where that registers kinds.
    """
    listed, namespace = _listed(package), vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in listed:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, its_name = listed[name]
        module = import_module(home)
        here = home != package and hasattr(module, its_name)
        value = getattr(module, its_name) if here else import_module(f"{home}.{its_name}")
        namespace[name] = value
        return value

    if at_once:
        for name in listed:
            load(name)
    return load, lambda: sorted({*namespace, *listed}), sorted(listed)


GROUP = "deniable.kinds"
KINDS = "DENIABLE_KINDS"


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


def load_kinds(path: str) -> Any:
    """Import a Python file that defines kinds of protocols; raises SpecError if it cannot be imported."""
    place = os.path.abspath(path)
    folder, name = os.path.split(place)
    if not name.endswith(".py") or not os.path.isfile(place):
        raise SpecError(f"{path!r} is no file of kinds: give a Python file, such as my.py")
    if folder not in sys.path:
        sys.path.append(folder)  # processes that receive one of its protocols import it by name
    try:
        module = import_module(name.removesuffix(".py"))
    except Exception as wrong:  # a third-party file may raise anything
        raise SpecError(f"the file of kinds {path!r} cannot be imported: {type(wrong).__name__}: {wrong}") from wrong
    if os.path.realpath(module.__file__ or "") != os.path.realpath(place):
        raise SpecError(f"another module has the name of the file of kinds {path!r}: rename the file")
    return module


@cache
def load_plugins() -> tuple[str, ...]:
    """Import the files of kinds, and every plugin module of the installed packages; returns the names of the latter."""
    for path in filter(None, os.environ.get(KINDS, "").split(os.pathsep)):
        load_kinds(path)
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
