"""Flavours."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.flavours import (
    CreateFlavourRequest,
    FlavourAnswer,
    FlavourListAnswer,
    NameAnswer,
    UpdateFlavourRequest,
    flavour_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteFlavour
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import ClusterName, FlavourName
from paddleflow.domain.queries import FlavourFilter
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_FLAVOURS = Listed[Flavour]("flavourList", flavour_answer)


@routes.add("POST", "/flavour", Access.LOGIN, answer=NameAnswer)
def create_flavour(call: Call, body: CreateFlavourRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add(
    "GET",
    "/flavour",
    Access.LOGIN,
    answer=FlavourListAnswer,
    params=(
        *PAGE,
        Param(name="name", about="a part of the name"),
        Param(name="clusterName", about="also show the flavours of this cluster"),
    ),
)
def list_flavours(call: Call) -> Response:
    cluster = call.text("clusterName")
    where = FlavourFilter(name_contains=call.text("name"), cluster=ClusterName(cluster) if cluster else None)
    request = call.page("flavour")
    return call.listing("flavour", request, call.services.reads.flavours(call.actor, where, request), _FLAVOURS)


@routes.add("GET", "/flavour/{flavourName}", Access.LOGIN, answer=FlavourAnswer, quick=True)
def show_flavour(call: Call) -> Response:
    return _shown(call, FlavourName(call.path("flavourName")))


@routes.add("PUT", "/flavour/{flavourName}", Access.OWNER, answer=FlavourAnswer)
def update_flavour(call: Call, body: UpdateFlavourRequest) -> Response:
    call.submit(body.to_command(call.path("flavourName")))
    return _shown(call, FlavourName(call.path("flavourName")))


@routes.add("DELETE", "/flavour/{flavourName}", Access.OWNER)
def delete_flavour(call: Call) -> Response:
    call.submit(DeleteFlavour(name=FlavourName(call.path("flavourName"))))
    return empty()


def _shown(call: Call, name: FlavourName) -> Response:
    return reply(flavour_answer(call.services.reads.flavour(call.actor, name)))
