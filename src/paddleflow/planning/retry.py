"""What a retried run begins with: the nodes of the old run that stay done, the others as if they had not been tried."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from paddleflow.domain.ids import RunId
from paddleflow.domain.runs import NODE_DONE, NodeKind, NodeStatus, RunNode
from paddleflow.planning.paths import dag_id
from paddleflow.planning.plan import Plan


def kept_nodes(
    plan: Plan, nodes: Iterable[RunNode], old: RunId, new: RunId, gone: Container[RunId] = frozenset()
) -> tuple[RunNode, ...]:
    """Nodes for the new run, in the order of the old one.

    Done steps and dags are kept with their outputs, which stay where the old run put them. Items of an unrolled loop
    keep their place and wait again, so that a loop over an artifact has the items it had. A dag that had begun is
    entered again. What was never unrolled is left out and found anew, and so is the post-process: it runs after what
    is retried. A step whose outputs lay with one of the runs that are ``gone`` is done again, in the dags around it.
    """
    old_nodes = tuple(nodes)
    begun = {node.parent for node in old_nodes}
    again = _lost(old_nodes, gone)
    return tuple(
        kept
        for node in old_nodes
        if node.node != plan.post_process
        and (kept := _kept(node, old, new, begun=node.key in begun, again=node.key in again)) is not None
    )


def _lost(nodes: Iterable[RunNode], gone: Container[RunId]) -> set[str]:
    """Keys of done steps whose files went with their run, and of the dags around them."""
    parents = {node.key: node.parent for node in nodes}
    lost: set[str] = set()
    for node in nodes:
        if node.kind is NodeKind.STEP and node.outputs and node.source_run is not None and node.source_run in gone:
            key = node.key
            while key and key not in lost:
                lost.add(key)
                key = parents.get(key, "")
    return lost


def _kept(node: RunNode, old: RunId, new: RunId, *, begun: bool, again: bool) -> RunNode | None:
    if node.status in NODE_DONE and not again:
        kept = replace(node, run_id=new, source_run=node.source_run or old)
        return replace(kept, id=dag_id(new, node.key)) if node.kind is NodeKind.DAG else kept
    fresh = RunNode(
        run_id=new,
        key=node.key,
        node=node.node,
        kind=node.kind,
        parent=node.parent,
        seq=node.seq,
        item=node.item,
        in_loop=node.in_loop,
    )
    if node.kind is NodeKind.DAG and begun:
        return replace(
            fresh,
            id=dag_id(new, node.key),
            status=NodeStatus.RUNNING,
            parameters=node.parameters,
            inputs=node.inputs,
            started_at=node.started_at,
        )
    return fresh if node.in_loop else None
