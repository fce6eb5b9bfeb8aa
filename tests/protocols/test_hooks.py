"""A protocol stays small: few members to override, few public names, and every hook described in one place."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from deniable.protocols import GRR, Protocol, protocol, registered
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Kept, Law
from deniable.protocols.record import Record
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth

HOOKS = ("draw", "draw_many", "count", "valid", "infer", "law", "worth", "kernel", "traits", "examples", "story")
FINAL = {"report_bytes", "tally_size", "ratio", "guarantee", "realized_epsilon"}
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "protocols" / "writing-your-own.md"
CODE = {".py", ".pyi", ".js", ".ts", ".json", ".html"}
MOST_NAMES, MOST_MEMBERS, MOST_OVERRIDES = 40, 20, 10


def kinds() -> list[type[Protocol]]:
    """Our kinds and their families, without the classes of tests and of other packages."""
    registered()
    found: list[type[Protocol]] = []
    waiting: list[type[Protocol]] = [Protocol]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("deniable.") and kind not in found:
                found.append(kind)
    return found


def own(kind: type[Protocol]) -> set[str]:
    """The members of `Protocol` that a class overrides in its own file."""
    members = {*vars(Protocol), *Protocol.__annotations__} - {"_abc_impl"}
    written = {*vars(kind), *vars(kind).get("__annotations__", {})} & members
    return {name for name in written if not name.startswith("__") or name == "__post_init__"} - made_for(kind)


def made_for(kind: type[Protocol]) -> set[str]:
    """What `Protocol` itself adds to each class that is defined."""
    inherited = {"traits"} if not kind.traits.own else set()
    kernel = vars(kind).get("kernel")
    return inherited | ({"kernel"} if kernel is not None and kernel.__module__ == Kernel.__module__ else set())


def files_that_know(name: str) -> set[str]:
    """The code of the package and of the browser's part that has this word, without tests and their data."""
    texts = (path for folder in ("src", "web") for path in (ROOT / folder).rglob("*") if path.suffix in CODE)
    found = (path.relative_to(ROOT) for path in texts if re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")))
    made = ("web/test/", "web/vendor/", "src/deniable/schemas/")  # schemas are written from the registry
    return {path.as_posix() for path in found if not path.as_posix().startswith(made)}


def test_a_new_kind_edits_one_file_of_the_package_and_one_for_browsers() -> None:
    own = "src/deniable/protocols/frequency/block_design.py"
    known = files_that_know("BlockDesign") - {own}
    assert known == {"src/deniable/protocols/frequency/__init__.pyi", "web/deniable.js"}
    # Its words are those of another kind, and so is the shape by which pages tell its story.
    assert files_that_know("block_design") - {own} == {"src/deniable/protocols/frequency/__init__.pyi"}
    assert files_that_know("blockDesign") == {"web/deniable.js"}
    assert len(files_that_know("OLH")) > 2  # the search finds what it looks for


def public(subject: Any) -> list[str]:
    return [name for name in dir(subject) if not name.startswith("_")]


def test_a_protocol_has_few_public_names() -> None:
    assert len(public(GRR(["a", "b"], 1))) <= MOST_NAMES


def test_kinds_override_few_members() -> None:
    overridden: dict[str, list[str]] = {}
    for kind in kinds():
        for name in own(kind):
            overridden.setdefault(name, []).append(kind.__name__)
    assert len(overridden) <= MOST_MEMBERS, sorted(overridden)
    assert [name for name, classes in overridden.items() if len(classes) == 1] == []


def test_a_kind_overrides_few_members() -> None:
    counts = [len(own(kind)) for kind in kinds() if "name" in vars(kind)]
    assert len(counts) == 40
    assert statistics.median(counts) <= MOST_OVERRIDES


def test_public_members_that_kinds_override_are_hooks_or_parts_of_the_spec() -> None:
    overridden = {name for kind in kinds() for name in own(kind) if not name.startswith("_")}
    assert overridden <= {*HOOKS, "name", "domain", "epsilon", "parameters", "estimate", "channel"}


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_is_described_with_the_others(hook: str) -> None:
    assert any(line.startswith(f"{hook} ") for line in (protocol.__doc__ or "").splitlines())
    assert f"| `{hook}" in DOCS.read_text(encoding="utf-8")
    assert hook == "traits" or getattr(Protocol, hook).__doc__


@pytest.mark.parametrize("record", [Traits, Law, Kept, Worth, Kernel])
def test_records_describe_their_fields_and_are_frozen(record: type[Record]) -> None:
    assert set(record.defaults) <= set(record.__annotations__)
    made = record()
    with pytest.raises(AttributeError, match="frozen"):
        setattr(made, next(iter(record.defaults)), None)
    with pytest.raises(TypeError, match="has no field 'another'"):
        made.but(another=1)


def test_traits_come_from_all_base_classes() -> None:
    class Slow(GRR):
        traits = Traits(slow=True)

    class Named(Slow):
        traits = Traits(advice="ask for less")

    traits = Named(["a", "b"], 1).traits
    assert (traits.slow, traits.advice, traits.takes) == (True, "ask for less", GRR.traits.takes)
    assert (traits.own, Slow.traits.own) == ({"advice"}, {"slow"})
    assert GRR.traits.slow is False


@pytest.mark.parametrize("name", sorted(FINAL))
def test_facts_of_the_law_are_given_in_the_law(name: str) -> None:
    with pytest.raises(TypeError, match=f"changes {name}, which reads the law"):
        type("Other", (GRR,), {name: 1})
