"""Filesystems on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import WireRequest
from paddleflow.domain.commands import CreateFilesystem, UpdateFilesystem
from paddleflow.domain.filesystems import Filesystem


class FilesystemRequest(WireRequest):
    """The body of both create and update: name and user say which."""

    name: str = ""
    url: str = ""
    properties: dict[str, str] = Field(default_factory=dict)
    username: str = ""
    independentMountProcess: bool = False

    def to_create(self) -> CreateFilesystem:
        return CreateFilesystem(
            name=self.name,
            url=self.url,
            properties=self.properties,
            owner=self.username,
            independent_mount_process=self.independentMountProcess,
        )

    def to_update(self) -> UpdateFilesystem:
        return UpdateFilesystem(
            name=self.name,
            url=self.url,
            properties=self.properties,
            owner=self.username,
            independent_mount_process=self.independentMountProcess,
        )


class FilesystemNameAnswer(TypedDict):
    fsName: str
    fsID: str


class FilesystemAnswer(TypedDict):
    id: str
    name: str
    serverAddress: str
    type: str
    subPath: str
    username: str
    properties: dict[str, str]
    independentMountProcess: bool


class FilesystemListAnswer(TypedDict):
    """Older than the other lists, and shaped differently."""

    marker: str
    truncated: bool
    nextMarker: str
    fsList: list[FilesystemAnswer]


def filesystem_answer(filesystem: Filesystem) -> FilesystemAnswer:
    return {
        "id": filesystem.id,
        "name": filesystem.name,
        "serverAddress": filesystem.server_address,
        "type": filesystem.type,
        "subPath": filesystem.sub_path,
        "username": filesystem.owner,
        "properties": dict(filesystem.properties),
        "independentMountProcess": filesystem.independent_mount_process,
    }
