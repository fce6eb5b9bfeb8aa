"""The client for asyncio: the same methods, each in a thread, so that no file or socket holds up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from deniable.collect.client.client import Client, Flushed
from deniable.collect.client.records import Receipt, Spending, Submission
from deniable.surveys import Survey


class AsyncClient:
    """`Client` with awaitable methods; takes the same arguments. What is cancelled still ends in its thread."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.client = Client(*args, **options)

    @property
    def fingerprint(self) -> str:
        return self.client.fingerprint

    async def survey(self) -> Survey:
        return await asyncio.to_thread(self.client.survey)

    async def answer(self, answers: Mapping[str, Any], *, wait: float | None = 0.0) -> Receipt:
        return await asyncio.to_thread(self.client.answer, answers, wait=wait)

    async def flush(self, timeout: float | None = None) -> Flushed:
        return await asyncio.to_thread(self.client.flush, timeout)

    async def history(self) -> list[Submission]:
        return await asyncio.to_thread(self.client.history)

    async def budget(self) -> Spending:
        return await asyncio.to_thread(self.client.budget)

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
