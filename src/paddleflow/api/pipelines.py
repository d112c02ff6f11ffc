"""Stored pipelines and their versions on the wire, and how a pipeline's text travels: as base64 of its YAML."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

import base64

from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, WireRequest, local_time
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.errors import Invalid, invalid_field

LONGEST_DESCRIPTION = 256


def decoded_yaml(field: str, encoded: str, *, code: str) -> str:
    """The text behind a base64 field. Line ends, which many tools put into base64, do not matter."""
    try:
        raw = base64.b64decode(encoded.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError as error:
        raise Invalid(f"{field} is not base64: {error}", code=code, details={"field": field}) from error
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{field} holds bytes that are not UTF-8 text, save the file as UTF-8",
            code="MalformedYaml",
            details={"field": field},
        ) from error


class PipelineBody(WireRequest):
    """Of both create and update."""

    fsName: str = ""
    yamlPath: str = ""
    yamlRaw: str = ""
    username: str = ""
    desc: str | None = None

    def text(self) -> str:
        """The YAML that was sent; empty when a path says where it lies."""
        if not self.yamlRaw:
            return ""
        for field, value in (("yamlPath", self.yamlPath), ("fsName", self.fsName)):
            if value:
                raise invalid_field(field, "yamlRaw was given too; send the text or say where it lies")
        return decoded_yaml("yamlRaw", self.yamlRaw, code="Decode base64")

    def description(self) -> str | None:
        return None if self.desc is None else checked_description(self.desc)


def checked_description(text: str) -> str:
    if len(text) > LONGEST_DESCRIPTION:
        raise invalid_field("desc", f"it has {len(text)} characters, at most {LONGEST_DESCRIPTION} are kept")
    return text


class CreatePipelineAnswer(TypedDict):
    pipelineID: str
    pipelineVersionID: str
    name: str


class UpdatePipelineAnswer(TypedDict):
    pipelineID: str
    pipelineVersionID: str


class PipelineAnswer(TypedDict):
    pipelineID: str
    name: str
    desc: str
    username: str
    createTime: str
    updateTime: str


class PipelineListAnswer(PageAnswer):
    pipelineList: list[PipelineAnswer]


class PipelineVersionAnswer(TypedDict):
    pipelineVersionID: str
    pipelineID: str
    fsName: str
    yamlPath: str
    pipelineYaml: str
    username: str
    createTime: str
    updateTime: str


class PipelineVersionListAnswer(PageAnswer):
    pplVersionList: list[PipelineVersionAnswer]


class PipelineDetailAnswer(TypedDict):
    pipeline: PipelineAnswer
    pplVersions: PipelineVersionListAnswer


class PipelineVersionDetailAnswer(TypedDict):
    pipeline: PipelineAnswer
    pipelineVersion: PipelineVersionAnswer


def pipeline_answer(pipeline: Pipeline) -> PipelineAnswer:
    return {
        "pipelineID": pipeline.id,
        "name": pipeline.name,
        "desc": pipeline.description,
        "username": pipeline.owner,
        "createTime": local_time(pipeline.created_at),
        "updateTime": local_time(pipeline.updated_at),
    }


def version_answer(version: PipelineVersion) -> PipelineVersionAnswer:
    return {
        "pipelineVersionID": version.id,
        "pipelineID": version.pipeline_id,
        "fsName": version.fs_name,
        "yamlPath": version.yaml_path,
        "pipelineYaml": version.text,
        "username": version.owner,
        "createTime": local_time(version.created_at),
        "updateTime": local_time(version.updated_at),
    }
