"""The server itself: its version, its health, its metrics, its document."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from paddleflow.api.platform import HealthAnswer, VersionAnswer
from paddleflow.domain.errors import PaddleFlowError
from paddleflow.server.call import Call, reply
from paddleflow.server.metrics import CONTENT_TYPE, Metrics
from paddleflow.server.routing import Access, Routes

_BUILD = ("gitCommit", "gitBranch", "buildDate", "goVersion", "compiler", "platform")


def platform_routes(metrics: Metrics) -> Routes:
    routes = Routes()

    @routes.add("GET", "/version", Access.LOGIN, answer=VersionAnswer)
    def show_version(call: Call) -> Response:
        build = {name: call.services.build.get(name, "") for name in _BUILD}
        return reply({"gitVersion": call.services.version, **build})

    @routes.add("GET", "/healthz", Access.PUBLIC, answer=HealthAnswer, prefixed=False)
    def show_health(call: Call) -> Response:
        """The process answers."""
        return reply({"status": "ok"})

    @routes.add("GET", "/readyz", Access.PUBLIC, answer=HealthAnswer, prefixed=False)
    def show_readiness(call: Call) -> Response:
        """The database can be read and written."""
        try:
            call.services.reads.check()
        except PaddleFlowError as error:
            return reply({"status": "unavailable", "message": error.message}, status=503)
        return reply({"status": "ok"})

    @routes.add("GET", "/metrics", Access.PUBLIC, media="text/plain", prefixed=False)
    def show_metrics(call: Call) -> Response:
        return Response(metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})

    @routes.add("GET", "/openapi.json", Access.PUBLIC, answer=dict[str, Any], prefixed=False)
    def show_document(call: Call) -> Response:
        return reply(call.request.app.state.document())

    return routes
