"""Showing a running job who belongs to it: ``membership.json`` in the job's folder. Server side.

The file is replaced whole, so a task that opens it reads one generation from beginning to end, and may watch it by its
time of change or with inotify on its directory. Tasks run as the server's user and could write it; one that does
misleads its own job and nobody else, and what cannot be read here is simply published again.
"""

from __future__ import annotations

import os
from typing import Any

from paddleflow.adapters.local import layout
from paddleflow.domain.jobs import Membership


def publish_membership(root: str, membership: Membership) -> None:
    path = layout.membership_path(root, membership.job_id)
    document = membership_document(membership)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    lock = layout.acquire_lock_waiting(f"{root}/{layout.MEMBERSHIP_LOCK}")
    try:
        published = _read(path)
        if document != published and membership.generation >= _generation(published):
            layout.write_document(path, document)
    finally:
        os.close(lock)


def membership_document(membership: Membership) -> dict[str, Any]:
    """As tasks read it. A task's rank is its position in the list."""
    return {
        "jobID": membership.job_id,
        "generation": membership.generation,
        "least": membership.least,
        "most": membership.most,
        "tasks": [
            {
                "id": placement.task_id,
                "role": placement.role,
                "index": placement.index,
                "rank": rank,
                "host": address.host,
                "ports": list(address.ports),
                "node": placement.node,
            }
            for rank, (placement, address) in enumerate(membership.tasks)
        ],
    }


def _read(path: str) -> object:
    try:
        return layout.read_document(path)
    except ValueError:
        return None  # A task wrote into it, or the host went down: no generation to protect.


def _generation(published: object) -> int:
    generation = published.get("generation") if isinstance(published, dict) else None
    return generation if isinstance(generation, int) else -1
