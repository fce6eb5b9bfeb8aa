"""The modules of the package, read from its source: purpose, layer and imports of each.

Nothing is imported, so that a module with missing dependencies is listed too.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deniable"

Graph = Mapping[str, Set[str]]


@dataclass(frozen=True)
class Module:
    """A module by its dotted name."""

    name: str
    path: Path
    purpose: str
    """The first sentence of the docstring, or the empty text."""
    imports: Sequence[ast.Import | ast.ImportFrom]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def layer(self) -> str:
        """The package or file directly below the root to which the module belongs; for the root itself its own name."""
        return ".".join(self.name.split(".")[:2])


def read_modules(package: Path = PACKAGE) -> dict[str, Module]:
    """Every module below `package` by its dotted name, packages before what is in them."""
    found = {}
    for path in sorted(package.rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path.name)):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        purpose, imports = _parsed(path, "." in name, path.stat().st_mtime_ns)
        found[name] = Module(name, path, purpose, imports)
    return found


@cache
def _parsed(path: Path, inner: bool, changed: int) -> tuple[str, Sequence[ast.Import | ast.ImportFrom]]:
    """Purpose and imports of a file, read again when it has changed. Its tree is not kept: all of them are large."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    paragraph = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    purpose = re.split(r"\.(?:\s+(?=[A-Z])|$)", paragraph)[0]
    front_door = inner and path.name == "__init__.py"
    statements = ast.walk(tree) if front_door else _running(tree)
    return purpose, [one for one in statements if isinstance(one, ast.Import | ast.ImportFrom)]


def layers() -> list[str]:
    """The layers in the order that the linter enforces, lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    listed = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    names = [name.strip(" ()") for layer in reversed(listed) for name in layer.split("|")]
    return [f"{PACKAGE.name}.{name}" for name in names]


def import_graph(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Which modules each module imports, also inside functions.

    Imports for type checkers alone do not count, except in the front door of a package below the root: there they name
    what the package loads when it is first used.
    """
    return {name: set(_imports(module, modules)) - {name} for name, module in modules.items()}


def _imports(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        else:
            source = _source(module, node)
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                if inner in known or source in known:
                    yield inner if inner in known else source


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements but those below `if TYPE_CHECKING`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _for_types_alone(node.test):
            waiting.extend(node.orelse)
        else:
            waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, _STATEMENTS))


_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def _for_types_alone(test: ast.expr) -> bool:
    """Whether a condition is TYPE_CHECKING or typing.TYPE_CHECKING."""
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def _source(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    above = module.name.split(".")
    here = above[: len(above) - node.level + module.is_package]
    return ".".join([*here, *([node.module] if node.module else [])])


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Groups of modules that reach each other, each group in alphabetical order; none if the graph has no cycle."""
    reached = {name: _reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted(groups)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return seen
