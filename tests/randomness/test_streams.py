"""Keystreams: in order, reproducible where they should be, and never twice the same where they must not."""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, strategies as st

from deniable.errors import NumberError
from deniable.exact import WORD, Dyadic
from deniable.randomness import SYSTEM, Secure, Simulation, secure

KIB = 1024


def chacha(key: bytes, count: int) -> bytes:
    return Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(count))


def blocks(data: bytes) -> set[bytes]:
    return {data[i : i + 16] for i in range(0, len(data) - 15, 16)}


def repeats(streams: list[bytes]) -> int:
    """How many 16-byte blocks occur twice, within a stream or across streams."""
    found = [block for data in streams for block in (data[i : i + 16] for i in range(0, len(data), 16))]
    return len(found) - len(set(found))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=12))
def test_bytes_come_in_stream_order_however_they_are_asked_for(requests: list[tuple[bool, int]]) -> None:
    bits = Simulation(42)
    got = b""
    for scalar, count in requests:
        if scalar:
            got += bits.take(count)
        else:
            out = np.empty(count, dtype=np.uint8)
            bits.fill(out)
            got += out.tobytes()
    key = hashlib.sha256(b"deniable-simulation-v1" + b"42").digest()
    assert got == chacha(key, len(got))


def test_simulation_is_pinned() -> None:
    # Studies must repeat across versions and languages.
    assert Simulation(0).take(16).hex() == "c80bd0802d9ae2b792eb02a90917bb6e"
    assert Simulation(-7).word() == 9881691402733835748


def test_simulation_repeats_and_seeds_differ() -> None:
    assert Simulation(1).words(100).tolist() == Simulation(1).words(100).tolist()
    assert Simulation(1).words(100).tolist() != Simulation(2).words(100).tolist()
    copied = pickle.loads(pickle.dumps(Simulation(1)))
    assert copied.words(10).tolist() == Simulation(1).words(10).tolist()
    with pytest.raises(NumberError, match="integer"):
        Simulation("1")  # type: ignore[arg-type]


def test_secure_copies_are_new_sources() -> None:
    bits = Secure()
    copies = [pickle.loads(pickle.dumps(bits)), copy.deepcopy(bits), copy.copy(bits)]
    assert repeats([bits.take(4 * KIB)] + [other.take(4 * KIB) for other in copies]) == 0
    assert repr(bits) == "Secure()"


def test_threads_never_share_a_keystream() -> None:
    bits = Secure()
    streams: list[bytes] = []

    def work() -> None:
        mixed = b"".join(bits.take(8) for _ in range(2000)) + bits.words(20_000).tobytes()
        streams.append(mixed)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(streams) == 8
    assert repeats(streams) == 0


def in_child(work: object) -> bytes:
    """What a forked child draws, through a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())  # type: ignore[operator]
        finally:
            os._exit(0)
    os.close(writing)
    data = b""
    while chunk := os.read(reading, 1 << 16):
        data += chunk
    os.close(reading)
    os.waitpid(child, 0)
    return data


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_children_never_repeat_a_keystream() -> None:
    bits = Secure()
    bits.take(8)  # the parent has a key and a reserve that a child would inherit

    def work() -> bytes:
        return bits.take(8 * KIB) + SYSTEM.take(8 * KIB)

    streams = [in_child(work) for _ in range(4)]
    streams.append(work())
    assert [len(stream) for stream in streams] == [16 * KIB] * 5
    assert repeats(streams) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_fork_check_can_fail() -> None:
    # The same comparison on a stream that does not notice the fork finds the repetition.
    bits = Secure()
    bits.take(8)
    unaware = bits._local.stream.buffer
    streams = [in_child(lambda: unaware.take(4 * KIB)), unaware.take(4 * KIB)]
    assert repeats(streams) > 0


def test_a_key_lives_for_one_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []

    def urandom(count: int) -> bytes:
        keys.append(bytes([len(keys)]) * count)
        return keys[-1]

    monkeypatch.setattr(secure.os, "urandom", urandom)
    out = np.empty(5 * secure.KEY_LIFE // 2, dtype=np.uint8)
    Secure().fill(out)
    life = secure.KEY_LIFE
    assert len(keys) == 3
    assert out[:life].tobytes() == chacha(keys[0], life)
    assert out[life : 2 * life].tobytes() == chacha(keys[1], life)
    assert out[2 * life :].tobytes() == chacha(keys[2], life // 2)


def test_bytes_handed_out_are_overwritten() -> None:
    bits = Secure()
    taken = bits.take(64)
    buffer = bits._local.stream.buffer
    assert taken != bytes(64)
    assert taken not in bytes(buffer._bytes)
    assert bytes(buffer._bytes[:64]) == bytes(64)
    bits.pair()
    bits.lanes(Dyadic(WORD // 3), 128)
    used = buffer._at
    assert used >= 64 + 16 + 16
    assert bytes(buffer._bytes[:used]) == bytes(used)
    assert all(buffer._words[place] for place in range(used // 8, len(buffer._bytes) // 8))
    halves(bits, 64 * 600)  # more than the reserve holds
    assert bytes(buffer._bytes[: buffer._at]) == bytes(buffer._at)


KEYSTREAM = ("Keystream.", "Buffer.")
"""What draws under one key, in the code of the streams."""


def halves(bits: Secure, count: int) -> bytes:
    """The words behind so many lanes: at one half a block takes one word, and a lane is set where its bit is 0."""
    return (bits.lanes(Dyadic(WORD // 2), count) ^ ((1 << count) - 1)).to_bytes(count // 8, "little")


def interrupted(draw: Callable[[], object], interrupt: Callable[[], object], within: tuple[str, ...] = ("",)) -> int:
    """Run `draw` and call `interrupt` before every bytecode of the streams' code, or of some of it; says how often."""
    inside, count = False, 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal inside, count
        code = frame.f_code
        if inside or not (code.co_filename.endswith("secure.py") and code.co_qualname.startswith(within)):
            return None
        frame.f_trace_opcodes = True
        inside = True
        try:
            interrupt()
            count += 1
        finally:
            inside = False
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        draw()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("size", [8, 200, 1000, 3000])
def test_a_draw_may_be_interrupted_by_a_draw_at_any_point(size: int) -> None:
    bits = Secure()
    drawn: list[bytes] = []
    kinds = [
        lambda: bits.word().to_bytes(8, "little"),
        lambda: bits.take(size),
        lambda: bits.words(size // 8).tobytes(),
        lambda: b"".join(word.to_bytes(8, "little") for word in bits.pair()),
        lambda: halves(bits, 128),
    ]
    turn = itertools.cycle(kinds)

    def outer() -> None:
        for kind in kinds * 3:
            drawn.append(kind())

    assert interrupted(outer, lambda: drawn.append(next(turn)())) > 100
    words = [data[i : i + 8] for data in drawn for i in range(0, len(data), 8)]
    # Of fewer than 2^20 words two are equal by chance with probability 2^-25.
    assert len(words) < 1 << 20
    assert len(set(words)) == len(words)
    assert bytes(8) not in words


def test_the_check_for_repeated_words_can_fail() -> None:
    # A reserve that nobody guards repeats words when a draw interrupts a draw.
    bits = Secure()
    bits.word()
    unguarded = bits._local.stream.buffer
    words: list[int] = []
    interrupted(lambda: words.extend(unguarded.word() for _ in range(20)), lambda: words.append(unguarded.word()))
    assert len(set(words)) < len(words)


def test_a_signal_handler_may_draw() -> None:
    # The timer fires a thousand times a second while words are drawn, in the handler as well.
    bits = Secure()
    words: list[int] = []
    handled = 0

    def handler(*_: object) -> None:
        nonlocal handled
        handled += 1
        words.extend(bits.word() for _ in range(3))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while handled < 200:
            words.extend(bits.word() for _ in range(200))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # 10 million words repeat one by chance with probability 3e-6.
    assert len(words) < 10_000_000
    assert len(set(words)) == len(words)
    assert 0 not in words


def test_a_draw_that_is_broken_off_repeats_nothing() -> None:
    bits = Secure()
    words: list[int] = []
    broken = 0

    def attempt() -> None:
        words.extend(bits.word() for _ in range(2))
        words.extend(bits.pair())
        lanes = halves(bits, 128)
        words.extend(int.from_bytes(lanes[i : i + 8], "little") for i in (0, 8))

    def stop(left: Iterator[int]) -> None:
        if next(left) == 0:
            raise KeyboardInterrupt

    for step in range(250):
        try:
            interrupted(attempt, partial(stop, itertools.count(step, -1)))
        except KeyboardInterrupt:
            broken += 1
        attempt()
    assert broken > 150
    assert len(set(words)) == len(words)
    assert 0 not in words


@pytest.mark.parametrize(("kind", "every"), [("word", 5), ("pair", 7), ("lanes", 30)])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_draw_shares_no_word(kind: str, every: int) -> None:
    bits = Secure()
    bits.word()
    reading, writing = os.pipe()
    children: list[int] = []
    forks = itertools.count()

    def fork() -> None:
        # At some points a child is forked; it finishes the parent's draw and says what it got.
        if os.getpid() == parent and next(forks) % every == 0:
            child = os.fork()
            if child:
                children.append(child)

    parent = os.getpid()
    word = None

    def draw() -> None:
        nonlocal word
        if kind == "word":
            word = bits.word()
        else:
            word = bits.pair()[1] if kind == "pair" else int.from_bytes(halves(bits, 64), "little")

    interrupted(draw, fork, within=KEYSTREAM)
    assert word is not None
    if os.getpid() != parent:
        os.write(writing, word.to_bytes(8, "little"))
        os._exit(0)
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)
    data = os.read(reading, 1 << 16)
    os.close(reading)
    words = [word, *(int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8))]
    assert len(words) > 4
    assert len(set(words)) == len(words)


def test_an_interrupted_simulation_refuses_instead_of_waiting_for_itself() -> None:
    bits = Simulation(1)
    other = Simulation(2)
    with pytest.raises(NumberError, match="a simulation of its own"):
        interrupted(lambda: bits.take(8), lambda: bits.take(8))
    assert interrupted(lambda: Simulation(1).take(8), lambda: other.take(8)) > 10
