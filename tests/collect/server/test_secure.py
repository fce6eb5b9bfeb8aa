"""Secure aggregation between two services: the sum over those whom both have comes out, and no share stays."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from deniable.collect import wire
from deniable.collect.analyst import Analyst, ServiceRefused, add_up
from deniable.collect.client import Client as Device
from deniable.collect.client.records import preview
from deniable.collect.http import Transport, Unreachable
from deniable.collect.stores import open_store
from deniable.errors import SpecError
from deniable.files import privatize_file
from deniable.files.reports import Layout
from deniable.protocols.numeric.secure_sum import ImpossibleSum, TooFewShares
from deniable.surveys import Survey, risk
from deniable.surveys.promises import amplified, promises
from tests.collect.server.live import TOKENS, Process, free_port, in_thread, prepare

ANSWERS = ["yes", "no", "sometimes"]


def split_survey(ports, people, missing, **more):
    draft = {
        "name": "habits",
        "owner": "Example Institute",
        "purpose": "To test sums between collectors.",
        "days": 7,
        "epsilon": "1",
        "people": people,
        "collectors": {"addresses": [f"http://127.0.0.1:{port}" for port in ports], "missing": missing},
        "questions": [
            {"id": "smoke", "text": "Do you smoke?", "answers": ANSWERS},
            {"id": "cups", "text": "How many cups?", "answers": {"low": 0, "high": 10, "read": "mean"}},
        ],
    }
    return Survey.from_draft(draft | more)


@pytest.fixture
def two(tmp_path):
    """A survey for ten people of whom two may be missing, and both of its collectors."""
    ports = free_port(), free_port()
    survey, urls = split_survey(ports, 10, 2), [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    with contextlib.ExitStack() as opened:
        yield (
            survey,
            [opened.enter_context(in_thread(url, survey, port=port)) for url, port in zip(urls, ports, strict=True)],
        )


def bodies_of(survey, number):
    """What devices would send, each as two bodies, and the noisy vectors that the parts add up to."""
    made = [preview(survey, 0, {"smoke": ANSWERS[i % 3], "cups": i % 11}) for i in range(number)]
    plain = [np.frombuffer(wire.unshared(one, 2)[24:], dtype="<i8") for one in made]
    return [wire.shares_of(one, 2) for one in made], plain


def analysts(survey, opened):
    return [opened.enter_context(Analyst(address, TOKENS["admin"])) for address in survey.terms.collectors]


def added_up(survey):
    with contextlib.ExitStack() as opened:
        return add_up(survey, 0, analysts(survey, opened))


def counts(tally):
    return np.concatenate([tally["smoke"].counts, tally["cups"].counts])


def test_the_sum_over_those_whom_both_have_comes_out(two, tmp_path):
    survey, collectors = two
    sent, plain = bodies_of(survey, 9)
    for number, parts in enumerate(sent):
        for collector, part in zip(collectors, parts, strict=True):
            if not (number == 0 and collector is collectors[1]):  # the first never reaches the second collector
                assert collector.post(survey, part).json == {"accepted": 1, "rejected": []}
    with Device(survey.terms.collectors[0], survey.fingerprint, tmp_path / "ledger.sqlite") as device:
        assert device.answer({"smoke": "yes", "cups": 10}).state == "sent"
        assert device.budget().spent == 2
    for collector in collectors:
        seen = collector.get(f"/v1/surveys/{survey.fingerprint}/tally.json", "analyst").json
        assert [one["n"] for one in seen["tallies"].values()] == [0, 0]
        with collector.store() as store:
            assert not store._total(store._entry(survey.fingerprint), 0, 0)[2].any(), "nothing is added up as it comes"
        refused = collector.get(f"/v1/surveys/{survey.fingerprint}/epochs/0/shares", "analyst")
        assert refused.problem == "forbidden"
    tally = added_up(survey)
    assert tally["smoke"].n == 9, "eight of the bodies, and the device"
    whole = counts(tally) - sum(plain[1:])
    noise = np.abs(whole - [1, 0, 0, 10])
    # One person's noise: more than 40 in a cell has probability below 1e-9 at this epsilon, and 500 for the number.
    assert (noise <= [40, 40, 40, 500]).all()
    again = added_up(survey)
    assert (counts(again) == counts(tally)).all(), "it stays as it is"
    with contextlib.ExitStack() as opened, pytest.raises(ServiceRefused, match="another result"):
        analysts(survey, opened)[0].settle_shares(survey.fingerprint, 0, 9, bytes(32))
    for collector in collectors:
        seen = collector.get(f"/v1/surveys/{survey.fingerprint}/tally.json", "analyst").json
        assert [one["n"] for one in seen["tallies"].values()] == [9, 9], "the result is published at both"
        with collector.store() as store:
            assert store.check() == []
            assert list(store.reports(survey.fingerprint)) == []
        late = collector.post(survey, sent[0][0]).json
        assert late["rejected"][0][2] == "epochClosed"
    disk = b"".join(path.read_bytes() for path in tmp_path.iterdir() if ".db" in path.name)
    assert not any(part[24:] in disk for parts in sent for part in parts), "no share is left, also not in the log"


def test_too_few_give_no_result_and_leave_nothing(two):
    survey, collectors = two
    sent, _ = bodies_of(survey, 9)
    for number, parts in enumerate(sent):
        collectors[0].post(survey, parts[0])
        if number >= 2:
            collectors[1].post(survey, parts[1])
    with pytest.raises(TooFewShares, match="7 of 10 people"):
        added_up(survey)
    with pytest.raises(TooFewShares):
        added_up(survey)
    for collector in collectors:
        with collector.store() as store:
            assert store.shares(survey.fingerprint, 0).n == 0
            assert list(store.reports(survey.fingerprint)) == []
            assert store.check() == []


def test_a_collector_adds_up_once_and_only_enough_people(two):
    survey, collectors = two
    sent, _ = bodies_of(survey, 10)
    for parts in sent:
        for collector, part in zip(collectors, parts, strict=True):
            collector.post(survey, part)
    with contextlib.ExitStack() as opened:
        one, _ = analysts(survey, opened)
        name = survey.fingerprint
        with pytest.raises(ServiceRefused, match="is open"):
            one.leave_out(name, 0, [bytes(16)])
        one.close_epoch(name, 0)
        listed = one.shares(name, 0)
        ids = [wire.from_text(listed["ids"], 160)[at : at + 16] for at in range(0, 160, 16)]
        one.leave_out(name, 0, ids[:3])
        with pytest.raises(ServiceRefused, match="other people"):
            one.sum_shares(name, 0, listed["people"])
        with pytest.raises(ServiceRefused, match="noise does not suffice"):
            one.sum_shares(name, 0, one.shares(name, 0)["people"])
    # What was left out here is left out everywhere: there is no result of so few.
    with pytest.raises(TooFewShares, match="7 of 10"):
        added_up(survey)


def test_a_command_that_broke_off_goes_on(two):
    """After the first collector has added up, and after the first one was told the result."""
    survey, collectors = two
    sent, plain = bodies_of(survey, 9)
    for number, parts in enumerate(sent):
        for collector, part in zip(collectors, parts, strict=True):
            if not (number == 4 and collector is collectors[0]):
                collector.post(survey, part)

    class BrokenOff(Analyst):
        def sum_shares(self, *given):
            raise ConnectionError

        def settle_shares(self, *given):
            raise ConnectionError

    def broken(kind):
        with contextlib.ExitStack() as opened:
            one, _ = analysts(survey, opened)
            last = opened.enter_context(kind(survey.terms.collectors[1], TOKENS["admin"]))
            with pytest.raises(ConnectionError):
                add_up(survey, 0, [one, last])

    broken(BrokenOff)
    with collectors[0].store() as store:
        assert store.shares(survey.fingerprint, 0).state == "summed"
        assert store.check() == []
    BrokenOff.sum_shares = Analyst.sum_shares
    broken(BrokenOff)
    with collectors[0].store() as store:
        assert store.shares(survey.fingerprint, 0).state == "settled"
    tally = added_up(survey)
    assert tally["smoke"].n == 8
    assert (counts(tally) == sum(plain) - plain[4]).all()


def test_a_device_waits_until_both_have_taken_their_parts(two, tmp_path):
    _, collectors = two
    away = split_survey((collectors[0].port, free_port()), 10, 2)
    with collectors[0].store() as store:
        store.publish(away)
    with Device(away.terms.collectors[0], away.fingerprint, tmp_path / "ledger.sqlite") as device:
        receipt = device.answer({"smoke": "no", "cups": 3})
        assert receipt.state == "queued"
        before = device.history()[0].body
        device.flush(0)
        assert device.history()[0].body == before, "the same bytes again"
    with collectors[0].store() as store:
        assert [one.n for one in store.epochs(away.fingerprint)] == [1]
    assert "whoever can read the data of this device until then can read your answer" in promises(away)["device"]
    words = np.frombuffer(wire.unshared(before, 2)[24:], dtype="<i8")
    assert np.abs(words[:3] - [0, 1, 0]).max() <= 40, "which is true: the parts add up to the answer"


def test_the_collectors_do_what_the_sentence_says(two, tmp_path):
    """Two parts, one for each; each is random numbers; both together are the answer; too few give nothing."""
    survey, _ = two
    one, other = (address.split("/")[2] for address in survey.terms.collectors)
    said = promises(survey)
    assert f"is split into 2 parts, one for each of {one} and {other}." in said["collectors"]
    assert f"as long as {one} and {other} do not work together" in said["collectors"]
    assert "If fewer than 8 people answer in a period, nothing comes out." in said["collectors"]
    assert (
        f"{one} and {other} each receive numbers that tell nothing by themselves; together they could" in said["line"]
    )
    # Each part alone: every bit is set in half of 400 submissions of one answer, within 6 standard deviations, which a
    # uniform part misses with a probability of 1e-6 for all 512 bits. Both together: the same answer, nearly always.
    made = [preview(survey, 0, {"smoke": "no", "cups": 4}) for _ in range(400)]
    for place in (0, 1):
        parts = np.array([list(wire.shares_of(body, 2)[place][24:]) for body in made], dtype=np.uint8)
        assert (abs(np.unpackbits(parts, axis=1).sum(axis=0) - 200.0) < 6 * 10).all()
    whole = [np.frombuffer(wire.unshared(body, 2)[24:], dtype="<i8").tolist() for body in made]
    assert sum(one == [0, 1, 0, 4] for one in whole) > 50


def test_what_makes_no_sense_is_refused(tmp_path):
    ports = free_port(), free_port()
    survey = split_survey(ports, 10, 2)
    for change, match in (
        ({"collectors": {"addresses": ["http://127.0.0.1:1"]}}, "2 to 16 addresses"),
        ({"collectors": {"addresses": ["http://127.0.0.1:1"] * 2}}, "same address"),
        ({"collectors": {"addresses": ["https://a.example", "http://b.example"]}}, "https://host"),
        ({"collectors": ["https://a.example", "https://b.example"]}, "object"),
        ({"retention": "reports"}, "keeps sums only"),
        ({"longitudinal": {"rule": "memoize", "epochs": 2}, "epochs": {"days": 1}}, "tell devices apart"),
    ):
        with pytest.raises(SpecError, match=match):
            split_survey(ports, 10, 2, **change)
    with pytest.raises(SpecError, match="names none"):
        Survey(survey.name, survey.questions)
    with pytest.raises(SpecError, match="never stands in a table"):
        survey.privatize({"smoke": ["yes"], "cups": [1]})
    with pytest.raises(SpecError, match="never stands in a file"):
        Layout(survey).refuse_shares()
    with pytest.raises(SpecError, match="never stands in a file"):
        privatize_file(survey, tmp_path / "answers.csv", tmp_path / "reports.parquet")
    assert "do not work together; all of them together can read every answer." in amplified(survey)
    told = " ".join(risk.of_survey(survey)["smoke"].words)
    assert "by these sums" in told
    assert "A forged report can move every figure by any amount." in told
    assert "household" not in told, "people of one answer add up before the noise comes"
    with open_store(f"files:///{tmp_path}/files") as store, pytest.raises(SpecError, match="no shares"):
        store.publish(survey)
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        store.publish(survey)
        store.close_epoch(survey.fingerprint, 0, 1e12)
        with pytest.raises(Exception, match="to be added up"):
            store.reopen_epoch(survey.fingerprint, 0)
        assert store.drop_reports(survey.fingerprint) == 0


@pytest.mark.slow
def test_two_processes_two_hundred_clients_and_a_kill(tmp_path):
    """Real services and the real command: the sum over the intersection, exactly; with too many missing, none."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    with Process(urls[0]) as one, Process(urls[1]) as two:
        processes = [one, two]
        surveys = {missing: split_survey((one.port, two.port), 200, missing) for missing in (30, 10)}
        for url in urls:
            with open_store(url) as store:
                prepare(store, *surveys.values())
        for missing, survey in surveys.items():
            sent, plain = bodies_of(survey, 195)
            dropped = set(range(0, 195, 13))  # fifteen never reach the second collector
            path = tmp_path / f"{missing}.json"
            survey.save(path)

            def send(some, survey=survey, sent=sent, dropped=dropped):
                with contextlib.ExitStack() as opened:
                    ways = [opened.enter_context(Transport(address, 5.0)) for address in survey.terms.collectors]
                    for number in some:
                        for place, way in enumerate(ways):
                            if place == 1 and number in dropped:
                                continue
                            while True:  # the same bytes until they are answered for
                                with contextlib.suppress(Unreachable):
                                    kind = {"Content-Type": wire.BINARY}
                                    where = f"/v1/surveys/{survey.fingerprint}/reports"
                                    if way.post(where, sent[number][place], kind).status == 200:
                                        break
                                threading.Event().wait(0.02)

            threads = [threading.Thread(target=send, args=(range(at, 195, 4),)) for at in range(4)]
            for thread in threads:
                thread.start()
            for process in processes:
                threading.Event().wait(0.15)
                process.kill()
                process.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
            command = [
                sys.executable,
                "-m",
                "deniable",
                "survey",
                "sum-shares",
                str(path),
                "-o",
                str(tmp_path / "tally"),
            ]
            given = os.environ | {"DENIABLE_TOKEN": TOKENS["admin"]}
            done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=given, check=False)
            complete = [number for number in range(195) if number not in dropped]
            if missing == 10:
                assert done.returncode == 2
                assert "180 of 200 people are complete, and at most 10 may be missing" in done.stderr
                continue
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            assert found["n"] == 180
            tally = json.loads((tmp_path / "tally").read_text())
            shown = [sys.executable, "-m", "deniable", "estimate", str(path), str(tmp_path / "tally"), "--json"]
            assert subprocess.run(shown, capture_output=True, check=False).returncode == 0, (
                "it is a tally like any other"
            )
            total = sum(plain[number] for number in complete)
            assert [one["counts"] for one in tally["tallies"].values()] == [total[:3].tolist(), total[3:].tolist()]
            # The noise in a count has a standard deviation of 2.8: beyond 14.5 it is once in a million.
            truth = np.bincount([number % 3 for number in complete], minlength=3)
            assert (abs(total[:3] - truth) < 20).all()


def test_a_bad_share_gives_no_result_and_says_why(two):
    """One person whose shares are random words: nothing is published, and the collectors refuse it by themselves."""
    survey, collectors = two
    sent, _ = bodies_of(survey, 9)
    sent[4][0] = sent[4][0][:24] + bytes(range(len(sent[4][0]) - 24))
    for parts in sent:
        for collector, part in zip(collectors, parts, strict=True):
            assert collector.post(survey, part).json["accepted"] == 1
    with pytest.raises(ImpossibleSum, match="9 honest people with their noise give"):
        added_up(survey)
    with pytest.raises(TooFewShares, match="without a result"):
        added_up(survey)
    for collector in collectors:
        with collector.store() as store:
            assert store.shares(survey.fingerprint, 0).n == 0
            assert store.check() == []
    with contextlib.ExitStack() as opened, pytest.raises(ServiceRefused, match="these sums are impossible"):
        analysts(survey, opened)[0].settle_shares(survey.fingerprint, 0, 9, bytes(24) + (1 << 53).to_bytes(8, "little"))
