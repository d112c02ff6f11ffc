"""Identifiers: one NewType each, so that a queue name cannot be passed where a job id is wanted.

Ids are given to the pure code, never made by it; the shapes here are those users of the product already know.
"""

from __future__ import annotations

from typing import NewType

JobId = NewType("JobId", str)
"""``job-`` and 16 hex digits, or a DNS label the user chose."""

TaskId = NewType("TaskId", str)
"""``<job id>-<role>-<index>``, then ``-r<generation>`` when that place is filled again: one id is one process."""

UserName = NewType("UserName", str)
QueueName = NewType("QueueName", str)
FlavourName = NewType("FlavourName", str)
ClusterName = NewType("ClusterName", str)
NodeName = NewType("NodeName", str)
FilesystemId = NewType("FilesystemId", str)
"""``fs-<user>-<name>``."""

GrantId = NewType("GrantId", str)
MountId = NewType("MountId", str)
"""``mount-`` and 16 hex digits."""

SnapshotId = NewType("SnapshotId", str)
"""``snap-`` and 16 hex digits."""

RunId = NewType("RunId", str)
"""``run-`` and at least six digits, counted up."""

PipelineId = NewType("PipelineId", str)
"""``ppl-`` and at least six digits, counted up."""

VersionId = NewType("VersionId", str)
"""A version of a pipeline: "1", "2", … never given out twice for one pipeline."""

ScheduleId = NewType("ScheduleId", str)
CacheId = NewType("CacheId", str)

ROOT = UserName("root")
"""The administrator. There is exactly one."""

DEFAULT_CLUSTER = ClusterName("default-cluster")
DEFAULT_QUEUE = QueueName("default-queue")


def spell_id(prefix: str, token: str, digits: int) -> str:
    """``spell_id("job", token, 16)`` is ``job-`` and the first 16 characters of a hexadecimal token."""
    return f"{prefix}-{token[:digits]}"


def numbered_id(prefix: str, number: int) -> str:
    """``numbered_id("run", 7)`` is ``run-000007``."""
    return f"{prefix}-{number:06d}"


def task_id(job_id: JobId, role: str, index: int, generation: int = 0) -> TaskId:
    return TaskId(f"{job_id}-{role}-{index}" + (f"-r{generation}" if generation else ""))


def filesystem_id(owner: UserName, name: str) -> FilesystemId:
    return FilesystemId(f"fs-{owner}-{name}")
