"""Reports over HTTP: what is counted, what is rejected and why, and what is refused as a whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from deniable.collect.server.service import Bounds
from deniable.collect.server.writer import Parcel, Taken, Transaction
from deniable.collect.stores.batches import SurveyCounter
from deniable.collect.wire import BINARY, JSON, to_text
from deniable.surveys import Survey
from tests.collect.server.live import Live, body, eventually, in_thread, moving
from tests.collect.surveys import DAY, TODAY, Crowd, all_surveys, crowd, current, daily, mixed, plain


def counted(live: Live, survey: Survey) -> dict[str, list[int]]:
    tally = live.get(f"/v1/surveys/{survey.fingerprint}/tally.json", "analyst").json
    return {id: [own["n"], *own["counts"]] for id, own in tally["tallies"].items()}


def expected(survey: Survey, people: Crowd) -> dict[str, list[int]]:
    counter = SurveyCounter(survey)
    tally = counter.tally(len(people), counter.count(people.answers))
    return {id: [own.n, *own.counts.tolist()] for id, own in tally.tallies.items()}


@pytest.mark.parametrize("survey", all_surveys(), ids=lambda survey: survey.name)
@pytest.mark.parametrize("form", ["binary", "json"])
def test_the_tally_is_the_sum_of_what_was_sent(tmp_path, survey, form):
    people = crowd(survey, 300)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        send = live.send if form == "binary" else live.send_json
        for at in range(0, 300, 100):
            answered = send(survey, current(survey), people[at : at + 100])
            assert (answered.status, answered.json) == (200, {"accepted": 100, "rejected": []})
        assert counted(live, survey) == expected(survey, people)


def test_a_replay_is_accepted_and_changes_nothing(live):
    survey, people = plain(), crowd(plain(), 50)
    for _ in range(3):
        assert live.send(survey, 0, people).json == {"accepted": 50, "rejected": []}
    assert live.send_json(survey, 0, people[:10]).json["accepted"] == 10
    assert counted(live, survey) == expected(survey, people)
    status = live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json
    assert (status["accepted"], status["duplicates"]) == (50, 110)


def test_one_bad_record_spares_the_others(live):
    survey = plain()
    people = crowd(survey, 5)
    people.answers[3] = 250  # GRR with two answers knows 0 and 1
    answered = live.send(survey, 0, people).json
    assert answered == {"accepted": 4, "rejected": [[3, to_text(people.ids[3].tobytes()), "badPayload"]]}
    good = people[[0, 1, 2, 4]]
    assert counted(live, survey) == expected(survey, good)
    rejected = live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["rejected"]
    assert rejected == {"badPayload": 1}


def test_places_and_ids_of_rejected_records_in_json(live):
    survey = daily()
    people, now = crowd(survey, 4), current(survey)
    names = [to_text(id.tobytes()) for id in people.ids]
    answers = [to_text(raw.tobytes()) for raw in people.answers]
    records = [
        [names[0], now, answers[0]],
        ["short", now, answers[1]],
        [names[1], now + 5, answers[1]],
        [names[2], now - 5, answers[2]],
        [names[3], now, to_text(b"\xff")],
        [names[3], now, answers[3]],
    ]
    answered = live.post(survey, json.dumps({"reports": records}).encode(), JSON).json
    assert answered["accepted"] == 2
    assert answered["rejected"] == [
        [1, "", "badPayload"],
        [2, names[1], "epochTooEarly"],
        [3, names[2], "epochTooOld"],
        [4, names[3], "badPayload"],
    ]
    assert counted(live, survey) == expected(survey, people[[0, 3]])


def test_epochs_by_the_clock_of_the_service(tmp_path):
    moment = [float(TODAY + 3600)]
    survey, people = daily(), crowd(daily(), 1)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, **moving(moment)) as live:

        def reason(epoch: int) -> str:
            rejected = live.send(survey, epoch, people).json["rejected"]
            return rejected[0][2] if rejected else "taken"

        verdicts = {epoch: reason(epoch) for epoch in (8, 9, 10, 11, 12)}
        assert verdicts == {8: "epochTooOld", 9: "taken", 10: "taken", 11: "taken", 12: "epochTooEarly"}
        moment[0] += 2 * DAY
        assert (reason(9), reason(11)) == ("epochTooOld", "taken")
        moment[0] += 40 * DAY
        assert live.send(survey, 40, people).problem == "surveyClosed"


def test_an_epoch_closes_when_its_time_is_over_and_stays_closed(tmp_path):
    moment = [float(TODAY)]
    survey, people = daily(), crowd(daily(), 20)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, **moving(moment), housekeeping_seconds=0.05) as live:
        assert live.send(survey, 10, people).json["accepted"] == 20
        moment[0] += 5 * DAY

        def state() -> str:
            return str(live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["epochs"][0]["state"])

        eventually(lambda: state() == "closed")
        moment[0] -= 5 * DAY  # the clock goes back, the epoch does not open again
        rejected = live.send(survey, 10, people).json["rejected"]
        assert {reason for _, _, reason in rejected} == {"epochClosed"}
        assert counted(live, survey) == expected(survey, people)


def test_closing_by_hand(live):
    survey, people = daily(), crowd(daily(), 8)
    epoch = current(survey)
    path = f"/v1/surveys/{survey.fingerprint}/epochs/{epoch}/close"
    live.send(survey, epoch, people[:4])
    assert live.ask("POST", path, role="analyst").problem == "forbidden"
    closed = live.ask("POST", path, role="admin").json
    assert (closed["n"], closed["state"], len(closed["sha256"])) == (4, "closed", 64)
    assert live.ask("POST", path, role="admin").json == closed
    answered = live.send(survey, epoch, people).json
    assert answered["accepted"] == 0
    assert [reason for _, _, reason in answered["rejected"]] == ["epochClosed"] * 8
    # They are in the store when the writer has nothing else to do, without waiting for the next submission.
    status = f"/v1/surveys/{survey.fingerprint}/status"
    eventually(lambda: live.get(status, "analyst").json["rejected"] == {"epochClosed": 8})
    assert live.ask("POST", path.replace(f"/{epoch}/", "/999/"), role="admin").problem == "unknownEpoch"
    assert live.ask("POST", path.replace(f"/{epoch}/", "/x/"), role="admin").problem == "unknownEpoch"


def test_closing_a_survey(live):
    survey, people = plain(), crowd(plain(), 3)
    assert live.ask("POST", f"/v1/surveys/{survey.fingerprint}/close", role="admin").json["state"] == "closed"
    assert live.send(survey, 0, people).problem == "surveyClosed"
    states = {one["fingerprint"]: one["state"] for one in live.get("/v1/surveys").json["surveys"]}
    assert states[survey.fingerprint] == "closed"
    assert states[daily().fingerprint] == "collecting"


def test_bodies_that_are_refused_as_a_whole(live):
    survey = plain()
    good = body(survey, 0, crowd(survey, 2))
    for raw in (b"", b"DNR1", good[:-1], good + b"x", b"DNR2" + good[4:], good[:8]):
        assert live.post(survey, raw).problem == "malformed", raw
    for raw in (b"", b"{}", b"[]", b'{"reports": []}', b'{"reports": [[1, 2, 3]]}', b"\xff", b"[" * 100_000):
        assert live.post(survey, raw, JSON).problem == "malformed", raw
    assert live.post(survey, good, "text/plain").problem == "unsupportedMediaType"
    assert live.post(survey, good, f"{BINARY}; charset=x").status == 200
    missing = live.ask("POST", f"/v1/surveys/{'0' * 64}/reports", good, headers={"Content-Type": BINARY})
    assert missing.problem == "unknownSurvey"
    assert live.ask("POST", "/v1/surveys/nonsense/reports", good, headers={"Content-Type": BINARY}).status == 404


def test_more_submissions_than_are_taken_at_once(tmp_path):
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, max_submissions=100) as live:
        assert live.send(survey, 0, crowd(survey, 101)).problem == "tooLarge"
        assert live.send_json(survey, 0, crowd(survey, 101)).problem == "tooLarge"
        assert live.send(survey, 0, crowd(survey, 100)).json["accepted"] == 100


def test_a_survey_published_elsewhere_is_found(live):
    survey = plain(retention="reports")
    with live.store() as store:
        store.publish(survey)
    assert live.send(survey, 0, crowd(survey, 2)).json["accepted"] == 2


def test_requests_of_one_group_are_told_apart():
    """Many requests in one transaction: each hears about its own records only."""
    from deniable.collect.server.registry import Entry
    from deniable.collect.stores import Added

    survey = mixed()
    entry = Entry(survey, survey.canonical, "open")
    people, epoch = crowd(survey, 30), current(survey)
    people.answers[7, 0] = people.answers[23, 0] = 99
    bodies = [body(survey, epoch, people[at : at + 5]) for at in range(0, 30, 5)]
    bodies[2] = b"torn" + bodies[2]
    parcels = [Parcel(entry, True, raw, None) for raw in bodies]  # type: ignore[arg-type]
    parcels.append(Parcel(entry, True, body(survey, epoch + 9, people[:2]), None))  # type: ignore[arg-type]
    group = Transaction(parcels, Bounds(TODAY, TODAY, TODAY, None), 100)
    assert [len(batch.ids) for batch in group.batches] == [23]
    group.settle([Added(fresh=23)])
    replies = [parcel.outcome for parcel in parcels]
    assert [reply.accepted if isinstance(reply, Taken) else reply.kind for reply in replies] == [
        *(5, 4, "malformed", 5, 4, 5),
        0,
    ]
    assert [place for place, _, _ in replies[1].rejected] == [2]
    assert [place for place, _, _ in replies[4].rejected] == [3]
    assert [reason for _, _, reason in replies[6].rejected] == ["epochTooEarly"] * 2
    # Power: had the group been closed, nobody would have been accepted.
    again = Transaction(parcels[:2], Bounds(TODAY, TODAY, TODAY, None), 100)
    again.settle([Added(closed=True)])
    assert [parcel.outcome.accepted for parcel in parcels[:2]] == [0, 0]
    assert np.sum([len(parcel.outcome.rejected) for parcel in parcels[:2]]) == 10


def test_a_kept_report_can_be_deleted(tmp_path):
    survey = plain(retention="reports")
    people = crowd(survey, 6)
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    name = to_text(people.ids[2].tobytes())
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, plain()) as live:
        live.send(survey, 0, people)
        before = live.get(f"/v1/surveys/{survey.fingerprint}/estimates", "analyst").json
        answers = [live.ask("DELETE", f"{path}/{name}", headers={"Origin": "https://example.org"}) for _ in range(2)]
        assert [answered.json for answered in answers] == [{"deleted": True}, {"deleted": False}]
        assert answers[0].headers["access-control-allow-origin"] == "*"
        assert live.ask("DELETE", f"{path}/{to_text(bytes(16))}").json == {"deleted": False}
        # Sent again it is a duplicate, and something new is counted: the sums are others, and so is their version.
        assert live.send(survey, 0, people).json["accepted"] == 6
        assert live.send(survey, 0, crowd(survey, 1, seed=9)).json["accepted"] == 1
        status = live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json
        assert (status["accepted"], status["deleted"], status["version"]) == (6, 1, 8)
        after = live.get(f"/v1/surveys/{survey.fingerprint}/estimates", "analyst").json
        assert after != before
        with live.store() as store:
            left = np.concatenate([np.delete(people.answers, 2, axis=0), crowd(survey, 1, seed=9).answers])
            assert (
                store.tally(survey.fingerprint)["smoke"].counts.tolist() == SurveyCounter(survey).count(left).tolist()
            )
            assert store.check() == []
        for wrong in (name[:-1], name[:-1] + "B", name + "A", people.ids[2].tobytes().hex()):
            assert live.ask("DELETE", f"{path}/{wrong}").problem == "malformed"
        refused = live.ask("DELETE", f"/v1/surveys/{plain().fingerprint}/reports/{name}")
        assert (refused.status, refused.problem) == (409, "notKept")
        live.ask("POST", f"/v1/surveys/{survey.fingerprint}/close", role="admin")
        kept = to_text(people.ids[0].tobytes())
        assert live.ask("DELETE", f"{path}/{kept}").json == {"deleted": False}


def test_deleting_is_limited_like_sending(tmp_path):
    survey = plain(retention="reports")
    path = f"/v1/surveys/{survey.fingerprint}/reports/{to_text(bytes(16))}"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, survey_rate=0.1, max_submissions=3) as live:
        answered = [live.ask("DELETE", path).status for _ in range(6)]
        assert (answered[:3], answered[-1]) == ([200] * 3, 429)


def test_other_answers_under_a_known_id_are_told_to_the_operator(tmp_path):
    """The sender hears of a duplicate: nothing can be done about it there."""
    survey = plain(retention="reports")
    people = crowd(survey, 6)
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        live.send(survey, 0, people)
        assert live.send(survey, 0, Crowd(people.ids, 1 - people.answers)).json == {"accepted": 6, "rejected": []}
        live.send(survey, 0, people)
        eventually(
            lambda: live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["rejected"] == {"conflict": 6}
        )
