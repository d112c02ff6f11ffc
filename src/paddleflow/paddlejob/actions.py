"""What a reconcile wants done, and what it looks at.

A plan's actions are idempotent and are carried out in their order; those of one kind that stand together may be done
at the same time. Then the status is written, if it differs from what is recorded, on condition that the job has not
changed since it was read (its ``resourceVersion``): a plan made from an old job must not overwrite a newer record. An
outcome that only a pod can tell of (a failure, an exit code) is first recorded in the status and only by a later plan
deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPod:
    """Set annotations of a pod: the kubelet looks at a changed pod at once, at one that waits only now and then."""

    name: str
    uid: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateService:
    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteService:
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConfigMap:
    """Create it, or replace what it holds."""

    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PutPodGroup:
    """Create it, or replace its specification."""

    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePodGroup:
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateJob:
    """Set annotations of the job itself. It fails when another job was given the same meanwhile."""

    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Of the job: one that an earlier operator has put there and that would keep a deleted job for ever."""

    finalizer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetElasticNp:
    """Write the wanted number of workers where Paddle's own elastic launcher looks for it in etcd."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An event on the job. ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Its time after the end is over. What it owns goes with it."""


Action = (
    CreatePod
    | DeletePod
    | PatchPod
    | CreateService
    | DeleteService
    | PutConfigMap
    | PutPodGroup
    | DeletePodGroup
    | AnnotateJob
    | RemoveFinalizer
    | SetElasticNp
    | Record
    | DeleteJob
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the operator was started with."""

    scheduling: str = ""
    """``volcano``: a job is a gang with a PodGroup. Empty: pods are created at once."""
    init_image: str = ""
    """Image of an init container that waits until the names of a task's peers resolve; empty: no such container."""
    etcd_servers: tuple[str, ...] = ()
    """Where Paddle's elastic launcher finds etcd, as host:port or URLs."""
    port_range: tuple[int, int] = (35000, 65000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the cluster holds of one job, as objects of its API: only those whose controller is the job."""

    pods: Sequence[Json] = ()
    services: Sequence[Json] = ()
    config_map: Json | None = None
    pod_group: Json | None = None
    elastic_np: str | None = None
    """What is known to stand in etcd; None: nobody has looked or written yet."""
    taken_ports: frozenset[int] = field(default_factory=frozenset)
    """First ports of the blocks that other unfinished jobs hold (their ``host-port`` annotations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    actions: tuple[Action, ...]
    status: Json
    """The whole status. Equal to the recorded one when nothing has changed: then there is nothing to write."""
    requeue_after_s: float | None = None
    """Look again after this time even if nothing happens."""
