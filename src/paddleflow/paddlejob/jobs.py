"""A PaddleJob as the rules see it: parsed, defaulted, with the meaning of its fields decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.names import HETER, PS, WORKER, pod_name

MOST_REPLICAS = 10_000
DEFAULT_BACKOFF_LIMIT = 3

_LAUNCHER = re.compile(r"\bpaddle\.distributed\.(?:launch|run)\b|\bfleetrun\b")


class Intranet(StrEnum):
    POD_IP = "PodIP"
    SERVICE = "Service"
    HOST = "Host"


class CleanPolicy(StrEnum):
    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ON_COMPLETION = "OnCompletion"


class Mode(StrEnum):
    PS = "PS"
    COLLECTIVE = "Collective"
    SINGLE = "Single"


class Phase(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATING = "Terminating"

    @property
    def is_final(self) -> bool:
        return self in (Phase.COMPLETED, Phase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    name: str
    replicas: int
    least: int | None = None
    """``requests``: the fewest replicas an elastic job can work with."""
    most: int | None = None
    """``limits``: the most it can use."""
    template: Json

    @property
    def container(self) -> Json:
        """Container 0 is the one that trains."""
        first: Json = self.template["spec"]["containers"][0]
        return first

    @property
    def uses_launcher(self) -> bool:
        words = [*(self.container.get("command") or ()), *(self.container.get("args") or ())]
        return bool(_LAUNCHER.search(" ".join(map(str, words))))

    def given(self, variable: str) -> str | None:
        """The value it has in the template, a reference spelt out; None: it is not there."""
        for each in self.container.get("env") or ():
            if each.get("name") == variable:
                return str(each.get("valueFrom") or each.get("value") or "")
        return None

    def refuses(self, variable: str) -> bool:
        """Set empty: the user does not want it to be there at all."""
        return self.given(variable) == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    min_available: int | None = None
    queue: str = ""
    priority_class: str = ""
    min_resources: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """Something of the manifest that works, but not as its author may think."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddleJob:
    name: str
    namespace: str
    uid: str
    generation: int = 0
    is_deleted: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    roles: Mapping[str, Role]
    """Those of the specification, in the order ps, worker, heter."""
    intranet: Intranet = Intranet.POD_IP
    clean_policy: CleanPolicy = CleanPolicy.ON_COMPLETION
    with_gloo: int = 0
    is_elastic: bool = False
    scheduling: SchedulingPolicy = SchedulingPolicy()
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    active_deadline_s: int | None = None
    ttl_s: int | None = None
    is_suspended: bool = False
    cautions: tuple[Caution, ...] = ()
    status: Json = field(default_factory=dict)
    """As recorded."""

    @property
    def mode(self) -> Mode:
        """An elastic job scaled to one worker is still a collective one."""
        if PS in self.roles:
            return Mode.PS
        worker = self.roles.get(WORKER)
        many = worker is not None and (worker.replicas > 1 or self.is_elastic)
        return Mode.COLLECTIVE if many else Mode.SINGLE

    @property
    def total(self) -> int:
        return sum(role.replicas for role in self.roles.values())

    @property
    def deciders(self) -> tuple[str, ...]:
        """The roles whose success is the job's: the workers, or everybody where there are none. Servers, and heter
        trainers beside workers, serve until the workers have finished."""
        worker = self.roles.get(WORKER)
        if worker is not None and worker.replicas:
            return (WORKER,)
        return tuple(name for name, role in self.roles.items() if role.replicas)

    @property
    def least(self) -> int:
        """The fewest tasks the job can work with. Of the workers of an elastic job ``requests``; without it one where
        ``limits`` lets the size change by itself, all where only the user changes it."""
        if not self.is_elastic:
            return self.total
        worker = self.roles[WORKER]
        fewest = worker.replicas if worker.least is None and worker.most is None else max(worker.least or 1, 1)
        return self.total - worker.replicas + min(fewest, worker.replicas)

    @property
    def replaces_alone(self) -> bool:
        """A lost worker comes back alone, its peers go on: they find it by name, or by the membership. In every other
        job the peers cannot go on without it, or would look for it where it no longer is: the whole gang starts again.
        So it does for a lost server, which takes what was learnt with it."""
        return self.is_elastic or (self.mode is Mode.PS and self.intranet is Intranet.SERVICE)

    def places(self) -> Iterator[tuple[Role, int, str]]:
        """Every task wanted: role, index, pod name."""
        for role in self.roles.values():
            for index in range(role.replicas):
                yield role, index, pod_name(self.name, role.name, index)


TRAINING_ROLES = {PS: "PSERVER", WORKER: "TRAINER", HETER: "HETER"}
