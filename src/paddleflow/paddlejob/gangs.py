"""The PodGroup by which Volcano starts a job's pods together or not at all."""

from __future__ import annotations

from collections.abc import Mapping

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import NOTHING, Resources
from paddleflow.paddlejob.actions import Json, Options
from paddleflow.paddlejob.jobs import PaddleJob, Role
from paddleflow.paddlejob.names import LABEL_JOB, LABEL_NAME, WORKER
from paddleflow.paddlejob.network import owner_of

VOLCANO = "volcano"
_OPEN = ("Inqueue", "Running", "Unknown", "Completed")
"""Phases in which pods may be created. Unknown: some of the gang run, and what they lost may come back. Completed: all
that are there have finished; whoever is lost beside them must come back, and only a new pod ends that phase."""


def is_gang(job: PaddleJob, options: Options) -> bool:
    """Unless a template names another scheduler: half a gang on one scheduler and half on another never meets."""
    named = {role.template["spec"].get("schedulerName") or VOLCANO for role in job.roles.values()}
    return options.scheduling == VOLCANO and named == {VOLCANO}


def is_open(pod_group: Json | None) -> bool:
    return pod_group is not None and (pod_group.get("status") or {}).get("phase") in _OPEN


def pod_group_of(job: PaddleJob) -> Json:
    policy = job.scheduling
    spec: Json = {
        "minMember": job.least if policy.min_available is None else policy.min_available,
        "minResources": dict(policy.min_resources) if policy.min_resources is not None else _least_resources(job),
    }
    if policy.queue:
        spec["queue"] = policy.queue
    if policy.priority_class:
        spec["priorityClassName"] = policy.priority_class
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": {LABEL_NAME: job.name, LABEL_JOB: job.name},
            "ownerReferences": owner_of(job),
        },
        "spec": spec,
    }


def without_raise(wanted: Json, found: Json | None) -> Json:
    """What a gang that has started was let in for stays its least: workers that join an elastic job come when there is
    room for them, and those who work are not made to wait for them."""
    before = (found or {}).get("spec") or {}
    if not isinstance(before.get("minMember"), int) or before["minMember"] >= wanted["spec"]["minMember"]:
        return wanted
    kept = {name: before[name] for name in ("minMember", "minResources") if name in before}
    return {**wanted, "spec": {**wanted["spec"], **kept}}


def differs(wanted: Json, found: Json) -> bool:
    """In what we set; the rest is Volcano's. ``1000m`` and ``1`` are the same."""
    spec = found.get("spec") or {}
    return any(not _same(spec.get(key), value) for key, value in wanted["spec"].items())


def _same(found: object, wanted: object) -> bool:
    if found == wanted or not isinstance(found, Mapping) or not isinstance(wanted, Mapping):
        return found == wanted
    try:
        spelt = [Resources.parse({name: str(amount) for name, amount in each.items()}) for each in (found, wanted)]
    except Invalid:
        return False
    return found.keys() == wanted.keys() and spelt[0] == spelt[1]


def _least_resources(job: PaddleJob) -> dict[str, str]:
    spare = job.total - job.least
    total = NOTHING
    for role in job.roles.values():
        count = role.replicas - spare if role.name == WORKER else role.replicas
        total += task_resources(role) * count
    return total.spell()


def task_resources(role: Role) -> Resources:
    """What a pod of the role asks for: requests, or limits where a container has no requests."""
    total = NOTHING
    for container in role.template["spec"]["containers"]:
        declared = container.get("resources") or {}
        asked: Mapping[str, object] = {**(declared.get("limits") or {}), **(declared.get("requests") or {})}
        total += Resources.parse({str(name): str(amount) for name, amount in asked.items()})
    return total
