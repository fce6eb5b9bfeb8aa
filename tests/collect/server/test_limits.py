"""Random, torn, slow and oversized requests: nothing crashes, nothing is lost, nothing is read that need not be."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sqlite3
import threading
import time

import pytest

from deniable.collect.server import ingest
from deniable.collect.server.problems import Bucket
from deniable.collect.wire import BINARY, JSON, encode_json
from tests.collect.server.live import body, eventually, exchanged, in_thread, raw
from tests.collect.surveys import crowd, current, mixed, plain


def head(survey, length: int | str | None, kind: str = BINARY, more: str = "") -> bytes:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{size}{more}\r\n".encode()


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


def test_an_oversized_body_is_refused_before_it_is_read(shared):
    """The answer comes although not one byte of the body was sent."""
    survey = plain()
    for length in (4 * 2**20 + 1, 10**15):
        received = raw(shared.port, head(survey, length))
        assert status(received) == 413
        assert b"tooLarge" in received
        assert b"connection: close" in received


def test_a_client_that_sends_on_still_hears_why(tmp_path):
    survey = plain()
    with (
        in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, max_body=1000) as live,
        socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection,
    ):
        connection.sendall(head(survey, 5_000_000))
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(50):
                connection.sendall(b"x" * 100_000)
                sent += 100_000
        received = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                received += piece
        assert status(received) == 413


def test_chunks_are_counted_as_they_come(tmp_path):
    survey, people = plain(), crowd(plain(), 20)
    content = body(survey, 0, people)

    def chunked(pieces: list[bytes]) -> bytes:
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"

    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, max_body=1000) as live:
        start = head(survey, None, more="Transfer-Encoding: chunked\r\nConnection: close\r\n")
        received = raw(live.port, start + chunked([content[:7], content[7:100], content[100:]]))
        assert status(received) == 200
        assert received.endswith(b'{"accepted":20,"rejected":[]}')
        received = raw(live.port, start + b"400\r\n" + b"x" * 0x400 + b"\r\n" + b"400\r\n" + b"x" * 0x400)
        assert status(received) == 413
        assert live.service.writer.bytes == 0


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "18446744073709551617", "ten", "5, 6"])
def test_lengths_that_are_none(shared, length):
    assert status(raw(shared.port, head(plain(), length) + b"hello", timeout=1)) in (400, 413)


def test_a_slow_body_is_given_up(tmp_path):
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, body_seconds=0.4) as live:
        received = raw(live.port, head(survey, 100) + b"DNR1")
        assert status(received) == 408
        assert b"tooSlow" in received
        assert live.service.writer.bytes == 0
        # Others are served meanwhile.
        with socket.create_connection(("127.0.0.1", live.port)) as slow:
            slow.sendall(head(survey, 100))
            assert live.send(survey, 0, crowd(survey, 3)).status == 200


def test_a_body_that_pauses_is_given_up(tmp_path):
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, stall_seconds=0.3) as live:
        with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
            connection.sendall(head(survey, 8 + 17 * 4))
            for piece in [b"DNR1\0\0\0\0"] + [bytes(17)] * 2:
                time.sleep(0.15)
                connection.sendall(piece)
            received = exchanged(connection, b"")
        assert status(received) == 408
        assert len(live.service.receiving) == live.service.receiving.bytes == 0


@pytest.mark.parametrize("sent", [4 * 2**20 - 1, 1])
def test_stalled_bodies_do_not_keep_others_out(tmp_path, sent):
    """Seventeen that announce 4 MiB, send most of it or nearly nothing, and wait: others are served at once."""
    survey, largest = plain(), 4 * 2**20
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, arriving=16) as live:
        stalled = [socket.create_connection(("127.0.0.1", live.port), timeout=20) for _ in range(17)]
        for connection in stalled:
            connection.sendall(head(survey, largest) + bytes(sent))
        eventually(lambda: len(live.service.receiving) >= min(8, largest // sent))
        assert live.send(survey, 0, crowd(survey, 3)).status == 200
        assert live.send(survey, 0, crowd(survey, 10_000)).json["accepted"] == 10_000
        assert live.service.receiving.bytes <= live.service.settings.arriving_bytes
        # The oldest was told to come back.
        answered = exchanged(stalled[0], b"")
        assert status(answered) == 503
        assert b"retry-after" in answered
        for connection in stalled:
            connection.close()
        eventually(lambda: len(live.service.receiving) == live.service.receiving.bytes == 0)


def test_a_long_head_is_refused_before_it_is_parsed(tmp_path):
    """Also one that arrives whole, in one piece, on a connection that was used before."""
    long = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 5000 + b"\r\n\r\n"
    short = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 3000 + b"\r\n\r\n"
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), head_bytes=4096) as live:
        assert status(raw(live.port, long)) == 400
        with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
            for request, expected in ((short, 200), (short, 200), (long, 400)):
                assert status(exchanged(connection, request)) == expected
        # The body is not counted as a head.
        survey = plain()
        assert live.send(survey, 0, crowd(survey, 1000)).status == 200
        assert live.send(survey, 0, crowd(survey, 1000)).status == 200


def test_headers_that_never_end(tmp_path):
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), head_seconds=0.4, head_bytes=4096) as live:
        for begun in (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b""):
            with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
                connection.sendall(begun)
                assert connection.recv(1) == b"", "hung up; a limit that does not hold would time out here"
        endless = raw(live.port, b"GET / HTTP/1.1\r\n" + b"X-Header: y\r\n" * 1000)
        assert status(endless) == 400
        assert live.get("/healthz").status == 200


def test_too_many_connections(tmp_path):
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", plain(), connections=5) as live:
        held = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(5)]
        time.sleep(0.1)
        received = raw(live.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status(received) == 503
        assert b"retry-after" in received
        for connection in held:
            connection.close()
        eventually(lambda: b"200 OK" in raw(live.port, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"))


def test_thousands_of_random_and_torn_requests(tmp_path):
    """Seeded noise of every kind beside honest submissions: those are all counted, and no answer is a 5xx."""
    survey, random_ = mixed(), random.Random(5)
    people, epoch = crowd(survey, 200), current(survey)
    good = body(survey, epoch, people)
    document = encode_json(
        [(id.tobytes(), epoch, a.tobytes()) for id, a in zip(people.ids, people.answers, strict=True)]
    )

    def noise(n: int) -> bytes:
        return random_.randbytes(random_.randrange(n))

    def torn(content: bytes) -> bytes:
        return content[: random_.randrange(len(content))]

    def flipped(content: bytes) -> bytes:
        at = random_.randrange(len(content))
        return content[:at] + bytes([content[at] ^ (1 << random_.randrange(8))]) + content[at + 1 :]

    makers = [
        lambda: noise(2000),
        lambda: head(survey, random_.randrange(3000)) + noise(3000),
        lambda: (lambda c: head(survey, len(c)) + c)(torn(good)),
        lambda: (lambda c: head(survey, len(c), JSON) + c)(torn(document)),
        lambda: (lambda c: head(survey, len(c), JSON) + c)(flipped(document[:600])),
        lambda: torn(head(survey, 100) + good),
        lambda: flipped(head(survey, len(good))) + good,
        lambda: (lambda c: head(survey, len(c)) + c)(b"DNR1" + noise(3000)),
    ]
    failures: list[bytes] = []
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, body_seconds=0.1, head_seconds=0.1) as live:
        answered: list[int] = []

        def attack(jobs: list[bytes]) -> None:
            for data in jobs:
                with contextlib.suppress(ConnectionError):
                    received = raw(live.port, data, timeout=5)
                    answered.append(status(received) if received else 0)
                    if answered[-1] >= 500:
                        failures.append(data)

        jobs = [makers[i % len(makers)]() for i in range(2000)]
        threads = [threading.Thread(target=attack, args=(jobs[i::16],)) for i in range(16)]
        for thread in threads:
            thread.start()
        for at in range(0, 200, 5):
            assert live.send(survey, epoch, people[at : at + 5]).json["accepted"] == 5
        for thread in threads:
            thread.join()
        assert not failures
        assert {0, 200, 400, 408} <= set(answered)  # or the noise was of one kind only
        assert live.get("/readyz").status == 200
        eventually(lambda: (live.service.writer.bytes, live.service.writer.items) == (0, 0))
        with live.store() as store:
            tally = store.tally(survey.fingerprint)
            assert tally["smoke"].n >= 200
            assert store.check() == []


def test_rates(tmp_path):
    survey, other = plain(), plain(min_reports=2)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, other, survey_rate=50.0, max_submissions=100) as live:
        assert live.send(survey, 0, crowd(survey, 100)).status == 200
        refused = live.send(survey, 0, crowd(survey, 99, seed=1))
        assert refused.status == 429
        assert refused.problem == "rateLimited"
        assert int(refused.headers["retry-after"]) >= 1
        assert live.send(other, 0, crowd(other, 5)).status == 200
        eventually(lambda: live.send_json(survey, 0, crowd(survey, 5, seed=1)).status == 200, 60)
        with live.store() as store:
            assert store.tally(survey.fingerprint)["smoke"].n == 105


def test_what_is_announced_is_not_charged(tmp_path):
    """Announcing four megabytes and sending nothing keeps nobody else from sending."""
    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, rate=100.0, survey_rate=100.0, max_submissions=100, body_seconds=0.2) as live:
        for _ in range(3):
            assert status(raw(live.port, head(survey, 4 * 2**20))) == 408
        with socket.create_connection(("127.0.0.1", live.port)) as connection:
            connection.sendall(head(survey, 4 * 2**20))
        assert live.send(survey, 0, crowd(survey, 3)).status == 200


def test_what_fails_is_given_back(tmp_path):
    """A body that cannot be read costs one; a store that cannot be written costs nothing."""
    survey = plain()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with in_thread(url, survey, survey_rate=0.01, max_submissions=100) as live:
        bucket = live.service.registry.get(survey.fingerprint).bucket
        junk = b"x" * 1_000
        assert live.post(survey, junk).problem == "malformed"
        assert live.post(survey, junk, JSON).problem == "malformed"
        assert 97.5 < bucket._held < 98.5
        assert live.send_json(survey, 0, crowd(survey, 10)).status == 200
        assert 87.5 < bucket._held < 88.5
        path = tmp_path / "store.db"
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE seen")
        assert live.send(survey, 0, crowd(survey, 50, seed=2)).problem == "overloaded"
        assert 87.5 < bucket._held < 88.5


def test_a_flood_of_batches_leaves_room_for_single_submissions(tmp_path):
    """At 20 per second ten seconds' worth is taken at once; then batches wait for the bucket, and people do not."""
    survey, now = plain(), [0.0]
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, rate=20.0) as live:
        live.service._bucket = Bucket(20.0, live.service._bucket.burst, lambda: now[0])
        assert live.send(survey, 0, crowd(survey, 201)).problem == "tooLarge", "it could never be taken"
        flood = [live.send(survey, 0, crowd(survey, 100, seed)) for seed in range(10)]
        assert [one.status for one in flood] == [200, 200] + [429] * 8
        refused = live.send(survey, 0, crowd(survey, 1, seed=20))
        assert (refused.problem, refused.headers["retry-after"]) == ("rateLimited", "1")
        for second in range(1, 4):
            now[0] += 1.0
            assert live.send(survey, 0, crowd(survey, 100, seed=second)).status == 429, "the flood goes on"
            people = crowd(survey, 20, seed=30 + second)
            assert {live.send(survey, 0, people[at : at + 1]).status for at in range(20)} == {200}


def test_each_source_has_its_own_rate(tmp_path):
    """Where reports need an ingest token, whoever floods closes the service to nobody else."""
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, rate=0.01, needs_token=True) as live:
        first = [live.send(survey, 0, crowd(survey, 60, seed), role="ingest").status for seed in range(3)]
        assert first == [200, 429, 429]
        assert live.send(survey, 0, crowd(survey, 60, seed=4), role="admin").status == 200


def test_preflights_and_headers(shared):
    survey = plain()
    path = f"/v1/surveys/{survey.fingerprint}/reports"
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    answered = shared.ask("OPTIONS", path, headers=asked | {"Access-Control-Request-Headers": "content-type"})
    assert (answered.status, answered.body) == (204, b"")
    assert answered.headers["access-control-allow-origin"] == "*"
    assert "POST" in answered.headers["access-control-allow-methods"]
    assert "Content-Type" in answered.headers["access-control-allow-headers"]
    for method, place in (
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("GET", "/v1/surveys"),
        ("POST", path),
        ("PUT", "/healthz"),
    ):
        headers = shared.ask(method, place, headers={"Origin": "https://example.org"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        pages = ("default-src 'self'",) if place == "/" else ()
        assert headers["content-security-policy"].startswith(("default-src 'none'", *pages))
        assert "access-control-allow-credentials" not in headers
        assert "set-cookie" not in headers
        assert "server" not in headers
    # Publishing shares its path with the public list, and is not for pages of other origins.
    answered = shared.ask("OPTIONS", "/v1/surveys", headers=asked)
    assert answered.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    assert "authorization" not in answered.headers["access-control-allow-headers"].lower()
    assert shared.get("/v1/surveys").headers["access-control-allow-origin"] == "*"
    for method, place in (("POST", "/v1/surveys"), ("PUT", "/v1/surveys"), ("OPTIONS", "/v1/tokens")):
        assert "access-control-allow-origin" not in shared.ask(method, place, b"", headers=asked).headers
    private = shared.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").headers
    assert "access-control-allow-origin" not in private
    assert private["cache-control"] == "no-store"
    assert shared.ask("PUT", "/healthz").problem == "methodNotAllowed"
    assert shared.get("/v1/").problem == "notFound"
    assert shared.get("/v1/surveys/").problem == "notFound"


def test_a_body_that_is_cut_off_is_not_counted(live):
    survey = plain()
    content = body(survey, 0, crowd(survey, 10))
    with socket.create_connection(("127.0.0.1", live.port)) as connection:
        connection.sendall(head(survey, len(content)) + content[:-5])
    eventually(lambda: live.service.writer.bytes == 0)
    assert live.get(f"/v1/surveys/{survey.fingerprint}/status", "analyst").json["accepted"] == 0


def test_the_limit_is_what_refuses(shared, monkeypatch):
    """Power: without the check of the announced length, the oversized body would be waited for."""
    monkeypatch.setattr(ingest, "announced", lambda headers, most: 0)
    received = raw(shared.port, head(plain(), 10**9), timeout=0.5)
    assert not received.startswith(b"HTTP/1.1 413")


def test_json_bodies_of_the_largest_count(tmp_path):
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey) as live:
        answered = live.send_json(survey, 0, crowd(survey, 10_000))
        assert answered.json == {"accepted": 10_000, "rejected": []}
        assert json.loads(answered.body)["accepted"] == 10_000


def test_the_slower_parser_will_do(tmp_path, monkeypatch):
    """Without httptools the service runs on the parser that uvicorn always has."""
    from deniable.collect.server import run

    monkeypatch.setattr(run, "_protocol", lambda settings: "h11")
    survey = plain()
    with in_thread(f"sqlite:///{tmp_path / 'store.db'}", survey, max_body=1000) as live:
        assert live.send(survey, 0, crowd(survey, 5)).json["accepted"] == 5
        assert status(raw(live.port, head(survey, 1001))) == 413
