"""What runs read and made: artifacts, where they come from and their contents; and results kept to be used again."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.session import Session, require, segment

Progress = Callable[[int, int | None], None]
"""Told the bytes that have arrived and how many there will be, if the server knows."""

_ARCHIVE = "application/x-tar"


@dataclass(frozen=True)
class ArtifactInfo:
    """A step read an artifact or made one."""

    run_id: str
    fs_name: str
    username: str
    artifact_path: str
    type: str
    """``input`` or ``output``."""
    step: str
    artifact_name: str
    meta: str
    create_time: str
    update_time: str
    job_id: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> ArtifactInfo:
        return cls(
            run_id=data["runID"],
            fs_name=data.get("fsname", ""),
            username=data.get("username", ""),
            artifact_path=data.get("artifactPath", ""),
            type=data.get("type", ""),
            step=data.get("step", ""),
            artifact_name=data.get("artifactName", ""),
            meta=data.get("meta", ""),
            create_time=data.get("createTime", ""),
            update_time=data.get("updateTime", ""),
            job_id=data.get("jobID", ""),
        )


@dataclass(frozen=True)
class RunCacheInfo:
    """A result that may be used again."""

    cache_id: str
    first_fp: str
    second_fp: str
    run_id: str
    source: str
    job_id: str
    fs_name: str
    username: str
    expired_time: str
    strategy: str
    custom: str
    create_time: str
    update_time: str
    step: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> RunCacheInfo:
        return cls(
            cache_id=data["cacheID"],
            first_fp=data.get("firstFp", ""),
            second_fp=data.get("secondFp", ""),
            run_id=data.get("runID", ""),
            source=data.get("source", ""),
            job_id=data.get("jobID", ""),
            fs_name=data.get("fsname", ""),
            username=data.get("username", ""),
            expired_time=data.get("expiredTime", ""),
            strategy=data.get("strategy", ""),
            custom=data.get("custom", ""),
            create_time=data.get("createTime", ""),
            update_time=data.get("updateTime", ""),
            step=data.get("step", ""),
        )


class ArtifactCalls(Session):
    """What the client can do with artifacts and kept results."""

    def list_artifact(
        self,
        user_filter: str | None = None,
        fs_filter: str | None = None,
        run_filter: str | None = None,
        type_filter: str | None = None,
        path_filter: str | None = None,
        maxkeys: int | str | None = None,
        marker: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"artifactList": [ArtifactInfo…], "nextMarker"}``."""
        params = {
            "userFilter": user_filter,
            "fsFilter": fs_filter,
            "runFilter": run_filter,
            "typeFilter": type_filter,
            "pathFilter": path_filter,
            "maxKeys": maxkeys,
            "marker": marker,
        }
        data = self._get("/artifact", params)
        found = [ArtifactInfo.from_wire(one) for one in data["artifactEventList"]]
        return True, {"artifactList": found, "nextMarker": data.get("nextMarker")}

    def artifact_lineage(self, fs_name: str, path: str, username: str | None = None) -> tuple[bool, dict[str, Any]]:
        """Who made what lies at this path, and who read it: ``{"madeBy", "readBy"}``, a list of ArtifactInfo each."""
        params = {
            "fsname": require(fs_name, "InvalidFSName", "fs_name"),
            "path": require(path, "InvalidPath", "path"),
            "username": username,
        }
        data = self._get("/artifact/lineage", params)
        return True, {
            side: [ArtifactInfo.from_wire(one) for one in data.get(side) or []] for side in ("madeBy", "readBy")
        }

    def artifact_files(self, run_id: str, path: str = "") -> tuple[bool, list[dict[str, Any]]]:
        """What lies at a path of the run's main filesystem: ``[{"path", "type", "size", "modifyTime"}]``."""
        params = {"runID": require(run_id, "InvalidRunID", "run_id"), "path": path}
        return True, list(self._get("/artifact/files", params)["fileList"])

    def download_artifact(
        self,
        run_id: str,
        path: str,
        target: str | os.PathLike[str] | None = None,
        on_progress: Progress = lambda arrived, total: None,
    ) -> tuple[bool, str]:
        """Copy a file of a run here; a directory comes as a tar archive. The name of what was written.

        Without ``target`` it is called as it was there. It appears whole or not at all.
        """
        params = {
            "runID": require(run_id, "InvalidRunID", "run_id"),
            "path": require(path, "InvalidPath", "path"),
        }
        told: dict[str, str] = {}
        chunks = self._stream("/artifact/download", params, told.update)
        first = next(chunks, b"")
        written = Path(target) if target is not None else _name_of(path, told)
        total = int(told["content-length"]) if told.get("content-length", "").isdecimal() else None
        draft = written.with_name(f".{written.name}.{secrets.token_hex(4)}")
        arrived = 0
        try:
            with draft.open("xb") as file:
                chunk: bytes | None = first
                while chunk is not None:
                    file.write(chunk)
                    arrived += len(chunk)
                    on_progress(arrived, total)
                    chunk = next(chunks, None)
            draft.replace(written)
        except OSError as error:
            raise InvalidError("InvalidTarget", f"cannot write {written}: {error.strerror}") from error
        finally:
            # After the last step above it is there no more; after any failure what is half done goes.
            draft.unlink(missing_ok=True)
        return True, str(written)

    def list_cache(
        self,
        user_filter: str | None = None,
        fs_filter: str | None = None,
        run_filter: str | None = None,
        max_keys: int | str | None = None,
        marker: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"runCacheList": [RunCacheInfo…], "nextMarker"}``."""
        params = {
            "userFilter": user_filter,
            "fsFilter": fs_filter,
            "runFilter": run_filter,
            "maxKeys": max_keys,
            "marker": marker,
        }
        data = self._get("/runCache", params)
        found = [RunCacheInfo.from_wire(one) for one in data["runCacheList"]]
        return True, {"runCacheList": found, "nextMarker": data.get("nextMarker")}

    def show_cache(self, cache_id: str) -> tuple[bool, RunCacheInfo]:
        return True, RunCacheInfo.from_wire(self._get(_cache_path(cache_id)))

    def delete_cache(self, cache_id: str) -> tuple[bool, None]:
        self._delete(_cache_path(cache_id))
        return True, None


def _cache_path(cache_id: str) -> str:
    return f"/runCache/{segment(require(cache_id, 'InvalidCacheID', 'cache_id'))}"


def _name_of(path: str, told: Mapping[str, str]) -> Path:
    """The last part of the path, in this directory, and never anything above it."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    if name in ("", ".", ".."):
        name = "artifact"
    return Path(name + (".tar" if told.get("content-type", "").startswith(_ARCHIVE) else ""))
