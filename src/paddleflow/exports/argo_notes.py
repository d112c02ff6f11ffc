"""What whoever submits an exported manifest should know: what it needs, and what Argo does in another way."""

from __future__ import annotations

from paddleflow.exports.argo_texts import USER
from paddleflow.exports.outline import Outline

_SCHEDULING = frozenset({"PF_JOB_QUEUE_NAME", "PF_JOB_PRIORITY", "PF_JOB_FLAVOUR", "PF_JOB_LIMIT_FLAVOUR"})


def notes_of(outline: Outline, claims: list[str]) -> dict[str, str]:
    """Annotations of the workflow."""
    plan = outline.plan
    notes: dict[str, str] = {}
    if claims:
        notes["paddleflow-needs"] = (
            f"persistent volume claims in the workflow's namespace, one for each filesystem: {', '.join(claims)}; "
            "pods on several nodes mount them at the same time"
        )
    differences = [f"{USER} is the workflow parameter of that name"]
    if plan.strategy != "continue":
        differences.append("after a failure nothing new starts, but what runs is not stopped")
    if any(node.cache.enable for node in plan.nodes.values()):
        differences.append("results of earlier runs are not used again")
    if any(_SCHEDULING & node.env.keys() for node in plan.nodes.values()):
        differences.append("queues, priorities and flavours are not applied")
    notes["paddleflow-differences"] = "; ".join(differences)
    return notes
