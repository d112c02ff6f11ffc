"""Names that users' manifests, scripts and dashboards know: labels, annotations, variables, the names of objects.

They are the original operator's wherever it had one. Ours are the ``attempt`` marks: a restarted job uses the same pod
names again, and the mark tells the pods of one attempt from those of the next.
"""

from __future__ import annotations

GROUP = "batch.paddlepaddle.org"
KIND = "PaddleJob"
PLURAL = "paddlejobs"
API_VERSION = f"{GROUP}/v1"

PS, WORKER, HETER = "ps", "worker", "heter"
ROLES = (PS, WORKER, HETER)
"""In the order in which they are started and listed."""

LABEL_NAME = "paddle-res-name"
LABEL_ROLE = "paddle-res-type"
LABEL_JOB = "paddle-job-name"
ANNOTATION_ROLE = "paddle-resource"
ANNOTATION_ATTEMPT = "paddle-attempt"
ANNOTATION_MEMBERS = "paddle-members"
"""On the ConfigMap: a digest of the addresses it lists. On a pod: the digest it was last told of."""
ANNOTATION_HOST_PORT = "host-port"
ANNOTATION_ENVIRONMENT = "paddle-environment"
"""``both`` (as if absent), ``static`` (no meeting point for the launcher) or ``launcher`` (no lists of endpoints)."""
ANNOTATION_AUTOSCALE = "paddle-autoscale"
"""``off`` keeps the EDL rule away from a job."""
FINALIZER = "finalizers.paddlepaddle.org"

INIT_CONTAINER = "coord-paddle"
MEMBERSHIP_FILE = "membership.json"
MEMBERSHIP_DIRECTORY = "/etc/paddleflow/membership"
MEMBERSHIP_VOLUME = "paddle-membership"

BASE_PORT = 36000
PORTS_PER_TASK = 20
GLOO_OFFSET = 18
MEETING_OFFSET = 19

START_PREFIX = "PF_START_"
LONGEST_POD_NAME = 63
"""A pod's name is its hostname and, in Service mode, the name of a Service: one DNS label."""


def pod_name(job: str, role: str, index: int) -> str:
    return f"{job}-{role}-{index}"


def start_key(role: str, attempt: int) -> str:
    """The key of the ConfigMap without which the kubelet does not start a container of that role and attempt."""
    return f"{START_PREFIX}{role.upper()}_{attempt}"


def elastic_job_id(namespace: str, job: str) -> str:
    return f"{namespace}-{job}"


def elastic_np_key(namespace: str, job: str) -> str:
    return f"/paddle/{elastic_job_id(namespace, job)}/np"
