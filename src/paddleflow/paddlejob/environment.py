"""The variables a PaddleJob's containers find: how trainers and servers learn who they are and where the others are.

Two contracts exist. The static one lists all endpoints; scripts that are one process a pod and old launchers read it.
The launcher's names a meeting point and a number; ``python -m paddle.distributed.launch`` since Paddle 2.3 reads it.
They mix well where every pod has an IPv4 address or a name of its own, as pods do: a launcher that finds the list
takes its first entry for the meeting point and counts hosts. It cannot read IPv6 endpoints, so it does not get them.

A variable that the user sets empty is left out. The variables that the original operator forced are ours; the rest are
offers, and a value of the user's stands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from paddleflow.domain.endpoints import spell_endpoint
from paddleflow.paddlejob.actions import Json, Options
from paddleflow.paddlejob.jobs import TRAINING_ROLES, Intranet, Mode, PaddleJob, Role
from paddleflow.paddlejob.names import (
    ANNOTATION_ENVIRONMENT,
    ANNOTATION_HOST_PORT,
    BASE_PORT,
    GLOO_OFFSET,
    HETER,
    MEETING_OFFSET,
    MEMBERSHIP_DIRECTORY,
    MEMBERSHIP_FILE,
    PORTS_PER_TASK,
    PS,
    WORKER,
    elastic_job_id,
    pod_name,
    start_key,
)

BOTH, STATIC, LAUNCHER = "both", "static", "launcher"
CHOICES = (BOTH, STATIC, LAUNCHER)

Hosts = Mapping[str, Sequence[str]]
"""By role, in the order of the index."""

_ELASTIC_TIMEOUT_S = 60
_HTTP_RENDEZVOUS = 3
_LONGEST_VARIABLE = 128 * 1024
"""The kernel refuses to start a program with a longer one."""

_STATIC_KEYS = (
    "TRAINER_PORTS_NUM",
    "PADDLE_PORT",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_TRAINERS",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_HETER_ENDPOINTS",
    "PADDLE_WITH_GLOO",
    "PADDLE_GLOO_RENDEZVOUS",
    "PADDLE_GLOO_HTTP_ENDPOINT",
)
_LAUNCHER_KEYS = ("PADDLE_MASTER", "PADDLE_NNODES")
_FORCED = ("POD_IP", "PADDLE_TRAINER_ID", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE")
_FORCED_ELASTIC = (
    "PADDLE_ELASTIC_JOB_ID",
    "PADDLE_ELASTIC_NP",
    "PADDLE_ELASTIC_TIMEOUT",
    "PF_TASK_ID",
    "PF_MEMBERSHIP_FILE",
)
_START_VARIABLE = "PF_STARTED"


def reserved_names(*, is_elastic: bool) -> frozenset[str]:
    """Those whose value is the operator's, whatever the template says."""
    return frozenset((*_FORCED, *_FORCED_ELASTIC) if is_elastic else _FORCED)


def base_port(job: PaddleJob) -> int:
    return int(job.annotations[ANNOTATION_HOST_PORT]) if job.intranet is Intranet.HOST else BASE_PORT


def members_digest(job: PaddleJob, hosts: Hosts) -> str:
    """Changes with any address a task may hold."""
    document = json.dumps([base_port(job), {role: list(hosts[role]) for role in hosts}], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def shared_variables(job: PaddleJob, hosts: Hosts) -> dict[str, str]:
    """What the ConfigMap of a job with a fixed size holds for all its containers."""
    return {key: value for key, value in _all_shared(job, hosts).items() if not _is_too_long(key, value)}


def left_out(job: PaddleJob, hosts: Hosts) -> list[str]:
    """The variables that would keep every container from starting, were they there."""
    return [key for key, value in _all_shared(job, hosts).items() if _is_too_long(key, value)]


def _is_too_long(key: str, value: str) -> bool:
    return len(key) + len(value) + 2 > _LONGEST_VARIABLE


def _all_shared(job: PaddleJob, hosts: Hosts) -> dict[str, str]:
    port = base_port(job)
    found: dict[str, str] = {}
    if _choice(job) != LAUNCHER:
        found |= _static(job, hosts, port)
    if _wants_meeting_point(job):
        first = hosts[PS][0] if hosts.get(PS) else next(iter(each[0] for each in hosts.values() if each))
        found["PADDLE_MASTER"] = spell_endpoint(first, port + MEETING_OFFSET)
        found["PADDLE_NNODES"] = str(job.total)
    return found


def _static(job: PaddleJob, hosts: Hosts, port: int) -> dict[str, str]:
    def endpoints(role: str) -> str:
        return ",".join(spell_endpoint(host, port) for host in hosts[role])

    found = {"TRAINER_PORTS_NUM": str(PORTS_PER_TASK), "PADDLE_PORT": str(port)}
    if PS in hosts:
        found["PADDLE_PSERVERS_IP_PORT_LIST"] = endpoints(PS)
    if WORKER in hosts:
        misread = job.roles[WORKER].uses_launcher and any(":" in host for host in hosts[WORKER])
        if not misread:
            found["PADDLE_TRAINER_ENDPOINTS"] = endpoints(WORKER)
        found["PADDLE_TRAINERS"] = ",".join(hosts[WORKER])
        found["PADDLE_TRAINERS_NUM"] = str(len(hosts[WORKER]))
    if HETER in hosts:
        found["PADDLE_HETER_ENDPOINTS"] = endpoints(HETER)
    if job.with_gloo and hosts.get(PS):
        found["PADDLE_WITH_GLOO"] = str(job.with_gloo)
        found["PADDLE_GLOO_RENDEZVOUS"] = str(_HTTP_RENDEZVOUS)
        found["PADDLE_GLOO_HTTP_ENDPOINT"] = spell_endpoint(hosts[PS][0], port + GLOO_OFFSET)
    return found


def _choice(job: PaddleJob) -> str:
    return job.annotations.get(ANNOTATION_ENVIRONMENT) or BOTH


def _wants_meeting_point(job: PaddleJob) -> bool:
    choice = _choice(job)
    if choice != BOTH:
        return choice == LAUNCHER
    worker = job.roles.get(WORKER)
    return job.mode is not Mode.PS or (worker is not None and worker.uses_launcher)


def container_environment(job: PaddleJob, role: Role, index: int, attempt: int, options: Options) -> list[Json]:
    """The whole ``env`` of container 0: offers that the user has not answered, the user's own, what is forced."""
    name = pod_name(job.name, role.name, index)
    forced = _forced(job, role, index, name)
    offers = _elastic_offers(job, role, index, options) if job.is_elastic else _offers(job, role, index)
    if job.is_elastic:
        forced |= _forced_elastic(job, name, options)
    own = [each for each in role.container.get("env") or () if each.get("name") not in forced]
    kept = [each for each in own if each.get("value") or each.get("valueFrom") or not _is_offered(each, offers)]
    answered = {each.get("name") for each in own}
    env = [*(each for each in offers if each["name"] not in answered), *kept]
    env += [spelt for variable, spelt in forced.items() if not role.refuses(variable)]
    if not job.is_elastic:
        env.append(_from_config_map(job, _START_VARIABLE, start_key(role.name, attempt), optional=False))
    return env


def _is_offered(given: Json, offers: Sequence[Json]) -> bool:
    return any(each["name"] == given.get("name") for each in offers)


def _forced(job: PaddleJob, role: Role, index: int, name: str) -> dict[str, Json]:
    training_role = TRAINING_ROLES[role.name]
    by_name = job.intranet is Intranet.SERVICE
    address = {"value": name} if by_name else {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {
        "POD_IP": {"name": "POD_IP", **address},
        "PADDLE_TRAINER_ID": _spelt("PADDLE_TRAINER_ID", index),
        "TRAINING_ROLE": _spelt("TRAINING_ROLE", training_role),
        "PADDLE_TRAINING_ROLE": _spelt("PADDLE_TRAINING_ROLE", training_role),
    }


def _forced_elastic(job: PaddleJob, name: str, options: Options) -> dict[str, Json]:
    values = {
        "PADDLE_ELASTIC_JOB_ID": elastic_job_id(job.namespace, job.name),
        "PADDLE_ELASTIC_NP": _sizes(job),
        "PADDLE_ELASTIC_TIMEOUT": _ELASTIC_TIMEOUT_S,
        "PF_TASK_ID": name,
        "PF_MEMBERSHIP_FILE": f"{MEMBERSHIP_DIRECTORY}/{MEMBERSHIP_FILE}",
    }
    if options.etcd_servers:
        values["PADDLE_ELASTIC_SERVER"] = _etcd(options)
    return {variable: _spelt(variable, value) for variable, value in values.items()}


def _offers(job: PaddleJob, role: Role, index: int) -> list[Json]:
    choice = _choice(job)
    keys = _STATIC_KEYS if choice != LAUNCHER else ()
    offers = [_from_config_map(job, key, key, optional=True) for key in keys if _concerns(job, key)]
    if not _wants_meeting_point(job):
        return offers
    offers += [_from_config_map(job, key, key, optional=True) for key in _LAUNCHER_KEYS]
    offers.append(_spelt("PADDLE_JOB_ID", job.name))
    if job.mode is Mode.PS:
        offers.append(_spelt("PADDLE_SERVER_NUM" if role.name == PS else "PADDLE_TRAINER_NUM", 1))
    else:
        offers.append(_spelt("PADDLE_RANK", _first_rank(job, role) + index))
    return offers


def _first_rank(job: PaddleJob, role: Role) -> int:
    """Ranks go through all pods that meet, role by role."""
    names = list(job.roles)
    return sum(job.roles[name].replicas for name in names[: names.index(role.name)])


def _concerns(job: PaddleJob, key: str) -> bool:
    if "GLOO" in key:
        return bool(job.with_gloo) and PS in job.roles
    if "PSERVERS" in key:
        return PS in job.roles
    if "HETER" in key:
        return HETER in job.roles
    return ("TRAINERS" not in key and "ENDPOINTS" not in key) or WORKER in job.roles


def _elastic_offers(job: PaddleJob, role: Role, index: int, options: Options) -> list[Json]:
    offers = [
        _spelt("TRAINER_PORTS_NUM", PORTS_PER_TASK),
        _spelt("PADDLE_PORT", base_port(job)),
        _spelt("PADDLE_TRAINERS_NUM", role.replicas),
        _spelt("PADDLE_JOB_ID", job.name),
    ]
    if options.etcd_servers:
        offers += [_spelt("PADDLE_MASTER", f"etcd://{_etcd(options)}"), _spelt("PADDLE_NNODES", _sizes(job))]
    return offers


def _sizes(job: PaddleJob) -> str:
    worker = job.roles[WORKER]
    return str(worker.replicas) if worker.most is None else f"{worker.least or 1}:{worker.most}"


def _etcd(options: Options) -> str:
    return ",".join(server.split("://", 1)[-1].rstrip("/") for server in options.etcd_servers)


def _spelt(variable: str, value: object) -> Json:
    return {"name": variable, "value": str(value)}


def _from_config_map(job: PaddleJob, variable: str, key: str, *, optional: bool) -> Json:
    reference: Json = {"name": job.name, "key": key}
    if optional:
        reference["optional"] = True
    return {"name": variable, "valueFrom": {"configMapKeyRef": reference}}
