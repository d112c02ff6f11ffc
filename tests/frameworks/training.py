"""A server to train on: submit, wait, read what the tasks said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.servers import Server

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"
JOB_DEADLINE_S = 300.0
_ENDED = ("succeeded", "failed", "terminated", "preempted")
_NODES = """
local:
  nodes:
    - name: node
      count: 2
      cpu: "4"
      memory: 16Gi
"""


class Training:
    def __init__(self, directory: Path, venv: Path) -> None:
        self.directory = directory
        self.python = str(venv / "bin" / "python")
        self.bin = venv / "bin"
        config = directory / "server.yaml"
        config.write_text(_NODES)
        self._server = Server(directory / "state", None, "--config", str(config)).wait_ready()
        self.wait_for = self._server.wait_for

    def close(self) -> None:
        """Jobs outlive their server: what a failed test left behind is stopped first."""
        try:
            self._server.end_jobs(JOB_DEADLINE_S)
        finally:
            self._server.stop()

    def submit(self, framework: str, *members: dict[str, Any], **more: Any) -> str:
        body = {"framework": framework, "schedulingPolicy": {"queue": "default-queue"}, "members": members, **more}
        status, answer = self._server.call("POST", "/job/distributed", body)
        assert status == 200, answer
        return str(answer["id"])

    def submit_single(self, command: str, cpu: str) -> str:
        body = {**role("", 1, command, cpu=cpu), "schedulingPolicy": {"queue": "default-queue"}}
        for name in ("role", "replicas"):
            del body[name]
        status, answer = self._server.call("POST", "/job/single", body)
        assert status == 200, answer
        return str(answer["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        return self._server.job(job_id)

    def tasks(self, job_id: str) -> list[dict[str, Any]]:
        found = self.job(job_id).get("distributedRuntime", {}).get("runtimes", [])
        return [dict(task) for task in found]

    def log(self, url: str) -> str:
        status, data = self._server.raw("GET", url, headers={"x-pf-authorization": self._server.token})
        assert status == 200, data
        return data.decode(errors="replace")

    def logs(self, job_id: str) -> dict[str, str]:
        """What each task said, by its id."""
        return {task["id"]: self.log(task["logURL"]) for task in self.tasks(job_id)}

    def stop(self, job_id: str) -> None:
        """A job that has ended already is left as it is."""
        status, answer = self._server.call("PUT", f"/job/{job_id}?action=stop")
        assert status == 200 or self.job(job_id)["status"] in _ENDED, answer

    def ended(self, job_id: str) -> str:
        """The status it ended with."""
        return self.wait_for(lambda: self._end_of(job_id), f"the end of {job_id}", deadline_s=JOB_DEADLINE_S)

    def _end_of(self, job_id: str) -> str | None:
        status = str(self.job(job_id)["status"])
        return status if status in _ENDED else None

    def told(self, job_id: str) -> str:
        """For people who read a failed test."""
        job = self.job(job_id)
        logs = (f"--- {task}\n{text[-4000:]}" for task, text in self.logs(job_id).items())
        return "\n".join((f"{job['status']}: {job['message']}", *logs))

    def succeeded(self, job_id: str) -> str:
        """All that its tasks said, once it has succeeded."""
        assert self.ended(job_id) == "succeeded", self.told(job_id)
        return "\n".join(self.logs(job_id).values())


def role(name: str, replicas: int, command: str, *, cpu: str = "1", memory: str = "1Gi", **env: str) -> dict[str, Any]:
    """A member without limits: what is tested is that tasks meet, not how fast an import is on a part of a core."""
    return {
        "role": name,
        "replicas": replicas,
        "command": command,
        "flavour": {"cpu": cpu, "mem": memory},
        "env": {"PF_JOB_LIMIT_FLAVOUR": "NONE", **env},
    }
