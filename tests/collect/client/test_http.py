"""The transport: limits, connections that went away, TLS, and nothing sent that was not asked for."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from deniable.collect.http import ForbiddenAddress, Transport, Unreachable
from tests.collect.client.server import response


@contextmanager
def serving(*replies, context=None):
    """A server that answers one request a reply; a tuple of replies shares one connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)
    seen = []

    def serve():
        for group in replies:
            try:
                connection, _ = listener.accept()
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True)
            except OSError:
                continue
            with connection:
                for reply in group if isinstance(group, tuple) else (group,):
                    try:
                        seen.append(connection.recv(65536))
                        connection.sendall(reply)
                    except OSError:
                        break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"{'http' if context is None else 'https'}://localhost:{listener.getsockname()[1]}", seen
    finally:
        thread.join()
        listener.close()


GOOD = response(200, b"good")


def test_a_connection_is_kept_and_replaced_when_the_server_has_closed_it():
    with serving((GOOD, GOOD), GOOD) as (url, seen), Transport(url) as transport:
        assert [transport.get("/x").body for _ in range(3)] == [b"good"] * 3
        assert len([raw for raw in seen if raw]) == 3


def test_a_new_connection_that_fails_is_not_tried_twice():
    with serving(b"", GOOD) as (url, _), Transport(url) as transport:
        with pytest.raises(Unreachable):
            transport.get("/x")
        assert transport.get("/x").status == 200


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsho",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + bytes(2000),
        b"SSH-2.0-OpenSSH\r\n",
        b"\x00" * 100,
        b"",
    ],
    ids=["short", "torn chunk", "long", "another protocol", "zeros", "nothing"],
)
def test_replies_that_are_none(reply):
    with serving(reply) as (url, _), Transport(url) as transport, pytest.raises(Unreachable, match="cannot be reached"):
        transport.request("GET", "/x", most=1000)


def test_what_is_not_read_is_not_taken_for_the_next_reply():
    with serving(response(200, b"x" * 5000), GOOD) as (url, _), Transport(url) as transport:
        with transport.stream("GET", "/x") as body:
            assert body.read(10) == b"x" * 10
        assert transport.get("/x").body == b"good"


def test_a_body_in_pieces():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    with serving((chunked, GOOD)) as (url, seen), Transport(url) as transport:
        with transport.stream("GET", "/x", {"Authorization": "Bearer t"}) as body:
            assert b"".join(transport.chunks(body)) == b"abcdefg"
        assert transport.get("/x").body == b"good"
        assert b"Authorization: Bearer t\r\n" in seen[0]
        assert b"Authorization" not in seen[1]


def test_a_consumers_own_error_is_its_own():
    with serving(GOOD) as (url, _), pytest.raises(OSError, match="disk full"), Transport(url) as transport:  # noqa: SIM117
        with transport.stream("GET", "/x"):
            raise OSError("disk full")


@contextmanager
def dripping(head, byte, pause=0.02, most=400):
    """A server that sends a byte now and then, for so long at most."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)

    def serve():
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(head)
                for _ in range(most):
                    connection.sendall(byte)
                    time.sleep(pause)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join()


DRIPS = {
    "status": (b"HTTP/1.1 200 O", b"K"),
    "header": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n", b"x"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}


@pytest.mark.parametrize("where", DRIPS)
def test_the_time_limit_is_for_the_whole_reply(where):
    """It would take 8 seconds, in which no wait is longer than 0.02, far below the limit."""
    late = pytest.raises(Unreachable, match="does not answer in time")
    with dripping(*DRIPS[where]) as url, Transport(url, timeout=0.5) as transport, late:
        transport.get("/x")


def test_a_body_that_is_taken_in_pieces_may_take_as_long_as_it_comes():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n"
    with dripping(head, b"x", most=60) as url, Transport(url, timeout=0.5) as transport:
        pieces = transport.stream("GET", "/x")
        with pieces as body:
            assert b"".join(transport.chunks(body)) == b"x" * 60


def test_each_request_has_the_whole_time():
    """On one connection, whose socket keeps what was left of the last limit."""
    with serving((GOOD, GOOD, GOOD)) as (url, _), Transport(url, timeout=1.0) as transport:
        for _ in range(3):
            assert transport.get("/x").body == b"good"
            time.sleep(0.4)


def test_a_base_path_and_odd_addresses():
    with serving(GOOD) as (url, seen), Transport(url + "/base/") as transport:
        transport.get("/v1")
        assert seen[0].startswith(b"GET /base/v1 HTTP/1.1\r\nHost: localhost:")
    for address in ("https://", "https://a:b@c", "https://host/?q", "https://host:port", "host", ""):
        with pytest.raises(ForbiddenAddress):
            Transport(address)


def test_proxies_of_the_environment_are_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving(GOOD) as (url, _), Transport(url) as transport:
        assert transport.get("/x").status == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that nobody has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_certificates_and_names_are_verified(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with serving(GOOD, context=context) as (url, _), Transport(url, context=trusting) as transport:
        assert transport.get("/x").body == b"good"
    with serving(GOOD, context=context) as (url, seen), Transport(url) as transport:
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            transport.get("/secret")
        assert seen == []
    with serving(GOOD, context=context) as (url, seen):
        other = url.replace("localhost", "127.0.0.1")
        with Transport(other, context=trusting) as transport, pytest.raises(Unreachable, match="not trusted"):
            transport.get("/secret")
        assert seen == []
