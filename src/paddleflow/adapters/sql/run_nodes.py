"""The nodes of runs: rows, and the JSON of what a node was given.

A run may have ten thousand of them and puts many at once, so a node that has not begun is encoded as the little it
says: only what differs from an untouched node is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.fingerprints import decoded_parts, encoded_parts
from paddleflow.adapters.sql.pipeline_tables import run_nodes, runs
from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement, upsert
from paddleflow.adapters.sql.values import from_micros_or_null, to_json, to_micros_or_null
from paddleflow.domain.ids import JobId, RunId
from paddleflow.domain.runs import Fingerprint, NodeKind, NodeStatus, RunNode

_PUT = upsert(run_nodes, "run_id", "key")
_OF_RUN = Statement(select(run_nodes).where(run_nodes.c.run_id == bindparam("run_id")).order_by(run_nodes.c.seq))
_OF_JOB = Statement(
    select(run_nodes)
    .where(
        run_nodes.c.job_id == bindparam("job_id"),
        run_nodes.c.source_run.is_(None),
        run_nodes.c.cache_run_id.is_(None),
    )
    .order_by(run_nodes.c.seq)
)
_used = select(run_nodes.c.run_id)
_USERS_OF = Statement(
    select(runs.c.id)
    .where(
        runs.c.id != bindparam("run_id"),
        runs.c.id.in_(
            _used.where(run_nodes.c.source_run == bindparam("run_id")).union(
                _used.where(run_nodes.c.cache_run_id == bindparam("run_id"))
            )
        ),
    )
    .order_by(runs.c.seq)
)

_DETAILS = ("parent", "seq", "in_loop", "id", "message", "command", "parameters", "inputs", "outputs", "env")
"""Each is empty, zero or False in an untouched node."""


def _details_to_json(node: RunNode) -> str:
    details: dict[str, object] = {}
    for name in _DETAILS:
        if value := getattr(node, name):
            details[name] = dict(value) if isinstance(value, Mapping) else value
    if node.item is not None:
        details["item"] = node.item
    if (print_ := node.fingerprint) is not None:
        details["fingerprint"] = [print_.first, print_.second, encoded_parts(print_.parts)]
    return to_json(details)


def _details_from_json(text: str) -> dict[str, Any]:
    details: dict[str, Any] = json.loads(text)
    if "fingerprint" in details:
        first, second, parts = details["fingerprint"]
        details["fingerprint"] = Fingerprint(first=first, second=second, parts=decoded_parts(parts))
    return details


def _node(row: Row) -> RunNode:
    _, run_id, key, node, kind, status, job_id, cache_run_id, source_run, started_at, finished_at, details = row
    return RunNode(
        run_id=run_id,
        key=key,
        node=node,
        kind=NodeKind(kind),
        status=NodeStatus(status),
        job_id=job_id,
        cache_run_id=cache_run_id,
        source_run=source_run,
        started_at=from_micros_or_null(started_at),
        finished_at=from_micros_or_null(finished_at),
        **_details_from_json(details),
    )


def _row(node: RunNode) -> dict[str, object]:
    return {
        "run_id": node.run_id,
        "key": node.key,
        "node": node.node,
        "kind": node.kind.value,
        "status": node.status.value,
        "job_id": node.job_id,
        "cache_run_id": node.cache_run_id,
        "source_run": node.source_run,
        "started_at": to_micros_or_null(node.started_at),
        "finished_at": to_micros_or_null(node.finished_at),
        "details": _details_to_json(node),
    }


def put_nodes(session: Session, nodes: Sequence[RunNode]) -> None:
    if nodes:
        session.change_many(_PUT, [_row(node) for node in nodes])


def nodes_of_run(session: Session, id: RunId) -> tuple[RunNode, ...]:
    return tuple(_node(row) for row in session.rows(_OF_RUN, {"run_id": id}))


def node_of_job(session: Session, id: JobId) -> RunNode | None:
    row = session.row(_OF_JOB, {"job_id": id})
    return None if row is None else _node(row)


def users_of(session: Session, id: RunId) -> tuple[RunId, ...]:
    return tuple(RunId(found) for (found,) in session.rows(_USERS_OF, {"run_id": id}))
