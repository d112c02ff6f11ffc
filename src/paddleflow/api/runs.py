"""Runs on the wire: how they are asked for, listed and told about; the views of their nodes are in ``run_views``."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from paddleflow.api.pipelines import decoded_yaml
from paddleflow.api.run_views import (
    NO_GRAPH,
    GraphAnswer,
    JobViewAnswer,
    MountAnswer,
    RunViews,
    ViewAnswer,
    mount_answer,
)
from paddleflow.api.statistics import JobLogAnswer
from paddleflow.api.wire import PageAnswer, WireRequest, local_time
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import JobId, RunId
from paddleflow.domain.jobs import Job
from paddleflow.domain.runs import NodeKind, Run, RunNode, Value
from paddleflow.planning.plan import Plan


class FailureOptionsRequest(WireRequest):
    strategy: str = ""


class CreateRunRequest(WireRequest):
    """The text itself, a stored pipeline, or a path on a filesystem: the first of these that is given counts."""

    fsName: str = ""
    username: str = ""
    name: str = ""
    desc: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    dockerEnv: str = ""
    disabled: str = ""
    failureOptions: FailureOptionsRequest = FailureOptionsRequest()
    runYamlRaw: str = ""
    pipelineID: str = ""
    pipelineVersionID: str = ""
    runYamlPath: str = ""

    def text(self) -> str:
        return decoded_yaml("runYamlRaw", self.runYamlRaw, code="MalformedYaml") if self.runYamlRaw else ""

    def values(self) -> dict[str, Value]:
        """The parameters, each as the number, text, truth value or list it was sent as."""
        return {name: checked_value(f"parameters.{name[:80]}", value) for name, value in self.parameters.items()}


def checked_value(field: str, value: object) -> Value:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list):
        return [checked_value(field, item) for item in value]
    raise invalid_field(field, "it must be a number, a text, true, false, or a list of them")


class RunDocument(WireRequest):
    """A pipeline in its JSON form. Every key is kept, so that a misspelt one can be told."""

    model_config = ConfigDict(extra="allow")

    name: Any = ""
    username: str = ""
    description: str = ""
    dockerEnv: Any = ""
    entryPoints: Any = None
    components: Any = None
    postProcess: Any = None
    cache: Any = None
    parallelism: Any = None
    disabled: Any = ""
    failureOptions: Any = None
    fsOptions: Any = None
    flavour: Any = ""
    queue: Any = ""
    jobType: Any = ""
    env: Any = None

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        """As in every request, but what is not known stays."""
        if not isinstance(given, dict):
            return given
        fields = {name.lower(): name for name in cls.model_fields}
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = fields.get(str(key).lower()) or key
            if value is not None and (name not in found or key == name):
                found[name] = value
        return found

    def document(self) -> Mapping[str, object]:
        """The pipeline alone: whose run it is and what is said about it belong to the request."""
        return self.model_dump(exclude_unset=True, exclude={"username", "description"})


class StopRunRequest(WireRequest):
    stopForce: bool = False


class DeleteRunRequest(WireRequest):
    checkCache: bool = True


class RunIdAnswer(TypedDict):
    runID: str


class RunBriefAnswer(TypedDict):
    runID: str
    name: str
    source: str
    username: str
    fsName: str
    description: str
    scheduleID: str
    runMsg: str
    status: str
    scheduledTime: str
    createTime: str
    activateTime: str
    updateTime: str


class RunListAnswer(PageAnswer):
    runList: list[RunBriefAnswer]


class FsOptionsAnswer(TypedDict):
    mainFS: MountAnswer


class FailureOptionsAnswer(TypedDict):
    strategy: str


class RunAnswer(RunBriefAnswer):
    fsOptions: FsOptionsAnswer
    parameters: dict[str, Any]
    runYaml: str
    runtime: dict[str, list[ViewAnswer]]
    """One view for each item of a node's loop; none for a loop without items."""
    postProcess: dict[str, JobViewAnswer]
    failureOptions: FailureOptionsAnswer
    dockerEnv: str
    disabled: str
    runCachedIDs: str
    """The runs that use results of this one, separated by commas."""
    retryOf: str
    """The run whose results this one kept; empty: none."""
    finishTime: str
    graph: GraphAnswer


class ProblemAnswer(TypedDict):
    message: str
    path: str
    """Where in the text, such as ``entry_points.train.env``."""
    line: int | None


class CheckAnswer(TypedDict):
    valid: bool
    problems: list[ProblemAnswer]
    plan: dict[str, Any] | None
    """What it compiles to; null when it does not."""
    graph: GraphAnswer | None


class RunLogAnswer(TypedDict):
    submitLog: str
    runLog: list[JobLogAnswer]
    runID: str


class ChangedPartAnswer(TypedDict):
    name: str
    before: str
    after: str


class WhyCachedAnswer(TypedDict):
    runID: str
    step: str
    reused: bool
    sentence: str
    comparedWith: str
    """The run whose result it was compared with; empty: there was none."""
    changed: list[ChangedPartAnswer]


def run_brief_answer(run: Run) -> RunBriefAnswer:
    return {
        "runID": run.id,
        "name": run.name,
        "source": run.source,
        "username": run.owner,
        "fsName": run.fs_name,
        "description": run.description,
        "scheduleID": run.schedule_id or "",
        "runMsg": run.message,
        "status": run.status,
        "scheduledTime": local_time(run.scheduled_at),
        "createTime": local_time(run.created_at),
        "activateTime": local_time(run.activated_at),
        "updateTime": local_time(run.updated_at),
    }


def run_answer(
    run: Run, plan: Plan | None, nodes: Sequence[RunNode], jobs: Mapping[JobId, Job], used_by: Sequence[RunId]
) -> RunAnswer:
    """All of it. A tick that was skipped has no plan, and so neither nodes nor a graph."""
    views = None if plan is None else RunViews(run, plan, nodes, jobs)
    return {
        **run_brief_answer(run),
        "fsOptions": {"mainFS": mount_answer(None if plan is None else plan.main_fs, run.owner)},
        "parameters": dict(run.parameters),
        "runYaml": run.text,
        "runtime": {} if views is None else views.runtime(),
        "postProcess": {} if views is None else views.post_process(),
        "failureOptions": {"strategy": run.strategy},
        "dockerEnv": run.docker_env,
        "disabled": run.disabled,
        "runCachedIDs": ",".join(used_by),
        "retryOf": run.retry_of or "",
        "finishTime": local_time(run.finished_at),
        "graph": NO_GRAPH if views is None else views.graph(),
    }


def run_story(run: Run, nodes: Sequence[RunNode]) -> str:
    """What happened to a run, a line each, in the order of time."""
    told: list[tuple[datetime, str]] = [(run.created_at, f"run[{run.id}] was created by user[{run.owner}]")]
    if run.activated_at is not None:
        told.append((run.activated_at, f"run[{run.id}] began"))
    for node in nodes:
        told.extend(_told(node))
    if run.finished_at is not None:
        told.append((run.finished_at, _with_message(f"run[{run.id}] ended as {run.status}", run.message)))
    told.sort(key=lambda line: line[0])
    return "".join(f"{local_time(at)} {line}\n" for at, line in told)


def _told(node: RunNode) -> list[tuple[datetime, str]]:
    called = f"{node.kind}[{node.key}]"
    told = []
    if node.started_at is not None and node.cache_run_id is not None:
        told.append((node.started_at, f"{called} reuses the result of run[{node.cache_run_id}]"))
    elif node.started_at is not None:
        job = f" as job[{node.job_id}]" if node.kind is NodeKind.STEP and node.job_id else ""
        told.append((node.started_at, f"{called} was started{job}"))
    if node.finished_at is not None:
        told.append((node.finished_at, _with_message(f"{called} ended as {node.status}", node.message)))
    return told


def _with_message(line: str, message: str) -> str:
    return f"{line}: {' '.join(message.split())}" if message else line


def refused_action(action: str) -> Invalid:
    return Invalid(f"action[{action[:80]}] is not one of stop, retry", code="InvalidArguments")
