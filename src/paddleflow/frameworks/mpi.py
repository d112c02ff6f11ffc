"""Open MPI: the master runs the user's ``mpirun``, which starts its daemons on the workers.

mpirun knows the workers by their task ids, which are no host names, and reaches them through our remote execution
agent instead of ssh: so ranks run inside the workers, with their limits and GPUs, also when all share one host. A
worker with a command of its own runs that, and has to see to a way in by itself.
"""

from __future__ import annotations

import json

from paddleflow.domain.jobs import JobSpec, TaskLaunch
from paddleflow.frameworks.container import argv_of, launch_of
from paddleflow.frameworks.crews import MASTER, WORKER, Crew, Post
from paddleflow.frameworks.rules import Rules, bad

PORTS = 1

_SETTINGS = {
    # Tasks run as the user of their runtime, which may be root; mpirun's refusal is meant for people at a terminal.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Daemons stay attached to the session that started them, so that none outlives its mpirun.
    "OMPI_MCA_orte_leave_session_attached": "1",
    # Only the master can reach the workers' agents.
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    # Every mpirun would bind its first rank to the first core of the host, and the jobs on it share that host.
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def check(spec: JobSpec) -> None:
    for position, member in enumerate(spec.members):
        if member.role == MASTER and not member.command and not member.args:
            raise bad(f"members[{position}].command", "it is empty, and the master's command is the job: give mpirun")


def launch(crew: Crew, post: Post) -> TaskLaunch:
    env = {**crew.common_environment(post), **_SETTINGS, **_same_host(crew)}
    if post.role == MASTER:
        env["PF_MPI_WORKERS"] = json.dumps([_described(each) for each in crew.of(WORKER)], separators=(",", ":"))
        argv = crew.agent("mpi_master", "--", *argv_of(post.member))
    else:
        argv = argv_of(post.member) if post.member.command or post.member.args else crew.agent("remote_exec", "serve")
    return launch_of(crew.job, post.member, post.placement, env, argv)


def _described(post: Post) -> dict[str, str | int]:
    return {
        "name": post.name,
        "host": post.address.host,
        "port": post.address.ports[0],
        "slots": post.gpus or post.cpus,
    }


def _same_host(crew: Crew) -> dict[str, str]:
    """Tasks that share a host meet on loopback, which Open MPI leaves out unless told.

    Its shared memory is left out instead: segments are named after the host and the rank within a node, so the first
    ranks of two workers would write into the same one.
    """
    if not crew.is_on_one_host:
        return {}
    return {
        "OMPI_MCA_btl": "self,tcp",
        "OMPI_MCA_btl_tcp_if_include": "127.0.0.0/8",
        "OMPI_MCA_oob_tcp_if_include": "127.0.0.0/8",
    }


RULES = Rules(
    roles=(MASTER, WORKER),
    single=frozenset({MASTER}),
    needed={MASTER: "it runs mpirun", WORKER: "the ranks run there"},
    ports=PORTS,
    deciders=frozenset({MASTER}),
    launch=launch,
    programs=frozenset({WORKER}),
    check=check,
)
