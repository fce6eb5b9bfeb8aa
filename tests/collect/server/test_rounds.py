"""Rounds at a service: published in order, made from what was collected here, and read together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.analyst import Analyst
from deniable.collect.wire import ID_BYTES
from deniable.randomness import Simulation
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import combine, next_round
from tests.collect.server.live import in_thread, token_file
from tests.collect.surveys import TODAY, Crowd, plain
from tests.documents import rows_of
from tests.surveys.rounds import COUNTS, DAY, first_round, tally_of

FIRST = first_round(epsilon=3, start=TODAY - DAY)


@pytest.fixture
def live(tmp_path):
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", FIRST, plain()) as running:
        yield running


def people(survey, n, seed):
    """Reports of people who work about 38 hours."""
    bits = Simulation(seed)
    reports = survey["hours"].protocol.privatize(np.random.default_rng(seed).normal(38, 3, n), bits).array
    ids = np.frombuffer(bits.take(n * ID_BYTES), dtype=np.uint8).reshape(n, ID_BYTES)
    return Crowd(ids, reports)


def publish(live, survey):
    return live.ask("POST", "/v1/surveys", survey.canonical, "admin", {"Content-Type": "application/json"})


def tally(live, survey):
    return SurveyTally.from_spec(live.get(f"/v1/surveys/{survey.fingerprint}/tally.json", "analyst").json)


def test_a_round_is_published_once_the_one_before_is_closed_and_as_its_rule_makes_it(live):
    live.send(FIRST, 0, people(FIRST, 600, 1))
    counted = tally(live, FIRST)
    assert counted["hours"].n == 600
    times = TODAY - DAY, TODAY + 6 * DAY
    second = next_round(FIRST, counted, *times)
    early = publish(live, second)
    assert (early.status, early.problem) == (409, "wrongRound")
    assert "round 1 still takes reports, so its tally may change: close it first" in early.json["detail"]

    live.ask("POST", f"/v1/surveys/{FIRST.fingerprint}/close", role="admin")
    invented = publish(live, next_round(FIRST, tally_of(FIRST, *COUNTS), *times))
    assert invented.problem == "wrongRound"
    assert "it was changed, or it is of another moment" in invented.json["detail"]
    elsewhere = first_round(epsilon=2, start=TODAY - DAY)
    lost = publish(live, next_round(elsewhere, tally_of(elsewhere, *COUNTS), *times))
    assert f"round 2 comes after {elsewhere.fingerprint}, which is not published here" in lost.json["detail"]

    assert publish(live, second).status == 201
    assert publish(live, second).status == 200, "what is published stays so"
    another = publish(live, next_round(FIRST, counted, times[0], times[1] + DAY))
    assert f"round 2 is published already, as {second.fingerprint}" in another.json["detail"]

    known = {one["fingerprint"]: one for one in live.get("/v1/surveys").json["surveys"]}
    listed = [
        [known[one.fingerprint][key] for key in ("round", "rounds", "next_round", "state")] for one in (FIRST, second)
    ]
    assert listed == [[1, 2, second.fingerprint, "closed"], [2, 2, None, "collecting"]]
    assert known[plain().fingerprint]["round"] is None
    front = live.get("/").body.decode()
    assert "1 of 2: a device answers one round" in front
    assert f'href="s/{second.fingerprint}"' in front


def test_all_rounds_are_read_together(live):
    live.send(FIRST, 0, people(FIRST, 600, 1))
    alone = live.get(f"/v1/surveys/{FIRST.fingerprint}/campaign", "analyst").json
    assert [(one["round"], one["n"], one["state"]) for one in alone["published"]] == [(1, 600, "collecting")]
    live.ask("POST", f"/v1/surveys/{FIRST.fingerprint}/close", role="admin")
    second = next_round(FIRST, tally(live, FIRST), TODAY - DAY, TODAY + 6 * DAY)
    assert publish(live, second).status == 201
    live.send(second, 0, people(second, 900, 2))
    for survey in (FIRST, second):
        read = live.get(f"/v1/surveys/{survey.fingerprint}/campaign?level=0.9", "analyst").json
        assert (read["kind"], read["rounds"]) == ("narrowing", 2)
        assert [(one["round"], one["n"]) for one in read["published"]] == [(1, 600), (2, 900)]
        (hours,) = read["questions"]
        (row,) = rows_of(hours)
        expected = combine([FIRST, second], [tally(live, FIRST), tally(live, second)])["hours"]
        assert row["value"] == pytest.approx(expected.value)
        assert [row["low"], row["high"]] == pytest.approx(expected.interval(0.9))
        assert row["unit"] == "hours"
        assert hours["n"] == 1500
        assert any("of two rounds: 600 reports on the whole interval, then 900 on" in note for note in hours["notes"])
    assert live.get(f"/v1/surveys/{plain().fingerprint}/campaign", "analyst").problem == "noCampaign"
    assert live.get(f"/v1/surveys/{FIRST.fingerprint}/campaign").problem == "unauthorized"


def test_a_campaign_without_answers_has_no_figures(live):
    read = live.get(f"/v1/surveys/{FIRST.fingerprint}/campaign", "analyst").json
    (hours,) = read["questions"]
    assert (hours["enough"], hours["message"], rows_of(hours)) == (False, "not enough answers yet", [])


def test_serve_leaves_later_rounds_to_a_running_service(tmp_path):
    file = tmp_path / "second.json"
    next_round(FIRST, tally_of(FIRST, *COUNTS), TODAY, TODAY + 7 * DAY).save(file)
    done = CliRunner().invoke(app, ["serve", "--store", f"sqlite:///{tmp_path / 'store.db'}", "--publish", str(file)])
    assert done.exit_code == 2
    assert "is round 2 of a campaign, which a running service checks against the tally" in done.stderr


@pytest.fixture
def ran(tmp_path):
    """Runs a command with somebody's token."""

    def run(*arguments, role="analyst", code=0):
        whole = [str(one) for one in (*arguments, "--token-file", token_file(tmp_path, role))]
        done = CliRunner().invoke(app, whole)
        assert done.exit_code == code, done.output
        return done

    return run


def test_the_command_line_follows_a_campaign_at_a_service(live, ran, tmp_path):
    server, file = f"http://127.0.0.1:{live.port}", tmp_path / "round-2.json"
    live.send(FIRST, 0, people(FIRST, 600, 1))
    early = ran("survey", "next", "work", "--from", server, "-o", file, code=2)
    assert "round 1 is collecting there, so its tally may change: close it first" in early.stderr.replace("\n", " ")
    ran("survey", "close", "work", "--at", server, "--yes", role="admin")
    ran("survey", "next", FIRST.fingerprint, "--from", server, "-o", file)
    ran("survey", "publish", file, "--to", server, role="admin")
    second = Survey.load(file)
    live.send(second, 0, people(second, 900, 2))
    expected = combine([FIRST, second], [tally(live, FIRST), tally(live, second)])["hours"]
    for given in (FIRST.fingerprint, second.fingerprint, "work"):  # the name of all rounds stands for the campaign
        read = json.loads(ran("estimate", given, "--combined", "--from", server, "--json").stdout)
        assert rows_of(read["questions"][0])[0]["value"] == pytest.approx(expected.value)
    late = ran("survey", "next", "work", "--from", server, "-o", tmp_path / "round-3.json", code=2)
    assert "round 2 of 2 is the last" in late.stderr


def published(live):
    """State and next round of each round, the first round first."""
    known = [one for one in live.get("/v1/surveys").json["surveys"] if one["round"] is not None]
    return [(one["state"], one["next_round"]) for one in sorted(known, key=lambda one: one["round"])]


STOPPED = 137


def stopped(patch, name, after=0, first=False):
    """The command dies when it calls the service for this, after so many calls; `first` has that call arrive."""
    called, kept = [], getattr(Analyst, name)

    def dies(self, *given):
        called.append(name)
        if len(called) <= after:
            return kept(self, *given)
        if first:
            kept(self, *given)
        raise SystemExit(STOPPED)

    patch.setattr(Analyst, name, dies)


def test_a_command_that_broke_off_anywhere_is_called_again_and_publishes_one_round(live, ran, tmp_path, monkeypatch):
    server, file = f"http://127.0.0.1:{live.port}", tmp_path / "round-2.json"
    command = ("survey", "next", "work", "--from", server, "--publish", "--yes", "-o", file)
    live.send(FIRST, 0, people(FIRST, 600, 1))
    with monkeypatch.context() as patch:
        stopped(patch, "tally", after=1)
        ran(*command, role="admin", code=STOPPED)
    assert (published(live), file.exists()) == ([("closed", None)], False)
    with monkeypatch.context() as patch:
        stopped(patch, "publish")
        ran(*command, role="admin", code=STOPPED)
    second = Survey.load(file)
    assert published(live) == [("closed", None)]
    # An hour later the file still decides: made anew, the round would open at another time.
    with monkeypatch.context() as patch:
        patch.setattr("deniable.cli.rounds.time.time", lambda: TODAY + 2 * DAY)
        stopped(patch, "publish", first=True)
        ran(*command, role="admin", code=STOPPED)
    both = [("closed", second.fingerprint), ("collecting", None)]
    assert published(live) == both
    for source in ("work", FIRST.fingerprint):
        told = ran("survey", "next", source, *command[3:], role="admin").stdout
        assert f"round 2 is published already: {server}/v1/surveys/{second.fingerprint}" in told
        assert published(live) == both, "the round that was just published is not closed"
    assert Survey.load(file) == second
    last = ran(*command[:-1], tmp_path / "round-3.json", role="admin", code=2)
    assert "round 2 of 2 is the last" in last.stderr
    assert published(live) == both

    live.send(second, 0, people(second, 900, 2))
    shown = ran("survey", "rounds", "work", "--from", server).stdout
    assert "2 of 2 published" in shown
    assert "verified: each round follows from the tally of the one before" in shown
    assert "next:" not in shown
    read = json.loads(ran("survey", "rounds", file, "--from", server, "--json").stdout)
    rows = [[one[key] for key in ("round", "fingerprint", "state", "n", "made_from")] for one in read["published"]]
    assert rows == [
        [1, FIRST.fingerprint, "closed", 600, None],
        [2, second.fingerprint, "collecting", 900, tally(live, FIRST).digest],
    ]
    FIRST.save(tmp_path / "round-1.json")
    tally(live, FIRST).save(tmp_path / "tally-1.json")
    files = [tmp_path / name for name in ("round-1.json", "tally-1.json", "round-2.json")]
    done = CliRunner().invoke(app, ["survey", "verify-rounds", *map(str, files)])
    assert (done.exit_code, second.fingerprint in done.stdout) == (0, True)
    assert "verified: each round follows" in done.stdout


def test_what_stands_against_the_next_round_is_said_before_this_one_is_closed(live, ran, tmp_path):
    server, file = f"http://127.0.0.1:{live.port}", tmp_path / "round-2.json"
    command = ("survey", "next", "work", "--from", server, "--publish", "--yes")
    shown = ran("survey", "rounds", "work", "--from", server).stdout
    assert "1 of 2 published" in shown
    assert f"next: deniable survey next {FIRST.fingerprint[:12]} --from {server} -o FILE" in shown
    few = ran(*command, "-o", file, role="admin", code=2)
    assert "has 0 answers" in few.stderr
    live.send(FIRST, 0, people(FIRST, 600, 1))
    assert "open for one day at least" in ran(*command, "-o", file, "--days", 0, role="admin", code=2).stderr
    for other in (FIRST, plain()):
        other.save(file)
        wrong = ran(*command, "-o", file, role="admin", code=2).stderr.replace("\n", " ")
        assert "holds another survey than the round after round 1: give another -o FILE" in wrong
        assert Survey.load(file) == other
    file.unlink()
    assert "--publish goes with" in ran(*command, role="admin", code=2).stderr
    asked = ran(*command[:-1], "-o", file, role="admin", code=2)
    assert "say --yes if it is to be closed now" in asked.stderr.replace("\n", " ")
    assert ran(*command, "-o", file, role="analyst", code=2).stdout == "", "an analyst closes nothing"
    assert published(live) == [("collecting", None)]
    done = ran("survey", "next", FIRST.fingerprint[:12], *command[3:], "-o", file, role="admin")
    assert f"answer: {server}/s/{Survey.load(file).fingerprint}" in done.stdout.replace("\n", "")


def test_what_the_service_refuses_about_the_next_round_is_said_in_a_sentence_and_changes_nothing(live, tmp_path):
    server, file, false = f"http://127.0.0.1:{live.port}", tmp_path / "round-2.json", tmp_path / "false"
    live.send(FIRST, 0, people(FIRST, 600, 1))
    false.write_text("a" * 43)
    false.chmod(0o600)
    next_round(FIRST, tally_of(FIRST, *COUNTS), TODAY, TODAY + 7 * DAY).save(tmp_path / "invented.json")
    admin, analyst = token_file(tmp_path, "admin"), token_file(tmp_path, "analyst")
    cases = {
        ("work", server, false, file): "token",
        ("work", server, analyst, file): "token",
        ("work", "http://127.0.0.1:9", admin, file): "127.0.0.1:9",
        ("wrok", server, admin, file): "wrok",
        ("0" * 12, server, admin, file): "0" * 12,
        (plain().name, server, admin, file): "belongs to no campaign",
        ("work", server, admin, tmp_path / "nowhere" / "round-2.json"): "make its folder first",
        ("work", server, admin, tmp_path / "invented.json"): "it was changed, or it is of another moment",
    }
    for (source, where, token, to), said in cases.items():
        whole = ["survey", "next", source, "--from", where, "--publish", "--yes", "-o", to, "--token-file", token]
        done = CliRunner().invoke(app, [str(one) for one in whole])
        assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True), (source, where, done.output)
        assert "Traceback" not in done.output
        assert (published(live), file.exists()) == ([("collecting", None)], False), source
