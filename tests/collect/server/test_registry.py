"""Who may do what."""

from __future__ import annotations

import hmac

import pytest

from deniable.collect.server import registry
from deniable.collect.server.run import operations
from deniable.collect.stores import Token
from deniable.collect.wire import hashed, new_token
from tests.collect.server.live import TOKENS, eventually, in_thread
from tests.collect.surveys import crowd, plain

RANK = {None: 0, "ingest": 1, "analyst": 2, "admin": 3}


def path_of(operation) -> str:
    return (
        operation.path.replace("{fingerprint}", plain().fingerprint).replace("{epoch}", "0").replace("{id}", "0" * 64)
    )


@pytest.mark.parametrize("operation", [one for one in operations() if one.role], ids=lambda one: one.name)
def test_every_protected_operation_wants_its_role(shared, operation):
    for role in (None, "ingest", "analyst"):
        if RANK[role] >= RANK[operation.role]:
            continue
        answered = shared.ask(operation.method, path_of(operation), b"", role)
        assert answered.problem == ("unauthorized" if role is None else "forbidden")


def test_what_is_public_and_what_is_not():
    """Everybody may send reports and read what says nothing of them; a sum needs an analyst, a change an admin."""
    for one in operations():
        if one.method != "GET":
            assert one.role == (None if one.name in ("sendReports", "deleteReport") else "admin"), one.name
        elif one.path == "/metrics":
            assert one.role == "analyst"
        elif one.path.startswith("/v1/surveys/{fingerprint}/"):
            assert one.role == "analyst", one.name
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
    assert b"deniable token create --role analyst" in answers[0][1]
    assert shared.get(path, "analyst").status == 200


def test_every_token_is_compared_in_constant_time(monkeypatch):
    """The work for a bad token does not depend on it: one hash, one comparison a token, whatever it looks like."""
    compared = []

    def counting(left: str, right: str) -> bool:
        compared.append((left, right))
        return hmac.compare_digest(left, right)

    keys = registry.Keys.of([Token(hashed(f"dn_{i}"), "analyst", "") for i in range(5)])
    monkeypatch.setattr(registry, "hmac", type("fake", (), {"compare_digest": staticmethod(counting)}))
    for token in (b"", b"dn_0", b"dn_4", b"nonsense" * 1000):
        compared.clear()
        keys.rank(token)
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
    assert {"id": id, "role": "analyst", "label": "new"} in listed.json["tokens"]
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
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, keyed=True) as live:
        assert live.send(survey, 0, people).problem == "unauthorized"
        assert live.send(survey, 0, people, role="ingest").status == 200
        assert live.send(survey, 0, people, role="admin").status == 200
        assert live.get(f"/v1/surveys/{survey.fingerprint}").status == 200
