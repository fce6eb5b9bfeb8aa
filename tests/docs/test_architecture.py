"""The architecture page is true: its walk names modules that exist, and the package has the shape that it describes."""

from __future__ import annotations

import re
import sys
import threading

import pytest

from docs._hooks import modules as reader
from docs._hooks.execute import run_page

PAGE = reader.ROOT / "docs" / "architecture.md"
HOP = re.compile(r"^\| (?:device|service|analyst) \| `([^`]+)` \| .+ \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def modules() -> dict[str, reader.Module]:
    return reader.read_modules()


@pytest.fixture(scope="module")
def graph(modules: dict[str, reader.Module]) -> reader.Graph:
    return reader.import_graph(modules)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def stale(hops: list[str], modules: dict[str, reader.Module]) -> list[str]:
    """The hops that name neither a module nor a file of the project."""
    return [hop for hop in hops if hop not in modules and not ("/" in hop and (reader.ROOT / hop).is_file())]


def test_every_hop_of_the_walk_exists_and_is_passed_once(page, modules):
    hops = HOP.findall(page)
    assert len(hops) >= 10
    assert stale(hops, modules) == []
    assert len(set(hops)) == len(hops)
    assert stale(["deniable.collect.wires", "web/pages/nothing.js"], modules) == [
        "deniable.collect.wires",
        "web/pages/nothing.js",
    ]


def unpassed(hops: list[str], passed: set[str]) -> list[str]:
    """The modules among the hops of which no function was called."""
    return [hop for hop in hops if "/" not in hop and not any(f"{name}.".startswith(f"{hop}.") for name in passed)]


def test_one_answer_passes_every_hop(page, tmp_path):
    """A real client answers a real service in this process, and an analyst asks for the estimates."""
    pytest.importorskip("starlette")
    from deniable.collect.client import Client
    from tests.collect.server.live import in_thread
    from tests.collect.surveys import plain

    passed, survey, recording = set(), plain(), threading.Event()

    def note(frame, event, argument):
        if event == "call" and recording.is_set():
            passed.add(frame.f_globals.get("__name__", ""))

    threading.setprofile(note)  # the threads of the service
    try:
        with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as service:
            address = f"http://127.0.0.1:{service.port}"
            with Client(address, survey.fingerprint, tmp_path / "ledger.sqlite") as client:
                recording.set()
                sys.setprofile(note)
                try:
                    receipt = client.answer({"smoke": "no"})
                finally:
                    sys.setprofile(None)
            estimates = service.get(f"/v1/surveys/{survey.fingerprint}/estimates", "analyst")
            recording.clear()
    finally:
        threading.setprofile(None)
    assert (receipt.state, estimates.status) == ("sent", 200)
    hops = HOP.findall(page)
    assert unpassed(hops, passed) == []
    assert unpassed([*hops, "deniable.collect.crowd"], passed) == ["deniable.collect.crowd"]


def test_the_page_lists_every_module_with_its_purpose(page, modules, monkeypatch):
    monkeypatch.chdir(reader.ROOT)
    built = run_page(page, PAGE.name, lambda name, image: name)
    listed = built.partition("## Every module")[2]
    for module in modules.values():
        name = module.name if module.name == module.layer else module.name.removeprefix(module.layer + ".")
        assert f"`{name}`" in listed, f"{module.name} is not listed"
        assert module.purpose.replace("|", "&#124;") in listed


def test_every_module_says_what_it_is_for(modules):
    assert [name for name, module in modules.items() if not module.purpose] == []


def test_the_import_graph_has_no_cycles(graph):
    assert reader.cycles(graph) == []


def written(folder, files: dict[str, str]) -> reader.Graph:
    """The import graph of a package that is written for a test."""
    for name, text in files.items():
        path = folder / "deniable" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return reader.import_graph(reader.read_modules(folder / "deniable"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import deniable.other", "import deniable.one"),
        ("from deniable.other import x", "from deniable.one import y"),
        ("from deniable import other", "from . import one"),
        ("from .other import x", "def f():\n    from deniable.one import y"),
        ("class A:\n    def f(self):\n        import deniable.other", "if True:\n    from deniable.one import y"),
    ],
)
def test_a_cycle_is_found_also_inside_functions(tmp_path, one, other):
    graph = written(tmp_path, {"__init__.py": "", "one.py": one, "other.py": other})
    assert reader.cycles(graph) == [("deniable.one", "deniable.other")]


def test_a_cycle_through_a_front_door_that_loads_late_is_found(tmp_path):
    door = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from deniable.room.inner import x"
    graph = written(tmp_path, {"room/__init__.py": door, "room/inner.py": "def f():\n    from deniable.room import x"})
    assert reader.cycles(graph) == [("deniable.room", "deniable.room.inner")]


def test_what_is_no_cycle_is_not_called_one(tmp_path):
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from deniable.other import x"
    graph = written(tmp_path, {"__init__.py": "", "one.py": typed, "other.py": "from deniable.one import y"})
    assert graph == {"deniable": set(), "deniable.one": set(), "deniable.other": {"deniable.one"}}
    assert reader.cycles(graph) == []


SHORTEST = 80
"""Lines below which a module has to be of use to more than one other."""


def fragments(modules: dict[str, reader.Module], graph: reader.Graph) -> list[str]:
    """Short modules that exactly one other imports, and no front door of a package: they belong inside it."""
    short = [
        name
        for name, module in modules.items()
        if not module.is_package and len(module.path.read_text(encoding="utf-8").splitlines()) < SHORTEST
    ]
    users = {name: [other for other, found in graph.items() if name in found] for name in short}
    return [name for name, found in users.items() if len(found) == 1 and not modules[found[0]].is_package]


def test_no_module_is_a_fragment_of_another(modules, graph, tmp_path):
    assert fragments(modules, graph) == []
    two = written(tmp_path, {"__init__.py": "", "one.py": "from deniable.other import x", "other.py": "x = 1"})
    assert fragments(reader.read_modules(tmp_path / "deniable"), two) == ["deniable.other"]
