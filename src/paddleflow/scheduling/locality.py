"""Which nodes have the data of a job at hand, from what caches reported. A preference, never a need.

A job of one task goes, of the nodes it fits on, to the one that has most of its data; only among those that have
equally much does packing (or spreading) decide. Shares count in tenths: less than a tenth of the data is no reason to
leave the node a job fits most tightly, and a few bytes more are none to prefer one node to another. A gang is packed as
if there were no caches: a node more or less for its network matters more than what is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paddleflow.domain.ids import FilesystemId, NodeName
from paddleflow.domain.mounts import CacheReport, by_node
from paddleflow.scheduling.entries import Waiting

_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """One filesystem: how much there is, and how much of it each node has cached."""

    whole: int
    at: Mapping[NodeName, int]


Cached = Mapping[FilesystemId, Data]


def cached_of(reports: Iterable[CacheReport]) -> Cached:
    """What is known of every filesystem. Where no mount has seen all of one, the fullest cache is taken for it all."""
    of: dict[FilesystemId, list[CacheReport]] = {}
    for report in reports:
        of.setdefault(report.fs_id, []).append(report)
    found: dict[FilesystemId, Data] = {}
    for fs_id, each in of.items():
        nodes = by_node(tuple(each))
        at = {node.node: node.cached_bytes for node in nodes if node.cached_bytes}
        if at:
            found[fs_id] = Data(whole=max(*at.values(), *(node.total_bytes for node in nodes)), at=at)
    return found


def preferred(job: Waiting, cached: Cached) -> Mapping[NodeName, float]:
    """The share of the job's data that each node has, in whole tenths; nodes without a tenth are not named."""
    if sum(group.count for group in job.groups) != 1:
        return {}
    known = [cached[fs_id] for fs_id in job.data if fs_id in cached]
    whole = sum(data.whole for data in known)
    if not whole:
        return {}
    nodes = sorted({node for data in known for node in data.at})
    shares = {node: sum(data.at.get(node, 0) for data in known) * _STEPS // whole / _STEPS for node in nodes}
    return {node: share for node, share in shares.items() if share}
