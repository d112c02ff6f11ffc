"""What the server tells about a run: the run itself, its steps and its dags, under the names scripts already read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from paddleflow.sdk.words import RUN_ENDED


@dataclass(frozen=True)
class JobInfo:
    """One step of a run, for one item of its loop. A job outside runs is ``paddleflow.sdk.jobs.JobInfo``."""

    job_id: str
    name: str
    type: str
    step_name: str
    parent_dag_id: str
    command: str
    parameters: dict[str, Any]
    env: dict[str, str]
    extra_fs: list[dict[str, Any]]
    start_time: str
    end_time: str
    status: str
    deps: str
    docker_env: str
    artifacts: dict[str, Any]
    cache: dict[str, Any]
    job_message: str
    cache_run_id: str
    cache_job_id: str
    key: str = ""
    """Its name in the run, unlike every other: ``sub[2].train[5]``."""
    loop_item: Any = None

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> JobInfo:
        return cls(
            job_id=data.get("jobID", ""),
            name=data.get("name", ""),
            type=data.get("type", "step"),
            step_name=data.get("stepName", ""),
            parent_dag_id=data.get("parentDagID", ""),
            command=data.get("command", ""),
            parameters=data.get("parameters") or {},
            env=data.get("env") or {},
            extra_fs=data.get("extraFS") or [],
            start_time=data.get("startTime", ""),
            end_time=data.get("endTime", ""),
            status=data.get("status", ""),
            deps=data.get("deps", ""),
            docker_env=data.get("dockerEnv", ""),
            artifacts=data.get("artifacts") or {},
            cache=data.get("cache") or {},
            job_message=data.get("jobMessage", ""),
            cache_run_id=data.get("cacheRunID", ""),
            cache_job_id=data.get("cacheJobID", ""),
            key=data.get("key", ""),
            loop_item=data.get("loopItem"),
        )

    def get_dict(self) -> dict[str, Any]:
        return {
            "jobID": self.job_id,
            "name": self.name,
            "type": self.type,
            "stepName": self.step_name,
            "parentDagID": self.parent_dag_id,
            "command": self.command,
            "parameters": self.parameters,
            "env": self.env,
            "extraFS": self.extra_fs,
            "startTime": self.start_time,
            "endTime": self.end_time,
            "status": self.status,
            "deps": self.deps,
            "dockerEnv": self.docker_env,
            "artifacts": self.artifacts,
            "cache": self.cache,
            "jobMessage": self.job_message,
            "cacheRunID": self.cache_run_id,
            "cacheJobID": self.cache_job_id,
        }


@dataclass(frozen=True)
class DagInfo:
    """One dag of a run, for one item of its loop."""

    dag_id: str
    name: str
    type: str
    dag_name: str
    parent_dag_id: str
    deps: str
    parameters: dict[str, Any]
    artifacts: dict[str, Any]
    start_time: str
    end_time: str
    status: str
    message: str
    entry_points: dict[str, list[View]]
    key: str = ""
    loop_item: Any = None

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> DagInfo:
        return cls(
            dag_id=data.get("id", ""),
            name=data.get("name", ""),
            type=data.get("type", "dag"),
            dag_name=data.get("dagName", ""),
            parent_dag_id=data.get("parentDagID", ""),
            deps=data.get("deps", ""),
            parameters=data.get("parameters") or {},
            artifacts=data.get("artifacts") or {},
            start_time=data.get("startTime", ""),
            end_time=data.get("endTime", ""),
            status=data.get("status", ""),
            message=data.get("message", ""),
            entry_points=views_from_wire(data.get("entryPoints")),
            key=data.get("key", ""),
            loop_item=data.get("loopItem"),
        )

    def get_dict(self) -> dict[str, Any]:
        return {
            "dagID": self.dag_id,
            "name": self.name,
            "type": self.type,
            "dagName": self.dag_name,
            "parentDagID": self.parent_dag_id,
            "deps": self.deps,
            "parameters": self.parameters,
            "artifacts": self.artifacts,
            "startTime": self.start_time,
            "endTime": self.end_time,
            "status": self.status,
            "message": self.message,
            "entryPoints": plain_views(self.entry_points),
        }


View: TypeAlias = "JobInfo | DagInfo"


def views_from_wire(data: Mapping[str, Any] | None) -> dict[str, list[View]]:
    """Component name → one view for each item of its loop."""
    return {name: [_view(view) for view in views or []] for name, views in (data or {}).items()}


def plain_views(views: Mapping[str, list[View]]) -> dict[str, Any]:
    """The same as dicts and lists, ready for JSON."""
    return {name: [view.get_dict() for view in listed] for name, listed in views.items()}


def _view(data: Mapping[str, Any]) -> View:
    return DagInfo.from_wire(data) if data.get("type") == "dag" else JobInfo.from_wire(data)


@dataclass(frozen=True)
class RunInfo:
    """A run. Lists fill only what they show; ``show_run`` fills all of it."""

    run_id: str
    fs_name: str
    username: str
    status: str
    name: str
    description: str
    parameters: dict[str, Any]
    run_yaml: str
    runtime: dict[str, list[View]]
    post_process: dict[str, JobInfo]
    docker_env: str
    update_time: str
    source: str
    run_msg: str
    schedule_id: str
    scheduled_time: str
    fs_options: dict[str, Any]
    failure_options: dict[str, Any]
    disabled: str
    run_cached_ids: str
    create_time: str
    activate_time: str
    finish_time: str = ""
    retry_of: str = ""
    """The run whose results this one kept; empty: none."""
    graph: dict[str, Any] = field(default_factory=dict, repr=False)
    """Every node of the plan with its place in a drawing and how far it is."""

    @property
    def is_ended(self) -> bool:
        return self.status in RUN_ENDED

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> RunInfo:
        post_process = data.get("postProcess") or {}
        return cls(
            run_id=data["runID"],
            fs_name=data.get("fsName", ""),
            username=data.get("username", ""),
            status=data.get("status", ""),
            name=data.get("name", ""),
            description=data.get("description", ""),
            parameters=data.get("parameters") or {},
            run_yaml=data.get("runYaml", ""),
            runtime=views_from_wire(data.get("runtime")),
            post_process={name: JobInfo.from_wire(view) for name, view in post_process.items()},
            docker_env=data.get("dockerEnv", ""),
            update_time=data.get("updateTime", ""),
            source=data.get("source", ""),
            run_msg=data.get("runMsg", ""),
            schedule_id=data.get("scheduleID", ""),
            scheduled_time=data.get("scheduledTime", ""),
            fs_options=data.get("fsOptions") or {},
            failure_options=data.get("failureOptions") or {},
            disabled=data.get("disabled", ""),
            run_cached_ids=data.get("runCachedIDs", ""),
            create_time=data.get("createTime", ""),
            activate_time=data.get("activateTime", ""),
            finish_time=data.get("finishTime", ""),
            retry_of=data.get("retryOf", ""),
            graph=data.get("graph") or {},
        )
