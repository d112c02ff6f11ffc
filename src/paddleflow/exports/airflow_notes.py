"""The words at the top of an exported DAG file: what it needs, and what Airflow does in another way."""

from __future__ import annotations

from paddleflow.domain.runs import NodeKind
from paddleflow.exports.outline import Outline
from paddleflow.planning.plan import LoopArtifact

_SCHEDULING = frozenset({"PF_JOB_QUEUE_NAME", "PF_JOB_PRIORITY", "PF_JOB_FLAVOUR", "PF_JOB_LIMIT_FLAVOUR"})


def notes_of(outline: Outline) -> str:
    """A docstring; nothing in it comes from the pipeline but its name and that of its filesystem, which are words."""
    plan = outline.plan
    steps = [node for node in plan.nodes.values() if node.kind is NodeKind.STEP]
    notes = []
    if plan.main_fs is not None:
        notes.append(
            f"PADDLEFLOW_ARTIFACTS, or the parameter artifacts of a run, names the directory that stands for the "
            f"filesystem {plan.main_fs.name}; all workers share it, and steps start in it"
        )
    notes.append("PF_USER_NAME is the parameter user_name of a run")
    if any(step.docker_env for step in steps):
        notes.append("images are not used: steps run in the environment of the workers")
    if plan.strategy != "continue" and any(node.condition for node in plan.nodes.values()):
        notes.append("a step whose condition is false ends as a success, because fail_fast allows no other way on")
    if any(step.cache.enable for step in steps):
        notes.append("results of earlier runs are not used again")
    if any(_SCHEDULING & step.env.keys() for step in steps):
        notes.append("queues, priorities and flavours are not applied")
    if any(isinstance(step.loop, LoopArtifact) for step in steps):
        notes.append("a list read from an artifact may have as many items as the setting core.max_map_length allows")
    told = "\n".join(f"- {note}" for note in notes)
    return f'"""{plan.name}: a PaddleFlow pipeline for Airflow 3.\n\nTo know:\n\n{told}\n"""'
