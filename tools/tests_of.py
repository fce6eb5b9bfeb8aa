"""Which test files test a module: `python tools/tests_of.py src/deniable/audit/rare.py`.

Tests are grouped by what they promise, not by module. A test file belongs to the modules that it imports, and to the
modules that define the names that it imports from a package or reads from `deniable` (`dn.GRR`). A command is tested by
the files that call it by its name. A module that no test names is tested through the modules that import it, and a
package whose names are all defined below it through its modules.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs._hooks.modules import Module, import_graph, read_modules  # noqa: E402

Names = Mapping[str, Mapping[str, str]]
"""For each package, the modules below it that define each name."""


def definitions(modules: Mapping[str, Module]) -> dict[str, dict[str, str]]:
    """Where the names that can be imported from each package are defined."""
    found: dict[str, dict[str, str]] = {name: {} for name in modules}
    for name, module in modules.items():
        tree = ast.parse(module.path.read_text(encoding="utf-8"))
        defined = [one.name for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef)]
        targets = [one.targets for one in tree.body if isinstance(one, ast.Assign)]
        defined += [target.id for listed in targets for target in listed if isinstance(target, ast.Name)]
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            for public in defined:
                found[".".join(parts[:length])].setdefault(public, name)
    return found


def referred(path: Path, modules: Mapping[str, Module], names: Names) -> Iterator[str]:
    """The modules that a test file names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = next(iter(modules)).partition(".")[0]
    short = {package}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            short |= {alias.asname for alias in node.names if alias.name == package and alias.asname}
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else names[node.module].get(alias.name, node.module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in short:
            if node.attr in names[package]:
                yield names[package][node.attr]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value == "-m" and f"{package}.__main__" in modules:
                yield f"{package}.__main__"
            command = f"{package}.cli.{(node.value.split() or [''])[0].replace('-', '_')}"
            if command in modules:
                yield command


def tests_by_module(modules: Mapping[str, Module], tests: Path) -> dict[str, set[Path]]:
    """For each module the test files that name it, or else those of the modules that import it."""
    names = definitions(modules)
    found: dict[str, set[Path]] = {name: set() for name in modules}
    for path in sorted(tests.rglob("test_*.py")):
        for name in set(referred(path, modules, names)):
            found[name].add(path)
    graph = import_graph(modules)
    for name, module in modules.items():
        if module.is_package and not found[name]:
            found[name] = set().union(*(tests for inner, tests in found.items() if inner.startswith(f"{name}.")))
    waiting = {name for name in modules if not found[name]}
    while waiting:
        users = {name: {other for other in modules if name in graph[other] and found[other]} for name in waiting}
        reached = {name for name in waiting if users[name]}
        if not reached:
            break
        found |= {name: set().union(*(found[user] for user in users[name])) for name in reached}
        waiting -= reached
    return found


def main(path: str) -> None:
    file = Path(path).resolve()
    modules = read_modules()
    name = next((name for name, module in modules.items() if module.path.resolve() == file), None)
    if name is None:
        sys.exit(f"{path} is not a module of the package")
    for test in sorted(tests_by_module(modules, ROOT / "tests")[name]):
        print(test.relative_to(ROOT))


if __name__ == "__main__":
    main(*sys.argv[1:2]) if len(sys.argv) == 2 else sys.exit("give the path of one module")
