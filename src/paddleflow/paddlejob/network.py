"""Services of jobs that meet by name, and port blocks of jobs that use the nodes' own network."""

from __future__ import annotations

import hashlib

from paddleflow.paddlejob.actions import Json, Options
from paddleflow.paddlejob.jobs import PaddleJob
from paddleflow.paddlejob.names import (
    API_VERSION,
    BASE_PORT,
    KIND,
    LABEL_JOB,
    LABEL_NAME,
    LABEL_ROLE,
    PORTS_PER_TASK,
)


def owner_of(job: PaddleJob) -> list[Json]:
    return [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": job.name,
            "uid": job.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def service_of(job: PaddleJob, role: str, name: str) -> Json:
    """Headless, one for each pod and of its name: the name holds while pods come and go, and resolves before they are
    ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {LABEL_NAME: name, LABEL_ROLE: role, LABEL_JOB: job.name},
            "ownerReferences": owner_of(job),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {LABEL_NAME: name},
            "ports": [
                {"name": f"p-{offset}", "port": BASE_PORT + offset, "protocol": "TCP"}
                for offset in range(PORTS_PER_TASK)
            ],
        },
    }


def choose_host_port(uid: str, options: Options, taken: frozenset[int]) -> int | None:
    """The first port of a block that nobody holds, or None when all are held.

    Where the search begins depends on the job alone, so jobs that are given ports at the same moment rarely ask for the
    same; should they, the scheduler keeps their pods on different nodes, as pods declare the first port of the block.
    """
    low, high = options.port_range
    blocks = (high - low + 1) // PORTS_PER_TASK
    first = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8]) % blocks
    for turn in range(blocks):
        port = low + (first + turn) % blocks * PORTS_PER_TASK
        if not any(port < each + PORTS_PER_TASK and each < port + PORTS_PER_TASK for each in taken):
            return port
    return None
