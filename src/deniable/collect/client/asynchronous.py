"""The client for asyncio: the same methods, each in a thread, so that no file or socket holds up the loop."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from deniable.collect.client.client import Client, Flushed
from deniable.collect.client.ledger import Ledger
from deniable.collect.client.records import Deleted, Receipt, Spending, Submission
from deniable.collect.http import TIMEOUT
from deniable.surveys import Survey
from deniable.surveys.diff import Change
from deniable.surveys.terms import Terms


class AsyncClient:
    """`Client` with awaitable methods; every argument and method means what it means there.

    What is cancelled still ends in its thread.

    >>> async def history():
    ...     async with AsyncClient("https://collect.example.org", "ab" * 32, "no-such-ledger.sqlite") as client:
    ...         return await client.history()
    >>> asyncio.run(history())
    []
    """

    def __init__(
        self,
        server: str,
        fingerprint: str,
        ledger: str | Path | Ledger | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = TIMEOUT,
        spread: float = 0.0,
        token: str | None = None,
        published: Iterable[str] | None = None,
        insecure: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.client = Client(
            server,
            fingerprint,
            ledger,
            clock=clock,
            timeout=timeout,
            spread=spread,
            token=token,
            published=published,
            insecure=insecure,
            context=context,
        )

    @property
    def fingerprint(self) -> str:
        return self.client.fingerprint

    @property
    def ledger(self) -> Ledger:
        return self.client.ledger

    async def survey(self, record: bool = True) -> Survey:
        return await asyncio.to_thread(self.client.survey, record)

    async def terms(self, record: bool = True) -> Terms:
        return await asyncio.to_thread(self.client.terms, record)

    async def epoch(self, record: bool = True) -> int:
        return await asyncio.to_thread(self.client.epoch, record)

    async def changes(self, record: bool = True) -> list[Change]:
        return await asyncio.to_thread(self.client.changes, record)

    async def answer(
        self, answers: Mapping[str, Any], *, wait: float | None = 0.0, accept_changes: bool = False
    ) -> Receipt:
        return await asyncio.to_thread(self.client.answer, answers, wait=wait, accept_changes=accept_changes)

    async def flush(self, timeout: float | None = None) -> Flushed:
        return await asyncio.to_thread(self.client.flush, timeout)

    async def history(self) -> list[Submission]:
        return await asyncio.to_thread(self.client.history)

    async def budget(self) -> Spending:
        return await asyncio.to_thread(self.client.budget)

    async def delete_sent(self) -> Deleted:
        return await asyncio.to_thread(self.client.delete_sent)

    async def opt_out(self) -> None:
        await asyncio.to_thread(self.client.opt_out)

    async def opt_in(self) -> None:
        await asyncio.to_thread(self.client.opt_in)

    async def withdraw(self) -> None:
        await asyncio.to_thread(self.client.withdraw)

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
