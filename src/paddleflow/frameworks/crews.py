"""The tasks of one job as they are now: who has which rank, and where each of them can be reached.

Ranks are positions in the order of role, then index, so they are dense whatever indices a shrunk job has left. The
published membership uses the same order.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from paddleflow.domain.errors import Unavailable
from paddleflow.domain.ids import TaskId
from paddleflow.domain.jobs import Address, Job, Member, Placement

MASTER, PSERVER, WORKER = "master", "pserver", "worker"
DRIVER, EXECUTOR = "driver", "executor"
_ALIASES = {"pworker": WORKER}


def plain_role(role: str) -> str:
    """The role without its older spelling: ``pworker`` is a worker."""
    return _ALIASES.get(role, role)


def spell_endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One task's place in its crew."""

    placement: Placement
    member: Member
    address: Address
    rank: int

    @property
    def role(self) -> str:
        return plain_role(self.placement.role)

    @property
    def name(self) -> TaskId:
        return self.placement.task_id

    @property
    def gpus(self) -> int:
        return len(self.placement.gpus)

    @property
    def cpus(self) -> int:
        """Whole cores, at least one."""
        return max(1, self.member.flavour.resources.cpu_milli // 1000)

    def endpoint(self, port: int = 0) -> str:
        return spell_endpoint(self.address.host, self.address.ports[port])


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    job: Job
    posts: tuple[Post, ...]
    """By rank."""
    secret: str = ""
    """Known to the tasks of this job alone."""
    python: str = "python3"
    """A Python inside the task that can import this package."""

    def of(self, *roles: str) -> tuple[Post, ...]:
        return tuple(post for post in self.posts if post.role in roles)

    @property
    def mode(self) -> str:
        """As users know it: with anybody who serves or leads it is PS, else Collective."""
        return "PS" if self.of(PSERVER, MASTER) else "Collective"

    @property
    def is_on_one_host(self) -> bool:
        return all(_is_loopback(post.address.host) for post in self.posts)

    def agent(self, program: str, *words: str) -> tuple[str, ...]:
        """The command line of one of our own programs that run inside tasks."""
        return (self.python, "-m", f"paddleflow.agents.{program}", *words)

    def common_environment(self, post: Post) -> dict[str, str]:
        env = {
            "PF_JOB_MODE": self.mode,
            "PF_WORLD_SIZE": str(len(self.posts)),
            "PF_TASK_RANK": str(post.rank),
            "PF_TASK_ENDPOINT": post.endpoint(),
            "PF_TASK_ENDPOINTS": ",".join(each.endpoint() for each in self.posts),
            "PF_TASK_PORTS": ",".join(str(port) for port in post.address.ports),
        }
        if self.secret:
            env["PF_JOB_SECRET"] = self.secret
        return env


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def assemble(job: Job, book: Mapping[TaskId, Address], secret: str, python: str) -> Crew:
    ordered = sorted(job.placements, key=lambda at: (plain_role(at.role), at.role, at.index))
    posts = tuple(
        Post(
            placement=placement,
            member=job.spec.member_at(placement.role, placement.index),
            address=_address(book, placement.task_id),
            rank=rank,
        )
        for rank, placement in enumerate(ordered)
    )
    return Crew(job=job, posts=posts, secret=secret, python=python)


def _address(book: Mapping[TaskId, Address], task: TaskId) -> Address:
    address = book.get(task)
    if address is None:
        raise Unavailable(f"the address of task {task} is not known yet")
    return address
