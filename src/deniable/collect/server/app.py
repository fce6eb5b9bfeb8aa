"""The application: every operation of the tables under its path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from deniable.collect.server import (
    epochs,
    estimates,
    front,
    health,
    ingest,
    openapi,
    pages,
    plan,
    status,
    stream,
    surveys,
    tallies,
    tokens,
)
from deniable.collect.server.api import Operation, Resource, resources
from deniable.collect.server.service import Service
from deniable.collect.server.settings import Settings

# The first is looked at first: reports come most often.
_MODULES = (ingest, surveys, estimates, tallies, stream, status, epochs, tokens, health, front, plan, pages)


def operations() -> list[Operation]:
    """Everything that the service offers."""
    own = [operation for module in _MODULES for operation in module.OPERATIONS]
    return [*own, openapi.operation(own)]


def create_app(settings: Settings) -> Starlette:
    """The service as an ASGI application; its threads start and end with its lifespan.

    `app.state.service` is what the parts share.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    routes = [Route(path, Resource(service, some)) for path, some in resources(operations()).items()]
    app = Starlette(routes=[*routes, Route("/{rest:path}", pages.Lost(service))], lifespan=lifespan)
    app.state.service = service
    return app
