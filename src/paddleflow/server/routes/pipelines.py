"""Stored pipelines and their versions."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.pipelines import (
    CreatePipelineAnswer,
    PipelineBody,
    PipelineDetailAnswer,
    PipelineListAnswer,
    PipelineVersionDetailAnswer,
    UpdatePipelineAnswer,
    pipeline_answer,
    version_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.commands import DeletePipeline, DeletePipelineVersion
from paddleflow.domain.ids import PipelineId, VersionId
from paddleflow.domain.queries import PipelineFilter
from paddleflow.engine.pipelines import PipelineRequest
from paddleflow.server.bodies import PIPELINE_LIMIT
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_PIPELINES = Listed[Pipeline]("pipelineList", pipeline_answer)
_VERSIONS = Listed[PipelineVersion]("pplVersionList", version_answer)


@routes.add(
    "POST",
    "/pipeline",
    Access.LOGIN,
    answer=CreatePipelineAnswer,
    status=201,
    body_limit=PIPELINE_LIMIT,
    prepares=True,
)
def create_pipeline(call: Call, body: PipelineBody) -> Response:
    """Keep a pipeline under the name its text gives it."""
    answer = call.services.pipelines.create_pipeline(
        call.actor, _asked(body), request_id=call.request_id, idempotency_key=call.idempotency_key
    )
    return reply({name: answer[name] for name in ("pipelineID", "pipelineVersionID", "name")}, status=201)


@routes.add(
    "POST",
    "/pipeline/{pipelineID}",
    Access.OWNER,
    answer=UpdatePipelineAnswer,
    status=201,
    body_limit=PIPELINE_LIMIT,
    prepares=True,
)
def update_pipeline(call: Call, body: PipelineBody) -> Response:
    """Add a version."""
    answer = call.services.pipelines.update_pipeline(
        call.actor,
        _pipeline_id(call),
        _asked(body),
        request_id=call.request_id,
        idempotency_key=call.idempotency_key,
    )
    return reply({name: answer[name] for name in ("pipelineID", "pipelineVersionID")}, status=201)


@routes.add(
    "GET",
    "/pipeline",
    Access.LOGIN,
    answer=PipelineListAnswer,
    params=(
        *PAGE,
        Param(name="userFilter", about="owners, separated by commas; for root alone"),
        Param(name="nameFilter", about="names, separated by commas"),
    ),
)
def list_pipelines(call: Call) -> Response:
    where = PipelineFilter(owners=call.owners(), names=call.words("nameFilter"))
    request = call.page("pipeline")
    return call.listing("pipeline", request, call.services.runs.pipelines(call.actor, where, request), _PIPELINES)


@routes.add(
    "GET",
    "/pipeline/{pipelineID}",
    Access.OWNER,
    answer=PipelineDetailAnswer,
    params=(*PAGE, Param(name="fsFilter", about="versions of these filesystems, separated by commas")),
)
def show_pipeline(call: Call) -> Response:
    """A pipeline, and its versions page by page."""
    pipeline_id, request = _pipeline_id(call), call.page("pipelineVersion")
    pipeline = call.services.runs.pipeline(call.actor, pipeline_id)
    page = call.services.runs.versions(call.actor, pipeline_id, call.words("fsFilter"), request)
    versions = call.listed("pipelineVersion", request, page, _VERSIONS)
    return reply({"pipeline": pipeline_answer(pipeline), "pplVersions": versions})


@routes.add("GET", "/pipeline/{pipelineID}/{pipelineVersionID}", Access.OWNER, answer=PipelineVersionDetailAnswer)
def show_pipeline_version(call: Call) -> Response:
    pipeline = call.services.runs.pipeline(call.actor, _pipeline_id(call))
    version = call.services.runs.version(call.actor, pipeline.id, _version_id(call))
    return reply({"pipeline": pipeline_answer(pipeline), "pipelineVersion": version_answer(version)})


@routes.add("DELETE", "/pipeline/{pipelineID}", Access.OWNER)
def delete_pipeline(call: Call) -> Response:
    """With all its versions; not while a running schedule uses it."""
    call.submit(DeletePipeline(id=_pipeline_id(call)))
    return empty()


@routes.add("DELETE", "/pipeline/{pipelineID}/{pipelineVersionID}", Access.OWNER)
def delete_pipeline_version(call: Call) -> Response:
    """Not the only one, and not while a running schedule uses it."""
    call.submit(DeletePipelineVersion(id=_pipeline_id(call), version_id=_version_id(call)))
    return empty()


def _asked(body: PipelineBody) -> PipelineRequest:
    return PipelineRequest(
        owner=body.username,
        fs_name=body.fsName,
        yaml_path=body.yamlPath,
        text=body.text(),
        description=body.description(),
    )


def _pipeline_id(call: Call) -> PipelineId:
    return PipelineId(call.path("pipelineID"))


def _version_id(call: Call) -> VersionId:
    return VersionId(call.path("pipelineVersionID"))
