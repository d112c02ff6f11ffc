"""TensorFlow: every task reads the whole cluster, and its own place in it, from TF_CONFIG.

A ``master`` is TensorFlow's chief, a ``pserver`` its ps. TensorFlow fixes the cluster at start, so these jobs are not
elastic.
"""

from __future__ import annotations

import json

from paddleflow.domain.jobs import TaskLaunch
from paddleflow.frameworks.container import launch_of
from paddleflow.frameworks.crews import MASTER, PSERVER, WORKER, Crew, Post
from paddleflow.frameworks.rules import Rules

PORTS = 1
_SPELT = {MASTER: "chief", PSERVER: "ps", WORKER: "worker"}


def launch(crew: Crew, post: Post) -> TaskLaunch:
    cluster = {_SPELT[role]: [each.endpoint() for each in crew.of(role)] for role in _SPELT if crew.of(role)}
    task = {"type": _SPELT[post.role], "index": crew.of(post.role).index(post)}
    env = {
        **crew.common_environment(post),
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}, separators=(",", ":")),
    }
    return launch_of(crew.job, post.member, post.placement, env)


RULES = Rules(
    roles=(MASTER, PSERVER, WORKER),
    single=frozenset({MASTER}),
    needed={WORKER: "it does the training"},
    alone=WORKER,
    ports=PORTS,
    deciders=frozenset({MASTER, WORKER}),
    launch=launch,
)
