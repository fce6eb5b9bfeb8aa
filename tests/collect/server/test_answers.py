"""What analysts and the public read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deniable.channels import randomized_response
from deniable.collect.server import estimates, progress
from deniable.collect.server.registry import Entry
from deniable.collect.stores import open_store
from deniable.collect.stores.batches import SurveyCounter
from deniable.conformance.protocols import registered_examples
from deniable.domains import Integers
from deniable.protocols import GRR, Ranges, Table
from deniable.surveys import Longitudinal, Question, Survey, SurveyTally
from deniable.surveys.results import SAME_DEVICES, SAME_NOISE, SAME_PEOPLE, find
from tests.collect.server.live import eventually, in_thread, moving
from tests.collect.surveys import DAY, TODAY, WORDS, Crowd, crowd, current, daily, memoized, mixed, plain, terms, text
from tests.documents import rows_of, section
from tests.web.pages.surveys import single


def test_the_list_in_pages(live):
    whole = live.get("/v1/surveys").json
    assert [one["fingerprint"] for one in whole["surveys"]] == sorted(
        survey.fingerprint for survey in (plain(), mixed(), daily(), text())
    )
    assert whole["next"] is None
    pages, after = [], ""
    while after is not None:
        page = live.get(f"/v1/surveys?limit=3&after={after}").json
        pages.append([one["fingerprint"] for one in page["surveys"]])
        after = page["next"]
    assert [len(page) for page in pages] == [3, 1]
    assert [*pages[0], *pages[1]] == [one["fingerprint"] for one in whole["surveys"]]


def test_a_survey_is_its_own_bytes(live):
    survey = mixed()
    answered = live.get(f"/v1/surveys/{survey.fingerprint}")
    assert answered.body == survey.canonical
    assert hashlib.sha256(b"deniable-survey-v1\0" + answered.body).hexdigest() == survey.fingerprint
    assert answered.headers["etag"] == f'"{survey.fingerprint}"'
    assert "immutable" in answered.headers["cache-control"]
    again = live.get(f"/v1/surveys/{survey.fingerprint}", If_None_Match=answered.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert live.get(f"/v1/surveys/{'f' * 64}").problem == "unknownSurvey"


def test_publishing(live):
    survey = plain(min_reports=7)
    headers = {"Content-Type": "application/json"}
    first = live.ask("POST", "/v1/surveys", survey.to_json().encode(), "admin", headers)
    assert (first.status, first.json["fingerprint"]) == (201, survey.fingerprint)
    assert live.ask("POST", "/v1/surveys", survey.canonical, "admin", headers).status == 200
    assert live.get(first.headers["location"]).body == survey.canonical
    assert live.ask("POST", "/v1/surveys", survey.canonical, "analyst", headers).problem == "forbidden"
    without = {key: survey.spec()[key] for key in ("kind", "name", "questions")} | {"version": 1}
    for wrong in (b"", b"nonsense", b"{}", json.dumps(without).encode(), b'{"kind":"survey","kind":"survey"}'):
        assert live.ask("POST", "/v1/surveys", wrong, "admin", headers).problem == "malformed"


def test_estimates_have_everything_beside_them(live):
    survey, people = mixed(), crowd(mixed(), 2000)
    live.send(survey, current(survey), people)
    answered = live.get(f"/v1/surveys/{survey.fingerprint}/estimates?level=0.9", "analyst").json
    counter = SurveyCounter(survey)
    tally = counter.tally(2000, counter.count(people.answers))
    (reading,) = answered["series"]
    assert (answered["version"], reading["n"]) == (2000, 2000)
    for question in reading["questions"]:
        protocol = survey[question["id"]].protocol
        own = find(protocol, tally[question["id"]]).table(0.9)
        assert [share["value"] for share in rows_of(question)] == pytest.approx(own.value)
        assert [[share["low"], share["high"]] for share in rows_of(question)] == pytest.approx(own.ends)
        assert question["trust"]["epsilon"] == "1"
        assert question["trust"]["poisoning"] == pytest.approx(1 / float(protocol.p - protocol.q))
        assert 0 < question["trust"]["noise_floor"] < 1
        assert question["enough"] is True
        assert question["message"] is None


def test_intervals_that_assume_something_say_so(live):
    question = Question("age", "How old are you?", Ranges(Integers(18, 99), epsilon=1))
    survey = Survey("ages", [question], mixed().terms)
    headers = {"content-type": "application/json"}
    assert live.ask("POST", "/v1/surveys", survey.canonical, "admin", headers).status == 201
    live.send(survey, current(survey), crowd(survey, 2000))
    base = f"/v1/surveys/{survey.fingerprint}/estimates"
    free, smooth = (
        live.get(f"{base}?range=30..40{more}", "analyst").json["series"][0]["questions"][0]
        for more in ("", "&assume=smooth")
    )
    assert "assumed" not in rows_of(free)[0]
    assert {row["assumed"] for row in rows_of(smooth)} == {"smooth:0.1", ""}
    assert section(smooth, "ranges")[0]["assumed"] == "smooth:0.1"
    assert any("bends no more" in note for note in smooth["notes"])
    lengths = [section(one, "ranges")[0]["high"] - section(one, "ranges")[0]["low"] for one in (free, smooth)]
    assert lengths[1] < lengths[0]
    rows = live.get(f"{base}.csv?assume=smooth:0.2", "analyst").body.decode().splitlines()
    assert "assumed" in rows[0].split(",")
    assert ",smooth:0.2," in rows[1]


def test_what_a_forged_report_outweighs_is_said_of_every_kind():
    """Every panel of the dashboard has the sentence, from the first moment on: with the leverage of the question."""
    asked = estimates.Request(0, None, 0.95, False, True, "none", (), (), None)
    for name, protocol in registered_examples():
        if protocol.worth().unreadable:
            continue
        survey = single(protocol, "kinds")
        entry = Entry(survey, survey.canonical, "collecting")
        nothing = estimates.Summed(SurveyTally.empty(survey), (), 0, None)
        for question in estimates.reading(entry, nothing, asked).questions:
            assert question.trust.leverage == protocol.worth().leverage, name
            known = protocol.worth().leverage is not None
            assert known or name.startswith(("SecureSum", "Table")), name
            said = re.search(r"up to ([\d.,]+) honest ones", question.trust.forgery)
            assert (said is not None) == known, name
            if said is not None and protocol.worth().leverage is not None:  # at most, so never rounded down
                told = float(said[1].replace(",", "")) / protocol.worth().leverage
                assert 0.999999 <= told <= 1.011


def test_estimates_by_question_and_consistent(live):
    survey = mixed()
    live.send(survey, current(survey), crowd(survey, 500))
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    answered = live.get(f"{path}?question=drink&post=norm-sub&top=3", "analyst").json
    (question,) = answered["series"][0]["questions"]
    assert (question["id"], question["method"], len(rows_of(question))) == ("drink", "norm-sub", 3)
    shares = [share["value"] for share in rows_of(question)]
    assert shares == sorted(shares, reverse=True)
    assert min(shares) >= 0


def test_too_few_answers_are_not_shown(tmp_path):
    survey = plain(min_reports=100)
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        (question,) = live.get(path, "analyst").json["series"][0]["questions"]
        assert (question["n"], question["enough"], question["message"]) == (0, False, "not enough answers yet")
        assert question["notes"] == ["there are no reports yet: nothing is known"]
        assert {(row["value"], row["stderr"], row["low"], row["high"]) for row in rows_of(question)} == {
            (None, None, 0, 1)
        }
        lines = live.get(f"{path}.csv", "analyst").body.decode().splitlines()
        assert lines[1].startswith("0,,,,smoke,shares,,yes,,,0.0,1.0,,0.0,")
        live.send(survey, 0, crowd(survey, 99))
        (question,) = live.get(path, "analyst").json["series"][0]["questions"]
        assert (question["enough"], rows_of(question), question["message"]) == (False, [], "not enough answers yet")
        lines = live.get(f"{path}.csv", "analyst").body.decode().splitlines()
        assert re.match(r"0,,\d{4}-\d\d-\d\d 00:00:00,\d{4}-\d\d-\d\d 00:00:00,smoke,,,", lines[1])
        live.send(survey, 0, crowd(survey, 1, seed=9))
        (question,) = live.get(path, "analyst").json["series"][0]["questions"]
        assert question["enough"]
        assert len(rows_of(question)) == 2


def test_errors_over_several_epochs_allow_for_the_same_devices(tmp_path):
    """Memoized answers leave the error of one epoch; fresh ones average their noise, but not who was asked."""
    repeated, fresh = memoized(), daily()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", repeated, fresh) as live:
        for survey, note in ((repeated, SAME_NOISE), (fresh, SAME_PEOPLE)):
            for epoch in (current(survey) - 1, current(survey), current(survey) + 1):
                live.send(survey, epoch, Crowd(crowd(survey, 600, seed=epoch).ids, crowd(survey, 600).answers))
            path = f"/v1/surveys/{survey.fingerprint}/estimates"
            (whole,) = live.get(path, "analyst").json["series"]
            alone = live.get(f"{path}?per=epoch", "analyst").json["series"]
            (others,) = live.get(f"{path}?about=respondents", "analyst").json["series"]
            assert [one["notes"] for one in (whole, others, *alone)] == [[note], [note], [], [], []]
            assert (whole["n"], [one["n"] for one in alone]) == (1800, [600] * 3)
            numbers = zip(*(rows_of(one["questions"][0]) for one in (whole, others, alone[0])), strict=True)
            for total, respondents, single in numbers:
                assert total["value"] == pytest.approx(single["value"])
                assert respondents["stderr"] < total["stderr"]
                if survey is repeated:
                    for name in ("stderr", "low", "high"):
                        assert total[name] == pytest.approx(single[name])
                else:
                    assert total["stderr"] < 0.9 * single["stderr"]
                    sampled = total["stderr"] ** 2 - respondents["stderr"] ** 2
                    share = total["value"]
                    assert sampled == pytest.approx(share * (1 - share) / 600)
            floors = [one["questions"][0]["trust"]["noise_floor"] for one in (whole, alone[0])]
            assert floors[0] / floors[1] == pytest.approx(1 if survey is repeated else 3**-0.5)


def test_a_question_with_hypotheses_is_decided_in_each_epoch(tmp_path):
    """Its own epoch by itself; over several epochs a device may answer twice, and p-values would not hold."""
    table = Table(randomized_response(2, 1), laws={"even": [0.5, 0.5], "rare": [0.1, 0.9]})
    rules = terms(longitudinal=Longitudinal(epochs=5), budget=10)
    survey = Survey("decided", [Question("habit", "Do you smoke?", table), *daily()], rules)
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        for epoch in (current(survey) - 1, current(survey)):
            live.send(survey, epoch, crowd(survey, 400, seed=epoch))
        with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
            tally = store.tally(survey.fingerprint, current(survey), current(survey))["habit"]
        for query, level in (("", 0.05), ("&level=0.99", 0.01)):
            _, (alone, other) = (
                one["questions"] for one in live.get(f"{path}?per=epoch{query}", "analyst").json["series"]
            )
            wanted = table.decide(tally, level=level)
            found = alone["decision"]
            assert (found["outcome"], found["favoured"], found["level"]) == ("favours", "even", level)
            assert found["verdict"] == wanted.verdict
            assert [one["p_value"] for one in found["hypotheses"]] == wanted.p_values
            assert [one["rejected"] for one in found["hypotheses"]] == [False, True]
            assert other["decision"] is None
        (whole,) = live.get(path, "analyst").json["series"]
        assert whole["questions"][0]["decision"] is None
        assert SAME_DEVICES in whole["questions"][0]["notes"]
        assert SAME_DEVICES not in whole["questions"][1]["notes"]


def test_reports_that_no_population_could_send_are_pointed_out(tmp_path):
    """One report a thousand times over says "no" far more often than the noise allows; honest ones never do."""
    survey = memoized()
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        now, honest = current(survey), crowd(survey, 1000)
        live.send(survey, now - 1, honest)
        live.send(survey, now, Crowd(crowd(survey, 1000, seed=5).ids, honest.answers[:1].repeat(1000, axis=0)))
        for epoch, suspicious in ((now - 1, False), (now, True)):
            (question,) = live.get(f"{path}?epochs={epoch}", "analyst").json["series"][0]["questions"]
            protocol = survey["mood"].protocol
            with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
                wanted = protocol.misfit(store.tally(survey.fingerprint, epoch, epoch)["mood"])
            assert question["trust"]["misfit"] == pytest.approx(wanted.p_value)
            assert question["trust"]["warning"] == wanted.message
            assert (question["trust"]["warning"] is not None) is suspicious
        # Over several epochs one device may stand in each: then the same counts prove less.
        (question,) = live.get(path, "analyst").json["series"][0]["questions"]
        with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
            both = store.tally(survey.fingerprint)["mood"]
        assert question["trust"]["misfit"] == pytest.approx(protocol.misfit(both, 2.0).p_value)


def test_differences_are_those_of_two_estimates(live):
    survey = mixed()
    now, path = current(survey), f"/v1/surveys/{survey.fingerprint}/differences"
    people = [crowd(survey, 800, seed=seed) for seed in (1, 2)]
    for epoch, own in zip((now - 1, now), people, strict=True):
        live.send(survey, epoch, own)
    query = f"before={now - 1}&after={now}..&level=0.9&intervals=simultaneous"
    answered = live.get(f"{path}?{query}", "analyst").json
    counter = SurveyCounter(survey)
    tallies = [counter.tally(800, counter.count(own.answers)) for own in people]
    assert [question["id"] for question in answered["questions"]] == ["smoke", "drink", "age", "town"]
    for question in answered["questions"]:
        protocol = survey[question["id"]].protocol
        before, after = (protocol.estimate(tally[question["id"]]) for tally in tallies)
        change = after - before
        assert (question["n_before"], question["n_after"], question["message"]) == (800, 800, None)
        for name, wanted in (
            ("before", before.frequencies),
            ("after", after.frequencies),
            ("difference", change.value),
            ("stderr", change.stderr),
            ("low", change.interval(0.9, simultaneous=True)[:, 0]),
            ("high", change.interval(0.9, simultaneous=True)[:, 1]),
        ):
            assert [answer[name] for answer in question["rows"]] == pytest.approx(wanted)
    (age,) = live.get(f"{path}?{query}&question=age", "analyst").json["questions"]
    assert age["id"] == "age"
    assert live.get(f"{path}?before={now}", "analyst").problem == "malformed"
    empty = live.get(f"{path}?before=0&after={now}", "analyst").json["questions"][0]
    assert (empty["enough"], empty["rows"]) == (False, [])


def test_intervals_of_all_answers_at_once(live):
    survey = mixed()
    people = crowd(survey, 500)
    live.send(survey, current(survey), people)
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    counter = SurveyCounter(survey)
    tally = counter.tally(500, counter.count(people.answers))
    for about, population in (("population", True), ("respondents", False)):
        query = f"intervals=simultaneous&about={about}&level=0.9"
        for question in live.get(f"{path}?{query}", "analyst").json["series"][0]["questions"]:
            protocol = survey[question["id"]].protocol
            own = find(protocol, tally[question["id"]]).table(0.9, True, population)
            assert [[share["low"], share["high"]] for share in rows_of(question)] == pytest.approx(own.ends)
            assert [share["stderr"] for share in rows_of(question)] == pytest.approx(own.stderr)
            assert (question["simultaneous"], question["population"]) == (True, population)


def test_a_series_by_epoch(live):
    survey = daily()
    now = current(survey)
    for epoch, n in ((now - 1, 30), (now, 50), (now + 1, 70)):
        live.send(survey, epoch, crowd(survey, n, seed=epoch))
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    series = live.get(f"{path}?per=epoch", "analyst").json["series"]
    assert [(one["first"], one["n"]) for one in series] == [(now - 1, 30), (now, 50), (now + 1, 70)]
    assert live.get(f"{path}?epochs={now}..{now + 1}", "analyst").json["series"][0]["n"] == 120
    assert live.get(f"{path}?epochs=..{now}", "analyst").json["series"][0]["n"] == 80
    assert live.get(f"{path}?epochs={now}&per=epoch", "analyst").json["series"][0]["n"] == 50
    assert live.get(f"{path}?epochs=999..&per=epoch", "analyst").json["series"] == []
    assert live.get(f"{path}.csv?epochs=999..&per=epoch", "analyst").body.decode() == ",".join(estimates.HEAD) + "\n"


def test_open_text(live):
    survey = text()
    live.send(survey, current(survey), crowd(survey, 3000))
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    (question,) = live.get(path, "analyst").json["series"][0]["questions"]
    assert "candidates" in question["message"]
    query = "&".join(f"candidates={word}" for word in WORDS)
    (question,) = live.get(f"{path}?{query}", "analyst").json["series"][0]["questions"]
    assert [share["label"] for share in rows_of(question)] == list(WORDS)
    # Four words in equal parts; six standard errors fail once in 10^8 runs, and the seed is fixed.
    for share in rows_of(question):
        assert abs(share["value"] - 0.25) < 6 * share["stderr"]
    assert abs(question["facts"]["unlisted"]) < 6 * question["facts"]["unlisted_stderr"]


def test_the_table_says_the_same_as_the_document(live):
    survey = mixed()
    live.send(survey, current(survey), crowd(survey, 400))
    path = f"/v1/surveys/{survey.fingerprint}/estimates"
    document = live.get(path, "analyst").json["series"][0]["questions"]
    table = list(csv.DictReader(io.StringIO(live.get(f"{path}.csv", "analyst").body.decode())))
    assert [float(row["value"]) for row in table] == [a["value"] for q in document for a in rows_of(q)]
    day = datetime.fromtimestamp(TODAY, UTC)
    for row in table:
        assert row["from_utc"] == f"{day:%Y-%m-%d %H:%M:%S}"
        assert row["until_utc"] == f"{day + timedelta(days=1):%Y-%m-%d %H:%M:%S}"


def test_no_cell_of_the_table_is_taken_for_a_date(tmp_path):
    """A spreadsheet reads 1/2 as the first of February."""
    half = Survey("half", [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon="1/2"))], plain().terms)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", half) as live:
        live.send(half, 0, crowd(half, 10))
        text = live.get(f"/v1/surveys/{half.fingerprint}/estimates.csv", "analyst").body.decode()
    for row in csv.DictReader(io.StringIO(text)):
        assert row["epsilon"] == "0.5"
        assert "/" not in "".join(row.values())


def test_no_cell_of_the_table_is_run(tmp_path):
    """A spreadsheet runs =1+1."""
    sums = Survey("sums", [Question("sum", "Which?", GRR(["=1+1", "@b", "c"], epsilon=1))], plain().terms)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", sums) as live:
        live.send(sums, 0, crowd(sums, 10))
        path = f"/v1/surveys/{sums.fingerprint}/estimates.csv"
        for query, labels in (("", ["'=1+1", "'@b", "c"]), ("?formulas=kept", ["=1+1", "@b", "c"])):
            table = csv.DictReader(io.StringIO(live.get(path + query, "analyst").body.decode()))
            assert [row["label"] for row in table] == labels


@pytest.mark.parametrize(
    "query",
    [
        *(
            "level=0",
            "level=1",
            "level=nan",
            "level=1e400",
            "level=x",
            "level=",
            "post=magic",
            "per=week",
            "epochs=5..4",
        ),
        *("epochs=a..b", "epochs=99999999999", "epochs=4294967296", "question=nobody", "nonsense=1", "top=0"),
        *("assume=rough", "assume=smooth:0", "level=0.9&level=0.8", "top=1_0", "top=%EF%BC%91", "candidates=%ff"),
    ],
)
def test_bad_questions(shared, query):
    answered = shared.get(f"/v1/surveys/{plain().fingerprint}/estimates?{query}", "analyst")
    assert (answered.status, answered.problem) == (400, "malformed")


@pytest.mark.parametrize("survey", [mixed(), text()], ids=lambda survey: survey.name)
def test_tallies_in_all_forms(live, survey):
    pyarrow = pytest.importorskip("pyarrow")
    people, epoch = crowd(survey, 200), current(survey)
    live.send(survey, epoch, people[:150])
    live.send(survey, epoch + 1, people[150:])
    counter = SurveyCounter(survey)
    whole = counter.tally(200, counter.count(people.answers))
    path = f"/v1/surveys/{survey.fingerprint}/tally"
    answered = live.get(f"{path}.json", "analyst")
    assert answered.body.decode() == whole.to_json()
    SurveyTally.from_spec(answered.json).check(survey)
    some = SurveyTally.from_spec(live.get(f"{path}.json?epochs={epoch}", "analyst").json)
    assert next(iter(some.tallies.values())).n == 150
    rows = list(csv.DictReader(io.StringIO(live.get(f"{path}.csv", "analyst").body.decode())))
    flat = [count for own in whole.tallies.values() for count in own.counts.tolist()]
    assert [int(row["count"]) for row in rows] == flat
    table = pyarrow.ipc.open_stream(live.get(f"{path}.arrow", "analyst").body).read_all()
    assert table.column("count").to_pylist() == flat
    assert json.loads(table.schema.metadata[b"deniable.survey-tally"])["survey"] == survey.fingerprint


def test_pieces_of_a_tally_make_the_file(monkeypatch):
    monkeypatch.setattr(progress, "AT_ONCE", 3)
    survey = mixed()
    counter = SurveyCounter(survey)
    tally = counter.tally(9, counter.count(crowd(survey, 9).answers))
    assert b"".join(progress.as_json(tally)).decode() == tally.to_json()


def test_the_status(live):
    survey = daily()
    now = current(survey)
    live.send(survey, now, crowd(survey, 12))
    status = live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json
    assert status["epochs"] == [{"epoch": now, "state": "open", "n": 12, "sha256": None}]
    assert (status["state"], status["current_epoch"]) == ("collecting", now)
    assert status["taken_epochs"] == [now - 1, now, now + 1]
    assert status["lag"]["requests"] == 0


def test_a_closed_epoch_is_not_taken(live):
    survey = daily()
    now, path = current(survey), f"/v1/surveys/{survey.fingerprint}"

    def entry():
        return next(one for one in live.get("/v1/surveys").json["surveys"] if one["fingerprint"] == survey.fingerprint)

    assert entry()["open"] is True
    assert b">Answer<" in live.get("/").body
    live.ask("POST", f"{path}/epochs/{now}/close", role="admin")
    assert live.get(f"{path}/status", "analyst").json["taken_epochs"] == [now - 1, now + 1]
    eventually(lambda: entry()["open"] is False)
    assert entry()["state"] == "collecting"
    live.ask("POST", f"{path}/close", role="admin")
    assert live.get(f"{path}/status", "analyst").json["taken_epochs"] == []
    assert (entry()["state"], entry()["open"]) == ("closed", False)


def test_the_list_says_what_is_open(tmp_path):
    moment = [float(TODAY)]
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", daily(), **moving(moment)) as live:
        for days, state, is_open in ((-11, "waiting", False), (0, "collecting", True), (30, "collecting", False)):
            moment[0] = float(TODAY + days * DAY)
            (entry,) = live.get("/v1/surveys").json["surveys"]
            assert (entry["state"], entry["open"]) == (state, is_open)


def test_the_list_says_which_survey_replaces_which(live):
    before = plain()
    later = [
        Survey(name, before.questions, replace(before.terms, replaces=before.fingerprint, opens=before.terms.opens + i))
        for i, name in enumerate(("second", "third"))
    ]
    for survey in later:
        live.ask("POST", "/v1/surveys", survey.canonical, "admin", {"Content-Type": "application/json"})
    known = {one["fingerprint"]: one for one in live.get("/v1/surveys").json["surveys"]}
    assert known[before.fingerprint]["replaced_by"] == later[1].fingerprint, "of several, the one that opens last"
    assert [known[one.fingerprint]["replaces"] for one in later] == [before.fingerprint] * 2
    assert known[daily().fingerprint]["replaces"] is known[daily().fingerprint]["replaced_by"] is None
    assert later[1].fingerprint[:12] in live.get("/").body.decode()


def test_health_figures_and_the_front_page(live):
    live.send(plain(), 0, crowd(plain(), 3))
    assert live.get("/healthz").json == live.get("/readyz").json == {"status": "ok"}
    figures = live.get("/metrics", "analyst").body.decode()
    assert 'deniable_submissions_total{outcome="counted",worker="0"} 3' in figures
    assert 'deniable_requests_total{operation="sendReports",status="200",worker="0"} 1' in figures
    page = live.get("/").body.decode()
    for survey in (plain(), mixed(), daily(), text()):
        assert f"v1/surveys/{survey.fingerprint}" in page
    assert "Example Institute" in page


def test_what_a_survey_says_cannot_become_markup(tmp_path):
    base = plain()
    hostile = Survey("<script>alert(1)</script>", base.questions, replace(base.terms, owner='"><img src=x>'))
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", hostile) as live:
        page = live.get("/")
        assert b"<script>alert" not in page.body
        assert b"<img src=x>" not in page.body
        # And if it did, no script in the page would run, nor any from elsewhere.
        policy = page.headers["content-security-policy"]
        assert policy.startswith(("default-src 'none'", "default-src 'self'"))
        assert "unsafe" not in policy
        assert "http" not in policy


# -- what a viewer costs --------------------------------------------------------------------------------


def test_one_request_has_the_status_and_both_kinds_of_estimates(live):
    survey = mixed()
    live.send(survey, current(survey), crowd(survey, 300))
    base = f"/v1/surveys/{survey.fingerprint}"
    whole = live.get(f"{base}/estimates?consistent=norm-sub&status=true", "analyst").json
    plain_ones = live.get(f"{base}/estimates", "analyst").json["series"][0]["questions"]
    consistent = live.get(f"{base}/estimates?post=norm-sub", "analyst").json["series"][0]["questions"]
    for both, raw, made in zip(whole["series"][0]["questions"], plain_ones, consistent, strict=True):
        for row, unbiased, other in zip(rows_of(both), rows_of(raw), rows_of(made), strict=True):
            assert {name: row[name] for name in unbiased} == unbiased
            names = {"consistent": "value", "consistent_low": "low", "consistent_high": "high"}
            assert {name: row[name] for name in names} == {name: other[own] for name, own in names.items()}
            assert row.keys() == unbiased.keys() | names.keys()
    status = live.get(f"{base}/status", "analyst").json
    assert whole["status"]["epochs"] == status["epochs"]
    assert set(whole["status"]) == set(status)


def test_answers_are_compressed_for_whoever_takes_that(live):
    survey = mixed()
    live.send(survey, current(survey), crowd(survey, 300))
    base = f"/v1/surveys/{survey.fingerprint}"
    for path in (f"{base}/estimates", f"{base}/estimates.csv", f"{base}/tally.json", "/openapi.json"):
        plain_text = live.get(path, "analyst")
        packed = live.get(path, "analyst", Accept_Encoding="gzip, br")
        assert "content-encoding" not in plain_text.headers
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert gzip.decompress(packed.body) == plain_text.body
        assert len(packed.body) < 0.6 * len(plain_text.body)
    assert "content-encoding" not in live.get("/healthz", Accept_Encoding="gzip").headers, "too short to be worth it"
    assert live.get(base, Accept_Encoding="gzip").body == survey.canonical, "the very bytes, with their ETag"


def test_an_epoch_that_did_not_change_is_not_computed_again(live, monkeypatch):
    survey, computed = daily(), []
    epoch = current(survey)
    for one in (epoch - 1, epoch):
        live.send(survey, one, crowd(survey, 50, one))
    reading = estimates.reading
    monkeypatch.setattr(estimates, "reading", lambda *given: computed.append(given[1].first) or reading(*given))
    path = f"/v1/surveys/{survey.fingerprint}/estimates?per=epoch"
    first = live.get(path, "analyst").json["series"]
    assert computed == [epoch - 1, epoch]
    live.send(survey, epoch, crowd(survey, 50, 7))
    second = live.get(path, "analyst").json["series"]
    assert computed == [epoch - 1, epoch, epoch]
    assert (second[0], second[1]["n"]) == (first[0], 100)
    live.get(f"{path}&epochs={epoch}..", "analyst")
    assert len(computed) == 3, "a part of the range is known, too"
