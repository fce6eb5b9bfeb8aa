"""Every exported name says in its docstring what its parameters mean, what it returns and which errors it raises.

The style is Google's: sections `Args`, `Returns` (or `Yields`) and `Raises`. A class lists the parameters of its
constructor; those that it inherits may be listed by the base class. A field of a record may have a docstring of its own
instead.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import deniable
from deniable.collect.client import AsyncClient, Client

COMMANDS = "deniable.cli"  # their parameters are options with a help text
MODULES = [
    *("deniable", "deniable.errors", "deniable.exact", "deniable.files.spark", "deniable.planning"),
    *(
        found.name
        for found in pkgutil.walk_packages(deniable.__path__, "deniable.")
        if found.ispkg and found.name != COMMANDS and hasattr(importlib.import_module(found.name), "__all__")
    ),
]
SAME = {AsyncClient: Client}
"""Classes with the parameters of another class, to which their docstrings refer."""

SECTION = re.compile(r"^(Args|Returns|Yields|Raises):\n((?:[ ]+.*\n|\n(?=[ ]))+)", re.MULTILINE)
ENTRY = re.compile(r"^[ ]{4}(\*{0,2}\w+): \S", re.MULTILINE)
VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def exported(name: str) -> Iterator[tuple[str, Any]]:
    """Classes and functions of this project that a module exports."""
    module = importlib.import_module(name)
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == name and key[0] != "_"]
    for key in getattr(module, "__all__", own):
        thing = getattr(module, key)
        made_here = str(getattr(thing, "__module__", "")).startswith("deniable")
        if not isinstance(thing, ModuleType) and callable(thing) and made_here and hasattr(thing, "__qualname__"):
            yield key, inspect.unwrap(thing)


def sections(thing: Any) -> dict[str, str]:
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    return dict(SECTION.findall(text))


def documented(thing: Any) -> set[str]:
    return {name.lstrip("*") for name in ENTRY.findall(sections(thing).get("Args", ""))}


def described(thing: Any) -> set[str]:
    """The fields of a class that have a docstring of their own."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    except (OSError, TypeError):
        return set()
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        field.target.id
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
    }


def parameters(thing: Any) -> set[str]:
    """What a caller may pass; of a constructor with `*args, **given`, what its class passes on."""
    try:
        found = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):  # an exception that takes a message
        return set()
    if inspect.isclass(thing) and {one.kind for one in found} == set(VARIADIC):
        found = list(inspect.signature(thing.__init__).parameters.values())
    if inspect.isclass(thing) and [one.name for one in found if one.name != "self"] == ["args", "kwargs"]:
        return set()  # an abstract interface without a constructor
    return {one.name for one in found if one.name not in ("self", "cls") and one.name[0] != "_"}


def gaps(thing: Any) -> list[str]:
    """What is missing in the docstring of a class or function, and what does not belong there."""
    listed, wanted = documented(thing), parameters(thing)
    wanted -= described(thing) if inspect.isclass(thing) else set()
    known = set(wanted)
    if inspect.isclass(thing):
        bases = [base for base in thing.__mro__[1:] if base.__module__.startswith("deniable")]
        inherited = {name for base in (*bases, SAME.get(thing, thing)) for name in documented(base)}
        known |= set(inspect.signature(thing.__init__).parameters)
    else:
        inherited = set()
    found = [f"{name} is not documented" for name in sorted(wanted - listed - inherited)]
    found += [f"{name} is documented and does not exist" for name in sorted(listed - known)]
    given = sections(thing)
    if not inspect.isclass(thing):
        returned = inspect.signature(thing).return_annotation
        result = returned not in (None, "None", inspect.Signature.empty)
        if result and wanted and not given.keys() & {"Returns", "Yields"}:
            found.append("what it returns is not documented")
        if not result and given.keys() & {"Returns", "Yields"}:
            found.append("it returns nothing, and says what")
    namespace = vars(importlib.import_module(thing.__module__))
    for name in ENTRY.findall(given.get("Raises", "")):
        kind = namespace.get(name, getattr(builtins, name, getattr(deniable.errors, name, None)))
        if not (inspect.isclass(kind) and issubclass(kind, Exception)):
            found.append(f"{name} is not an error")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_parameter_of_every_exported_name_is_documented(module: str) -> None:
    assert {name: gaps(thing) for name, thing in exported(module) if gaps(thing)} == {}


def test_all_packages_are_covered() -> None:
    assert {"deniable.channels", "deniable.design", "deniable.privacy", "deniable.surveys", "deniable.files"} < {
        *MODULES
    }
    names = {name for module in MODULES for name, _ in exported(module)}
    assert len(names) > 400
    assert {"GRR", "plan", "Survey", "Client", "audit", "exp_floor"} < names


def right(one: int, *, other: int = 0) -> int:
    """Add.

    Args:
        one: A number.
        other: A number that is
            explained in two lines.

    Returns:
        The sum.

    Raises:
        ValueError: Never.

    >>> right(1)
    1
    """
    return one + other


def test_a_gap_is_found() -> None:
    assert gaps(right) == []
    source = textwrap.dedent(inspect.getsource(right))
    breaks = {
        "        one: A number.\n": "one is not documented",
        "    Returns:\n        The sum.\n\n": "what it returns is not documented",
    }
    for part, message in breaks.items():
        assert part in source
        assert gaps(made(source.replace(part, ""))) == [message]
    assert gaps(made(source.replace("other: A", "another: A"))) == [
        "other is not documented",
        "another is documented and does not exist",
    ]
    assert gaps(made(source.replace("ValueError", "SumError"))) == ["SumError is not an error"]
    assert gaps(made(source.replace("-> int", "-> None"))) == ["it returns nothing, and says what"]


def made(source: str) -> Any:
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(ast.parse(source), "<broken variant>", "exec"), namespace)
    return namespace["right"]
