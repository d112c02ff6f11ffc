"""The application: every declared endpoint on one Starlette app, inside one envelope."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from paddleflow.server.deps import Services
from paddleflow.server.errors import error_response
from paddleflow.server.metrics import Metrics
from paddleflow.server.middleware import Envelope
from paddleflow.server.openapi import document_of
from paddleflow.server.routes import (
    access,
    artifacts,
    clusters,
    events,
    filesystems,
    flavours,
    jobs,
    mounts,
    pipelines,
    platform,
    queues,
    replays,
    runs,
    schedules,
    snapshots,
    statistics,
)
from paddleflow.server.routing import Endpoint, asgi_endpoint, request_id_of
from paddleflow.server.streams import Streams
from paddleflow.server.workers import Workers


class EndpointRoute(Route):
    """A declared endpoint where the framework finds it."""

    def __init__(self, endpoint: Endpoint, services: Services, workers: Workers) -> None:
        self.declared = endpoint
        super().__init__(
            endpoint.full_path,
            asgi_endpoint(endpoint, services, workers),
            methods=[endpoint.method],
            name=endpoint.name,
        )
        self.methods = {endpoint.method}  # what is declared and no more: the framework would add HEAD to every GET

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is Match.FULL:
            child["route"] = self  # the envelope tells metrics which route it was
        return match, child


def create_app(services: Services) -> Starlette:
    """Call ``app.state.streams.close()`` when the server begins to stop, or followers hold it up until they leave."""
    streams = Streams(services.feed)
    metrics = Metrics(services.reads)
    workers = Workers(reads_are_local=services.reads_are_local)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        streams.close()
        workers.close()

    endpoints = declared_endpoints(metrics, streams, workers)
    app = Starlette(
        routes=[EndpointRoute(endpoint, services, workers) for endpoint in endpoints],
        middleware=[Middleware(Envelope, metrics=metrics)],
        exception_handlers={HTTPException: _no_route},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.streams = streams
    app.state.document = cache(lambda: document_of(endpoints, services.version))
    return app


def declared_endpoints(metrics: Metrics, streams: Streams, workers: Workers) -> Sequence[Endpoint]:
    # Routes are tried in order, so those asked for most come first.
    tables = (
        jobs.routes,
        runs.routes,
        access.routes,
        flavours.routes,
        queues.routes,
        clusters.routes,
        filesystems.routes,
        mounts.routes,
        snapshots.routes,
        artifacts.artifact_routes(workers),
        pipelines.routes,
        schedules.routes,
        statistics.routes,
        replays.routes,
        events.event_routes(streams, workers),
        platform.platform_routes(metrics),
    )
    return tuple(itertools.chain.from_iterable(table.endpoints for table in tables))


async def _no_route(request: Request, error: Exception) -> Response:
    """The framework itself refuses only what matches no route."""
    assert isinstance(error, HTTPException)
    code = "MethodNotAllowed" if error.status_code == 405 else "PathNotFound"
    response = error_response(error.status_code, code, "", request_id_of(request))
    response.headers.update(error.headers or {})
    return response
