"""What a pod tells about its task."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.paddlejob.tasks import State, Task, read_tasks

Json = dict[str, Any]


def task(**status: Any) -> Task:
    meta = {"name": "my-job-worker-0", "namespace": "team", "uid": "u", "labels": {"paddle-res-type": "worker"}}
    (found,) = read_tasks([{"metadata": meta, "spec": {}, "status": status}])
    return found


def waiting(reason: str, message: str) -> Json:
    return {"name": "paddle", "ready": False, "state": {"waiting": {"reason": reason, "message": message}}}


@pytest.mark.parametrize(
    ("message", "is_ours"),
    [
        ("", False),
        ('configmap "my-job" not found', True),
        ("couldn't find key PF_START_WORKER_0 in ConfigMap team/my-job", True),
        ("failed to sync configmap cache: timed out waiting for the condition", False),
        ("couldn't find key rate in ConfigMap team/my-job", False),
        ('secret "token" not found', False),
        ('configmap "settings" not found', False),
        ("couldn't find key rate in ConfigMap team/settings", False),
        ("couldn't find key rate in Secret team/my-job", False),
        ("container has runAsNonRoot and image will run as root", False),
    ],
)
def test_what_is_missing_beside_the_start_barrier_is_said(message: str, is_ours: bool) -> None:
    found = task(phase="Pending", containerStatuses=[waiting("CreateContainerConfigError", message)])
    assert found.is_held is is_ours
    assert found.state is (State.STARTING if is_ours else State.PENDING)
    assert found.message == ("" if is_ours else f"CreateContainerConfigError: {message}".rstrip(": "))
