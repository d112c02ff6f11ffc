"""What a job asks for, as JSON: the encoder and the decoder of ``JobSpec`` and of placements.

Fields that are empty are left out, and a field that is absent reads as empty: rows written before a field existed stay
readable, and most rows stay short. Fields whose default is not empty (kind, framework, role, replicas) are always
written, so that a changed default never changes the meaning of a stored job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from paddleflow.adapters.sql.values import to_json
from paddleflow.domain.ids import NodeName, TaskId
from paddleflow.domain.jobs import FlavourRef, Framework, FsRef, JobKind, JobSpec, Member, Placement
from paddleflow.domain.resources import NOTHING, Resources

Json = dict[str, Any]
_NO_FLAVOUR = FlavourRef()


def spec_to_json(spec: JobSpec) -> str:
    encoded: Json = {
        "kind": spec.kind.value,
        "framework": spec.framework.value,
        "members": [_encode_member(member) for member in spec.members],
    }
    if spec.extension_template is not None:
        encoded["extension_template"] = dict(spec.extension_template)
    return to_json(encoded)


@lru_cache(maxsize=1024)
def spec_from_json(text: str) -> JobSpec:
    """Remembered: specs never change once stored, many jobs share one, and decoding is most of reading a job."""
    encoded: Json = json.loads(text)
    return JobSpec(
        kind=JobKind(encoded.get("kind", JobKind.SINGLE.value)),
        framework=Framework(encoded.get("framework", Framework.STANDALONE.value)),
        members=tuple([_decode_member(member) for member in encoded.get("members", ())]),
        extension_template=encoded.get("extension_template"),
    )


def _encode_member(member: Member) -> Json:
    encoded: Json = {
        "role": member.role,
        "replicas": member.replicas,
        "name": member.name,
        "flavour": _encode_flavour(member.flavour),
        "extra_fs": [_encode_fs(fs) for fs in member.extra_fs],
        "image": member.image,
        "env": dict(member.env),
        "command": member.command,
        "args": member.args,
        "port": member.port,
        "labels": dict(member.labels),
        "annotations": dict(member.annotations),
    }
    encoded = {name: value for name, value in encoded.items() if value or name == "replicas"}
    encoded["role"] = member.role
    if member.limit is not None:
        encoded["limit"] = _encode_flavour(member.limit)
    if member.fs is not None:
        encoded["fs"] = _encode_fs(member.fs)
    return encoded


def _decode_member(encoded: Json) -> Member:
    read = encoded.get
    flavour, limit, fs = read("flavour"), read("limit"), read("fs")
    return Member(
        role=read("role", "worker"),
        replicas=read("replicas", 1),
        name=read("name", ""),
        flavour=_decode_flavour(flavour) if flavour else _NO_FLAVOUR,
        limit=None if limit is None else _decode_flavour(limit),
        fs=None if fs is None else _decode_fs(fs),
        extra_fs=tuple([_decode_fs(each) for each in read("extra_fs", ())]),
        image=read("image", ""),
        env=read("env") or {},
        command=read("command", ""),
        args=tuple(read("args", ())),
        port=read("port", 0),
        labels=read("labels") or {},
        annotations=read("annotations") or {},
    )


def _encode_flavour(flavour: FlavourRef) -> Json:
    encoded: Json = {}
    if flavour.name:
        encoded["name"] = flavour.name
    if flavour.resources.amounts:
        encoded["resources"] = dict(flavour.resources.amounts)
    return encoded


def _decode_flavour(encoded: Json) -> FlavourRef:
    amounts: Mapping[str, int] | None = encoded.get("resources")
    return FlavourRef(name=encoded.get("name", ""), resources=Resources(amounts) if amounts else NOTHING)


def _encode_fs(fs: FsRef) -> Json:
    encoded: Json = {
        "name": fs.name,
        "mount_path": fs.mount_path,
        "sub_path": fs.sub_path,
        "read_only": fs.read_only,
        "id": fs.id,
        "type": fs.type,
        "host_path": fs.host_path,
    }
    return {name: value for name, value in encoded.items() if value}


def _decode_fs(encoded: Json) -> FsRef:
    read = encoded.get
    return FsRef(
        name=read("name", ""),
        mount_path=read("mount_path", ""),
        sub_path=read("sub_path", ""),
        read_only=read("read_only", False),
        id=read("id", ""),
        type=read("type", ""),
        host_path=read("host_path", ""),
    )


def placements_to_json(placements: tuple[Placement, ...]) -> str:
    if not placements:
        return "[]"
    return to_json([{"task_id": each.task_id, "node": each.node, "gpus": each.gpus} for each in placements])


@lru_cache(maxsize=4096)
def placements_from_json(text: str) -> tuple[Placement, ...]:
    """Remembered for those who show the same page again and again."""
    if text == "[]":
        return ()
    return tuple(
        Placement(task_id=TaskId(each["task_id"]), node=NodeName(each["node"]), gpus=tuple(each.get("gpus", ())))
        for each in json.loads(text)
    )
