"""The application: every declared endpoint on one FastAPI, inside one envelope."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paddleflow.server.call import PREFIX
from paddleflow.server.deps import Services
from paddleflow.server.errors import error_response
from paddleflow.server.metrics import Metrics
from paddleflow.server.middleware import Envelope
from paddleflow.server.openapi import complete_document, operation_extra, responses_of
from paddleflow.server.routes import access, clusters, events, filesystems, flavours, jobs, platform, queues, statistics
from paddleflow.server.routing import Endpoint, asgi_endpoint, request_id_of
from paddleflow.server.streams import Streams
from paddleflow.server.workers import Workers


class DirectRoute(APIRoute):
    """Documented by the framework, called without it: our endpoints parse and answer by themselves."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return handler


def create_app(services: Services) -> FastAPI:
    """Call ``app.state.streams.close()`` when the server begins to stop, or followers hold it up until they leave."""
    streams = Streams(services.feed)
    metrics = Metrics(services.reads)

    workers = Workers()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        streams.close()
        workers.close()

    app = FastAPI(
        title="PaddleFlow",
        version=services.version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.router.route_class = DirectRoute
    app.state.streams = streams
    app.add_middleware(Envelope, metrics=metrics)
    app.add_exception_handler(HTTPException, _no_route)
    endpoints = declared_endpoints(metrics, streams, workers)
    for endpoint in endpoints:
        _add(app, endpoint, services, workers)
    app.state.document = complete_document(app, endpoints)
    return app


def declared_endpoints(metrics: Metrics, streams: Streams, workers: Workers) -> Sequence[Endpoint]:
    # Routes are tried in order, so those asked for most come first.
    tables = (
        jobs.routes,
        access.routes,
        flavours.routes,
        queues.routes,
        clusters.routes,
        filesystems.routes,
        statistics.routes,
        events.event_routes(streams, workers),
        platform.platform_routes(metrics),
    )
    return tuple(itertools.chain.from_iterable(table.endpoints for table in tables))


def _add(app: FastAPI, endpoint: Endpoint, services: Services, workers: Workers) -> None:
    name = endpoint.handler.__name__
    app.add_api_route(
        (PREFIX if endpoint.prefixed else "") + endpoint.path,
        asgi_endpoint(endpoint, services, workers),
        methods=[endpoint.method],
        name=name,
        operation_id=name,
        summary=(endpoint.handler.__doc__ or name.replace("_", " ")).strip(),
        status_code=endpoint.status,
        response_class=Response,
        response_model=None,
        responses=responses_of(endpoint),
        openapi_extra=operation_extra(endpoint),
    )


async def _no_route(request: Request, error: Exception) -> Response:
    """The framework itself refuses only what matches no route."""
    assert isinstance(error, HTTPException)
    code = "MethodNotAllowed" if error.status_code == 405 else "PathNotFound"
    response = error_response(error.status_code, code, "", request_id_of(request))
    response.headers.update(error.headers or {})
    return response
