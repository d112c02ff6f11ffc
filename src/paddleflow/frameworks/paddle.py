"""Paddle: parameter servers with trainers, or trainers alone (collective), in the PADDLE_* words its users know.

Two contracts exist and do not mix. A script that is one process a task reads its trainer id and the endpoints of all;
``python -m paddle.distributed.launch`` reads a meeting point and makes the rest itself, and goes astray when it finds
the endpoints too. A command that names the launcher gets the launcher's variables; every other command gets both the
trainer's and the meeting point, and may drop a variable by setting it empty.

An elastic collective job is stopped and resumed at every change of its membership: its command runs under
``paddleflow.agents.elastic``, which starts it anew with the variables of the new membership. A job that names an etcd
server in PADDLE_ELASTIC_SERVER is left to Paddle's own elastic launcher, which cannot do without one.
"""

from __future__ import annotations

import re

from paddleflow.domain.jobs import JobSpec, TaskLaunch
from paddleflow.frameworks.container import argv_of, launch_of
from paddleflow.frameworks.crews import MASTER, PSERVER, WORKER, Crew, Post, plain_role
from paddleflow.frameworks.paddle_trainers import (
    GLOO,
    PORTS,
    Trainer,
    launcher_environment,
    trainer_environment,
)
from paddleflow.frameworks.rules import Rules

_LAUNCHER = re.compile(r"\bpaddle\.distributed\.(?:launch|run)\b|\bfleetrun\b")
_ETCD = "PADDLE_ELASTIC_SERVER"
_ELASTIC_TIMEOUT_S = 60
_HTTP_RENDEZVOUS = "3"


def _is_collective(spec: JobSpec) -> bool:
    return all(plain_role(member.role) == WORKER for member in spec.members)


def launch(crew: Crew, post: Post) -> TaskLaunch:
    env = {**crew.common_environment(post), **_place(crew, post)}
    elastic = crew.job.spec.elastic
    if elastic is None:
        return launch_of(crew.job, post.member, post.placement, {**env, **_connections(crew, post)})
    if post.member.env.get(_ETCD):
        return launch_of(crew.job, post.member, post.placement, {**env, **_own_elastic(crew, post)})
    kind = "launcher" if _uses_launcher(post) else "trainer"
    argv = crew.agent("elastic", "--contract", kind, "--", *argv_of(post.member))
    return launch_of(crew.job, post.member, post.placement, env, argv)


def _uses_launcher(post: Post) -> bool:
    return bool(_LAUNCHER.search(" ".join((post.member.command, *post.member.args))))


def _place(crew: Crew, post: Post) -> dict[str, str]:
    """What holds for a task as long as it lives."""
    role = "PSERVER" if post.role == PSERVER else "TRAINER"
    env = {
        "POD_IP": post.address.host,
        "TRAINING_ROLE": role,
        "PADDLE_TRAINING_ROLE": role,
        "PADDLE_JOB_ID": crew.job.id,
        "PADDLE_NPROC_PER_NODE": str(post.gpus or 1),
        # The launcher keeps logs in the working directory, which tasks may share.
        "PADDLE_LOG_DIR": f"log/{post.placement.role}-{post.placement.index}",
        "TRAINER_PORTS_NUM": str(len(post.address.ports)),
    }
    if post.gpus:
        # Positions among the GPUs the task sees, not numbers of the node.
        env["FLAGS_selected_gpus"] = ",".join(str(position) for position in range(post.gpus))
    else:
        env["PADDLE_DISTRI_BACKEND"] = "gloo"
    return env


def _connections(crew: Crew, post: Post) -> dict[str, str]:
    trainers = crew.of(MASTER, WORKER)
    known = [Trainer(host=each.address.host, ports=each.address.ports) for each in trainers]
    if crew.of(PSERVER):
        return _with_servers(crew, post, known)
    rank = trainers.index(post)
    launcher = launcher_environment(known, rank)
    return launcher if _uses_launcher(post) else {**launcher, **trainer_environment(known, rank, 0)}


def _with_servers(crew: Crew, post: Post, trainers: list[Trainer]) -> dict[str, str]:
    servers = crew.of(PSERVER)
    among = servers if post.role == PSERVER else crew.of(MASTER, WORKER)
    rank = among.index(post)
    env = trainer_environment(trainers, 0 if post.role == PSERVER else rank, 0)
    return env | {
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_CURRENT_ENDPOINT": post.endpoint(),
        "PADDLE_PORT": str(post.address.ports[0]),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(each.endpoint() for each in servers),
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": _HTTP_RENDEZVOUS,
        "PADDLE_GLOO_HTTP_ENDPOINT": servers[0].endpoint(GLOO),
    }


def _own_elastic(crew: Crew, post: Post) -> dict[str, str]:
    elastic = crew.job.spec.elastic
    assert elastic is not None, "only elastic jobs come here"
    sizes = f"{elastic.least}:{elastic.most}"
    return {
        "PADDLE_MASTER": f"etcd://{post.member.env[_ETCD]}",
        "PADDLE_NNODES": sizes,
        "PADDLE_ELASTIC_JOB_ID": crew.job.id,
        "PADDLE_ELASTIC_NP": sizes,
        "PADDLE_ELASTIC_TIMEOUT": str(_ELASTIC_TIMEOUT_S),
    }


RULES = Rules(
    roles=(MASTER, PSERVER, WORKER),
    single=frozenset({MASTER}),
    needed={WORKER: "it does the training"},
    alone=WORKER,
    elastic=_is_collective,
    ports=PORTS,
    deciders=frozenset({MASTER, WORKER}),
    launch=launch,
)
