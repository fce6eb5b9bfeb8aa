"""Publishing, replacing and ending a survey from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deniable.cli import app
from deniable.collect.stores import open_store
from deniable.surveys import Survey
from tests.collect.server.live import Answered, Live, Process, token_file
from tests.collect.surveys import DAY, TODAY, daily, plain


def ran(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done


def admin(live: Live, option: str, folder: Path) -> tuple[str, ...]:
    return option, f"http://127.0.0.1:{live.port}", "--token-file", token_file(folder, "admin")


def successor(before: Survey, **terms: object) -> Survey:
    return Survey(before.name, before.questions, replace(before.terms, **terms))


def test_a_survey_that_replaces_another(tmp_path, live):
    before, file = plain(), str(tmp_path / "survey.json")
    to = admin(live, "--to", tmp_path)
    successor(before, replaces="f" * 64).save(file)
    typo = ran("survey", "publish", file, *to, "-o", str(tmp_path / "kept.json"), code=2).stderr
    assert f"replaces {'f' * 64}, which is not published there" in typo
    weak = successor(before, replaces=before.fingerprint, retention="reports")
    weak.save(file)
    refused = ran("survey", "publish", file, *to, "-o", str(tmp_path / "kept.json"), code=1)
    assert refused.stderr.startswith("privacy gets weaker: retention (")
    assert refused.stdout == ""
    assert not (tmp_path / "kept.json").exists()
    assert live.get(f"/v1/surveys/{weak.fingerprint}").problem == "unknownSurvey"
    ran("survey", "publish", file, *to, "--weaker-privacy")
    # What is published is published, whatever it replaces.
    assert "was published before" in ran("survey", "publish", file, *to).stdout
    same = successor(before, replaces=before.fingerprint, purpose="To test it again.")
    same.save(file)
    assert "\npublished: " in ran("survey", "publish", file, *to).stdout


def test_the_service_refuses_less_privacy_by_itself(live):
    """Whoever publishes without the command line has to say that it is meant, too."""
    before = plain()
    weak = successor(before, replaces=before.fingerprint, retention="reports")
    strong = successor(before, replaces=before.fingerprint, purpose="To test it again.")
    nowhere = successor(before, replaces="f" * 64)

    def publish(survey: Survey, query: str = "") -> Answered:
        return live.ask("POST", f"/v1/surveys{query}", survey.canonical, "admin", {"Content-Type": "application/json"})

    for query in ("", "?weaker_privacy=false"):
        refused = publish(weak, query)
        assert (refused.status, refused.problem) == (409, "weakerPrivacy")
        assert "retention" in refused.json["detail"]
    assert live.get(f"/v1/surveys/{weak.fingerprint}").problem == "unknownSurvey"
    assert publish(nowhere).problem == "malformed"
    assert publish(weak, "?weaker_privacy=1").problem == "malformed"
    assert publish(strong).status == 201
    assert publish(weak, "?weaker_privacy=true").status == 201
    # What is published is published.
    assert publish(weak).status == 200


def test_closing_a_survey(tmp_path, live):
    survey, at = daily(), admin(live, "--at", tmp_path)
    refused = ran("survey", "close", "daily", *at, code=2).stderr
    assert "say --yes" in refused
    states = {one["fingerprint"]: one["state"] for one in live.get("/v1/surveys").json["surveys"]}
    assert states[survey.fingerprint] == "collecting"
    analyst = ("--at", at[1], "--token-file", token_file(tmp_path, "analyst"))
    assert "403" in ran("survey", "close", "daily", *analyst, "--yes", code=2).stderr
    closed = ran("survey", "close", "daily", *at, "--yes").stdout
    assert survey.fingerprint in closed
    assert "\nclosed: http" in closed
    survey.save(tmp_path / "survey.json")
    for given in (survey.fingerprint, survey.fingerprint[:8], str(tmp_path / "survey.json")):
        assert "\nwas closed before: " in ran("survey", "close", given, *at).stdout
    plain(min_reports=99).save(tmp_path / "other.json")
    assert "does not have" in ran("survey", "close", str(tmp_path / "other.json"), *at, "--yes", code=2).stderr


def test_serve_refuses_what_publish_refuses(tmp_path):
    url, file = f"sqlite:///{tmp_path / 'store.db'}", tmp_path / "survey.json"
    over = daily(TODAY - 60 * DAY)
    unknown = successor(plain(), replaces="f" * 64)
    for content, words in (
        ('{"name": "x", "questions": []}', "this is a draft: make it a survey with deniable survey new"),
        (json.dumps(plain()["smoke"].protocol.spec()), "not a survey"),
        (over.to_json(), "expired at"),
        (unknown.to_json(), "not published there"),
    ):
        file.write_text(content)
        assert words in ran("serve", "--port", "0", "--store", url, "--publish", str(file), code=2).stderr
        assert not (tmp_path / "store.db").exists()
    with open_store(url) as store:
        store.publish(over)
        store.publish(plain())
    successor(plain(), replaces=plain().fingerprint, retention="reports").save(file)
    weaker = ran("serve", "--port", "0", "--store", url, "--publish", str(file), code=2).stderr
    assert "(retention)" in weaker
    assert "--weaker-privacy" in weaker
    # A service is started with the same options as long as it runs: what it has may expire meanwhile.
    over.save(file)
    with Process(url, "--publish", str(file)) as service:
        assert service.get(f"/v1/surveys/{over.fingerprint}").status == 200
        assert f"published: {over.name}\nsurvey: http" in service.said


COMMANDS = [
    ("store", "token", "create", "--role", "admin"),
    ("store", "token", "list"),
    ("store", "check"),
    ("store", "backup", "copy.db"),
    ("store", "export", "out"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_empty_database_is_not_made_a_store(postgres_url, command):
    import psycopg

    assert "there is no store in this PostgreSQL database" in ran(*command, "--store", postgres_url, code=2).stderr
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,)
    if command == ("store", "check"):
        with open_store(postgres_url):
            pass
        assert "nothing is wrong" in ran(*command, "--store", postgres_url).stdout
