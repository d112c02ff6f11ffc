"""One module a training framework: a job and its placement become tasks with a command and an environment.

Pure, and used by every runtime, so that a job sees the same contract on a laptop and on a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddleflow.domain.ids import TaskId
from paddleflow.domain.jobs import Address, Framework, Job, JobSpec, TaskLaunch
from paddleflow.frameworks import mpi, paddle, pytorch, ray, spark, standalone, tensorflow
from paddleflow.frameworks.crews import assemble, plain_role
from paddleflow.frameworks.rules import Rules, bad, check_elastic, check_programs, check_roles

_DISTRIBUTED: Mapping[str, Rules] = {
    Framework.PADDLE: paddle.RULES,
    Framework.PYTORCH: pytorch.RULES,
    Framework.TENSORFLOW: tensorflow.RULES,
    Framework.MPI: mpi.RULES,
    Framework.RAY: ray.RULES,
    Framework.SPARK: spark.RULES,
}
_ELASTIC_ONES = "paddle jobs of workers only, and pytorch jobs"


def supports(framework: str) -> bool:
    return framework == Framework.STANDALONE or framework in _DISTRIBUTED


def check(spec: JobSpec) -> None:
    """Refuse what the framework could not run: unknown roles, wrong numbers, no program, a size that cannot change."""
    if spec.framework == Framework.STANDALONE:
        standalone.check(spec)
        check_programs(spec)
        return
    rules = _rules(spec)
    check_roles(spec, rules)
    rules.check(spec)
    check_programs(spec, rules.programs)
    check_elastic(spec, rules, _ELASTIC_ONES)


def ports_per_task(spec: JobSpec) -> int:
    return 0 if spec.framework == Framework.STANDALONE else _rules(spec).ports


def deciders(spec: JobSpec) -> frozenset[str]:
    """The roles, as this job spells them, whose success is the job's; none: every role."""
    if spec.framework == Framework.STANDALONE:
        return frozenset()
    deciding = _rules(spec).deciders
    return frozenset(member.role for member in spec.members if plain_role(member.role) in deciding)


def launches_of(
    job: Job, book: Mapping[TaskId, Address], *, secret: str = "", python: str = "python3"
) -> tuple[TaskLaunch, ...]:
    """One launch for each of the job's placements, in the order of ranks.

    ``book`` has the address of every task. ``secret`` is known to the tasks of this job alone; MPI's workers take
    orders only from who knows it. ``python`` starts a Python inside the task that can import this package, for the
    programs in ``agents``.
    """
    if job.spec.framework == Framework.STANDALONE:
        return standalone.launches(job)
    crew = assemble(job, book, secret, python)
    return tuple(_rules(job.spec).launch(crew, post) for post in crew.posts)


def _rules(spec: JobSpec) -> Rules:
    rules = _DISTRIBUTED.get(spec.framework)
    if rules is None:
        raise bad("framework", f"[{spec.framework}] is not supported, use one of {', '.join(_DISTRIBUTED)}")
    return rules
