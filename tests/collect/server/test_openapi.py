"""The served document is true: schemathesis asks everything in it, and every answer is one that it names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from deniable.collect.server.api import document
from deniable.collect.server.run import create_app, operations
from deniable.collect.server.service import Settings
from tests.collect.server.live import TOKENS, Live, in_thread
from tests.collect.surveys import crowd, current, daily, mixed, plain


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    directory = tmp_path_factory.mktemp("openapi")
    with in_thread(f"sqlite:///{directory / 'store.db'}", plain(), mixed(), daily()) as live:
        live.send(mixed(), current(mixed()), crowd(mixed(), 50))
        yield live


def test_every_route_is_in_the_document_and_the_other_way_round(tmp_path):
    app = create_app(Settings(store=f"sqlite:///{tmp_path / 'store.db'}"))
    routes = {route.path for route in app.routes} - {"/{rest:path}"}
    described = document(operations())
    assert set(described["paths"]) == routes
    names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(operations())


def test_the_served_document_is_the_tables_document(asked):
    import json

    assert asked.get("/openapi.json").json == json.loads(json.dumps(document(operations())))


STREAM = "streamNews"  # never ends; test_progress.py has it
IDS = sorted(one.name for one in operations() if one.name != STREAM)


@cache
def _schema(port: int) -> Any:
    """The document of the service at a port, read once."""
    schemathesis = pytest.importorskip("schemathesis")  # one process needs it, and it takes a second to load
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


def _fuzz(live: Live, name: str, examples: int, role: str | None, wrongly: bool = False) -> int:
    """Ask one operation, rightly or wrongly; fails at a 5xx, an undocumented status, type or form of an answer."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    mode = schemathesis.GenerationMode.NEGATIVE if wrongly else schemathesis.GenerationMode.POSITIVE
    operation = _schema(live.port).find_operation_by_id(name)
    checks = schemathesis.checks
    chosen = [
        checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
    ]
    headers = {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}
    # One survey may be closed and deleted, and the others are still there for reports.
    surveys = [daily()] if name in ("closeSurvey", "deleteSurvey") else [plain(), mixed()]
    known = [survey.fingerprint for survey in surveys]
    count = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def run(case) -> None:
        nonlocal count
        if "fingerprint" in case.path_parameters and count % 4:
            case.path_parameters["fingerprint"] = known[count % len(known)]
        count += 1
        case.call_and_validate(headers=headers, checks=chosen)

    run()
    return count


@pytest.mark.parametrize("name", IDS)
def test_answers_are_those_of_the_document(asked, name):
    role = next(one.role for one in operations() if one.name == name)
    assert _fuzz(asked, name, 6, role) > 0
    if any(one.parameters or one.bodies for one in operations() if one.name == name):
        # Of a page any short text is a right address: it takes long to find wrong ones, which the slow tests do.
        _fuzz(asked, name, 2 if name.endswith("Page") else 8, role, wrongly=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", IDS)
def test_many_answers_are_those_of_the_document(asked, name):
    role = next(one.role for one in operations() if one.name == name)
    for given in {role, None}:
        _fuzz(asked, name, 12, given)
    if any(one.parameters or one.bodies for one in operations() if one.name == name):
        _fuzz(asked, name, 25, role, wrongly=True)


def test_a_document_that_hides_a_status_is_caught(tmp_path, monkeypatch):
    """Power: leave one problem out of the tables and schemathesis finds it."""
    from deniable.collect.server import api

    whole = api.Operation.all_problems.fget
    monkeypatch.setattr(
        api.Operation, "all_problems", property(lambda self: [name for name in whole(self) if name != "malformed"])
    )
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, plain()) as live, pytest.raises(BaseExceptionGroup) as caught:
        _fuzz(live, "createToken", 30, "admin", wrongly=True)
    assert [type(one).__name__ for one in caught.value.exceptions] == ["UndefinedStatusCode"]
