"""Spark: a standalone cluster that lives as long as its job.

The driver task hosts Spark's master beside the user's program, each executor task is one of Spark's workers and offers
the cores and memory of its flavour. The program finds the cluster by the variable MASTER, which spark-submit and
PySpark read, so neither needs an argument for it. A driver without a command submits the file that
PF_JOB_SPARK_MAIN_FILE names. A job without executors runs inside its driver.
"""

from __future__ import annotations

import json
import shlex

from paddleflow.domain.jobs import JobSpec, Member, TaskLaunch
from paddleflow.frameworks.container import argv_of, launch_of, limits_of
from paddleflow.frameworks.crews import DRIVER, EXECUTOR, Crew, Post
from paddleflow.frameworks.rules import Rules, bad

PORTS = 2
_RPC, _PAGES = range(PORTS)

_MAIN_FILE, _MAIN_CLASS, _ARGUMENTS = "PF_JOB_SPARK_MAIN_FILE", "PF_JOB_SPARK_MAIN_CLASS", "PF_JOB_SPARK_ARGUMENTS"
_MIB = 1024 * 1024
_OVERHEAD_MIB = 384
"""What a JVM and the worker beside it take outside of the heap: Spark's own figure, or a tenth if that is more."""
_SMALLEST_HEAP_MIB = 471
"""Spark refuses an executor with less: one and a half times the 300 MiB it reserves, and room to round."""


def check(spec: JobSpec) -> None:
    for position, member in enumerate(spec.members):
        if member.role == DRIVER:
            _check_program(f"members[{position}]", member)
        elif member.role == EXECUTOR and member.flavour.resources.memory_bytes:
            _check_memory(f"members[{position}]", member)


def _check_program(place: str, member: Member) -> None:
    if not member.command and not member.args and not member.env.get(_MAIN_FILE):
        raise bad(f"{place}.command", f"it is empty: give the program, or a file to submit in env {_MAIN_FILE}")
    try:
        shlex.split(member.env.get(_ARGUMENTS, ""))
    except ValueError as error:
        raise bad(f"{place}.env.{_ARGUMENTS}", f"its quotes do not match ({error})") from error


def _check_memory(place: str, member: Member) -> None:
    least = _SMALLEST_HEAP_MIB + _OVERHEAD_MIB
    if member.flavour.resources.memory_bytes < least * _MIB:
        raise bad(f"{place}.flavour.mem", f"an executor needs at least {least}Mi: Spark refuses a smaller heap")


def launch(crew: Crew, post: Post) -> TaskLaunch:
    driver = crew.of(DRIVER)[0]
    executors = crew.of(EXECUTOR)
    master = f"spark://{driver.endpoint(_RPC)}" if executors else f"local[{driver.cpus}]"
    env = {
        **crew.common_environment(post),
        "MASTER": master,
        "SPARK_LOCAL_IP": post.address.host,
        # Anybody who reaches this second way in may run programs; Spark's own is bound to the task's address alone.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    if executors:
        env["SPARK_EXECUTOR_MEMORY"] = f"{min(_heap_mib(each) for each in executors)}m"
    if post.role == EXECUTOR:
        argv = crew.agent("after", driver.endpoint(_RPC), "--", *_worker(post, master))
    elif executors:
        service = json.dumps(_master(post))
        argv = crew.agent("beside", "--service", service, "--ready", post.endpoint(_RPC), "--", *_program(post.member))
    else:
        argv = _program(post.member)
    return launch_of(crew.job, post.member, post.placement, env, argv)


def _spark(member: Member, tool: str) -> str:
    home = member.env.get("SPARK_HOME", "")
    return f"{home.rstrip('/')}/bin/{tool}" if home else tool


def _master(post: Post) -> tuple[str, ...]:
    host, ports = post.address.host, post.address.ports
    words = ("--host", host, "--port", str(ports[_RPC]), "--webui-port", str(ports[_PAGES]))
    return (_spark(post.member, "spark-class"), "org.apache.spark.deploy.master.Master", *words)


def _worker(post: Post, master: str) -> tuple[str, ...]:
    host, ports = post.address.host, post.address.ports
    words = ("--host", host, "--port", str(ports[_RPC]), "--webui-port", str(ports[_PAGES]))
    room = ("--cores", str(post.cpus), "--memory", f"{_heap_mib(post)}m")
    return (_spark(post.member, "spark-class"), "org.apache.spark.deploy.worker.Worker", *words, *room, master)


def _heap_mib(post: Post) -> int:
    whole = limits_of(post.member).memory_bytes // _MIB or post.member.flavour.resources.memory_bytes // _MIB
    return max(_SMALLEST_HEAP_MIB, whole - max(_OVERHEAD_MIB, whole // 10))


def _program(member: Member) -> tuple[str, ...]:
    if member.command or member.args:
        return argv_of(member)
    named = member.env.get(_MAIN_CLASS, "")
    words = ("--class", named) if named else ()
    arguments = shlex.split(member.env.get(_ARGUMENTS, ""))
    return (_spark(member, "spark-submit"), *words, member.env[_MAIN_FILE], *arguments)


RULES = Rules(
    roles=(DRIVER, EXECUTOR),
    single=frozenset({DRIVER}),
    needed={DRIVER: "it runs the program"},
    ports=PORTS,
    deciders=frozenset({DRIVER}),
    launch=launch,
    programs=frozenset({DRIVER, EXECUTOR}),
    check=check,
)
