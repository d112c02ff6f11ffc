"""PyTorch: the ``env://`` variables for a script that is one process a task, and torchrun's own for a bare ``torchrun
train.py``.

torchrun overwrites the former for its processes, so both can be there at once. The task of rank 0 hosts both meeting
points, on a port each; a shrinking job loses its highest index first, so rank 0 stays as long as the job runs.
"""

from __future__ import annotations

from paddleflow.domain.jobs import Elasticity, TaskLaunch
from paddleflow.frameworks.container import launch_of
from paddleflow.frameworks.crews import MASTER, WORKER, Crew, Post
from paddleflow.frameworks.rules import Rules

PORTS = 2
_PROCESS_GROUP, _RENDEZVOUS = 0, 1

_ENDLESS_RESTARTS = "1000"
"""Workers that lose a peer fail, and torchrun counts that as a restart: an elastic job must not run out of them. How
often the job as a whole may fail is the business of its run policy."""
_LAST_CALL_S = 5
"""How long torchrun waits for more tasks once it has enough; the scheduler starts them together."""


def launch(crew: Crew, post: Post) -> TaskLaunch:
    env = {**crew.common_environment(post), **_process_group(crew, post), **_torchrun(crew, post)}
    return launch_of(crew.job, post.member, post.placement, env)


def _process_group(crew: Crew, post: Post) -> dict[str, str]:
    head = crew.posts[0].address
    return {
        "MASTER_ADDR": head.host,
        "MASTER_PORT": str(head.ports[_PROCESS_GROUP]),
        "WORLD_SIZE": str(len(crew.posts)),
        "RANK": str(post.rank),
        "LOCAL_RANK": "0",
    }


def _torchrun(crew: Crew, post: Post) -> dict[str, str]:
    elastic = crew.job.spec.elastic
    conf = [f"is_host={int(post.rank == 0)}"]
    env = {
        "PET_NNODES": str(len(crew.posts)) if elastic is None else _range(crew, elastic),
        "PET_NPROC_PER_NODE": str(post.gpus or 1),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": crew.posts[0].endpoint(_RENDEZVOUS),
        "PET_RDZV_ID": crew.job.id,
        # Without it the tasks look each other up by host name, which need not resolve.
        "PET_LOCAL_ADDR": post.address.host,
    }
    if elastic is not None:
        env["PET_MAX_RESTARTS"] = _ENDLESS_RESTARTS
        # A task keeps the address of a shared store after the one that hosted it has left, and waits there in vain.
        env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        conf.append(f"last_call_timeout={_LAST_CALL_S}")
    env["PET_RDZV_CONF"] = ",".join(conf)
    return env


def _range(crew: Crew, elastic: Elasticity) -> str:
    masters = len(crew.of(MASTER))
    return f"{masters + elastic.least}:{masters + elastic.most}"


RULES = Rules(
    roles=(MASTER, WORKER),
    single=frozenset({MASTER}),
    needed={WORKER: "it does the training"},
    alone=WORKER,
    elastic=lambda spec: True,
    ports=PORTS,
    deciders=frozenset({MASTER, WORKER}),
    launch=launch,
)
