"""The package's front door: every public name is there, and importing it costs nothing that is not used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import deniable
from deniable import protocols
from deniable.protocols import base
from deniable.protocols.base import FAMILIES, registered

SOURCE = Path(deniable.__file__)


def test_every_public_name_is_there() -> None:
    assert [name for name in deniable.__all__ if getattr(deniable, name, None) is None] == []
    assert set(deniable.__all__) <= set(dir(deniable))


@pytest.mark.parametrize("room", ["channels", "collect", "files", "protocols", "results"])
def test_every_name_at_a_door_that_loads_late_is_there(room: str) -> None:
    package = getattr(deniable, room)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {"__version__"}
    for node in (node for node in block.body if isinstance(node, ast.ImportFrom)):
        names = [alias.asname for alias in node.names if alias.asname is not None]
        seen |= set(names or importlib.import_module(str(node.module)).__all__)
    assert seen == set(deniable.__all__)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Chanel'"):
        deniable.Chanel  # noqa: B018


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import deniable", ["scipy", "matplotlib", "pyarrow", "rich", "typer", "deniable.channels"]),
        ("import deniable as dn; dn.OLH(4, 1).estimate", ["scipy", "matplotlib", "pyarrow", "rich", "typer"]),
        ("import deniable as dn; dn.plan, dn.Survey, dn.infer", ["scipy", "matplotlib", "pyarrow", "rich", "typer"]),
        (
            "import deniable as dn; dn.plan(9, epsilon=1, people=5000)",
            ["importlib.metadata", *(f"deniable.protocols.{family}" for family in FAMILIES if family != "frequency")],
        ),
        (
            "import deniable as dn; dn.load(dn.GRR(4, 1).spec())",
            [*(f"deniable.protocols.{family}" for family in FAMILIES if family != "frequency")],
        ),
    ],
)
def test_importing_loads_no_more_than_it_needs(code: str, absent: list[str]) -> None:
    check = f"import sys\n{code}\nprint([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def ours(kinds: Mapping[str, type[base.Protocol]]) -> list[str]:
    """The names of the package's own kinds: other tests define some, too."""
    return [name for name, kind in kinds.items() if kind.__module__.startswith("deniable.protocols.")]


def test_every_module_that_defines_kinds_is_a_family() -> None:
    # Import all of the package: a kind that no family brings would be registered by chance only.
    found = [name for family in FAMILIES for name in ours(registered(family))]
    for module in pkgutil.walk_packages(protocols.__path__, "deniable.protocols."):
        importlib.import_module(module.name)
    assert sorted(found) == sorted(ours(base._KINDS)) == ours(registered())
