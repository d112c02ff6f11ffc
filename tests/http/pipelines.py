"""Pipelines for tests over HTTP: texts, a filesystem to run them on, and the end of their steps."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.http.served import Answer, Caller, Served
from tests.waiting import wait_for

TWO_STEPS = """
name: pair
entry_points:
  first:
    command: "true"
    parameters: {size: 3, rate: 0.5}
    env: {SIZE: "{{size}}"}
  second:
    deps: first
    command: "true {{size}}"
    parameters: {size: "{{first.size}}"}
"""

WITH_ARTIFACTS = """
name: made
fs_options:
  main_fs: {name: %s}
entry_points:
  make:
    command: "echo > {{model}}"
    artifacts: {output: [model]}
  use:
    deps: make
    command: "cat {{model}}"
    artifacts: {input: {model: "{{make.model}}"}}
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def start(caller: Caller, text: str = TWO_STEPS, **more: object) -> str:
    answer = caller.post("/run", {"runYamlRaw": encoded(text), **more})
    assert answer.status == 201, answer.body
    assert set(answer.json) == {"runID"}
    return str(answer.json["runID"])


def a_filesystem(caller: Caller, name: str, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    answer = caller.post("/fs", {"name": name, "url": f"local://{directory}"})
    assert answer.status == 201, answer.body
    return directory


def shown(caller: Caller, run_id: str) -> dict[str, Any]:
    answer: Answer = caller.get(f"/run/{run_id}")
    assert answer.status == 200, answer.body
    run: dict[str, Any] = answer.json
    return run


def view_of(caller: Caller, run_id: str, step: str) -> dict[str, Any]:
    """The view of a step at the top, once its job exists."""

    def started() -> dict[str, Any] | None:
        views = shown(caller, run_id)["runtime"].get(step, [])
        return views[0] if views and views[0]["jobID"] else None

    return wait_for(started, f"{step} of {run_id} has a job")


def end(served: Served, caller: Caller, run_id: str, step: str, exit_code: int = 0) -> str:
    """Let a step's job end; its id."""
    job_id = str(view_of(caller, run_id, step)["jobID"])
    served.finish(job_id, exit_code)
    return job_id


def ended(caller: Caller, run_id: str) -> str:
    """The run's status, once it has ended."""

    def status() -> str | None:
        found = shown(caller, run_id)["status"]
        return found if found in ("succeeded", "failed", "terminated", "skipped") else None

    return wait_for(status, f"{run_id} ended")
