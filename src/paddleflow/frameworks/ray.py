"""Ray: the master is the head node and runs the user's command beside it; every worker is a node that joins.

Both nodes run in the foreground, so that a task ends with its node. ``ray stop`` is never used: it ends every Ray
process of the host, whoever's it is. As in the product's older releases, ``args`` of a member are parameters of ``ray
start``, each spelt ``name: value``; a parameter given there wins over ours.
"""

from __future__ import annotations

import json
import re

from paddleflow.domain.jobs import JobSpec, Member, TaskLaunch
from paddleflow.frameworks.container import launch_of, limits_of, shell_argv
from paddleflow.frameworks.crews import MASTER, WORKER, Crew, Post
from paddleflow.frameworks.rules import Rules, bad

PORTS = 5
_GCS, _NODE_MANAGER, _OBJECT_MANAGER, _CLIENTS, _AGENT = range(PORTS)

_PARAMETER = re.compile(r"\s*([a-z][a-z0-9-]*)\s*:\s*(?:'([^']*)'|\"([^\"]*)\"|(.*?))\s*")
_OBJECT_STORE_SHARE = (3, 10)
"""Ray's own share of memory for objects, counted from what the task may use instead of what the host has."""
_SMALLEST_STORE = 80 * 1024 * 1024

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # When a node is told to stop, its job is over or gives it up: there is nothing to wait for.
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
}


def check(spec: JobSpec) -> None:
    for position, member in enumerate(spec.members):
        for number, argument in enumerate(member.args):
            if not _PARAMETER.fullmatch(argument):
                raise bad(
                    f"members[{position}].args[{number}]",
                    f"[{argument[:80]}] is not a parameter of ray start spelt as name: value; "
                    "arguments of the program belong into command",
                )
        if member.role == MASTER and not member.command:
            raise bad(
                f"members[{position}].command", "it is empty, and the master's command is the job: give the program"
            )


def launch(crew: Crew, post: Post) -> TaskLaunch:
    head = crew.of(MASTER)[0].endpoint(_GCS)
    env = {**crew.common_environment(post), **_SETTINGS, "RAY_ADDRESS": head}
    if crew.secret:
        # Ray listens on every interface and runs whatever it is handed.
        env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": crew.secret}
    program = shell_argv(post.member.command)
    if post.role == MASTER:
        node = _node(crew, "--head", *_flags(post, _head_parameters(post)))
        argv = crew.agent("beside", "--service", json.dumps(node), "--ready", head, "--", *program)
    elif post.member.command:
        argv = program
    else:
        node = _node(crew, f"--address={head}", *_flags(post, _node_parameters(post)))
        argv = crew.agent("after", head, "--", *node)
    return launch_of(crew.job, post.member, post.placement, env, argv)


def _node(crew: Crew, *words: str) -> tuple[str, ...]:
    """One node in the foreground, with a directory of its own: in a common one, nodes that start together on one host
    pick the same names for their sockets."""
    return crew.agent("scratch", "--", "ray", "start", "--block", "--temp-dir={scratch}", *words)


def _head_parameters(post: Post) -> dict[str, str]:
    ports = post.address.ports
    return {
        **_node_parameters(post),
        "port": str(ports[_GCS]),
        "ray-client-server-port": str(ports[_CLIENTS]),
        "include-dashboard": "false",
    }


def _node_parameters(post: Post) -> dict[str, str]:
    """Ray's default ports are fixed numbers, which nodes of one host would fight over."""
    ports = post.address.ports
    parameters = {
        "node-ip-address": post.address.host,
        "node-manager-port": str(ports[_NODE_MANAGER]),
        "object-manager-port": str(ports[_OBJECT_MANAGER]),
        "dashboard-agent-listen-port": str(ports[_AGENT]),
        "min-worker-port": "0",
        "max-worker-port": "0",
        "num-cpus": str(post.cpus),
        "num-gpus": str(post.gpus),
    }
    memory = limits_of(post.member).memory_bytes
    if memory:
        share, of = _OBJECT_STORE_SHARE
        parameters["object-store-memory"] = str(max(_SMALLEST_STORE, memory * share // of))
    return parameters


def _flags(post: Post, ours: dict[str, str]) -> tuple[str, ...]:
    parameters = ours | _asked(post.member)
    return tuple(f"--{name}={value}" for name, value in parameters.items())


def _asked(member: Member) -> dict[str, str]:
    found = [_PARAMETER.fullmatch(argument) for argument in member.args]
    return {one[1]: one[2] or one[3] or one[4] or "" for one in found if one is not None}


RULES = Rules(
    roles=(MASTER, WORKER),
    single=frozenset({MASTER}),
    needed={MASTER: "it is the head node", WORKER: "the work is done there"},
    ports=PORTS,
    deciders=frozenset({MASTER}),
    launch=launch,
    programs=frozenset({WORKER}),
    check=check,
)
