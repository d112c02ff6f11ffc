"""Runs: start, show, list, stop, retry, delete; check a pipeline without running it; wait for a run or watch it."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from paddleflow.sdk.errors import InvalidError, UnavailableError
from paddleflow.sdk.events import EventCalls, EventInfo
from paddleflow.sdk.listening import Ear
from paddleflow.sdk.run_outputs import OutputInfo, find_output, outputs_of
from paddleflow.sdk.run_views import RunInfo
from paddleflow.sdk.session import present, refuse_blank, require, segment

_ENDINGS = ("RunFinished", "RunDeleted")
_CHANGES = ("RunAdvanced", "RunStopping", *_ENDINGS, "JobStarted", "JobRequeued", "JobFinished")
_PACE_S = 0.2
"""Between two looks at a watched run at the least, however much happens in it."""


class RunRequest(TypedDict, total=False):
    """The arguments of ``create_run``, which ``check_run`` takes as well."""

    fs_name: str | None
    username: str | None
    run_name: str | None
    desc: str | None
    run_yaml_path: str | None
    run_yaml_raw: bytes | str | None
    pipeline_id: str | None
    pipeline_version_id: str | None
    param: Mapping[str, Any] | str | None
    disabled: str | Sequence[str] | None
    docker_env: str | None
    failure_options: Mapping[str, str] | str | None


class RunCalls(EventCalls):
    """What the client can do with runs."""

    def create_run(
        self,
        fs_name: str | None = None,
        username: str | None = None,
        run_name: str | None = None,
        desc: str | None = None,
        run_yaml_path: str | None = None,
        run_yaml_raw: bytes | str | None = None,
        pipeline_id: str | None = None,
        pipeline_version_id: str | None = None,
        param: Mapping[str, Any] | str | None = "",
        disabled: str | Sequence[str] | None = None,
        docker_env: str | None = None,
        failure_options: Mapping[str, str] | str | None = None,
    ) -> tuple[bool, str]:
        """Run a pipeline; the id of the run.

        The pipeline is ``run_yaml_raw`` (the text itself), a stored one (``pipeline_id``) or a file on the filesystem.
        """
        request = RunRequest(
            fs_name=fs_name,
            username=username,
            run_name=run_name,
            desc=desc,
            run_yaml_path=run_yaml_path,
            run_yaml_raw=run_yaml_raw,
            pipeline_id=pipeline_id,
            pipeline_version_id=pipeline_version_id,
            param=param,
            disabled=disabled,
            docker_env=docker_env,
            failure_options=failure_options,
        )
        return True, str(self._create("/run", _body(request))["runID"])

    def check_run(self, **request: Unpack[RunRequest]) -> tuple[bool, dict[str, Any]]:
        """What ``create_run`` would make of this, without doing it: ``{"valid", "problems", "plan", "graph"}``."""
        # A POST that only asks: repeating it is as safe as a GET.
        return True, dict(self._call("POST", "/run/check", body=_body(request), repeatable=True))

    def list_run(
        self,
        fs_name: str | None = None,
        username: str | None = None,
        run_id: str | None = None,
        run_name: str | None = None,
        status: str | None = None,
        maxsize: int | str | None = 100,
        marker: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"runList": [RunInfo…], "nextMarker"}``. Each filter may be several values separated by commas."""
        params = {
            "fsFilter": refuse_blank(fs_name, "InvalidFSName", "fs_name"),
            "userFilter": refuse_blank(username, "InvalidUserName", "username"),
            "runFilter": refuse_blank(run_id, "InvalidRunID", "run_id"),
            "nameFilter": refuse_blank(run_name, "InvalidRunName", "run_name"),
            "statusFilter": status,
            "maxKeys": maxsize,
            "marker": marker,
        }
        data = self._get("/run", params)
        runs = [RunInfo.from_wire(run) for run in data["runList"]]
        return True, {"runList": runs, "nextMarker": data.get("nextMarker")}

    def show_run(self, run_id: str) -> tuple[bool, RunInfo]:
        return True, RunInfo.from_wire(self._get(run_path(run_id)))

    def run_outputs(self, run_id: str) -> tuple[bool, list[OutputInfo]]:
        """What its steps have made, with what they took over from other runs."""
        _, run = self.show_run(run_id)
        return True, outputs_of(run)

    def find_output(self, run_id: str, name: str) -> tuple[bool, OutputInfo]:
        """One of them by its name ``STEP.ARTIFACT``; its path is what ``download_artifact`` takes."""
        _, run = self.show_run(run_id)
        return True, find_output(run, require(name, "InvalidArtifact", "name"))

    def stop_run(self, run_id: str, force: bool = False) -> tuple[bool, None]:
        """``force`` stops the post-process too."""
        self._put(run_path(run_id), {"stopForce": force}, {"action": "stop"})
        return True, None

    def retry_run(self, run_id: str) -> tuple[bool, str]:
        """Run again what has not succeeded; the id of the new run."""
        return True, str(self._put(run_path(run_id), params={"action": "retry"})["runID"])

    def delete_run(self, run_id: str, check_cache: bool | None = None) -> tuple[bool, None]:
        """Unless ``check_cache`` is False, refused while other runs rely on its results."""
        body = None if check_cache is None else {"checkCache": check_cache}
        self._call("DELETE", run_path(run_id), body=body)
        return True, None

    def run_graph(self, run_id: str) -> tuple[bool, dict[str, Any]]:
        """``{"nodes": […], "edges": […], …}``: every node with its place in a drawing and how far it is."""
        return True, dict(self._get(f"{run_path(run_id)}/graph"))

    def run_timing(self, run_id: str) -> tuple[bool, dict[str, Any]]:
        """How long each step waited and ran, and the chain of steps that took the run as long as it did."""
        return True, dict(self._get(f"{run_path(run_id)}/timing"))

    def why_cached(self, run_id: str, step: str) -> tuple[bool, dict[str, Any]]:
        """Why a step's result was reused or computed: what has changed, and since which run."""
        params = {"step": require(step, "InvalidStep", "step")}
        return True, dict(self._get(f"{run_path(run_id)}/why-cached", params))

    def wait_run(self, run_id: str, timeout: float | None = None) -> tuple[bool, RunInfo]:
        """The run when it has ended. After ``timeout`` seconds an error of code ``Timeout`` is raised."""
        deadline = None if timeout is None else time.monotonic() + timeout
        # The position is read before the run, so that an end in between is heard of.
        stream = partial(self.events, self._position(run_id), subject=run_id, kinds=_ENDINGS)
        _, run = self.show_run(run_id)
        if run.is_ended:
            return True, run
        with Ear(lambda until: stream(until=until)) as ear:
            while ear.wait(None if deadline is None else max(0.0, deadline - time.monotonic())):
                _, run = self.show_run(run_id)
                if run.is_ended:
                    return True, run
        raise UnavailableError("Timeout", f"{run_id} is still {run.status} after {timeout:g} s")

    def watch_run(self, run_id: str) -> Iterator[RunInfo]:
        """The run now, then whenever it or one of its jobs has moved, until it has ended."""
        stream = partial(self.events, self._position(run_id), kinds=_CHANGES)
        job_prefix = f"job-{run_id}-"

        def concerns(event: EventInfo) -> bool:
            return event.subject == run_id or event.subject.startswith(job_prefix)

        with Ear(lambda until: stream(until=until), concerns) as ear:
            while True:
                began = time.monotonic()
                _, run = self.show_run(run_id)
                cost_s = time.monotonic() - began
                yield run
                if run.is_ended:
                    return
                ear.wait()
                # A large run is dear to look at; it is looked at less often, so that watching stays cheap.
                time.sleep(max(0.0, max(_PACE_S, 4 * cost_s) - (time.monotonic() - began)))


def run_path(run_id: str) -> str:
    return f"/run/{segment(require(run_id, 'InvalidRunID', 'run_id'))}"


def encoded(text: bytes | str | None) -> str | None:
    """A pipeline's text as it travels."""
    if not text:
        return None
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def _body(request: RunRequest) -> dict[str, object]:
    param = request.get("param") or {}
    if not isinstance(param, Mapping):
        raise InvalidError("InvalidParam", "param should be a dict of names and values")
    disabled, strategy = request.get("disabled"), request.get("failure_options")
    return present(
        fsName=refuse_blank(request.get("fs_name"), "InvalidFSName", "fs_name"),
        username=refuse_blank(request.get("username"), "InvalidUserName", "username"),
        name=refuse_blank(request.get("run_name"), "InvalidRunName", "run_name"),
        desc=request.get("desc"),
        runYamlPath=request.get("run_yaml_path"),
        runYamlRaw=encoded(request.get("run_yaml_raw")),
        pipelineID=request.get("pipeline_id"),
        pipelineVersionID=request.get("pipeline_version_id"),
        parameters=dict(param) or None,
        disabled=disabled if isinstance(disabled, str) or disabled is None else ",".join(disabled),
        dockerEnv=request.get("docker_env"),
        failureOptions={"strategy": strategy} if isinstance(strategy, str) else strategy,
    )
