"""Filesystems and links on the wire. Of a secret only that it is set is shown: six asterisks, which an update may send
back to leave it as it is."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import WireRequest
from paddleflow.domain.commands import CreateFilesystem, CreateLink, UpdateFilesystem
from paddleflow.domain.filesystems import Filesystem, Link
from paddleflow.domain.storages import shown_properties


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
        "properties": shown_properties(filesystem.properties),
        "independentMountProcess": filesystem.independent_mount_process,
    }


class LinkRequest(WireRequest):
    fsName: str = ""
    fsPath: str = ""
    url: str = ""
    properties: dict[str, str] = Field(default_factory=dict)
    username: str = ""

    def to_command(self) -> CreateLink:
        return CreateLink(
            fs_name=self.fsName,
            fs_path=self.fsPath,
            url=self.url,
            properties=self.properties,
            owner=self.username,
        )


class LinkAnswer(TypedDict):
    fsName: str
    fsPath: str
    serverAddress: str
    type: str
    username: str
    subPath: str
    properties: dict[str, str]


class LinkListAnswer(TypedDict):
    """Shaped like the list of filesystems."""

    marker: str
    truncated: bool
    nextMarker: str
    linkList: list[LinkAnswer]


def link_answer(filesystem: Filesystem, link: Link) -> LinkAnswer:
    return {
        "fsName": filesystem.name,
        "fsPath": link.fs_path,
        "serverAddress": link.server_address,
        "type": link.type,
        "username": filesystem.owner,
        "subPath": link.sub_path,
        "properties": shown_properties(link.properties),
    }
