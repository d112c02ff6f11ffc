"""The jobs this server has run, and replays of them or of any other trace."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.replays import ReplayAnswer, ReplayRequest, replay_answer
from paddleflow.domain.ids import ClusterName
from paddleflow.domain.queries import PastJobs
from paddleflow.server.call import Call, reply
from paddleflow.server.routing import Access, Param, Routes

routes = Routes()

_MOST_ROWS = 100_000


@routes.add(
    "GET",
    "/trace",
    Access.ROOT,
    media="text/csv",
    params=(
        Param(name="since", kind="integer", about="submitted at this Unix time or later", low=0),
        Param(name="until", kind="integer", about="submitted before this Unix time", low=0),
        Param(name="clusterName", about="jobs of this cluster; of all unless told"),
        Param(name="limit", kind="integer", about="the earliest so many", low=1, high=_MOST_ROWS),
    ),
)
def show_trace(call: Call) -> Response:
    """The jobs that have run and ended, as a CSV file that ``simulate`` reads."""
    cluster = call.text("clusterName")
    where = PastJobs(
        since=call.unix_time("since"),
        until=call.unix_time("until"),
        cluster=ClusterName(cluster) if cluster else None,
        limit=call.integer("limit", _MOST_ROWS, low=1, high=_MOST_ROWS),
    )
    return Response(call.services.reads.trace(call.actor, where), media_type="text/csv")


@routes.add("POST", "/simulate", Access.ROOT, answer=ReplayAnswer, body_required=False, only_asks=True)
def simulate(call: Call, body: ReplayRequest) -> Response:
    """Replay a trace, or this server's own jobs, on a described cluster or its own. Nothing is carried out."""
    replays = call.services.reads.replay(call.actor, body.to_query())
    return reply(replay_answer((one.metrics, one.utilisation) for one in replays))
