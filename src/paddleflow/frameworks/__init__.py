"""One module a training framework: a job and its placement become tasks with a command and an environment.

Pure, and used by every runtime, so that a job sees the same contract on a laptop and on a cluster.
"""

from __future__ import annotations

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import Framework, Job, TaskLaunch
from paddleflow.frameworks import standalone

_MODULES = {Framework.STANDALONE: standalone.launches}


def supports(framework: Framework) -> bool:
    return framework in _MODULES


def launches_of(job: Job) -> tuple[TaskLaunch, ...]:
    """What to start for an admitted job: one launch for each of its placements."""
    make = _MODULES.get(job.spec.framework)
    if make is None:
        raise Invalid(f"framework {job.spec.framework} is not supported here", code="JobInvalidField")
    return make(job)
