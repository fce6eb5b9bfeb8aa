"""The relay: batches, ends of epochs, exactly once, and what lies on its disk and on the collector's."""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.collect import wire
from deniable.collect.client import Client as Device
from deniable.collect.sealing import SEALED, CollectorKey, joined, record_bytes, sealed, split
from deniable.collect.server import relay as relaying
from deniable.collect.server.relay import Queue, RelaySettings
from deniable.collect.server.run import bound, make_server
from deniable.collect.stores import open_store
from deniable.surveys import Survey
from deniable.surveys.promises import amplified, promises
from tests.collect.server.live import Client, eventually, free_port, in_thread
from tests.collect.surveys import DAY, crowd, current
from tests.collect.test_sealing import relayed


@contextlib.contextmanager
def relay_thread(survey, collector, path, clock=time.time, **more):
    """A relay in a thread of this process."""
    # The clocks go on together, as time does, and are trusted at once.
    given = {"port": survey_port(survey), "clock": clock, "monotonic": clock, "steady_seconds": 0.0} | more
    carried = given.pop("surveys", (survey,))
    settings = RelaySettings(store=f"sqlite:///{path}", collector=collector, surveys=carried, **given)
    listening = bound(settings)
    started = threading.Event()
    server = make_server(settings, started.set, relaying.create_app(settings))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    assert started.wait(20)
    client = Client(listening.getsockname()[1])
    client.relay = server.service
    try:
        yield client
    finally:
        client.close()
        server.leave()
        thread.join(30)
        assert not thread.is_alive()


def look(relay):
    """What the operator is told."""
    return asyncio.run(relay.relay.look())


def figures(relay):
    return relaying.admin.exposition({0: look(relay).figures})


def survey_port(survey):
    return int(survey.terms.relay.address.rpartition(":")[2])


def sealed_bodies(survey, n, seed=0, epoch=None):
    """Sealed bodies of n people, and their plain records."""
    people = crowd(survey, n, seed)
    at = current(survey) if epoch is None else epoch
    records = [id.tobytes() + raw.tobytes() for id, raw in zip(people.ids, people.answers, strict=True)]
    plain = [wire.MAGIC + at.to_bytes(4, "little") + record for record in records]
    return [sealed(survey, body) for body in plain], records


def counted(url, survey):
    with open_store(url) as store:
        return {one.epoch: one.n for one in store.epochs(survey.fingerprint)}


@pytest.fixture
def pair(tmp_path):
    """A survey whose batches have five submissions, its collector, its relay, and the relay's clock."""
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, batch=5, address=f"http://127.0.0.1:{free_port()}")
    url, moment = f"sqlite:///{tmp_path / 'collector.db'}", [time.time()]
    with (
        in_thread(url, survey, relay_key=str(tmp_path / "collector.pem")) as collector,
        relay_thread(survey, f"http://127.0.0.1:{collector.port}", tmp_path / "relay.db", lambda: moment[0]) as relay,
    ):
        yield survey, collector, relay, moment, url


def test_from_devices_to_sums(pair, tmp_path):
    survey, _, relay, moment, url = pair
    epoch = current(survey)
    for number in range(9):
        with Device(f"http://127.0.0.1:{relay.port}", survey.fingerprint, tmp_path / f"{number}.sqlite") as device:
            assert device.answer({"smoke": "yes"}).state == "sent"
    time.sleep(0.3)
    assert counted(url, survey).get(epoch, 0) == 0, "one batch and its rest wait for each other"
    bodies, _ = sealed_bodies(survey, 3)
    for body in bodies + bodies:  # sent twice, taken once
        answer = relay.post(survey, body, SEALED)
        assert answer.status == 200
        assert answer.json == {"accepted": 1, "rejected": []}
    eventually(lambda: counted(url, survey).get(epoch) == 5)
    eventually(lambda: relay.relay.held == 7)
    moment[0] += 2 * DAY  # the epoch ends at the relay: the last batch takes the rest with it
    eventually(lambda: counted(url, survey).get(epoch) == 12)
    eventually(lambda: relay.relay.held == 0)
    late = relay.post(survey, bodies[0], SEALED)
    assert late.json["rejected"] == [[0, "", "epochTooOld"]]


def test_a_clock_that_jumps_ends_no_epoch(tmp_path):
    """A clock two days ahead discards nothing, and refuses nobody, until it was steady; then the epoch has ended."""
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, batch=5, address=f"http://127.0.0.1:{free_port()}")
    epoch, wall, steady = current(survey), [time.time()], [1000.0]
    clocks = {"clock": lambda: wall[0], "monotonic": lambda: steady[0], "steady_seconds": 3600.0}
    nobody = f"http://127.0.0.1:{free_port()}"
    with relay_thread(survey, nobody, tmp_path / "relay.db", **clocks) as relay:
        bodies, _ = sealed_bodies(survey, 4)
        for body in bodies[:3]:
            assert relay.post(survey, body, SEALED).json["accepted"] == 1
        wall[0] += 2 * DAY
        eventually(lambda: relay.relay.clock.bounds().doubt == "the clock has jumped")
        time.sleep(0.2)
        assert relay.relay.held == 3, "three are too few for a batch, and would be discarded"
        assert relay.post(survey, bodies[3], SEALED).json["accepted"] == 1, "it may still be yesterday"
    with relay_thread(survey, nobody, tmp_path / "relay.db", **clocks) as relay:
        assert relay.relay.clock.bounds().doubt == "the service has started"
        time.sleep(0.2)
        assert relay.relay.held == 4, "nobody knows yet whether the clock is right after a restart"
        wall[0], steady[0] = wall[0] + 3601, steady[0] + 3601
        eventually(lambda: relay.relay.held == 0)
        assert relay.post(survey, bodies[3], SEALED).json["rejected"] == [[0, "", "epochTooOld"]]
        assert relay.relay.clock.bounds().doubt is None
    assert epoch == current(survey)


def test_a_relay_that_starts_with_a_wrong_clock_refuses_nobody(tmp_path):
    """The queue notes the hour that was trusted, so it may still be that one."""
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, batch=5, address=f"http://127.0.0.1:{free_port()}")
    nobody, wall = f"http://127.0.0.1:{free_port()}", [time.time()]
    given = {"clock": lambda: wall[0], "monotonic": time.monotonic}
    with relay_thread(survey, nobody, tmp_path / "relay.db", **given) as relay:
        eventually(lambda: relay.relay.clock.bounds().doubt is None)
        eventually(lambda: Queue(tmp_path / "relay.db").time().trusted is not None)
    (body,), _ = sealed_bodies(survey, 1)
    for wrong in (-40 * DAY, 40 * DAY):
        wall[0] = time.time() + wrong
        with relay_thread(survey, nobody, tmp_path / "relay.db", steady_seconds=3600.0, **given) as relay:
            assert relay.post(survey, body, SEALED).json == {"accepted": 1, "rejected": []}


def test_too_few_are_discarded_and_counted(pair):
    survey, _, relay, moment, url = pair
    for body in sealed_bodies(survey, 4)[0]:
        assert relay.post(survey, body, SEALED).status == 200
    moment[0] += 2 * DAY
    eventually(lambda: 'deniable_submissions_total{outcome="discarded",worker="0"} 4' in figures(relay))
    assert relay.relay.held == 0
    assert not any(counted(url, survey).values())


@pytest.fixture
def three(tmp_path):
    """Surveys A, B and C with batches of two; at the collector A has ended, B is open, and C is unknown."""
    key = CollectorKey.make(tmp_path / "collector.pem")
    address = f"http://127.0.0.1:{free_port()}"
    surveys = tuple(relayed(key, batch=2, address=address, name=name) for name in "ABC")
    url = f"sqlite:///{tmp_path / 'collector.db'}"
    with in_thread(url, *surveys[:2], relay_key=str(tmp_path / "collector.pem")) as collector:
        collector.ask("POST", f"/v1/surveys/{surveys[0].fingerprint}/close", role="admin")
        yield surveys, f"http://127.0.0.1:{collector.port}", url


def sent(relay, survey, n, seed=0):
    """The answers to n sealed submissions."""
    return [relay.post(survey, body, SEALED) for body in sealed_bodies(survey, n, seed)[0]]


def test_an_ended_and_an_unknown_survey_do_not_stop_the_others(three, tmp_path):
    """They are set aside, named and counted; what the collector counts meanwhile is all of the other survey."""
    (ended, good, unknown), collector, url = three
    with relay_thread(good, collector, tmp_path / "relay.db", surveys=(ended, good, unknown)) as relay:
        for survey in (ended, unknown):
            assert [answer.status for answer in sent(relay, survey, 4)] == [200] * 4
        eventually(lambda: len(relay.relay.aside()) == 2)
        assert sent(relay, ended, 1, 7)[0].problem == "surveyClosed", "nobody could deliver more of it"
        assert sent(relay, unknown, 1, 7)[0].status == 503, "it may be published later: the device keeps its report"
        sent(relay, good, 6)
        eventually(lambda: counted(url, good) == {current(good): 4})
        told = look(relay)
        assert told.ready
        for survey, why in ((ended, "410 surveyClosed"), (unknown, "404 unknownSurvey")):
            assert f"survey {survey.fingerprint} is set aside, 4 held: the collector answers {why}" in told.told
            reason = why.partition(" ")[2]
            assert f'deniable_relay_set_aside{{survey="{survey.fingerprint}",reason="{reason}"}} 4' in figures(relay)
        with open_store(url) as store:
            store.publish(unknown)
        relay.relay.courses[unknown.fingerprint].not_before = 0.0  # in the place of waiting for the next attempt
        eventually(lambda: sum(counted(url, unknown).values()) == 2)
        eventually(lambda: unknown.fingerprint not in relay.relay.aside())
        assert [answer.status for answer in sent(relay, unknown, 1, 9)] == [200]


def test_a_relay_that_is_started_without_a_survey_goes_on_with_the_others(three, tmp_path):
    (ended, good, gone), collector, url = three
    nobody = f"http://127.0.0.1:{free_port()}"
    with relay_thread(good, nobody, tmp_path / "relay.db", surveys=(ended, good, gone)) as relay:
        for survey in (ended, good, gone):
            sent(relay, survey, 5)
        eventually(lambda: look(relay).told == "ok; the collector cannot be reached")
    with open_store(url) as store:
        store.publish(gone)
    with relay_thread(good, collector, tmp_path / "relay.db") as relay:
        eventually(lambda: sum(counted(url, good).values()) == 2)
        eventually(lambda: sum(counted(url, gone).values()) == 2)  # what was a batch when it was carried
        eventually(lambda: "410" in look(relay).told)
        aside = f"survey {gone.fingerprint} is set aside, 3 held: this relay was started without"
        eventually(lambda: aside in look(relay).told)  # the collector counts before the relay hears that it did
    moment = [time.time()]
    with relay_thread(good, collector, tmp_path / "relay.db", lambda: moment[0], surveys=(ended,)) as relay:
        eventually(lambda: relay.relay.courses[ended.fingerprint].refused is not None)
        assert not look(relay).ready, "every survey is set aside"
        moment[0] += 2 * DAY
        eventually(lambda: 'deniable_submissions_total{outcome="discarded",worker="0"} 5' in figures(relay))


def test_a_collector_that_takes_less_at_once_gets_smaller_requests(tmp_path):
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, batch=5, address=f"http://127.0.0.1:{free_port()}")
    url, room = f"sqlite:///{tmp_path / 'collector.db'}", 8 + 2 * record_bytes(survey)
    with (
        in_thread(url, survey, relay_key=str(tmp_path / "collector.pem"), max_body=room) as collector,
        relay_thread(survey, f"http://127.0.0.1:{collector.port}", tmp_path / "relay.db") as relay,
    ):
        sent(relay, survey, 10)
        eventually(lambda: sum(counted(url, survey).values()) == 5)


@pytest.mark.parametrize("status", [401, 413, 501])
def test_what_the_collector_refuses_for_good_is_set_aside(status):
    assert relaying.Refusal(status, "", 0.0).for_good


def test_what_is_about_the_moment_is_not_set_aside():
    assert not any(relaying.Refusal(status, "", 0.0).for_good for status in (0, 408, 429, 500, 503, 507))


def test_a_request_of_the_relay_fits_through_the_documented_proxy():
    text = (Path(__file__).parents[3] / "docs" / "collect" / "deployment.md").read_text(encoding="utf-8")
    megabytes = int(re.search(r"client_max_body_size (\d+)m;", text)[1])
    assert len(joined(0, [bytes(relaying.CHUNK_BYTES)])) <= megabytes << 20


def test_the_relay_does_what_the_sentence_says(pair, tmp_path):
    """Who must not work together is said; what the sentence claims of batches, order and sealing is done."""
    survey, _, relay, moment, url = pair
    epoch, host = current(survey), f"127.0.0.1:{relay.port}"
    said = promises(survey)["relay"]
    assert f"as long as {host} and those who ask do not work together" in said
    assert "at least 5 of one period at a time" in said
    assert "If fewer than 5 people answer in a period, their answers are discarded." in said
    assert "The relay still sees the network address" in promises(survey)["address"]
    bodies, records = sealed_bodies(survey, 10)
    assert not any(record in body for body, record in zip(bodies, records, strict=True)), "it cannot read it"
    seen = []
    for body in bodies:
        relay.post(survey, body, SEALED)
        seen.append(counted(url, survey).get(epoch, 0))
    eventually(lambda: counted(url, survey).get(epoch) == 5)
    assert set(seen) <= {0, 5}, "five at a time, or none"
    moment[0] += 2 * DAY
    eventually(lambda: counted(url, survey).get(epoch) == 10)
    claim = amplified(survey)
    assert "A batch of 5 honest submissions in random order has a central epsilon of" in claim
    assert f"as long as the relay ({host}) and the collector do not work together" in claim
    alone = Survey(survey.name, survey.questions, replace(survey.terms, relay=None))
    assert amplified(alone) == ""
    assert "relay" not in promises(alone)


def test_nothing_goes_around_the_relay(pair, tmp_path):
    """The collector takes nothing unsealed; a device whose relay is away sends nothing to anybody else."""
    survey, collector, relay, _, url = pair
    people = crowd(survey, 1)
    assert collector.send(survey, current(survey), people).problem == "unsupportedMediaType"
    assert relay.send(survey, current(survey), people).problem == "unsupportedMediaType"
    away = relayed(CollectorKey.load(tmp_path / "collector.pem"), address=f"http://127.0.0.1:{free_port()}")
    with open_store(url) as store:
        store.publish(away)
    device = Device(f"http://127.0.0.1:{collector.port}", away.fingerprint, tmp_path / "ledger.sqlite")
    receipt = device.answer({"smoke": "no"})
    assert receipt.state == "queued"
    assert counted(url, away) == {}


def test_a_collector_without_the_key_and_broken_records(pair, tmp_path):
    survey, collector, *_ = pair
    bodies, _ = sealed_bodies(survey, 6)
    epoch, _ = split(bodies[0], record_bytes(survey), 1)
    records = [split(body, record_bytes(survey), 1)[1][0] for body in bodies]
    broken = records[0][:-1] + bytes([records[0][-1] ^ 1])
    taken = collector.post(survey, joined(epoch, [broken, *records[1:]]), SEALED).json
    assert taken == {"accepted": 5, "rejected": [[0, "", "badPayload"]]}
    assert collector.post(survey, b"DNS1" + bytes(9), SEALED).problem == "malformed"
    with in_thread(f"sqlite:///{tmp_path / 'other.db'}", survey) as keyless:
        assert keyless.post(survey, bodies[0], SEALED).problem == "notInstalled"


def test_a_queue_that_is_full_says_so(tmp_path):
    key = CollectorKey.make(tmp_path / "collector.pem")
    survey = relayed(key, address=f"http://127.0.0.1:{free_port()}")
    nobody = f"http://127.0.0.1:{free_port()}"
    with relay_thread(survey, nobody, tmp_path / "relay.db", most_waiting=2) as relay:
        bodies, _ = sealed_bodies(survey, 3)
        answers = [relay.post(survey, body, SEALED) for body in bodies]
        assert [answer.status for answer in answers] == [200, 200, 503]
        assert int(answers[2].headers["retry-after"]) >= 1
    with relay_thread(survey, nobody, tmp_path / "relay.db") as again:
        assert again.relay.held == 2, "what was taken is there after a restart"


def test_a_batch_that_was_on_its_way_is_sent_again_and_counted_once(pair, tmp_path):
    """As after a crash between the draw of a batch, its arrival, and the note that it has arrived."""
    survey, collector, _, _, url = pair
    bodies, _ = sealed_bodies(survey, 6)
    records = [split(body, record_bytes(survey), 1)[1][0] for body in bodies]
    epoch, here = current(survey), f"http://127.0.0.1:{collector.port}"
    queue = Queue(tmp_path / "crashed.db")
    queue.add([(survey.fingerprint, epoch, records)])
    batch = queue.draw(survey.fingerprint, epoch)
    assert collector.post(survey, joined(epoch, queue.records(batch)[:4]), SEALED).json["accepted"] == 4
    queue.close()
    with relay_thread(survey, here, tmp_path / "crashed.db", port=0) as again:
        eventually(lambda: again.relay.held == 0)
        assert counted(url, survey)[epoch] == 6


def test_batches_are_drawn_from_all_that_wait(tmp_path):
    """Which records leave first does not depend on when they came: over 200 batches all places do.

    A place is missing with probability (1/2)^200.
    """
    queue, seen = Queue(tmp_path / "queue.db"), set()
    for epoch in range(200):
        records = [bytes([epoch, place]) for place in range(6)]
        queue.add([("s", epoch, records)])
        batch = queue.draw("s", epoch, 3)
        seen |= {record[1] for record in queue.records(batch)}
    assert seen == set(range(6))
    first = Queue(tmp_path / "first.db")
    first.add([("s", 0, [bytes([place]) for place in range(100)])])
    batch = first.draw("s", 0)
    assert first.records(batch) != first.records(batch), "a new order each time"


def times(moment):
    """How a moment could be written, to the minute or finer."""
    for seconds in range(int(moment) - 90, int(moment) + 90):
        yield str(seconds).encode()
        yield struct.pack("<q", seconds)
        yield struct.pack(">q", seconds)
        yield struct.pack(">d", float(seconds))[:5]
        yield time.strftime("%H:%M:%S", time.gmtime(seconds)).encode()


def test_what_lies_on_the_disks(pair, tmp_path):
    """No address, no time finer than a batch, and no plain report at the relay; no address at the collector."""
    survey, _, relay, _, url = pair
    begun = time.time()
    bodies, records = sealed_bodies(survey, 12)
    for body in bodies:
        sentinel = {"User-Agent": "sentinel-agent", "X-Forwarded-For": "203.0.113.77"}
        assert relay.post(survey, body, SEALED, headers=sentinel).status == 200
    eventually(lambda: sum(counted(url, survey).values()) == 5)
    disk = {path.name: path.read_bytes() for path in tmp_path.iterdir() if ".db" in path.name}
    assert any(name.startswith("relay.db") for name in disk)
    for name, stored in disk.items():
        content = stored.replace(survey.canonical, b"")  # which names the relay's own address
        for planted in (b"127.0.0.1", b"sentinel-agent", b"203.0.113.77"):
            assert planted not in content, name
        if name.startswith("relay.db"):
            assert not any(written in content for written in times(begun)), name
            assert not any(record[:16] in content or record in content for record in records), name
    held = b"".join(content for name, content in disk.items() if name.startswith("relay.db"))
    inside = [split(body, record_bytes(survey), 1)[1][0] for body in bodies]
    assert sum(record in held for record in inside) >= 7, "the search finds what is there"
