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
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteQueue
from paddleflow.domain.ids import QueueName
from paddleflow.domain.queues import Queue
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_QUEUES = Listed[Queue]("queueList", queue_answer)


@routes.add("POST", "/queue", Access.ROOT, answer=NameAnswer)
def create_queue(call: Call, body: CreateQueueRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add("GET", "/queue", Access.LOGIN, answer=QueueListAnswer, params=(*PAGE, Param(name="name")))
def list_queues(call: Call) -> Response:
    name = call.text("name")
    request = call.page("queue")
    page = call.services.reads.queues(call.actor, QueueName(name) if name else None, request)
    return call.listing("queue", request, page, _QUEUES)


@routes.add("GET", "/queue/{queueName}", Access.OWNER, answer=QueueAnswer)
def show_queue(call: Call) -> Response:
    """For users with a grant of the queue."""
    return _shown(call, QueueName(call.path("queueName")))


@routes.add("PUT", "/queue/{queueName}", Access.ROOT, answer=QueueAnswer)
def update_queue(call: Call, body: UpdateQueueRequest) -> Response:
    call.submit(body.to_command(call.path("queueName")))
    return _shown(call, QueueName(call.path("queueName")))


@routes.add("DELETE", "/queue/{queueName}", Access.ROOT)
def delete_queue(call: Call) -> Response:
    call.submit(DeleteQueue(name=QueueName(call.path("queueName"))))
    return empty()


def _shown(call: Call, name: QueueName) -> Response:
    use = call.services.reads.queue(call.actor, name)
    return reply(queue_use_answer(use.queue, use.used, use.idle))
