"""Queues."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.flavours import NameAnswer
from paddleflow.api.queues import (
    CreateQueueRequest,
    QueueAnswer,
    QueueListAnswer,
    UpdateQueueRequest,
    queue_answer,
    queue_use_answer,
)
from paddleflow.api.what_if import WhatIfAnswerBody, WhatIfRequest, what_if_answer
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteQueue
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import QueueName
from paddleflow.domain.queues import Queue, QueueStatus
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_QUEUES = Listed[Queue]("queueList", queue_answer)
_ACTIONS = {"": None, "modify": None, "open": QueueStatus.OPEN, "close": QueueStatus.CLOSED}


@routes.add("POST", "/queue", Access.ROOT, answer=NameAnswer)
def create_queue(call: Call, body: CreateQueueRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add("GET", "/queue", Access.LOGIN, answer=QueueListAnswer, params=(*PAGE, Param(name="name")))
def list_queues(call: Call) -> Response:
    name = call.text("name")
    request = call.page("queue")
    page = call.services.reads.queues(call.actor, QueueName(name) if name else None, request)
    return call.listing("queue", request, page, _QUEUES)


@routes.add("POST", "/queue/whatIf", Access.ROOT, answer=WhatIfAnswerBody, only_asks=True)
def ask_what_if(call: Call, body: WhatIfRequest) -> Response:
    """What the scheduler would do next with other queues, other nodes or one more job. Nothing is carried out."""
    return reply(what_if_answer(call.services.reads.what_if(call.actor, body.to_query())))


@routes.add("GET", "/queue/{queueName}", Access.OWNER, answer=QueueAnswer)
def show_queue(call: Call) -> Response:
    """For users with a grant of the queue."""
    return _shown(call, QueueName(call.path("queueName")))


@routes.add(
    "PUT",
    "/queue/{queueName}",
    Access.ROOT,
    answer=QueueAnswer,
    body_required=False,
    params=(Param(name="action", among=("modify", "open", "close"), about="modify unless told"),),
)
def update_queue(call: Call, body: UpdateQueueRequest) -> Response:
    """Change it; ``close`` lets it accept and start nothing, ``open`` undoes that. What runs goes on."""
    action = call.text("action")
    if action not in _ACTIONS:
        raise Invalid(
            f"action[{action[:80]}] is not one of modify, open, close",
            code="QueueActionIsNotSupported",
            details={"field": "action"},
        )
    call.submit(body.to_command(call.path("queueName"), _ACTIONS[action]))
    return _shown(call, QueueName(call.path("queueName")))


@routes.add("DELETE", "/queue/{queueName}", Access.ROOT)
def delete_queue(call: Call) -> Response:
    call.submit(DeleteQueue(name=QueueName(call.path("queueName"))))
    return empty()


def _shown(call: Call, name: QueueName) -> Response:
    use = call.services.reads.queue(call.actor, name)
    return reply(queue_use_answer(use.queue, use.used, use.idle))
