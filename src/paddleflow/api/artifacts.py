"""Artifacts and reusable results on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, local_time
from paddleflow.domain.runs import ArtifactEvent, CacheEntry
from paddleflow.ports.files import FileEntry, shown

_STRATEGY = "conservative"
"""The only one there is; clients print it."""


class CacheAnswer(TypedDict):
    cacheID: str
    firstFp: str
    secondFp: str
    runID: str
    source: str
    step: str
    jobID: str
    fsname: str
    username: str
    expiredTime: str
    """Seconds after the update; "-1": never."""
    strategy: str
    custom: str
    createTime: str
    updateTime: str


class CacheListAnswer(PageAnswer):
    runCacheList: list[CacheAnswer]


class ArtifactAnswer(TypedDict):
    runID: str
    fsname: str
    username: str
    artifactPath: str
    step: str
    jobID: str
    type: str
    artifactName: str
    meta: str
    createTime: str
    updateTime: str


class ArtifactListAnswer(PageAnswer):
    artifactEventList: list[ArtifactAnswer]


class LineageAnswer(TypedDict):
    fsname: str
    path: str
    madeBy: list[ArtifactAnswer]
    readBy: list[ArtifactAnswer]


class FileAnswer(TypedDict):
    path: str
    """Relative to the filesystem's root."""
    type: str
    """file, directory or link"""
    size: int
    modifyTime: str


class FileListAnswer(TypedDict):
    runID: str
    path: str
    fileList: list[FileAnswer]


def cache_answer(entry: CacheEntry) -> CacheAnswer:
    return {
        "cacheID": entry.id,
        "firstFp": entry.fingerprint.first,
        "secondFp": entry.fingerprint.second,
        "runID": entry.run_id,
        "source": entry.source,
        "step": entry.node,
        "jobID": entry.job_id,
        "fsname": entry.fs_name,
        "username": entry.owner,
        "expiredTime": str(entry.expires_after_s),
        "strategy": _STRATEGY,
        "custom": "",
        "createTime": local_time(entry.created_at),
        "updateTime": local_time(entry.updated_at),
    }


def artifact_answer(event: ArtifactEvent) -> ArtifactAnswer:
    return {
        "runID": event.run_id,
        "fsname": event.fs_name,
        "username": event.owner,
        "artifactPath": event.path,
        "step": event.step,
        "jobID": event.job_id,
        "type": event.use,
        "artifactName": event.name,
        "meta": event.meta,
        "createTime": local_time(event.created_at),
        "updateTime": local_time(event.updated_at),
    }


def _kind(entry: FileEntry) -> str:
    if entry.is_directory:
        return "directory"
    return "link" if entry.is_link else "special" if entry.is_special else "file"


def file_answer(entry: FileEntry) -> FileAnswer:
    return {
        "path": shown(entry.path),
        "type": _kind(entry),
        "size": entry.size,
        "modifyTime": local_time(entry.modified_at),
    }
