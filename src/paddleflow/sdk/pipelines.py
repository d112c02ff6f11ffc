"""Pipelines that are kept on the server, and their versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from paddleflow.sdk.errors import InvalidError, UnauthenticatedError
from paddleflow.sdk.profile import DEFAULT_PORT
from paddleflow.sdk.runs import encoded
from paddleflow.sdk.session import TOKEN_HEADER, Session, present, refuse_blank, require, segment

Given = TypeVar("Given")


@dataclass(frozen=True)
class PipelineInfo:
    pipeline_id: str
    name: str
    username: str
    desc: str
    create_time: str
    update_time: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> PipelineInfo:
        return cls(
            pipeline_id=data["pipelineID"],
            name=data.get("name", ""),
            username=data.get("username", ""),
            desc=data.get("desc", ""),
            create_time=data.get("createTime", ""),
            update_time=data.get("updateTime", ""),
        )


@dataclass(frozen=True)
class PipelineVersionInfo:
    pipeline_version_id: str
    pipeline_id: str
    fs_name: str
    yaml_path: str
    pipeline_yaml: str
    username: str
    create_time: str
    update_time: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> PipelineVersionInfo:
        return cls(
            pipeline_version_id=data["pipelineVersionID"],
            pipeline_id=data.get("pipelineID", ""),
            fs_name=data.get("fsName", ""),
            yaml_path=data.get("yamlPath", ""),
            pipeline_yaml=data.get("pipelineYaml", ""),
            username=data.get("username", ""),
            create_time=data.get("createTime", ""),
            update_time=data.get("updateTime", ""),
        )


class PipelineCalls(Session):
    """What the client can do with stored pipelines."""

    def create_pipeline(
        self,
        fs_name: str | None = None,
        yaml_path: str | None = None,
        desc: str | None = None,
        username: str | None = None,
        yaml_raw: bytes | str | None = None,
    ) -> tuple[bool, dict[str, str]]:
        """Keep a pipeline: its text (``yaml_raw``), or a file on a filesystem. ``{"name", "pplID", "pplVerID"}``."""
        data = self._create("/pipeline", _body(fs_name, yaml_path, desc, username, yaml_raw))
        return True, {"name": data["name"], "pplID": data["pipelineID"], "pplVerID": data["pipelineVersionID"]}

    def list_pipeline(
        self,
        user_filter: str | None = None,
        name_filter: str | None = None,
        max_keys: int | str | None = None,
        marker: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"pipelineList": [PipelineInfo…], "nextMarker"}``."""
        params = {"userFilter": user_filter, "nameFilter": name_filter, "maxKeys": max_keys, "marker": marker}
        data = self._get("/pipeline", params)
        found = [PipelineInfo.from_wire(one) for one in data["pipelineList"]]
        return True, {"pipelineList": found, "nextMarker": data.get("nextMarker")}

    def show_pipeline(
        self,
        pipeline_id: str,
        fs_filter: str | None = None,
        max_keys: int | str | None = None,
        marker: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"pipelineInfo", "pipelineVersionList": [PipelineVersionInfo…], "nextMarker"}``."""
        data = self._get(_path(pipeline_id), {"fsFilter": fs_filter, "maxKeys": max_keys, "marker": marker})
        versions = data["pplVersions"]
        return True, {
            "pipelineInfo": PipelineInfo.from_wire(data["pipeline"]),
            "pipelineVersionList": [PipelineVersionInfo.from_wire(one) for one in versions["pplVersionList"]],
            "nextMarker": versions.get("nextMarker"),
        }

    def update_pipeline(
        self,
        pipeline_id: str,
        fs_name: str | None = None,
        yaml_path: str | None = None,
        username: str | None = None,
        desc: str | None = None,
        yaml_raw: bytes | str | None = None,
    ) -> tuple[bool, dict[str, str]]:
        """Keep a new version of a pipeline. ``{"pipelineID", "pipelineVersionID"}``."""
        if not yaml_raw:
            require(fs_name, "InvalidFSName", "fs_name")
            require(yaml_path, "InvalidYamlPath", "yaml_path")
        data = self._create(_path(pipeline_id), _body(fs_name, yaml_path, desc, username, yaml_raw))
        return True, {name: data[name] for name in ("pipelineID", "pipelineVersionID")}

    def show_pipeline_version(self, pipeline_id: str, pipeline_version_id: str) -> tuple[bool, dict[str, Any]]:
        """``{"pipelineInfo", "pipelineVersionInfo"}``."""
        data = self._get(_version_path(pipeline_id, pipeline_version_id))
        return True, {
            "pipelineInfo": PipelineInfo.from_wire(data["pipeline"]),
            "pipelineVersionInfo": PipelineVersionInfo.from_wire(data["pipelineVersion"]),
        }

    def delete_pipeline(self, pipeline_id: str) -> tuple[bool, None]:
        self._delete(_path(pipeline_id))
        return True, None

    def delete_pipeline_version(self, pipeline_id: str, pipeline_version_id: str) -> tuple[bool, None]:
        self._delete(_version_path(pipeline_id, pipeline_version_id))
        return True, None


class PipelineServiceApi:
    """The same calls for scripts that carry the address and the header of a log-in themselves.

    Every method takes the address (``http://host:port``), then the arguments of the client's method of that name, and
    the header last or by name: ``PipelineServiceApi.list_pipeline(host, header={"x-pf-authorization": token})``.
    """

    @classmethod
    def create_pipeline(
        cls,
        host: str,
        fs_name: str | None = None,
        yaml_path: str | None = None,
        desc: str | None = None,
        username: str | None = None,
        header: Mapping[str, str] | None = None,
        yaml_raw: bytes | str | None = None,
    ) -> tuple[bool, dict[str, str]]:
        return _at(host, header, lambda calls: calls.create_pipeline(fs_name, yaml_path, desc, username, yaml_raw))

    @classmethod
    def list_pipeline(
        cls,
        host: str,
        user_filter: str | None = None,
        name_filter: str | None = None,
        max_keys: int | str | None = None,
        marker: str | None = None,
        header: Mapping[str, str] | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        return _at(host, header, lambda calls: calls.list_pipeline(user_filter, name_filter, max_keys, marker))

    @classmethod
    def show_pipeline(
        cls,
        host: str,
        pipeline_id: str,
        fs_filter: str | None = None,
        max_keys: int | str | None = None,
        marker: str | None = None,
        header: Mapping[str, str] | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        return _at(host, header, lambda calls: calls.show_pipeline(pipeline_id, fs_filter, max_keys, marker))

    @classmethod
    def delete_pipeline(cls, host: str, pipeline_id: str, header: Mapping[str, str] | None = None) -> tuple[bool, None]:
        return _at(host, header, lambda calls: calls.delete_pipeline(pipeline_id))


class _Lent(PipelineCalls):
    """A session on somebody else's token: when it has gone stale there is no password to log in again with."""

    def login(self, user_name: str, password: str) -> tuple[bool, None]:
        raise UnauthenticatedError("InvalidOperator", "should login first")


def _at(host: str, header: Mapping[str, str] | None, call: Callable[[PipelineCalls], Given]) -> Given:
    token = (header or {}).get(TOKEN_HEADER)
    if not token:
        raise InvalidError("InvalidRequest", "paddleflow should login first")
    parts = urlsplit(host if "://" in host else f"http://{host}")
    with _Lent(f"{parts.scheme}://{parts.hostname}", "-", "-", parts.port or DEFAULT_PORT) as calls:
        calls.resume(token)
        return call(calls)


def _path(pipeline_id: str) -> str:
    return f"/pipeline/{segment(require(pipeline_id, 'InvalidPipelineID', 'pipeline_id'))}"


def _version_path(pipeline_id: str, version_id: str) -> str:
    version = segment(require(version_id, "InvalidPipelineVersionID", "pipeline_version_id"))
    return f"{_path(pipeline_id)}/{version}"


def _body(
    fs_name: str | None, yaml_path: str | None, desc: str | None, username: str | None, yaml_raw: bytes | str | None
) -> dict[str, object]:
    return present(
        fsName=refuse_blank(fs_name, "InvalidFSName", "fs_name"),
        yamlPath=refuse_blank(yaml_path, "InvalidYamlPath", "yaml_path"),
        desc=desc,
        username=refuse_blank(username, "InvalidUserName", "username"),
        yamlRaw=encoded(yaml_raw),
    )
