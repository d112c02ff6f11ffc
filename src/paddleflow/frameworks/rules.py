"""What a framework's module says of itself, and the checks that follow from it: which roles there are, how many of
each, and which jobs can change their size.

Refuses a job with the field and the fix in words; the names are those of the request body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.jobs import Elasticity, JobKind, JobSpec, TaskLaunch
from paddleflow.frameworks.crews import Crew, Post, plain_role

_CODE = "JobCreateFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    roles: tuple[str, ...]
    ports: int
    """How many each task needs."""
    deciders: frozenset[str]
    """The roles whose success is the job's."""
    launch: Callable[[Crew, Post], TaskLaunch]
    single: frozenset[str] = frozenset()
    """At most one task: the one that leads."""
    needed: Mapping[str, str] = field(default_factory=dict)
    """At least one task of each, and why."""
    alone: str = ""
    """A job of this role only has nobody to lead it, so it takes two to be distributed."""
    elastic: Callable[[JobSpec], bool] = lambda spec: False
    """Whether this job's number of tasks of the role ``alone`` may change while it runs."""
    programs: frozenset[str] = frozenset()
    """The roles that run a program of the framework's where the job gives none."""
    check: Callable[[JobSpec], None] = lambda spec: None
    """What roles and numbers alone do not say."""


def bad(place: str, problem: str) -> Invalid:
    return invalid_field(place, problem, code=_CODE)


def check_roles(spec: JobSpec, rules: Rules) -> None:
    counts: dict[str, int] = {}
    for position, member in enumerate(spec.members):
        role = plain_role(member.role)
        if role not in rules.roles:
            raise bad(
                f"members[{position}].role",
                f"[{member.role[:80]}] is no role of a {spec.framework} job, use one of {', '.join(rules.roles)}",
            )
        if member.replicas < 1:
            raise bad(f"members[{position}].replicas", "it must be at least 1")
        counts[role] = counts.get(role, 0) + member.replicas
        if role in rules.single and counts[role] > 1:
            raise bad(
                f"members[{position}].replicas",
                f"a {spec.framework} job has one {role}, this one would have {counts[role]}; set it to 1",
            )
    for role, reason in rules.needed.items():
        if role not in counts:
            raise bad("members", f"a {spec.framework} job needs a {role}, {reason}; add a member with role {role}")
    is_alone = set(counts) == {rules.alone}
    if is_alone and counts[rules.alone] < 2 and spec.elastic is None:
        position = next(n for n, member in enumerate(spec.members) if plain_role(member.role) == rules.alone)
        raise bad(
            f"members[{position}].replicas",
            f"a {spec.framework} job of {rules.alone}s only needs at least 2 of them; submit one task as a single job",
        )


def check_programs(spec: JobSpec, programs: frozenset[str] = frozenset()) -> None:
    """Refuse a member that would run nothing: such a task succeeds at once, and nobody would hear that the command was
    forgotten. Where a template is given, the programs are in it."""
    for position, member in enumerate(spec.members):
        place = "command" if spec.kind is JobKind.SINGLE else f"members[{position}].command"
        if member.command and not member.command.strip():
            raise bad(place, "it is blank; give the program to run")
        has_own = plain_role(member.role) in programs
        if not (member.command or member.args or has_own or spec.extension_template):
            raise bad(place, "it is empty; give the program to run")


def check_elastic(spec: JobSpec, rules: Rules, able: str) -> None:
    """``able`` names the jobs that can change size, for the message."""
    elastic = spec.elastic
    if elastic is None:
        return
    if not rules.elastic(spec):
        raise bad("elastic", f"this {spec.framework} job cannot change its size while it runs; {able} can")
    if plain_role(elastic.role) != rules.alone:
        raise bad("elastic.role", f"[{elastic.role[:80]}] cannot change its number, only {rules.alone} can")
    bearers = [n for n, member in enumerate(spec.members) if member.role == elastic.role]
    if len(bearers) != 1:
        raise bad("elastic.role", f"exactly one member must have role [{elastic.role[:80]}], {len(bearers)} have it")
    _check_numbers(elastic)
    replicas = spec.members[bearers[0]].replicas
    if not elastic.least <= replicas <= elastic.most:
        raise bad(
            f"members[{bearers[0]}].replicas",
            f"{replicas} is not between elastic.min {elastic.least} and elastic.max {elastic.most}",
        )


def _check_numbers(elastic: Elasticity) -> None:
    if elastic.least < 1:
        raise bad("elastic.min", f"{elastic.least} is below 1; a job that can live without tasks needs none")
    if elastic.most < elastic.least:
        raise bad("elastic.max", f"{elastic.most} is below elastic.min {elastic.least}")
    sizes = elastic.sizes
    if sizes and any(after <= before for before, after in pairwise(sizes)):
        raise bad("elastic.sizes", "the numbers must rise, each larger than the one before")
    if sizes and (sizes[0] != elastic.least or sizes[-1] != elastic.most):
        raise bad(
            "elastic.sizes", f"they must begin with elastic.min {elastic.least} and end with elastic.max {elastic.most}"
        )
    if not math.isfinite(elastic.rescale_cost_s) or elastic.rescale_cost_s < 0:
        raise bad("elastic.rescaleCostSeconds", "it must be zero or more seconds")
