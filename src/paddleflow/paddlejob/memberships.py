"""What a job's ConfigMap holds.

A job of fixed size: the variables that name its tasks' addresses, and for each role that may start a key without
which the kubelet holds the role's containers back. That is the start barrier: it needs neither an image nor commands
run inside pods. Containers of an attempt wait for that attempt's keys, so the addresses of an earlier one never reach
them. Workers and heter trainers may start when all servers run.

An elastic job: ``membership.json``, which tasks follow while they run (``PF_MEMBERSHIP_FILE``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.environment import Hosts, base_port, left_out, members_digest, shared_variables
from paddleflow.paddlejob.jobs import Caution, Intranet, PaddleJob
from paddleflow.paddlejob.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_MEMBERS,
    GLOO_OFFSET,
    LABEL_JOB,
    LABEL_NAME,
    MEETING_OFFSET,
    MEMBERSHIP_FILE,
    PS,
    START_PREFIX,
    WORKER,
    start_key,
)
from paddleflow.paddlejob.network import owner_of
from paddleflow.paddlejob.tasks import State, Task

ANNOTATION_SIZE = "paddle-size"
_MANY = 1000
"""Of fewer tasks no list is too long."""


def spell_size(job: PaddleJob) -> str:
    return ",".join(f"{role.name}={role.replicas}" for role in job.roles.values())


def hosts_of(job: PaddleJob, tasks: Mapping[str, Task]) -> Hosts | None:
    """Where every task is, or None while some address is not known. Names are known before there are pods."""
    by_name = job.intranet is Intranet.SERVICE
    found: dict[str, list[str]] = {role: [] for role in job.roles}
    for role, _, name in job.places():
        host = name if by_name else tasks[name].address if name in tasks else ""
        if not host:
            return None
        found[role.name].append(host)
    return found


def attempt_of(config_map: Json) -> int:
    return int((config_map["metadata"].get("annotations") or {}).get(ANNOTATION_ATTEMPT) or 0)


def is_of_attempt(config_map: Json, attempt: int) -> bool:
    """Whether we made it, and for this attempt: the original operator's carry no mark."""
    return (config_map["metadata"].get("annotations") or {}).get(ANNOTATION_ATTEMPT) == str(attempt)


def is_for_the_other(config_map: Json, job: PaddleJob) -> bool:
    """A job of fixed size with a membership, or an elastic one with keys to start."""
    data = config_map.get("data") or {}
    return any(key.startswith(START_PREFIX) for key in data) if job.is_elastic else MEMBERSHIP_FILE in data


def fixed_config_map(job: PaddleJob, hosts: Hosts, attempt: int, tasks: Mapping[str, Task], found: Json | None) -> Json:
    """What is open stays open: a server that fails later does not take the workers' permission back."""
    data = shared_variables(job, hosts)
    before = found.get("data") or {} if found is not None and attempt_of(found) == attempt else {}
    servers_run = all(
        name in tasks and tasks[name].state in (State.RUNNING, State.SUCCEEDED)
        for role, _, name in job.places()
        if role.name == PS
    )
    for role in job.roles:
        key = start_key(role, attempt)
        if role == PS or servers_run or key in before:
            data[key] = str(attempt)
    marks = {ANNOTATION_MEMBERS: members_digest(job, hosts), ANNOTATION_SIZE: spell_size(job)}
    return _config_map(job, data, {ANNOTATION_ATTEMPT: str(attempt), **marks})


def too_long(job: PaddleJob, tasks: Mapping[str, Task]) -> Caution | None:
    """What its ConfigMap leaves out, once the addresses are known."""
    if job.is_elastic or job.total < _MANY:
        return None
    hosts = hosts_of(job, tasks)
    missing = left_out(job, hosts) if hosts is not None else ()
    if not missing:
        return None
    message = f"{', '.join(missing)}: longer than a variable may be, left out; use the launcher or shorter names"
    return Caution(reason="ListTooLong", message=message)


def elastic_config_map(job: PaddleJob, tasks: Sequence[Task], attempt: int, found: Json | None) -> Json:
    """The membership now, or the one published where the joiners are not yet to be taken in.

    Every change costs the job a restart of its training, so joiners are taken in together: when all that have a node
    have an address, and at first only when the fewest the job can work with are there. Who fails or is taken away is
    left out at once. Who has succeeded is no change: the others are about to, and must not be started again for it.
    When somebody else comes or goes, the others start again and nobody waits for the finished.
    """
    published = _published(found)
    now = [task for task in tasks if task.address and not task.has_ended and not task.is_leaving]
    arriving = any(task.node and not task.address and not task.has_ended and not task.is_leaving for task in tasks)
    if not published["tasks"] and len(now) < job.least:
        now = []
    elif arriving and published["tasks"]:
        known = {each["id"] for each in published["tasks"]}
        now = [task for task in now if task.name in known]
    elif arriving:
        now = []
    entries = [_entry(job, task, rank) for rank, task in enumerate(now)]
    finished = {task.name for task in tasks if task.state is State.SUCCEEDED}
    unfinished = [each for each in published["tasks"] if each["id"] not in finished]
    if finished and _unranked(entries) == _unranked(unfinished):
        entries = published["tasks"]
    generation = int(published["generation"])
    if entries != published["tasks"]:
        generation += 1
    worker = job.roles[WORKER]
    document = {
        "jobID": job.name,
        "generation": generation,
        "least": job.least,
        "most": worker.most or worker.replicas,
        "tasks": entries,
    }
    marks = {ANNOTATION_ATTEMPT: str(attempt), ANNOTATION_MEMBERS: str(generation), ANNOTATION_SIZE: spell_size(job)}
    return _config_map(job, {MEMBERSHIP_FILE: json.dumps(document, sort_keys=True)}, marks)


def _published(found: Json | None) -> Json:
    text = ((found or {}).get("data") or {}).get(MEMBERSHIP_FILE)
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        document = {}
    if not isinstance(document, dict):
        document = {}  # Somebody has written there; what they wrote is published over.
    generation = document.get("generation")
    tasks = document.get("tasks")
    is_ours = isinstance(tasks, list) and all(isinstance(each, dict) and "id" in each for each in tasks)
    return {"generation": generation if isinstance(generation, int) else 0, "tasks": tasks if is_ours else []}


def _entry(job: PaddleJob, task: Task, rank: int) -> Json:
    port = base_port(job)
    return {
        "id": task.name,
        "role": task.role,
        "index": task.index,
        "rank": rank,
        "host": task.name if job.intranet is Intranet.SERVICE else task.address,
        "ports": [port, port + 1, port + MEETING_OFFSET, port + GLOO_OFFSET],
        "node": task.node,
        # A task that came back under its old name and address is a new member all the same.
        "uid": task.uid,
    }


def _unranked(entries: Sequence[Json]) -> list[Json]:
    return [{**each, "rank": None} for each in entries]


def needs_writing(wanted: Json, found: Json | None) -> bool:
    if found is None or (found.get("data") or {}) != wanted["data"]:
        return True
    marks = found["metadata"].get("annotations") or {}
    return any(marks.get(key) != value for key, value in wanted["metadata"]["annotations"].items())


def _config_map(job: PaddleJob, data: dict[str, str], marks: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": {LABEL_NAME: job.name, LABEL_JOB: job.name},
            "annotations": marks,
            "ownerReferences": owner_of(job),
        },
        "data": data,
    }
