"""The desk where pipelines are handed in: from wherever the text comes, to a command the intake takes.

Reading files and compiling are slow and happen here, before any transaction; the handler then stores what is ready.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from paddleflow import documents
from paddleflow.domain.access import require_owner, require_root
from paddleflow.domain.commands import CreatePipeline, CreateRun, CreateSchedule, UpdatePipeline
from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError, TooLarge, not_found
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import DEFAULT_QUEUE, PipelineId, QueueName, ScheduleId, UserName, VersionId, filesystem_id
from paddleflow.domain.names import check_pipeline_name
from paddleflow.domain.runs import NodeKind, Value
from paddleflow.domain.users import Actor
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.context import Answer
from paddleflow.engine.intake import Intake
from paddleflow.planning.check import Problem, problems
from paddleflow.planning.codec import dump_plan
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.json_form import from_json_form
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import Plan, PlanNode
from paddleflow.planning.source import Limits, Overrides, Source
from paddleflow.ports.files import Files
from paddleflow.ports.store import Store

_DEFAULT_PATH = "./run.yaml"
_ANY_FS = "any"
"""Stands for the main filesystem of a pipeline that leaves it to its runs."""
_MOST_BYTES = 4 * 1024 * 1024
"""Of a pipeline's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One of ``text``, ``document``, ``pipeline_id`` or ``yaml_path`` says which pipeline."""

    owner: str = ""
    """Root may act for another user."""
    fs_name: str = ""
    name: str = ""
    description: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    docker_env: str = ""
    disabled: str = ""
    strategy: str = ""
    text: str = ""
    """YAML."""
    document: Mapping[str, object] | None = None
    """The camelCase JSON form."""
    pipeline_id: PipelineId | None = None
    version_id: VersionId | None = None
    """None: the newest."""
    yaml_path: str = ""
    """On the filesystem ``fs_name``; ``./run.yaml`` when nothing else says which pipeline."""
    schedule_id: ScheduleId | None = None
    scheduled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """``text``, or ``yaml_path`` on ``fs_name``."""

    owner: str = ""
    fs_name: str = ""
    yaml_path: str = ""
    text: str = ""
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is wrong with a pipeline, or (nothing is) what it would do."""

    problems: tuple[Problem, ...]
    plan: Plan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    text: str
    source: str
    fs_name: str
    """What the text's origin says about the main filesystem, unless the request does."""


class PipelineDesk:
    def __init__(
        self, *, store: Store, intake: Intake, files: Files, limits: Limits, capabilities: Capabilities
    ) -> None:
        self._capabilities = capabilities
        self._store = store
        self._intake = intake
        self._files = files
        self._limits = limits

    def create_run(
        self, actor: Actor, request: RunRequest, *, request_id: str = "", idempotency_key: str = ""
    ) -> Answer:
        order = self.order(actor, request)
        return self._intake.submit(order, actor, request_id=request_id, idempotency_key=idempotency_key)

    def order(self, actor: Actor, request: RunRequest) -> CreateRun:
        """The request, read, checked and compiled."""
        owner = _owner(actor, request.owner)
        written = self._written(actor, owner, request)
        request = replace(request, fs_name=request.fs_name or written.fs_name)
        plan = compile_plan(_read(written.text), _overrides(request), self._limits)
        self._check_filesystems(owner, plan)
        self._check_images(plan)
        return CreateRun(
            owner=owner,
            name=plan.name,
            source=written.source,
            text=written.text,
            plan=dump_plan(plan),
            fs_name=plan.main_fs.name if plan.main_fs else "",
            description=request.description,
            parameters=dict(request.parameters),
            docker_env=plan.docker_env,
            disabled=plan.disabled,
            strategy=plan.strategy,
            schedule_id=request.schedule_id,
            scheduled_at=request.scheduled_at,
        )

    def check(self, actor: Actor, request: RunRequest) -> Checked:
        """All that is wrong, at once; nothing is stored."""
        owner = _owner(actor, request.owner)
        try:
            written = self._written(actor, owner, request)
            source = _read(written.text)
        except Invalid as error:
            return Checked(problems=(_problem(error),), plan=None)
        overrides = _overrides(replace(request, fs_name=request.fs_name or written.fs_name))
        found = problems(source, overrides, self._limits)
        if found:
            return Checked(problems=found, plan=None)
        try:
            plan = compile_plan(source, overrides, self._limits)
            self._check_filesystems(owner, plan)
            self._check_images(plan)
        except Invalid as error:
            return Checked(problems=(_problem(error),), plan=None)
        return Checked(problems=(), plan=plan)

    def check_runs_by_itself(self, actor: Actor, schedule: CreateSchedule) -> None:
        """Refuse now what every tick would refuse: a pipeline that lacks something only a request could say."""
        request = RunRequest(owner=schedule.owner, pipeline_id=schedule.pipeline_id, version_id=schedule.version_id)
        self.order(actor, request)

    def create_pipeline(
        self, actor: Actor, request: PipelineRequest, *, request_id: str = "", idempotency_key: str = ""
    ) -> Answer:
        owner = _owner(actor, request.owner)
        text, path = self._pipeline_text(owner, request)
        command = CreatePipeline(
            owner=owner,
            name=self._checked_name(owner, text, request.fs_name),
            text=text,
            fs_name=request.fs_name,
            yaml_path=path,
            description=request.description or "",
        )
        return self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)

    def update_pipeline(
        self,
        actor: Actor,
        pipeline_id: PipelineId,
        request: PipelineRequest,
        *,
        request_id: str = "",
        idempotency_key: str = "",
    ) -> Answer:
        owner = _owner(actor, request.owner)
        text, path = self._pipeline_text(owner, request)
        command = UpdatePipeline(
            id=pipeline_id,
            owner=owner,
            name=self._checked_name(owner, text, request.fs_name),
            text=text,
            fs_name=request.fs_name,
            yaml_path=path,
            description=request.description,
        )
        return self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)

    def _checked_name(self, owner: UserName, text: str, fs_name: str) -> str:
        """A pipeline that names no main filesystem may be kept all the same: each run of it names one."""
        source = _read(text)
        is_open = source.main_fs is None and not fs_name
        plan = compile_plan(source, Overrides(fs_name=_ANY_FS if is_open else fs_name), self._limits)
        self._check_filesystems(owner, replace(plan, main_fs=None) if is_open else plan)
        return plan.name

    def _pipeline_text(self, owner: UserName, request: PipelineRequest) -> tuple[str, str]:
        """The text, and the path it came from."""
        if request.text:
            if request.yaml_path or request.fs_name:
                raise Invalid("yamlRaw comes alone: leave out yamlPath and fsName", details={"field": "yamlRaw"})
            return request.text, ""
        path = request.yaml_path or _DEFAULT_PATH
        return self._text_on(owner, request.fs_name, path), path

    def _written(self, actor: Actor, owner: UserName, request: RunRequest) -> _Written:
        if request.text:
            return _Written(text=request.text, source=_digest(request.text), fs_name="")
        if request.document is not None:
            text = documents.dump(from_json_form(request.document))
            return _Written(text=text, source=_digest(text), fs_name="")
        if request.pipeline_id is not None:
            return self._stored(actor, request.pipeline_id, request.version_id)
        path = request.yaml_path or _DEFAULT_PATH
        return _Written(text=self._text_on(owner, request.fs_name, path), source=path, fs_name=request.fs_name)

    def _stored(self, actor: Actor, pipeline_id: PipelineId, version_id: VersionId | None) -> _Written:
        with self._store.read() as view:
            pipeline = view.pipelines.find(pipeline_id)
            if pipeline is None:
                raise not_found("pipeline", pipeline_id[:80], code="PipelineNotFound")
            require_owner(actor, pipeline.owner, "pipeline", pipeline.id, code="AccessDenied")
            version = (
                view.pipelines.latest_version(pipeline_id)
                if version_id is None
                else view.pipelines.find_version(pipeline_id, version_id)
            )
        if version is None:
            raise not_found("pipelineVersion", f"{pipeline_id}-{version_id}"[:80], code="PipelineNotFound")
        return _Written(text=version.text, source=f"{pipeline_id}-{version.id}", fs_name=version.fs_name)

    def _text_on(self, owner: UserName, fs_name: str, path: str) -> str:
        if not fs_name:
            raise Invalid(
                "fsName says where the pipeline's file is; give it, or give the pipeline itself as runYamlRaw"
            )
        filesystem = self._filesystem(owner, fs_name)
        try:
            return self._files.read(filesystem, path, _MOST_BYTES).decode()
        except UnicodeDecodeError as error:
            raise Invalid(
                f"file[{path[:200]}] on fs[{fs_name}] is not UTF-8 text", code="ReadYamlFileFailed"
            ) from error
        except (NotFound, Invalid, TooLarge) as error:
            raise Invalid(
                f"file[{path[:200]}] on fs[{fs_name}] cannot be read: {error.message}", code="ReadYamlFileFailed"
            ) from error

    def _filesystem(self, owner: UserName, name: str) -> Filesystem:
        with self._store.read() as view:
            filesystem = view.filesystems.find(filesystem_id(owner, name))
        if filesystem is None:
            raise Invalid(f"user[{owner}] has no filesystem [{name[:80]}]", details={"field": "fsName"})
        return filesystem

    def _check_filesystems(self, owner: UserName, plan: Plan) -> None:
        """Every filesystem the plan mounts belongs to the one who runs it."""
        names = dict.fromkeys(mount.name for node in plan.nodes.values() for mount in node.mounts)
        for name in names:
            self._filesystem(owner, name)
        if plan.main_fs is None:
            return
        main = self._filesystem(owner, plan.main_fs.name)
        if not plan.main_fs.sub_path:
            return
        try:
            entry = self._files.entry(main, plan.main_fs.sub_path)
        except NotFound:
            return  # it is made when the first step needs it
        if not entry.is_directory:
            raise Invalid(
                f"[sub_path] with id[{main.id}] is not dir", code="InvalidPipeline", details={"path": "fs_options"}
            )

    def _check_images(self, plan: Plan) -> None:
        """Refuse before the first step starts what the last one would be refused for. Steps whose queue is not known
        yet are judged when they start."""
        named: dict[str, tuple[PlanNode, str]] = {}
        for node in plan.nodes.values():
            image = node.docker_env or plan.docker_env
            if node.kind is NodeKind.STEP and image and not node.disabled:
                named.setdefault(node.env.get("PF_JOB_QUEUE_NAME", "") or DEFAULT_QUEUE, (node, image))
        with self._store.read() as view:
            for name, (node, image) in named.items():
                queue = view.queues.find(QueueName(name))
                cluster = None if queue is None else view.clusters.find(queue.cluster)
                if cluster is not None and not self._capabilities.can_use_image(cluster):
                    raise self._capabilities.refuse_image(f"docker_env of step {node.path}", image, cluster)


def _owner(actor: Actor, named: str) -> UserName:
    owner = UserName(named or actor.name)
    if owner != actor.name:
        require_root(actor, code="AccessDenied")
    return owner


def _read(text: str) -> Source:
    document = documents.load(text, max_bytes=_MOST_BYTES)
    return parse(document.value, document.lines)


def _overrides(request: RunRequest) -> Overrides:
    return Overrides(
        name=check_pipeline_name(request.name) if request.name else "",
        parameters=request.parameters,
        docker_env=request.docker_env,
        disabled=request.disabled,
        strategy=request.strategy,
        fs_name=request.fs_name,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _problem(error: PaddleFlowError) -> Problem:
    line = error.details.get("line")
    return Problem(
        message=error.message,
        path=tuple(path.split(".")) if isinstance(path := error.details.get("path"), str) else (),
        line=line if isinstance(line, int) else None,
    )
