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
from deniable.protocols import protocol
from deniable.protocols.protocol import FAMILIES, registered

SOURCE = Path(deniable.__file__)


def test_every_public_name_is_there() -> None:
    assert [name for name in deniable.__all__ if getattr(deniable, name, None) is None] == []
    assert set(deniable.__all__) <= set(dir(deniable))


@pytest.mark.parametrize("stub", sorted(SOURCE.parent.rglob("__init__.pyi")), ids=lambda stub: stub.parent.name)
def test_type_checkers_see_the_same_names(stub: Path) -> None:
    """A stub exports a name to type checkers by `import name as name`, by a star, or by giving it another name."""
    package = importlib.import_module(".".join(("deniable", *stub.parent.relative_to(SOURCE.parent).parts)))
    lines = ast.parse(stub.read_text(encoding="utf-8")).body
    entries = [entry for line in lines if isinstance(line, ast.ImportFrom) for entry in line.names if entry.name != "*"]
    renamed = {line.value.id for line in lines if isinstance(line, ast.Assign) and isinstance(line.value, ast.Name)}
    assert [entry.name for entry in entries if entry.asname != entry.name and entry.name not in renamed] == []
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    # A module that is imported later becomes an attribute of its package: it would replace what has its name.
    homes = {entry.name: line.module for line in lines if isinstance(line, ast.ImportFrom) for entry in line.names}
    late = "at_once" not in stub.with_suffix(".py").read_text(encoding="utf-8")
    assert [name for name, home in homes.items() if late and home == f"{package.__name__}.{name}"] == []
    assert package.__doc__


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


def ours(kinds: Mapping[str, type[protocol.Protocol]]) -> list[str]:
    """The names of the package's own kinds: other tests define some, too."""
    return [name for name, kind in kinds.items() if kind.__module__.startswith("deniable.protocols.")]


def test_every_module_that_defines_kinds_is_a_family() -> None:
    # Import all of the package: a kind that no family brings would be registered by chance only.
    found = [name for family in FAMILIES for name in ours(registered(family))]
    for module in pkgutil.walk_packages(protocols.__path__, "deniable.protocols."):
        importlib.import_module(module.name)
    assert sorted(found) == sorted(ours(protocol._KINDS)) == ours(registered())
