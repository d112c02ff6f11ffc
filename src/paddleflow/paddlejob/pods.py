"""From a role's template to the pod of one of its tasks."""

from __future__ import annotations

from copy import deepcopy

from paddleflow.paddlejob.actions import Json, Options
from paddleflow.paddlejob.environment import base_port, container_environment
from paddleflow.paddlejob.gangs import VOLCANO, is_gang
from paddleflow.paddlejob.jobs import Intranet, PaddleJob, Role
from paddleflow.paddlejob.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_ROLE,
    INIT_CONTAINER,
    LABEL_JOB,
    LABEL_NAME,
    LABEL_ROLE,
    MEMBERSHIP_DIRECTORY,
    MEMBERSHIP_VOLUME,
    WORKER,
    pod_name,
)
from paddleflow.paddlejob.network import owner_of

_TRIES = 1000
_WAIT_FOR_NAMES = (
    'for name in "$@"; do tries=0; until nslookup "$name" >/dev/null 2>&1; do tries=$((tries + 1)); '
    f'if [ "$tries" -ge {_TRIES} ]; then echo "no address for $name"; exit 1; fi; sleep 1; done; done'
)


def pod_of(job: PaddleJob, role: Role, index: int, attempt: int, options: Options) -> Json:
    name = pod_name(job.name, role.name, index)
    template = deepcopy(role.template)
    given, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(given.get("labels") or {}), LABEL_NAME: name, LABEL_ROLE: role.name, LABEL_JOB: job.name}
    annotations = {**(given.get("annotations") or {}), ANNOTATION_ROLE: role.name, ANNOTATION_ATTEMPT: str(attempt)}
    spec["restartPolicy"] = restart_policy(job, role)
    spec["hostname"] = spec["subdomain"] = name
    spec["containers"][0]["env"] = container_environment(job, role, index, attempt, options)
    if is_gang(job, options):
        spec["schedulerName"] = VOLCANO
        annotations |= _gang_marks(job, role)
    _connect(job, spec)
    if job.is_elastic:
        _mount_membership(job, spec)
    if options.init_image and job.intranet is Intranet.SERVICE:
        spec["initContainers"] = [*(spec.get("initContainers") or ()), _waiting_container(job, role, options)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": owner_of(job),
        },
        "spec": spec,
    }


def restart_policy(job: PaddleJob, role: Role) -> str:
    if job.is_elastic:
        return "OnFailure"
    given = role.template["spec"].get("restartPolicy")
    if given:
        return str(given)
    return "OnFailure" if role.name == WORKER and job.intranet is Intranet.SERVICE else "Never"


def _gang_marks(job: PaddleJob, role: Role) -> dict[str, str]:
    return {
        "scheduling.k8s.io/group-name": job.name,
        "volcano.sh/task-spec": role.name,
        "volcano.sh/job-name": job.name,
        "volcano.sh/job-version": "0",
        "volcano.sh/queue-name": job.scheduling.queue,
    }


def _connect(job: PaddleJob, spec: Json) -> None:
    if job.intranet is Intranet.POD_IP:
        return
    port = base_port(job)
    declared: Json = {"containerPort": port}
    if job.intranet is Intranet.HOST:
        # The scheduler does not put two pods that declare the same port of the node on one node.
        declared["hostPort"] = port
        spec["hostNetwork"] = True
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    container = spec["containers"][0]
    ports = container.get("ports") or []
    if all(each.get("containerPort") != port for each in ports):
        container["ports"] = [*ports, declared]


def _mount_membership(job: PaddleJob, spec: Json) -> None:
    container = spec["containers"][0]
    mount = {"name": MEMBERSHIP_VOLUME, "mountPath": MEMBERSHIP_DIRECTORY, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    volume = {"name": MEMBERSHIP_VOLUME, "configMap": {"name": job.name}}
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]


def _waiting_container(job: PaddleJob, role: Role, options: Options) -> Json:
    """Limits as well as requests: a namespace with a quota refuses pods that have none."""
    amounts = {"cpu": "10m", "memory": "16Mi"}
    names = [pod_name(job.name, role.name, index) for index in range(role.replicas)]
    return {
        "name": INIT_CONTAINER,
        "image": options.init_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _WAIT_FOR_NAMES, INIT_CONTAINER, *names],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
    }
