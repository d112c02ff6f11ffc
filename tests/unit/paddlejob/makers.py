"""Jobs and pods for tests, and a cluster of the smallest kind: it holds objects and does what actions say."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, assert_never

from paddleflow.paddlejob import Observed, Options, Plan, parse, reconcile
from paddleflow.paddlejob.actions import (
    Action,
    AnnotateJob,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeletePodGroup,
    DeleteService,
    PatchPod,
    PutConfigMap,
    PutPodGroup,
    Record,
    RemoveFinalizer,
    SetElasticNp,
)

Json = dict[str, Any]
START = 1_700_000_000.0


def template(*, env: list[Json] | None = None, **spec: Any) -> Json:
    container: Json = {"name": "paddle", "image": "paddle:2.4", "command": ["python", "train.py"]}
    container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    if env is not None:
        container["env"] = env
    return {"spec": {"containers": [container], **spec}}


def manifest(name: str = "wd", *, ps: int = 0, worker: int = 0, heter: int = 0, **spec: Any) -> Json:
    roles = {
        role: {"replicas": replicas, "template": template()}
        for role, replicas in (("ps", ps), ("worker", worker), ("heter", heter))
        if replicas
    }
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "team", "uid": "job-uid", "generation": 1},
        "spec": {**roles, **spec},
    }


def set_env(pod: Json) -> dict[str, Any]:
    """Of container 0: values, or where they come from."""
    env = pod["spec"]["containers"][0]["env"]
    names = [each["name"] for each in env]
    assert len(names) == len(set(names)), "no variable twice"
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in env}


@dataclass
class Cluster:
    """What one job has in it. Pods are kept in the order of their making; each has an address of its own."""

    job: Json
    options: Options = field(default_factory=Options)
    now: float = START
    pods: dict[str, Json] = field(default_factory=dict)
    services: dict[str, Json] = field(default_factory=dict)
    config_map: Json | None = None
    pod_group: Json | None = None
    np: str | None = None
    is_gone: bool = False
    events: list[Record] = field(default_factory=list)
    made: int = 0
    status_writes: int = 0

    def plan(self) -> Plan:
        observed = Observed(
            pods=list(self.pods.values()),
            services=list(self.services.values()),
            config_map=self.config_map,
            pod_group=self.pod_group,
            elastic_np=self.np,
        )
        return reconcile(parse(self.job), observed, self.now, self.options)

    def look(self) -> Plan:
        plan = self.plan()
        for action in plan.actions:
            self.do(action)
        if plan.status != self.status:
            self.job["status"] = deepcopy(plan.status)
            self.status_writes += 1
        return plan

    def settle(self, looks: int = 30) -> list[Action]:
        """Look until nothing is to be done; what was done."""
        done: list[Action] = []
        for _ in range(looks):
            before = deepcopy(self.status)
            plan = self.look()
            done += plan.actions
            if self.is_gone or (not plan.actions and self.status == before):
                return done
        raise AssertionError(f"it does not come to rest: {plan.actions}")

    @property
    def status(self) -> Json:
        found: Json = self.job.get("status") or {}
        return found

    @property
    def phase(self) -> str:
        return str(self.status.get("phase"))

    def condition(self, type: str) -> Json:
        return next((each for each in self.status["conditions"] if each["type"] == type), {})

    def do(self, action: Action) -> None:  # noqa: PLR0912 - a table of all actions
        match action:
            case CreatePod(body=body):
                self.create_pod(body)
            case DeletePod(name=name, uid=uid):
                if name in self.pods and self.pods[name]["metadata"]["uid"] == uid:
                    del self.pods[name]
            case PatchPod(name=name, annotations=annotations):
                self.pods[name]["metadata"]["annotations"].update(annotations)
            case CreateService(body=body):
                assert body["metadata"]["name"] not in self.services
                self.services[body["metadata"]["name"]] = self._with_uid(body)
            case DeleteService(name=name):
                del self.services[name]
            case PutConfigMap(body=body):
                self.config_map = self._with_uid(body)
            case PutPodGroup(body=body):
                status = self.pod_group["status"] if self.pod_group else {"phase": "Pending"}
                self.pod_group = {**self._with_uid(body), "status": status}
            case DeletePodGroup():
                self.pod_group = None
            case AnnotateJob(annotations=annotations):
                self.job["metadata"].setdefault("annotations", {}).update(annotations)
            case RemoveFinalizer(finalizer=finalizer):
                self.job["metadata"]["finalizers"].remove(finalizer)
            case SetElasticNp(value=value):
                self.np = value
            case Record():
                self.events.append(action)
            case DeleteJob():
                self.is_gone = True
            case _:
                assert_never(action)

    def create_pod(self, body: Json) -> None:
        name = body["metadata"]["name"]
        assert name not in self.pods, f"{name} is there already"
        self.pods[name] = {**self._with_uid(body), "status": {"phase": "Pending"}}

    def _with_uid(self, body: Json) -> Json:
        self.made += 1
        return {**deepcopy(body), "metadata": {**deepcopy(body["metadata"]), "uid": f"uid-{self.made}"}}

    def schedule(self, *names: str) -> None:
        """A node and an address; containers wait for what they need."""
        for name in names or tuple(self.pods):
            pod = self.pods[name]
            if pod["status"]["phase"] != "Pending" or pod["spec"].get("nodeName"):
                continue
            pod["spec"]["nodeName"] = "node-1"
            number = int(pod["metadata"]["uid"].rpartition("-")[2])
            pod["status"]["podIP"] = f"10.0.{number // 256}.{number % 256}"

    def kubelet(self) -> None:
        """Containers with all they need run; the others are held."""
        self.schedule()
        for pod in self.pods.values():
            if pod["status"]["phase"] != "Pending":
                continue
            waits = not self._has_all(pod)
            words = f"couldn't find key PF_START_ANY in ConfigMap team/{self.job['metadata']['name']}"
            waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": words}}
            state = waiting if waits else {"running": {}}
            pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": not waits, "state": state}]
            if not waits:
                pod["status"]["phase"] = "Running"

    def _has_all(self, pod: Json) -> bool:
        data = (self.config_map or {}).get("data") or {}
        for each in pod["spec"]["containers"][0]["env"]:
            reference = (each.get("valueFrom") or {}).get("configMapKeyRef")
            if reference and not reference.get("optional") and reference["key"] not in data:
                return False
        return True

    def end(self, name: str, code: int = 0, reason: str = "") -> None:
        pod = self.pods[name]
        terminated = {"exitCode": code, "reason": "Error" if code else "Completed"}
        pod["status"]["phase"] = "Failed" if code else "Succeeded"
        pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": False, "state": {"terminated": terminated}}]
        if reason:
            pod["status"]["reason"] = reason

    def evict(self, name: str) -> None:
        self.pods[name]["status"] = {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "too little memory",
        }

    def start(self) -> None:
        """Until all run."""
        for _ in range(8):
            self.settle()
            if self.pod_group is not None:
                self.pod_group["status"]["phase"] = "Running"
            self.kubelet()
        self.settle()
