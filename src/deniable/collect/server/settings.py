"""What an operator decides: where the service listens, where it keeps sums, and how much of anything it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from deniable.collect.stores.base import REOPEN_SECONDS
from deniable.errors import NumberError

MEBIBYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One process of the service.

    >>> Settings(store="sqlite:///collection.db").max_submissions
    10000
    """

    store: str
    """URL of the store, as `open_store` takes it."""
    host: str = "127.0.0.1"
    port: int = 8377
    origin: str | None = None
    """The address that the public knows, such as https://answers.example.org; shown on the front page."""
    operator_host: str = "127.0.0.1"
    operator_port: int | None = None
    """Where probes and figures are answered without a token; None: nowhere but at `port`."""
    shard: int = 0
    """Which worker this is: its own part of each tally."""

    keyed: bool = False
    """Whether reports need an ingest key."""
    plans: bool = True
    """Whether anybody may have plans made here."""

    max_body: int = 4 * MEBIBYTE
    """Bytes of a body; longer ones are refused before they are read."""
    max_submissions: int = 10_000
    queue_items: int = 10_000
    """Requests that wait for a commit; more are told to come back later."""
    queue_bytes: int = 64 * MEBIBYTE
    """Bytes of bodies that wait for a commit."""
    arriving: int = 1_024
    """Bodies that arrive at once; of more, the oldest is given up."""
    arriving_bytes: int = 32 * MEBIBYTE
    """Bytes of bodies that are still arriving; if they need more, the oldest is given up."""
    group_items: int = 4_096
    group_bytes: int = 8 * MEBIBYTE
    """At most so many requests and so many bytes are one transaction."""
    gather_seconds: float = 0.002
    """A transaction begins so long after the one before at the earliest: fewer and larger ones cost less."""
    rate: float | None = None
    """Submissions per second that this process takes; None: as many as come."""
    survey_rate: float | None = None
    """The same for each survey."""

    body_seconds: float = 20.0
    """How long a body may take to arrive."""
    stall_seconds: float = 5.0
    """How long it may pause on its way."""
    head_seconds: float = 10.0
    """How long the headers of a request may take."""
    head_bytes: int = 65_536
    idle_seconds: int = 15
    """How long a connection without a request is kept."""
    request_seconds: float = 30.0
    """How long a request may take until its answer begins; then it is told to come back later."""
    stop_seconds: int = 30
    """How long requests may take to end after SIGTERM; the process ends at most five seconds after that."""
    connections: int = 4_096
    listeners: int = 100
    """Streams of events at once."""
    heartbeat_seconds: float = 15.0

    readers: int = 3
    """Threads that read the store, or close an epoch, which may take long."""
    max_reads: int = 64
    """Reads and estimates that wait; more are told to come back later."""
    refresh_seconds: float = 1.0
    """How old may be what a process knows of surveys, tokens and sums that others change."""
    housekeeping_seconds: float = 10.0
    """How often epochs whose time is over are closed."""
    tidy_seconds: float | None = None
    """How often earlier states are removed from the store's files; None: 5 in a file, 60 in PostgreSQL."""
    log_level: str = "info"
    """Lines below "error", "warning" or "info" are left out."""
    log_seconds: float = 3600.0
    log_minimum: int = 100
    """How often the log has totals, and of how many submissions at least: fewer wait for the next time."""
    cache_bytes: int = 32 * MEBIBYTE
    """Answers to analysts kept for the next who asks the same."""

    reopen_seconds: float = REOPEN_SECONDS
    """How long ids are kept after their epoch was closed, so that it can be opened again."""
    steady_seconds: float = 3600.0
    """How long the clock is watched after a start or a jump before epochs are closed by it."""
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        positive = (
            "max_body max_submissions queue_items queue_bytes group_items group_bytes body_seconds head_seconds "
            "head_bytes connections request_seconds readers max_reads refresh_seconds arriving arriving_bytes "
            "stall_seconds log_seconds"
        )
        for name in positive.split():
            if getattr(self, name) <= 0:
                raise NumberError(f"{name} is above zero, not {getattr(self, name)}")
        for name in ("rate", "survey_rate", "tidy_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise NumberError(f"{name} is above zero, not {value}")
        for name in ("steady_seconds", "reopen_seconds"):
            if not getattr(self, name) >= 0:
                raise NumberError(f"{name} is zero or more, not {getattr(self, name)}")
        for name in ("queue_bytes", "arriving_bytes"):
            if getattr(self, name) < self.max_body:
                raise NumberError(f"{name} is at least max_body, or the largest body could never be taken")
