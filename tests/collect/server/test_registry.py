"""Who may do what."""

from __future__ import annotations

import hmac
import json

import pytest

from deniable.collect.server import registry
from deniable.collect.server.api import document
from deniable.collect.server.run import operations
from deniable.collect.stores import Token
from deniable.collect.wire import hashed, new_token
from deniable.surveys.terms import write_time
from tests.collect.server.live import TOKENS, eventually, in_thread
from tests.collect.surveys import DAY, TODAY, crowd, mixed, plain

OPEN = {
    *("sendReports", "deleteReport", "listSurveys", "getSurvey", "plan", "isAlive", "isReady", "getInterface"),
    *("frontPage", "surveyPage", "dashboardPage", "surveyDashboardPage", "planPage", "auditPage"),
    *("getWebFile", "getPagesFile", "getVendorFile", "getWordsFile"),
    *("getResults", "getResultsCsv", "getResultsArrow", "resultsPage", "makeSurvey", "newPage", "previewPage"),
}
"""What needs no token. Whoever adds an operation to these means it."""
NEEDS_TOKEN = {"sendReports"}
"""What needs a token if the service is set so, as the one below is."""
ALL_SURVEYS = {"publishSurvey", "getCampaign", "listTokens", "createToken", "revokeToken", "getMetrics"}
"""What the token of one survey does not allow."""
FOR = {
    "all": (None, None),
    "own": (plain().fingerprint, None),
    "other": (mixed().fingerprint, None),
    "lasting": (None, 1 << 33),
    "expired": (None, 1_000_000_000),
}
"""Survey and expiry of tokens."""
DOCUMENT = document(operations())
CALLS = [(method.upper(), path, one) for path, some in DOCUMENT["paths"].items() for method, one in some.items()]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A service that wants a key for reports, and tokens of each role, survey and expiry."""
    url = f"sqlite:///{tmp_path_factory.mktemp('guarded') / 'store.db'}"
    with in_thread(url, plain(), mixed(), needs_token=True) as live:
        with live.store() as store:
            for role in ("ingest", "analyst", "admin"):
                for kind, limits in FOR.items():
                    store.add_token(Token(hashed(f"dn_{role}-{kind}"), role, "", *limits))
        yield live


@pytest.mark.parametrize(("method", "path", "described"), CALLS, ids=[one["operationId"] for _, _, one in CALLS])
def test_every_operation_of_the_document_looks_at_tokens(guarded, method, path, described):
    """No token, an unknown one, one of a weaker role, of another survey, an expired one, and those that are right."""
    name = described["operationId"]
    parts = {"fingerprint": plain().fingerprint, "survey": plain().fingerprint, "epoch": "0", "id": "0" * 64}
    address = path.format_map(parts | {"version": "current", "file": "none.js"})

    def status(token: str | None) -> int:
        headers = {} if token is None else {"Authorization": f"Bearer dn_{token}"}
        return guarded.ask("HEAD" if method == "GET" else method, address, b"", headers=headers).status

    role = next(one.role for one in operations() if one.name == name) or "ingest"
    roles = ["ingest", "analyst", "admin"]
    if name in OPEN - NEEDS_TOKEN:
        assert {} in described["security"] or not described["security"]
        given = [None, "unknown", *(f"{one}-{kind}" for one in roles for kind in FOR)]
        seen = {status(token) for token in given}
        # The terms of this survey keep its results from everybody, whatever the token.
        assert seen == {403} if name.startswith("getResults") else seen.isdisjoint({401, 403})
        return
    assert {"token": []} in described["security"]
    assert {status(None), status("unknown")} == {401}
    assert {status(f"{one}-all") for one in roles[: roles.index(role)]} <= {403}
    assert [status(f"{role}-expired"), status(f"{role}-other")] == [401, 403]
    assert (status(f"{role}-own") == 403) == (name in ALL_SURVEYS)
    assert not {status(f"{role}-{kind}") for kind in ("all", "lasting")} & {401, 403}


def test_what_is_public_and_what_is_not():
    """Everybody may send reports and read what says nothing of them; a sum needs an analyst, a change an admin."""
    for one in operations():
        if one.method != "GET":
            open_to_all = ("sendReports", "deleteReport", "makeSurvey")  # the last one computes and keeps nothing
            assert one.role == (None if one.name in open_to_all else "admin"), one.name
        elif one.path == "/metrics":
            assert one.role == "analyst"
        elif one.path.startswith("/v1/surveys/{fingerprint}/results"):
            assert one.role is None  # the survey's terms decide whether everybody may read them
        elif one.path.startswith("/v1/surveys/{fingerprint}/"):
            assert one.role == ("admin" if one.name == "listShares" else "analyst"), one.name  # it tells ids
        elif one.path.startswith("/v1/tokens"):
            assert one.role == "admin", one.name


NO_TOKEN = ["", "Bearer", "Bearer ", "Basic abc"]
BAD_TOKENS = [f"Bearer {new_token()}", f"Bearer {TOKENS['analyst']}x", "Bearer dn_", "Bearer " + "x" * 5000]
BAD_TOKENS += [f"Bearer {TOKENS['analyst'][:-1]}", f"Bearer {hashed(TOKENS['analyst'])}"]


@pytest.mark.parametrize(
    ("sent", "words"), [(NO_TOKEN, "this needs a token"), (BAD_TOKENS, "this token is not accepted")]
)
def test_bad_tokens_get_the_same_answer(shared, sent, words):
    """And one that says what its sender knows already: that a token came, or none."""
    path = f"/v1/surveys/{plain().fingerprint}/status"
    answers = []
    for value in sent:
        answered = shared.get(path, Authorization=value) if value else shared.get(path)
        headers = {name: text for name, text in answered.headers.items() if name != "date"}
        answers.append((answered.status, answered.body, headers))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] == 401
    assert words.encode() in answers[0][1]
    assert b"deniable store token create --role analyst" in answers[0][1]
    assert shared.get(path, "analyst").status == 200


def test_every_token_is_compared_in_constant_time(monkeypatch):
    """The work for a bad token does not depend on it: one hash, one comparison a token, whatever it looks like."""
    compared = []

    def counting(left: str, right: str) -> bool:
        compared.append((left, right))
        return hmac.compare_digest(left, right)

    keys = registry.Keys(tuple(Token(hashed(f"dn_{i}"), "analyst", "") for i in range(5)))
    monkeypatch.setattr(registry, "hmac", type("fake", (), {"compare_digest": staticmethod(counting)}))
    for token in (b"", b"dn_0", b"dn_4", b"nonsense" * 1000):
        compared.clear()
        keys.find(token)
        assert len(compared) == 5
        assert all(len(left) == len(right) == 64 for left, right in compared)


def test_tokens_over_http(live):
    headers = {"Content-Type": "application/json"}
    made = live.ask("POST", "/v1/tokens", b'{"role": "analyst", "label": "new"}', "admin", headers)
    assert made.status == 201
    token, id = made.json["token"], made.json["id"]
    assert token.startswith("dn_")
    assert hashed(token) == id
    path = f"/v1/surveys/{plain().fingerprint}/status"
    assert live.get(path, Authorization=f"Bearer {token}").status == 200
    listed = live.get("/v1/tokens", "admin")
    known = {"id": id, "role": "analyst", "label": "new", "survey": None, "expires": None}
    assert known in listed.json["tokens"]
    assert token.encode() not in listed.body
    assert live.ask("DELETE", f"/v1/tokens/{id}", role="admin").status == 204
    assert live.ask("DELETE", f"/v1/tokens/{id}", role="admin").problem == "unknownToken"
    assert live.get(path, Authorization=f"Bearer {token}").problem == "unauthorized"
    for wrong in (b"", b"{}", b'{"role": "king"}', b'{"role": "admin", "more": 1}'):
        assert live.ask("POST", "/v1/tokens", wrong, "admin", headers).problem == "malformed"


def test_a_token_made_or_revoked_elsewhere(live):
    token = new_token()
    path = f"/v1/surveys/{plain().fingerprint}/status"
    with live.store() as store:
        store.add_token(Token(hashed(token), "analyst", ""))
        assert live.get(path, Authorization=f"Bearer {token}").status == 200
        store.remove_token(hashed(token))
    eventually(lambda: live.get(path, Authorization=f"Bearer {token}").status == 401)


def test_reports_may_need_a_key(tmp_path):
    survey = plain()
    people = crowd(survey, 2)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, needs_token=True) as live:
        assert live.send(survey, 0, people).problem == "unauthorized"
        assert live.send(survey, 0, people, role="ingest").status == 200
        assert live.send(survey, 0, people, role="admin").status == 200
        assert live.get(f"/v1/surveys/{survey.fingerprint}").status == 200


# -- scope and expiry ------------------------------------------------------------------------------


def make(live, **wanted):
    headers = {"Content-Type": "application/json"}
    return live.ask("POST", "/v1/tokens", json.dumps({"role": "analyst"} | wanted).encode(), "admin", headers)


def test_a_token_of_one_survey(live):
    made = make(live, survey=plain().fingerprint)
    assert (made.status, made.json["survey"], made.json["expires"]) == (201, plain().fingerprint, None)
    given = {"Authorization": f"Bearer {made.json['token']}"}
    assert live.get(f"/v1/surveys/{plain().fingerprint}/tally.json", **given).status == 200
    refused = live.get(f"/v1/surveys/{mixed().fingerprint}/tally.json", **given)
    assert refused.problem == "forbidden"
    assert (
        f"good for one survey only, {plain().fingerprint}: this needs one of this survey or of all"
        in (refused.json["detail"])
    )
    # Whether there is such a survey is not told.
    assert live.get(f"/v1/surveys/{'0' * 64}/tally.json", **given).status == 403
    assert "of all surveys" in live.get("/metrics", **given).json["detail"]
    listed = [[one["fingerprint"] for one in live.get("/v1/surveys", **some).json["surveys"]] for some in (given, {})]
    assert listed[0] == [plain().fingerprint]
    assert len(listed[1]) == 4
    assert make(live, survey="0" * 64).problem == "unknownSurvey"
    assert make(live, survey="plain").problem == "malformed"


def test_a_token_ends(tmp_path):
    """By the time that the service trusts: a clock that jumps ends no token, and revives none."""
    wall, monotonic = [TODAY + 0.5 * DAY], [0.0]
    clocks = {"clock": lambda: wall[0], "monotonic": lambda: monotonic[0]}
    path = f"/v1/surveys/{plain().fingerprint}/status"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), **clocks, refresh_seconds=1e6) as live:

        def status(token):
            return live.get(path, Authorization=f"Bearer {token}").status

        wall[0] += 4000
        monotonic[0] += 4000
        live.service.clock.check()
        end = write_time(int(wall[0]) + 3600)
        made = make(live, expires=end)
        assert (made.json["expires"], status(made.json["token"])) == (end, 200)
        assert make(live, expires=write_time(int(wall[0]) - 1)).problem == "malformed"
        assert make(live, expires="tomorrow").problem == "malformed"
        wall[0] += 40 * DAY
        assert status(made.json["token"]) == 200
        wall[0] -= 40 * DAY
        for clock in (wall, monotonic):
            clock[0] += 3599
        assert status(made.json["token"]) == 200
        for clock in (wall, monotonic):
            clock[0] += 1
        over = live.get(path, Authorization=f"Bearer {made.json['token']}")
        assert (over.status, over.problem) == (401, "expiredToken")
        assert f"this token was good until {end}; the operator of the service makes one with" in over.json["detail"]
        wall[0] -= 10 * DAY
        assert status(made.json["token"]) == 401
